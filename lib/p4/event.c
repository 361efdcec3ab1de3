/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - event queues: PtlEQAlloc, PtlEQFree, PtlEQGet, PtlEQWait, PtlEQPoll. */
#include <p4/interface.h>

#include <stddef.h>
#include <string.h>

#include <base/clock.h>
#include <host/events.h>
#include <pmd-glue/glue.h>

#define NAP (50 * MICROSECOND) /* between looks at more queues than a thread can sleep on */

/* The last five fields of an event are the bytes of one word. */
#define EVENT_BYTE(field, at)                                                                      \
	static_assert(offsetof(ptl_event_t, field) == offsetof(ptl_event_t, type) + (at) / 8,      \
		"an event's bytes are as the engine has them")
EVENT_BYTE(type, TIER_KIND_AT);
EVENT_BYTE(ptl_list, TIER_LIST_AT);
EVENT_BYTE(ni_fail_type, TIER_VERDICT_AT);
EVENT_BYTE(atomic_operation, TIER_OPERATION_AT);
EVENT_BYTE(atomic_type, TIER_TYPE_AT);
static_assert(sizeof(ptl_event_t) == offsetof(ptl_event_t, type) + sizeof(uint64_t), "and the end");
#define EVENT_IS(kind, type) static_assert((int)(kind) == (int)(type), "kinds are the engine's")
EVENT_IS(TIER_GET, PTL_EVENT_GET);
EVENT_IS(TIER_GET_KEPT, PTL_EVENT_GET_OVERFLOW);
EVENT_IS(TIER_PUT, PTL_EVENT_PUT);
EVENT_IS(TIER_PUT_KEPT, PTL_EVENT_PUT_OVERFLOW);
EVENT_IS(TIER_ATOMIC, PTL_EVENT_ATOMIC);
EVENT_IS(TIER_ATOMIC_KEPT, PTL_EVENT_ATOMIC_OVERFLOW);
EVENT_IS(TIER_FETCH, PTL_EVENT_FETCH_ATOMIC);
EVENT_IS(TIER_FETCH_KEPT, PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
EVENT_IS(TIER_REPLY, PTL_EVENT_REPLY);
EVENT_IS(TIER_SEND, PTL_EVENT_SEND);
EVENT_IS(TIER_ACK, PTL_EVENT_ACK);
EVENT_IS(TIER_DISABLED, PTL_EVENT_PT_DISABLED);
EVENT_IS(TIER_LINK, PTL_EVENT_LINK);
EVENT_IS(TIER_UNLINK, PTL_EVENT_AUTO_UNLINK);
EVENT_IS(TIER_FREE, PTL_EVENT_AUTO_FREE);
EVENT_IS(TIER_SEARCH, PTL_EVENT_SEARCH);
EVENT_IS(TIER_UNDELIVERABLE, PTL_NI_UNDELIVERABLE);
EVENT_IS(TIER_DROPPED, PTL_NI_DROPPED);
EVENT_IS(TIER_REFUSED, PTL_NI_PT_DISABLED);
EVENT_IS(TIER_PERMISSION, PTL_NI_PERM_VIOLATION);
EVENT_IS(TIER_OPERATION, PTL_NI_OP_VIOLATION);
EVENT_IS(TIER_NO_MATCH, PTL_NI_NO_MATCH);
EVENT_IS(TIER_FAULT, PTL_NI_SEGV);

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle)
{
	struct call call;
	uint64_t queue;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (eq_handle)
		code = code_of(events_make(&call.visit, count == 0 ? 1 : count, &queue));
	else
		code = PTL_ARG_INVALID;
	if (code == PTL_OK)
		*eq_handle =
			name_of(call.ni, NAME_QUEUE, handle_index(queue), handle_generation(queue));
	call_leave(&call);
	return code;
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
	struct call call;
	int code = call_enter(&call, eq_handle, NAME_QUEUE);

	if (code != PTL_OK)
		return code;
	code = code_of(events_free(&call.visit));
	call_leave(&call);
	return code;
}

/* What an event says, straight from its slot. */
static inline void event_tell(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *event)
{
	char *to = event;

	(void)attributes;
	(void)second;
/* A word, from this field on. */
#define TELL(word, field)                                                                          \
	do {                                                                                       \
		uint64_t value = atomic_load_explicit(&slot->words[word], memory_order_relaxed);   \
		memcpy(to + offsetof(ptl_event_t, field), &value, sizeof(value));                  \
	} while (0)
	TELL(EVENT_START, start);
	TELL(EVENT_USER, user_ptr);
	TELL(EVENT_VALUE, hdr_data);
	TELL(EVENT_MATCH_BITS, match_bits);
	TELL(EVENT_REQUESTED, rlength);
	TELL(EVENT_MOVED, mlength);
	TELL(EVENT_OFFSET, remote_offset);
	TELL(EVENT_INITIATOR, initiator);
	TELL(EVENT_TARGET, uid); /* and pt_index */
	TELL(EVENT_REGION, type);
#undef TELL
}

