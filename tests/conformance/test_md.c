/* SPDX-License-Identifier: BSD-3-Clause */
/* test_md.c - memory descriptors (3.8): PtlMDAttach, PtlMDBind, PtlMDUnlink, PtlMDUpdate, every
 * option. How long they live: test_lifetime.c.
 *
 * Covers: lib/p3/region.c.
 */
#include "fixture.h"

#include <limits.h>

static char memory[4096];

/* Creating */

static void ptl_md_attach__needs_no_place_for_the_handle(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlMDAttach(entry_make(&here, 0, 0, PTL_RETAIN),
		region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN, NULL));
	put_to(source.md, &here, 0);
	expect_pair(eq, PTL_EVENT_PUT_START);
}

static void ptl_md_attach__refuses_an_entry_that_has_a_descriptor(void **state)
{
	ptl_handle_me_t me = entry_make(&here, 0, 0, PTL_RETAIN);
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE);
	ptl_handle_md_t first = region_attach(me, md, PTL_RETAIN, PTL_RETAIN), second;

	(void)state;
	assert_code(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, &second), PTL_INUSE);
	assert_ok(PtlMDUnlink(first));
	assert_ok(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, &second));
	assert_true(first != second);
}

static void ptl_md_attach__refuses_what_is_no_entry(void **state)
{
	ptl_handle_me_t me = entry_make(&here, 0, 0, PTL_RETAIN);
	ptl_md_t md = region(NULL, 0, 0, PTL_EQ_NONE);
	ptl_handle_md_t handle;

	(void)state;
	assert_code(PtlMDAttach(0, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_INV_ME);
	assert_code(
		PtlMDAttach(PTL_INVALID_HANDLE, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_INV_ME);
	assert_code(PtlMDAttach(here.ni, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_INV_ME);
	assert_ok(PtlMEUnlink(me));
	assert_code(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_INV_ME);
}

static void ptl_md_attach__refuses_an_illegal_queue_and_that_of_another_interface(void **state)
{
	ptl_handle_me_t me = entry_make(&here, 0, 0, PTL_RETAIN);
	ptl_handle_eq_t eq = queue_make(&here, 1);
	ptl_handle_md_t handle;

	(void)state;
	assert_ok(PtlEQFree(eq));
	assert_code(PtlMDAttach(me, region(NULL, 0, 0, eq), PTL_RETAIN, PTL_RETAIN, &handle),
		PTL_ILL_MD);
	assert_code(PtlMDAttach(me, region(NULL, 0, 0, PTL_INVALID_HANDLE), PTL_RETAIN, PTL_RETAIN,
			    &handle),
		PTL_ILL_MD);
	assert_code(PtlMDAttach(me, region(NULL, 0, 0, queue_make(&there, 1)), PTL_RETAIN,
			    PTL_RETAIN, &handle),
		PTL_ILL_MD);
	assert_ok(
		PtlMDAttach(me, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &handle));
}

static void ptl_md_bind__refuses_an_illegal_queue_and_that_of_another_interface(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, 1);
	ptl_handle_md_t handle;

	(void)state;
	assert_ok(PtlEQFree(eq));
	assert_code(PtlMDBind(here.ni, region(NULL, 0, 0, eq), &handle), PTL_INV_EQ);
	assert_code(
		PtlMDBind(here.ni, region(NULL, 0, 0, PTL_INVALID_HANDLE), &handle), PTL_INV_EQ);
	assert_code(PtlMDBind(here.ni, region(NULL, 0, 0, here.ni), &handle), PTL_INV_EQ);
	assert_code(
		PtlMDBind(here.ni, region(NULL, 0, 0, queue_make(&there, 1)), &handle), PTL_ILL_MD);
}

static void ptl_md_bind__refuses_what_it_should(void **state)
{
	ptl_md_t md = region(NULL, 0, 0, PTL_EQ_NONE);
	ptl_handle_md_t handle;

	(void)state;
	assert_code(PtlMDBind(0, md, &handle), PTL_INV_NI);
	assert_code(PtlMDBind(PTL_INVALID_HANDLE, md, &handle), PTL_INV_NI);
	assert_code(PtlMDBind(queue_make(&here, 1), md, &handle), PTL_INV_NI);
	assert_code(PtlMDBind(here.ni, md, NULL), PTL_SEGV);
	assert_code(PtlMDBind(here.ni, md, WILD), PTL_SEGV);
}

/* What no descriptor may look like. */
static void illegal_md(size_t n, ptl_md_t *md)
{
	*md = region(memory, sizeof(memory), PTL_MD_OP_PUT, PTL_EQ_NONE);
	switch (n) {
	case 0:
		md->start = NULL;
		break;
	case 1:
		md->length = UINT64_MAX;
		break;
	case 2:
		md->length = UINT64_MAX - (uintptr_t)memory + 1;
		break;
	case 3:
		md->threshold = -2;
		break;
	case 4:
		md->threshold = INT_MIN;
		break;
	case 5:
		md->options |= 1u << 5;
		break;
	case 6:
		md->options |= 1u << 31;
		break;
	default:
		break;
	}
}
#define ILLEGAL_MDS 7

static void ptl_md_attach__refuses_illegal_descriptors_and_leaves_the_entry_free(void **state)
{
	ptl_handle_me_t me = entry_make(&here, 0, 0, PTL_UNLINK);
	ptl_handle_md_t handle;
	ptl_md_t md;

	(void)state;
	for (size_t i = 0; i < ILLEGAL_MDS; i++) {
		illegal_md(i, &md);
		assert_code(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_ILL_MD);
	}
	assert_ok(PtlMDAttach(
		me, region(memory, 1, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &handle));
}

static void ptl_md_bind__refuses_illegal_descriptors(void **state)
{
	ptl_handle_md_t handle;
	ptl_md_t md;

	(void)state;
	for (size_t i = 0; i < ILLEGAL_MDS; i++) {
		illegal_md(i, &md);
		assert_code(PtlMDBind(here.ni, md, &handle), PTL_ILL_MD);
	}
}

static void ptl_md_update__refuses_illegal_descriptors_and_changes_nothing(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, region(memory, 17, PTL_MD_OP_GET, PTL_EQ_NONE));
	ptl_md_t md, now;

	(void)state;
	for (size_t i = 0; i < ILLEGAL_MDS; i++) {
		illegal_md(i, &md);
		assert_code(PtlMDUpdate(handle, NULL, &md, PTL_EQ_NONE), PTL_ILL_MD);
	}
	md = region(NULL, 0, 0, queue_make(&there, 1));
	assert_code(PtlMDUpdate(handle, NULL, &md, PTL_EQ_NONE), PTL_ILL_MD);
	md.eventq = PTL_INVALID_HANDLE;
	assert_code(PtlMDUpdate(handle, NULL, &md, PTL_EQ_NONE), PTL_ILL_MD);
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_ptr_equal(now.start, memory);
	assert_int_equal(now.length, 17);
	assert_int_equal(now.options, PTL_MD_OP_GET);
	assert_int_equal(now.threshold, PTL_MD_THRESH_INF);
}

static void descriptor__of_no_length_may_start_anywhere(void **state)
{
	void *const starts[] = {NULL, WILD, memory, (void *)UINTPTR_MAX};
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(starts); i++) {
		struct end target = target_make(&here, starts[i], 0, PTL_MD_OP_PUT);

		put_to(source.md, &here, 0);
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mlength, 0);
		assert_ok(PtlMDUnlink(region_bind(&here, region(starts[i], 0, 0, PTL_EQ_NONE))));
		assert_ok(PtlMEUnlink(target.me));
	}
}

