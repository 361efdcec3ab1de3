/* SPDX-License-Identifier: BSD-3-Clause */
/* test_delivery.c - which entry a message goes to and what becomes of it (5, 6), flow control (13).
 *
 * Covers: lib/p4/entry.c, lib/p4/portal.c.
 */
#include "fixture.h"

#define BYTES 1000

static unsigned char source[BYTES], target[BYTES];

static struct node here, there;
static ptl_handle_md_t md;

static int setup(void **state)
{
	(void)state;
	memory_fill(source, BYTES);
	memset(target, 0, sizeof(target));
	pair_open(&here, &there, MATCHING);
	md = md_make(&here, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pair_close(&here, &there);
	return 0;
}

static ptl_me_t me_of(unsigned options, ptl_match_bits_t bits)
{
	return (ptl_me_t){.start = target,
		.length = BYTES,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = options | PTL_ME_OP_PUT,
		.match_id = ANYONE,
		.match_bits = bits};
}

static ptl_handle_me_t append_to(const struct node *node, ptl_pt_index_t portal, const ptl_me_t *me,
	ptl_list_t list, void *user)
{
	ptl_handle_me_t handle;

	assert_ok(PtlMEAppend(node->ni, portal, me, list, user, &handle));
	if (!(me->options & PTL_ME_EVENT_LINK_DISABLE))
		expect_event(node->eq, PTL_EVENT_LINK);
	return handle;
}

static ptl_handle_me_t append(const ptl_me_t *me, ptl_list_t list, void *user)
{
	return append_to(&there, 0, me, list, user);
}

/* A put and what its acknowledgement says. */
static ptl_event_t put(
	ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_size_t offset, ptl_size_t length)
{
	assert_ok(PtlPut(md, 0, length, PTL_ACK_REQ, there.id, portal, bits, offset, NULL, bits));
	return expect_event(here.eq, PTL_EVENT_ACK);
}

static void expect_refused(ptl_event_t ack, ptl_ni_fail_t why)
{
	assert_int_equal(ack.ni_fail_type, why);
	assert_int_equal(ack.mlength, 0);
}

/* The entry with this user_ptr took it. */
static void expect_taken(ptl_event_t ack, void *user)
{
	assert_int_equal(ack.ni_fail_type, PTL_NI_OK);
	assert_true(expect_event(there.eq, PTL_EVENT_PUT).user_ptr == user);
}

static void expect_drops(int count)
{
	ptl_sr_value_t drops;

	assert_ok(PtlNIStatus(there.ni, PTL_SR_DROP_COUNT, &drops));
	assert_int_equal(drops, count);
}

/* --- 6 */

static void lists__are_searched_from_the_priority_lists_head(void **state)
{
	ptl_me_t five = me_of(0, 5), any = me_of(PTL_ME_UNEXPECTED_HDR_DISABLE, 0);
	ptl_event_t ack;

	(void)state;
	any.ignore_bits = UINT64_MAX;
	append(&any, PTL_OVERFLOW_LIST, target);
	append(&five, PTL_PRIORITY_LIST, target + 1);
	append(&five, PTL_PRIORITY_LIST, target + 2);
	append(&any, PTL_OVERFLOW_LIST, target + 3);
	ack = put(0, 5, 0, 8);
	assert_int_equal(ack.ptl_list, PTL_PRIORITY_LIST);
	expect_taken(ack, target + 1);
	ack = put(0, 6, 0, 8);
	assert_int_equal(ack.ptl_list, PTL_OVERFLOW_LIST);
	expect_taken(ack, target);
}

static void entries__are_passed_over_unless_all_of_it_matches(void **state)
{
	ptl_me_t me = me_of(0, 0xf0f0);

	(void)state;
	me.match_id.phys.nid = there.id.phys.nid;
	append(&me, PTL_PRIORITY_LIST, target + 1);
	me.match_id = here.id;
	me.match_id.phys.pid++;
	append(&me, PTL_PRIORITY_LIST, target + 2);
	me.match_id = here.id;
	me.match_bits = 0xf0f1;
	me.ignore_bits = 0xff;
	append(&me, PTL_PRIORITY_LIST, target + 3);
	me.ignore_bits = UINT64_MAX;
	me.match_id.phys.pid = PTL_PID_ANY;
	append(&me, PTL_PRIORITY_LIST, target + 4);
	expect_taken(put(0, 0xf0ee, 0, 8), target + 3);
	expect_taken(put(0, 0xf1ee, 0, 8), target + 4);
}

static void wildcards__of_node_and_process_are_apart(void **state)
{
	ptl_me_t me = me_of(0, 5);

	(void)state;
	me.match_id = (ptl_process_t){.phys = {PTL_NID_ANY, there.id.phys.pid}};
	append(&me, PTL_PRIORITY_LIST, target + 1);
	me.match_id = (ptl_process_t){.phys = {PTL_NID_ANY, here.id.phys.pid}};
	append(&me, PTL_PRIORITY_LIST, target + 2);
	expect_taken(
		put(0, 5, 0, 8), here.id.phys.pid == there.id.phys.pid ? target + 1 : target + 2);
}

static void entries__of_logical_interfaces_match_ranks(void **state)
{
	struct node from, to;
	ptl_me_t me = me_of(PTL_ME_EVENT_LINK_DISABLE, 5);
	ptl_handle_me_t handle;
	ptl_handle_md_t own, far;

	(void)state;
	pair_open(&from, &to, MATCHING_L);
	for (ptl_rank_t rank = 0; rank < 2; rank++) {
		me.match_id.rank = rank;
		assert_ok(PtlMEAppend(to.ni, 0, &me, PTL_PRIORITY_LIST, target + rank, &handle));
	}
	me.match_id.rank = PTL_RANK_ANY;
	me.match_bits = 6;
	assert_ok(PtlMEAppend(to.ni, 0, &me, PTL_PRIORITY_LIST, target + 2, &handle));
	far = md_make(&from, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	own = md_make(&to, source, BYTES, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE);
	for (ptl_match_bits_t bits = 5; bits <= 6; bits++) {
		ptl_event_t event;

		assert_ok(PtlPut(own, 0, 8, PTL_NO_ACK_REQ, to.id, 0, bits, 0, NULL, 0));
		event = expect_event(to.eq, PTL_EVENT_PUT);
		assert_int_equal(event.initiator.rank, 1);
		assert_true(event.user_ptr == target + (bits == 5 ? 1 : 2));
		assert_ok(PtlPut(far, 0, 8, PTL_NO_ACK_REQ, to.id, 0, bits, 0, NULL, 0));
		event = expect_event(to.eq, PTL_EVENT_PUT);
		assert_int_equal(event.initiator.rank, 0);
		assert_true(event.user_ptr == target + (bits == 5 ? 0 : 2));
	}
	pair_close(&from, &to);
}

/* Of an interface without matching the first entry takes all, and decides. */
static void lists__without_matching_have_their_first_entry_decide(void **state)
{
	ptl_le_t le = {.start = target,
		.length = BYTES,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options =
			PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_UNEXPECTED_HDR_DISABLE};
	struct node from, to;
	ptl_handle_le_t first, second, last;
	ptl_handle_md_t descriptor;
	ptl_event_t ack;

	(void)state;
	pair_open(&from, &to, LISTED);
	descriptor = md_make(&from, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_OVERFLOW_LIST, target + 3, &last));
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_PRIORITY_LIST, target + 1, &first));
	le.options |= PTL_LE_OP_GET;
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_PRIORITY_LIST, target + 2, &second));
#define PUT_ACKED(bits)                                                                            \
	(assert_ok(PtlPut(descriptor, 0, 8, PTL_ACK_REQ, to.id, 0, bits, 0, NULL, 0)),             \
		expect_event(from.eq, PTL_EVENT_ACK))
	ack = PUT_ACKED(1);
	assert_int_equal(ack.ptl_list, PTL_PRIORITY_LIST);
	assert_true(expect_event(to.eq, PTL_EVENT_PUT).user_ptr == target + 1);
	/* The second would take a get, but is not asked. */
	assert_ok(PtlGet(descriptor, 0, 8, to.id, 0, 2, 0, NULL));
	assert_int_equal(expect_event(from.eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_OP_VIOLATION);
	assert_ok(PtlLEUnlink(first));
	assert_ok(PtlGet(descriptor, 0, 8, to.id, 0, 2, 0, NULL));
	assert_int_equal(expect_event(from.eq, PTL_EVENT_REPLY).mlength, 8);
	assert_true(expect_event(to.eq, PTL_EVENT_GET).user_ptr == target + 2);
	assert_ok(PtlLEUnlink(second));
	ack = PUT_ACKED(3);
	assert_int_equal(ack.ptl_list, PTL_OVERFLOW_LIST);
	assert_true(expect_event(to.eq, PTL_EVENT_PUT).user_ptr == target + 3);
	assert_ok(PtlLEUnlink(last));
	expect_refused(PUT_ACKED(4), PTL_NI_DROPPED);
#undef PUT_ACKED
	pair_close(&from, &to);
}

