/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ni.c - network interfaces (4): PtlNIInit to PtlGetMap, and handles.
 *
 * Covers: lib/p4/front.c, lib/p4/interface.c, lib/p4/limit.c.
 */
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"

static const unsigned kinds[] = {MATCHING, LISTED, MATCHING_L, LISTED_L};

static void functions__say_no_init_before_ptl_init(void **state)
{
	ptl_process_t id;
	ptl_handle_any_t handle = 0;
	ptl_event_t event;
	ptl_ct_event_t count;
	unsigned which;
	ptl_size_t size = 0;

	(void)state;
	PtlFini();
	assert_code(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &handle), PTL_NO_INIT);
	assert_code(PtlNIInit(0, 0, PTL_PID_ANY, NULL, NULL, NULL), PTL_NO_INIT);
	assert_code(PtlNIFini(0), PTL_NO_INIT);
	assert_code(PtlNIStatus(0, PTL_SR_LAST, NULL), PTL_NO_INIT);
	assert_code(PtlNIHandle(0, NULL), PTL_NO_INIT);
	assert_code(PtlSetMap(0, 0, NULL), PTL_NO_INIT);
	assert_code(PtlGetMap(0, 0, NULL, NULL), PTL_NO_INIT);
	assert_code(PtlPTAlloc(0, 0, PTL_EQ_NONE, 0, NULL), PTL_NO_INIT);
	assert_code(PtlPTFree(0, 0), PTL_NO_INIT);
	assert_code(PtlPTDisable(0, 0), PTL_NO_INIT);
	assert_code(PtlPTEnable(0, 0), PTL_NO_INIT);
	assert_code(PtlGetUid(0, NULL), PTL_NO_INIT);
	assert_code(PtlGetId(0, &id), PTL_NO_INIT);
	assert_code(PtlGetPhysId(0, NULL), PTL_NO_INIT);
	assert_code(PtlMDBind(0, NULL, NULL), PTL_NO_INIT);
	assert_code(PtlMDRelease(0), PTL_NO_INIT);
	assert_code(PtlLEAppend(0, 0, NULL, 9, NULL, NULL), PTL_NO_INIT);
	assert_code(PtlLEUnlink(0), PTL_NO_INIT);
	assert_code(PtlMEAppend(0, 0, NULL, 9, NULL, NULL), PTL_NO_INIT);
	assert_code(PtlMEUnlink(0), PTL_NO_INIT);
	assert_code(PtlLESearch(0, 0, NULL, 9, NULL), PTL_NO_INIT);
	assert_code(PtlMESearch(0, 0, NULL, 9, NULL), PTL_NO_INIT);
	assert_code(PtlCTAlloc(0, NULL), PTL_NO_INIT);
	assert_code(PtlCTFree(0), PTL_NO_INIT);
	assert_code(PtlCTGet(0, &count), PTL_NO_INIT);
	assert_code(PtlCTWait(0, 0, &count), PTL_NO_INIT);
	assert_code(PtlCTPoll(&handle, &size, 0, 0, &count, &which), PTL_NO_INIT);
	assert_code(PtlCTSet(0, (ptl_ct_event_t){0, 0}), PTL_NO_INIT);
	assert_code(PtlCTInc(0, (ptl_ct_event_t){1, 1}), PTL_NO_INIT);
	assert_code(PtlCTCancelTriggered(0), PTL_NO_INIT);
	assert_code(PtlTriggeredPut(0, 0, 0, 9, ANYONE, 0, 0, 0, NULL, 0, 0, 0), PTL_NO_INIT);
	assert_code(PtlTriggeredGet(0, 0, 0, ANYONE, 0, 0, 0, NULL, 0, 0), PTL_NO_INIT);
	assert_code(PtlTriggeredCTInc(0, (ptl_ct_event_t){1, 1}, 0, 0), PTL_NO_INIT);
	assert_code(PtlTriggeredCTSet(0, (ptl_ct_event_t){1, 1}, 0, 0), PTL_NO_INIT);
	assert_code(PtlTriggeredMEAppend(0, 0, NULL, 9, NULL, NULL, 0, 0), PTL_NO_INIT);
	assert_code(PtlTriggeredMEUnlink(0, 0, 0), PTL_NO_INIT);
	assert_code(PtlPut(0, 0, 0, 9, ANYONE, 0, 0, 0, NULL, 0), PTL_NO_INIT);
	assert_code(PtlGet(0, 0, 0, ANYONE, 0, 0, 0, NULL), PTL_NO_INIT);
	assert_code(PtlAtomic(0, 0, 0, 9, ANYONE, 0, 0, 0, NULL, 0, PTL_OP_LAST, 99), PTL_NO_INIT);
	assert_code(PtlFetchAtomic(0, 0, 0, 0, 0, ANYONE, 0, 0, 0, NULL, 0, PTL_OP_LAST, 99),
		PTL_NO_INIT);
	assert_code(PtlSwap(0, 0, 0, 0, 0, ANYONE, 0, 0, 0, NULL, 0, NULL, PTL_OP_LAST, 99),
		PTL_NO_INIT);
	assert_code(PtlTriggeredAtomic(0, 0, 0, 9, ANYONE, 0, 0, 0, NULL, 0, PTL_OP_LAST, 99, 0, 0),
		PTL_NO_INIT);
	assert_code(PtlTriggeredFetchAtomic(
			    0, 0, 0, 0, 0, ANYONE, 0, 0, 0, NULL, 0, PTL_OP_LAST, 99, 0, 0),
		PTL_NO_INIT);
	assert_code(PtlTriggeredSwap(
			    0, 0, 0, 0, 0, ANYONE, 0, 0, 0, NULL, 0, NULL, PTL_OP_LAST, 99, 0, 0),
		PTL_NO_INIT);
	assert_code(PtlAtomicSync(), PTL_NO_INIT);
	assert_code(PtlEQAlloc(0, 1, NULL), PTL_NO_INIT);
	assert_code(PtlEQFree(0), PTL_NO_INIT);
	assert_code(PtlEQGet(0, &event), PTL_NO_INIT);
	assert_code(PtlEQWait(0, &event), PTL_NO_INIT);
	assert_code(PtlEQPoll(&handle, 0, 0, &event, &which), PTL_NO_INIT);
	assert_code(PtlStartBundle(0), PTL_NO_INIT);
	assert_code(PtlEndBundle(0), PTL_NO_INIT);
	assert_ok(PtlInit());
}

