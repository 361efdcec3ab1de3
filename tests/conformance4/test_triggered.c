/* SPDX-License-Identifier: BSD-3-Clause */
/* test_triggered.c - triggered operations (10), and their cancelling.
 *
 * Covers: lib/p4/trigger.c, lib/p4/movement.c, lib/p4/counter.c, lib/p4/entry.c.
 */
#include <sys/mman.h>

#include "fixture.h"

static uint64_t source[64], target[64];

static struct node here, there;
static ptl_handle_md_t md;

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(source); i++)
		source[i] = i + 1;
	memset(target, 0, sizeof(target));
	pair_open(&here, &there, MATCHING);
	md = md_make(
		&here, source, sizeof(source), PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_REPLY);
	entry_make(&there, target, sizeof(target), PTL_ME_OP_PUT | PTL_ME_OP_GET, 5, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pair_close(&here, &there);
	return 0;
}

static ptl_handle_ct_t counter_make(const struct node *node)
{
	ptl_handle_ct_t ct;

	assert_ok(PtlCTAlloc(node->ni, &ct));
	return ct;
}

static void count(ptl_handle_ct_t ct, ptl_size_t success)
{
	assert_ok(PtlCTInc(ct, (ptl_ct_event_t){success, 0}));
}

/* A put of a word, with hdr_data. */
static int put_word(ptl_hdr_data_t data, ptl_handle_ct_t ct, ptl_size_t threshold)
{
	return PtlTriggeredPut(
		md, 8 * data, 8, PTL_ACK_REQ, there.id, 0, 5, 8 * data, NULL, data, ct, threshold);
}

static void expect_put(ptl_hdr_data_t data)
{
	assert_int_equal(expect_event(there.eq, PTL_EVENT_PUT).hdr_data, data);
}

/* Nothing has come: a message that was sent later has, and it would have come before it. */
static void expect_no_put(void)
{
	assert_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 4711));
	expect_put(4711);
}

static void puts__read_their_data_when_the_threshold_is_reached(void **state)
{
	(void)state;
	assert_ok(put_word(3, here.ct, 2));
	count(here.ct, 1);
	expect_no_put();
	source[3] = 77;
	count(here.ct, 1);
	expect_put(3);
	assert_int_equal(target[3], 77);
	assert_ok(put_word(4, here.ct, 1)); /* reached already */
	expect_put(4);
}

static void gets__are_triggered_and_count(void **state)
{
	ptl_handle_ct_t ct = counter_make(&here);
	ptl_ct_event_t event;

	(void)state;
	target[9] = 99;
	assert_ok(PtlTriggeredGet(md, 8, 8, there.id, 0, 5, 72, source, ct, 1));
	assert_ok(PtlTriggeredGet(md, 16, 8, there.id, 0, 5, 72, source, here.ct, 1));
	count(ct, 1);
	assert_ok(PtlCTWait(here.ct, 2, &event)); /* the second by the first's REPLY */
	assert_int_equal(source[1], 99);
	assert_int_equal(source[2], 99);
	assert_true(expect_event(here.eq, PTL_EVENT_REPLY).user_ptr == source);
}

static void thresholds__are_of_successes_and_failures_together(void **state)
{
	(void)state;
	assert_ok(put_word(1, here.ct, 2));
	count(here.ct, 1);
	assert_ok(PtlCTInc(here.ct, (ptl_ct_event_t){0, 1}));
	expect_put(1);
}

static void order__of_one_change_is_that_of_the_calls(void **state)
{
	(void)state;
	assert_ok(put_word(1, here.ct, 3));
	assert_ok(put_word(2, here.ct, 1));
	assert_ok(put_word(3, here.ct, 2));
	assert_ok(put_word(4, here.ct, 4));
	assert_ok(PtlCTSet(here.ct, (ptl_ct_event_t){3, 0}));
	expect_put(1);
	expect_put(2);
	expect_put(3);
	expect_no_put();
	count(here.ct, 1);
	expect_put(4);
}