static void entries__without_truncation_are_passed_over_by_what_does_not_fit(void **state)
{
	ptl_me_t me = me_of(PTL_ME_NO_TRUNCATE, 5);
	ptl_event_t ack;

	(void)state;
	me.length = 100;
	append(&me, PTL_PRIORITY_LIST, target + 1);
	me.options |= PTL_ME_MANAGE_LOCAL;
	me.min_free = 0;
	append(&me, PTL_PRIORITY_LIST, target + 2);
	me.options = PTL_ME_OP_PUT;
	append(&me, PTL_PRIORITY_LIST, target + 3);
	expect_taken(put(0, 5, 0, 100), target + 1);
	expect_taken(put(0, 5, 92, 8), target + 1);
	expect_taken(put(0, 5, UINT64_MAX - 3, 8), target + 2); /* no wrapping */
	expect_taken(put(0, 5, 93, 8), target + 2);             /* after that one */
	ack = put(0, 5, 1, 100);
	expect_taken(ack, target + 3);
	assert_int_equal(ack.mlength, 99);
	ack = put(0, 5, 101, 100); /* behind the end */
	expect_taken(ack, target + 3);
	assert_int_equal(ack.mlength, 0);
	assert_int_equal(ack.remote_offset, 101);
	expect_taken(put(0, 5, 100, 0), target + 1);
	expect_taken(put(0, 5, 101, 0), target + 2); /* nor does nothing, behind the end */
}

