/* SPDX-License-Identifier: BSD-3-Clause */
/* test_movement.c - put and get (6, 8, 9, 11) between two interfaces of each kind.
 *
 * Covers: lib/p4/movement.c, lib/p4/entry.c, lib/p4/memory.c.
 */
#include "fixture.h"

#define BYTES 300000

static unsigned char source[BYTES], target[BYTES];

static void fill(void)
{
	memory_fill(source, BYTES);
	memset(target, 0, sizeof(target));
}

/* An entry of the kind of list that the interface has, for puts and gets. */
static ptl_handle_any_t offer(
	const struct node *node, unsigned kind, ptl_size_t length, unsigned options)
{
	ptl_le_t le = {.start = target,
		.length = length,
		.ct_handle = node->ct,
		.uid = PTL_UID_ANY,
		.options = options | PTL_LE_OP_PUT | PTL_LE_OP_GET};
	ptl_handle_le_t handle;

	if (kind & PTL_NI_MATCHING)
		return entry_make(node, target, length, le.options, 5, target + 1);
	assert_ok(PtlLEAppend(node->ni, node->portal, &le, PTL_PRIORITY_LIST, target + 1, &handle));
	expect_event(node->eq, PTL_EVENT_LINK);
	return handle;
}

static void put_of_every_size(unsigned kind)
{
	const ptl_size_t sizes[] = {0, 1, 8, 900, 1500, 1648, 4096, 65536, BYTES - 3};
	struct node here, there;
	ptl_handle_md_t md;
	ptl_event_t event;

	pair_open(&here, &there, kind);
	offer(&there, kind, BYTES, PTL_LE_EVENT_CT_COMM);
	md = md_make(&here, source, BYTES, PTL_MD_EVENT_CT_ACK);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		fill();
		assert_ok(PtlPut(md, 1, sizes[i], PTL_ACK_REQ, there.id, 0, 5, 2, &here, 99));
		event = expect_event(there.eq, PTL_EVENT_PUT);
		assert_int_equal(event.ni_fail_type, PTL_NI_OK);
		assert_true(event.start == target + 2);
		assert_true(event.user_ptr == target + 1);
		assert_int_equal(event.hdr_data, 99);
		assert_int_equal(event.rlength, sizes[i]);
		assert_int_equal(event.mlength, sizes[i]);
		assert_int_equal(event.remote_offset, 2);
		assert_int_equal(event.pt_index, 0);
		assert_int_equal(event.ptl_list, PTL_PRIORITY_LIST);
		assert_int_equal(event.uid, geteuid());
		if (kind & PTL_NI_LOGICAL)
			assert_int_equal(event.initiator.rank, 0);
		else
			assert_memory_equal(&event.initiator, &here.id, sizeof(here.id));
		assert_memory_equal(target + 2, source + 1, sizes[i]);
		assert_int_equal(target[1] | target[2 + sizes[i]], 0);
		assert_true(expect_event(here.eq, PTL_EVENT_SEND).user_ptr == &here);
		event = expect_event(here.eq, PTL_EVENT_ACK);
		assert_int_equal(event.ni_fail_type, PTL_NI_OK);
		assert_int_equal(event.mlength, sizes[i]);
		assert_int_equal(event.remote_offset, 2);
		assert_true(event.user_ptr == &here);
		expect_count(here.ct, i + 1, 0);
		expect_count(there.ct, i + 1, 0);
	}
	pair_close(&here, &there);
}

static void ptl_put__moves_every_size_on_every_kind(void **state)
{
	(void)state;
	put_of_every_size(MATCHING);
	put_of_every_size(LISTED);
	put_of_every_size(MATCHING_L);
	put_of_every_size(LISTED_L);
}

static void ptl_get__reads_every_size(void **state)
{
	const ptl_size_t sizes[] = {0, 8, 1500, 65536, BYTES - 3};
	struct node here, there;
	ptl_handle_md_t md;
	ptl_event_t event;

	(void)state;
	pair_open(&here, &there, MATCHING);
	fill();
	memcpy(target, source, BYTES);
	offer(&there, MATCHING, BYTES, 0);
	md = md_make(&here, source, BYTES, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		memset(source, 0, BYTES);
		assert_ok(PtlGet(md, 1, sizes[i], there.id, 0, 5, 2, &here));
		event = expect_event(here.eq, PTL_EVENT_REPLY);
		assert_int_equal(event.ni_fail_type, PTL_NI_OK);
		assert_int_equal(event.mlength, sizes[i]);
		assert_int_equal(event.remote_offset, 2);
		assert_memory_equal(source + 1, target + 2, sizes[i]);
		event = expect_event(there.eq, PTL_EVENT_GET);
		assert_int_equal(event.rlength, sizes[i]);
		assert_int_equal(event.mlength, sizes[i]);
		assert_int_equal(event.hdr_data, 0);
	}
	expect_count(here.ct, 0 + 8 + 1500 + 65536 + BYTES - 3, 0);
	pair_close(&here, &there);
}

