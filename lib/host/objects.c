/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.c - what an interface tells of its Portals, entries, regions, queues and access control
 * entries. See inspection.h, and I1 to I3 in inspection.c. */
#include <string.h>

#include <engine/access.h>
#include <engine/queue.h>
#include <host/interface.h>
#include <host/page.h>

#define ACCESS_LOOK 1024 /* access control entries in one look */

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

static bool look_portal(struct interface *interface, uint32_t index, void *copy)
{
	engine_list(interface->engine, interface->submission.space, index, copy);
	return true;
}

static void tell_portal(
	struct interface *interface, uint32_t index, const void *copy, struct report *report)
{
	const struct match_list_info *list = copy;

	(void)interface;
	report_number(report, "portal", index);
	report_number(report, "entries", list->length);
	report_flag(report, "indexed", list->indexed);
	report_number(report, "index_classes", list->classes);
	report_number(report, "index_residue", list->residue);
}

void tell_portals(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_INTERFACE, portal_is_used, portals_in_use,
		sizeof(struct match_list_info), look_portal, tell_portal};

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

static bool look_tier_portal(struct interface *interface, uint32_t index, void *copy)
{
	engine_portal(interface->engine, interface->submission.space, index, copy);
	return true;
}

static void tell_tier_portal(
	struct interface *interface, uint32_t index, const void *copy, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct portal *portal = segment_portal(interface->submission.segment, index);
	const struct portal_info *info = copy;

	report_number(report, "portal", index);
	report_flag(report, "enabled",
		atomic_load_explicit(&portal->state, memory_order_relaxed) == PORTAL_ENABLED);
	report_flag(report, "flow_control", info->controlled);
	report_flag(report, "owes_disabled", info->owes);
	tell_handle(report, words->queue, handle_name(interface, info->queue));
	for (unsigned tier = 0; tier < TIERS; tier++)
		report_number(report, words->tiers[tier],
			atomic_load_explicit(&portal->length[tier], memory_order_relaxed));
	report_number(report, "unexpected", info->unexpected);
	report_number(report, "pending", info->pending);
}

void tell_tiers(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_INTERFACE, tier_portal_in_use,
		tier_portals_in_use, sizeof(struct portal_info), look_tier_portal,
		tell_tier_portal};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.portals, report);
}

struct entry_copy {
	uint64_t gate;
	struct match_entry match;
	uint64_t region; /* handle, 0: none */
	uint64_t next;   /* handle of the entry behind it in its list, 0: none */
	uint32_t portal;
	bool unlink;
	/* of a tier */
	unsigned tier;
	uint64_t start;
	uint64_t length;
	uint64_t offset;
	uint32_t pending;
	uint32_t kept;
};

static uint64_t entry_region(struct interface *interface, const struct match_entry *match)
{
	const struct region *region;

	if (match->region == INDEX_NONE)
		return 0;
	region = segment_region(interface->submission.segment, match->region);
	return object_handle(interface, HANDLE_REGION, match->region,
		atomic_load_explicit(&region->gate, memory_order_acquire));
}

static uint64_t entry_next(struct interface *interface, const struct match_entry *match)
{
	uint32_t next = match->next;

	if (next == MATCH_NONE)
		return 0;
	return object_handle(interface, HANDLE_ENTRY, next,
		atomic_load_explicit(&segment_entry(interface->submission.segment, next)->gate,
			memory_order_acquire));
}

/* An entry of a tier and the region of the same index are one. */
static void entry_copy_tier(const struct segment *segment, uint32_t index, struct entry_copy *copy)
{
	const struct region *region = segment_region(segment, index);
	const struct attachment *attachment = segment_attachment(segment, index);

	copy->tier = attachment->tier;
	copy->start = region->start;
	copy->length = region->length;
	copy->offset = region->offset;
	copy->pending = region->pending;
	copy->kept = attachment->headers;
}

