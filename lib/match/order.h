/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - which of two entries of a list comes first, without a walk.
 *
 * Neighbours of the list share a group, at most GROUP_MAX of them. A group has a label among the
 * groups, an entry an order within its group:
 *
 *     list      e1 - e2 - e3 - e4 - e5 - e6 - ...
 *     groups    [ label 10 ]   [ label 20     ]
 *     order       1    2    3    1    2    3
 *
 * A new entry takes an order between its neighbours'. No gap left: its group is numbered anew. No
 * room in the group: half of it goes to a new group. No gap left between two groups' labels would
 * be a matter of all groups; it does not come to that:
 *
 * O1. Labels lie in one of two spaces, the lower or the upper half of all numbers. When a gap gets
 *     tight, or a space's end near, all groups move to the middle of the other space, evenly
 *     spaced: from the list's tail to the upper one, from its head to the lower one, so that the
 *     order holds all the time. Each insertion moves a part of them.
 * O2. A gap that was not tight when the move began (LABEL_TIGHT) lasts until its end: it is halved
 *     by a new group at most, for which a full group must have got GROUP_MAX / 2 entries or more,
 *     and the move ends within LABEL_PART insertions.
 *
 * So an insertion writes GROUP_MAX entries and a LABEL_PARTth of the groups at most.
 *
 * Private memory of the poll core; an entry's group and order are in the shared table.
 */
#ifndef MATCH_ORDER_H
#define MATCH_ORDER_H

#include <match/blocks.h>
#include <match/match.h>

#define GROUP_MAX   64
#define LABEL_STEP  (UINT64_C(1) << 36) /* between groups that nothing has come between */
#define LABEL_TIGHT (UINT64_C(1) << 12)
#define LABEL_PART  256

/* O1: the middle of the lower and of the upper space, the border between them, and how near to an
 * end of a space its groups may come. */
#define LABEL_LOWER  (UINT64_C(1) << 62)
#define LABEL_UPPER  (UINT64_C(3) << 62)
#define LABEL_BORDER (UINT64_C(1) << 63)
#define LABEL_GUARD  (UINT64_C(1) << 50)

struct group {
	uint64_t label;
	uint32_t next; /* in the order of labels, or of unused groups */
	uint32_t previous;
	uint32_t first; /* entry */
	uint32_t count; /* entries */
};

struct match_order {
	struct blocks groups;
	uint32_t unused; /* first of the groups without entries */
	uint32_t count;  /* groups with entries */
	uint32_t head;   /* groups */
	uint32_t tail;
	uint32_t latest; /* the group that was made last: a hint where the next one will go */
	uint32_t moving; /* the next group to move to the other space, or MATCH_NONE */
	bool upper;      /* the space they are in, or move to */
	uint64_t label;  /* of the next one to move */
};

/* An order without entries that has memory for so many; false when there is not so much. */
bool order_open(struct match_order *order, uint32_t entries);
void order_close(struct match_order *order);

/* Gives an entry that is about to be linked between two neighbours its place, either of which may
 * be MATCH_NONE; false, and nothing has changed, when there is no memory for that. */
bool order_add(const struct match_table *table, struct match_order *order, uint32_t entry,
	uint32_t previous, uint32_t next);
/* Before the entry leaves the list. */
void order_remove(const struct match_table *table, struct match_order *order, uint32_t entry);

static inline struct group *order_group(const struct match_order *order, uint32_t group)
{
	return blocks_at(&order->groups, group, sizeof(struct group));
}

static inline bool order_before(
	const struct match_order *order, const struct match_entry *a, const struct match_entry *b)
{
	if (a->group == b->group)
		return a->order < b->order;
	return order_group(order, a->group)->label < order_group(order, b->group)->label;
}

#endif
