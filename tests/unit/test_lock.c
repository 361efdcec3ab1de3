/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lock.c - locks: lib/base/lock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <cmocka.h>

#include <base/lock.h>

#define THREADS 4
#define TIMES   20000

static struct lock lock;
static uint64_t count; /* under the lock */

static void *counts(void *data)
{
	for (unsigned i = 0; i < TIMES; i++) {
		uint64_t was;

		lock_take(&lock);
		was = count;
		if (i % 256 == 0)
			sched_yield(); /* others come, and sleep */
		count = was + 1;
		lock_give(&lock);
	}
	return data;
}

static void lock__is_held_by_one_thread(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	count = 0;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, counts, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(count, THREADS * TIMES);
	assert_int_equal(lock.held, 0);
	assert_int_equal(lock.waiters & ~LOCK_FENCES, 0);
}

static void *takes(void *data)
{
	lock_take(&lock);
	count++;
	lock_give(&lock);
	return data;
}

static void lock__wakes_all_that_sleep_one_after_the_other(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	count = 0;
	lock_take(&lock);
	assert_int_equal(lock.held, 1);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, takes, NULL), 0);
	while ((atomic_load(&lock.waiters) & ~LOCK_FENCES) != THREADS)
		sched_yield();
	for (unsigned i = 0; i < 100; i++)
		sched_yield();
	assert_int_equal(count, 0);
	lock_give(&lock);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(count, THREADS);
	assert_int_equal(lock.held, 0);
	assert_int_equal(lock.waiters & ~LOCK_FENCES, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock__is_held_by_one_thread),
		cmocka_unit_test(lock__wakes_all_that_sleep_one_after_the_other),
	};

	/* The first round is that of a kernel without membarrier(). */
	lock_start(&lock);
	if (cmocka_run_group_tests(tests, NULL, NULL) != 0)
		return 1;
	barrier_start();
	lock = (struct lock){0};
	lock_start(&lock);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
