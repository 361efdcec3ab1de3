/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - the memory of a message: one piece, or a vector of pieces that count as one behind the
 * other. Memory of a vector may not be there: copies through it are guarded (guard.h).
 *
 *     one piece    start: its address                     start          start + length
 *                                                         |##################|
 *
 *     a vector     start: an offset in the vector     piece 0    piece 1        piece 2
 *                                                     |####|     |########|     |##|
 *                                                 end      4              12       14
 *
 * In both, byte `offset` of a map is start + offset: an address, or counted through the pieces. So
 * a part of a map is made by one addition, and one piece costs one comparison. Each piece knows
 * where it ends in the vector; the piece of an offset is found by bisection.
 *
 * MAP_MEMORY is the vector of all memory, in which an offset is an address: a map through it is one
 * piece that may not be there.
 *
 * A vector belongs to the caller, who keeps it as it is while a map refers to it. The functions
 * that copy expect offset + bytes to be within the map. Without any bytes there may be no memory.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <base/core.h>

/* A piece of one byte or more. */
struct map_piece {
	uint8_t *base;
	uint64_t end; /* bytes of the vector up to the end of this piece */
};

struct map_vector {
	uint32_t count;
	struct map_piece pieces[];
};

struct map {
	uint64_t start;                  /* an address; with a vector: an offset in it */
	const struct map_vector *vector; /* NULL: one piece */
	uint64_t length;                 /* bytes */
};

#define MAP_MEMORY ((const struct map_vector *)1)

/* Bytes of a vector with room for so many pieces. */
static inline size_t map_vector_size(uint32_t pieces)
{
	return sizeof(struct map_vector) + pieces * sizeof(struct map_piece);
}

/* Bytes of all pieces. */
static inline uint64_t map_vector_length(const struct map_vector *vector)
{
	return vector->count == 0 ? 0 : vector->pieces[vector->count - 1].end;
}

/* Adds a piece behind the others; there is room for it. An empty one leaves no trace. The sum of
 * all lengths fits into 64 bits. */
void map_vector_add(struct map_vector *vector, void *base, uint64_t length)
	CORE_API(map_vector_add);

static inline struct map map_of_piece(const void *base, uint64_t length)
{
	return (struct map){.start = (uintptr_t)base, .length = length};
}

/* What follows, in a vector. They get words and no map, so that one piece's stays in registers. */
void *map_vector_run(const struct map_vector *vector, uint64_t at, uint64_t *bytes)
	CORE_API(map_vector_run);
bool map_vector_copy_out(const struct map_vector *vector, uint64_t at, void *to, uint64_t bytes)
	CORE_API(map_vector_copy_out);
bool map_vector_copy_in(const struct map_vector *vector, uint64_t at, const void *from,
	uint64_t bytes) CORE_API(map_vector_copy_in);

/* Returns the address of the byte at an offset, which is less than the length, and in *bytes how
 * many of the map lie there in a row. */
static inline void *map_run(const struct map *map, uint64_t offset, uint64_t *bytes)
{
	*bytes = map->length - offset;
	if (__builtin_expect(map->vector != NULL, 0))
		return map_vector_run(map->vector, map->start + offset, bytes);
	return (void *)(uintptr_t)(map->start + offset);
}

/* Copies out of a map. Returns false if a part of the memory is not there, or may not be read; then
 * a part may have been copied. Eight bytes are the length of most small messages. */
static inline __attribute__((always_inline)) bool map_copy_out(
	const struct map *map, uint64_t offset, void *to, uint64_t bytes)
{
	const void *from = (const void *)(uintptr_t)(map->start + offset);

	if (__builtin_expect(map->vector != NULL, 0))
		return map_vector_copy_out(map->vector, map->start + offset, to, bytes);
	if (bytes == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (bytes != 0)
		memcpy(to, from, bytes);
	return true;
}

/* Copies one piece. Data that lies in a sender's memory in this process may overlap with where it
 * goes. */
static inline void map_piece_copy_in(void *to, const void *from, uint64_t bytes)
{
	uint64_t first, last;

	if (bytes >= sizeof(first) && bytes <= 2 * sizeof(first)) {
		memcpy(&first, from, sizeof(first));
		memcpy(&last, (const char *)from + bytes - sizeof(last), sizeof(last));
		memcpy(to, &first, sizeof(first));
		memcpy((char *)to + bytes - sizeof(last), &last, sizeof(last));
	} else if (bytes > 0) {
		memmove(to, from, bytes);
	}
}

/* Copies into a map. Returns false if a part of the memory is not there, or may not be written;
 * then a part may have been copied. */
static inline bool map_copy_in(
	const struct map *map, uint64_t offset, const void *from, uint64_t bytes)
{
	if (__builtin_expect(map->vector != NULL, 0))
		return map_vector_copy_in(map->vector, map->start + offset, from, bytes);
	map_piece_copy_in((void *)(uintptr_t)(map->start + offset), from, bytes);
	return true;
}

/* Where a byte of a map lies, for a probe: of one piece its address, else its offset in the
 * vector. */
static inline const void *map_place(const struct map *map, uint64_t offset)
{
	return (const void *)(uintptr_t)(map->start + offset);
}

#endif
