/* SPDX-License-Identifier: BSD-3-Clause */
/* movement.c - data movement: PtlPut, PtlGet, PtlTriggeredPut, PtlTriggeredGet. */
#include <p4/interface.h>

#include <string.h>

#include <wire/message.h>

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

/* The process of a target, and who this process is to it. False: the target is a wildcard, or not
 * in the map. */
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

/* Is a range within the descriptor that is visited, and no longer than a message may be? */
static bool range_is_good(const struct call *call, ptl_size_t offset, ptl_size_t length)
{
	const uint64_t bytes = visit_region(&call->visit)->length;

	return length <= call->ni->limits.max_msg_size && offset <= bytes &&
	       length <= bytes - offset;
}

/* PTL_MD_VOLATILE: the data of a put go with its command. The lines of the command. */
static unsigned movement_copy(
	const struct call *call, struct call_line *line, struct long_command *command)
{
	const struct region *region = visit_region(&call->visit);
	const struct map memory = {
		.start = region->start, .vector = region->vector, .length = region->length};

	if (line->message != MESSAGE_STORE ||
		!(call->ni->backings[call->visit.index].options & PTL_MD_VOLATILE))
		return 2;
	line->copied = true;
	map_copy_out(&memory, line->local, command->further[1], line->length);
	return 2 + (unsigned)(line->length + RING_BYTES - 1) / RING_BYTES;
}

/* Checks a call, and posts it. due: as of call_post(); then the data are read when it is carried
 * out, also with PTL_MD_VOLATILE. */
static int movement_begin(const struct call *call, const struct movement *movement,
	struct long_command *command, struct call_line *line, const struct due *due)
{
	struct move *move = &command->command.move;
	unsigned lines;

	if (!range_is_good(call, movement->local_offset, movement->length) ||
		!target_find(call, movement->target, move))
		return PTL_ARG_INVALID;
	command->command.kind = COMMAND_CALL;
	move->region = call->visit.index;
	move->generation = call->visit.generation;
	move->portal = movement->portal;
	move->match_bits = movement->match_bits;
	move->offset = movement->remote_offset;
	line->local = movement->local_offset;
	line->length = movement->length;
	line->user = (uintptr_t)movement->user_ptr;
	lines = due ? 2 : movement_copy(call, line, command);
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
	return !(options & PTL_MD_VOLATILE) || length <= call->ni->limits.max_volatile_size;
}

static int put_begin(ptl_handle_md_t md_handle, const struct movement *movement,
	ptl_ack_req_t ack_req, ptl_hdr_data_t hdr_data, const struct due *due)
{
	struct call_line line = {.message = MESSAGE_STORE};
	struct long_command command = {.command = {.move = {.value = hdr_data}}};
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	if (put_is_good(&call, ack_req, movement->length)) {
		line.want = wants[ack_req];
		code = movement_begin(&call, movement, &command, &line, due);
	} else {
		code = PTL_ARG_INVALID;
	}
	call_leave(&call);
	return code;
}

static int get_begin(
	ptl_handle_md_t md_handle, const struct movement *movement, const struct due *due)
{
	struct call_line line = {.message = MESSAGE_LOAD};
	struct long_command command = {0};
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	code = movement_begin(&call, movement, &command, &line, due);
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

	return put_begin(md_handle, &movement, ack_req, hdr_data, NULL);
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

	return put_begin(md_handle, &movement, ack_req, hdr_data, &due);
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
