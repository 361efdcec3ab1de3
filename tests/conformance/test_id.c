/* SPDX-License-Identifier: BSD-3-Clause */
/* test_id.c - user identification (3.5.6) and process identification (3.6): PtlGetUid, PtlGetId. */
#include "fixture.h"

#include <unistd.h>

static void ptl_get_uid__is_the_user_on_whose_behalf_the_process_runs(void **state)
{
	ptl_uid_t uid = PTL_UID_ANY;

	(void)state;
	assert_ok(PtlGetUid(here.ni, &uid));
	assert_int_equal(uid, getuid());
}

static void ptl_get_uid__is_the_same_on_both_interfaces_of_a_process(void **state)
{
	ptl_uid_t first = PTL_UID_ANY, second = PTL_UID_ANY;

	(void)state;
	assert_ok(PtlGetUid(here.ni, &first));
	assert_ok(PtlGetUid(there.ni, &second));
	assert_int_equal(first, second);
	assert_int_not_equal(first, PTL_UID_ANY);
}

static void ptl_get_uid__refuses_what_it_should(void **state)
{
	ptl_uid_t uid;

	(void)state;
	assert_code(PtlGetUid(0, &uid), PTL_INV_NI);
	assert_code(PtlGetUid(PTL_INVALID_HANDLE, &uid), PTL_INV_NI);
	assert_code(PtlGetUid(queue_make(&here, 1), &uid), PTL_INV_NI);
	assert_code(PtlGetUid(here.ni, NULL), PTL_SEGV);
	assert_code(PtlGetUid(here.ni, WILD), PTL_SEGV);
}

static void ptl_get_id__has_a_node_id_of_each_interface(void **state)
{
	ptl_process_id_t id;

	(void)state;
	assert_ok(PtlGetId(here.ni, &id));
	assert_int_equal(id.nid, 1);
	assert_ok(PtlGetId(there.ni, &id));
	assert_int_equal(id.nid, 2);
}

static void ptl_get_id__has_no_wildcard(void **state)
{
	ptl_process_id_t id;

	(void)state;
	assert_ok(PtlGetId(here.ni, &id));
	assert_int_not_equal(id.nid, PTL_NID_ANY);
	assert_int_not_equal(id.pid, PTL_PID_ANY);
	assert_true(id.pid <= PTL_PID_MAX);
}

static void ptl_get_id__stays_the_same(void **state)
{
	ptl_process_id_t id;

	(void)state;
	fence(&here, &there);
	assert_ok(PtlGetId(here.ni, &id));
	assert_int_equal(id.nid, here.id.nid);
	assert_int_equal(id.pid, here.id.pid);
}

static void ptl_get_id__is_what_others_see_as_the_initiator(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	struct end source = source_make(&here, NULL, 0);
	ptl_event_t event;

	(void)state;
	put_to(source.md, &there, 0);
	event = expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_int_equal(event.initiator.nid, here.id.nid);
	assert_int_equal(event.initiator.pid, here.id.pid);
}

static void ptl_get_id__refuses_what_it_should(void **state)
{
	ptl_process_id_t id;

	(void)state;
	assert_code(PtlGetId(0, &id), PTL_INV_NI);
	assert_code(PtlGetId(PTL_INVALID_HANDLE, &id), PTL_INV_NI);
	assert_code(PtlGetId(queue_make(&here, 1), &id), PTL_INV_NI);
	assert_code(PtlGetId(here.ni, NULL), PTL_SEGV);
	assert_code(PtlGetId(here.ni, WILD), PTL_SEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(ptl_get_uid__is_the_user_on_whose_behalf_the_process_runs),
		TEST_BOTH(ptl_get_uid__is_the_same_on_both_interfaces_of_a_process),
		TEST_HERE(ptl_get_uid__refuses_what_it_should),
		TEST_BOTH(ptl_get_id__has_a_node_id_of_each_interface),
		TEST_HERE(ptl_get_id__has_no_wildcard),
		TEST_BOTH(ptl_get_id__stays_the_same),
		TEST_BOTH(ptl_get_id__is_what_others_see_as_the_initiator),
		TEST_HERE(ptl_get_id__refuses_what_it_should),
	};

	return cmocka_run_group_tests_name("id", tests, group_open, group_close);
}
