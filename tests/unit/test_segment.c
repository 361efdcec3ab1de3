/* SPDX-License-Identifier: BSD-3-Clause */
/* test_segment.c - the layout of the shared mapping. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <base/ring.h>

#include "fake_transport.h"
#include "rig.h"

static struct segment *segment_new(const struct segment_limits *limits, uint32_t generation)
{
	size_t fixed, size = segment_size(limits, &fixed);
	void *memory = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	assert_non_null(memory);
	memset(memory, 0, size);
	return segment_init(memory, limits, generation);
}

static const struct segment_limits small = {
	.entries = 3, .regions = 5, .queues = 2, .portals = 1, .access = 1, .event_bytes = 8192};

static void segment_init__lays_tables_out_in_order_without_overlap(void **state)
{
	const struct segment_limits tiers = {.entries = 3,
		.regions = 5,
		.attached = 3,
		.queues = 2,
		.portals = 1,
		.access = 1,
		.event_bytes = 8192};
	struct segment *segment = segment_new(&tiers, 0);
	size_t fixed;
	const uint64_t edges[] = {
		-segment->lead,
		segment->attachments - 4 * sizeof(struct attachment),
		segment->attachments + sizeof(struct attachment),
		segment->matches,
		segment->matches + 3 * sizeof(struct match_entry),
		segment->entries - 3 * sizeof(struct entry),
		segment->entries + sizeof(struct entry),
		segment->replies - (REPLY_SLOTS - 1) * sizeof(struct reply),
		segment->replies + sizeof(struct reply),
		0,
		sizeof(struct segment),
		segment->portals,
		segment->portals + sizeof(struct portal),
		segment->access,
		segment->access + sizeof(struct access_entry),
		segment->queues,
		segment->queues + 2 * sizeof(struct queue),
		segment->free_queues,
		segment->free_queues + freelist_size(2),
		segment->free_replies,
		segment->free_replies + freelist_size(REPLY_SLOTS),
		segment->free_regions,
		segment->free_regions + freelist_size(2),
		segment->free_entries,
		segment->free_entries + freelist_size(3),
		segment->commands,
		segment->commands + ring_size(COMMAND_RING),
		segment->regions - 4 * sizeof(struct region),
		segment->regions + sizeof(struct region),
		segment->events,
		segment->events + 8192,
	};

	(void)state;
	for (size_t i = 1; i < sizeof(edges) / sizeof(*edges); i++) {
		assert_true(edges[i - 1] - edges[0] <= edges[i] - edges[0]);
		if (i % 2 == 1)
			assert_int_equal(edges[i] % CACHE_LINE, 0);
	}
	assert_int_equal(segment->size, segment->lead + segment->events + 8192);
	assert_int_equal(segment->size, segment_size(&tiers, &fixed));
	assert_int_equal(segment->lead + segment->events, fixed);
	free(segment_memory(segment));
}

static void segment_init__of_a_further_space_has_neither_ring_nor_replies(void **state)
{
	struct segment_limits further = small;
	size_t fixed, all = segment_size(&small, &fixed);
	struct segment *segment;

	(void)state;
	further.further = true;
	assert_true(segment_size(&further, &fixed) <=
		    all - ring_size(COMMAND_RING) - REPLY_SLOTS * sizeof(struct reply) + 4096);
	segment = segment_new(&further, 0);
	assert_int_equal(
		segment->entries + sizeof(struct entry), segment->replies + sizeof(struct reply));
	assert_true(segment->regions - segment->commands < 2 * 4096);
	free(segment_memory(segment));
}

static void segment_size__holds_the_largest_limits(void **state)
{
	const struct segment_limits limits = {.entries = LIMIT_ENTRIES,
		.regions = LIMIT_REGIONS,
		.queues = LIMIT_QUEUES,
		.portals = LIMIT_PORTALS,
		.access = LIMIT_ACCESS,
		.event_bytes = UINT64_C(1) << 40};
	size_t fixed, size = segment_size(&limits, &fixed);

	(void)state;
	assert_true(fixed > LIMIT_REGIONS * sizeof(struct region));
	assert_int_equal(size, fixed + (UINT64_C(1) << 40));
	assert_true(LIMIT_ENTRIES <= HANDLE_INDEX_MAX && LIMIT_REGIONS <= HANDLE_INDEX_MAX &&
		    LIMIT_QUEUES <= HANDLE_INDEX_MAX);
}

static void segment_take__gives_each_index_once_and_then_none(void **state)
{
	struct segment *segment = segment_new(&small, 0);
	unsigned seen = 0;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		uint32_t index = segment_take(segment, segment->free_regions);

		assert_true(index < 5);
		seen |= 1u << index;
	}
	assert_int_equal(seen, 31);
	assert_int_equal(segment_take(segment, segment->free_regions), INDEX_NONE);
	segment_give(segment, segment->free_regions, 4);
	assert_int_equal(segment_take(segment, segment->free_regions), 4);
	free(segment_memory(segment));
}

static void segment_generation__is_never_0(void **state)
{
	struct segment *segment = segment_new(&small, UINT32_MAX - 1);

	(void)state;
	assert_int_equal(segment_generation(segment), UINT32_MAX);
	assert_int_equal(segment_generation(segment), 1);
	free(segment_memory(segment));
}

static void gate_is__refuses_the_dead_and_the_later_born(void **state)
{
	(void)state;
	assert_true(gate_is(gate_make(9, 3), 9));
	assert_false(gate_is(gate_make(9, 3), 8));
	assert_false(gate_is(0, 0));
	assert_false(gate_is(gate_make(0, 5), 0));
	assert_int_equal(gate_low(gate_make(9, 3)), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segment_init__lays_tables_out_in_order_without_overlap),
		cmocka_unit_test(segment_init__of_a_further_space_has_neither_ring_nor_replies),
		cmocka_unit_test(segment_size__holds_the_largest_limits),
		cmocka_unit_test(segment_take__gives_each_index_once_and_then_none),
		cmocka_unit_test(segment_generation__is_never_0),
		cmocka_unit_test(gate_is__refuses_the_dead_and_the_later_born),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
