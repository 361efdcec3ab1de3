/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.c - see queue.h. */
#include <engine/queue.h>

#include <limits.h>

#include <base/cancel.h>
#include <base/futex.h>

/* Slots are a power of two; this is its logarithm. */
static unsigned slots_order(uint64_t count)
{
	unsigned order = 0;

	while (UINT64_C(1) << order < count)
		order++;
	return order;
}

uint64_t queue_bytes(uint64_t count)
{
	return count > EVENTS_MAX ? 0 : sizeof(struct event_slot) << slots_order(count);
}

uint64_t queue_slots(const struct queue *queue)
{
	return atomic_load_explicit(&queue->slots, memory_order_relaxed) &
	       ~(uint64_t)(SLOTS_ALIGN - 1);
}

void queue_init(struct segment *segment, uint64_t handle, uint64_t count, uint64_t slots)
{
	struct queue *queue = segment_queue(segment, handle_index(handle));
	const uint64_t places = queue_places(segment, count);
	unsigned order = slots_order(places);

	/* Head and tail stay as queue_close() left them: Q3. So does touched, which is
	 * the engine's. */
	queue->sequence = 1;
	queue->count = places;
	queue->full_at = queue->tail + places;
	queue->refuse_at = count;
	queue->overwrites = places != count;
	queue->controlled = 0;
	queue->incoming = 0;
	queue->gap = 0;
	queue->lost = 0;
	atomic_store_explicit(&queue->outcomes, NULL, memory_order_relaxed);
	atomic_store_explicit(&queue->told, 0, memory_order_relaxed);
	atomic_store_explicit(&queue->taken, 0, memory_order_relaxed);
	queue->memory = (uint64_t)((char *)segment_at(segment, slots) - (char *)queue);
	queue->mask = ((UINT64_C(1) << order) - 1) * sizeof(struct event_slot);
	atomic_store_explicit(&queue->slots, slots | order, memory_order_relaxed);
	/* Release: a thread that sees the gate sees the queue behind it. */
	atomic_store_explicit(&queue->gate, handle, memory_order_release);
}

uint64_t queue_used(const struct queue *queue)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);

	return queue->tail - (queue->overwrites ? head >> 1 : head_position(head));
}

static struct event_slot *slot_of(struct queue *queue, uint64_t position)
{
	return (struct event_slot *)(void *)((char *)queue + queue->memory +
					     (position * sizeof(struct event_slot) & queue->mask));
}

/* Q4. head: odd, the START at its position has been taken. */
static void queue_unfold(struct queue *queue, uint64_t head)
{
	const struct event_slot *pair = slot_of(queue, head >> 1);
	struct event_slot *slot = slot_of(queue, (head >> 1) + 1);
	uint64_t words[EVENT_WORDS];

	for (unsigned i = 0; i < EVENT_WORDS; i++)
		words[i] = atomic_load_explicit(&pair->words[i], memory_order_relaxed);
	words[EVENT_SEQUENCE]++;
	for (unsigned i = EVENT_SEQUENCE; i < EVENT_WORDS; i++)
		atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
	words[EVENT_FIRST] &= (UINT64_C(1) << EVENT_PLACE_AT) - 1;
	words[EVENT_FIRST] &= ~(uint64_t)(EVENT_PAIR | EVENT_AFTER_GAP);
	atomic_store_explicit(&slot->words[EVENT_FIRST],
		slot_word((head >> 1) + 1) | (words[EVENT_FIRST] + (1 << EVENT_KIND_AT)),
		memory_order_release);
	/* Release: a reader finds END where head says. Acquire: or has copied it. */
	atomic_compare_exchange_strong_explicit(
		&queue->head, &head, head + 1, memory_order_acq_rel, memory_order_acquire);
}

/* Q5. Throws the oldest event away, unless a reader takes it now. */
static void queue_overwrite(struct queue *queue, uint64_t head)
{
	/* Acquire: a reader that was faster has copied the event. */
	if (atomic_compare_exchange_strong_explicit(&queue->head, &head, (head | 1) + 2,
		    memory_order_acq_rel, memory_order_acquire))
		queue->lost++;
	queue->full_at = queue->tail + 1;
}

bool queue_make_room(struct queue *queue, uint64_t events)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire); /* B */

	queue->full_at = (head >> 1) + queue->count;
	if (queue_has_room(queue, events))
		return true;
	if (queue->overwrites) {
		queue_overwrite(queue, head);
		return true;
	}
	if (queue->tail + events > head_position(head) + queue->count)
		return false;
	queue_unfold(queue, head);
	queue->full_at++;
	return true;
}

void queue_wake(struct queue *queue, int count)
{
	atomic_fetch_add_explicit(&queue->futex, 1, memory_order_release);
	futex_wake(&queue->futex, count);
}

void queue_raise(struct queue *queue)
{
	uint32_t armed = WATCH_ARMED;

	if (!atomic_compare_exchange_strong_explicit(&queue->watch, &armed, WATCH_RAISED,
		    memory_order_acq_rel, memory_order_relaxed))
		return;
	atomic_fetch_sub_explicit(&queue->sleepers, 1, memory_order_relaxed); /* W3 */
	cancel_event_write(queue_event(queue));
}

void queue_raise_for_good(struct queue *queue)
{
	/* Acquire: pairs with the release in event_make(). */
	if (atomic_load_explicit(&queue->watch, memory_order_acquire) != WATCH_NONE)
		cancel_event_write(queue_event(queue));
}

void queue_ring(struct queue *queue)
{
	uint64_t events;

	if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) == 0)
		return;
	events = outcomes_wait(queue) ? INT_MAX : queue_used(queue);
	if (events == 0)
		return;
	if (atomic_load_explicit(&queue->watch, memory_order_acquire) == WATCH_ARMED)
		queue_raise(queue);
	if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) != 0)
		queue_wake(queue, events > INT_MAX ? INT_MAX : (int)events);
}

void queue_close(struct queue *queue)
{
	atomic_store_explicit(&queue->gate, 0, memory_order_release);
	queue->tail++; /* a position that was never anybody's */
	atomic_store_explicit(&queue->head, 2 * queue->tail, memory_order_release); /* C */
	atomic_thread_fence(memory_order_seq_cst);
	queue_wake(queue, INT_MAX);
	queue_raise_for_good(queue);
}
