/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits.c - the limits of an interface (3.5.1): what was granted, every object up to it, and
 * one more. */
#include "fixture.h"

#define SMALL 6

static void small_open(void)
{
	ptl_ni_limits_t desired = {SMALL, SMALL, SMALL, SMALL, SMALL};

	node_open(&here, 0, &desired);
}

static void default_limits__are_useful(void **state)
{
	(void)state;
	assert_true(here.limits.max_match_entries >= 1000);
	assert_true(here.limits.max_mem_descriptors >= 1000);
	assert_true(here.limits.max_event_queues >= 64);
	assert_true(here.limits.max_atable_index >= 1);
	assert_true(here.limits.max_ptable_index >= 7);
}

static void desired_limits__are_granted(void **state)
{
	(void)state;
	small_open();
	assert_true(here.limits.max_match_entries >= SMALL);
	assert_true(here.limits.max_mem_descriptors >= SMALL);
	assert_true(here.limits.max_event_queues >= SMALL);
	assert_true(here.limits.max_atable_index >= SMALL);
	assert_true(here.limits.max_ptable_index >= SMALL);
}

static void desired_and_actual_limits__may_be_one_structure(void **state)
{
	ptl_ni_limits_t limits = {SMALL, SMALL, SMALL, SMALL, SMALL};

	(void)state;
	assert_ok(PtlNIInit(0, PTL_PID_ANY, &limits, &limits, &here.ni));
	here.open = true;
	assert_true(limits.max_match_entries >= SMALL);
}

static void desired_limits__that_make_no_sense_are_answered_and_do_no_harm(void **state)
{
	static ptl_ni_limits_t odd[] = {{0, 0, 0, 0, 0}, {-1, -1, -1, 0, 0},
		{INT32_MIN, INT32_MIN, INT32_MIN, 0, 0},
		{INT32_MAX, INT32_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX}, {1, 1, 1, UINT32_MAX, 0},
		{1, 1, 1, 0, UINT32_MAX - 1}};

	(void)state;
	for (size_t i = 0; i < COUNT(odd); i++) {
		int code = PtlNIInit(0, PTL_PID_ANY, &odd[i], &here.limits, &here.ni);

		assert_true(code == PTL_OK || code == PTL_NOSPACE);
		if (code == PTL_OK) {
			assert_true(here.limits.max_match_entries >= 0);
			assert_true(here.limits.max_mem_descriptors >= 0);
			assert_true(here.limits.max_event_queues >= 0);
			assert_ok(PtlNIFini(here.ni));
		}
	}
	node_open(&here, 0, NULL);
	fence(&here, &here);
}

static void match_entries__can_be_made_up_to_the_limit_and_one_for_each_that_goes(void **state)
{
	ptl_handle_me_t *mes, me;
	ptl_pt_index_t portal;
	int limit, made;

	(void)state;
	small_open();
	limit = here.limits.max_match_entries;
	mes = calloc((size_t)limit, sizeof(*mes));
	assert_true(mes != NULL);
	for (made = 0; made < limit; made++)
		assert_ok(PtlMEAttach(here.ni, (ptl_pt_index_t)made % 3, ANY_PROCESS, 0, 0,
			PTL_RETAIN, PTL_INS_AFTER, &mes[made]));
	for (int i = 0; i < 3; i++) {
		assert_code(
			PtlMEAttach(here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
			PTL_NOSPACE);
		assert_code(PtlMEInsert(mes[1], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
			PTL_NOSPACE);
		assert_code(PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me),
			PTL_NOSPACE);
		assert_ok(PtlMEUnlink(mes[0]));
		if (i == 0)
			assert_ok(PtlMEAttach(
				here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mes[0]));
		else if (i == 1)
			assert_ok(PtlMEInsert(
				mes[1], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mes[0]));
		else
			assert_ok(PtlMEAttachAny(
				here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &mes[0]));
	}
	for (int i = 0; i < limit; i++)
		assert_ok(PtlMEUnlink(mes[i]));
	free(mes);
}

static void descriptors__can_be_made_up_to_the_limit_and_one_for_each_that_goes(void **state)
{
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE);
	ptl_handle_md_t *mds, handle;
	ptl_handle_me_t me;
	int limit;

	(void)state;
	small_open();
	limit = here.limits.max_mem_descriptors;
	mds = calloc((size_t)limit, sizeof(*mds));
	assert_true(mds != NULL);
	me = entry_make(&here, 0, 0, PTL_RETAIN);
	for (int i = 0; i < limit; i++)
		mds[i] = region_bind(&here, md);
	for (int i = 0; i < 4; i++) {
		assert_code(PtlMDBind(here.ni, md, &handle), PTL_NOSPACE);
		assert_code(PtlMDAttach(me, md, PTL_RETAIN, PTL_RETAIN, &handle), PTL_NOSPACE);
		assert_ok(PtlMDUnlink(mds[i]));
		mds[i] = i % 2 == 0 ? region_bind(&here, md)
				    : region_attach(me, md, PTL_RETAIN, PTL_RETAIN);
		if (i == 1) {
			assert_ok(PtlMEUnlink(me)); /* takes its descriptor with it */
			me = entry_make(&here, 0, 0, PTL_RETAIN);
			mds[i] = region_bind(&here, md);
		}
	}
	for (int i = 0; i < limit; i++)
		assert_ok(PtlMDUnlink(mds[i]));
	free(mds);
}

