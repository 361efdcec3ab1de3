/* SPDX-License-Identifier: BSD-3-Clause */
/* kept.c - lists of kept messages and their views. See kept.h. The poll core owns all of it.
 *
 *     list      [A1] -- [B1] -- [A2] -- [B2] -- [A3]
 *                                     |
 *     view      bucket 0:  A1 - A2    | the view ends here: the rest has not been asked for
 *               bucket 1:  B1         |
 *
 * V1. A message is in a view if its number is below the view's end, and in no other case.
 * V2. A chain is a ring in list order, so its first message is the one whose previous one has no
 *     smaller number.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <base/pages.h>
#include <match/chains.h>
#include <match/kept.h>

static_assert(sizeof(struct kept) == 128, "two cache lines");

/* Lists of so many messages are walked; shorter ones than the other lose their views. */
#define WALK_UP_TO  16
#define VIEWS_BELOW 8
#define NEW_UP_TO   4 /* messages that a view need not know: they are looked at instead */

/* For rare cases: the usual case then need not save the registers that they use. */
#define NOINLINE __attribute__((noinline))

struct view {
	struct chains chains; /* not open: the view is free */
	uint64_t end;         /* V1 */
	uint64_t used;        /* how often it was asked, halved from time to time */
	uint32_t index;       /* its own, in links */
};

#define PROCESS_NEVER 1 /* in the mask of a free view: no question has it */

struct kept_views {
	struct view *recent; /* the one that was asked last */
	struct view views[KEPT_VIEWS];
};

/* The messages that an entry accepts. */
struct question {
	struct mask mask;
	uint64_t bits;
	uint64_t process;
};

static struct question question_of(const struct match_entry *entry)
{
	unsigned any = (entry->nid == MATCH_ANY ? MATCH_ANY_NID : 0u) |
		       (entry->pid == MATCH_ANY ? MATCH_ANY_PID : 0u);

	return (struct question){
		.mask = {.bits = ~entry->ignore, .process = match_processes[any]},
		.bits = entry->bits,
		.process = process_of(entry->nid, entry->pid),
	};
}

/* Is a message alike under a mask? */
static inline bool kept_is(
	const struct kept *kept, const struct mask *mask, uint64_t bits, uint64_t process)
{
	return (((kept->bits ^ bits) & mask->bits) | ((kept->process ^ process) & mask->process)) ==
	       0;
}

/* --- the chains of a view --- */

static inline struct chained chained_of(const struct kept_table *table)
{
	return (struct chained){table->base, sizeof(*table->base), offsetof(struct kept, process)};
}

static inline struct kept_link *link_of(
	const struct kept_table *table, const struct view *view, uint32_t i)
{
	return &table->base[i].links[view->index];
}

/* The first message of the chain whose messages are like this; KEPT_NONE: there is none. */
static inline uint32_t view_find(
	const struct kept_table *table, const struct view *view, uint64_t bits, uint64_t process)
{
	return chains_find(&view->chains, chained_of(table), bits, process);
}

/* A message comes into a view, which knows all before it. */
static void view_add(const struct kept_table *table, struct view *view, uint32_t i)
{
	const struct kept *kept = &table->base[i];
	struct kept_link *link = link_of(table, view, i);
	uint32_t head = view_find(table, view, kept->bits, kept->process);
	struct kept_link *first;

	if (head == KEPT_NONE) {
		link->next = link->previous = i;
		chains_add(&view->chains, chained_of(table), i);
		return;
	}
	first = link_of(table, view, head);
	link->next = head;
	link->previous = first->previous;
	link_of(table, view, first->previous)->next = i;
	first->previous = i;
}

static void view_remove(const struct kept_table *table, struct view *view, uint32_t i)
{
	struct kept_link *link = link_of(table, view, i);

	if (table->base[link->previous].number >= table->base[i].number) /* V2 */
		chains_replace(&view->chains, chained_of(table), i,
			link->next == i ? KEPT_NONE : link->next);
	link_of(table, view, link->previous)->next = link->next;
	link_of(table, view, link->next)->previous = link->previous;
}

/* --- views that come and go --- */

/* Where a further mask gets its view: a free place, or that of the least used one. The others' use
 * counts half from then on. */
