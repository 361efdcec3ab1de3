/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frame.c - headers and records as bytes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <wire/frame.h>

#define BYTES 512

struct built {
	struct frame frame;
	uint8_t bytes[BYTES];
};

/* A sequenced frame with one message of 5 bytes, behind an 8-byte header. */
static void build(struct built *built, uint8_t flags)
{
	struct record record = {
		.kind = RECORD_WHOLE,
		.header_length = 8,
		.data_length = 5,
		.message = 3,
	};
	uint32_t at = frame_header_bytes(flags);
	uint8_t *to;

	memset(built, 0, sizeof(*built));
	built->frame.type = FRAME_DATA;
	built->frame.flags = flags | FRAME_START;
	built->frame.records = 1;
	built->frame.source_nid = 11;
	built->frame.source_pid = 12;
	built->frame.destination_nid = 13;
	built->frame.destination_pid = 14;
	built->frame.source_incarnation = 15;
	built->frame.destination_incarnation = 16;
	built->frame.psn = 17;
	built->frame.ack = 18;
	built->frame.stream = 19;
	built->frame.ack_stream = 20;
	built->frame.timestamp = 21;
	built->frame.echo = 22;
	built->frame.delay = 23;
	built->frame.credit = 24;
	built->frame.first = 25;
	built->frame.sack[3] = UINT64_C(1) << 63;
	to = record_write(built->bytes + at, &record);
	memcpy(to, "headerxydata!", 13);
	built->frame.length = (uint16_t)(at + record_bytes(RECORD_WHOLE, 8, 5));
	frame_encode(&built->frame, built->bytes);
}

/* As frame_encode() leaves it, but with a record changed. */
static void seal(struct built *built)
{
	frame_encode(&built->frame, built->bytes);
}

static enum frame_status decode(const struct built *built, struct frame_view *frame)
{
	/* An exact copy, so that a read beyond it is found. */
	uint8_t *bytes = malloc(built->frame.length);
	enum frame_status status;

	memcpy(bytes, built->bytes, built->frame.length);
	status = frame_decode(bytes, built->frame.length, frame);
	free(bytes);
	frame->header = (const void *)built->bytes;
	frame->body = built->bytes + frame_header_bytes(frame->header->flags);
	return status;
}

static void frame_decode__reads_what_was_encoded(void **state)
{
	struct built built;
	struct frame_view frame;
	struct record record;

	(void)state;
	build(&built, FRAME_SACK | FRAME_ACK_VALID | FRAME_FULL_SUM);
	assert_int_equal(decode(&built, &frame), FRAME_OK);
	assert_int_equal(frame_type(frame.header), FRAME_DATA);
	assert_int_equal(frame.header->source_nid, 11);
	assert_int_equal(frame.header->source_pid, 12);
	assert_int_equal(frame.header->destination_nid, 13);
	assert_int_equal(frame.header->destination_pid, 14);
	assert_int_equal(frame.header->source_incarnation, 15);
	assert_int_equal(frame.header->destination_incarnation, 16);
	assert_int_equal(frame.header->psn, 17);
	assert_int_equal(frame.header->ack, 18);
	assert_int_equal(frame.header->stream, 19);
	assert_int_equal(frame.header->ack_stream, 20);
	assert_int_equal(frame.header->timestamp, 21);
	assert_int_equal(frame.header->echo, 22);
	assert_int_equal(frame.header->delay, 23);
	assert_int_equal(frame.header->credit, 24);
	assert_int_equal(frame.header->first, 25);
	assert_true(word_read(frame_sack(frame.header), 24) == UINT64_C(1) << 63);
	assert_int_equal(record_read(&frame, 0, &record), record_bytes(RECORD_WHOLE, 8, 5));
	assert_int_equal(record.kind, RECORD_WHOLE);
	assert_int_equal(record.message, 3);
	assert_int_equal(record.extent, 5);
	assert_memory_equal(record.header, "headerxy", 8);
	assert_memory_equal(record.data, "data!", 5);
}

/* Records of one frame: kind, message, data, extent; a kind of 0 ends them. */
struct outline {
	uint8_t kind;
	uint32_t message;
	uint16_t length;
	uint64_t extent;
};

static enum frame_status outline_decode(const struct outline *outline, struct frame_view *frame)
{
	struct built built;
	uint32_t at = FRAME_HEADER_BYTES;

