/* SPDX-License-Identifier: BSD-3-Clause */
/* test_unexpected.c - the unexpected list (7): what appends take of it, and searches.
 *
 * Covers: lib/p4/entry.c.
 */
#include "fixture.h"

#define BLOCK 1000

static unsigned char source[BLOCK], block[BLOCK], target[BLOCK];

static struct node here, there;
static ptl_handle_md_t md;

static int setup(void **state)
{
	(void)state;
	memory_fill(source, BLOCK);
	memset(block, 0, sizeof(block));
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BLOCK, PTL_MD_EVENT_SEND_DISABLE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pair_close(&here, &there);
	return 0;
}

static ptl_me_t me_of(void *start, ptl_size_t length, unsigned options, ptl_match_bits_t bits)
{
	return (ptl_me_t){.start = start,
		.length = length,
		.ct_handle = there.ct,
		.uid = PTL_UID_ANY,
		.options = options,
		.match_id = ANYONE,
		.match_bits = bits};
}

/* An overflow entry that takes everything, at `block`. */
static ptl_handle_me_t overflow_make(unsigned options, ptl_size_t length)
{
	ptl_me_t me = me_of(block, length, options | PTL_ME_OP_PUT | PTL_ME_OP_GET, 0);
	ptl_handle_me_t handle;

	me.ignore_bits = UINT64_MAX;
	me.min_free = 1;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, block, &handle));
	assert_true(expect_event(there.eq, PTL_EVENT_LINK).user_ptr == block);
	return handle;
}

static void put(ptl_size_t offset, ptl_size_t length, ptl_match_bits_t bits, ptl_hdr_data_t data)
{
	assert_ok(PtlPut(md, offset, length, PTL_ACK_REQ, there.id, 0, bits, 3, NULL, data));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ptl_list, PTL_OVERFLOW_LIST);
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).ptl_list, PTL_OVERFLOW_LIST);
}

/* The next event tells of a put that overflow_make()'s entry has at an offset. */
static void expect_kept(ptl_event_kind_t kind, ptl_match_bits_t bits, ptl_size_t offset,
	ptl_size_t length, ptl_hdr_data_t data, void *user)
{
	ptl_event_t event = expect_event(there.eq, kind);

	assert_int_equal(event.ni_fail_type, PTL_NI_OK);
	assert_true(event.start == block + offset);
	assert_true(event.user_ptr == user);
	assert_int_equal(event.match_bits, bits);
	assert_int_equal(event.hdr_data, data);
	assert_int_equal(event.rlength, length);
	assert_int_equal(event.mlength, length);
	assert_int_equal(event.remote_offset, 3);
	assert_memory_equal(&event.initiator, &here.id, sizeof(here.id));
	assert_int_equal(event.uid, geteuid());
	assert_int_equal(event.pt_index, 0);
	assert_int_equal(event.ptl_list, PTL_OVERFLOW_LIST);
}

static void expect_no_match(void *user)
{
	ptl_event_t event = expect_event(there.eq, PTL_EVENT_SEARCH);

	assert_int_equal(event.ni_fail_type, PTL_NI_NO_MATCH);
	assert_true(event.user_ptr == user);
	assert_int_equal(event.pt_index, 0);
}

static void search(const ptl_me_t *me, ptl_search_op_t op)
{
	assert_ok(PtlMESearch(there.ni, 0, me, op, target));
}

/* Two puts with bits 5 and one with 6, at 0, 10 and 30 of the block. */
static void three_messages(void)
{
	overflow_make(PTL_ME_MANAGE_LOCAL, BLOCK);
	put(0, 10, 5, 1);
	put(10, 20, 6, 2);
	put(30, 30, 5, 3);
}

