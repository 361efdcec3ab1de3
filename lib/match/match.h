/* SPDX-License-Identifier: BSD-3-Clause */
/* match.h - match lists: the order of entries is the law, the index only makes it fast.
 *
 * A list is a chain of entries in a table; entries are named by their index in it, so that the
 * table may lie in memory that several processes map at different addresses. The poll core alone
 * calls these functions.
 *
 * The law: match_first() and match_next() together give, in list order, every entry whose criteria
 * match the key. Whether the entry's memory accepts is the caller's to decide; if not it asks for
 * the next one.
 *
 * I1. Of two entries of a list with an index it is known without a walk which comes first
 *     (order.h).
 * I2. Insertion next to a given entry and removal take about as long in a long list as in a short
 *     one: the index grows a part at a time, and an insertion renumbers few entries on average. But
 *     an entry that is far from its like and from both ends, in a list with many of its like, must
 *     look for them.
 * I3. match_next() may be given an entry only while it is in the list: find the next before
 *     removing one.
 * I4. A list is walked until a search has passed more than a few entries, or an insertion makes
 *     the list long: then the list gets an index (index.h), and loses it when the list is short.
 *     So a list whose entries are found near the front has none, and a search without an index
 *     looks at 256 entries at most. Without memory for an index any list is walked: no call here
 *     can fail.
 */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

#define MATCH_NONE UINT32_MAX /* no entry */
#define MATCH_ANY  UINT32_MAX /* nid, pid: every value */

/* An entry: the messages that it accepts, the fields that are read next when it is found, and its
 * place in the list; one cache line. */
struct match_entry {
	uint64_t bits;
	uint64_t ignore; /* bits that do not count */
	uint32_t nid;    /* or MATCH_ANY */
	uint32_t pid;    /* or MATCH_ANY */
	uint32_t region; /* the caller's: the list does not look at it */
	uint8_t any;     /* enum match_wildcard; the list's, as is all below */
	uint8_t class;   /* index.h, as the next one */
	bool first;      /* of its chain */
	uint32_t previous;
	uint32_t next;
	uint64_t label;      /* order.h */
	uint32_t chain_next; /* index.h, as the next one */
	uint32_t chain_previous;
	uint32_t bucket_next; /* of the first of a chain: the next chain in its bucket */
};

enum match_wildcard { MATCH_ANY_NID = 1, MATCH_ANY_PID = 2 };

/* The fields of a message that entries match. */
struct match_key {
	uint64_t bits;
	uint32_t nid;
	uint32_t pid;
};

/* The table that all lists of an interface share. */
struct match_table {
	struct match_entry *base;
	uint32_t count;
};

struct match_list {
	uint32_t head;
	uint32_t tail;
	uint32_t length;
	struct match_index *index; /* NULL: the list is walked; private memory */
};

static inline struct match_entry *match_entry(const struct match_table *table, uint32_t i)
{
	return table->base + i;
}

static inline uint64_t process_of(uint32_t nid, uint32_t pid)
{
	return (uint64_t)pid << 32 | nid;
}

/* Ones where the process of a message counts, by enum match_wildcard. */
static const uint64_t match_processes[] = {
	[0] = UINT64_MAX,
	[MATCH_ANY_NID] = UINT64_C(0xffffffff00000000),
	[MATCH_ANY_PID] = UINT64_C(0x00000000ffffffff),
	[MATCH_ANY_NID | MATCH_ANY_PID] = 0,
};

/* The law for one entry. */
static inline bool entry_matches(const struct match_entry *entry, const struct match_key *key)
{
	uint64_t process = process_of(entry->nid, entry->pid) ^ process_of(key->nid, key->pid);

	/* Most entries of a list want other bits. */
	return ((entry->bits ^ key->bits) & ~entry->ignore) == 0 &&
	       (process & match_processes[entry->any]) == 0;
}

void match_list_init(struct match_list *list);
/* Forgets all entries and frees the index. */
void match_list_clear(struct match_list *list);

/* Puts entry (bits, ignore, nid, pid, region set by the caller) at the front or back, or next to
 * one that is in the list. */
void match_push_front(const struct match_table *table, struct match_list *list, uint32_t entry);
void match_push_back(const struct match_table *table, struct match_list *list, uint32_t entry);
void match_insert_before(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry);
void match_insert_after(
	const struct match_table *table, struct match_list *list, uint32_t current, uint32_t entry);
void match_remove(const struct match_table *table, struct match_list *list, uint32_t entry);

/* match_first() of a list whose first entry does not match, or which has an index. */
uint32_t match_search(
	const struct match_table *table, struct match_list *list, const struct match_key *key);
/* The first entry that matches key, and the first after current; MATCH_NONE at the end. */
static inline uint32_t match_first(
	const struct match_table *table, struct match_list *list, const struct match_key *key)
{
	uint32_t head = list->head;

	if (!list->index && head != MATCH_NONE && entry_matches(match_entry(table, head), key))
		return head;
	return match_search(table, list, key);
}
uint32_t match_next(const struct match_table *table, struct match_list *list, uint32_t current,
	const struct match_key *key);

/* For looking inside: writes members of an object that is open. */
void match_list_tell(const struct match_list *list, struct report *report);

#endif
