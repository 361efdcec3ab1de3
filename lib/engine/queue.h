/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - event queues: rings that the poll core alone writes and any number of threads read,
 * without a lock.
 *
 * Hand-over of one event, p its position:
 *
 *     poll core                                     reader
 *     its slot is free (full_at)?
 *     words of the slot           (relaxed)
 *     first word = p's            (release A)  -->  first word == head's?     (acquire A)
 *     tail++                                        copy words                (relaxed)
 *                                 <-- (B acquire)   head: 2p -> 2p + 2        (release B)
 *
 * A pair, START and END of a message that was here as a whole, is one slot, that of START's
 * position, with a flag. END is told from the same words: its kind and its sequence are one more.
 * The first reader leaves the slot, the second frees it:
 *
 *     tail += 2                                     START         head: 2p     -> 2p + 1
 *                                                   END           head: 2p + 1 -> 2p + 4
 *
 * Q1. A slot is written only after head has passed its last event (B), so a reader whose
 *     compare-and-swap succeeds has copied an event that nobody was writing. One whose
 *     compare-and-swap fails throws its copy away. Head only grows, so a reader that succeeds has
 *     seen no other's step since it read head, and two never take the same event, nor END before
 *     START. The poll core need not look at head for every event: one that it saw before is as good
 *     until the queue seems full (full_at).
 * Q2. Without A a reader could see the old words; without B the poll core could overwrite words
 *     still being copied.
 * Q3. A queue may be freed, and its memory and its index be used again, while a reader is on its
 *     way. So closing a queue moves head to a position that no reader has seen, and the next life
 *     goes on from there: the compare-and-swap of a reader of an earlier life fails. A reader looks
 *     at the gate after head, so that a head of a later life never goes with its own gate.
 * Q4. Between 2p + 1 and 2p + 4 the queue has room for one event more than it has slots free, if it
 *     has as many slots as events. The poll core then moves END to the slot of its own position
 *     (one more than p), which the pair left free, and head on to 2p + 2, unless a reader is faster
 *     (queue_make_room()).
 * Q5. The queues of spaces with tiers overwrite: when there is no place, the poll core throws the
 *     oldest event away. There are no pairs in them, so an odd head says that events were lost just
 *     before the event at its position:
 *
 *     a reader                                      head: 2p or 2p + 1 -> 2p + 2
 *     poll core, tail == p + places                 head: 2p or 2p + 1 -> 2p + 3
 *
 *     The slot of p is written only when the poll core's step has succeeded: then the step of a
 *     reader that is copying the slot fails (Q1).
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <base/handle.h>
#include <engine/segment.h>

enum queue_answer {
	QUEUE_EVENT,
	QUEUE_EMPTY,
	QUEUE_GONE,
	QUEUE_CONTENDED, /* another reader was faster: try again */
	QUEUE_EVENT_AFTER_GAP
};

/* Two words of a slot at once: as relaxed loads and stores are. */
typedef uint64_t __attribute__((vector_size(16), may_alias)) event_pair;

/* word: an even one. */
static inline event_pair event_pair_read(const struct event_slot *slot, unsigned word)
{
#ifdef RACES_ARE_ATOMIC
	return (event_pair){atomic_load_explicit(&slot->words[word], memory_order_relaxed),
		atomic_load_explicit(&slot->words[word + 1], memory_order_relaxed)};
#else
	return *(const volatile event_pair *)((uintptr_t)slot + word * sizeof(uint64_t));
#endif
}

static inline void event_pair_write(struct event_slot *slot, unsigned word, event_pair pair)
{
#ifdef RACES_ARE_ATOMIC
	atomic_store_explicit(&slot->words[word], pair[0], memory_order_relaxed);
	atomic_store_explicit(&slot->words[word + 1], pair[1], memory_order_relaxed);
#else
	*(volatile event_pair *)((uintptr_t)slot + word * sizeof(uint64_t)) = pair;
#endif
}

/* A queue as its reader sees it. It is valid for as long as the segment is mapped. */
struct queue_view {
	uint64_t handle;
	struct queue *queue;
	const struct event_slot *slots;
	uint64_t mask; /* number of slots - 1, in bytes */
};

/* The view of a queue whose gate was this handle. It may have gone since: then the view shows that
 * it has. */
static inline struct queue_view queue_view(
	struct segment *segment, struct queue *queue, uint64_t handle)
{
	uint64_t slots = atomic_load_explicit(&queue->slots, memory_order_relaxed);

	return (struct queue_view){
		.handle = handle,
		.queue = queue,
		.slots = segment_at(segment, slots & ~(uint64_t)(SLOTS_ALIGN - 1)),
		.mask = ((UINT64_C(1) << slots % SLOTS_ALIGN) - 1) * sizeof(struct event_slot),
	};
}

/* The position of the next event to take. */
static inline uint64_t head_position(uint64_t head)
{
	return (head + 1) >> 1;
}

/* Reader. Copies the next event of a queue to `to` and removes it from the queue; any thread.
 * copy(slot, attributes, second, to) reads the slot's words, relaxed; second: 1 for the END of a
 * pair, else 0. What it copied means something only if the answer is an event. */
