/* SPDX-License-Identifier: BSD-3-Clause */
/* entry.c - match entries: how they come into their list and leave it. */
#include <engine/state.h>

#include <base/handle.h>

struct entry *entry_find(struct space *space, uint32_t index, uint32_t generation)
{
	struct entry *entry;

	if (index >= space->segment->limits.entries)
		return NULL;
	entry = segment_entry(space->segment, index);
	if (!entry->linked ||
		!gate_is(atomic_load_explicit(&entry->gate, memory_order_relaxed), generation))
		return NULL;
	return entry;
}

/* The entry that an application filled in and brings to life, NULL if it is not one. */
static struct entry *entry_open(struct space *space, const struct command *command)
{
	struct entry *entry;

	if (command->object.index >= space->segment->limits.entries ||
		command->object.portal >= space->segment->limits.portals)
		return NULL;
	entry = segment_entry(space->segment, command->object.index);
	if (entry->linked)
		return NULL;
	segment_match(space->segment, command->object.index)->region = INDEX_NONE;
	atomic_store_explicit(&entry->portal, command->object.portal, memory_order_relaxed);
	return entry;
}

void entry_attach(struct space *space, const struct command *command)
{
	struct entry *entry = entry_open(space, command);

	if (!entry)
		return;
	entry->linked = true;
	if (command->position == POSITION_BEFORE)
		match_push_front(
			&space->entries, &space->lists[entry->portal], command->object.index);
	else
		match_push_back(
			&space->entries, &space->lists[entry->portal], command->object.index);
}

enum answer entry_insert(struct space *space, const struct command *command)
{
	uint64_t current = command->object.other;
	struct entry *neighbour, *entry;
	struct match_list *list;

	if (handle_kind(current) != HANDLE_ENTRY || handle_interface(current) != space->interface)
		return ANSWER_GONE;
	neighbour = entry_find(space, handle_index(current), handle_generation(current));
	if (!neighbour || neighbour->portal != command->object.portal)
		return ANSWER_GONE;
	entry = entry_open(space, command);
	if (!entry)
		return ANSWER_GONE;
	entry->linked = true;
	list = &space->lists[entry->portal];
	if (command->position == POSITION_BEFORE)
		match_insert_before(
			&space->entries, list, handle_index(current), command->object.index);
	else
		match_insert_after(
			&space->entries, list, handle_index(current), command->object.index);
	return ANSWER_OK;
}

void entry_free(struct space *space, uint32_t index)
{
	struct segment *segment = space->segment;
	struct entry *entry = segment_entry(segment, index);

	match_remove(&space->entries, &space->lists[entry->portal], index);
	entry->linked = false;
	atomic_store_explicit(&entry->gate, 0, memory_order_release);
	atomic_fetch_sub_explicit(
		&segment_portal(segment, entry->portal)->length[0], 1, memory_order_release);
	segment_give(segment, segment->free_entries, index);
}

enum answer entry_unlink(struct space *space, uint32_t index, uint32_t generation)
{
	struct entry *entry = entry_find(space, index, generation);
	uint32_t attached;

	if (!entry)
		return ANSWER_GONE;
	attached = segment_match(space->segment, index)->region;
	if (attached != INDEX_NONE) {
		struct region *region = segment_region(space->segment, attached);

		if (region->pending != 0)
			return ANSWER_PENDING;
		region->entry = INDEX_NONE; /* the entry goes here, whatever it was made with */
		region_free(space, attached);
	}
	entry_free(space, index);
	return ANSWER_OK;
}
