/* SPDX-License-Identifier: BSD-3-Clause */
/* test_watch.c - the watch at a barrier: a neighbour that answers, one that is slow, one that is
 * dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <base/clock.h>
#include <job/watch.h>

static unsigned asked;
static unsigned silent; /* questions that are not answered */
static struct process asked_last;

static bool answers(
	const struct front *front, uint64_t interface, struct process process, uint64_t timeout)
{
	(void)front;
	(void)interface;
	(void)timeout;
	asked_last = process;
	if (asked++ >= silent)
		return true;
	nanosleep(&(struct timespec){.tv_nsec = 20 * (long)MILLISECOND}, NULL);
	return false;
}

/* Rank 2 of three, at a barrier. */
static struct job waiting(uint64_t peer_timeout)
{
	struct job job = {
		.rank = 2,
		.size = 3,
		.watch = {.answers = answers, .peer_timeout = peer_timeout},
	};

	asked = 0;
	job.watch.neighbour = (struct process){.nid = 7, .pid = 8};
	watch_begin(&job);
	return job;
}

/* Until so many questions were asked. */
static void wait_at(struct job *job, unsigned questions)
{
	while (asked < questions) {
		uint64_t sleep = watch_turn(job);

		nanosleep(&(struct timespec){.tv_sec = (time_t)(sleep / SECOND),
				  .tv_nsec = (long)(sleep % SECOND)},
			NULL);
	}
}

static void watch__is_none_unless_a_front_end_wants_it_and_there_are_others(void **state)
{
	struct job job = {.rank = 0, .size = 3};

	(void)state;
	watch_begin(&job);
	assert_int_equal(watch_turn(&job), UINT64_MAX);
	job = (struct job){.size = 1, .watch = {.answers = answers}};
	watch_begin(&job);
	assert_int_equal(watch_turn(&job), UINT64_MAX);
}

static void watch__asks_the_right_neighbour_after_a_second_and_again(void **state)
{
	struct job job = waiting(400 * MILLISECOND);

	(void)state;
	silent = 0;
	assert_true(watch_turn(&job) <= SECOND); /* less if this test had no CPU */
	wait_at(&job, 3);
	assert_int_equal(asked_last.nid, 7);
	assert_int_equal(asked_last.pid, 8);
}

static void watch__bears_silence_that_is_shorter_than_its_timeout(void **state)
{
	struct job job = waiting(3600 * SECOND);

	(void)state;
	silent = 2;
	wait_at(&job, 3);
	assert_true(watch_turn(&job) > SECOND); /* as after an answer */
}

static void watch__ends_a_job_whose_neighbour_is_silent(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct job job = waiting(100 * MILLISECOND);

		silent = UINT32_MAX;
		wait_at(&job, UINT32_MAX);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

static void watch__tells_of_ranks_that_do_not_join_and_ends_nothing(void **state)
{
	struct job job = {.rank = 1, .size = 3, .watch = {.peer_timeout = 50 * MILLISECOND}};
	uint64_t sleep;

	(void)state;
	asked = 0;
	watch_begin(&job); /* nobody has said who the neighbour is */
	while ((sleep = watch_turn(&job)) != UINT64_MAX)
		nanosleep(&(struct timespec){.tv_nsec = (long)sleep}, NULL);
	assert_int_equal(asked, 0);
	assert_int_equal(watch_turn(&job), UINT64_MAX);
	job.rank = 2;
	watch_begin_joining(&job);
	assert_int_equal(watch_turn(&job), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch__is_none_unless_a_front_end_wants_it_and_there_are_others),
		cmocka_unit_test(watch__asks_the_right_neighbour_after_a_second_and_again),
		cmocka_unit_test(watch__bears_silence_that_is_shorter_than_its_timeout),
		cmocka_unit_test(watch__ends_a_job_whose_neighbour_is_silent),
		cmocka_unit_test(watch__tells_of_ranks_that_do_not_join_and_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
