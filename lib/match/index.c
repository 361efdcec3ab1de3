/* SPDX-License-Identifier: BSD-3-Clause */
/* index.c - see index.h. The poll core owns all of it. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <match/chains.h>
#include <match/index.h>
#include <match/order.h>
#include <match/sieves.h>

#define CLASSES      8
#define CLASSES_FREE 4             /* so many have any mask while there is no residue */
#define CLASS_SLOTS  (CLASSES + 1) /* one takes over from another */
#define RESIDUE      CLASS_SLOTS   /* its class number: the one after the last */
#define TALLIES      32            /* masks of the residue that are told apart */
#define CLASS_FEW    16            /* entries of a class that is given up when there is a residue */
#define RESIDUE_MIN  32            /* entries of a mask, before it may become a class ... */
#define RESIDUE_PART 256           /* ... and the part of the list that they must be */
#define MOVE_PART    16            /* entries that are looked at for each that is put in */

struct class
{
	struct chains chains; /* open if there are entries */
	uint32_t count;       /* entries; a class without any is free */
};

struct tally {
	struct mask mask;
	uint32_t count; /* entries; a tally without any is free */
};

/* Entries linked by chain_next and chain_previous, X2. */
struct chain {
	uint32_t head;
	uint32_t tail;
};

/* X4. */
struct move {
	uint32_t cursor;  /* the next entry of the list to look at; MATCH_NONE: no move */
	uint32_t behind;  /* the last entry of the residue before it */
	uint32_t opened;  /* class, or RESIDUE */
	uint32_t closing; /* class, or RESIDUE */
};

/* Where a walk by index_next() stands, so that a list of entries that match but do not accept is
 * walked once, not once for each: the entry it returned last, and for each class the next in line,
 * of that entry or one behind it. */
struct walk {
	struct match_key key;
	uint32_t current; /* MATCH_NONE: no walk */
	uint32_t candidates[CLASS_SLOTS + 1];
};

struct match_index {
	const struct chains *only; /* when all entries are of one class, its chains; or NULL */
	const struct chains *looks[CLASS_SLOTS]; /* of all classes that have entries */
	uint32_t look_count;
	uint32_t used; /* a bit for each class that has entries, and for the residue */
	struct chain residue;
	uint32_t residue_count;
	struct class classes[CLASS_SLOTS];
	struct match_order order;
	struct sieves sieves;
	struct tally
		tallies[TALLIES]; /* of the residue's masks, roughly: a rare one may be forgotten */
	struct move move;
	struct walk walk;
};

static struct mask mask_of(const struct match_entry *entry)
{
	return (struct mask){~entry->ignore, match_processes[entry->any]};
}

static bool mask_equal(const struct mask *a, const struct mask *b)
{
	return a->bits == b->bits && a->process == b->process;
}

/* Do two entries belong to one chain? */
static bool entry_equal(const struct match_entry *a, const struct match_entry *b)
{
	return a->class == b->class &&
	       (a->class == RESIDUE || (((a->bits ^ b->bits) & ~a->ignore) == 0 &&
					       a->nid == b->nid && a->pid == b->pid));
}

/* --- one chain --- */

static void chain_link(
	const struct match_table *table, struct chain *chain, uint32_t i, uint32_t previous)
{
	struct match_entry *entry = match_entry(table, i);
	uint32_t next =
		previous == MATCH_NONE ? chain->head : match_entry(table, previous)->chain_next;

	entry->chain_previous = previous;
	entry->chain_next = next;
	if (previous == MATCH_NONE)
		chain->head = i;
	else
		match_entry(table, previous)->chain_next = i;
	if (next == MATCH_NONE)
		chain->tail = i;
	else
		match_entry(table, next)->chain_previous = i;
}

static void chain_unlink(
	const struct match_table *table, struct chain *chain, const struct match_entry *entry)
{
	if (entry->chain_previous == MATCH_NONE)
		chain->head = entry->chain_next;
	else
		match_entry(table, entry->chain_previous)->chain_next = entry->chain_next;
	if (entry->chain_next == MATCH_NONE)
		chain->tail = entry->chain_previous;
	else
		match_entry(table, entry->chain_next)->chain_previous = entry->chain_previous;
}

/* The entry of the chain after which the new entry comes, MATCH_NONE for the front. Four searches
 * run side by side: from both ends of the chain, and from the new entry both ways along the list.
 * One of them is short for programs that add at an end, near an end, next to a mark near an end, or
 * next to their like. The chain's end comes first: while the index is built it answers at once, and
 * no entry of the list that has no chain yet is looked at. */
