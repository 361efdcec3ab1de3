/* SPDX-License-Identifier: BSD-3-Clause */
/* test_window.c - tests of what memory the two ends of a pair use: windows that grow and shrink,
 * and budgets. Covers: pmd-glue/pair.c. */
#include "pair_rig.h"

#include <sys/mman.h>

#define SIXTEEN_LONG UINT64_C(533504)

/* Bytes of the bulk of the first direction that have memory. */
static size_t bulk_memory(void)
{
	unsigned char there[PAIR_BULK / 4096];
	size_t pages = 0;

	assert_int_equal(
		mincore((uint8_t *)alias + 4096 + 2 * PAIR_SLOTS * (size_t)256, PAIR_BULK, there),
		0);
	for (unsigned n = 0; n < PAIR_BULK / 4096; n++)
		pages += there[n] & 1;
	return pages * 4096;
}

static void exchange(struct ends ends, unsigned frames, unsigned at_once, uint32_t tail)
{
	for (; frames > 0; frames -= at_once) {
		for (unsigned n = 0; n < at_once; n++)
			send_one(ends.a, frame_of(300, tail));
		for (unsigned n = 0; n < at_once; n++)
			expect_one(ends.b, 300 + tail);
	}
}

static void pair_transmit__stays_in_a_small_window_while_little_is_in_flight(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	exchange(ends, 4096, 4, 1000);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	/* The window grows for a long frame, but not by each one. */
	exchange(ends, 512, 1, 33000);
	assert_in_range(bulk_memory(), 33000, 65536);
	exchange(ends, 512, 16, 33000);
	assert_in_range(bulk_memory(), 16 * 33000, PAIR_BULK);
	assert_int_equal(pair_count(ends.a).full, 0);
	ends_close(ends);
}

static void pair_rest__gives_back_what_is_not_needed_any_more(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *held;
	size_t used;

	(void)state;
	exchange(ends, 256, 16, 33000);
	used = bulk_memory();
	/* Half of it was in flight at times. */
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), used);
	/* It was not any more: half of it goes, and what is in flight stays what it was. */
	exchange(ends, 64, 1, 1000);
	send_one(ends.a, frame_of(300, 1000));
	held = take_one(ends.b);
	for (unsigned n = 0; n < 8; n++) {
		exchange(ends, 64, 1, 1000);
		pair_rest(ends.a);
	}
	assert_in_range(bulk_memory(), PAIR_WINDOW, used);
	assert_memory_equal(rte_pktmbuf_mtod(held->next, void *), data + 300, 1000);
	rte_pktmbuf_free(held);
	assert_true(takes_nothing(ends.b));
	exchange(ends, 64, 1, 1000);
	assert_true(takes_nothing(ends.b));
	pair_rest(ends.a);
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	assert_true(pair_sound(ends.a) && pair_sound(ends.b));
	ends_close(ends);
}

/* 16 frames of 320 and 33,024 bytes of bulk, all of which are free: the window has 768 KiB, of
 * which 533,504 bytes are used. Returns the bytes that have memory. */
static size_t sixteen_long(struct ends ends)
{
	exchange(ends, 16, 16, 33000);
	pair_rest(ends.a); /* more than a quarter was in flight */
	return bulk_memory();
}

/* A frame is held, and so many long ones have come before and after it. Half of the window is
 * 384 KiB. */
static void rest_while_held(unsigned before, unsigned after)
{
	struct ends ends = ends_open();
	struct rte_mbuf *held;
	size_t used;

	(void)sixteen_long(ends);
	exchange(ends, before, 1, 33000);
	send_one(ends.a, frame_of(300, 33000));
	held = take_one(ends.b);
	exchange(ends, after, 1, 33000);
	used = bulk_memory();
	for (unsigned n = 0; n < 3; n++)
		pair_rest(ends.a);
	assert_int_equal(bulk_memory(), used);
	assert_memory_equal(rte_pktmbuf_mtod(held->next, void *), data + 300, 33000);
	rte_pktmbuf_free(held);
	assert_true(takes_nothing(ends.b));
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	ends_close(ends);
}

