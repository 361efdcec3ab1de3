/* SPDX-License-Identifier: BSD-3-Clause */
/* index.c - see index.h. The poll core owns all of it. */
#include <stdlib.h>

#include <match/chains.h>
#include <match/index.h>
#include <match/order.h>

#define RESIDUE CLASSES /* its class number: the one after the last */

/* Where a walk by index_next() stands, so that a list of entries that match but do not accept is
 * walked once, not once for each of them. */
struct walk {
	struct match_key key;
	uint32_t current; /* the entry that was returned last; MATCH_NONE: no walk */
	uint32_t candidates[CLASSES + 1]; /* of each class the first behind current or current */
};

struct match_index {
	const struct chains *only; /* when all entries are of one class, its table; or NULL */
	const struct chains *looks[CLASSES]; /* of all classes that have entries */
	uint32_t look_count;
	uint32_t residue;             /* its first entry */
	uint32_t counts[CLASSES + 1]; /* entries of each class, and of the residue */
	struct chains classes[CLASSES];
	struct walk walk;
};

/* --- chains --- */

static struct chained chained_of(const struct match_table *table)
{
	return (struct chained){
		table->base, sizeof(*table->base), offsetof(struct match_entry, nid)};
}

/* Do two entries belong to one chain? */
static bool entry_alike(const struct match_entry *a, const struct match_entry *b)
{
	return a->class == b->class &&
	       (a->class == RESIDUE || (((a->bits ^ b->bits) & ~a->ignore) == 0 &&
					       a->nid == b->nid && a->pid == b->pid));
}

/* The next entry of a chain, MATCH_NONE at its end. */
static uint32_t chain_after(const struct match_table *table, uint32_t i)
{
	uint32_t next = match_entry(table, i)->chain_next;

	return match_entry(table, next)->first ? MATCH_NONE : next;
}

/* The entry of the ring behind which a new entry comes; the last one if the new entry is to be the
 * first. Four searches run side by side: from both ends of the chain, and from the new entry both
 * ways along the list. One of them is short for programs that add at an end, near an end, next to a
 * mark near an end, or next to an entry like the new one. Only the chain's end is looked at for an
 * entry that comes last, so that an index can be built in list order. */
static uint32_t chain_place(
	const struct match_table *table, uint32_t head, const struct match_entry *entry)
{
	uint32_t back = match_entry(table, head)->chain_previous;
	uint32_t front = head;
	uint32_t left = entry->previous;
	uint32_t right = entry->next;

	for (;;) {
		const struct match_entry *other = match_entry(table, back);

		if (order_before(other, entry))
			return back;
		back = other->chain_previous;

		other = match_entry(table, front);
		if (order_before(entry, other))
			return other->chain_previous;
		front = other->chain_next;

		/* The entry is between the ends of its chain: both ways lead to one like it. */
		other = match_entry(table, left);
		if (entry_alike(other, entry))
			return left;
		left = other->previous;

		other = match_entry(table, right);
		if (entry_alike(other, entry))
			return other->chain_previous;
		right = other->next;
	}
}

/* The first entry of the chain that an entry belongs to, or MATCH_NONE. */
static uint32_t chain_of(const struct match_table *table, const struct match_index *index,
	const struct match_entry *entry)
{
	if (entry->class == RESIDUE)
		return index->residue;
	return chains_find(&index->classes[entry->class], chained_of(table), entry->bits,
		process_of(entry->nid, entry->pid));
}

/* The chain whose first entry was `old` begins with `head` from now on, or has no entry any more,
 * with MATCH_NONE. */
static void chain_begin(
	const struct match_table *table, struct match_index *index, uint32_t old, uint32_t head)
{
	uint32_t class = match_entry(table, old)->class;

	match_entry(table, old)->first = false;
	if (head != MATCH_NONE)
		match_entry(table, head)->first = true;
	if (class == RESIDUE)
		index->residue = head;
	else
		chains_replace(&index->classes[class], chained_of(table), old, head);
}

/* Puts an entry into the chain that begins with `head`, X2. */
static void chain_insert(
	const struct match_table *table, struct match_index *index, uint32_t head, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	uint32_t previous = chain_place(table, head, entry);

	entry->first = false;
	entry->chain_previous = previous;
	entry->chain_next = match_entry(table, previous)->chain_next;
	match_entry(table, entry->chain_next)->chain_previous = i;
	match_entry(table, previous)->chain_next = i;
	if (order_before(entry, match_entry(table, head)))
		chain_begin(table, index, head, i);
}

/* --- entries that come and go --- */

/* The class for an entry's mask, a free one made its own if need be; or RESIDUE, X3. */
static uint32_t class_for(struct match_index *index, const struct match_entry *entry)
{
	static const uint64_t scatter[] = {
		UINT64_C(0x5bd1e995), UINT64_C(0x9e3779b97f4a7c15)}; /* the program's own bits */
	const struct mask mask = {~entry->ignore, match_processes[entry->any]};
	uint32_t unused = RESIDUE;

	for (uint32_t c = 0; c < CLASSES; c++) {
		const struct mask *other = &index->classes[c].mask;

		if (index->counts[c] == 0)
			unused = c;
		else if (other->bits == mask.bits && other->process == mask.process)
			return c;
	}
	if (unused == RESIDUE || !chains_open(&index->classes[unused], &mask, scatter,
					 offsetof(struct match_entry, bucket_next)))
		return RESIDUE;
	return unused;
}