static void ptl_put__of_volatile_memory_takes_the_data_before_it_returns(void **state)
{
	ptl_iovec_t pieces[] = {{source, 3}, {source + 100, 61}};
	const ptl_md_t vector = {.start = pieces,
		.length = 2,
		.options = PTL_IOVEC | PTL_MD_VOLATILE,
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};
	struct node here, there;
	ptl_handle_md_t mds[2];

	(void)state;
	pair_open(&here, &there, MATCHING);
	mds[0] = md_make(&here, source, BYTES, PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlMDBind(here.ni, &vector, &mds[1]));
	assert_code(PtlPut(mds[0], 0, here.limits.max_volatile_size + 1, PTL_NO_ACK_REQ, there.id,
			    0, 5, 0, NULL, 0),
		PTL_ARG_INVALID);
	entry_make(&there, target, 64, PTL_ME_OP_PUT, 5, NULL);
	for (int i = 0; i < 1000; i++) {
		memset(source, i, 200);
		assert_ok(PtlPut(mds[i % 2], 0, 64, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		memset(source, i + 1, 200);
		assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).mlength, 64);
		for (int at = 0; at < 64; at++)
			assert_int_equal(target[at], i & 0xff);
	}
	pair_close(&here, &there);
}

/* What is unreliable or unordered may arrive as any other, and does. */
static void ptl_put__from_unreliable_memory_takes_no_acknowledgement(void **state)
{
	static const ptl_ack_req_t wanted[] = {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ};
	struct node here, there;
	ptl_handle_md_t md, unordered;

	(void)state;
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BYTES, PTL_MD_UNRELIABLE | PTL_MD_EVENT_SEND_DISABLE);
	unordered = md_make(&here, source, BYTES, PTL_MD_UNORDERED | PTL_MD_EVENT_SEND_DISABLE);
	entry_make(&there, target, BYTES, PTL_ME_OP_PUT, 5, NULL);
	memory_fill(source, BYTES);
	for (unsigned i = 0; i < COUNT(wanted); i++)
		assert_code(
			PtlPut(md, 0, 8, wanted[i], there.id, 0, 5, 0, NULL, 0), PTL_ARG_INVALID);
	expect_none(there.eq);
	assert_ok(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 1));
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).hdr_data, 1);
	assert_ok(PtlPut(unordered, 8, 8, PTL_ACK_REQ, there.id, 0, 5, 8, NULL, 2));
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).hdr_data, 2);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).mlength, 8);
	assert_memory_equal(target, source, 16);
	pair_close(&here, &there);
}

/* A put whose acknowledgement says this. */
static void refused(const struct node *here, const struct node *there, ptl_handle_md_t md,
	ptl_pt_index_t portal, ptl_ni_fail_t why)
{
	assert_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, there->id, portal, 5, 0, NULL, 0));
	expect_event(here->eq, PTL_EVENT_SEND);
	assert_int_equal(expect_event(here->eq, PTL_EVENT_ACK).ni_fail_type, why);
	assert_ok(PtlGet(md, 0, 8, there->id, portal, 5, 0, NULL));
	assert_int_equal(expect_event(here->eq, PTL_EVENT_REPLY).ni_fail_type, why);
}

static void messages__that_are_refused_say_why_and_leave_no_trace(void **state)
{
	struct node here, there;
	ptl_sr_value_t drops, permissions, operations;
	ptl_handle_md_t md;
	ptl_handle_me_t handle;
	ptl_me_t me = {.start = target,
		.length = 64,
		.ct_handle = PTL_CT_NONE,
		.uid = geteuid() + 1,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE,
		.match_id = ANYONE,
		.match_bits = 5};

	(void)state;
	fill();
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BYTES, PTL_MD_EVENT_CT_ACK);
	refused(&here, &there, md, 0, PTL_NI_DROPPED); /* no entry */
	refused(&here, &there, md, 1, PTL_NI_DROPPED); /* not allocated */
	refused(&here, &there, md, 1u << 31, PTL_NI_DROPPED);
	assert_ok(PtlPTDisable(there.ni, 0));
	refused(&here, &there, md, 0, PTL_NI_PT_DISABLED);
	assert_ok(PtlPTEnable(there.ni, 0));
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_event(there.eq, PTL_EVENT_LINK);
	refused(&here, &there, md, 0, PTL_NI_PERM_VIOLATION);
	assert_ok(PtlMEUnlink(handle));
	me.uid = PTL_UID_ANY;
	me.options = PTL_ME_USE_ONCE;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_event(there.eq, PTL_EVENT_LINK);
	refused(&here, &there, md, 0, PTL_NI_OP_VIOLATION);
	assert_ok(PtlMEUnlink(handle));
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
	assert_ok(PtlNIStatus(there.ni, PTL_SR_DROP_COUNT, &drops));
	assert_ok(PtlNIStatus(there.ni, PTL_SR_PERMISSION_VIOLATIONS, &permissions));
	assert_ok(PtlNIStatus(there.ni, PTL_SR_OPERATION_VIOLATIONS, &operations));
	assert_int_equal(drops, 8);
	assert_int_equal(permissions, 2);
	assert_int_equal(operations, 2);
	expect_count(here.ct, 0, 6);
	assert_int_equal(target[0], 0);
	pair_close(&here, &there);
}