static void the_entry_that_is_found__decides(void **state)
{
	ptl_me_t me = me_of(PTL_ME_USE_ONCE, 5);
	ptl_handle_me_t handle;

	(void)state;
	me.uid = geteuid() + 1;
	handle = append(&me, PTL_PRIORITY_LIST, target + 1);
	me.uid = geteuid();
	append(&me, PTL_PRIORITY_LIST, target + 2);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PERM_VIOLATION);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PERM_VIOLATION); /* it stays */
	expect_none(there.eq);
	assert_int_equal(target[0], 0);
	assert_ok(PtlMEUnlink(handle));
	expect_taken(put(0, 5, 0, 8), target + 2);
	expect_drops(0);
}

static void min_free__counts_with_managed_offsets_alone(void **state)
{
	ptl_me_t me = me_of(0, 5);

	(void)state;
	me.length = 100;
	me.min_free = UINT64_MAX;
	append(&me, PTL_PRIORITY_LIST, target);
	expect_taken(put(0, 5, 0, 100), target);
	expect_taken(put(0, 5, 0, 100), target);
	me = me_of(PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN | PTL_ME_IS_ACCESSIBLE, 6);
	me.length = 100;
	me.min_free = 10;
	append(&me, PTL_PRIORITY_LIST, target);
	expect_taken(put(0, 6, 7, 90), target);
	expect_taken(put(0, 6, 7, 1), target); /* 9 are left */
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	expect_refused(put(0, 6, 0, 1), PTL_NI_DROPPED);
}

static void entries__that_acknowledge_nothing_are_silent(void **state)
{
	ptl_me_t me = me_of(PTL_ME_ACK_DISABLE, 5);
	ptl_handle_md_t counted =
		md_make(&here, source, BYTES, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK);

	(void)state;
	append(&me, PTL_PRIORITY_LIST, target);
	append(&(ptl_me_t){.start = target,
		       .length = 8,
		       .ct_handle = PTL_CT_NONE,
		       .uid = PTL_UID_ANY,
		       .options = PTL_ME_OP_PUT,
		       .match_id = ANYONE,
		       .match_bits = 6},
		PTL_PRIORITY_LIST, target);
	assert_ok(PtlPut(counted, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, source, 0));
	assert_ok(PtlPut(counted, 0, 8, PTL_ACK_REQ, there.id, 0, 6, 0, target, 0));
	expect_event(there.eq, PTL_EVENT_PUT);
	assert_true(expect_event(here.eq, PTL_EVENT_ACK).user_ptr == target);
	expect_count(here.ct, 1, 0);
	expect_none(here.eq);
}

