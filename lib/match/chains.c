/* SPDX-License-Identifier: BSD-3-Clause */
/* chains.c - see chains.h. The poll core owns all of it. */
#include <assert.h>
#include <stdlib.h>

#include <match/chains.h>

#define LOAD        5 /* chains for each bucket at most */
#define BUCKETS_MAX (BUCKETS_MIN * ((UINT32_C(1) << SEGMENTS_MAX) - 1))

static_assert(sizeof(struct bucket) == 64, "one cache line");

static const struct bucket empty = {.overflow = MATCH_NONE};

static void chain_push(const struct match_table *table, const struct chains *chains, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);
	uint64_t hash = chains_hash(chains, entry->bits, process_of(entry->nid, entry->pid));
	struct bucket *bucket = chains_bucket(chains, hash);
	unsigned slot = 0;

	while (slot < BUCKET_SLOTS && bucket->tags[slot] != 0)
		slot++;
	if (slot < BUCKET_SLOTS) {
		bucket->tags[slot] = chains_tag(hash, slot);
		bucket->heads[slot] = i;
	} else {
		entry->bucket_next = bucket->overflow;
		bucket->overflow = i;
	}
}

/* Deals the chains of a bucket to where they belong now. */
static void bucket_deal(
	const struct match_table *table, const struct chains *chains, struct bucket *bucket)
{
	const struct bucket old = *bucket;
	uint32_t next;

	*bucket = empty;
	for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
		if (old.tags[slot] != 0)
			chain_push(table, chains, old.heads[slot]);
	for (uint32_t i = old.overflow; i != MATCH_NONE; i = next) {
		next = match_entry(table, i)->bucket_next;
		chain_push(table, chains, i);
	}
}

static struct bucket *segment_make(uint32_t buckets)
{
	return aligned_alloc(sizeof(struct bucket), buckets * sizeof(struct bucket));
}

bool chains_open(struct chains *chains)
{
	if (chains->buckets > 0)
		return true;
	chains->segments[0] = segment_make(BUCKETS_MIN);
	if (!chains->segments[0])
		return false;
	for (unsigned b = 0; b < BUCKETS_MIN; b++)
		chains->segments[0][b] = empty;
	chains->buckets = BUCKETS_MIN;
	chains->wide = chains->narrow = BUCKETS_MIN - 1;
	return true;
}

void chains_close(struct chains *chains)
{
	for (unsigned s = 0; s < SEGMENTS_MAX; s++)
		free(chains->segments[s]);
}

/* One bucket more, if there is memory for it. */
static void chains_grow(const struct match_table *table, struct chains *chains)
{
	uint32_t added = chains->buckets;
	uint32_t position = added + BUCKETS_MIN;

	if (added == BUCKETS_MAX)
		return;
	if ((position & (position - 1)) == 0) { /* the first of its segment */
		unsigned s = (unsigned)__builtin_ctz(position / BUCKETS_MIN);

		chains->segments[s] = segment_make(position);
		if (!chains->segments[s])
			return;
	}
	if (added > chains->wide) {
		chains->narrow = chains->wide;
		chains->wide = 2 * chains->wide + 1;
	}
	chains->buckets++;
	*chains_at(chains, added) = empty;
	bucket_deal(table, chains, chains_at(chains, added & chains->narrow));
}

void chains_add(const struct match_table *table, struct chains *chains, uint32_t i)
{
	chains->count++;
	if (chains->count / LOAD >= chains->buckets)
		chains_grow(table, chains);
	chain_push(table, chains, i);
}

/* The slot of the chain whose first entry is i; BUCKET_SLOTS: it has none. */
static unsigned bucket_slot(const struct bucket *bucket, uint64_t hash, uint32_t i)
{
	for (uint32_t slots = bucket_slots(bucket, hash); slots != 0; slots &= slots - 1) {
		unsigned slot = (unsigned)__builtin_ctz(slots);

		if (bucket->heads[slot] == i)
			return slot;
	}
	return BUCKET_SLOTS;
}

/* The word that names the chain whose first entry is i, which has no slot. */
static uint32_t *overflow_link(const struct match_table *table, struct bucket *bucket, uint32_t i)
{
	uint32_t *link = &bucket->overflow;

	while (*link != i)
		link = &match_entry(table, *link)->bucket_next;
	return link;
}

/* Takes the first chain of the overflow to a free slot. */
static void overflow_shorten(
	const struct match_table *table, const struct chains *chains, struct bucket *bucket)
{
	uint32_t i = bucket->overflow;

	if (i == MATCH_NONE)
		return;
	bucket->overflow = match_entry(table, i)->bucket_next;
	chain_push(table, chains, i);
}

void chains_replace(
	const struct match_table *table, struct chains *chains, uint32_t old, uint32_t head)
{
	const struct match_entry *entry = match_entry(table, old);
	uint64_t hash = chains_hash(chains, entry->bits, process_of(entry->nid, entry->pid));
	struct bucket *bucket = chains_bucket(chains, hash);
	unsigned slot = bucket_slot(bucket, hash, old);
	uint32_t *link =
		slot < BUCKET_SLOTS ? &bucket->heads[slot] : overflow_link(table, bucket, old);

	if (head != MATCH_NONE) {
		match_entry(table, head)->bucket_next = entry->bucket_next;
		*link = head;
		return;
	}
	if (slot < BUCKET_SLOTS) {
		bucket->tags[slot] = 0;
		overflow_shorten(table, chains, bucket);
	} else {
		*link = entry->bucket_next;
	}
	chains->count--;
}

static __attribute__((noinline)) uint32_t pick_further(const struct match_table *table,
	const struct chains *chains, const struct bucket *bucket, uint32_t slots, uint64_t bits,
	uint64_t process)
{
	uint32_t i;

	for (; slots != 0; slots &= slots - 1) {
		i = bucket->heads[__builtin_ctz(slots)];
		if (chains_ask(chains, match_entry(table, i), bits, process))
			return i;
	}
	i = bucket->overflow;
	while (i != MATCH_NONE && !chains_ask(chains, match_entry(table, i), bits, process))
		i = match_entry(table, i)->bucket_next;
	return i;
}

/* The first slot is nearly always the one; the rest stays apart from it, for it needs registers. */
uint32_t chains_pick(const struct match_table *table, const struct chains *chains,
	const struct bucket *bucket, uint32_t slots, uint64_t bits, uint64_t process)
{
	if (slots != 0) {
		uint32_t i = bucket->heads[__builtin_ctz(slots)];

		if (chains_ask(chains, match_entry(table, i), bits, process))
			return i;
	}
	return pick_further(table, chains, bucket, slots, bits, process);
}