	build(&built, 0);
	built.frame.flags = 0;
	for (built.frame.records = 0; outline->kind != 0; outline++, built.frame.records++) {
		struct record record = {.kind = outline->kind,
			.message = outline->message,
			.data_length = outline->length,
			.extent = outline->extent};

		record_write(built.bytes + at, &record);
		at += record_bytes(outline->kind, 0, outline->length);
		if (outline->kind == RECORD_START || outline->kind == RECORD_WHOLE)
			built.frame.flags |= FRAME_START;
	}
	built.frame.length = (uint16_t)at;
	seal(&built);
	return decode(&built, frame);
}

static void frame_decode__sees_whole_messages(void **state)
{
	static const struct {
		struct outline outlines[4];
		bool whole;
	} rows[] = {
		{{{RECORD_WHOLE, 7, 8, 0}}, true},
		{{{RECORD_WHOLE, 7, 0, 0}}, true},
		{{{RECORD_WHOLE, UINT32_MAX, 8, 0}, {RECORD_WHOLE, 0, 3, 0}}, true},
		{{{RECORD_START, 7, 8, 9}}, false},
		{{{RECORD_MORE, 7, 8, 8}}, false},
		{{{RECORD_STOP, 7, 0, 0}}, false},
		{{{RECORD_WHOLE, 7, 8, 0}, {RECORD_WHOLE, 9, 8, 0}}, false},
		{{{RECORD_WHOLE, 7, 8, 0}, {RECORD_WHOLE, 7, 8, 0}}, false},
		{{{RECORD_WHOLE, 7, 8, 0}, {RECORD_STOP, 8, 0, 0}}, false},
		{{{RECORD_STOP, 8, 0, 0}, {RECORD_WHOLE, 7, 8, 0}}, false},
		{{{RECORD_WHOLE, 7, 8, 0}, {RECORD_WHOLE, 8, 8, 0}, {RECORD_START, 9, 1, 2}},
			false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct frame_view frame;

		assert_int_equal(outline_decode(rows[i].outlines, &frame), FRAME_OK);
		assert_int_equal(frame.whole, rows[i].whole);
	}
}

static void frame_decode__refuses_every_truncation(void **state)
{
	struct built built;
	struct frame_view frame;
	uint32_t length;

	(void)state;
	build(&built, FRAME_SACK);
	for (length = 0; length < built.frame.length; length++) {
		uint8_t *bytes = malloc(length + 1);

		memcpy(bytes, built.bytes, length);
		assert_int_not_equal(frame_decode(bytes, length, &frame), FRAME_OK);
		free(bytes);
	}
}

/* No bit of the first bytes of a frame can be turned unseen. */
static void finds_every_flipped_bit(struct built *built, uint32_t bytes)
{
	struct frame_view frame;

	assert_int_equal(decode(built, &frame), FRAME_OK);
	for (uint32_t bit = 0; bit < bytes * 8; bit++) {
		built->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(decode(built, &frame), FRAME_OK);
		built->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void frame_decode__finds_every_flipped_bit_of_a_full_checksum(void **state)
{
	struct built built;

	(void)state;
	build(&built, FRAME_FULL_SUM);
	finds_every_flipped_bit(&built, built.frame.length);
}

static void frame_decode__finds_every_flipped_bit_of_the_header(void **state)
{
	struct built built;

	(void)state;
	build(&built, FRAME_SACK);
	finds_every_flipped_bit(&built, FRAME_HEADER_BYTES + FRAME_SACK_BYTES);
}

/* It was found right before. All else is checked again. */
static void frame_decode_again__does_not_look_at_the_checksum(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, FRAME_FULL_SUM | FRAME_SACK);
	built.bytes[built.frame.length - 5] ^= 1; /* of the message's data */
	assert_int_equal(frame_decode(built.bytes, BYTES, &frame), FRAME_BAD_CHECKSUM);
	assert_int_equal(frame_decode_again(built.bytes, BYTES, &frame), FRAME_OK);
	assert_ptr_equal(frame.header, built.bytes);
	assert_ptr_equal(frame.body, built.bytes + FRAME_HEADER_BYTES + FRAME_SACK_BYTES);
	built.frame.records = 2;
	seal(&built);
	assert_int_equal(frame_decode_again(built.bytes, BYTES, &frame), FRAME_BAD_CONTENT);
}

static void frame_decode__accepts_padding_behind_the_frame(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, 0);
	assert_int_equal(frame_decode(built.bytes, BYTES, &frame), FRAME_OK);
}

static void frame_decode__refuses_types_that_do_not_exist(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, 0);
	built.frame.type = 0;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_VERSION);
	built.frame.type = FRAME_FOUND + 1;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_VERSION);
}