static void messages__of_an_interface_without_the_map_are_dropped(void **state)
{
	struct node from, to;
	ptl_process_t map[2];
	ptl_handle_md_t descriptor;
	ptl_sr_value_t drops;

	(void)state;
	node_open(&from, 0, MATCHING_L);
	node_open(&to, 1, MATCHING_L);
	map[0] = from.id;
	map[1] = to.id;
	assert_ok(PtlSetMap(from.ni, 2, map));
	descriptor = md_make(&from, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	entry_make(&to, target, BYTES, PTL_ME_OP_PUT, 5, NULL);
	to.id.rank = 1;
	assert_ok(PtlPut(descriptor, 0, 8, PTL_ACK_REQ, to.id, 0, 5, 0, NULL, 0));
	expect_refused(expect_event(from.eq, PTL_EVENT_ACK), PTL_NI_DROPPED);
	map[0] = map[1];
	assert_ok(PtlSetMap(to.ni, 2, map)); /* which knows nobody of the rank */
	assert_ok(PtlPut(descriptor, 0, 8, PTL_ACK_REQ, to.id, 0, 5, 0, NULL, 0));
	expect_refused(expect_event(from.eq, PTL_EVENT_ACK), PTL_NI_DROPPED);
	assert_ok(PtlNIStatus(to.ni, PTL_SR_DROP_COUNT, &drops));
	assert_int_equal(drops, 2);
	pair_close(&from, &to);
}

static void limits__of_headers_are_of_the_interface(void **state)
{
	ptl_me_t me = me_of(PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE, 5);
	ptl_handle_me_t handle;
	ptl_pt_index_t portal;

	(void)state;
	setenv("PTL_LIM_MAX_UNEXPECTED_HEADERS", "2", 1);
	node_close(&there);
	node_open(&there, 1, MATCHING);
	unsetenv("PTL_LIM_MAX_UNEXPECTED_HEADERS");
	assert_ok(PtlPTAlloc(there.ni, 0, there.eq, 1, &portal));
	for (ptl_pt_index_t i = 0; i < 2; i++)
		assert_ok(PtlMEAppend(there.ni, i, &me, PTL_OVERFLOW_LIST, NULL, &handle));
	assert_int_equal(put(0, 5, 0, 8).ni_fail_type, PTL_NI_OK);
	assert_int_equal(put(1, 5, 0, 8).ni_fail_type, PTL_NI_OK);
	expect_refused(put(0, 5, 0, 8), PTL_NI_DROPPED);
	expect_refused(put(1, 5, 0, 8), PTL_NI_DROPPED);
	me.options = PTL_ME_USE_ONCE | PTL_ME_EVENT_OVER_DISABLE;
	assert_ok(PtlMESearch(there.ni, 1, &me, PTL_SEARCH_DELETE, NULL));
	assert_int_equal(put(0, 5, 0, 8).ni_fail_type, PTL_NI_OK);
	expect_refused(put(1, 5, 0, 8), PTL_NI_DROPPED);
	expect_drops(3);
}

static void limits__of_entries_and_lists_are_enforced(void **state)
{
	const ptl_ni_limits_t few = {.max_entries = 5,
		.max_list_size = 2,
		.max_pt_index = 1,
		.max_unexpected_headers = 1,
		.max_eqs = 1,
		.max_cts = 1};
	ptl_me_t me = me_of(PTL_ME_EVENT_LINK_DISABLE, 5);
	ptl_handle_me_t handles[5];
	ptl_pt_index_t portal, other;
	ptl_handle_ni_t ni;

	(void)state;
	node_close(&there);
	assert_ok(PtlNIInit(1, MATCHING, PTL_PID_ANY, &few, NULL, &ni));
	assert_ok(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
	assert_ok(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &other));
#define APPEND(portal, list, i) PtlMEAppend(ni, portal, &me, list, NULL, &handles[i])
	assert_ok(APPEND(portal, PTL_PRIORITY_LIST, 0));
	assert_ok(APPEND(portal, PTL_PRIORITY_LIST, 1));
	assert_code(APPEND(portal, PTL_PRIORITY_LIST, 2), PTL_NO_SPACE);
	assert_ok(APPEND(portal, PTL_OVERFLOW_LIST, 2));
	assert_ok(APPEND(portal, PTL_OVERFLOW_LIST, 3));
	assert_code(APPEND(portal, PTL_OVERFLOW_LIST, 4), PTL_NO_SPACE);
	assert_ok(APPEND(other, PTL_PRIORITY_LIST, 4));
	assert_ok(PtlMEUnlink(handles[0]));
	assert_ok(APPEND(portal, PTL_PRIORITY_LIST, 0));
	assert_code(APPEND(other, PTL_PRIORITY_LIST, 0), PTL_NO_SPACE); /* max_entries */
#undef APPEND
	assert_ok(PtlNIFini(ni));
	node_open(&there, 1, MATCHING);
}

static void entries__that_left_count_until_they_are_free(void **state)
{
	const ptl_ni_limits_t one = {.max_entries = 1, .max_eqs = 1, .max_cts = 1};
	ptl_me_t me = me_of(PTL_ME_USE_ONCE, 5);
	ptl_handle_me_t handle;

	(void)state;
	node_close(&there);
	assert_ok(PtlNIInit(1, MATCHING, PTL_PID_ANY, &one, NULL, &there.ni));
	assert_ok(PtlEQAlloc(there.ni, 8, &there.eq));
	assert_ok(PtlPTAlloc(there.ni, 0, there.eq, PTL_PT_ANY, &there.portal));
	assert_ok(PtlGetId(there.ni, &there.id));
	append(&me, PTL_OVERFLOW_LIST, target);
	expect_taken(put(0, 5, 0, 8), target);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	assert_code(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &handle), PTL_NO_SPACE);
	assert_ok(PtlMESearch(there.ni, 0, &me, PTL_SEARCH_DELETE, NULL));
	expect_event(there.eq, PTL_EVENT_PUT_OVERFLOW);
	expect_event(there.eq, PTL_EVENT_AUTO_FREE);
	append(&me, PTL_OVERFLOW_LIST, target);
}

