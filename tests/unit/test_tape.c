/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tape.c - tests of pmd-glue/tape.c. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pmd-glue/tape.h>

#define SIZE    4096
#define NUMBERS 200000u

static void tape_put__is_not_seen_before_it_is_published(void **state)
{
	struct tape tape;
	uint64_t middle;
	char text[4] = "";

	(void)state;
	assert_int_equal(tape_open(&tape, SIZE), 0);
	tape_put(&tape, "ab", 2);
	middle = tape.at;
	tape_put(&tape, "cd", 2);
	assert_int_equal(tape_readable(&tape), 0);
	tape_publish(&tape, middle);
	assert_int_equal(tape_readable(&tape), 2);
	/* Records after the position are forgotten. */
	tape_put(&tape, "x", 1);
	tape_publish(&tape, tape.at);
	assert_int_equal(tape_readable(&tape), 3);
	tape_peek(&tape, 0, text, 3);
	assert_string_equal(text, "abx");
	tape_close(&tape);
}

static void tape_room__counts_what_the_reader_has_taken(void **state)
{
	static const uint8_t bytes[SIZE];
	struct tape tape;

	(void)state;
	assert_int_equal(tape_open(&tape, SIZE), 0);
	assert_true(tape_room(&tape, SIZE));
	assert_false(tape_room(&tape, SIZE + 1));
	tape_put(&tape, bytes, SIZE - 8);
	assert_true(tape_room(&tape, 8));
	assert_false(tape_room(&tape, 9));
	tape_publish(&tape, tape.at);
	tape_take(&tape, 100);
	assert_true(tape_room(&tape, 108));
	assert_false(tape_room(&tape, 109));
	tape_close(&tape);
}

static void tape_peek__joins_what_lies_at_both_ends(void **state)
{
	uint8_t in[1000], out[1000];
	struct tape tape;

	(void)state;
	assert_int_equal(tape_open(&tape, SIZE), 0);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned n = 0; n < sizeof(in); n++)
			in[n] = (uint8_t)(round + n);
		assert_true(tape_room(&tape, sizeof(in)));
		tape_put(&tape, in, sizeof(in));
		tape_publish(&tape, tape.at);
		tape_peek(&tape, 10, out, sizeof(out) - 10);
		assert_memory_equal(in + 10, out, sizeof(out) - 10);
		tape_take(&tape, sizeof(in));
	}
	tape_close(&tape);
}

/* Numbers, some of which are taken back. */
static void *write_numbers(void *context)
{
	struct tape *tape = context;

	for (uint32_t n = 0; n < NUMBERS; n++) {
		uint64_t before;

		while (!tape_room(tape, 2 * sizeof(n)))
			sched_yield();
		before = tape->at;
		tape_put(tape, &n, sizeof(n));
		if (n % 3 == 0)
			tape_publish(tape, before);
		else
			tape_publish(tape, tape->at);
	}
	return NULL;
}

static void tape__carries_everything_in_order_between_two_threads(void **state)
{
	struct tape tape;
	pthread_t writer;

	(void)state;
	assert_int_equal(tape_open(&tape, SIZE), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_numbers, &tape), 0);
	for (uint32_t n = 0; n < NUMBERS; n++) {
		uint32_t number;

		if (n % 3 == 0)
			continue;
		while (tape_readable(&tape) < sizeof(number))
			sched_yield();
		tape_peek(&tape, 0, &number, sizeof(number));
		assert_int_equal(number, n);
		tape_take(&tape, sizeof(number));
	}
	pthread_join(writer, NULL);
	assert_int_equal(tape_readable(&tape), 0);
	tape_close(&tape);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tape_put__is_not_seen_before_it_is_published),
		cmocka_unit_test(tape_room__counts_what_the_reader_has_taken),
		cmocka_unit_test(tape_peek__joins_what_lies_at_both_ends),
		cmocka_unit_test(tape__carries_everything_in_order_between_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
