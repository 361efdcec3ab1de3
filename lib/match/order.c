/* SPDX-License-Identifier: BSD-3-Clause */
/* order.c - see order.h. The poll core owns all of it. */
#include <assert.h>
#include <stddef.h>

#include <match/order.h>

#define ORDER_MIDDLE (UINT64_C(1) << 31)
#define ORDER_STEP   (UINT64_C(1) << 25)
#define ORDER_END    (UINT64_C(1) << 32)

/* A program that puts entry after entry before one mark, or after it, goes on doing so: the next
 * group stays near the latest one and leaves the gap on the other side to those that follow. */
#define LABEL_SHARE 1024                /* part of a gap that a group of such a run takes, ... */
#define LABEL_WIDE  (UINT64_C(1) << 32) /* ... of a gap that is wider than that */

static_assert(
	GROUP_MAX * ORDER_STEP <= ORDER_MIDDLE, "a group filled from one end needs no new numbers");
static_assert(LABEL_WIDE / LABEL_SHARE > LABEL_TIGHT, "O2: a share is not tight");
static_assert(
	LABEL_TIGHT >> (2 * LABEL_PART / GROUP_MAX + 2) >= 2, "O2: what is tight lasts for a move");

/* --- labels of groups --- */

static bool tight(const struct match_order *order, uint32_t g)
{
	const struct group *group = order_group(order, g);

	return (group->next != MATCH_NONE &&
		       order_group(order, group->next)->label - group->label < LABEL_TIGHT) ||
	       (group->previous != MATCH_NONE &&
		       group->label - order_group(order, group->previous)->label < LABEL_TIGHT);
}

static bool near_end(const struct match_order *order)
{
	uint64_t low = order->upper ? LABEL_BORDER : 0;
	uint64_t high = order->upper ? UINT64_MAX : LABEL_BORDER;

	return order_group(order, order->head)->label < low + LABEL_GUARD ||
	       order_group(order, order->tail)->label > high - LABEL_GUARD;
}

/* O1. */
static void move_begin(struct match_order *order)
{
	uint64_t half = order->count / 2 * LABEL_STEP;

	order->upper = !order->upper;
	order->moving = order->upper ? order->tail : order->head;
	order->label = order->upper ? LABEL_UPPER + half : LABEL_LOWER - half;
}

static void move_on(struct match_order *order)
{
	for (uint32_t n = order->count / LABEL_PART + 1; n > 0 && order->moving != MATCH_NONE;
		n--) {
		struct group *group = order_group(order, order->moving);

		group->label = order->label;
		order->label += order->upper ? -LABEL_STEP : LABEL_STEP;
		order->moving = order->upper ? group->previous : group->next;
	}
}

static uint64_t label_between(const struct match_order *order, uint32_t previous, uint32_t next)
{
	uint64_t low = previous == MATCH_NONE ? 0 : order_group(order, previous)->label;
	uint64_t high = next == MATCH_NONE ? 0 : order_group(order, next)->label;

	if (previous == MATCH_NONE && next == MATCH_NONE)
		return order->upper ? LABEL_UPPER : LABEL_LOWER;
	if (next == MATCH_NONE)
		return low + LABEL_STEP;
	if (previous == MATCH_NONE)
		return high - LABEL_STEP;
	assert(high - low >= 2); /* O2 */
	if (high - low > LABEL_WIDE && previous == order->latest)
		return low + (high - low) / LABEL_SHARE;
	if (high - low > LABEL_WIDE && next == order->latest)
		return high - (high - low) / LABEL_SHARE;
	return low + (high - low) / 2;
}

/* --- groups --- */

/* One block of unused groups more. */
static bool groups_add(struct match_order *order)
{
	uint32_t first = order->groups.count * BLOCK_ELEMENTS;

	if (!blocks_add(&order->groups, BLOCK_ELEMENTS * sizeof(struct group)))
		return false;
	for (uint32_t g = first + BLOCK_ELEMENTS; g-- > first;) {
		order_group(order, g)->next = order->unused;
		order->unused = g;
	}
	return true;
}

/* A new group between two, without entries; MATCH_NONE when there is no memory for it. */
static uint32_t group_new(struct match_order *order, uint32_t previous, uint32_t next)
{
	uint32_t g = order->unused;
	struct group *group;

	if (g == MATCH_NONE && !groups_add(order))
		return MATCH_NONE;
	g = order->unused;
	group = order_group(order, g);
	order->unused = group->next;
	*group = (struct group){.label = label_between(order, previous, next),
		.next = next,
		.previous = previous,
		.first = MATCH_NONE};
	*(previous == MATCH_NONE ? &order->head : &order_group(order, previous)->next) = g;
	*(next == MATCH_NONE ? &order->tail : &order_group(order, next)->previous) = g;
	order->count++;
	order->latest = g;
	/* What comes beside the next one to move, on the side of those that have, goes first. */
	if (order->moving != MATCH_NONE && order->moving == (order->upper ? previous : next))
		order->moving = g;
	if (order->moving == MATCH_NONE && (tight(order, g) || near_end(order)))
		move_begin(order);
	return g;
}

