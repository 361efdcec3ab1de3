/* SPDX-License-Identifier: BSD-3-Clause */
/* test_get.c - PtlGet (3.11): data, lengths, offsets, what the target refuses. */
#include "../nap.h"
#include "fixture.h"

#define LARGEST (8u << 20)
#define GUARD   64 /* bytes after the initiator's memory that must stay as they are */

static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 128, 255, 1000, 1024, 1400, 1440,
	1441, 1460, 1461, 1472, 1473, 1499, 1500, 1501, 1514, 2048, 4095, 4096, 4097, 8960, 9000,
	9001, 32767, 65407, 65408, 65535, 65536, 65537, 262145, 1048575, 1048577, LARGEST - 1,
	LARGEST};

static void get_of_every_length(struct node *from, struct node *to)
{
	unsigned char *data = malloc(LARGEST), *place = malloc(LARGEST + GUARD);

	assert_true(data != NULL && place != NULL);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct end target = target_make(from, data, lengths[i], PTL_MD_OP_GET);
		struct end source = source_make(to, place, lengths[i]);

		pattern_fill(data, lengths[i], (unsigned)i);
		memset(place, 0x5a, lengths[i] + GUARD);
		get_from(source.md, from, 0);
		expect_lengths(
			expect_pair(source.eq, PTL_EVENT_REPLY_START), lengths[i], lengths[i]);
		assert_true(pattern_is(place, lengths[i], (unsigned)i));
		assert_true(bytes_are(place + lengths[i], GUARD, 0x5a));
		expect_lengths(expect_pair(target.eq, PTL_EVENT_GET_START), lengths[i], lengths[i]);
		ends_free(&target, &source);
	}
	free(data);
	free(place);
}

static void ptl_get__moves_every_byte_of_any_length_between_interfaces(void **state)
{
	(void)state;
	get_of_every_length(&there, &here);
}

static void ptl_get__moves_every_byte_of_any_length_in_the_other_direction(void **state)
{
	(void)state;
	get_of_every_length(&here, &there);
}

static void ptl_get__moves_every_byte_of_any_length_from_oneself(void **state)
{
	(void)state;
	get_of_every_length(&here, &here);
}

static void ptl_get__truncated_by_the_target_changes_the_first_bytes_alone(void **state)
{
	unsigned char *data = malloc(LARGEST), *place = malloc(LARGEST);

	(void)state;
	assert_true(data != NULL && place != NULL);
	pattern_fill(data, LARGEST, 3);
	for (size_t i = 0; i < COUNT(lengths); i += 2) {
		struct end target =
			target_make(&there, data, lengths[i], PTL_MD_OP_GET | PTL_MD_TRUNCATE);
		struct end source = source_make(&here, place, LARGEST);

		memset(place, 0x5a, LARGEST);
		get_from(source.md, &there, 0);
		expect_lengths(expect_pair(source.eq, PTL_EVENT_REPLY_START), LARGEST, lengths[i]);
		assert_true(pattern_is(place, lengths[i], 3));
		assert_true(bytes_are(place + lengths[i], LARGEST - lengths[i], 0x5a));
		expect_lengths(expect_pair(target.eq, PTL_EVENT_GET_START), LARGEST, lengths[i]);
		ends_free(&target, &source);
	}
	free(data);
	free(place);
}