static void searches__tell_of_the_first_or_of_each_and_take_nothing(void **state)
{
	ptl_me_t once = me_of(NULL, 0, PTL_ME_USE_ONCE, 5), all = me_of(NULL, 0, 0, 5);

	(void)state;
	three_messages();
	for (unsigned round = 0; round < 2; round++) {
		search(&once, PTL_SEARCH_ONLY);
		expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
		search(&all, PTL_SEARCH_ONLY);
		expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
		expect_kept(PTL_EVENT_SEARCH, 5, 30, 30, 3, target);
		expect_none(there.eq); /* not at the end of what found something */
	}
	assert_memory_equal(block, source, 60);
}

static void searches__that_delete_take_what_they_find(void **state)
{
	ptl_me_t once = me_of(NULL, 0, PTL_ME_USE_ONCE, 5), all = me_of(NULL, 0, 0, 0);

	(void)state;
	three_messages();
	search(&once, PTL_SEARCH_DELETE);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 0, 10, 1, target);
	all.ignore_bits = UINT64_MAX;
	search(&all, PTL_SEARCH_DELETE);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 6, 10, 20, 2, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 30, 30, 3, target);
	search(&once, PTL_SEARCH_DELETE);
	expect_no_match(target);
	search(&all, PTL_SEARCH_ONLY);
	expect_no_match(target);
	expect_none(there.eq);
}

static void searches__match_by_id_and_length_but_not_by_user_or_operation(void **state)
{
	ptl_me_t me = me_of(NULL, 0, PTL_ME_USE_ONCE, 5);

	(void)state;
	three_messages();
	me.match_id = there.id;
	search(&me, PTL_SEARCH_ONLY);
	expect_no_match(target);
	me.match_id = here.id;
	me.uid = geteuid() + 1; /* and it has no OP_PUT */
	search(&me, PTL_SEARCH_ONLY);
	expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
	me.options |= PTL_ME_NO_TRUNCATE; /* from offset 3 */
	me.length = 12;
	search(&me, PTL_SEARCH_ONLY);
	expect_no_match(target);
	me.length = 13;
	search(&me, PTL_SEARCH_ONLY);
	expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
	me.options |= PTL_ME_MANAGE_LOCAL; /* from the entry's own */
	me.length = 10;
	search(&me, PTL_SEARCH_ONLY);
	expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
}

/* What a search counts, before it returns. */
static void search_counts(unsigned options, ptl_match_bits_t bits, ptl_search_op_t op,
	ptl_size_t success, ptl_size_t failure)
{
	const unsigned silent = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE;
	const ptl_me_t me = me_of(NULL, 0, options | PTL_ME_EVENT_CT_OVERFLOW | silent, bits);
	ptl_ct_event_t count;

	assert_ok(PtlCTSet(there.ct, (ptl_ct_event_t){0, 0}));
	search(&me, op);
	assert_ok(PtlCTGet(there.ct, &count));
	assert_int_equal(count.success, success);
	assert_int_equal(count.failure, failure);
	expect_none(there.eq);
}

static void searches__count_matches_and_their_end(void **state)
{
	(void)state;
	three_messages();
	search_counts(0, 5, PTL_SEARCH_ONLY, 2, 1);
	search_counts(PTL_ME_USE_ONCE, 5, PTL_SEARCH_ONLY, 1, 0);
	search_counts(PTL_ME_USE_ONCE, 7, PTL_SEARCH_ONLY, 0, 1);
	search_counts(0, 7, PTL_SEARCH_ONLY, 0, 1);
	search_counts(PTL_ME_EVENT_CT_BYTES, 5, PTL_SEARCH_ONLY, 40, 1);
	search_counts(PTL_ME_EVENT_CT_BYTES | PTL_ME_USE_ONCE, 5, PTL_SEARCH_DELETE, 10, 0);
	search_counts(0, 5, PTL_SEARCH_DELETE, 1, 1);
	search_counts(0, 5, PTL_SEARCH_DELETE, 0, 1);
	search_counts(PTL_ME_USE_ONCE, 6, PTL_SEARCH_DELETE, 1, 0);
	search_counts(PTL_ME_USE_ONCE, 6, PTL_SEARCH_DELETE, 0, 1);
}

