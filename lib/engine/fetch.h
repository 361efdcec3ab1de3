/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch.h - what the value of a two-sided message says: whether its sender waits for a receive, and
 * where its data can be fetched from meanwhile. The sender's front end gives the names. */
#ifndef ENGINE_FETCH_H
#define ENGINE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

/* The Portal of a space that a load for the data goes to. The match bits are the name. */
#define FETCH_PORTAL 1

#define VALUE_SYNCHRONOUS (UINT64_C(1) << 63)
/* Its sender lacks credit (unexpected.h, U4). */
#define VALUE_SHORT       (UINT64_C(1) << 61)
#define VALUE_NAME(value) ((uint32_t)((value) >> 32) & UINT32_C(0x5fffffff))
/* The name is of a copy, at an offset: the sender's program has no part in its end. */
#define NAME_CHUNK (UINT32_C(1) << 30)
#define NAMES      (UINT32_C(1) << 29) /* of others, each below this; they come again */
/* It has data beside the bits: the store's offset. The offset of a copy is below. */
#define VALUE_MARKED        (UINT64_C(1) << 31)
#define VALUE_OFFSET(value) ((uint32_t)(value)&INT32_MAX)

/* Match bits on that Portal of words to a peer, which have no data. The value: a kind in the
 * highest byte, and a number. */
#define BITS_TOLD (UINT64_C(1) << 40)
enum {
	WORD_CREDIT, /* so many messages of yours were taken, ever */
	WORD_USER,
	WORD_ALIVE,
	WORD_SHARE, /* so many headers here are yours (engine/credit.h) */
	WORD_TAKE,  /* so many are to be left */
	WORD_GIVEN  /* so many are left */
};
#define WORD_BITS 56

static inline uint64_t word_make(unsigned kind, uint64_t number)
{
	return (uint64_t)kind << WORD_BITS | (number & ((UINT64_C(1) << WORD_BITS) - 1));
}

static inline unsigned word_kind(uint64_t value)
{
	return (unsigned)(value >> WORD_BITS);
}

static inline uint64_t word_number(uint64_t value)
{
	return value & ((UINT64_C(1) << WORD_BITS) - 1);
}

/* Is it of a copy that the sender keeps for nothing but that it is fetched? */
static inline bool value_is_copy(uint64_t value)
{
	return !(value & VALUE_SYNCHRONOUS) && (VALUE_NAME(value) & NAME_CHUNK) != 0;
}

#endif
