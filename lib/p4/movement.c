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

	if (!ni_is_ranked(call->ni)) {
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
	const struct call *call, uint32_t md, ptl_size_t offset, ptl_size_t length)
{
	const uint64_t bytes = segment_region(call->visit.segment, md)->length;

	return length <= call->ni->limits.max_msg_size && offset <= bytes &&
	       length <= bytes - offset;
}

/* Do the data of calls go with their commands? */
static bool md_is_volatile(const struct call *call, uint32_t md)
{
	return call->ni->backings[md].options & PTL_MD_VOLATILE;
}

/* PTL_MD_VOLATILE: the data of a call go with its command, behind the operand. The lines of the
 * command. */
static unsigned movement_copy(const struct call *call, struct call_line *line, uint32_t md,
	uint64_t local, uint64_t operand, struct long_command *command)
{
	uint64_t bytes = operand;

	if (line->copied) {
		const struct region *region = segment_region(call->visit.segment, md);
		const struct map memory = {
			.start = region->start, .vector = region->vector, .length = region->length};

		/* Where memory is not there, the engine finds that, too, and the call's event
		 * tells. */
		line->copied = map_copy_out(
			&memory, local, (char *)command->further[1] + operand, line->length);
		bytes += line->copied ? line->length : 0;
	}
	return 2 + (unsigned)(bytes + RING_BYTES - 1) / RING_BYTES;
}

/* Checks a call, and posts it. due: as of call_post(); then the data are read when it is carried
 * out, also with PTL_MD_VOLATILE. An operand, so many bytes, is there. */
static inline int movement_begin(const struct call *call, const struct movement *movement,
	ptl_hdr_data_t hdr_data, struct long_command *command, struct call_line *line,
	uint64_t operand, const struct due *due)
{
	bool fetches = line->message == MESSAGE_FETCH;
	uint32_t md = fetches ? line->source : call->visit.index;
	struct move *move = &command->command.move;
	unsigned lines;

	command->command = (struct command){
		.kind = COMMAND_CALL,
		.move = {.value = hdr_data},
	};
	if (!range_is_good(call, call->visit.index, movement->local_offset, movement->length) ||
		!target_find(call, movement->target, move))
		return PTL_ARG_INVALID;
	move->region = call->visit.index;
	move->generation = call->visit.generation;
	move->portal = movement->portal;
	move->match_bits = movement->match_bits;
	move->offset = movement->remote_offset;
	line->local = movement->local_offset;
	line->length = movement->length;
	line->user = (uintptr_t)movement->user_ptr;
	line->copied = !due && line->message != MESSAGE_LOAD && md_is_volatile(call, md);
	lines = 2;
	if (line->copied || operand > 0)
		lines = movement_copy(call, line, md, fetches ? line->source_local : line->local,
			operand, command);
	memcpy(command->further[0], line, sizeof(*line));
	return call_post(call, command, lines, due);
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
	const unsigned options = call->ni->backings[call->visit.index].options;
	const struct attachment *attachment =
		segment_attachment(call->visit.segment, call->visit.index);

	if (ack_req > PTL_OC_ACK_REQ ||
		(ack_req == PTL_ACK_REQ && visit_region(&call->visit)->queue == 0) ||
		(ack_req == PTL_CT_ACK_REQ && attachment->counter == 0))
		return false;
	if (options & PTL_MD_UNRELIABLE && ack_req != PTL_NO_ACK_REQ)
		return false;
	return !md_is_volatile(call, call->visit.index) ||
	       length <= call->ni->limits.max_volatile_size;
}

/* A put, or an atomic. */
static int put_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, struct call_line line,
	const struct due *due)
{
	struct long_command command; /* lines are written as far as they are used */
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	if (put_is_good(&call, ack_req, movement->length) &&
		(line.message != MESSAGE_ATOMIC ||
			movement->length <= call.ni->limits.max_atomic_size)) {
		line.want = wants[ack_req];
		code = movement_begin(&call, movement, hdr_data, &command, &line, 0, due);
	} else {
		code = PTL_ARG_INVALID;
	}
	call_leave(&call);
	return code;
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
	const struct call_line line = {.message = MESSAGE_ATOMIC,
		.amo = message_amo(combination->operation, combination->datatype)};

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!combination_is_good(combination, movement->length))
		return PTL_ARG_INVALID;
	return put_begin(md_handle, movement, ack_req, hdr_data, line, due);
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
	struct long_command command; /* lines are written as far as they are used */
	struct call_line line = {
		.source_local = source->offset,
		.source = handle_index(md),
		.source_generation = handle_generation(md),
		.amo = message_amo(combination->operation, combination->datatype),
		.message = MESSAGE_FETCH,
	};
	uint64_t operand = 0;

	if (md == 0 || movement->length > call->ni->limits.max_fetch_atomic_size ||
		!range_is_good(call, line.source, source->offset, movement->length) ||
		(md_is_volatile(call, line.source) &&
			movement->length > call->ni->limits.max_volatile_size))
		return PTL_ARG_INVALID;
	if (amo_has_operand(combination->operation)) {
		operand = amo_size(combination->datatype);
		memcpy(command.further[1], combination->operand, operand);
	}
	return movement_begin(call, movement, hdr_data, &command, &line, operand, due);
}

static int fetch_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	const struct source *source, ptl_hdr_data_t hdr_data, const struct combination *combination,
	const struct due *due)
{
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	if (combination_is_good(combination, movement->length))
		code = fetch_post(&call, movement, source, hdr_data, combination, due);
	else
		code = PTL_ARG_INVALID;
	call_leave(&call);
	return code;
}

static int get_begin(
	ptl_handle_md_t md_handle, const struct movement *movement, const struct due *due)
{
	struct call_line line = {.message = MESSAGE_LOAD};
	struct long_command command; /* lines are written as far as they are used */
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	code = movement_begin(&call, movement, 0, &command, &line, 0, due);
	call_leave(&call);
	return code;
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	ptl_hdr_data_t hdr_data)
{
	const struct movement movement = {
		local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr};

	return put_begin(md_handle, &movement, ack_req, hdr_data,
		(struct call_line){.message = MESSAGE_STORE}, NULL);
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

	return put_begin(md_handle, &movement, ack_req, hdr_data,
		(struct call_line){.message = MESSAGE_STORE}, &due);
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