static void events__of_searches_are_suppressed_by_their_options(void **state)
{
	ptl_me_t me = me_of(NULL, 0, PTL_ME_EVENT_COMM_DISABLE, 5);

	(void)state;
	three_messages();
	search(&me, PTL_SEARCH_ONLY);
	expect_none(there.eq);
	me.match_bits = 7;
	search(&me, PTL_SEARCH_ONLY); /* that there is none is told still */
	expect_no_match(target);
	me.options = PTL_ME_EVENT_OVER_DISABLE;
	search(&me, PTL_SEARCH_DELETE);
	expect_no_match(target);
	me.match_bits = 5;
	search(&me, PTL_SEARCH_ONLY);
	expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
	expect_kept(PTL_EVENT_SEARCH, 5, 30, 30, 3, target);
	me.options = PTL_ME_EVENT_SUCCESS_DISABLE; /* "always generates an event" */
	search(&me, PTL_SEARCH_ONLY);
	expect_kept(PTL_EVENT_SEARCH, 5, 0, 10, 1, target);
	expect_kept(PTL_EVENT_SEARCH, 5, 30, 30, 3, target);
	me.options |= PTL_ME_USE_ONCE;
	search(&me, PTL_SEARCH_DELETE);
	expect_none(there.eq);
	me.options = PTL_ME_EVENT_OVER_DISABLE;
	search(&me, PTL_SEARCH_DELETE);
	expect_none(there.eq);
	me.options |= PTL_ME_EVENT_COMM_DISABLE;
	search(&me, PTL_SEARCH_DELETE);
	search(&me, PTL_SEARCH_ONLY);
	expect_none(there.eq);
}

