/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - which of two entries of a list with an index comes first, without a walk.
 *
 * Each entry has a label. A new entry at an end is labelled ORDER_STEP beyond the last one there;
 * a new entry between two others gets the label in the middle. When no label is left between them,
 * entries on one side of the gap get new ones: on the side where fewer do.
 *
 * O1. Labels increase along the list. They wrap around, but the labels of one list never span more
 *     than ORDER_SPAN, so the sign of a difference tells the order.
 */
#ifndef MATCH_ORDER_H
#define MATCH_ORDER_H

#include <match/match.h>

#define ORDER_STEP (UINT64_C(1) << 36)
#define ORDER_SPAN (UINT64_C(1) << 62)

/* Labels all entries: the list gets an index, or its labels have come to span too much (O1). */
void order_compact(const struct match_table *table, const struct match_list *list);
/* Labels an entry that is about to be linked between two neighbours, either of which may be
 * MATCH_NONE. */
void order_label(const struct match_table *table, const struct match_list *list, uint32_t entry,
	uint32_t previous, uint32_t next);

static inline bool order_before(const struct match_entry *a, const struct match_entry *b)
{
	return (int64_t)(a->label - b->label) < 0;
}

#endif
