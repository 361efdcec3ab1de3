/* SPDX-License-Identifier: BSD-3-Clause */
/* test_inspection4.c - what interfaces of Portals 4 tell of themselves: lists, descriptors, queues,
 * counters and what waits for them, by the handles that programs have.
 *
 * Covers: lib/host/inspection.c, lib/host/objects.c, lib/host/page.c, lib/host/triggers.c,
 * lib/p4/front.c.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <host/inspection.h>
#include <p4/interface.h>

static ptl_handle_ni_t ni;
static char text[65536];

static const char *inspect(const char *topic, unsigned first, unsigned count)
{
	size_t length;

	assert_int_equal(inspection_write(&portals4, nis[NI_MATCHES].handle, topic,
				 (struct page){first, count}, text, sizeof(text), &length),
		ANSWER_OK);
	assert_true(length < sizeof(text));
	return text;
}

static void assert_told(const char *json, const char *format, uint64_t value)
{
	char member[128];

	snprintf(member, sizeof(member), format, value);
	if (!strstr(json, member))
		fail_msg("%s is not in %s", member, json);
}

/* A value of the item with this handle. */
static uint64_t value_of(const char *json, ptl_handle_any_t handle, const char *name)
{
	char member[64];
	const char *item;

	snprintf(member, sizeof(member), "\"handle\": \"0x%x\"", handle);
	item = strstr(json, member);
	assert_non_null(item);
	snprintf(member, sizeof(member), "\"%s\": ", name);
	item = strstr(item, member);
	assert_non_null(item);
	item += strlen(member);
	return strtoull(item + (*item == '"'), NULL, 0);
}

static int open_ni(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "loop:0", 1);
	assert_int_equal(PtlInit(), PTL_OK);
	assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
				 PTL_PID_ANY, NULL, NULL, &ni),
		PTL_OK);
	return 0;
}

static int close_ni(void **state)
{
	(void)state;
	assert_int_equal(PtlNIFini(ni), PTL_OK);
	PtlFini();
	return 0;
}

static void counters__with_what_waits_for_them(void **state)
{
	const ptl_ct_event_t one = {.success = 1};
	ptl_handle_ct_t ct, other;

	(void)state;
	assert_int_equal(PtlCTAlloc(ni, &ct), PTL_OK);
	assert_int_equal(PtlCTAlloc(ni, &other), PTL_OK);
	assert_int_equal(PtlCTInc(ct, (ptl_ct_event_t){.success = 7}), PTL_OK);
	assert_int_equal(PtlCTInc(ct, (ptl_ct_event_t){.failure = 2}), PTL_OK);
	assert_int_equal(PtlTriggeredCTInc(other, one, ct, 100), PTL_OK);
	assert_int_equal(PtlTriggeredCTInc(other, one, ct, 200), PTL_OK);
	assert_int_equal(PtlTriggeredCTInc(other, one, ct, 9), PTL_OK); /* is due */
	inspect("ct", 0, 0);
	assert_told(text, "\"total\": %" PRIu64, 2);
	assert_int_equal(value_of(text, ct, "success"), 7);
	assert_int_equal(value_of(text, ct, "failure"), 2);
	assert_int_equal(value_of(text, ct, "triggered"), 2);
	assert_int_equal(value_of(text, ct, "threshold"), 100);
	assert_int_equal(value_of(text, ct, "sleepers"), 0);
	assert_int_equal(value_of(text, other, "success"), 1);
	assert_int_equal(value_of(text, other, "triggered"), 0);
	assert_non_null(strstr(text, "\"threshold\": null"));
	inspect("ct", 0, 1);
	assert_null(strstr(strstr(text, "handle") + 1, "handle"));
	inspect("ni", 0, 0);
	assert_told(strstr(text, "in_use"), "\"event_counters\": %" PRIu64, 2);
	assert_told(text, "\"triggered_operations\": %" PRIu64, 2);
	assert_int_equal(PtlCTCancelTriggered(ct), PTL_OK);
	inspect("ct", 0, 0);
	assert_int_equal(value_of(text, ct, "triggered"), 0);
	assert_int_equal(PtlTriggeredCTInc(other, one, ct, 300), PTL_OK);
	inspect("ct", 0, 0);
	assert_int_equal(value_of(text, ct, "triggered"), 1);
	assert_int_equal(value_of(text, ct, "threshold"), 300);
	assert_int_equal(PtlCTFree(ct), PTL_OK);
	assert_int_equal(PtlCTFree(other), PTL_OK);
	inspect("ct", 0, 0);
	assert_told(text, "\"total\": %" PRIu64, 0);
}