static void ptl_get__reads_at_the_offset_that_it_asks_for_when_the_target_lets_it(void **state)
{
	static unsigned char data[256], place[16];
	struct end target =
		target_make(&there, data, sizeof(data), PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	struct end source = source_make(&here, place, sizeof(place));
	const ptl_size_t offsets[] = {0, 1, 100, 240, 17};

	(void)state;
	pattern_fill(data, sizeof(data), 5);
	for (size_t i = 0; i < COUNT(offsets); i++) {
		assert_ok(PtlGet(source.md, there.id, PORTAL, 0, 0, offsets[i]));
		expect_pair(source.eq, PTL_EVENT_REPLY_START);
		assert_memory_equal(place, data + offsets[i], sizeof(place));
		assert_int_equal(expect_pair(target.eq, PTL_EVENT_GET_START).offset, offsets[i]);
	}
}

static void ptl_get__reads_on_where_the_last_one_stopped_when_the_target_keeps_the_offset(
	void **state)
{
	static unsigned char data[256], place[16];
	struct end source = source_make(&here, place, sizeof(place));

	(void)state;
	target_make(&there, data, sizeof(data), PTL_MD_OP_GET);
	pattern_fill(data, sizeof(data), 5);
	for (size_t i = 0; i < sizeof(data) / sizeof(place); i++) {
		get_from(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_REPLY_START);
		assert_memory_equal(place, data + i * sizeof(place), sizeof(place));
	}
}

static void ptl_get__leaves_the_memory_of_the_target_as_it_was(void **state)
{
	static unsigned char data[5000], place[5000];
	struct end source = source_make(&here, place, sizeof(place));

	(void)state;
	target_make(&there, data, sizeof(data), PTL_MD_OP_GET);
	pattern_fill(data, sizeof(data), 6);
	get_from(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
	assert_true(pattern_is(data, sizeof(data), 6));
	assert_true(pattern_is(place, sizeof(place), 6));
}

static void ptl_get__logs_nothing_but_a_start_and_an_end_at_each_side(void **state)
{
	struct end target = target_make(&there, NULL, 0, PTL_MD_OP_GET),
		   source = source_make(&here, NULL, 0);

	(void)state;
	get_from(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
	expect_pair(target.eq, PTL_EVENT_GET_START);
	fence(&here, &there);
	fence(&there, &here);
	expect_no_event(source.eq);
	expect_no_event(target.eq);
}

static void ptl_get__that_the_target_discards_ends_in_reply_fail(void **state)
{
	struct end source = source_make(&here, NULL, 0);
	ptl_event_t event;

	(void)state;
	get_from(source.md, &there, 0);
	event = expect_event(source.eq, PTL_EVENT_REPLY_FAIL);
	assert_int_equal(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
	assert_true(event.link == event.sequence);
	assert_true(event.md_handle == source.md);
	assert_int_equal(drops(&there), 1);
	expect_no_event(source.eq);
}

static void ptl_get__that_the_target_discards_releases_the_descriptor(void **state)
{
	static char place[64];

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct end source = source_make(&here, place, sizeof(place));

		get_from(source.md, &there, 0);
		expect_event(source.eq, PTL_EVENT_REPLY_FAIL);
		assert_ok(PtlMDUnlink(source.md));
		assert_ok(PtlEQFree(source.eq));
	}
	assert_int_equal(drops(&there), 200);
}

static void ptl_get__discarded_for_any_reason_ends_in_reply_fail(void **state)
{
	static char data[8], place[9];
	struct end target = target_make(&there, data, sizeof(data), PTL_MD_OP_GET);
	struct end source = source_make(&here, place, sizeof(place));

	(void)state;
	assert_ok(PtlGet(source.md, there.id, PORTAL, 0, 0, 0)); /* too long */
	assert_ok(PtlGet(source.md, there.id, there.limits.max_ptable_index + 1, 0, 0, 0));
	assert_ok(PtlGet(source.md, there.id, PORTAL, 1, 0, 0)); /* admits nobody */
	assert_ok(PtlGet(source.md, there.id, PORTAL, there.limits.max_atable_index + 1, 0, 0));
	for (int i = 0; i < 4; i++)
		assert_int_equal(expect_event(source.eq, PTL_EVENT_REPLY_FAIL).ni_fail_type,
			PTL_NI_UNDELIVERABLE);
	assert_int_equal(drops(&there), 4);
	expect_no_event(target.eq);
}

static void ptl_get__keeps_its_descriptor_in_use_until_the_reply_is_there(void **state)
{
	char *data = calloc(1, LARGEST), *place = calloc(1, LARGEST);
	struct end source;
	int code;

	(void)state;
	assert_true(data != NULL && place != NULL);
	pattern_fill(data, LARGEST, 8);
	target_make(&there, data, LARGEST, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	source = source_make(&here, place, LARGEST);
	get_from(source.md, &there, 0);
	while ((code = PtlMDUnlink(source.md)) == PTL_MD_INUSE)
		nap();
	assert_ok(code);
	assert_true(
		pattern_is(place, LARGEST, 8)); /* it was all there when the descriptor was free */
	expect_pair(source.eq, PTL_EVENT_REPLY_START);
	free(data);
	free(place);
}

static void ptl_get__without_a_queue_brings_the_data_all_the_same(void **state)
{
	static char data[64], place[64];
	ptl_handle_md_t md = region_bind(&here, region(place, sizeof(place), 0, PTL_EQ_NONE));
	int code;

	(void)state;
	target_make(&there, data, sizeof(data), PTL_MD_OP_GET);
	pattern_fill(data, sizeof(data), 9);
	get_from(md, &there, 0);
	while ((code = PtlMDUnlink(md)) == PTL_MD_INUSE)
		nap();
	assert_ok(code);
	assert_true(pattern_is(place, sizeof(place), 9));
}

static void ptl_get__may_use_one_descriptor_for_many_at_once(void **state)
{
	enum { GETS = 500 };
	ptl_md_t md = region(NULL, 0, 0, queue_make(&here, (ptl_size_t)GETS * 2));
	ptl_handle_md_t handle = region_bind(&here, md);
	unsigned starts = 0, ends = 0;

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_GET);
	for (unsigned i = 0; i < GETS; i++)
		get_from(handle, &there, 0);
	while (ends < GETS) {
		ptl_event_t event = next_event(md.eventq);

		starts += event.type == PTL_EVENT_REPLY_START;
		ends += event.type == PTL_EVENT_REPLY_END;
		assert_true(ends <= starts);
	}
	assert_int_equal(starts, GETS);
	expect_no_event(md.eventq);
}

static void puts_and_gets__start_at_the_target_in_the_order_of_the_calls(void **state)
{
	static char data[65536], place[65536];
	struct end target = target_make(
		&there, data, sizeof(data), PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE);
	ptl_handle_md_t large = region_bind(&here, region(place, sizeof(place), 0, PTL_EQ_NONE));
	ptl_handle_md_t small = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		ptl_handle_md_t md = i % 3 == 0 ? large : small;

		if (i % 2 == 0)
			assert_ok(PtlPut(md, PTL_NOACK_REQ, there.id, PORTAL, 0, i, 0, 0));
		else
			assert_ok(PtlGet(md, there.id, PORTAL, 0, i, 0));
	}
	for (unsigned started = 0, ended = 0; ended < 60;) {
		ptl_event_t event = next_event(target.eq);

		if (event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_GET_START)
			assert_int_equal(event.match_bits, started++);
		else
			ended++;
	}
}

static void ptl_get__refuses_what_it_should(void **state)
{
	const ptl_process_id_t nobody[] = {
		{PTL_NID_ANY, 1}, {1, PTL_PID_ANY}, {1, PTL_PID_MAX + 1}};
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_code(PtlGet(PTL_MD_NONE, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlGet(PTL_INVALID_HANDLE, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlGet(here.ni, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlGet(source.eq, there.id, PORTAL, 0, 0, 0), PTL_INV_MD);
	for (size_t i = 0; i < COUNT(nobody); i++)
		assert_code(PtlGet(source.md, nobody[i], PORTAL, 0, 0, 0), PTL_INV_PROC);
	expect_no_event(source.eq);
	assert_ok(PtlMDUnlink(source.md));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(ptl_get__moves_every_byte_of_any_length_between_interfaces),
		TEST_BOTH(ptl_get__moves_every_byte_of_any_length_in_the_other_direction),
		TEST_BOTH(ptl_get__moves_every_byte_of_any_length_from_oneself),
		TEST_BOTH(ptl_get__truncated_by_the_target_changes_the_first_bytes_alone),
		TEST_BOTH(ptl_get__reads_at_the_offset_that_it_asks_for_when_the_target_lets_it),
		TEST_BOTH(
			ptl_get__reads_on_where_the_last_one_stopped_when_the_target_keeps_the_offset),
		TEST_BOTH(ptl_get__leaves_the_memory_of_the_target_as_it_was),
		TEST_BOTH(ptl_get__logs_nothing_but_a_start_and_an_end_at_each_side),
		TEST_BOTH(ptl_get__that_the_target_discards_ends_in_reply_fail),
		TEST_BOTH(ptl_get__that_the_target_discards_releases_the_descriptor),
		TEST_BOTH(ptl_get__discarded_for_any_reason_ends_in_reply_fail),
		TEST_BOTH(ptl_get__keeps_its_descriptor_in_use_until_the_reply_is_there),
		TEST_BOTH(ptl_get__without_a_queue_brings_the_data_all_the_same),
		TEST_BOTH(ptl_get__may_use_one_descriptor_for_many_at_once),
		TEST_BOTH(puts_and_gets__start_at_the_target_in_the_order_of_the_calls),
		TEST_BOTH(ptl_get__refuses_what_it_should),
	};

	return cmocka_run_group_tests_name("get", tests, group_open, group_close);
}
