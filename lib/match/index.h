/* index.h - what finds the first match of a long list without a walk.
 *
 * Entries with the same ignore bits and the same wildcards form a class. Within a class, those that
 * ask for the same thing form a chain, in list order; a hash table finds a chain by what a message
 * brings. So a search looks up one chain for each class, and the first of their heads in list order
 * wins. Entries of masks for which there is no class form one more chain, the residue, which is
 * walked.
 *
 *     list     [A1] -- [B1] -- [A2] -- [*1] -- [A3] -- [?1]
 *
 *     slots     A: head A1, tail A3      A1 - A2 - A3      class 0: nothing ignored
 *               B: head B1, tail B1      B1
 *               *: head *1, tail *1      *1                class 1: any nid
 *     residue      head ?1, tail ?1      ?1                odd masks
 *
 * The index is private memory of the poll core; the entries' links, being indices, are in the
 * shared table.
 *
 * X1. While a list has an index, each of its entries is in exactly one chain: of entry->class,
 *     found by entry->hash.
 * X2. A chain is in list order, that is, its positions grow.
 * X3. Only a new class's or chain's first entry needs memory; an entry for which there is none goes
 *     to the residue. So the index may be slow for want of memory, never wrong.
 */
#ifndef MATCH_INDEX_H
#define MATCH_INDEX_H

#include <match/match.h>

struct match_index;

/* An index of all entries of the list, or NULL. */
struct match_index *index_create(const struct match_table *table, const struct match_list *list);
void index_destroy(struct match_index *index);

/* The entry is in the list, and has its position. */
void index_add(const struct match_table *table, const struct match_list *list, uint32_t entry);
/* Before the entry leaves the list. */
void index_remove(const struct match_table *table, const struct match_list *list, uint32_t entry);

/* As match_first() and match_next(). */
uint32_t index_first(
	const struct match_table *table, struct match_index *index, const struct match_key *key);
uint32_t index_next(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key);

/* How many entries are in the residue, where a search walks. */
uint32_t index_residue(const struct match_index *index);
/* How many classes have entries. */
uint32_t index_classes(const struct match_index *index);

/* The law for one entry. */
static inline bool entry_matches(const struct match_entry *entry, const struct match_key *key)
{
	return ((entry->bits ^ key->bits) & ~entry->ignore) == 0 &&
	       (entry->nid == key->nid || entry->nid == MATCH_ANY) &&
	       (entry->pid == key->pid || entry->pid == MATCH_ANY);
}

#endif
