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
	for (bytes[0] = MESSAGE_FETCH + 1; bytes[0] != 0; bytes[0]++)
		assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
	bytes[0] = MESSAGE_ACK;
	bytes[2] = 1;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
	bytes[2] = 0;
	bytes[3] = 1;
	assert_false(message_decode(bytes, sizeof(bytes), 0, &header));
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