static void descriptor__may_start_and_end_at_any_byte(void **state)
{
	static char from[64];

	(void)state;
	pattern_fill(from, sizeof(from), 1);
	for (size_t start = 0; start < 9; start++) {
		for (size_t length = 0; length < 18; length++) {
			struct end source = source_make(&here, from, length);
			struct end target =
				target_make(&here, memory + 8 + start, length, PTL_MD_OP_PUT);

			memset(memory, 0x5a, sizeof(memory));
			put_to(source.md, &here, 0);
			expect_pair(target.eq, PTL_EVENT_PUT_START);
			assert_true(bytes_are(memory, 8 + start, 0x5a));
			assert_true(pattern_is(memory + 8 + start, length, 1));
			assert_true(bytes_are(memory + 8 + start + length, 32, 0x5a));
			expect_pair(source.eq, PTL_EVENT_SEND_START);
			ends_free(&target, &source);
		}
	}
}

static void descriptor__has_no_link_to_the_structure_that_it_was_made_from(void **state)
{
	ptl_md_t md = region(memory, 8, PTL_MD_OP_PUT, queue_make(&here, EQ_ROOM)), now;
	ptl_handle_eq_t eq = md.eventq;
	struct end source = source_make(&here, memory + 64, 8);
	ptl_handle_md_t handle =
		region_attach(entry_make(&here, 0, 0, PTL_RETAIN), md, PTL_RETAIN, PTL_RETAIN);

	(void)state;
	memset(&md, 0xff, sizeof(md));
	put_to(source.md, &here, 0);
	assert_ptr_equal(expect_pair(eq, PTL_EVENT_PUT_START).mem_desc.start, memory);
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.length, 8);
}

