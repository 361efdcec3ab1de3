/* SPDX-License-Identifier: BSD-3-Clause */
/* test_report.c - tests lib/base/report.c: JSON text, and what of it finds room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <base/report.h>

#define ROOM 512

static void fill(struct report *report)
{
	report_object(report, NULL);
	report_number(report, "most", UINT64_MAX);
	report_bits(report, "bits", UINT64_C(0x8000000000000001));
	report_flag(report, "yes", true);
	report_flag(report, "no", false);
	report_nothing(report, "none");
	report_array(report, "list");
	report_close(report);
	report_array(report, "lists");
	report_array(report, NULL);
	report_number(report, NULL, 1);
	report_number(report, NULL, 2);
	report_close(report);
	report_object(report, NULL);
	report_format(report, "text", "%s-%d", "a", 1);
	report_close(report);
	report_close(report);
	report_number(report, "last", 0);
	report_close(report);
}

static const char filled[] =
	"{\"most\": 18446744073709551615, \"bits\": \"0x8000000000000001\", \"yes\": true, "
	"\"no\": false, \"none\": null, \"list\": [], \"lists\": [[1, 2], {\"text\": \"a-1\"}], "
	"\"last\": 0}";

static void report_json__writes_values_in_objects_and_arrays(void **state)
{
	struct report_json json;
	char text[ROOM];

	(void)state;
	report_json_init(&json, text, sizeof(text));
	fill(&json.report);
	assert_int_equal(report_json_end(&json), strlen(filled));
	assert_string_equal(text, filled);
}

static void report_json__counts_what_finds_no_room_and_writes_nothing_beyond(void **state)
{
	struct report_json json;
	char text[ROOM];

	(void)state;
	for (size_t size = 0; size <= sizeof(filled) + 1; size++) {
		memset(text, '#', sizeof(text));
		report_json_init(&json, size == 0 ? NULL : text, size);
		fill(&json.report);
		assert_int_equal(report_json_end(&json), strlen(filled));
		if (size > 0) {
			size_t length = size - 1 < strlen(filled) ? size - 1 : strlen(filled);

			assert_memory_equal(text, filled, length);
			assert_int_equal(text[length], '\0');
		}
		assert_int_equal(text[size > sizeof(filled) ? sizeof(filled) : size], '#');
	}
}

static void report_json__escapes_what_json_does_not_take(void **state)
{
	struct report_json json;
	char text[ROOM];

	(void)state;
	report_json_init(&json, text, sizeof(text));
	report_object(&json.report, NULL);
	report_text(&json.report, "a\"b", "quote \" backslash \\ line\n\x01 end \xc3\xbc");
	report_close(&json.report);
	report_json_end(&json);
	assert_string_equal(text, "{\"a\\u0022b\": \"quote \\u0022 backslash \\u005c line\\u000a"
				  "\\u0001 end \xc3\xbc\"}");
}

/* What stands between the quotes of a text in JSON. */
static void text_is(const char *given, const char *written)
{
	struct report_json json;
	char text[ROOM], wanted[ROOM];

	report_json_init(&json, text, sizeof(text));
	report_text(&json.report, NULL, given);
	report_json_end(&json);
	snprintf(wanted, sizeof(wanted), "\"%s\"", written);
	assert_string_equal(text, wanted);
}

static void report_text__writes_utf8_only(void **state)
{
	(void)state;
	text_is("\xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf",
		"\xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf");
	text_is("a\xff"
		"b\x80",
		"a?b?");
	text_is("\xc3", "?"); /* cut off */
	text_is("\xe2\x82", "??");
	text_is("\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "?? ??? ????"); /* too long */
	text_is("\xed\xa0\x80 \xf4\x90\x80\x80 \xf5\x80", "??? ???? ??");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_json__writes_values_in_objects_and_arrays),
		cmocka_unit_test(report_json__counts_what_finds_no_room_and_writes_nothing_beyond),
		cmocka_unit_test(report_json__escapes_what_json_does_not_take),
		cmocka_unit_test(report_text__writes_utf8_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
