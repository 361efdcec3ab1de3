/* queue.h - event queues: rings that the poll core alone writes and any number of threads read, without a lock.
 *
 * Hand-over of one event:
 *
 *     poll core                                     reader
 *     tail - head_seen < count?
 *     words of the slot           (relaxed)
 *     first word = tail's         (release A)  -->  first word == head's?     (acquire A)
 *     tail++                                        copy words                (relaxed)
 *                                 <-- (B acquire)   head: h -> h + 1          (compare-and-swap, release B)
 *
 * Q1. A slot is written only after head has passed its last event (B), so a reader whose compare-and-swap succeeds has copied
 *     an event that nobody was writing. One whose compare-and-swap fails throws its copy away.
 *     The poll core need not look at head for every event: head only grows, so one that it saw before is as good until the queue
 *     seems full (head_seen).
 * Q2. Without A a reader could see the old words; without B the poll core could overwrite words still being copied.
 * Q3. A queue may be freed, and its memory and its index be used again, while a reader is on its way. So closing a queue moves head
 *     to a position that no reader has seen, and the next life goes on from there: the compare-and-swap of a reader of an
 *     earlier life fails. A reader looks at the gate after head, so that a head of a later life never goes with its own gate.
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <base/handle.h>
#include <engine/segment.h>

enum queue_answer {
	QUEUE_EVENT,
	QUEUE_EVENT_AFTER_GAP,
	QUEUE_EMPTY,
	QUEUE_GONE,
	QUEUE_CONTENDED /* another reader was faster: try again */
};

/* Reader. Copies the next event of a queue to `to` and removes it from the queue; any thread. queue: of the
 * handle whose generation this is. copy(slot, first word, to) reads the slot's words, relaxed; what it copied means something only if the answer is an
 * event. */
static inline __attribute__((always_inline)) enum queue_answer queue_try(struct segment *segment, struct queue *queue,
	uint32_t generation, void (*copy)(const struct event_slot *slot, uint64_t first, void *to), void *to)
{
	/* Acquire, before the gate: Q3, pairs with C. */
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
	const struct event_slot *slot;
	uint64_t first;

	if (!gate_is(atomic_load_explicit(&queue->gate, memory_order_acquire), generation))
		return QUEUE_GONE;
	slot = segment_slot(
		segment, atomic_load_explicit(&queue->slots, memory_order_relaxed), head);
	/* Pairs with A. Another value: not written yet, or taken by another reader since head was read. */
	first = atomic_load_explicit(&slot->words[EVENT_FIRST], memory_order_acquire);
	if ((uint32_t)first != slot_word(head))
		return atomic_load_explicit(&queue->head, memory_order_relaxed) == head ? QUEUE_EMPTY
											: QUEUE_CONTENDED;
	copy(slot, first, to);
	/* Pairs with B. */
	if (!atomic_compare_exchange_strong_explicit(
		    &queue->head, &head, head + 1, memory_order_acq_rel, memory_order_relaxed))
		return QUEUE_CONTENDED;
	return first & (uint64_t)EVENT_AFTER_GAP << EVENT_FLAGS_AT ? QUEUE_EVENT_AFTER_GAP : QUEUE_EVENT;
}

/* The same until no other reader is faster. */
static inline __attribute__((always_inline)) enum queue_answer queue_take(struct segment *segment, struct queue *queue,
	uint32_t generation, void (*copy)(const struct event_slot *slot, uint64_t first, void *to), void *to)
{
	enum queue_answer answer;

	do
		answer = queue_try(segment, queue, generation, copy, to);
	while (answer == QUEUE_CONTENDED);
	return answer;
}

/* Application, before the handle exists: makes a queue of count events in the event memory at `slots`, which is
 * queue_bytes(count) zeroed bytes. */
uint64_t queue_bytes(uint64_t count); /* 0: too many */
uint64_t queue_slots(const struct queue *queue); /* where it was given memory */
void queue_init(struct segment *segment, uint32_t index, uint32_t generation, uint64_t count, uint64_t slots);

/* Poll core, all below. */

/* NULL: 0, stale or not a queue. */
static inline struct queue *queue_find(struct segment *segment, uint32_t interface, uint64_t handle)
{
	uint32_t index = handle_index(handle);
	struct queue *queue;

	if (handle_kind(handle) != HANDLE_QUEUE || handle_interface(handle) != interface ||
		index >= segment->limits.queues)
		return NULL;
	queue = segment_queue(segment, index);
	if (!gate_is(atomic_load_explicit(&queue->gate, memory_order_acquire), handle_generation(handle)))
		return NULL;
	return queue;
}

bool queue_is_empty(const struct queue *queue);

/* Is there no room for another event? Readers' line is looked at only when there seems to be none. */
static inline bool queue_is_full(struct queue *queue)
{
	if (__builtin_expect(queue->tail - queue->head_seen < queue->count, 1))
		return false;
	queue->head_seen = atomic_load_explicit(&queue->head, memory_order_acquire); /* B */
	return queue->tail - queue->head_seen >= queue->count;
}

/* An event is logged in three steps: it claims a slot, the caller writes all words of the slot but the first (relaxed) and the
 * upper half of this one, and it is published. Several may be claimed before the first is published; they are published in the
 * order in which they were claimed. */
struct logging {
	struct event_slot *slot; /* NULL: there is no room, the event is lost */
	uint64_t first;          /* word of the slot */
	uint64_t sequence;       /* also of an event that is lost */
};

static inline struct logging queue_claim(struct segment *segment, struct queue *queue)
{
	struct logging logging = {.sequence = queue->sequence++};

	if (queue_is_full(queue)) {
		queue->gap = EVENT_AFTER_GAP;
		queue->lost++;
		return logging;
	}
	logging.slot = segment_slot(
		segment, atomic_load_explicit(&queue->slots, memory_order_relaxed), queue->tail);
	logging.first = slot_word(queue->tail) | (uint64_t)queue->gap << EVENT_FLAGS_AT;
	queue->gap = 0;
	queue->tail++;
	return logging;
}

/* Readers that sleep are woken by queue_ring(), later. */
static inline void queue_publish(const struct logging *logging)
{
	atomic_store_explicit(&logging->slot->words[EVENT_FIRST], logging->first, memory_order_release); /* A */
}

/* Wakes as many sleepers as there are events, at most. A barrier (base/barrier.h, light) lies between the last queue_publish() and
 * this. */
void queue_ring(struct queue *queue);
/* The queue is gone for good: handles are refused, waiters leave. */
void queue_close(struct queue *queue);

#endif
