/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - memory descriptors: PtlMDAttach, PtlMDBind, PtlMDUnlink, PtlMDUpdate. */
#include <p3/interface.h>

#include <string.h>

#include <engine/queue.h>
#include <p3/code.h>

void region_to_md(const struct region_description *description, ptl_md_t *md)
{
	*md = (ptl_md_t){
		.start = (void *)(uintptr_t)description->start,
		.length = description->length,
		.threshold = description->threshold == GATE_THRESHOLD_INFINITE
				     ? PTL_MD_THRESH_INF
				     : (int)description->threshold,
		.max_offset = description->max_offset,
		.options = description->options,
		.user_ptr = (void *)(uintptr_t)description->user,
		.eventq = description->queue,
	};
}

static void region_from_md(const ptl_md_t *md, struct region_description *description)
{
	*description = (struct region_description){
		.start = (uintptr_t)md->start,
		.length = md->length,
		.threshold = md->threshold == PTL_MD_THRESH_INF ? GATE_THRESHOLD_INFINITE
								: (uint32_t)md->threshold,
		.max_offset = md->max_offset,
		.options = md->options,
		.user = (uintptr_t)md->user_ptr,
		.queue = md->eventq,
	};
}

/* All but its event queue. */
static bool md_is_legal(const ptl_md_t *md)
{
	return (md->threshold >= 0 || md->threshold == PTL_MD_THRESH_INF) &&
	       (md->options & ~(unsigned)REGION_OPTIONS) == 0 &&
	       !address_range_is_bad((uintptr_t)md->start, md->length);
}

static bool md_queue_is_legal(const struct visit *visit, const ptl_md_t *md)
{
	return md->eventq == PTL_EQ_NONE || handle_lives(visit, md->eventq, HANDLE_QUEUE);
}

static_assert(REGION_PUT == PTL_MD_OP_PUT && REGION_GET == PTL_MD_OP_GET &&
		      REGION_TRUNCATE == PTL_MD_TRUNCATE &&
		      REGION_REMOTE_OFFSET == PTL_MD_MANAGE_REMOTE &&
		      REGION_NO_ACK == PTL_MD_ACK_DISABLE,
	"options are the engine's");

/* Fills in a region from the free list; `command` says which. Returns false when there is none. */
static bool region_make(struct segment *segment, const ptl_md_t *md, struct command *command)
{
	uint32_t index = segment_take(segment, segment->free_regions);
	struct region_description description;
	struct region *region;

	if (index == INDEX_NONE)
		return false;
	region_from_md(md, &description);
	region = segment_region(segment, index);
	region->start = description.start;
	region->length = description.length;
	region->user = description.user;
	region->queue = description.queue;
	region->max_offset = description.max_offset;
	region->options = (uint8_t)description.options;
	region->log = EVENTS_ALL;
	region->entry = INDEX_NONE;
	region->unlink_op = false;
	region->unlink_nofit = false;
	region->threshold = description.threshold;
	command->object.index = index;
	command->object.generation = segment_generation(segment);
	atomic_store_explicit(&region->gate,
		gate_make(command->object.generation, description.threshold), memory_order_release);
	return true;
}

static void region_unmake(struct segment *segment, uint32_t index)
{
	atomic_store_explicit(&segment_region(segment, index)->gate, 0, memory_order_release);
	segment_give(segment, segment->free_regions, index);
}

static ptl_handle_md_t region_handle(const struct visit *visit, const struct command *command)
{
	return handle_make(HANDLE_REGION, (uint32_t)(visit->interface - interfaces),
		command->object.index, command->object.generation);
}

/* The entry's one place for a region: PTL_OK, and it is the caller's; PTL_INUSE; PTL_INV_ME. */
static int entry_occupy(const struct visit *visit)
{
	uint64_t gate = gate_make(visit->generation, 0);

	/* Acquire: pairs with the poll core's release when the last region went. */
	if (atomic_compare_exchange_strong_explicit(visit->gate, &gate, gate | GATE_ATTACHED,
		    memory_order_acquire, memory_order_relaxed))
		return PTL_OK;
	return gate_is(gate, visit->generation) ? PTL_INUSE : PTL_INV_ME;
}

