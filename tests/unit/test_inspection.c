/* SPDX-License-Identifier: BSD-3-Clause */
/* test_inspection.c - tests lib/host/inspection.c: what an interface tells of itself, by
 * postern_inspect(). Over the loopback; first with a poll thread, then inline.
 * Covers: lib/host/objects.c, lib/host/page.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <postern.h>

#include <host/inspection.h>
#include <p3/interface.h>

#define TEXT_BYTES 65536
#define ENTRIES    1000

static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
static char text[TEXT_BYTES];

static ptl_handle_ni_t open_default(void)
{
	ptl_handle_ni_t ni;
	int count;

	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, 7, NULL, NULL, &ni), PTL_OK);
	return ni;
}

static const char *inspect(ptl_handle_ni_t ni, const char *topic, unsigned first, unsigned count)
{
	int length = postern_inspect(ni, topic, first, count, text, sizeof(text));

	assert_in_range(length, 2, sizeof(text) - 1);
	assert_int_equal(strlen(text), length);
	assert_int_equal(text[0], '{');
	assert_int_equal(text[length - 1], '}');
	return text;
}

/* The number behind the first "name": in a text; UINT64_MAX when there is none. */
static uint64_t number_in(const char *json, const char *name)
{
	char member[64];
	const char *found;

	snprintf(member, sizeof(member), "\"%s\": ", name);
	found = strstr(json, member);
	if (!found || strncmp(found + strlen(member), "null", 4) == 0)
		return UINT64_MAX;
	return strtoull(found + strlen(member), NULL, 10);
}

static unsigned times_in(const char *json, const char *word)
{
	unsigned times = 0;

	for (; (json = strstr(json, word)); json++)
		times++;
	return times;
}

static ptl_handle_me_t entry_attach(ptl_handle_ni_t ni, ptl_pt_index_t portal, uint64_t bits)
{
	ptl_handle_me_t entry;

	assert_int_equal(
		PtlMEAttach(ni, portal, anyone, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &entry),
		PTL_OK);
	return entry;
}

/* A put to this very process that has ended. */
static void put_to_self(ptl_handle_ni_t ni, ptl_pt_index_t portal, uint64_t bits)
{
	static char from[64], to[64];
	ptl_md_t source = {.start = from, .length = sizeof(from), .threshold = 1};
	ptl_md_t target = {.start = to,
		.length = sizeof(to),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE};
	ptl_handle_me_t entry = entry_attach(ni, portal, bits);
	ptl_process_id_t self;
	ptl_handle_md_t md;
	ptl_event_t event;

	assert_int_equal(PtlGetId(ni, &self), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni, 16, &target.eventq), PTL_OK);
	assert_int_equal(PtlMDAttach(entry, target, PTL_RETAIN, PTL_RETAIN, NULL), PTL_OK);
	assert_int_equal(PtlMDBind(ni, source, &md), PTL_OK);
	assert_int_equal(PtlPut(md, PTL_NOACK_REQ, self, portal, 0, bits, 0, 0), PTL_OK);
	do
		assert_int_equal(PtlEQWait(target.eventq, &event), PTL_OK);
	while (event.type != PTL_EVENT_PUT_END);
}

static void postern_inspect__says_what_is_wrong_with_its_arguments(void **state)
{
	ptl_handle_ni_t ni = open_default();

	(void)state;
	assert_int_equal(postern_inspect(ni, "weather", 0, 0, text, sizeof(text)), -PTL_FAIL);
	assert_non_null(strstr(postern_last_error(), "weather"));
	assert_non_null(strstr(postern_last_error(), "peers"));
	assert_int_equal(postern_inspect(ni, NULL, 0, 0, text, sizeof(text)), -PTL_SEGV);
	assert_int_equal(postern_inspect(ni, "ni", 0, 0, NULL, 10), -PTL_SEGV);
	assert_int_equal(postern_inspect(ni + 1, "ni", 0, 0, text, sizeof(text)), -PTL_INV_NI);
	assert_int_equal(
		postern_inspect(PTL_INVALID_HANDLE, "ni", 0, 0, text, sizeof(text)), -PTL_INV_NI);
	assert_int_equal(PtlNIFini(ni), PTL_OK);
	assert_int_equal(postern_inspect(ni, "ni", 0, 0, text, sizeof(text)), -PTL_INV_NI);
	PtlFini();
	assert_int_equal(postern_inspect(ni, "ni", 0, 0, text, sizeof(text)), -PTL_NOINIT);
}

