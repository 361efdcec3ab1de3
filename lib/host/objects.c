/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.c - what an interface tells of its Portals, entries, regions, queues and access control
 * entries. See inspection.h, and I1 to I3 in inspection.c. */
#include <engine/access.h>
#include <engine/queue.h>
#include <host/interface.h>
#include <host/page.h>

/* An id that may be a wildcard. */
static void tell_id(struct report *report, const char *name, uint32_t id)
{
	if (id == UINT32_MAX)
		report_text(report, name, "any");
	else
		report_number(report, name, id);
}

/* A handle; 0: there is none. */
static void tell_handle(struct report *report, const char *name, uint64_t handle)
{
	if (handle == 0)
		report_nothing(report, name);
	else
		report_bits(report, name, handle);
}

/* --- portals and match entries --- */

static void tell_portal(struct interface *interface, uint32_t index, struct report *report)
{
	report_number(report, "portal", index);
	engine_tell_list(interface->engine, interface->submission.space, index, report);
}

void tell_portals(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {
		HANDLE_INTERFACE, portal_is_used, portals_in_use, NULL, tell_portal};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.portals, report);
}

static bool tier_portal_in_use(const struct segment *segment, uint32_t index)
{
	uint32_t state =
		atomic_load_explicit(&segment_portal(segment, index)->state, memory_order_relaxed);

	return state == PORTAL_ENABLED || state == PORTAL_DISABLED;
}

static uint32_t tier_portals_in_use(const struct segment *segment)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < segment->limits.portals; i++)
		count += tier_portal_in_use(segment, i);
	return count;
}

static void tell_tier_portal(struct interface *interface, uint32_t index, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct portal *portal = segment_portal(interface->submission.segment, index);
	uint64_t queue;

	report_number(report, "portal", index);
	report_flag(report, "enabled",
		atomic_load_explicit(&portal->state, memory_order_relaxed) == PORTAL_ENABLED);
	queue = engine_tell_portal(interface->engine, interface->submission.space, index, report);
	tell_handle(report, words->queue, handle_name(interface, queue));
	for (unsigned tier = 0; tier < TIERS; tier++)
		report_number(report, words->tiers[tier],
			atomic_load_explicit(&portal->length[tier], memory_order_relaxed));
}

void tell_tiers(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {
		HANDLE_INTERFACE, tier_portal_in_use, tier_portals_in_use, NULL, tell_tier_portal};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.portals, report);
}

static bool entry_is_known(const struct segment *segment, uint32_t index)
{
	return segment_entry(segment, index)->linked;
}

static uint64_t entry_name(const struct interface *interface, uint32_t index)
{
	const struct entry *entry = segment_entry(interface->submission.segment, index);

	return object_handle(interface, HANDLE_ENTRY, index,
		atomic_load_explicit(&entry->gate, memory_order_acquire));
}

static uint64_t region_name(const struct interface *interface, uint32_t index)
{
	const struct region *region = segment_region(interface->submission.segment, index);

	return object_handle(interface, HANDLE_REGION, index,
		atomic_load_explicit(&region->gate, memory_order_acquire));
}

/* An entry of a tier and the region of the same index are one. */
static void tell_tier_entry(struct interface *interface, uint32_t index, struct report *report)
{
	const struct segment *segment = interface->submission.segment;
	const struct region *region = segment_region(segment, index);
	const struct attachment *attachment = segment_attachment(segment, index);

	report_text(report, "list", interface->front->words->tiers[attachment->tier]);
	report_bits(report, "start", region->start);
	report_number(report, "length", region->length);
	report_number(report, "offset", region->offset);
	report_number(report, "pending", region->pending);
	report_number(report, "unexpected", attachment->headers);
}

static void tell_entry(struct interface *interface, uint32_t index, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct entry *entry = segment_entry(interface->submission.segment, index);
	const struct match_entry *match = segment_match(interface->submission.segment, index);

	report_bits(report, "handle", entry_name(interface, index));
	report_number(report, "portal", atomic_load_explicit(&entry->portal, memory_order_relaxed));
	tell_handle(
		report, "next", match->next == MATCH_NONE ? 0 : entry_name(interface, match->next));
	report_bits(report, "match_bits", match->bits);
	report_bits(report, "ignore_bits", match->ignore);
	tell_id(report, "nid", match->nid);
	tell_id(report, "pid", match->pid);
	if (words->tiers) {
		tell_tier_entry(interface, index, report);
		return;
	}
	tell_handle(report, words->region,
		match->region == INDEX_NONE ? 0 : region_name(interface, match->region));
	report_flag(report, "unlink", entry->unlink);
}