static void queues__can_be_made_up_to_the_limit_and_one_for_each_that_goes(void **state)
{
	ptl_handle_eq_t *eqs, eq;
	int limit;

	(void)state;
	small_open();
	limit = here.limits.max_event_queues;
	eqs = calloc((size_t)limit, sizeof(*eqs));
	assert_true(eqs != NULL);
	for (int i = 0; i < limit; i++)
		eqs[i] = queue_make(&here, (ptl_size_t)i);
	for (int i = 0; i < 3; i++) {
		assert_code(PtlEQAlloc(here.ni, 1, &eq), PTL_NOSPACE);
		assert_ok(PtlEQFree(eqs[i]));
		eqs[i] = queue_make(&here, 4);
	}
	for (int i = 0; i < limit; i++)
		assert_ok(PtlEQFree(eqs[i]));
	free(eqs);
}

static void refused_object__leaves_nothing_behind(void **state)
{
	ptl_md_t bad = region(NULL, 1, 0, PTL_EQ_NONE);
	ptl_handle_any_t handle;
	ptl_handle_me_t me;

	(void)state;
	small_open();
	me = entry_make(&here, 0, 0, PTL_RETAIN);
	for (int i = 0; i < here.limits.max_match_entries + here.limits.max_mem_descriptors; i++) {
		assert_code(PtlMDBind(here.ni, bad, &handle), PTL_ILL_MD);
		assert_code(PtlMDAttach(me, bad, PTL_RETAIN, PTL_RETAIN, &handle), PTL_ILL_MD);
		assert_code(PtlMEAttach(here.ni, 0, BAD_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
				    &handle),
			PTL_INV_PROC);
		assert_code(PtlMEInsert(me, BAD_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle),
			PTL_INV_PROC);
		assert_code(PtlEQAlloc(here.ni, UINT64_MAX, &handle), PTL_NOSPACE);
	}
	assert_ok(PtlMEUnlink(me));
	for (int i = 0; i < here.limits.max_match_entries; i++)
		assert_ok(PtlMEAttach(
			here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle));
	for (int i = 0; i < here.limits.max_mem_descriptors; i++)
		region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	for (int i = 0; i < here.limits.max_event_queues; i++)
		queue_make(&here, 1);
}

static void objects__unlinked_by_operations_make_room_as_well(void **state)
{
	ptl_handle_md_t source;
	ptl_handle_eq_t eq;

	(void)state;
	small_open();
	eq = queue_make(&here, EQ_ROOM);
	source = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	for (int i = 0; i < 10 * here.limits.max_mem_descriptors; i++) {
		target_of(&here, limited(region(NULL, 0, PTL_MD_OP_PUT, eq), 1), PTL_UNLINK,
			PTL_UNLINK);
		put_to(source, &here, 0);
		expect_pair(eq, PTL_EVENT_PUT_START);
		expect_event(eq, PTL_EVENT_UNLINK);
	}
}

