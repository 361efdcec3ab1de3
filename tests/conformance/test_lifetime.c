/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lifetime.c - how long a memory descriptor accepts, and when it goes by itself (3.8):
 * threshold, max_offset, and the two ways to unlink. */
#include "fixture.h"

static char memory[4096];

/* The last operation of a descriptor has ended: UNLINK follows with its link. */
static void expect_unlinked(const struct end *end, ptl_event_t last)
{
	assert_true(expect_event(end->eq, PTL_EVENT_UNLINK).link == last.link);
	assert_code(PtlMDUnlink(end->md), PTL_INV_MD);
}

/* Threshold */

static void threshold__is_the_number_of_operations_that_are_accepted(void **state)
{
	ptl_md_t md = region(memory, sizeof(memory), PTL_MD_OP_PUT | PTL_MD_OP_GET, PTL_EQ_NONE);
	struct end source = source_make(&here, memory, 4),
		   target = target_of(&there, limited(md, 3), PTL_RETAIN, PTL_RETAIN);

	(void)state;
	put_to(source.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mem_desc.threshold, 2);
	get_from(source.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_GET_START).mem_desc.threshold, 1);
	put_to(source.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mem_desc.threshold, 0);
	put_to(source.md, &there, 0);
	fence(&here, &there);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 1);
}

static void threshold__infinite_stays_infinite(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	for (int i = 0; i < 100; i++) {
		put_to(source.md, &there, 0);
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mem_desc.threshold,
			PTL_MD_THRESH_INF);
		assert_int_equal(expect_pair(source.eq, PTL_EVENT_SEND_START).mem_desc.threshold,
			PTL_MD_THRESH_INF);
	}
}

static void threshold__of_zero_makes_an_inactive_descriptor_that_is_not_unlinked(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), 0), now;
	struct end source = source_make(&here, NULL, 0),
		   target = target_of(&there, md, PTL_UNLINK, PTL_UNLINK);

	(void)state;
	put_to(source.md, &there, 0);
	fence(&here, &there);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 1);
	assert_ok(PtlMDUpdate(target.md, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.threshold, 0);
}

static void threshold__falls_by_one_for_a_send_when_ptl_put_returns(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, limited(region(NULL, 0, 0, PTL_EQ_NONE), 2));

	(void)state;
	assert_ok(PtlPut(handle, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0));
	assert_ok(PtlPut(handle, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0));
	assert_code(PtlPut(handle, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlGet(handle, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
}

static void threshold__falls_by_one_for_an_acknowledgement_received(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, 0, queue_make(&here, EQ_ROOM)), 4);
	ptl_handle_md_t handle = region_bind(&here, md);

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_acked(handle, &there, 0);
	expect_pair(md.eventq, PTL_EVENT_SEND_START);
	assert_int_equal(expect_event(md.eventq, PTL_EVENT_ACK).mem_desc.threshold, 2);
	put_acked(handle, &there, 0);
	expect_pair(md.eventq, PTL_EVENT_SEND_START);
	assert_int_equal(expect_event(md.eventq, PTL_EVENT_ACK).mem_desc.threshold, 0);
	assert_code(PtlPut(handle, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
}

static void threshold__of_one_still_lets_the_acknowledgement_in(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, 0, queue_make(&here, EQ_ROOM)), 1);
	ptl_handle_md_t handle = region_bind(&here, md);

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_acked(handle, &there, 0);
	expect_pair(md.eventq, PTL_EVENT_SEND_START);
	assert_int_equal(expect_event(md.eventq, PTL_EVENT_ACK).mem_desc.threshold, 0);
}

static void threshold__is_not_charged_for_an_ack_that_no_queue_could_log(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, limited(region(NULL, 0, 0, PTL_EQ_NONE), 2));
	ptl_md_t now;

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_acked(handle, &there, 0);
	fence(&here, &there);
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.threshold, 1);
	put_to(handle, &there, 0);
}

