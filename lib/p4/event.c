/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - event queues: PtlEQAlloc, PtlEQFree, PtlEQGet, PtlEQWait, PtlEQPoll. */
#include <p4/interface.h>

#include <stddef.h>
#include <string.h>

#include <host/events.h>

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
	if (!eq_handle)
		return call_leave(&call, PTL_ARG_INVALID);
	code = code_of(events_make(&call.visit, count == 0 ? 1 : count, &queue));
	if (code == PTL_OK)
		*eq_handle =
			name_of(call.ni, NAME_QUEUE, handle_index(queue), handle_generation(queue));
	return call_leave(&call, code);
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
	struct call call;
	int code = call_enter(&call, eq_handle, NAME_QUEUE);

	if (code != PTL_OK)
		return code;
	return call_leave(&call, code_of(events_free(&call.visit)));
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
	return call_leave(&call, event ? event_get(&call, event) : PTL_ARG_INVALID);
}

static int event_take(const struct wait *wait, unsigned index, uint64_t handle)
{
	const struct queue_view view = view_of(&wait->call, handle);

	(void)index;
	return queue_code(queue_take_oldest(&view, event_tell, wait->event));
}

/* timeout: ns */
static int events_wait(const ptl_handle_eq_t *eq_handles, unsigned size, uint64_t timeout,
	ptl_event_t *event, unsigned *which)
{
	struct wait wait = {
		.names = eq_handles,
		.count = size,
		.kind = NAME_QUEUE,
		.event = event,
		.which = which,
		.take = event_take,
		.nothing = PTL_EQ_EMPTY,
	};

	return wait_run(&wait, timeout);
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	unsigned which;

	return events_wait(&eq_handle, 1, UINT64_MAX, event, &which);
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	ptl_event_t *event, unsigned int *which)
{
	return events_wait(eq_handles, size, TIMEOUT_OF(timeout), event, which);
}
