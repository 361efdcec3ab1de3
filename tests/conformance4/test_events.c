/* SPDX-License-Identifier: BSD-3-Clause */
/* test_events.c - which events and counts an operation makes (8, 9, 11), also when the target is
 * not there.
 *
 * Covers: lib/p4/event.c, lib/p4/memory.c, lib/p4/movement.c.
 */
#include "fixture.h"

#define BYTES 400000
#define EVERY (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY)

static unsigned char source[BYTES], target[BYTES];

static struct node here, there;

static int events_group_open(void **state)
{
	setenv("PTL_PEER_TIMEOUT", "1s", 1);
	return group_open(state);
}

static int setup(void **state)
{
	(void)state;
	memory_fill(source, BYTES);
	memset(target, 0, sizeof(target));
	pair_open(&here, &there, MATCHING);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pair_close(&here, &there);
	return 0;
}

/* Waits for so many events of both kinds together. */
static void await_count(ptl_handle_ct_t ct, ptl_size_t all)
{
	ptl_ct_event_t count;

	do
		assert_ok(PtlCTGet(ct, &count));
	while (count.success + count.failure < all);
	assert_int_equal(count.success + count.failure, all);
}

static void reset(ptl_handle_ct_t ct)
{
	assert_ok(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
}

static void put(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_match_bits_t bits)
{
	assert_ok(PtlPut(md, 0, 8, ack, there.id, 0, bits, 0, source, 0));
}

/* --- queues */

static void queues__overwrite_their_oldest_events_and_say_so(void **state)
{
	ptl_me_t me = {.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE, .match_id = ANYONE};
	ptl_handle_me_t handle;
	ptl_pt_index_t portal;
	ptl_handle_eq_t eq;
	ptl_event_t event;
	uintptr_t last;

	(void)state;
	assert_ok(PtlEQAlloc(here.ni, 4, &eq));
	assert_ok(PtlPTAlloc(here.ni, 0, eq, PTL_PT_ANY, &portal));
	for (uintptr_t i = 1; i <= 200; i++)
		assert_ok(PtlMEAppend(here.ni, portal, &me, PTL_PRIORITY_LIST, (void *)i, &handle));
	assert_ok(PtlMEUnlink(handle)); /* behind all of them */
	assert_code(PtlEQGet(eq, &event), PTL_EQ_DROPPED);
	assert_int_equal(event.type, PTL_EVENT_LINK); /* and it is good */
	last = (uintptr_t)event.user_ptr;
	assert_in_range(last, 200 - 68, 197);
	while (last < 200) {
		assert_ok(PtlEQGet(eq, &event));
		assert_int_equal((uintptr_t)event.user_ptr, ++last);
	}
	expect_none(eq);
}

static void queues__say_that_they_have_dropped_in_each_way_to_read(void **state)
{
	ptl_me_t me = {.uid = PTL_UID_ANY, .ct_handle = PTL_CT_NONE, .match_id = ANYONE};
	ptl_handle_me_t handle;
	ptl_pt_index_t portal;
	ptl_handle_eq_t eq;
	ptl_event_t event;
	unsigned which;

	(void)state;
	assert_ok(PtlEQAlloc(here.ni, 4, &eq));
	assert_ok(PtlPTAlloc(here.ni, 0, eq, PTL_PT_ANY, &portal));
	for (unsigned way = 0; way < 2; way++) {
		for (uintptr_t i = 1; i <= 200; i++)
			assert_ok(PtlMEAppend(
				here.ni, portal, &me, PTL_PRIORITY_LIST, (void *)i, &handle));
		assert_ok(PtlMEUnlink(handle)); /* behind all of them */
		if (way == 0)
			assert_code(PtlEQWait(eq, &event), PTL_EQ_DROPPED);
		else
			assert_code(PtlEQPoll(&eq, 1, 0, &event, &which), PTL_EQ_DROPPED);
		assert_int_equal(event.type, PTL_EVENT_LINK);
		while (PtlEQGet(eq, &event) == PTL_OK)
			;
		assert_int_equal((uintptr_t)event.user_ptr, 200);
	}
}

static void queues__may_be_freed_while_they_are_named(void **state)
{
	ptl_handle_md_t md = md_make(&here, source, 8, PTL_MD_EVENT_CT_ACK);

	(void)state;
	entry_make(&there, target, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, 5, NULL);
	assert_ok(PtlEQFree(here.eq));
	assert_ok(PtlEQFree(there.eq));
	put(md, PTL_ACK_REQ, 5);
	expect_count(here.ct, 1, 0);
	expect_count(there.ct, 1, 0);
}

/* --- suppression */

static void entries__tell_what_their_options_leave(void **state)
{
	const struct {
		unsigned options;
		bool link, put, unlink;
	} cases[] = {
		{0, true, true, true},
		{PTL_ME_EVENT_LINK_DISABLE, false, true, true},
		{PTL_ME_EVENT_COMM_DISABLE, true, false, true},
		{PTL_ME_EVENT_UNLINK_DISABLE, true, true, false},
		{PTL_ME_EVENT_SUCCESS_DISABLE, true, false, true},
		{PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_FLOWCTRL_DISABLE, true, true, true},
		{PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE, true, false, false},
	};
	ptl_handle_md_t md = md_make(&here, source, 8, PTL_MD_EVENT_SEND_DISABLE);

	(void)state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		ptl_me_t me = {.start = target,
			.length = 8,
			.ct_handle = there.ct,
			.uid = PTL_UID_ANY,
			.options = cases[i].options | PTL_ME_OP_PUT | PTL_ME_USE_ONCE |
				   PTL_ME_EVENT_CT_COMM,
			.match_id = ANYONE};
		ptl_handle_me_t handle;

		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
		put(md, PTL_ACK_REQ, 0);
		expect_event(here.eq, PTL_EVENT_ACK);
		if (cases[i].link)
			expect_event(there.eq, PTL_EVENT_LINK);
		if (cases[i].put)
			expect_event(there.eq, PTL_EVENT_PUT);
		if (cases[i].unlink)
			expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
		expect_none(there.eq);
		expect_count(there.ct, i + 1, 0); /* whatever is told */
	}
}

