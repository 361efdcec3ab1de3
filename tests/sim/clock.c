/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - see clock.h. A binary heap. */
#include <sim/clock.h>

#include <stdlib.h>

#define HEAP_ROOM 1024

void sim_clock_init(struct sim_clock *clock)
{
	*clock = (struct sim_clock){.room = HEAP_ROOM};
	clock->heap = report_memory(calloc(clock->room, sizeof(*clock->heap)));
}

void sim_clock_free(struct sim_clock *clock)
{
	free(clock->heap);
	clock->heap = NULL;
}

static bool happening_before(const struct happening *a, const struct happening *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

void sim_clock_at(struct sim_clock *clock, uint64_t when, happening_call *call, void *object,
	uint64_t argument)
{
	struct happening happening = {
		.when = when > clock->now ? when : clock->now,
		.order = clock->order++,
		.call = call,
		.object = object,
		.argument = argument,
	};
	size_t at = clock->count++;

	if (clock->count > clock->room) {
		clock->room *= 2;
		clock->heap =
			report_memory(realloc(clock->heap, clock->room * sizeof(*clock->heap)));
	}
	for (; at > 0 && happening_before(&happening, &clock->heap[(at - 1) / 2]);
		at = (at - 1) / 2)
		clock->heap[at] = clock->heap[(at - 1) / 2];
	clock->heap[at] = happening;
}

uint64_t sim_clock_next(const struct sim_clock *clock)
{
	return clock->count ? clock->heap[0].when : UINT64_MAX;
}

static struct happening heap_take(struct sim_clock *clock)
{
	struct happening first = clock->heap[0];
	struct happening last = clock->heap[--clock->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < clock->count) {
		if (child + 1 < clock->count &&
			happening_before(&clock->heap[child + 1], &clock->heap[child]))
			child++;
		if (!happening_before(&clock->heap[child], &last))
			break;
		clock->heap[at] = clock->heap[child];
		at = child;
	}
	if (clock->count)
		clock->heap[at] = last;
	return first;
}

bool sim_clock_step(struct sim_clock *clock)
{
	struct happening happening;

	if (clock->count == 0)
		return false;
	happening = heap_take(clock);
	clock->now = happening.when;
	happening.call(happening.object, happening.argument);
	return true;
}
