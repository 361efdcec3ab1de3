/* SPDX-License-Identifier: BSD-3-Clause */
/* entry.c - match entries: PtlMEAttach, PtlMEAttachAny, PtlMEInsert, PtlMEUnlink.
 *
 * The length of a list is counted here, in struct portal, before the entry is in it, so that a list
 * that is too long is found without waiting for the poll core; the poll core counts down when an
 * entry goes.
 */
#include <p3/code.h>
#include <p3/interface.h>

/* What the caller asks of an entry. */
struct criteria {
	ptl_process_id_t process;
	uint64_t bits;
	uint64_t ignore;
	ptl_unlink_t unlink;
};

/* One entry more on a Portal; false when its list is as long as it may be. */
static bool portal_grow(struct segment *segment, uint32_t index)
{
	_Atomic uint32_t *length = &segment_portal(segment, index)->length[0];

	if (atomic_fetch_add_explicit(length, 1, memory_order_acquire) <
		segment->limits.list_length)
		return true;
	atomic_fetch_sub_explicit(length, 1, memory_order_release);
	return false;
}

static void portal_shrink(struct segment *segment, uint32_t index)
{
	atomic_fetch_sub_explicit(
		&segment_portal(segment, index)->length[0], 1, memory_order_release);
}

/* The first Portal from the last on whose list is empty, now with one entry; INDEX_NONE: none is.
 * Programs choose low indices themselves, so the high ones are less likely to collide with them. */
static uint32_t portal_claim(struct segment *segment)
{
	uint32_t i = segment->limits.portals;
	uint32_t length;

	while (i-- > 0) {
		length = 0;
		if (atomic_compare_exchange_strong_explicit(&segment_portal(segment, i)->length[0],
			    &length, 1, memory_order_acquire, memory_order_relaxed))
			return i;
	}
	return INDEX_NONE;
}

/* Fills in an entry from the free list; `command` says which. Returns false when there is none. */
static bool entry_make(struct segment *segment, const struct criteria *criteria, uint32_t portal,
	struct command *command)
{
	uint32_t index = segment_take(segment, segment->free_entries);
	struct match_entry *match;
	struct entry *entry;

	if (index == INDEX_NONE)
		return false;
	match = segment_match(segment, index);
	match->bits = criteria->bits;
	match->ignore = criteria->ignore;
	match->nid = criteria->process.nid;
	match->pid = criteria->process.pid;
	entry = segment_entry(segment, index);
	entry->unlink = criteria->unlink == PTL_UNLINK;
	command->object.index = index;
	command->object.generation = segment_generation(segment);
	command->object.portal = portal;
	/* Release: a thread that sees the gate sees the entry; PtlMEInsert reads its Portal. */
	atomic_store_explicit(&entry->portal, portal, memory_order_relaxed);
	atomic_store_explicit(
		&entry->gate, gate_make(command->object.generation, 0), memory_order_release);
	return true;
}

/* The entry was not wanted after all. */
static void entry_unmake(struct segment *segment, uint32_t index)
{
	atomic_store_explicit(&segment_entry(segment, index)->gate, 0, memory_order_release);
	segment_give(segment, segment->free_entries, index);
}

static ptl_handle_me_t entry_handle(const struct visit *visit, const struct command *command)
{
	return handle_make(HANDLE_ENTRY, (uint32_t)(visit->interface - interfaces),
		command->object.index, command->object.generation);
}

static uint8_t entry_position(ptl_ins_pos_t position)
{
	return position == PTL_INS_BEFORE ? POSITION_BEFORE : POSITION_AFTER;
}

/* Attaches an entry to a Portal on which it has been counted. */
static int entry_attach_counted(const struct visit *visit, uint32_t portal,
	const struct criteria *criteria, ptl_ins_pos_t position, ptl_handle_me_t *handle)
{
	struct command command = {
		.kind = COMMAND_ENTRY_ATTACH, .position = entry_position(position)};

	if (!entry_make(visit->segment, criteria, portal, &command)) {
		portal_shrink(visit->segment, portal);
		return PTL_NOSPACE;
	}
	*handle = entry_handle(visit, &command);
	submission_post(&visit->interface->submission, &command);
	return PTL_OK;
}

