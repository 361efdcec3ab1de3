/* index.c - see index.h. The poll core owns all of it. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <match/chains.h>
#include <match/index.h>
#include <match/order.h>

#define CLASSES       8
#define CLASS_SLOTS   (CLASSES + 1) /* one takes over from another */
#define RESIDUE       CLASS_SLOTS   /* its class number: the one after the last */
#define TALLIES       32            /* masks of the residue that are told apart */
#define RESIDUE_MIN   64            /* entries of a mask, before it may become a class ... */
#define RESIDUE_PART  32            /* ... and the part of the list that they must be */
#define RESIDUE_LOOKS 8  /* entries that a search looks at before it asks whether to go on */
#define MOVE_PART     16 /* entries that are looked at for each that is put in */

/* What the entries of a class have in common. */
struct mask {
	uint64_t ignore;
	uint64_t any;   /* as process_of(): ones where every nid, or every pid, will do */
	uint32_t count; /* entries; a class or a tally without any is free */
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
	uint32_t used; /* a bit for each class that has entries */
	struct chain residue;
	uint32_t residue_count;
	struct chains chains;
	struct mask classes[CLASS_SLOTS];
	struct match_order order;
	struct mask
		tallies[TALLIES]; /* of the residue's masks, roughly: a rare one may be forgotten */
	struct move move;
	struct walk walk;
};

static uint64_t process_of(uint32_t nid, uint32_t pid)
{
	return (uint64_t)nid << 32 | pid;
}

/* Of what a message, or an entry, says of the things that a class does not ignore. */
static uint32_t hash_of(const struct mask *class, uint64_t bits, uint64_t process)
{
	uint64_t hash = (bits & ~class->ignore) * UINT64_C(0x9e3779b97f4a7c15) +
			(process | class->any) * UINT64_C(0xd6e8feb86659fd93) + class->ignore;

	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(hash >> 32);
}

static struct mask mask_of(const struct match_entry *entry)
{
	return (struct mask){entry->ignore,
		process_of(entry->nid == MATCH_ANY ? UINT32_MAX : 0,
			entry->pid == MATCH_ANY ? UINT32_MAX : 0),
		0};
}

static bool mask_equal(const struct mask *a, const struct mask *b)
{
	return a->ignore == b->ignore && a->any == b->any;
}

/* Do two entries of one class and hash ask for the same? */
static bool entry_equal(const struct match_entry *a, const struct match_entry *b)
{
	return a->class == b->class && a->hash == b->hash &&
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

/* The class for a mask, a free one made its own if need be; RESIDUE when there is none. */
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
		if (c != move->closing && mask_equal(&index->classes[c], mask))
			return c;
		taken++;
	}
	if (taken >= CLASSES)
		return RESIDUE;
	index->classes[free_class] = *mask;
	return free_class;
}

static void class_count(struct match_index *index, uint32_t class, bool more)
{
	index->classes[class].count += more ? 1 : UINT32_MAX;
	if (index->classes[class].count == 0)
		index->used &= ~(UINT32_C(1) << class);
	else
		index->used |= UINT32_C(1) << class;
}

/* --- the residue --- */

static struct mask *tally_find(struct match_index *index, const struct mask *mask)
{
	for (unsigned t = 0; t < TALLIES; t++)
		if (index->tallies[t].count > 0 && mask_equal(&index->tallies[t], mask))
			return &index->tallies[t];
	return NULL;
}

/* The tally of a mask, that of the rarest other one if need be: a mask that many entries have stays,
 * the rare ones take each other's place. */
static struct mask *tally_for(struct match_index *index, const struct mask *mask)
{
	struct mask *tally = tally_find(index, mask);

	if (tally != NULL)
		return tally;
	tally = &index->tallies[0];
	for (unsigned t = 1; t < TALLIES; t++)
		if (index->tallies[t].count < tally->count)
			tally = &index->tallies[t];
	*tally = *mask;
	return tally;
}

static void residue_link(
	const struct match_table *table, struct match_index *index, uint32_t i, uint32_t previous)
{
	const struct mask mask = mask_of(match_entry(table, i));

	chain_link(table, &index->residue, i, previous);
	index->residue_count++;
	tally_for(index, &mask)->count++;
}