static void ptl_ni_init__opens_four_kinds_under_one_process_id(void **state)
{
	ptl_handle_ni_t nis[4];
	ptl_process_t ids[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(PtlNIInit(0, kinds[i], PTL_PID_ANY, NULL, NULL, &nis[i]));
		assert_ok(PtlGetPhysId(nis[i], &ids[i]));
		assert_int_equal(ids[i].phys.nid, 1);
		assert_int_equal(ids[i].phys.pid, ids[0].phys.pid);
		for (unsigned j = 0; j < i; j++)
			assert_false(PtlHandleIsEqual(nis[i], nis[j]));
	}
	/* in any order */
	assert_ok(PtlNIFini(nis[0]));
	assert_code(PtlGetPhysId(nis[0], &ids[0]), PTL_ARG_INVALID);
	assert_ok(PtlGetPhysId(nis[2], &ids[2]));
	assert_ok(PtlNIFini(nis[2]));
	assert_ok(PtlNIFini(nis[3]));
	assert_ok(PtlGetPhysId(nis[1], &ids[1]));
	assert_ok(PtlNIFini(nis[1]));
	assert_code(PtlNIFini(nis[1]), PTL_ARG_INVALID);
}

static void ptl_ni_init__counts_and_returns_the_same_handle_and_limits(void **state)
{
	ptl_ni_limits_t desired = {.max_entries = 4}, first, second;
	ptl_handle_ni_t ni, again;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, &first, &ni));
	assert_ok(PtlNIInit(PTL_IFACE_DEFAULT, MATCHING, 77, &desired, &second, &again));
	assert_true(ni == again);
	assert_memory_equal(&first, &second, sizeof(first));
	assert_ok(PtlNIFini(ni));
	assert_ok(PtlStartBundle(ni));
	assert_ok(PtlEndBundle(ni));
	assert_ok(PtlNIFini(ni));
	assert_code(PtlStartBundle(ni), PTL_ARG_INVALID);
}

