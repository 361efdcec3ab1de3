/* SPDX-License-Identifier: BSD-3-Clause */
/* test_me.c - match entries and match lists (3.7): PtlMEAttach, PtlMEAttachAny, PtlMEInsert,
 * PtlMEUnlink.
 *
 * Covers: lib/p3/entry.c.
 */
#include "fixture.h"

/* A list is told from its effect: each entry takes one message and is then inactive, so messages go
 * to entries in list order. All log to one queue. */
static ptl_handle_md_t once(ptl_handle_me_t me, ptl_handle_eq_t eq)
{
	return region_attach(
		me, limited(region(NULL, 0, PTL_MD_OP_PUT, eq), 1), PTL_RETAIN, PTL_RETAIN);
}

/* Sends a message for each descriptor and expects that they take them in this order. */
static void order_is(ptl_handle_eq_t eq, const ptl_handle_md_t *mds, size_t count)
{
	struct end source = source_make(&here, NULL, 0);

	for (size_t i = 0; i < count; i++)
		put_to(source.md, &here, 0);
	fence(&here, &here);
	for (size_t i = 0; i < count; i++)
		assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == mds[i]);
	expect_no_event(eq);
}

static ptl_handle_me_t attach_at(ptl_ins_pos_t position)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;

	assert_ok(
		PtlMEAttach(here.ni, PORTAL, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN, position, &me));
	return me;
}

static ptl_handle_me_t insert_at(ptl_handle_me_t current, ptl_ins_pos_t position)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;

	assert_ok(PtlMEInsert(current, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN, position, &me));
	return me;
}

static void ptl_me_attach__makes_a_list_of_one_whatever_the_position(void **state)
{
	const ptl_ins_pos_t positions[] = {PTL_INS_BEFORE, PTL_INS_AFTER};

	(void)state;
	for (size_t i = 0; i < COUNT(positions); i++) {
		ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
		ptl_handle_me_t me = attach_at(positions[i]);
		ptl_handle_md_t md = once(me, eq);

		order_is(eq, &md, 1);
		assert_ok(PtlMEUnlink(me));
	}
}

static void ptl_me_attach__after_puts_the_entry_behind_the_last(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_md_t mds[4];

	(void)state;
	for (size_t i = 0; i < COUNT(mds); i++)
		mds[i] = once(attach_at(PTL_INS_AFTER), eq);
	order_is(eq, mds, COUNT(mds));
}

static void ptl_me_attach__before_puts_the_entry_in_front_of_the_first(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_md_t mds[4];

	(void)state;
	for (size_t i = COUNT(mds); i-- > 0;)
		mds[i] = once(attach_at(PTL_INS_BEFORE), eq);
	order_is(eq, mds, COUNT(mds));
}

static void ptl_me_insert__before_puts_the_entry_just_before_the_current_one(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_me_t first = attach_at(PTL_INS_AFTER), last = attach_at(PTL_INS_AFTER);
	ptl_handle_md_t mds[4];

	(void)state;
	mds[0] = once(insert_at(first, PTL_INS_BEFORE), eq);
	mds[1] = once(first, eq);
	mds[2] = once(insert_at(last, PTL_INS_BEFORE), eq);
	mds[3] = once(last, eq);
	order_is(eq, mds, COUNT(mds));
}

static void ptl_me_insert__after_puts_the_entry_just_after_the_current_one(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_me_t first = attach_at(PTL_INS_AFTER), last = attach_at(PTL_INS_AFTER);
	ptl_handle_md_t mds[4];

	(void)state;
	mds[0] = once(first, eq);
	mds[1] = once(insert_at(first, PTL_INS_AFTER), eq);
	mds[2] = once(last, eq);
	mds[3] = once(insert_at(last, PTL_INS_AFTER), eq);
	order_is(eq, mds, COUNT(mds));
}

static void ptl_me_insert__keeps_the_order_through_many_insertions_at_one_place(void **state)
{
	enum { ENTRIES = 200 };
	ptl_handle_eq_t eq = queue_make(&here, (ptl_size_t)ENTRIES * 2);
	ptl_handle_me_t first = attach_at(PTL_INS_AFTER), last = attach_at(PTL_INS_AFTER);
	ptl_handle_md_t mds[ENTRIES];

	(void)state;
	mds[0] = once(first, eq);
	mds[ENTRIES - 1] = once(last, eq);
	for (size_t i = ENTRIES - 2; i > 0; i--)
		mds[i] = once(insert_at(first, PTL_INS_AFTER), eq);
	order_is(eq, mds, ENTRIES);
}

