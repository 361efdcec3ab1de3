/* SPDX-License-Identifier: BSD-3-Clause */
/* kept.h - messages that no entry asked for, kept in order of arrival until one does: match lists
 * turned round. An entry asks, and the first message that it matches is the answer.
 *
 * A message is named by its index in a table that the lists of a space share; what else is known of
 * it is the caller's, who has an array of his own for that. All of it is private memory of the
 * thread that calls: the poll core, or a front end whose lists are not of messages.
 *
 * Questions with the same mask, that is the same ignore bits and the same wildcards, have a view of
 * the list: a hash table of chains (kept.c). A chain holds the messages that are alike under the
 * mask, in order of arrival. So an answer is the first message of one chain, however long the list.
 *
 * K1. The order is that in which kept_add() was called. kept_first() and kept_next() together give,
 *     in this order, every message that the entry matches by the law of match.h.
 * K2. kept_next() may be given a message only while it is in the list, and after the same question
 *     found it: find the next before removing one.
 * K3. A question that has no view walks the list. A mask gets a view when such walks have been as
 *     long as the list, so a view costs little more than the walks that it replaces. There are
 *     KEPT_VIEWS at most: a further mask takes the place of the least used one.
 * K4. A view learns of messages when it is asked and there are more than a few that it does not
 *     know: kept_add() costs the same with any number of views, and a message that comes and goes
 *     never enters them.
 * K5. No call here can fail but kept_table_init(), kept_table_grow() and kept_take(): without
 *     memory for a view the list is walked.
 * K6. Which chains share a bucket depends on a secret, so peers cannot make searches slow by their
 *     choice of bits.
 */
#ifndef MATCH_KEPT_H
#define MATCH_KEPT_H

#include <base/core.h>
#include <match/match.h>

#define KEPT_NONE  MATCH_NONE /* no message */
#define KEPT_VIEWS 8

/* A message's place in one view. */
struct kept_link {
	uint32_t next; /* of its chain, a ring */
	uint32_t previous;
	uint32_t bucket_next; /* of the first of a chain: the next chain of the bucket */
};

/* A message, as far as lists look at it: two cache lines. */
struct kept {
	uint64_t bits;
	uint64_t process; /* process_of() */
	uint64_t number;  /* grows along the list */
	uint32_t previous;
	uint32_t next; /* of a free one: the next free one */
	struct kept_link links[KEPT_VIEWS];
};

/* The table that all lists of a space share. */
struct kept_table {
	struct kept *base;
	uint32_t count;
	uint32_t made; /* those below have been taken once */
	uint32_t free; /* the first of those that are free again */
	uint64_t secret[2];
};

struct kept_list {
	uint32_t head;
	uint32_t tail;
	uint32_t length;
	uint64_t number;          /* of the next message */
	uint64_t walked;          /* steps since a mask has got a view */
	struct kept_views *views; /* NULL while there are none */
};

/* Makes room for count messages; memory is used as messages come. Returns false without memory. */
bool kept_table_init(struct kept_table *table, uint32_t count, const uint64_t secret[2])
	CORE_API(kept_table_init);
/* Makes room for count messages, more than before. Returns false without memory, and changes
 * nothing then. */
bool kept_table_grow(struct kept_table *table, uint32_t count) CORE_API(kept_table_grow);
void kept_table_free(struct kept_table *table) CORE_API(kept_table_free);

/* Is one of them free? */
static inline bool kept_has_room(const struct kept_table *table)
{
	return table->free != KEPT_NONE || table->made < table->count;
}

/* A message in no list; KEPT_NONE: all are taken. */
static inline uint32_t kept_take(struct kept_table *table)
{
	uint32_t i = table->free;

	if (i != KEPT_NONE)
		table->free = table->base[i].next;
	else if (table->made < table->count)
		i = table->made++;
	return i;
}

/* It is in no list. */
static inline void kept_give(struct kept_table *table, uint32_t i)
{
	table->base[i].next = table->free;
	table->free = i;
}

void kept_list_init(struct kept_list *list) CORE_API(kept_list_init);
/* Forgets all messages, which stay taken, and frees the views. */
void kept_list_clear(struct kept_list *list) CORE_API(kept_list_clear);

/* A message has come. */
void kept_add(const struct kept_table *table, struct kept_list *list, uint32_t i,
	const struct match_key *key) CORE_API(kept_add);
void kept_remove(const struct kept_table *table, struct kept_list *list, uint32_t i)
	CORE_API(kept_remove);

/* The first message that the entry asks for, and the first after current; KEPT_NONE at the end. Of
 * the entry only bits, ignore, nid and pid are looked at. */
uint32_t kept_first(const struct kept_table *table, struct kept_list *list,
	const struct match_entry *entry) CORE_API(kept_first);
uint32_t kept_next(const struct kept_table *table, struct kept_list *list,
	const struct match_entry *entry, uint32_t current);

/* For looking inside: the masks that have a view. */
uint32_t kept_views(const struct kept_list *list);

#endif
