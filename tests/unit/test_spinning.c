/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spinning.c - tests of base/spinning.h: limits after sequences of waits, and two threads that
 * wait for each other, whose sleeps and wake-ups are simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <base/spinning.h>

#define NOW    (5 * SECOND)
#define SHORT  MICROSECOND
#define LONG   (10 * MILLISECOND)
#define WIRE   MICROSECOND /* of a simulated message, work for its answer included */
#define ROUNDS 200u

/* How long a thread that begins to wait now would spin, to a tenth of a microsecond. */
static uint64_t spins_of(struct spinning spinning, uint64_t now)
{
	uint64_t passed = 0;

	while (spinning_goes_on(&spinning, now + passed))
		passed += MICROSECOND / 10;
	return passed;
}

/* A wait from now on that takes so long. */
static void wait_for(struct spinning *spinning, uint64_t now, uint64_t took)
{
	(void)spinning_goes_on(spinning, now);
	for (uint64_t passed = 0; passed < took && spinning->slept == 0; passed += MICROSECOND / 10)
		(void)spinning_goes_on(spinning, now + passed);
	spinning_end(spinning, now + took);
}

static void spinning_goes_on__for_so_long_and_then_sleeps(void **state)
{
	struct spinning spinning = {0};

	(void)state;
	assert_true(spinning_goes_on(&spinning, NOW));
	assert_true(spinning_goes_on(&spinning, NOW + SPINNING_MOST - 1));
	assert_true(spinning_goes_on(&spinning, NOW - 50)); /* another CPU's clock */
	assert_false(spinning_goes_on(&spinning, NOW + SPINNING_MOST));
	/* Woken in vain it sleeps again at once. */
	assert_false(spinning_goes_on(&spinning, NOW + 2 * SPINNING_MOST));
	spinning_end(&spinning, NOW + LONG);
	assert_true(spinning_goes_on(&spinning, NOW + LONG));
}

static void spinning_end__of_long_waits_halves_the_limit(void **state)
{
	static const uint64_t tenths[] = {500, 250, 125, 63, 50, 50};
	struct spinning spinning = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++) {
		assert_int_equal(spins_of(spinning, NOW), tenths[i] * MICROSECOND / 10);
		wait_for(&spinning, NOW, LONG);
	}
	wait_for(&spinning, NOW, SPINNING_SOON); /* still long */
	assert_int_equal(spins_of(spinning, NOW), SPINNING_LEAST);
	wait_for(&spinning, NOW, SPINNING_SOON - 1);
	assert_int_equal(spins_of(spinning, NOW), SPINNING_MOST);
	wait_for(&spinning, NOW, LONG);
	wait_for(&spinning, NOW, SHORT);
	assert_int_equal(spins_of(spinning, NOW), SPINNING_MOST);
}

/* A look that finds something at once says nothing. */
static void spinning_end__without_a_wait_changes_nothing(void **state)
{
	struct spinning spinning = {0};

	(void)state;
	wait_for(&spinning, NOW, LONG);
	for (unsigned i = 0; i < 10; i++)
		spinning_end(&spinning, 0);
	assert_int_equal(spins_of(spinning, NOW), SPINNING_MOST / 2);
}

static void spinning_end__of_waits_in_vain_makes_a_pause(void **state)
{
	const uint64_t vain = SPINNING_MOST + 20 * MICROSECOND;
	struct spinning spinning = {0};

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		uint64_t now = NOW + round * SECOND, end;

		for (unsigned i = 0; i < SPINNING_VAIN; i++, now += vain) {
			assert_int_equal(spins_of(spinning, now), SPINNING_MOST);
			wait_for(&spinning, now, vain);
		}
		end = now + SPINNING_PAUSE;
		assert_int_equal(spins_of(spinning, now), SPINNING_LEAST);
		wait_for(&spinning, now, SHORT);
		wait_for(&spinning, now, vain);
		assert_int_equal(spins_of(spinning, end - LONG), SPINNING_LEAST);
		assert_int_equal(spins_of(spinning, end), SPINNING_MOST);
	}
}

static void spinning_end__of_a_wait_that_was_worth_while_forgets_those_in_vain(void **state)
{
	const uint64_t vain = SPINNING_MOST + 20 * MICROSECOND;
	/* found while it spun; woken too late to blame the peer for it */
	static const uint64_t others[] = {SHORT, SPINNING_MOST + SPINNING_AGAIN};
	struct spinning spinning = {0};

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned n = 1; n < SPINNING_VAIN; n++)
			wait_for(&spinning, NOW, vain);
		wait_for(&spinning, NOW, others[i % 2]);
		assert_int_equal(spins_of(spinning, NOW), SPINNING_MOST);
	}
}

static void spinning_asks__once_in_a_wait_that_lasts(void **state)
{
	struct spinning spinning = {0};

	(void)state;
	for (unsigned wait = 0; wait < 5; wait++) {
		unsigned asked = 0;

		for (uint64_t now = NOW; spinning_goes_on(&spinning, now); now += 100) {
			bool asks = spinning_asks(&spinning, now);

			assert_false(asks && now < NOW + SPINNING_LEAST);
			asked += asks;
		}
		assert_int_equal(asked, 1);
		spinning_end(&spinning, NOW + SPINNING_MOST + 1);
		wait_for(&spinning, NOW, SHORT);
	}
}

