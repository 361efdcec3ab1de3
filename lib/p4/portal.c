/* SPDX-License-Identifier: BSD-3-Clause */
/* portal.c - the portal table: PtlPTAlloc, PtlPTFree, PtlPTDisable, PtlPTEnable.
 *
 * A thread claims a free portal with one compare-and-swap of its state; the engine does the rest.
 */
#include <p4/interface.h>

static bool portal_claim(const struct call *call, uint32_t index)
{
	struct portal *portal = segment_portal(call->visit.segment, index);
	uint32_t free = PORTAL_FREE;

	/* Acquire: pairs with the release of the engine when it gave the portal back. */
	return atomic_compare_exchange_strong_explicit(
		&portal->state, &free, PORTAL_CLAIMED, memory_order_acquire, memory_order_relaxed);
}

static int portal_choose(const struct call *call, ptl_pt_index_t wanted, uint32_t *index)
{
	uint32_t portals = call->visit.segment->limits.portals;

	*index = wanted;
	if (wanted != PTL_PT_ANY)
		return portal_claim(call, wanted) ? PTL_OK : PTL_PT_IN_USE;
	for (*index = 0; *index < portals; ++*index)
		if (portal_claim(call, *index))
			return PTL_OK;
	return PTL_PT_FULL;
}

static int portal_alloc(const struct call *call, unsigned options, ptl_handle_eq_t eq_handle,
	ptl_pt_index_t wanted, ptl_pt_index_t *pt_index)
{
	struct command command = {.kind = COMMAND_PORTAL_OPEN};
	uint64_t queue = 0;
	int code;

	if (!pt_index || (options & ~PTL_PT_ALLOC_OPTIONS_MASK) != 0 ||
		(wanted != PTL_PT_ANY && wanted >= call->visit.segment->limits.portals))
		return PTL_ARG_INVALID;
	if (eq_handle == PTL_EQ_NONE && options & PTL_PT_FLOWCTRL)
		return PTL_PT_EQ_NEEDED;
	if (eq_handle != PTL_EQ_NONE) {
		queue = call_object(call, eq_handle, NAME_QUEUE);
		if (queue == 0)
			return PTL_ARG_INVALID;
	}
	code = portal_choose(call, wanted, &command.object.index);
	if (code != PTL_OK)
		return code;
	*pt_index = command.object.index;
	command.object.other = queue;
	command.position = (options & PTL_PT_ALLOC_DISABLED) != 0;
	command.update = (options & PTL_PT_FLOWCTRL) != 0;
	return code_of(visit_call(&call->visit, &command, NULL, NULL));
}

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	return call_leave(&call, portal_alloc(&call, options, eq_handle, pt_index_req, pt_index));
}

/* A command to a portal, which waits until messages to it have ended. */
static int portal_command(
	ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, enum command_kind kind)
{
	struct command command = {.kind = (uint8_t)kind};
	enum answer answer;
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	command.object.index = pt_index;
	answer = call_until(&call, &command);
	return call_leave(&call, answer == ANSWER_NOT_EMPTY ? PTL_PT_IN_USE : code_of(answer));
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	return portal_command(ni_handle, pt_index, COMMAND_PORTAL_CLOSE);
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	return portal_command(ni_handle, pt_index, COMMAND_PORTAL_DISABLE);
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	return portal_command(ni_handle, pt_index, COMMAND_PORTAL_ENABLE);
}
