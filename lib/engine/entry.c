/* SPDX-License-Identifier: BSD-3-Clause */
/* entry.c - match entries: how they come into their list and leave it. */
#include <engine/state.h>

#include <base/handle.h>

struct entry *entry_find(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct entry *entry;

	if (index >= engine->segment->limits.entries)
		return NULL;
	entry = segment_entry(engine->segment, index);
	if (!entry->linked ||
		!gate_is(atomic_load_explicit(&entry->gate, memory_order_relaxed), generation))
		return NULL;
	return entry;
}

/* The entry that an application filled in and brings to life, NULL if it is not one. */
static struct entry *entry_open(struct engine *engine, const struct command *command)
{
	struct entry *entry;

	if (command->object.index >= engine->segment->limits.entries ||
		command->object.portal >= engine->segment->limits.portals)
		return NULL;
	entry = segment_entry(engine->segment, command->object.index);
	if (entry->linked)
		return NULL;
	segment_match(engine->segment, command->object.index)->region = INDEX_NONE;
	atomic_store_explicit(&entry->portal, command->object.portal, memory_order_relaxed);
	return entry;
}

void entry_attach(struct engine *engine, const struct command *command)
{
	struct entry *entry = entry_open(engine, command);

	if (!entry)
		return;
	entry->linked = true;
	if (command->position == POSITION_BEFORE)
		match_push_front(
			&engine->entries, &engine->lists[entry->portal], command->object.index);
	else
		match_push_back(
			&engine->entries, &engine->lists[entry->portal], command->object.index);
}

enum answer entry_insert(struct engine *engine, const struct command *command)
{
	uint64_t current = command->object.other;
	struct entry *neighbour, *entry;
	struct match_list *list;

	if (handle_kind(current) != HANDLE_ENTRY || handle_interface(current) != engine->interface)
		return ANSWER_GONE;
	neighbour = entry_find(engine, handle_index(current), handle_generation(current));
	if (!neighbour || neighbour->portal != command->object.portal)
		return ANSWER_GONE;
	entry = entry_open(engine, command);
	if (!entry)
		return ANSWER_GONE;
	entry->linked = true;
	list = &engine->lists[entry->portal];
	if (command->position == POSITION_BEFORE)
		match_insert_before(
			&engine->entries, list, handle_index(current), command->object.index);
	else
		match_insert_after(
			&engine->entries, list, handle_index(current), command->object.index);
	return ANSWER_OK;
}

void entry_free(struct engine *engine, uint32_t index)
{
	struct segment *segment = engine->segment;
	struct entry *entry = segment_entry(segment, index);

	match_remove(&engine->entries, &engine->lists[entry->portal], index);
	entry->linked = false;
	atomic_store_explicit(&entry->gate, 0, memory_order_release);
	atomic_fetch_sub_explicit(
		&segment_portal(segment, entry->portal)->length, 1, memory_order_release);
	segment_give(segment, segment->free_entries, index);
}

enum answer entry_unlink(struct engine *engine, uint32_t index, uint32_t generation)
{
	struct entry *entry = entry_find(engine, index, generation);
	uint32_t attached;

	if (!entry)
		return ANSWER_GONE;
	attached = segment_match(engine->segment, index)->region;
	if (attached != INDEX_NONE) {
		struct region *region = segment_region(engine->segment, attached);

		if (region->pending != 0)
			return ANSWER_PENDING;
		region->entry = INDEX_NONE; /* the entry goes here, whatever it was made with */
		region_free(engine, attached);
	}
	entry_free(engine, index);
	return ANSWER_OK;
}
