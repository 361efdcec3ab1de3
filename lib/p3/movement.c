/* SPDX-License-Identifier: BSD-3-Clause */
/* movement.c - PtlPut, PtlGet. */
#include <p3/interface.h>

#include <string.h>

#include <base/trace.h>

static_assert(sizeof(ptl_process_id_t) == sizeof(struct process) &&
		      offsetof(ptl_process_id_t, pid) == offsetof(struct process, pid),
	"process ids are the transport's");

static void process_from(struct process *process, ptl_process_id_t id)
{
	memcpy(process, &id, sizeof(*process));
}

static bool region_is_active(const struct visit *visit)
{
	return gate_low(atomic_load_explicit(visit->gate, memory_order_relaxed)) != 0;
}

static __attribute__((noinline)) void call_trace(const struct interface *interface)
{
	trace(TRACE_CALL, (uint32_t)(interface - interfaces), 0, 0);
}

/* A put that the engine did not carry out at once: checked, charged and posted. gate: the
 * region's. */
static __attribute__((noinline)) int put_post(const struct interface *interface,
	_Atomic uint64_t *gate, const struct move *move, bool acknowledge)
{
	struct command command = {.kind = COMMAND_PUT, .acknowledge = acknowledge, .move = *move};
	bool taken;

	/* The gate hands nothing over: the ring does. */
	if (!gate_is(atomic_load_explicit(gate, memory_order_relaxed), move->generation))
		return PTL_INV_MD;
	if (!process_is_valid((ptl_process_id_t){.nid = move->to.nid, .pid = move->to.pid}))
		return PTL_INV_PROC;
	if (!gate_take(gate, move->generation, &taken))
		return PTL_INV_MD;
	command.taken = taken;
	submission_post(&interface->submission, &command);
	return PTL_OK;
}

/* PtlPut where something is not as it mostly is. */
static __attribute__((noinline)) int put(
	ptl_handle_md_t mem_desc, const struct move *move, bool acknowledge)
{
	struct visit visit;
	int code = visit_enter(&visit, mem_desc, HANDLE_REGION, PTL_INV_MD);

	if (code != PTL_OK)
		return code;
	return visit_end(&visit, put_post(visit.interface, visit.gate, move, acknowledge));
}

int PtlPut(ptl_handle_md_t mem_desc, ptl_ack_req_t ack_req, ptl_process_id_t target,
	ptl_pt_index_t portal, ptl_ac_index_t cookie, ptl_match_bits_t match_bits,
	ptl_size_t offset, ptl_hdr_data_t hdr_data)
{
	bool acknowledge = ack_req == PTL_ACK_REQ;
	struct move move = {
		.region = handle_index(mem_desc),
		.generation = handle_generation(mem_desc),
		.portal = portal,
		.cookie = cookie,
		.match_bits = match_bits,
		.offset = offset,
		.value = hdr_data,
	};
	struct visit visit;
	int code = PTL_OK;

	process_from(&move.to, target);
	if (!front_visit_begin(&portals, &visit, mem_desc, HANDLE_REGION))
		return put(mem_desc, &move, acknowledge);
	if (trace_wanted())
		call_trace(visit.interface);
	if (!process_is_valid(target) || !submission_put(&visit.interface->submission,
						 visit_region(&visit), &move, acknowledge))
		code = put_post(visit.interface, visit.gate, &move, acknowledge);
	return visit_end(&visit, code);
}

int PtlGet(ptl_handle_md_t mem_desc, ptl_process_id_t target, ptl_pt_index_t portal,
	ptl_ac_index_t cookie, ptl_match_bits_t match_bits, ptl_size_t offset)
{
	struct visit visit;
	int code = visit_enter(&visit, mem_desc, HANDLE_REGION, PTL_INV_MD);

	if (code != PTL_OK)
		return code;
	if (!process_is_valid(target)) {
		code = PTL_INV_PROC;
	} else if (!region_is_active(&visit)) {
		code = PTL_INV_MD;
	} else {
		struct command command = {
			.kind = COMMAND_GET,
			.move = {.region = visit.index,
				.generation = visit.generation,
				.portal = portal,
				.cookie = cookie,
				.match_bits = match_bits,
				.offset = offset},
		};

		process_from(&command.move.to, target);
		call_trace(visit.interface);
		submission_post(&visit.interface->submission, &command);
	}
	return visit_end(&visit, code);
}
