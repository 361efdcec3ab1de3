/* SPDX-License-Identifier: BSD-3-Clause */
/* test_yielding.c - tests of base/yielding.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <base/yielding.h>

#define NOW (5 * SECOND)

static void yielding_pays__while_yields_are_short(void **state)
{
	struct yielding yielding = {0};

	(void)state;
	assert_true(yielding_pays(&yielding, NOW));
	yielding_learn(&yielding, NOW, NOW + YIELDING_LONG - 1);
	assert_true(yielding_pays(&yielding, NOW + YIELDING_LONG));
}

static void yielding_pays__a_while_after_a_long_one(void **state)
{
	const uint64_t ended = NOW + 4 * MILLISECOND;
	struct yielding yielding = {0};

	(void)state;
	yielding_learn(&yielding, NOW, ended);
	assert_false(yielding_pays(&yielding, ended));
	assert_false(yielding_pays(&yielding, ended + YIELDING_PAUSE - 1));
	assert_true(yielding_pays(&yielding, ended + YIELDING_PAUSE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yielding_pays__while_yields_are_short),
		cmocka_unit_test(yielding_pays__a_while_after_a_long_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
