/* SPDX-License-Identifier: BSD-3-Clause */
/* test_extent.c - ranges that are taken and given back, against a map of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/extent.h>
#include <base/random.h>

#define UNITS     1000
#define ALIGNMENT 64
#define STEPS     20000

static void extent_take__gives_the_first_that_fits(void **state)
{
	struct extent_map *map = extent_create(10 * 64, 64);

	(void)state;
	assert_non_null(map);
	assert_int_equal(extent_take(map, 64), 0);
	assert_int_equal(extent_take(map, 128), 64);
	assert_int_equal(extent_take(map, 64), 192);
	extent_give(map, 0, 64);
	extent_give(map, 64, 128);
	assert_int_equal(extent_take(map, 192), 0); /* the two have become one */
	extent_destroy(map);
}

static void extent_take__rounds_up_to_the_alignment(void **state)
{
	struct extent_map *map = extent_create(256, 64);

	(void)state;
	assert_int_equal(extent_take(map, 1), 0);
	assert_int_equal(extent_take(map, 65), 64);
	assert_int_equal(extent_take(map, 0), 192); /* also nothing has a place of its own */
	assert_int_equal(extent_take(map, 1), EXTENT_NONE);
	extent_give(map, 64, 65);
	assert_int_equal(extent_take(map, 128), 64);
	extent_destroy(map);
}

static void extent_take__refuses_what_is_too_large(void **state)
{
	struct extent_map *map = extent_create(1000, 64); /* 960 bytes in whole units */

	(void)state;
	assert_int_equal(extent_take(map, 961), EXTENT_NONE);
	assert_int_equal(extent_take(map, UINT64_MAX), EXTENT_NONE);
	assert_int_equal(extent_take(map, UINT64_MAX - 63), EXTENT_NONE);
	assert_int_equal(extent_take(map, 960), 0);
	assert_int_equal(extent_take(map, 1), EXTENT_NONE);
	extent_destroy(map);
}

static void extent_create__takes_a_size_of_nothing(void **state)
{
	struct extent_map *map = extent_create(63, 64);

	(void)state;
	assert_non_null(map);
	assert_int_equal(extent_take(map, 1), EXTENT_NONE);
	extent_destroy(map);
	extent_destroy(NULL);
}

/* The byte map of the test. */
static bool unit_taken[UNITS];

static unsigned first_fit(unsigned count)
{
	for (unsigned start = 0; start + count <= UNITS; start++) {
		unsigned run = 0;

		while (run < count && !unit_taken[start + run])
			run++;
		if (run == count)
			return start;
	}
	return UNITS;
}

static void extent_map__agrees_with_a_map_of_bytes_in_random_use(void **state)
{
	struct extent_map *map = extent_create(UNITS * ALIGNMENT, ALIGNMENT);
	static struct {
		uint64_t offset;
		uint64_t size;
	} held[UNITS];
	unsigned held_count = 0;
	uint64_t random = 1;

	(void)state;
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned choice = (uint32_t)random_next(&random);

		if (choice % 100 < 55) {
			unsigned count = choice / 100 % 5 + 1;
			uint64_t size = count * ALIGNMENT - choice / 500 % ALIGNMENT;
			unsigned expected = first_fit(count);
			uint64_t offset = extent_take(map, size);

			if (expected == UNITS) {
				assert_int_equal(offset, EXTENT_NONE);
				continue;
			}
			assert_int_equal(offset, expected * ALIGNMENT);
			memset(&unit_taken[expected], 1, count);
			held[held_count].offset = offset;
			held[held_count++].size = size;
		} else if (held_count > 0) {
			unsigned h = choice / 100 % held_count;
			uint64_t count = (held[h].size + ALIGNMENT - 1) / ALIGNMENT;

			extent_give(map, held[h].offset, held[h].size);
			memset(&unit_taken[held[h].offset / ALIGNMENT], 0, count);
			held[h] = held[--held_count];
		}
	}
	while (held_count > 0) {
		held_count--;
		extent_give(map, held[held_count].offset, held[held_count].size);
	}
	assert_int_equal(extent_take(map, UNITS * ALIGNMENT), 0); /* all in one piece again */
	extent_destroy(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extent_take__gives_the_first_that_fits),
		cmocka_unit_test(extent_take__rounds_up_to_the_alignment),
		cmocka_unit_test(extent_take__refuses_what_is_too_large),
		cmocka_unit_test(extent_create__takes_a_size_of_nothing),
		cmocka_unit_test(extent_map__agrees_with_a_map_of_bytes_in_random_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
