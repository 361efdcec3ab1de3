/* SPDX-License-Identifier: BSD-3-Clause */
/* test_clock.c - tests of pmd-glue/clock.c, with a TSC that can begin anew. */
#include "glue_fixture.h"

#include <time.h>

#include <rte_cycles.h>

static uint64_t tsc_behind;

static inline uint64_t tsc_read(void)
{
	return rte_rdtsc() - tsc_behind;
}

#define rte_rdtsc tsc_read
#include "../../pmd-glue/clock.c"
#undef rte_rdtsc

static void glue_now__goes_on_where_it_was_before_the_start(void **state)
{
	uint64_t before = glue_now(NULL);

	assert_int_equal(fixture_start(state), 0);
	assert_true(glue_now(NULL) >= before);
	assert_true(glue_now(NULL) - before < 60 * SECOND);
}

static void glue_now__never_goes_back(void **state)
{
	uint64_t last = glue_now(NULL);

	(void)state;
	for (unsigned n = 0; n < 1000000; n++) {
		uint64_t now = glue_now(NULL);
		assert_true(now >= last);
		last = now;
	}
}

static uint64_t kernel_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Measures 200 ms by both clocks, of which the first begin while the frequency is being learnt. */
static void glue_now__agrees_with_the_kernel(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		uint64_t before = kernel_now(), ours = glue_now(NULL), start = kernel_now(), end;

		do
			end = kernel_now();
		while (end - start < 200 * MILLISECOND);
		ours = glue_now(NULL) - ours;
		/* Ours lies between what the kernel says of the time inside and outside. */
		assert_true(ours >= (end - start) / 10000 * 9999);
		assert_true(ours <= (kernel_now() - before) / 10000 * 10001);
	}
}

/* The machine has slept. */
static void glue_now__goes_on_when_the_tsc_begins_anew(void **state)
{
	uint64_t before, last, start, end;

	(void)state;
	if (!clock_steady())
		skip();
	while (atomic_load(&clock_state) != CLOCK_TICKS) {
		clock_begin();
		(void)glue_now(NULL);
	}
	before = glue_now(NULL);
	tsc_behind = rte_rdtsc() - 1000;
	last = glue_now(NULL);
	assert_true(last + SECOND > before);
	start = kernel_now();
	do
		end = kernel_now();
	while (end - start < 10 * MILLISECOND);
	assert_true(glue_now(NULL) - last >= end - start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_now__goes_on_where_it_was_before_the_start),
		cmocka_unit_test(glue_now__never_goes_back),
		cmocka_unit_test(glue_now__agrees_with_the_kernel),
		cmocka_unit_test(glue_now__goes_on_when_the_tsc_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
