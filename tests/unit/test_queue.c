/* SPDX-License-Identifier: BSD-3-Clause */
/* test_queue.c - event queues, by one thread and by several; built for a race detector as well. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <base/random.h>

#include "fake_transport.h"
#include "rig.h"
#include "../nap.h"

#define READERS 3
#define EVENTS  60000

static struct queue *queue_object(struct rig *rig, uint64_t handle)
{
	return segment_queue(rig->segment, handle_index(handle));
}

static enum queue_answer take(struct rig *rig, uint64_t handle, struct event *event)
{
	return rig_take(rig->segment, handle, event);
}

/* What the tests look at. */
static void event_write(struct logging *logging, const struct event *event)
{
	uint64_t words[EVENT_WORDS] = {
		[EVENT_MATCH_BITS] = event->match_bits,
		[EVENT_REQUESTED] = event->requested,
		[EVENT_REGION] = event->region,
		[EVENT_VALUE] = event->value,
		[EVENT_SEQUENCE] = logging->sequence,
	};

	logging->first |= (uint64_t)event->kind << EVENT_KIND_AT;
	for (unsigned i = 1; i < EVENT_WORDS; i++)
		atomic_store_explicit(&logging->slot->words[i], words[i], memory_order_relaxed);
}

static bool event_log(struct rig *rig, uint64_t handle, const struct event *event)
{
	struct logging logging = queue_claim(queue_object(rig, handle));

	if (!logging.slot)
		return false;
	event_write(&logging, event);
	queue_publish(&logging);
	return true;
}

/* START and its END. */
static bool pair_log(struct rig *rig, uint64_t handle, const struct event *event)
{
	struct logging logging = queue_claim_pair(queue_object(rig, handle));

	if (!logging.slot)
		return false;
	event_write(&logging, event);
	queue_publish(&logging);
	return true;
}

static bool log_value(struct rig *rig, uint64_t handle, uint64_t value)
{
	struct event event = {.kind = EVENT_ACK, .value = value};

	return event_log(rig, handle, &event);
}

/* As the engine logs a message that was here as a whole: returns how many of START and END were
 * stored. */
static unsigned whole_log(struct rig *rig, uint64_t handle, struct event event)
{
	event.kind = EVENT_PUT_START;
	if (pair_log(rig, handle, &event))
		return 2;
	if (!event_log(rig, handle, &event)) {
		event.kind = EVENT_PUT_END;
		assert_false(event_log(rig, handle, &event));
		return 0;
	}
	event.kind = EVENT_PUT_END;
	return 1 + event_log(rig, handle, &event);
}

static unsigned log_whole(struct rig *rig, uint64_t handle, uint64_t value)
{
	return whole_log(rig, handle, (struct event){.value = value});
}

static void expect(
	struct rig *rig, uint64_t handle, enum event_kind kind, uint64_t value, uint64_t sequence)
{
	struct event event;

	assert_int_equal(take(rig, handle, &event), QUEUE_EVENT);
	assert_int_equal(event.kind, kind);
	assert_int_equal(event.value, value);
	assert_int_equal(event.sequence, sequence);
}

static void queue_bytes__rounds_up_to_a_power_of_two(void **state)
{
	(void)state;
	assert_int_equal(queue_bytes(0), sizeof(struct event_slot));
	assert_int_equal(queue_bytes(1), sizeof(struct event_slot));
	assert_int_equal(queue_bytes(2), 2 * sizeof(struct event_slot));
	assert_int_equal(queue_bytes(5), 8 * sizeof(struct event_slot));
	assert_int_equal(queue_bytes(EVENTS_MAX), (uint64_t)EVENTS_MAX * sizeof(struct event_slot));
	assert_int_equal(queue_bytes((uint64_t)EVENTS_MAX + 1), 0);
	assert_int_equal(queue_bytes(UINT64_MAX), 0);
}

static void queue_take__of_a_new_queue_finds_it_empty(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	struct event event;

	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
	assert_int_equal(queue_used(queue_object(rig, queue)), 0);
}

static void queue_claim__keeps_order_and_counts_sequences_from_1(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 5);
	struct event event;
	uint64_t next = 1;

	/* Ten times round. */
	for (unsigned round = 0; round < 17; round++) {
		for (unsigned i = 0; i < 5; i++)
			assert_true(log_value(rig, queue, next + i));
		for (unsigned i = 0; i < 5; i++, next++) {
			assert_int_equal(take(rig, queue, &event), QUEUE_EVENT);
			assert_int_equal(event.value, next);
			assert_int_equal(event.sequence, next);
		}
		assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
	}
}

