/* SPDX-License-Identifier: BSD-3-Clause */
/* order.c - see order.h. The poll core owns all of it. */
#include <match/order.h>

/* How far labels are apart after they have been laid out anew, at least. */
#define ORDER_ROOM (UINT64_C(1) << 8)

static uint64_t label_of(const struct match_table *table, uint32_t i)
{
	return match_entry(table, i)->label;
}

/* Does it pay to move the `count` - 1 entries between a and b apart? The distance grows with the
 * square of their number, so a crowded stretch is spread over a much longer one and an insertion
 * relabels O(log n) entries on average (Dietz and Sleator). Beyond an end there is room for all. */
static bool is_far(const struct match_table *table, uint32_t a, uint32_t b, uint64_t count)
{
	return a == MATCH_NONE || b == MATCH_NONE ||
	       label_of(table, b) - label_of(table, a) >= count * count * ORDER_ROOM;
}

/* The distance of two labels divided by `count`; beyond an end of the list the usual step. */
static uint64_t step_between(
	const struct match_table *table, uint32_t a, uint32_t b, uint64_t count)
{
	if (a == MATCH_NONE || b == MATCH_NONE)
		return ORDER_STEP;
	return (label_of(table, b) - label_of(table, a)) / count;
}

/* Makes room between two neighbours. */
static void order_spread(const struct match_table *table, uint32_t left, uint32_t right)
{
	uint32_t back = left;
	uint32_t front = right;
	uint64_t count = 1;
	uint64_t label;
	uint64_t step;

	for (;; count++) {
		if (is_far(table, left, front, count)) {
			step = step_between(table, left, front, count);
			label = label_of(table, left);
			for (uint32_t i = right; i != front; i = match_entry(table, i)->next)
				match_entry(table, i)->label = label += step;
			return;
		}
		if (is_far(table, back, right, count)) {
			step = step_between(table, back, right, count);
			label = label_of(table, right);
			for (uint32_t i = left; i != back; i = match_entry(table, i)->previous)
				match_entry(table, i)->label = label -= step;
			return;
		}
		front = match_entry(table, front)->next;
		back = match_entry(table, back)->previous;
	}
}

void order_compact(const struct match_table *table, const struct match_list *list)
{
	uint64_t label = 0;

	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next)
		match_entry(table, i)->label = label += ORDER_STEP;
}

void order_label(const struct match_table *table, const struct match_list *list, uint32_t i,
	uint32_t previous, uint32_t next)
{
	uint64_t label = 0;

	if (list->length > 0 &&
		label_of(table, list->tail) - label_of(table, list->head) > ORDER_SPAN)
		order_compact(table, list);
	if (next != MATCH_NONE && previous != MATCH_NONE) {
		if (label_of(table, next) - label_of(table, previous) < 2)
			order_spread(table, previous, next);
		label = label_of(table, previous) + step_between(table, previous, next, 2);
	} else if (previous != MATCH_NONE) {
		label = label_of(table, previous) + ORDER_STEP;
	} else if (next != MATCH_NONE) {
		label = label_of(table, next) - ORDER_STEP;
	}
	match_entry(table, i)->label = label;
}
