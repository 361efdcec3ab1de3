/* SPDX-License-Identifier: BSD-3-Clause */
/* entry.c - list entries and match list entries: PtlLEAppend, PtlLEUnlink, PtlLESearch,
 * PtlMEAppend, PtlMEUnlink, PtlMESearch, PtlTriggeredMEAppend, PtlTriggeredMEUnlink. A list entry
 * is a match list entry that matches everything. */
#include <p4/interface.h>

#include <stdlib.h>
#include <string.h>

#include <base/guard.h>
#include <base/log.h>

#define ME_OPTIONS (PTL_ME_APPEND_OPTIONS_MASK | PTL_ME_ACK_DISABLE)
#define LE_OPTIONS (PTL_LE_APPEND_OPTIONS_MASK | PTL_LE_ACK_DISABLE)

#define EVENTS_OF_MESSAGES                                                                         \
	(TIER_BIT(TIER_GET) | TIER_BIT(TIER_PUT) | TIER_BIT(TIER_ATOMIC) | TIER_BIT(TIER_FETCH))
#define EVENTS_OF_KEPT                                                                             \
	(TIER_BIT(TIER_GET_KEPT) | TIER_BIT(TIER_PUT_KEPT) | TIER_BIT(TIER_ATOMIC_KEPT) |          \
		TIER_BIT(TIER_FETCH_KEPT))

/* Which events of an entry or a search are logged: bits of enum tier_event. SEARCH tells that
 * something was found, or that nothing was: the latter stands for either kind of event. */
static uint32_t entry_log(unsigned options)
{
	const unsigned both = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE;
	uint32_t log = 0;

	if (!(options & PTL_ME_EVENT_COMM_DISABLE))
		log |= EVENTS_OF_MESSAGES;
	if (!(options & PTL_ME_EVENT_OVER_DISABLE))
		log |= EVENTS_OF_KEPT;
	log = log << TIER_EVENTS | (options & PTL_ME_EVENT_SUCCESS_DISABLE ? 0 : log);
	if (!(options & PTL_ME_EVENT_COMM_DISABLE))
		log |= TIER_BIT(TIER_SEARCH);
	if ((options & both) != both)
		log |= TIER_BIT_FAILED(TIER_SEARCH);
	if (!(options & PTL_ME_EVENT_LINK_DISABLE))
		log |= TIER_BIT(TIER_LINK);
	if (!(options & PTL_ME_EVENT_UNLINK_DISABLE))
		log |= TIER_BIT(TIER_UNLINK) | TIER_BIT(TIER_FREE);
	return log;
}

static uint8_t entry_options(unsigned options)
{
	return (uint8_t)((options & PTL_ME_OP_PUT ? REGION_PUT : 0) |
			 (options & PTL_ME_OP_GET ? REGION_GET : 0) |
			 (options & PTL_ME_MANAGE_LOCAL ? 0 : REGION_REMOTE_OFFSET) |
			 (options & PTL_ME_NO_TRUNCATE ? 0 : REGION_TRUNCATE) |
			 (options & PTL_ME_ACK_DISABLE ? REGION_NO_ACK : 0));
}

static void entry_fill_attachment(
	struct attachment *attachment, const ptl_me_t *me, ptl_list_t list, uint64_t counter)
{
	attachment->counter = counter;
	attachment->counts =
		(uint16_t)((me->options & PTL_ME_EVENT_CT_COMM ? EVENTS_OF_MESSAGES : 0) |
			   (me->options & PTL_ME_EVENT_CT_OVERFLOW
					   ? EVENTS_OF_KEPT | TIER_BIT(TIER_SEARCH)
					   : 0));
	attachment->flags =
		(uint8_t)((me->options & PTL_ME_EVENT_CT_BYTES ? ATTACHMENT_BYTES : 0) |
			  (me->options & PTL_ME_USE_ONCE ? ATTACHMENT_ONCE : 0) |
			  (me->options & PTL_ME_UNEXPECTED_HDR_DISABLE ? ATTACHMENT_NO_HEADERS
								       : 0) |
			  (me->options & PTL_ME_LOCAL_INC_UH_RLENGTH ? ATTACHMENT_GROWS : 0));
	attachment->tier = list;
	attachment->uid = me->uid;
	attachment->min_free = me->options & PTL_ME_MANAGE_LOCAL ? me->min_free : 0;
}

