/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pmi.c - tests lib/base/pmi.c: lines in pieces, lines that are too long, and words that are
 * not what they should be.
 *
 * Covers: lib/base/number.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <base/pmi.h>
#include <base/random.h>

#define ROUNDS 20000

static int ends[2];
static struct pmi_lines lines;

static int ends_make(void **state)
{
	(void)state;
	memset(&lines, 0, sizeof(lines));
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
}

static int ends_close(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void say(const char *bytes, size_t count)
{
	assert_int_equal(write(ends[1], bytes, count), count);
}

static void pmi_line__gives_lines_as_they_become_complete(void **state)
{
	(void)state;
	say("cmd=a\ncmd=b x=1\ncm", 18);
	assert_true(pmi_read(&lines, ends[0]));
	assert_string_equal(pmi_line(&lines), "cmd=a");
	assert_string_equal(pmi_line(&lines), "cmd=b x=1");
	assert_null(pmi_line(&lines));
	assert_true(pmi_read(&lines, ends[0])); /* nothing has come */
	assert_null(pmi_line(&lines));
	say("d=c\n\n", 5);
	assert_true(pmi_read(&lines, ends[0]));
	assert_string_equal(pmi_line(&lines), "cmd=c");
	assert_string_equal(pmi_line(&lines), "");
	assert_null(pmi_line(&lines));
}

static void pmi_read__fails_at_the_end_and_at_a_line_that_is_too_long(void **state)
{
	char bytes[PMI_LINE];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	say(bytes, sizeof(bytes));
	assert_true(pmi_read(&lines, ends[0]));
	assert_null(pmi_line(&lines));
	say("\n", 1);
	assert_false(pmi_read(&lines, ends[0]));
	assert_null(pmi_line(&lines));
	memset(&lines, 0, sizeof(lines));
	assert_true(pmi_read(&lines, ends[0]));
	assert_string_equal(pmi_line(&lines), "");
	shutdown(ends[1], SHUT_WR);
	assert_false(pmi_read(&lines, ends[0]));
}

static void pmi_read__takes_a_line_that_just_fits(void **state)
{
	char bytes[PMI_LINE];
	const char *line;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	bytes[sizeof(bytes) - 1] = '\n';
	say(bytes, sizeof(bytes));
	assert_true(pmi_read(&lines, ends[0]));
	line = pmi_line(&lines);
	assert_non_null(line);
	assert_int_equal(strlen(line), sizeof(bytes) - 1);
	say("cmd=a\n", 6);
	assert_true(pmi_read(&lines, ends[0]));
	assert_string_equal(pmi_line(&lines), "cmd=a");
}

static void pmi_word__finds_whole_keys_and_values_that_fit(void **state)
{
	static const char line[] = "cmd=put  akey=1 key=four\tempty= key=later";
	char value[5] = "same";

	(void)state;
	assert_true(pmi_word(line, "cmd", value, sizeof(value)));
	assert_string_equal(value, "put");
	assert_true(pmi_word(line, "key", value, sizeof(value)));
	assert_string_equal(value, "four");
	assert_true(pmi_word(line, "empty", value, sizeof(value)));
	assert_string_equal(value, "");
	memcpy(value, "same", sizeof(value));
	assert_false(pmi_word(line, "key", value, 4));
	assert_false(pmi_word(line, "ke", value, sizeof(value)));
	assert_false(pmi_word(line, "put", value, sizeof(value)));
	assert_false(pmi_word(line, "four", value, sizeof(value)));
	assert_false(pmi_word("", "cmd", value, sizeof(value)));
	assert_false(pmi_word("cmd", "cmd", value, sizeof(value)));
	assert_string_equal(value, "same");
}

static void pmi_number__takes_32_bits_in_digits_and_nothing_else(void **state)
{
	static const char *const wrong[] = {
		"n=", "n=-1", "n=+1", "n=0x1", "n=1.", "n=4294967296", "n=99999999999", "m=1", ""};
	uint32_t number = 7;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(pmi_number(wrong[i], "n", &number));
	assert_int_equal(number, 7);
	assert_true(pmi_number("cmd=x n=4294967295 m=1", "n", &number));
	assert_int_equal(number, UINT32_MAX);
	assert_true(pmi_number("n=0", "n", &number));
	assert_int_equal(number, 0);
}

static void pmi_write__refuses_what_has_no_room(void **state)
{
	static char bytes[PMI_LINE];

	(void)state;
	assert_true(pmi_write(ends[1], "cmd=%s\n", "a"));
	assert_true(pmi_read(&lines, ends[0]));
	assert_string_equal(pmi_line(&lines), "cmd=a");
	memset(bytes, 'x', sizeof(bytes) - 1);
	assert_false(pmi_write(ends[1], "%s\n", bytes));
	while (pmi_write(ends[1], "%.1000s\n", bytes)) {
	}
	close(ends[0]);
	assert_false(pmi_write(ends[1], "cmd=b\n"));
	ends[0] = dup(ends[1]);
}

/* Bytes of the alphabet of the protocol, and others. */
static void any_bytes__are_read_without_harm(void **state)
{
	static const char alphabet[] = "cmd=key value=\n\n \t01\0\xff";
	uint64_t random = 7;
	char value[16];
	uint32_t number;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		char bytes[200];
		size_t count = 1 + random_next(&random) % sizeof(bytes);
		const char *line;

		for (size_t i = 0; i < count; i++)
			bytes[i] = alphabet[random_next(&random) % sizeof(alphabet)];
		say(bytes, count);
		if (!pmi_read(&lines, ends[0]))
			memset(&lines, 0, sizeof(lines));
		while ((line = pmi_line(&lines))) {
			if (pmi_word(line, "cmd", value, sizeof(value)))
				assert_true(strlen(value) < sizeof(value));
			(void)pmi_number(line, "value", &number);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ends_make, ends_close)
		TEST(pmi_line__gives_lines_as_they_become_complete),
		TEST(pmi_read__fails_at_the_end_and_at_a_line_that_is_too_long),
		TEST(pmi_read__takes_a_line_that_just_fits),
		TEST(pmi_word__finds_whole_keys_and_values_that_fit),
		TEST(pmi_number__takes_32_bits_in_digits_and_nothing_else),
		TEST(pmi_write__refuses_what_has_no_room),
		TEST(any_bytes__are_read_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
