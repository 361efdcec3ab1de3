/* SPDX-License-Identifier: BSD-3-Clause */
/* test_put.c - PtlPut (3.11): data, acknowledgements, lengths, header data, order.
 *
 * Covers: lib/p3/movement.c.
 */
#include "../nap.h"
#include "fixture.h"

#define LARGEST   (8u << 20)
#define GUARD     64 /* bytes after a target that must stay as they are */
#define MILLION   (SANITIZED ? 100000u : 1000000u)
#define IN_FLIGHT 1024

static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 128, 255, 1000, 1023,
	1024, 1400, 1439, 1440, 1441, 1459, 1460, 1461, 1471, 1472, 1473, 1499, 1500, 1501, 1513,
	1514, 1515, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8900, 8960, 8999, 9000, 9001, 16383,
	16385, 32767, 65406, 65407, 65408, 65535, 65536, 65537, 131071, 262145, 1048575, 1048576,
	1048577, 3 << 20, LARGEST - 1, LARGEST};

static void put_of_every_length(struct node *from, struct node *to)
{
	unsigned char *data = malloc(LARGEST), *place = malloc(LARGEST + GUARD);

	assert_true(data != NULL && place != NULL);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct end source = source_make(from, data, lengths[i]);
		struct end target = target_make(to, place, lengths[i], PTL_MD_OP_PUT);

		pattern_fill(data, lengths[i], (unsigned)i);
		memset(place, 0x5a, lengths[i] + GUARD);
		put_acked(source.md, to, 0);
		expect_lengths(expect_pair(target.eq, PTL_EVENT_PUT_START), lengths[i], lengths[i]);
		assert_true(pattern_is(place, lengths[i], (unsigned)i));
		assert_true(bytes_are(place + lengths[i], GUARD, 0x5a));
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		assert_int_equal(expect_event(source.eq, PTL_EVENT_ACK).mlength, lengths[i]);
		ends_free(&target, &source);
	}
	free(data);
	free(place);
}

static void ptl_put__moves_every_byte_of_any_length_between_interfaces(void **state)
{
	(void)state;
	put_of_every_length(&here, &there);
}

static void ptl_put__moves_every_byte_of_any_length_in_the_other_direction(void **state)
{
	(void)state;
	put_of_every_length(&there, &here);
}

static void ptl_put__moves_every_byte_of_any_length_to_oneself(void **state)
{
	(void)state;
	put_of_every_length(&here, &here);
}

static void ptl_put__truncated_moves_the_first_bytes_and_nothing_beyond(void **state)
{
	unsigned char *data = malloc(LARGEST), *place = malloc(LARGEST + GUARD);

	(void)state;
	assert_true(data != NULL && place != NULL);
	pattern_fill(data, LARGEST, 7);
	for (size_t i = 0; i < COUNT(lengths); i += 3) {
		struct end source = source_make(&here, data, LARGEST);
		struct end target =
			target_make(&there, place, lengths[i], PTL_MD_OP_PUT | PTL_MD_TRUNCATE);

		memset(place, 0x5a, lengths[i] + GUARD);
		put_acked(source.md, &there, 0);
		expect_lengths(expect_pair(target.eq, PTL_EVENT_PUT_START), LARGEST, lengths[i]);
		assert_true(pattern_is(place, lengths[i], 7));
		assert_true(bytes_are(place + lengths[i], GUARD, 0x5a));
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		expect_lengths(expect_event(source.eq, PTL_EVENT_ACK), LARGEST, lengths[i]);
		ends_free(&target, &source);
	}
	free(data);
	free(place);
}

static void ptl_put__of_nothing_needs_no_memory_at_either_end(void **state)
{
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&there, NULL, 0, PTL_MD_OP_PUT);

	(void)state;
	put_acked(source.md, &there, 0);
	assert_int_equal(expect_pair(target.eq, PTL_EVENT_PUT_START).mlength, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_ACK);
}

static void ptl_put__carries_64_bits_of_header_data(void **state)
{
	const ptl_hdr_data_t values[] = {
		0, 1, UINT64_MAX, 0x0123456789abcdefu, 1ull << 63, UINT32_MAX};
	struct end source = source_make(&here, NULL, 0),
		   target = target_make(&there, NULL, 0, PTL_MD_OP_PUT);

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, values[i]));
		assert_int_equal(expect_event(target.eq, PTL_EVENT_PUT_START).hdr_data, values[i]);
		assert_int_equal(expect_event(target.eq, PTL_EVENT_PUT_END).hdr_data, values[i]);
	}
}