/* Whom an entry matches. On a logical NI the engine has the rank where node ids are. */
static void entry_fill_match(const struct call *call, struct match_entry *match, const ptl_me_t *me)
{
	match->bits = me->match_bits;
	match->ignore = me->ignore_bits;
	match->pid = UINT32_MAX;
	if (ni_is_ranked(call->ni)) {
		static_assert(PTL_RANK_ANY == UINT32_MAX, "as in the lists");
		match->nid = me->match_id.rank;
		return;
	}
	match->nid = me->match_id.phys.nid == PTL_NID_ANY ? UINT32_MAX : me->match_id.phys.nid;
	if (me->match_id.phys.pid != PTL_PID_ANY)
		match->pid = me->match_id.phys.pid;
}

/* What an entry is appended to, and what its events return. */
struct place {
	ptl_pt_index_t portal;
	ptl_list_t list;
	void *user_ptr;
};

/* Brings an entry to life whose index is the caller's. *command appends it. */
static void entry_make(const struct call *call, uint32_t index, const ptl_me_t *me,
	const struct place *place, uint64_t counter, const struct extent *extent,
	ptl_handle_me_t *me_handle, struct command *command)
{
	struct segment *segment = call->visit.segment;
	struct region *region = segment_region(segment, index);
	const uint32_t generation = segment_generation(segment);

	extent_place(call, index, extent);
	region->user = (uintptr_t)place->user_ptr;
	region->options = entry_options(me->options);
	region->log = entry_log(me->options);
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	entry_fill_attachment(segment_attachment(segment, index), me, place->list, counter);
	entry_fill_match(call, segment_match(segment, index), me);
	*command = (struct command){.kind = COMMAND_APPEND};
	command->object.index = index;
	command->object.generation = generation;
	command->object.portal = place->portal;
	atomic_store_explicit(&segment_entry(segment, index)->gate, gate_make(generation, 0),
		memory_order_release);
	*me_handle = name_of(call->ni, NAME_ENTRY, index, generation);
}

/* May entries be appended to a portal? */
static bool portal_is_open(const struct call *call, ptl_pt_index_t index)
{
	uint32_t state;

	if (index >= call->visit.segment->limits.portals)
		return false;
	/* Acquire: pairs with the release when the portal was opened. */
	state = atomic_load_explicit(
		&segment_portal(call->visit.segment, index)->state, memory_order_acquire);
	return state == PORTAL_ENABLED || state == PORTAL_DISABLED;
}

/* An index for an entry of a list of a portal; INDEX_NONE: a limit is reached. */
static uint32_t entry_take(const struct call *call, ptl_pt_index_t portal, ptl_list_t list)
{
	struct segment *segment = call->visit.segment;
	_Atomic uint32_t *length = &segment_portal(segment, portal)->length[list];
	uint32_t index = segment_take(segment, segment->free_entries);

	if (index == INDEX_NONE)
		return INDEX_NONE;
	if (atomic_fetch_add_explicit(length, 1, memory_order_acquire) <
		segment->limits.list_length)
		return index;
	atomic_fetch_sub_explicit(length, 1, memory_order_release);
	segment_give(segment, segment->free_entries, index);
	return INDEX_NONE;
}

/* Checks what an entry for a portal says. The pieces of *extent are the caller's. */
static int entry_check(const struct call *call, ptl_pt_index_t portal, const ptl_me_t *me,
	uint64_t *counter, struct extent *extent)
{
	*counter = 0;
	if (!portal_is_open(call, portal))
		return PTL_ARG_INVALID;
	if (me->ct_handle != PTL_CT_NONE &&
		(*counter = call_object(call, me->ct_handle, NAME_COUNTER)) == 0)
		return PTL_ARG_INVALID;
	return extent_make(call->ni, me->start, me->length, me->options & PTL_IOVEC, extent);
}

/* Makes an entry; *command appends it. */
static int entry_open(const struct call *call, const struct place *place, const ptl_me_t *me,
	ptl_handle_me_t *me_handle, struct command *command)
{
	uint64_t counter;
	struct extent extent;
	uint32_t index;
	int code = entry_check(call, place->portal, me, &counter, &extent);

	if (code != PTL_OK)
		return code;
	index = entry_take(call, place->portal, place->list);
	if (index == INDEX_NONE) {
		free(extent.vector);
		return PTL_NO_SPACE;
	}
	entry_make(call, index, me, place, counter, &extent, me_handle, command);
	return PTL_OK;
}

static int entry_append(const struct call *call, const struct place *place, const ptl_me_t *me,
	ptl_handle_me_t *me_handle)
{
	struct command command;
	int code = entry_open(call, place, me, me_handle, &command);

	if (code == PTL_OK)
		submission_post(&call->visit.interface->submission, &command);
	return code;
}

