/* SPDX-License-Identifier: BSD-3-Clause */
/* test_operation.c - operations in flight, and the pool that they are taken from.
 *
 * Covers: lib/engine/operation.c, lib/base/pool.c.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_transport.h"
#include "rig.h"
#include "shortage.h"

static void operation_take__gives_a_name_that_finds_it(void **state)
{
	struct rig *rig = *state;
	struct operation *operation = operation_take(rig->engine, OPERATION_GET);
	uint64_t name = operation_name(operation);

	assert_int_not_equal(name, 0);
	assert_ptr_equal(operation_find(rig->engine, name, OPERATION_GET), operation);
	assert_null(operation_find(rig->engine, name, OPERATION_PUT));
	assert_null(operation_find(rig->engine, name + (UINT64_C(1) << 32), OPERATION_GET));
	operation_free(rig->engine, operation);
}

/* A number of 0 in a request says that its initiator wants no answer. */
static void operation_take__gives_no_name_that_means_none(void **state)
{
	struct rig *rig = *state;
	struct operation *operation = operation_take(rig->engine, OPERATION_RMA);

	assert_int_equal(operation->index, 0);
	operation->generation = UINT32_MAX; /* after 2^32 operations */
	operation_free(rig->engine, operation);
	assert_ptr_equal(operation_take(rig->engine, OPERATION_RMA), operation);
	assert_int_equal(operation->generation, 0);
	assert_int_not_equal(operation_name(operation), 0);
	assert_ptr_equal(
		operation_find(rig->engine, operation_name(operation), OPERATION_RMA), operation);
	operation_free(rig->engine, operation);
}

static void operation_free__makes_the_name_stale_also_when_the_place_is_used_again(void **state)
{
	struct rig *rig = *state;
	struct operation *first = operation_take(rig->engine, OPERATION_GET);
	uint64_t name = operation_name(first);

	operation_free(rig->engine, first);
	assert_null(operation_find(rig->engine, name, OPERATION_GET));
	assert_ptr_equal(operation_take(rig->engine, OPERATION_GET), first);
	assert_null(operation_find(rig->engine, name, OPERATION_GET));
	assert_non_null(operation_find(rig->engine, operation_name(first), OPERATION_GET));
	operation_free(rig->engine, first);
}

static void operation_find__of_an_index_out_of_the_pool_is_none(void **state)
{
	struct rig *rig = *state;

	assert_null(operation_find(rig->engine, 0, OPERATION_GET)); /* no chunk yet */
	operation_free(rig->engine, operation_take(rig->engine, OPERATION_GET));
	assert_null(operation_find(rig->engine, OPERATION_CHUNK + 1, OPERATION_GET));
	assert_null(operation_find(rig->engine, UINT32_MAX, OPERATION_GET));
	assert_null(operation_find(rig->engine, UINT64_MAX, OPERATION_GET));
}

static void operation_take__forgets_what_its_place_was_before(void **state)
{
	struct rig *rig = *state;
	struct operation *operation = operation_take(rig->engine, OPERATION_GET);

	operation->exhausts = operation->acknowledge = operation->requested = true;
	operation->replying = operation->ended = operation->waits = true;
	operation_free(rig->engine, operation);
	operation = operation_take(rig->engine, OPERATION_PUT);
	assert_false(operation->exhausts || operation->acknowledge || operation->requested ||
		     operation->replying || operation->ended || operation->waits);
	operation_free(rig->engine, operation);
}

static void operation_take__grows_by_chunks_and_gives_each_once(void **state)
{
	struct rig *rig = *state;
	enum { COUNT = 2 * OPERATION_CHUNK + 1 };
	struct operation **taken = malloc(COUNT * sizeof(struct operation *));

	for (uint32_t i = 0; i < COUNT; i++) {
		taken[i] = operation_take(rig->engine, OPERATION_GET);
		assert_non_null(taken[i]);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(taken[i]->index, i);
		assert_ptr_equal(
			operation_find(rig->engine, operation_name(taken[i]), OPERATION_GET),
			taken[i]);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		operation_free(rig->engine, taken[i]);
	assert_int_equal(pool_taken(&rig->engine->operations), 0);
	free(taken);
}

static void operation_reserve__says_no_without_memory_and_yes_again_with_it(void **state)
{
	struct rig *rig = *state;

	memory_is_short = true;
	assert_false(operation_reserve(rig->engine, 1));
	assert_null(operation_take(rig->engine, OPERATION_PUT));
	memory_is_short = false;
	assert_true(operation_reserve(rig->engine, 1));
	memory_is_short = true;
	assert_true(operation_reserve(rig->engine, OPERATION_CHUNK)); /* there are as many */
	assert_false(operation_reserve(rig->engine, OPERATION_CHUNK + 1));
	memory_is_short = false;
}

static void pool_take__gives_cleared_lines_by_number_up_to_the_most(void **state)
{
	enum { CHUNK = 4, MOST = 10, BYTES = 65 };
	static const char cleared[BYTES];
	struct pool pool;
	char *taken[MOST];

	(void)state;
	pool_init(&pool, BYTES, CHUNK, MOST);
	for (unsigned i = 0; i < MOST; i++) {
		taken[i] = pool_take(&pool);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % 64, 0);
		assert_ptr_equal(pool_at(&pool, i), taken[i]);
		assert_memory_equal(taken[i] + sizeof(void *), cleared + sizeof(void *),
			BYTES - sizeof(void *));
		memset(taken[i], 0xff, BYTES);
	}
	assert_null(pool_take(&pool));
	assert_false(pool_reserve(&pool, 1));
	assert_int_equal(pool_taken(&pool), MOST);
	pool_give(&pool, taken[7]);
	assert_int_equal(taken[7][BYTES - 1], (char)0xff);
	assert_ptr_equal(pool_take(&pool), taken[7]);
	pool_free(&pool);
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(operation_take__gives_a_name_that_finds_it),
		test(operation_take__gives_no_name_that_means_none),
		test(operation_free__makes_the_name_stale_also_when_the_place_is_used_again),
		test(operation_find__of_an_index_out_of_the_pool_is_none),
		test(operation_take__forgets_what_its_place_was_before),
		test(operation_take__grows_by_chunks_and_gives_each_once),
		test(operation_reserve__says_no_without_memory_and_yes_again_with_it),
		cmocka_unit_test(pool_take__gives_cleared_lines_by_number_up_to_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