static void ptl_put__is_acknowledged_when_asked_for(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_ACK);
	expect_no_event(source.eq);
}

static void ptl_put__is_not_acknowledged_when_not_asked_for(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	put_to(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	fence(&here, &there);
	expect_no_event(source.eq);
}

static void ptl_put__that_no_entry_accepts_is_discarded_counted_and_not_acknowledged(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	put_acked(source.md, &there, 0);
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	fence(&here, &there);
	expect_no_event(source.eq);
	assert_int_equal(drops(&there), 1);
	assert_int_equal(drops(&here), 0);
}

static void ptl_put__of_much_that_no_entry_accepts_still_ends(void **state)
{
	char *data = calloc(1, LARGEST);
	struct end source = source_make(&here, data, LARGEST);

	(void)state;
	for (int i = 0; i < 4; i++)
		put_acked(source.md, &there, 0);
	fence(&here, &there);
	assert_int_equal(drops(&there), 4);
	for (unsigned starts = 0, ends = 0; ends < 4;) {
		ptl_event_t event = next_event(source.eq);

		starts += event.type == PTL_EVENT_SEND_START;
		ends += event.type == PTL_EVENT_SEND_END;
		assert_true(event.type == PTL_EVENT_SEND_START || event.type == PTL_EVENT_SEND_END);
		assert_true(ends <= starts);
	}
	assert_ok(PtlMDUnlink(source.md));
	free(data);
}

static void ptl_put__to_a_portal_that_does_not_exist_is_discarded_and_counted(void **state)
{
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_ok(PtlPut(
		source.md, PTL_NOACK_REQ, there.id, there.limits.max_ptable_index + 1, 0, 0, 0, 0));
	assert_ok(PtlPut(source.md, PTL_NOACK_REQ, there.id, PTL_PT_INDEX_ANY, 0, 0, 0, 0));
	fence(&here, &there);
	assert_int_equal(drops(&there), 2);
}

static void ptl_put__may_send_from_an_attached_descriptor(void **state)
{
	static char from[16], to[16];
	struct end source = target_make(&here, from, sizeof(from), PTL_MD_OP_GET);
	struct end target = target_make(&there, to, sizeof(to), PTL_MD_OP_PUT);

	(void)state;
	pattern_fill(from, sizeof(from), 2);
	put_acked(source.md, &there, 0);
	expect_pair(target.eq, PTL_EVENT_PUT_START);
	assert_true(pattern_is(to, sizeof(to), 2));
	expect_pair(source.eq, PTL_EVENT_SEND_START);
	expect_event(source.eq, PTL_EVENT_ACK);
}

static void ptl_put__lets_the_buffer_be_changed_after_send_end(void **state)
{
	enum { PUTS = 200, LENGTH = 3000 };
	static unsigned char from[LENGTH], to[PUTS * LENGTH];
	ptl_md_t md =
		region(to, sizeof(to), PTL_MD_OP_PUT, queue_make(&there, (ptl_size_t)PUTS * 2));
	struct end source = source_make(&here, from, LENGTH);

	(void)state;
	target_of(&there, md, PTL_RETAIN, PTL_RETAIN);
	for (unsigned i = 0; i < PUTS; i++) {
		pattern_fill(from, LENGTH, i);
		put_to(source.md, &there, 0);
		expect_pair(source.eq, PTL_EVENT_SEND_START);
		memset(from, 0xee, LENGTH);
	}
	for (unsigned ended = 0; ended < PUTS;)
		ended += next_event(md.eventq).type == PTL_EVENT_PUT_END;
	for (unsigned i = 0; i < PUTS; i++)
		assert_true(pattern_is(to + (size_t)i * LENGTH, LENGTH, i));
}

static void ptl_put__may_use_one_descriptor_for_many_at_once(void **state)
{
	enum { PUTS = 500 };
	ptl_md_t md = region(NULL, 0, 0, queue_make(&here, (ptl_size_t)PUTS * 3));
	ptl_handle_md_t handle = region_bind(&here, md);
	unsigned starts = 0, ends = 0, acks = 0;

	(void)state;
	target_make(&there, NULL, 0, PTL_MD_OP_PUT);
	for (unsigned i = 0; i < PUTS; i++)
		put_acked(handle, &there, 0);
	while (starts + ends + acks < PUTS * 3) {
		ptl_event_t event = next_event(md.eventq);

		starts += event.type == PTL_EVENT_SEND_START;
		ends += event.type == PTL_EVENT_SEND_END;
		acks += event.type == PTL_EVENT_ACK;
		assert_true(ends <= starts && acks <= ends);
	}
	assert_int_equal(starts, PUTS);
	assert_int_equal(ends, PUTS);
	assert_int_equal(acks, PUTS);
}

static void ptl_put__starts_at_the_target_in_the_order_of_the_calls_whatever_the_lengths(
	void **state)
{
	enum { PUTS = 60 };
	static const size_t sizes[] = {2 << 20, 0, 100000, 8, 1400, 5000, 1 << 19, 1};
	char *data = calloc(1, 2 << 20), *place = calloc(1, 2 << 20);
	struct end target =
		target_make(&there, place, 2 << 20, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	ptl_handle_md_t mds[PUTS];
	unsigned started = 0, ended = 0;
	int code;

	(void)state;
	assert_true(data != NULL && place != NULL);
	for (unsigned i = 0; i < PUTS; i++) {
		mds[i] = region_bind(&here, region(data, sizes[i % COUNT(sizes)], 0, PTL_EQ_NONE));
		assert_ok(PtlPut(mds[i], PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, i));
	}
	while (ended < PUTS) {
		ptl_event_t event = next_event(target.eq);

		if (event.type == PTL_EVENT_PUT_START)
			assert_int_equal(event.hdr_data, started++);
		else
			ended++;
	}
	assert_int_equal(started, PUTS);
	/* The data is the sender's until its descriptors are free: until then it may be sent
	 * again. */
	for (unsigned i = 0; i < PUTS; i++) {
		while ((code = PtlMDUnlink(mds[i])) == PTL_MD_INUSE)
			nap();
		assert_ok(code);
	}
	free(data);
	free(place);
}

static void ptl_put__a_million_times_arrives_a_million_times_in_order(void **state)
{
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT, queue_make(&there, (ptl_size_t)IN_FLIGHT * 2));
	ptl_handle_md_t source = region_bind(&here, region(NULL, 0, 0, PTL_EQ_NONE));
	unsigned sent = 0, started = 0, ended = 0;

	(void)state;
	target_of(&there, md, PTL_RETAIN, PTL_RETAIN);
	while (ended < MILLION) {
		ptl_event_t event;

		while (sent < MILLION && sent - ended < IN_FLIGHT)
			assert_ok(PtlPut(source, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, sent++));
		event = next_event(md.eventq);
		if (event.type == PTL_EVENT_PUT_START)
			assert_int_equal(event.hdr_data, started++);
		else
			ended++;
	}
	expect_no_event(md.eventq);
	assert_int_equal(started, MILLION);
	assert_int_equal(drops(&there), 0);
}

static void ptl_put__goes_both_ways_at_once(void **state)
{
	enum { LENGTH = 1 << 20, PUTS = 8 };
	unsigned char *data[2], *place[2];
	struct node *const nodes[] = {&here, &there};
	struct end sources[2], targets[2];

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		data[n] = malloc(LENGTH);
		place[n] = calloc(PUTS, LENGTH);
		assert_true(data[n] != NULL && place[n] != NULL);
		pattern_fill(data[n], LENGTH, n + 20);
		sources[n] = source_make(nodes[n], data[n], LENGTH);
		targets[n] = target_make(nodes[n], place[n], (size_t)PUTS * LENGTH, PTL_MD_OP_PUT);
	}
	for (unsigned i = 0; i < PUTS; i++)
		for (unsigned n = 0; n < 2; n++)
			put_to(sources[n].md, nodes[1 - n], 0);
	for (unsigned n = 0; n < 2; n++) {
		for (unsigned ended = 0; ended < PUTS;)
			ended += next_event(targets[n].eq).type == PTL_EVENT_PUT_END;
		for (unsigned i = 0; i < PUTS; i++)
			assert_true(pattern_is(place[n] + (size_t)i * LENGTH, LENGTH, 1 - n + 20));
	}
	for (unsigned n = 0; n < 2; n++) {
		for (unsigned ended = 0; ended < PUTS;)
			ended += next_event(sources[n].eq).type == PTL_EVENT_SEND_END;
		free(data[n]);
		free(place[n]);
	}
}