/* Fills in the words of a search for the messages that an entry would take. */
static void search_fill(const struct call *call, struct search_lines *lines, const ptl_me_t *me,
	uint64_t counter, uint64_t length)
{
	struct attachment attachment;
	struct match_entry match;

	entry_fill_attachment(&attachment, me, PTL_PRIORITY_LIST, counter);
	entry_fill_match(call, &match, me);
	lines->bits = match.bits;
	lines->ignore = match.ignore;
	lines->nid = match.nid;
	lines->pid = match.pid;
	lines->counter = counter;
	lines->length = length;
	lines->min_free = attachment.min_free;
	lines->log = entry_log(me->options);
	lines->counts = attachment.counts;
	lines->flags = attachment.flags;
	lines->options = entry_options(me->options);
}

static int entry_search(const struct call *call, ptl_pt_index_t portal, const ptl_me_t *me,
	ptl_search_op_t op, void *user_ptr)
{
	struct long_command command = {.command = {.kind = COMMAND_SEARCH}};
	struct search_lines lines = {.user = (uintptr_t)user_ptr, .remove = op};
	uint64_t counter;
	struct extent extent;
	int code = entry_check(call, portal, me, &counter, &extent);

	if (code != PTL_OK)
		return code;
	free(extent.vector); /* a search needs no memory but its length */
	search_fill(call, &lines, me, counter, extent.length);
	command.command.object.portal = portal;
	memcpy(command.further, &lines, sizeof(lines));
	return code_of(visit_call(&call->visit, &command.command, NULL, NULL));
}

static bool me_is_good(const struct call *call, const ptl_me_t *me)
{
	return me && ni_matches(call->ni) && (me->options & ~ME_OPTIONS) == 0;
}

/* An entry that a program gives, as a match list entry; NULL: it is bad. */
static const ptl_me_t *me_given(
	const struct call *call, const void *given, bool matches, ptl_me_t *room)
{
	const ptl_le_t *le = given;

	if (matches)
		return me_is_good(call, given) ? given : NULL;
	if (!le || ni_matches(call->ni) || (le->options & ~LE_OPTIONS) != 0)
		return NULL;
	*room = (ptl_me_t){
		.start = le->start,
		.length = le->length,
		.ct_handle = le->ct_handle,
		.uid = le->uid,
		.options = le->options,
		.match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
		.ignore_bits = UINT64_MAX,
	};
	if (ni_is_ranked(call->ni))
		room->match_id.rank = PTL_RANK_ANY;
	return room;
}

static int given_append(ptl_handle_ni_t ni_handle, const struct place *place, const void *given,
	bool matches, uint32_t *handle)
{
	const ptl_me_t *me;
	struct call call;
	ptl_me_t room;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	me = me_given(&call, given, matches, &room);
	if (!handle || !me || place->list > PTL_OVERFLOW_LIST)
		return call_leave(&call, PTL_ARG_INVALID);
	return call_leave(&call, entry_append(&call, place, me, handle));
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle)
{
	const struct place place = {pt_index, ptl_list, user_ptr};

	return given_append(ni_handle, &place, le, false, le_handle);
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle)
{
	const struct place place = {pt_index, ptl_list, user_ptr};

	return given_append(ni_handle, &place, me, true, me_handle);
}

static int given_search(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const void *given,
	bool matches, ptl_search_op_t op, void *user_ptr)
{
	const ptl_me_t *me;
	struct call call;
	ptl_me_t room;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	me = me_given(&call, given, matches, &room);
	if (!me || op > PTL_SEARCH_DELETE)
		return call_leave(&call, PTL_ARG_INVALID);
	return call_leave(&call, entry_search(&call, pt_index, me, op, user_ptr));
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
	ptl_search_op_t ptl_search_op, void *user_ptr)
{
	return given_search(ni_handle, pt_index, le, false, ptl_search_op, user_ptr);
}

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
	ptl_search_op_t ptl_search_op, void *user_ptr)
{
	return given_search(ni_handle, pt_index, me, true, ptl_search_op, user_ptr);
}

/* due: NULL: at once. */
static int entry_unlink(ptl_handle_me_t handle, bool matches, const struct due *due)
{
	struct long_command command = {.command = {.kind = COMMAND_WITHDRAW}};
	struct call call;
	int code = call_enter(&call, handle, NAME_ENTRY);

	if (code != PTL_OK)
		return code;
	command.command.object.index = call.visit.index;
	command.command.object.generation = call.visit.generation;
	if (ni_matches(call.ni) != matches)
		return call_leave(&call, PTL_ARG_INVALID);
	if (due)
		return call_leave(&call, call_keep(&call, &command, 1, due));
	code = code_of(visit_call(&call.visit, &command.command, NULL, NULL));
	return call_leave(&call, code);
}