static void ptl_me_insert__halving_one_gap_again_and_again_keeps_the_order(void **state)
{
	enum { ENTRIES = 150 };
	ptl_handle_eq_t eq = queue_make(&here, (ptl_size_t)ENTRIES * 2);
	ptl_handle_me_t low = attach_at(PTL_INS_AFTER), high = attach_at(PTL_INS_AFTER);
	ptl_handle_md_t mds[ENTRIES];
	size_t first = 0, last = ENTRIES - 1;

	(void)state;
	mds[first++] = once(low, eq);
	mds[last--] = once(high, eq);
	while (first <= last) { /* alternately after the lower and before the upper neighbour */
		low = insert_at(low, PTL_INS_AFTER);
		mds[first++] = once(low, eq);
		if (first > last)
			break;
		high = insert_at(high, PTL_INS_BEFORE);
		mds[last--] = once(high, eq);
	}
	order_is(eq, mds, ENTRIES);
}

static void ptl_me_insert__puts_the_entry_on_the_portal_of_the_current_one(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_me_t other, me;

	(void)state;
	assert_ok(PtlMEAttach(
		here.ni, PORTAL + 1, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN, PTL_INS_AFTER, &other));
	assert_ok(PtlMEInsert(other, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN, PTL_INS_AFTER, &me));
	once(me, eq);
	put_to(source.md, &here, 0);
	fence(&here, &here);
	expect_no_event(eq);
	assert_ok(PtlPut(source.md, PTL_NOACK_REQ, here.id, PORTAL + 1, 0, 0, 0, 0));
	assert_int_equal(expect_pair(eq, PTL_EVENT_PUT_START).portal, PORTAL + 1);
}