static void searches__refuse_bad_arguments_and_need_no_entry(void **state)
{
	const ptl_ni_limits_t few = {.max_entries = 1, .max_iovecs = 2, .max_cts = 1};
	ptl_iovec_t pieces[3] = {{source, 1}, {source, 1}, {source, 1}};
	ptl_me_t me = me_of(NULL, 0, 0, 5);
	ptl_le_t le = {.ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
	ptl_handle_any_t handle;
	ptl_handle_ni_t ni;
	ptl_pt_index_t portal;
	ptl_sr_value_t drops;

	(void)state;
	assert_code(PtlMESearch(there.ni, 0, &me, 2, NULL), PTL_ARG_INVALID);
	assert_code(PtlMESearch(there.ni, 0, NULL, 0, NULL), PTL_ARG_INVALID);
	assert_code(PtlMESearch(there.ni, 1, &me, 0, NULL), PTL_ARG_INVALID);
	assert_code(PtlMESearch(there.ni, UINT32_MAX, &me, 0, NULL), PTL_ARG_INVALID);
	assert_code(PtlMESearch(there.eq, 0, &me, 0, NULL), PTL_ARG_INVALID);
	assert_code(PtlLESearch(there.ni, 0, &le, 0, NULL), PTL_ARG_INVALID);
	me.options = 1u << 20;
	assert_code(PtlMESearch(there.ni, 0, &me, 0, NULL), PTL_ARG_INVALID);
	me.options = 0;
	me.ct_handle = here.ct;
	assert_code(PtlMESearch(there.ni, 0, &me, 0, NULL), PTL_ARG_INVALID);
	search(&(ptl_me_t){.ct_handle = PTL_CT_NONE, .match_id = ANYONE}, PTL_SEARCH_ONLY);
	expect_no_match(target);
	assert_ok(PtlNIStatus(there.ni, PTL_SR_DROP_COUNT, &drops));
	assert_int_equal(drops, 0);

	assert_ok(PtlNIInit(0, LISTED, PTL_PID_ANY, &few, NULL, &ni));
	assert_ok(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
	assert_ok(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &handle));
	assert_code(PtlLEAppend(ni, portal, &le, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_SPACE);
	assert_ok(PtlLESearch(ni, portal, &le, PTL_SEARCH_ONLY, NULL));
	assert_code(PtlMESearch(ni, portal, &me, 0, NULL), PTL_ARG_INVALID);
	le.start = pieces;
	le.length = 2;
	le.options = PTL_IOVEC;
	assert_ok(PtlLESearch(ni, portal, &le, PTL_SEARCH_ONLY, NULL));
	le.length = 3;
	assert_code(PtlLESearch(ni, portal, &le, PTL_SEARCH_ONLY, NULL), PTL_ARG_INVALID);
	le.options = PTL_ME_MANAGE_LOCAL;
	assert_code(PtlLESearch(ni, portal, &le, PTL_SEARCH_ONLY, NULL), PTL_ARG_INVALID);
	assert_ok(PtlNIFini(ni));
}

static void list_entries__match_all_that_is_kept(void **state)
{
	struct node from, to;
	ptl_le_t le = {.start = block,
		.length = BLOCK,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT};
	ptl_handle_md_t descriptor;
	ptl_handle_le_t handle;

	(void)state;
	pair_open(&from, &to, LISTED_L);
	descriptor = md_make(&from, source, BLOCK, PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_OVERFLOW_LIST, NULL, &handle));
	expect_event(to.eq, PTL_EVENT_LINK);
	for (unsigned i = 0; i < 3; i++) {
		assert_ok(PtlPut(descriptor, 0, 8, PTL_ACK_REQ, to.id, 0, i, 0, NULL, i));
		expect_event(from.eq, PTL_EVENT_ACK);
		expect_event(to.eq, PTL_EVENT_PUT);
	}
	le.options = 0;
	assert_ok(PtlLESearch(to.ni, 0, &le, PTL_SEARCH_ONLY, target));
	for (unsigned i = 0; i < 3; i++) {
		ptl_event_t event = expect_event(to.eq, PTL_EVENT_SEARCH);

		assert_int_equal(event.hdr_data, i);
		assert_int_equal(event.initiator.rank, 0);
		assert_true(event.user_ptr == target);
	}
	le.options = PTL_LE_USE_ONCE;
	assert_ok(PtlLESearch(to.ni, 0, &le, PTL_SEARCH_DELETE, NULL));
	assert_int_equal(expect_event(to.eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 0);
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_PRIORITY_LIST, NULL, &handle));
	assert_int_equal(expect_event(to.eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 1);
	pair_close(&from, &to);
}

static ptl_handle_me_t append(const ptl_me_t *me, void *user)
{
	ptl_handle_me_t handle;

	assert_ok(PtlMEAppend(there.ni, 0, me, PTL_PRIORITY_LIST, user, &handle));
	return handle;
}

static void appends__take_what_is_kept_before_they_link(void **state)
{
	ptl_me_t once = me_of(target, BLOCK, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, 5);
	ptl_me_t all = me_of(target, BLOCK, PTL_ME_OP_PUT, 5);
	ptl_handle_me_t handle;

	(void)state;
	three_messages();
	handle = append(&once, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 0, 10, 1, target);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	expect_none(there.eq); /* no LINK */
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
	put(0, 10, 5, 4);
	handle = append(&all, target + 1);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 30, 30, 3, target + 1);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 60, 10, 4, target + 1);
	assert_true(expect_event(there.eq, PTL_EVENT_LINK).user_ptr == target + 1);
	assert_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ptl_list, PTL_PRIORITY_LIST);
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).ptl_list, PTL_PRIORITY_LIST);
	assert_ok(PtlMEUnlink(handle));
}

static void appends__count_what_they_take(void **state)
{
	ptl_me_t me = me_of(target, BLOCK,
		PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_OVER_DISABLE, 5);
	ptl_ct_event_t count;

	(void)state;
	three_messages();
	append(&me, NULL);
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlCTGet(there.ct, &count));
	assert_int_equal(count.success, 2);
	assert_int_equal(count.failure, 0);
	me.match_bits = 6;
	me.options |= PTL_ME_EVENT_CT_BYTES;
	append(&me, NULL);
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlCTGet(there.ct, &count));
	assert_int_equal(count.success, 22);
}

