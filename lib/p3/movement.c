/* movement.c - PtlPut, PtlGet. */
#include <p3/interface.h>

#include <base/trace.h>

/* Takes one operation from the threshold, with the same step that sees that the descriptor lives;
 * false when it is dead or inactive. *taken: the threshold has a bound, so the poll core is to take
 * it from its own count. Nothing else is handed over by the gate: the ring carries the command. */
static bool region_spend_one(const struct visit *visit, bool *taken)
{
	uint64_t gate = atomic_load_explicit(visit->gate, memory_order_relaxed);

	do {
		if (!gate_is(gate, visit->generation) || gate_low(gate) == 0)
			return false;
		*taken = gate_low(gate) != GATE_THRESHOLD_INFINITE;
		if (!*taken)
			return true;
	} while (!atomic_compare_exchange_weak_explicit(
		visit->gate, &gate, gate - 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

static bool region_is_active(const struct visit *visit)
{
	return gate_low(atomic_load_explicit(visit->gate, memory_order_relaxed)) != 0;
}

int PtlPut(ptl_handle_md_t mem_desc, ptl_ack_req_t ack_req, ptl_process_id_t target,
	ptl_pt_index_t portal, ptl_ac_index_t cookie, ptl_match_bits_t match_bits,
	ptl_size_t offset, ptl_hdr_data_t hdr_data)
{
	struct visit visit;
	bool taken;
	int code = visit_enter(&visit, mem_desc, HANDLE_REGION, PTL_INV_MD);

	if (code != PTL_OK)
		return code;
	if (!process_is_valid(target)) {
		code = PTL_INV_PROC;
	} else if (!region_spend_one(&visit, &taken)) {
		code = PTL_INV_MD;
	} else {
		const struct command command = {
			.kind = COMMAND_PUT,
			.taken = taken,
			.acknowledge = ack_req == PTL_ACK_REQ,
			.move = {.region = visit.index,
				.generation = visit.generation,
				.nid = target.nid,
				.pid = target.pid,
				.portal = portal,
				.cookie = cookie,
				.match_bits = match_bits,
				.offset = offset,
				.value = hdr_data},
		};

		trace(TRACE_CALL, (uint32_t)(visit.interface - interfaces), 0, 0);
		submission_post(&visit.interface->submission, &command);
	}
	visit_leave(&visit);
	return code;
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
		const struct command command = {
			.kind = COMMAND_GET,
			.move = {.region = visit.index,
				.generation = visit.generation,
				.nid = target.nid,
				.pid = target.pid,
				.portal = portal,
				.cookie = cookie,
				.match_bits = match_bits,
				.offset = offset},
		};

		trace(TRACE_CALL, (uint32_t)(visit.interface - interfaces), 0, 0);
		submission_post(&visit.interface->submission, &command);
	}
	visit_leave(&visit);
	return code;
}
