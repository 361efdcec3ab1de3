/* SPDX-License-Identifier: BSD-3-Clause */
/* movement.c - data movement: PtlPut, PtlGet, PtlAtomic, PtlFetchAtomic, PtlSwap, at once and
 * triggered; PtlAtomicSync. */
#include <p4/interface.h>

#include <string.h>

#include <engine/amo.h>
#include <wire/message.h>

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), "numbers are the engine's")
SAME(AMO_BXOR, PTL_BXOR);
SAME(AMO_SWAP, PTL_SWAP);
SAME(AMO_OPERATIONS, PTL_OP_LAST);
SAME(AMO_LONG_DOUBLE_COMPLEX, PTL_LONG_DOUBLE_COMPLEX);
SAME(AMO_TYPES, PTL_DATATYPE_LAST);

/* What a call moves, and where to. */
struct movement {
	ptl_size_t local_offset;
	ptl_size_t length;
	ptl_process_t target;
	ptl_pt_index_t portal;
	ptl_match_bits_t match_bits;
	ptl_size_t remote_offset;
	void *user_ptr;
};

/* The process of a target, and who this process is to it. Returns false if the target is a
 * wildcard, or not in the map. */
static bool target_find(const struct call *call, ptl_process_t target, struct move *move)
{
	const struct ranks *ranks;

	if (!call->ranked) {
		move->to = (struct process){.nid = target.phys.nid, .pid = target.phys.pid};
		return target.phys.nid != PTL_NID_ANY && target.phys.pid != PTL_PID_ANY &&
		       target.phys.nid != UINT32_MAX && target.phys.pid != UINT32_MAX;
	}
	/* Acquire: pairs with the release in PtlSetMap. */
	ranks = atomic_load_explicit(&call->ni->ranks, memory_order_acquire);
	if (!ranks || target.rank >= ranks->count)
		return false;
	move->to = ranks->processes[target.rank];
	move->cookie = ranks->self;
	return true;
}

/* Is a range within a descriptor, and no longer than a message may be? */
static bool range_is_good(
	const struct call *call, const struct region *md, ptl_size_t offset, ptl_size_t length)
{
	const uint64_t bytes = md->length;

	return length <= call->ni->limits.max_msg_size && offset <= bytes &&
	       length <= bytes - offset;
}

/* Do the data of calls go with their commands? */
static bool md_is_volatile(const struct region *md)
{
	return md->extra & PTL_MD_VOLATILE;
}

/* What goes with a call: its operand, so many bytes, and behind it data (PTL_MD_VOLATILE). */
struct luggage {
	uint64_t bytes;
	uint8_t data[COPIED_MAX];
};

/* PTL_MD_VOLATILE: the data of a call go with it. Returns false where memory is not there: the
 * engine finds that, too, and the call's event tells. */
static __attribute__((noinline)) bool luggage_take(
	struct luggage *luggage, const struct region *region, uint64_t local, uint64_t length)
{
	const struct map memory = {
		.start = region->start, .vector = region->vector, .length = region->length};
	bool there = map_copy_out(&memory, local, luggage->data + luggage->bytes, length);

	luggage->bytes += there ? length : 0;
	return there;
}

/* Posts a call as a command, or keeps it. */
static __attribute__((noinline)) int movement_post(const struct call *call, const struct move *move,
	const struct rma_line *line, const struct luggage *luggage, const struct due *due)
{
	unsigned lines = 2 + (unsigned)(luggage->bytes + RING_BYTES - 1) / RING_BYTES;
	struct long_command command; /* lines are written as far as they are used */

	command.command = (struct command){.kind = COMMAND_RMA, .move = *move};
	memcpy(command.further[0], line, sizeof(*line));
	memcpy(command.further[1], luggage->data, luggage->bytes);
	if (due)
		return call_keep(call, &command, lines, due);
	submission_post_lines(&call->visit.interface->submission, &command, lines);
	return PTL_OK;
}

/* Checks a call, and begins it, or keeps it until it is due; then the data are read when it is
 * carried out, also with PTL_MD_VOLATILE. source: the descriptor whose data it brings, from `local`
 * on; NULL: it brings none. */
