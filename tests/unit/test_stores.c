/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stores.c - tests of base/stores.h: which stores are kept where each kind has a simulated
 * rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <base/random.h>
#include <base/stores.h>

#define FRAME (32u << 10) /* bytes of a copy */
#define MIB   (UINT64_C(1) << 20)

/* A pair's direction, and what a copy takes there. */
struct sender {
	struct stores stores;
	uint64_t now;
	unsigned cached, streamed; /* ns of a MiB */
	unsigned noise;            /* percent, up and down */
	uint64_t random;
	uint64_t streamed_bytes;
};

static struct sender sender_make(unsigned cached, unsigned streamed)
{
	struct sender sender = {
		.now = 5 * SECOND, .cached = cached, .streamed = streamed, .random = 1};

	stores_init(&sender.stores);
	return sender;
}

static void copy(struct sender *sender, uint32_t bytes)
{
	bool streams = stores_choose(&sender->stores, bytes, sender->now);
	uint64_t takes = (uint64_t)(streams ? sender->streamed : sender->cached) * bytes / MIB;

	if (sender->noise != 0)
		takes = takes *
			(100 - sender->noise +
				random_next(&sender->random) % (2 * sender->noise + 1)) /
			100;
	sender->now += takes;
	sender->streamed_bytes += streams ? bytes : 0;
}

/* Sends so many MiB; returns how many of a thousand bytes were streamed. */
static unsigned send(struct sender *sender, uint64_t mib)
{
	sender->streamed_bytes = 0;
	for (uint64_t sent = 0; sent < mib * MIB; sent += FRAME)
		copy(sender, FRAME);
	return (unsigned)(1000 * sender->streamed_bytes / (mib * MIB));
}

static void stores_choose__keeps_the_faster_kind(void **state)
{
	struct sender far = sender_make(450000, 65000), near = sender_make(60000, 85000);

	(void)state;
	assert_in_range(send(&far, 64), 1, 999);
	assert_in_range(send(&far, 4096), 990, 1000); /* trials have less than a hundredth */
	(void)send(&near, 64);
	assert_in_range(send(&near, 4096), 0, 10);
}

/* Kinds that are equally fast, or nearly, change nothing. */
static void stores_choose__changes_nothing_for_a_little(void **state)
{
	struct sender sender = sender_make(100000, 92000);

	(void)state;
	(void)send(&sender, 64);
	assert_in_range(send(&sender, 4096), 0, 10);
}

/* The threads wander from CPU to CPU. */
static void stores_choose__follows_rates_that_swap(void **state)
{
	struct sender sender = sender_make(60000, 85000);

	(void)state;
	(void)send(&sender, 2048);
	for (unsigned i = 0; i < 4; i++) {
		sender.cached = 450000;
		sender.streamed = 65000;
		(void)send(&sender, 1024 + 16);
		assert_in_range(send(&sender, 2048), 985, 1000);
		sender.cached = 60000;
		sender.streamed = 85000;
		(void)send(&sender, 1024 + 16);
		assert_in_range(send(&sender, 2048), 0, 15);
	}
}

static void stores_choose__is_not_misled_by_noise(void **state)
{
	struct sender far = sender_make(450000, 65000), near = sender_make(60000, 85000);

	(void)state;
	far.noise = near.noise = 30;
	(void)send(&far, 64);
	(void)send(&near, 64);
	assert_in_range(send(&far, 8192), 990, 1000);
	assert_in_range(send(&near, 8192), 0, 10);
}

/* A cold beginning makes cached stores, which come first, look slow. */
static void stores_choose__does_not_judge_new_memory(void **state)
{
	struct sender sender = sender_make(500000, 85000);

	(void)state;
	(void)send(&sender, STORES_COLD / MIB);
	sender.cached = 60000;
	assert_in_range(send(&sender, 2048), 0, 20); /* the first trials are close together */
	for (unsigned i = 0; i < 1000; i++) {        /* it grows again and again */
		stores_grow(&sender.stores);
		sender.cached = 500000;
		(void)send(&sender, 1);
		sender.cached = 60000;
		(void)send(&sender, 1);
	}
	assert_in_range(send(&sender, 2048), 0, 20);
}

/* A sender that computes between its messages is not slow because of its stores. */
static void stores_choose__judges_nothing_with_pauses_in_it(void **state)
{
	struct sender sender = sender_make(60000, 85000);

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		assert_false(stores_choose(&sender.stores, FRAME, sender.now));
		sender.now += i % 8 == 7 ? 2 * STORES_PAUSE : 2000;
	}
	assert_int_equal(sender.stores.kept, 0);
	/* One in a trial ends it. */
	while (!sender.stores.tries)
		copy(&sender, FRAME);
	sender.now += 2 * STORES_PAUSE;
	copy(&sender, FRAME);
	assert_false(sender.stores.tries);
	assert_false(sender.stores.streams);
}

static void stores_choose__gives_a_slow_trial_up_soon(void **state)
{
	struct sender sender = sender_make(60000, 6000000);

	(void)state;
	(void)send(&sender, 1024);
	assert_in_range(send(&sender, 4096), 0, 2);
	assert_false(sender.stores.streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_choose__keeps_the_faster_kind),
		cmocka_unit_test(stores_choose__changes_nothing_for_a_little),
		cmocka_unit_test(stores_choose__follows_rates_that_swap),
		cmocka_unit_test(stores_choose__is_not_misled_by_noise),
		cmocka_unit_test(stores_choose__does_not_judge_new_memory),
		cmocka_unit_test(stores_choose__judges_nothing_with_pauses_in_it),
		cmocka_unit_test(stores_choose__gives_a_slow_trial_up_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