static void residue_unlink(
	const struct match_table *table, struct match_index *index, const struct match_entry *entry)
{
	const struct mask mask = mask_of(entry);
	struct mask *tally = tally_find(index, &mask);

	chain_unlink(table, &index->residue, entry);
	index->residue_count--;
	if (tally != NULL)
		tally->count--;
}

/* --- filing an entry, X1 --- */

/* The first entry of the chain that an entry belongs to, or MATCH_NONE. */
static uint32_t chain_of(const struct match_table *table, const struct chains *chains,
	const struct match_entry *entry)
{
	uint32_t i = chains_first(chains_bucket(chains, entry->hash), entry->hash);

	while (i != MATCH_NONE && !entry_equal(match_entry(table, i), entry))
		i = match_entry(table, i)->bucket_next;
	return i;
}

static void class_link(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	uint32_t head;
	struct chain chain = {i, i};

	entry->hash = hash_of(
		&index->classes[entry->class], entry->bits, process_of(entry->nid, entry->pid));
	head = chain_of(table, &index->chains, entry);
	class_count(index, entry->class, true);
	if (head == MATCH_NONE) {
		entry->chain_next = entry->chain_previous = MATCH_NONE;
		entry->chain_tail = i;
		chains_add(table, &index->chains, i);
		return;
	}
	chain = (struct chain){head, match_entry(table, head)->chain_tail};
	chain_link(table, &chain, i, chain_place(table, &index->order, &chain, entry));
	if (chain.head != head)
		chains_replace(table, &index->chains, head, chain.head);
	match_entry(table, chain.head)->chain_tail = chain.tail;
}

static void class_unlink(const struct match_table *table, struct match_index *index, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	struct chain chain = {i, MATCH_NONE};

	class_count(index, entry->class, false);
	if (entry->chain_previous != MATCH_NONE && entry->chain_next != MATCH_NONE) {
		chain_unlink(table, NULL, entry);
		return;
	}
	if (entry->chain_previous != MATCH_NONE)
		chain.head = chain_of(table, &index->chains, entry);
	chain.tail = match_entry(table, chain.head)->chain_tail;
	chain_unlink(table, &chain, entry);
	if (entry->chain_previous == MATCH_NONE)
		chains_replace(table, &index->chains, i, chain.head);
	if (chain.head != MATCH_NONE)
		match_entry(table, chain.head)->chain_tail = chain.tail;
}

static void entry_file(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	const struct mask mask = mask_of(entry);

	entry->class = class_for(index, &mask);
	if (entry->class != RESIDUE) {
		class_link(table, index, i);
		return;
	}
	entry->hash = 0;
	residue_link(table, index, i, chain_place(table, &index->order, &index->residue, entry));
}

/* --- a class for a mask of the residue, X4 --- */

/* Begins a move when the residue has so many entries of this one's mask that it pays, and a class has
 * few: all but one slot are in use, or this entry would have got one. */
static void move_consider(
	const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	const struct mask mask = mask_of(match_entry(table, i));
	struct mask *tally = tally_find(index, &mask);
	struct move *move = &index->move;
	uint32_t least = RESIDUE;
	uint32_t opened = RESIDUE;

	if (tally == NULL || tally->count < RESIDUE_MIN + list->length / RESIDUE_PART)
		return;
	for (uint32_t c = 0; c < CLASS_SLOTS; c++) {
		if (index->classes[c].count == 0)
			opened = c;
		else if (least == RESIDUE || index->classes[c].count < index->classes[least].count)
			least = c;
	}
	if (index->classes[least].count > tally->count / 2)
		return;
	index->classes[opened] = mask;
	*move = (struct move){list->head, MATCH_NONE, opened, least};
}

