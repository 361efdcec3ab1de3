/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.c - laying out the mapping that applications and the poll core share. */
#include <engine/segment.h>

#include <string.h>

#include <engine/command.h>
#include <engine/statistics.h>
#include <transport/statistics.h>

/* What follows a segment's first part: each kind from a cache line on. */
struct statistics {
	_Alignas(CACHE_LINE) struct engine_counters engine;
	_Alignas(CACHE_LINE) struct transport_counters transport;
};

/* Takes size bytes, from a cache line on. */
static size_t layout_take(size_t *end, size_t size)
{
	size_t start = (*end + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);

	*end = start + size;
	return start;
}

/* Where a table that is used downwards meets one that is used upwards: the first objects of both
 * are on one page, so many quarters of it for the table that grows downwards. */
static size_t layout_meet(size_t *end, size_t down, unsigned quarters)
{
	*end = ((*end + down + 4095) & ~(size_t)4095) + quarters * 1024;
	return *end;
}

/* Sets the offsets and the size of a segment of these limits. What an idle interface uses lies on
 * few pages: three of a further space with two-sided messages, one of the first space beside it. */
static void layout_make(const struct segment_limits *limits, struct segment *segment)
{
	const uint32_t replies = limits->further ? 0 : REPLY_SLOTS;
	size_t end = 0, attachments, matches, lead;

	attachments = layout_meet(
		&end, (limits->attached == 0 ? 0 : limits->regions) * sizeof(struct attachment), 2);
	/* those of receives come behind those of entries */
	matches = layout_take(
		&end, ((size_t)limits->entries + limits->receives) * sizeof(struct match_entry));
	lead = layout_meet(
		&end, limits->entries * sizeof(struct entry) + replies * sizeof(struct reply), 1);
	segment->lead = lead;
	segment->attachments = attachments - lead - sizeof(struct attachment);
	segment->matches = matches - lead;
	segment->replies = 0 - sizeof(struct reply);
	segment->entries = 0 - replies * sizeof(struct reply) - sizeof(struct entry);
	end += sizeof(struct segment) + sizeof(struct statistics);
	segment->portals = layout_take(&end, limits->portals * sizeof(struct portal)) - lead;
	segment->access = layout_take(&end, limits->access * sizeof(struct access_entry)) - lead;
	segment->queues = layout_take(&end, limits->queues * sizeof(struct queue)) - lead;
	segment->counters_at =
		layout_take(&end, limits->counters * sizeof(struct event_counter)) - lead;
	segment->free_queues = layout_take(&end, freelist_size(limits->queues)) - lead;
	segment->free_counters = layout_take(&end, freelist_size(limits->counters)) - lead;
	segment->free_replies = layout_take(&end, freelist_size(replies)) - lead;
	segment->free_regions =
		layout_take(&end, freelist_size(limits->regions - limits->attached)) - lead;
	segment->free_entries = layout_take(&end, freelist_size(limits->entries)) - lead;
	segment->commands = layout_take(&end, limits->further ? 0 : ring_size(COMMAND_RING)) - lead;
	segment->regions = layout_meet(&end, limits->regions * sizeof(struct region), 3) - lead -
			   sizeof(struct region);
	segment->events = layout_take(&end, limits->event_bytes) - lead;
	segment->size = end;
}

size_t segment_size(const struct segment_limits *limits, size_t *fixed)
{
	struct segment layout;

	layout_make(limits, &layout);
	*fixed = layout.lead + layout.events;
	return layout.size;
}

struct segment *segment_init(void *memory, const struct segment_limits *limits, uint32_t generation)
{
	struct segment *segment, layout;

	layout_make(limits, &layout);
	segment = (struct segment *)(void *)((char *)memory + layout.lead);
	layout_make(limits, segment);
	segment->limits = *limits;
	atomic_store_explicit(&segment->generation, generation, memory_order_relaxed);

	freelist_init(segment_at(segment, segment->free_entries), limits->entries);
	freelist_init(
		segment_at(segment, segment->free_regions), limits->regions - limits->attached);
	freelist_init(segment_at(segment, segment->free_queues), limits->queues);
	freelist_init(segment_at(segment, segment->free_counters), limits->counters);
	if (!limits->further) {
		freelist_init(segment_at(segment, segment->free_replies), REPLY_SLOTS);
		ring_init(segment_ring(segment), COMMAND_RING);
	}
	return segment;
}

struct transport_counters *segment_transport(const struct segment *segment)
{
	return &((struct statistics *)segment_counters(segment))->transport;
}

uint32_t segment_take(const struct segment *segment, uint64_t free_list)
{
	return freelist_take(segment_at(segment, free_list));
}

void segment_give(const struct segment *segment, uint64_t free_list, uint32_t index)
{
	freelist_give(segment_at(segment, free_list), index);
}
