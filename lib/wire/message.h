/* SPDX-License-Identifier: BSD-3-Clause */
/* message.h - the header of a Portals message: the tables of section 4.1 as bytes. Initiator and
 * target are the source and destination of the transport header. No state; any thread.
 *
 *   0       8       16              32                              63
 *  +-------+-------+---------------+-------------------------------+
 *  | kind  | space |    detail     |              uid              |   0
 *  +-------+-------+---------------+-------------------------------+
 *  |          portal               |            cookie             |   8
 *  +-------------------------------+-------------------------------+
 *  |                          match bits                           |  16
 *  +---------------------------------------------------------------+
 *  |                          header data (put), manipulated length (ack, reply)    24
 *  |                          requested length; 0 where the record says it (data)   32
 *  |                          operation: get: the initiator's name for it, echoed;  40
 *  |                                     put: link of its SEND_START, echoed by the ack
 *  |                          memory descriptor handle             |  48  high half: generation
 *  |                          offset                               |  56
 *  +---------------------------------------------------------------+
 *
 * Zero words at its end are not sent, from header data on: what small messages seldom need comes
 * last.
 *
 * I1. message_decode() accepts exactly what message_encode() can write.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wire/word.h>

enum message_kind {
	MESSAGE_PUT = 1,
	MESSAGE_ACK,
	MESSAGE_GET,
	MESSAGE_REPLY,
	MESSAGE_REFUSE, /* to a get's initiator: it was discarded, or is not known (any more) */
	/* from a get's initiator after a long silence: refuse it unless its reply is under way */
	MESSAGE_PROBE,
	/* Of spaces with tiers (lib/engine/tiers.h). cookie: the initiator's rank */
	/* a put; operation: the initiator's name for it; 0: no answer is wanted, detail: but
	 * MESSAGE_REFUSALS */
	MESSAGE_STORE,
	MESSAGE_LOAD, /* a get */
	/* answers a store; detail: MESSAGE_VERDICT, MESSAGE_TIER; to one without a name: its portal
	 * and cookie */
	MESSAGE_STORED,
	MESSAGE_LOADED, /* answers a load; the same */
	/* after a long silence: answer unless an answer is under way; detail: MESSAGE_ASK_LOAD */
	MESSAGE_ASK,
	/* Atomic operations on elements of the target's memory; detail: message_amo() */
	MESSAGE_ATOMIC, /* answered as a store */
	/* answered as a load, with the elements as they were. Its data begin with the operand, one
	 * element, if the operation has one */
	MESSAGE_FETCH
	/* 14 to 17 are reserved (wire.md). */
};

/* In detail. */
#define MESSAGE_VERDICT  15 /* enum tier_verdict */
#define MESSAGE_TIER     16 /* it was the second tier that took the message */
#define MESSAGE_REFUSALS 1  /* of a store that wants no answer: but if it is refused */
#define MESSAGE_ASK_LOAD 1  /* after a load or a fetch, else after a store or an atomic */

#define MESSAGE_HEADER_BYTES 64
#define MESSAGE_HEADER_LEAST 24

/* As the Portal of a load of nothing, in a space with a life: the process repeats its requests that
 * were refused for lack of memory, in their order (engine/tiers.c, T9). */
#define MESSAGE_RESUME UINT32_MAX

struct message_header {
	uint8_t kind;
	uint8_t space;   /* number of the space at both ends, from 0 */
	uint16_t detail; /* 0 but in atomics, answers and questions of tiers */
	uint32_t uid;
	uint32_t portal;
	uint32_t cookie;
	uint64_t match_bits;
	uint64_t value; /* header data, or manipulated length */
	uint64_t requested;
	uint64_t operation;
	uint64_t handle;
	uint64_t offset;
};
static_assert(sizeof(struct message_header) == MESSAGE_HEADER_BYTES &&
		      offsetof(struct message_header, value) == MESSAGE_HEADER_LEAST,
	"message header");

/* The detail of ATOMIC and FETCH, of numbers as in engine/amo.h. */
static inline uint16_t message_amo(unsigned operation, unsigned type)
{
	return (uint16_t)(operation | type << 8);
}

/* Is the data of such a message the request's, whose length is theirs? */
static inline bool message_brings(uint8_t kind)
{
	return kind == MESSAGE_PUT || kind == MESSAGE_STORE || kind == MESSAGE_ATOMIC ||
	       kind == MESSAGE_FETCH;
}

