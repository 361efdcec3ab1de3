/* SPDX-License-Identifier: BSD-3-Clause */
/* test_under_way.c - Portals and entries that go, or are asked for, while messages to them are
 * under way (5, 6, 7, 8).
 *
 * Covers: lib/p4/entry.c, lib/p4/portal.c.
 */
#include "fixture.h"

#define BYTES 300000

static unsigned char source[BYTES], target[BYTES], block[BYTES];

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
		.options = options | PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANYONE,
		.match_bits = bits};
}

/* Long messages are under way when the Portal is disabled: what was accepted has ended with its
 * event when the call returns, and all else is refused. */
static void portals__that_are_disabled_wait_for_what_they_have_accepted(void **state)
{
	enum { PUTS = 8, ROUNDS = 20 };
	const ptl_me_t me = me_of(0, 5);
	ptl_handle_me_t handle;
	ptl_event_t event;

	(void)state;
	assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned ended = 0, accepted = 0;

		for (unsigned i = 0; i < PUTS; i++)
			assert_ok(
				PtlPut(md, 0, BYTES, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, round));
		if (round % 2)
			usleep(round * 20);
		assert_ok(PtlPTDisable(there.ni, 0));
		for (; PtlEQGet(there.eq, &event) == PTL_OK; ended++)
			assert_int_equal(event.type, PTL_EVENT_PUT);
		for (unsigned i = 0; i < PUTS; i++) {
			event = expect_event(here.eq, PTL_EVENT_ACK);
			accepted += event.ni_fail_type == PTL_NI_OK;
			if (event.ni_fail_type != PTL_NI_OK)
				assert_int_equal(event.ni_fail_type, PTL_NI_PT_DISABLED);
		}
		assert_int_equal(accepted, ended);
		expect_none(there.eq);
		assert_ok(PtlPTEnable(there.ni, 0));
	}
}

