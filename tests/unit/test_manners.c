/* SPDX-License-Identifier: BSD-3-Clause */
/* test_manners.c - tests of base/manners.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <base/manners.h>

#define MOST  64
#define ALONE 700  /* ns of a yield that nobody needs */
#define LATE  1500 /* of one in a hundred of them */
#define OTHER 4000 /* when another thread ran */

/* Empty looks until a yield is due. */
static unsigned looks(struct manners *manners)
{
	unsigned count = 1;

	while (!manners_due(manners))
		count++;
	return count;
}

static void learn(struct manners *manners, uint64_t took, unsigned times)
{
	while (times-- > 0)
		manners_learn(manners, took);
}

static void manners_due__comes_after_so_many_empty_looks_in_a_row(void **state)
{
	struct manners manners;

	(void)state;
	manners_init(&manners, MOST);
	assert_int_equal(looks(&manners), MOST);
	assert_int_equal(looks(&manners), MOST);
	for (unsigned i = 1; i < MOST; i++)
		assert_false(manners_due(&manners));
	manners_work(&manners);
	assert_int_equal(looks(&manners), MOST);
}

static void manners_learn__gives_way_to_others_and_forgets_them(void **state)
{
	struct manners manners;

	(void)state;
	manners_init(&manners, MOST);
	learn(&manners, ALONE, 1);
	learn(&manners, OTHER, 3);
	assert_int_equal(looks(&manners), 1);
	learn(&manners, OTHER, 100);
	assert_int_equal(looks(&manners), 1);
	learn(&manners, ALONE, MANNERS_CALM);
	assert_int_equal(looks(&manners), 2);
	learn(&manners, ALONE, 6 * MANNERS_CALM);
	assert_int_equal(looks(&manners), MOST);
}

/* A hundred yields at the shortest distance cost more than all that they could be good for. */
static void manners_learn__is_not_misled_by_a_yield_that_took_a_little_longer(void **state)
{
	struct manners manners;

	(void)state;
	manners_init(&manners, MOST);
	learn(&manners, ALONE, 1);
	learn(&manners, LATE, 10);
	assert_int_equal(looks(&manners), MOST);
	learn(&manners, 5 * MICROSECOND, 1);
	assert_int_equal(looks(&manners), MOST / MANNERS_HASTE);
}

/* The thread has moved to a CPU whose clock is behind. */
static void manners_learn__does_not_believe_that_a_yield_took_no_time(void **state)
{
	struct manners manners;

	(void)state;
	manners_init(&manners, MOST);
	learn(&manners, 0, 1);
	learn(&manners, MANNERS_LONG * MANNERS_LEAST, 10);
	assert_int_equal(looks(&manners), MOST);
}

/* A waiting thread that was never alone does not know how long a short wait is. */
static void manners_learn__knows_a_crowd_from_the_first_yield_on(void **state)
{
	struct manners manners;

	(void)state;
	manners_init(&manners, MOST);
	learn(&manners, OTHER, 3);
	assert_int_equal(looks(&manners), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manners_due__comes_after_so_many_empty_looks_in_a_row),
		cmocka_unit_test(manners_learn__gives_way_to_others_and_forgets_them),
		cmocka_unit_test(manners_learn__is_not_misled_by_a_yield_that_took_a_little_longer),
		cmocka_unit_test(manners_learn__does_not_believe_that_a_yield_took_no_time),
		cmocka_unit_test(manners_learn__knows_a_crowd_from_the_first_yield_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