static void ptl_ni_init__gives_the_same_handle_in_each_life(void **state)
{
	ptl_handle_ni_t first, second;

	(void)state;
	assert_ok(PtlNIInit(0, LISTED_L, PTL_PID_ANY, NULL, NULL, &first));
	PtlFini();
	assert_code(PtlStartBundle(first), PTL_NO_INIT);
	assert_ok(PtlInit());
	assert_code(PtlStartBundle(first), PTL_ARG_INVALID);
	assert_ok(PtlNIInit(0, LISTED_L, PTL_PID_ANY, NULL, NULL, &second));
	assert_true(first == second);
	assert_ok(PtlNIFini(second));
}

static void ptl_ni_init__refuses_bad_arguments(void **state)
{
	const unsigned options[] = {0, PTL_NI_MATCHING, PTL_NI_LOGICAL, 0xf, 0x10 | MATCHING,
		PTL_NI_MATCHING | PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, MATCHING | PTL_NI_LOGICAL};
	ptl_handle_ni_t ni;

	(void)state;
	for (unsigned i = 0; i < COUNT(options); i++)
		assert_code(
			PtlNIInit(0, options[i], PTL_PID_ANY, NULL, NULL, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIInit(2, MATCHING, PTL_PID_ANY, NULL, NULL, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, NULL), PTL_ARG_INVALID);
}

static void ptl_ni_init__has_one_process_id_for_all_kinds(void **state)
{
	ptl_handle_ni_t first, second;
	ptl_process_t id;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, 4711, NULL, NULL, &first));
	assert_ok(PtlGetId(first, &id));
	assert_int_equal(id.phys.pid, 4711);
	assert_code(PtlNIInit(0, LISTED, 4712, NULL, NULL, &second), PTL_ARG_INVALID);
	assert_ok(PtlNIInit(0, LISTED, 4711, NULL, NULL, &second));
	assert_ok(PtlNIFini(second));
	assert_ok(PtlNIInit(0, LISTED, PTL_PID_ANY, NULL, NULL, &second));
	assert_ok(PtlNIFini(first));
	assert_ok(PtlNIFini(second));
	assert_ok(PtlNIInit(0, MATCHING, 4712, NULL, NULL, &first));
	assert_ok(PtlNIFini(first));
}

static void limits__are_as_desired_and_enforced(void **state)
{
	ptl_ni_limits_t desired = {4, 1, 3, 2, 4, 4, 2, 3, 5, 1000, 32, 40, 64, 8, 32, 0};
	ptl_handle_any_t handle;
	ptl_ni_limits_t actual;
	ptl_pt_index_t portal;
	ptl_handle_ni_t ni;
	ptl_md_t md = {.eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &desired, &actual, &ni));
	assert_memory_equal(&actual, &desired, /* there is a hole behind it */
		offsetof(ptl_ni_limits_t, max_triggered_ops) + sizeof(int));
	assert_memory_equal(&actual.max_msg_size, &desired.max_msg_size,
		offsetof(ptl_ni_limits_t, features) - offsetof(ptl_ni_limits_t, max_msg_size));
	assert_int_equal(actual.features, 0);
	assert_ok(PtlNIFini(ni));
	desired.features = PTL_COHERENT_ATOMICS | 1u << 31;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &desired, &actual, &ni));
	assert_int_equal(actual.features, PTL_COHERENT_ATOMICS);
	for (int i = 0; i < 4; i++)
		assert_ok(PtlEQAlloc(ni, 1, &handle));
	assert_code(PtlEQAlloc(ni, 1, &handle), PTL_NO_SPACE);
	for (int i = 0; i < 2; i++)
		assert_ok(PtlCTAlloc(ni, &handle));
	assert_code(PtlCTAlloc(ni, &handle), PTL_NO_SPACE);
	for (int i = 0; i < 3; i++)
		assert_ok(PtlMDBind(ni, &md, &handle));
	assert_code(PtlMDBind(ni, &md, &handle), PTL_NO_SPACE);
	for (unsigned i = 0; i <= 4; i++) {
		assert_ok(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal));
		assert_int_equal(portal, i);
	}
	assert_code(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &portal), PTL_PT_FULL);
	assert_code(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 5, &portal), PTL_ARG_INVALID);
	assert_ok(PtlNIFini(ni));
}