static void messages__without_a_header_left_are_dropped_and_counted(void **state)
{
	struct node here, there;
	ptl_sr_value_t drops;
	ptl_handle_md_t md;
	ptl_handle_me_t handle;
	const ptl_me_t me = {.start = target,
		.length = 64,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANYONE,
		.match_bits = 5};

	(void)state;
	setenv("PTL_LIM_MAX_UNEXPECTED_HEADERS", "1", 1);
	pair_open(&here, &there, MATCHING);
	unsetenv("PTL_LIM_MAX_UNEXPECTED_HEADERS");
	md = md_make(&here, source, BYTES, 0);
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &handle));
	assert_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
	expect_event(here.eq, PTL_EVENT_SEND);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ptl_list, PTL_OVERFLOW_LIST);
	refused(&here, &there, md, 0, PTL_NI_DROPPED);
	assert_ok(PtlNIStatus(there.ni, PTL_SR_DROP_COUNT, &drops));
	assert_int_equal(drops, 2);
	pair_close(&here, &there);
}

static void entries__that_are_used_once_leave_with_auto_unlink(void **state)
{
	struct node here, there;
	ptl_handle_md_t md;
	ptl_handle_me_t me;

	(void)state;
	fill();
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BYTES, 0);
	me = entry_make(&there, target, 64, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, 5, &me);
	assert_ok(PtlPut(md, 0, 100, PTL_NO_ACK_REQ, there.id, 0, 5, 60, NULL, 0));
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).mlength, 4); /* truncated */
	assert_true(expect_event(there.eq, PTL_EVENT_AUTO_UNLINK).user_ptr == &me);
	assert_code(PtlMEUnlink(me), PTL_ARG_INVALID);
	expect_event(here.eq, PTL_EVENT_SEND);
	refused(&here, &there, md, 0, PTL_NI_DROPPED);
	pair_close(&here, &there);
}

static void entries__manage_their_offset_until_min_free(void **state)
{
	struct node here, there;
	ptl_handle_md_t md;
	ptl_handle_me_t handle;
	ptl_me_t me = {.start = target,
		.length = 100,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL,
		.match_id = ANYONE,
		.min_free = 50};

	(void)state;
	fill();
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_event(there.eq, PTL_EVENT_LINK);
	assert_ok(PtlPut(md, 0, 50, PTL_ACK_REQ, there.id, 0, 0, 77, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).remote_offset, 0);
	assert_ok(PtlPut(md, 0, 1, PTL_ACK_REQ, there.id, 0, 0, 77, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target + 50);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).remote_offset, 50);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	pair_close(&here, &there);
}

