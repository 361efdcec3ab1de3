/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.c - see blocks.h. */
#include <stdlib.h>
#include <string.h>

#include <match/blocks.h>

#define ROOM_MIN 8

static bool room_make(struct blocks *blocks)
{
	uint32_t room = blocks->room == 0 ? ROOM_MIN : 2 * blocks->room;
	char **block;

	if (blocks->count < blocks->room)
		return true;
	block = calloc(room, sizeof(*block));
	if (block == NULL)
		return false;
	if (blocks->count > 0)
		memcpy(block, blocks->block, blocks->count * sizeof(*block));
	free(blocks->block);
	blocks->block = block;
	blocks->room = room;
	return true;
}

bool blocks_add(struct blocks *blocks, size_t bytes)
{
	size_t size = (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
	char *block;

	if (!room_make(blocks))
		return false;
	block = aligned_alloc(BLOCK_ALIGN, size);
	if (block == NULL)
		return false;
	blocks->block[blocks->count++] = block;
	return true;
}

void blocks_drop(struct blocks *blocks)
{
	free(blocks->block[--blocks->count]);
}

void blocks_clear(struct blocks *blocks)
{
	while (blocks->count > 0)
		blocks_drop(blocks);
	free(blocks->block);
	*blocks = (struct blocks){0};
}