/* --- 5 */

static void portals__that_begin_disabled_refuse_until_they_are_enabled(void **state)
{
	const ptl_me_t me = me_of(0, 5);
	ptl_pt_index_t portal;

	(void)state;
	assert_ok(PtlPTAlloc(there.ni, PTL_PT_ALLOC_DISABLED, there.eq, 7, &portal));
	append_to(&there, 7, &me, PTL_PRIORITY_LIST, target);
	expect_refused(put(7, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_drops(1);
	assert_ok(PtlPTEnable(there.ni, 7));
	assert_ok(PtlPTEnable(there.ni, 7));
	expect_taken(put(7, 5, 0, 8), target);
	expect_none(there.eq);
}

static void portals__that_are_disabled_still_have_lists_and_answers(void **state)
{
	const ptl_me_t me = me_of(0, 5);
	ptl_handle_me_t handle;
	ptl_handle_md_t from;

	(void)state;
	assert_ok(PtlPTDisable(there.ni, 0));
	assert_ok(PtlPTDisable(there.ni, 0));
	expect_none(there.eq); /* no event of that */
	handle = append(&me, PTL_PRIORITY_LIST, target);
	assert_ok(PtlMESearch(there.ni, 0, &me, PTL_SEARCH_ONLY, NULL));
	expect_event(there.eq, PTL_EVENT_SEARCH);
	assert_ok(PtlMEUnlink(handle));
	entry_make(&here, target, BYTES, PTL_ME_OP_PUT, 5, NULL);
	from = md_make(&there, source, BYTES, 0);
	assert_ok(PtlPut(from, 0, 8, PTL_ACK_REQ, here.id, 0, 5, 0, NULL, 0));
	expect_event(there.eq, PTL_EVENT_SEND);
	expect_event(there.eq, PTL_EVENT_ACK);
	assert_ok(PtlPTFree(there.ni, 0));
}

static void promises__about_entries_are_not_enforced(void **state)
{
	const unsigned options =
		PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED;
	ptl_me_t me = me_of(PTL_ME_NO_TRUNCATE, 0x50);
	ptl_pt_index_t portal;

	(void)state;
	me.ignore_bits = 0xf;
	assert_ok(PtlPTAlloc(there.ni, options, there.eq, PTL_PT_ANY, &portal));
	append_to(&there, portal, &me, PTL_PRIORITY_LIST, target);
	expect_taken(put(portal, 0x51, 0, 8), target);
	expect_taken(put(portal, 0x52, 0, 8), target);
	expect_refused(put(portal, 0x61, 0, 8), PTL_NI_DROPPED);
}

/* --- 13 */

/* The portal of `there` is one with flow control, and a queue of so many events. */
static void control(ptl_size_t count)
{
	assert_ok(PtlPTFree(there.ni, 0));
	assert_ok(PtlEQFree(there.eq));
	assert_ok(PtlEQAlloc(there.ni, count, &there.eq));
	assert_ok(PtlPTAlloc(there.ni, PTL_PT_FLOWCTRL, there.eq, 0, &there.portal));
}

static void expect_disabled(void)
{
	ptl_event_t event = expect_event(there.eq, PTL_EVENT_PT_DISABLED);

	assert_int_equal(event.ni_fail_type, PTL_NI_PT_DISABLED);
	assert_int_equal(event.pt_index, 0);
	assert_null(event.user_ptr);
	expect_none(there.eq); /* once */
}

static void portals__whose_queue_is_full_refuse_as_a_whole(void **state)
{
	const ptl_me_t me = {.start = target,
		.length = BYTES,
		.ct_handle = there.ct,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_FLOWCTRL_DISABLE,
		.match_id = ANYONE};
	bool arrived[16] = {false};
	unsigned left = 16, rounds = 0;
	int refused = 0;

	(void)state;
	control(8);
	append(&me, PTL_PRIORITY_LIST, target);
	for (; left > 0; rounds++) {
		unsigned accepted = 0;

		for (unsigned i = 0; i < 16; i++)
			if (!arrived[i])
				assert_ok(PtlPut(md, i, 1, PTL_ACK_REQ, there.id, 0, 0, i,
					(void *)(uintptr_t)i, i));
		for (unsigned n = left; n > 0; n--) {
			ptl_event_t ack = expect_event(here.eq, PTL_EVENT_ACK);
			uintptr_t i = (uintptr_t)ack.user_ptr;

			arrived[i] = ack.ni_fail_type == PTL_NI_OK;
			accepted += arrived[i];
			if (!arrived[i])
				expect_refused(ack, PTL_NI_PT_DISABLED);
			assert_int_equal(target[i], arrived[i] ? source[i] : 0);
		}
		refused += (int)(left - accepted);
		left -= accepted;
		assert_in_range(accepted, 1, 8);
		for (unsigned n = 0; n < accepted; n++)
			expect_event(there.eq, PTL_EVENT_PUT);
		if (left > 0) {
			expect_disabled();
			assert_ok(PtlPTEnable(there.ni, 0));
		}
	}
	assert_in_range(rounds, 2, 16);
	expect_count(there.ct, 16, 0);
	expect_drops(refused);
	expect_none(there.eq);
}

static void portals__with_flow_control_refuse_what_matches_nothing(void **state)
{
	const ptl_me_t me = me_of(PTL_ME_USE_ONCE, 5);

	(void)state;
	control(8);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_disabled();
	append(&me, PTL_PRIORITY_LIST, target);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED); /* without another event */
	expect_none(there.eq);
	assert_ok(PtlPTEnable(there.ni, 0));
	expect_taken(put(0, 5, 0, 8), target);
	expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_disabled();
	expect_drops(3);
}

static void portals__with_flow_control_refuse_what_no_header_is_left_for(void **state)
{
	ptl_me_t me = me_of(PTL_ME_MANAGE_LOCAL, 5);

	(void)state;
	setenv("PTL_LIM_MAX_UNEXPECTED_HEADERS", "1", 1);
	node_close(&there);
	node_open(&there, 1, MATCHING);
	unsetenv("PTL_LIM_MAX_UNEXPECTED_HEADERS");
	control(8);
	append(&me, PTL_OVERFLOW_LIST, target);
	expect_taken(put(0, 5, 0, 8), target);
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_disabled();
	assert_int_equal(target[8], 0);
	expect_drops(1);
}

static void portals__are_disabled_by_events_that_cannot_be_refused(void **state)
{
	const ptl_me_t me = me_of(0, 5);
	ptl_handle_me_t handle;

	(void)state;
	control(4);
	for (unsigned i = 0; i < 6; i++)
		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	for (unsigned i = 0, disabled = 0; i < 7; i++) {
		ptl_event_t event;

		assert_ok(PtlEQGet(there.eq, &event)); /* nothing is lost */
		if (event.type == PTL_EVENT_PT_DISABLED)
			assert_int_equal(++disabled, 1);
		else
			assert_int_equal(event.type, PTL_EVENT_LINK);
	}
	expect_none(there.eq);
}

/* A message that uses its entry up makes two events, which want places. */
static void portals__keep_places_for_all_events_of_a_message(void **state)
{
	ptl_me_t me = me_of(PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE, 5);
	ptl_handle_me_t handle;

	(void)state;
	control(1);
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_disabled();
	assert_int_equal(target[0], 0);
	assert_ok(PtlMEUnlink(handle)); /* it was not used */
	me.options |= PTL_ME_EVENT_UNLINK_DISABLE;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
	assert_ok(PtlPTEnable(there.ni, 0));
	expect_taken(put(0, 5, 0, 8), target);
	expect_none(there.eq);
}

static void portals__that_share_a_queue_are_disabled_with_it(void **state)
{
	const ptl_me_t me = me_of(0, 5);
	bool disabled[2] = {false};
	ptl_handle_me_t handle;
	ptl_pt_index_t other;
	ptl_event_t event;

	(void)state;
	control(4);
	assert_ok(PtlPTAlloc(there.ni, PTL_PT_FLOWCTRL, there.eq, 1, &other));
	for (unsigned i = 0; i < 6; i++) /* LINK cannot be refused */
		assert_ok(PtlMEAppend(there.ni, i % 2, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_refused(put(0, 5, 0, 8), PTL_NI_PT_DISABLED);
	expect_refused(put(1, 5, 0, 8), PTL_NI_PT_DISABLED);
	for (unsigned i = 0; i < 8; i++) {
		assert_ok(PtlEQGet(there.eq, &event));
		if (event.type == PTL_EVENT_LINK)
			continue;
		assert_int_equal(event.type, PTL_EVENT_PT_DISABLED);
		assert_false(disabled[event.pt_index]);
		disabled[event.pt_index] = true;
	}
	assert_true(disabled[0] && disabled[1]);
	expect_none(there.eq);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lists__are_searched_from_the_priority_lists_head),
		TEST(entries__are_passed_over_unless_all_of_it_matches),
		TEST(wildcards__of_node_and_process_are_apart),
		TEST(entries__of_logical_interfaces_match_ranks),
		TEST(lists__without_matching_have_their_first_entry_decide),
		TEST(entries__without_truncation_are_passed_over_by_what_does_not_fit),
		TEST(the_entry_that_is_found__decides),
		TEST(min_free__counts_with_managed_offsets_alone),
		TEST(entries__that_acknowledge_nothing_are_silent),
		TEST(messages__of_an_interface_without_the_map_are_dropped),
		TEST(limits__of_headers_are_of_the_interface),
		TEST(limits__of_entries_and_lists_are_enforced),
		TEST(entries__that_left_count_until_they_are_free),
		TEST(portals__that_begin_disabled_refuse_until_they_are_enabled),
		TEST(portals__that_are_disabled_still_have_lists_and_answers),
		TEST(promises__about_entries_are_not_enforced),
		TEST(portals__whose_queue_is_full_refuse_as_a_whole),
		TEST(portals__with_flow_control_refuse_what_matches_nothing),
		TEST(portals__with_flow_control_refuse_what_no_header_is_left_for),
		TEST(portals__are_disabled_by_events_that_cannot_be_refused),
		TEST(portals__keep_places_for_all_events_of_a_message),
		TEST(portals__that_share_a_queue_are_disabled_with_it),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_open, group_close);
}