static void limits__are_clamped_and_never_refused(void **state)
{
	ptl_ni_limits_t desired, actual;
	ptl_handle_ni_t ni;

	(void)state;
	memset(&desired, 0xff, sizeof(desired)); /* LONG_MAX as an int is -1 */
	assert_ok(PtlNIInit(0, LISTED, PTL_PID_ANY, &desired, &actual, &ni));
	assert_true(actual.max_entries >= 65536);
	assert_true(actual.max_pt_index >= 63);
	assert_true(actual.max_msg_size > UINT32_MAX);
	assert_ok(PtlNIFini(ni));
}

/* Programs of Portals 4.0 fill in the fields that they know, and zero the rest. */
static void limits__that_are_0_are_the_defaults(void **state)
{
	const ptl_ni_limits_t nothing = {0};
	ptl_ni_limits_t usual, actual;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, &usual, &ni));
	assert_ok(PtlNIFini(ni));
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &nothing, &actual, &ni));
	assert_ok(PtlNIFini(ni));
	assert_memory_equal(&actual.max_entries, &usual.max_entries,
		offsetof(ptl_ni_limits_t, max_triggered_ops) + sizeof(int));
	assert_memory_equal(&actual.max_msg_size, &usual.max_msg_size,
		offsetof(ptl_ni_limits_t, features) - offsetof(ptl_ni_limits_t, max_msg_size));
}

static void limits__of_order_and_size_have_a_least_value(void **state)
{
	const ptl_ni_limits_t small = {.max_atomic_size = 1,
		.max_fetch_atomic_size = 1,
		.max_waw_ordered_size = 1,
		.max_war_ordered_size = 1,
		.max_volatile_size = 1};
	ptl_ni_limits_t actual;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &small, &actual, &ni));
	assert_ok(PtlNIFini(ni));
	assert_int_equal(actual.max_waw_ordered_size, 64);
	assert_int_equal(actual.max_war_ordered_size, 8);
	assert_int_equal(actual.max_atomic_size, 8);
	assert_int_equal(actual.max_fetch_atomic_size, 8);
	assert_int_equal(actual.max_volatile_size, 8);
}

static void limits__of_one_interface_are_not_anothers(void **state)
{
	const ptl_ni_limits_t few = {.max_entries = 7, .max_cts = 3}, more = {.max_entries = 70};
	ptl_ni_limits_t first, second;
	ptl_handle_ni_t one, other;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &few, &first, &one));
	assert_ok(PtlNIInit(0, LISTED, PTL_PID_ANY, &more, &second, &other));
	assert_int_equal(first.max_entries, 7);
	assert_int_equal(first.max_cts, 3);
	assert_int_equal(second.max_entries, 70);
	assert_int_equal(second.max_cts, 4096); /* 0 is the default */
	assert_ok(PtlNIFini(one));
	/* Opened again it may have others. */
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &more, &first, &one));
	assert_int_equal(first.max_entries, 70);
	assert_ok(PtlNIFini(one));
	assert_ok(PtlNIFini(other));
}

