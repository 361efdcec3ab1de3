/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.h - what the bits of a handle mean.
 *
 *    63                            32 31  29 28     22 21                    0
 *   +--------------------------------+------+---------+-----------------------+
 *   |           generation           | kind |interface|         index         |
 *   +--------------------------------+------+---------+-----------------------+
 *
 * I1. kind is never 0 nor 7, so neither 0 nor all ones is a handle: front ends use both for
 *     "none".
 * I2. Generations of one interface number are drawn from one counter that survives the interface's
 *     closing and opening: a handle is not made twice until 2^32 objects have been.
 */
#ifndef BASE_HANDLE_H
#define BASE_HANDLE_H

#include <stdint.h>

enum handle_kind {
	HANDLE_INTERFACE = 1,
	HANDLE_QUEUE,
	HANDLE_REGION,
	HANDLE_ENTRY,
	HANDLE_COUNTER
};

#define HANDLE_INDEX_BITS     22
#define HANDLE_INTERFACE_BITS 7
#define HANDLE_INDEX_MAX      ((1u << HANDLE_INDEX_BITS) - 1)
#define HANDLE_INTERFACES     (1u << HANDLE_INTERFACE_BITS)
#define HANDLE_KIND_AT        (HANDLE_INDEX_BITS + HANDLE_INTERFACE_BITS)

static inline uint64_t handle_make(
	enum handle_kind kind, uint32_t interface, uint32_t index, uint32_t generation)
{
	return (uint64_t)generation << 32 | (uint64_t)kind << HANDLE_KIND_AT |
	       (uint64_t)interface << HANDLE_INDEX_BITS | index;
}

static inline uint32_t handle_generation(uint64_t handle)
{
	return (uint32_t)(handle >> 32);
}

static inline uint32_t handle_kind(uint64_t handle)
{
	return (uint32_t)handle >> HANDLE_KIND_AT;
}

static inline uint32_t handle_interface(uint64_t handle)
{
	return (uint32_t)(handle >> HANDLE_INDEX_BITS) & (HANDLE_INTERFACES - 1);
}

static inline uint32_t handle_index(uint64_t handle)
{
	return (uint32_t)handle & HANDLE_INDEX_MAX;
}

#endif