/* Who sleeps for a peer on its own CPU has not spun in vain. */
static void spinning_stop__makes_no_pause(void **state)
{
	struct spinning spinning = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		assert_true(spinning_goes_on(&spinning, NOW));
		spinning_stop(&spinning, NOW + SPINNING_LEAST);
		assert_false(spinning_goes_on(&spinning, NOW + SPINNING_LEAST));
		spinning_end(&spinning, NOW + 2 * SPINNING_LEAST);
		assert_int_equal(spins_of(spinning, NOW), SPINNING_MOST);
	}
}

/* --- two threads */

/* Both have waited for so long that they hardly spin. */
static void make_sleepy(struct spinning *spinning)
{
	for (unsigned i = 0; i < 8; i++)
		wait_for(spinning, NOW, LONG);
	assert_int_equal(spins_of(*spinning, NOW), SPINNING_LEAST);
}

/* The peer's message arrives; a thread that sleeps needs `wake` to see it. Returns when it does. */
static uint64_t see(struct spinning *spinning, uint64_t began, uint64_t arrival, uint64_t wake)
{
	bool sleeps = arrival >= began + spins_of(*spinning, began);
	uint64_t seen = sleeps ? arrival + wake : arrival;

	wait_for(spinning, began, seen - began);
	return seen;
}

/* Messages to and fro on two CPUs. Returns how long the last one took. */
static uint64_t exchange(struct spinning *a, struct spinning *b, uint64_t wake)
{
	struct spinning *threads[] = {a, b};
	uint64_t began[] = {NOW, NOW}, now = NOW, took = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct spinning *to = threads[i % 2];
		uint64_t seen = see(to, began[i % 2], now + WIRE, wake);

		took = seen - now;
		now = seen;
		began[i % 2] = now; /* it answers, and waits again */
	}
	return took;
}

static void two_threads_find_out_that_they_need_not_sleep(void **state)
{
	(void)state;
	for (uint64_t wake = 10; wake <= 100; wake++) {
		struct spinning a = {0}, b = {0};

		assert_int_equal(exchange(&a, &b, wake * MICROSECOND), WIRE);
		make_sleepy(&a);
		make_sleepy(&b);
		assert_int_equal(exchange(&a, &b, wake * MICROSECOND), WIRE);
	}
}

/* Each runs once the other sleeps. Returns how many waits of the first spin for SPINNING_MOST. */
static unsigned share_a_cpu(uint64_t change, uint64_t *longest)
{
	struct spinning threads[2] = {{0}, {0}};
	uint64_t now = NOW;
	unsigned spun = 0;

	*longest = 0;
	for (unsigned i = 0; i < ROUNDS && now < NOW + SPINNING_PAUSE / 2; i++) {
		struct spinning *waits = &threads[i % 2], *runs = &threads[1 - i % 2];
		uint64_t spins = spins_of(*waits, now);

		spun += i % 2 == 0 && spins == SPINNING_MOST;
		*longest = spins;
		for (uint64_t passed = 0; passed <= spins; passed += MICROSECOND / 10)
			(void)spinning_goes_on(waits, now + passed);
		assert_true(waits->slept != 0);
		now += spins + change;
		if (runs->began != 0)
			spinning_end(runs, now); /* the message was there already */
	}
	return spun;
}

static void two_threads_of_one_cpu_stop_spinning(void **state)
{
	(void)state;
	for (uint64_t change = 1; change <= 20; change++) {
		uint64_t longest;

		assert_in_range(share_a_cpu(change * MICROSECOND, &longest), 1, SPINNING_VAIN);
		assert_int_equal(longest, SPINNING_LEAST);
	}
}

/* --- a CPU that is shared */

static void crowding_moves__after_wakes_in_a_row_and_then_pauses(void **state)
{
	struct crowding crowding = {0};
	uint64_t now = NOW;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 1; i < CROWDING_WAKES; i++)
			assert_false(crowding_moves(&crowding, true, now));
		/* Woken from elsewhere, or by the time: it begins anew. */
		assert_false(crowding_moves(&crowding, false, now));
		for (unsigned i = 1; i < CROWDING_WAKES; i++)
			assert_false(crowding_moves(&crowding, true, now));
		assert_true(crowding_moves(&crowding, true, now));
		/* It did not help: not again before the pause is over. */
		for (unsigned i = 0; i < 3 * CROWDING_WAKES; i++)
			assert_false(crowding_moves(&crowding, true, now + CROWDING_PAUSE - 1));
		assert_true(crowding_moves(&crowding, true, now + CROWDING_PAUSE));
		now += SECOND;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spinning_goes_on__for_so_long_and_then_sleeps),
		cmocka_unit_test(spinning_end__of_long_waits_halves_the_limit),
		cmocka_unit_test(spinning_end__without_a_wait_changes_nothing),
		cmocka_unit_test(spinning_end__of_waits_in_vain_makes_a_pause),
		cmocka_unit_test(
			spinning_end__of_a_wait_that_was_worth_while_forgets_those_in_vain),
		cmocka_unit_test(spinning_asks__once_in_a_wait_that_lasts),
		cmocka_unit_test(spinning_stop__makes_no_pause),
		cmocka_unit_test(two_threads_find_out_that_they_need_not_sleep),
		cmocka_unit_test(two_threads_of_one_cpu_stop_spinning),
		cmocka_unit_test(crowding_moves__after_wakes_in_a_row_and_then_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
