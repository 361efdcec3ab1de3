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
#define NAMES      (UINT32_C(1) << 29) /* of others, each below this */
/* It has data beside the bits: the store's offset. The offset of a copy is below. */
#define VALUE_MARKED        (UINT64_C(1) << 31)
#define VALUE_OFFSET(value) ((uint32_t)(value)&INT32_MAX)

/* Is it of a copy that the sender keeps for nothing but that it is fetched? */
static inline bool value_is_copy(uint64_t value)
{
	return !(value & VALUE_SYNCHRONOUS) && (VALUE_NAME(value) & NAME_CHUNK) != 0;
}

#endif