static uint32_t views_choose(struct kept_views *views)
{
	uint32_t chosen = 0;

	for (uint32_t v = 0; v < KEPT_VIEWS; v++) {
		if (views->views[v].chains.buckets == 0)
			return v;
		if (views->views[v].used < views->views[chosen].used)
			chosen = v;
	}
	for (uint32_t v = 0; v < KEPT_VIEWS; v++)
		views->views[v].used /= 2;
	return chosen;
}

static struct kept_views *views_create(void)
{
	struct kept_views *views = calloc(1, sizeof(*views));

	if (!views)
		return NULL;
	for (unsigned v = 0; v < KEPT_VIEWS; v++)
		views->views[v].chains.mask.process = PROCESS_NEVER;
	return views;
}

/* A mask gets a view, which knows no message yet, if there is memory for it. */
static void views_make(
	const struct kept_table *table, struct kept_list *list, const struct mask *mask)
{
	struct view *view;
	uint32_t index;

	list->walked = 0;
	if (!list->views)
		list->views = views_create();
	if (!list->views)
		return;
	index = views_choose(list->views);
	view = list->views->recent = &list->views->views[index];
	if (!chains_open(&view->chains, mask, table->secret,
		    offsetof(struct kept, links[index].bucket_next)))
		return;
	view->end = view->used = 0;
	view->index = index;
}

static void views_free(struct kept_list *list)
{
	if (!list->views)
		return;
	for (unsigned v = 0; v < KEPT_VIEWS; v++)
		chains_close(&list->views->views[v].chains);
	free(list->views);
	list->views = NULL;
}

static inline bool mask_is(const struct mask *a, const struct mask *b)
{
	return a->bits == b->bits && a->process == b->process;
}

/* The messages that have come since the view was asked last. */
static NOINLINE void view_learn(
	const struct kept_table *table, const struct kept_list *list, struct view *view)
{
	uint32_t i = list->tail;

	while (table->base[i].previous != KEPT_NONE &&
		table->base[table->base[i].previous].number >= view->end)
		i = table->base[i].previous;
	for (; i != KEPT_NONE; i = table->base[i].next)
		view_add(table, view, i);
	view->end = list->number;
}

/* Makes the view of a mask the one that was asked last; NULL: it has none. */
static NOINLINE struct view *view_turn(struct kept_views *views, const struct match_entry *entry)
{
	const struct mask mask = question_of(entry).mask;
	struct view *view = views->views;

	while (!mask_is(&view->chains.mask, &mask))
		if (++view == views->views + KEPT_VIEWS)
			return NULL;
	views->recent = view;
	return view;
}

/* Are there more messages that a view does not know than may be? */
static inline bool view_is_late(
	const struct kept_table *table, const struct kept_list *list, const struct view *view)
{
	uint32_t i = list->tail;

	for (unsigned n = 0; n < NEW_UP_TO; n++) {
		if (i == KEPT_NONE || table->base[i].number < view->end)
			return false;
		i = table->base[i].previous;
	}
	return i != KEPT_NONE && table->base[i].number >= view->end;
}

/* The first message that a question accepts of those from a number on, which are few. */
static uint32_t new_find(const struct kept_table *table, const struct kept_list *list,
	uint64_t number, const struct question *question)
{
	uint32_t found = KEPT_NONE;

	for (uint32_t i = list->tail; i != KEPT_NONE && table->base[i].number >= number;
		i = table->base[i].previous)
		if (kept_is(&table->base[i], &question->mask, question->bits, question->process))
			found = i;
	return found;
}

/* The view of a mask, which knows all messages but a few of the last; NULL: it has none. The
 * question that takes all never has: its walks have no steps. */
static inline struct view *view_of(const struct kept_table *table, const struct kept_list *list,
	const struct match_entry *entry, const struct mask *mask)
{
	struct view *view;

	if (!list->views)
		return NULL;
	view = list->views->recent;
	if (!mask_is(&view->chains.mask, mask))
		view = view_turn(list->views, entry);
	if (!view)
		return NULL;
	view->used++;
	if (view_is_late(table, list, view))
		view_learn(table, list, view);
	return view;
}

/* --- the list --- */

static size_t table_bytes(uint32_t count)
{
	return (size_t)count * sizeof(struct kept);
}