static void order__of_a_chain_goes_behind_what_is_ready(void **state)
{
	ptl_handle_ct_t second = counter_make(&here);

	(void)state;
	assert_ok(put_word(1, second, 1));
	assert_ok(put_word(2, here.ct, 1));
	assert_ok(PtlTriggeredCTInc(second, (ptl_ct_event_t){1, 0}, here.ct, 1));
	assert_ok(put_word(3, here.ct, 1));
	count(here.ct, 1);
	expect_put(2);
	expect_put(3);
	expect_put(1);
}

static void counts__that_fall_keep_the_rest_waiting(void **state)
{
	(void)state;
	assert_ok(put_word(1, here.ct, 5));
	assert_ok(put_word(2, here.ct, 7));
	assert_ok(PtlCTSet(here.ct, (ptl_ct_event_t){6, 0}));
	expect_put(1);
	assert_ok(PtlCTSet(here.ct, (ptl_ct_event_t){0, 0}));
	count(here.ct, 6);
	expect_no_put();
	count(here.ct, 1);
	expect_put(2);
}

static void counters__change_each_other(void **state)
{
	ptl_handle_ct_t first = counter_make(&here), second = counter_make(&here);
	ptl_ct_event_t event;

	(void)state;
	assert_ok(PtlTriggeredCTInc(first, (ptl_ct_event_t){0, 3}, here.ct, 2));
	assert_ok(PtlTriggeredCTSet(second, (ptl_ct_event_t){10, 0}, first, 3));
	assert_ok(PtlTriggeredCTInc(second, (ptl_ct_event_t){5, 0}, first, 3));
	count(here.ct, 2);
	assert_ok(PtlCTWait(second, 15, &event));
	assert_int_equal(event.success, 15);
	assert_ok(PtlCTGet(first, &event));
	assert_int_equal(event.success, 0);
	assert_int_equal(event.failure, 3);
}

/* The barrier of Open MPI's coll. */
static void counters__may_trigger_increments_of_themselves(void **state)
{
	ptl_ct_event_t event;

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		ptl_handle_ct_t ct = counter_make(&here);

		assert_ok(PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, ct, 3));
		assert_ok(PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, ct, 4));
		count(ct, 3);
		assert_ok(PtlCTWait(ct, 5, &event));
		assert_int_equal(event.success, 5);
		assert_ok(PtlCTFree(ct));
	}
}