static ALWAYS_INLINE int movement_begin(const struct call *call, const struct movement *movement,
	ptl_hdr_data_t hdr_data, struct rma_line *line, const struct region *source, uint64_t local,
	struct luggage *luggage, const struct due *due)
{
	struct move move = {
		.region = call->visit.index,
		.generation = call->visit.generation,
		.portal = movement->portal,
		.match_bits = movement->match_bits,
		.offset = movement->remote_offset,
		.value = hdr_data,
	};

	if (!range_is_good(
		    call, visit_region(&call->visit), movement->local_offset, movement->length) ||
		!target_find(call, movement->target, &move))
		return PTL_ARG_INVALID;
	line->local = movement->local_offset;
	line->length = movement->length;
	line->user = (uintptr_t)movement->user_ptr;
	line->copied = source && !due && md_is_volatile(source) &&
		       luggage_take(luggage, source, local, movement->length);
	if (!due &&
		submission_begin(&call->visit.interface->submission, &move, line, luggage->data))
		return PTL_OK;
	{
		const struct call copy = *call; /* so that the original stays in registers */

		return movement_post(&copy, &move, line, luggage, due);
	}
}

static const uint8_t wants[] = {
	[PTL_NO_ACK_REQ] = WANT_NOTHING,
	[PTL_ACK_REQ] = WANT_EVENT,
	[PTL_CT_ACK_REQ] = WANT_COUNT,
	[PTL_OC_ACK_REQ] = WANT_END,
};

/* Can the descriptor that is visited take such an acknowledgement, and make such a put? */
static bool put_is_good(const struct call *call, ptl_ack_req_t ack_req, ptl_size_t length)
{
	const struct region *md = visit_region(&call->visit);
	const struct attachment *attachment =
		segment_attachment(call->visit.segment, call->visit.index);

	if (ack_req > PTL_OC_ACK_REQ || (ack_req == PTL_ACK_REQ && md->queue == 0) ||
		(ack_req == PTL_CT_ACK_REQ && attachment->counter == 0))
		return false;
	if (md->extra & PTL_MD_UNRELIABLE && ack_req != PTL_NO_ACK_REQ)
		return false;
	return !md_is_volatile(md) || length <= call->ni->limits.max_volatile_size;
}

/* A put, or an atomic. */
static ALWAYS_INLINE int put_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, uint8_t message, uint16_t amo,
	const struct due *due)
{
	struct luggage luggage; /* written as far as it is used */
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	luggage.bytes = 0;
	if (code != PTL_OK)
		return code;
	if (put_is_good(&call, ack_req, movement->length) &&
		(message != MESSAGE_ATOMIC ||
			movement->length <= call.ni->limits.max_atomic_size)) {
		struct rma_line line = {.message = message, .amo = amo, .want = wants[ack_req]};

		code = movement_begin(&call, movement, hdr_data, &line, visit_region(&call.visit),
			movement->local_offset, &luggage, due);
	} else {
		code = PTL_ARG_INVALID;
	}
	return call_leave(&call, code);
}

/* An operation on elements of a type: one of those up to PTL_BXOR, or a swap. */
struct combination {
	ptl_op_t operation;
	ptl_datatype_t datatype;
	bool swaps;
	const void *operand;
};

static bool combination_is_good(const struct combination *combination, ptl_size_t length)
{
	const ptl_op_t operation = combination->operation;

	if (!amo_is_valid(operation, combination->datatype) ||
		(operation >= PTL_SWAP) != combination->swaps)
		return false;
	return !amo_has_operand(operation) ||
	       (combination->operand && length <= amo_size(combination->datatype));
}

static int atomic_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const struct combination *combination,
	const struct due *due)
{
	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!combination_is_good(combination, movement->length))
		return PTL_ARG_INVALID;
	return put_begin(md_handle, movement, ack_req, hdr_data, MESSAGE_ATOMIC,
		message_amo(combination->operation, combination->datatype), due);
}

/* The descriptor whose data a fetch brings. */
struct source {
	ptl_handle_md_t md;
	ptl_size_t offset;
};