/* Options */

/* Puts and gets `length` bytes; returns how many of the two were accepted. */
static unsigned accepted(unsigned options, size_t length, bool put, bool get)
{
	struct end target = target_make(&here, memory, 8, options);
	struct end source = source_make(&here, memory + 64, length);
	ptl_sr_value_t before = drops(&here);
	unsigned count = 0, ended = 0;
	ptl_event_t event;

	if (put)
		put_to(source.md, &here, 0);
	if (get)
		get_from(source.md, &here, 0);
	fence(&here, &here);
	while (PtlEQGet(target.eq, &event) == PTL_OK || ended < count) {
		count += event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_GET_START;
		ended += event.type == PTL_EVENT_PUT_END || event.type == PTL_EVENT_GET_END;
		event.type = PTL_EVENT_UNLINK;
	}
	assert_int_equal(drops(&here) - before, (unsigned)put + (unsigned)get - count);
	assert_ok(PtlMEUnlink(target.me));
	return count;
}

static void option_put__lets_puts_in_and_without_it_they_are_rejected(void **state)
{
	(void)state;
	assert_int_equal(accepted(0, 8, true, false), 0);
	assert_int_equal(accepted(PTL_MD_OP_GET, 8, true, false), 0);
	assert_int_equal(accepted(PTL_MD_OP_PUT, 8, true, false), 1);
}

static void option_get__lets_gets_in_and_without_it_they_are_rejected(void **state)
{
	(void)state;
	assert_int_equal(accepted(0, 8, false, true), 0);
	assert_int_equal(accepted(PTL_MD_OP_PUT, 8, false, true), 0);
	assert_int_equal(accepted(PTL_MD_OP_GET, 8, false, true), 1);
}

static void options_put_and_get__together_let_both_in(void **state)
{
	(void)state;
	assert_int_equal(
		accepted(PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, 8, true, true), 2);
}

static void option_truncate__lets_in_what_is_too_long_and_without_it_that_is_rejected(void **state)
{
	(void)state;
	assert_int_equal(accepted(PTL_MD_OP_PUT, 9, true, false), 0);
	assert_int_equal(accepted(PTL_MD_OP_GET, 9, false, true), 0);
	assert_int_equal(accepted(PTL_MD_OP_PUT | PTL_MD_TRUNCATE, 9, true, false), 1);
	assert_int_equal(accepted(PTL_MD_OP_GET | PTL_MD_TRUNCATE, 9, false, true), 1);
}

static void every_descriptor__responds_to_acks_and_replies_without_any_option(void **state)
{
	struct end source = source_make(&here, memory, 8);

	(void)state;
	target_make(&there, memory + 64, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET);
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_ACK);
	get_from(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
}

static void local_offset__grows_by_what_each_put_and_each_get_moved(void **state)
{
	struct end target = target_make(&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET);
	struct end five = source_make(&here, memory + 128, 5), none = source_make(&here, NULL, 0);

	(void)state;
	put_to(five.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, 0);
	get_from(five.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_GET_START).offset, 5);
	put_to(none.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, 10);
	put_to(five.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, 10);
}

static void local_offset__grows_by_the_truncated_length_only(void **state)
{
	struct end target = target_make(&there, memory, 8, PTL_MD_OP_PUT | PTL_MD_TRUNCATE);
	struct end source = source_make(&here, memory + 64, 6);
	const size_t offsets[] = {0, 6, 8, 8}, lengths[] = {6, 2, 0, 0};
	ptl_event_t event;

	(void)state;
	for (size_t i = 0; i < COUNT(offsets); i++) {
		put_to(source.md, &there, 0);
		event = expect_pair(target.eq, PTL_EVENT_PUT_START);
		assert_int_equal(event.offset, offsets[i]);
		assert_int_equal(event.mlength, lengths[i]);
		assert_int_equal(event.rlength, 6);
	}
}

