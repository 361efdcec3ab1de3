/* index.c - see index.h. The poll core owns all of it. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <match/index.h>

#define CLASSES      8
#define RESIDUE      CLASSES /* its class number: the one after the last */
#define TALLY_MAX    32      /* masks that are told apart when classes are chosen */
#define SLOTS_MIN    64
#define RESIDUE_MIN  64 /* entries, before better classes are looked for */
#define RESIDUE_PART 32 /* and the part of the list that they must be, so that looking pays */

/* Every entry of a class has this ignore mask and these wildcards. */
struct class
{
	uint64_t ignore;
	bool any_nid;
	bool any_pid;
	uint32_t count; /* its entries; a class without any is free */
};

/* Entries linked by chain_next and chain_previous, X2. */
struct chain {
	uint32_t head;
	uint32_t tail;
};

/* Of the hash table: open addressing, one step at a time. */
struct slot {
	uint32_t hash; /* 0: empty */
	uint32_t class;
	struct chain chain;
};

/* Where a walk by index_next() stands, so that a list of entries that match but do not accept is
 * walked once, not once for each: the entry it returned last, and for each class the next in line,
 * of that entry or one behind it. */
struct walk {
	struct match_key key;
	uint32_t current; /* MATCH_NONE: no walk */
	uint32_t candidates[CLASSES + 1];
};

struct match_index {
	struct class classes[CLASSES];
	struct slot *slots;
	uint32_t mask; /* slots - 1 */
	uint32_t used; /* slots in use, at most three quarters */
	struct chain residue;
	uint32_t residue_count;
	uint32_t residue_limit; /* look for better classes when it is reached */
	struct walk walk;
};

static uint32_t hash_of(uint32_t class, uint64_t bits, uint32_t nid, uint32_t pid)
{
	uint64_t hash = (bits + class) * UINT64_C(0x9e3779b97f4a7c15);

	hash ^= hash >> 32;
	hash += (uint64_t)nid << 32 | pid;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	hash >>= 32;
	return hash == 0 ? 1 : (uint32_t)hash;
}

static bool class_has(const struct class *class, const struct match_entry *entry)
{
	return class->ignore == entry->ignore && class->any_nid == (entry->nid == MATCH_ANY) &&
	       class->any_pid == (entry->pid == MATCH_ANY);
}

/* Do two entries of one class and hash ask for the same? */
static bool entry_equal(const struct match_entry *a, const struct match_entry *b)
{
	return a->class == b->class && a->hash == b->hash &&
	       (a->class == RESIDUE || (((a->bits ^ b->bits) & ~a->ignore) == 0 &&
					       a->nid == b->nid && a->pid == b->pid));
}

