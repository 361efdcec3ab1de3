/* SPDX-License-Identifier: BSD-3-Clause */
/* scatter.h - memory in random pieces, for tests of what is done with maps.
 *
 * Each piece is memory of its own, at an odd address often, and ends where its block ends, so that
 * a sanitizer finds any access beyond it. What is written and read here goes byte by byte, without
 * lib/base/map.c.
 */
#ifndef TESTS_UNIT_SCATTER_H
#define TESTS_UNIT_SCATTER_H

#include <stdint.h>
#include <base/map.h>

struct scatter {
	struct map_vector *vector;
	uint64_t length;
	uint32_t count; /* of pieces, empty ones as well, which the vector has none of */
	struct scatter_piece {
		uint8_t *block;
		uint8_t *base;
		uint64_t length;
	} * pieces;
};

/* Of so many bytes, in one piece or any number up to thousands: the seed says. */
struct scatter *scatter_new(uint64_t seed, uint64_t length);
void scatter_free(struct scatter *scatter);

/* All of a vector's pieces. */
static inline struct map map_of_vector(const struct map_vector *vector)
{
	return (struct map){.vector = vector, .length = map_vector_length(vector)};
}

/* All of it. */
void scatter_write(struct scatter *scatter, const uint8_t *from);
void scatter_read(const struct scatter *scatter, uint8_t *to);

#endif