static uint32_t chain_place(const struct match_table *table, const struct match_order *order,
	const struct chain *chain, const struct match_entry *entry)
{
	uint32_t back = chain->tail;
	uint32_t front = chain->head;
	uint32_t left = entry->previous;
	uint32_t right = entry->next;

	for (;;) {
		const struct match_entry *other;

		if (back == MATCH_NONE || order_before(order, match_entry(table, back), entry))
			return back;
		back = match_entry(table, back)->chain_previous;

		other = match_entry(table, front);
		if (order_before(order, entry, other))
			return other->chain_previous;
		front = other->chain_next;

		if (left == MATCH_NONE || entry_equal(match_entry(table, left), entry))
			return left;
		left = match_entry(table, left)->previous;

		other = match_entry(table, right); /* there is one: the chain's end comes later */
		if (entry_equal(other, entry))
			return other->chain_previous;
		right = other->next;
	}
}

/* --- classes --- */

/* Makes a free class that of a mask; false when there is no memory for it. */
static bool class_open(struct class *class, const struct mask *mask)
{
	class->chains.mask = *mask;
	return chains_open(&class->chains);
}

/* The class for a mask, a free one made its own if need be; RESIDUE when there is none, X4. */
static uint32_t class_for(struct match_index *index, const struct mask *mask)
{
	const struct move *move = &index->move;
	uint32_t free_class = RESIDUE;
	unsigned taken = 0;

	for (uint32_t c = 0; c < CLASS_SLOTS; c++) {
		if (index->classes[c].count == 0 && c != move->opened && c != move->closing) {
			free_class = c;
			continue;
		}
		if (c != move->closing && mask_equal(&index->classes[c].chains.mask, mask))
			return c;
		taken++;
	}
	if (index->residue_count > 0 || taken >= CLASSES_FREE ||
		!class_open(&index->classes[free_class], mask))
		return RESIDUE;
	return free_class;
}

/* A class, or the residue, has entries from now on, or has none. */
static void used_set(struct match_index *index, uint32_t class, bool has)
{
	uint32_t bit = UINT32_C(1) << class;

	if ((index->used & bit) == (has ? bit : 0))
		return;
	index->used ^= bit;
	index->look_count = 0;
	for (uint32_t c = 0; c < CLASS_SLOTS; c++)
		if ((index->used & UINT32_C(1) << c) != 0)
			index->looks[index->look_count++] = &index->classes[c].chains;
	index->only = NULL;
	if (index->look_count == 1 && (index->used & UINT32_C(1) << RESIDUE) == 0)
		index->only = index->looks[0];
}

static void class_count(struct match_index *index, uint32_t class, bool more)
{
	index->classes[class].count += more ? 1 : UINT32_MAX;
	used_set(index, class, index->classes[class].count > 0);
}

/* --- the residue --- */

static struct tally *tally_find(struct match_index *index, const struct mask *mask)
{
	for (unsigned t = 0; t < TALLIES; t++)
		if (index->tallies[t].count > 0 && mask_equal(&index->tallies[t].mask, mask))
			return &index->tallies[t];
	return NULL;
}

/* The tally of a mask, that of the rarest other one if need be: a mask that many entries have
 * stays, the rare ones take each other's place. */
static struct tally *tally_for(struct match_index *index, const struct mask *mask)
{
	struct tally *tally = tally_find(index, mask);

	if (tally != NULL)
		return tally;
	tally = &index->tallies[0];
	for (unsigned t = 1; t < TALLIES; t++)
		if (index->tallies[t].count < tally->count)
			tally = &index->tallies[t];
	*tally = (struct tally){*mask, 0};
	return tally;
}

/* False when there is no memory for it: the index is of no more use. */
static bool residue_link(
	const struct match_table *table, struct match_index *index, uint32_t i, uint32_t previous)
{
	const struct mask mask = mask_of(match_entry(table, i));

	chain_link(table, &index->residue, i, previous);
	index->residue_count++;
	used_set(index, RESIDUE, true);
	tally_for(index, &mask)->count++;
	return sieves_add(table, &index->sieves, i);
}

static void residue_unlink(const struct match_table *table, struct match_index *index, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	const struct mask mask = mask_of(entry);
	struct tally *tally = tally_find(index, &mask);

	sieves_remove(table, &index->sieves, i);
	chain_unlink(table, &index->residue, entry);
	index->residue_count--;
	used_set(index, RESIDUE, index->residue_count > 0);
	if (tally != NULL)
		tally->count--;
}