static void queue_claim__of_several_shows_none_before_it_is_published(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 2);
	struct logging first = queue_claim(queue_object(rig, queue)),
		       second = queue_claim(queue_object(rig, queue)),
		       third = queue_claim(queue_object(rig, queue));
	struct event event = {.kind = EVENT_PUT_START};

	assert_null(third.slot); /* claimed places are taken */
	event_write(&first, &event);
	event_write(&second, &event);
	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
	queue_publish(&first);
	assert_int_equal(take(rig, queue, &event), QUEUE_EVENT);
	assert_int_equal(event.sequence, 1);
	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
	queue_publish(&second);
	assert_int_equal(take(rig, queue, &event), QUEUE_EVENT);
	assert_int_equal(event.sequence, 2);
	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
}

static void queue_claim__loses_what_finds_no_room_and_says_so_on_the_next_event(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 3); /* in four slots: the count is the law */
	struct event event;

	for (uint64_t i = 1; i <= 3; i++)
		assert_true(log_value(rig, queue, i));
	assert_false(log_value(rig, queue, 4));
	assert_false(log_value(rig, queue, 5));
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(take(rig, queue, &event), QUEUE_EVENT);
		assert_int_equal(event.sequence, i);
	}
	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
	assert_true(log_value(rig, queue, 6));
	assert_true(log_value(rig, queue, 7));
	assert_int_equal(take(rig, queue, &event), QUEUE_EVENT_AFTER_GAP);
	assert_int_equal(event.value, 6);
	assert_int_equal(event.sequence, 6);
	assert_int_equal(take(rig, queue, &event), QUEUE_EVENT);
	assert_int_equal(event.value, 7);
}

static void queue_claim__gives_a_lost_event_its_sequence_all_the_same(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 1);
	struct logging lost;

	assert_true(log_value(rig, queue, 1));
	lost = queue_claim(queue_object(rig, queue));
	assert_null(lost.slot);
	assert_int_equal(lost.sequence, 2);
}

static void queue_claim_pair__stores_two_events_in_one_slot(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 6);
	const struct queue *queue = queue_object(rig, handle);
	struct event event;

	/* From every position. */
	for (uint64_t i = 0, next = 1; i < 40; i++, next += 5) {
		assert_int_equal(log_whole(rig, handle, i), 2);
		assert_true(log_value(rig, handle, i));
		assert_int_equal(log_whole(rig, handle, i + 1), 2);
		assert_int_equal(queue_used(queue), 5);
		expect(rig, handle, EVENT_PUT_START, i, next);
		assert_int_equal(queue_used(queue), 4);
		expect(rig, handle, EVENT_PUT_END, i, next + 1);
		assert_int_equal(queue_used(queue), 3);
		expect(rig, handle, EVENT_ACK, i, next + 2);
		expect(rig, handle, EVENT_PUT_START, i + 1, next + 3);
		expect(rig, handle, EVENT_PUT_END, i + 1, next + 4);
		assert_int_equal(queue_used(queue), 0);
		assert_int_equal(take(rig, handle, &event), QUEUE_EMPTY);
	}
}

static void queue_claim_pair__without_room_for_both_claims_nothing(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 3);
	struct event event = {.kind = EVENT_PUT_START};

	assert_int_equal(log_whole(rig, handle, 1), 2);
	assert_false(pair_log(rig, handle, &event));
	assert_int_equal(queue_object(rig, handle)->lost, 0);
	assert_int_equal(log_whole(rig, handle, 2), 1); /* START fits, END is lost */
	expect(rig, handle, EVENT_PUT_START, 1, 1);
	expect(rig, handle, EVENT_PUT_END, 1, 2);
	expect(rig, handle, EVENT_PUT_START, 2, 3);
	assert_int_equal(take(rig, handle, &event), QUEUE_EMPTY);
	assert_int_equal(log_whole(rig, handle, 3), 2);
	assert_int_equal(take(rig, handle, &event), QUEUE_EVENT_AFTER_GAP);
	assert_int_equal(event.kind, EVENT_PUT_START);
	assert_int_equal(event.sequence, 5);
	expect(rig, handle, EVENT_PUT_END, 3, 6); /* the gap was before START */
}

