/* SPDX-License-Identifier: BSD-3-Clause */
/* test_clock.c - tests of pmd-glue/clock.c. */
#include "glue_fixture.h"

#include <time.h>

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

static void glue_now__agrees_with_the_kernel(void **state)
{
	struct timespec start, end;
	uint64_t kernel, ours = glue_now(NULL);

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &end);
		kernel = (uint64_t)(end.tv_sec - start.tv_sec) * SECOND + (uint64_t)end.tv_nsec -
			 (uint64_t)start.tv_nsec;
	} while (kernel < 50 * MILLISECOND);
	/* What lies between the first two readings and the last two only adds to ours. */
	assert_true(glue_now(NULL) - ours >= kernel * 99 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glue_now__goes_on_where_it_was_before_the_start),
		cmocka_unit_test(glue_now__never_goes_back),
		cmocka_unit_test(glue_now__agrees_with_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
