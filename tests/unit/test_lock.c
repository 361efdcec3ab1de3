/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lock.c - locks: lib/base/lock.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include <base/lock.h>
#include <base/random.h>

#include "../nap.h"

#define THREADS 4
#define TIMES   20000
#define SEEDS   2
#define ROUNDS  250
#define LOOKS   (barrier_cheap ? 100000 : 0)

static struct lock lock;
static uint64_t count; /* under the lock */

static void lock_new(void)
{
	lock = (struct lock){0};
	lock_start(&lock);
}

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

/* --- owners */

static void take_often(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		lock_take(&lock);
		lock_give(&lock);
	}
}

static void *takes_often(void *data)
{
	take_often(2 * LOCK_SETTLES);
	return data;
}

/* By another thread, which ends. */
static void elsewhere(void *(*run)(void *), void *data)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, data), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *tries(void *data)
{
	bool *taken = data;

	*taken = lock_try(&lock);
	if (*taken)
		lock_give(&lock);
	return NULL;
}

static void lock__is_owned_by_the_first_thread_that_takes_it_often(void **state)
{
	(void)state;
	lock_new();
	take_often(LOCK_SETTLES);
	assert_true(lock.owner == 0);
	take_often(2);
	assert_true(lock.owner == (barrier_cheap ? lock_self() : 0));
	lock_take(&lock);
	assert_int_equal(lock.inside, barrier_cheap);
	assert_int_equal(lock.held, !barrier_cheap);
	lock_give(&lock);
	assert_int_equal(lock.inside, 0);
	elsewhere(takes, NULL);
	assert_true(lock.owner == 0);
	elsewhere(takes_often, NULL); /* L5 */
	assert_true(lock.owner == 0);
	take_often(LOCK_SETTLES + 2);
	assert_true(lock.owner == (barrier_cheap ? lock_self() : 0));
}

static void lock__is_tried_while_it_has_an_owner(void **state)
{
	bool taken;

	(void)state;
	lock_new();
	take_often(LOCK_SETTLES + 2);
	lock_take(&lock);
	elsewhere(tries, &taken);
	assert_false(taken);
	lock_give(&lock);
	elsewhere(tries, &taken);
	assert_true(taken);
	assert_true(lock.owner == 0);
	take_often(1); /* L4 */
	assert_true(lock.owner == (barrier_cheap ? lock_self() : 0));
}

/* What only the thread that has the lock uses. */
static struct {
	uint64_t count, copy;
	_Atomic bool over;
	_Atomic uint64_t doubles; /* times that two threads had it */
} shared;

/* A thread that sleeps meanwhile lets another one come that should not. */
static void use(bool sleeps)
{
	uint64_t next = shared.count + 1;

	shared.count = next;
	if (sleeps)
		nap();
	atomic_signal_fence(memory_order_seq_cst);
	if (shared.copy != next - 1 || shared.count != next)
		atomic_fetch_add(&shared.doubles, 1);
	shared.copy = next;
}

static void *owns(void *data)
{
	uint64_t *uses = data;

	while (!atomic_load_explicit(&shared.over, memory_order_relaxed)) {
		lock_take(&lock);
		use(false);
		lock_give(&lock);
		(*uses)++;
	}
	return NULL;
}

/* Another thread comes each time that the owner has settled; it takes the lock or tries to. */
static void lock__of_an_owner_is_held_by_one_thread(void **state)
{
	uint64_t seed, uses = 0, mine = 0;
	pthread_t owner;

	(void)state;
	shared.count = shared.copy = 0;
	for (uint64_t first = 1; first <= SEEDS; first++) {
		lock_new();
		seed = first;
		shared.over = false;
		assert_int_equal(pthread_create(&owner, NULL, owns, &uses), 0);
		for (unsigned i = 0; i < ROUNDS; i++) {
			uint64_t random = random_next(&seed);

			for (unsigned looks = 0; looks < LOOKS && lock.owner == 0; looks++)
				;
			for (volatile uint64_t n = random % 64; n > 0; n--)
				;
			if (random >> 63 != 0)
				lock_take(&lock);
			else if (!lock_try(&lock))
				continue;
			use(true);
			lock_give(&lock);
			mine++;
		}
		shared.over = true;
		assert_int_equal(pthread_join(owner, NULL), 0);
	}
	assert_int_equal(shared.doubles, 0);
	assert_true(shared.count == uses + mine);
	assert_int_equal(lock.waiters & ~LOCK_FENCES, 0);
}

/* A program may forbid the call when locks have owners. */
static void membarrier_forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		printf("there is no seccomp here\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock__is_held_by_one_thread),
		cmocka_unit_test(lock__wakes_all_that_sleep_one_after_the_other),
		cmocka_unit_test(lock__is_owned_by_the_first_thread_that_takes_it_often),
		cmocka_unit_test(lock__is_tried_while_it_has_an_owner),
		cmocka_unit_test(lock__of_an_owner_is_held_by_one_thread),
	};
	const struct CMUnitTest owners[] = {
		cmocka_unit_test(lock__of_an_owner_is_held_by_one_thread),
	};
	int failed;

	/* The first round is that of a kernel without membarrier(). */
	lock_new();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	barrier_start();
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	membarrier_forbid();
	return failed + cmocka_run_group_tests(owners, NULL, NULL) != 0;
}
