/* event.c - event queues: PtlEQAlloc, PtlEQFree, PtlEQGet, PtlEQWait.
 *
 * Events are taken without a lock (engine/queue.h). A waiting thread spins, yields, then sleeps on
 * the queue's bell:
 *
 *     reader                                      poll core
 *     sleepers++                                  publishes the event
 *     heavy barrier                               light barrier (base/barrier.h)
 *     reads bell, looks at the queue once more    sleepers != 0?
 *     sleeps while bell is what it was            bell++, wakes one sleeper
 *
 * Either the poll core sees the sleeper, or the reader sees the event.
 * A bell that rang between reading and sleeping makes the sleep end at once. The same holds for
 * `closed` and for a queue that is freed.
 *
 * With PTL_PROGRESS=inline readers that find nothing drive the engines of the process, one at a
 * time each.
 */
#include <p3/interface.h>

#include <sched.h>
#include <string.h>

#include <base/barrier.h>
#include <base/extent.h>
#include <base/trace.h>
#include <engine/patience.h>
#include <engine/queue.h>
#include <p3/library.h>
#include <pmd-glue/glue.h>

#define EVENT_PAGE       4096
#define SLEEP_INLINE     (50 * MICROSECOND) /* of a reader that drives, at first; doubled up to */
#define SLEEP_INLINE_MAX (500 * MICROSECOND)

static_assert(sizeof(((ptl_event_t *)0)->sequence) == sizeof(((struct event *)0)->sequence),
	"sequences are the engine's");
static_assert(offsetof(struct queue, gate) == 0, "a gate is its queue's address");
static_assert((int)GATE_THRESHOLD_INFINITE == PTL_MD_THRESH_INF, "thresholds are the engine's");
static_assert(offsetof(ptl_event_t, portal) == offsetof(ptl_event_t, uid) + sizeof(uint32_t) &&
		      offsetof(ptl_md_t, max_offset) == offsetof(ptl_md_t, threshold) + sizeof(uint32_t),
	"words hold pairs as the caller has them");

/* The queue that is visited. */
static inline struct queue *visit_queue(const struct visit *visit)
{
	return (struct queue *)(uintptr_t)visit->gate;
}

/* Memory with backing for a queue, as an offset in the segment; EXTENT_NONE when there is none. */
static uint64_t events_take(const struct visit *visit, uint64_t bytes)
{
	struct segment *segment = visit->segment;
	uint64_t offset;

	library_glue_lock();
	offset = extent_take(visit->interface->events, bytes);
	if (offset != EXTENT_NONE &&
		glue_segment_commit(segment, segment->events + offset, bytes) != 0) {
		extent_give(visit->interface->events, offset, bytes);
		offset = EXTENT_NONE;
	}
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

static int queue_make(const struct visit *visit, uint64_t count, ptl_handle_eq_t *handle)
{
	struct segment *segment = visit->segment;
	uint64_t bytes = events_bytes(count);
	uint32_t index, generation;
	uint64_t slots;

	if (bytes == 0 || bytes > segment->limits.event_bytes)
		return PTL_NOSPACE;
	index = segment_take(segment, segment->free_queues);
	if (index == INDEX_NONE)
		return PTL_NOSPACE;
	slots = events_take(visit, bytes);
	if (slots == EXTENT_NONE) {
		segment_give(segment, segment->free_queues, index);
		return PTL_NOSPACE;
	}
	generation = segment_generation(segment);
	queue_init(segment, index, generation, count, slots);
	*handle = handle_make(
		HANDLE_QUEUE, (uint32_t)(visit->interface - interfaces), index, generation);
	return PTL_OK;
}

int PtlEQAlloc(ptl_handle_ni_t interface, ptl_size_t count, ptl_handle_eq_t *handle)
{
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(handle))
		code = PTL_SEGV;
	else
		code = queue_make(&visit, count, handle);
	visit_leave(&visit);
	return code;
}