/* Options of the entry that takes count, not of the one that has the data. */
static void events__of_what_appends_take_are_suppressed_by_the_taker(void **state)
{
	ptl_me_t me = me_of(target, BLOCK, PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE, 5);
	ptl_me_t over = me_of(block, BLOCK,
		PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE |
			PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_USE_ONCE,
		5);
	ptl_handle_me_t handle;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		assert_ok(PtlMEAppend(there.ni, 0, &over, PTL_OVERFLOW_LIST, block, &handle));
		assert_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, round));
		expect_event(here.eq, PTL_EVENT_ACK);
		expect_none(there.eq); /* neither PUT nor AUTO_UNLINK */
		me.options = PTL_ME_OP_PUT | (round == 0          ? PTL_ME_EVENT_SUCCESS_DISABLE
						     : round == 1 ? PTL_ME_EVENT_OVER_DISABLE
								  : PTL_ME_EVENT_COMM_DISABLE);
		handle = append(&me, target);
		if (round == 2)
			assert_int_equal(
				expect_event(there.eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, round);
		expect_event(there.eq, PTL_EVENT_LINK);
		expect_none(there.eq); /* nor AUTO_FREE */
		assert_ok(PtlMEUnlink(handle));
	}
}

static void appends__count_without_a_queue(void **state)
{
	ptl_me_t me = me_of(block, BLOCK, PTL_ME_OP_PUT, 0);
	ptl_pt_index_t portal;
	ptl_handle_me_t handle;

	(void)state;
	assert_ok(PtlPTAlloc(there.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
	assert_ok(PtlMEAppend(there.ni, portal, &me, PTL_OVERFLOW_LIST, NULL, &handle));
	assert_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, there.id, portal, 0, 0, NULL, 0));
	expect_event(here.eq, PTL_EVENT_ACK);
	me.options |= PTL_ME_EVENT_CT_OVERFLOW;
	assert_ok(PtlMEAppend(there.ni, portal, &me, PTL_PRIORITY_LIST, NULL, &handle));
	assert_ok(PtlMEUnlink(handle));
	expect_count(there.ct, 1, 0);
}

static void appends__that_grow_stop_where_min_free_is_violated(void **state)
{
	ptl_me_t me = me_of(
		target, 100, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH, 0);
	ptl_handle_me_t handle;

	(void)state;
	me.ignore_bits = UINT64_MAX;
	me.min_free = 75;
	three_messages();
	handle = append(&me, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 0, 10, 1, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 6, 10, 20, 2, target);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	expect_none(there.eq);
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
	/* The rest moves the offset of the next one. */
	me.min_free = 1;
	append(&me, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 30, 30, 3, target);
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, there.id, 0, 0, 0, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target + 30);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).remote_offset, 30);
}

static void appends__without_growing_leave_the_offset(void **state)
{
	ptl_me_t me = me_of(target, 100, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL, 5);

	(void)state;
	me.min_free = 75;
	three_messages();
	append(&me, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 0, 10, 1, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 30, 30, 3, target);
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target);
}