/* An entry that a long message has used up is in no list: PtlPTFree waits for the message. */
static void portals__that_go_wait_for_messages_in_progress(void **state)
{
	enum { ROUNDS = 20 };
	const ptl_me_t me = me_of(PTL_ME_USE_ONCE, 5);
	ptl_handle_me_t handle;
	ptl_event_t event;
	int code;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
		assert_ok(PtlPut(md, 0, BYTES, PTL_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		while ((code = PtlPTFree(there.ni, 0)) == PTL_PT_IN_USE)
			;
		assert_int_equal(code, PTL_OK);
		assert_ok(PtlEQGet(there.eq, &event));
		assert_int_equal(event.type, PTL_EVENT_PUT);
		assert_int_equal(event.mlength, BYTES);
		assert_ok(PtlEQGet(there.eq, &event));
		assert_int_equal(event.type, PTL_EVENT_AUTO_UNLINK);
		assert_int_equal(expect_event(here.eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_OK);
		assert_ok(PtlPTAlloc(there.ni, 0, there.eq, 0, &there.portal));
	}
}

/* Whoever has read the event of the last message may unlink. */
static void entries__can_be_unlinked_when_the_last_event_was_read(void **state)
{
	enum { ROUNDS = 100 };
	ptl_me_t me = me_of(PTL_ME_OP_GET, 5);
	const ptl_size_t sizes[] = {8, 5000, BYTES};
	ptl_handle_me_t handle;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		ptl_size_t size = sizes[round % COUNT(sizes)];

		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
		assert_ok(PtlPut(md, 0, size, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 0));
		expect_event(there.eq, PTL_EVENT_PUT);
		assert_ok(PtlMEUnlink(handle));
		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
		assert_ok(PtlGet(md, 0, size, there.id, 0, 5, 0, NULL));
		expect_event(there.eq, PTL_EVENT_GET);
		assert_ok(PtlMEUnlink(handle));
		expect_event(here.eq, PTL_EVENT_REPLY);
	}
}

/* A long message and one that violates min_free behind it: the entry is unlinked when both are
 * over, whichever ends first. */
static void auto_unlink__comes_after_the_last_message_in_progress(void **state)
{
	enum { ROUNDS = 50 };
	ptl_me_t me = me_of(PTL_ME_MANAGE_LOCAL, 5);
	ptl_handle_me_t handle;

	(void)state;
	me.length = BYTES;
	me.min_free = BYTES / 4;
	for (unsigned round = 0; round < ROUNDS; round++) {
		ptl_size_t first = round % 2 ? BYTES / 2 : 8, second = round % 2 ? 8 : BYTES / 2;

		memset(target, 0, BYTES);
		assert_ok(PtlMEAppend(there.ni, 0, &me, PTL_PRIORITY_LIST, target, &handle));
		assert_ok(PtlPut(md, 0, first, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 1));
		assert_ok(PtlPut(md, 0, second, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 2));
		assert_ok(PtlPut(
			md, 0, BYTES - BYTES / 2 - 8, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, 3));
		for (unsigned i = 0; i < 3; i++)
			expect_event(there.eq, PTL_EVENT_PUT);
		expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
		assert_memory_equal(target + first, source, second);
		assert_memory_equal(target + first + second, source, BYTES - BYTES / 2 - 8);
	}
}

/* A long message may be arriving in an overflow entry, have arrived there, or not have come, when
 * an entry is appended that asks for it. */
static void appends__claim_messages_that_are_arriving(void **state)
{
	enum { ROUNDS = 100 };
	ptl_me_t over = me_of(PTL_ME_USE_ONCE, 5), once = me_of(PTL_ME_USE_ONCE, 5);
	unsigned claimed = 0;

	(void)state;
	over.start = block;
	for (unsigned round = 0; round < ROUNDS; round++) {
		ptl_handle_me_t handle, other;
		ptl_event_t event;
		int code;

		memset(target, 0, BYTES);
		memset(block, 0, BYTES);
		assert_ok(PtlMEAppend(there.ni, 0, &over, PTL_OVERFLOW_LIST, block, &other));
		assert_ok(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, there.id, 0, 5, 0, NULL, round));
		usleep(round % 8 * 10);
		assert_ok(PtlMEAppend(there.ni, 0, &once, PTL_PRIORITY_LIST, target, &handle));
		/* It is used up, and is the program's again when the message has ended. */
		while ((code = PtlMEUnlink(handle)) == PTL_IN_USE)
			;
		event = expect_event(there.eq, PTL_EVENT_PUT);
		assert_int_equal(event.hdr_data, round);
		if (event.ptl_list == PTL_PRIORITY_LIST) {
			assert_code(code, PTL_ARG_INVALID);
			expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
			assert_memory_equal(target, source, BYTES);
			assert_ok(PtlMEUnlink(other));
			continue;
		}
		assert_memory_equal(block, source, BYTES);
		expect_event(there.eq, PTL_EVENT_AUTO_UNLINK);
		if (code == PTL_OK) { /* before the message came */
			assert_ok(PtlMESearch(there.ni, 0, &once, PTL_SEARCH_DELETE, target));
			expect_event(there.eq, PTL_EVENT_PUT_OVERFLOW);
			expect_event(there.eq, PTL_EVENT_AUTO_FREE);
			continue;
		}
		claimed++;
		event = expect_event(there.eq, PTL_EVENT_PUT_OVERFLOW);
		assert_true(event.user_ptr == target && event.start == block);
		assert_int_equal(event.mlength, BYTES);
		assert_true(expect_event(there.eq, PTL_EVENT_AUTO_FREE).user_ptr == block);
		assert_true(expect_event(there.eq, PTL_EVENT_AUTO_UNLINK).user_ptr == target);
		assert_int_equal(target[0], 0);
	}
	print_message("%u of %d messages were claimed\n", claimed, ROUNDS);
	expect_none(there.eq);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(portals__that_are_disabled_wait_for_what_they_have_accepted),
		TEST(portals__that_go_wait_for_messages_in_progress),
		TEST(entries__can_be_unlinked_when_the_last_event_was_read),
		TEST(auto_unlink__comes_after_the_last_message_in_progress),
		TEST(appends__claim_messages_that_are_arriving),
	};
#undef TEST

	return cmocka_run_group_tests(tests, group_open, group_close);
}