static void descriptors__tell_what_their_options_leave(void **state)
{
	ptl_handle_md_t md;

	(void)state;
	entry_make(&there, target, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	md = md_make(&here, source, 8, PTL_MD_EVENT_SUCCESS_DISABLE | EVERY);
	put(md, PTL_ACK_REQ, 5);
	await_count(here.ct, 2);
	expect_none(here.eq);
	put(md, PTL_ACK_REQ, 6); /* a failure is told */
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_DROPPED);
	expect_count(here.ct, 3, 1); /* its SEND was none */
	reset(here.ct);
	assert_ok(PtlGet(md, 0, 8, there.id, 0, 5, 0, NULL));
	assert_int_equal(expect_event(here.eq, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_OP_VIOLATION);
	expect_count(here.ct, 0, 1);
	md = md_make(&here, source, 8, 0);
	put(md, PTL_CT_ACK_REQ, 5);
	put(md, PTL_OC_ACK_REQ, 5);
	put(md, PTL_NO_ACK_REQ, 6);
	put(md, PTL_ACK_REQ, 5);
	for (unsigned i = 0; i < 4; i++)
		expect_event(here.eq, PTL_EVENT_SEND);
	expect_event(here.eq, PTL_EVENT_ACK); /* of the last alone */
	expect_none(here.eq);
}

/* --- fields */

/* Fields that an event does not set are 0. */
static void expect_bare(const ptl_event_t *event)
{
	const ptl_process_t none = {.phys = {0, 0}};

	assert_null(event->start);
	assert_int_equal(event->hdr_data, 0);
	assert_int_equal(event->match_bits, 0);
	assert_int_equal(event->rlength, 0);
	assert_memory_equal(&event->initiator, &none, sizeof(none));
	assert_int_equal(event->uid, 0);
	assert_int_equal(event->atomic_operation, 0);
	assert_int_equal(event->atomic_type, 0);
	assert_int_equal(event->ni_fail_type, PTL_NI_OK);
}

static void events__set_the_fields_of_their_kind(void **state)
{
	ptl_me_t me = {.start = target,
		.length = 100,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE,
		.match_id = ANYONE,
		.match_bits = 5};
	ptl_handle_md_t md = md_make(&here, source, 200, 0);
	const ptl_event_kind_t own[] = {
		PTL_EVENT_LINK, PTL_EVENT_PUT, PTL_EVENT_AUTO_UNLINK, PTL_EVENT_AUTO_FREE};
	ptl_handle_me_t handle;
	ptl_event_t event;

	(void)state;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, target, &handle));
	assert_ok(PtlPut(md, 0, 200, PTL_ACK_REQ, there.id, 0, 5, 40, source, 77));
	event = expect_event(here.eq, PTL_EVENT_SEND);
	expect_bare(&event);
	assert_true(event.user_ptr == source);
	event = expect_event(here.eq, PTL_EVENT_ACK);
	expect_bare(&event);
	assert_true(event.user_ptr == source);
	assert_int_equal(event.mlength, 60);
	assert_int_equal(event.remote_offset, 40);
	assert_int_equal(event.ptl_list, PTL_OVERFLOW_LIST);
	for (unsigned i = 0; i < COUNT(own); i++) {
		event = expect_event(there.eq, own[i]);
		assert_true(event.user_ptr == target);
		assert_int_equal(event.pt_index, 0);
		if (own[i] != PTL_EVENT_PUT) {
			expect_bare(&event);
			continue;
		}
		assert_true(event.start == target + 40);
		assert_int_equal(event.hdr_data, 77);
		assert_int_equal(event.match_bits, 5);
		assert_int_equal(event.rlength, 200);
		assert_int_equal(event.mlength, 60);
		assert_int_equal(event.remote_offset, 40);
		assert_int_equal(event.uid, geteuid());
	}
}

