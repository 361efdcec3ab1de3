/* SPDX-License-Identifier: BSD-3-Clause */
/* test_counter.c - event counters: reading, waiting and waking, with threads.
 *
 * Covers: lib/engine/counter.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <base/futex.h>
#include <engine/counter.h>

#include "../nap.h"

#define HANDLE  UINT64_C(0x100000001)
#define OTHER   UINT64_C(0x200000001)
#define WAITERS 6
#define ROUNDS  3000
#define LIVES   2000

static struct event_counter counter;

static void fresh(void)
{
	memset(&counter, 0, sizeof(counter));
	event_counter_init(&counter, HANDLE);
}

static void check_counts(uint64_t success, uint64_t failure)
{
	struct event_count count;

	assert_true(event_counter_read(&counter, HANDLE, &count));
	assert_int_equal(count.success, success);
	assert_int_equal(count.failure, failure);
}

static void event_counter__counts_successes_and_failures(void **state)
{
	(void)state;
	fresh();
	check_counts(0, 0);
	event_counter_add(&counter, 1, 0);
	event_counter_add(&counter, 41, 0);
	event_counter_add(&counter, 0, 1);
	check_counts(42, 1);
	assert_int_equal(event_counter_sum(&counter), 43);
	event_counter_set(&counter, (struct event_count){UINT64_MAX, 7});
	check_counts(UINT64_MAX, 7);
	assert_int_equal(event_counter_sum(&counter), 6);
	event_counter_add(&counter, 2, 0);
	check_counts(1, 7);
}

static void event_counter__is_stale_once_it_is_closed(void **state)
{
	struct event_count count;

	(void)state;
	fresh();
	event_counter_close(&counter);
	assert_false(event_counter_read(&counter, HANDLE, &count));
	event_counter_init(&counter, OTHER);
	assert_false(event_counter_read(&counter, HANDLE, &count));
	assert_true(event_counter_read(&counter, OTHER, &count));
	assert_int_equal(count.success, 0);
}

static bool has_reached(uint64_t test)
{
	struct event_count count;

	assert_true(event_counter_read(&counter, HANDLE, &count));
	return event_count_reached(count, test);
}

static void event_count_reached__by_successes_or_any_failure(void **state)
{
	(void)state;
	fresh();
	assert_true(has_reached(0));
	assert_false(has_reached(2));
	event_counter_add(&counter, 1, 0);
	assert_false(has_reached(2));
	event_counter_add(&counter, 0, 1);
	assert_true(has_reached(2));
}

/* N3. */
static void event_counter_wakes__at_the_least_test(void **state)
{
	uint32_t futex;

	(void)state;
	fresh();
	event_counter_add(&counter, 1, 0);
	assert_false(event_counter_wakes(&counter));
	futex = event_counter_enter(&counter, 10);
	event_counter_enter(&counter, 5);
	event_counter_enter(&counter, 7);
	event_counter_add(&counter, 3, 0);
	assert_false(event_counter_wakes(&counter));
	event_counter_ring(&counter);
	assert_int_equal(atomic_load(&counter.futex), futex);
	event_counter_add(&counter, 1, 0);
	assert_true(event_counter_wakes(&counter));
	event_counter_ring(&counter);
	assert_int_equal(atomic_load(&counter.futex), futex + 1);
	/* Those whose test was higher enter anew. */
	event_counter_add(&counter, 100, 0);
	assert_false(event_counter_wakes(&counter));
	event_counter_leave(&counter);
	event_counter_leave(&counter);
	event_counter_leave(&counter);
	event_counter_enter(&counter, 1000);
	event_counter_add(&counter, 0, 1);
	assert_true(event_counter_wakes(&counter));
	event_counter_leave(&counter);
	assert_false(event_counter_wakes(&counter));
}

/* --- threads --- */

/* As host/waiting.h waits, without its spinning: it sleeps as often as it can. Returns the counts,
 * or false when the counter is gone. */