static void auto_free__comes_once_when_the_last_header_is_taken(void **state)
{
	const ptl_me_t once = me_of(target, BLOCK, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, 5);
	const ptl_me_t all = me_of(NULL, 0, 0, 5);
	ptl_handle_me_t handle;

	(void)state;
	handle = overflow_make(PTL_ME_USE_ONCE, BLOCK);
	put(0, 10, 5, 1);
	assert_true(expect_event(there.eq, PTL_EVENT_AUTO_UNLINK).user_ptr == block);
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
	expect_none(there.eq); /* a header refers to it */
	append(&once, target);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 3, 10, 1, target);
	assert_true(expect_event(there.eq, PTL_EVENT_AUTO_FREE).user_ptr == block);
	assert_true(expect_event(there.eq, PTL_EVENT_AUTO_UNLINK).user_ptr == target);
	expect_none(there.eq); /* entries of the priority list are not freed */
	overflow_make(PTL_ME_USE_ONCE, BLOCK);
	put(0, 10, 5, 2);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	search(&all, PTL_SEARCH_DELETE);
	expect_kept(PTL_EVENT_PUT_OVERFLOW, 5, 3, 10, 2, target);
	expect_event(there.eq, PTL_EVENT_AUTO_FREE);
	overflow_make(PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE, BLOCK);
	put(0, 10, 5, 3);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	expect_event(there.eq, PTL_EVENT_AUTO_FREE);
	search(&all, PTL_SEARCH_ONLY);
	expect_no_match(target);
	expect_none(there.eq);
}

static void entries__with_headers_are_in_use_until_these_are_taken(void **state)
{
	const ptl_me_t all = me_of(NULL, 0, PTL_ME_EVENT_OVER_DISABLE, 5);
	ptl_handle_me_t handle;

	(void)state;
	handle = overflow_make(PTL_ME_MANAGE_LOCAL, BLOCK);
	put(0, 10, 5, 1);
	assert_code(PtlMEUnlink(handle), PTL_IN_USE);
	search(&all, PTL_SEARCH_DELETE);
	assert_ok(PtlMEUnlink(handle));
	expect_none(there.eq); /* without an event */
}

static void portals__that_go_throw_headers_away(void **state)
{
	ptl_pt_index_t portal;

	(void)state;
	overflow_make(PTL_ME_USE_ONCE, BLOCK);
	put(0, 10, 5, 1);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	assert_ok(PtlPTFree(there.ni, 0));
	expect_none(there.eq);
	assert_ok(PtlPTAlloc(there.ni, 0, there.eq, 0, &portal));
	search(&(ptl_me_t){.ct_handle = PTL_CT_NONE, .match_id = ANYONE, .match_bits = 5},
		PTL_SEARCH_ONLY);
	expect_no_match(target);
}

static void gets__leave_headers_as_well(void **state)
{
	const ptl_me_t me = me_of(target, BLOCK, PTL_ME_OP_GET | PTL_ME_USE_ONCE, 5);
	ptl_event_t event;

	(void)state;
	overflow_make(0, BLOCK);
	assert_ok(PtlGet(md, 0, 10, there.id, 0, 5, 2, NULL));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_REPLY).ptl_list, PTL_OVERFLOW_LIST);
	expect_event(there.eq, PTL_EVENT_GET);
	append(&me, target);
	event = expect_event(there.eq, PTL_EVENT_GET_OVERFLOW);
	assert_true(event.start == block + 2);
	assert_int_equal(event.mlength, 10);
	assert_int_equal(event.hdr_data, 0);
	assert_true(event.user_ptr == target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(searches__tell_of_the_first_or_of_each_and_take_nothing),
		TEST(searches__that_delete_take_what_they_find),
		TEST(searches__match_by_id_and_length_but_not_by_user_or_operation),
		TEST(searches__count_matches_and_their_end),
		TEST(events__of_searches_are_suppressed_by_their_options),
		TEST(searches__refuse_bad_arguments_and_need_no_entry),
		TEST(list_entries__match_all_that_is_kept),
		TEST(appends__take_what_is_kept_before_they_link),
		TEST(appends__count_what_they_take),
		TEST(events__of_what_appends_take_are_suppressed_by_the_taker),
		TEST(appends__count_without_a_queue),
		TEST(appends__that_grow_stop_where_min_free_is_violated),
		TEST(appends__without_growing_leave_the_offset),
		TEST(auto_free__comes_once_when_the_last_header_is_taken),
		TEST(entries__with_headers_are_in_use_until_these_are_taken),
		TEST(portals__that_go_throw_headers_away),
		TEST(gets__leave_headers_as_well),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_open, group_close);
}
