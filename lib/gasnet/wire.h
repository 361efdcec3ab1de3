/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - match bits and lengths of messages, for both ends: see send.c. */
#ifndef GASNET_WIRE_H
#define GASNET_WIRE_H

#include "state.h"

#define WIRE_MESSAGE UINT64_C(0x8000000000000000)
#define WIRE_LENGTH  ((UINT64_C(1) << 47) - 1)

static inline uint64_t wire_bits(
	bool request, enum kind kind, unsigned count, unsigned handler, size_t length)
{
	return WIRE_MESSAGE | (uint64_t)request << 62 | (uint64_t)kind << 60 |
	       (uint64_t)count << 55 | (uint64_t)handler << 47 | length;
}

static inline size_t wire_padded(size_t length)
{
	return (length + PAYLOAD_ALIGN - 1) / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
}

/* Bytes before the payload. */
static inline size_t wire_head(enum kind kind, unsigned count)
{
	size_t arguments = count * sizeof(gasnet_handlerarg_t);

	if (kind == KIND_LONG_PACKED)
		return arguments + sizeof(uint64_t);
	return kind == KIND_MEDIUM ? wire_padded(arguments) : arguments;
}

struct outgoing {
	uint32_t to;
	enum kind kind;
	bool request, async;
	uint8_t handler, credits; /* credits: that a reply gives back */
	const void *source;
	size_t length;
	uint8_t *destination;
	unsigned count;
	const gasnet_handlerarg_t *arguments;
};

static inline void wire_read(uint64_t bits, struct message *message)
{
	message->request = bits >> 62 & 1;
	message->kind = bits >> 60 & 3;
	message->count = bits >> 55 & 31;
	message->handler = (uint8_t)(bits >> 47);
	message->length = bits & WIRE_LENGTH;
}

/* Credits that a request takes at its target (G1). */
static inline unsigned wire_credits(enum kind kind)
{
	return kind == KIND_LONG ? 2 : 1;
}

#endif