/* Q4. In a queue of 4 events there are 4 slots: END of a pair must give its one up. */
static void queue_make_room__finds_room_for_the_start_that_was_taken(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 4);
	uint64_t next = 1;

	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(log_whole(rig, handle, i), 2);
		assert_int_equal(log_whole(rig, handle, 100 + i), 2);
		expect(rig, handle, EVENT_PUT_START, i, next);
		assert_true(log_value(rig, handle, 200 + i));
		assert_false(log_value(rig, handle, 300));
		assert_int_equal(queue_used(queue_object(rig, handle)), 4);
		expect(rig, handle, EVENT_PUT_END, i, next + 1);
		expect(rig, handle, EVENT_PUT_START, 100 + i, next + 2);
		expect(rig, handle, EVENT_PUT_END, 100 + i, next + 3);
		expect(rig, handle, EVENT_ACK, 200 + i, next + 4);
		next += 6;
		/* On to another position, with the gap. */
		assert_true(log_value(rig, handle, 400));
		assert_int_equal(take(rig, handle, &(struct event){0}), QUEUE_EVENT_AFTER_GAP);
		next++;
	}
}

static void queue_of_0_events__loses_every_one(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 0);
	struct event event;

	assert_false(log_value(rig, queue, 1));
	assert_int_equal(take(rig, queue, &event), QUEUE_EMPTY);
}

static void queue_find__knows_only_living_queues_of_this_interface(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 1);
	uint32_t index = handle_index(queue), generation = handle_generation(queue);

	assert_ptr_equal(queue_find(rig->segment, queue), queue_object(rig, queue));
	assert_null(queue_find(rig->segment, 0));
	assert_null(queue_find(
		rig->segment, handle_make(HANDLE_QUEUE, RIG_INTERFACE + 1, index, generation)));
	assert_null(queue_find(
		rig->segment, handle_make(HANDLE_REGION, RIG_INTERFACE, index, generation)));
	assert_null(queue_find(
		rig->segment, handle_make(HANDLE_QUEUE, RIG_INTERFACE, index, generation + 1)));
	assert_null(queue_find(rig->segment,
		handle_make(HANDLE_QUEUE, RIG_INTERFACE, HANDLE_INDEX_MAX, generation)));
	queue_close(queue_object(rig, queue));
	assert_null(queue_find(rig->segment, queue));
}

static void queue_close__makes_its_handle_stale_also_when_the_place_is_used_again(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 4);
	struct event event;
	uint64_t next = handle_make(HANDLE_QUEUE, RIG_INTERFACE, handle_index(queue), 9999);

	assert_true(log_value(rig, queue, 1));
	queue_close(queue_object(rig, queue));
	assert_int_equal(take(rig, queue, &event), QUEUE_GONE);
	queue_init(rig->segment, next, 4, rig->segment->events + rig->events_used);
	assert_true(log_value(rig, next, 2));
	assert_int_equal(take(rig, queue, &event), QUEUE_GONE);
	assert_int_equal(take(rig, next, &event), QUEUE_EVENT);
	assert_int_equal(event.value, 2);
	assert_int_equal(event.sequence, 1);
	assert_int_equal(take(rig, next, &event), QUEUE_EMPTY);
}

/* Q3. A reader of the old life may still be about to move head from any position that it has seen.
 */
static void queue_close__leaves_no_position_to_a_reader_that_comes_late(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 4);
	struct queue *queue = queue_object(rig, handle);
	uint64_t seen;

	assert_true(log_value(rig, handle, 1));
	assert_true(log_value(rig, handle, 2));
	seen = 2 * queue->tail; /* the last one that a reader can have loaded */
	queue_close(queue);
	assert_true(atomic_load(&queue->head) > seen);
	queue_init(rig->segment,
		handle_make(HANDLE_QUEUE, RIG_INTERFACE, handle_index(handle), 9999), 4,
		queue_slots(queue));
	assert_true(atomic_load(&queue->head) > seen);
	assert_int_equal(queue_used(queue), 0);
}

static void queue_ring__rings_only_for_sleepers_and_only_with_events(void **state)
{
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 4);
	struct queue *queue = queue_object(rig, handle);

	assert_true(log_value(rig, handle, 1));
	queue_ring(queue);
	assert_int_equal(atomic_load(&queue->futex), 0);
	atomic_store(&queue->sleepers, 1);
	queue_ring(queue);
	assert_int_equal(atomic_load(&queue->futex), 1);
	rig_event(rig, handle, EVENT_ACK);
	queue_ring(queue);
	assert_int_equal(atomic_load(&queue->futex), 1);
	queue_close(queue);
	assert_int_equal(atomic_load(&queue->futex), 2);
}