void tell_entries(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {
		HANDLE_ENTRY, NULL, entries_in_use, entry_is_known, tell_entry};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.entries, report);
}

/* --- memory descriptors --- */

static bool region_is_known(const struct segment *segment, uint32_t index)
{
	return segment_region(segment, index)->state != REGION_FREE;
}

static void tell_options(const struct words *words, uint32_t options, struct report *report)
{
	report_array(report, "options");
	for (const struct option_word *word = words->options; word->name; word++)
		if (options & word->option)
			report_text(report, NULL, word->name);
	report_close(report);
}

static void tell_region(struct interface *interface, uint32_t index, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct region *region = segment_region(interface->submission.segment, index);

	report_bits(report, "handle", region_name(interface, index));
	tell_handle(report, words->entry,
		region->entry == INDEX_NONE ? 0
					    : object_handle(interface, HANDLE_ENTRY, region->entry,
						      gate_make(region->entry_generation, 0)));
	report_bits(report, "start", region->start);
	report_number(report, "length", region->length);
	report_number(report, "offset", region->offset);
	if (region->threshold == GATE_THRESHOLD_INFINITE)
		report_text(report, "threshold", "infinite");
	else
		report_number(report, "threshold", region->threshold);
	report_number(report, "max_offset", region->max_offset);
	tell_options(words, region->options, report);
	report_bits(report, "user_ptr", region->user);
	tell_handle(report, words->queue, handle_name(interface, region->queue));
	report_number(report, "pending", region->pending);
	report_flag(report, "leaving", region->state == REGION_LEAVING);
	report_flag(report, "unlink_op", region->unlink_op);
	report_flag(report, "unlink_nofit", region->unlink_nofit);
}

void tell_regions(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {
		HANDLE_REGION, NULL, regions_in_use, region_is_known, tell_region};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.regions, report);
}

/* --- event queues --- */

static void tell_queue(struct interface *interface, uint32_t index, struct report *report)
{
	struct queue *queue = segment_queue(interface->submission.segment, index);

	report_bits(report, "handle",
		object_handle(interface, HANDLE_QUEUE, index,
			atomic_load_explicit(&queue->gate, memory_order_relaxed)));
	report_number(report, "size", queue->count);
	report_number(report, "used", queue_used(queue));
	report_number(report, "logged", queue->sequence - 1 - queue->lost);
	report_number(report, "dropped", queue->lost);
	report_number(report, "incoming", queue->incoming);
	report_number(
		report, "waiters", atomic_load_explicit(&queue->waiters, memory_order_relaxed));
	report_number(
		report, "sleepers", atomic_load_explicit(&queue->sleepers, memory_order_relaxed));
}

void tell_event_queues(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {
		HANDLE_QUEUE, NULL, queues_in_use, NULL, tell_queue};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.queues, report);
}

/* --- access control --- */

/* Only the poll core knows whether an entry admits anybody. */
static bool access_may_admit(const struct segment *segment, uint32_t index)
{
	(void)segment;
	(void)index;
	return true;
}

static bool access_admits_some(const struct segment *segment, uint32_t index)
{
	return !access_is_nobody(segment_access(segment, index));
}

static uint32_t access_entries(const struct segment *segment)
{
	return segment->limits.access;
}

static void tell_access_entry(struct interface *interface, uint32_t index, struct report *report)
{
	const struct access_entry *entry = segment_access(interface->submission.segment, index);

	report_number(report, "index", index);
	tell_id(report, "nid", (uint32_t)entry->process);
	tell_id(report, "pid", (uint32_t)(entry->process >> 32));
	tell_id(report, "uid", (uint32_t)entry->target);
	tell_id(report, "portal", (uint32_t)(entry->target >> 32));
}

void tell_access(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_INTERFACE, access_may_admit, access_entries,
		access_admits_some, tell_access_entry};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.access, report);
}