/* Bytes that are sent of a header. requested: as sent. */
static inline uint32_t message_length(const struct message_header *header, uint64_t requested)
{
	if (header->offset != 0)
		return MESSAGE_HEADER_BYTES;
	if (header->handle != 0)
		return offsetof(struct message_header, offset);
	if (header->operation != 0)
		return offsetof(struct message_header, handle);
	if (requested != 0)
		return offsetof(struct message_header, operation);
	return header->value != 0 ? offsetof(struct message_header, requested)
				  : MESSAGE_HEADER_LEAST;
}

/* to: MESSAGE_HEADER_BYTES bytes, any alignment; all may be written. Returns how many of them are
 * sent. A word at a time, so that a caller's header that is nothing but this call's argument is
 * never in memory. */
static inline uint32_t message_encode(const struct message_header *header, void *to)
{
	uint64_t requested = message_brings(header->kind) ? 0 : header->requested;

	word_store(to, 0,
		word_of(header->kind | (uint32_t)header->space << 8 |
				(uint32_t)header->detail << 16,
			header->uid));
	word_store(to, offsetof(struct message_header, portal),
		word_of(header->portal, header->cookie));
	word_store(to, offsetof(struct message_header, match_bits), header->match_bits);
	word_store(to, offsetof(struct message_header, value), header->value);
	word_store(to, offsetof(struct message_header, requested), requested);
	word_store(to, offsetof(struct message_header, operation), header->operation);
	word_store(to, offsetof(struct message_header, handle), header->handle);
	word_store(to, offsetof(struct message_header, offset), header->offset);
	return message_length(header, requested);
}

/* The words of a header that were sent, of those that need not be. Returns false if the last of
 * them is zero, or there is no such header. */
static inline bool message_read(const void *from, uint32_t length, struct message_header *header)
{
#define WORD(member) word_read(from, offsetof(struct message_header, member))
	if (length == MESSAGE_HEADER_LEAST)
		return true;
	if (length > MESSAGE_HEADER_BYTES || length % 8 != 0)
		return false;
	header->value = WORD(value);
	if (length > offsetof(struct message_header, requested))
		header->requested = WORD(requested);
	if (length > offsetof(struct message_header, operation))
		header->operation = WORD(operation);
	if (length > offsetof(struct message_header, handle))
		header->handle = WORD(handle);
	if (length > offsetof(struct message_header, offset))
		header->offset = WORD(offset);
#undef WORD
	return word_read(from, length - sizeof(uint64_t)) != 0;
}

/* message_decode() of a kind that spaces with tiers have. */
static inline bool message_decode_tiers(struct message_header *header, uint64_t extent)
{
	switch (header->kind) {
	case MESSAGE_STORE:
		if (header->requested != 0 || header->detail > MESSAGE_REFUSALS ||
			(header->detail != 0 && header->operation != 0))
			return false;
		header->requested = extent;
		return true;
	case MESSAGE_ATOMIC:
	case MESSAGE_FETCH:
		if (header->requested != 0)
			return false;
		header->requested = extent;
		return true;
	case MESSAGE_LOAD:
		return header->detail == 0;
	case MESSAGE_STORED:
	case MESSAGE_LOADED:
		return header->detail <= (MESSAGE_VERDICT | MESSAGE_TIER);
	case MESSAGE_ASK:
		return header->detail <= MESSAGE_ASK_LOAD;
	default:
		return false;
	}
}

/* extent: bytes of data of the whole message. Returns false if length, kind or words are not as
 * specified. Field by field, so that a compiler may keep them in registers. */
static inline bool message_decode(
	const void *from, uint32_t length, uint64_t extent, struct message_header *header)
{
	const uint8_t *bytes = from;
	uint32_t first; /* kind, space, detail */

	if (length < MESSAGE_HEADER_LEAST)
		return false;
	memcpy(&first, bytes, sizeof(first));
	*header = (struct message_header){.kind = (uint8_t)first, .space = (uint8_t)(first >> 8)};
	memcpy(&header->uid, bytes + offsetof(struct message_header, uid), sizeof(header->uid));
	memcpy(&header->portal, bytes + offsetof(struct message_header, portal),
		sizeof(header->portal));
	memcpy(&header->cookie, bytes + offsetof(struct message_header, cookie),
		sizeof(header->cookie));
	header->match_bits = word_read(from, offsetof(struct message_header, match_bits));
	if (!message_read(from, length, header))
		return false;
	first &= ~UINT32_C(0xff00);
	if (first == MESSAGE_PUT) {
		if (header->requested != 0)
			return false;
		header->requested = extent;
		return true;
	}
	if (first > MESSAGE_PUT && first <= MESSAGE_PROBE)
		return true;
	header->detail = (uint16_t)(first >> 16);
	return message_decode_tiers(header, extent);
}

#endif
