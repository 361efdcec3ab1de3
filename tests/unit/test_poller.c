/* SPDX-License-Identifier: BSD-3-Clause */
/* test_poller.c - tests lib/host/poller.c: poll threads, with an engine that only counts. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <base/spinning.h>
#include <engine/statistics.h>
#include <host/poller.h>
#include <host/submission.h>

#include "fake_engine.h"
#include "../nap.h"

#define COMMANDS 5000

static uint64_t monotonic_now(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static const struct clock test_clock = {.now = monotonic_now};

/* A nanosecond passes with each look at it. */
static uint64_t slow_now(void *context)
{
	static _Atomic uint64_t looks = SECOND;

	(void)context;
	return atomic_fetch_add(&looks, 1);
}

static const struct clock slow_clock = {.now = slow_now};
/* Of poll threads. */
static const struct clock *start_clock = &test_clock;

static void *run(void *poller)
{
	poller_run(poller);
	return NULL;
}

struct fixture {
	struct engine *engines[2];
	struct poller *poller;
	pthread_t thread;
};

/* The CPUs of poll threads; NULL: those of the thread that starts them. */
static const cpu_set_t *start_apart;

static void fixture_start(struct fixture *fixture, unsigned engines, enum poller_mode mode)
{
	pthread_attr_t attributes;

	fixture->poller = poller_create(mode, start_clock);
	assert_non_null(fixture->poller);
	pthread_attr_init(&attributes);
	if (start_apart)
		pthread_attr_setaffinity_np(&attributes, sizeof(*start_apart), start_apart);
	for (unsigned i = 0; i < 2; i++) {
		fixture->engines[i] = fake_engine_create();
		if (i < engines)
			poller_add(fixture->poller, fixture->engines[i],
				fixture->engines[i]->segment, false);
	}
	assert_int_equal(pthread_create(&fixture->thread, &attributes, run, fixture->poller), 0);
	pthread_attr_destroy(&attributes);
	poller_resume(fixture->poller);
}

static void fixture_stop(struct fixture *fixture)
{
	poller_pause(fixture->poller);
	poller_stop(fixture->poller);
	pthread_join(fixture->thread, NULL);
	poller_destroy(fixture->poller);
	for (unsigned i = 0; i < 2; i++)
		fake_engine_destroy(fixture->engines[i]);
}

static uint32_t sleeping(const struct engine *engine)
{
	return atomic_load(&engine->segment->doorbell.sleeping);
}

static uint64_t sleeps_of(const struct engine *engine)
{
	return counter_read(&segment_counters(engine->segment)->sleeps);
}

static void post(struct engine *engine, uint64_t value)
{
	const struct submission submission = {.ring = engine->segment};
	struct command command = {.kind = COMMAND_PUT, .move.value = value};

	submission_post(&submission, &command);
}

static void poller_run__polls_every_engine(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 2, POLLER_BUSY);
	WAIT_FOR(atomic_load(&fixture.engines[0]->turns) > 10 &&
		 atomic_load(&fixture.engines[1]->turns) > 10);
	fixture_stop(&fixture);
}

static void poller_pause__keeps_the_thread_off_the_engines(void **state)
{
	struct fixture fixture;
	uint64_t turns;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	poller_pause(fixture.poller);
	fixture.engines[0]->unlocked++; /* ThreadSanitizer complains unless it is ours */
	turns = atomic_load(&fixture.engines[0]->turns);
	for (unsigned i = 0; i < 100; i++)
		nap();
	assert_int_equal(atomic_load(&fixture.engines[0]->turns), turns);
	poller_resume(fixture.poller);
	post(fixture.engines[0], 1);
	WAIT_FOR(atomic_load(&fixture.engines[0]->turns) > turns);
	fixture_stop(&fixture);
}

static void poller_pause__and_resume_may_alternate_without_end(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	for (unsigned i = 0; i < 1000; i++) {
		poller_pause(fixture.poller);
		fixture.engines[0]->unlocked++;
		poller_resume(fixture.poller);
	}
	fixture_stop(&fixture);
}

static void poller_pause__wakes_a_thread_that_sleeps(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	WAIT_FOR(sleeping(fixture.engines[0]));
	poller_pause(fixture.poller);
	poller_resume(fixture.poller);
	fixture_stop(&fixture);
}

static void poller_add__lets_the_thread_poll_one_more(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	poller_pause(fixture.poller);
	poller_add(fixture.poller, fixture.engines[1], fixture.engines[1]->segment, false);
	assert_int_equal(poller_count(fixture.poller), 2);
	poller_resume(fixture.poller);
	WAIT_FOR(atomic_load(&fixture.engines[1]->turns) > 0);
	fixture_stop(&fixture);
}