int PtlMEAttach(ptl_handle_ni_t interface, ptl_pt_index_t index, ptl_process_id_t matchid,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignorebits, ptl_unlink_t unlink,
	ptl_ins_pos_t position, ptl_handle_me_t *handle)
{
	const struct criteria criteria = {matchid, match_bits, ignorebits, unlink};
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (index >= visit.segment->limits.portals)
		code = PTL_INV_PTINDEX;
	else if (!process_is_pattern(matchid))
		code = PTL_INV_PROC;
	else if (ADDRESS_IS_BAD(handle))
		code = PTL_SEGV;
	else if (!portal_grow(visit.segment, index))
		code = PTL_ML_TOOLONG;
	else
		code = entry_attach_counted(&visit, index, &criteria, position, handle);
	return visit_end(&visit, code);
}

int PtlMEAttachAny(ptl_handle_ni_t interface, ptl_pt_index_t *index, ptl_process_id_t matchid,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignorebits, ptl_unlink_t unlink,
	ptl_handle_me_t *handle)
{
	const struct criteria criteria = {matchid, match_bits, ignorebits, unlink};
	struct visit visit;
	uint32_t portal;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (!process_is_pattern(matchid))
		return visit_end(&visit, PTL_INV_PROC);
	if (ADDRESS_IS_BAD(index) || ADDRESS_IS_BAD(handle))
		return visit_end(&visit, PTL_SEGV);
	portal = portal_claim(visit.segment);
	if (portal == INDEX_NONE)
		return visit_end(&visit, PTL_PT_FULL);
	code = entry_attach_counted(&visit, portal, &criteria, PTL_INS_AFTER, handle);
	if (code == PTL_OK)
		*index = portal;
	return visit_end(&visit, code);
}

/* Inserts next to `current`, which is in the list of `portal` unless it has gone meanwhile: then
 * the poll core refuses. */
static int entry_insert(const struct visit *visit, ptl_handle_me_t current,
	const struct criteria *criteria, ptl_ins_pos_t position, ptl_handle_me_t *handle)
{
	struct segment *segment = visit->segment;
	uint32_t portal = atomic_load_explicit(
		&segment_entry(segment, visit->index)->portal, memory_order_relaxed);
	struct command command = {
		.kind = COMMAND_ENTRY_INSERT,
		.position = entry_position(position),
	};
	int code;

	if (portal >= segment->limits.portals)
		return PTL_INV_ME;
	if (!portal_grow(segment, portal))
		return PTL_ML_TOOLONG;
	if (!entry_make(segment, criteria, portal, &command)) {
		portal_shrink(segment, portal);
		return PTL_NOSPACE;
	}
	command.object.other = current;
	code = code_of(visit_call(visit, &command, NULL, NULL), PTL_INV_ME);
	if (code == PTL_OK) {
		*handle = entry_handle(visit, &command);
	} else {
		entry_unmake(segment, command.object.index);
		portal_shrink(segment, portal);
	}
	return code;
}

int PtlMEInsert(ptl_handle_me_t current, ptl_process_id_t matchid, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignorebits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *handle)
{
	const struct criteria criteria = {matchid, match_bits, ignorebits, unlink};
	struct visit visit;
	int code = visit_enter(&visit, current, HANDLE_ENTRY, PTL_INV_ME);

	if (code != PTL_OK)
		return code;
	if (!process_is_pattern(matchid))
		return visit_end(&visit, PTL_INV_PROC);
	if (ADDRESS_IS_BAD(handle))
		return visit_end(&visit, PTL_SEGV);
	return visit_end(&visit, entry_insert(&visit, current, &criteria, position, handle));
}

int object_unlink(uint64_t handle, enum handle_kind kind, enum command_kind unlink, int invalid)
{
	struct visit visit;
	int code = visit_enter(&visit, handle, kind, invalid);

	if (code != PTL_OK)
		return code;
	code = code_of(visit_command(&visit, unlink, visit.index, visit.generation), invalid);
	return visit_end(&visit, code);
}

int PtlMEUnlink(ptl_handle_me_t entry)
{
	return object_unlink(entry, HANDLE_ENTRY, COMMAND_ENTRY_UNLINK, PTL_INV_ME);
}
