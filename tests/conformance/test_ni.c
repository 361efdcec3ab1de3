/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ni.c - network interfaces (3.5): PtlNIInit, PtlNIFini, PtlNIStatus, PtlNIDist, PtlNIHandle.
 *
 * Covers: lib/p3/interface.c.
 */
#include "fixture.h"

#include <limits.h>
#include <unistd.h>
#include <sys/resource.h>

#define WELL_KNOWN_PID 4711

static void ptl_ni_init__opens_the_default_interface(void **state)
{
	(void)state;
	assert_int_equal(PTL_IFACE_DEFAULT, 0);
	node_open(&here, PTL_IFACE_DEFAULT, NULL);
	fence(&here, &here);
}

static void ptl_ni_init__gives_the_process_id_that_was_asked_for(void **state)
{
	ptl_process_id_t id;
	ptl_ni_limits_t limits;

	(void)state;
	assert_ok(PtlNIInit(0, WELL_KNOWN_PID, NULL, &limits, &here.ni));
	here.open = true;
	assert_ok(PtlGetId(here.ni, &id));
	assert_int_equal(id.pid, WELL_KNOWN_PID);
	assert_int_equal(id.nid, 1);
}

static void ptl_ni_init__takes_the_largest_and_the_smallest_process_id(void **state)
{
	const ptl_pid_t pids[] = {0, PTL_PID_MAX};
	ptl_process_id_t id;
	ptl_ni_limits_t limits;

	(void)state;
	for (size_t i = 0; i < COUNT(pids); i++) {
		assert_ok(PtlNIInit(0, pids[i], NULL, &limits, &here.ni));
		here.open = true;
		assert_ok(PtlGetId(here.ni, &id));
		assert_int_equal(id.pid, pids[i]);
		node_close(&here);
	}
}

static void ptl_ni_init__assigns_a_valid_process_id_when_any_will_do(void **state)
{
	(void)state;
	node_open(&here, 0, NULL);
	assert_true(here.id.pid <= PTL_PID_MAX);
}

static void ptl_ni_init__refuses_what_is_no_process_id(void **state)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;

	(void)state;
	assert_code(PtlNIInit(0, PTL_PID_MAX + 1, NULL, &limits, &ni), PTL_INV_PROC);
	assert_code(PtlNIInit(0, PTL_PID_ANY - 1, NULL, &limits, &ni), PTL_INV_PROC);
}

static void ptl_ni_init__returns_the_existing_handle_and_says_so_the_second_time(void **state)
{
	ptl_ni_limits_t desired = {1, 1, 1, 1, 1}, again = {0};
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;

	(void)state;
	node_open(&here, 0, NULL);
	assert_code(PtlNIInit(0, PTL_PID_ANY, &desired, &again, &ni), PTL_INIT_DUP);
	assert_true(ni == here.ni);
	assert_int_equal(again.max_match_entries, here.limits.max_match_entries);
	assert_int_equal(again.max_mem_descriptors, here.limits.max_mem_descriptors);
	assert_int_equal(again.max_event_queues, here.limits.max_event_queues);
	assert_int_equal(again.max_atable_index, here.limits.max_atable_index);
	assert_int_equal(again.max_ptable_index, here.limits.max_ptable_index);
	fence(&here, &here);
}

static void ptl_ni_init__refuses_interfaces_that_do_not_exist(void **state)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;
	int interfaces;

	(void)state;
	assert_ok(PtlInit(&interfaces));
	assert_code(PtlNIInit((ptl_interface_t)interfaces, PTL_PID_ANY, NULL, &limits, &ni),
		PTL_INIT_INV);
	assert_code(PtlNIInit(UINT32_MAX, PTL_PID_ANY, NULL, &limits, &ni), PTL_INIT_INV);
	PtlFini();
}

static void ptl_ni_init__refuses_null_and_wild_pointers(void **state)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;

	(void)state;
	assert_code(PtlNIInit(0, PTL_PID_ANY, NULL, &limits, NULL), PTL_SEGV);
	assert_code(PtlNIInit(0, PTL_PID_ANY, NULL, &limits, WILD), PTL_SEGV);
	assert_code(PtlNIInit(0, PTL_PID_ANY, NULL, WILD, &ni), PTL_SEGV);
	assert_code(PtlNIInit(0, PTL_PID_ANY, WILD, &limits, &ni), PTL_SEGV);
	node_open(&here, 0, NULL);
	fence(&here, &here);
}

