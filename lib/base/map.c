/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - maps of several pieces; see map.h. */
#include <base/map.h>

#include <assert.h>

#include <base/guard.h>

void map_vector_add(struct map_vector *vector, void *base, uint64_t length)
{
	uint64_t end = map_vector_length(vector) + length;

	if (length == 0)
		return;
	assert(end >= length);
	vector->pieces[vector->count++] = (struct map_piece){.base = base, .end = end};
}

/* The piece with the byte at an offset in the vector: the first one that ends behind it. */
static const struct map_piece *piece_find(const struct map_vector *vector, uint64_t at)
{
	const struct map_piece *first = vector->pieces;
	uint32_t left = vector->count;

	while (left > 1) {
		uint32_t half = left / 2;

		if (first[half - 1].end <= at)
			first += half;
		left -= half;
	}
	return first;
}

/* The byte at an offset in the vector, which is in this piece. *bytes becomes no more than there
 * are from it to the end of the piece. */
static uint8_t *piece_run(const struct map_vector *vector, const struct map_piece *piece,
	uint64_t at, uint64_t *bytes)
{
	uint64_t begin = piece == vector->pieces ? 0 : piece[-1].end;

	assert(at >= begin && at < piece->end);
	if (*bytes > piece->end - at)
		*bytes = piece->end - at;
	return piece->base + (at - begin);
}

void *map_vector_run(const struct map_vector *vector, uint64_t at, uint64_t *bytes)
{
	if (vector == MAP_MEMORY)
		return (void *)(uintptr_t)at;
	return piece_run(vector, piece_find(vector, at), at, bytes);
}

/* Copies bytes into the vector, or out of it, from or to other memory. */
static __attribute__((noinline)) bool pieces_copy(
	const struct map_vector *vector, uint64_t at, uint8_t *other, uint64_t bytes, bool in)
{
	uint64_t run;

	for (; bytes > 0; at += run, other += run, bytes -= run) {
		uint8_t *piece;

		run = bytes;
		piece = map_vector_run(vector, at, &run);
		if (!guard_copy(in ? piece : other, in ? other : piece, run))
			return false;
	}
	return true;
}

bool map_vector_copy_out(const struct map_vector *vector, uint64_t at, void *to, uint64_t bytes)
{
	if (vector == MAP_MEMORY)
		return guard_copy(to, (const void *)(uintptr_t)at, bytes);
	return pieces_copy(vector, at, to, bytes, false);
}

bool map_vector_copy_in(
	const struct map_vector *vector, uint64_t at, const void *from, uint64_t bytes)
{
	if (vector == MAP_MEMORY)
		return guard_copy((void *)(uintptr_t)at, from, bytes);
	return pieces_copy(vector, at, (uint8_t *)(uintptr_t)from, bytes, true);
}