bool kept_table_init(struct kept_table *table, uint32_t count, const uint64_t secret[2])
{
	*table = (struct kept_table){
		.base = pages_map(table_bytes(count)),
		.count = count,
		.free = KEPT_NONE,
		.secret = {secret[0], secret[1]},
	};
	return table->base != NULL || count == 0;
}

bool kept_table_grow(struct kept_table *table, uint32_t count)
{
	struct kept *base = pages_map(table_bytes(count));

	if (!base)
		return false;
	if (table->made != 0)
		memcpy(base, table->base, table_bytes(table->made));
	kept_table_free(table);
	table->base = base;
	table->count = count;
	return true;
}

void kept_table_free(struct kept_table *table)
{
	pages_unmap(table->base, table_bytes(table->count));
	table->base = NULL;
}

void kept_list_init(struct kept_list *list)
{
	*list = (struct kept_list){.head = KEPT_NONE, .tail = KEPT_NONE};
}

void kept_list_clear(struct kept_list *list)
{
	views_free(list);
	kept_list_init(list);
}

void kept_add(const struct kept_table *table, struct kept_list *list, uint32_t i,
	const struct match_key *key)
{
	struct kept *kept = &table->base[i];

	kept->bits = key->bits;
	kept->process = process_of(key->nid, key->pid);
	kept->number = list->number++;
	kept->previous = list->tail;
	kept->next = KEPT_NONE;
	if (list->tail == KEPT_NONE)
		list->head = i;
	else
		table->base[list->tail].next = i;
	list->tail = i;
	list->length++;
}

void kept_remove(const struct kept_table *table, struct kept_list *list, uint32_t i)
{
	const struct kept *kept = &table->base[i];

	if (kept->previous == KEPT_NONE)
		list->head = kept->next;
	else
		table->base[kept->previous].next = kept->next;
	if (kept->next == KEPT_NONE)
		list->tail = kept->previous;
	else
		table->base[kept->next].previous = kept->previous;
	list->length--;
	if (!list->views)
		return;
	if (list->length < VIEWS_BELOW) {
		views_free(list);
		return;
	}
	for (struct view *view = list->views->views; view < list->views->views + KEPT_VIEWS; view++)
		if (kept->number < view->end) /* V1 */
			view_remove(table, view, i);
}

/* The first message from i on that is asked for. */
static NOINLINE uint32_t list_walk(const struct kept_table *table, struct kept_list *list,
	uint32_t i, const struct match_entry *entry)
{
	const struct question question = question_of(entry);
	uint64_t steps = 0;

	while (i != KEPT_NONE &&
		!kept_is(&table->base[i], &question.mask, question.bits, question.process)) {
		i = table->base[i].next;
		steps++;
	}
	if (steps == 0 || list->length <= WALK_UP_TO)
		return i;
	list->walked += steps;
	if (list->walked >= list->length)
		views_make(table, list, &question.mask);
	return i;
}

uint32_t kept_first(
	const struct kept_table *table, struct kept_list *list, const struct match_entry *entry)
{
	const struct question question = question_of(entry);
	const struct view *view;
	uint32_t found;

	if (!list->views && list->head != KEPT_NONE &&
		kept_is(&table->base[list->head], &question.mask, question.bits, question.process))
		return list->head;
	view = view_of(table, list, entry, &question.mask);
	if (!view)
		return list_walk(table, list, list->head, entry);
	found = view_find(table, view, question.bits, question.process);
	return found != KEPT_NONE ? found : new_find(table, list, view->end, &question);
}

uint32_t kept_next(const struct kept_table *table, struct kept_list *list,
	const struct match_entry *entry, uint32_t current)
{
	const struct question question = question_of(entry);
	const struct kept *kept = &table->base[current];
	const struct view *view = view_of(table, list, entry, &question.mask);
	uint32_t next;

	if (!view)
		return list_walk(table, list, kept->next, entry);
	if (kept->number >= view->end)
		return new_find(table, list, kept->number + 1, &question);
	next = link_of(table, view, current)->next;
	return table->base[next].number > kept->number
		       ? next
		       : new_find(table, list, view->end, &question);
}

uint32_t kept_views(const struct kept_list *list)
{
	uint32_t count = 0;

	for (unsigned v = 0; list->views && v < KEPT_VIEWS; v++)
		count += list->views->views[v].chains.buckets > 0;
	return count;
}
