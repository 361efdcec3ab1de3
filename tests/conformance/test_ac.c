/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ac.c - the access control table (3.10): PtlACEntry, and what it lets through.
 *
 * Covers: lib/p3/access.c.
 */
#include "fixture.h"

#define COOKIE 2

static void put_with(ptl_handle_md_t md, ptl_ac_index_t cookie)
{
	assert_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, cookie, 0, 0, 0));
}

/* Was a put with this cookie let in? If not, it must have been counted. */
static bool admitted(struct end target, ptl_handle_md_t md, ptl_ac_index_t cookie)
{
	ptl_sr_value_t before = drops(&there);
	ptl_event_t event;
	int code;

	put_with(md, cookie);
	fence(&here, &there);
	code = PtlEQGet(target.eq, &event);
	if (code == PTL_OK) {
		assert_int_equal(event.type, PTL_EVENT_PUT_START);
		expect_event(target.eq, PTL_EVENT_PUT_END);
		assert_int_equal(drops(&there), before);
		return true;
	}
	assert_code(code, PTL_EQ_EMPTY);
	assert_int_equal(drops(&there), before + 1);
	return false;
}

static void entry_zero__admits_every_process_of_the_same_user_to_every_portal(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	const ptl_pt_index_t portals[] = {0, PORTAL, there.limits.max_ptable_index};
	ptl_handle_eq_t eq = queue_make(&there, EQ_ROOM);
	ptl_handle_me_t me;

	(void)state;
	for (size_t i = 0; i < COUNT(portals); i++) {
		assert_ok(PtlMEAttach(
			there.ni, portals[i], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
		region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, eq), PTL_RETAIN, PTL_RETAIN);
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, portals[i], 0, 0, 0, 0));
		assert_int_equal(expect_pair(eq, PTL_EVENT_PUT_START).portal, portals[i]);
	}
}

static void entry_zero__admits_on_both_interfaces(void **state)
{
	struct end from_here = source_make(&here, NULL, 0),
		   from_there = source_make(&there, NULL, 0);
	struct end to_here = target_make(&here, NULL, 0, PTL_MD_OP_PUT);
	struct end to_there = target_make(&there, NULL, 0, PTL_MD_OP_PUT);

	(void)state;
	put_to(from_here.md, &there, 0);
	expect_pair(to_there.eq, PTL_EVENT_PUT_START);
	put_to(from_there.md, &here, 0);
	expect_pair(to_here.eq, PTL_EVENT_PUT_START);
}

static void other_entries__admit_nobody_until_they_are_set(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	for (ptl_ac_index_t cookie = 1; cookie <= there.limits.max_atable_index && cookie <= 8;
		cookie++)
		assert_false(admitted(target, source.md, cookie));
	assert_false(admitted(target, source.md, there.limits.max_atable_index));
}

static void cookies__beyond_the_table_admit_nobody(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_false(admitted(target, source.md, there.limits.max_atable_index + 1));
	assert_false(admitted(target, source.md, UINT32_MAX));
}

static void ptl_ac_entry__admits_when_and_only_when_node_process_user_and_portal_all_match(
	void **state)
{
	/* Each field names the initiator, somebody else, or everybody. */
	enum { SAME, OTHER, ANY, CHOICES };
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);
	ptl_uid_t uid;

	(void)state;
	assert_ok(PtlGetUid(here.ni, &uid));
	for (unsigned n = 0; n < CHOICES * CHOICES * CHOICES * CHOICES; n++) {
		const unsigned choice[] = {n % 3, n / 3 % 3, n / 9 % 3, n / 27 % 3};
		const ptl_nid_t nids[] = {here.id.nid, here.id.nid + 1, PTL_NID_ANY};
		const ptl_pid_t pids[] = {here.id.pid, here.id.pid ^ 1, PTL_PID_ANY};
		const ptl_uid_t uids[] = {uid, uid + 1, PTL_UID_ANY};
		const ptl_pt_index_t portals[] = {PORTAL, PORTAL + 1, PTL_PT_INDEX_ANY};
		const ptl_process_id_t process = {nids[choice[0]], pids[choice[1]]};
		bool wanted = true;

		for (size_t i = 0; i < COUNT(choice); i++)
			wanted = wanted && choice[i] != OTHER;
		assert_ok(
			PtlACEntry(there.ni, COOKIE, process, uids[choice[2]], portals[choice[3]]));
		assert_int_equal(admitted(target, source.md, COOKIE), wanted);
	}
}