/* A tree's node: what comes in goes on, without a call here. */
static void puts__are_triggered_by_what_arrives(void **state)
{
	uint64_t inbox[1] = {0};
	ptl_me_t me = {.start = inbox,
		.length = sizeof(inbox),
		.ct_handle = here.ct,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE |
			   PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANYONE};
	const ptl_md_t onward = {.start = inbox,
		.length = sizeof(inbox),
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE};
	ptl_handle_md_t from, passed;
	ptl_handle_me_t handle;

	(void)state;
	assert_ok(PtlMEAppend(here.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	assert_ok(PtlMDBind(here.ni, &onward, &passed));
	from = md_make(&there, source, sizeof(source), PTL_MD_EVENT_SEND_DISABLE);
	for (unsigned i = 1; i <= 10; i++) {
		assert_ok(PtlTriggeredPut(
			passed, 0, 8, PTL_NO_ACK_REQ, there.id, 0, 5, 8 * i, NULL, i, here.ct, i));
		assert_ok(PtlPut(from, 8 * i, 8, PTL_NO_ACK_REQ, here.id, 0, 0, 0, NULL, 0));
		expect_put(i);
		assert_int_equal(target[i], source[i]);
	}
}

static void progress__needs_no_call(void **state)
{
	const char *progress = getenv("PTL_PROGRESS");
	_Atomic uint64_t *last = (_Atomic uint64_t *)&target[7];
	ptl_me_t me = {.start = target,
		.length = sizeof(target),
		.ct_handle = here.ct,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
		.match_id = ANYONE};
	ptl_handle_md_t back;
	ptl_handle_me_t handle;

	(void)state;
	if (progress && strcmp(progress, "inline") == 0)
		skip();
	/* A put to the other side, which is answered by one that triggers the last. */
	assert_ok(PtlMEAppend(here.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	assert_ok(put_word(7, here.ct, 1));
	back = md_make(&there, source, sizeof(source), 0);
	assert_ok(PtlTriggeredPut(
		back, 0, 8, PTL_NO_ACK_REQ, here.id, 0, 0, 0, NULL, 0, there.ct, 1));
	assert_ok(PtlTriggeredCTInc(there.ct, (ptl_ct_event_t){1, 0}, there.ct, 0));
	for (unsigned i = 0; i < 60000 && atomic_load(last) == 0; i++)
		usleep(1000);
	assert_int_equal(atomic_load(last), 8);
}

static void limit__is_of_all_that_waits_and_is_given_back(void **state)
{
	const ptl_ni_limits_t few = {.max_triggered_ops = 3, .max_cts = 2, .max_mds = 1};
	const ptl_md_t any = {.eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
	const ptl_ct_event_t one = {1, 0};
	ptl_ni_limits_t actual;
	ptl_handle_ni_t ni;
	ptl_handle_ct_t ct, other;
	ptl_handle_md_t none;
	ptl_process_t self;
	ptl_ct_event_t event;
	int code;

	(void)state;
	assert_ok(PtlNIInit(0, LISTED, PTL_PID_ANY, &few, &actual, &ni));
	assert_int_equal(actual.max_triggered_ops, 3);
	assert_ok(PtlGetId(ni, &self));
	assert_ok(PtlCTAlloc(ni, &ct));
	assert_ok(PtlCTAlloc(ni, &other));
	assert_ok(PtlMDBind(ni, &any, &none));
#define PUT() PtlTriggeredPut(none, 0, 0, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0, ct, 1)
	for (unsigned round = 0; round < 10; round++) {
		assert_ok(PtlCTSet(other, (ptl_ct_event_t){0, 0}));
		assert_ok(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
		assert_ok(PtlTriggeredCTInc(other, one, ct, 1));
		assert_ok(PtlTriggeredCTInc(other, one, ct, 1));
		assert_ok(PUT());
		assert_code(PtlTriggeredCTInc(other, one, ct, 1), PTL_NO_SPACE);
		assert_code(PtlTriggeredCTSet(other, one, ct, 1), PTL_NO_SPACE);
		assert_code(PUT(), PTL_NO_SPACE);
		assert_code(PtlTriggeredGet(none, 0, 0, self, 0, 0, 0, NULL, ct, 1), PTL_NO_SPACE);
		if (round % 2) {
			assert_ok(PtlCTCancelTriggered(ct));
			continue;
		}
		assert_ok(PtlCTInc(ct, one));
		assert_ok(PtlCTWait(other, 2, &event));
		assert_ok(PtlCTCancelTriggered(ct)); /* behind the put */
	}
	assert_ok(
		PtlMDRelease(none)); /* what was refused does not hold it, what has run soon not */
	while ((code = PtlMDBind(ni, &any, &none)) == PTL_NO_SPACE)
		assert_ok(PtlCTGet(ct, &event)); /* drives, inline */
	assert_ok(code);
#undef PUT
	assert_ok(PtlNIFini(ni));
}

static void cancelling__leaves_the_counter_and_nothing_that_waits(void **state)
{
	ptl_ct_event_t event;

	(void)state;
	assert_ok(put_word(1, here.ct, 2));
	assert_ok(put_word(2, here.ct, 1));
	count(here.ct, 1);
	expect_put(2);
	assert_ok(PtlCTCancelTriggered(here.ct));
	count(here.ct, 1);
	expect_no_put();
	assert_ok(PtlCTGet(here.ct, &event));
	assert_int_equal(event.success, 2);
	assert_ok(put_word(3, here.ct, 3));
	count(here.ct, 1);
	expect_put(3);
	assert_ok(put_word(4, here.ct, 9));
	assert_ok(PtlCTFree(here.ct));
	expect_no_put();
	assert_code(PtlCTCancelTriggered(here.ct), PTL_ARG_INVALID);
}

static void arguments__are_checked_by_the_call(void **state)
{
	const ptl_ct_event_t one = {1, 0};
	ptl_process_t nobody = ANYONE;
	struct node other;

	(void)state;
	node_open(&other, 0, LISTED);
#define PUT(md, length, ack, to, ct)                                                               \
	PtlTriggeredPut(md, 0, length, ack, to, 0, 5, 0, NULL, 0, ct, 1)
	assert_code(PUT(md, 8, PTL_NO_ACK_REQ, there.id, PTL_CT_NONE), PTL_ARG_INVALID);
	assert_code(PUT(md, 8, PTL_NO_ACK_REQ, there.id, PTL_INVALID_HANDLE), PTL_ARG_INVALID);
	assert_code(PUT(md, 8, PTL_NO_ACK_REQ, there.id, here.eq), PTL_ARG_INVALID);
	assert_code(PUT(md, 8, PTL_NO_ACK_REQ, there.id, other.ct), PTL_ARG_INVALID);
	assert_code(PUT(md, 8, 4, there.id, here.ct), PTL_ARG_INVALID);
	assert_code(PUT(md, 8, PTL_NO_ACK_REQ, nobody, here.ct), PTL_ARG_INVALID);
	assert_code(
		PUT(md, sizeof(source) + 1, PTL_NO_ACK_REQ, there.id, here.ct), PTL_ARG_INVALID);
	assert_code(PUT(here.ct, 8, PTL_NO_ACK_REQ, there.id, here.ct), PTL_ARG_INVALID);
#undef PUT
	assert_code(PtlTriggeredGet(md, 0, sizeof(source) + 1, there.id, 0, 5, 0, NULL, here.ct, 1),
		PTL_ARG_INVALID);
	assert_code(
		PtlTriggeredGet(md, 0, 8, there.id, 0, 5, 0, NULL, here.eq, 1), PTL_ARG_INVALID);
	assert_code(
		PtlTriggeredCTInc(here.ct, (ptl_ct_event_t){1, 1}, here.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredCTInc(here.ct, one, other.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredCTInc(other.ct, one, here.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredCTInc(PTL_CT_NONE, one, here.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredCTSet(here.ct, one, PTL_CT_NONE, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredCTSet(md, one, here.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlCTCancelTriggered(PTL_CT_NONE), PTL_ARG_INVALID);
	assert_code(PtlCTCancelTriggered(here.eq), PTL_ARG_INVALID);
	node_close(&other);
}

static void descriptors__that_are_gone_by_then_make_the_operation_vanish(void **state)
{
	ptl_handle_md_t gone = md_make(&here, source, sizeof(source), 0);

	(void)state;
	assert_ok(PtlTriggeredPut(gone, 0, 8, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 1, here.ct, 1));
	assert_ok(PtlMDRelease(gone));
	count(here.ct, 1);
	expect_no_put();
}

static void interfaces__that_close_drop_what_waits(void **state)
{
	ptl_process_t to = there.id;
	struct node again;
	ptl_event_t event;

	(void)state;
	assert_ok(put_word(1, here.ct, 1));
	node_close(&here);
	node_open(&again, 0, MATCHING);
	md = md_make(&again, source, sizeof(source), PTL_MD_EVENT_SEND_DISABLE);
	count(again.ct, 1);
	assert_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, to, 0, 5, 0, NULL, 4711));
	expect_put(4711);
	assert_code(PtlEQGet(there.eq, &event), PTL_EQ_EMPTY);
	here = again;
}

/* --- entries that come and go when a counter has come so far */

static char inbox[64];

static ptl_me_t inbox_entry(unsigned options)
{
	return (ptl_me_t){.start = inbox,
		.length = sizeof(inbox),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | options,
		.match_id = ANYONE,
		.match_bits = 8};
}

/* Puts "hello" to the entry of inbox_entry(). Returns what becomes of it. */
static ptl_ni_fail_t inbox_put(void)
{
	static char hello[] = "hello";
	ptl_handle_md_t from = md_make(&here, hello, sizeof(hello), PTL_MD_EVENT_SEND_DISABLE);
	ptl_ni_fail_t verdict;

	assert_ok(
		PtlPut(from, 0, sizeof(hello), PTL_ACK_REQ, there.id, there.portal, 8, 0, NULL, 0));
	verdict = expect_event(here.eq, PTL_EVENT_ACK).ni_fail_type;
	assert_ok(PtlMDRelease(from));
	return verdict;
}

static void entries__are_read_and_appended_when_the_threshold_is_reached(void **state)
{
	ptl_me_t me = {.options = UINT32_MAX}; /* not valid yet */
	ptl_handle_me_t handle = PTL_INVALID_HANDLE;
	ptl_event_t event;

	(void)state;
	memset(inbox, 0, sizeof(inbox));
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, inbox, &handle, there.ct, 2));
	count(there.ct, 1);
	assert_int_equal(inbox_put(), PTL_NI_DROPPED);
	assert_int_equal(handle, PTL_INVALID_HANDLE);
	me = inbox_entry(0);
	count(there.ct, 1);
	event = expect_event(there.eq, PTL_EVENT_LINK);
	assert_ptr_equal(event.user_ptr, inbox);
	assert_int_not_equal(handle, PTL_INVALID_HANDLE);
	assert_int_equal(inbox_put(), PTL_NI_OK);
	assert_string_equal(inbox, "hello");
	expect_event(there.eq, PTL_EVENT_PUT);
	assert_ok(PtlMEUnlink(handle));
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
}

static void entries__of_several_pieces_are_appended_with_them(void **state)
{
	ptl_iovec_t pieces[] = {{inbox, 2}, {inbox + 10, 20}};
	ptl_me_t me = inbox_entry(PTL_IOVEC);
	ptl_handle_me_t handle;

	(void)state;
	memset(inbox, 0, sizeof(inbox));
	me.start = pieces;
	me.length = 2;
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, &handle, there.ct, 1));
	count(there.ct, 1);
	expect_event(there.eq, PTL_EVENT_LINK);
	memset(pieces, 0, sizeof(pieces)); /* they have been copied */
	assert_int_equal(inbox_put(), PTL_NI_OK);
	assert_memory_equal(inbox, "he", 3);
	assert_string_equal(inbox + 10, "llo");
	assert_ok(PtlMEUnlink(handle));
}

/* One that arrived before is claimed at once. */
static void entries__that_are_triggered_take_what_was_kept(void **state)
{
	static char block[64];
	ptl_me_t over = inbox_entry(PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE);
	ptl_me_t me = inbox_entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
	ptl_handle_me_t kept, handle;

	(void)state;
	over.start = block;
	assert_ok(PtlMEAppend(there.ni, there.portal, &over, PTL_OVERFLOW_LIST, NULL, &kept));
	assert_int_equal(inbox_put(), PTL_NI_OK);
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, &handle, there.ct, 1));
	expect_none(there.eq);
	count(there.ct, 1);
	assert_ptr_equal(expect_event(there.eq, PTL_EVENT_PUT_OVERFLOW).start, block);
	assert_ok(PtlMEUnlink(kept));
}

static void entries__that_cannot_be_appended_have_no_handle(void **state)
{
	void *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ptl_me_t me = inbox_entry(0);
	ptl_handle_me_t handle = 1, other = 1;
	struct node third;

	(void)state;
	node_open(&third, 1, LISTED); /* the library's handler of SIGSEGV is above cmocka's again */
	me.options = UINT32_MAX;
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, &handle, there.ct, 1));
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, gone, PTL_PRIORITY_LIST, NULL, &other, there.ct, 1));
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, gone, there.ct, 1));
	/* Not unmapped: other threads may map memory of their own there. */
	assert_int_equal(mprotect(gone, 4096, PROT_NONE), 0);
	count(there.ct, 1);
	assert_int_equal(inbox_put(), PTL_NI_DROPPED); /* and the program lives */
	assert_int_equal(handle, PTL_INVALID_HANDLE);
	assert_int_equal(other, PTL_INVALID_HANDLE);
	node_close(&third);
	munmap(gone, 4096);
}

