/* SPDX-License-Identifier: BSD-3-Clause */
/* bare_frame.h - what bare.c, which decides, and bare_send.c, which writes frames, share. */
#ifndef PERF_BARE_FRAME_H
#define PERF_BARE_FRAME_H

#include "bare.h"

#define BARE_ETHERTYPE 0x88b6 /* IEEE 802 local experimental 2 */
#define FRAME_LEAST    60u    /* of Ethernet, without its check sequence */

enum bare_kind {
	BARE_DATA,
	BARE_CREDIT,
	BARE_HELLO,
	BARE_WELCOME,
	BARE_PROBE,
	BARE_BYE,
	BARE_ENDED,
	BARE_KINDS
};

struct bare_header {
	uint8_t kind;
	uint8_t measure;
	uint16_t session;
	uint32_t sequence;
	uint32_t number;
	uint32_t index;
	uint16_t padding; /* aligns what follows Ethernet's 14 bytes and these */
} __attribute__((packed));

/* Bytes of a message that frame number index of it carries. */
static inline uint32_t bare_payload(uint64_t size, uint32_t payload, uint32_t index)
{
	uint64_t left = size - (uint64_t)index * payload;

	return left < payload ? (uint32_t)left : payload;
}

/* Sends the credits that are owed and the frames that are due, as far as the port takes them. */
void bare_send(struct bare *bare);

#endif
