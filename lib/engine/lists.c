/* SPDX-License-Identifier: BSD-3-Clause */
/* lists.c - delivery by match lists: what happens seldom. */
#include <engine/lists.h>

#include <inttypes.h>

#include <base/log.h>
#include <engine/statistics.h>

/* A region that was too small for a message that matched, and was attached with that wish,
 * leaves. */
static void region_leave_for_room(struct space *space, struct region *region, struct process from,
	const struct message_header *header)
{
	struct account account;

	account_from(&account, from, header);
	account.value = header->kind == MESSAGE_PUT ? header->value : 0;
	region_leave(space, region, &account);
}

/* The law: the first entry in list order that matches and whose region accepts. NULL at the end of
 * the list. */
struct region *lists_walk(struct space *space, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct match_key key = {.bits = header->match_bits, .nid = from.nid, .pid = from.pid};
	struct match_list *list = &space->lists[header->portal];
	uint32_t next;

	for (uint32_t i = match_first(&space->entries, list, &key); i != MATCH_NONE; i = next) {
		struct region *region;
		enum acceptance answer = entry_ask(space, i, from, header, &region, placement);

		if (answer == ACCEPTED)
			return region;
		next = match_next(&space->entries, list, i, &key); /* i may go with its region */
		if (answer == REJECTED_FOR_ROOM && region->unlink_nofit)
			region_leave_for_room(space, region, from, header);
	}
	return NULL;
}

/* Nothing else says that a put was dropped. Once for each Portal: there may be any number of
 * them. */
static void unmatched_tell(
	struct space *space, struct process from, const struct message_header *header)
{
	if (space->unmatched[header->portal] || !log_wants(LOG_LEVEL_INFO))
		return;
	space->unmatched[header->portal] = true;
	log_info("interface %" PRIu32 ": a %s of %" PRIu64 " bytes from %" PRIu32 ":%" PRIu32
		 " to Portal %" PRIu32 " with match bits 0x%" PRIx64
		 " was dropped, because no match entry and descriptor accept it; attach them "
		 "before the sender may send, and let it ask "
		 "for an acknowledgement (further drops at this Portal are only counted, in "
		 "dropped_no_match)",
		space->interface, header->kind == MESSAGE_PUT ? "put" : "get", header->requested,
		from.nid, from.pid, header->portal, header->match_bits);
}

/* Once: the same mistake is mostly made again and again. */
static void absent_tell(
	struct space *space, struct process from, const struct message_header *header)
{
	if (space->absent || !log_wants(LOG_LEVEL_INFO))
		return;
	space->absent = true;
	log_info("interface %" PRIu32 ": a %s of %" PRIu64 " bytes from %" PRIu32 ":%" PRIu32
		 " to Portal %" PRIu32 " was dropped, because this interface has only Portals 0 to "
		 "%" PRIu32 "; use one of these, or open the interface with more (further drops at "
		 "Portals that it does not have are only counted, in dropped_no_portal)",
		space->interface, header->kind == MESSAGE_PUT ? "put" : "get", header->requested,
		from.nid, from.pid, header->portal, space->segment->limits.portals - 1);
}

void lists_refuse(struct space *space, struct process from, const struct message_header *header,
	enum refusal why)
{
	switch (why) {
	case REFUSED_PORTAL:
		space_count(space, dropped_no_portal);
		absent_tell(space, from, header);
		break;
	case REFUSED_COOKIE:
		space_count(space, dropped_bad_cookie);
		break;
	case REFUSED_ACCESS:
		space_count(space, dropped_access_denied);
		space_deny(space, from, header, "the entry of access control that it names",
			"dropped_access_denied");
		break;
	case REFUSED_MEMORY:
		space_count(space, dropped_no_memory_operation);
		break;
	case REFUSED_MATCH:
		PROBE(match, from.nid, from.pid, header->portal, header->match_bits,
			header->requested, -1);
		space_count(space, dropped_no_match);
		unmatched_tell(space, from, header);
		break;
	}
}
