/* SPDX-License-Identifier: BSD-3-Clause */
/* test_eq.c - event queues (3.9): PtlEQAlloc, PtlEQFree, PtlEQGet, PtlEQWait. What events say is in
 * test_events.c.
 *
 * Covers: lib/p3/event.c, lib/host/events.c.
 */
#include "../nap.h"
#include "fixture.h"

/* A target whose events go to a queue of `count`, and an empty message for it. */
static ptl_handle_eq_t target_with(ptl_size_t count)
{
	ptl_handle_eq_t eq = queue_make(&there, count);

	target_of(&there, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	return eq;
}

static void put_many(unsigned count)
{
	ptl_handle_md_t md = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));

	for (unsigned i = 0; i < count; i++)
		assert_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, i));
	fence(&here, &there);
}

static void ptl_eq_alloc__makes_queues_of_any_count(void **state)
{
	const ptl_size_t counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4096};

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		ptl_handle_eq_t eq = queue_make(&here, counts[i]);

		expect_no_event(eq);
		assert_ok(PtlEQFree(eq));
	}
}

static void ptl_eq_alloc__of_none_makes_a_queue_that_loses_every_event(void **state)
{
	ptl_handle_eq_t eq = target_with(0);

	(void)state;
	expect_no_event(eq);
	put_many(3);
	expect_no_event(eq);
	assert_int_equal(drops(&there), 0);
	assert_ok(PtlEQFree(eq));
}

static void ptl_eq_alloc__says_nospace_for_more_events_than_memory_can_hold(void **state)
{
	const ptl_size_t counts[] = {UINT64_MAX, UINT64_MAX / 2 + 1, UINT64_MAX / 192, 1ull << 62,
		1ull << 40, 1ull << 36};
	ptl_handle_eq_t eq;

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++)
		assert_code(PtlEQAlloc(here.ni, counts[i], &eq), PTL_NOSPACE);
	queue_make(&here, 1);
}

static void ptl_eq_alloc__refuses_what_it_should(void **state)
{
	ptl_handle_eq_t eq;

	(void)state;
	assert_code(PtlEQAlloc(0, 1, &eq), PTL_INV_NI);
	assert_code(PtlEQAlloc(PTL_INVALID_HANDLE, 1, &eq), PTL_INV_NI);
	assert_code(PtlEQAlloc(queue_make(&here, 1), 1, &eq), PTL_INV_NI);
	assert_code(PtlEQAlloc(here.ni, 1, NULL), PTL_SEGV);
	assert_code(PtlEQAlloc(here.ni, 1, WILD), PTL_SEGV);
}

static void ptl_eq_free__makes_the_handle_invalid_for_good(void **state)
{
	ptl_handle_eq_t stale = queue_make(&here, 4), eq;
	ptl_event_t event;

	(void)state;
	assert_ok(PtlEQFree(stale));
	for (int i = 0; i < 200; i++) {
		eq = queue_make(&here, 4);
		assert_true(eq != stale);
		assert_code(PtlEQGet(stale, &event), PTL_INV_EQ);
		assert_code(PtlEQWait(stale, &event), PTL_INV_EQ);
		assert_code(PtlEQFree(stale), PTL_INV_EQ);
		assert_ok(PtlEQFree(eq));
	}
}

static void ptl_eq_free__gives_the_memory_of_the_events_back(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) /* far more than could exist at once */
		assert_ok(PtlEQFree(queue_make(&here, 100000)));
}

static void ptl_eq_free__of_different_sizes_in_any_order_leaves_room_for_a_large_one(void **state)
{
	ptl_handle_eq_t eqs[16];

	(void)state;
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < COUNT(eqs); i++)
			eqs[i] = queue_make(
				&here, (i * 7919u + (size_t)round * 104729u) % 20000u + 1u);
		for (size_t i = 0; i < COUNT(eqs); i++)
			assert_ok(PtlEQFree(eqs[(i * 5) % COUNT(eqs)]));
		assert_ok(PtlEQFree(queue_make(&here, 400000)));
	}
}

static void ptl_eq_free__gives_a_queue_without_the_events_of_the_last_one(void **state)
{
	ptl_handle_eq_t eq;

	(void)state;
	for (int i = 0; i < 20; i++) {
		ptl_handle_me_t me;

		eq = queue_make(&there, 4);
		expect_no_event(eq);
		me = entry_make(&there, 0, EVERY_BIT, PTL_RETAIN);
		region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
		put_many(3);
		assert_ok(PtlMEUnlink(me));
		assert_ok(PtlEQFree(eq));
	}
}

static void ptl_eq_free__under_a_descriptor_in_use_loses_its_events_and_nothing_else(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlEQFree(target.eq));
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_ACK);
	assert_ok(PtlMDUnlink(target.md));
}

