/* SPDX-License-Identifier: BSD-3-Clause */
/* extent.c - see extent.h. The caller's lock guards a map.
 *
 * I1. ranges[] holds the free ranges in the order of their offsets; each is a multiple of the
 *     alignment, and between any two lies a taken byte.
 * I2. So there is at most one free range more than there are taken ones, and extent_take() keeps
 *     room for as many as there may be when all are given back: extent_give() never needs memory
 *     and cannot fail.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <base/extent.h>

#define RANGES_MIN 16 /* room to start with */

struct range {
	uint64_t offset;
	uint64_t size;
};

struct extent_map {
	uint64_t size;
	uint64_t alignment;
	size_t taken; /* extents that are out */
	size_t count; /* free ranges */
	size_t room;  /* of ranges[], I2 */
	struct range *ranges;
};

/* The size in whole units, at least one; 0 when it is more than the map has. */
static uint64_t extent_round(const struct extent_map *map, uint64_t size)
{
	if (size == 0)
		size = 1;
	if (size > map->size)
		return 0;

	uint64_t rest = size % map->alignment;

	return rest == 0 ? size
			 : size - rest + map->alignment; /* map->size is whole units: no overflow */
}

struct extent_map *extent_create(uint64_t size, uint64_t alignment)
{
	assert(alignment > 0);

	struct extent_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->alignment = alignment;
	map->size = size - size % alignment;
	map->room = RANGES_MIN;
	map->ranges = calloc(map->room, sizeof(*map->ranges));
	if (!map->ranges) {
		free(map);
		return NULL;
	}
	if (map->size > 0)
		map->ranges[map->count++] = (struct range){0, map->size};
	return map;
}

void extent_destroy(struct extent_map *map)
{
	if (!map)
		return;
	free(map->ranges);
	free(map);
}

/* Room for the free ranges that there may be with one extent more; I2. */
static int ranges_reserve(struct extent_map *map)
{
	if (map->taken + 2 <= map->room)
		return 0;

	struct range *ranges = realloc(map->ranges, 2 * map->room * sizeof(*ranges));

	if (!ranges)
		return -1;
	map->ranges = ranges;
	map->room *= 2;
	return 0;
}

static void range_remove(struct extent_map *map, size_t i)
{
	map->count--;
	memmove(&map->ranges[i], &map->ranges[i + 1], (map->count - i) * sizeof(map->ranges[0]));
}

static void range_insert(struct extent_map *map, size_t i, struct range range)
{
	memmove(&map->ranges[i + 1], &map->ranges[i], (map->count - i) * sizeof(map->ranges[0]));
	map->ranges[i] = range;
	map->count++;
}

uint64_t extent_take(struct extent_map *map, uint64_t size)
{
	size = extent_round(map, size);
	if (size == 0)
		return EXTENT_NONE;
	for (size_t i = 0; i < map->count; i++) {
		struct range *range = &map->ranges[i];
		uint64_t offset = range->offset;

		if (range->size < size)
			continue;
		if (ranges_reserve(map) != 0)
			return EXTENT_NONE;
		range = &map->ranges[i];
		range->offset += size;
		range->size -= size;
		if (range->size == 0)
			range_remove(map, i);
		map->taken++;
		return offset;
	}
	return EXTENT_NONE;
}

/* The first free range that starts after offset. */
static size_t range_after(const struct extent_map *map, uint64_t offset)
{
	size_t low = 0;
	size_t high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges[middle].offset > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void extent_give(struct extent_map *map, uint64_t offset, uint64_t size)
{
	size = extent_round(map, size);

	size_t i = range_after(map, offset);
	struct range *before = i > 0 ? &map->ranges[i - 1] : NULL;
	struct range *after = i < map->count ? &map->ranges[i] : NULL;

	assert(size > 0 && offset % map->alignment == 0 && offset <= map->size - size);
	assert(!before || before->offset + before->size <= offset);
	assert(!after || offset + size <= after->offset);
	assert(map->taken > 0);
	map->taken--;

	bool joins_before = before && before->offset + before->size == offset;
	bool joins_after = after && offset + size == after->offset;

	if (joins_before && joins_after) {
		before->size += size + after->size;
		range_remove(map, i);
	} else if (joins_before) {
		before->size += size;
	} else if (joins_after) {
		after->offset = offset;
		after->size += size;
	} else {
		range_insert(map, i, (struct range){offset, size});
	}
}