static void threshold__falls_by_one_for_a_reply_and_not_for_the_get(void **state)
{
	ptl_md_t md = limited(region(memory, 4, 0, queue_make(&here, EQ_ROOM)), 2);
	ptl_handle_md_t handle = region_bind(&here, md);

	(void)state;
	target_make(&there, memory + 64, 64, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	get_from(handle, &there, 0);
	assert_int_equal(expect_pair(md.eventq, PTL_EVENT_REPLY_START).mem_desc.threshold, 1);
	get_from(handle, &there, 0);
	assert_int_equal(expect_pair(md.eventq, PTL_EVENT_REPLY_START).mem_desc.threshold, 0);
	assert_code(PtlGet(handle, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
}

static void threshold__never_keeps_a_reply_out(void **state)
{
	ptl_md_t md = region(memory, 4, 0, queue_make(&here, EQ_ROOM)), inactive = limited(md, 0);
	ptl_handle_md_t handle = region_bind(&here, md);

	(void)state;
	target_make(&there, memory + 64, 64, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	get_from(handle, &there, 0);
	assert_ok(PtlMDUpdate(handle, NULL, &inactive, PTL_EQ_NONE));
	assert_int_equal(expect_pair(md.eventq, PTL_EVENT_REPLY_START).mlength, 4);
}

static void threshold__is_not_charged_for_the_unlink_event(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), 1);
	struct end source = source_make(&here, NULL, 0),
		   target = target_of(&there, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	put_to(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_int_equal(expect_event(target.eq, PTL_EVENT_UNLINK).mem_desc.threshold, 0);
}

/* max_offset */

static void max_offset__must_be_exceeded_before_the_descriptor_is_inactive(void **state)
{
	ptl_md_t md = region(memory, 64, PTL_MD_OP_PUT, PTL_EQ_NONE);
	struct end source = source_make(&here, memory + 128, 8), target;

	(void)state;
	md.max_offset = 16;
	target = target_of(&there, md, PTL_RETAIN, PTL_RETAIN);
	for (int i = 0; i < 4; i++)
		put_to(source.md, &there, 0);
	fence(&here, &there);
	for (size_t i = 0; i < 3; i++) /* the third begins at 16, and only then 24 exceeds 16 */
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, 8 * i);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 1);
}

static void max_offset__exceeded_unlinks_a_descriptor_that_asked_for_it(void **state)
{
	ptl_md_t md = region(memory, 64, PTL_MD_OP_PUT, PTL_EQ_NONE);
	struct end source = source_make(&here, memory + 128, 8), target;

	(void)state;
	md.max_offset = 15;
	target = target_of(&there, md, PTL_UNLINK, PTL_RETAIN);
	put_to(source.md, &there, 0);
	put_to(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_unlinked(&target, expect_pair(target.eq, PTL_EVENT_PUT_START));
}

static void max_offset__of_zero_lets_one_operation_in_and_any_number_of_empty_ones_before(
	void **state)
{
	ptl_md_t md = region(memory, 64, PTL_MD_OP_PUT, PTL_EQ_NONE);
	struct end none = source_make(&here, NULL, 0), one = source_make(&here, memory + 128, 1),
		   target;

	(void)state;
	md.max_offset = 0;
	target = target_of(&there, md, PTL_RETAIN, PTL_RETAIN);
	for (int i = 0; i < 5; i++)
		put_to(none.md, &there, 0);
	put_to(one.md, &there, 0);
	put_to(none.md, &there, 0);
	fence(&here, &there);
	for (int i = 0; i < 6; i++)
		expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 1);
}

static void max_offset__does_not_count_for_remotely_managed_offsets(void **state)
{
	ptl_md_t md = region(memory, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	struct end source = source_make(&here, memory + 128, 8), target;

	(void)state;
	md.max_offset = 0;
	target = target_of(&there, md, PTL_UNLINK, PTL_UNLINK);
	for (int i = 0; i < 3; i++) {
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 48, 0));
		expect_pair(target.eq, PTL_EVENT_PUT_START);
	}
	expect_no_event(target.eq);
}

/* unlink_op and unlink_nofit */

static void unlink_op__unlinks_after_the_last_operation_with_an_event_after_its_end(void **state)
{
	ptl_md_t md = limited(region(memory, 64, PTL_MD_OP_PUT, PTL_EQ_NONE), 2);
	struct end source = source_make(&here, memory + 128, 8), target;
	ptl_event_t first, last, unlink;

	(void)state;
	md.user_ptr = memory;
	target = target_of(&there, md, PTL_UNLINK, PTL_RETAIN);
	put_to(source.md, &there, 0);
	first = expect_pair(target.eq, PTL_EVENT_PUT_START);
	put_to(source.md, &there, 0);
	last = expect_pair(target.eq, PTL_EVENT_PUT_START);
	unlink = expect_event(target.eq, PTL_EVENT_UNLINK);
	assert_true(unlink.link == last.link);
	assert_true(unlink.link != first.link);
	assert_true(unlink.md_handle == target.md);
	assert_ptr_equal(unlink.mem_desc.user_ptr, memory);
	assert_int_equal(unlink.ni_fail_type, PTL_NI_OK);
	expect_no_event(target.eq);
	assert_code(PtlMDUnlink(target.md), PTL_INV_MD);
}

static void unlink_op__works_for_gets(void **state)
{
	ptl_md_t md = limited(region(memory, 64, PTL_MD_OP_GET, PTL_EQ_NONE), 1);
	struct end source = source_make(&here, memory + 128, 8),
		   target = target_of(&there, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	get_from(source.md, &there, 0);
	expect_unlinked(&target, expect_pair(target.eq, PTL_EVENT_GET_START));
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
}

static void unlink_op__works_for_a_send_from_an_attached_descriptor(void **state)
{
	ptl_md_t md = limited(region(memory, 8, 0, PTL_EQ_NONE), 1);
	struct end target = target_make(&there, memory + 128, 64, PTL_MD_OP_PUT),
		   source = target_of(&here, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	put_to(source.md, &there, 0);
	expect_unlinked(&source, expect_pair(source.eq, PTL_EVENT_SEND_START));
	expect_pair(target.eq, PTL_EVENT_PUT_START);
}

static void unlink_op__works_for_a_reply_to_an_attached_descriptor(void **state)
{
	ptl_md_t md = limited(region(memory, 8, 0, PTL_EQ_NONE), 1);
	struct end source = target_of(&here, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	target_make(&there, memory + 128, 64, PTL_MD_OP_GET);
	get_from(source.md, &there, 0);
	expect_unlinked(&source, expect_pair(source.eq, PTL_EVENT_REPLY_START));
}

static void unlink_op__works_for_an_acknowledgement_to_an_attached_descriptor(void **state)
{
	ptl_md_t md = limited(region(memory, 8, 0, PTL_EQ_NONE), 2);
	struct end source = target_of(&here, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	target_make(&there, memory + 128, 64, PTL_MD_OP_PUT);
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_unlinked(&source, expect_event(source.eq, PTL_EVENT_ACK));
}

static void unlink_op__retain_keeps_an_inactive_descriptor_that_can_be_woken(void **state)
{
	ptl_md_t md = limited(region(memory, 64, PTL_MD_OP_PUT, PTL_EQ_NONE), 1);
	struct end source = source_make(&here, memory + 128, 8),
		   target = target_of(&there, md, PTL_RETAIN, PTL_RETAIN);

	(void)state;
	for (int i = 0; i < 3; i++) {
		put_to(source.md, &there, 0);
		put_to(source.md, &there, 0);
		fence(&here, &there);
		expect_pair(target.eq, PTL_EVENT_PUT_START);
		expect_no_event(target.eq);
		md.eventq = target.eq;
		assert_ok(PtlMDUpdate(target.md, NULL, &md, PTL_EQ_NONE));
	}
	assert_int_equal(drops(&there), 3);
}

static void unlink_nofit__unlinks_a_descriptor_that_has_no_room_and_the_search_goes_on(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), full, next;
	ptl_md_t md = region(memory, 7, PTL_MD_OP_PUT, PTL_EQ_NONE);
	ptl_event_t unlink;

	(void)state;
	full = target_of(&there, md, PTL_RETAIN, PTL_UNLINK);
	next = target_make(&there, memory + 64, 8, PTL_MD_OP_PUT);
	put_to(source.md, &there, 0);
	expect_pair(next.eq, PTL_EVENT_PUT_START);
	unlink = expect_event(full.eq, PTL_EVENT_UNLINK);
	assert_true(unlink.md_handle == full.md);
	assert_true(unlink.link == unlink.sequence);
	expect_no_event(full.eq);
	assert_code(PtlMDUnlink(full.md), PTL_INV_MD);
	assert_code(PtlMEUnlink(full.me), PTL_INV_ME);
	assert_int_equal(drops(&there), 0);
}

static void unlink_nofit__unlinks_also_when_nothing_else_takes_the_message(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), full;

	(void)state;
	full = target_of(
		&there, region(memory, 7, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, PTL_UNLINK);
	put_to(source.md, &there, 0);
	expect_event(full.eq, PTL_EVENT_UNLINK);
	fence(&here, &there);
	assert_int_equal(drops(&there), 1);
}

static void unlink_nofit__unlinks_for_gets_as_well(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), full, next;

	(void)state;
	full = target_of(
		&there, region(memory, 7, PTL_MD_OP_GET, PTL_EQ_NONE), PTL_RETAIN, PTL_UNLINK);
	next = target_make(&there, memory + 64, 8, PTL_MD_OP_GET);
	get_from(source.md, &there, 0);
	expect_pair(next.eq, PTL_EVENT_GET_START);
	expect_event(full.eq, PTL_EVENT_UNLINK);
}

static void unlink_nofit__walks_through_many_full_descriptors_for_one_message(void **state)
{
	enum { FULL = 40 };
	struct end source = source_make(&here, memory + 128, 8), next, full[FULL];
	ptl_md_t md = region(memory, 7, PTL_MD_OP_PUT, queue_make(&there, FULL));

	(void)state;
	for (size_t i = 0; i < FULL; i++)
		full[i] = target_of(&there, md, PTL_RETAIN, PTL_UNLINK);
	next = target_make(&there, memory + 64, 8, PTL_MD_OP_PUT);
	put_to(source.md, &there, 0);
	expect_pair(next.eq, PTL_EVENT_PUT_START);
	for (size_t i = 0; i < FULL; i++)
		assert_true(expect_event(md.eventq, PTL_EVENT_UNLINK).md_handle == full[i].md);
}

static void unlink_nofit__happens_when_the_local_offset_has_eaten_the_room(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), full, next;

	(void)state;
	full = target_of(
		&there, region(memory, 20, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, PTL_UNLINK);
	next = target_make(&there, memory + 64, 64, PTL_MD_OP_PUT);
	for (int i = 0; i < 3; i++)
		put_to(source.md, &there, 0);
	expect_pair(full.eq, PTL_EVENT_PUT_START);
	expect_pair(full.eq, PTL_EVENT_PUT_START);
	expect_event(full.eq, PTL_EVENT_UNLINK);
	assert_int_equal(expect_pair(next.eq, PTL_EVENT_PUT_START).offset, 0);
}

static void unlink_nofit__does_not_happen_to_a_descriptor_that_truncates(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), target;

	(void)state;
	target = target_of(&there, region(memory, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, PTL_EQ_NONE),
		PTL_RETAIN, PTL_UNLINK);
	put_to(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_no_event(target.eq);
	assert_ok(PtlMDUnlink(target.md));
}

static void unlink_nofit__does_not_happen_to_a_descriptor_that_would_not_accept_anyway(void **state)
{
	struct end source = source_make(&here, memory + 128, 8), inactive, disabled, beyond,
		   mismatch;
	ptl_md_t md = region(memory, 4, PTL_MD_OP_PUT, PTL_EQ_NONE);
	struct end two = source_make(&here, memory + 256, 2);
	ptl_handle_me_t me;

	(void)state;
	md.max_offset = 1;
	beyond = target_of(&there, md, PTL_RETAIN, PTL_UNLINK);
	put_to(two.md, &there, 0);
	expect_pair(beyond.eq, PTL_EVENT_PUT_START);
	md.max_offset = NO_LIMIT;
	inactive = target_of(&there, limited(md, 0), PTL_RETAIN, PTL_UNLINK);
	md.threshold = 1;
	md.options = PTL_MD_OP_GET;
	disabled = target_of(&there, md, PTL_RETAIN, PTL_UNLINK);
	md.options = PTL_MD_OP_PUT;
	mismatch.eq = md.eventq = queue_make(&there, EQ_ROOM);
	me = entry_make(&there, 99, 0, PTL_UNLINK);
	mismatch.md = region_attach(me, md, PTL_RETAIN, PTL_UNLINK);
	put_to(source.md, &there, 0);
	fence(&here, &there);
	expect_no_event(inactive.eq);
	expect_no_event(disabled.eq);
	expect_no_event(beyond.eq);
	expect_no_event(mismatch.eq);
	assert_ok(PtlMDUnlink(inactive.md));
	assert_ok(PtlMDUnlink(disabled.md));
	assert_ok(PtlMDUnlink(beyond.md));
	assert_ok(PtlMDUnlink(mismatch.md));
}

static void unlink_nofit__retain_keeps_the_descriptor_for_what_fits(void **state)
{
	struct end eight = source_make(&here, memory + 128, 8),
		   four = source_make(&here, memory + 128, 4), target;

	(void)state;
	target = target_of(
		&there, region(memory, 7, PTL_MD_OP_PUT, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN);
	put_to(eight.md, &there, 0);
	put_to(four.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).rlength, 4);
	assert_int_equal(drops(&there), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(threshold__is_the_number_of_operations_that_are_accepted),
		TEST_BOTH(threshold__infinite_stays_infinite),
		TEST_BOTH(threshold__of_zero_makes_an_inactive_descriptor_that_is_not_unlinked),
		TEST_BOTH(threshold__falls_by_one_for_a_send_when_ptl_put_returns),
		TEST_BOTH(threshold__falls_by_one_for_an_acknowledgement_received),
		TEST_BOTH(threshold__of_one_still_lets_the_acknowledgement_in),
		TEST_BOTH(threshold__is_not_charged_for_an_ack_that_no_queue_could_log),
		TEST_BOTH(threshold__falls_by_one_for_a_reply_and_not_for_the_get),
		TEST_BOTH(threshold__never_keeps_a_reply_out),
		TEST_BOTH(threshold__is_not_charged_for_the_unlink_event),
		TEST_BOTH(max_offset__must_be_exceeded_before_the_descriptor_is_inactive),
		TEST_BOTH(max_offset__exceeded_unlinks_a_descriptor_that_asked_for_it),
		TEST_BOTH(
			max_offset__of_zero_lets_one_operation_in_and_any_number_of_empty_ones_before),
		TEST_BOTH(max_offset__does_not_count_for_remotely_managed_offsets),
		TEST_BOTH(unlink_op__unlinks_after_the_last_operation_with_an_event_after_its_end),
		TEST_BOTH(unlink_op__works_for_gets),
		TEST_BOTH(unlink_op__works_for_a_send_from_an_attached_descriptor),
		TEST_BOTH(unlink_op__works_for_a_reply_to_an_attached_descriptor),
		TEST_BOTH(unlink_op__works_for_an_acknowledgement_to_an_attached_descriptor),
		TEST_BOTH(unlink_op__retain_keeps_an_inactive_descriptor_that_can_be_woken),
		TEST_BOTH(
			unlink_nofit__unlinks_a_descriptor_that_has_no_room_and_the_search_goes_on),
		TEST_BOTH(unlink_nofit__unlinks_also_when_nothing_else_takes_the_message),
		TEST_BOTH(unlink_nofit__unlinks_for_gets_as_well),
		TEST_BOTH(unlink_nofit__walks_through_many_full_descriptors_for_one_message),
		TEST_BOTH(unlink_nofit__happens_when_the_local_offset_has_eaten_the_room),
		TEST_BOTH(unlink_nofit__does_not_happen_to_a_descriptor_that_truncates),
		TEST_BOTH(
			unlink_nofit__does_not_happen_to_a_descriptor_that_would_not_accept_anyway),
		TEST_BOTH(unlink_nofit__retain_keeps_the_descriptor_for_what_fits),
	};

	return cmocka_run_group_tests_name("lifetime", tests, group_open, group_close);
}
