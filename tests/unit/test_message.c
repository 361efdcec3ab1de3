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
	struct message_header room;
	const struct message_header *header;

	(void)state;
	for (unsigned at = 0; at < MESSAGE_HEADER_BYTES; at++) {
		message_encode(&example, bytes + at);
		header = message_decode(bytes + at, MESSAGE_HEADER_BYTES, &room);
		assert_non_null(header);
		assert_memory_equal(header, &example, sizeof(*header));
	}
}

static void message_encode__writes_the_bytes_of_the_specification(void **state)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	(void)state;
	message_encode(&example, bytes);
	assert_int_equal(bytes[0], MESSAGE_GET);
	assert_int_equal(bytes[4], 1);
	assert_int_equal(bytes[16], 8);
	assert_int_equal(bytes[23], 1);
	assert_int_equal(bytes[56], 9);
}

static void message_decode__refuses_another_length(void **state)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES + 8];
	struct message_header header;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	message_encode(&example, bytes);
	assert_null(message_decode(bytes, MESSAGE_HEADER_BYTES - 8, &header));
	assert_null(message_decode(bytes, MESSAGE_HEADER_BYTES + 8, &header));
}

static void message_decode__refuses_kinds_and_bits_that_do_not_exist(void **state)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	struct message_header header;

	(void)state;
	message_encode(&example, bytes);
	bytes[0] = 0;
	assert_null(message_decode(bytes, sizeof(bytes), &header));
	bytes[0] = MESSAGE_PROBE + 1;
	assert_null(message_decode(bytes, sizeof(bytes), &header));
	bytes[0] = MESSAGE_PUT;
	bytes[1] = 1;
	assert_null(message_decode(bytes, sizeof(bytes), &header));
	bytes[1] = 0;
	bytes[3] = 1;
	assert_null(message_decode(bytes, sizeof(bytes), &header));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_decode__reads_what_was_encoded),
		cmocka_unit_test(message_encode__writes_the_bytes_of_the_specification),
		cmocka_unit_test(message_decode__refuses_another_length),
		cmocka_unit_test(message_decode__refuses_kinds_and_bits_that_do_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
