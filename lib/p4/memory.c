/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - memory descriptors: PtlMDBind, PtlMDRelease, and what memory they and entries have.
 *
 * Any start and length are fine, also of memory that is not there: start + offset may wrap.
 */
#include <p4/interface.h>

#include <stdlib.h>

/* A copy of the pieces of an MD or an entry. */
static int vector_make(
	const ptl_iovec_t *pieces, uint32_t count, struct map_vector **made, uint64_t *length)
{
	struct map_vector *vector = malloc(map_vector_size(count));
	uint64_t sum = 0;

	if (!vector)
		return PTL_NO_SPACE;
	vector->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (__builtin_add_overflow(sum, pieces[i].iov_len, &sum)) {
			free(vector);
			return PTL_ARG_INVALID;
		}
		map_vector_add(vector, pieces[i].iov_base, pieces[i].iov_len);
	}
	*made = vector;
	*length = sum;
	return PTL_OK;
}

int extent_make(
	const struct ni *ni, void *start, ptl_size_t length, bool pieces, struct extent *extent)
{
	*extent = (struct extent){.start = (uintptr_t)start, .length = length};
	if (!pieces)
		return PTL_OK;
	if (length > (ptl_size_t)ni->limits.max_iovecs || (!start && length != 0))
		return PTL_ARG_INVALID;
	extent->start = 0;
	return vector_make(start, (uint32_t)length, &extent->vector, &extent->length);
}

void extent_place(const struct call *call, uint32_t index, const struct extent *extent)
{
	struct region *region = segment_region(call->visit.segment, index);
	struct backing *backing = &call->ni->backings[index];

	free(backing->vector); /* of an earlier life */
	backing->vector = extent->vector;
	region->start = extent->start;
	region->length = extent->length;
	region->vector = extent->vector ? extent->vector : MAP_MEMORY; /* which may not be there */
}

/* Which events of a descriptor are logged: bits of enum tier_event. */
static uint32_t md_log(unsigned options)
{
	const uint32_t answers = TIER_BIT(TIER_ACK) | TIER_BIT(TIER_REPLY);
	const uint32_t kinds =
		answers | (options & PTL_MD_EVENT_SEND_DISABLE ? 0 : TIER_BIT(TIER_SEND));
	const uint32_t failures = kinds << TIER_EVENTS;

	return options & PTL_MD_EVENT_SUCCESS_DISABLE ? failures : failures | kinds;
}

static uint16_t md_counts(unsigned options)
{
	return (uint16_t)((options & PTL_MD_EVENT_CT_SEND ? TIER_BIT(TIER_SEND) : 0) |
			  (options & PTL_MD_EVENT_CT_REPLY ? TIER_BIT(TIER_REPLY) : 0) |
			  (options & PTL_MD_EVENT_CT_ACK ? TIER_BIT(TIER_ACK) : 0));
}

static_assert(PTL_MD_OPTIONS_MASK <= UINT16_MAX, "options fit into region.extra");

/* Fills in the region of a descriptor and brings it to life. */
static void md_make(const struct call *call, uint32_t index, const ptl_md_t *md,
	const struct extent *extent, uint64_t queue, uint64_t counter, ptl_handle_md_t *md_handle)
{
	struct segment *segment = call->visit.segment;
	struct region *region = segment_region(segment, index);
	struct attachment *attachment = segment_attachment(segment, index);
	struct command command = {.kind = COMMAND_REGION_BIND};
	const uint32_t generation = segment_generation(segment);

	extent_place(call, index, extent);
	region->extra = (uint16_t)md->options;
	region->user = 0;
	region->queue = queue;
	region->options = REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = md_log(md->options);
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	attachment->counter = counter;
	attachment->counts = md_counts(md->options);
	attachment->flags = md->options & PTL_MD_EVENT_CT_BYTES ? ATTACHMENT_BYTES : 0;
	command.object.index = index;
	command.object.generation = generation;
	atomic_store_explicit(&region->gate, gate_make(generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	*md_handle = name_of(call->ni, NAME_MD, index, generation);
	submission_post(&call->visit.interface->submission, &command);
}

static int md_bind(const struct call *call, const ptl_md_t *md, ptl_handle_md_t *md_handle)
{
	struct segment *segment = call->visit.segment;
	uint64_t queue = 0, counter = 0;
	struct extent extent;
	uint32_t index;
	int code;

	if (!md || !md_handle || (md->options & ~PTL_MD_OPTIONS_MASK) != 0)
		return PTL_ARG_INVALID;
	if (md->eq_handle != PTL_EQ_NONE &&
		(queue = call_object(call, md->eq_handle, NAME_QUEUE)) == 0)
		return PTL_ARG_INVALID;
	if (md->ct_handle != PTL_CT_NONE &&
		(counter = call_object(call, md->ct_handle, NAME_COUNTER)) == 0)
		return PTL_ARG_INVALID;
	code = extent_make(call->ni, md->start, md->length, md->options & PTL_IOVEC, &extent);
	if (code != PTL_OK)
		return code;
	index = segment_take(segment, segment->free_regions);
	if (index == INDEX_NONE) {
		free(extent.vector);
		return PTL_NO_SPACE;
	}
	md_make(call, segment->limits.attached + index, md, &extent, queue, counter, md_handle);
	return PTL_OK;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle)
{
	struct call call;
	int code = call_enter(&call, ni_handle, NAME_NI);

	if (code != PTL_OK)
		return code;
	return call_leave(&call, md_bind(&call, md, md_handle));
}

int PtlMDRelease(ptl_handle_md_t md_handle)
{
	struct call call;
	int code = call_enter(&call, md_handle, NAME_MD);

	if (code != PTL_OK)
		return code;
	code = code_of(visit_command(
		&call.visit, COMMAND_REGION_RELEASE, call.visit.index, call.visit.generation));
	return call_leave(&call, code);
}
