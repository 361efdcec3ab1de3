/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - see events.h. */
#include <host/events.h>

#include <base/extent.h>
#include <base/backoff.h>
#include <pmd-glue/glue.h>

#define EVENT_PAGE 4096
#define WARM_MAX   (UINT64_C(256) << 10)

static_assert(offsetof(struct queue, gate) == 0, "a gate is its queue's address");

/* Memory with backing for a queue, as an offset in the segment; EXTENT_NONE when there is none. */
static uint64_t events_take(const struct visit *visit, uint64_t bytes)
{
	struct segment *segment = visit->segment;
	void *const memory = segment_memory(segment);
	const uint64_t events = segment->lead + segment->events;
	uint64_t offset;

	library_glue_lock();
	offset = extent_take(visit->interface->events, bytes);
	if (offset != EXTENT_NONE && glue_segment_commit(memory, events + offset, bytes) != 0) {
		extent_give(visit->interface->events, offset, bytes);
		offset = EXTENT_NONE;
	}
	/* A queue goes through all of its pages, again and again; but a long one may be long only
	 * so that it never overflows, and few of its events ever come. */
	if (offset != EXTENT_NONE && bytes <= WARM_MAX)
		glue_segment_warm(memory, events + offset, bytes);
	library_glue_unlock();
	return offset == EXTENT_NONE ? EXTENT_NONE : segment->events + offset;
}

/* Gives it back with no slot ready, as a new queue wants it. */
static void events_give(const struct visit *visit, uint64_t slots, uint64_t bytes)
{
	struct event_slot *slot = segment_at(visit->segment, slots);

	for (uint64_t i = 0; i < bytes / sizeof(*slot); i++)
		atomic_store_explicit(&slot[i].words[EVENT_FIRST], 0, memory_order_relaxed);
	library_glue_lock();
	extent_give(visit->interface->events, slots - visit->segment->events, bytes);
	library_glue_unlock();
}

static uint64_t events_bytes(uint64_t count)
{
	return (queue_bytes(count) + EVENT_PAGE - 1) & ~(uint64_t)(EVENT_PAGE - 1);
}

enum answer events_make(const struct visit *visit, uint64_t count, uint64_t *handle)
{
	struct segment *segment = visit->segment;
	uint64_t bytes = events_bytes(queue_places(segment, count));
	uint64_t slots;
	uint32_t index;

	if (bytes == 0 || bytes > segment->limits.event_bytes)
		return ANSWER_NO_MEMORY;
	index = segment_take(segment, segment->free_queues);
	if (index == INDEX_NONE)
		return ANSWER_NO_MEMORY;
	slots = events_take(visit, bytes);
	if (slots == EXTENT_NONE) {
		segment_give(segment, segment->free_queues, index);
		return ANSWER_NO_MEMORY;
	}
	*handle = handle_make(HANDLE_QUEUE, (uint32_t)(visit->interface - interfaces), index,
		segment_generation(segment));
	queue_init(segment, *handle, count, slots);
	return ANSWER_OK;
}

enum answer events_free(const struct visit *visit)
{
	struct queue *queue = visit_queue(visit);
	uint64_t slots = queue_slots(queue), bytes = events_bytes(queue->count);
	enum answer answer =
		visit_command(visit, COMMAND_QUEUE_FREE, visit->index, visit->generation);
	unsigned looks = 0;

	if (answer != ANSWER_OK)
		return answer;
	/* Threads that waited have been woken; the queue is used again when they have left. */
	while (atomic_load_explicit(&queue->waiters, memory_order_acquire) != 0)
		backoff(&looks);
	queue_unwatch(queue);
	events_give(visit, slots, bytes);
	segment_give(visit->segment, visit->segment->free_queues, visit->index);
	return ANSWER_OK;
}

/* A wait. The caller adds the queues or the counters. */
static struct waiting waiting_at(
	const struct visit *visit, bool (*look)(void *context), void *context, uint64_t timeout)
{
	return (struct waiting){
		.segment = visit->segment,
		.look = look,
		.context = context,
		.drive = visit->interface->inlined ? interface_drive : NULL,
		.rest = interface_is_helped(visit->interface) ? interface_rest : NULL,
		.sleep = visit->interface->inlined ? interface_sleep : NULL,
		.shares_cpu = visit->interface->inlined ? interface_shares_cpu : NULL,
		.now = glue_now,
		.timeout = timeout,
	};
}

enum waiting_answer events_await(const struct visit *visit, const struct queue_view *queues,
	unsigned count, bool (*look)(void *context), void *context, uint64_t timeout)
{
	struct waiting waiting = waiting_at(visit, look, context, timeout);
	enum waiting_answer answer;

	waiting.queues = queues;
	waiting.count = count;
	for (unsigned i = 0; i < count; i++)
		atomic_fetch_add_explicit(&queues[i].queue->waiters, 1, memory_order_relaxed);
	answer = waiting_run(&waiting);
	/* Release: pairs with events_free(), which gives the queue away afterwards. */
	for (unsigned i = 0; i < count; i++)
		atomic_fetch_sub_explicit(&queues[i].queue->waiters, 1, memory_order_release);
	return answer;
}

enum waiting_answer counters_await(const struct visit *visit, const struct counter_view *counters,
	unsigned count, bool (*look)(void *context), void *context, uint64_t timeout)
{
	struct waiting waiting = waiting_at(visit, look, context, timeout);

	waiting.counters = counters;
	waiting.counter_count = count;
	return waiting_run(&waiting);
}

int events_watch(const struct visit *visit, uint64_t handle)
{
	const struct queue_view view = queue_view(visit->segment, visit_queue(visit), handle);
	int descriptor;

	library_glue_lock();
	descriptor = queue_watch(&view, visit->segment);
	library_glue_unlock();
	return descriptor;
}