static void postern_inspect__tells_of_every_topic_and_how_long_it_would_be(void **state)
{
	struct postern_topic topics[32];
	unsigned count = postern_topics(topics, 32);
	ptl_handle_ni_t ni = open_default();
	char little[8];

	(void)state;
	assert_int_equal(count, portals.topic_count);
	assert_int_equal(postern_topics(NULL, 0), count);
	for (unsigned i = 0; i < count; i++) {
		inspect(ni, topics[i].name, 0, 0);
		assert_int_equal(strstr(text, "\"items\": [") != NULL, topics[i].paged);
		/* A page of nothing is of a length that does not change meanwhile. */
		assert_int_equal(postern_inspect(ni, "ac", 1000000, 0, NULL, 0),
			postern_inspect(ni, "ac", 1000000, 0, little, sizeof(little)));
		assert_int_equal(strlen(little), sizeof(little) - 1);
	}
	PtlFini();
}

static void postern_inspect__knows_ids_limits_and_what_is_in_use(void **state)
{
	ptl_handle_ni_t ni = open_default();
	ptl_ni_limits_t limits;

	(void)state;
	assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, 7, NULL, &limits, &ni), PTL_INIT_DUP);
	inspect(ni, "ni", 0, 0);
	assert_int_equal(number_in(text, "pid"), 7);
	assert_int_equal(number_in(text, "nid"), 1);
	assert_int_equal(
		number_in(strstr(text, "\"limits\""), "match_entries"), limits.max_match_entries);
	assert_int_equal(number_in(strstr(text, "\"in_use\""), "match_entries"), 0);
	put_to_self(ni, 4, 9);
	inspect(ni, "ni", 0, 0);
	assert_int_equal(number_in(strstr(text, "\"in_use\""), "match_entries"), 1);
	assert_int_equal(number_in(strstr(text, "\"in_use\""), "memory_descriptors"), 2);
	assert_int_equal(number_in(strstr(text, "\"in_use\""), "event_queues"), 1);
	assert_int_equal(number_in(strstr(text, "\"in_use\""), "portals"), 1);
	PtlFini();
}

static void postern_inspect__shows_each_object_as_it_was_made(void **state)
{
	ptl_handle_ni_t ni = open_default();

	(void)state;
	put_to_self(ni, 4, UINT64_C(0xfedcba9876543210));
	inspect(ni, "me", 0, 0);
	assert_int_equal(number_in(text, "total"), 1);
	assert_int_equal(number_in(text, "portal"), 4);
	assert_non_null(strstr(text, "\"match_bits\": \"0xfedcba9876543210\""));
	assert_non_null(strstr(text, "\"nid\": \"any\""));
	assert_null(strstr(text, "\"md\": null"));
	inspect(ni, "md", 0, 0);
	assert_int_equal(number_in(text, "total"), 2);
	assert_int_equal(times_in(text, "\"length\": 64"), 2);
	assert_int_equal(times_in(text, "\"threshold\": \"infinite\""), 1);
	assert_int_equal(times_in(text, "[\"put\", \"truncate\"]"), 1);
	inspect(ni, "eq", 0, 0);
	assert_int_equal(number_in(text, "size"), 16);
	assert_int_equal(number_in(text, "used"), 0);
	assert_int_equal(number_in(text, "logged"), 2);
	assert_int_equal(number_in(text, "dropped"), 0);
	inspect(ni, "pt", 0, 0);
	assert_int_equal(number_in(text, "portal"), 4);
	assert_int_equal(number_in(text, "entries"), 1);
	inspect(ni, "ac", 0, 0);
	assert_int_equal(number_in(text, "index"), 0);
	assert_non_null(strstr(text, "\"portal\": \"any\""));
	inspect(ni, "peers", 0, 0);
	assert_int_equal(number_in(text, "total"), 1);
	assert_non_null(strstr(text, "\"state\": \"self\""));
	PtlFini();
}