/* --- filing an entry, X1 --- */

/* The first entry of the chain that an entry belongs to, or MATCH_NONE. */
static uint32_t chain_of(const struct match_table *table, const struct chains *chains,
	const struct match_entry *entry)
{
	return chains_find(table, chains, entry->bits, process_of(entry->nid, entry->pid));
}

static void class_link(
	const struct match_table *table, struct match_index *index, uint32_t i, uint32_t class)
{
	struct match_entry *entry = match_entry(table, i);
	struct chains *chains = &index->classes[class].chains;
	struct chain chain;
	uint32_t head;

	entry->class = (uint8_t) class;
	head = chain_of(table, chains, entry);
	class_count(index, class, true);
	if (head == MATCH_NONE) {
		entry->chain_next = entry->chain_previous = MATCH_NONE;
		entry->chain_tail = i;
		chains_add(table, chains, i);
		return;
	}
	chain = (struct chain){head, match_entry(table, head)->chain_tail};
	chain_link(table, &chain, i, chain_place(table, &index->order, &chain, entry));
	if (chain.head != head)
		chains_replace(table, chains, head, chain.head);
	match_entry(table, chain.head)->chain_tail = chain.tail;
}

static void class_unlink(const struct match_table *table, struct match_index *index, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	struct chains *chains = &index->classes[entry->class].chains;
	struct chain chain = {i, MATCH_NONE};

	class_count(index, entry->class, false);
	if (entry->chain_previous != MATCH_NONE && entry->chain_next != MATCH_NONE) {
		chain_unlink(table, NULL, entry);
		return;
	}
	if (entry->chain_previous != MATCH_NONE)
		chain.head = chain_of(table, chains, entry);
	chain.tail = match_entry(table, chain.head)->chain_tail;
	chain_unlink(table, &chain, entry);
	if (entry->chain_previous == MATCH_NONE)
		chains_replace(table, chains, i, chain.head);
	if (chain.head != MATCH_NONE)
		match_entry(table, chain.head)->chain_tail = chain.tail;
}

/* False as residue_link(). */
static bool entry_file(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	const struct mask mask = mask_of(entry);
	uint32_t class = class_for(index, &mask);

	if (class != RESIDUE) {
		class_link(table, index, i, class);
		return true;
	}
	entry->class = RESIDUE; /* its like, for chain_place() */
	return residue_link(
		table, index, i, chain_place(table, &index->order, &index->residue, entry));
}

/* --- a class for a mask of the residue, X4 --- */

/* Has the residue so many entries of this one's mask that a class for them pays? `closing` is the
 * one that it would take the place of, or RESIDUE. */
static bool move_pays(const struct match_table *table, const struct match_list *list, uint32_t i,
	uint32_t closing)
{
	struct match_index *index = list->index;
	const struct mask mask = mask_of(match_entry(table, i));
	const struct tally *tally = tally_find(index, &mask);

	return tally != NULL && tally->count >= RESIDUE_MIN + list->length / RESIDUE_PART &&
	       (closing == RESIDUE || index->classes[closing].count <= tally->count / 2);
}

/* Begins a move when it pays, with this entry of the residue and those of its mask. */
static void move_consider(
	const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	const struct mask mask = mask_of(match_entry(table, i));
	uint32_t least = RESIDUE;
	uint32_t opened = RESIDUE;
	unsigned taken = 0;
	bool few;

	for (uint32_t c = 0; c < CLASS_SLOTS; c++) {
		if (index->classes[c].count == 0) {
			opened = c;
			continue;
		}
		if (least == RESIDUE || index->classes[c].count < index->classes[least].count)
			least = c;
		taken++;
	}
	few = least != RESIDUE && index->classes[least].count < CLASS_FEW;
	if (taken < CLASSES && !few)
		least = RESIDUE;
	if (!move_pays(table, list, i, least) || !class_open(&index->classes[opened], &mask))
		opened = RESIDUE;
	if (opened != RESIDUE || few)
		index->move = (struct move){list->head, MATCH_NONE, opened, least};
}