static bool look_entry(struct interface *interface, uint32_t index, void *copied)
{
	const struct segment *segment = interface->submission.segment;
	const struct entry *entry = segment_entry(segment, index);
	const struct match_entry *match = segment_match(segment, index);
	struct entry_copy *copy = copied;

	if (!entry->linked)
		return false;
	*copy = (struct entry_copy){
		.gate = atomic_load_explicit(&entry->gate, memory_order_acquire),
		.match = *match,
		.region = entry_region(interface, match),
		.next = entry_next(interface, match),
		.portal = atomic_load_explicit(&entry->portal, memory_order_relaxed),
		.unlink = entry->unlink,
	};
	if (segment->limits.attached != 0)
		entry_copy_tier(segment, index, copy);
	return true;
}

static void tell_tier_entry(
	const struct words *words, const struct entry_copy *entry, struct report *report)
{
	report_text(report, "list", words->tiers[entry->tier]);
	report_bits(report, "start", entry->start);
	report_number(report, "length", entry->length);
	report_number(report, "offset", entry->offset);
	report_number(report, "pending", entry->pending);
	report_number(report, "unexpected", entry->kept);
}

static void tell_entry(
	struct interface *interface, uint32_t index, const void *copy, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct entry_copy *entry = copy;

	report_bits(report, "handle", object_handle(interface, HANDLE_ENTRY, index, entry->gate));
	report_number(report, "portal", entry->portal);
	tell_handle(report, "next", entry->next);
	report_bits(report, "match_bits", entry->match.bits);
	report_bits(report, "ignore_bits", entry->match.ignore);
	tell_id(report, "nid", entry->match.nid);
	tell_id(report, "pid", entry->match.pid);
	if (words->tiers) {
		tell_tier_entry(words, entry, report);
		return;
	}
	tell_handle(report, words->region, entry->region);
	report_flag(report, "unlink", entry->unlink);
}

void tell_entries(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_ENTRY, NULL, entries_in_use,
		sizeof(struct entry_copy), look_entry, tell_entry};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.entries, report);
}

/* --- memory descriptors --- */

struct region_copy {
	struct region_description description;
	uint64_t handle;
	uint64_t entry; /* handle, 0: free-floating */
	uint64_t offset;
	uint32_t pending;
	bool leaving;
	bool unlink_op;
	bool unlink_nofit;
};

static bool look_region(struct interface *interface, uint32_t index, void *copied)
{
	struct segment *segment = interface->submission.segment;
	const struct region *region = segment_region(segment, index);
	struct region_copy *copy = copied;

	if (region->state == REGION_FREE)
		return false;
	*copy = (struct region_copy){
		.description =
			{
				.start = region->start,
				.length = region->length,
				.user = region->user,
				.queue = handle_name(interface, region->queue),
				.threshold = region->threshold,
				.max_offset = region->max_offset,
				.options = region->options,
			},
		.handle = object_handle(interface, HANDLE_REGION, index,
			atomic_load_explicit(&region->gate, memory_order_acquire)),
		.offset = region->offset,
		.pending = region->pending,
		.leaving = region->state == REGION_LEAVING,
		.unlink_op = region->unlink_op,
		.unlink_nofit = region->unlink_nofit,
	};
	if (region->entry != INDEX_NONE)
		copy->entry = object_handle(interface, HANDLE_ENTRY, region->entry,
			gate_make(region->entry_generation, 0));
	return true;
}

static void tell_options(const struct words *words, uint32_t options, struct report *report)
{
	report_array(report, "options");
	for (const struct option_word *word = words->options; word->name; word++)
		if (options & word->option)
			report_text(report, NULL, word->name);
	report_close(report);
}

static void tell_region(
	struct interface *interface, uint32_t index, const void *copied, struct report *report)
{
	const struct words *words = interface->front->words;
	const struct region_copy *copy = copied;
	const struct region_description *description = &copy->description;

	(void)index;
	report_bits(report, "handle", copy->handle);
	tell_handle(report, words->entry, copy->entry);
	report_bits(report, "start", description->start);
	report_number(report, "length", description->length);
	report_number(report, "offset", copy->offset);
	if (description->threshold == GATE_THRESHOLD_INFINITE)
		report_text(report, "threshold", "infinite");
	else
		report_number(report, "threshold", description->threshold);
	report_number(report, "max_offset", description->max_offset);
	tell_options(words, description->options, report);
	report_bits(report, "user_ptr", description->user);
	tell_handle(report, words->queue, description->queue);
	report_number(report, "pending", copy->pending);
	report_flag(report, "leaving", copy->leaving);
	report_flag(report, "unlink_op", copy->unlink_op);
	report_flag(report, "unlink_nofit", copy->unlink_nofit);
}

