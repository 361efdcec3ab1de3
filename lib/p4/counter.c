/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - counting events: PtlCTAlloc, PtlCTFree, PtlCTCancelTriggered, PtlCTGet, PtlCTWait,
 * PtlCTPoll, PtlCTSet, PtlCTInc, the last two at once and triggered. */
#include <p4/interface.h>

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
	struct segment *segment;
	uint32_t index, generation;
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	if (!ct_handle)
		return call_leave(&call, PTL_ARG_INVALID);
	segment = call.visit.segment;
	index = segment_take(segment, segment->free_counters);
	if (index == INDEX_NONE)
		return call_leave(&call, PTL_NO_SPACE);
	generation = segment_generation(segment);
	event_counter_init(segment_counter(segment, index),
		handle_make(HANDLE_COUNTER, (uint32_t)(call.visit.interface - interfaces), index,
			generation));
	*ct_handle = name_of(call.ni, NAME_COUNTER, index, generation);
	return call_leave(&call, PTL_OK);
}

static const ptl_ct_event_t nothing;

/* A command to the counter that a handle names. due: NULL: at once. */
static int counter_command(ptl_handle_ct_t ct_handle, enum command_kind kind, ptl_ct_event_t event,
	const struct due *due)
{
	struct long_command command; /* one line of it is used */
	struct call call;
	int code = call_enter(&call, ct_handle, NAME_COUNTER);

	if (code != PTL_OK)
		return code;
	command.command = (struct command){.kind = (uint8_t)kind};
	command.command.count.index = call.visit.index;
	command.command.count.generation = call.visit.generation;
	command.command.count.by = (struct event_count){event.success, event.failure};
	code = due ? call_keep(&call, &command, 1, due)
		   : code_of(visit_call(&call.visit, &command.command, NULL, NULL));
	if (code == PTL_OK && kind == COMMAND_COUNTER_FREE)
		segment_give(
			call.visit.segment, call.visit.segment->free_counters, call.visit.index);
	return call_leave(&call, code);
}

int PtlCTFree(ptl_handle_ct_t ct_handle)
{
	return counter_command(ct_handle, COMMAND_COUNTER_FREE, nothing, NULL);
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle)
{
	return counter_command(ct_handle, COMMAND_COUNTER_CANCEL, nothing, NULL);
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
	return counter_command(ct_handle, COMMAND_COUNTER_SET, new_ct, NULL);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};

	return counter_command(ct_handle, COMMAND_COUNTER_SET, new_ct, &due);
}

static int count_add(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, const struct due *due)
{
	if (increment.success != 0 && increment.failure != 0)
		return front_is_open(&portals4) ? PTL_ARG_INVALID : PTL_NO_INIT;
	return counter_command(ct_handle, COMMAND_COUNTER_ADD, increment, due);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
	return count_add(ct_handle, increment, NULL);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};

	return count_add(ct_handle, increment, &due);
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
	return call_leave(&call, code);
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

/* timeout: ns */
static int counts_await(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned size,
	uint64_t timeout, ptl_ct_event_t *event, unsigned *which)
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

	return wait_run(&wait, timeout);
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
	unsigned which;

	return counts_await(&ct_handle, &test, 1, UINT64_MAX, event, &which);
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
	return counts_await(ct_handles, tests, size, TIMEOUT_OF(timeout), event, which);
}
