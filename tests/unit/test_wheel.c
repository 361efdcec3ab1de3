/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wheel.c - the timing wheel against a plain array of times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <base/clock.h>
#include <base/random.h>
#include <transport/wheel.h>

#define TIMERS 200
#define TICK   (UINT64_C(1) << WHEEL_TICK_SHIFT)

static uint64_t next_random(void)
{
	static uint64_t state = 1;

	return random_next(&state);
}

static void wheel_take__gives_a_timer_at_its_time_and_not_before(void **state)
{
	struct wheel wheel;
	struct timer timer = {0};

	(void)state;
	wheel_init(&wheel, 5000);
	wheel_set(&wheel, &timer, 100000);
	wheel_advance(&wheel, 99999);
	assert_null(wheel_take(&wheel));
	wheel_advance(&wheel, 100000 + TICK);
	assert_ptr_equal(wheel_take(&wheel), &timer);
	assert_false(timer_set(&timer));
	assert_null(wheel_take(&wheel));
}

static void wheel_set__of_a_past_time_is_due_in_the_next_run(void **state)
{
	struct wheel wheel;
	struct timer timer = {0}, later = {0};

	(void)state;
	wheel_init(&wheel, 5000000);
	wheel_advance(&wheel, 5000000);
	wheel_set(&wheel, &timer, 10);
	assert_null(wheel_take(&wheel));
	assert_int_equal(wheel_deadline(&wheel, 5000000), 0);
	/* Nor does one for much later hide it. */
	wheel_set(&wheel, &later, 5000000 + 1000000 * TICK);
	assert_true(wheel_is_due(&wheel, 5000000));
	wheel_advance(&wheel, 5000000);
	assert_ptr_equal(wheel_take(&wheel), &timer);
	assert_null(wheel_take(&wheel));
	assert_false(wheel_is_due(&wheel, 5000000));
}

static void wheel_stop__takes_a_timer_out(void **state)
{
	struct wheel wheel;
	struct timer timer = {0};

	(void)state;
	wheel_init(&wheel, 0);
	wheel_set(&wheel, &timer, 1000);
	wheel_stop(&timer);
	wheel_advance(&wheel, SECOND);
	assert_null(wheel_take(&wheel));
}

static void wheel_deadline__is_never_too_late(void **state)
{
	static const uint64_t times[] = {1, TICK, 255 * TICK, 256 * TICK, 257 * TICK, MILLISECOND,
		65535 * TICK, 65536 * TICK, SECOND, 20 * SECOND, 10000 * SECOND};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct wheel wheel;
		struct timer timer = {0};
		uint64_t now = 123456789;
		unsigned steps = 0;

		wheel_init(&wheel, now);
		assert_true(wheel_deadline(&wheel, now) == UINT64_MAX);
		wheel_set(&wheel, &timer, now + times[i]);
		for (;;) {
			uint64_t wait = wheel_deadline(&wheel, now);

			assert_true(now + wait <= 123456789 + times[i] + TICK);
			assert_true(++steps < 64);
			now += wait;
			wheel_advance(&wheel, now);
			if (wheel_take(&wheel) != NULL)
				break;
		}
		assert_true(now >= 123456789 + times[i]);
	}
}

static uint64_t random_span(void)
{
	return next_random() % (UINT64_C(1) << (10 + next_random() % 36));
}

static void wheel_next__is_when_something_becomes_due(void **state)
{
	struct wheel wheel;
	struct timer timers[TIMERS] = {0};
	uint64_t now = 123456789;
	unsigned found = 0;

	(void)state;
	wheel_init(&wheel, now);
	assert_true(wheel_next(&wheel) > UINT64_C(1) << 63);
	for (unsigned i = 0; i < TIMERS; i++)
		wheel_set(&wheel, &timers[i], now + 2 * TICK + next_random() % (1u << (i % 30)));
	while (wheel_next(&wheel) < UINT64_C(1) << 63) {
		now = wheel_next(&wheel);
		assert_false(wheel_is_due(&wheel, now - 1));
		assert_true(wheel_is_due(&wheel, now));
		wheel_advance(&wheel, now);
		while (wheel_take(&wheel) != NULL)
			found++;
	}
	assert_int_equal(found, TIMERS);
}

static void wheel_leave__keeps_the_rest_for_the_next_run(void **state)
{
	struct wheel wheel;
	struct timer timers[4] = {0};

	(void)state;
	wheel_init(&wheel, 5000);
	for (unsigned i = 0; i < 3; i++)
		wheel_set(&wheel, &timers[i], 100000 + i * TICK);
	wheel_advance(&wheel, 200000);
	assert_ptr_equal(wheel_take(&wheel), &timers[0]);
	wheel_set(&wheel, &timers[3], 10);
	wheel_leave(&wheel);
	assert_true(wheel_is_due(&wheel, 200000));
	assert_int_equal(wheel_deadline(&wheel, 200000), 0);
	wheel_advance(&wheel, 200000);
	for (unsigned i = 1; i < 4; i++)
		assert_ptr_equal(wheel_take(&wheel), &timers[i]);
	assert_null(wheel_take(&wheel));
	wheel_leave(&wheel);
	assert_false(wheel_is_due(&wheel, 200000));
	assert_int_equal(wheel_deadline(&wheel, 200000), UINT64_MAX);
}

static void wheel__agrees_with_an_array_of_times(void **state)
{
	static struct timer timers[TIMERS];
	static uint64_t times[TIMERS]; /* 0: not set */
	struct wheel wheel;
	uint64_t now = 1 + random_span();
	unsigned step;
	unsigned i;

	(void)state;
	wheel_init(&wheel, now);
	for (step = 0; step < 20000; step++) {
		struct timer *timer;

		i = (unsigned)(next_random() % TIMERS);
		if (next_random() % 8 == 0) {
			wheel_stop(&timers[i]);
			times[i] = 0;
		} else {
			times[i] = now + random_span();
			wheel_set(&wheel, &timers[i], times[i]);
		}
		now += random_span() / 4;
		wheel_advance(&wheel, now);
		while ((timer = wheel_take(&wheel)) != NULL) {
			i = (unsigned)(timer - timers);
			assert_true(times[i] != 0 && times[i] <= now);
			times[i] = 0;
		}
		for (i = 0; i < TIMERS; i++)
			assert_true(times[i] == 0 || times[i] > now - now % TICK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wheel_take__gives_a_timer_at_its_time_and_not_before),
		cmocka_unit_test(wheel_set__of_a_past_time_is_due_in_the_next_run),
		cmocka_unit_test(wheel_stop__takes_a_timer_out),
		cmocka_unit_test(wheel_deadline__is_never_too_late),
		cmocka_unit_test(wheel_next__is_when_something_becomes_due),
		cmocka_unit_test(wheel_leave__keeps_the_rest_for_the_next_run),
		cmocka_unit_test(wheel__agrees_with_an_array_of_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
