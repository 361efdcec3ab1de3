/* SPDX-License-Identifier: BSD-3-Clause */
/* whole.h - data of messages that go in one frame, as atomics do. */
#ifndef ENGINE_WHOLE_H
#define ENGINE_WHOLE_H

#include <engine/amo.h>
#include <wire/frame.h>
#include <wire/message.h>

/* The most bytes of it in a frame of so many, encapsulation aside. */
static inline uint32_t whole_bytes(uint32_t frame_bytes)
{
	const uint32_t overhead = FRAME_HEADER_BYTES + FRAME_SACK_BYTES + RECORD_WHOLE_BYTES +
				  MESSAGE_HEADER_BYTES + AMO_SIZE_MAX + RECORD_ALIGN;
	const uint32_t most = frame_bytes > overhead ? frame_bytes - overhead : 1;

	return most < AMO_BYTES_MAX ? most : AMO_BYTES_MAX;
}

#endif