static void events__of_lists_have_no_match_bits(void **state)
{
	const ptl_le_t le = {.start = target,
		.length = 8,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
	struct node from, to;
	ptl_handle_le_t handle;
	ptl_event_t event;

	(void)state;
	pair_open(&from, &to, LISTED);
	assert_ok(PtlLEAppend(to.ni, 0, &le, PTL_PRIORITY_LIST, NULL, &handle));
	assert_ok(PtlPut(md_make(&from, source, 8, 0), 0, 8, PTL_ACK_REQ, to.id, 0, 5, 0, NULL, 9));
	event = expect_event(to.eq, PTL_EVENT_PUT); /* whatever the bits were */
	assert_int_equal(event.hdr_data, 9);
	assert_int_equal(event.mlength, 8);
	pair_close(&from, &to);
}

/* The acknowledgement of a message leaves behind all its events at the target. */
static void events__of_the_target_come_before_the_answer(void **state)
{
	static const ptl_event_kind_t own[] = {
		PTL_EVENT_LINK, PTL_EVENT_PUT, PTL_EVENT_AUTO_UNLINK, PTL_EVENT_AUTO_FREE};
	const ptl_me_t me = {.start = target,
		.length = BYTES,
		.ct_handle = there.ct,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |
			   PTL_ME_EVENT_CT_COMM,
		.match_id = ANYONE,
		.match_bits = 5};
	const ptl_size_t sizes[] = {0, 8, 5000, BYTES};
	ptl_handle_md_t md = md_make(&here, source, BYTES, PTL_MD_EVENT_SEND_DISABLE);
	ptl_handle_me_t handle;
	ptl_ct_event_t count;
	ptl_event_t event;

	(void)state;
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		memset(target, 0, BYTES);
		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &handle));
		assert_ok(PtlPut(md, 0, sizes[i], PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		expect_event(here.eq, PTL_EVENT_ACK);
		assert_memory_equal(target, source, sizes[i]);
		assert_ok(PtlCTGet(there.ct, &count));
		assert_int_equal(count.success, i + 1);
		for (unsigned k = 0; k < COUNT(own); k++) {
			assert_ok(PtlEQGet(there.eq, &event));
			assert_int_equal(event.type, own[k]);
		}
		expect_none(there.eq);
	}
}

