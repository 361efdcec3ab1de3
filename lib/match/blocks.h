/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.h - memory that grows and shrinks by a block at a time, so that growing never copies what
 * is in it and shrinking gives memory back; all in about the same time however much there is. Only
 * the list of blocks is copied, a word for each, when it doubles.
 *
 * Blocks are the caller's: of one size, aligned to cache lines. An array has BLOCK_ELEMENTS in
 * each.
 */
#ifndef MATCH_BLOCKS_H
#define MATCH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_ELEMENTS 64
#define BLOCK_ALIGN    64

struct blocks {
	char **block;
	uint32_t count;
	uint32_t room; /* blocks that the list has room for */
};

/* One block more, of so many bytes that nobody has set; false when there is no memory for it. */
bool blocks_add(struct blocks *blocks, size_t bytes);
/* One block less. */
void blocks_drop(struct blocks *blocks);
/* Gives all memory back. */
void blocks_clear(struct blocks *blocks);

/* Element i of an array. */
static inline void *blocks_at(const struct blocks *blocks, uint32_t i, size_t element_size)
{
	return blocks->block[i / BLOCK_ELEMENTS] + (i % BLOCK_ELEMENTS) * element_size;
}

#endif