static void poller_remove__leaves_the_others(void **state)
{
	struct fixture fixture;
	uint64_t turns;

	(void)state;
	fixture_start(&fixture, 2, POLLER_ADAPTIVE);
	poller_pause(fixture.poller);
	poller_remove(fixture.poller, fixture.engines[0]);
	assert_int_equal(poller_count(fixture.poller), 1);
	turns = atomic_load(&fixture.engines[0]->turns);
	poller_resume(fixture.poller);
	post(fixture.engines[1], 1);
	WAIT_FOR(atomic_load(&fixture.engines[1]->commands) == 1);
	assert_int_equal(atomic_load(&fixture.engines[0]->turns), turns);
	fixture_stop(&fixture);
}

static void poller_run__sleeps_when_nothing_comes_and_wakes_for_a_command(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	for (unsigned i = 1; i <= 20; i++) {
		/* A command that comes when the thread is about to sleep keeps it awake. */
		WAIT_FOR(sleeps_of(fixture.engines[0]) >= i);
		post(fixture.engines[0], 1);
		WAIT_FOR(atomic_load(&fixture.engines[0]->commands) == i);
	}
	fixture_stop(&fixture);
}

static void wakes_for_either(enum poller_mode mode)
{
	struct fixture fixture;

	fixture_start(&fixture, 2, mode);
	for (unsigned i = 0; i < 20; i++) {
		struct engine *engine = fixture.engines[i % 2];

		WAIT_FOR(sleeping(fixture.engines[0]) && sleeping(fixture.engines[1]));
		post(engine, 1);
		WAIT_FOR(atomic_load(&engine->commands) == i / 2 + 1);
	}
	fixture_stop(&fixture);
}

static void poller_run__with_two_engines_wakes_for_either(void **state)
{
	(void)state;
	wakes_for_either(POLLER_ADAPTIVE);
}

static void misses_no_command(enum poller_mode mode)
{
	struct fixture fixture;

	fixture_start(&fixture, 1, mode);
	for (uint64_t i = 1; i <= COMMANDS; i++) {
		post(fixture.engines[0], i);
		WAIT_FOR(atomic_load(&fixture.engines[0]->commands) == i);
	}
	assert_int_equal(
		atomic_load(&fixture.engines[0]->sum), (uint64_t)COMMANDS * (COMMANDS + 1) / 2);
	fixture_stop(&fixture);
}

static void poller_run__misses_no_command_that_comes_as_it_falls_asleep(void **state)
{
	(void)state;
	misses_no_command(POLLER_ADAPTIVE);
}

static void poller_run__never_sleeps_when_it_may_not(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_BUSY);
	WAIT_FOR(atomic_load(&fixture.engines[0]->turns) > 100000);
	assert_int_equal(sleeps_of(fixture.engines[0]), 0);
	fixture_stop(&fixture);
}

static void poller_run__by_interrupt_wakes_for_a_command(void **state)
{
	(void)state;
	wakes_for_either(POLLER_INTERRUPT);
}

static void poller_run__by_interrupt_wakes_for_a_port(void **state)
{
	int port = eventfd(0, EFD_NONBLOCK);
	struct fixture fixture;
	(void)state;
	assert_true(port >= 0);
	fixture_start(&fixture, 0, POLLER_INTERRUPT);
	poller_pause(fixture.poller);
	atomic_store(&fixture.engines[0]->descriptor, port + 1);
	poller_add(fixture.poller, fixture.engines[0], fixture.engines[0]->segment, true);
	poller_resume(fixture.poller);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t turns;

		WAIT_FOR(sleeping(fixture.engines[0]));
		turns = atomic_load(&fixture.engines[0]->turns);
		assert_int_equal(eventfd_write(port, 1), 0);
		/* More than the one look before it sleeps. */
		WAIT_FOR(atomic_load(&fixture.engines[0]->turns) > turns + 1);
	}
	fixture_stop(&fixture);
	close(port);
}

static void poller_run__by_interrupt_misses_no_command_that_comes_as_it_falls_asleep(void **state)
{
	(void)state;
	misses_no_command(POLLER_INTERRUPT);
}

static void poller_set_mode__of_a_thread_that_sleeps_misses_nothing(void **state)
{
	static const enum poller_mode modes[] = {POLLER_ADAPTIVE, POLLER_INTERRUPT};
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_INTERRUPT);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t sleeps;

		poller_pause(fixture.poller);
		poller_set_mode(fixture.poller, modes[i % 2]);
		sleeps = sleeps_of(fixture.engines[0]);
		poller_resume(fixture.poller);
		WAIT_FOR(sleeps_of(fixture.engines[0]) > sleeps && sleeping(fixture.engines[0]));
		post(fixture.engines[0], 1);
		WAIT_FOR(atomic_load(&fixture.engines[0]->commands) == i + 1);
	}
	fixture_stop(&fixture);
}

/* This thread, and poll threads that begin, keep to one CPU until sched_setaffinity() gives all
 * back. */
