/* SPDX-License-Identifier: BSD-3-Clause */
/* test_job.c - postern_job_...: a process that no launcher started is a job of one. Jobs of several
 * processes are tested in tests/apps/test_run.py.
 *
 * Covers: lib/p3/job.c, lib/job/job.c, lib/host/member.c.
 *
 * A process joins once, so the tests stand in the order of its life.
 */
#include "fixture.h"

#include <postern.h>

static unsigned rank = 99, size = 99;

#define assert_error_names(part) assert_non_null(strstr(postern_last_error(), (part)))

static void postern_job__is_to_be_joined_first(void **state)
{
	ptl_process_id_t id;

	(void)state;
	assert_code(postern_job_address(0, &id), PTL_FAIL);
	assert_error_names("postern_job_address: this process has not joined its job");
	assert_code(postern_job_barrier(), PTL_FAIL);
	assert_error_names("postern_job_barrier");
	assert_code(postern_job_leave(), PTL_FAIL);
	assert_error_names("postern_job_leave");
}

static void postern_job_join__refuses_what_it_should(void **state)
{
	(void)state;
	assert_code(postern_job_join(here.fence_in, &rank, &size), PTL_INV_NI);
	assert_code(postern_job_join(here.ni, NULL, &size), PTL_SEGV);
	assert_code(postern_job_join(here.ni, &rank, WILD), PTL_SEGV);
	assert_int_equal(rank, 99);
}

/* PMI_FD counts as it was before Postern opened descriptors. */
static void postern_job_join__has_the_environment_of_the_start(void **state)
{
	(void)state;
	setenv("PMI_FD", "0", 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "2", 1);
}

static void postern_job__of_one_has_rank_0_and_its_own_address(void **state)
{
	ptl_process_id_t id = {0};

	(void)state;
	assert_ok(postern_job_join(here.ni, &rank, &size));
	assert_int_equal(rank, 0);
	assert_int_equal(size, 1);
	assert_ok(postern_job_address(0, &id));
	assert_int_equal(id.nid, here.id.nid);
	assert_int_equal(id.pid, here.id.pid);
	assert_ok(postern_job_barrier());
	assert_code(postern_job_address(0, NULL), PTL_SEGV);
	assert_code(postern_job_address(1, &id), PTL_INV_PROC);
	assert_code(postern_job_address(UINT32_MAX, &id), PTL_INV_PROC);
	assert_code(postern_job_join(here.ni, &rank, &size), PTL_FAIL);
	assert_error_names("has joined its job already");
}

static void postern_job_card__is_of_this_process(void **state)
{
	unsigned char card[POSTERN_JOB_CARD_BYTES] = {0}, again[POSTERN_JOB_CARD_BYTES] = {1};

	(void)state;
	assert_ok(postern_job_card(here.ni, card));
	assert_ok(postern_job_card(here.ni, again));
	assert_memory_equal(card, again, sizeof(card));
	assert_code(postern_job_card(here.fence_in, card), PTL_INV_NI);
	assert_code(postern_job_card(here.ni, NULL), PTL_SEGV);
}

static void postern_job_given__refuses_what_it_should(void **state)
{
	unsigned char card[POSTERN_JOB_CARD_BYTES];

	(void)state;
	assert_ok(postern_job_card(here.ni, card));
	assert_code(postern_job_given(here.fence_in, 0, 1, card), PTL_INV_NI);
	assert_code(postern_job_given(here.ni, 0, 0, card), PTL_INV_PROC);
	assert_code(postern_job_given(here.ni, 1, 1, card), PTL_INV_PROC);
	assert_code(postern_job_given(here.ni, 0, UINT32_MAX, card), PTL_INV_PROC);
	assert_code(postern_job_given(here.ni, 0, 1, NULL), PTL_SEGV);
	assert_code(postern_job_given(here.ni, 0, 1, card), PTL_FAIL);
	assert_error_names("has joined its job already");
}

static void postern_job__is_left_once(void **state)
{
	ptl_process_id_t id;

	(void)state;
	assert_ok(postern_job_leave());
	assert_code(postern_job_leave(), PTL_FAIL);
	assert_error_names("has left its job");
	assert_code(postern_job_barrier(), PTL_FAIL);
	assert_code(postern_job_address(0, &id), PTL_FAIL);
	assert_code(postern_job_join(here.ni, &rank, &size), PTL_FAIL);
	assert_error_names("has left its job already");
}

static void postern_job__needs_the_library(void **state)
{
	ptl_process_id_t id;
	int interfaces;

	(void)state;
	PtlFini();
	assert_code(postern_job_join(here.ni, &rank, &size), PTL_NOINIT);
	assert_code(postern_job_address(0, &id), PTL_NOINIT);
	assert_code(postern_job_barrier(), PTL_NOINIT);
	assert_code(postern_job_leave(), PTL_NOINIT);
	assert_ok(PtlInit(&interfaces));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(postern_job__is_to_be_joined_first),
		TEST_HERE(postern_job_join__refuses_what_it_should),
		TEST_HERE(postern_job_join__has_the_environment_of_the_start),
		TEST_HERE(postern_job__of_one_has_rank_0_and_its_own_address),
		TEST_HERE(postern_job_card__is_of_this_process),
		TEST_HERE(postern_job_given__refuses_what_it_should),
		TEST_HERE(postern_job__is_left_once),
		TEST_BARE(postern_job__needs_the_library),
	};

	return cmocka_run_group_tests_name("job", tests, group_open, group_close);
}
