/* queue.c - see queue.h. */
#include <engine/queue.h>

#include <limits.h>

#include <base/futex.h>
#include <base/handle.h>

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

void queue_init(struct segment *segment, uint32_t index, uint32_t generation, uint64_t count,
	uint64_t slots)
{
	struct queue *queue = segment_queue(segment, index);

	/* Head, head_seen and tail stay as queue_close() left them: Q3. */
	queue->sequence = 1;
	queue->count = count;
	queue->incoming = 0;
	queue->gap = 0;
	queue->lost = 0;
	atomic_store_explicit(&queue->slots, slots | slots_order(count), memory_order_relaxed);
	/* Release: whoever sees the gate sees the queue behind it. */
	atomic_store_explicit(&queue->gate, gate_make(generation, 0), memory_order_release);
}

/* An event as the words that it is copied by. */
typedef uint64_t __attribute__((may_alias)) event_word;
typedef uint32_t __attribute__((may_alias)) event_half;
#define EVENT_WORDS (sizeof(struct event) / sizeof(event_word))

/* Unrolled: loops of atomic loads and stores are left as they are by compilers, and these cost half of an event. */
static void slot_read(struct event_slot *slot, struct event *event)
{
	event_word *words = (event_word *)event;

	((event_half *)event)[1] = atomic_load_explicit(&slot->first, memory_order_relaxed);
#pragma GCC unroll 32
	for (size_t i = 1; i < EVENT_WORDS; i++)
		words[i] = atomic_load_explicit(&slot->words[i - 1], memory_order_relaxed);
}

static void slot_write(struct event_slot *slot, const struct event *event)
{
	const event_word *words = (const event_word *)event;

	atomic_store_explicit(&slot->first, ((const event_half *)event)[1], memory_order_relaxed);
#pragma GCC unroll 32
	for (size_t i = 1; i < EVENT_WORDS; i++)
		atomic_store_explicit(&slot->words[i - 1], words[i], memory_order_relaxed);
}

enum queue_answer queue_take(
	struct segment *segment, uint32_t index, uint32_t generation, struct event *event)
{
	struct queue *queue = segment_queue(segment, index);

	for (;;) {
		/* Acquire, before the gate: Q3, pairs with C. */
		uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);

		if (!gate_is(atomic_load_explicit(&queue->gate, memory_order_acquire), generation))
			return QUEUE_GONE;
		struct event_slot *slot = segment_slot(
			segment, atomic_load_explicit(&queue->slots, memory_order_relaxed), head);

		/* Pairs with A. Another value: not written yet, or taken by another reader since
		 * head was read. */
		if (atomic_load_explicit(&slot->ready, memory_order_acquire) != slot_word(head)) {
			if (atomic_load_explicit(&queue->head, memory_order_relaxed) == head)
				return QUEUE_EMPTY;
			continue;
		}
		slot_read(slot, event);
		/* Pairs with B. */
		if (atomic_compare_exchange_strong_explicit(&queue->head, &head, head + 1,
			    memory_order_acq_rel, memory_order_relaxed))
			return event->gap ? QUEUE_EVENT_AFTER_GAP : QUEUE_EVENT;
	}
}

struct queue *queue_find(struct segment *segment, uint32_t interface, uint64_t handle)
{
	uint32_t index = handle_index(handle);
	struct queue *queue;

	if (handle_kind(handle) != HANDLE_QUEUE || handle_interface(handle) != interface ||
		index >= segment->limits.queues)
		return NULL;
	queue = segment_queue(segment, index);
	if (!gate_is(atomic_load_explicit(&queue->gate, memory_order_acquire),
		    handle_generation(handle)))
		return NULL;
	return queue;
}

bool queue_is_empty(const struct queue *queue)
{
	return queue->tail == atomic_load_explicit(&queue->head, memory_order_acquire);
}

/* Is there no room for another event? Readers' line is looked at only when there seems to be none. */
static bool queue_is_full(struct queue *queue)
{
	if (queue->tail - queue->head_seen < queue->count)
		return false;
	queue->head_seen = atomic_load_explicit(&queue->head, memory_order_acquire); /* B */
	return queue->tail - queue->head_seen >= queue->count;
}

bool queue_log(struct segment *segment, struct queue *queue, struct event *event)
{
	struct event_slot *slot = segment_slot(
		segment, atomic_load_explicit(&queue->slots, memory_order_relaxed), queue->tail);

	event->sequence = queue->sequence++;
	if (event->link == LINK_OWN)
		event->link = event->sequence;
	if (queue_is_full(queue)) {
		queue->gap = 1;
		queue->lost++;
		return false;
	}
	event->gap = (uint8_t)queue->gap;
	queue->gap = 0;
	slot_write(slot, event);
	atomic_store_explicit(&slot->ready, slot_word(queue->tail), memory_order_release); /* A */
	queue->tail++;
	return true;
}

static void queue_wake(struct queue *queue, int count)
{
	atomic_fetch_add_explicit(&queue->bell, 1, memory_order_release);
	futex_wake(&queue->bell, count);
}

void queue_ring(struct queue *queue)
{
	uint64_t events;

	if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) == 0)
		return;
	events = queue->tail - atomic_load_explicit(&queue->head, memory_order_relaxed);
	if (events != 0)
		queue_wake(queue, events > INT_MAX ? INT_MAX : (int)events);
}

void queue_close(struct queue *queue)
{
	atomic_store_explicit(&queue->gate, 0, memory_order_release);
	queue->tail++; /* a position that was never anybody's */
	queue->head_seen = queue->tail;
	atomic_store_explicit(&queue->head, queue->tail, memory_order_release); /* C */
	atomic_thread_fence(memory_order_seq_cst);
	queue_wake(queue, INT_MAX);
}
