/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pmix.c - a job of PMIx, with a libpmix of the test's own (fake_pmix.c). The launcher is
 * found once in a process, so each case is a child. Real launchers: tests/apps/test_launched.py.
 *
 * Covers: lib/job/pmix_client.c, lib/job/no_pmix.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <job/job.h>

static const struct card self = {.process = {101, 7}};
static unsigned driven;

static unsigned drive(void)
{
	return ++driven < 3;
}

/* What a child prints is shown if it fails. */
#define child_assert(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #condition,        \
				job.why);                                                          \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static struct job job;

/* Runs a case in a child, and returns its exit code. */
static int in_child(const char *fake, void (*run)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		setenv("FAKE_PMIX", fake, 1);
		setenv("PMIX_NAMESPACE", "fake", 1);
		setenv("PMIX_RANK", "1", 1);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void job_pass(void)
{
	struct card other;

	child_assert(job_find(&job, false));
	child_assert(job.rank == 1 && job.size == 3 && job_is_launched(&job));
	child_assert(job_meet(&job, &self));
	child_assert(job_card(&job, 2, &other));
	child_assert(other.process.nid == 102 && other.process.pid == 7);
	child_assert(job_barrier(&job) && job_barrier(&job));
	job.drive = drive;
	child_assert(job_barrier(&job));
	child_assert(job_leave(&job) && !job_is_launched(&job));
	child_assert(job_barrier(&job));
}

/* P1. */
static void job_pass_late(void)
{
	job_pass();
	child_assert(driven > 10);
}

static const char *part; /* of the error */

static void find_fail(void)
{
	child_assert(!job_find(&job, false) && strstr(job.why, part));
	child_assert(!job_is_launched(&job));
}

static void meet_fail(void)
{
	child_assert(job_find(&job, false) && !job_meet(&job, &self) && strstr(job.why, part));
}

static void leave_fail(void)
{
	child_assert(job_find(&job, false) && job_meet(&job, &self));
	child_assert(!job_leave(&job) && strstr(job.why, part) && !job_is_launched(&job));
}

static void abort_pass(void)
{
	child_assert(job_find(&job, false));
	job_abort(&job, 9);
	child_assert(false);
}

/* P4. */
static void child_fail(void)
{
	child_assert(job_find(&job, false));
	part = "is rank 1 of this job already";
	child_assert(in_child("", find_fail) == 0);
}

static void pmix__makes_a_job(void **state)
{
	(void)state;
	assert_int_equal(in_child("", job_pass_late), 0);
	assert_int_equal(in_child("at-once", job_pass), 0);
	assert_int_equal(in_child("", abort_pass), 9);
}

static void expect(const char *fake, void (*run)(void), const char *words)
{
	part = words;
	assert_int_equal(in_child(fake, run), 0);
}

static void pmix__errors_are_told(void **state)
{
	(void)state;
	expect("unreach", find_fail,
		"the PMIx server of job fake does not answer (UNREACHABLE): start the job again");
	expect("other-rank", find_fail, "this process is rank 0 of fake, but PMIX_RANK");
	expect("other-job", find_fail, "this process is rank 1 of other, but PMIX_RANK");
	expect("not-found", find_fail, "PMIx_Get failed: SOMETHING (-46)");
	expect("size", find_fail, "PMIx says no size of this job");
	expect("fence", meet_fail, "PMIx_Fence_nb failed");
	expect("nonsense", meet_fail, "has no card of rank 2");
	expect("other-network", meet_fail, "rank 2 is on udp, this process on a network interface");
	expect("finalize", leave_fail, "PMIx_Finalize failed: UNREACHABLE");
}

static void pmix__a_child_of_a_rank_is_no_rank(void **state)
{
	(void)state;
	assert_int_equal(in_child("", child_fail), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pmix__makes_a_job),
		cmocka_unit_test(pmix__errors_are_told),
		cmocka_unit_test(pmix__a_child_of_a_rank_is_no_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
