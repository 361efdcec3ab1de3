/* SPDX-License-Identifier: BSD-3-Clause */
/* index.h - what finds the first match of a long list without a walk.
 *
 * Entries with the same mask, that is the same ignore bits and the same wildcards, form a class.
 * Within a class, entries that ask for the same thing form a chain, in list order; a hash table of
 * each class finds a chain by what a message brings (chains.h). So a search looks up one chain for
 * each class, and the first of their heads in list order wins. The first CLASSES masks have a class
 * each. Entries of further masks form one more chain, the residue, which is walked.
 *
 *     list     [A1] -- [B1] -- [A2] -- [*1] -- [A3] -- [?1]
 *
 *     chains    A1 - A2 - A3      class 0: nothing ignored
 *               B1
 *               *1                class 1: any nid
 *     residue   ?1                further masks
 *
 * The index is private memory of the poll core; what it knows of an entry, being indices, is in the
 * shared table.
 *
 * X1. While a list has an index, each of its entries is in exactly one chain: one of its class's,
 *     or the residue.
 * X2. A chain is a ring in list order. Its first entry, and no other one, is marked.
 * X3. A class without entries is free for another mask. A mask that gets no class, for want of a
 *     free one or of memory, joins the residue: that is slow, never wrong.
 */
#ifndef MATCH_INDEX_H
#define MATCH_INDEX_H

#include <match/match.h>

#define CLASSES 8

struct match_index;

/* Makes an index of all entries of the list; returns NULL without memory for it. */
struct match_index *index_create(const struct match_table *table, const struct match_list *list);
void index_destroy(struct match_index *index);

/* After the entry has come into the list, and before it leaves the list. */
void index_add(const struct match_table *table, struct match_index *index, uint32_t entry);
void index_remove(const struct match_table *table, struct match_index *index, uint32_t entry);

/* As match_first() and match_next(). */
uint32_t index_first(const struct match_table *table, const struct match_index *index,
	const struct match_key *key);
uint32_t index_next(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key);

/* The number of entries of the residue. */
uint32_t index_residue(const struct match_index *index);
/* The number of classes that have entries. */
uint32_t index_classes(const struct match_index *index);

#endif
