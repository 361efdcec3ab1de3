/* SPDX-License-Identifier: BSD-3-Clause */
/* test_map.c - maps of one piece and of many, against flat memory. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/map.h>
#include "../sanitized.h"
#include "scatter.h"

#define ROUNDS  (SANITIZED ? 100 : 400) /* of memory in pieces */
#define TRIES   60                      /* copies in each */
#define LONGEST 60000

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % limit;
}

static void bytes_random(uint8_t *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)random_below(256);
}

static void map_vector_add__counts_pieces_as_one_behind_the_other(void **state)
{
	struct map_vector *vector = calloc(1, map_vector_size(2));
	uint8_t first[4], second[8];
	uint64_t run;
	struct map map;

	(void)state;
	assert_non_null(vector);
	assert_int_equal(map_of_vector(vector).length, 0);
	map_vector_add(vector, first, 0);
	map_vector_add(vector, first, sizeof(first));
	map_vector_add(vector, NULL, 0);
	map_vector_add(vector, second, sizeof(second));
	assert_int_equal(vector->count, 2);
	map = map_of_vector(vector);
	assert_int_equal(map.length, 12);
	assert_ptr_equal(map_run(&map, 0, &run), first);
	assert_int_equal(run, 4);
	assert_ptr_equal(map_run(&map, 3, &run), first + 3);
	assert_int_equal(run, 1);
	assert_ptr_equal(map_run(&map, 4, &run), second);
	assert_int_equal(run, 8);
	free(vector);
}

static void map_run__ends_where_the_map_does(void **state)
{
	struct map_vector *vector = calloc(1, map_vector_size(1));
	uint8_t bytes[100];
	struct map maps[2];

	(void)state;
	assert_non_null(vector);
	map_vector_add(vector, bytes, sizeof(bytes));
	maps[0] = map_of_piece(bytes, sizeof(bytes));
	maps[1] = map_of_vector(vector);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t run;

		maps[i].start += 10;
		maps[i].length = 20;
		assert_ptr_equal(map_run(&maps[i], 5, &run), bytes + 15);
		assert_int_equal(run, 15);
	}
	free(vector);
}

static void map_copy__of_nothing_needs_no_memory(void **state)
{
	struct map_vector *empty = calloc(1, map_vector_size(0));
	const struct map maps[] = {map_of_piece(NULL, 0), {.start = UINT64_MAX},
		map_of_vector(empty), {.vector = empty, .start = UINT64_MAX}};

	(void)state;
	assert_non_null(empty);
	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		map_copy_in(&maps[i], 0, NULL, 0);
		map_copy_out(&maps[i], 0, NULL, 0);
	}
	free(empty);
}

/* Data of a sender in this process may lie where it goes. */
static void map_copy_in__moves_bytes_that_overlap(void **state)
{
	uint8_t bytes[3000], flat[3000];

	(void)state;
	for (uint64_t length = 1; length < 1500; length += length < 40 ? 1 : 97) {
		struct map map = map_of_piece(bytes + 3, length);

		bytes_random(bytes, sizeof(bytes));
		memcpy(flat, bytes, sizeof(bytes));
		assert_true(map_copy_in(&map, 0, bytes, length));
		memmove(flat + 3, flat, length);
		assert_memory_equal(bytes, flat, sizeof(bytes));
	}
}

/* A part of the memory, which a message may be. */
struct part {
	struct scatter *scatter;
	uint8_t *flat; /* the memory's bytes as they should be */
	struct map map;
	uint64_t begin; /* of the part in it */
};

static void part_copy_in(struct part *part, uint64_t offset, uint64_t bytes)
{
	static uint8_t data[LONGEST];
	uint8_t *all = malloc(part->scatter->length + 1);

	assert_non_null(all);
	bytes_random(data, bytes);
	assert_true(map_copy_in(&part->map, offset, data, bytes));
	memcpy(part->flat + part->begin + offset, data, bytes);
	scatter_read(part->scatter, all);
	assert_memory_equal(all, part->flat, part->scatter->length);
	free(all);
}

static void part_copy_out(const struct part *part, uint64_t offset, uint64_t bytes)
{
	uint8_t *to = malloc(bytes + 1);

	assert_non_null(to);
	to[bytes] = 0xa5;
	assert_true(map_copy_out(&part->map, offset, to, bytes));
	assert_memory_equal(to, part->flat + part->begin + offset, bytes);
	assert_int_equal(to[bytes], 0xa5);
	free(to);
}

/* A run has the right bytes and goes on to the end of its piece, or of the map. */
static void part_run(const struct part *part, uint64_t offset)
{
	const struct scatter_piece *piece = part->scatter->pieces;
	uint64_t at = part->begin + offset, run, left;
	const uint8_t *bytes = map_run(&part->map, offset, &run);

	while (at >= piece->length)
		at -= piece++->length;
	left = piece->length - at;
	assert_ptr_equal(bytes, piece->base + at);
	assert_int_equal(run, left < part->map.length - offset ? left : part->map.length - offset);
}

static void memory_try(uint64_t seed)
{
	uint64_t length = random_below(2) == 0 ? random_below(200) : random_below(LONGEST);
	struct scatter *scatter = scatter_new(seed, length);
	struct part part = {.scatter = scatter, .flat = malloc(length + 1)};

	assert_non_null(part.flat);
	bytes_random(part.flat, length);
	scatter_write(scatter, part.flat);
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t offset, bytes;

		part.begin = random_below(length + 1);
		part.map = map_of_vector(scatter->vector);
		assert_int_equal(part.map.length, length);
		part.map.start += part.begin;
		part.map.length = random_below(length - part.begin + 1);
		offset = random_below(part.map.length + 1);
		bytes = random_below(part.map.length - offset + 1);
		part_copy_in(&part, offset, bytes);
		part_copy_out(&part, offset, bytes);
		if (offset < part.map.length)
			part_run(&part, offset);
	}
	free(part.flat);
	scatter_free(scatter);
}

static void map__of_random_pieces_agrees_with_flat_memory(void **state)
{
	const char *text = getenv("TEST_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;

	(void)state;
	printf("TEST_SEED=%llu\n", (unsigned long long)seed);
	random_state = seed * 2 + 1;
	for (unsigned i = 0; i < ROUNDS; i++)
		memory_try(seed * ROUNDS + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_vector_add__counts_pieces_as_one_behind_the_other),
		cmocka_unit_test(map_run__ends_where_the_map_does),
		cmocka_unit_test(map_copy__of_nothing_needs_no_memory),
		cmocka_unit_test(map_copy_in__moves_bytes_that_overlap),
		cmocka_unit_test(map__of_random_pieces_agrees_with_flat_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
