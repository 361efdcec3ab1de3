/* SPDX-License-Identifier: BSD-3-Clause */
/* trigger.c - commands that wait for a counter (10): how they are wrapped, and those that change a
 * counter: PtlTriggeredCTInc, PtlTriggeredCTSet.
 *
 * segment->triggered counts the waiting commands of an NI: the thread that posts one adds 1, the
 * engine subtracts it when the command has run or will not. So no more than max_triggered_ops wait.
 */
#include <p4/interface.h>

#include <string.h>

/* Is there room for one more command that waits? Then it is counted. */
static bool triggered_take(const struct call *call)
{
	_Atomic uint32_t *triggered = &call->visit.segment->triggered;

	if (atomic_fetch_add_explicit(triggered, 1, memory_order_relaxed) <
		(uint32_t)call->ni->limits.max_triggered_ops)
		return true;
	atomic_fetch_sub_explicit(triggered, 1, memory_order_relaxed);
	return false;
}

int call_keep(const struct call *call, const struct long_command *command, unsigned lines,
	const struct due *due)
{
	const uint64_t counter = call_object(call, due->counter, NAME_COUNTER);
	struct long_command keeper = {
		.command = {.kind = COMMAND_TRIGGER, .lines = (uint8_t)lines}};

	assert(lines < RING_LINES);
	if (counter == 0)
		return PTL_ARG_INVALID;
	if (!triggered_take(call))
		return PTL_NO_SPACE;
	keeper.command.object.index = handle_index(counter);
	keeper.command.object.generation = handle_generation(counter);
	keeper.command.object.other = due->threshold;
	memcpy(keeper.further, command, lines * sizeof(keeper.further[0]));
	submission_post_lines(&call->visit.interface->submission, &keeper, 1 + lines);
	return PTL_OK;
}

/* A change of a counter that waits for another one, or for the same. */
static int counter_change(ptl_handle_ct_t ct_handle, enum command_kind kind, ptl_ct_event_t event,
	const struct due *due)
{
	struct long_command command = {.command = {.kind = (uint8_t)kind}};
	struct call call;
	int code = call_enter(&call, ct_handle, NAME_COUNTER);

	if (code != PTL_OK)
		return code;
	command.command.count.index = call.visit.index;
	command.command.count.generation = call.visit.generation;
	command.command.count.by = (struct event_count){event.success, event.failure};
	code = call_keep(&call, &command, 1, due);
	call_leave(&call);
	return code;
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};

	if (increment.success != 0 && increment.failure != 0)
		return front_is_open(&portals4) ? PTL_ARG_INVALID : PTL_NO_INIT;
	return counter_change(ct_handle, COMMAND_COUNTER_ADD, increment, &due);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};

	return counter_change(ct_handle, COMMAND_COUNTER_SET, new_ct, &due);
}
