/* SPDX-License-Identifier: BSD-3-Clause */
/* test_thread.c - tests of pmd-glue/thread.c. */
#include "glue_fixture.h"

#include <pthread.h>
#include <signal.h>

#include <rte_lcore.h>

struct found {
	char name[16];
	unsigned lcore;
	int cpus;
	bool blocked;
	bool faults; /* their signals are not blocked */
};

static void look(void *context)
{
	struct found *found = context;
	cpu_set_t set;
	sigset_t mask;

	CPU_ZERO(&set);
	pthread_getname_np(pthread_self(), found->name, sizeof(found->name));
	found->lcore = rte_lcore_id();
	if (pthread_getaffinity_np(pthread_self(), sizeof(set), &set) == 0)
		found->cpus = CPU_COUNT(&set);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	found->blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGUSR1) == 1;
	found->faults = sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGBUS) == 0;
}

static void glue_thread_start__runs_a_named_thread_that_hears_no_signals(void **state)
{
	struct found found = {.lcore = LCORE_ID_ANY};
	struct glue_thread *thread = glue_thread_start(look, &found, -1, "a long name, cut off");

	(void)state;
	assert_non_null(thread);
	glue_thread_join(thread);
	assert_string_equal(found.name, "a long name, cu");
	assert_int_not_equal(found.lcore, LCORE_ID_ANY);
	assert_true(found.blocked);
	assert_true(found.faults);
}

static void glue_thread_start__pins_the_thread(void **state)
{
	struct found found = {0};
	cpu_set_t set;
	int cpu = 0;
	struct glue_thread *thread;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET((size_t)cpu, &set))
		cpu++;
	thread = glue_thread_start(look, &found, cpu, "pinned");
	assert_non_null(thread);
	glue_thread_join(thread);
	assert_int_equal(found.cpus, 1);
}

static void glue_thread_start__refuses_a_cpu_that_is_not_there(void **state)
{
	struct found found;

	(void)state;
	log_clear_error();
	assert_null(glue_thread_start(look, &found, 1000, "nowhere"));
	assert_non_null(strstr(log_last_error(), "PTL_POLL_CORE"));
	assert_null(glue_thread_start(look, &found, 1000000, "nowhere"));
	glue_thread_join(NULL);
}

/* EAL counts at most 128 threads: those that have ended must not count. */
static void glue_thread_start__can_be_done_for_ever(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 300; n++) {
		struct found found = {.lcore = LCORE_ID_ANY};
		struct glue_thread *thread = glue_thread_start(look, &found, -1, "again");
		assert_non_null(thread);
		glue_thread_join(thread);
		assert_int_not_equal(found.lcore, LCORE_ID_ANY);
	}
}

static void *enter_and_look(void *context)
{
	glue_thread_enter();
	glue_thread_enter();
	look(context);
	return NULL;
}

static void glue_thread_enter__gives_any_thread_a_cache_until_it_ends(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 300; n++) {
		struct found found = {.lcore = LCORE_ID_ANY};
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, enter_and_look, &found), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_not_equal(found.lcore, LCORE_ID_ANY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_thread_start__runs_a_named_thread_that_hears_no_signals),
		cmocka_unit_test(glue_thread_start__pins_the_thread),
		cmocka_unit_test(glue_thread_start__refuses_a_cpu_that_is_not_there),
		cmocka_unit_test(glue_thread_start__can_be_done_for_ever),
		cmocka_unit_test(glue_thread_enter__gives_any_thread_a_cache_until_it_ends),
	};

	return cmocka_run_group_tests(tests, fixture_start, NULL);
}