static void ptl_ni_init__need_not_tell_the_limits(void **state)
{
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, PTL_PID_ANY, NULL, NULL, &ni));
	assert_ok(PtlNIFini(ni));
}

static void ptl_ni_init__says_nospace_when_there_is_no_memory_and_works_when_there_is(void **state)
{
	struct rlimit before, tight;
	ptl_ni_limits_t limits;
	unsigned long pages = 0;
	ptl_handle_ni_t ni;
	FILE *file;
	int code;

	(void)state;
	if (SANITIZED)
		skip();            /* the sanitiser's own memory is beyond any limit */
	node_open(&here, 0, NULL); /* what the library allocates once is there afterwards */
	node_close(&here);
	file = fopen("/proc/self/statm", "r");
	assert_true(file != NULL);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	tight = before;
	tight.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	code = PtlNIInit(0, PTL_PID_ANY, NULL, &limits, &ni);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_code(code, PTL_NOSPACE);
	node_open(&here, 0, NULL);
	fence(&here, &here);
}

static void ptl_ni_fini__makes_the_handle_and_the_handles_of_its_objects_invalid(void **state)
{
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me;
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_event_t event;

	(void)state;
	node_open(&here, 0, NULL);
	eq = queue_make(&here, 1);
	me = entry_make(&here, 0, 0, PTL_RETAIN);
	md = region_bind(&here, region(NULL, 0, 0, eq));
	ni = here.ni;
	node_close(&here);
	for (int again = 0; again < 2; again++) {
		assert_code(PtlNIFini(ni), PTL_INV_NI);
		assert_code(PtlGetId(ni, &id), PTL_INV_NI);
		assert_code(PtlEQGet(eq, &event), PTL_INV_EQ);
		assert_code(PtlEQWait(eq, &event), PTL_INV_EQ);
		assert_code(PtlMEUnlink(me), PTL_INV_ME);
		assert_code(PtlMDUnlink(md), PTL_INV_MD);
		assert_code(PtlNIHandle(md, &ni), PTL_INV_HANDLE);
		if (again == 0) /* stale handles stay stale when their slots are in use again */
			node_open(&here, 0, NULL);
		queue_make(&here, 1);
		entry_make(&here, 0, 0, PTL_RETAIN);
		region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	}
}

static void ptl_ni_fini__leaves_the_other_interface_alone(void **state)
{
	(void)state;
	fence(&here, &there);
	node_close(&there);
	fence(&here, &here);
	node_open(&there, 1, NULL);
	fence(&here, &there);
	node_close(&here);
	fence(&there, &there);
	node_open(&here, 0, NULL);
	fence(&there, &here);
}

static void ptl_ni_init__can_be_repeated_after_ptl_ni_fini_any_number_of_times(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		node_open(&here, 0, NULL);
		fence(&here, &here);
		assert_int_equal(drops(&here), 0);
		node_close(&here);
	}
}