static void group_free(struct match_order *order, uint32_t g)
{
	struct group *group = order_group(order, g);
	uint32_t previous = group->previous;
	uint32_t next = group->next;

	*(previous == MATCH_NONE ? &order->head : &order_group(order, previous)->next) = next;
	*(next == MATCH_NONE ? &order->tail : &order_group(order, next)->previous) = previous;
	if (order->moving == g)
		order->moving = order->upper ? previous : next;
	if (order->latest == g)
		order->latest = previous;
	order->count--;
	group->next = order->unused;
	order->unused = g;
}

/* The second half of a full group goes to a new one behind it. */
static bool group_split(const struct match_table *table, struct match_order *order, uint32_t g)
{
	uint32_t made = group_new(order, g, order_group(order, g)->next);
	uint32_t i;

	if (made == MATCH_NONE)
		return false;

	struct group *group = order_group(order, g);
	struct group *half = order_group(order, made);

	i = group->first;
	for (unsigned n = 0; n < GROUP_MAX / 2; n++)
		i = match_entry(table, i)->next;
	half->first = i;
	half->count = group->count - GROUP_MAX / 2;
	group->count = GROUP_MAX / 2;
	for (unsigned n = 0; n < half->count; n++) {
		match_entry(table, i)->group = made;
		i = match_entry(table, i)->next;
	}
	return true;
}

/* Spreads the orders of a group evenly. */
static void group_number(const struct match_table *table, const struct group *group)
{
	uint64_t order = ORDER_MIDDLE - group->count / 2 * ORDER_STEP;
	uint32_t i = group->first;

	for (uint32_t n = 0; n < group->count; n++) {
		match_entry(table, i)->order = (uint32_t)order;
		order += ORDER_STEP;
		i = match_entry(table, i)->next;
	}
}

/* The group that a new entry between two neighbours joins; MATCH_NONE when there is no memory for
 * the one that it needs. */
static uint32_t group_for(const struct match_table *table, struct match_order *order,
	uint32_t previous, uint32_t next)
{
	uint32_t left = previous == MATCH_NONE ? MATCH_NONE : match_entry(table, previous)->group;
	uint32_t right = next == MATCH_NONE ? MATCH_NONE : match_entry(table, next)->group;

	if (left != MATCH_NONE && order_group(order, left)->count < GROUP_MAX)
		return left;
	if (right != MATCH_NONE && order_group(order, right)->count < GROUP_MAX)
		return right;
	if (left != right)
		return group_new(order, left, right);
	if (left == MATCH_NONE)
		return group_new(order, MATCH_NONE, MATCH_NONE);
	return group_split(table, order, left) ? match_entry(table, previous)->group : MATCH_NONE;
}

/* An order between two neighbours, of which those outside the group do not count; 0 when there is
 * none left. */
static uint32_t order_between(
	const struct match_table *table, uint32_t g, uint32_t previous, uint32_t next)
{
	bool left = previous != MATCH_NONE && match_entry(table, previous)->group == g;
	bool right = next != MATCH_NONE && match_entry(table, next)->group == g;
	uint64_t low = left ? match_entry(table, previous)->order : 0;
	uint64_t high = right ? match_entry(table, next)->order : ORDER_END;

	if (left && !right && high - low > ORDER_STEP)
		return (uint32_t)(low + ORDER_STEP);
	if (right && !left && high - low > ORDER_STEP)
		return (uint32_t)(high - ORDER_STEP);
	return high - low < 2 ? 0 : (uint32_t)(low + (high - low) / 2);
}

/* --- the order --- */

bool order_open(struct match_order *order, uint32_t entries)
{
	*order = (struct match_order){.unused = MATCH_NONE,
		.head = MATCH_NONE,
		.tail = MATCH_NONE,
		.latest = MATCH_NONE,
		.moving = MATCH_NONE};
	while (order->groups.count * BLOCK_ELEMENTS < entries / GROUP_MAX + 1)
		if (!groups_add(order)) {
			order_close(order);
			return false;
		}
	return true;
}

void order_close(struct match_order *order)
{
	blocks_clear(&order->groups);
}

bool order_add(const struct match_table *table, struct match_order *order, uint32_t i,
	uint32_t previous, uint32_t next)
{
	uint32_t g = group_for(table, order, previous, next);
	struct match_entry *entry = match_entry(table, i);
	struct group *group;

	if (g == MATCH_NONE)
		return false;
	group = order_group(order, g);
	entry->order = order_between(table, g, previous, next);
	if (entry->order == 0) {
		group_number(table, group);
		entry->order = order_between(table, g, previous, next);
	}
	entry->group = g;
	if (group->count++ == 0 || group->first == next)
		group->first = i;
	if (order->moving != MATCH_NONE)
		move_on(order);
	return true;
}

void order_remove(const struct match_table *table, struct match_order *order, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	struct group *group = order_group(order, entry->group);

	if (--group->count == 0)
		group_free(order, entry->group);
	else if (group->first == i)
		group->first = entry->next;
}