static inline __attribute__((always_inline)) enum queue_answer queue_step(
	const struct queue_view *view,
	void (*copy)(const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to),
	void *to, bool overwrites)
{
	struct queue *queue = view->queue;
	/* Acquire, before the gate: Q3, pairs with C. */
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);
	const struct event_slot *slot;
	uint64_t word, second;

	if (atomic_load_explicit(&queue->gate, memory_order_acquire) != view->handle)
		return QUEUE_GONE;
	static_assert(sizeof(*slot) == 2 << 6, "head / 2, in bytes");
	static_assert(EVENT_REGION * sizeof(slot->words[0]) == CACHE_LINE,
		"where the second line begins");
	slot = (const struct event_slot *)(const void *)((const char *)view->slots +
							 (head << 6 & view->mask));
	/* A reader that polls has both lines on their way when the poll core has written them, not
	 * one after the other. */
	__builtin_prefetch(&slot->words[EVENT_REGION]);
	/* Pairs with A. Another place: not written yet, or taken by another reader since head was
	 * read. */
	word = atomic_load_explicit(&slot->words[EVENT_FIRST], memory_order_acquire) ^
	       (head | 1) << EVENT_PLACE_AT;
	if (__builtin_expect(word >= UINT64_C(1) << EVENT_PLACE_AT, 0))
		return atomic_load_explicit(&queue->head, memory_order_relaxed) == head
			       ? QUEUE_EMPTY
			       : QUEUE_CONTENDED;
	second = head & 1;
	copy(slot, (uint32_t)word, overwrites ? 0 : (uint32_t)second, to);
	/* Pairs with B. */
	if (!atomic_compare_exchange_strong_explicit(&queue->head, &head,
		    overwrites ? head + 2 - second
			       : head + 2 + 2 * second - (word >> EVENT_PAIR_AT),
		    memory_order_acq_rel, memory_order_relaxed))
		return QUEUE_CONTENDED;
	if (overwrites) /* Q5 */
		return second ? QUEUE_EVENT_AFTER_GAP : QUEUE_EVENT;
	return __builtin_expect(word & EVENT_AFTER_GAP && !second, 0) ? QUEUE_EVENT_AFTER_GAP
								      : QUEUE_EVENT;
}

/* Of a queue that does not overwrite. */
static inline __attribute__((always_inline)) enum queue_answer queue_try(
	const struct queue_view *view,
	void (*copy)(const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to),
	void *to)
{
	return queue_step(view, copy, to, false);
}

/* Of one that does, until no other reader is faster. */
static inline __attribute__((always_inline)) enum queue_answer queue_take_oldest(
	const struct queue_view *view,
	void (*copy)(const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to),
	void *to)
{
	enum queue_answer answer;

	do
		answer = queue_step(view, copy, to, true);
	while (answer == QUEUE_CONTENDED);
	return answer;
}

/* The same of one that does not. */
static inline __attribute__((always_inline)) enum queue_answer queue_take(
	const struct queue_view *view,
	void (*copy)(const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to),
	void *to)
{
	enum queue_answer answer;

	do
		answer = queue_try(view, copy, to);
	while (answer == QUEUE_CONTENDED);
	return answer;
}

/* Has the queue an outcome that has not been taken? `told` may be less than `taken` (outcome.h). */
static inline bool outcomes_wait(const struct queue *queue)
{
	return (int32_t)(atomic_load_explicit(&queue->told, memory_order_acquire) -
			 atomic_load_explicit(&queue->taken, memory_order_relaxed)) > 0;
}

/* Reader. Has the queue an event or an outcome, or is it gone? */
static inline bool queue_has_events(const struct queue_view *view)
{
	struct queue *queue = view->queue;
	uint64_t head, word;

	if (outcomes_wait(queue))
		return true;
	do {
		const struct event_slot *slot;

		head = atomic_load_explicit(&queue->head, memory_order_acquire);
		if (atomic_load_explicit(&queue->gate, memory_order_acquire) != view->handle)
			return true;
		slot = (const struct event_slot *)(const void *)((const char *)view->slots +
								 (head << 6 & view->mask));
		word = atomic_load_explicit(&slot->words[EVENT_FIRST], memory_order_acquire) ^
		       (head | 1) << EVENT_PLACE_AT;
		if (word < UINT64_C(1) << EVENT_PLACE_AT)
			return true;
	} while (atomic_load_explicit(&queue->head, memory_order_relaxed) != head);
	return false;
}

