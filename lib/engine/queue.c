/* queue.c - see queue.h. */
#include <engine/queue.h>

#include <limits.h>

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

void queue_init(struct segment *segment, uint32_t index, uint32_t generation, uint64_t count,
	uint64_t slots)
{
	struct queue *queue = segment_queue(segment, index);

	/* Head, head_seen and tail stay as queue_close() left them: Q3. So does touched, which is the engine's. */
	queue->sequence = 1;
	queue->count = count;
	queue->incoming = 0;
	queue->gap = 0;
	queue->lost = 0;
	atomic_store_explicit(&queue->slots, slots | slots_order(count), memory_order_relaxed);
	/* Release: whoever sees the gate sees the queue behind it. */
	atomic_store_explicit(&queue->gate, gate_make(generation, 0), memory_order_release);
}

bool queue_is_empty(const struct queue *queue)
{
	return queue->tail == atomic_load_explicit(&queue->head, memory_order_acquire);
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
