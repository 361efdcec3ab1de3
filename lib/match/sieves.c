/* SPDX-License-Identifier: BSD-3-Clause */
/* sieves.c - see sieves.h. The poll core owns all of it. */
#include <string.h>

#include <match/sieves.h>

#define UNITE_MAX (SIEVE_ENTRIES / 2) /* S2 */

static struct sieve *sieve_at(const struct sieves *sieves, uint32_t s)
{
	return (struct sieve *)(void *)sieves->blocks.block[s];
}

static unsigned sieve_slot(const struct sieve *sieve, uint32_t i)
{
	unsigned slot = 0;

	while (sieve->entries[slot] != i)
		slot++;
	return slot;
}

/* A sieve without entries between two others; MATCH_NONE when there is no memory for it. */
static uint32_t sieve_new(struct sieves *sieves, uint32_t previous, uint32_t next)
{
	uint32_t s = sieves->unused;

	if (s != MATCH_NONE) {
		sieves->unused = sieve_at(sieves, s)->next;
	} else {
		if (!blocks_add(&sieves->blocks, sizeof(struct sieve)))
			return MATCH_NONE;
		s = sieves->blocks.count - 1;
		memset(sieve_at(sieves, s), 0, sizeof(struct sieve));
	}
	sieve_at(sieves, s)->next = next;
	*(previous == MATCH_NONE ? &sieves->first : &sieve_at(sieves, previous)->next) = s;
	return s;
}

static void sieve_free(struct sieves *sieves, uint32_t s, uint32_t previous)
{
	struct sieve *sieve = sieve_at(sieves, s);

	*(previous == MATCH_NONE ? &sieves->first : &sieve_at(sieves, previous)->next) =
		sieve->next;
	sieve->next = sieves->unused;
	sieves->unused = s;
}

/* --- the words of a sieve --- */

/* What an entry or a message says, a byte for each digit. In which order does not matter, as long
 * as it is always the same. */
struct digits {
	uint64_t low; /* of the bytes of the match bits */
	uint64_t high;
	uint32_t process; /* of the lowest bytes of nid and pid */
};

static struct digits digits_of(uint64_t bits, uint32_t nid, uint32_t pid)
{
	uint32_t process = (nid & 0xff) | (pid & 0xff) << 16;

	return (struct digits){bits & UINT64_C(0x0f0f0f0f0f0f0f0f),
		bits >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f),
		(process & 0x000f000f) | (process & 0x00f000f0) << 4};
}

static inline unsigned digit(const struct digits *digits, unsigned d)
{
	return ((const uint8_t *)digits)[d];
}

/* Makes room for an entry in this slot. */
static void words_shift(struct sieve *sieve, unsigned slot)
{
	uint64_t before = (UINT64_C(1) << slot) - 1;

	for (unsigned d = 0; d < DIGITS; d++)
		for (unsigned value = 0; value < DIGIT_VALUES; value++) {
			uint64_t word = sieve->pass[d][value];

			sieve->pass[d][value] = (word & before) | (word & ~before) << 1;
		}
}

/* Fills the slot in, which has been empty. */
static void words_set(struct sieve *sieve, unsigned slot, const struct match_entry *entry)
{
	const struct digits wanted = digits_of(entry->bits, entry->nid, entry->pid);
	const struct digits ignored = digits_of(entry->ignore,
		entry->nid == MATCH_ANY ? UINT32_MAX : 0, entry->pid == MATCH_ANY ? UINT32_MAX : 0);

	for (unsigned d = 0; d < DIGITS; d++) {
		unsigned any = digit(&ignored, d);
		unsigned want = digit(&wanted, d) & ~any;

		/* every value whose other bits are the wanted ones */
		for (unsigned value = any;; value = (value - 1) & any) {
			sieve->pass[d][want | value] |= UINT64_C(1) << slot;
			if (value == 0)
				break;
		}
	}
}

