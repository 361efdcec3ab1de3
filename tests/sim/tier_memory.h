/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_memory.h - memory of a program of which a part comes and goes.
 *
 *             nothing     kept               wild                         nothing
 *     engine: ............|#################|####|....|####|rrrr|####|....................
 *     bytes:              |#################|#############################|
 *                         at                at + MEMORY_KEPT              at + MEMORY_BYTES
 *
 * The engine sees it at `at`. Pages of the wild part are taken away there (.) or may only be read
 * (r), and come back as they were. The model sees the same memory in `bytes`, where all of it is
 * always there.
 *
 * Q1. `at` depends on the node's number alone: it travels in messages, and a seed gives the same
 *     run.
 * Q2. A page changes between two steps of a program, never while an engine is at work. So what an
 *     engine finds when it takes a request is what memory_misses() says; and of what happens over
 *     some time the model knows whether a page was there for all of it, for some of it, or never.
 */
#ifndef SIM_TIER_MEMORY_H
#define SIM_TIER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <base/extent.h>
#include <sim/prng.h>

#define MEMORY_KEPT  (UINT64_C(1) << 20)
#define MEMORY_PAGE  UINT64_C(4096)
#define MEMORY_PAGES 64 /* of the wild part */
#define MEMORY_BYTES (MEMORY_KEPT + MEMORY_PAGES * MEMORY_PAGE)

enum memory_access { MEMORY_READ, MEMORY_WRITE, MEMORY_ACCESSES };

/* Moments count the changes of all memory from 1. */
struct tier_page {
	uint64_t gone[MEMORY_ACCESSES]; /* since when; 0: it is there */
	uint64_t back[MEMORY_ACCESSES]; /* when it came back last */
};

struct tier_memory {
	uint64_t at;
	uint8_t *bytes;
	struct extent_map *kept, *wild;
	struct tier_page pages[MEMORY_PAGES];
};

/* which: 0 or 1, of a node's two. Ends the run if there is no memory. */
void memory_open(struct tier_memory *memory, uint32_t node, unsigned which);
void memory_close(struct tier_memory *memory);
/* The address of a node's, open or not. */
uint64_t memory_address(uint32_t node, unsigned which);

/* Returns the offset of so many bytes of either part; EXTENT_NONE: there are none. */
uint64_t memory_take(struct tier_memory *memory, uint64_t bytes, bool wild);
void memory_give(struct tier_memory *memory, uint64_t offset, uint64_t bytes);

/* Changes some pages. */
void memory_change(struct tier_memory *memory, struct prng *prng, uint64_t moment);

enum memory_when {
	MISSING_NOW,
	MISSING_ONCE,  /* now, or at some time after a moment */
	MISSING_ALWAYS /* now, and all the time after a moment */
};
/* Is a byte of this range one that is not there? What is outside of the memory never is. */
bool memory_misses(const struct tier_memory *memory, uint64_t address, uint64_t length,
	enum memory_access access, enum memory_when when, uint64_t moment);

/* Returns the offset of a range's first byte in the memory, and cuts *length to the bytes that are
 * in it. */
static inline uint64_t memory_offset(
	const struct tier_memory *memory, uint64_t address, uint64_t *length)
{
	uint64_t offset = address - memory->at;

	if (offset >= MEMORY_BYTES)
		offset = *length = 0;
	else if (*length > MEMORY_BYTES - offset)
		*length = MEMORY_BYTES - offset;
	return offset;
}

#endif
