/* SPDX-License-Identifier: BSD-3-Clause */
/* test_message.c - the header of a Portals message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <wire/message.h>

static const struct message_header example = {
	.kind = MESSAGE_GET,
	.space = 4,
	.uid = 1,
	.portal = 2,
	.cookie = 3,
	.match_bits = UINT64_C(0x0102030405060708),
	.offset = 5,
	.handle = 6,
	.requested = 7,
	.value = 8,
	.operation = 9,
};

static void message_decode__reads_what_was_encoded(void **state)
{
	_Alignas(struct message_header) uint8_t bytes[2 * MESSAGE_HEADER_BYTES];
	struct message_header header;

	(void)state;
	for (unsigned at = 0; at < MESSAGE_HEADER_BYTES; at++) {
		assert_int_equal(message_encode(&example, bytes + at), MESSAGE_HEADER_BYTES);
		assert_true(message_decode(bytes + at, MESSAGE_HEADER_BYTES, 0, &header));
		assert_memory_equal(&header, &example, sizeof(header));
	}
}

/* Every choice of the words that may be zero. */
static void message_encode__leaves_zero_words_at_the_end_out(void **state)
{
	uint64_t words[MESSAGE_HEADER_BYTES / 8];
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	struct message_header header, read;

	(void)state;
	for (unsigned zero = 0; zero < 32; zero++) {
		uint32_t least = MESSAGE_HEADER_LEAST;

		memcpy(words, &example, sizeof(words));
		for (unsigned i = 0; i < 5; i++) {
			if (zero >> i & 1)
				words[MESSAGE_HEADER_LEAST / 8 + i] = 0;
			else
				least = MESSAGE_HEADER_LEAST + 8 * (i + 1);
		}
		memcpy(&header, words, sizeof(header));
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(message_encode(&header, bytes), least);
		assert_true(message_decode(bytes, least, 0, &read));
		assert_memory_equal(&read, &header, sizeof(read));
		/* The same header has no second form. */
		for (uint32_t length = least + 8; length <= MESSAGE_HEADER_BYTES; length += 8)
			assert_false(message_decode(bytes, length, 0, &read));
	}
}

static void message_encode__leaves_the_length_of_a_put_to_its_record(void **state)
{
	struct message_header header = example, read;
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	header.kind = MESSAGE_PUT;
	assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_BYTES);
	assert_true(message_decode(bytes, MESSAGE_HEADER_BYTES, 7, &read));
	assert_memory_equal(&read, &header, sizeof(read));
	assert_true(message_decode(bytes, MESSAGE_HEADER_BYTES, 123, &read));
	assert_int_equal(read.requested, 123);
	bytes[32] = 7;
	assert_false(message_decode(bytes, MESSAGE_HEADER_BYTES, 7, &read));

	header.value = header.operation = header.handle = header.offset = 0;
	assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_LEAST);
	assert_true(message_decode(bytes, MESSAGE_HEADER_LEAST, 7, &read));
	assert_memory_equal(&read, &header, sizeof(read));
}

static void message_decode__has_the_length_of_what_requests_bring(void **state)
{
	const uint8_t kinds[] = {MESSAGE_STORE, MESSAGE_ATOMIC, MESSAGE_FETCH};
	struct message_header header, read;
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(kinds); i++) {
		header = example;
		header.kind = kinds[i];
		header.detail = kinds[i] == MESSAGE_STORE ? 0 : message_amo(17, 13);
		assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_BYTES);
		assert_int_equal(bytes[2] | bytes[3] << 8, header.detail);
		header.requested = 99;
		assert_true(message_decode(bytes, MESSAGE_HEADER_BYTES, 99, &read));
		assert_memory_equal(&read, &header, sizeof(read));
		bytes[32] = 7;
		assert_false(message_decode(bytes, MESSAGE_HEADER_BYTES, 99, &read));
	}
}

static void message_decode__knows_a_store_that_wants_refusals_alone(void **state)
{
	struct message_header header = {.kind = MESSAGE_STORE, .detail = MESSAGE_REFUSALS}, read;
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	assert_int_equal(message_encode(&header, bytes), MESSAGE_HEADER_LEAST);
	assert_true(message_decode(bytes, MESSAGE_HEADER_LEAST, 0, &read));
	assert_int_equal(read.detail, MESSAGE_REFUSALS);
	header.detail = 2;
	message_encode(&header, bytes);
	assert_false(message_decode(bytes, MESSAGE_HEADER_LEAST, 0, &read));
	header.detail = MESSAGE_REFUSALS;
	header.operation = 1;
	assert_false(message_decode(bytes, message_encode(&header, bytes), 0, &read));
}

static void message_encode__writes_the_bytes_of_the_specification(void **state)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	message_encode(&example, bytes);
	assert_int_equal(bytes[0], MESSAGE_GET);
	assert_int_equal(bytes[1], 4);
	assert_int_equal(bytes[4], 1);
	assert_int_equal(bytes[16], 8);
	assert_int_equal(bytes[23], 1);
	assert_int_equal(bytes[24], 8);
	assert_int_equal(bytes[32], 7);
	assert_int_equal(bytes[40], 9);
	assert_int_equal(bytes[48], 6);
	assert_int_equal(bytes[56], 5);
}