/* False as residue_link(). */
static bool move_entry(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	const struct mask mask = mask_of(entry);
	struct move *move = &index->move;
	bool filed = true;

	if (entry->class == RESIDUE) {
		if (move->opened != RESIDUE &&
			mask_equal(&index->classes[move->opened].chains.mask, &mask)) {
			residue_unlink(table, index, i);
			class_link(table, index, i, move->opened);
		}
	} else if (entry->class == move->closing) {
		class_unlink(table, index, i);
		entry->class = RESIDUE;
		filed = residue_link(table, index, i, move->behind);
	}
	if (entry->class == RESIDUE)
		move->behind = i;
	return filed;
}

/* False as residue_link(). */
static bool move_on(const struct match_table *table, const struct match_list *list)
{
	struct match_index *index = list->index;
	struct move *move = &index->move;

	for (unsigned n = 0; n < MOVE_PART && move->cursor != MATCH_NONE; n++) {
		uint32_t i = move->cursor;

		move->cursor = match_entry(table, i)->next;
		if (!move_entry(table, index, i))
			return false;
	}
	if (move->cursor == MATCH_NONE) {
		move->opened = move->closing = RESIDUE;
		if (index->residue_count > 0)
			move_consider(table, list, index->residue.tail);
	}
	return true;
}

/* An entry that has come into the residue before the cursor may be the last one there. */
static void move_behind(const struct match_table *table, struct match_index *index, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	struct move *move = &index->move;

	if (entry->chain_previous == move->behind &&
		order_before(&index->order, entry, match_entry(table, move->cursor)))
		move->behind = i;
}

/* --- making it, keeping it --- */

/* Makes classes of the masks that most entries have. Their counts are the entries that will
 * come. */
static void classes_choose(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next) {
		const struct mask mask = mask_of(match_entry(table, i));

		tally_for(index, &mask)->count++;
	}
	for (unsigned c = 0; c < CLASSES_FREE; c++) {
		struct tally *most = &index->tallies[0];

		for (unsigned t = 1; t < TALLIES; t++)
			if (index->tallies[t].count > most->count)
				most = &index->tallies[t];
		if (most->count > 0 && class_open(&index->classes[c], &most->mask))
			index->classes[c].count = most->count;
		most->count = 0;
	}
	memset(index->tallies, 0, sizeof(index->tallies));
}

/* Gives all entries of the list their place; false when there is no memory for that. */
static bool entries_place(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	uint32_t previous = MATCH_NONE;

	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next) {
		if (!order_add(table, &index->order, i, previous, MATCH_NONE))
			return false;
		previous = i;
	}
	return true;
}

/* False as residue_link(). */
static bool entries_file(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	uint32_t expected[CLASSES_FREE];

	classes_choose(table, list, index);
	for (unsigned c = 0; c < CLASSES_FREE; c++)
		expected[c] = index->classes[c].count;
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next)
		if (!entry_file(table, index, i))
			return false;
	for (unsigned c = 0; c < CLASSES_FREE; c++)
		index->classes[c].count -= expected[c];
	return true;
}

struct match_index *index_create(const struct match_table *table, const struct match_list *list)
{
	struct match_index *index = calloc(1, sizeof(*index));

	if (index == NULL)
		return NULL;
	index->residue = (struct chain){MATCH_NONE, MATCH_NONE};
	index->move = (struct move){MATCH_NONE, MATCH_NONE, RESIDUE, RESIDUE};
	index->walk.current = MATCH_NONE;
	sieves_open(&index->sieves);
	if (!order_open(&index->order, list->length) || !entries_place(table, list, index) ||
		!entries_file(table, list, index)) {
		index_destroy(index);
		return NULL;
	}
	return index;
}

void index_destroy(struct match_index *index)
{
	if (index == NULL)
		return;
	order_close(&index->order);
	sieves_close(&index->sieves);
	for (unsigned c = 0; c < CLASS_SLOTS; c++)
		chains_close(&index->classes[c].chains);
	free(index);
}

bool index_place(const struct match_table *table, const struct match_list *list, uint32_t entry,
	uint32_t previous, uint32_t next)
{
	return order_add(table, &list->index->order, entry, previous, next);
}

bool index_add(const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	bool moving = index->move.cursor != MATCH_NONE;

	index->walk.current = MATCH_NONE; /* the entry may lie before its candidates */
	if (!entry_file(table, index, i))
		return false;
	if (match_entry(table, i)->class == RESIDUE) {
		if (moving)
			move_behind(table, index, i);
		else
			move_consider(table, list, i);
	}
	return !moving || move_on(table, list);
}