static void portals__can_all_be_taken_and_then_the_table_is_full(void **state)
{
	ptl_ni_limits_t desired = {64, 64, 8, 2, 3};
	bool *taken;
	ptl_pt_index_t portal;
	ptl_handle_me_t me;

	(void)state;
	node_open(&here, 0, &desired);
	taken = calloc((size_t)here.limits.max_ptable_index + 1, sizeof(*taken));
	assert_true(taken != NULL);
	for (ptl_pt_index_t i = 0; i <= here.limits.max_ptable_index; i++) {
		assert_ok(PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me));
		assert_true(portal <= here.limits.max_ptable_index);
		assert_false(taken[portal]);
		taken[portal] = true;
	}
	assert_code(
		PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me), PTL_PT_FULL);
	assert_ok(PtlMEAttach(here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	free(taken);
}

static void largest_index__of_each_table_is_valid_and_the_next_is_not(void **state)
{
	ptl_handle_me_t me;

	(void)state;
	small_open();
	assert_ok(PtlMEAttach(here.ni, here.limits.max_ptable_index, ANY_PROCESS, 0, 0, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	assert_code(PtlMEAttach(here.ni, here.limits.max_ptable_index + 1, ANY_PROCESS, 0, 0,
			    PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_PTINDEX);
	assert_ok(PtlACEntry(here.ni, here.limits.max_atable_index, ANY_PROCESS, PTL_UID_ANY,
		here.limits.max_ptable_index));
	assert_code(
		PtlACEntry(here.ni, here.limits.max_atable_index + 1, ANY_PROCESS, PTL_UID_ANY, 0),
		PTL_AC_INV_INDEX);
	assert_code(
		PtlACEntry(here.ni, 0, ANY_PROCESS, PTL_UID_ANY, here.limits.max_ptable_index + 1),
		PTL_PT_INV_INDEX);
}

static void limits__of_one_interface_are_not_those_of_the_other(void **state)
{
	(void)state;
	small_open();
	node_open(&there, 1, NULL);
	for (int i = 0; i < here.limits.max_event_queues; i++)
		queue_make(&here, 1);
	queue_make(&there, 1);
	assert_true(there.limits.max_match_entries > here.limits.max_match_entries);
}

static void thousands_of_objects__live_side_by_side_and_can_all_be_told_apart(void **state)
{
	enum { OBJECTS = 1000 };
	static ptl_handle_any_t handles[OBJECTS];
	ptl_md_t now;

	(void)state;
	for (uintptr_t i = 0; i < OBJECTS; i++) {
		ptl_md_t md = region(NULL, 0, 0, PTL_EQ_NONE);

		md.user_ptr = (void *)i;
		handles[i] = region_bind(&here, md);
	}
	for (uintptr_t i = 0; i < OBJECTS; i++) {
		assert_ok(PtlMDUpdate(handles[i], &now, NULL, PTL_EQ_NONE));
		assert_int_equal((uintptr_t)now.user_ptr, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(default_limits__are_useful),
		TEST_BARE(desired_limits__are_granted),
		TEST_BARE(desired_and_actual_limits__may_be_one_structure),
		TEST_BARE(desired_limits__that_make_no_sense_are_answered_and_do_no_harm),
		TEST_BARE(match_entries__can_be_made_up_to_the_limit_and_one_for_each_that_goes),
		TEST_BARE(descriptors__can_be_made_up_to_the_limit_and_one_for_each_that_goes),
		TEST_BARE(queues__can_be_made_up_to_the_limit_and_one_for_each_that_goes),
		TEST_BARE(refused_object__leaves_nothing_behind),
		TEST_BARE(objects__unlinked_by_operations_make_room_as_well),
		TEST_BARE(portals__can_all_be_taken_and_then_the_table_is_full),
		TEST_BARE(largest_index__of_each_table_is_valid_and_the_next_is_not),
		TEST_BARE(limits__of_one_interface_are_not_those_of_the_other),
		TEST_HERE(thousands_of_objects__live_side_by_side_and_can_all_be_told_apart),
	};

	return cmocka_run_group_tests_name("limits", tests, group_open, group_close);
}
