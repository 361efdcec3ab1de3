/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_entry.c - see tier_entry.h. */
#include <engine/tier_entry.h>

#include <engine/portal.h>
#include <engine/unexpected.h>

/* An event of the entry itself, which is wanted. */
static __attribute__((noinline)) void entry_tell(
	struct space *space, const struct region *region, enum tier_event kind)
{
	const struct attachment *attachment = attachment_of(space, region);
	const uint32_t portal = segment_entry(space->segment, region_number(space, region))->portal;
	const struct account account = {.portal = portal};
	const struct tier_event_head event = {
		.kind = kind, .tier = attachment->tier, .user = region->user};

	tier_log(space, region_queue(region), &event, &account);
}

static inline void entry_log(struct space *space, const struct region *region, enum tier_event kind)
{
	if (tier_wanted(region, kind, TIER_OK))
		entry_tell(space, region, kind);
}

uint32_t entry_places(const struct space *space, const struct region *region)
{
	bool frees = attachment_of(space, region)->tier != 0;

	return (uint32_t)tier_wanted(region, TIER_UNLINK, TIER_OK) +
	       (uint32_t)(frees && tier_wanted(region, TIER_FREE, TIER_OK));
}

/* An entry leaves its list: no message finds it any more. */
static void entry_leave_list(struct space *space, struct region *region)
{
	uint32_t index = region_number(space, region);
	struct entry *entry = segment_entry(space->segment, index);
	unsigned tier = segment_attachment(space->segment, index)->tier;

	match_remove(&space->entries, portal_list(space, entry->portal, tier), index);
	entry->linked = false;
	region->state = REGION_LEAVING;
	atomic_fetch_sub_explicit(&segment_portal(space->segment, entry->portal)->length[tier], 1,
		memory_order_release);
}

/* The same, and its handle is stale. */
static void entry_detach(struct space *space, struct region *region)
{
	const uint32_t index = region_number(space, region);

	entry_leave_list(space, region);
	atomic_store_explicit(&segment_entry(space->segment, index)->gate, 0, memory_order_release);
}

static void entry_give(struct space *space, struct region *region)
{
	atomic_store_explicit(&segment_entry(space->segment, region_number(space, region))->gate, 0,
		memory_order_release);
	region->state = REGION_FREE;
	segment_give(space->segment, space->segment->free_entries, region_number(space, region));
}

void entry_settle_leaving(struct space *space, struct region *region)
{
	struct attachment *attachment = attachment_of(space, region);

	if (region->pending != 0)
		return;
	if (!(attachment->flags & ATTACHMENT_UNLINKED)) {
		attachment->flags |= ATTACHMENT_UNLINKED;
		if (attachment->places != 0 && tier_wanted(region, TIER_UNLINK, TIER_OK)) {
			attachment->places--;
			places_give(region, 1);
		}
		entry_log(space, region, TIER_UNLINK);
	}
	if (attachment->headers != 0)
		return;
	places_give(region, attachment->places);
	attachment->places = 0;
	if (attachment->tier != 0)
		entry_log(space, region, TIER_FREE);
	entry_give(space, region);
}

void entry_end(struct space *space, struct region *region, struct attachment *attachment)
{
	attachment->places = entry_places(space, region);
	places_keep(region, attachment->places);
	entry_detach(space, region);
}

/* An entry that what was kept has used up comes into no list. While it has claimed a message its
 * handle stays good, and it is in use. */
static void entry_drop(struct space *space, struct region *region)
{
	const struct entry *entry = segment_entry(space->segment, region_number(space, region));

	/* of the first tier: what was kept is for its entries */
	atomic_fetch_sub_explicit(
		&segment_portal(space->segment, entry->portal)->length[0], 1, memory_order_release);
	region->state = REGION_LEAVING;
	entry_settle(space, region);
}

void tiers_append(struct space *space, const struct command *command)
{
	struct segment *segment = space->segment;
	uint32_t index = command->object.index, portal = command->object.portal;
	struct attachment *attachment;
	struct region *region;
	struct entry *entry;

	if (index >= segment->limits.entries || portal >= segment->limits.portals)
		return;
	region = segment_region(segment, index);
	entry = segment_entry(segment, index);
	attachment = segment_attachment(segment, index);
	if (entry->linked || region->state != REGION_FREE || attachment->tier >= TIERS)
		return;
	atomic_store_explicit(&entry->portal, portal, memory_order_relaxed);
	segment_match(segment, index)->region = index;
	region->queue = space->portals[portal].queue;
	region->logs = space->portals[portal].logs;
	region->offset = 0;
	region->pending = 0;
	region->state = REGION_LIVE;
	attachment->counted = counter_named(segment, attachment->counter);
	attachment->headers = 0;
	attachment->places = 0;
	attachment->flags &= ATTACHMENT_OPTIONS;
	if (attachment->tier == 0 && unexpected_take(space, region, portal)) {
		entry_drop(space, region);
		return;
	}
	entry->linked = true;
	if (command->object.other == 1)
		match_push_front(
			&space->entries, portal_list(space, portal, attachment->tier), index);
	else
		match_push_back(
			&space->entries, portal_list(space, portal, attachment->tier), index);
	entry_log(space, region, TIER_LINK);
	if (attachment->tier != 0 && space->two_sided)
		unexpected_fetch(space, portal);
}

enum answer tiers_withdraw(struct space *space, const struct command *command)
{
	struct segment *segment = space->segment;
	uint32_t index = command->object.index;
	struct region *region;

	if (index >= segment->limits.entries ||
		!gate_is(atomic_load_explicit(
				 &segment_entry(segment, index)->gate, memory_order_relaxed),
			command->object.generation))
		return ANSWER_GONE;
	region = segment_region(segment, index);
	if (region->state == REGION_FREE)
		return ANSWER_GONE;
	/* Also that of an entry which has claimed a message and is in no list: entry_drop(). */
	if (region->pending != 0 || attachment_of(space, region)->headers != 0) {
		/* It is freed with the last message, and its handle is good until then. */
		if (command->object.other && segment_entry(segment, index)->linked)
			entry_leave_list(space, region);
		return ANSWER_PENDING;
	}
	entry_detach(space, region);
	entry_give(space, region);
	return ANSWER_OK;
}
