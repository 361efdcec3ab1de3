/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ring.c - rings between threads; built for a race detector as well. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <base/random.h>
#include <base/ring.h>

#define PRODUCERS 3
#define EACH      30000 /* elements of a producer, */
#define LEAST     100   /* or so many at least, when its time is over */
#define TIME      5 /* s: on a busy machine each turn of a small ring takes a turn of all others */
#define SMALL     8 /* a ring that is full most of the time */

struct element {
	uint32_t producer;
	uint32_t number;
	uint32_t *payload; /* written by the producer before it put the element */
	uint8_t rest[RING_BYTES - 16];
};
static_assert(sizeof(struct element) == RING_BYTES, "a line");

/* What may be put, and what is taken: the first line, and further ones. */
struct lines {
	struct element first;
	uint8_t further[RING_LINES - 1][RING_BYTES];
};
static_assert(sizeof(struct lines) == RING_LINES * RING_BYTES, "an element");

static struct ring *ring_new(uint32_t count, struct ring_reader *reader)
{
	size_t size = ring_size(count);
	struct ring *ring = aligned_alloc(RING_LINE, size);

	assert_non_null(ring);
	memset(ring, 0, size);
	ring_init(ring, count);
	ring_reader_init(reader, ring);
	return ring;
}

static bool put(struct ring *ring, uint32_t number)
{
	struct element element = {.number = number};

	return ring_put(ring, &element);
}

/* The number of the next element; -1: there is none. */
static int64_t take(struct ring_reader *reader)
{
	struct lines element;

	return ring_take(reader, &element) ? (int64_t)element.first.number : -1;
}

/* Of an element, other bytes for each number and line. */
static void lines_fill(struct lines *element, uint32_t number)
{
	memset(element, 0, sizeof(*element));
	element->first.number = number;
	for (unsigned i = 0; i < RING_LINES - 1; i++)
		for (unsigned b = 0; b < RING_BYTES; b++)
			element->further[i][b] = (uint8_t)random_mix(number * 256 + i * 64 + b);
}

static bool lines_put(struct ring *ring, uint32_t number, unsigned lines)
{
	struct lines element;

	lines_fill(&element, number);
	return ring_put_lines(ring, &element, lines);
}

/* The next element is this one, of so many lines; what is behind them stays untouched. */
static void lines_check(struct ring_reader *reader, uint32_t number, unsigned lines)
{
	struct lines element, wanted;

	memset(&element, 0x5a, sizeof(element));
	memset(&wanted, 0x5a, sizeof(wanted));
	assert_int_equal(ring_take(reader, &element), lines);
	assert_int_equal(element.first.number, number);
	memcpy(&wanted, &element, RING_BYTES);
	for (unsigned i = 1; i < lines; i++)
		for (unsigned b = 0; b < RING_BYTES; b++)
			wanted.further[i - 1][b] =
				(uint8_t)random_mix(number * 256 + (i - 1) * 64 + b);
	assert_memory_equal(&element, &wanted, sizeof(element));
}

static void ring_size__is_that_of_powers_of_two(void **state)
{
	(void)state;
	assert_int_equal(ring_size(0), 0);
	assert_int_equal(ring_size(3), 0);
	assert_int_equal(ring_size(UINT32_MAX), 0);
	assert_int_equal(ring_size(4), sizeof(struct ring) + 4 * RING_LINE);
}

static void ring_put__takes_exactly_count_elements(void **state)
{
	static const uint32_t counts[] = {1, 2, 8, 128};

	(void)state;
	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct ring_reader reader;
		struct ring *ring = ring_new(counts[c], &reader);

		for (unsigned round = 0; round < 3; round++) {
			for (uint32_t i = 0; i < counts[c]; i++)
				assert_true(put(ring, i));
			assert_false(put(ring, counts[c]));
			for (uint32_t i = 0; i < counts[c]; i++)
				assert_int_equal(take(&reader), i);
			assert_int_equal(take(&reader), -1);
			assert_true(ring_settled(&reader));
		}
		free(ring);
	}
}

static void ring_empty__is_true_only_when_all_was_taken(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(8, &reader);

	(void)state;
	assert_true(ring_empty(&reader));
	assert_true(put(ring, 1));
	assert_false(ring_empty(&reader));
	assert_int_equal(take(&reader), 1);
	assert_true(ring_empty(&reader));
	free(ring);
}

/* Elements of all lengths from all positions of the ring, so that some need padding of 1 to 3
 * lines. */