/* --- counters */

/* Whoever has read an event finds it counted. */
static void counters__change_before_the_event_can_be_read(void **state)
{
	ptl_handle_ct_t cts[4];
	ptl_me_t me = {.start = target,
		.length = 8,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
		.match_id = ANYONE,
		.match_bits = 5};
	ptl_md_t md = {.start = source, .length = 8, .eq_handle = here.eq};
	ptl_handle_md_t send, reply;
	ptl_handle_me_t handle;
	ptl_ct_event_t count;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_ok(PtlCTAlloc(i == 3 ? there.ni : here.ni, &cts[i]));
	md.options = PTL_MD_EVENT_CT_SEND;
	md.ct_handle = cts[0];
	assert_ok(PtlMDBind(here.ni, &md, &send));
	md.options = PTL_MD_EVENT_CT_REPLY;
	md.ct_handle = cts[1];
	assert_ok(PtlMDBind(here.ni, &md, &reply));
	me.ct_handle = cts[3];
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	expect_event(there.eq, PTL_EVENT_LINK);
	for (unsigned i = 1; i <= 100; i++) {
		assert_ok(PtlPut(send, 0, 8, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		expect_event(here.eq, PTL_EVENT_SEND);
		assert_ok(PtlCTGet(cts[0], &count));
		assert_int_equal(count.success, i);
		expect_event(there.eq, PTL_EVENT_PUT);
		assert_ok(PtlCTGet(cts[3], &count));
		assert_int_equal(count.success, 2 * i - 1);
		assert_ok(PtlGet(reply, 0, 8, there.id, 0, 5, 0, NULL));
		expect_event(there.eq, PTL_EVENT_GET);
		assert_ok(PtlCTGet(cts[3], &count));
		assert_int_equal(count.success, 2 * i);
		expect_event(here.eq, PTL_EVENT_REPLY);
		assert_ok(PtlCTGet(cts[1], &count));
		assert_int_equal(count.success, i);
	}
}

static void entries__count_messages_or_their_bytes(void **state)
{
	ptl_handle_md_t md = md_make(&here, source, 100, PTL_MD_EVENT_SEND_DISABLE);
	uint64_t words[2] = {0};

	(void)state;
	entry_make(&there, target, 60,
		PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES |
			PTL_ME_EVENT_COMM_DISABLE,
		5, NULL);
	entry_make(&there, words, 12,
		PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES |
			PTL_ME_EVENT_COMM_DISABLE,
		6, NULL);
	entry_make(&there, target, 60, PTL_ME_EVENT_CT_COMM, 7, NULL);
	put(md, PTL_ACK_REQ, 7); /* a refusal does not count there */
	expect_event(here.eq, PTL_EVENT_ACK);
	expect_count(there.ct, 0, 0);
	assert_ok(PtlPut(md, 0, 100, PTL_ACK_REQ, there.id, 0, 5, 10, NULL, 0));
	expect_event(here.eq, PTL_EVENT_ACK);
	expect_count(there.ct, 50, 0);
	assert_ok(PtlGet(md, 0, 100, there.id, 0, 5, 40, NULL));
	expect_event(here.eq, PTL_EVENT_REPLY);
	expect_count(there.ct, 70, 0);
	assert_ok(PtlAtomic(
		md, 0, 16, PTL_ACK_REQ, there.id, 0, 6, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
	expect_event(here.eq, PTL_EVENT_ACK);
	expect_count(there.ct, 78, 0);
	assert_ok(
		PtlFetchAtomic(md, 0, md, 8, 8, there.id, 0, 6, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
	expect_event(here.eq, PTL_EVENT_REPLY);
	expect_count(there.ct, 86, 0);
}

static void counters__that_are_gone_count_no_more(void **state)
{
	ptl_handle_md_t md = md_make(&here, source, 8, EVERY | PTL_MD_EVENT_SEND_DISABLE);

	(void)state;
	entry_make(&there, target, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, 5, NULL);
	assert_ok(PtlCTFree(here.ct));
	assert_ok(PtlCTFree(there.ct));
	/* Another one may have their places. */
	assert_ok(PtlCTAlloc(here.ni, &here.ct));
	assert_ok(PtlCTAlloc(there.ni, &there.ct));
	put(md, PTL_ACK_REQ, 5);
	expect_event(here.eq, PTL_EVENT_ACK);
	expect_event(there.eq, PTL_EVENT_PUT);
	expect_count(here.ct, 0, 0);
	expect_count(there.ct, 0, 0);
}

static void descriptors__count_what_their_options_say(void **state)
{
	const struct {
		unsigned options;
		ptl_ack_req_t ack;
		ptl_size_t success;
	} cases[] = {
		{PTL_MD_EVENT_CT_SEND, PTL_NO_ACK_REQ, 1},
		{PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES, PTL_NO_ACK_REQ, 100},
		{PTL_MD_EVENT_CT_ACK, PTL_ACK_REQ, 1},
		{PTL_MD_EVENT_CT_ACK, PTL_CT_ACK_REQ, 1},
		{PTL_MD_EVENT_CT_ACK, PTL_OC_ACK_REQ, 1},
		{PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_ACK_REQ, 60}, /* truncated */
		{PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_CT_ACK_REQ, 60},
		{PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_OC_ACK_REQ, 1},
		{PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES, PTL_ACK_REQ,
			160},
	};

	(void)state;
	entry_make(&there, target, 60, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, 5, NULL);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		ptl_handle_md_t md = md_make(&here, source, 100,
			cases[i].options | PTL_MD_EVENT_SEND_DISABLE |
				PTL_MD_EVENT_SUCCESS_DISABLE);

		reset(here.ct);
		assert_ok(PtlPut(md, 0, 100, cases[i].ack, there.id, 0, 5, 0, NULL, 0));
		await_count(here.ct, cases[i].success);
		expect_count(here.ct, cases[i].success, 0);
		if (cases[i].ack != PTL_NO_ACK_REQ) { /* a refusal is one failure, also of bytes */
			reset(here.ct);
			assert_ok(PtlPut(md, 0, 100, cases[i].ack, there.id, 0, 6, 0, NULL, 0));
			expect_count(here.ct, cases[i].options & PTL_MD_EVENT_CT_SEND ? 100 : 0, 1);
		}
		if (cases[i].ack == PTL_ACK_REQ)
			expect_event(here.eq, PTL_EVENT_ACK); /* of that failure */
		expect_none(here.eq);
		assert_ok(PtlMDRelease(md));
	}
}

/* --- targets that are not there */

static void nobody_put(unsigned options, ptl_ack_req_t ack, ptl_size_t failures)
{
	const ptl_process_t nobody = {.phys = {77, 77}};
	ptl_handle_md_t md = md_make(&here, source, 100, options | EVERY | PTL_MD_EVENT_CT_BYTES);

	assert_ok(PtlPut(md, 0, 100, ack, nobody, 0, 5, 0, source, 0));
	expect_count(here.ct, 0, failures);
	assert_ok(PtlMDRelease(md));
}

static ptl_ni_fail_t failed(ptl_event_kind_t kind)
{
	ptl_event_t event = expect_event(here.eq, kind);

	assert_true(event.user_ptr == source);
	assert_int_equal(event.mlength, 0);
	return event.ni_fail_type;
}

static void puts__to_nobody_fail_in_one_event_and_each_count(void **state)
{
	(void)state;
	nobody_put(0, PTL_ACK_REQ, 2);
	assert_int_equal(failed(PTL_EVENT_SEND), PTL_NI_UNDELIVERABLE);
	expect_none(here.eq); /* no ACK follows */
	reset(here.ct);
	nobody_put(PTL_MD_EVENT_SEND_DISABLE, PTL_ACK_REQ, 2);
	assert_int_equal(failed(PTL_EVENT_ACK), PTL_NI_UNDELIVERABLE);
	expect_none(here.eq);
	reset(here.ct);
	nobody_put(PTL_MD_EVENT_SEND_DISABLE, PTL_NO_ACK_REQ, 1); /* nothing else would tell */
	assert_int_equal(failed(PTL_EVENT_SEND), PTL_NI_UNDELIVERABLE);
	expect_none(here.eq);
	reset(here.ct);
	nobody_put(PTL_MD_EVENT_SUCCESS_DISABLE, PTL_OC_ACK_REQ, 2);
	assert_int_equal(failed(PTL_EVENT_SEND), PTL_NI_UNDELIVERABLE);
}

static void gets__from_nobody_fail(void **state)
{
	const ptl_process_t nobody = {.phys = {77, 77}};
	ptl_handle_md_t md = md_make(&here, target, 100, EVERY);

	(void)state;
	assert_ok(PtlGet(md, 0, 100, nobody, 0, 5, 0, source));
	assert_int_equal(failed(PTL_EVENT_REPLY), PTL_NI_UNDELIVERABLE);
	expect_count(here.ct, 0, 1);
}

/* --- descriptors */

static void descriptors__are_checked_when_they_are_bound(void **state)
{
	ptl_md_t md = {.start = source, .length = 8, .eq_handle = here.eq, .ct_handle = here.ct};
	ptl_handle_md_t handle;

	(void)state;
#define BIND(field, value)                                                                         \
	do {                                                                                       \
		ptl_md_t bad = md;                                                                 \
		bad.field = value;                                                                 \
		assert_code(PtlMDBind(here.ni, &bad, &handle), PTL_ARG_INVALID);                   \
	} while (0)
	BIND(options, 1u << 9);
	BIND(options, PTL_ME_MANAGE_LOCAL);
	BIND(eq_handle, there.eq);
	BIND(eq_handle, here.ct);
	BIND(eq_handle, PTL_INVALID_HANDLE);
	BIND(eq_handle, PTL_CT_NONE);
	BIND(ct_handle, there.ct);
	BIND(ct_handle, here.eq);
	BIND(ct_handle, PTL_EQ_NONE);
	assert_code(PtlMDBind(here.ni, NULL, &handle), PTL_ARG_INVALID);
	assert_code(PtlMDBind(here.ni, &md, NULL), PTL_ARG_INVALID);
	assert_ok(PtlCTFree(here.ct));
	BIND(options, 0); /* its counter is gone */
#undef BIND
}

static void descriptors__may_be_released_under_way(void **state)
{
	const ptl_iovec_t pieces[] = {{source, BYTES / 2}, {source + BYTES / 2, BYTES / 2}};
	ptl_iovec_t *copy = malloc(sizeof(pieces));
	ptl_handle_md_t md;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, pieces, sizeof(pieces));
	entry_make(&there, target, BYTES, PTL_ME_OP_PUT, 5, NULL);
	md = md_make(&here, copy, 2, PTL_IOVEC);
	memset(copy, 0xff, sizeof(pieces));
	free(copy);
	assert_ok(PtlPut(md, 0, BYTES, PTL_ACK_REQ, there.id, 0, 5, 0, source, 0));
	assert_ok(PtlMDRelease(md));
	assert_code(PtlPut(md, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0), PTL_ARG_INVALID);
	expect_event(here.eq, PTL_EVENT_SEND);
	assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).mlength, BYTES);
	expect_event(there.eq, PTL_EVENT_PUT);
	assert_memory_equal(target, source, BYTES);
}

static void descriptors__without_a_queue_or_memory_count(void **state)
{
	const ptl_md_t bare = {.ct_handle = here.ct, .eq_handle = PTL_EQ_NONE, .options = EVERY};
	ptl_handle_md_t md;

	(void)state;
	entry_make(&there, NULL, 0, PTL_ME_OP_PUT | PTL_ME_OP_GET, 5, NULL);
	assert_ok(PtlMDBind(here.ni, &bare, &md));
	assert_ok(PtlPut(md, 0, 0, PTL_CT_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
	assert_ok(PtlGet(md, 0, 0, there.id, 0, 5, 0, NULL));
	expect_count(here.ct, 3, 0);
}

static void gets__that_are_shortened_leave_the_rest(void **state)
{
	ptl_handle_md_t md =
		md_make(&here, target, 100, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES);
	ptl_event_t event;

	(void)state;
	memset(target, 7, 100);
	entry_make(&there, source, 60, PTL_ME_OP_GET, 5, NULL);
	assert_ok(PtlGet(md, 0, 100, there.id, 0, 5, 10, NULL));
	event = expect_event(here.eq, PTL_EVENT_REPLY);
	assert_int_equal(event.mlength, 50);
	assert_int_equal(event.remote_offset, 10);
	assert_memory_equal(target, source + 10, 50);
	for (unsigned i = 50; i < 100; i++)
		assert_int_equal(target[i], 7);
	expect_count(here.ct, 50, 0);
}

static void messages__that_were_sent_arrive_after_the_interface_closed(void **state)
{
	ptl_handle_md_t md = md_make(&here, source, BYTES, 0);

	(void)state;
	entry_make(&there, target, BYTES, PTL_ME_OP_PUT, 5, NULL);
	assert_ok(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 1));
	node_close(&here);
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).hdr_data, 1);
	assert_memory_equal(target, source, 8);
	node_open(&here, 0, MATCHING);
}

/* A write after a read does not change what was read, nor a read after a write what was written. */
static void messages__of_one_process_keep_the_order_of_small_data(void **state)
{
	enum { WHOLE = 1024, ROUNDS = 50 };
	ptl_handle_md_t from = md_make(&here, source, BYTES, PTL_MD_EVENT_SUCCESS_DISABLE);
	ptl_handle_md_t into =
		md_make(&here, target, BYTES, PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_REPLY);
	static unsigned char memory[WHOLE];

	(void)state;
	assert_true(here.limits.max_war_ordered_size >= WHOLE);
	assert_true(here.limits.max_waw_ordered_size >= WHOLE);
	entry_make(&there, memory, WHOLE, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE,
		5, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_ok(
			PtlPut(from, i * WHOLE, WHOLE, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		assert_ok(PtlGet(into, i * WHOLE, WHOLE, there.id, 0, 5, 0, NULL));
	}
	expect_count(here.ct, ROUNDS, 0);
	assert_memory_equal(target, source, ROUNDS * WHOLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(queues__overwrite_their_oldest_events_and_say_so),
		TEST(queues__say_that_they_have_dropped_in_each_way_to_read),
		TEST(queues__may_be_freed_while_they_are_named),
		TEST(entries__tell_what_their_options_leave),
		TEST(descriptors__tell_what_their_options_leave),
		TEST(events__set_the_fields_of_their_kind),
		TEST(events__of_lists_have_no_match_bits),
		TEST(events__of_the_target_come_before_the_answer),
		TEST(counters__change_before_the_event_can_be_read),
		TEST(entries__count_messages_or_their_bytes),
		TEST(counters__that_are_gone_count_no_more),
		TEST(descriptors__count_what_their_options_say),
		TEST(puts__to_nobody_fail_in_one_event_and_each_count),
		TEST(gets__from_nobody_fail),
		TEST(descriptors__are_checked_when_they_are_bound),
		TEST(descriptors__may_be_released_under_way),
		TEST(descriptors__without_a_queue_or_memory_count),
		TEST(gets__that_are_shortened_leave_the_rest),
		TEST(messages__that_were_sent_arrive_after_the_interface_closed),
		TEST(messages__of_one_process_keep_the_order_of_small_data),
	};
#undef TEST

	return cmocka_run_group_tests(tests, events_group_open, group_close);
}
