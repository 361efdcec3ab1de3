/* SPDX-License-Identifier: BSD-3-Clause */
/* test_barrier.c - of two threads that each say something and then look, one sees the other. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <base/barrier.h>

#include "../nap.h"

#define ROUNDS 3000

static struct {
	_Alignas(64) _Atomic uint32_t said;
	uint32_t seen[ROUNDS];
} sides[2];
static _Alignas(64) _Atomic uint32_t arrived; /* at the starts of rounds */

static void round_start(uint32_t round)
{
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&arrived) < 2 * (round + 1))
		nap();
}

static void *often(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		round_start(i);
		atomic_store_explicit(&sides[0].said, i + 1, memory_order_relaxed);
		barrier_light();
		sides[0].seen[i] = atomic_load_explicit(&sides[1].said, memory_order_relaxed);
	}
	return NULL;
}

static void *seldom(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		round_start(i);
		atomic_store_explicit(&sides[1].said, i + 1, memory_order_relaxed);
		barrier_heavy();
		sides[1].seen[i] = atomic_load_explicit(&sides[0].said, memory_order_relaxed);
	}
	return NULL;
}

static void run(void)
{
	pthread_t threads[2];

	atomic_store(&arrived, 0);
	for (unsigned i = 0; i < 2; i++)
		atomic_store(&sides[i].said, 0);
	assert_int_equal(pthread_create(&threads[0], NULL, often, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, seldom, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < ROUNDS; i++)
		assert_true(sides[0].seen[i] == i + 1 || sides[1].seen[i] == i + 1);
}

static void barrier__without_a_start_one_side_sees_the_other(void **state)
{
	(void)state;
	assert_false(barrier_cheap);
	run();
}

static void barrier__one_side_sees_the_other(void **state)
{
	(void)state;
	barrier_start();
	run();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barrier__without_a_start_one_side_sees_the_other),
		cmocka_unit_test(barrier__one_side_sees_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