/* What a queue's answer means to the caller. */
static int queue_code(enum queue_answer answer)
{
	switch (answer) {
	case QUEUE_EVENT:
		return PTL_OK;
	case QUEUE_EVENT_AFTER_GAP:
		return PTL_EQ_DROPPED;
	case QUEUE_EMPTY:
		return PTL_EQ_EMPTY;
	default:
		return PTL_INTERRUPTED;
	}
}

static struct queue_view view_of(const struct call *call, uint64_t queue)
{
	struct segment *segment = call->visit.segment;

	return queue_view(segment, segment_queue(segment, handle_index(queue)), queue);
}

/* The view of the queue that is visited. */
static struct queue_view view_visited(const struct call *call)
{
	return view_of(call, atomic_load_explicit(call->visit.gate, memory_order_relaxed));
}

static int event_get(const struct call *call, ptl_event_t *event)
{
	const struct queue_view view = view_visited(call);
	enum queue_answer answer = queue_take_oldest(&view, event_tell, event);

	if (answer == QUEUE_EMPTY && call->visit.interface->inlined && interface_drive() != 0)
		answer = queue_take_oldest(&view, event_tell, event);
	return answer == QUEUE_GONE ? PTL_ARG_INVALID : queue_code(answer);
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	struct call call;
	int code = call_enter(&call, eq_handle, NAME_QUEUE);

	if (code != PTL_OK)
		return code;
	code = event ? event_get(&call, event) : PTL_ARG_INVALID;
	call_leave(&call);
	return code;
}

/* A wait for the events of some queues. */
struct event_wait {
	const struct call *call;
	const ptl_handle_eq_t *queues;
	unsigned count;
	unsigned first; /* that is looked at first */
	ptl_event_t *event;
	int code;
	unsigned which; /* queue that the code is of */
};

static bool events_look(void *context)
{
	struct event_wait *wait = context;

	if (wait_aborted()) {
		wait->code = PTL_ABORTED;
		return true;
	}
	for (unsigned i = 0; i < wait->count; i++) {
		unsigned which = wait->first + i < wait->count ? wait->first + i
							       : wait->first + i - wait->count;
		uint64_t queue = call_object(wait->call, wait->queues[which], NAME_QUEUE);
		struct queue_view view;

		wait->which = which;
		wait->code = PTL_INTERRUPTED;
		if (queue == 0)
			return true;
		view = view_of(wait->call, queue);
		wait->code = queue_code(queue_take_oldest(&view, event_tell, wait->event));
		if (wait->code != PTL_EQ_EMPTY)
			return true;
	}
	return false;
}

/* Waits for so many ns. The queues are known to live, and are more than a thread can sleep on if
 * `naps`: then these are not all. */
static int events_wait(struct event_wait *wait, const struct queue_view *views, unsigned count,
	bool naps, uint64_t timeout)
{
	const uint64_t start = glue_now(NULL);
	enum waiting_answer answer;
	uint64_t left = timeout;

	do {
		uint64_t passed = timeout == UINT64_MAX ? 0 : glue_now(NULL) - start;

		left = passed < timeout ? timeout - passed : 0;
		answer = events_await(&wait->call->visit, views, count, events_look, wait,
			naps && left > NAP ? NAP : left);
	} while (answer == WAITING_TIMEOUT && naps && left > NAP);
	if (answer == WAITING_CLOSED)
		return PTL_INTERRUPTED;
	return answer == WAITING_TIMEOUT ? PTL_EQ_EMPTY : wait->code;
}

static int events_poll(struct event_wait *wait, uint64_t timeout)
{
	struct queue_view views[WAITING_MAX];
	unsigned kept = wait->count < WAITING_MAX ? wait->count : WAITING_MAX;
	int code;

	for (unsigned i = 0; i < wait->count; i++) {
		uint64_t queue = call_object(wait->call, wait->queues[i], NAME_QUEUE);

		if (queue == 0)
			return PTL_ARG_INVALID;
		if (i < kept)
			views[i] = view_of(wait->call, queue);
	}
	wait_enter();
	code = events_wait(wait, views, kept, kept < wait->count, timeout);
	wait_leave();
	return code;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	struct call call;
	struct event_wait wait = {.call = &call, .queues = &eq_handle, .count = 1, .event = event};
	int code = call_enter(&call, eq_handle, NAME_QUEUE);

	if (code != PTL_OK)
		return code;
	code = event ? events_poll(&wait, UINT64_MAX) : PTL_ARG_INVALID;
	call_leave(&call);
	return code;
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	ptl_event_t *event, unsigned int *which)
{
	/* Behind the queue that gave the last event, in the array that this thread polled last. */
	static _Thread_local const ptl_handle_eq_t *last;
	static _Thread_local unsigned next;
	struct call call;
	struct event_wait wait = {
		.call = &call, .queues = eq_handles, .count = size, .event = event};
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!eq_handles || size == 0 || !event || !which)
		return PTL_ARG_INVALID;
	code = call_enter(&call, eq_handles[0], NAME_QUEUE);
	if (code != PTL_OK)
		return code;
	wait.first = last == eq_handles && next < size ? next : 0;
	code = events_poll(&wait, TIMEOUT_OF(timeout));
	call_leave(&call);
	if (code == PTL_OK || code == PTL_EQ_DROPPED) {
		*which = wait.which;
		last = eq_handles;
		next = wait.which + 1;
	}
	return code;
}