/* What a program sees of each limit that its user sets to 64. */
static void limits__have_the_names_of_the_reference(void **state)
{
	static const char *const names[] = {"ENTRIES", "UNEXPECTED_HEADERS", "MDS", "CTS", "EQS",
		"PT_INDEX", "IOVECS", "LIST_SIZE", "TRIGGERED_OPS", "MSG_SIZE", "ATOMIC_SIZE",
		"FETCH_ATOMIC_SIZE", "WAW_ORDERED_SIZE", "WAR_ORDERED_SIZE", "VOLATILE_SIZE"};
	char name[64];
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;

	(void)state;
	for (unsigned i = 0; i < COUNT(names); i++) {
		snprintf(name, sizeof(name), "PTL_LIM_MAX_%s", names[i]);
		setenv(name, "64", 1);
	}
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, &limits, &ni));
	assert_ok(PtlNIFini(ni));
	for (unsigned i = 0; i < COUNT(names); i++) {
		snprintf(name, sizeof(name), "PTL_LIM_MAX_%s", names[i]);
		unsetenv(name);
	}
	for (const int *limit = &limits.max_entries; limit <= &limits.max_triggered_ops; limit++)
		assert_int_equal(*limit, 64);
	for (const ptl_size_t *limit = &limits.max_msg_size; limit <= &limits.max_volatile_size;
		limit++)
		assert_int_equal(*limit, 64);
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, &limits, &ni));
	assert_int_equal(limits.max_entries, 65536);
	assert_int_equal(limits.max_pt_index, 63);
	assert_true(limits.max_volatile_size >= 32 && limits.max_atomic_size >= 32); /* SOS */
	assert_true(limits.max_waw_ordered_size >= 64 && limits.max_war_ordered_size >= 8);
	assert_ok(PtlNIFini(ni));
}

static void messages__are_no_longer_than_their_limit(void **state)
{
	const ptl_ni_limits_t small = {.max_msg_size = 10, .max_volatile_size = 4};
	ptl_md_t md = {.length = 100, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
	ptl_handle_md_t handle;
	unsigned char bytes[100] = {0};
	ptl_handle_ni_t ni;
	ptl_process_t self;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &small, NULL, &ni));
	assert_ok(PtlGetId(ni, &self));
	md.start = bytes;
	assert_ok(PtlMDBind(ni, &md, &handle));
	assert_ok(PtlPut(handle, 0, 10, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0));
	assert_code(PtlPut(handle, 0, 11, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	assert_code(PtlGet(handle, 0, 11, self, 0, 0, 0, NULL), PTL_ARG_INVALID);
	assert_ok(PtlNIFini(ni));
}

static void ptl_init__counts(void **state)
{
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlInit());
	assert_ok(PtlInit());
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	PtlFini();
	PtlFini();
	assert_ok(PtlStartBundle(ni));
	assert_ok(PtlStartBundle(ni)); /* they nest */
	assert_ok(PtlEndBundle(ni));
	assert_ok(PtlEndBundle(ni));
	PtlFini(); /* the last; the interface is still open */
	assert_code(PtlNIFini(ni), PTL_NO_INIT);
	assert_true(PtlHandleIsEqual(ni, ni)); /* defined all the same */
	assert_false(PtlHandleIsEqual(ni, PTL_INVALID_HANDLE));
	PtlAbort();
	PtlFini();
	assert_ok(PtlInit());
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	assert_ok(PtlNIFini(ni));
}

static void node_65535__means_any_node_and_is_refused(void **state)
{
	ptl_handle_ni_t ni;

	(void)state;
	PtlFini();
	setenv("PTL_NID", "65535;2", 1);
	assert_ok(PtlInit());
	assert_code(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni), PTL_FAIL);
	assert_ok(PtlNIInit(1, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	PtlFini();
	setenv("PTL_NID", "1;2", 1);
	assert_ok(PtlInit());
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	assert_ok(PtlNIFini(ni));
}

static void limits__of_the_environment_are_defaults(void **state)
{
	const ptl_ni_limits_t desired = {.max_entries = 9};
	ptl_ni_limits_t actual;
	ptl_handle_ni_t ni;

	(void)state;
	setenv("PTL_LIM_MAX_ENTRIES", "17", 1);
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, &actual, &ni));
	assert_int_equal(actual.max_entries, 17);
	assert_ok(PtlNIFini(ni));
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, &desired, &actual, &ni));
	assert_int_equal(actual.max_entries, 9);
	assert_ok(PtlNIFini(ni));
	unsetenv("PTL_LIM_MAX_ENTRIES");
}

/* This program with the word: what a program does that says nothing. */
static int quiet(void)
{
	struct node here, there;

	if (PtlInit() != PTL_OK)
		return 1;
	pair_open(&here, &there, MATCHING);
	pair_close(&here, &there);
	PtlFini();
	return 0;
}

/* Names of the reference that a user's shell may have: none stops anything, and standard output is
 * the program's. */