/* A fetch whose answer goes to the descriptor that is visited. */
static int fetch_post(const struct call *call, const struct movement *movement,
	const struct source *source, ptl_hdr_data_t hdr_data, const struct combination *combination,
	const struct due *due)
{
	const uint64_t md = call_object(call, source->md, NAME_MD);
	const struct region *from = segment_region(call->visit.segment, handle_index(md));
	struct luggage luggage; /* written as far as it is used */
	struct rma_line line = {
		.source_local = source->offset,
		.source = handle_index(md),
		.source_generation = handle_generation(md),
		.amo = message_amo(combination->operation, combination->datatype),
		.message = MESSAGE_FETCH,
	};

	luggage.bytes = 0;
	if (md == 0 || movement->length > call->ni->limits.max_fetch_atomic_size ||
		!range_is_good(call, from, source->offset, movement->length) ||
		(md_is_volatile(from) && movement->length > call->ni->limits.max_volatile_size))
		return PTL_ARG_INVALID;
	if (amo_has_operand(combination->operation)) {
		luggage.bytes = amo_size(combination->datatype);
		memcpy(luggage.data, combination->operand, luggage.bytes);
	}
	return movement_begin(call, movement, hdr_data, &line, from, source->offset, &luggage, due);
}

static int fetch_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	const struct source *source, ptl_hdr_data_t hdr_data, const struct combination *combination,
	const struct due *due)
{
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	if (!combination_is_good(combination, movement->length))
		return call_leave(&call, PTL_ARG_INVALID);
	code = fetch_post(&call, movement, source, hdr_data, combination, due);
	return call_leave(&call, code);
}

static ALWAYS_INLINE int get_begin(
	ptl_handle_md_t md_handle, const struct movement *movement, const struct due *due)
{
	struct rma_line line = {.message = MESSAGE_LOAD};
	struct luggage luggage; /* a get has none */
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	luggage.bytes = 0;
	if (code != PTL_OK)
		return code;
	code = movement_begin(&call, movement, 0, &line, NULL, 0, &luggage, due);
	return call_leave(&call, code);
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};

	return put_begin(md_handle, &movement, ack_req, hdr_data, MESSAGE_STORE, 0, NULL);
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};

	return get_begin(md_handle, &movement, NULL);
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct due due = {trig_ct_handle, threshold};

	return put_begin(md_handle, &movement, ack_req, hdr_data, MESSAGE_STORE, 0, &due);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
	ptl_size_t threshold)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct due due = {trig_ct_handle, threshold};

	return get_begin(md_handle, &movement, &due);
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct combination combination = {operation, datatype, false, NULL};

	return atomic_begin(md_handle, &movement, ack_req, hdr_data, &combination, NULL);
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
	ptl_datatype_t datatype)
{
	const struct movement movement = {
		local_get_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct source source = {put_md_handle, local_put_offset};
	const struct combination combination = {operation, datatype, false, NULL};

	return fetch_begin(get_md_handle, &movement, &source, hdr_data, &combination, NULL);
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	ptl_op_t operation, ptl_datatype_t datatype)
{
	const struct movement movement = {
		local_get_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct source source = {put_md_handle, local_put_offset};
	const struct combination combination = {operation, datatype, true, operand};

	return fetch_begin(get_md_handle, &movement, &source, hdr_data, &combination, NULL);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct combination combination = {operation, datatype, false, NULL};
	const struct due due = {trig_ct_handle, threshold};

	return atomic_begin(md_handle, &movement, ack_req, hdr_data, &combination, &due);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
	ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct movement movement = {
		local_get_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct source source = {put_md_handle, local_put_offset};
	const struct combination combination = {operation, datatype, false, NULL};
	const struct due due = {trig_ct_handle, threshold};

	return fetch_begin(get_md_handle, &movement, &source, hdr_data, &combination, &due);
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
	ptl_size_t threshold)
{
	const struct movement movement = {
		local_get_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};
	const struct source source = {put_md_handle, local_put_offset};
	const struct combination combination = {operation, datatype, true, operand};
	const struct due due = {trig_ct_handle, threshold};

	return fetch_begin(get_md_handle, &movement, &source, hdr_data, &combination, &due);
}

int PtlAtomicSync(void)
{
	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	/* Engines change memory as other threads of the process do. */
	atomic_thread_fence(memory_order_seq_cst);
	return PTL_OK;
}