static void local_offset__does_not_take_the_offset_of_the_request(void **state)
{
	struct end target = target_make(&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET);
	struct end source = source_make(&here, memory + 128, 4);

	(void)state;
	assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 32, 0));
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, 0);
	assert_ok(PtlGet(source.md, there.id, PORTAL, 0, 0, 32));
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_GET_START).offset, 4);
}

static void option_manage_remote__takes_the_offset_of_the_request_each_time(void **state)
{
	struct end target = target_make(
		&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	struct end source = source_make(&here, memory + 128, 4);
	const ptl_size_t offsets[] = {32, 0, 60, 32, 7};

	(void)state;
	for (size_t i = 0; i < COUNT(offsets); i++) {
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, offsets[i], 0));
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).offset, offsets[i]);
		assert_ok(PtlGet(source.md, there.id, PORTAL, 0, 0, offsets[i]));
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_GET_START).offset, offsets[i]);
	}
}

static void option_manage_remote__rejects_what_reaches_beyond_the_end_also_when_the_sum_wraps(
	void **state)
{
	const ptl_size_t offsets[] = {
		61, 64, 65, UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 4, 1ull << 63, 1ull << 32};
	struct end target = target_make(
		&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	struct end source = source_make(&here, memory + 128, 4);

	(void)state;
	for (size_t i = 0; i < COUNT(offsets); i++)
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, offsets[i], 0));
	for (size_t i = 0; i < COUNT(offsets); i++)
		assert_ok(PtlGet(source.md, there.id, PORTAL, 0, 0, offsets[i]));
	fence(&here, &there);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 2 * COUNT(offsets));
}

static void option_manage_remote__with_truncate_moves_what_fits_or_nothing(void **state)
{
	const ptl_size_t offsets[] = {62, 64, 65, UINT64_MAX}, lengths[] = {2, 0, 0, 0};
	struct end target = target_make(
		&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE);
	struct end source = source_make(&here, memory + 128, 4);

	(void)state;
	memset(memory, 0x5a, sizeof(memory));
	pattern_fill(memory + 128, 4, 3);
	for (size_t i = 0; i < COUNT(offsets); i++) {
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, offsets[i], 0));
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mlength, lengths[i]);
	}
	assert_true(bytes_are(memory, 62, 0x5a));
	assert_true(pattern_is(memory + 62, 2, 3));
	assert_true(bytes_are(memory + 64, 64, 0x5a));
}

static void option_ack_disable__keeps_acks_from_being_sent_though_asked_for(void **state)
{
	struct end target = target_make(&there, memory, 64, PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE);
	struct end source = source_make(&here, memory + 128, 4);

	(void)state;
	put_acked(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	fence(&here, &there);
	expect_no_event(source.eq);
}

/* PtlMDUnlink */

static void ptl_md_unlink__takes_the_descriptor_away_and_logs_nothing(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlMDUnlink(target.md));
	put_to(source.md, &there, 0);
	fence(&here, &there);
	expect_no_event(target.eq);
	assert_int_equal(drops(&there), 1);
	assert_ok(PtlMEUnlink(target.me));
}

static void ptl_md_unlink__releases_a_free_floating_descriptor(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlMDUnlink(source.md));
	assert_code(PtlMDUnlink(source.md), PTL_INV_MD);
	assert_code(PtlPut(source.md, PTL_NOACK_REQ, here.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlGet(source.md, here.id, PORTAL, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlMDUpdate(source.md, NULL, NULL, PTL_EQ_NONE), PTL_INV_MD);
}

static void ptl_md_unlink__makes_the_handle_invalid_for_good(void **state)
{
	ptl_handle_md_t stale = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE)), md;

	(void)state;
	assert_ok(PtlMDUnlink(stale));
	for (int i = 0; i < 1000; i++) {
		md = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
		assert_true(md != stale);
		assert_code(PtlMDUnlink(stale), PTL_INV_MD);
		assert_ok(PtlMDUnlink(md));
	}
}

