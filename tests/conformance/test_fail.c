/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fail.c - operations that fail, and descriptors that are in use meanwhile (3.9, failure
 * notification): towards a process that does not exist an operation stays pending until
 * PTL_PEER_TIMEOUT. Run with a short one. */
#include "fixture.h"

static char data[64];

/* A process of which nobody has heard. */
static ptl_process_id_t nobody(void)
{
	return (ptl_process_id_t){77, 77};
}

static void put_to_nobody(ptl_handle_md_t md, ptl_ack_req_t ack)
{
	assert_ok(PtlPut(md, ack, nobody(), PORTAL, 0, 5, 0, 0));
}

static void ptl_put__to_nobody_ends_in_send_fail(void **state)
{
	struct end source = source_make(&here, data, sizeof(data));
	ptl_event_t start, fail;

	(void)state;
	put_to_nobody(source.md, PTL_ACK_REQ);
	start = expect_event(source.eq, PTL_EVENT_SEND_START);
	fail = expect_event(source.eq, PTL_EVENT_SEND_FAIL);
	assert_int_equal(fail.ni_fail_type, PTL_NI_UNREACHABLE);
	assert_int_equal(start.ni_fail_type, PTL_NI_OK);
	assert_true(fail.link == start.sequence);
	assert_true(fail.md_handle == source.md);
	assert_int_equal(fail.match_bits, 5);
	expect_no_event(source.eq); /* no acknowledgement */
	assert_ok(PtlMDUnlink(source.md));
}

static void ptl_get__from_nobody_ends_in_reply_fail(void **state)
{
	struct end source = source_make(&here, data, sizeof(data));
	ptl_event_t fail;

	(void)state;
	assert_ok(PtlGet(source.md, nobody(), PORTAL, 0, 5, 0));
	fail = expect_event(source.eq, PTL_EVENT_REPLY_FAIL);
	assert_int_equal(fail.ni_fail_type, PTL_NI_UNREACHABLE);
	assert_true(fail.link == fail.sequence);
	assert_true(fail.md_handle == source.md);
	expect_no_event(source.eq);
	assert_ok(PtlMDUnlink(source.md));
}

static void ptl_md_unlink__refuses_a_descriptor_with_a_send_pending(void **state)
{
	struct end source = source_make(&here, data, sizeof(data));

	(void)state;
	put_to_nobody(source.md, PTL_NOACK_REQ);
	assert_code(PtlMDUnlink(source.md), PTL_MD_INUSE);
	assert_code(PtlMDUnlink(source.md), PTL_MD_INUSE);
	expect_event(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_SEND_FAIL);
	assert_ok(PtlMDUnlink(source.md));
}

static void ptl_md_unlink__refuses_a_descriptor_with_a_reply_pending(void **state)
{
	struct end source = source_make(&here, data, sizeof(data));

	(void)state;
	assert_ok(PtlGet(source.md, nobody(), PORTAL, 0, 0, 0));
	assert_code(PtlMDUnlink(source.md), PTL_MD_INUSE);
	expect_event(source.eq, PTL_EVENT_REPLY_FAIL);
	assert_ok(PtlMDUnlink(source.md));
}