static void ptl_eq_free__refuses_what_is_no_queue(void **state)
{
	(void)state;
	assert_code(PtlEQFree(PTL_EQ_NONE), PTL_INV_EQ);
	assert_code(PtlEQFree(PTL_INVALID_HANDLE), PTL_INV_EQ);
	assert_code(PtlEQFree(here.ni), PTL_INV_EQ);
	assert_code(PtlEQFree(entry_make(&here, 0, 0, PTL_RETAIN)), PTL_INV_EQ);
}

static void ptl_eq_get__returns_the_oldest_event_and_removes_it(void **state)
{
	ptl_handle_eq_t eq = target_with(EQ_ROOM);

	(void)state;
	put_many(5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(expect_pair(eq, PTL_EVENT_PUT_START).hdr_data, i);
	expect_no_event(eq);
}

static void ptl_eq_get__refuses_what_it_should(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, 1);
	ptl_event_t event;

	(void)state;
	assert_code(PtlEQGet(PTL_EQ_NONE, &event), PTL_INV_EQ);
	assert_code(PtlEQGet(PTL_INVALID_HANDLE, &event), PTL_INV_EQ);
	assert_code(PtlEQGet(here.ni, &event), PTL_INV_EQ);
	assert_code(PtlEQGet(eq, NULL), PTL_SEGV);
	assert_code(PtlEQGet(eq, WILD), PTL_SEGV);
	assert_code(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
}

static void ptl_eq_wait__refuses_what_it_should(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, 1);
	ptl_event_t event;

	(void)state;
	assert_code(PtlEQWait(PTL_EQ_NONE, &event), PTL_INV_EQ);
	assert_code(PtlEQWait(PTL_INVALID_HANDLE, &event), PTL_INV_EQ);
	assert_code(PtlEQWait(here.ni, &event), PTL_INV_EQ);
	assert_code(PtlEQWait(eq, NULL), PTL_SEGV);
	assert_code(PtlEQWait(eq, WILD), PTL_SEGV);
}

static void ptl_eq_get__says_dropped_with_the_first_event_after_a_gap_and_only_then(void **state)
{
	(void)state;
	for (ptl_size_t count = 1; count <= 8; count++) {
		ptl_handle_eq_t eq = queue_make(&there, count);
		ptl_handle_me_t me = entry_make(&there, 0, EVERY_BIT, PTL_RETAIN);
		ptl_event_t event;

		region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
		for (int round = 0; round < 3; round++) {
			put_many((unsigned)count + 1); /* two events each */
			for (ptl_size_t i = 0; i < count; i++)
				event = i == 0 && round > 0 ? next_event_after(eq) : next_event(eq);
			(void)event;
			expect_no_event(eq);
		}
		put_many(1);
		event = next_event_after(eq);
		assert_int_equal(event.type, PTL_EVENT_PUT_START);
		if (count > 1)
			expect_event(eq, PTL_EVENT_PUT_END);
		expect_no_event(eq);
		assert_ok(PtlMEUnlink(me));
		assert_ok(PtlEQFree(eq));
	}
}

static void ptl_eq_get__keeps_exactly_as_many_events_as_were_asked_for(void **state)
{
	const ptl_size_t counts[] = {1, 3, 5, 6, 7, 12, 100};

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		ptl_handle_eq_t eq = queue_make(&there, counts[i]);
		ptl_handle_me_t me = entry_make(&there, 0, EVERY_BIT, PTL_RETAIN);

		region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
		put_many((unsigned)counts[i]);
		for (ptl_size_t n = 0; n < counts[i]; n++) {
			ptl_event_t event = next_event(eq);

			assert_int_equal(
				event.type, n % 2 == 0 ? PTL_EVENT_PUT_START : PTL_EVENT_PUT_END);
			assert_int_equal(event.hdr_data, n / 2);
		}
		expect_no_event(eq);
		assert_ok(PtlMEUnlink(me));
		assert_ok(PtlEQFree(eq));
	}
}

static void ptl_eq_get__says_dropped_in_the_middle_when_room_came_back_in_time(void **state)
{
	ptl_handle_eq_t eq = target_with(4);

	(void)state;
	put_many(3); /* START END START END, and two that are lost */
	expect_event(eq, PTL_EVENT_PUT_START);
	expect_event(eq, PTL_EVENT_PUT_END);
	put_many(1);
	expect_event(eq, PTL_EVENT_PUT_START);
	expect_event(eq, PTL_EVENT_PUT_END);
	assert_int_equal(next_event_after(eq).type, PTL_EVENT_PUT_START);
	expect_event(eq, PTL_EVENT_PUT_END);
	expect_no_event(eq);
}