int PtlLEUnlink(ptl_handle_le_t le_handle)
{
	return entry_unlink(le_handle, false, NULL);
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	return entry_unlink(me_handle, true, NULL);
}

int PtlTriggeredMEUnlink(
	ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};

	return entry_unlink(me_handle, true, &due);
}

/* --- an entry that waits for a counter */

/* The words of a struct ask_line. */
enum { ASK_NI, ASK_ME, ASK_HANDLE, ASK_USER, ASK_PLACE };

/* Reads the program's structure, and its pieces; their memory may have gone. *pieces is to be
 * freed. */
static int me_read(const struct call *call, uint64_t at, ptl_me_t *me, ptl_iovec_t **pieces)
{
	*pieces = NULL;
	if (!guard_copy(me, (const void *)(uintptr_t)at, sizeof(*me)) || !me_is_good(call, me))
		return PTL_ARG_INVALID;
	if (!(me->options & PTL_IOVEC) || me->length == 0)
		return PTL_OK;
	if (me->length > (ptl_size_t)call->ni->limits.max_iovecs)
		return PTL_ARG_INVALID;
	*pieces = malloc(me->length * sizeof(**pieces));
	if (!*pieces)
		return PTL_NO_SPACE;
	if (!guard_copy(*pieces, me->start, me->length * sizeof(**pieces)))
		return PTL_ARG_INVALID;
	me->start = *pieces;
	return PTL_OK;
}

/* Visits an NI from its own poll core, while a command of its space is carried out: so it stays
 * open. Returns false if it is about to close. */
static bool call_from_core(struct call *call, struct ni *ni)
{
	uint32_t number = atomic_load_explicit(&ni->number, memory_order_acquire);

	if (number == 0)
		return false;
	*call = (struct call){
		.visit = {.interface = &interfaces[number - 1]},
		.ni = ni,
		.number = number,
		.ranked = ni_is_ranked(ni),
	};
	call->visit.segment =
		atomic_load_explicit(&call->visit.interface->segment, memory_order_acquire);
	return call->visit.segment != NULL;
}

/* The counter has come so far. Poll core. */
static bool append_due(const struct ask_line *line, struct command *append)
{
	const struct place place = {(ptl_pt_index_t)line->words[ASK_PLACE],
		(ptl_list_t)(line->words[ASK_PLACE] >> 32),
		(void *)(uintptr_t)line->words[ASK_USER]};
	ptl_handle_me_t handle = PTL_INVALID_HANDLE;
	ptl_iovec_t *pieces;
	struct call call;
	ptl_me_t me;
	int code;

	if (!call_from_core(&call, (struct ni *)(uintptr_t)line->words[ASK_NI]))
		return false;
	code = me_read(&call, line->words[ASK_ME], &me, &pieces);
	if (code == PTL_OK)
		code = entry_open(&call, &place, &me, &handle, append);
	free(pieces);
	if (code != PTL_OK)
		log_warning("PtlTriggeredMEAppend: nothing is appended to Portal %u, because %s",
			place.portal,
			code == PTL_NO_SPACE
				? "max_entries or max_list_size is reached, or there is no memory"
				: "its structure or its Portal is not valid any more: keep both "
				  "until the counter has reached the threshold");
	if (!guard_copy((void *)(uintptr_t)line->words[ASK_HANDLE], &handle, sizeof(handle)))
		log_warning(
			"PtlTriggeredMEAppend: the memory for the handle is not mapped any more: "
			"keep it until the counter has reached the threshold");
	return code == PTL_OK;
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t *me,
	ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
	ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct due due = {trig_ct_handle, threshold};
	struct long_command command = {.command = {.kind = COMMAND_ASK}};
	struct ask_line line = {.ask = append_due};
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	line.words[ASK_NI] = (uintptr_t)call.ni;
	line.words[ASK_ME] = (uintptr_t)me;
	line.words[ASK_HANDLE] = (uintptr_t)me_handle;
	line.words[ASK_USER] = (uintptr_t)user_ptr;
	line.words[ASK_PLACE] = (uint64_t)ptl_list << 32 | pt_index;
	memcpy(command.further[0], &line, sizeof(line));
	if (!me || !me_handle || !ni_matches(call.ni) || ptl_list > PTL_OVERFLOW_LIST ||
		pt_index >= call.visit.segment->limits.portals)
		return call_leave(&call, PTL_ARG_INVALID);
	return call_leave(&call, call_keep(&call, &command, 2, &due));
}