int PtlEQFree(ptl_handle_eq_t eventq)
{
	struct visit visit;
	struct command command = {.kind = COMMAND_QUEUE_FREE};
	struct queue *queue;
	uint64_t slots, bytes;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	queue = visit_queue(&visit);
	slots = queue_slots(queue);
	bytes = events_bytes(queue->count);
	command.object.index = visit.index;
	command.object.generation = visit.generation;
	code = visit_call(&visit, &command, NULL, NULL);
	if (code == PTL_OK) {
		/* Threads that waited have been woken; the queue is used again when they have left. */
		while (atomic_load_explicit(&queue->waiters, memory_order_acquire) != 0)
			sched_yield();
		events_give(&visit, slots, bytes);
		segment_give(visit.segment, visit.segment->free_queues, visit.index);
	}
	visit_leave(&visit);
	return code;
}

/* What an event says, straight from its slot. */
static inline void event_tell(const struct event_slot *slot, uint64_t first, void *event)
{
	ptl_event_t *to = event;
	uint64_t pair;

#define READ(word) atomic_load_explicit(&slot->words[word], memory_order_relaxed)
	to->type = (ptl_event_kind_t)(uint8_t)(first >> EVENT_KIND_AT);
	pair = READ(EVENT_INITIATOR);
	memcpy(&to->initiator, &pair, sizeof(pair));
	pair = READ(EVENT_TARGET);
	memcpy((char *)to + offsetof(ptl_event_t, uid), &pair, sizeof(pair));
	to->match_bits = READ(EVENT_MATCH_BITS);
	to->rlength = READ(EVENT_REQUESTED);
	to->mlength = READ(EVENT_MOVED);
	to->offset = READ(EVENT_OFFSET);
	to->md_handle = READ(EVENT_REGION);
	to->mem_desc.start = (void *)(uintptr_t)READ(EVENT_START);
	to->mem_desc.length = READ(EVENT_LENGTH);
	pair = READ(EVENT_BOUNDS);
	memcpy((char *)to + offsetof(ptl_event_t, mem_desc.threshold), &pair, sizeof(pair));
	to->mem_desc.options = (uint8_t)(first >> EVENT_OPTIONS_AT);
	to->mem_desc.user_ptr = (void *)(uintptr_t)READ(EVENT_USER);
	to->mem_desc.eventq = READ(EVENT_QUEUE);
	to->hdr_data = READ(EVENT_VALUE);
	to->link = READ(EVENT_LINK);
	to->ni_fail_type = (ptl_ni_fail_t)(uint8_t)(first >> EVENT_FAIL_AT);
	to->sequence = READ(EVENT_SEQUENCE);
#undef READ
}

static __attribute__((noinline)) int taken_trace(const ptl_event_t *event, int code)
{
	trace(TRACE_TAKEN, handle_interface(event->md_handle), 0, event->mlength);
	return code;
}

/* What a queue's answer means to the caller. */
static inline int answer_code(enum queue_answer answer, const ptl_event_t *event)
{
	int code = answer == QUEUE_EVENT ? PTL_OK : PTL_EQ_DROPPED;

	if (answer == QUEUE_EMPTY)
		return PTL_EQ_EMPTY;
	if (answer != QUEUE_EVENT && answer != QUEUE_EVENT_AFTER_GAP)
		return PTL_INV_EQ;
	return trace_wanted() ? taken_trace(event, code) : code;
}

static inline enum queue_answer queue_look(const struct visit *visit, ptl_event_t *event)
{
	return queue_take(visit->segment, visit_queue(visit), visit->generation, event_tell, event);
}

/* Another thread waits for the next event. */
static inline bool queue_is_awaited(const struct visit *visit)
{
	return atomic_load_explicit(&visit_queue(visit)->waiters, memory_order_relaxed) != 0;
}

/* A thread that drives has found a queue empty: it drives, looks once more, and ends the visit. The visit keeps the interface as it
 * is, but one that began to close meanwhile is not found again. */