static void environment__of_the_reference_is_accepted_without_a_word(void **state)
{
	static const char *const names[] = {"PTL_DEBUG=0", "PTL_DEBUG=1", "PTL_LOG_LEVEL=0",
		"PTL_LOG_LEVEL=1", "PTL_LOG_LEVEL=2", "PTL_LOG_LEVEL=3", "PTL_ENABLE_MEM=1",
		"PTL_DISABLE_MEM_REG_CACHE=1", "PTL_LIM_MAX_MDS=77"};
	char self[512], command[600];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(length > 0);
	self[length] = '\0';
	for (unsigned i = 0; i < COUNT(names); i++) {
		FILE *output;

		snprintf(command, sizeof(command), "%s '%s' quiet 2>/dev/null", names[i], self);
		output = popen(command, "r");
		assert_non_null(output);
		assert_int_equal(fgetc(output), EOF);
		assert_int_equal(pclose(output), 0);
	}
}

/* All four kinds are open at both ends, with the same numbers of Portals. */
static void messages__go_to_the_interface_of_their_own_kind(void **state)
{
	struct node here[4], there[4];
	unsigned char byte = 1, bytes[4] = {0};
	ptl_sr_value_t drops;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		pair_open(&here[i], &there[i], kinds[i]);
		if (kinds[i] & PTL_NI_MATCHING) {
			entry_make(&there[i], &bytes[i], 1, PTL_ME_OP_PUT, 0, &bytes[i]);
		} else {
			const ptl_le_t le = {.start = &bytes[i],
				.length = 1,
				.ct_handle = PTL_CT_NONE,
				.uid = PTL_UID_ANY,
				.options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
			ptl_handle_le_t handle;

			assert_ok(PtlLEAppend(
				there[i].ni, 0, &le, PTL_PRIORITY_LIST, &bytes[i], &handle));
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		ptl_handle_md_t md = md_make(&here[i], &byte, 1, PTL_MD_EVENT_SEND_DISABLE);
		ptl_event_t event;

		assert_ok(PtlPut(md, 0, 1, PTL_ACK_REQ, there[i].id, 0, 0, 0, NULL, 0));
		assert_int_equal(expect_event(here[i].eq, PTL_EVENT_ACK).mlength, 1);
		event = expect_event(there[i].eq, PTL_EVENT_PUT);
		assert_true(event.user_ptr == &bytes[i]);
		assert_memory_equal(&event.initiator, &here[i].id,
			kinds[i] & PTL_NI_LOGICAL ? sizeof(ptl_rank_t) : sizeof(ptl_process_t));
		assert_int_equal(bytes[i], 1);
		/* Each has registers of its own. */
		assert_ok(PtlPut(md, 0, 1, PTL_ACK_REQ, there[i].id, 9, 0, 0, NULL, 0));
		assert_int_equal(
			expect_event(here[i].eq, PTL_EVENT_ACK).ni_fail_type, PTL_NI_DROPPED);
		for (unsigned j = 0; j < 4; j++) {
			expect_none(there[j].eq);
			assert_ok(PtlNIStatus(there[j].ni, PTL_SR_DROP_COUNT, &drops));
			assert_int_equal(drops, j <= i);
		}
	}
	for (unsigned i = 0; i < 4; i++)
		pair_close(&here[i], &there[i]);
}

/* What is got here is held back no longer than until the bundle has ended. */
static void bundles__hold_nothing_back_after_their_end(void **state)
{
	struct node here, there;
	uint64_t word = 7, into = 0;
	ptl_handle_md_t md;

	(void)state;
	pair_open(&here, &there, MATCHING);
	entry_make(&there, &word, 8, PTL_ME_OP_GET, 5, NULL);
	md = md_make(&here, &into, 8, 0);
	assert_ok(PtlStartBundle(here.ni));
	assert_ok(PtlStartBundle(here.ni));
	assert_ok(PtlGet(md, 0, 8, there.id, 0, 5, 0, NULL));
	assert_ok(PtlEndBundle(here.ni));
	assert_ok(PtlEndBundle(here.ni));
	expect_event(here.eq, PTL_EVENT_REPLY);
	assert_int_equal(into, 7);
	pair_close(&here, &there);
}

static void handles__name_their_interface_and_never_a_constant(void **state)
{
	ptl_handle_any_t handles[5];
	struct node node;
	ptl_handle_ni_t ni;

	(void)state;
	node_open(&node, 0, MATCHING);
	handles[0] = node.ni;
	handles[1] = node.eq;
	handles[2] = node.ct;
	handles[3] = md_make(&node, NULL, 0, 0);
	handles[4] = entry_make(&node, NULL, 0, 0, 0, NULL);
	for (unsigned i = 0; i < 5; i++) {
		assert_ok(PtlNIHandle(handles[i], &ni));
		assert_true(ni == node.ni);
		assert_true(handles[i] != PTL_EQ_NONE && handles[i] != PTL_CT_NONE &&
			    handles[i] != PTL_INVALID_HANDLE);
		for (unsigned j = 0; j < i; j++)
			assert_false(PtlHandleIsEqual(handles[i], handles[j]));
	}
	assert_code(PtlNIHandle(PTL_EQ_NONE, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIHandle(PTL_CT_NONE, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIHandle(PTL_INVALID_HANDLE, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIHandle(0, &ni), PTL_ARG_INVALID);
	assert_code(PtlNIHandle(node.ni, NULL), PTL_ARG_INVALID);
	assert_code(PtlMDRelease(node.eq), PTL_ARG_INVALID);
	assert_code(PtlEQFree(node.ct), PTL_ARG_INVALID);
	node_close(&node);
	for (unsigned i = 0; i < 5; i++)
		assert_code(PtlNIHandle(handles[i], &ni), PTL_ARG_INVALID);
}

static void handles__that_are_stale_are_refused_when_their_place_is_used_again(void **state)
{
	ptl_handle_ct_t first, second;
	struct node node;
	ptl_ct_event_t count;

	(void)state;
	node_open(&node, 0, LISTED);
	assert_ok(PtlCTAlloc(node.ni, &first));
	for (int i = 0; i < 100; i++) {
		assert_ok(PtlCTFree(first));
		assert_ok(PtlCTAlloc(node.ni, &second));
		assert_code(PtlCTGet(first, &count), PTL_ARG_INVALID);
		first = second;
	}
	node_close(&node);
}

static void ptl_get_id__is_the_rank_on_a_logical_interface(void **state)
{
	ptl_process_t map[3], id, read[3];
	ptl_size_t size = 0;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING_L, PTL_PID_ANY, NULL, NULL, &ni));
	assert_ok(PtlGetId(ni, &id));
	assert_int_equal(id.rank, PTL_RANK_ANY);
	assert_code(PtlGetMap(ni, 0, NULL, &size), PTL_NO_SPACE);
	assert_ok(PtlGetPhysId(ni, &map[1]));
	map[0] = (ptl_process_t){.phys = {9, 9}};
	map[2] = map[0];
	assert_code(PtlSetMap(ni, 0, map), PTL_ARG_INVALID);
	assert_code(PtlSetMap(ni, 3, NULL), PTL_ARG_INVALID);
	assert_code(PtlSetMap(ni, 1, map), PTL_ARG_INVALID); /* without this process */
	assert_ok(PtlSetMap(ni, 3, map));
	assert_code(PtlSetMap(ni, 2, map), PTL_IGNORED);
	assert_ok(PtlGetId(ni, &id));
	assert_int_equal(id.rank, 1);
	assert_ok(PtlGetMap(ni, 0, NULL, &size));
	assert_int_equal(size, 3);
	memset(read, 0, sizeof(read));
	assert_ok(PtlGetMap(ni, 2, read, NULL));
	assert_memory_equal(read, map, 2 * sizeof(map[0]));
	assert_int_equal(read[2].phys.nid, 0);
	map[1] = (ptl_process_t){.phys = {8, 8}}; /* the interface has a copy */
	assert_ok(PtlGetPhysId(ni, &id));
	size = 0;
	assert_ok(PtlGetMap(ni, 100, read, &size)); /* no more than there are */
	assert_int_equal(size, 3);
	assert_memory_equal(&read[1], &id, sizeof(id));
	assert_ok(PtlNIFini(ni));
}

static void ptl_set_map__is_for_logical_interfaces(void **state)
{
	ptl_process_t id;
	ptl_size_t size;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	assert_ok(PtlGetId(ni, &id));
	assert_code(PtlSetMap(ni, 1, &id), PTL_ARG_INVALID);
	assert_code(PtlGetMap(ni, 1, &id, &size), PTL_ARG_INVALID);
	assert_ok(PtlNIFini(ni));
}

static void ptl_ni_status__reads_registers_that_exist(void **state)
{
	ptl_sr_value_t value = -1;
	ptl_uid_t uid = 0;
	ptl_handle_ni_t ni;

	(void)state;
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	for (int i = 0; i < PTL_SR_LAST; i++) {
		assert_ok(PtlNIStatus(ni, (ptl_sr_index_t)i, &value));
		assert_int_equal(value, 0);
	}
	assert_code(PtlNIStatus(ni, PTL_SR_LAST, &value), PTL_ARG_INVALID);
	assert_code(PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL), PTL_ARG_INVALID);
	assert_ok(PtlGetUid(ni, &uid));
	assert_int_equal(uid, geteuid());
	assert_code(PtlGetUid(ni, NULL), PTL_ARG_INVALID);
	assert_ok(PtlNIFini(ni));
}

/* As where the kernel says it: posternd, and the directory of a node. */
static void ptl_get_uid__is_the_effective_user(void **state)
{
	const uid_t other = 65534;
	ptl_uid_t uid = other;
	ptl_handle_ni_t ni;

	(void)state;
	if (geteuid() != 0 || getuid() != 0)
		skip();
	assert_int_equal(setresuid(other, 0, 0), 0);
	assert_ok(PtlNIInit(0, MATCHING, PTL_PID_ANY, NULL, NULL, &ni));
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_ok(PtlGetUid(ni, &uid));
	assert_int_equal(uid, 0);
	assert_ok(PtlNIFini(ni));
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions__say_no_init_before_ptl_init),
		cmocka_unit_test(ptl_ni_init__opens_four_kinds_under_one_process_id),
		cmocka_unit_test(ptl_ni_init__counts_and_returns_the_same_handle_and_limits),
		cmocka_unit_test(ptl_ni_init__gives_the_same_handle_in_each_life),
		cmocka_unit_test(ptl_ni_init__refuses_bad_arguments),
		cmocka_unit_test(ptl_ni_init__has_one_process_id_for_all_kinds),
		cmocka_unit_test(limits__are_as_desired_and_enforced),
		cmocka_unit_test(limits__are_clamped_and_never_refused),
		cmocka_unit_test(limits__that_are_0_are_the_defaults),
		cmocka_unit_test(limits__of_order_and_size_have_a_least_value),
		cmocka_unit_test(limits__of_one_interface_are_not_anothers),
		cmocka_unit_test(limits__have_the_names_of_the_reference),
		cmocka_unit_test(messages__are_no_longer_than_their_limit),
		cmocka_unit_test(ptl_init__counts),
		cmocka_unit_test(node_65535__means_any_node_and_is_refused),
		cmocka_unit_test(limits__of_the_environment_are_defaults),
		cmocka_unit_test(environment__of_the_reference_is_accepted_without_a_word),
		cmocka_unit_test(messages__go_to_the_interface_of_their_own_kind),
		cmocka_unit_test(bundles__hold_nothing_back_after_their_end),
		cmocka_unit_test(handles__name_their_interface_and_never_a_constant),
		cmocka_unit_test(
			handles__that_are_stale_are_refused_when_their_place_is_used_again),
		cmocka_unit_test(ptl_get_id__is_the_rank_on_a_logical_interface),
		cmocka_unit_test(ptl_set_map__is_for_logical_interfaces),
		cmocka_unit_test(ptl_ni_status__reads_registers_that_exist),
		cmocka_unit_test(ptl_get_uid__is_the_effective_user),
	};

	if (count == 2 && strcmp(words[1], "quiet") == 0)
		return quiet();
	return cmocka_run_group_tests(tests, group_open, group_close);
}