static void ptl_ac_entry__counts_for_gets_as_well(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_GET),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlGet(source.md, there.id, PORTAL, COOKIE, 0, 0));
	expect_event(source.eq, PTL_EVENT_REPLY_FAIL);
	assert_int_equal(drops(&there), 1);
	assert_ok(PtlACEntry(there.ni, COOKIE, here.id, PTL_UID_ANY, PORTAL));
	assert_ok(PtlGet(source.md, there.id, PORTAL, COOKIE, 0, 0));
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
	expect_pair(target.eq, PTL_EVENT_GET_START);
}

static void ptl_ac_entry__changes_an_entry_again_and_again_also_entry_zero(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	fence(&here, &there); /* uses entry 0 */
	assert_ok(PtlACEntry(there.ni, 0, ANY_PROCESS, PTL_UID_ANY, PORTAL_FENCE));
	assert_false(admitted(target, source.md, 0));
	assert_ok(PtlACEntry(there.ni, 0, ANY_PROCESS, PTL_UID_ANY, PTL_PT_INDEX_ANY));
	assert_true(admitted(target, source.md, 0));
}

static void ptl_ac_entry__leaves_the_other_entries_alone(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlACEntry(there.ni, COOKIE, here.id, PTL_UID_ANY, PORTAL));
	assert_false(admitted(target, source.md, COOKIE - 1));
	assert_false(admitted(target, source.md, COOKIE + 1));
	assert_true(admitted(target, source.md, COOKIE));
	assert_true(admitted(target, source.md, 0));
}

static void ptl_ac_entry__leaves_the_other_interface_alone(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlACEntry(here.ni, COOKIE, ANY_PROCESS, PTL_UID_ANY, PTL_PT_INDEX_ANY));
	assert_false(admitted(target, source.md, COOKIE));
}

static void discarded_put__is_never_acknowledged(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	assert_ok(PtlPut(source.md, PTL_ACK_REQ, there.id, PORTAL, COOKIE, 0, 0, 0));
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	fence(&here, &there);
	expect_no_event(source.eq);
}

static void ptl_ac_entry__refuses_what_it_should_and_changes_nothing(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT),
		   source = source_make(&here, NULL, 0);

	(void)state;
	assert_code(PtlACEntry(0, COOKIE, ANY_PROCESS, PTL_UID_ANY, PORTAL), PTL_INV_NI);
	assert_code(PtlACEntry(PTL_INVALID_HANDLE, COOKIE, ANY_PROCESS, PTL_UID_ANY, PORTAL),
		PTL_INV_NI);
	assert_code(PtlACEntry(there.ni, there.limits.max_atable_index + 1, ANY_PROCESS,
			    PTL_UID_ANY, PORTAL),
		PTL_AC_INV_INDEX);
	assert_code(PtlACEntry(there.ni, UINT32_MAX, ANY_PROCESS, PTL_UID_ANY, PORTAL),
		PTL_AC_INV_INDEX);
	assert_code(PtlACEntry(there.ni, COOKIE, BAD_PROCESS, PTL_UID_ANY, PORTAL), PTL_INV_PROC);
	assert_code(PtlACEntry(there.ni, COOKIE, ANY_PROCESS, PTL_UID_ANY,
			    there.limits.max_ptable_index + 1),
		PTL_PT_INV_INDEX);
	assert_false(admitted(target, source.md, COOKIE));
	assert_ok(PtlACEntry(there.ni, there.limits.max_atable_index, ANY_PROCESS, PTL_UID_ANY,
		there.limits.max_ptable_index));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(entry_zero__admits_every_process_of_the_same_user_to_every_portal),
		TEST_BOTH(entry_zero__admits_on_both_interfaces),
		TEST_BOTH(other_entries__admit_nobody_until_they_are_set),
		TEST_BOTH(cookies__beyond_the_table_admit_nobody),
		TEST_BOTH(
			ptl_ac_entry__admits_when_and_only_when_node_process_user_and_portal_all_match),
		TEST_BOTH(ptl_ac_entry__counts_for_gets_as_well),
		TEST_BOTH(ptl_ac_entry__changes_an_entry_again_and_again_also_entry_zero),
		TEST_BOTH(ptl_ac_entry__leaves_the_other_entries_alone),
		TEST_BOTH(ptl_ac_entry__leaves_the_other_interface_alone),
		TEST_BOTH(discarded_put__is_never_acknowledged),
		TEST_BOTH(ptl_ac_entry__refuses_what_it_should_and_changes_nothing),
	};

	return cmocka_run_group_tests_name("ac", tests, group_open, group_close);
}