static __attribute__((noinline)) int event_drive(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	enum queue_answer answer = QUEUE_EMPTY;
	struct visit visit;

	visit_describe(&visit, visitor_self, eventq, HANDLE_QUEUE);
	if (interface_drive() != 0 && visit.segment)
		answer = queue_look(&visit, event);
	visit_leave(&visit);
	return answer_code(answer, event);
}

/* PtlEQGet where something is not as it mostly is. */
static __attribute__((noinline)) int event_get(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	struct visit visit;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(event))
		code = PTL_SEGV;
	else if (queue_is_awaited(&visit))
		code = PTL_EQ_EMPTY;
	visit_leave(&visit);
	return code == PTL_OK ? PtlEQGet(eventq, event) : code;
}

/* Calls functions as its last step only, so that it has nothing to save. */
int PtlEQGet(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	enum queue_answer answer;
	struct visit visit;

	if (!visit_begin(&visit, eventq, HANDLE_QUEUE))
		return event_get(eventq, event);
	if (!ADDRESS_IS_GOOD(event) || queue_is_awaited(&visit)) {
		visit_leave(&visit);
		return event_get(eventq, event);
	}
	answer = queue_try(visit.segment, visit_queue(&visit), visit.generation, event_tell, event);
	if (answer == QUEUE_EMPTY && visit.interface->inlined)
		return event_drive(eventq, event);
	visit_leave(&visit);
	return answer == QUEUE_CONTENDED ? event_get(eventq, event) : answer_code(answer, event);
}

static bool interface_is_closed(const struct visit *visit)
{
	return atomic_load_explicit(&visit->segment->closed, memory_order_relaxed) != 0;
}

/* Sleeps until the bell rings, unless there is something to see. */
static enum queue_answer queue_sleep(
	const struct visit *visit, struct queue *queue, ptl_event_t *event, uint64_t limit)
{
	enum queue_answer answer;
	uint32_t bell;

	atomic_fetch_add_explicit(&queue->sleepers, 1, memory_order_relaxed);
	barrier_heavy();
	bell = atomic_load_explicit(&queue->bell, memory_order_acquire);
	answer = queue_look(visit, event);
	if (answer == QUEUE_EMPTY && !interface_is_closed(visit))
		futex_wait(&queue->bell, bell, limit);
	atomic_fetch_sub_explicit(&queue->sleepers, 1, memory_order_relaxed);
	return answer;
}

static enum queue_answer queue_await(
	const struct visit *visit, struct queue *queue, ptl_event_t *event)
{
	bool drives = visit->interface->inlined;
	uint64_t limit = drives ? SLEEP_INLINE : UINT64_MAX;
	struct patience patience = {0};
	enum queue_answer answer;

	for (;;) {
		answer = queue_look(visit, event);
		if (answer != QUEUE_EMPTY)
			return answer;
		if (interface_is_closed(visit))
			return QUEUE_GONE;
		if (drives && interface_drive() != 0) {
			patience = (struct patience){0};
			limit = SLEEP_INLINE;
			continue;
		}
		if (patience_wait(&patience))
			continue;
		answer = queue_sleep(visit, queue, event, limit);
		if (answer != QUEUE_EMPTY)
			return answer;
		if (drives && limit < SLEEP_INLINE_MAX)
			limit = limit * 2 < SLEEP_INLINE_MAX ? limit * 2 : SLEEP_INLINE_MAX;
	}
}

int PtlEQWait(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	struct visit visit;
	struct queue *queue;
	enum queue_answer answer;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(event)) {
		visit_leave(&visit);
		return PTL_SEGV;
	}
	queue = visit_queue(&visit);
	atomic_fetch_add_explicit(&queue->waiters, 1, memory_order_relaxed);
	answer = queue_await(&visit, queue, event);
	/* Release: pairs with PtlEQFree, which gives the queue away afterwards. */
	atomic_fetch_sub_explicit(&queue->waiters, 1, memory_order_release);
	code = answer_code(answer, event);
	visit_leave(&visit);
	return code;
}
