/* SPDX-License-Identifier: BSD-3-Clause */
/* test_name.c - PtlToStr and PtlEvToStr, the names of codes and events.
 *
 * Covers: lib/p4/name.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <portals4.h>

static void codes__have_the_names_of_the_header(void **state)
{
	(void)state;
	assert_string_equal(PtlToStr(PTL_OK, PTL_STR_ERROR), "PTL_OK");
	assert_string_equal(PtlToStr(PTL_ARG_INVALID, PTL_STR_ERROR), "PTL_ARG_INVALID");
	assert_string_equal(PtlToStr(PTL_INTERRUPTED, PTL_STR_ERROR), "PTL_INTERRUPTED");
	assert_string_equal(PtlToStr(PTL_EVENT_GET, PTL_STR_EVENT), "PTL_EVENT_GET");
	assert_string_equal(PtlToStr(PTL_EVENT_SEARCH, PTL_STR_EVENT), "PTL_EVENT_SEARCH");
	assert_string_equal(PtlToStr(PTL_NI_OK, PTL_STR_FAIL_TYPE), "PTL_NI_OK");
	assert_string_equal(PtlToStr(PTL_NI_SEGV, PTL_STR_FAIL_TYPE), "PTL_NI_SEGV");
}

/* No number in the range of its kind is without a name, and no two have the same. */
static void names__are_complete_and_distinct(void **state)
{
	static const struct {
		ptl_str_type_t type;
		int last;
	} kinds[] = {{PTL_STR_ERROR, PTL_INTERRUPTED}, {PTL_STR_EVENT, PTL_EVENT_SEARCH},
		{PTL_STR_FAIL_TYPE, PTL_NI_SEGV}};

	(void)state;
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (int number = 0; number <= kinds[k].last; number++) {
			assert_string_not_equal(PtlToStr(number, kinds[k].type), "Unknown");
			for (int other = 0; other < number; other++)
				assert_string_not_equal(PtlToStr(number, kinds[k].type),
					PtlToStr(other, kinds[k].type));
		}
}

static void numbers_of_nothing__are_unknown(void **state)
{
	static const int numbers[] = {-1, 17, 255, 256, 1 << 20, INT32_MIN, INT32_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_string_equal(PtlToStr(numbers[i], PTL_STR_ERROR), "Unknown");
		assert_string_equal(PtlToStr(numbers[i], PTL_STR_EVENT), "Unknown");
		assert_string_equal(PtlToStr(numbers[i], PTL_STR_FAIL_TYPE), "Unknown");
	}
	assert_string_equal(PtlToStr(16, PTL_STR_EVENT), "Unknown");
	assert_string_equal(PtlToStr(8, PTL_STR_FAIL_TYPE), "Unknown");
	assert_string_equal(PtlToStr(0, (ptl_str_type_t)3), "Unknown");
}

static void events__are_one_line_with_the_fields_of_their_type(void **state)
{
	ptl_event_t event = {.type = PTL_EVENT_PUT,
		.ni_fail_type = PTL_NI_OK,
		.pt_index = 4,
		.uid = 7,
		.match_bits = 0xab,
		.hdr_data = 0xcd,
		.rlength = 100,
		.mlength = 64,
		.remote_offset = 32,
		.initiator = {.phys = {.nid = 1, .pid = 1234}}};
	char text[PTL_EV_STR_SIZE];
	int length = PtlEvToStr(PTL_NI_PHYSICAL, &event, text);

	(void)state;
	assert_int_equal(length, strlen(text));
	assert_ptr_equal(strstr(text, "PTL_EVENT_PUT PTL_NI_OK pt=4 from=1:1234 uid=7 bits=ab "
				      "hdr=cd rlen=100 mlen=64 off=32 start="),
		text);
	PtlEvToStr(PTL_NI_LOGICAL, &event, text);
	assert_non_null(strstr(text, " from=1 "));
	event.type = PTL_EVENT_ACK;
	PtlEvToStr(0, &event, text);
	assert_string_equal(text, "PTL_EVENT_ACK PTL_NI_OK mlen=64 off=32");
	event.type = PTL_EVENT_SEND;
	event.ni_fail_type = PTL_NI_UNDELIVERABLE;
	PtlEvToStr(0, &event, text);
	assert_string_equal(text, "PTL_EVENT_SEND PTL_NI_UNDELIVERABLE");
	event.type = PTL_EVENT_LINK;
	PtlEvToStr(0, &event, text);
	assert_string_equal(text, "PTL_EVENT_LINK PTL_NI_UNDELIVERABLE pt=4");
	event.type = 99;
	PtlEvToStr(0, &event, text);
	assert_string_equal(text, "Unknown PTL_NI_UNDELIVERABLE");
}

/* Every type with the largest number in every field has room. */
static void the_longest_line__is_whole(void **state)
{
	ptl_event_t event;
	char text[PTL_EV_STR_SIZE + 1];

	(void)state;
	memset(&event, 0xff, sizeof(event));
	for (unsigned type = 0; type < 256; type++)
		for (unsigned fail = 0; fail < 256; fail++) {
			event.type = (ptl_event_kind_t)type;
			event.ni_fail_type = (ptl_ni_fail_t)fail;
			text[PTL_EV_STR_SIZE] = '#';
			assert_in_range(
				PtlEvToStr(PTL_NI_PHYSICAL, &event, text), 1, PTL_EV_STR_SIZE - 1);
			assert_int_equal(text[PTL_EV_STR_SIZE], '#');
		}
}

static void pointers_that_are_missing__give_0(void **state)
{
	ptl_event_t event = {0};
	char text[PTL_EV_STR_SIZE] = "x";

	(void)state;
	assert_int_equal(PtlEvToStr(0, NULL, text), 0);
	assert_string_equal(text, "x");
	assert_int_equal(PtlEvToStr(0, &event, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes__have_the_names_of_the_header),
		cmocka_unit_test(names__are_complete_and_distinct),
		cmocka_unit_test(numbers_of_nothing__are_unknown),
		cmocka_unit_test(events__are_one_line_with_the_fields_of_their_type),
		cmocka_unit_test(the_longest_line__is_whole),
		cmocka_unit_test(pointers_that_are_missing__give_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