static void ptl_eq_wait__says_dropped_as_ptl_eq_get_does(void **state)
{
	ptl_handle_eq_t eq = target_with(2);
	ptl_event_t event;

	(void)state;
	put_many(2);
	assert_ok(PtlEQWait(eq, &event));
	assert_ok(PtlEQWait(eq, &event));
	put_many(1);
	assert_code(PtlEQWait(eq, &event), PTL_EQ_DROPPED);
	assert_int_equal(event.type, PTL_EVENT_PUT_START);
	assert_ok(PtlEQWait(eq, &event));
}

static void full_queue__loses_events_and_no_operation(void **state)
{
	static char from[8], to[64];
	ptl_handle_eq_t eq = queue_make(&there, 1);
	struct end source = source_make(&here, from, sizeof(from));

	(void)state;
	target_of(&there, region(to, sizeof(to), PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	for (unsigned i = 0; i < 8; i++) {
		pattern_fill(from, sizeof(from), i);
		put_acked(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		expect_event(source.eq, PTL_EVENT_ACK);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_true(pattern_is(to + (size_t)i * 8, 8, i));
	assert_int_equal(drops(&there), 0);
}

static void ptl_eq_wait__returns_at_once_what_is_there(void **state)
{
	ptl_handle_eq_t eq = target_with(4);
	ptl_event_t event;

	(void)state;
	put_many(1);
	assert_ok(PtlEQWait(eq, &event));
	assert_int_equal(event.type, PTL_EVENT_PUT_START);
	assert_ok(PtlEQWait(eq, &event));
	assert_int_equal(event.type, PTL_EVENT_PUT_END);
	expect_no_event(eq);
}

static void ptl_eq_wait__blocks_until_an_event_comes(void **state)
{
	ptl_handle_eq_t eq = target_with(4);
	struct waiter waiter;

	(void)state;
	for (int i = 0; i < 10; i++) {
		waiter_start(&waiter, eq);
		waiter_settle(&waiter);
		assert_false(atomic_load(&waiter.back));
		put_many(1);
		waiter_join(&waiter);
		assert_ok(waiter.code);
		assert_int_equal(waiter.event.type, PTL_EVENT_PUT_START);
		expect_event(eq, PTL_EVENT_PUT_END);
	}
}

static void ptl_eq_wait__lets_a_program_of_one_thread_make_progress_on_both_interfaces(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT | PTL_MD_OP_GET);
	struct end source = source_make(&here, NULL, 0);
	ptl_event_t event;

	(void)state;
	put_acked(source.md, &there, 0);
	assert_ok(PtlEQWait(target.eq, &event));
	assert_int_equal(event.type, PTL_EVENT_PUT_START);
	assert_ok(PtlEQWait(target.eq, &event));
	for (int i = 0; i < 3; i++)
		assert_ok(PtlEQWait(source.eq, &event));
	assert_int_equal(event.type, PTL_EVENT_ACK);
	get_from(source.md, &there, 0);
	assert_ok(PtlEQWait(source.eq, &event));
	assert_int_equal(event.type, PTL_EVENT_REPLY_START);
	assert_ok(PtlEQWait(source.eq, &event));
}

static void ptl_eq_get__sees_an_empty_queue_while_another_thread_waits(void **state)
{
	ptl_handle_eq_t eq = target_with(1); /* room for START alone: one event comes */
	ptl_handle_md_t md = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	struct waiter waiter;
	ptl_event_t event;

	(void)state;
	waiter_start(&waiter, eq);
	waiter_settle(&waiter);
	put_to(md, &there, 0);
	while (!atomic_load(&waiter.back)) {
		int code = PtlEQGet(eq, &event);

		/* Once the waiter has its event it is no longer waiting, and END may have found
		 * room. */
		if (code != PTL_EQ_EMPTY) {
			assert_int_equal(event.type, PTL_EVENT_PUT_END);
			break;
		}
		nap();
	}
	waiter_join(&waiter);
	assert_ok(waiter.code);
	assert_int_equal(waiter.event.type, PTL_EVENT_PUT_START);
}

static void ptl_eq_wait__wakes_exactly_one_thread_for_each_event(void **state)
{
	enum { WAITERS = 8 };
	ptl_handle_eq_t eq = target_with(EQ_ROOM);
	struct waiter waiters[WAITERS];
	unsigned back = 0;

	(void)state;
	for (size_t i = 0; i < WAITERS; i++)
		waiter_start(&waiters[i], eq);
	for (size_t i = 0; i < WAITERS; i++)
		waiter_settle(&waiters[i]);
	for (unsigned events = 2; events <= WAITERS; events += 2) {
		put_many(1); /* two events */
		do {
			back = 0;
			for (size_t i = 0; i < WAITERS; i++)
				back += atomic_load(&waiters[i].back);
			nap();
		} while (back < events);
		assert_int_equal(back, events);
	}
	for (size_t i = 0; i < WAITERS; i++) {
		waiter_join(&waiters[i]);
		assert_ok(waiters[i].code);
		for (size_t j = 0; j < i; j++)
			assert_true(waiters[i].event.sequence != waiters[j].event.sequence);
	}
	expect_no_event(eq);
}

static void ptl_eq_free__wakes_threads_that_wait(void **state)
{
	enum { WAITERS = 4 };
	ptl_handle_eq_t eq = queue_make(&here, 1);
	struct waiter waiters[WAITERS];

	(void)state;
	for (size_t i = 0; i < WAITERS; i++)
		waiter_start(&waiters[i], eq);
	for (size_t i = 0; i < WAITERS; i++)
		waiter_settle(&waiters[i]);
	assert_ok(PtlEQFree(eq));
	for (size_t i = 0; i < WAITERS; i++) {
		waiter_join(&waiters[i]);
		assert_code(waiters[i].code, PTL_INV_EQ);
	}
}

static void several_descriptors__may_share_a_queue(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_md_t mds[4];

	(void)state;
	for (size_t i = 0; i < COUNT(mds); i++)
		mds[i] = region_attach(entry_make(&here, i, 0, PTL_RETAIN),
			region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
	for (size_t i = COUNT(mds); i-- > 0;) {
		ptl_handle_md_t md = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));

		put_to(md, &here, i);
		assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == mds[i]);
	}
}

static void no_queue__means_that_nothing_is_logged_and_all_else_works(void **state)
{
	static char from[8], to[8];
	struct end source = source_make(&here, from, sizeof(from));

	(void)state;
	region_attach(entry_make(&there, 0, 0, PTL_RETAIN),
		region(to, sizeof(to), PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN);
	pattern_fill(from, sizeof(from), 4);
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	assert_int_equal(expect_event(source.eq, PTL_EVENT_ACK).mlength, 8);
	assert_true(pattern_is(to, sizeof(to), 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(ptl_eq_alloc__makes_queues_of_any_count),
		TEST_BOTH(ptl_eq_alloc__of_none_makes_a_queue_that_loses_every_event),
		TEST_BOTH(ptl_eq_alloc__says_nospace_for_more_events_than_memory_can_hold),
		TEST_BOTH(ptl_eq_alloc__refuses_what_it_should),
		TEST_BOTH(ptl_eq_free__makes_the_handle_invalid_for_good),
		TEST_BOTH(ptl_eq_free__gives_the_memory_of_the_events_back),
		TEST_BOTH(ptl_eq_free__of_different_sizes_in_any_order_leaves_room_for_a_large_one),
		TEST_BOTH(ptl_eq_free__gives_a_queue_without_the_events_of_the_last_one),
		TEST_BOTH(ptl_eq_free__under_a_descriptor_in_use_loses_its_events_and_nothing_else),
		TEST_BOTH(ptl_eq_free__refuses_what_is_no_queue),
		TEST_BOTH(ptl_eq_get__returns_the_oldest_event_and_removes_it),
		TEST_BOTH(ptl_eq_get__refuses_what_it_should),
		TEST_BOTH(ptl_eq_wait__refuses_what_it_should),
		TEST_BOTH(ptl_eq_get__says_dropped_with_the_first_event_after_a_gap_and_only_then),
		TEST_BOTH(ptl_eq_get__keeps_exactly_as_many_events_as_were_asked_for),
		TEST_BOTH(ptl_eq_get__says_dropped_in_the_middle_when_room_came_back_in_time),
		TEST_BOTH(ptl_eq_wait__says_dropped_as_ptl_eq_get_does),
		TEST_BOTH(full_queue__loses_events_and_no_operation),
		TEST_BOTH(ptl_eq_wait__returns_at_once_what_is_there),
		TEST_BOTH(ptl_eq_wait__blocks_until_an_event_comes),
		TEST_BOTH(
			ptl_eq_wait__lets_a_program_of_one_thread_make_progress_on_both_interfaces),
		TEST_BOTH(ptl_eq_get__sees_an_empty_queue_while_another_thread_waits),
		TEST_BOTH(ptl_eq_wait__wakes_exactly_one_thread_for_each_event),
		TEST_BOTH(ptl_eq_free__wakes_threads_that_wait),
		TEST_BOTH(several_descriptors__may_share_a_queue),
		TEST_BOTH(no_queue__means_that_nothing_is_logged_and_all_else_works),
	};

	return cmocka_run_group_tests_name("eq", tests, group_open, group_close);
}