static void ptl_md_unlink__refuses_what_is_no_descriptor(void **state)
{
	(void)state;
	assert_code(PtlMDUnlink(PTL_MD_NONE), PTL_INV_MD);
	assert_code(PtlMDUnlink(PTL_INVALID_HANDLE), PTL_INV_MD);
	assert_code(PtlMDUnlink(here.ni), PTL_INV_MD);
	assert_code(PtlMDUnlink(queue_make(&here, 1)), PTL_INV_MD);
}

/* PtlMDUpdate */

static void ptl_md_update__changes_everything_when_there_is_no_test_queue(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, region(memory, 8, PTL_MD_OP_PUT, PTL_EQ_NONE));
	ptl_md_t fresh = {memory + 64, 32, 7, 21, PTL_MD_OP_GET | PTL_MD_TRUNCATE, memory + 1,
		queue_make(&here, 1)};
	ptl_md_t now;

	(void)state;
	assert_ok(PtlMDUpdate(handle, NULL, &fresh, PTL_EQ_NONE));
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_ptr_equal(now.start, fresh.start);
	assert_int_equal(now.length, fresh.length);
	assert_int_equal(now.threshold, fresh.threshold);
	assert_int_equal(now.max_offset, fresh.max_offset);
	assert_int_equal(now.options, fresh.options);
	assert_ptr_equal(now.user_ptr, fresh.user_ptr);
	assert_true(now.eventq == fresh.eventq);
}

static void ptl_md_update__tells_the_value_from_before_the_change(void **state)
{
	ptl_md_t first = region(memory, 8, PTL_MD_OP_PUT, PTL_EQ_NONE),
		 second = region(NULL, 0, 0, PTL_EQ_NONE), old;
	ptl_handle_md_t handle = region_bind(&here, first);

	(void)state;
	assert_ok(PtlMDUpdate(handle, &old, &second, PTL_EQ_NONE));
	assert_ptr_equal(old.start, memory);
	assert_int_equal(old.length, 8);
	assert_int_equal(old.options, PTL_MD_OP_PUT);
}

static void ptl_md_update__tells_the_current_threshold(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), 5), now;
	struct end source = source_make(&here, NULL, 0),
		   target = target_of(&here, md, PTL_RETAIN, PTL_RETAIN);

	(void)state;
	put_to(source.md, &here, 0);
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_ok(PtlMDUpdate(target.md, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.threshold, 3);
}

static void ptl_md_update__takes_effect_on_messages_that_come_later(void **state)
{
	struct end source = source_make(&here, memory + 128, 8),
		   target = target_make(&here, memory, 8, 0);
	ptl_md_t fresh = region(memory + 64, 8, PTL_MD_OP_PUT, target.eq);

	(void)state;
	assert_ok(PtlMDUpdate(target.md, NULL, &fresh, PTL_EQ_NONE));
	memset(memory, 0, 128);
	pattern_fill(memory + 128, 8, 9);
	put_to(source.md, &here, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_true(bytes_are(memory, 64, 0));
	assert_true(pattern_is(memory + 64, 8, 9));
}

static void ptl_md_update__updates_when_the_test_queue_is_empty(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, region(memory, 8, 0, PTL_EQ_NONE));
	ptl_md_t fresh = region(memory, 16, 0, PTL_EQ_NONE), now;

	(void)state;
	assert_ok(PtlMDUpdate(handle, NULL, &fresh, queue_make(&here, 4)));
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.length, 16);
}

static void ptl_md_update__leaves_the_descriptor_alone_when_the_test_queue_is_not_empty(
	void **state)
{
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_handle_md_t handle = region_bind(&here, region(memory, 8, 0, PTL_EQ_NONE));
	ptl_md_t fresh = region(memory, 16, 0, PTL_EQ_NONE), now;

	(void)state;
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_code(PtlMDUpdate(handle, NULL, &fresh, target.eq), PTL_NOUPDATE);
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.length, 8);
	expect_event(target.eq, PTL_EVENT_PUT_START);
	assert_code(PtlMDUpdate(handle, NULL, &fresh, target.eq), PTL_NOUPDATE);
	expect_event(target.eq, PTL_EVENT_PUT_END);
	assert_ok(PtlMDUpdate(handle, NULL, &fresh, target.eq));
	assert_ok(PtlMDUpdate(handle, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.length, 16);
}

