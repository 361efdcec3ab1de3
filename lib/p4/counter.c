/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - counting events: PtlCTAlloc, PtlCTFree, PtlCTCancelTriggered, PtlCTGet, PtlCTWait,
 * PtlCTPoll, PtlCTSet, PtlCTInc. */
#include <p4/interface.h>

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

static int count_take(const struct wait *wait, unsigned index, uint64_t handle)
{
	ptl_ct_event_t event;

	if (!counter_look(&wait->call, handle, &event))
		return PTL_INTERRUPTED;
	if (event.success < wait->tests[index] && event.failure == 0)
		return PTL_CT_NONE_REACHED;
	*(ptl_ct_event_t *)wait->event = event;
	return PTL_OK;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
	unsigned which;
	struct wait wait = {
		.names = &ct_handle,
		.tests = &test,
		.count = 1,
		.kind = NAME_COUNTER,
		.event = event,
		.which = &which,
		.take = count_take,
		.nothing = PTL_CT_NONE_REACHED,
	};

	return wait_run(&wait, UINT64_MAX);
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
	struct wait wait = {
		.names = ct_handles,
		.tests = tests,
		.count = tests ? size : 0,
		.kind = NAME_COUNTER,
		.event = event,
		.which = which,
		.take = count_take,
		.nothing = PTL_CT_NONE_REACHED,
	};

	return wait_run(&wait, TIMEOUT_OF(timeout));
}