static void
ptl_me_unlink__refuses_an_entry_whose_descriptor_has_an_operation_pending_and_changes_nothing(
	void **state)
{
	struct end source =
		target_make(&here, data, sizeof(data), PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	struct end other = source_make(&here, data, 8);
	ptl_md_t now;

	(void)state;
	put_to_nobody(source.md, PTL_NOACK_REQ);
	assert_code(PtlMEUnlink(source.me), PTL_MD_INUSE);
	assert_code(PtlMDUnlink(source.md), PTL_MD_INUSE);
	assert_ok(PtlMDUpdate(source.md, &now, NULL, PTL_EQ_NONE));
	assert_int_equal(now.length, sizeof(data));
	put_to(other.md, &here, 0);                 /* still in its list */
	for (unsigned seen = 0; seen < 4; seen++) { /* SEND_START, PUT_START, PUT_END, SEND_FAIL */
		ptl_event_t event = next_event(source.eq);

		assert_true(event.type == PTL_EVENT_SEND_START ||
			    event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_PUT_END ||
			    event.type == PTL_EVENT_SEND_FAIL);
	}
	assert_ok(PtlMEUnlink(source.me));
	assert_code(PtlMDUnlink(source.md), PTL_INV_MD);
}

static void operations_to_nobody__leave_operations_to_others_alone(void **state)
{
	struct end lost = source_make(&here, data, sizeof(data));

	(void)state;
	put_to_nobody(lost.md, PTL_NOACK_REQ);
	for (int i = 0; i < 100; i++)
		fence(&here, &there);
	expect_event(lost.eq, PTL_EVENT_SEND_START);
	expect_event(lost.eq, PTL_EVENT_SEND_FAIL);
	fence(&here, &there);
}

static void many_operations_to_nobody__each_end_once(void **state)
{
	enum { OPERATIONS = 100 };
	ptl_handle_eq_t eq = queue_make(&here, (ptl_size_t)OPERATIONS * 3);
	ptl_handle_md_t md = region_bind(&here, region(data, sizeof(data), 0, eq));
	unsigned starts = 0, sends = 0, replies = 0;

	(void)state;
	for (int i = 0; i < OPERATIONS; i++) {
		put_to_nobody(md, PTL_ACK_REQ);
		assert_ok(PtlGet(md, nobody(), PORTAL, 0, 0, 0));
	}
	while (sends < OPERATIONS || replies < OPERATIONS) {
		ptl_event_t event = next_event(eq);

		starts += event.type == PTL_EVENT_SEND_START;
		sends += event.type == PTL_EVENT_SEND_FAIL;
		replies += event.type == PTL_EVENT_REPLY_FAIL;
	}
	assert_int_equal(starts, OPERATIONS);
	assert_int_equal(sends, OPERATIONS);
	expect_no_event(eq);
	assert_ok(PtlMDUnlink(md));
}

static void failed_send__charges_the_threshold_like_any_other(void **state)
{
	ptl_md_t md = limited(region(data, sizeof(data), 0, PTL_EQ_NONE), 1);
	struct end source = target_of(&here, md, PTL_RETAIN, PTL_RETAIN);
	ptl_event_t fail;

	(void)state;
	put_to_nobody(source.md, PTL_NOACK_REQ);
	expect_event(source.eq, PTL_EVENT_SEND_START);
	fail = expect_event(source.eq, PTL_EVENT_SEND_FAIL);
	assert_int_equal(fail.mem_desc.threshold, 0);
	assert_code(PtlPut(source.md, PTL_NOACK_REQ, here.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	assert_ok(PtlMEUnlink(source.me));
}

static void ptl_ni_fini__does_not_wait_for_operations_to_nobody_to_succeed(void **state)
{
	struct end source = source_make(&here, data, sizeof(data));

	(void)state;
	for (int i = 0; i < 10; i++)
		put_to_nobody(source.md, PTL_NOACK_REQ);
	node_close(&here);
	node_open(&here, 0, NULL);
	fence(&here, &there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(ptl_put__to_nobody_ends_in_send_fail),
		TEST_BOTH(ptl_get__from_nobody_ends_in_reply_fail),
		TEST_BOTH(ptl_md_unlink__refuses_a_descriptor_with_a_send_pending),
		TEST_BOTH(ptl_md_unlink__refuses_a_descriptor_with_a_reply_pending),
		TEST_BOTH(
			ptl_me_unlink__refuses_an_entry_whose_descriptor_has_an_operation_pending_and_changes_nothing),
		TEST_BOTH(operations_to_nobody__leave_operations_to_others_alone),
		TEST_BOTH(many_operations_to_nobody__each_end_once),
		TEST_BOTH(failed_send__charges_the_threshold_like_any_other),
		TEST_BOTH(ptl_ni_fini__does_not_wait_for_operations_to_nobody_to_succeed),
	};

	environment_default("PTL_PEER_TIMEOUT", "1s");
	return cmocka_run_group_tests_name("fail", tests, group_open, group_close);
}