void index_remove(const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	const struct match_entry *entry = match_entry(table, i);
	struct move *move = &index->move;
	struct walk *walk = &index->walk;

	if (walk->candidates[entry->class] == i)
		walk->candidates[entry->class] = entry->chain_next;
	if (move->behind == i)
		move->behind = entry->chain_previous;
	if (move->cursor == i) {
		move->cursor = entry->next;
		if (move->cursor == MATCH_NONE)
			move->opened = move->closing = RESIDUE;
	}
	if (entry->class == RESIDUE)
		residue_unlink(table, index, i);
	else
		class_unlink(table, index, i);
	order_remove(table, &index->order, i);
}

uint32_t index_residue(const struct match_index *index)
{
	return index->residue_count;
}

uint32_t index_classes(const struct match_index *index)
{
	return index->look_count;
}

/* --- searching --- */

/* Which of two entries comes first; the first may be MATCH_NONE. */
static uint32_t earlier(
	const struct match_table *table, const struct match_order *order, uint32_t a, uint32_t b)
{
	return a != MATCH_NONE && order_before(order, match_entry(table, a), match_entry(table, b))
		       ? a
		       : b;
}

/* The first in list order of the candidates. The residue's moves on to its next match, but not far
 * beyond the others' first. */
static uint32_t candidates_first(const struct match_table *table, const struct match_index *index,
	const struct match_key *key, uint32_t *candidates)
{
	uint32_t classes = index->used & ~(UINT32_C(1) << RESIDUE);
	uint32_t found = MATCH_NONE;
	uint32_t *residue = &candidates[RESIDUE];

	for (; classes != 0; classes &= classes - 1) {
		uint32_t i = candidates[__builtin_ctz(classes)];

		if (i != MATCH_NONE)
			found = earlier(table, &index->order, found, i);
	}
	if (*residue == MATCH_NONE)
		return found;
	/* One that matches but does not accept has often neighbours like it. */
	if (!entry_matches(match_entry(table, *residue), key))
		*residue = sieves_find(table, &index->sieves, &index->order, *residue, found, key);
	return *residue == MATCH_NONE ? found : earlier(table, &index->order, found, *residue);
}

static __attribute__((noinline)) uint32_t classes_first(const struct match_table *table,
	const struct match_index *index, const struct match_key *key)
{
	uint64_t process = process_of(key->nid, key->pid);
	uint32_t found = MATCH_NONE;
	uint32_t i;

	for (uint32_t n = 0; n < index->look_count; n++) {
		i = chains_find(table, index->looks[n], key->bits, process);
		if (i != MATCH_NONE)
			found = earlier(table, &index->order, found, i);
	}
	if (index->residue_count == 0)
		return found;
	i = sieves_first(table, &index->sieves, &index->order, found, key);
	return i == MATCH_NONE ? found : earlier(table, &index->order, found, i);
}

uint32_t index_first(
	const struct match_table *table, struct match_index *index, const struct match_key *key)
{
	if (index->only == NULL)
		return classes_first(table, index, key);
	return chains_find(table, index->only, key->bits, process_of(key->nid, key->pid));
}

/* The entry of class c, or the residue, that comes first after current; for the residue it need not
 * match. */
static uint32_t candidate_after(const struct match_table *table, const struct match_index *index,
	const struct match_entry *current, uint32_t c, const struct match_key *key)
{
	uint32_t i = index->residue.head;

	if ((index->used & UINT32_C(1) << c) == 0)
		return MATCH_NONE;
	if (c == current->class && (c == RESIDUE || entry_matches(current, key)))
		return current->chain_next;
	if (c != RESIDUE)
		i = chains_find(table, &index->classes[c].chains, key->bits,
			process_of(key->nid, key->pid));
	while (i != MATCH_NONE && !order_before(&index->order, current, match_entry(table, i)))
		i = match_entry(table, i)->chain_next;
	return i;
}

/* Sets the walk's candidates to what comes after current. */
static void walk_start(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key)
{
	index->walk.key = *key;
	for (uint32_t c = 0; c <= RESIDUE; c++)
		index->walk.candidates[c] =
			candidate_after(table, index, match_entry(table, current), c, key);
}

uint32_t index_next(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key)
{
	struct walk *walk = &index->walk;
	uint32_t *candidate = &walk->candidates[match_entry(table, current)->class];

	if (walk->current != current || walk->key.bits != key->bits || walk->key.nid != key->nid ||
		walk->key.pid != key->pid)
		walk_start(table, index, current, key);
	else if (*candidate == current)
		*candidate = match_entry(table, current)->chain_next;
	walk->current = candidates_first(table, index, key, walk->candidates);
	return walk->current;
}