/* A class, or the residue, has got its first entry or lost its last one. */
static void looks_set(struct match_index *index)
{
	index->look_count = 0;
	for (uint32_t c = 0; c < CLASSES; c++)
		if (index->counts[c] > 0)
			index->looks[index->look_count++] = &index->classes[c];
	index->only =
		index->look_count == 1 && index->counts[RESIDUE] == 0 ? index->looks[0] : NULL;
}

void index_add(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	uint32_t class = class_for(index, entry);
	uint32_t head;

	index->walk.current = MATCH_NONE; /* the entry may lie before its candidates */
	entry->class = (uint8_t) class;
	head = chain_of(table, index, entry);
	if (index->counts[class]++ == 0)
		looks_set(index);
	if (head != MATCH_NONE) {
		chain_insert(table, index, head, i);
		return;
	}
	entry->chain_next = entry->chain_previous = i;
	entry->first = true;
	if (class == RESIDUE)
		index->residue = i;
	else
		chains_add(&index->classes[class], chained_of(table), i);
}

void index_remove(const struct match_table *table, struct match_index *index, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	uint32_t class = entry->class;
	uint32_t after = chain_after(table, i);

	if (index->walk.candidates[class] == i)
		index->walk.candidates[class] = after;
	if (entry->first)
		chain_begin(table, index, i, after);
	match_entry(table, entry->chain_previous)->chain_next = entry->chain_next;
	match_entry(table, entry->chain_next)->chain_previous = entry->chain_previous;
	if (--index->counts[class] == 0)
		looks_set(index);
}

struct match_index *index_create(const struct match_table *table, const struct match_list *list)
{
	struct match_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->residue = MATCH_NONE;
	order_compact(table, list);
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next)
		index_add(table, index, i);
	return index;
}

void index_destroy(struct match_index *index)
{
	if (!index)
		return;
	for (unsigned c = 0; c < CLASSES; c++)
		chains_close(&index->classes[c]);
	free(index);
}

uint32_t index_residue(const struct match_index *index)
{
	return index->counts[RESIDUE];
}

uint32_t index_classes(const struct match_index *index)
{
	return index->look_count;
}

/* --- searching --- */

/* Which of two entries comes first; either may be MATCH_NONE. */
static uint32_t earlier(const struct match_table *table, uint32_t a, uint32_t b)
{
	if (a == MATCH_NONE || b == MATCH_NONE)
		return a == MATCH_NONE ? b : a;
	return order_before(match_entry(table, a), match_entry(table, b)) ? a : b;
}

/* The first entry of the residue from i on that matches, or one behind `found`, or MATCH_NONE. */
static uint32_t residue_walk(
	const struct match_table *table, uint32_t i, uint32_t found, const struct match_key *key)
{
	while (i != MATCH_NONE && !entry_matches(match_entry(table, i), key)) {
		if (found != MATCH_NONE &&
			order_before(match_entry(table, found), match_entry(table, i)))
			break;
		i = chain_after(table, i);
	}
	return i;
}

/* Apart from the usual case, for it needs registers. */
static __attribute__((noinline)) uint32_t classes_first(const struct match_table *table,
	const struct match_index *index, const struct match_key *key)
{
	uint64_t process = process_of(key->nid, key->pid);
	uint32_t found = MATCH_NONE;

	for (uint32_t n = 0; n < index->look_count; n++) {
		uint32_t i = chains_find(index->looks[n], chained_of(table), key->bits, process);

		if (i != MATCH_NONE)
			found = earlier(table, found, i);
	}
	if (index->counts[RESIDUE] == 0)
		return found;
	return earlier(table, found, residue_walk(table, index->residue, found, key));
}

uint32_t index_first(const struct match_table *table, const struct match_index *index,
	const struct match_key *key)
{
	if (!index->only)
		return classes_first(table, index, key);
	return chains_find(
		index->only, chained_of(table), key->bits, process_of(key->nid, key->pid));
}

/* The entry of a class, or of the residue, that comes first after current; of the residue it need
 * not match. */
static uint32_t candidate_after(const struct match_table *table, const struct match_index *index,
	uint32_t current, uint32_t class, const struct match_key *key)
{
	const struct match_entry *entry = match_entry(table, current);
	uint32_t i = index->residue;

	if (index->counts[class] == 0)
		return MATCH_NONE;
	if (class == entry->class && (class == RESIDUE || entry_matches(entry, key)))
		return chain_after(table, current);
	if (class != RESIDUE)
		i = chains_find(&index->classes[class], chained_of(table), key->bits,
			process_of(key->nid, key->pid));
	while (i != MATCH_NONE && !order_before(entry, match_entry(table, i)))
		i = chain_after(table, i);
	return i;
}

uint32_t index_next(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key)
{
	struct walk *walk = &index->walk;
	uint32_t *candidate = &walk->candidates[match_entry(table, current)->class];
	uint32_t found = MATCH_NONE;

	if (walk->current != current || walk->key.bits != key->bits || walk->key.nid != key->nid ||
		walk->key.pid != key->pid) {
		walk->key = *key;
		for (uint32_t c = 0; c <= RESIDUE; c++)
			walk->candidates[c] = candidate_after(table, index, current, c, key);
	} else if (*candidate == current) {
		*candidate = chain_after(table, current);
	}
	for (uint32_t c = 0; c < RESIDUE; c++)
		found = earlier(table, found, walk->candidates[c]);
	candidate = &walk->candidates[RESIDUE];
	*candidate = residue_walk(table, *candidate, found, key);
	walk->current = earlier(table, found, *candidate);
	return walk->current;
}
