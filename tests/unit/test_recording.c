/* SPDX-License-Identifier: BSD-3-Clause */
/* test_recording.c - tests of lib/host/recording.c: captures that begin and end while an interface
 * is at work. What is in the file is tests/unit/test_capture.c's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <portals.h>
#include <postern.h>

static char directory[] = "/tmp/ptn-recording-XXXXXX";
static char path[128];
static ptl_handle_ni_t nodes[2];

static uint64_t stat_value(ptl_handle_ni_t node, const char *name)
{
	struct postern_stat stats[256];
	unsigned count = postern_stats(node, stats, 256);

	for (unsigned n = 0; n < count; n++)
		if (strcmp(stats[n].name, name) == 0)
			return stats[n].value;
	fail_msg("there is no counter %s", name);
	return 0;
}

static off_t file_size(void)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

/* A put from one node to the other, until it has arrived. */
static void put(void)
{
	static char word[8] = "a word";
	ptl_md_t md = {.start = word, .length = sizeof(word), .threshold = 1};
	ptl_process_id_t target;
	ptl_handle_md_t handle;
	ptl_event_t event;

	assert_int_equal(PtlEQAlloc(nodes[0], 8, &md.eventq), PTL_OK);
	assert_int_equal(PtlGetId(nodes[1], &target), PTL_OK);
	assert_int_equal(PtlMDBind(nodes[0], md, &handle), PTL_OK);
	assert_int_equal(PtlPut(handle, PTL_NOACK_REQ, target, 4, 0, 7, 0, 0), PTL_OK);
	do
		assert_int_equal(PtlEQWait(md.eventq, &event), PTL_OK);
	while (event.type != PTL_EVENT_SEND_END);
	assert_int_equal(PtlEQFree(md.eventq), PTL_OK);
}

static void postern_capture_start__captures_until_it_is_stopped(void **state)
{
	off_t size;

	(void)state;
	put();
	assert_int_equal(postern_capture_start(nodes[0], path, 0), PTL_OK);
	put();
	assert_true(stat_value(nodes[0], "port_captured") >= 2);
	assert_int_equal(stat_value(nodes[1], "port_captured"), 0);
	assert_int_equal(postern_capture_stop(nodes[0]), PTL_OK);
	assert_int_equal(stat_value(nodes[0], "port_captured"), 0);
	size = file_size();
	assert_true(size > 2 * 64);
	put();
	assert_int_equal(file_size(), size);
}

static void postern_capture_start__refuses_what_cannot_be(void **state)
{
	(void)state;
	assert_int_equal(postern_capture_start(PTL_INVALID_HANDLE, path, 0), PTL_INV_NI);
	assert_int_equal(postern_capture_start(nodes[0], NULL, 0), PTL_SEGV);
	assert_int_equal(postern_capture_start(nodes[0], "/nowhere/at/all", 0), PTL_FAIL);
	assert_non_null(strstr(postern_last_error(), "/nowhere/at/all"));
	assert_int_equal(postern_capture_start(nodes[0], path, 0), PTL_OK);
	assert_int_equal(postern_capture_start(nodes[0], path, 0), PTL_FAIL);
	assert_non_null(strstr(postern_last_error(), "stop that first"));
	assert_int_equal(postern_capture_stop(nodes[0]), PTL_OK);
	assert_int_equal(postern_capture_stop(nodes[0]), PTL_OK); /* there is none */
	assert_int_equal(postern_capture_stop(PTL_INVALID_HANDLE), PTL_INV_NI);
}

static void postern_capture_start__can_follow_a_capture_that_failed(void **state)
{
	uint64_t captured;

	(void)state;
	assert_int_equal(postern_capture_start(nodes[0], "/dev/full", 0), PTL_OK);
	/* It fails at its first write, which this waits for. */
	do {
		captured = stat_value(nodes[0], "port_captured");
		put();
	} while (stat_value(nodes[0], "port_captured") != captured);
	assert_int_equal(postern_capture_start(nodes[0], path, 64), PTL_OK);
	put();
	assert_int_equal(postern_capture_stop(nodes[0]), PTL_OK);
	assert_true(file_size() > 64);
}

/* Of both interfaces into one file, again and again, with messages under way. */
static void postern_capture_start__disturbs_nobody(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 50; n++) {
		assert_int_equal(postern_capture_start(nodes[0], path, 0), PTL_OK);
		assert_int_equal(postern_capture_start(nodes[1], path, 0), PTL_OK);
		put();
		assert_int_equal(postern_capture_stop(nodes[n % 2]), PTL_OK);
		put();
		assert_int_equal(postern_capture_stop(nodes[1 - n % 2]), PTL_OK);
	}
}

static int recording_setup(void **state)
{
	static char inbox[64];
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = inbox,
		.length = sizeof(inbox),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE,
		.eventq = PTL_EQ_NONE};
	ptl_handle_me_t entry;
	int interfaces;

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	setenv("PTL_IFACE_NAME", "loop:recording;loop:recording", 1);
	if (PtlInit(&interfaces) != PTL_OK)
		return -1;
	for (unsigned n = 0; n < 2; n++)
		if (PtlNIInit(n, 5, NULL, NULL, &nodes[n]) != PTL_OK)
			return -1;
	if (PtlMEAttach(nodes[1], 4, anybody, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &entry) != PTL_OK)
		return -1;
	return PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL) == PTL_OK ? 0 : -1;
}

static int recording_teardown(void **state)
{
	(void)state;
	PtlNIFini(nodes[0]);
	PtlNIFini(nodes[1]);
	PtlFini();
	unlink(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(postern_capture_start__captures_until_it_is_stopped),
		cmocka_unit_test(postern_capture_start__refuses_what_cannot_be),
		cmocka_unit_test(postern_capture_start__can_follow_a_capture_that_failed),
		cmocka_unit_test(postern_capture_start__disturbs_nobody),
	};

	return cmocka_run_group_tests(tests, recording_setup, recording_teardown);
}