static void entries__are_unlinked_when_the_threshold_is_reached(void **state)
{
	ptl_me_t me = inbox_entry(PTL_ME_EVENT_LINK_DISABLE);
	ptl_handle_me_t handle;

	(void)state;
	assert_ok(PtlMEAppend(there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, &handle));
	assert_ok(PtlTriggeredMEUnlink(handle, there.ct, 2));
	assert_ok(PtlTriggeredMEUnlink(handle, there.ct, 3)); /* it has gone by then */
	count(there.ct, 1);
	assert_int_equal(inbox_put(), PTL_NI_OK);
	count(there.ct, 2);
	assert_int_equal(inbox_put(), PTL_NI_DROPPED);
	assert_code(PtlMEUnlink(handle), PTL_ARG_INVALID);
}

static void entries__that_wait_are_checked_by_the_call(void **state)
{
	ptl_me_t me = inbox_entry(0);
	ptl_handle_me_t handle;
	struct node other;

	(void)state;
	node_open(&other, 1, LISTED);
#define APPEND(ni, portal, me, list, handle, ct)                                                   \
	assert_code(                                                                               \
		PtlTriggeredMEAppend(ni, portal, me, list, NULL, handle, ct, 1), PTL_ARG_INVALID)
	APPEND(there.eq, 0, &me, PTL_PRIORITY_LIST, &handle, there.ct);
	APPEND(other.ni, 0, &me, PTL_PRIORITY_LIST, &handle, other.ct);
	APPEND(there.ni, (ptl_pt_index_t)there.limits.max_pt_index + 1, &me, PTL_PRIORITY_LIST,
		&handle, there.ct);
	APPEND(there.ni, 0, NULL, PTL_PRIORITY_LIST, &handle, there.ct);
	APPEND(there.ni, 0, &me, 2, &handle, there.ct);
	APPEND(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, there.ct);
	APPEND(there.ni, 0, &me, PTL_PRIORITY_LIST, &handle, PTL_CT_NONE);
	APPEND(there.ni, 0, &me, PTL_PRIORITY_LIST, &handle, other.ct);
#undef APPEND
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
	assert_code(PtlTriggeredMEUnlink(there.eq, there.ct, 1), PTL_ARG_INVALID);
	assert_code(PtlTriggeredMEUnlink(handle, other.ct, 1), PTL_ARG_INVALID);
	assert_ok(PtlMEUnlink(handle));
	assert_code(PtlTriggeredMEUnlink(handle, there.ct, 1), PTL_ARG_INVALID);
	node_close(&other);
}

