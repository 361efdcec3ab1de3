/* SPDX-License-Identifier: BSD-3-Clause */
/* trigger.c - see trigger.h. The poll core owns all of it. */
#include <engine/trigger.h>

#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <base/probe.h>
#include <base/trace.h>

#define TRIGGER_CHUNK 64
#define ROOM_MIN      16 /* of a heap; a power of two */

void triggers_init(struct triggers *triggers, unsigned max)
{
	*triggers = (struct triggers){0};
	STAILQ_INIT(&triggers->ready);
	pool_init(&triggers->pool, sizeof(struct trigger), TRIGGER_CHUNK, max);
}

void triggers_free(struct triggers *triggers)
{
	pool_free(&triggers->pool);
}

/* --- heaps: a trigger comes before those at twice its place, plus 1 and plus 2 --- */

static bool is_due_before(const struct trigger_due *a, const struct trigger_due *b)
{
	return a->threshold != b->threshold ? a->threshold < b->threshold : a->number < b->number;
}

static void heap_swap(struct trigger_due *a, struct trigger_due *b)
{
	struct trigger_due old = *a;

	*a = *b;
	*b = old;
}

/* The one at the end finds its place. */
static void heap_raise(struct trigger_due *heap, uint32_t at)
{
	while (at > 0 && is_due_before(&heap[at], &heap[(at - 1) / 2])) {
		heap_swap(&heap[at], &heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

/* The one at a place, below which all is in order, finds its own. */
static void heap_lower(struct trigger_due *heap, uint32_t count, uint32_t at)
{
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
			if (is_due_before(&heap[child], &heap[least]))
				least = child;
		if (least == at)
			return;
		heap_swap(&heap[at], &heap[least]);
		at = least;
	}
}

/* Takes the first one out of the heap: to the place behind its new end. */
static void heap_pop(struct trigger_due *heap, uint32_t *count)
{
	heap_swap(&heap[0], &heap[--*count]);
	heap_lower(heap, *count, 0);
}

/* --- lists --- */

bool trigger_reserve(struct triggers *triggers, struct trigger_list **list)
{
	uint32_t room = *list ? (*list)->room : 0;
	struct trigger_list *grown;

	if (!pool_reserve(&triggers->pool, 1))
		return false;
	if (*list && (*list)->count < room)
		return true;
	room = room == 0 ? ROOM_MIN : 2 * room;
	grown = realloc(*list, sizeof(*grown) + room * sizeof(grown->heap[0]));
	if (!grown)
		return false;
	if (!*list)
		grown->count = 0;
	grown->room = room;
	*list = grown;
	return true;
}

static struct trigger *trigger_make(
	struct triggers *triggers, const struct long_command *command, unsigned lines)
{
	struct trigger *trigger = pool_take_reserved(&triggers->pool);

	trigger->lines = lines;
	memcpy(&trigger->command, command, lines * RING_BYTES);
	return trigger;
}

void trigger_add(struct triggers *triggers, struct trigger_list *list, uint64_t sum,
	uint64_t threshold, const struct long_command *command, unsigned lines)
{
	struct trigger *trigger = trigger_make(triggers, command, lines);

	if (sum >= threshold) {
		PROBE(trigger, list->counter, threshold, sum);
		trace(TRACE_TRIGGER, handle_interface(list->counter), 0, threshold);
		STAILQ_INSERT_TAIL(&triggers->ready, trigger, next);
		return;
	}
	list->heap[list->count] = (struct trigger_due){
		.threshold = threshold,
		.number = triggers->number++,
		.trigger = trigger,
	};
	heap_raise(list->heap, list->count++);
}

void trigger_ready(struct triggers *triggers, const struct long_command *command, unsigned lines)
{
	struct trigger *trigger = trigger_make(triggers, command, lines);

	STAILQ_INSERT_TAIL(&triggers->ready, trigger, next);
}

/* The one that was given last comes first. */
static int given_compare(const void *left, const void *right)
{
	const struct trigger_due *a = left, *b = right;

	return a->number < b->number ? 1 : -1;
}

/* Commands that have left the heap lie behind it, and are put in the order in which they were
 * given: T1. */
void trigger_release(struct triggers *triggers, struct trigger_list *list, uint64_t sum)
{
	uint32_t all = list->count;

	while (list->count > 0 && list->heap[0].threshold <= sum)
		heap_pop(list->heap, &list->count);
	if (all - list->count > 1)
		qsort(&list->heap[list->count], all - list->count, sizeof(list->heap[0]),
			given_compare);
	for (uint32_t i = all; i-- > list->count;) {
		PROBE(trigger, list->counter, list->heap[i].threshold, sum);
		trace(TRACE_TRIGGER, handle_interface(list->counter), 0, list->heap[i].threshold);
		STAILQ_INSERT_TAIL(&triggers->ready, list->heap[i].trigger, next);
	}
}

unsigned triggers_run(struct triggers *triggers, unsigned limit,
	void (*run)(void *context, const struct long_command *command), void *context)
{
	unsigned done = 0;

	for (; done < limit && triggers_are_ready(triggers); done++) {
		struct trigger *trigger = STAILQ_FIRST(&triggers->ready);

		STAILQ_REMOVE_HEAD(&triggers->ready, next);
		run(context, &trigger->command);
		pool_give(&triggers->pool, trigger);
	}
	return done;
}

unsigned trigger_cancel(struct triggers *triggers, struct trigger_list **list)
{
	unsigned count = *list ? (*list)->count : 0;

	for (uint32_t i = 0; i < count; i++)
		pool_give(&triggers->pool, (*list)->heap[i].trigger);
	free(*list);
	*list = NULL;
	return count;
}