static void ptl_me_attach__takes_every_portal_index_up_to_the_limit_and_none_beyond(void **state)
{
	ptl_handle_me_t me;

	(void)state;
	assert_ok(PtlMEAttach(here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	assert_ok(PtlMEAttach(here.ni, here.limits.max_ptable_index, ANY_PROCESS, 0, 0, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	assert_code(PtlMEAttach(here.ni, here.limits.max_ptable_index + 1, ANY_PROCESS, 0, 0,
			    PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_PTINDEX);
	assert_code(PtlMEAttach(here.ni, PTL_PT_INDEX_ANY, ANY_PROCESS, 0, 0, PTL_RETAIN,
			    PTL_INS_AFTER, &me),
		PTL_INV_PTINDEX);
}

static void ptl_me_attach__takes_wildcards_for_the_node_and_for_the_process(void **state)
{
	const ptl_process_id_t some[] = {{PTL_NID_ANY, 1}, {1, PTL_PID_ANY},
		{PTL_NID_ANY, PTL_PID_ANY}, {0, 0}, {PTL_NID_ANY - 1, PTL_PID_MAX}};
	ptl_handle_me_t me;

	(void)state;
	for (size_t i = 0; i < COUNT(some); i++)
		assert_ok(PtlMEAttach(
			here.ni, PORTAL, some[i], 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
}

static void ptl_me_attach__refuses_what_it_should(void **state)
{
	ptl_handle_me_t me;

	(void)state;
	assert_code(PtlMEAttach(0, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_NI);
	assert_code(PtlMEAttach(PTL_INVALID_HANDLE, PORTAL, ANY_PROCESS, 0, 0, PTL_RETAIN,
			    PTL_INS_AFTER, &me),
		PTL_INV_NI);
	assert_code(PtlMEAttach(here.ni, PORTAL, BAD_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_PROC);
}

static void ptl_me_attach_any__takes_a_portal_whose_list_is_empty(void **state)
{
	ptl_pt_index_t first = UINT32_MAX, second = UINT32_MAX;
	ptl_handle_me_t taken, me;

	(void)state;
	assert_ok(PtlMEAttach(here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &taken));
	assert_ok(PtlMEAttachAny(here.ni, &first, ANY_PROCESS, 0, 0, PTL_RETAIN, &me));
	assert_ok(PtlMEAttachAny(here.ni, &second, ANY_PROCESS, 0, 0, PTL_RETAIN, &me));
	assert_true(
		first <= here.limits.max_ptable_index && second <= here.limits.max_ptable_index);
	assert_int_not_equal(first, 0);
	assert_int_not_equal(second, 0);
	assert_int_not_equal(first, second);
}

static void ptl_me_attach_any__makes_an_entry_that_takes_messages(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_pt_index_t portal;
	ptl_handle_me_t me;

	(void)state;
	assert_ok(PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 5, 0, PTL_RETAIN, &me));
	once(me, eq);
	assert_ok(PtlPut(source.md, PTL_NOACK_REQ, here.id, portal, 0, 5, 0, 0));
	assert_int_equal(expect_pair(eq, PTL_EVENT_PUT_START).portal, portal);
}

static void ptl_me_attach_any__refuses_what_it_should(void **state)
{
	ptl_pt_index_t portal;
	ptl_handle_me_t me;

	(void)state;
	assert_code(PtlMEAttachAny(0, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me), PTL_INV_NI);
	assert_code(PtlMEAttachAny(PTL_INVALID_HANDLE, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me),
		PTL_INV_NI);
	assert_code(
		PtlMEAttachAny(here.ni, &portal, BAD_PROCESS, 0, 0, PTL_RETAIN, &me), PTL_INV_PROC);
}

static void ptl_me_insert__refuses_what_it_should(void **state)
{
	ptl_handle_me_t current = attach_at(PTL_INS_AFTER), me;

	(void)state;
	assert_code(PtlMEInsert(0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_INV_ME);
	assert_code(
		PtlMEInsert(PTL_INVALID_HANDLE, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_ME);
	assert_code(PtlMEInsert(here.ni, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_ME);
	assert_code(PtlMEInsert(current, BAD_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_PROC);
	assert_ok(PtlMEUnlink(current));
	assert_code(PtlMEInsert(current, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_INV_ME);
}

static void ptl_me_unlink__removes_the_entry_from_its_list(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_me_t mes[3];
	ptl_handle_md_t mds[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		mds[i] = once(mes[i] = attach_at(PTL_INS_AFTER), eq);
	assert_ok(PtlMEUnlink(mes[1]));
	mds[1] = mds[2];
	order_is(eq, mds, 2);
}

static void ptl_me_unlink__leaves_neighbours_that_can_still_be_inserted_at(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	ptl_handle_me_t mes[3];
	ptl_handle_md_t mds[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		mes[i] = attach_at(PTL_INS_AFTER);
	assert_ok(PtlMEUnlink(mes[1]));
	mds[0] = once(mes[0], eq);
	mds[1] = once(insert_at(mes[2], PTL_INS_BEFORE), eq);
	mds[2] = once(mes[2], eq);
	order_is(eq, mds, 3);
}

static void ptl_me_unlink__releases_the_descriptor_too(void **state)
{
	struct end target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);

	(void)state;
	assert_ok(PtlMEUnlink(target.me));
	assert_code(PtlMDUnlink(target.md), PTL_INV_MD);
	assert_code(PtlMDUpdate(target.md, NULL, NULL, PTL_EQ_NONE), PTL_INV_MD);
}

static void ptl_me_unlink__logs_nothing(void **state)
{
	struct end target = target_make(&here, NULL, 0, PTL_MD_OP_PUT);

	(void)state;
	assert_ok(PtlMEUnlink(target.me));
	fence(&here, &here);
	expect_no_event(target.eq);
}

static void ptl_me_unlink__makes_the_handle_invalid_for_good(void **state)
{
	ptl_handle_me_t me = attach_at(PTL_INS_AFTER);
	ptl_handle_md_t md;

	(void)state;
	assert_ok(PtlMEUnlink(me));
	for (int i = 0; i < 100; i++) {
		assert_true(attach_at(PTL_INS_AFTER) != me);
		assert_code(PtlMEUnlink(me), PTL_INV_ME);
	}
	assert_code(PtlMDAttach(me, region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, PTL_RETAIN, &md),
		PTL_INV_ME);
}

static void ptl_me_unlink__frees_the_portal_for_ptl_me_attach_any(void **state)
{
	ptl_ni_limits_t desired = {8, 8, 8, 2, 0};
	ptl_pt_index_t portal = UINT32_MAX;
	ptl_handle_me_t me;

	(void)state;
	node_open(&here, 0, &desired);
	for (ptl_pt_index_t i = 0; i <= here.limits.max_ptable_index; i++)
		assert_ok(
			PtlMEAttach(here.ni, i, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	assert_code(
		PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me), PTL_PT_FULL);
	assert_ok(PtlMEUnlink(me));
	assert_ok(PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &me));
	assert_int_equal(portal, here.limits.max_ptable_index);
}

static void ptl_me_unlink__refuses_what_it_should(void **state)
{
	(void)state;
	assert_code(PtlMEUnlink(0), PTL_INV_ME);
	assert_code(PtlMEUnlink(PTL_INVALID_HANDLE), PTL_INV_ME);
	assert_code(PtlMEUnlink(here.ni), PTL_INV_ME);
	assert_code(PtlMEUnlink(queue_make(&here, 1)), PTL_INV_ME);
}

/* An entry with PTL_UNLINK goes when its descriptor goes, however that comes; one with PTL_RETAIN
 * stays. */
static void entry__with_unlink_goes_when_its_descriptor_is_unlinked_by_the_user(void **state)
{
	ptl_handle_me_t me = entry_make(&here, 0, EVERY_BIT, PTL_UNLINK);
	ptl_handle_md_t md = once(me, PTL_EQ_NONE);

	(void)state;
	assert_ok(PtlMDUnlink(md));
	assert_code(PtlMEUnlink(me), PTL_INV_ME);
}

static void entry__with_unlink_goes_when_its_descriptor_is_unlinked_by_an_operation(void **state)
{
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), 1);
	struct end source = source_make(&here, NULL, 0),
		   target = target_of(&here, md, PTL_UNLINK, PTL_RETAIN);

	(void)state;
	put_to(source.md, &here, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	expect_event(target.eq, PTL_EVENT_UNLINK);
	assert_code(PtlMDUnlink(target.md), PTL_INV_MD);
	assert_code(PtlMEUnlink(target.me), PTL_INV_ME);
}

static void entry__with_unlink_stays_while_it_has_had_no_descriptor(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_me_t me = entry_make(&here, 0, EVERY_BIT, PTL_UNLINK);

	(void)state;
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_ok(PtlMEUnlink(me));
}

static void entry__with_retain_stays_and_takes_a_new_descriptor(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, EQ_ROOM);
	struct end source = source_make(&here, NULL, 0);
	ptl_handle_me_t me = entry_make(&here, 0, EVERY_BIT, PTL_RETAIN);
	ptl_md_t md = limited(region(NULL, 0, PTL_MD_OP_PUT, eq), 1);

	(void)state;
	for (int i = 0; i < 5; i++) {
		ptl_handle_md_t handle = region_attach(me, md, PTL_UNLINK, PTL_RETAIN);

		put_to(source.md, &here, 0);
		assert_true(expect_pair(eq, PTL_EVENT_PUT_START).md_handle == handle);
		assert_true(expect_event(eq, PTL_EVENT_UNLINK).md_handle == handle);
		assert_code(PtlMDUnlink(handle), PTL_INV_MD);
	}
	assert_ok(PtlMDUnlink(region_attach(me, md, PTL_UNLINK, PTL_RETAIN)));
	assert_ok(PtlMEUnlink(me));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HERE(ptl_me_attach__makes_a_list_of_one_whatever_the_position),
		TEST_HERE(ptl_me_attach__after_puts_the_entry_behind_the_last),
		TEST_HERE(ptl_me_attach__before_puts_the_entry_in_front_of_the_first),
		TEST_HERE(ptl_me_insert__before_puts_the_entry_just_before_the_current_one),
		TEST_HERE(ptl_me_insert__after_puts_the_entry_just_after_the_current_one),
		TEST_HERE(ptl_me_insert__keeps_the_order_through_many_insertions_at_one_place),
		TEST_HERE(ptl_me_insert__halving_one_gap_again_and_again_keeps_the_order),
		TEST_HERE(ptl_me_insert__puts_the_entry_on_the_portal_of_the_current_one),
		TEST_HERE(ptl_me_attach__takes_every_portal_index_up_to_the_limit_and_none_beyond),
		TEST_HERE(ptl_me_attach__takes_wildcards_for_the_node_and_for_the_process),
		TEST_HERE(ptl_me_attach__refuses_what_it_should),
		TEST_HERE(ptl_me_attach_any__takes_a_portal_whose_list_is_empty),
		TEST_HERE(ptl_me_attach_any__makes_an_entry_that_takes_messages),
		TEST_HERE(ptl_me_attach_any__refuses_what_it_should),
		TEST_HERE(ptl_me_insert__refuses_what_it_should),
		TEST_HERE(ptl_me_unlink__removes_the_entry_from_its_list),
		TEST_HERE(ptl_me_unlink__leaves_neighbours_that_can_still_be_inserted_at),
		TEST_HERE(ptl_me_unlink__releases_the_descriptor_too),
		TEST_HERE(ptl_me_unlink__logs_nothing),
		TEST_HERE(ptl_me_unlink__makes_the_handle_invalid_for_good),
		TEST_BARE(ptl_me_unlink__frees_the_portal_for_ptl_me_attach_any),
		TEST_HERE(ptl_me_unlink__refuses_what_it_should),
		TEST_HERE(entry__with_unlink_goes_when_its_descriptor_is_unlinked_by_the_user),
		TEST_HERE(entry__with_unlink_goes_when_its_descriptor_is_unlinked_by_an_operation),
		TEST_HERE(entry__with_unlink_stays_while_it_has_had_no_descriptor),
		TEST_HERE(entry__with_retain_stays_and_takes_a_new_descriptor),
	};

	return cmocka_run_group_tests_name("me", tests, group_open, group_close);
}