static void ptl_put__refuses_what_it_should(void **state)
{
	const ptl_process_id_t nobody[] = {
		{PTL_NID_ANY, 1}, {1, PTL_PID_ANY}, {1, PTL_PID_MAX + 1}};
	struct end source = source_make(&here, NULL, 0);

	(void)state;
	assert_code(PtlPut(PTL_MD_NONE, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlPut(PTL_INVALID_HANDLE, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0),
		PTL_INV_MD);
	assert_code(PtlPut(here.ni, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	assert_code(PtlPut(source.eq, PTL_NOACK_REQ, there.id, PORTAL, 0, 0, 0, 0), PTL_INV_MD);
	for (size_t i = 0; i < COUNT(nobody); i++)
		assert_code(PtlPut(source.md, PTL_NOACK_REQ, nobody[i], PORTAL, 0, 0, 0, 0),
			PTL_INV_PROC);
	expect_no_event(source.eq);
}

static void ptl_put__refused_costs_no_threshold(void **state)
{
	ptl_handle_md_t handle = region_bind(&here, limited(region(NULL, 0, 0, PTL_EQ_NONE), 1));

	(void)state;
	assert_code(PtlPut(handle, PTL_NOACK_REQ, ANY_PROCESS, PORTAL, 0, 0, 0, 0), PTL_INV_PROC);
	put_to(handle, &there, 0);
}

/* A process that answers, with one queue for both directions. */
struct speaker {
	struct node *node;
	ptl_handle_eq_t eq;
	ptl_handle_md_t source;
	unsigned sent;
	unsigned ended; /* of these, by SEND_END */
	unsigned early; /* answers that came before the end of what they answer */
};

static struct speaker speaker_make(struct node *node, void *memory, size_t length)
{
	struct speaker speaker = {.node = node, .eq = queue_make(node, EQ_ROOM)};

	target_of(node, region(memory, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, speaker.eq),
		PTL_RETAIN, PTL_RETAIN);
	speaker.source = region_bind(node, region(memory, length, 0, speaker.eq));
	return speaker;
}

/* Puts to the other, and takes its events until the put is there. */
static void speak(struct speaker *from, struct speaker *to)
{
	ptl_event_t event;

	put_to(from->source, to->node, 0);
	from->sent++;
	do {
		event = next_event(to->eq);
		to->ended += event.type == PTL_EVENT_SEND_END;
	} while (event.type != PTL_EVENT_PUT_END);
	/* All that this one has sent has been answered, except, to oneself, what has just come. */
	to->early += to->ended + (from == to) < to->sent;
}

static void send_end__comes_before_the_end_of_the_answer(void **state)
{
	const size_t sizes[] = {0, 8, 3000, 100000};
	static char memory[2][100000];

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct speaker first = speaker_make(&here, memory[0], sizes[i]);
		struct speaker second = speaker_make(&there, memory[1], sizes[i]);

		for (unsigned j = 0; j < 300; j++) {
			speak(&first, &second);
			speak(&second, &first);
		}
		assert_int_equal(first.early + second.early, 0);
		for (unsigned j = 0; j < 300; j++)
			speak(&first, &first);
		assert_int_equal(first.early, 0);
		nodes_close(NULL);
		both_open(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(ptl_put__moves_every_byte_of_any_length_between_interfaces),
		TEST_BOTH(ptl_put__moves_every_byte_of_any_length_in_the_other_direction),
		TEST_BOTH(ptl_put__moves_every_byte_of_any_length_to_oneself),
		TEST_BOTH(ptl_put__truncated_moves_the_first_bytes_and_nothing_beyond),
		TEST_BOTH(ptl_put__of_nothing_needs_no_memory_at_either_end),
		TEST_BOTH(ptl_put__carries_64_bits_of_header_data),
		TEST_BOTH(ptl_put__is_acknowledged_when_asked_for),
		TEST_BOTH(ptl_put__is_not_acknowledged_when_not_asked_for),
		TEST_BOTH(send_end__comes_before_the_end_of_the_answer),
		TEST_BOTH(ptl_put__that_no_entry_accepts_is_discarded_counted_and_not_acknowledged),
		TEST_BOTH(ptl_put__of_much_that_no_entry_accepts_still_ends),
		TEST_BOTH(ptl_put__to_a_portal_that_does_not_exist_is_discarded_and_counted),
		TEST_BOTH(ptl_put__may_send_from_an_attached_descriptor),
		TEST_BOTH(ptl_put__lets_the_buffer_be_changed_after_send_end),
		TEST_BOTH(ptl_put__may_use_one_descriptor_for_many_at_once),
		TEST_BOTH(
			ptl_put__starts_at_the_target_in_the_order_of_the_calls_whatever_the_lengths),
		TEST_BOTH(ptl_put__a_million_times_arrives_a_million_times_in_order),
		TEST_BOTH(ptl_put__goes_both_ways_at_once),
		TEST_BOTH(ptl_put__refuses_what_it_should),
		TEST_BOTH(ptl_put__refused_costs_no_threshold),
	};

	return cmocka_run_group_tests_name("put", tests, group_open, group_close);
}
