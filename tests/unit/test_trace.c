/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trace.c - base/trace.c: records by thread, what a full track keeps, and the file.
 *
 * Covers: lib/base/trace.c, lib/base/epoch.c.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include <base/trace.h>

#define TRACKS  2
#define RECORDS 64
/* Of the first thread; no JSON as it is. */
#define ODD_NAME "a \"b\\c\n"

static void trace__does_nothing_before_it_starts(void **state)
{
	uint64_t made, kept;

	(void)state;
	trace(TRACE_COMMAND, 0, 1, 8);
	trace_count(&made, &kept);
	assert_int_equal(made, 0);
}

static void *thread_record(void *count)
{
	for (unsigned i = 0; i < *(unsigned *)count; i++) {
		trace(TRACE_MATCH, 1, trace_message(1, 2, i), 8);
		trace(TRACE_EVENT, 1, trace_message(1, 2, i), 8);
	}
	return NULL;
}

static void thread_do(unsigned count)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_record, &count), 0);
	pthread_join(thread, NULL);
}

static void trace__keeps_the_latest_records_of_each_thread(void **state)
{
	uint64_t made, kept;

	(void)state;
	assert_int_equal(pthread_setname_np(pthread_self(), ODD_NAME), 0);
	assert_int_equal(trace_start(TRACKS, RECORDS), 0);
	assert_int_equal(trace_start(TRACKS, RECORDS), -1);
	for (unsigned i = 0; i < 20; i++)
		trace(TRACE_COMMAND, 0, trace_message(1, 2, i), 8);
	thread_do(50);
	thread_do(5); /* there is no track left for it */
	trace_stop();
	trace(TRACE_COMMAND, 0, 1, 8);
	trace_count(&made, &kept);
	assert_int_equal(made, 20 + 100);
	assert_int_equal(kept, 20 + RECORDS);
}

static unsigned count_kind(const json_t *events, const char *kind)
{
	unsigned count = 0;
	size_t i;
	json_t *event;

	json_array_foreach((json_t *)(uintptr_t)events, i, event) count +=
		strcmp(json_string_value(json_object_get(event, "ph")), kind) == 0;
	return count;
}

static void trace_write__writes_json_with_rows_bars_and_arrows(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	json_t *trace, *events, *event;
	double last = 0;
	size_t i;

	(void)state;
	assert_true(trace_write(file));
	fclose(file);
	trace = json_loads(text, 0, NULL);
	assert_non_null(trace);
	events = json_object_get(trace, "traceEvents");
	assert_int_equal(count_kind(events, "X"), 20 + RECORDS);
	/* Of 50 messages 32 are left, each with its match and its event; the 20 commands are of
	 * older ones, but for 18 and 19. */
	assert_int_equal(count_kind(events, "b"), 32);
	assert_int_equal(count_kind(events, "n"), 2);
	assert_int_equal(count_kind(events, "e"), 32);
	assert_int_equal(count_kind(events, "s"), 32);
	assert_int_equal(count_kind(events, "f"), 32);
	json_array_foreach(events, i, event)
	{
		double at = json_number_value(json_object_get(event, "ts"));
		const char *kind = json_string_value(json_object_get(event, "ph"));

		if (strcmp(kind, "X") != 0 ||
			json_integer_value(json_object_get(event, "tid")) != 1)
			continue;
		assert_true(at >= last);
		last = at + json_number_value(json_object_get(event, "dur")) - 0.002;
	}
	json_decref(trace);
	free(text);
}

static void trace_write__keeps_threads_names_from_spoiling_the_file(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	json_t *trace, *event, *name = NULL;
	size_t i;

	(void)state;
	assert_true(trace_write(file));
	fclose(file);
	trace = json_loads(text, 0, NULL);
	assert_non_null(trace);
	json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "name")), "thread_name") == 0 &&
			json_integer_value(json_object_get(event, "tid")) == 1)
			name = json_object_get(json_object_get(event, "args"), "name");
	}
	assert_string_equal(json_string_value(name), ODD_NAME " 1");
	json_decref(trace);
	free(text);
}

static void trace_write__says_when_the_file_is_full(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_false(trace_write(full));
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace__does_nothing_before_it_starts),
		cmocka_unit_test(trace__keeps_the_latest_records_of_each_thread),
		cmocka_unit_test(trace_write__writes_json_with_rows_bars_and_arrows),
		cmocka_unit_test(trace_write__keeps_threads_names_from_spoiling_the_file),
		cmocka_unit_test(trace_write__says_when_the_file_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
