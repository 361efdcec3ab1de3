/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - the links of a match list, and the walk of one without an index. See match.h. The
 * poll core owns all of it.
 */
#include <assert.h>

#include <base/report.h>
#include <match/index.h>
#include <match/match.h>
#include <match/order.h>

static_assert(sizeof(struct match_entry) == 64, "one cache line");

/* A list gets its index from a search that passes more entries than the first number, or when it
 * becomes longer than the second; below the third it loses the index. */
#define WALK_UP_TO   16
#define LENGTH_UP_TO 256
#define INDEX_BELOW  8

void match_list_init(struct match_list *list)
{
	*list = (struct match_list){.head = MATCH_NONE, .tail = MATCH_NONE};
}

void match_list_clear(struct match_list *list)
{
	index_destroy(list->index);
	match_list_init(list);
}

static inline void list_link(const struct match_table *table, struct match_list *list, uint32_t i,
	uint32_t previous, uint32_t next)
{
	struct match_entry *entry = match_entry(table, i);

	entry->any = (uint8_t)((entry->nid == MATCH_ANY ? MATCH_ANY_NID : 0) |
			       (entry->pid == MATCH_ANY ? MATCH_ANY_PID : 0));
	entry->previous = previous;
	entry->next = next;
	if (previous == MATCH_NONE)
		list->head = i;
	else
		match_entry(table, previous)->next = i;
	if (next == MATCH_NONE)
		list->tail = i;
	else
		match_entry(table, next)->previous = i;
	list->length++;
}

/* The same of a list that has an index, or is to get one. A function of its own, so that an
 * insertion into a short list saves no registers; so is indexed_remove(). */
static __attribute__((noinline)) void indexed_insert(const struct match_table *table,
	struct match_list *list, uint32_t i, uint32_t previous, uint32_t next)
{
	if (list->index)
		order_label(table, list, i, previous, next);
	list_link(table, list, i, previous, next);
	if (list->index)
		index_add(table, list->index, i);
	else
		list->index = index_create(table, list); /* NULL is fine: I4 */
}

static inline void list_insert(const struct match_table *table, struct match_list *list, uint32_t i,
	uint32_t previous, uint32_t next)
{
	if (list->index || list->length >= LENGTH_UP_TO)
		indexed_insert(table, list, i, previous, next);
	else
		list_link(table, list, i, previous, next);
}

void match_push_front(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	list_insert(table, list, entry, MATCH_NONE, list->head);
}

void match_push_back(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	list_insert(table, list, entry, list->tail, MATCH_NONE);
}

void match_insert_before(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry)
{
	list_insert(table, list, entry, match_entry(table, current)->previous, current);
}

void match_insert_after(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry)
{
	list_insert(table, list, entry, current, match_entry(table, current)->next);
}

static inline void list_unlink(
	const struct match_table *table, struct match_list *list, uint32_t entry)
{
	uint32_t previous = match_entry(table, entry)->previous;
	uint32_t next = match_entry(table, entry)->next;

	if (previous == MATCH_NONE)
		list->head = next;
	else
		match_entry(table, previous)->next = next;
	if (next == MATCH_NONE)
		list->tail = previous;
	else
		match_entry(table, next)->previous = previous;
	list->length--;
}

static __attribute__((noinline)) void indexed_remove(
	const struct match_table *table, struct match_list *list, uint32_t entry)
{
	index_remove(table, list->index, entry);
	list_unlink(table, list, entry);
	if (list->length < INDEX_BELOW) {
		index_destroy(list->index);
		list->index = NULL;
	}
}

void match_remove(const struct match_table *table, struct match_list *list, uint32_t entry)
{
	if (list->index)
		indexed_remove(table, list, entry);
	else
		list_unlink(table, list, entry);
}

/* The first entry from i on that matches. The search that walks far goes on to its end, so that the
 * ones behind it find the index. */
static uint32_t list_walk(const struct match_table *table, struct match_list *list, uint32_t i,
	const struct match_key *key)
{
	uint32_t passed = 0;

	for (; i != MATCH_NONE && !entry_matches(match_entry(table, i), key); passed++)
		i = match_entry(table, i)->next;
	if (passed > WALK_UP_TO)
		list->index = index_create(table, list); /* NULL is fine: I4 */
	return i;
}

uint32_t match_search(
	const struct match_table *table, struct match_list *list, const struct match_key *key)
{
	if (list->index)
		return index_first(table, list->index, key);
	return list_walk(table, list, list->head, key);
}

uint32_t match_next(const struct match_table *table, struct match_list *list, uint32_t current,
	const struct match_key *key)
{
	if (list->index)
		return index_next(table, list->index, current, key);
	return list_walk(table, list, match_entry(table, current)->next, key);
}

void match_list_tell(const struct match_list *list, struct report *report)
{
	report_number(report, "entries", list->length);
	report_flag(report, "indexed", list->index != NULL);
	/* Masks that are looked up at once, and entries of other masks, which are walked. */
	report_number(report, "index_classes", list->index ? index_classes(list->index) : 0);
	report_number(report, "index_residue", list->index ? index_residue(list->index) : 0);
}