static bool wait_until(uint64_t handle, uint64_t test, struct event_count *count)
{
	while (event_counter_read(&counter, handle, count)) {
		struct event_count last;
		uint32_t futex;

		if (event_count_reached(*count, test))
			return true;
		futex = event_counter_enter(&counter, test);
		barrier_heavy();
		if (event_counter_read(&counter, handle, &last) && !event_count_reached(last, test))
			futex_wait(&counter.futex, futex, UINT64_MAX);
		event_counter_leave(&counter);
	}
	return false;
}

static void change_tell(void)
{
	barrier_light();
	event_counter_ring(&counter);
}

static void *waiter(void *argument)
{
	uint64_t step = (uint64_t)(uintptr_t)argument;
	struct event_count count;

	for (uint64_t test = step; test <= ROUNDS; test += step)
		if (!wait_until(HANDLE, test, &count) || count.success < test)
			return argument;
	return NULL;
}

/* Each waiter sleeps for tests of its own. One that is forgotten sleeps for ever, and the test ends
 * by its time limit. */
static void waiting_threads__each_see_every_test_of_theirs(void **state)
{
	pthread_t threads[WAITERS];
	void *wrong;

	(void)state;
	fresh();
	for (uintptr_t i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, waiter, (void *)(i * i + 1)), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		event_counter_add(&counter, 1, 0);
		change_tell();
		if (i % 16 == 0)
			nap();
		if (i % 256 == 0)
			usleep(100);
	}
	for (unsigned i = 0; i < WAITERS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(atomic_load(&counter.sleepers), 0);
}

static void *waiter_for_ever(void *argument)
{
	struct event_count count;

	(void)argument;
	return wait_until(HANDLE, UINT64_MAX, &count) ? &counter : NULL;
}

static void waiting_threads__leave_by_a_failure(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	fresh();
	assert_int_equal(pthread_create(&thread, NULL, waiter_for_ever, NULL), 0);
	usleep(1000);
	event_counter_add(&counter, 0, 1);
	change_tell();
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &counter);
}

static void waiting_threads__leave_when_the_counter_goes(void **state)
{
	pthread_t threads[WAITERS];
	void *result;

	(void)state;
	fresh();
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, waiter_for_ever, NULL), 0);
	usleep(1000);
	event_counter_close(&counter);
	event_counter_init(&counter, OTHER);
	for (unsigned i = 0; i < WAITERS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
}

/* N4: each life counts up to its own handle; a reader never sees the counts of another one. */
static uint64_t life_handle(uint64_t life)
{
	return (life + 1) << 32 | 1;
}

static _Atomic bool lives_over;

static void *reader(void *argument)
{
	struct event_count count;

	while (!atomic_load(&lives_over)) {
		uint64_t handle = atomic_load(&counter.gate);

		if (handle == 0 || !event_counter_read(&counter, handle, &count))
			continue;
		if (count.success != 0 && count.success != handle)
			return argument;
	}
	return NULL;
}

static void event_counter_read__never_mixes_lives(void **state)
{
	pthread_t thread;
	void *wrong;

	(void)state;
	fresh();
	event_counter_close(&counter);
	assert_int_equal(pthread_create(&thread, NULL, reader, &counter), 0);
	for (uint64_t life = 0; life < LIVES; life++) {
		event_counter_init(&counter, life_handle(life));
		event_counter_add(&counter, life_handle(life), 0);
		change_tell();
		if (life % 64 == 0)
			nap();
		event_counter_close(&counter);
	}
	atomic_store(&lives_over, true);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_counter__counts_successes_and_failures),
		cmocka_unit_test(event_counter__is_stale_once_it_is_closed),
		cmocka_unit_test(event_count_reached__by_successes_or_any_failure),
		cmocka_unit_test(event_counter_wakes__at_the_least_test),
		cmocka_unit_test(waiting_threads__each_see_every_test_of_theirs),
		cmocka_unit_test(waiting_threads__leave_by_a_failure),
		cmocka_unit_test(waiting_threads__leave_when_the_counter_goes),
		cmocka_unit_test(event_counter_read__never_mixes_lives),
	};

	barrier_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
