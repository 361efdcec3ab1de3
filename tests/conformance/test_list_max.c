/* SPDX-License-Identifier: BSD-3-Clause */
/* test_list_max.c - the longest match list (3.7): run with PTL_LIST_MAX=4. */
#include "fixture.h"

#define LONGEST 4

static ptl_handle_me_t mes[LONGEST];

static void list_fill(ptl_unlink_t unlink)
{
	for (size_t i = 0; i < LONGEST; i++)
		mes[i] = entry_make(&here, 0, EVERY_BIT, unlink);
}

static void list_is_full(void)
{
	ptl_handle_me_t me;

	assert_code(PtlMEAttach(here.ni, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_ML_TOOLONG);
	assert_code(
		PtlMEAttach(here.ni, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me),
		PTL_ML_TOOLONG);
	assert_code(PtlMEInsert(mes[1], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_ML_TOOLONG);
	assert_code(PtlMEInsert(mes[1], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me),
		PTL_ML_TOOLONG);
}

static void list__takes_as_many_entries_as_it_may_and_no_more(void **state)
{
	(void)state;
	list_fill(PTL_RETAIN);
	for (int i = 0; i < 10; i++)
		list_is_full();
}

static void list__takes_one_more_for_each_that_is_unlinked(void **state)
{
	(void)state;
	list_fill(PTL_RETAIN);
	for (int i = 0; i < 3; i++) {
		list_is_full();
		assert_ok(PtlMEUnlink(mes[0]));
		mes[0] = entry_make(&here, 0, EVERY_BIT, PTL_RETAIN);
		list_is_full();
		assert_ok(PtlMEUnlink(mes[0]));
		assert_ok(PtlMEInsert(
			mes[1], ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &mes[0]));
	}
	list_is_full();
}

static void list__takes_one_more_for_each_that_an_operation_unlinked(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, queue_make(&here, EQ_ROOM)), 1);
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	list_fill(PTL_UNLINK);
	for (int i = 0; i < 3; i++) {
		list_is_full();
		region_attach(mes[0], md, PTL_UNLINK, PTL_RETAIN);
		put_to(source.md, &here, 0);
		expect_pair(md.eventq, PTL_EVENT_PUT_START);
		expect_event(md.eventq, PTL_EVENT_UNLINK);
		mes[0] = entry_make(&here, 0, EVERY_BIT, PTL_UNLINK);
	}
	list_is_full();
}

static void list__of_another_portal_is_not_concerned(void **state)
{
	ptl_handle_me_t me;

	(void)state;
	list_fill(PTL_RETAIN);
	for (int i = 0; i < LONGEST; i++)
		assert_ok(PtlMEAttach(
			here.ni, PORTAL + 1, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	list_is_full();
}

static void refused_entry__leaves_the_list_as_it_was(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, eq), 1);
	ptl_handle_md_t mds[LONGEST];

	(void)state;
	list_fill(PTL_RETAIN);
	for (size_t i = 0; i < LONGEST; i++)
		mds[i] = region_attach(mes[i], md, PTL_RETAIN, PTL_RETAIN);
	list_is_full();
	for (size_t i = 0; i < LONGEST; i++) {
		put_to(source.md, &here, 0);
		assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == mds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(list__takes_as_many_entries_as_it_may_and_no_more),
		TEST_HERE(list__takes_one_more_for_each_that_is_unlinked),
		TEST_HERE(list__takes_one_more_for_each_that_an_operation_unlinked),
		TEST_HERE(list__of_another_portal_is_not_concerned),
		TEST_HERE(refused_entry__leaves_the_list_as_it_was),
	};

	setenv("PTL_LIST_MAX", "4", 1);
	return cmocka_run_group_tests_name("list_max", tests, group_open, group_close);
}