static void frame_decode__knows_what_is_sealed_before_it_looks_at_a_checksum(void **state)
{
	const uint8_t flags[] = {FRAME_WILL, FRAME_SEALED, FRAME_WILL | FRAME_SEALED};
	struct built built;
	struct frame_view frame;

	(void)state;
	for (unsigned i = 0; i < sizeof(flags); i++) {
		build(&built, 0);
		built.frame.flags |= flags[i];
		seal(&built);
		assert_int_equal(decode(&built, &frame), FRAME_BAD_SEALED);
		built.bytes[offsetof(struct frame_header, checksum)] ^= 1;
		assert_int_equal(decode(&built, &frame), FRAME_BAD_SEALED);
		built.bytes[0] ^= 1 << 4;
		assert_int_equal(decode(&built, &frame), FRAME_BAD_VERSION);
	}
}

static void frame_decode__refuses_a_start_flag_that_lies(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, 0);
	built.frame.flags = 0;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
}

static void frame_decode__refuses_records_in_other_types(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, 0);
	built.frame.type = FRAME_ACK;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
}

static void frame_decode__refuses_a_psn_that_no_stream_begins_with(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, FRAME_FIRST);
	built.frame.first = built.frame.psn - (FRAME_WINDOW - 1);
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_OK);
	built.frame.first = built.frame.psn - FRAME_WINDOW;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
	built.frame.first = built.frame.psn + 1;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
	built.frame.flags &= (uint8_t)~FRAME_FIRST;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_OK);
}

static void frame_decode__refuses_a_wrong_count_of_records(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	build(&built, 0);
	built.frame.records = 0;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
	built.frame.records = 2;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
}

/* An echo frame of this length as a process would send it. */
static void build_echo(struct built *built, uint8_t type, uint16_t length)
{
	memset(built, 0xee, sizeof(*built));
	built->frame = (struct frame){.type = type,
		.flags = FRAME_FULL_SUM,
		.length = length,
		.source_nid = 11,
		.source_pid = 12,
		.destination_nid = 13,
		.destination_pid = 14,
		.source_incarnation = 15,
		.destination_incarnation = type == FRAME_PONG ? 16 : 0,
		.psn = 17,
		.ack = length,
		.timestamp = 18,
		.first = type == FRAME_PONG ? 1496 : 0};
	frame_pad(built->bytes, length);
	frame_encode(&built->frame, built->bytes);
}

static void frame_decode__accepts_an_echo_of_any_length(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	for (uint16_t length = FRAME_HEADER_BYTES; length < FRAME_HEADER_BYTES + 32; length++) {
		build_echo(&built, FRAME_PING, length);
		assert_int_equal(decode(&built, &frame), FRAME_OK);
		assert_int_equal(frame.header->length, length);
		assert_int_equal(frame.header->ack, length);
		assert_int_equal(built.bytes[length], 0xee);
		build_echo(&built, FRAME_PONG, length);
		assert_int_equal(decode(&built, &frame), FRAME_OK);
		assert_int_equal(frame.header->first, 1496);
	}
}

static void frame_decode__finds_every_flipped_bit_of_an_echo(void **state)
{
	struct built built;

	(void)state;
	build_echo(&built, FRAME_PING, FRAME_HEADER_BYTES + 13);
	finds_every_flipped_bit(&built, built.frame.length);
}

/* What the echo frame of 80 bytes with one thing changed is taken for. */
#define ECHO_WITH(type, change)                                                                    \
	(build_echo(&built, type, 80), (change), seal(&built), decode(&built, &frame))

static void frame_decode__refuses_an_echo_that_asks_for_more_than_it_is(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.ack = FRAME_HEADER_BYTES), FRAME_OK);
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.ack = 81), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.ack = 63), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.ack = 0), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PONG, built.frame.ack = 81), FRAME_OK);
	assert_int_equal(ECHO_WITH(FRAME_PONG, built.frame.ack = 79), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PONG, built.frame.ack = 65536), FRAME_BAD_CONTENT);
}