/* What is behind the slot moves up to it. */
static void words_erase(struct sieve *sieve, unsigned slot)
{
	uint64_t before = (UINT64_C(1) << slot) - 1;

	for (unsigned d = 0; d < DIGITS; d++)
		for (unsigned value = 0; value < DIGIT_VALUES; value++) {
			uint64_t word = sieve->pass[d][value];

			sieve->pass[d][value] = (word & before) | (word >> 1 & ~before);
		}
}

/* The entries that have nothing against what a message brings, but for the rest of nid and pid. */
static __attribute__((noinline)) uint64_t words_and(
	const struct sieve *sieve, const struct digits *digits)
{
	uint64_t pass = UINT64_MAX;

#pragma GCC unroll 20
	for (unsigned d = 0; d < DIGITS; d++)
		pass &= sieve->pass[d][digit(digits, d)];
	return pass;
}

/* --- sieves that are divided and united, S2 --- */

static void entries_move(const struct match_table *table, const struct sieves *sieves,
	uint32_t from, unsigned first, uint32_t to)
{
	struct sieve *source = sieve_at(sieves, from);
	struct sieve *target = sieve_at(sieves, to);

	for (unsigned slot = first; slot < source->count; slot++) {
		target->entries[target->count++] = source->entries[slot];
		match_entry(table, source->entries[slot])->sieve = to;
	}
	source->count = first;
}

/* The second half of a full sieve goes to a new one behind it. */
static bool sieve_divide(const struct match_table *table, struct sieves *sieves, uint32_t s)
{
	uint32_t made = sieve_new(sieves, s, sieve_at(sieves, s)->next);

	if (made == MATCH_NONE)
		return false;
	entries_move(table, sieves, s, SIEVE_ENTRIES / 2, made);
	for (unsigned d = 0; d < DIGITS; d++)
		for (unsigned value = 0; value < DIGIT_VALUES; value++) {
			uint64_t *word = &sieve_at(sieves, s)->pass[d][value];

			sieve_at(sieves, made)->pass[d][value] = *word >> SIEVE_ENTRIES / 2;
			*word &= (UINT64_C(1) << SIEVE_ENTRIES / 2) - 1;
		}
	return true;
}

/* The entries of the next sieve come to this one. */
static void sieve_unite(const struct match_table *table, struct sieves *sieves, uint32_t s)
{
	struct sieve *sieve = sieve_at(sieves, s);
	uint32_t gone = sieve->next;
	unsigned count = sieve->count;

	entries_move(table, sieves, gone, 0, s);
	for (unsigned d = 0; d < DIGITS; d++)
		for (unsigned value = 0; value < DIGIT_VALUES; value++) {
			sieve->pass[d][value] |= sieve_at(sieves, gone)->pass[d][value] << count;
			sieve_at(sieves, gone)->pass[d][value] = 0;
		}
	sieve_free(sieves, gone, s);
}

/* --- entries that come and go --- */

/* The sieve that a new entry between two neighbours of the chain joins; MATCH_NONE when there is no
 * memory for the one that it needs. */
static uint32_t sieve_for(
	const struct match_table *table, struct sieves *sieves, uint32_t previous, uint32_t next)
{
	uint32_t left = previous == MATCH_NONE ? MATCH_NONE : match_entry(table, previous)->sieve;
	uint32_t right = next == MATCH_NONE ? MATCH_NONE : match_entry(table, next)->sieve;

	if (left != MATCH_NONE && sieve_at(sieves, left)->count < SIEVE_ENTRIES)
		return left;
	if (right != MATCH_NONE && sieve_at(sieves, right)->count < SIEVE_ENTRIES)
		return right;
	if (left != right || left == MATCH_NONE)
		return sieve_new(sieves, left, right);
	return sieve_divide(table, sieves, left) ? match_entry(table, previous)->sieve : MATCH_NONE;
}

void sieves_open(struct sieves *sieves)
{
	*sieves = (struct sieves){.first = MATCH_NONE, .unused = MATCH_NONE};
}

void sieves_close(struct sieves *sieves)
{
	blocks_clear(&sieves->blocks);
}