static void
ptl_ni_fini__may_come_while_operations_are_in_flight_and_every_one_of_the_survivors_ends(
	void **state)
{
	enum { OPERATIONS = 8 };
	const size_t length = 2 << 20;
	char *mine = calloc(1, length), *theirs = calloc(1, length);
	struct end source, target;
	ptl_event_t event;

	(void)state;
	assert_true(mine != NULL && theirs != NULL);
	fence(&here, &there); /* they know each other, so the end of one is news to the other */
	source = source_make(&here, mine, length);
	target = target_make(
		&there, theirs, length, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	(void)target;
	for (int i = 0; i < OPERATIONS; i++) {
		put_to(source.md, &there, 0);
		get_from(source.md, &there, 0);
	}
	node_close(&there);
	for (int sends = 0, replies = 0; sends < OPERATIONS || replies < OPERATIONS;) {
		event = next_event(source.eq);
		switch (event.type) {
		case PTL_EVENT_SEND_FAIL:
			assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
			sends++;
			break;
		case PTL_EVENT_SEND_END:
			sends++;
			break;
		case PTL_EVENT_REPLY_FAIL:
			assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
			replies++;
			break;
		case PTL_EVENT_REPLY_END:
			replies++;
			break;
		default:
			break;
		}
	}
	expect_no_event(source.eq);
	assert_ok(PtlMDUnlink(source.md));
	node_open(&there, 1, NULL);
	fence(&here, &there);
	free(mine);
	free(theirs);
}

static void ptl_ni_fini__of_the_initiator_ends_what_it_had_begun_at_the_target(void **state)
{
	const size_t length = 8 << 20;
	char *mine = calloc(1, length), *theirs = calloc(1, length);
	struct end source, target;
	ptl_event_t event;

	(void)state;
	assert_true(mine != NULL && theirs != NULL);
	source = source_make(&here, mine, length);
	target = target_make(&there, theirs, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	put_to(source.md, &there, 0);
	expect_event(target.eq, PTL_EVENT_PUT_START);
	node_close(&here);
	event = next_event(target.eq);
	if (event.type == PTL_EVENT_PUT_FAIL)
		assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
	else
		assert_int_equal(event.type, PTL_EVENT_PUT_END);
	assert_ok(PtlMDUnlink(target.md));
	free(mine);
	free(theirs);
}

static void ptl_ni_fini__wakes_a_thread_that_waits_for_an_event(void **state)
{
	struct waiter waiter;

	(void)state;
	waiter_start(&waiter, queue_make(&here, 1));
	waiter_settle(&waiter);
	node_close(&here);
	waiter_join(&waiter);
	assert_code(waiter.code, PTL_INV_EQ);
}

static void ptl_ni_fini__refuses_what_is_no_interface(void **state)
{
	(void)state;
	assert_code(PtlNIFini(0), PTL_INV_NI);
	assert_code(PtlNIFini(PTL_INVALID_HANDLE), PTL_INV_NI);
	assert_code(PtlNIFini(queue_make(&here, 1)), PTL_INV_NI);
	fence(&here, &here);
}

static void ptl_ni_status__counts_drops_from_zero(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_int_equal(drops(&here), 0);
	put_to(source.md, &here, 0);
	fence(&here, &here);
	assert_int_equal(drops(&here), 1);
}

static void ptl_ni_status__counts_on_each_interface_alone(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	put_to(source.md, &there, 0);
	put_to(source.md, &there, 0);
	put_to(source.md, &here, 0);
	fence(&here, &there);
	fence(&here, &here);
	assert_int_equal(drops(&there), 2);
	assert_int_equal(drops(&here), 1);
}

static void ptl_ni_status__refuses_what_it_should(void **state)
{
	ptl_sr_value_t value;

	(void)state;
	assert_code(PtlNIStatus(0, PTL_SR_DROP_COUNT, &value), PTL_INV_NI);
	assert_code(PtlNIStatus(PTL_INVALID_HANDLE, PTL_SR_DROP_COUNT, &value), PTL_INV_NI);
	assert_code(PtlNIStatus(here.ni, -1, &value), PTL_INV_SR_INDX);
	assert_code(PtlNIStatus(here.ni, INT_MAX, &value), PTL_INV_SR_INDX);
	assert_code(PtlNIStatus(here.ni, INT_MIN, &value), PTL_INV_SR_INDX);
	assert_code(PtlNIStatus(here.ni, PTL_SR_DROP_COUNT, NULL), PTL_SEGV);
	assert_code(PtlNIStatus(here.ni, PTL_SR_DROP_COUNT, WILD), PTL_SEGV);
}

static void ptl_ni_dist__is_static(void **state)
{
	unsigned long first = 0, second = 1;

	(void)state;
	assert_ok(PtlNIDist(here.ni, there.id, &first));
	fence(&here, &there);
	assert_ok(PtlNIDist(here.ni, there.id, &second));
	assert_int_equal(first, second);
}

static void ptl_ni_dist__to_oneself_is_not_more_than_to_another(void **state)
{
	unsigned long self = 1, other = 0;

	(void)state;
	assert_ok(PtlNIDist(here.ni, here.id, &self));
	assert_ok(PtlNIDist(here.ni, there.id, &other));
	assert_true(self <= other);
}

static void ptl_ni_dist__refuses_what_it_should(void **state)
{
	const ptl_process_id_t nobody[] = {
		{PTL_NID_ANY, 1}, {1, PTL_PID_ANY}, {1, PTL_PID_MAX + 1}};
	unsigned long distance;

	(void)state;
	assert_code(PtlNIDist(0, here.id, &distance), PTL_INV_NI);
	for (size_t i = 0; i < COUNT(nobody); i++)
		assert_code(PtlNIDist(here.ni, nobody[i], &distance), PTL_INV_PROC);
	assert_code(PtlNIDist(here.ni, here.id, NULL), PTL_SEGV);
	assert_code(PtlNIDist(here.ni, here.id, WILD), PTL_SEGV);
}

static void ptl_ni_handle__names_the_interface_of_every_kind_of_object(void **state)
{
	struct node *const nodes[] = {&here, &there};
	ptl_handle_ni_t ni;

	(void)state;
	for (size_t i = 0; i < COUNT(nodes); i++) {
		struct end target = target_make(nodes[i], NULL, 0, PTL_MD_OP_PUT);
		const ptl_handle_any_t handles[] = {nodes[i]->ni, target.eq, target.me, target.md,
			region_bind(nodes[i], region(NULL, 0, 0, PTL_EQ_NONE))};

		for (size_t j = 0; j < COUNT(handles); j++) {
			ni = PTL_INVALID_HANDLE;
			assert_ok(PtlNIHandle(handles[j], &ni));
			assert_true(ni == nodes[i]->ni);
		}
	}
	assert_true(here.ni != there.ni);
}

static void ptl_ni_handle__refuses_what_it_should(void **state)
{
	ptl_handle_eq_t eq = queue_make(&here, 1);
	ptl_handle_ni_t ni;

	(void)state;
	assert_code(PtlNIHandle(PTL_INVALID_HANDLE, &ni), PTL_INV_HANDLE);
	assert_code(PtlNIHandle(PTL_EQ_NONE, &ni), PTL_INV_HANDLE);
	assert_code(PtlNIHandle(eq, NULL), PTL_SEGV);
	assert_code(PtlNIHandle(eq, WILD), PTL_SEGV);
	assert_ok(PtlEQFree(eq));
	assert_code(PtlNIHandle(eq, &ni), PTL_INV_HANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BARE(ptl_ni_init__opens_the_default_interface),
		TEST_BARE(ptl_ni_init__gives_the_process_id_that_was_asked_for),
		TEST_BARE(ptl_ni_init__takes_the_largest_and_the_smallest_process_id),
		TEST_BARE(ptl_ni_init__assigns_a_valid_process_id_when_any_will_do),
		TEST_BARE(ptl_ni_init__refuses_what_is_no_process_id),
		TEST_BARE(ptl_ni_init__returns_the_existing_handle_and_says_so_the_second_time),
		TEST_BARE(ptl_ni_init__refuses_interfaces_that_do_not_exist),
		TEST_BARE(ptl_ni_init__refuses_null_and_wild_pointers),
		TEST_BARE(ptl_ni_init__need_not_tell_the_limits),
		TEST_BARE(
			ptl_ni_init__says_nospace_when_there_is_no_memory_and_works_when_there_is),
		TEST_BARE(ptl_ni_fini__makes_the_handle_and_the_handles_of_its_objects_invalid),
		TEST_BOTH(ptl_ni_fini__leaves_the_other_interface_alone),
		TEST_BARE(ptl_ni_init__can_be_repeated_after_ptl_ni_fini_any_number_of_times),
		TEST_BOTH(
			ptl_ni_fini__may_come_while_operations_are_in_flight_and_every_one_of_the_survivors_ends),
		TEST_BOTH(ptl_ni_fini__of_the_initiator_ends_what_it_had_begun_at_the_target),
		TEST_HERE(ptl_ni_fini__wakes_a_thread_that_waits_for_an_event),
		TEST_HERE(ptl_ni_fini__refuses_what_is_no_interface),
		TEST_HERE(ptl_ni_status__counts_drops_from_zero),
		TEST_BOTH(ptl_ni_status__counts_on_each_interface_alone),
		TEST_HERE(ptl_ni_status__refuses_what_it_should),
		TEST_BOTH(ptl_ni_dist__is_static),
		TEST_BOTH(ptl_ni_dist__to_oneself_is_not_more_than_to_another),
		TEST_HERE(ptl_ni_dist__refuses_what_it_should),
		TEST_BOTH(ptl_ni_handle__names_the_interface_of_every_kind_of_object),
		TEST_HERE(ptl_ni_handle__refuses_what_it_should),
	};

	return cmocka_run_group_tests_name("ni", tests, group_open, group_close);
}