static void frame_decode__refuses_an_echo_with_fields_of_other_frames(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.records = 1), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.flags = 0), FRAME_BAD_CONTENT);
	assert_int_equal(
		ECHO_WITH(FRAME_PING, built.frame.flags |= FRAME_ACK_VALID), FRAME_BAD_CONTENT);
	assert_int_equal(
		ECHO_WITH(FRAME_PING, built.frame.destination_incarnation = 1), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PONG, built.frame.first = 63), FRAME_BAD_CONTENT);
	assert_int_equal(ECHO_WITH(FRAME_PONG, built.frame.first = 65536), FRAME_BAD_CONTENT);
}

static void build_name(struct built *built, uint8_t type)
{
	struct frame_name name = {.host = "beta", .board = 1};

	build_echo(built, type, FRAME_HEADER_BYTES + sizeof(name));
	memcpy(built->bytes + FRAME_HEADER_BYTES, &name, sizeof(name));
	seal(built);
}

static void frame_decode__accepts_names_of_one_length(void **state)
{
	static const uint8_t types[] = {FRAME_FIND, FRAME_FOUND};
	struct built built;
	struct frame_view frame;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		build_name(&built, types[i]);
		assert_int_equal(decode(&built, &frame), FRAME_OK);
		assert_string_equal((const char *)frame.body, "beta");
		for (uint16_t length = FRAME_HEADER_BYTES; length < 200; length += 4) {
			build_echo(&built, types[i], length);
			assert_int_equal(decode(&built, &frame),
				length == FRAME_HEADER_BYTES + sizeof(struct frame_name)
					? FRAME_OK
					: FRAME_BAD_CONTENT);
		}
		build_name(&built, types[i]);
		built.frame.flags = 0;
		seal(&built);
		assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
		build_name(&built, types[i]);
		built.frame.records = 1;
		seal(&built);
		assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
	}
	build_name(&built, FRAME_FIND);
	built.frame.destination_incarnation = 1;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
	build_name(&built, FRAME_FIND);
	finds_every_flipped_bit(&built, built.frame.length);
}

static void frame_decode__takes_padding_for_an_echo_alone(void **state)
{
	struct built built;
	struct frame_view frame;

	(void)state;
	assert_int_equal(ECHO_WITH(FRAME_PING, built.frame.type = FRAME_BYE), FRAME_BAD_CONTENT);
	build(&built, FRAME_FULL_SUM);
	built.frame.length++;
	seal(&built);
	assert_int_equal(decode(&built, &frame), FRAME_BAD_CONTENT);
}

static enum frame_status decode_record(const struct record *record)
{
	struct built built;
	struct frame_view frame;

	build(&built, 0);
	record_write(built.bytes + FRAME_HEADER_BYTES, record);
	built.frame.length = (uint16_t)(FRAME_HEADER_BYTES + record_bytes(record->kind, 8, 5));
	seal(&built);
	return decode(&built, &frame);
}

