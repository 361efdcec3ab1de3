/* SPDX-License-Identifier: BSD-3-Clause */
/* index.h - what finds the first match of a long list without a walk.
 *
 * Entries with the same ignore bits and the same wildcards form a class. Within a class, those that
 * ask for the same thing form a chain, in list order; a hash table of each class finds a chain by
 * what a message brings (chains.h). So a search looks up one chain for each class, and the first of
 * their heads in list order wins. Entries of masks for which there is no class form one more chain,
 * the residue; what of it matches is found 64 entries at a time (sieves.h).
 *
 *     list     [A1] -- [B1] -- [A2] -- [*1] -- [A3] -- [?1]
 *
 *     chains    A1 - A2 - A3      class 0: nothing ignored
 *               B1
 *               *1                class 1: any nid
 *     residue   ?1                odd masks
 *
 * Which of two entries comes first says their order (order.h). The index is private memory of the
 * poll core; what it knows of an entry, being indices, is in the shared table.
 *
 * X1. While a list has an index, each of its entries is in exactly one chain: one of
 * entry->class's,
 *     or the residue, and there in one sieve.
 * X2. A chain is in list order.
 * X3. The index needs memory for the order and the sieves; without it there is no index. For want
 * of
 *     other memory it may be slow, never wrong.
 * X4. A class costs each search a look, and the residue a longer one for 64 entries. So the first
 * few
 *     masks get a class each, and as soon as there are more, what has few entries belongs to the
 *     residue: a new mask joins it, a mask that many of its entries have becomes a class, in the
 *     place of one with fewer if need be, and a class with very few is given up. The entries change
 *     place a part at a time, while others are put in: a cursor goes through the list once. That is
 *     safe at every moment, since a search looks up every class that has entries, and the residue.
 *     A class that is given up gets no new entries, and no other move begins meanwhile.
 */
#ifndef MATCH_INDEX_H
#define MATCH_INDEX_H

#include <match/match.h>

struct match_index;

/* An index of all entries of the list, or NULL. */
struct match_index *index_create(const struct match_table *table, const struct match_list *list);
void index_destroy(struct match_index *index);

/* Gives an entry that is about to be linked between two neighbours (or MATCH_NONE) its place in the
 * order; false, without memory for that: the index is of no more use. */
bool index_place(const struct match_table *table, const struct match_list *list, uint32_t entry,
	uint32_t previous, uint32_t next);
/* The entry has its place and is in the list; false as above. */
bool index_add(const struct match_table *table, const struct match_list *list, uint32_t entry);
/* Before the entry leaves the list. */
void index_remove(const struct match_table *table, const struct match_list *list, uint32_t entry);

/* As match_first() and match_next(). */
uint32_t index_first(
	const struct match_table *table, struct match_index *index, const struct match_key *key);
uint32_t index_next(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key);

/* How many entries are in the residue. */
uint32_t index_residue(const struct match_index *index);
/* How many classes have entries. */
uint32_t index_classes(const struct match_index *index);

#endif