static void ring_put_lines__keeps_length_bytes_and_order(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(16, &reader);
	uint64_t seed = 5;
	uint32_t first = 0, next = 0;
	uint8_t lengths[16];
	unsigned padded = 0;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		unsigned lines = 1 + (unsigned)(random_next(&seed) % RING_LINES);
		uint64_t before = atomic_load(&ring->tail);

		if (lines == 1 ? put(ring, next) : lines_put(ring, next, lines)) {
			padded += atomic_load(&ring->tail) - before != lines;
			lengths[next++ % 16] = (uint8_t)lines;
		} else {
			/* full, for this length and its padding */
			assert_true(ring_count(&reader) + 2 * lines - 1 > 16);
			assert_int_equal(atomic_load(&ring->tail), before);
		}
		for (unsigned n = (unsigned)(random_next(&seed) % 3); n > 0 && first != next;
			n--, first++)
			lines_check(&reader, first, lengths[first % 16]);
		assert_int_equal(ring_empty(&reader), first == next);
	}
	for (; first != next; first++)
		lines_check(&reader, first, lengths[first % 16]);
	assert_true(ring_empty(&reader));
	assert_true(ring_settled(&reader));
	assert_int_equal(ring_count(&reader), 0);
	assert_true(padded > 100);
	free(ring);
}

static void ring_put_lines__pads_to_the_rings_end(void **state)
{
	(void)state;
	for (unsigned lines = 1; lines <= RING_LINES; lines++)
		for (unsigned left = 1; left <= RING_LINES; left++) {
			struct ring_reader reader;
			struct ring *ring = ring_new(8, &reader);
			unsigned padding = left < lines ? left : 0;

			for (uint32_t i = left; i < 8; i++) {
				assert_true(put(ring, i));
				assert_int_equal(take(&reader), i);
			}
			assert_true(lines_put(ring, 100, lines));
			assert_int_equal(ring_count(&reader), padding + lines);
			for (uint32_t i = padding + lines; i < 8; i++)
				assert_true(put(ring, i));
			assert_false(put(ring, 8));
			lines_check(&reader, 100, lines);
			assert_int_equal(reader.position, 8 - left + padding + lines);
			for (uint32_t i = padding + lines; i < 8; i++)
				assert_int_equal(take(&reader), i);
			assert_int_equal(take(&reader), -1);
			assert_true(ring_settled(&reader));
			free(ring);
		}
}

/* The first half of a put, as of a thread that is preempted after it. */
static uint64_t put_begin(struct ring *ring)
{
	return atomic_fetch_add(&ring->tail, 1);
}

static void put_end(struct ring *ring, uint64_t position, uint32_t number)
{
	struct ring_slot *slot = &ring->slots[position & (ring->count - 1)];
	const struct element element = {.number = number};

	memcpy(slot->words, &element, sizeof(element));
	atomic_store(&slot->sequence, position + 1);
}

