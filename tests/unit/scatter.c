/* SPDX-License-Identifier: BSD-3-Clause */
/* scatter.c - see scatter.h. */
#include "scatter.h"

#include <assert.h>
#include <stdlib.h>

#define PIECES_MAX 10000

static uint64_t step(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random >> 16;
}

/* Mostly of the size that is usual in this vector, sometimes empty. */
static uint64_t piece_length(uint64_t *random, uint64_t usual)
{
	uint64_t odd = step(random);

	return odd % 8 == 0 ? 0 : odd % 8 == 1 ? 1 + odd / 8 % 9 : 1 + odd / 8 % usual;
}

static void piece_make(struct scatter_piece *piece, uint64_t length, uint64_t gap)
{
	piece->block = malloc(gap + length);
	assert(piece->block != NULL);
	piece->base = piece->block + gap;
	piece->length = length;
}

struct scatter *scatter_new(uint64_t seed, uint64_t length)
{
	static const uint64_t usual[] = {8, 64, 1000, 5000, 40000, UINT64_MAX / 8};
	struct scatter *scatter = calloc(1, sizeof(*scatter));
	uint64_t random = seed * 2 + 1, size, left = length;

	assert(scatter != NULL);
	step(&random);
	size = usual[step(&random) % (sizeof(usual) / sizeof(usual[0]))];
	if (size < length / (PIECES_MAX / 8))
		size = length / (PIECES_MAX / 8);
	scatter->length = length;
	scatter->pieces = calloc(PIECES_MAX, sizeof(*scatter->pieces));
	scatter->vector = calloc(1, map_vector_size(PIECES_MAX));
	assert(scatter->pieces != NULL && scatter->vector != NULL);
	while (left > 0 || scatter->count == 0) {
		struct scatter_piece *piece = &scatter->pieces[scatter->count++];
		uint64_t bytes = piece_length(&random, size);

		if (bytes > left || scatter->count == PIECES_MAX)
			bytes = left;
		piece_make(piece, bytes, 1 + step(&random) % 16);
		map_vector_add(scatter->vector, piece->base, bytes);
		left -= bytes;
	}
	return scatter;
}

void scatter_free(struct scatter *scatter)
{
	for (uint32_t i = 0; i < scatter->count; i++)
		free(scatter->pieces[i].block);
	free(scatter->pieces);
	free(scatter->vector);
	free(scatter);
}

void scatter_write(struct scatter *scatter, const uint8_t *from)
{
	for (uint32_t i = 0; i < scatter->count; i++)
		for (uint64_t b = 0; b < scatter->pieces[i].length; b++)
			scatter->pieces[i].base[b] = *from++;
}

void scatter_read(const struct scatter *scatter, uint8_t *to)
{
	for (uint32_t i = 0; i < scatter->count; i++)
		for (uint64_t b = 0; b < scatter->pieces[i].length; b++)
			*to++ = scatter->pieces[i].base[b];
}
