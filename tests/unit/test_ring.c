/* test_ring.c - rings between threads; built for a race detector as well (tests/tsan.supp). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <rte_ring.h>

#include <base/ring.h>

#define ELEMENT   64
#define PRODUCERS 3
#define CONSUMERS 2
#define EACH      30000 /* elements of a producer */
#define SMALL     5     /* a ring that is full most of the time */
#define BURST     4

/* One element, as large as a command. */
struct element {
	uint32_t producer;
	uint32_t number;
	uint32_t *payload; /* written by the producer before it put the element */
	uint8_t rest[ELEMENT - 16];
};

static struct rte_ring *ring_new(uint32_t count, uint32_t element_size)
{
	size_t size = ring_size(count, element_size);
	struct rte_ring *ring = aligned_alloc(64, (size + 63) / 64 * 64);

	assert_non_null(ring);
	memset(ring, 0, size);
	assert_int_equal(ring_init(ring, count), 0);
	return ring;
}

static void ring_size__refuses_what_is_out_of_range(void **state)
{
	(void)state;
	assert_int_equal(ring_size(0, ELEMENT), 0);
	assert_int_equal(ring_size(UINT32_MAX, ELEMENT), 0);
	assert_int_equal(ring_size(UINT32_C(1) << 31, ELEMENT), 0);
	assert_int_equal(ring_size(16, 0), 0);
	assert_int_equal(ring_size(16, 6), 0);
	assert_true(ring_size(16, 4) > 0);
	assert_true(ring_size(16, ELEMENT) >= 16 * ELEMENT);
}

static void ring_init__refuses_what_is_out_of_range(void **state)
{
	struct rte_ring *ring = ring_new(4, 4);

	(void)state;
	assert_int_equal(ring_init(ring, 0), -1);
	assert_int_equal(ring_init(ring, UINT32_MAX), -1);
	free(ring);
}

static void ring_put__takes_exactly_count_elements(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 7, 8, 100};

	(void)state;
	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct rte_ring *ring = ring_new(counts[c], 4);
		uint32_t element;

		for (element = 0; element < counts[c]; element++)
			assert_true(ring_put(ring, &element, 4));
		assert_false(ring_put(ring, &element, 4));
		for (uint32_t i = 0; i < counts[c]; i++) {
			assert_int_equal(ring_take(ring, &element, 4, 1), 1);
			assert_int_equal(element, i);
		}
		assert_int_equal(ring_take(ring, &element, 4, 1), 0);
		free(ring);
	}
}