static void frame_decode__refuses_records_beyond_the_limits(void **state)
{
	const struct record good[] = {
		{RECORD_WHOLE, 8, 5, 3, 5, NULL, NULL},
		{RECORD_START, 8, 5, 3, 6, NULL, NULL},
	};
	const struct record bad[] = {
		{RECORD_WHOLE, 9, 5, 3, 5, NULL, NULL},
		{RECORD_WHOLE, MESSAGE_HEADER_MAX + 8, 5, 3, 5, NULL, NULL},
		{RECORD_WHOLE, 8, UINT16_MAX, 3, 5, NULL, NULL},
		{0, 8, 5, 3, 6, NULL, NULL},
		{RECORD_START, 9, 5, 3, 6, NULL, NULL},
		{RECORD_START, MESSAGE_HEADER_MAX + 8, 5, 3, 6, NULL, NULL},
		{RECORD_START, 8, UINT16_MAX, 3, 6, NULL, NULL},
		{RECORD_START, 8, 5, 3, 4, NULL, NULL},
		{RECORD_START, 8, 5, 3, 5, NULL, NULL}, /* that is a whole message */
		{RECORD_START, 8, 5, 3, MESSAGE_LENGTH_MAX + 1, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(decode_record(&good[i]), FRAME_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(decode_record(&bad[i]), FRAME_BAD_CONTENT);
}

/* A record that is its header and what it says to follow. */
static enum frame_status decode_bare(const struct record *record)
{
	struct built built;
	struct frame_view frame;

	build(&built, 0);
	record_write(built.bytes + FRAME_HEADER_BYTES, record);
	built.frame.flags &= (uint8_t)~FRAME_START;
	built.frame.length =
		(uint16_t)(FRAME_HEADER_BYTES +
			   record_bytes(record->kind, record->header_length, record->data_length));
	seal(&built);
	return decode(&built, &frame);
}

static void frame_decode__refuses_bare_records_that_are_not(void **state)
{
	const struct record good[] = {
		{RECORD_STOP, 0, 0, 3, UINT16_MAX, NULL, NULL},
		{RECORD_VOID, 0, 0, 3, 0, NULL, NULL},
		{RECORD_RING, 0, 0, 0, 0, NULL, NULL},
	};
	const struct record bad[] = {
		{RECORD_STOP, 0, 0, 3, UINT16_MAX + 1, NULL, NULL},
		{RECORD_STOP, 0, 8, 3, 0, NULL, NULL},
		{RECORD_STOP, 8, 0, 3, 0, NULL, NULL},
		{RECORD_VOID, 0, 0, 3, 1, NULL, NULL},
		{RECORD_VOID, 0, 8, 3, 0, NULL, NULL},
		{RECORD_VOID, 8, 0, 3, 0, NULL, NULL},
		{RECORD_RING, 0, 0, 3, 0, NULL, NULL},
		{RECORD_RING, 0, 0, 0, 1, NULL, NULL},
		{RECORD_RING, 0, 8, 0, 0, NULL, NULL},
		{RECORD_RING, 8, 0, 0, 0, NULL, NULL},
		{RECORD_RING + 1, 0, 0, 0, 0, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(decode_bare(&good[i]), FRAME_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(decode_bare(&bad[i]), FRAME_BAD_CONTENT);
}

/* Two bare records, the first of such a kind. */
static enum frame_status decode_two(uint8_t kind, uint8_t next)
{
	struct record record = {.kind = kind};
	struct built built;
	struct frame_view frame;

	build(&built, 0);
	record_write(built.bytes + FRAME_HEADER_BYTES, &record);
	record.kind = next;
	record_write(built.bytes + FRAME_HEADER_BYTES + RECORD_HEADER_BYTES, &record);
	built.frame.flags &= (uint8_t)~FRAME_START;
	built.frame.records = 2;
	built.frame.length = FRAME_HEADER_BYTES + 2 * RECORD_HEADER_BYTES;
	seal(&built);
	return decode(&built, &frame);
}

static void frame_decode__refuses_what_follows_a_ring(void **state)
{
	(void)state;
	assert_int_equal(decode_two(RECORD_VOID, RECORD_RING), FRAME_OK);
	assert_int_equal(decode_two(RECORD_RING, RECORD_VOID), FRAME_BAD_CONTENT);
	assert_int_equal(decode_two(RECORD_RING, RECORD_RING), FRAME_BAD_CONTENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_decode__reads_what_was_encoded),
		cmocka_unit_test(frame_decode__sees_whole_messages),
		cmocka_unit_test(frame_decode__refuses_every_truncation),
		cmocka_unit_test(frame_decode__finds_every_flipped_bit_of_a_full_checksum),
		cmocka_unit_test(frame_decode__finds_every_flipped_bit_of_the_header),
		cmocka_unit_test(frame_decode_again__does_not_look_at_the_checksum),
		cmocka_unit_test(frame_decode__accepts_padding_behind_the_frame),
		cmocka_unit_test(frame_decode__refuses_types_that_do_not_exist),
		cmocka_unit_test(frame_decode__knows_what_is_sealed_before_it_looks_at_a_checksum),
		cmocka_unit_test(frame_decode__refuses_a_start_flag_that_lies),
		cmocka_unit_test(frame_decode__refuses_records_in_other_types),
		cmocka_unit_test(frame_decode__refuses_a_psn_that_no_stream_begins_with),
		cmocka_unit_test(frame_decode__refuses_a_wrong_count_of_records),
		cmocka_unit_test(frame_decode__refuses_records_beyond_the_limits),
		cmocka_unit_test(frame_decode__refuses_bare_records_that_are_not),
		cmocka_unit_test(frame_decode__refuses_what_follows_a_ring),
		cmocka_unit_test(frame_decode__accepts_an_echo_of_any_length),
		cmocka_unit_test(frame_decode__finds_every_flipped_bit_of_an_echo),
		cmocka_unit_test(frame_decode__refuses_an_echo_that_asks_for_more_than_it_is),
		cmocka_unit_test(frame_decode__refuses_an_echo_with_fields_of_other_frames),
		cmocka_unit_test(frame_decode__accepts_names_of_one_length),
		cmocka_unit_test(frame_decode__takes_padding_for_an_echo_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