static void ptl_md_update__tells_the_value_also_when_it_does_not_update(void **state)
{
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_handle_md_t handle = region_bind(&here, region(memory, 8, 0, PTL_EQ_NONE));
	ptl_md_t fresh = region(memory, 16, 0, PTL_EQ_NONE), now = fresh;

	(void)state;
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_code(PtlMDUpdate(handle, &now, &fresh, target.eq), PTL_NOUPDATE);
	assert_int_equal(now.length, 8);
}

static void ptl_md_update__does_not_update_while_a_message_for_the_test_queue_is_still_arriving(
	void **state)
{
	const size_t length = 8 << 20;
	char *from = calloc(1, length), *to = calloc(1, length);
	ptl_handle_md_t handle = region_bind(&there, region(memory, 8, 0, PTL_EQ_NONE));
	ptl_md_t fresh = region(memory, 16, 0, PTL_EQ_NONE);
	struct end source, target;

	(void)state;
	assert_true(from != NULL && to != NULL);
	source = source_make(&here, from, length);
	target = target_make(&there, to, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	for (int i = 0; i < 4; i++) {
		put_to(source.md, &there, 0);
		expect_event(target.eq, PTL_EVENT_PUT_START);
		/* Between START and END the message is arriving, and afterwards END is in the
		 * queue. */
		for (int tries = 0; tries < 50; tries++)
			assert_code(PtlMDUpdate(handle, NULL, &fresh, target.eq), PTL_NOUPDATE);
		expect_event(target.eq, PTL_EVENT_PUT_END);
		assert_ok(PtlMDUpdate(handle, NULL, &fresh, target.eq));
		expect_pair(source.eq, PTL_EVENT_SEND_START); /* before that the memory is in use */
	}
	free(from);
	free(to);
}

static void ptl_md_update__may_test_the_queue_of_the_descriptor_itself(void **state)
{
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_md_t fresh = region(NULL, 0, 0, target.eq);

	(void)state;
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_code(PtlMDUpdate(target.md, NULL, &fresh, target.eq), PTL_NOUPDATE);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_ok(PtlMDUpdate(target.md, NULL, &fresh, target.eq));
}

static void ptl_md_update__to_threshold_zero_makes_it_inactive_and_does_not_unlink_it(void **state)
{
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE);
	struct end source = source_make(&here, NULL, 0),
		   target = target_of(&here, md, PTL_UNLINK, PTL_UNLINK);

	(void)state;
	md.threshold = 0;
	md.eventq = target.eq;
	assert_ok(PtlMDUpdate(target.md, NULL, &md, PTL_EQ_NONE));
	put_to(source.md, &here, 0);
	fence(&here, &here);
	expect_no_event(target.eq);
	md.threshold = 1;
	assert_ok(PtlMDUpdate(target.md, NULL, &md, PTL_EQ_NONE));
	put_to(source.md, &here, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_event(target.eq, PTL_EVENT_UNLINK);
}

static void ptl_md_update__moves_later_events_to_another_queue(void **state)
{
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	ptl_md_t fresh = region(NULL, 0, PTL_MD_OP_PUT, queue_make(&here, 4));

	(void)state;
	assert_ok(PtlMDUpdate(target.md, NULL, &fresh, PTL_EQ_NONE));
	put_to(source.md, &here, 0);
	expect_pair(fresh.eventq, PTL_EVENT_PUT_START);
	expect_no_event(target.eq);
}

static void ptl_md_update__refuses_what_it_should(void **state)
{
	ptl_md_t md = region(NULL, 0, 0, PTL_EQ_NONE);
	ptl_handle_md_t handle = region_bind(&here, md);
	ptl_handle_eq_t eq = queue_make(&here, 1);

	(void)state;
	assert_ok(PtlEQFree(eq));
	assert_code(PtlMDUpdate(PTL_MD_NONE, NULL, &md, PTL_EQ_NONE), PTL_INV_MD);
	assert_code(PtlMDUpdate(PTL_INVALID_HANDLE, NULL, &md, PTL_EQ_NONE), PTL_INV_MD);
	assert_code(PtlMDUpdate(here.ni, NULL, &md, PTL_EQ_NONE), PTL_INV_MD);
	assert_code(PtlMDUpdate(handle, NULL, &md, eq), PTL_INV_EQ);
	assert_code(PtlMDUpdate(handle, NULL, &md, PTL_INVALID_HANDLE), PTL_INV_EQ);
	assert_code(PtlMDUpdate(handle, NULL, &md, here.ni), PTL_INV_EQ);
	assert_code(PtlMDUpdate(handle, NULL, &md, queue_make(&there, 1)), PTL_INV_EQ);
	assert_code(PtlMDUpdate(handle, WILD, &md, PTL_EQ_NONE), PTL_SEGV);
	assert_code(PtlMDUpdate(handle, NULL, WILD, PTL_EQ_NONE), PTL_SEGV);
	assert_ok(PtlMDUpdate(handle, NULL, NULL, PTL_EQ_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(ptl_md_attach__needs_no_place_for_the_handle),
		TEST_HERE(ptl_md_attach__refuses_an_entry_that_has_a_descriptor),
		TEST_HERE(ptl_md_attach__refuses_what_is_no_entry),
		TEST_BOTH(ptl_md_attach__refuses_an_illegal_queue_and_that_of_another_interface),
		TEST_BOTH(ptl_md_bind__refuses_an_illegal_queue_and_that_of_another_interface),
		TEST_HERE(ptl_md_bind__refuses_what_it_should),
		TEST_HERE(ptl_md_attach__refuses_illegal_descriptors_and_leaves_the_entry_free),
		TEST_HERE(ptl_md_bind__refuses_illegal_descriptors),
		TEST_BOTH(ptl_md_update__refuses_illegal_descriptors_and_changes_nothing),
		TEST_HERE(descriptor__of_no_length_may_start_anywhere),
		TEST_HERE(descriptor__may_start_and_end_at_any_byte),
		TEST_HERE(descriptor__has_no_link_to_the_structure_that_it_was_made_from),
		TEST_HERE(option_put__lets_puts_in_and_without_it_they_are_rejected),
		TEST_HERE(option_get__lets_gets_in_and_without_it_they_are_rejected),
		TEST_HERE(options_put_and_get__together_let_both_in),
		TEST_HERE(
			option_truncate__lets_in_what_is_too_long_and_without_it_that_is_rejected),
		TEST_BOTH(every_descriptor__responds_to_acks_and_replies_without_any_option),
		TEST_BOTH(local_offset__grows_by_what_each_put_and_each_get_moved),
		TEST_BOTH(local_offset__grows_by_the_truncated_length_only),
		TEST_BOTH(local_offset__does_not_take_the_offset_of_the_request),
		TEST_BOTH(option_manage_remote__takes_the_offset_of_the_request_each_time),
		TEST_BOTH(
			option_manage_remote__rejects_what_reaches_beyond_the_end_also_when_the_sum_wraps),
		TEST_BOTH(option_manage_remote__with_truncate_moves_what_fits_or_nothing),
		TEST_BOTH(option_ack_disable__keeps_acks_from_being_sent_though_asked_for),
		TEST_BOTH(ptl_md_unlink__takes_the_descriptor_away_and_logs_nothing),
		TEST_HERE(ptl_md_unlink__releases_a_free_floating_descriptor),
		TEST_HERE(ptl_md_unlink__makes_the_handle_invalid_for_good),
		TEST_HERE(ptl_md_unlink__refuses_what_is_no_descriptor),
		TEST_HERE(ptl_md_update__changes_everything_when_there_is_no_test_queue),
		TEST_HERE(ptl_md_update__tells_the_value_from_before_the_change),
		TEST_HERE(ptl_md_update__tells_the_current_threshold),
		TEST_HERE(ptl_md_update__takes_effect_on_messages_that_come_later),
		TEST_HERE(ptl_md_update__updates_when_the_test_queue_is_empty),
		TEST_HERE(
			ptl_md_update__leaves_the_descriptor_alone_when_the_test_queue_is_not_empty),
		TEST_HERE(ptl_md_update__tells_the_value_also_when_it_does_not_update),
		TEST_BOTH(
			ptl_md_update__does_not_update_while_a_message_for_the_test_queue_is_still_arriving),
		TEST_HERE(ptl_md_update__may_test_the_queue_of_the_descriptor_itself),
		TEST_HERE(
			ptl_md_update__to_threshold_zero_makes_it_inactive_and_does_not_unlink_it),
		TEST_HERE(ptl_md_update__moves_later_events_to_another_queue),
		TEST_BOTH(ptl_md_update__refuses_what_it_should),
	};

	return cmocka_run_group_tests_name("md", tests, group_open, group_close);
}
