/* SPDX-License-Identifier: BSD-3-Clause */
/* test_effort.c - what postern-perf takes for the cost of a look at the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <base/clock.h>

#include "../../apps/perf/effort.h"

#define LEARNT      (100 * MILLISECOND) /* LEARN_TIME of pmd-glue/clock.c */
#define KERNEL_COST 48
#define TSC_COST    9

static uint64_t passed;

/* The kernel's clock at first, then the TSC. */
static uint64_t fake_now(void *context)
{
	(void)context;
	passed += passed < LEARNT ? KERNEL_COST : TSC_COST;
	return passed;
}

static const struct instruments fakes = {.now = fake_now};
const struct instruments *instrument = &fakes;

static void clock_cost__is_that_of_the_clock_which_measures(void **state)
{
	uint64_t settled;

	(void)state;
	assert_int_equal(clock_cost(), TSC_COST);
	settled = passed;
	assert_int_equal(clock_cost(), TSC_COST);
	assert_true(passed - settled < 2 * MILLISECOND); /* it waits once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_cost__is_that_of_the_clock_which_measures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
