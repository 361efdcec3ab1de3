/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - event queues: PtlEQAlloc, PtlEQFree, PtlEQGet, PtlEQWait, postern_eq_poll,
 * postern_eq_fd.
 *
 * Events are taken without a lock (engine/queue.h); how threads wait for them stands in
 * host/waiting.h. With PTL_PROGRESS=inline readers that find nothing drive the engines of the
 * process, one at a time each.
 */
#include <p3/interface.h>

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <postern.h>

#include <base/barrier.h>
#include <base/log.h>
#include <base/trace.h>
#include <host/events.h>
#include <p3/code.h>

static_assert(POSTERN_EQ_POLL_MAX == WAITING_MAX, "what a program is told");

static_assert((int)GATE_THRESHOLD_INFINITE == PTL_MD_THRESH_INF, "thresholds are the engine's");
/* Where ptl_event_t has the words of an event. */
#define EVENT_FIELD(field, word, of, at)                                                           \
	static_assert(offsetof(ptl_event_t, field) ==                                              \
			      offsetof(ptl_event_t, of) + ((word) - (at)) * sizeof(uint64_t),      \
		"the words of an event are as the caller has them")
EVENT_FIELD(uid, EVENT_TARGET, initiator, EVENT_INITIATOR);
EVENT_FIELD(rlength, EVENT_REQUESTED, match_bits, EVENT_MATCH_BITS);
EVENT_FIELD(offset, EVENT_OFFSET, mlength, EVENT_MOVED);
EVENT_FIELD(mem_desc.start, EVENT_START, md_handle, EVENT_REGION);
EVENT_FIELD(mem_desc.threshold, EVENT_BOUNDS, mem_desc.length, EVENT_LENGTH);
EVENT_FIELD(mem_desc.eventq, EVENT_QUEUE, mem_desc.user_ptr, EVENT_USER);
EVENT_FIELD(link, EVENT_LINK, hdr_data, EVENT_VALUE);
static_assert(
	offsetof(ptl_event_t, portal) == offsetof(ptl_event_t, uid) + sizeof(uint32_t) &&
		offsetof(ptl_md_t, max_offset) == offsetof(ptl_md_t, threshold) + sizeof(uint32_t),
	"words hold two fields as the caller has them");

