/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - see page.h. */
#include <host/page.h>

#include <host/interface.h>
#include <host/visitor.h>

uint32_t interface_number(const struct interface *interface)
{
	return (uint32_t)(interface - interfaces);
}

uint64_t handle_name(const struct interface *interface, uint64_t handle)
{
	const struct words *words = interface->front->words;

	return handle != 0 && words->name ? words->name(handle) : handle;
}

uint64_t object_handle(
	const struct interface *interface, enum handle_kind kind, uint32_t index, uint64_t gate)
{
	return handle_name(interface,
		handle_make(kind, interface_number(interface), index, gate_generation(gate)));
}

uint32_t page_count(struct page page)
{
	return page.count == 0 || page.count > PAGE_ITEMS ? PAGE_ITEMS : page.count;
}

void list_open(struct report *report, uint32_t total, struct page page)
{
	report_number(report, "total", total);
	report_number(report, "first", page.first);
	report_array(report, "items");
}

void list_close(struct report *report, uint32_t next)
{
	report_close(report);
	report_number_if(report, "next", next != UINT32_MAX, next);
}

static bool object_in_use(const struct object_kind *kind, struct segment *segment, uint32_t index)
{
	if (kind->in_use)
		return kind->in_use(segment, index);
	/* Acquire: a thread that sees the handle sees the object. */
	return atomic_load_explicit(
		       object_gate(segment, index, kind->handle), memory_order_acquire) != 0;
}

static bool object_is_known(const struct object_kind *kind, struct segment *segment, uint32_t index)
{
	return kind->is_known ? kind->is_known(segment, index)
			      : object_in_use(kind, segment, index);
}

void select_page(struct selection *selection, struct segment *segment, struct page page,
	uint32_t limit, const struct object_kind *kind)
{
	uint32_t most = page_count(page), i;

	selection->count = 0;
	for (i = page.first; i < limit && selection->count < most; i++)
		if (object_in_use(kind, segment, i))
			selection->indices[selection->count++] = i;
	selection->next = i < limit ? i : UINT32_MAX;
}

struct objects_look {
	const struct object_kind *kind;
	const struct selection *selection;
	uint32_t next; /* in the selection */
	struct report *report;
};

/* I1. Tells the next LOOK_ITEMS objects of a selection, or fewer at its end. */
static void look_objects(struct interface *interface, void *context)
{
	struct objects_look *look = context;
	struct segment *segment = interface->submission.segment;
	uint32_t told = 0;

	engine_catch_up(interface->engine);
	for (; look->next < look->selection->count && told < LOOK_ITEMS; look->next++) {
		uint32_t index = look->selection->indices[look->next];

		if (!object_is_known(look->kind, segment, index))
			continue;
		report_object(look->report, NULL);
		look->kind->tell(interface, index, look->report);
		report_close(look->report);
		told++;
	}
}

void objects_tell(struct interface *interface, struct page page, const struct object_kind *kind,
	uint32_t limit, struct report *report)
{
	struct segment *segment = interface->submission.segment;
	struct selection selection;
	struct objects_look look = {.kind = kind, .selection = &selection, .report = report};

	select_page(&selection, segment, page, limit, kind);
	list_open(report, kind->total(segment), page);
	while (look.next < selection.count)
		interface_look(interface, look_objects, &look);
	list_close(report, selection.next);
}

bool portal_is_used(const struct segment *segment, uint32_t index)
{
	const struct portal *portal = segment_portal(segment, index);

	for (unsigned tier = 0; tier < TIERS; tier++)
		if (atomic_load_explicit(&portal->length[tier], memory_order_relaxed) != 0)
			return true;
	return false;
}

uint32_t portals_in_use(const struct segment *segment)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < segment->limits.portals; i++)
		count += portal_is_used(segment, i);
	return count;
}

uint32_t objects_in_use(const struct segment *segment, uint64_t free_list, uint32_t limit)
{
	return limit - freelist_count(segment_at(segment, free_list), limit);
}

uint32_t entries_in_use(const struct segment *segment)
{
	return objects_in_use(segment, segment->free_entries, segment->limits.entries);
}

uint32_t regions_in_use(const struct segment *segment)
{
	return objects_in_use(
		segment, segment->free_regions, segment->limits.regions - segment->limits.attached);
}

uint32_t queues_in_use(const struct segment *segment)
{
	return objects_in_use(segment, segment->free_queues, segment->limits.queues);
}

uint32_t counters_in_use(const struct segment *segment)
{
	return objects_in_use(segment, segment->free_counters, segment->limits.counters);
}
