/* SPDX-License-Identifier: BSD-3-Clause */
/* test_byte_ring.c - tests of pmd-glue/byte_ring.c. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pmd-glue/byte_ring.h>

#define SIZE    4096
#define NUMBERS 200000u

static void byte_ring_put__is_not_seen_before_it_is_published(void **state)
{
	struct byte_ring ring;
	uint64_t middle;
	char text[4] = "";

	(void)state;
	assert_int_equal(byte_ring_open(&ring, SIZE), 0);
	byte_ring_put(&ring, "ab", 2);
	middle = ring.at;
	byte_ring_put(&ring, "cd", 2);
	assert_int_equal(byte_ring_readable(&ring), 0);
	byte_ring_publish(&ring, middle);
	assert_int_equal(byte_ring_readable(&ring), 2);
	/* Records after the position are forgotten. */
	byte_ring_put(&ring, "x", 1);
	byte_ring_publish(&ring, ring.at);
	assert_int_equal(byte_ring_readable(&ring), 3);
	byte_ring_peek(&ring, 0, text, 3);
	assert_string_equal(text, "abx");
	byte_ring_close(&ring);
}

static void byte_ring_room__counts_what_the_reader_has_taken(void **state)
{
	static const uint8_t bytes[SIZE];
	struct byte_ring ring;

	(void)state;
	assert_int_equal(byte_ring_open(&ring, SIZE), 0);
	assert_true(byte_ring_room(&ring, SIZE));
	assert_false(byte_ring_room(&ring, SIZE + 1));
	byte_ring_put(&ring, bytes, SIZE - 8);
	assert_true(byte_ring_room(&ring, 8));
	assert_false(byte_ring_room(&ring, 9));
	byte_ring_publish(&ring, ring.at);
	byte_ring_take(&ring, 100);
	assert_true(byte_ring_room(&ring, 108));
	assert_false(byte_ring_room(&ring, 109));
	byte_ring_close(&ring);
}

static void byte_ring_peek__joins_what_lies_at_both_ends(void **state)
{
	uint8_t in[1000], out[1000];
	struct byte_ring ring;

	(void)state;
	assert_int_equal(byte_ring_open(&ring, SIZE), 0);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned n = 0; n < sizeof(in); n++)
			in[n] = (uint8_t)(round + n);
		assert_true(byte_ring_room(&ring, sizeof(in)));
		byte_ring_put(&ring, in, sizeof(in));
		byte_ring_publish(&ring, ring.at);
		byte_ring_peek(&ring, 10, out, sizeof(out) - 10);
		assert_memory_equal(in + 10, out, sizeof(out) - 10);
		byte_ring_take(&ring, sizeof(in));
	}
	byte_ring_close(&ring);
}

/* Numbers, some of which are taken back. */
static void *write_numbers(void *context)
{
	struct byte_ring *ring = context;

	for (uint32_t n = 0; n < NUMBERS; n++) {
		uint64_t before;

		while (!byte_ring_room(ring, 2 * sizeof(n)))
			sched_yield();
		before = ring->at;
		byte_ring_put(ring, &n, sizeof(n));
		if (n % 3 == 0)
			byte_ring_publish(ring, before);
		else
			byte_ring_publish(ring, ring->at);
	}
	return NULL;
}

static void byte_ring__carries_everything_in_order_between_two_threads(void **state)
{
	struct byte_ring ring;
	pthread_t writer;

	(void)state;
	assert_int_equal(byte_ring_open(&ring, SIZE), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_numbers, &ring), 0);
	for (uint32_t n = 0; n < NUMBERS; n++) {
		uint32_t number;

		if (n % 3 == 0)
			continue;
		while (byte_ring_readable(&ring) < sizeof(number))
			sched_yield();
		byte_ring_peek(&ring, 0, &number, sizeof(number));
		assert_int_equal(number, n);
		byte_ring_take(&ring, sizeof(number));
	}
	pthread_join(writer, NULL);
	assert_int_equal(byte_ring_readable(&ring), 0);
	byte_ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(byte_ring_put__is_not_seen_before_it_is_published),
		cmocka_unit_test(byte_ring_room__counts_what_the_reader_has_taken),
		cmocka_unit_test(byte_ring_peek__joins_what_lies_at_both_ends),
		cmocka_unit_test(byte_ring__carries_everything_in_order_between_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