static void pair_rest__keeps_what_is_in_flight_beyond_the_next_window(void **state)
{
	(void)state;
	rest_while_held(0, 0);
	rest_while_held(0, 1);
	/* From byte 600,192 on: less than a quarter is in flight when the fifth begins a lap. */
	rest_while_held(2, 6);
}

static void pair_rest__keeps_what_a_peer_says_is_in_flight(void **state)
{
	struct ends ends = ends_open();
	size_t used;

	(void)state;
	used = sixteen_long(ends);
	atomic_store(word_at(FREED(0)), SIXTEEN_LONG - 64);
	for (unsigned n = 0; n < 3; n++)
		pair_rest(ends.a);
	assert_true(pair_sound(ends.a));
	assert_int_equal(bulk_memory(), used);
	atomic_store(word_at(FREED(0)), SIXTEEN_LONG);
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	ends_close(ends);
}

static void pair_rest__ends_the_pair_for_a_position_that_cannot_be(void **state)
{
	static const uint64_t freed[] = {UINT64_MAX - 63, SIXTEEN_LONG + 64};

	(void)state;
	for (unsigned n = 0; n < sizeof(freed) / sizeof(freed[0]); n++) {
		struct ends ends = ends_open();
		size_t used = sixteen_long(ends);

		atomic_store(word_at(FREED(0)), freed[n]);
		pair_rest(ends.a);
		assert_false(pair_sound(ends.a));
		assert_int_equal(bulk_memory(), used);
		ends_close(ends);
	}
}

static void pair_transmit__keeps_to_its_budget_and_has_room_for_any_frame(void **state)
{
	struct pair_budget budget = {.most = 4 * PAIR_WINDOW};
	struct rte_mbuf *frame = frame_of(300, 1000);
	struct pair *others[4];
	unsigned sent = 0;
	struct ends ends;

	(void)state;
	memory_make();
	for (unsigned n = 0; n < 3; n++)
		others[n] = pair_open(memory, 0, pool, FRAME_SIZE, &budget);
	ends.a = pair_open(memory, 0, pool, FRAME_SIZE, &budget);
	ends.b = end_open(1);
	/* Half of what the others leave: it does not grow. */
	while (pair_transmit(ends.a, &frame, 1) == 1) {
		frame = frame_of(300, 1000);
		sent++;
	}
	assert_int_equal(sent, PAIR_WINDOW / (320 + 1024));
	while (sent-- > 0)
		expect_one(ends.b, 1300);
	send_one(ends.a, frame);
	expect_one(ends.b, 1300);
	/* The longest frame there is, once the sender knows that all is free. */
	assert_true(takes_nothing(ends.b));
	for (unsigned n = 0; n < 64; n++) {
		send_one(ends.a, frame_of(FRAME_SIZE, 0));
		expect_one(ends.b, FRAME_SIZE);
	}
	assert_in_range(bulk_memory(), FRAME_SIZE, FRAME_SIZE + PAIR_WINDOW);
	for (unsigned n = 0; n < 3; n++)
		pair_close(others[n]);
	unmapped = 0;
	pair_close(ends.a);
	pair_close(ends.b);
	assert_int_equal(budget.used, 0);
	memory_drop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair_transmit__stays_in_a_small_window_while_little_is_in_flight),
		cmocka_unit_test(pair_rest__gives_back_what_is_not_needed_any_more),
		cmocka_unit_test(pair_rest__keeps_what_is_in_flight_beyond_the_next_window),
		cmocka_unit_test(pair_rest__keeps_what_a_peer_says_is_in_flight),
		cmocka_unit_test(pair_rest__ends_the_pair_for_a_position_that_cannot_be),
		cmocka_unit_test(pair_transmit__keeps_to_its_budget_and_has_room_for_any_frame),
	};

	return cmocka_run_group_tests(tests, pool_make, NULL);
}