/* event_tell() relies on this. */
#define EVENT_TYPE_IS(kind, type) static_assert((int)(kind) == (int)(type), "types are kinds")
#define EVENT_TYPES_ARE(operation)                                                                 \
	EVENT_TYPE_IS(EVENT_##operation##_START, PTL_EVENT_##operation##_START);                   \
	EVENT_TYPE_IS(EVENT_##operation##_END, PTL_EVENT_##operation##_END);                       \
	EVENT_TYPE_IS(EVENT_##operation##_FAILED, PTL_EVENT_##operation##_FAIL)
EVENT_TYPES_ARE(GET);
EVENT_TYPES_ARE(PUT);
EVENT_TYPES_ARE(REPLY);
EVENT_TYPES_ARE(SEND);
EVENT_TYPE_IS(EVENT_ACK, PTL_EVENT_ACK);
EVENT_TYPE_IS(EVENT_UNLINK, PTL_EVENT_UNLINK);
static_assert((int)TRANSPORT_OK == (int)PTL_NI_OK &&
		      (int)TRANSPORT_UNREACHABLE == (int)PTL_NI_UNREACHABLE &&
		      (int)TRANSPORT_DEAD == (int)PTL_NI_PEER_DEAD &&
		      (int)TRANSPORT_RESTARTED == (int)PTL_NI_PEER_RESTARTED &&
		      FAIL_UNDELIVERABLE == PTL_NI_UNDELIVERABLE &&
		      (int)TRANSPORT_SHUTDOWN == (int)PTL_NI_SHUTDOWN,
	"reasons are the engine's");

int PtlEQAlloc(ptl_handle_ni_t interface, ptl_size_t count, ptl_handle_eq_t *handle)
{
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(handle))
		return visit_end(&visit, PTL_SEGV);
	return visit_end(&visit, code_of(events_make(&visit, count, handle), PTL_INV_NI));
}

int PtlEQFree(ptl_handle_eq_t eventq)
{
	struct visit visit;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	return visit_end(&visit, code_of(events_free(&visit), PTL_INV_EQ));
}

/* What an event says, straight from its slot. */
static inline void event_tell(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *event)
{
	ptl_event_t *to = event;
	event_pair pair;

/* Two words, from this field on. */
#define TELL(word, field)                                                                          \
	pair = event_pair_read(slot, (word));                                                      \
	memcpy((char *)to + offsetof(ptl_event_t, field), &pair, sizeof(pair))
	TELL(EVENT_INITIATOR, initiator);
	TELL(EVENT_MATCH_BITS, match_bits);
	TELL(EVENT_MOVED, mlength);
	TELL(EVENT_REGION, md_handle);
	TELL(EVENT_LENGTH, mem_desc.length);
	TELL(EVENT_USER, mem_desc.user_ptr);
	TELL(EVENT_VALUE, hdr_data);
#undef TELL
	to->type = (ptl_event_kind_t)(EVENT_KIND(attributes) + second);
	to->mem_desc.options = EVENT_OPTIONS(attributes);
	to->ni_fail_type = (ptl_ni_fail_t)EVENT_FAIL(attributes);
	to->sequence =
		second + atomic_load_explicit(&slot->words[EVENT_SEQUENCE], memory_order_relaxed);
}

/* What a queue's answer means to the caller. */
static inline int queue_code(enum queue_answer answer)
{
	if (__builtin_expect(answer == QUEUE_EVENT, 1))
		return PTL_OK;
	switch (answer) {
	case QUEUE_EVENT_AFTER_GAP:
		return PTL_EQ_DROPPED;
	case QUEUE_EMPTY:
		return PTL_EQ_EMPTY;
	default:
		return PTL_INV_EQ;
	}
}

/* The same, with a trace of what was taken. */
static int event_code(enum queue_answer answer, const ptl_event_t *event)
{
	if (answer == QUEUE_EVENT || answer == QUEUE_EVENT_AFTER_GAP)
		trace(TRACE_TAKEN, handle_interface(event->md_handle), 0, event->mlength);
	return queue_code(answer);
}

static inline enum queue_answer queue_look(const struct reader *reader, ptl_event_t *event)
{
	return queue_take(&reader->view, event_tell, event);
}

/* Another thread waits for the next event. */
static inline bool queue_is_awaited(const struct queue *queue)
{
	return atomic_load_explicit(&queue->waiters, memory_order_relaxed) != 0;
}

/* V4. What the visit to a queue has found out, with an event that is good. */
static struct reader *reader_keep(const struct visit *visit, ptl_handle_eq_t eventq)
{
	struct visitor *visitor = visit->visitor;
	struct reader *reader = visitor_reader(visitor, eventq);
	uint64_t now = epoch_now();

	reader->epoch = EPOCH_NEVER;
	if (barrier_cheap && !trace_wanted() &&
		atomic_load_explicit(&visit->interface->segment, memory_order_relaxed))
		reader->epoch = now;
	reader->view = queue_view(visit->segment, visit_queue(visit), eventq);
	reader->number = handle_interface(eventq) + 1;
	reader->drives = visit->interface->inlined;
	visitor->events = address_good.from;
	visitor->events_last = (address_good.bytes - sizeof(ptl_event_t)) / alignof(ptl_event_t);
	return reader;
}

/* Is an event's address one that needs no further look? A misaligned one ends up far behind the
 * last. */
static inline bool event_is_good(const struct visitor *visitor, const ptl_event_t *event)
{
	uint64_t after = (uintptr_t)event - visitor->events;

	static_assert(alignof(ptl_event_t) == 1 << 3, "rotated by its logarithm");
	return (after >> 3 | after << 61) <= visitor->events_last;
}

/* Must a thread do something about a queue that it has found empty? */
static inline bool empty_matters(const struct reader *reader)
{
	return reader->drives || queue_is_raised(reader->view.queue);
}

/* It does so, and ends the visit: one that drives drives and looks once more. A program that waits
 * at the queue's descriptor is not to find it readable, and is about to sleep. */
static __attribute__((noinline)) int event_empty(
	struct visitor *visitor, const struct reader *reader, ptl_event_t *event)
{
	enum queue_answer answer = QUEUE_EMPTY;

	if (reader->drives && interface_drive() != 0)
		answer = queue_look(reader, event);
	if (answer == QUEUE_EMPTY && queue_is_raised(reader->view.queue)) {
		queue_lower(&reader->view, interfaces[reader->number - 1].submission.segment);
		if (reader->drives)
			interface_rest();
	}
	visitor_leave(visitor);
	return event_code(answer, event);
}

/* PtlEQGet of a queue that the thread does not know, or where something else is not as it mostly
 * is. */
static __attribute__((noinline)) int event_get(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	enum queue_answer answer = QUEUE_EMPTY;
	const struct reader *reader;
	struct visit visit;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(event))
		return visit_end(&visit, PTL_SEGV);
	reader = reader_keep(&visit, eventq);
	if (!queue_is_awaited(visit_queue(&visit))) {
		answer = queue_look(reader, event);
		if (answer == QUEUE_EMPTY && reader->drives)
			return event_empty(visit.visitor, reader, event);
	}
	if (answer == QUEUE_EMPTY && queue_is_raised(visit_queue(&visit)))
		return event_empty(visit.visitor, reader, event);
	visit_leave(&visit);
	return event_code(answer, event);
}

/* Calls functions as its last step only, so that it has nothing to save. */
int PtlEQGet(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	struct visitor *visitor = visitor_self;
	enum queue_answer answer;
	struct reader *reader;

	if (!visitor || !event_is_good(visitor, event))
		return event_get(eventq, event);
	reader = visitor_reader(visitor, eventq);
	if (reader->view.handle != eventq)
		return event_get(eventq, event);
	atomic_store_explicit(&visitor->inside, reader->number, memory_order_relaxed);
	/* V1: in a reader's epoch that is a light barrier */
	atomic_signal_fence(memory_order_seq_cst);
	if (epoch_now() != reader->epoch || queue_is_awaited(reader->view.queue)) {
		visitor_leave(visitor);
		return event_get(reader->view.handle, event);
	}
	answer = queue_try(&reader->view, event_tell, event);
	if (answer == QUEUE_EMPTY && empty_matters(reader))
		return event_empty(visitor, reader, event);
	visitor_leave(visitor);
	return answer == QUEUE_CONTENDED ? event_get(reader->view.handle, event)
					 : queue_code(answer);
}

/* A wait for the events of some queues. */
struct event_wait {
	const struct queue_view *queues;
	unsigned count;
	ptl_event_t *event;
	enum queue_answer answer; /* of the queue that */
	unsigned which;           /* had something to say */
};

static bool events_look(void *context)
{
	struct event_wait *wait = context;

	for (wait->which = 0; wait->which < wait->count; wait->which++) {
		wait->answer = queue_take(&wait->queues[wait->which], event_tell, wait->event);
		if (wait->answer != QUEUE_EMPTY)
			return true;
	}
	return false;
}

/* Waits for an event of queues that are visited. */
static int wait_for(const struct visit *visit, struct event_wait *wait, uint64_t timeout)
{
	if (events_await(visit, wait->queues, wait->count, events_look, wait, timeout) ==
		WAITING_CLOSED)
		return PTL_INV_EQ;
	return event_code(wait->answer, wait->event);
}

int PtlEQWait(ptl_handle_eq_t eventq, ptl_event_t *event)
{
	struct visit visit;
	struct event_wait wait = {.count = 1, .event = event};
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(event))
		return visit_end(&visit, PTL_SEGV);
	wait.queues = &reader_keep(&visit, eventq)->view;
	return visit_end(&visit, wait_for(&visit, &wait, UINT64_MAX));
}