static void entries__that_wait_go_with_their_interface(void **state)
{
	ptl_me_t me = inbox_entry(0);
	ptl_handle_me_t handle = 1;

	(void)state;
	assert_ok(PtlTriggeredMEAppend(
		there.ni, there.portal, &me, PTL_PRIORITY_LIST, NULL, &handle, there.ct, 1));
	node_close(&there);
	node_open(&there, 1, MATCHING);
	count(there.ct, 1);
	assert_int_equal(inbox_put(), PTL_NI_DROPPED);
	assert_int_equal(handle, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(puts__read_their_data_when_the_threshold_is_reached),
		TEST(gets__are_triggered_and_count),
		TEST(thresholds__are_of_successes_and_failures_together),
		TEST(order__of_one_change_is_that_of_the_calls),
		TEST(order__of_a_chain_goes_behind_what_is_ready),
		TEST(counts__that_fall_keep_the_rest_waiting),
		TEST(counters__change_each_other),
		TEST(counters__may_trigger_increments_of_themselves),
		TEST(puts__are_triggered_by_what_arrives),
		TEST(progress__needs_no_call),
		TEST(limit__is_of_all_that_waits_and_is_given_back),
		TEST(cancelling__leaves_the_counter_and_nothing_that_waits),
		TEST(arguments__are_checked_by_the_call),
		TEST(descriptors__that_are_gone_by_then_make_the_operation_vanish),
		TEST(interfaces__that_close_drop_what_waits),
		TEST(entries__are_read_and_appended_when_the_threshold_is_reached),
		TEST(entries__of_several_pieces_are_appended_with_them),
		TEST(entries__that_are_triggered_take_what_was_kept),
		TEST(entries__that_cannot_be_appended_have_no_handle),
		TEST(entries__are_unlinked_when_the_threshold_is_reached),
		TEST(entries__that_wait_are_checked_by_the_call),
		TEST(entries__that_wait_go_with_their_interface),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_open, group_close);
}