static void ring_take__gives_what_there_is_up_to_count(void **state)
{
	struct rte_ring *ring = ring_new(8, 4);
	uint32_t elements[8];

	(void)state;
	assert_int_equal(ring_take(ring, elements, 4, 8), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(ring_put(ring, &i, 4));
	assert_int_equal(ring_take(ring, elements, 4, 2), 2);
	assert_int_equal(elements[1], 1);
	assert_int_equal(ring_take(ring, elements, 4, 8), 3);
	assert_int_equal(elements[2], 4);
	free(ring);
}

static void ring_empty__is_true_only_when_all_was_taken(void **state)
{
	struct rte_ring *ring = ring_new(8, ELEMENT);
	struct element element = {0};

	(void)state;
	assert_true(ring_empty(ring));
	assert_true(ring_put(ring, &element, ELEMENT));
	assert_false(ring_empty(ring));
	assert_int_equal(ring_take(ring, &element, ELEMENT, 1), 1);
	assert_true(ring_empty(ring));
	free(ring);
}

/* The first half of an enqueue of one element, as of a thread that is preempted after it. */
static void enqueue_begin(struct rte_ring *ring)
{
	ring->rts_prod.head.val.cnt++;
	ring->rts_prod.head.val.pos++;
}

static void enqueue_end(struct rte_ring *ring)
{
	__rte_ring_rts_update_tail(&ring->rts_prod);
}

static void ring_put__does_not_wait_for_a_preempted_producer(void **state)
{
	struct rte_ring *ring = ring_new(64, 4);
	uint32_t elements[64];
	uint32_t i;

	(void)state;
	enqueue_begin(ring);
	for (i = 1; i < 64; i++)
		assert_true(ring_put(ring, &i, 4)); /* up to the last slot, without a wait */
	assert_false(ring_put(ring, &i, 4));
	assert_int_equal(ring_take(ring, elements, 4, 64), 0);
	enqueue_end(ring);
	assert_int_equal(ring_take(ring, elements, 4, 64), 64);
	assert_int_equal(elements[63], 63);
	free(ring);
}

static void ring_settled__is_false_while_an_enqueue_is_under_way(void **state)
{
	struct rte_ring *ring = ring_new(8, 4);
	uint32_t element = 1;

	(void)state;
	assert_true(ring_settled(ring));
	assert_true(ring_put(ring, &element, 4));
	assert_true(ring_settled(ring));
	enqueue_begin(ring);
	assert_false(ring_settled(ring));
	assert_true(ring_put(ring, &element, 4));
	assert_false(ring_settled(ring));
	enqueue_end(ring);
	assert_true(ring_settled(ring));
	free(ring);
}

/* --- many threads --- */

static struct rte_ring *shared;
static uint32_t payloads[PRODUCERS][EACH];
static uint32_t takes[PRODUCERS][EACH]; /* how often each was taken */
static uint32_t taken_total;
static uint32_t producers_done;

static void *produce(void *argument)
{
	uint32_t producer = (uint32_t)(uintptr_t)argument;

	for (uint32_t i = 0; i < EACH; i++) {
		struct element element = {producer, i, &payloads[producer][i], {0}};

		memset(element.rest, (int)(producer + i), sizeof(element.rest));
		payloads[producer][i] = producer ^ i;
		while (!ring_put(shared, &element, ELEMENT))
			sched_yield();
	}
	__atomic_add_fetch(&producers_done, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Returns NULL, or what was wrong. */
static const char *element_fault(const struct element *element, int64_t *newest)
{
	if (element->producer >= PRODUCERS || element->number >= EACH)
		return "an element that nobody put";
	if (newest[element->producer] >= (int64_t)element->number)
		return "an element out of order";
	newest[element->producer] = element->number;
	for (unsigned i = 0; i < sizeof(element->rest); i++)
		if (element->rest[i] != (uint8_t)(element->producer + element->number))
			return "a torn element";
	if (*element->payload != (element->producer ^ element->number))
		return "a payload that was not written yet";
	return NULL;
}

static void *consume(void *argument)
{
	int64_t newest[PRODUCERS];
	struct element elements[BURST];
	const char *fault = NULL;

	(void)argument;
	memset(newest, 0xff, sizeof(newest));
	while (fault == NULL &&
		__atomic_load_n(&taken_total, __ATOMIC_RELAXED) < PRODUCERS * EACH) {
		unsigned count = ring_take(shared, elements, ELEMENT, BURST);

		if (count == 0)
			sched_yield();
		for (unsigned i = 0; i < count && fault == NULL; i++) {
			fault = element_fault(&elements[i], newest);
			if (fault == NULL)
				takes[elements[i].producer]
				     [elements[i].number]++; /* its only taker writes it */
		}
		__atomic_add_fetch(&taken_total, count, __ATOMIC_RELAXED);
	}
	/* Let the others end as well. */
	if (fault != NULL)
		__atomic_store_n(&taken_total, PRODUCERS * EACH, __ATOMIC_RELAXED);
	return (void *)(uintptr_t)fault;
}

static void run_threads(uint32_t ring_count, unsigned consumers)
{
	pthread_t threads[PRODUCERS + CONSUMERS];
	unsigned count = 0;

	shared = ring_new(ring_count, ELEMENT);
	memset(takes, 0, sizeof(takes));
	memset(payloads, 0, sizeof(payloads));
	taken_total = 0;
	producers_done = 0;
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[count++], NULL, produce, (void *)i), 0);
	for (unsigned i = 0; i < consumers; i++)
		assert_int_equal(pthread_create(&threads[count++], NULL, consume, NULL), 0);
	while (count > 0) {
		void *fault = NULL;

		pthread_join(threads[--count], &fault);
		if (fault != NULL)
			fail_msg("%s", (const char *)fault);
	}
	assert_int_equal(producers_done, PRODUCERS);
	assert_true(ring_empty(shared));
	assert_true(ring_settled(shared));
	for (unsigned p = 0; p < PRODUCERS; p++)
		for (unsigned i = 0; i < EACH; i++)
			assert_int_equal(takes[p][i], 1);
	free(shared);
}

static void ring_take__by_one_thread_gets_every_element_once_and_in_order(void **state)
{
	(void)state;
	run_threads(1024, 1);
}

static void ring_take__by_one_thread_from_a_full_ring(void **state)
{
	(void)state;
	run_threads(SMALL, 1);
}

static void ring_take__by_several_threads(void **state)
{
	(void)state;
	run_threads(256, CONSUMERS);
}

static void ring_take__by_several_threads_from_a_full_ring(void **state)
{
	(void)state;
	run_threads(SMALL, CONSUMERS);
}

/* ring_settled() while others put: what was put before by this thread is there once it says true.
 */
static void ring_settled__means_that_own_elements_are_visible(void **state)
{
	pthread_t threads[PRODUCERS - 1];
	uint32_t seen = 0;

	(void)state;
	shared = ring_new(1024, ELEMENT);
	for (uintptr_t i = 0; i + 1 < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	for (uint32_t i = 0; i < EACH / 10; i++) {
		struct element element = {PRODUCERS - 1, i, NULL, {0}};
		bool settled = false;

		while (!ring_put(shared, &element, ELEMENT))
			if (ring_take(shared, &element, ELEMENT, 1) == 1) {
				seen += element.producer == PRODUCERS - 1;
				element = (struct element){PRODUCERS - 1, i, NULL, {0}};
			}
		while (seen <= i) {
			settled = settled || ring_settled(shared);
			if (ring_take(shared, &element, ELEMENT, 1) == 1)
				seen += element.producer == PRODUCERS - 1;
			else if (settled)
				fail_msg("settled and empty, but element %u has not come", i);
			else
				sched_yield();
		}
	}
	for (unsigned i = 0; i + 1 < PRODUCERS; i++) {
		struct element element;

		while (__atomic_load_n(&producers_done, __ATOMIC_RELAXED) < PRODUCERS - 1)
			if (ring_take(shared, &element, ELEMENT, 1) == 0)
				sched_yield();
		pthread_join(threads[i], NULL);
	}
	free(shared);
}

static int threads_reset(void **state)
{
	(void)state;
	producers_done = 0;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_size__refuses_what_is_out_of_range),
		cmocka_unit_test(ring_init__refuses_what_is_out_of_range),
		cmocka_unit_test(ring_put__takes_exactly_count_elements),
		cmocka_unit_test(ring_take__gives_what_there_is_up_to_count),
		cmocka_unit_test(ring_empty__is_true_only_when_all_was_taken),
		cmocka_unit_test(ring_put__does_not_wait_for_a_preempted_producer),
		cmocka_unit_test(ring_settled__is_false_while_an_enqueue_is_under_way),
		cmocka_unit_test(ring_take__by_one_thread_gets_every_element_once_and_in_order),
		cmocka_unit_test(ring_take__by_one_thread_from_a_full_ring),
		cmocka_unit_test(ring_take__by_several_threads),
		cmocka_unit_test(ring_take__by_several_threads_from_a_full_ring),
		cmocka_unit_test_setup(
			ring_settled__means_that_own_elements_are_visible, threads_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