static void ring_put__does_not_wait_for_a_preempted_producer(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(64, &reader);
	uint64_t position = put_begin(ring);

	(void)state;
	for (uint32_t i = 1; i < 64; i++)
		assert_true(put(ring, i)); /* up to the last slot, without a wait */
	assert_false(put(ring, 64));
	assert_int_equal(take(&reader), -1);
	put_end(ring, position, 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(take(&reader), i);
	free(ring);
}

static void ring_settled__is_false_while_an_element_is_hidden(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(8, &reader);
	uint64_t first, second;

	(void)state;
	assert_true(ring_settled(&reader));
	assert_true(put(ring, 1));
	assert_int_equal(take(&reader), 1);
	assert_true(ring_settled(&reader));

	first = put_begin(ring);
	assert_true(ring_settled(&reader)); /* it hides nothing yet */
	assert_true(put(ring, 3));
	assert_false(ring_settled(&reader));
	second = put_begin(ring);
	assert_true(put(ring, 5));
	put_end(ring, first, 2);
	assert_int_equal(take(&reader), 2);
	assert_int_equal(take(&reader), 3);
	assert_int_equal(take(&reader), -1);
	assert_false(ring_settled(&reader)); /* 5 is hidden still */
	put_end(ring, second, 4);
	assert_int_equal(take(&reader), 4);
	assert_int_equal(take(&reader), 5);
	assert_true(ring_settled(&reader));
	free(ring);
}

/* A producer of three lines that is preempted before its first word, and between that and the last
 * one. */
static void ring_settled__holds_for_elements_of_several_lines(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(16, &reader);
	uint64_t position = atomic_fetch_add(&ring->tail, 3);
	struct lines element;

	(void)state;
	assert_true(ring_settled(&reader));
	assert_true(lines_put(ring, 2, 4)); /* follows the unwritten one, and says so */
	assert_false(ring_settled(&reader));
	assert_true(lines_put(ring, 3, 2)); /* follows a written one: its word is enough */
	assert_int_equal(atomic_load(&ring->hidden), position + 7);
	assert_int_equal(take(&reader), -1);

	lines_fill(&element, 1);
	for (unsigned i = 0; i < 3; i++)
		memcpy(ring->slots[position + i].words, (const char *)&element + i * RING_BYTES,
			RING_BYTES);
	atomic_store(&ring->slots[position].sequence, position + 3);
	assert_false(ring_settled(&reader));
	lines_check(&reader, 1, 3); /* the last line's word is not waited for */
	lines_check(&reader, 2, 4);
	assert_true(ring_settled(&reader));
	lines_check(&reader, 3, 2);
	assert_int_equal(take(&reader), -1);
	assert_true(ring_settled(&reader));
	free(ring);
}

static void ring_settled__is_false_once_too_often_behind_a_missing_last_word(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(8, &reader);
	uint64_t end = atomic_fetch_add(&ring->tail, 2) + 2;

	(void)state;
	memset(ring->slots[0].words, 0, sizeof(ring->slots[0].words));
	atomic_store(&ring->slots[0].sequence, end);
	assert_true(put(ring, 7));
	assert_false(ring_settled(&reader)); /* although both can be seen */
	assert_int_equal(take(&reader), 0);
	assert_int_equal(take(&reader), 7);
	assert_true(ring_settled(&reader));
	/* Slot 1, whose last word is still missing, is used again, with a greater word. */
	for (uint32_t i = 0; i < 8; i++)
		assert_true(put(ring, i));
	assert_int_equal(atomic_load(&ring->slots[1].sequence), 8 + end);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(take(&reader), i);
	assert_true(ring_settled(&reader));
	free(ring);
}

/* Contents that a producer's process may leave behind, or write on purpose. */
static void ring_take__stays_within_the_ring_whatever_is_written_there(void **state)
{
	struct ring_reader reader;
	struct ring *ring = ring_new(4, &reader);

	(void)state;
	memset(&ring->tail, 0xff, sizeof(ring->tail));
	memset(&ring->head_seen, 0xff, sizeof(ring->head_seen));
	memset(&ring->hidden, 0xff, sizeof(ring->hidden));
	memset(&ring->count, 0xff, sizeof(ring->count));
	memset(&ring->head, 0xff, sizeof(ring->head));
	for (unsigned i = 0; i < 4; i++)
		memset(&ring->slots[i], (int)i, sizeof(ring->slots[i]));
	for (unsigned i = 0; i < 8; i++)
		(void)take(&reader);
	for (uint64_t position = 0; position < 4; position++)
		for (uint64_t beyond = 0; beyond < 16; beyond++) {
			reader.position = position;
			reader.next = &ring->slots[position];
			atomic_store(&reader.next->sequence, position + beyond);
			(void)take(&reader);
			assert_true(reader.position - position <= 4 + RING_LINES);
		}
	assert_false(ring_settled(&reader));
	free(ring);
}

/* --- many threads --- */

static struct ring *shared;
static uint32_t payloads[PRODUCERS][EACH];
static uint32_t made[PRODUCERS]; /* elements, when it is done */
static uint32_t producers_done;
static time_t end;
static unsigned longest; /* lines of an element */

static unsigned lines_of(uint32_t producer, uint32_t number)
{
	return 1 + (unsigned)(random_mix((uint64_t)producer << 32 | number) % longest);
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static bool goes_on(uint32_t count, uint32_t all)
{
	return count < all && (count < LEAST || seconds() < end);
}

static void *produce(void *argument)
{
	uint32_t producer = (uint32_t)(uintptr_t)argument;
	uint32_t i;

	for (i = 0; goes_on(i, EACH); i++) {
		unsigned lines = lines_of(producer, i);
		struct lines element;

		memset(&element, (int)(producer + i), sizeof(element));
		element.first.producer = producer;
		element.first.number = i;
		element.first.payload = &payloads[producer][i];
		payloads[producer][i] = producer ^ i;
		while (!(lines == 1 ? ring_put(shared, &element)
				    : ring_put_lines(shared, &element, lines)))
			sched_yield();
	}
	made[producer] = i;
	__atomic_add_fetch(&producers_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void element_check(const struct lines *whole, unsigned lines, uint32_t *next)
{
	const struct element *element = &whole->first;

	assert_true(element->producer < PRODUCERS);
	assert_int_equal(element->number, next[element->producer]);
	next[element->producer]++;
	for (unsigned i = 0; i < sizeof(element->rest); i++)
		assert_int_equal(element->rest[i], (uint8_t)(element->producer + element->number));
	assert_int_equal(lines, lines_of(element->producer, element->number));
	for (unsigned i = 0; i + 1 < lines; i++)
		for (unsigned b = 0; b < RING_BYTES; b++)
			assert_int_equal(whole->further[i][b], element->rest[0]);
	assert_int_equal(*element->payload, element->producer ^ element->number);
}

static void producers_start(pthread_t *threads, unsigned count)
{
	producers_done = 0;
	end = seconds() + TIME;
	for (uintptr_t i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
}

static unsigned producers_that_are_done(void)
{
	return __atomic_load_n(&producers_done, __ATOMIC_ACQUIRE);
}

static void run_threads(uint32_t count, unsigned lines_max)
{
	pthread_t threads[PRODUCERS];
	uint32_t next[PRODUCERS] = {0};
	struct ring_reader reader;
	struct lines element;
	unsigned lines;
	bool last;

	longest = lines_max;
	shared = ring_new(count, &reader);
	producers_start(threads, PRODUCERS);
	do {
		last = producers_that_are_done() == PRODUCERS;
		while ((lines = ring_take(&reader, &element)) != 0)
			element_check(&element, lines, next);
		sched_yield();
	} while (!last);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(next[i], made[i]);
	}
	assert_true(ring_empty(&reader));
	assert_true(ring_settled(&reader));
	free(shared);
}

static void ring_take__gets_every_element_once_and_in_order(void **state)
{
	(void)state;
	run_threads(1024, RING_LINES);
}

static void ring_take__from_a_full_ring(void **state)
{
	(void)state;
	run_threads(SMALL, RING_LINES);
	run_threads(SMALL / 4, 1);
}

/* ring_settled() while others put: what was put before by this thread is there once it says
 * true. */
static void ring_settled__means_that_own_elements_are_visible(void **state)
{
	pthread_t threads[PRODUCERS - 1];
	struct ring_reader reader;
	struct lines element;
	uint32_t seen = 0;

	(void)state;
	longest = RING_LINES;
	shared = ring_new(1024, &reader);
	producers_start(threads, PRODUCERS - 1);
	for (uint32_t i = 0; goes_on(i, EACH / 10); i++) {
		const struct lines own = {.first = {.producer = PRODUCERS - 1, .number = i}};

		while (!ring_put_lines(shared, &own, 1 + i % RING_LINES))
			if (ring_take(&reader, &element))
				seen += element.first.producer == PRODUCERS - 1;
		for (bool settled = false; !settled;) {
			while (ring_take(&reader, &element))
				seen += element.first.producer == PRODUCERS - 1;
			settled = ring_settled(&reader);
			if (!settled)
				sched_yield();
		}
		assert_int_equal(seen, i + 1);
	}
	while (producers_that_are_done() < PRODUCERS - 1)
		if (!ring_take(&reader, &element))
			sched_yield();
	for (unsigned i = 0; i + 1 < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_size__is_that_of_powers_of_two),
		cmocka_unit_test(ring_put__takes_exactly_count_elements),
		cmocka_unit_test(ring_empty__is_true_only_when_all_was_taken),
		cmocka_unit_test(ring_put__does_not_wait_for_a_preempted_producer),
		cmocka_unit_test(ring_settled__is_false_while_an_element_is_hidden),
		cmocka_unit_test(ring_put_lines__keeps_length_bytes_and_order),
		cmocka_unit_test(ring_put_lines__pads_to_the_rings_end),
		cmocka_unit_test(ring_settled__holds_for_elements_of_several_lines),
		cmocka_unit_test(ring_settled__is_false_once_too_often_behind_a_missing_last_word),
		cmocka_unit_test(ring_take__stays_within_the_ring_whatever_is_written_there),
		cmocka_unit_test(ring_take__gets_every_element_once_and_in_order),
		cmocka_unit_test(ring_take__from_a_full_ring),
		cmocka_unit_test(ring_settled__means_that_own_elements_are_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