/* Reader. All outcomes (outcome.h) of a queue that have not been taken, oldest first. */
static inline struct outcome *outcomes_take(struct queue *queue)
{
	struct outcome *newest, *oldest = NULL;
	uint32_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed), told;

	if (!outcomes_wait(queue))
		return NULL;
	newest = atomic_load_explicit(&queue->outcomes, memory_order_acquire); /* A */
	told = newest->told;
	atomic_store_explicit(&queue->taken, told, memory_order_relaxed);
	for (; taken != told; taken++) {
		struct outcome *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

/* The eventfd of a queue, -1: it has none. */
static inline int queue_event(const struct queue *queue)
{
	return atomic_load_explicit(&queue->event, memory_order_relaxed) - 1;
}

/* How many events a queue of a segment holds that shall hold count: those of spaces with tiers
 * overwrite, and have QUEUE_SPARE more places. */
#define QUEUE_SPARE 64
static inline uint64_t queue_places(const struct segment *segment, uint64_t count)
{
	return segment->limits.attached == 0 || count > EVENTS_MAX ? count : count + QUEUE_SPARE;
}
/* Application, before the handle exists: makes a queue of count events in the event memory at
 * `slots`, which is queue_bytes(queue_places(segment, count)) zeroed bytes. */
uint64_t queue_bytes(uint64_t count);            /* 0: too many */
uint64_t queue_slots(const struct queue *queue); /* where it was given memory */
void queue_init(struct segment *segment, uint64_t handle, uint64_t count, uint64_t slots);

/* Poll core, all below. */

/* The queue if this is its handle; NULL: stale, or there is none. */
static inline struct queue *queue_alive(struct queue *queue, uint64_t handle)
{
	return queue && atomic_load_explicit(&queue->gate, memory_order_acquire) == handle ? queue
											   : NULL;
}

/* The object that a handle of a queue names, whether it lives or not; NULL: 0, or there is none. */
static inline struct queue *queue_named(struct segment *segment, uint64_t handle)
{
	uint32_t index = handle_index(handle);

	return handle != 0 && index < segment->limits.queues ? segment_queue(segment, index) : NULL;
}

/* NULL: 0, stale or not a queue of this interface. */
static inline struct queue *queue_find(struct segment *segment, uint64_t handle)
{
	return queue_alive(queue_named(segment, handle), handle);
}

uint64_t queue_used(const struct queue *queue); /* how many events are in it */

/* Looks at the readers' line: has it room for so many events, one or two? */
bool queue_make_room(struct queue *queue, uint64_t events);

/* An event is logged in three steps: it claims a slot, the caller writes all words of the slot but
 * the first (relaxed) and adds the attributes to this one, and it is published. Several may be
 * claimed before the first is published; no reader sees one before those that were claimed
 * earlier. */
struct logging {
	struct event_slot *slot; /* NULL: there is no room, the event is lost */
	uint64_t first;          /* word of the slot */
	uint64_t sequence;       /* also of an event that is lost */
};

/* Has a queue room for so many events, one or two, as far as is known without a look at the
 * readers' line? */
static inline bool queue_has_room(const struct queue *queue, uint64_t events)
{
	return __builtin_expect(queue->tail + events <= queue->full_at, 1);
}

/* Claims the next slot, for so many events; there is room. */
static inline __attribute__((always_inline)) void queue_place(
	struct queue *queue, uint64_t events, struct logging *logging)
{
	logging->slot = (struct event_slot *)(void *)((char *)queue + queue->memory +
						      (queue->tail * sizeof(struct event_slot) &
							      queue->mask));
	logging->first = slot_word(queue->tail) | queue->gap;
	queue->gap = 0;
	queue->tail += events;
}

static inline __attribute__((always_inline)) struct logging queue_claim(struct queue *queue)
{
	struct logging logging = {.sequence = queue->sequence++};

	if (!queue_has_room(queue, 1) && !queue_make_room(queue, 1)) {
		queue->gap = EVENT_AFTER_GAP;
		queue->lost++;
	} else {
		queue_place(queue, 1, &logging);
	}
	return logging;
}

/* The same for a START and its END, which has the next sequence. No slot: there is no room for
 * both, and nothing was claimed. */
static inline __attribute__((always_inline)) struct logging queue_claim_pair(struct queue *queue)
{
	struct logging logging = {.sequence = queue->sequence};

	if (!queue_has_room(queue, 2) && !queue_make_room(queue, 2))
		return logging;
	queue_place(queue, 2, &logging);
	logging.first |= EVENT_PAIR;
	queue->sequence += 2;
	return logging;
}

/* Readers that sleep are woken by queue_ring(), later. */
static inline void queue_publish(const struct logging *logging)
{
	/* A */
	atomic_store_explicit(
		&logging->slot->words[EVENT_FIRST], logging->first, memory_order_release);
}

/* Wakes as many sleepers as there are events, at most, or all for outcomes, and makes the queue's
 * descriptor readable. A barrier (base/barrier.h, light) lies between the last queue_publish() and
 * this. */
void queue_ring(struct queue *queue);
/* The queue is gone for good: handles are refused, waiters leave. */
void queue_close(struct queue *queue);

/* Any thread, all below. */

/* Adds 1 to the futex, and wakes up to count threads that sleep on it. */
void queue_wake(struct queue *queue, int count);

/* Makes the descriptor, which is not readable, readable. */
void queue_raise(struct queue *queue);
/* The queue or its interface is gone: the descriptor is readable for good. */
void queue_raise_for_good(struct queue *queue);

#endif
