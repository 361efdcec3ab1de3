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

static size_t page_end(size_t size)
{
	return (size + 4095) & ~(size_t)4095;
}

/* Where two tables meet that are used from index 0 on, one downwards and one upwards: the first
 * objects of both lie on one page, a third of it for the table that grows downwards. */
static size_t layout_meet(size_t *end, size_t down, size_t up)
{
	size_t meet = page_end(*end + down) + 4096 / 3 / CACHE_LINE * CACHE_LINE;

	*end = meet + up;
	return meet;
}

/* Sets the offsets and the size of a segment of these limits. */
static void layout_make(const struct segment_limits *limits, struct segment *segment)
{
	uint32_t replies = limits->further ? 0 : REPLY_SLOTS;
	size_t end = sizeof(struct segment) + sizeof(struct statistics);

	/* What a space with two-sided messages has little of comes first, and its first objects lie
	 * on few pages. */
	segment->portals = layout_take(&end, limits->portals * sizeof(struct portal));
	segment->access = layout_take(&end, limits->access * sizeof(struct access_entry));
	segment->queues = layout_take(&end, limits->queues * sizeof(struct queue));
	segment->counters_at = layout_take(&end, limits->counters * sizeof(struct event_counter));
	segment->free_queues = layout_take(&end, freelist_size(limits->queues));
	segment->free_counters = layout_take(&end, freelist_size(limits->counters));
	segment->free_replies = layout_take(&end, freelist_size(replies));
	segment->free_regions =
		layout_take(&end, freelist_size(limits->regions - limits->attached));
	segment->free_entries = layout_take(&end, freelist_size(limits->entries));
	segment->replies = layout_take(&end, replies * sizeof(struct reply));
	segment->commands = layout_take(&end, limits->further ? 0 : ring_size(COMMAND_RING));
	segment->attachments = segment->regions = layout_meet(&end,
		(limits->attached == 0 ? 0 : limits->regions) * sizeof(struct attachment),
		limits->regions * sizeof(struct region));
	/* those of receives come behind */
	segment->entries = segment->matches =
		layout_meet(&end, limits->entries * sizeof(struct entry),
			((size_t)limits->entries + limits->receives) * sizeof(struct match_entry));
	end = page_end(end);
	segment->events = layout_take(&end, limits->event_bytes);
	segment->size = end;
}

size_t segment_size(const struct segment_limits *limits, size_t *fixed)
{
	struct segment layout;

	layout_make(limits, &layout);
	*fixed = layout.events;
	return layout.size;
}

void segment_init(void *memory, const struct segment_limits *limits, uint32_t generation)
{
	struct segment *segment = memory;

	layout_make(limits, segment);
	segment->limits = *limits;
	atomic_store_explicit(&segment->generation, generation, memory_order_relaxed);

	freelist_init(segment_at(segment, segment->free_entries), limits->entries);
	freelist_init(
		segment_at(segment, segment->free_regions), limits->regions - limits->attached);
	freelist_init(segment_at(segment, segment->free_queues), limits->queues);
	freelist_init(segment_at(segment, segment->free_counters), limits->counters);
	if (limits->further)
		return;
	freelist_init(segment_at(segment, segment->free_replies), REPLY_SLOTS);
	ring_init(segment_ring(segment), COMMAND_RING);
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