#define CROWD_END 16

/* Several readers and one writer at work together. */
struct crowd {
	struct rig *rig;
	_Atomic uint64_t queue; /* the handle to read from */
	_Atomic bool stop;
	_Atomic uint8_t taken[EVENTS]; /* by value: how often; for every END, CROWD_END more */
	_Atomic uint32_t gaps, wrong;
};

static struct crowd crowd;

static void *crowd_read(void *argument)
{
	struct event event;
	uint64_t last = 0, last_queue = 0;

	(void)argument;
	for (;;) {
		bool stop = atomic_load(&crowd.stop);
		uint64_t queue = atomic_load(&crowd.queue);

		enum queue_answer answer = take(crowd.rig, queue, &event);

		if (answer == QUEUE_EMPTY || answer == QUEUE_GONE) {
			if (stop)
				return NULL;
			nap();
			continue;
		}
		/* Every word is of the one event, of the queue that was asked, and later than what
		 * this reader saw before. */
		if (event.value >= EVENTS || event.match_bits != ~event.value ||
			event.region != queue || event.requested != event.value * 3 ||
			(queue == last_queue && event.sequence <= last))
			atomic_fetch_add(&crowd.wrong, 1);
		else
			atomic_fetch_add(&crowd.taken[event.value],
				event.kind == EVENT_PUT_END ? CROWD_END : 1);
		if (answer == QUEUE_EVENT_AFTER_GAP)
			atomic_fetch_add(&crowd.gaps, 1);
		last = event.sequence;
		last_queue = queue;
	}
}

static void crowd_start(struct rig *rig, uint64_t queue, pthread_t *threads)
{
	memset(&crowd, 0, sizeof(crowd));
	crowd.rig = rig;
	crowd.queue = queue;
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_read, NULL), 0);
}