static void pieces__count_through_and_are_copied_by_the_call(void **state)
{
	struct node here, there;
	ptl_iovec_t from[] = {{source, 3}, {source + 100, 0}, {source + 200, 5000}};
	ptl_iovec_t to[] = {{target + 10, 1}, {target + 20, 4000}, {target + 8000, 1002}};
	unsigned char sent[5003], got[5003];
	ptl_handle_md_t md;
	ptl_md_t many = {.start = from,
		.options = PTL_IOVEC,
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};

	(void)state;
	fill();
	pair_open(&here, &there, MATCHING);
	many.length = (ptl_size_t)here.limits.max_iovecs + 1;
	assert_code(PtlMDBind(here.ni, &many, &md), PTL_ARG_INVALID);
	md = md_make(&here, from, COUNT(from), PTL_IOVEC);
	entry_make(&there, to, COUNT(to), PTL_ME_OP_PUT | PTL_IOVEC, 5, NULL);
	memcpy(sent, source, 3);
	memcpy(sent + 3, source + 200, 5000);
	memset(from, 0, sizeof(from));
	memset(to, 0, sizeof(to));
	assert_code(PtlPut(md, 0, 5004, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0), PTL_ARG_INVALID);
	assert_ok(PtlPut(md, 2, 5001, PTL_ACK_REQ, there.id, 0, 5, 2, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target + 21);
	memcpy(got, target + 10, 1);
	memcpy(got + 1, target + 20, 4000);
	memcpy(got + 4001, target + 8000, 1002);
	assert_memory_equal(got + 2, sent + 2, 5001);
	pair_close(&here, &there);
}

static void calls__check_their_arguments(void **state)
{
	struct node here, there;
	ptl_md_t bare = {
		.start = source, .length = 10, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
	ptl_process_t nobody = {.phys = {PTL_NID_ANY, 1}}, none = {.phys = {1, PTL_PID_ANY}};
	ptl_handle_md_t md;

	(void)state;
	pair_open(&here, &there, MATCHING);
	assert_ok(PtlMDBind(here.ni, &bare, &md));
#define PUT(offset, length, ack, to) PtlPut(md, offset, length, ack, to, 0, 0, 0, NULL, 0)
	assert_code(PUT(0, 11, PTL_NO_ACK_REQ, there.id), PTL_ARG_INVALID);
	assert_code(PUT(11, 0, PTL_NO_ACK_REQ, there.id), PTL_ARG_INVALID);
	assert_code(PUT(UINT64_MAX, 2, PTL_NO_ACK_REQ, there.id), PTL_ARG_INVALID);
	assert_code(PUT(0, 1, 4, there.id), PTL_ARG_INVALID);
	assert_code(PUT(0, 1, PTL_ACK_REQ, there.id), PTL_ARG_INVALID);
	assert_code(PUT(0, 1, PTL_CT_ACK_REQ, there.id), PTL_ARG_INVALID);
	assert_code(PUT(0, 1, PTL_NO_ACK_REQ, nobody), PTL_ARG_INVALID);
	assert_code(PUT(0, 1, PTL_NO_ACK_REQ, none), PTL_ARG_INVALID);
	assert_ok(PUT(0, 1, PTL_OC_ACK_REQ, there.id));
#undef PUT
	assert_code(PtlGet(md, 1, 10, there.id, 0, 0, 0, NULL), PTL_ARG_INVALID);
	assert_ok(PtlMDRelease(md));
	assert_code(PtlMDRelease(md), PTL_ARG_INVALID);
	assert_code(PtlGet(md, 0, 1, there.id, 0, 0, 0, NULL), PTL_ARG_INVALID);
	pair_close(&here, &there);
	node_open(&here, 0, MATCHING_L);
	assert_ok(PtlMDBind(here.ni, &bare, &md));
	there.id.rank = 0;
	assert_code(PtlGet(md, 0, 1, there.id, 0, 0, 0, NULL), PTL_ARG_INVALID); /* no map */
	assert_ok(PtlSetMap(here.ni, 1, &here.id));
	assert_ok(PtlGet(md, 0, 1, there.id, 0, 0, 0, NULL));
	there.id.rank = 1;
	assert_code(PtlGet(md, 0, 1, there.id, 0, 0, 0, NULL), PTL_ARG_INVALID);
	node_close(&here);
}

static void descriptors__span_all_memory(void **state)
{
	struct node here, there;
	ptl_handle_md_t md;

	(void)state;
	fill();
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, NULL, PTL_SIZE_MAX, 0);
	entry_make(&there, NULL, PTL_SIZE_MAX, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, 5, NULL);
	assert_ok(PtlPut(md, (uintptr_t)source, 1000, PTL_ACK_REQ, there.id, 0, 5,
		(uintptr_t)target, NULL, 0));
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).start == target);
	assert_memory_equal(target, source, 1000);
	pair_close(&here, &there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptl_put__moves_every_size_on_every_kind),
		cmocka_unit_test(ptl_put__of_volatile_memory_takes_the_data_before_it_returns),
		cmocka_unit_test(ptl_put__from_unreliable_memory_takes_no_acknowledgement),
		cmocka_unit_test(ptl_get__reads_every_size),
		cmocka_unit_test(messages__that_are_refused_say_why_and_leave_no_trace),
		cmocka_unit_test(messages__without_a_header_left_are_dropped_and_counted),
		cmocka_unit_test(entries__that_are_used_once_leave_with_auto_unlink),
		cmocka_unit_test(entries__manage_their_offset_until_min_free),
		cmocka_unit_test(pieces__count_through_and_are_copied_by_the_call),
		cmocka_unit_test(calls__check_their_arguments),
		cmocka_unit_test(descriptors__span_all_memory),
	};

	return cmocka_run_group_tests(tests, group_open, group_close);
}