static void message_decode__refuses_another_length(void **state)
{
	uint8_t bytes[2 * MESSAGE_HEADER_BYTES];
	struct message_header header;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	message_encode(&example, bytes);
	for (uint32_t length = 0; length < sizeof(bytes); length++)
		assert_int_equal(message_decode(bytes, length, 0, &header),
			length % 8 == 0 && length >= MESSAGE_HEADER_LEAST &&
				length <= MESSAGE_HEADER_BYTES);
}

static void message_decode__refuses_kinds_and_bits_that_do_not_exist(void **state)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	struct message_header header;

	(void)state;
	message_encode(&example, bytes);
	bytes[0] = 0;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
	bytes[0] = MESSAGE_PROBE + 1;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
	bytes[0] = MESSAGE_ACK;
	bytes[2] = 1;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
	bytes[2] = 0;
	bytes[3] = 1;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
}

/* A header of a kind with two sides; the words that are zero must be. */
struct row {
	struct message_header header;
	uint64_t match_bits, value, requested, operation, handle, offset; /* bits to set in turn */
	uint32_t cookie;
	uint16_t detail;
};

static bool decodes(const struct message_header *header, struct message_header *read)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	uint32_t length = message_length(header, header->requested);

	/* As they are, with a requested length that message_encode() would leave out. */
	memcpy(bytes, header, sizeof(bytes));
	return message_decode(bytes, length, 11, read);
}

#define REFUSED(row, member, bits)                                                                 \
	do {                                                                                       \
		struct message_header wrong_ = (row)->header, read_;                               \
                                                                                                   \
		wrong_.member |= (bits);                                                           \
		if ((bits) != 0)                                                                   \
			assert_false(decodes(&wrong_, &read_));                                    \
	} while (0)

static void message_decode__refuses_each_word_that_a_two_sided_message_has_not(void **state)
{
	const struct row rows[] = {
		{{.kind = MESSAGE_LETTER, .uid = 1, .portal = 2, .cookie = 3, .match_bits = 4},
			.value = 1, .requested = 1, .handle = 1, .offset = 1, .detail = 8},
		{{.kind = MESSAGE_LETTER,
			 .detail = 7,
			 .portal = 2,
			 .cookie = 3,
			 .match_bits = 4,
			 .value = 5,
			 .operation = 6,
			 .handle = 7},
			.requested = 1, .offset = 1, .detail = 0x8000},
		{{.kind = MESSAGE_TOLD, .detail = 15 | MESSAGE_TIER, .portal = 2, .operation = 3},
			.cookie = 1, .match_bits = 1, .value = 1, .requested = 1, .handle = 1,
			.offset = 1, .detail = 64},
		{{.kind = MESSAGE_TOLD, .detail = 2 | MESSAGE_NAMED, .portal = 2, .cookie = 3},
			.match_bits = 1, .value = 1, .requested = 1, .handle = 1, .offset = 1,
			.detail = 0x100},
		{{.kind = MESSAGE_WORD,
			 .detail = MESSAGE_WORD_GIVEN_BACK,
			 .portal = 2,
			 .cookie = 3,
			 .value = MESSAGE_WORD_MAX,
			 .operation = 4},
			.match_bits = 1, .value = UINT64_C(1) << 56, .requested = 1, .handle = 1,
			.offset = 1, .detail = 4},
		{{.kind = MESSAGE_GREETING,
			 .portal = 2,
			 .cookie = MESSAGE_NAMELESS,
			 .match_bits = 3,
			 .value = 4,
			 .operation = 5,
			 .offset = 6},
			.requested = 1, .handle = 1, .detail = 1},
	};
	struct message_header wanted, read;
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		uint32_t length = message_encode(&row->header, bytes);

		wanted = row->header;
		wanted.requested = wanted.kind == MESSAGE_LETTER ? 11 : 0;
		assert_true(message_decode(bytes, length, 11, &read));
		assert_memory_equal(&read, &wanted, sizeof(read));
		REFUSED(row, cookie, row->cookie);
		REFUSED(row, match_bits, row->match_bits);
		REFUSED(row, value, row->value);
		REFUSED(row, requested, row->requested);
		REFUSED(row, operation, row->operation);
		REFUSED(row, handle, row->handle);
		REFUSED(row, offset, row->offset);
		REFUSED(row, detail, row->detail);
	}
	wanted = rows[5].header;
	wanted.cookie--;
	assert_false(decodes(&wanted, &read));
	wanted.kind = MESSAGE_GREETING + 1;
	assert_false(decodes(&wanted, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_decode__reads_what_was_encoded),
		cmocka_unit_test(message_encode__leaves_zero_words_at_the_end_out),
		cmocka_unit_test(message_encode__leaves_the_length_of_a_put_to_its_record),
		cmocka_unit_test(message_decode__has_the_length_of_what_requests_bring),
		cmocka_unit_test(message_decode__knows_a_store_that_wants_refusals_alone),
		cmocka_unit_test(message_encode__writes_the_bytes_of_the_specification),
		cmocka_unit_test(message_decode__refuses_another_length),
		cmocka_unit_test(message_decode__refuses_kinds_and_bits_that_do_not_exist),
		cmocka_unit_test(
			message_decode__refuses_each_word_that_a_two_sided_message_has_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
