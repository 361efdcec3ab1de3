/* SPDX-License-Identifier: BSD-3-Clause */
/* test_freelist.c - free indices, taken and given by many threads; built for a race detector as
 * well. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <base/freelist.h>

#define INDICES 5
#define THREADS 4
#define ROUNDS  20000

static struct freelist *list_new(uint32_t count)
{
	size_t size = (freelist_size(count) + 63) & ~(size_t)63;
	struct freelist *list = aligned_alloc(64, size);

	assert_non_null(list);
	memset(list, 0, size);
	freelist_init(list, count);
	return list;
}

static void freelist_take__gives_every_index_once_lowest_first(void **state)
{
	struct freelist *list = list_new(INDICES);

	(void)state;
	for (uint32_t i = 0; i < INDICES; i++) {
		assert_int_equal(freelist_count(list, INDICES), INDICES - i);
		assert_int_equal(freelist_take(list), i);
	}
	assert_int_equal(freelist_count(list, INDICES), 0);
	assert_int_equal(freelist_take(list), FREELIST_NONE);
	freelist_give(list, 3);
	freelist_give(list, 1);
	assert_int_equal(freelist_take(list), 1);
	assert_int_equal(freelist_take(list), 3);
	assert_int_equal(freelist_take(list), FREELIST_NONE);
	free(list);
}

/* F4 */
static void freelist_init__leaves_zeroed_memory_as_it_is(void **state)
{
	struct freelist *list = list_new(INDICES);

	(void)state;
	for (uint32_t i = 0; i < INDICES; i++)
		assert_int_equal(freelist_take(list), i);
	for (uint32_t i = 0; i < INDICES; i++)
		assert_int_equal(atomic_load(&list->below[i]), 0);
	free(list);
}

static void freelist_init__may_make_an_empty_one(void **state)
{
	struct freelist *list = list_new(0);

	(void)state;
	assert_int_equal(freelist_take(list), FREELIST_NONE);
	free(list);
}

/* A thread looks at the top, index 0 over 1, and is away while 0 and 1 are taken and 0 is given
 * back. Were it to go on, 1 would have two owners. */
static void freelist_take__notices_that_the_same_index_is_back_on_top(void **state)
{
	struct freelist *list = list_new(2);
	uint64_t seen = atomic_load(&list->top);

	(void)state;
	assert_int_equal(freelist_take(list), 0);
	assert_int_equal(freelist_take(list), 1);
	freelist_give(list, 0);
	assert_int_equal((uint32_t)atomic_load(&list->top), (uint32_t)seen);
	assert_int_not_equal(atomic_load(&list->top), seen);
	free(list);
}

static struct freelist *shared;
static uint32_t owned[INDICES]; /* plain: only the owner of an index touches its word */

static void *churn(void *argument)
{
	uint32_t self = (uint32_t)(uintptr_t)argument + 1;
	bool fine = true;

	for (unsigned i = 0; i < ROUNDS && fine; i++) {
		uint32_t index = freelist_take(shared);

		if (index == FREELIST_NONE) {
			sched_yield();
			continue;
		}
		fine = index < INDICES && owned[index] == 0;
		if (!fine)
			break;
		owned[index] = self;
		if (i % 64 == 0)
			sched_yield();
		fine = owned[index] == self;
		owned[index] = 0;
		freelist_give(shared, index);
	}
	return (void *)(uintptr_t)fine;
}

static void freelist_take__among_threads_gives_an_index_to_one(void **state)
{
	pthread_t threads[THREADS];
	unsigned left = 0;

	(void)state;
	shared = list_new(INDICES);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *fine = NULL;

		pthread_join(threads[i], &fine);
		assert_non_null(fine);
	}
	while (freelist_take(shared) != FREELIST_NONE)
		left++;
	assert_int_equal(left, INDICES);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freelist_take__gives_every_index_once_lowest_first),
		cmocka_unit_test(freelist_init__leaves_zeroed_memory_as_it_is),
		cmocka_unit_test(freelist_init__may_make_an_empty_one),
		cmocka_unit_test(freelist_take__notices_that_the_same_index_is_back_on_top),
		cmocka_unit_test(freelist_take__among_threads_gives_an_index_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