bool sieves_add(const struct match_table *table, struct sieves *sieves, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	uint32_t s = sieve_for(table, sieves, entry->chain_previous, entry->chain_next);
	struct sieve *sieve;
	unsigned slot = 0;

	if (s == MATCH_NONE)
		return false;
	sieve = sieve_at(sieves, s);
	if (entry->chain_previous != MATCH_NONE &&
		match_entry(table, entry->chain_previous)->sieve == s)
		slot = sieve_slot(sieve, entry->chain_previous) + 1;
	if (slot < sieve->count)
		words_shift(sieve, slot);
	words_set(sieve, slot, entry);
	for (unsigned n = sieve->count++; n > slot; n--)
		sieve->entries[n] = sieve->entries[n - 1];
	sieve->entries[slot] = i;
	entry->sieve = s;
	return true;
}

void sieves_remove(const struct match_table *table, struct sieves *sieves, uint32_t i)
{
	const struct match_entry *entry = match_entry(table, i);
	uint32_t s = entry->sieve;
	struct sieve *sieve = sieve_at(sieves, s);
	unsigned slot = sieve_slot(sieve, i);
	uint32_t before = match_entry(table, sieve->entries[0])->chain_previous;
	uint32_t previous = before == MATCH_NONE ? MATCH_NONE : match_entry(table, before)->sieve;

	words_erase(sieve, slot);
	sieve->count--;
	for (unsigned n = slot; n < sieve->count; n++)
		sieve->entries[n] = sieve->entries[n + 1];
	if (sieve->count == 0)
		sieve_free(sieves, s, previous);
	else if (sieve->next != MATCH_NONE &&
		 sieve->count + sieve_at(sieves, sieve->next)->count <= UNITE_MAX)
		sieve_unite(table, sieves, s);
	else if (previous != MATCH_NONE &&
		 sieve_at(sieves, previous)->count + sieve->count <= UNITE_MAX)
		sieve_unite(table, sieves, previous);
}

/* The first of these entries of a sieve that matches; MATCH_NONE: none does. */
static __attribute__((noinline)) uint32_t sieve_pick(const struct match_table *table,
	const struct sieve *sieve, uint64_t pass, const struct match_key *key)
{
	for (; pass != 0; pass &= pass - 1) {
		uint32_t i = sieve->entries[__builtin_ctzll(pass)];

		if (entry_matches(match_entry(table, i), key))
			return i;
	}
	return MATCH_NONE;
}

/* sieves_find() from a slot of a sieve on. */
static inline uint32_t sieves_search(const struct match_table *table, const struct sieves *sieves,
	const struct match_order *order, uint32_t s, unsigned slot, uint32_t found,
	const struct match_key *key)
{
	const struct digits digits = digits_of(key->bits, key->nid, key->pid);
	const struct sieve *sieve = sieve_at(sieves, s);
	uint64_t pass = words_and(sieve, &digits) >> slot << slot;

	for (;;) {
		uint32_t i;

		if (pass != 0) {
			i = sieve_pick(table, sieve, pass, key);
			if (i != MATCH_NONE)
				return i;
		}
		if (sieve->next == MATCH_NONE)
			return MATCH_NONE;
		sieve = sieve_at(sieves, sieve->next);
		i = sieve->entries[0];
		if (found != MATCH_NONE &&
			order_before(order, match_entry(table, found), match_entry(table, i)))
			return i;
		pass = words_and(sieve, &digits);
	}
}

uint32_t sieves_first(const struct match_table *table, const struct sieves *sieves,
	const struct match_order *order, uint32_t found, const struct match_key *key)
{
	return sieves_search(table, sieves, order, sieves->first, 0, found, key);
}

uint32_t sieves_find(const struct match_table *table, const struct sieves *sieves,
	const struct match_order *order, uint32_t i, uint32_t found, const struct match_key *key)
{
	uint32_t s = match_entry(table, i)->sieve;

	if (found != MATCH_NONE &&
		order_before(order, match_entry(table, found), match_entry(table, i)))
		return i;
	return sieves_search(
		table, sieves, order, s, sieve_slot(sieve_at(sieves, s), i), found, key);
}