static void crowd_stop(pthread_t *threads)
{
	atomic_store(&crowd.stop, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
}

static struct event crowd_event(uint64_t value)
{
	return (struct event){.kind = EVENT_ACK,
		.value = value,
		.match_bits = ~value,
		.region = atomic_load(&crowd.queue),
		.requested = value * 3};
}

static bool crowd_log(uint64_t value)
{
	struct event event = crowd_event(value);

	return event_log(crowd.rig, event.region, &event);
}

static bool crowd_log_pair(uint64_t value)
{
	struct event event = crowd_event(value);

	event.kind = EVENT_PUT_START;
	return pair_log(crowd.rig, event.region, &event);
}

static void queue_take__by_many_threads_gets_each_event_exactly_once(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[READERS];
	struct queue *queue;

	crowd_start(rig, rig_queue(rig, 7), threads);
	queue = queue_object(rig, atomic_load(&crowd.queue));
	for (uint64_t i = 0; i < EVENTS; i++) {
		while (queue_used(queue) == 7)
			nap();
		assert_true(crowd_log(i));
	}
	crowd_stop(threads);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(crowd.gaps, 0);
	for (uint64_t i = 0; i < EVENTS; i++)
		assert_int_equal(crowd.taken[i], 1);
}

static void queue_take__by_many_threads_from_a_full_queue_misses_only_what_was_lost(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[READERS];
	bool *logged = calloc(EVENTS, sizeof(*logged));
	uint32_t gaps = 0;
	bool gap = false;

	crowd_start(rig, rig_queue(rig, 3), threads);
	for (uint64_t i = 0; i < EVENTS; i++) {
		logged[i] = crowd_log(i);
		if (logged[i] && gap)
			gaps++;
		gap = !logged[i];
		if (i % 64 == 0)
			nap();
	}
	crowd_stop(threads);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(crowd.gaps, gaps);
	for (uint64_t i = 0; i < EVENTS; i++)
		assert_int_equal(crowd.taken[i], logged[i]);
	free(logged);
}

/* Q5. With 64 events wanted there are 128 places and as many slots: the poll core writes the slot
 * that the oldest event had, which readers may be copying. */
static void queue_take_oldest__by_many_threads_misses_only_what_was_overwritten(void **state)
{
	uint64_t tiers, taken = 0;
	struct rig *space = rig_tiers(*state, false, &tiers);
	pthread_t threads[READERS];
	struct queue *queue;

	crowd_start(space, rig_queue(space, QUEUE_SPARE), threads);
	queue = queue_object(space, atomic_load(&crowd.queue));
	for (uint64_t i = 0; i < EVENTS; i++) {
		assert_true(crowd_log(i));
		if (i % 512 == 0)
			nap();
	}
	crowd_stop(threads);
	assert_int_equal(crowd.wrong, 0);
	for (uint64_t i = 0; i < EVENTS; i++) {
		assert_true(crowd.taken[i] <= 1);
		taken += crowd.taken[i];
	}
	assert_int_equal(taken + queue->lost, EVENTS);
	assert_int_equal(queue_used(queue), 0);
	assert_true(crowd.gaps <= queue->lost);
	assert_true(crowd.gaps > 0 || queue->lost == 0);
	rig_stop(*state);
	rig_space_free(space);
}

/* Queues come and go at one index, in the same memory, under readers that do not know. */
static void queue_close__under_readers_never_lets_one_take_from_another_life(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[READERS];
	uint64_t handle = rig_queue(rig, 8);
	uint64_t slots = queue_slots(queue_object(rig, handle));
	uint64_t value = 0;

	crowd_start(rig, handle, threads);
	while (value < EVENTS) {
		struct event_slot *slot = segment_at(rig->segment, slots);
		struct queue *queue = queue_object(rig, handle);

		for (unsigned i = 0; i < 3 && value < EVENTS; i++, value++)
			assert_true(crowd_log_pair(value));
		for (unsigned i = 0; i < 2 && value < EVENTS; i++, value++)
			assert_true(crowd_log(value));
		if (value % 24 == 0)
			nap();
		queue_close(queue);
		for (unsigned i = 0; i < 8; i++)
			atomic_store_explicit(&slot[i].words[EVENT_FIRST], 0, memory_order_relaxed);
		handle = handle_make(HANDLE_QUEUE, RIG_INTERFACE, handle_index(handle),
			segment_generation(rig->segment));
		queue_init(rig->segment, handle, 8, slots);
		assert_int_equal(queue_used(queue), 0);
		atomic_store(&crowd.queue, handle);
	}
	crowd_stop(threads);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(crowd.gaps, 0);
	/* Those of a queue that went are gone with it. */
	for (uint64_t i = 0; i < EVENTS; i++)
		assert_true(crowd.taken[i] == 0 || crowd.taken[i] == 1 ||
			    crowd.taken[i] == CROWD_END + 1);
}

/* What the writer knows of the events that the crowd shall take. */
struct ledger {
	uint8_t *stored; /* by value, as crowd.taken */
	uint32_t gaps;
	bool gap;
};

static void ledger_note(struct ledger *ledger, const struct event *event, bool stored)
{
	if (!stored) {
		ledger->gap = true;
		return;
	}
	ledger->gaps += ledger->gap;
	ledger->gap = false;
	ledger->stored[event->value] |= event->kind == EVENT_PUT_END ? CROWD_END : 1;
}

static uint64_t seed;

/* A single event, or START and END as the engine logs them. */
static void ledger_log(struct rig *rig, struct ledger *ledger, uint64_t value)
{
	uint64_t handle = atomic_load(&crowd.queue);
	struct event event = crowd_event(value);

	event.kind = random_next(&seed) % 3 != 0 ? EVENT_PUT_START : EVENT_ACK;
	if (event.kind == EVENT_PUT_START && pair_log(rig, handle, &event)) {
		ledger_note(ledger, &event, true);
		event.kind = EVENT_PUT_END;
		ledger_note(ledger, &event, true);
		return;
	}
	ledger_note(ledger, &event, event_log(rig, handle, &event));
	if (event.kind == EVENT_PUT_START) {
		event.kind = EVENT_PUT_END;
		ledger_note(ledger, &event, event_log(rig, handle, &event));
	}
}

static void queue_take__by_many_threads_of_pairs_gets_each_event_exactly_once(void **state)
{
	static const uint64_t counts[] = {1, 2, 3, 4, 8, 21};
	struct rig *rig = *state;
	pthread_t threads[READERS];
	struct ledger ledger = {.stored = calloc(EVENTS, 1)};

	seed = 1;
	for (unsigned round = 0; round < sizeof(counts) / sizeof(counts[0]); round++) {
		memset(ledger.stored, 0, EVENTS);
		ledger.gaps = 0;
		ledger.gap = false;
		crowd_start(rig, rig_queue(rig, counts[round]), threads);
		for (uint64_t value = 0; value < EVENTS; value++) {
			ledger_log(rig, &ledger, value);
			if (value % 16 == 0)
				nap();
		}
		crowd_stop(threads);
		assert_int_equal(crowd.wrong, 0);
		assert_int_equal(crowd.gaps, ledger.gaps);
		for (uint64_t i = 0; i < EVENTS; i++)
			assert_int_equal(crowd.taken[i], ledger.stored[i]);
	}
	free(ledger.stored);
}

/* Against a list of what should be in the queue, through several lives. */
static void queue_take__gives_what_a_plain_list_would(void **state)
{
	struct model {
		uint8_t kind;
		uint64_t value, sequence;
		bool gap;
	} model[16];
	struct rig *rig = *state;
	uint64_t handle = rig_queue(rig, 8), slots = queue_slots(queue_object(rig, handle));
	unsigned count = 8, used = 0;
	uint64_t sequence = 1;
	bool gap = false;
	struct event event;

	seed = 2;
	for (uint64_t value = 0; value < 300000; value++) {
		unsigned act = (unsigned)(random_next(&seed) % 1000);

		if (act < 10) {
			struct event_slot *slot = segment_at(rig->segment, slots);

			queue_close(queue_object(rig, handle));
			for (unsigned i = 0; i < 8; i++)
				atomic_store_explicit(&slot[i].words[0], 0, memory_order_relaxed);
			handle = handle_make(HANDLE_QUEUE, RIG_INTERFACE, handle_index(handle),
				segment_generation(rig->segment));
			count = (unsigned)(random_next(&seed) % 9);
			queue_init(rig->segment, handle, count, slots);
			used = 0;
			sequence = 1;
			gap = false;
		} else if (act < 400) {
			bool whole = act < 250;
			unsigned stored = whole ? log_whole(rig, handle, value)
						: log_value(rig, handle, value);

			for (unsigned i = 0; i < 1u + whole; i++, sequence++) {
				if (used == count) {
					gap = true;
					continue;
				}
				model[used++] = (struct model){
					.kind = (uint8_t)(whole ? EVENT_PUT_START + i : EVENT_ACK),
					.value = value,
					.sequence = sequence,
					.gap = gap,
				};
				gap = false;
				stored--;
			}
			assert_int_equal(stored, 0);
		} else {
			enum queue_answer answer = take(rig, handle, &event);

			if (used == 0) {
				assert_int_equal(answer, QUEUE_EMPTY);
				continue;
			}
			assert_int_equal(
				answer, model[0].gap ? QUEUE_EVENT_AFTER_GAP : QUEUE_EVENT);
			assert_int_equal(event.kind, model[0].kind);
			assert_int_equal(event.value, model[0].value);
			assert_int_equal(event.sequence, model[0].sequence);
			memmove(model, model + 1, --used * sizeof(model[0]));
		}
		assert_int_equal(queue_used(queue_object(rig, handle)), used);
	}
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_bytes__rounds_up_to_a_power_of_two),
		test(queue_take__of_a_new_queue_finds_it_empty),
		test(queue_claim__keeps_order_and_counts_sequences_from_1),
		test(queue_claim__of_several_shows_none_before_it_is_published),
		test(queue_claim__loses_what_finds_no_room_and_says_so_on_the_next_event),
		test(queue_claim__gives_a_lost_event_its_sequence_all_the_same),
		test(queue_claim_pair__stores_two_events_in_one_slot),
		test(queue_claim_pair__without_room_for_both_claims_nothing),
		test(queue_make_room__finds_room_for_the_start_that_was_taken),
		test(queue_of_0_events__loses_every_one),
		test(queue_find__knows_only_living_queues_of_this_interface),
		test(queue_close__makes_its_handle_stale_also_when_the_place_is_used_again),
		test(queue_close__leaves_no_position_to_a_reader_that_comes_late),
		test(queue_ring__rings_only_for_sleepers_and_only_with_events),
		test(queue_take__by_many_threads_gets_each_event_exactly_once),
		test(queue_take__by_many_threads_from_a_full_queue_misses_only_what_was_lost),
		test(queue_take_oldest__by_many_threads_misses_only_what_was_overwritten),
		test(queue_take__by_many_threads_of_pairs_gets_each_event_exactly_once),
		test(queue_take__gives_what_a_plain_list_would),
		test(queue_close__under_readers_never_lets_one_take_from_another_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