/* A page looks at as many entries as it may have items, and the next goes on behind them. */
static void postern_inspect__finds_access_control_entries_far_apart(void **state)
{
	ptl_ni_limits_t desired = {.max_match_entries = 1,
		.max_mem_descriptors = 1,
		.max_event_queues = 1,
		.max_atable_index = 1000,
		.max_ptable_index = 0};
	uint64_t first = 0, found[] = {UINT64_MAX, UINT64_MAX};
	unsigned pages = 0, items = 0;
	ptl_handle_ni_t ni;
	int count;

	(void)state;
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, 7, &desired, NULL, &ni), PTL_OK);
	assert_int_equal(PtlACEntry(ni, 1000, anyone, PTL_UID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
	for (; first != UINT64_MAX; first = number_in(text, "next")) {
		inspect(ni, "ac", (unsigned)first, 0);
		assert_int_equal(number_in(text, "total"), 1001);
		pages++;
		if (times_in(text, "\"index\"") == 0)
			continue;
		assert_int_equal(times_in(text, "\"index\""), 1);
		assert_in_range(items, 0, 1);
		found[items++] = number_in(text, "index");
	}
	assert_in_range(pages, 2, 1001);
	assert_int_equal(found[0], 0); /* which admits all of this user, from the beginning */
	assert_int_equal(found[1], 1000);
	PtlFini();
}

static void postern_inspect__counts_events_that_a_queue_lost(void **state)
{
	ptl_handle_ni_t ni = open_default();
	char from[8] = "", to[8] = "";
	ptl_md_t source = {.start = from, .length = sizeof(from), .threshold = PTL_MD_THRESH_INF};
	ptl_md_t target = {.start = to,
		.length = sizeof(to),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE};
	ptl_process_id_t self;
	ptl_handle_md_t md;
	ptl_sr_value_t drops;

	(void)state;
	assert_int_equal(PtlGetId(ni, &self), PTL_OK);
	assert_int_equal(PtlEQAlloc(ni, 1, &target.eventq), PTL_OK);
	assert_int_equal(
		PtlMDAttach(entry_attach(ni, 0, 0), target, PTL_RETAIN, PTL_RETAIN, NULL), PTL_OK);
	assert_int_equal(PtlMDBind(ni, source, &md), PTL_OK);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(PtlPut(md, PTL_NOACK_REQ, self, 0, 0, 0, 0, 0), PTL_OK);
	do {
		/* Inline, this call moves messages, and a look does not. */
		assert_int_equal(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops), PTL_OK);
		inspect(ni, "stats", 0, 0);
	} while (number_in(text, "events_lost") < 19);
	inspect(ni, "eq", 0, 0);
	assert_int_equal(number_in(text, "used"), 1);
	assert_int_equal(number_in(text, "logged"), 1);
	assert_int_equal(number_in(text, "dropped"), 19);
	PtlFini();
}

static void postern_inspect__gives_long_lists_in_pages(void **state)
{
	ptl_handle_ni_t ni = open_default();
	uint64_t first = 0;
	unsigned items = 0, pages = 0;

	(void)state;
	for (unsigned i = 0; i < ENTRIES; i++)
		entry_attach(ni, i % 2, i);
	do {
		inspect(ni, "me", (unsigned)first, 10);
		assert_int_equal(number_in(text, "first"), first);
		assert_in_range(times_in(text, "match_bits"), 0, 10);
		items += times_in(text, "match_bits");
		pages++;
		first = number_in(strrchr(text, ']'), "next"); /* not an item's */
	} while (first != UINT64_MAX);
	assert_int_equal(items, ENTRIES);
	assert_true(pages >= ENTRIES / 10);
	inspect(ni, "me", 0, 1000000);
	assert_in_range(times_in(text, "match_bits"), 1, 64);
	inspect(ni, "portals", 0, 0);
	assert_int_equal(number_in(text, "total"), 2);
	assert_int_equal(times_in(text, "\"entries\": 500"), 2);
	assert_int_equal(times_in(text, "\"indexed\": true"), 2);
	PtlFini();
}