void tell_regions(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_REGION, NULL, regions_in_use,
		sizeof(struct region_copy), look_region, tell_region};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.regions, report);
}

/* --- event queues --- */

struct queue_copy {
	uint64_t handle;
	uint64_t count;
	uint64_t used;
	uint64_t logged;
	uint64_t lost;
	uint32_t incoming;
	uint32_t waiters;
	uint32_t sleepers;
};

static bool look_queue(struct interface *interface, uint32_t index, void *copied)
{
	struct queue *queue = segment_queue(interface->submission.segment, index);
	struct queue_copy *copy = copied;
	uint64_t gate = atomic_load_explicit(&queue->gate, memory_order_acquire);

	if (gate == 0)
		return false;
	*copy = (struct queue_copy){
		.handle = object_handle(interface, HANDLE_QUEUE, index, gate),
		.count = queue->count,
		.used = queue_used(queue),
		.logged = queue->sequence - 1 - queue->lost,
		.lost = queue->lost,
		.incoming = queue->incoming,
		.waiters = atomic_load_explicit(&queue->waiters, memory_order_relaxed),
		.sleepers = atomic_load_explicit(&queue->sleepers, memory_order_relaxed),
	};
	return true;
}

static void tell_queue(
	struct interface *interface, uint32_t index, const void *copy, struct report *report)
{
	const struct queue_copy *queue = copy;

	(void)interface;
	(void)index;
	report_bits(report, "handle", queue->handle);
	report_number(report, "size", queue->count);
	report_number(report, "used", queue->used);
	report_number(report, "logged", queue->logged);
	report_number(report, "dropped", queue->lost);
	report_number(report, "incoming", queue->incoming);
	report_number(report, "waiters", queue->waiters);
	report_number(report, "sleepers", queue->sleepers);
}

void tell_event_queues(struct interface *interface, struct page page, struct report *report)
{
	static const struct object_kind kind = {HANDLE_QUEUE, NULL, queues_in_use,
		sizeof(struct queue_copy), look_queue, tell_queue};

	objects_tell(interface, page, &kind, interface->submission.segment->limits.queues, report);
}

/* --- access control --- */

struct access_look {
	struct page page;
	uint32_t next;
	uint32_t count;
	uint32_t indices[PAGE_ITEMS];
	struct access_entry entries[PAGE_ITEMS];
};

static void look_access(struct interface *interface, void *context)
{
	struct access_look *look = context;
	const struct segment *segment = interface->submission.segment;
	uint32_t limit = segment->limits.access, most = page_count(look->page);
	uint32_t i = look->page.first;

	engine_catch_up(interface->engine);
	for (; i < limit && look->count < most && i - look->page.first < ACCESS_LOOK; i++) {
		const struct access_entry *entry = segment_access(segment, i);

		if (access_is_nobody(entry))
			continue;
		look->indices[look->count] = i;
		look->entries[look->count++] = *entry;
	}
	look->next = i < limit ? i : UINT32_MAX;
}

void tell_access(struct interface *interface, struct page page, struct report *report)
{
	struct access_look look = {.page = page};

	interface_look(interface, look_access, &look);
	list_open(report, interface->submission.segment->limits.access, page, look.next);
	for (uint32_t i = 0; i < look.count; i++) {
		const struct access_entry *entry = &look.entries[i];

		report_object(report, NULL);
		report_number(report, "index", look.indices[i]);
		tell_id(report, "nid", (uint32_t)entry->process);
		tell_id(report, "pid", (uint32_t)(entry->process >> 32));
		tell_id(report, "uid", (uint32_t)entry->target);
		tell_id(report, "portal", (uint32_t)(entry->target >> 32));
		report_close(report);
	}
	report_close(report);
}
