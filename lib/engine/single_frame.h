/* SPDX-License-Identifier: BSD-3-Clause */
/* single_frame.h - how much data a message has that must fit into one frame, as an atomic must. */
#ifndef ENGINE_SINGLE_FRAME_H
#define ENGINE_SINGLE_FRAME_H

#include <engine/amo.h>
#include <wire/frame.h>
#include <wire/message.h>

/* The most bytes of data; frame_bytes: of the frame, without encapsulation. */
static inline uint32_t single_frame_bytes(uint32_t frame_bytes)
{
	const uint32_t overhead = FRAME_HEADER_BYTES + FRAME_SACK_BYTES + RECORD_WHOLE_BYTES +
				  MESSAGE_HEADER_BYTES + AMO_SIZE_MAX + RECORD_ALIGN;
	const uint32_t most = frame_bytes > overhead ? frame_bytes - overhead : 1;

	return most < AMO_BYTES_MAX ? most : AMO_BYTES_MAX;
}

#endif