/* Of the calls that make them, all but PtlEQAlloc() leave a part to the poll core. */
static void postern_inspect__lists_what_the_poll_core_has_not_heard_of(void **state)
{
	ptl_process_id_t other = {4711, 4712};
	ptl_handle_ni_t ni = open_default();
	ptl_md_t description = {.threshold = 4713};
	ptl_handle_me_t entry;
	ptl_handle_md_t md;

	(void)state;
	if (interface_of(&portals, ni)->inlined) {
		PtlFini();
		return;
	}
	interface_pause(interface_of(&portals, ni));
	entry = entry_attach(ni, 4, 4714);
	assert_int_equal(PtlMDAttach(entry, description, PTL_RETAIN, PTL_RETAIN, NULL), PTL_OK);
	assert_int_equal(PtlMDBind(ni, description, &md), PTL_OK);
	inspect(ni, "md", 0, 0);
	assert_int_equal(times_in(text, "\"threshold\": 4713"), 2);
	interface_pause(interface_of(&portals, ni));
	entry_attach(ni, 4, 4715);
	inspect(ni, "me", 0, 0);
	assert_int_equal(times_in(text, "match_bits"), 2);
	interface_pause(interface_of(&portals, ni));
	entry_attach(ni, 4, 4716);
	inspect(ni, "pt", 0, 0);
	assert_int_equal(number_in(text, "entries"), 3);
	interface_pause(interface_of(&portals, ni));
	assert_int_equal(PtlACEntry(ni, 3, other, PTL_UID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
	inspect(ni, "ac", 0, 0);
	assert_int_equal(times_in(text, "\"nid\": 4711"), 1);
	PtlFini();
}

static void postern_inspect__tells_the_topics_of_one_interface_apart(void **state)
{
	ptl_handle_ni_t one, other;
	int count;

	(void)state;
	setenv("PTL_IFACE_NAME", "loop:here;loop:there", 1);
	assert_int_equal(PtlInit(&count), PTL_OK);
	assert_int_equal(PtlNIInit(0, 7, NULL, NULL, &one), PTL_OK);
	assert_int_equal(PtlNIInit(1, 8, NULL, NULL, &other), PTL_OK);
	inspect(one, "port", 0, 0);
	assert_non_null(strstr(text, "loop:here"));
	assert_non_null(strstr(text, "\"driver\": \"loop\""));
	inspect(other, "port", 0, 0);
	assert_non_null(strstr(text, "loop:there"));
	inspect(other, "ni", 0, 0);
	assert_int_equal(number_in(text, "pid"), 8);
	assert_int_equal(number_in(text, "interface"), 1);
	PtlFini();
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
}

static _Atomic bool enough;

static void *look_around(void *handle)
{
	static char own[TEXT_BYTES];
	const ptl_handle_ni_t *ni = handle;

	while (!atomic_load(&enough))
		for (unsigned i = 0; i < portals.topic_count; i++)
			if (postern_inspect(*ni, portals.topics[i].name, 0, 0, own, sizeof(own)) <
				0)
				return own;
	return NULL;
}

/* Means most under a race detector. */
static void postern_inspect__may_be_called_while_others_come_and_go(void **state)
{
	ptl_handle_ni_t ni = open_default();
	pthread_t thread;
	void *failed;

	(void)state;
	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, look_around, &ni), 0);
	for (unsigned i = 0; i < 200; i++) {
		ptl_handle_me_t entry = entry_attach(ni, 9, i);

		put_to_self(ni, 4, i);
		assert_int_equal(PtlMEUnlink(entry), PTL_OK);
	}
	atomic_store(&enough, true);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	PtlFini();
}

static int use_inline(void **state)
{
	(void)state;
	return setenv("PTL_PROGRESS", "inline", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(postern_inspect__says_what_is_wrong_with_its_arguments),
		cmocka_unit_test(postern_inspect__tells_of_every_topic_and_how_long_it_would_be),
		cmocka_unit_test(postern_inspect__knows_ids_limits_and_what_is_in_use),
		cmocka_unit_test(postern_inspect__shows_each_object_as_it_was_made),
		cmocka_unit_test(postern_inspect__finds_access_control_entries_far_apart),
		cmocka_unit_test(postern_inspect__counts_events_that_a_queue_lost),
		cmocka_unit_test(postern_inspect__gives_long_lists_in_pages),
		cmocka_unit_test(postern_inspect__lists_what_the_poll_core_has_not_heard_of),
		cmocka_unit_test(postern_inspect__tells_the_topics_of_one_interface_apart),
		cmocka_unit_test(postern_inspect__may_be_called_while_others_come_and_go),
	};
	int failed;

	/* The developer's own settings must not decide the result. */
	setenv("PTL_IFACE_NAME", "loop:alone", 1);
	unsetenv("PTL_NID");
	unsetenv("PTL_PROGRESS");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return failed + cmocka_run_group_tests(tests, use_inline, NULL);
}
