/* SPDX-License-Identifier: BSD-3-Clause */
/* trigger.c - commands that wait for a counter (10): how they are wrapped.
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