/* How many items of a page there are with a text. */
static unsigned items_with(const char *json, const char *member)
{
	unsigned count = 0;

	while ((json = strstr(json, member)) != NULL) {
		json++;
		count++;
	}
	return count;
}

static void commands_that_wait__with_the_counter_and_the_threshold(void **state)
{
	const ptl_ct_event_t three = {.success = 3};
	const ptl_process_t target = {.phys = {7, 8}};
	ptl_md_t memory = {.start = text, .length = 64, .eq_handle = PTL_EQ_NONE};
	ptl_handle_ct_t ct, other, between[100]; /* more than one look sees */
	ptl_handle_md_t md;

	(void)state;
	assert_int_equal(PtlCTAlloc(ni, &ct), PTL_OK);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(PtlCTAlloc(ni, &between[i]), PTL_OK);
	assert_int_equal(PtlCTAlloc(ni, &other), PTL_OK);
	memory.ct_handle = PTL_CT_NONE;
	assert_int_equal(PtlMDBind(ni, &memory, &md), PTL_OK);
	assert_int_equal(PtlCTInc(ct, (ptl_ct_event_t){.success = 5}), PTL_OK);
	assert_int_equal(
		PtlTriggeredPut(md, 0, 48, PTL_NO_ACK_REQ, target, 9, 0xbeef, 0, NULL, 0, ct, 77),
		PTL_OK);
	assert_int_equal(PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, target, 9, 0, 0, NULL, 0,
				 PTL_SUM, PTL_UINT64_T, ct, 78),
		PTL_OK);
	assert_int_equal(PtlTriggeredFetchAtomic(md, 0, md, 8, 8, target, 9, 0, 0, NULL, 0, PTL_SUM,
				 PTL_UINT64_T, ct, 79),
		PTL_OK);
	assert_int_equal(PtlTriggeredSwap(md, 0, md, 8, 8, target, 9, 0, 0, NULL, 0, NULL, PTL_SWAP,
				 PTL_UINT64_T, ct, 80),
		PTL_OK);
	assert_int_equal(PtlTriggeredCTInc(other, three, ct, 70), PTL_OK);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(PtlTriggeredCTSet(ct, three, other, 1000 + i), PTL_OK);
	inspect("triggered", 0, 0);
	assert_told(text, "\"total\": %" PRIu64, 10);
	assert_non_null(strstr(text, "\"next\": null"));
	assert_int_equal(items_with(text, "\"operation\": \"put\""), 1);
	assert_int_equal(items_with(text, "\"operation\": \"atomic\""), 1);
	assert_int_equal(items_with(text, "\"operation\": \"fetch_atomic\""), 1);
	assert_int_equal(items_with(text, "\"operation\": \"swap\""), 1);
	assert_int_equal(items_with(text, "\"operation\": \"ct_inc\""), 1);
	assert_int_equal(items_with(text, "\"operation\": \"ct_set\""), 5);
	assert_told(text, "\"success\": 5, \"failure\": 0, \"threshold\": %" PRIu64, 77);
	assert_told(text, "\"nid\": 7, \"pid\": 8, \"portal\": 9, \"match_bits\": \"0x%" PRIx64,
		0xbeef);
	assert_told(text, "\"bytes\": %" PRIu64, 48);
	assert_told(text, "\"target\": \"0x%" PRIx64 "\", \"by_success\": 3", other);
	for (unsigned i = 0; i < 5; i++)
		assert_told(text, "\"threshold\": %" PRIu64, 1000 + i);
	/* what is next to be due comes first */
	assert_told(strstr(text, "\"items\""), "[{\"counter\": \"0x%" PRIx64, ct);
	assert_told(strstr(text, "\"items\""), "\"threshold\": %" PRIu64, 70);
	/* the pages have each of them once */
	for (unsigned first = 0; first < 10; first += 3) {
		inspect("triggered", first, 3);
		assert_int_equal(items_with(text, "operation"), first < 9 ? 3 : 1);
		if (first < 9)
			assert_told(text, "\"next\": %" PRIu64, first + 3);
	}
	assert_int_equal(PtlCTFree(ct), PTL_OK);
	inspect("triggered", 0, 0);
	assert_int_equal(items_with(text, "operation"), 5);
	assert_int_equal(PtlCTFree(other), PTL_OK);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(PtlCTFree(between[i]), PTL_OK);
	assert_int_equal(PtlMDRelease(md), PTL_OK);
	assert_told(inspect("triggered", 0, 0), "\"total\": %" PRIu64, 0);
}