static void move_entry(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	const struct mask mask = mask_of(entry);
	struct move *move = &index->move;

	if (entry->class == RESIDUE && mask_equal(&index->classes[move->opened], &mask)) {
		residue_unlink(table, index, entry);
		entry->class = move->opened;
		class_link(table, index, i);
	} else if (entry->class == move->closing) {
		class_unlink(table, index, i);
		entry->class = RESIDUE;
		entry->hash = 0;
		residue_link(table, index, i, move->behind);
	}
	if (entry->class == RESIDUE)
		move->behind = i;
}

static void move_on(const struct match_table *table, struct match_index *index)
{
	struct move *move = &index->move;

	for (unsigned n = 0; n < MOVE_PART && move->cursor != MATCH_NONE; n++) {
		uint32_t i = move->cursor;

		move->cursor = match_entry(table, i)->next;
		move_entry(table, index, i);
	}
	if (move->cursor == MATCH_NONE)
		move->opened = move->closing = RESIDUE;
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

/* Makes classes of the masks that most entries have. Their counts are the entries that will come. */
static void classes_choose(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next) {
		const struct mask mask = mask_of(match_entry(table, i));

		tally_for(index, &mask)->count++;
	}
	for (unsigned c = 0; c < CLASSES; c++) {
		struct mask *most = &index->tallies[0];

		for (unsigned t = 1; t < TALLIES; t++)
			if (index->tallies[t].count > most->count)
				most = &index->tallies[t];
		index->classes[c] = *most;
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

static void entries_file(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	uint32_t expected[CLASSES];

	classes_choose(table, list, index);
	for (unsigned c = 0; c < CLASSES; c++)
		expected[c] = index->classes[c].count;
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next)
		entry_file(table, index, i);
	for (unsigned c = 0; c < CLASSES; c++)
		index->classes[c].count -= expected[c];
}

struct match_index *index_create(const struct match_table *table, const struct match_list *list)
{
	struct match_index *index = calloc(1, sizeof(*index));

	if (index == NULL)
		return NULL;
	index->residue = (struct chain){MATCH_NONE, MATCH_NONE};
	index->move = (struct move){MATCH_NONE, MATCH_NONE, RESIDUE, RESIDUE};
	index->walk.current = MATCH_NONE;
	if (!order_open(&index->order, list->length) || !chains_open(&index->chains) ||
		!entries_place(table, list, index)) {
		index_destroy(index);
		return NULL;
	}
	entries_file(table, list, index);
	return index;
}

void index_destroy(struct match_index *index)
{
	if (index == NULL)
		return;
	order_close(&index->order);
	chains_close(&index->chains);
	free(index);
}

bool index_place(const struct match_table *table, const struct match_list *list, uint32_t entry,
	uint32_t previous, uint32_t next)
{
	return order_add(table, &list->index->order, entry, previous, next);
}

void index_add(const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	bool moving = index->move.cursor != MATCH_NONE;

	index->walk.current = MATCH_NONE; /* the entry may lie before its candidates */
	entry_file(table, index, i);
	if (match_entry(table, i)->class == RESIDUE) {
		if (moving)
			move_behind(table, index, i);
		else
			move_consider(table, list, i);
	}
	if (moving)
		move_on(table, index);
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
		residue_unlink(table, index, entry);
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
	return (uint32_t)__builtin_popcount(index->used);
}

/* --- searching --- */

/* The first entry of the chain of class c that asks for key, which has this bucket and hash. */
static uint32_t chain_find(const struct match_table *table, const struct bucket *bucket, uint32_t c,
	uint32_t hash, const struct match_key *key)
{
	uint32_t i = chains_first(bucket, hash);

	while (i != MATCH_NONE) {
		const struct match_entry *entry = match_entry(table, i);

		if (entry->hash == hash && entry->class == c && entry_matches(entry, key))
			break;
		i = entry->bucket_next;
	}
	return i;
}

/* Which of two entries comes first; the first may be MATCH_NONE. */
static uint32_t earlier(
	const struct match_table *table, const struct match_order *order, uint32_t a, uint32_t b)
{
	return a != MATCH_NONE && order_before(order, match_entry(table, a), match_entry(table, b))
		       ? a
		       : b;
}

/* From entry i of the residue on, the first that matches, or one behind `found` in the list, if that is
 * not MATCH_NONE. */
static uint32_t residue_walk(const struct match_table *table, const struct match_order *order,
	uint32_t i, uint32_t found, const struct match_key *key)
{
	for (unsigned n = 1; i != MATCH_NONE; n++) {
		if (entry_matches(match_entry(table, i), key))
			break;
		/* comparing costs more than looking at the next */
		if (n % RESIDUE_LOOKS == 0 && earlier(table, order, found, i) != i)
			break;
		i = match_entry(table, i)->chain_next;
	}
	return i;
}

/* The first in list order of the candidates. The residue's moves on to its next match, but not far
 * beyond the others' first. */
static uint32_t candidates_first(const struct match_table *table, const struct match_index *index,
	const struct match_key *key, uint32_t *candidates)
{
	uint32_t found = MATCH_NONE;
	uint32_t i;

	for (uint32_t used = index->used; used != 0; used &= used - 1) {
		i = candidates[__builtin_ctz(used)];
		if (i != MATCH_NONE)
			found = earlier(table, &index->order, found, i);
	}
	i = residue_walk(table, &index->order, candidates[RESIDUE], found, key);
	candidates[RESIDUE] = i;
	return i == MATCH_NONE ? found : earlier(table, &index->order, found, i);
}

static __attribute__((noinline)) uint32_t classes_first(const struct match_table *table,
	const struct match_index *index, const struct match_key *key)
{
	uint64_t process = process_of(key->nid, key->pid);
	uint32_t found = MATCH_NONE;
	uint32_t i;

	for (uint32_t used = index->used; used != 0; used &= used - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(used);
		uint32_t hash = hash_of(&index->classes[c], key->bits, process);

		i = chain_find(table, chains_bucket(&index->chains, hash), c, hash, key);
		if (i != MATCH_NONE)
			found = earlier(table, &index->order, found, i);
	}
	i = residue_walk(table, &index->order, index->residue.head, found, key);
	return i == MATCH_NONE ? found : earlier(table, &index->order, found, i);
}

uint32_t index_first(
	const struct match_table *table, struct match_index *index, const struct match_key *key)
{
	uint32_t used = index->used;

	if ((used & (used - 1)) != 0 || index->residue.head != MATCH_NONE)
		return classes_first(table, index, key);

	/* Most lists have entries of one mask. (Of none they have not: then there is a residue.) */
	const struct mask *class = &index->classes[__builtin_ctz(used)];
	uint32_t hash = hash_of(class, key->bits, process_of(key->nid, key->pid));
	uint32_t i = chains_bucket(&index->chains, hash)->head;

	while (i != MATCH_NONE && !entry_matches(match_entry(table, i), key))
		i = match_entry(table, i)->bucket_next;
	return i;
}

/* The first entries of all chains that ask for key, by class. Classes that are not in use are left
 * out. */
static void chains_find(const struct match_table *table, const struct match_index *index,
	const struct match_key *key, uint32_t *heads)
{
	uint64_t process = process_of(key->nid, key->pid);

	for (uint32_t used = index->used; used != 0; used &= used - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(used);
		uint32_t hash = hash_of(&index->classes[c], key->bits, process);

		heads[c] = chain_find(table, chains_bucket(&index->chains, hash), c, hash, key);
	}
	heads[RESIDUE] = index->residue.head;
}

/* Sets the walk's candidates to what comes after current. */
static void walk_start(const struct match_table *table, struct match_index *index, uint32_t current,
	const struct match_key *key)
{
	const struct match_entry *entry = match_entry(table, current);
	bool chained = entry->class == RESIDUE || entry_matches(entry, key);
	struct walk *walk = &index->walk;

	walk->key = *key;
	chains_find(table, index, key, walk->candidates);
	for (uint32_t used = index->used | UINT32_C(1) << RESIDUE; used != 0; used &= used - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(used);
		uint32_t i = walk->candidates[c];

		if (c == entry->class && chained)
			i = entry->chain_next;
		else
			while (i != MATCH_NONE &&
				!order_before(&index->order, entry, match_entry(table, i)))
				i = match_entry(table, i)->chain_next;
		walk->candidates[c] = i;
	}
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
