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
#include <cmocka.h>

#include <base/ring.h>

#define PRODUCERS 3
#define EACH      30000 /* elements of a producer */
#define SMALL     4     /* a ring that is full most of the time */

struct element {
	uint32_t producer;
	uint32_t number;
	uint32_t *payload; /* written by the producer before it put the element */
	uint8_t rest[RING_BYTES - 16];
};
static_assert(sizeof(struct element) == RING_BYTES, "an element");

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
	struct element element;

	return ring_take(reader, &element) ? (int64_t)element.number : -1;
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

/* What a producer's process may leave behind, or write on purpose. */
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
	assert_false(ring_settled(&reader));
	free(ring);
}

/* --- many threads --- */

static struct ring *shared;
static uint32_t payloads[PRODUCERS][EACH];
static uint32_t producers_done;

static void *produce(void *argument)
{
	uint32_t producer = (uint32_t)(uintptr_t)argument;

	for (uint32_t i = 0; i < EACH; i++) {
		struct element element = {producer, i, &payloads[producer][i], {0}};

		memset(element.rest, (int)(producer + i), sizeof(element.rest));
		payloads[producer][i] = producer ^ i;
		while (!ring_put(shared, &element))
			sched_yield();
	}
	__atomic_add_fetch(&producers_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void element_check(const struct element *element, uint32_t *next)
{
	assert_true(element->producer < PRODUCERS);
	assert_int_equal(element->number, next[element->producer]);
	next[element->producer]++;
	for (unsigned i = 0; i < sizeof(element->rest); i++)
		assert_int_equal(element->rest[i], (uint8_t)(element->producer + element->number));
	assert_int_equal(*element->payload, element->producer ^ element->number);
}

static void run_threads(uint32_t count)
{
	pthread_t threads[PRODUCERS];
	uint32_t next[PRODUCERS] = {0};
	struct ring_reader reader;
	struct element element;

	shared = ring_new(count, &reader);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	for (uint32_t taken = 0; taken < PRODUCERS * EACH;)
		if (ring_take(&reader, &element)) {
			element_check(&element, next);
			taken++;
		} else {
			sched_yield();
		}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	assert_true(ring_empty(&reader));
	assert_true(ring_settled(&reader));
	free(shared);
}

static void ring_take__gets_every_element_once_and_in_order(void **state)
{
	(void)state;
	run_threads(1024);
}

static void ring_take__from_a_full_ring(void **state)
{
	(void)state;
	run_threads(SMALL);
}

/* ring_settled() while others put: what was put before by this thread is there once it says
 * true. */
static void ring_settled__means_that_own_elements_are_visible(void **state)
{
	pthread_t threads[PRODUCERS - 1];
	struct ring_reader reader;
	struct element element;
	uint32_t seen = 0;

	(void)state;
	shared = ring_new(1024, &reader);
	producers_done = 0;
	for (uintptr_t i = 0; i + 1 < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	for (uint32_t i = 0; i < EACH / 10; i++) {
		const struct element own = {.producer = PRODUCERS - 1, .number = i};

		while (!ring_put(shared, &own))
			if (ring_take(&reader, &element))
				seen += element.producer == PRODUCERS - 1;
		for (bool settled = false; !settled;) {
			while (ring_take(&reader, &element))
				seen += element.producer == PRODUCERS - 1;
			settled = ring_settled(&reader);
			if (!settled)
				sched_yield();
		}
		assert_int_equal(seen, i + 1);
	}
	while (__atomic_load_n(&producers_done, __ATOMIC_ACQUIRE) < PRODUCERS - 1)
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
		cmocka_unit_test(ring_take__stays_within_the_ring_whatever_is_written_there),
		cmocka_unit_test(ring_take__gets_every_element_once_and_in_order),
		cmocka_unit_test(ring_take__from_a_full_ring),
		cmocka_unit_test(ring_settled__means_that_own_elements_are_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
