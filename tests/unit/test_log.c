/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - what reaches standard error, seen through a pipe. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <base/log.h>

#define LINE_MAX_BYTES 1024

static int standard_error;
static int pipe_read;

/* From here to capture_end(), standard error is a pipe. */
static void capture_begin(void)
{
	int ends[2];

	standard_error = dup(STDERR_FILENO);
	assert_true(standard_error >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	pipe_read = ends[0];
}

static const char *capture_end(void)
{
	static char text[16384];
	size_t length = 0;
	ssize_t bytes;

	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	while ((bytes = read(pipe_read, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)bytes;
	close(pipe_read);
	text[length] = '\0';
	return text;
}

static int reset(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_WARNING);
	log_clear_error();
	return 0;
}

static void log_error__writes_one_line(void **state)
{
	(void)state;
	capture_begin();
	log_error("%s is %d", "port", 7);
	assert_string_equal(capture_end(), "postern: port is 7\n");
}

static void log_error__keeps_its_text_for_the_thread(void **state)
{
	(void)state;
	assert_string_equal(log_last_error(), "");
	capture_begin();
	log_error("first");
	log_error("second %s", "time");
	log_warning("no error");
	capture_end();
	assert_string_equal(log_last_error(), "second time");
	log_clear_error();
	assert_string_equal(log_last_error(), "");
}

static void log_error__may_quote_the_last_error(void **state)
{
	(void)state;
	capture_begin();
	log_error("inner");
	log_error("outer: %s", log_last_error());
	capture_end();
	assert_string_equal(log_last_error(), "outer: inner");
}

static void *other_thread(void *argument)
{
	(void)argument;
	log_error("other");
	return strcmp(log_last_error(), "other") == 0 ? argument : NULL;
}

static void log_last_error__is_each_threads_own(void **state)
{
	pthread_t thread;
	void *result = NULL;
	int mark = 0;

	(void)state;
	capture_begin();
	log_error("mine");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &mark), 0);
	pthread_join(thread, &result);
	capture_end();
	assert_ptr_equal(result, &mark);
	assert_string_equal(log_last_error(), "mine");
}

static void log_level__says_what_is_written(void **state)
{
	(void)state;
	for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
		static const char *const texts[] = {"postern: e\n", "postern: e\npostern: w\n",
			"postern: e\npostern: w\npostern: i\n",
			"postern: e\npostern: w\npostern: i\npostern: d\n"};

		log_set_level((enum log_level)level);
		capture_begin();
		log_error("e");
		log_warning("w");
		log_info("i");
		log_debug(LOG_PORT, "d");
		assert_string_equal(capture_end(), texts[level]);
	}
}

static void log_debug__is_shown_for_modules_that_are_asked_for(void **state)
{
	(void)state;
	assert_int_equal(log_module_find("port"), 1u << LOG_PORT);
	assert_int_equal(log_module_find("ports"), 0);
	assert_int_equal(log_module_find(""), 0);
	assert_int_equal(log_module_find("all"), UINT32_MAX);
	log_set_modules(log_module_find("port") | log_module_find("dpdk"));
	capture_begin();
	log_debug(LOG_DPDK, "d");
	log_debug(LOG_TRANSPORT, "t");
	log_debug(LOG_PORT, "p");
	log_info("i");
	assert_string_equal(capture_end(), "postern: d\npostern: p\n");
	log_set_modules(0);
}

static void log_error__cuts_what_is_too_long_and_ends_the_line(void **state)
{
	char text[4 * LINE_MAX_BYTES];
	const char *line;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture_begin();
	log_error("%s", text);
	line = capture_end();
	assert_int_equal(strlen(line), LINE_MAX_BYTES - 1);
	assert_int_equal(line[strlen(line) - 1], '\n');
}

static void log_error__lets_no_control_characters_through(void **state)
{
	(void)state;
	capture_begin();
	log_error("a\nb\033[31m\tc\x7f");
	assert_string_equal(capture_end(), "postern: a?b?[31m?c?\n");
}

static void log_warning__leaves_errno_alone(void **state)
{
	(void)state;
	capture_begin();
	close(STDERR_FILENO); /* so that the write fails with an errno of its own */
	errno = ENODEV;
	log_warning("lost");
	assert_int_equal(errno, ENODEV);
	log_error("lost");
	assert_int_equal(errno, ENODEV);
	assert_string_equal(capture_end(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(log_error__writes_one_line, reset),
		cmocka_unit_test_setup(log_error__keeps_its_text_for_the_thread, reset),
		cmocka_unit_test_setup(log_error__may_quote_the_last_error, reset),
		cmocka_unit_test_setup(log_last_error__is_each_threads_own, reset),
		cmocka_unit_test_setup(log_level__says_what_is_written, reset),
		cmocka_unit_test_setup(log_debug__is_shown_for_modules_that_are_asked_for, reset),
		cmocka_unit_test_setup(log_error__cuts_what_is_too_long_and_ends_the_line, reset),
		cmocka_unit_test_setup(log_error__lets_no_control_characters_through, reset),
		cmocka_unit_test_setup(log_warning__leaves_errno_alone, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