static void cpu_keep(cpu_set_t *all, cpu_set_t *one)
{
	assert_int_equal(sched_getaffinity(0, sizeof(*all), all), 0);
	CPU_ZERO(one);
	CPU_SET((size_t)sched_getcpu(), one);
	assert_int_equal(sched_setaffinity(0, sizeof(*one), one), 0);
	start_apart = one;
}

/* A thread that waits for it sleeps at once where both have one CPU. */
static void doorbell_is_here__of_an_idle_thread_on_this_cpu(void **state)
{
	struct fixture fixture;
	cpu_set_t all, one;

	(void)state;
	cpu_keep(&all, &one);
	fixture_start(&fixture, 1, POLLER_BUSY);
	WAIT_FOR(doorbell_is_here(&fixture.engines[0]->segment->doorbell));
	assert_false(doorbell_is_here(&fixture.engines[1]->segment->doorbell)); /* it has none */
	atomic_store(&fixture.engines[0]->segment->doorbell.sleeping, 1);
	assert_false(doorbell_is_here(&fixture.engines[0]->segment->doorbell));
	atomic_store(&fixture.engines[0]->segment->doorbell.sleeping, 0);
	fixture_stop(&fixture);
	CPU_CLR((size_t)sched_getcpu(), &all);
	if (CPU_COUNT(&all) > 0) {
		start_apart = &all;
		fixture_start(&fixture, 1, POLLER_BUSY);
		WAIT_FOR(atomic_load(&fixture.engines[0]->segment->doorbell.cpu) != 0);
		assert_false(doorbell_is_here(&fixture.engines[0]->segment->doorbell));
		fixture_stop(&fixture);
		CPU_OR(&all, &all, &one);
	} else {
		all = one;
	}
	start_apart = NULL;
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

#define RINGS 20u

/* P3. By this clock a wait that spins has 50,000 looks. */
static void poller_run__does_not_spin_on_the_cpu_of_who_woke_it(void **state)
{
	struct fixture fixture;
	cpu_set_t all, one;
	uint64_t turns;

	(void)state;
	cpu_keep(&all, &one);
	start_clock = &slow_clock;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	WAIT_FOR(sleeps_of(fixture.engines[0]) > 0);
	turns = atomic_load(&fixture.engines[0]->turns);
	for (unsigned i = 0; i < RINGS; i++) {
		uint64_t sleeps = sleeps_of(fixture.engines[0]);

		post(fixture.engines[0], 1);
		WAIT_FOR(sleeps_of(fixture.engines[0]) > sleeps);
	}
	/* A sleep may have come to its own end. */
	assert_true(atomic_load(&fixture.engines[0]->turns) - turns < SPINNING_MOST * 2);
	fixture_stop(&fixture);
	start_apart = NULL;
	start_clock = &test_clock;
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void poller_wake__wakes_a_thread_that_sleeps(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_start(&fixture, 1, POLLER_ADAPTIVE);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t turns;

		WAIT_FOR(sleeping(fixture.engines[0]));
		turns = atomic_load(&fixture.engines[0]->turns);
		poller_wake(fixture.poller);
		/* Awake, or asleep once more. */
		assert_true(!sleeping(fixture.engines[0]) ||
			    atomic_load(&fixture.engines[0]->turns) > turns);
	}
	fixture_stop(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poller_run__polls_every_engine),
		cmocka_unit_test(poller_pause__keeps_the_thread_off_the_engines),
		cmocka_unit_test(poller_pause__and_resume_may_alternate_without_end),
		cmocka_unit_test(poller_pause__wakes_a_thread_that_sleeps),
		cmocka_unit_test(poller_add__lets_the_thread_poll_one_more),
		cmocka_unit_test(poller_remove__leaves_the_others),
		cmocka_unit_test(poller_run__sleeps_when_nothing_comes_and_wakes_for_a_command),
		cmocka_unit_test(poller_run__with_two_engines_wakes_for_either),
		cmocka_unit_test(poller_run__misses_no_command_that_comes_as_it_falls_asleep),
		cmocka_unit_test(poller_run__never_sleeps_when_it_may_not),
		cmocka_unit_test(poller_run__by_interrupt_wakes_for_a_command),
		cmocka_unit_test(poller_run__by_interrupt_wakes_for_a_port),
		cmocka_unit_test(
			poller_run__by_interrupt_misses_no_command_that_comes_as_it_falls_asleep),
		cmocka_unit_test(poller_set_mode__of_a_thread_that_sleeps_misses_nothing),
		cmocka_unit_test(poller_run__does_not_spin_on_the_cpu_of_who_woke_it),
		cmocka_unit_test(poller_wake__wakes_a_thread_that_sleeps),
		cmocka_unit_test(doorbell_is_here__of_an_idle_thread_on_this_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
