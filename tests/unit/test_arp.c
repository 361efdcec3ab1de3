/* SPDX-License-Identifier: BSD-3-Clause */
/* test_arp.c - ARP messages as bytes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <wire/arp.h>

static const struct arp question = {
	.sender = {2, 0, 0, 0, 0, 1},
	.sender_address = 0x0a000001,
	.target_address = 0x0a0000fe,
};
static const uint8_t bytes_of_question[ARP_BYTES] = {
	0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 254};

static void arp_write__a_question_is_these_bytes(void **state)
{
	static const uint8_t padding[ARP_FRAME - ARP_BYTES];
	uint8_t bytes[ARP_FRAME];

	(void)state;
	memset(bytes, 0xa5, sizeof(bytes));
	arp_write(bytes, &question);
	assert_memory_equal(bytes, bytes_of_question, ARP_BYTES);
	assert_memory_equal(bytes + ARP_BYTES, padding, sizeof(padding));
}

static void arp_read__reads_what_was_written(void **state)
{
	struct arp answer = {
		.answer = true,
		.sender = {2, 0, 0, 0, 0, 2},
		.target = {2, 0, 0, 0, 0, 1},
		.sender_address = 0xfffefdfc,
		.target_address = 0x80818283,
	};
	uint8_t bytes[ARP_FRAME];
	struct arp read;

	(void)state;
	arp_write(bytes, &answer);
	assert_true(arp_read(bytes, sizeof(bytes), answer.sender, &read));
	assert_true(read.answer);
	assert_memory_equal(read.sender, answer.sender, 6);
	assert_memory_equal(read.target, answer.target, 6);
	assert_int_equal(read.sender_address, answer.sender_address);
	assert_int_equal(read.target_address, answer.target_address);
}

static void arp_read__refuses_every_truncation(void **state)
{
	uint32_t length;
	struct arp read;

	(void)state;
	for (length = 0; length <= ARP_BYTES; length++) {
		uint8_t *copy = malloc(length + 1);

		memcpy(copy, bytes_of_question, length);
		assert_int_equal(
			arp_read(copy, length, question.sender, &read), length == ARP_BYTES);
		free(copy);
	}
}

static void arp_read__refuses_other_protocols_and_operations(void **state)
{
	uint8_t bytes[ARP_BYTES];
	struct arp read;
	unsigned i;

	(void)state;
	for (i = 0; i < 64; i++) {
		memcpy(bytes, bytes_of_question, sizeof(bytes));
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(arp_read(bytes, sizeof(bytes), question.sender, &read));
	}
}

static void arp_read__refuses_senders_that_no_host_is(void **state)
{
	static const uint8_t nobody[6];
	static const uint8_t group[6] = {3, 0, 0, 0, 0, 1};
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 9};
	uint8_t bytes[ARP_BYTES];
	struct arp read;

	(void)state;
	memcpy(bytes, bytes_of_question, sizeof(bytes));
	assert_false(arp_read(bytes, sizeof(bytes), other, &read));
	memcpy(bytes + 8, group, 6);
	assert_false(arp_read(bytes, sizeof(bytes), group, &read));
	memcpy(bytes + 8, nobody, 6);
	assert_false(arp_read(bytes, sizeof(bytes), nobody, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_write__a_question_is_these_bytes),
		cmocka_unit_test(arp_read__reads_what_was_written),
		cmocka_unit_test(arp_read__refuses_every_truncation),
		cmocka_unit_test(arp_read__refuses_other_protocols_and_operations),
		cmocka_unit_test(arp_read__refuses_senders_that_no_host_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