static void objects__by_the_handles_of_programs(void **state)
{
	static char memory[1000];
	ptl_event_t event;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_handle_me_t me, overflow;
	ptl_pt_index_t pt;
	ptl_process_t self;
	ptl_me_t entry = {
		.start = memory,
		.length = sizeof(memory),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL,
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = 5,
	};

	(void)state;
	assert_int_equal(PtlGetPhysId(ni, &self), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni, 30, &eq), PTL_OK);
	assert_int_equal(PtlPTAlloc(ni, 0, eq, 4, &pt), PTL_OK);
	assert_int_equal(PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &me), PTL_OK);
	entry.match_bits = 6;
	assert_int_equal(PtlMEAppend(ni, pt, &entry, PTL_OVERFLOW_LIST, NULL, &overflow), PTL_OK);
	assert_int_equal(PtlMDBind(ni,
				 &(ptl_md_t){.start = memory,
					 .length = 500,
					 .eq_handle = eq,
					 .ct_handle = PTL_CT_NONE},
				 &md),
		PTL_OK);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			PtlPut(md, 0, 10, PTL_ACK_REQ, self, pt, 5 + i, 0, NULL, 0), PTL_OK);
		do
			assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
		while (event.type != PTL_EVENT_ACK);
	}
	inspect("me", 0, 0);
	assert_told(text, "\"total\": %" PRIu64, 2);
	assert_int_equal(value_of(text, me, "match_bits"), 5);
	assert_int_equal(value_of(text, me, "offset"), 10);
	assert_int_equal(value_of(text, me, "unexpected"), 0);
	assert_int_equal(value_of(text, overflow, "match_bits"), 6);
	assert_int_equal(value_of(text, overflow, "unexpected"), 1);
	assert_non_null(strstr(text, "\"list\": \"priority\""));
	assert_non_null(strstr(text, "\"list\": \"overflow\""));
	inspect("portals", 0, 0);
	assert_told(text, "\"portal\": %" PRIu64, 4);
	assert_told(text, "\"priority\": %" PRIu64, 1);
	assert_told(text, "\"overflow\": %" PRIu64, 1);
	assert_non_null(strstr(text, "\"enabled\": true"));
	assert_non_null(strstr(text, "\"flow_control\": false"));
	assert_told(text, "\"eq\": \"0x%" PRIx64, eq);
	assert_told(text, "\"unexpected\": %" PRIu64, 1);
	assert_told(text, "\"pending\": %" PRIu64, 0);
	assert_int_equal(PtlPTDisable(ni, pt), PTL_OK);
	assert_non_null(strstr(inspect("portals", 0, 0), "\"enabled\": false"));
	inspect("md", 0, 0);
	assert_told(text, "\"total\": %" PRIu64, 1);
	assert_int_equal(value_of(text, md, "length"), 500);
	assert_told(text, "\"eq\": \"0x%" PRIx64, eq);
	inspect("eq", 0, 0);
	assert_int_equal(value_of(text, eq, "size"), 30 + 64); /* places beyond flow control */
	inspect("ni", 0, 0);
	assert_told(text, "\"handle\": \"0x%" PRIx64, ni);
	assert_told(strstr(text, "in_use"), "\"memory_descriptors\": %" PRIu64, 1);
	assert_told(strstr(text, "in_use"), "\"entries\": %" PRIu64, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			counters__with_what_waits_for_them, open_ni, close_ni),
		cmocka_unit_test_setup_teardown(
			commands_that_wait__with_the_counter_and_the_threshold, open_ni, close_ni),
		cmocka_unit_test_setup_teardown(
			objects__by_the_handles_of_programs, open_ni, close_ni),
	};
	int failed;

	setenv("PTL_PROGRESS", "core", 1);
	failed = cmocka_run_group_tests_name("core", tests, NULL, NULL);
	setenv("PTL_PROGRESS", "inline", 1);
	return failed + cmocka_run_group_tests_name("inline", tests, NULL, NULL);
}
