/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pcapng.c - tests of pmd-glue/pcapng.c: blocks byte by byte. tests/apps reads whole files
 * with tshark. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pmd-glue/pcapng.h>

static const uint8_t address[6] = {2, 1, 2, 3, 4, 5};
static uint8_t bytes[PCAPNG_BLOCK_MAX];

static uint32_t word(size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static uint16_t half(size_t at)
{
	uint16_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static uint64_t number(size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* The value of an option, from where the options begin; its length must be that. */
static size_t option(size_t at, uint16_t code, uint16_t length)
{
	while (half(at) != code) {
		assert_int_not_equal(half(at), 0);
		at += 4 + (half(at + 2) + 3u) / 4 * 4;
	}
	assert_int_equal(half(at + 2), length);
	return at + 4;
}

static void framed(uint32_t type, size_t length)
{
	assert_int_equal(length % 4, 0);
	assert_int_equal(word(0), type);
	assert_int_equal(word(4), length);
	assert_int_equal(word(length - 4), length);
}

static void pcapng_section__says_version_and_byte_order(void **state)
{
	(void)state;
	framed(0x0a0d0d0a, pcapng_section(bytes, "a program"));
	assert_int_equal(word(8), 0x1a2b3c4d);
	assert_int_equal(half(12), 1);
	assert_int_equal(half(14), 0);
	assert_int_equal(number(16), UINT64_MAX);
	assert_memory_equal(bytes + option(24, 4, 9), "a program", 9);
}

static void pcapng_interface__says_what_it_is(void **state)
{
	struct pcapng_interface interface = {
		.name = "node:xy", .description = "interface 0", .address = address, .snap = 96};

	(void)state;
	framed(1, pcapng_interface(bytes, &interface));
	assert_int_equal(half(8), 1); /* Ethernet */
	assert_int_equal(word(12), 96);
	assert_memory_equal(bytes + option(16, 2, 7), "node:xy", 7);
	assert_memory_equal(bytes + option(16, 3, 11), "interface 0", 11);
	assert_memory_equal(bytes + option(16, 6, 6), address, 6);
	assert_int_equal(bytes[option(16, 9, 1)], 9);
}

static void pcapng_interface__cuts_names_that_are_too_long(void **state)
{
	static char endless[4096];
	struct pcapng_interface interface = {
		.name = endless, .description = endless, .address = address};

	(void)state;
	memset(endless, 'x', sizeof(endless) - 1);
	framed(1, pcapng_interface(bytes, &interface));
}

static void pcapng_packet__surrounds_a_frame_of_any_length(void **state)
{
	(void)state;
	for (uint32_t captured = 0; captured < 200; captured++) {
		struct pcapng_packet packet = {.interface = 3,
			.direction = captured % 2 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND,
			.time = UINT64_C(0x123456789abcdef0),
			.captured = captured,
			.length = captured + 1000};
		uint32_t padded = (captured + 3) / 4 * 4;
		size_t head, tail;

		memset(bytes, 0xff, sizeof(bytes));
		head = pcapng_packet_head(bytes, &packet);
		assert_int_equal(head, PCAPNG_PACKET_HEAD);
		tail = pcapng_packet_tail(bytes + head + captured, &packet);
		assert_true(tail <= PCAPNG_PACKET_TAIL);
		assert_int_equal(head + captured + tail, pcapng_packet_bytes(captured));
		framed(6, head + captured + tail);
		assert_int_equal(word(8), 3);
		assert_int_equal(word(12), 0x12345678);
		assert_int_equal(word(16), 0x9abcdef0);
		assert_int_equal(word(20), captured);
		assert_int_equal(word(24), captured + 1000);
		for (uint32_t n = captured; n < padded; n++)
			assert_int_equal(bytes[28 + n], 0);
		assert_int_equal(word(option(28 + padded, 2, 4)), captured % 2 ? 1 : 2);
	}
}

static void pcapng_statistics__counts(void **state)
{
	struct pcapng_statistics statistics = {.interface = 1,
		.started = UINT64_C(1) << 32,
		.ended = (UINT64_C(2) << 32) + 5,
		.received = 77,
		.dropped = 7};

	(void)state;
	framed(5, pcapng_statistics(bytes, &statistics));
	assert_int_equal(word(8), 1);
	assert_int_equal(word(12), 2);
	assert_int_equal(word(16), 5);
	assert_int_equal(word(option(20, 2, 8)), 1); /* the high word comes first */
	assert_int_equal(word(option(20, 3, 8) + 4), 5);
	assert_int_equal(number(option(20, 4, 8)), 77);
	assert_int_equal(number(option(20, 5, 8)), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pcapng_section__says_version_and_byte_order),
		cmocka_unit_test(pcapng_interface__says_what_it_is),
		cmocka_unit_test(pcapng_interface__cuts_names_that_are_too_long),
		cmocka_unit_test(pcapng_packet__surrounds_a_frame_of_any_length),
		cmocka_unit_test(pcapng_statistics__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
