/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - counting events: PtlCTAlloc, PtlCTFree, PtlCTCancelTriggered, PtlCTGet, PtlCTWait,
 * PtlCTPoll, PtlCTSet, PtlCTInc. */
#include <p4/interface.h>

#include <base/clock.h>
#include <host/events.h>
#include <pmd-glue/glue.h>

#define NAP (50 * MICROSECOND) /* between looks at more counters than a thread can sleep on */

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
	struct segment *segment;
	uint32_t index, generation;
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	segment = call.visit.segment;
	index = ct_handle ? segment_take(segment, segment->free_counters) : INDEX_NONE;
	if (!ct_handle) {
		code = PTL_ARG_INVALID;
	} else if (index == INDEX_NONE) {
		code = PTL_NO_SPACE;
	} else {
		generation = segment_generation(segment);
		event_counter_init(segment_counter(segment, index),
			handle_make(HANDLE_COUNTER, (uint32_t)(call.visit.interface - interfaces),
				index, generation));
		*ct_handle = name_of(call.ni, NAME_COUNTER, index, generation);
	}
	call_leave(&call);
	return code;
}

/* A command to the counter that a handle names. */
static int counter_command(ptl_handle_ct_t ct_handle, enum command_kind kind, ptl_ct_event_t event)
{
	struct command command = {.kind = (uint8_t)kind};
	struct call call;
	int code = call_enter(&call, ct_handle, NAME_COUNTER);

	if (code != PTL_OK)
		return code;
	command.count.index = call.visit.index;
	command.count.generation = call.visit.generation;
	command.count.by = (struct event_count){event.success, event.failure};
	code = code_of(visit_call(&call.visit, &command, NULL, NULL));
	if (code == PTL_OK && kind == COMMAND_COUNTER_FREE)
		segment_give(
			call.visit.segment, call.visit.segment->free_counters, call.visit.index);
	call_leave(&call);
	return code;
}

int PtlCTFree(ptl_handle_ct_t ct_handle)
{
	return counter_command(ct_handle, COMMAND_COUNTER_FREE, (ptl_ct_event_t){0, 0});
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle)
{
	return counter_command(ct_handle, COMMAND_COUNTER_CANCEL, (ptl_ct_event_t){0, 0});
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
	return counter_command(ct_handle, COMMAND_COUNTER_SET, new_ct);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
	if (increment.success != 0 && increment.failure != 0)
		return front_is_open(&portals4) ? PTL_ARG_INVALID : PTL_NO_INIT;
	return counter_command(ct_handle, COMMAND_COUNTER_ADD, increment);
}

static struct event_counter *counter_of(const struct call *call, uint64_t handle)
{
	return segment_counter(call->visit.segment, handle_index(handle));
}

/* Reads a counter; false: it is gone. */
static bool counter_look(const struct call *call, uint64_t handle, ptl_ct_event_t *event)
{
	struct event_count count;

	if (!event_counter_read(counter_of(call, handle), handle, &count))
		return false;
	*event = (ptl_ct_event_t){.success = count.success, .failure = count.failure};
	return true;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
	struct call call;
	int code = call_enter(&call, ct_handle, NAME_COUNTER);

	if (code != PTL_OK)
		return code;
	/* Inline, a program that watches a counter drives what it waits for. */
	if (event && call.visit.interface->inlined)
		interface_drive();
	if (!event || !counter_look(&call,
			      atomic_load_explicit(call.visit.gate, memory_order_relaxed), event))
		code = PTL_ARG_INVALID;
	call_leave(&call);
	return code;
}

/* A wait for some counters. */
struct count_wait {
	const struct call *call;
	const ptl_handle_ct_t *counters;
	const ptl_size_t *tests;
	unsigned count;
	unsigned first; /* that is looked at first */
	ptl_ct_event_t *event;
	int code;
	unsigned which; /* counter that the code is of */
};

static bool counts_look(void *context)
{
	struct count_wait *wait = context;

	if (wait_aborted()) {
		wait->code = PTL_ABORTED;
		return true;
	}
	for (unsigned i = 0; i < wait->count; i++) {
		unsigned which = wait->first + i < wait->count ? wait->first + i
							       : wait->first + i - wait->count;
		uint64_t handle = call_object(wait->call, wait->counters[which], NAME_COUNTER);
		ptl_ct_event_t event;

		wait->which = which;
		wait->code = PTL_INTERRUPTED;
		if (handle == 0 || !counter_look(wait->call, handle, &event))
			return true;
		if (event.success < wait->tests[which] && event.failure == 0)
			continue;
		*wait->event = event;
		wait->code = PTL_OK;
		return true;
	}
	return false;
}

/* Waits for so many ns. If `naps`, there are more counters than these. */
static int counts_wait(struct count_wait *wait, const struct counter_view *views, unsigned count,
	bool naps, uint64_t timeout)
{
	const uint64_t start = glue_now(NULL);
	enum waiting_answer answer;
	uint64_t left = timeout;

	do {
		uint64_t passed = timeout == UINT64_MAX ? 0 : glue_now(NULL) - start;

		left = passed < timeout ? timeout - passed : 0;
		answer = counters_await(&wait->call->visit, views, count, counts_look, wait,
			naps && left > NAP ? NAP : left);
	} while (answer == WAITING_TIMEOUT && naps && left > NAP);
	if (answer == WAITING_CLOSED)
		return PTL_INTERRUPTED;
	return answer == WAITING_TIMEOUT ? PTL_CT_NONE_REACHED : wait->code;
}

static int counts_poll(struct count_wait *wait, uint64_t timeout)
{
	struct counter_view views[WAITING_MAX];
	unsigned kept = wait->count < WAITING_MAX ? wait->count : WAITING_MAX;
	int code;

	for (unsigned i = 0; i < wait->count; i++) {
		uint64_t handle = call_object(wait->call, wait->counters[i], NAME_COUNTER);

		if (handle == 0)
			return PTL_ARG_INVALID;
		if (i < kept)
			views[i] = (struct counter_view){
				counter_of(wait->call, handle), handle, wait->tests[i]};
	}
	wait_enter();
	code = counts_wait(wait, views, kept, kept < wait->count, timeout);
	wait_leave();
	return code;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
	struct call call;
	struct count_wait wait = {
		.call = &call, .counters = &ct_handle, .tests = &test, .count = 1, .event = event};
	int code = call_enter(&call, ct_handle, NAME_COUNTER);

	if (code != PTL_OK)
		return code;
	code = event ? counts_poll(&wait, UINT64_MAX) : PTL_ARG_INVALID;
	call_leave(&call);
	return code;
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
	/* As in PtlEQPoll. */
	static _Thread_local const ptl_handle_ct_t *last;
	static _Thread_local unsigned next;
	struct call call;
	struct count_wait wait = {.call = &call,
		.counters = ct_handles,
		.tests = tests,
		.count = size,
		.event = event};
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!ct_handles || !tests || size == 0 || !event || !which)
		return PTL_ARG_INVALID;
	code = call_enter(&call, ct_handles[0], NAME_COUNTER);
	if (code != PTL_OK)
		return code;
	wait.first = last == ct_handles && next < size ? next : 0;
	code = counts_poll(&wait, TIMEOUT_OF(timeout));
	call_leave(&call);
	if (code == PTL_OK) {
		*which = wait.which;
		last = ct_handles;
		next = wait.which + 1;
	}
	return code;
}