/* Views of queues, all of the interface that is visited; false: one is not. */
static bool queues_view(const struct visit *visit, const ptl_handle_eq_t *queues, unsigned count,
	struct queue_view *views)
{
	for (unsigned i = 0; i < count; i++) {
		if (!handle_lives(visit, queues[i], HANDLE_QUEUE))
			return false;
		views[i] = queue_view(visit->segment,
			segment_queue(visit->segment, handle_index(queues[i])), queues[i]);
	}
	return true;
}

static int events_poll(const struct visit *visit, const ptl_handle_eq_t *queues, uint64_t timeout,
	struct event_wait *wait)
{
	struct queue_view views[WAITING_MAX];
	bool lowered = false;
	int code;

	if (!queues_view(visit, queues, wait->count, views))
		return PTL_INV_EQ;
	wait->queues = views;
	code = wait_for(visit, wait, timeout);
	for (unsigned i = 0; i < wait->count && code == PTL_EQ_EMPTY; i++)
		if (queue_is_raised(views[i].queue)) {
			queue_lower(&views[i], visit->segment);
			lowered = true;
		}
	if (lowered && visit->interface->inlined)
		interface_rest();
	return code;
}

int postern_eq_poll(const ptl_handle_eq_t *queues, unsigned count, uint64_t timeout,
	ptl_event_t *event, unsigned *which)
{
	struct visit visit;
	struct event_wait wait = {.count = count, .event = event};
	int code;

	if (!front_is_open(&portals))
		return PTL_NOINIT;
	if (count == 0 || count > WAITING_MAX)
		return PTL_INV_EQ;
	if (address_is_bad(queues, count * sizeof(*queues), alignof(ptl_handle_eq_t)) ||
		ADDRESS_IS_BAD(event) || (which && ADDRESS_IS_BAD(which)))
		return PTL_SEGV;
	code = visit_enter(&visit, queues[0], HANDLE_QUEUE, PTL_INV_EQ);
	if (code != PTL_OK)
		return code;
	code = events_poll(&visit, queues, timeout, &wait);
	visit_leave(&visit);
	if (which && (code == PTL_OK || code == PTL_EQ_DROPPED))
		*which = wait.which;
	return code;
}

/* A descriptor for the caller, or a minus and a code. */
static int queue_descriptor(const struct visit *visit, ptl_handle_eq_t eventq)
{
	int descriptor;

	if (visit->interface->inlined && !interface_is_helped(visit->interface)) {
		log_error("postern_eq_fd: with PTL_PROGRESS=inline events come only while the "
			  "program calls Portals, so no descriptor "
			  "can announce them; set PTL_PROGRESS=both, or call postern_eq_poll() "
			  "with a timeout");
		return -PTL_FAIL;
	}
	descriptor = events_watch(visit, eventq);
	if (descriptor >= 0)
		return descriptor;
	if (!handle_lives(visit, eventq, HANDLE_QUEUE))
		return -PTL_INV_EQ;
	log_error("postern_eq_fd: no descriptor can be made (%s); close some, or raise the limit "
		  "(ulimit -n)",
		strerror(errno));
	return -PTL_NOSPACE;
}

int postern_eq_fd(ptl_handle_eq_t eventq)
{
	struct visit visit;
	int code = visit_enter(&visit, eventq, HANDLE_QUEUE, PTL_INV_EQ);

	if (code != PTL_OK)
		return -code;
	log_clear_error();
	return visit_end(&visit, queue_descriptor(&visit, eventq));
}