/* --- chains --- */

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
static uint32_t chain_place(
	const struct match_table *table, const struct chain *chain, const struct match_entry *entry)
{
	uint32_t back = chain->tail;
	uint32_t front = chain->head;
	uint32_t left = entry->previous;
	uint32_t right = entry->next;

	for (;;) {
		const struct match_entry *other;

		if (back == MATCH_NONE || match_entry(table, back)->position < entry->position)
			return back;
		back = match_entry(table, back)->chain_previous;

		other = match_entry(table, front);
		if (other->position > entry->position)
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

/* --- the hash table --- */

static struct slot *slot_place(struct slot *slots, uint32_t mask, struct slot slot)
{
	uint32_t i = slot.hash & mask;

	while (slots[i].hash != 0)
		i = (i + 1) & mask;
	slots[i] = slot;
	return &slots[i];
}

/* Room for one slot more. */
static bool slots_reserve(struct match_index *index)
{
	if (index->used + 1 <= (index->mask + 1) / 4 * 3)
		return true;

	uint32_t mask = 2 * index->mask + 1;
	struct slot *slots = calloc((size_t)mask + 1, sizeof(*slots));

	if (slots == NULL)
		return false;
	for (uint32_t i = 0; i <= index->mask; i++)
		if (index->slots[i].hash != 0)
			slot_place(slots, mask, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->mask = mask;
	return true;
}

/* Empties a slot; those that stepped over it move up, so that a search may stop at the first empty
 * one. */
static void slot_free(struct match_index *index, struct slot *slot)
{
	uint32_t hole = (uint32_t)(slot - index->slots);

	for (uint32_t i = (hole + 1) & index->mask; index->slots[i].hash != 0;
		i = (i + 1) & index->mask) {
		uint32_t home = index->slots[i].hash & index->mask;

		if (((i - home) & index->mask) < ((i - hole) & index->mask))
			continue; /* its home lies behind the hole */
		index->slots[hole] = index->slots[i];
		hole = i;
	}
	index->slots[hole].hash = 0;
	index->used--;
}

/* The slot of an entry that is an end of its chain. */
static struct slot *slot_of(const struct match_index *index, uint32_t i, uint32_t hash)
{
	uint32_t s = hash & index->mask;

	while (index->slots[s].hash != hash ||
		(index->slots[s].chain.head != i && index->slots[s].chain.tail != i))
		s = (s + 1) & index->mask;
	return &index->slots[s];
}

/* The slot of the chain that an entry belongs to, a new one if need be; NULL when there is no
 * memory for that. */
static struct slot *slot_for(
	const struct match_table *table, struct match_index *index, const struct match_entry *entry)
{
	for (uint32_t s = entry->hash & index->mask; index->slots[s].hash != 0;
		s = (s + 1) & index->mask)
		if (index->slots[s].hash == entry->hash &&
			entry_equal(match_entry(table, index->slots[s].chain.head), entry))
			return &index->slots[s];
	if (!slots_reserve(index))
		return NULL;
	index->used++;
	return slot_place(index->slots, index->mask,
		(struct slot){entry->hash, entry->class, {MATCH_NONE, MATCH_NONE}});
}

/* --- classes --- */

/* The class of an entry, a free one made its own if need be; RESIDUE when there is none. */
static uint32_t class_for(struct match_index *index, const struct match_entry *entry)
{
	uint32_t free_class = RESIDUE;

	for (uint32_t c = 0; c < CLASSES; c++) {
		if (class_has(&index->classes[c], entry))
			return c;
		if (index->classes[c].count == 0 && free_class == RESIDUE)
			free_class = c;
	}
	if (free_class != RESIDUE)
		index->classes[free_class] = (struct class){
			entry->ignore, entry->nid == MATCH_ANY, entry->pid == MATCH_ANY, 0};
	return free_class;
}

/* Makes classes of the masks that most entries of the list have. */
static void classes_choose(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	struct class tally[TALLY_MAX] = {0};
	unsigned count = 0;

	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next) {
		const struct match_entry *entry = match_entry(table, i);
		unsigned t = 0;

		while (t < count && !class_has(&tally[t], entry))
			t++;
		if (t == TALLY_MAX)
			continue;
		if (t == count)
			tally[count++] = (struct class){
				entry->ignore, entry->nid == MATCH_ANY, entry->pid == MATCH_ANY, 0};
		tally[t].count++;
	}
	for (unsigned c = 0; c < CLASSES; c++) {
		unsigned most = c;

		for (unsigned t = c + 1; t < count; t++)
			if (tally[t].count > tally[most].count)
				most = t;
		index->classes[c] = tally[most];
		tally[most] = tally[c];
	}
}

/* --- making it, keeping it --- */

/* X1 for one entry. */
static void entry_file(const struct match_table *table, struct match_index *index, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	struct chain *chain = &index->residue;

	entry->class = class_for(index, entry);
	if (entry->class != RESIDUE) {
		entry->hash =
			hash_of(entry->class, entry->bits & ~entry->ignore, entry->nid, entry->pid);

		struct slot *slot = slot_for(table, index, entry);

		if (slot != NULL) {
			chain = &slot->chain;
			index->classes[entry->class].count++;
		} else {
			entry->class = RESIDUE; /* X3 */
		}
	}
	if (entry->class == RESIDUE) {
		entry->hash = 0;
		index->residue_count++;
	}
	chain_link(table, chain, i, chain_place(table, chain, entry));
}

/* Chooses classes and files every entry anew. */
static void index_fill(
	const struct match_table *table, const struct match_list *list, struct match_index *index)
{
	memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof(*index->slots));
	index->used = 0;
	index->residue = (struct chain){MATCH_NONE, MATCH_NONE};
	index->residue_count = 0;

	/* The counts of the tally hold the classes until their entries have come, and go again. */
	uint32_t counts[CLASSES];

	classes_choose(table, list, index);
	for (uint32_t c = 0; c < CLASSES; c++)
		counts[c] = index->classes[c].count;
	for (uint32_t i = list->head; i != MATCH_NONE; i = match_entry(table, i)->next)
		entry_file(table, index, i);
	for (uint32_t c = 0; c < CLASSES; c++)
		index->classes[c].count -= counts[c];

	/* The cost of the next time is paid by at least a part of the list's length of additions. */
	index->residue_limit = 2 * index->residue_count + list->length / RESIDUE_PART + RESIDUE_MIN;
}

struct match_index *index_create(const struct match_table *table, const struct match_list *list)
{
	struct match_index *index = calloc(1, sizeof(*index));
	uint32_t slots = SLOTS_MIN;

	if (index == NULL)
		return NULL;
	while (slots / 2 < list->length)
		slots *= 2;
	index->mask = slots - 1;
	index->slots = calloc(slots, sizeof(*index->slots));
	if (index->slots == NULL) {
		free(index);
		return NULL;
	}
	index->walk.current = MATCH_NONE;
	index_fill(table, list, index);
	return index;
}

void index_destroy(struct match_index *index)
{
	if (index == NULL)
		return;
	free(index->slots);
	free(index);
}

void index_add(const struct match_table *table, const struct match_list *list, uint32_t entry)
{
	struct match_index *index = list->index;

	index->walk.current = MATCH_NONE; /* the entry may lie before its candidates */
	entry_file(table, index, entry);
	if (index->residue_count >= index->residue_limit)
		index_fill(table, list, index);
}

void index_remove(const struct match_table *table, const struct match_list *list, uint32_t i)
{
	struct match_index *index = list->index;
	const struct match_entry *entry = match_entry(table, i);
	struct walk *walk = &index->walk;

	if (walk->candidates[entry->class] == i)
		walk->candidates[entry->class] = entry->chain_next;

	if (entry->class == RESIDUE) {
		chain_unlink(table, &index->residue, entry);
		index->residue_count--;
		return;
	}
	index->classes[entry->class].count--;
	if (entry->chain_previous != MATCH_NONE && entry->chain_next != MATCH_NONE) {
		chain_unlink(table, NULL, entry);
		return;
	}

	struct slot *slot = slot_of(index, i, entry->hash);

	chain_unlink(table, &slot->chain, entry);
	if (slot->chain.head == MATCH_NONE)
		slot_free(index, slot);
}

uint32_t index_residue(const struct match_index *index)
{
	return index->residue_count;
}

uint32_t index_classes(const struct match_index *index)
{
	uint32_t count = 0;

	for (unsigned c = 0; c < CLASSES; c++)
		count += index->classes[c].count > 0;
	return count;
}

/* --- searching --- */

static uint32_t key_hash(const struct match_index *index, uint32_t c, const struct match_key *key)
{
	const struct class *class = &index->classes[c];

	return hash_of(c, key->bits & ~class->ignore, class->any_nid ? MATCH_ANY : key->nid,
		class->any_pid ? MATCH_ANY : key->pid);
}

/* The head of the chain of class c that asks for key. */
static uint32_t chain_find(const struct match_table *table, const struct match_index *index,
	uint32_t c, uint32_t hash, const struct match_key *key)
{
	for (uint32_t s = hash & index->mask; index->slots[s].hash != 0;
		s = (s + 1) & index->mask) {
		const struct slot *slot = &index->slots[s];

		if (slot->hash == hash && slot->class == c &&
			entry_matches(match_entry(table, slot->chain.head), key))
			return slot->chain.head;
	}
	return MATCH_NONE;
}

/* The heads of all chains that ask for key, by class. */
static void chains_find(const struct match_table *table, const struct match_index *index,
	const struct match_key *key, uint32_t *heads)
{
	uint32_t hashes[CLASSES];

	/* All slots are on their way before the first is looked at. */
	for (uint32_t c = 0; c < CLASSES; c++) {
		if (index->classes[c].count == 0)
			continue;
		hashes[c] = key_hash(index, c, key);
		__builtin_prefetch(&index->slots[hashes[c] & index->mask]);
	}
	for (uint32_t c = 0; c < CLASSES; c++)
		heads[c] = index->classes[c].count == 0
				   ? MATCH_NONE
				   : chain_find(table, index, c, hashes[c], key);
	heads[RESIDUE] = index->residue.head;
}

/* The first in list order of the candidates. The residue's moves on to its next match, but not
 * beyond the others' first. */
static uint32_t candidates_first(
	const struct match_table *table, const struct match_key *key, uint32_t *candidates)
{
	uint32_t first = MATCH_NONE;
	uint64_t position = UINT64_MAX;
	uint32_t i;

	for (uint32_t c = 0; c < CLASSES; c++) {
		i = candidates[c];
		if (i == MATCH_NONE || match_entry(table, i)->position > position)
			continue;
		first = i;
		position = match_entry(table, i)->position;
	}
	for (i = candidates[RESIDUE]; i != MATCH_NONE; i = match_entry(table, i)->chain_next) {
		if (match_entry(table, i)->position > position)
			break;
		if (entry_matches(match_entry(table, i), key)) {
			first = i;
			break;
		}
	}
	candidates[RESIDUE] = i;
	return first;
}

uint32_t index_first(
	const struct match_table *table, struct match_index *index, const struct match_key *key)
{
	uint32_t heads[CLASSES + 1];

	chains_find(table, index, key, heads);
	return candidates_first(table, key, heads);
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
	for (uint32_t c = 0; c <= CLASSES; c++) {
		uint32_t i = walk->candidates[c];

		if (c == entry->class && chained)
			i = entry->chain_next;
		else
			while (i != MATCH_NONE &&
				match_entry(table, i)->position <= entry->position)
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
	walk->current = candidates_first(table, key, walk->candidates);
	return walk->current;
}