static int region_attach(const struct visit *visit, const ptl_md_t *md, ptl_unlink_t unlink_op,
	ptl_unlink_t unlink_nofit, ptl_handle_md_t *handle)
{
	struct command command = {.kind = COMMAND_REGION_ATTACH};
	struct region *region;
	int code;

	/* An entry that has its descriptor says so, also when there is no space for another one. */
	if (gate_low(atomic_load_explicit(visit->gate, memory_order_relaxed)) & GATE_ATTACHED)
		return PTL_INUSE;
	if (!region_make(visit->segment, md, &command))
		return PTL_NOSPACE;
	code = entry_occupy(visit);
	if (code != PTL_OK) {
		region_unmake(visit->segment, command.object.index);
		return code;
	}
	region = segment_region(visit->segment, command.object.index);
	region->entry = visit->index;
	region->entry_generation = visit->generation;
	region->unlink_op = unlink_op == PTL_UNLINK;
	region->unlink_nofit = unlink_nofit == PTL_UNLINK;
	if (handle)
		*handle = region_handle(visit, &command);
	submission_post(&visit->interface->submission, &command);
	return PTL_OK;
}

int PtlMDAttach(ptl_handle_me_t match, ptl_md_t mem_desc, ptl_unlink_t unlink_op,
	ptl_unlink_t unlink_nofit, ptl_handle_md_t *handle)
{
	struct visit visit;
	int code = visit_enter(&visit, match, HANDLE_ENTRY, PTL_INV_ME);

	if (code != PTL_OK)
		return code;
	if (handle && ADDRESS_IS_BAD(handle))
		code = PTL_SEGV;
	else if (!md_is_legal(&mem_desc) || !md_queue_is_legal(&visit, &mem_desc))
		code = PTL_ILL_MD;
	else
		code = region_attach(&visit, &mem_desc, unlink_op, unlink_nofit, handle);
	return visit_end(&visit, code);
}

static int region_bind(const struct visit *visit, const ptl_md_t *md, ptl_handle_md_t *handle)
{
	struct command command = {.kind = COMMAND_REGION_BIND};

	if (!region_make(visit->segment, md, &command))
		return PTL_NOSPACE;
	*handle = region_handle(visit, &command);
	submission_post(&visit->interface->submission, &command);
	return PTL_OK;
}

int PtlMDBind(ptl_handle_ni_t interface, ptl_md_t mem_desc, ptl_handle_md_t *handle)
{
	struct visit visit;
	int code = visit_enter(&visit, interface, HANDLE_INTERFACE, PTL_INV_NI);

	if (code != PTL_OK)
		return code;
	if (ADDRESS_IS_BAD(handle))
		code = PTL_SEGV;
	else if (!md_is_legal(&mem_desc))
		code = PTL_ILL_MD;
	else if (!md_queue_is_legal(&visit, &mem_desc))
		code = PTL_INV_EQ;
	else
		code = region_bind(&visit, &mem_desc, handle);
	visit_leave(&visit);
	/* A queue that lives on another interface is no wrong handle but in the wrong
	 * descriptor. */
	if (code == PTL_INV_EQ && front_handle_lives(&portals, mem_desc.eventq, HANDLE_QUEUE))
		code = PTL_ILL_MD;
	return code;
}

int PtlMDUnlink(ptl_handle_md_t mem_desc)
{
	return object_unlink(mem_desc, HANDLE_REGION, COMMAND_REGION_UNLINK, PTL_INV_MD);
}

static int region_update(
	const struct visit *visit, ptl_md_t *old_md, const ptl_md_t *new_md, ptl_handle_eq_t testq)
{
	struct command command = {.kind = COMMAND_REGION_UPDATE, .update = new_md != NULL};
	struct region_description before, after;
	int code;

	command.object.index = visit->index;
	command.object.generation = visit->generation;
	command.object.other = testq;
	if (new_md)
		region_from_md(new_md, &after);
	code = code_of(visit_call(visit, &command, new_md ? &after : NULL, &before), PTL_INV_MD);
	if (old_md && (code == PTL_OK || code == PTL_NOUPDATE))
		region_to_md(&before, old_md);
	return code;
}

int PtlMDUpdate(ptl_handle_md_t mem_desc, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t testq)
{
	struct visit visit;
	ptl_md_t wanted;
	int code = visit_enter(&visit, mem_desc, HANDLE_REGION, PTL_INV_MD);

	if (code != PTL_OK)
		return code;
	if ((old_md && ADDRESS_IS_BAD(old_md)) || (new_md && ADDRESS_IS_BAD(new_md)))
		return visit_end(&visit, PTL_SEGV);
	/* A copy: what is checked is what is used. */
	if (new_md)
		wanted = *new_md;
	if (new_md && (!md_is_legal(&wanted) || !md_queue_is_legal(&visit, &wanted)))
		return visit_end(&visit, PTL_ILL_MD);
	if (testq != PTL_EQ_NONE && !handle_lives(&visit, testq, HANDLE_QUEUE))
		return visit_end(&visit, PTL_INV_EQ);
	code = region_update(&visit, old_md, new_md ? &wanted : NULL, testq);
	return visit_end(&visit, code);
}
