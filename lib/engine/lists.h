/* SPDX-License-Identifier: BSD-3-Clause */
/* lists.h - delivery by match lists (SPACE_LISTS): access control, then the first entry of a
 * Portal's list, in list order, that matches and whose region accepts. Inline: as a function that
 * is called for each message it costs 40 instructions of 1,578 (scripts/instructions, window).
 */
#ifndef ENGINE_LISTS_H
#define ENGINE_LISTS_H

#include <engine/delivery.h>

#define LISTS_INLINE static inline __attribute__((always_inline))

enum acceptance { REJECTED, REJECTED_FOR_ROOM, ACCEPTED };

/* Whether the region accepts at all is decided before whether the data fits. What has been accepted
 * is still to be taken from the gate. */
LISTS_INLINE enum acceptance region_accepts(const struct region *region, uint32_t operation,
	const struct message_header *request, struct placement *placement)
{
	bool remote = region->options & REGION_REMOTE_OFFSET;
	uint64_t room;

	if (!(region->accepts & operation) ||
		gate_low(atomic_load_explicit(&region->gate, memory_order_relaxed)) == 0)
		return REJECTED;
	placement->offset = remote ? request->offset : region->offset;
	placement->length = request->requested;
	room = placement->offset < region->length ? region->length - placement->offset : 0;
	if (placement->length <= room)
		return ACCEPTED;
	placement->length = room;
	return region->options & REGION_TRUNCATE ? ACCEPTED : REJECTED_FOR_ROOM;
}

static inline uint32_t request_operation(const struct message_header *request)
{
	return request->kind == MESSAGE_PUT ? REGION_PUT : REGION_GET;
}

/* Asks the region of an entry that matches a request, if it has one; ACCEPTED: it has granted one
 * operation. */
LISTS_INLINE enum acceptance entry_ask(const struct space *space, uint32_t i, struct process from,
	const struct message_header *request, struct region **region, struct placement *placement)
{
	uint32_t index = match_entry(&space->entries, i)->region;
	enum acceptance answer;

	if (index == INDEX_NONE)
		return REJECTED;
	*region = segment_region(space->segment, index);
	answer = region_accepts(*region, request_operation(request), request, placement);
	if (answer != ACCEPTED)
		return answer;
	/* A sending thread may take the last operation of its threshold at this moment. */
	if (!region_take(*region))
		return REJECTED;
	PROBE(match, from.nid, from.pid, request->portal, request->match_bits, request->requested,
		(int)index);
	return ACCEPTED;
}

enum refusal { REFUSED_PORTAL, REFUSED_COOKIE, REFUSED_ACCESS, REFUSED_MEMORY, REFUSED_MATCH };

/* The law: the first entry in list order that matches and whose region accepts. NULL at the end of
 * the list. */
struct region *lists_walk(struct space *space, struct process from,
	const struct message_header *header, struct placement *placement);
/* Counts a request that is discarded. */
void lists_refuse(struct space *space, struct process from, const struct message_header *header,
	enum refusal why);

/* lists_walk(), which nearly always ends with the first entry that matches. */
LISTS_INLINE struct region *lists_search(struct space *space, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct match_key key = {.bits = header->match_bits, .nid = from.nid, .pid = from.pid};
	uint32_t first = match_first(&space->entries, &space->lists[header->portal], &key);
	struct region *region;

	if (first == MATCH_NONE)
		return NULL;
	if (entry_ask(space, first, from, header, &region, placement) != ACCEPTED) {
		/* Copies, so that the caller's stay in registers. */
		const struct message_header copy = *header;
		struct placement walked = {0};

		region = lists_walk(space, from, &copy, &walked);
		*placement = walked;
	}
	return region;
}

/* Finds the region that takes a put or a get; NULL after counting why there is none. Otherwise the
 * region has granted one operation, *placement is written, and if `operation` there is memory for a
 * struct operation. */
LISTS_INLINE struct region *lists_deliver(struct space *space, struct process from,
	const struct message_header *header, bool operation, struct placement *placement)
{
	const struct segment *segment = space->segment;
	enum refusal why = REFUSED_MATCH;
	struct region *region = NULL;

	if (header->portal >= segment->limits.portals)
		why = REFUSED_PORTAL;
	else if (header->cookie >= segment->limits.access)
		why = REFUSED_COOKIE;
	else if (!access_admits(segment_access(segment, header->cookie), from, header->uid,
			 header->portal))
		why = REFUSED_ACCESS;
	else if (operation &&
		 !(operation_granted(space->engine, from) && operation_reserve(space->engine, 1)))
		why = REFUSED_MEMORY;
	else
		region = lists_search(space, from, header, placement);
	if (!region) {
		const struct message_header copy = *header; /* as above */

		lists_refuse(space, from, &copy, why);
	}
	return region;
}

#endif
