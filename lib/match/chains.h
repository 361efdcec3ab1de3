/* SPDX-License-Identifier: BSD-3-Clause */
/* chains.h - the hash table of one class: the chains of its entries.
 *
 * A class is of entries with the same mask. Entries of it that ask for the same thing form a chain,
 * in list order; the table holds the first entry of each chain. A search looks at one bucket, which
 * is a cache line, and of the entries only at those whose tag is that of what is searched: as a
 * rule the one that is found, and none if nothing is found.
 *
 *     bucket    tag tag tag ... | overflow | head head head ...
 *                                    |         |
 *                                    |     first entry of a chain -- its second -- its third
 *                                    v                      chain_next      chain_next
 *               first entry of a chain without a slot -- first entry of another -- none
 *                                                bucket_next
 *
 * The table grows by a bucket at a time (linear hashing): bucket b is divided into b and b plus the
 * number of buckets at the last doubling, in turn. So an insertion moves the chains of one bucket
 * at most. Memory comes in segments, each as long as all before it and as the first one; nothing is
 * copied. A table that gets no memory does not grow and gets slower; nothing fails.
 *
 * Private memory of the poll core; entries are in the shared table.
 */
#ifndef MATCH_CHAINS_H
#define MATCH_CHAINS_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <match/match.h>

#define BUCKET_SLOTS 12

struct bucket {
	uint8_t tags[BUCKET_SLOTS]; /* 0: no chain in this slot */
	uint32_t overflow;          /* MATCH_NONE: every chain has a slot */
	uint32_t heads[BUCKET_SLOTS];
};

#define BUCKETS_MIN  4 /* a power of two: the buckets of the first segment */
#define SEGMENTS_MAX 27

/* Ones where what a message brings counts, zeros where everything will do. */
struct mask {
	uint64_t bits;
	uint64_t process; /* as process_of() */
};

struct chains {
	struct mask mask;
	uint32_t buckets; /* 0: not open */
	uint32_t wide;    /* a hash's bucket: these of its bits, if there is such a bucket, ... */
	uint32_t narrow;  /* ... or these: all of those but the highest */
	uint32_t count;   /* chains */
	struct bucket *segments[SEGMENTS_MAX];
};

/* Allocates a table without chains unless it is open; returns false without memory for it. */
bool chains_open(struct chains *chains);
void chains_close(struct chains *chains);

/* A chain of one entry. */
void chains_add(const struct match_table *table, struct chains *chains, uint32_t entry);
/* The chain whose first entry was `old` begins with `head` from now on, which asks for the same, or
 * has no entry any more, with MATCH_NONE. */
void chains_replace(
	const struct match_table *table, struct chains *chains, uint32_t old, uint32_t head);

/* chains_find() among the chains in these slots of a bucket, and those without a slot. */
uint32_t chains_pick(const struct match_table *table, const struct chains *chains,
	const struct bucket *bucket, uint32_t slots, uint64_t bits, uint64_t process);

/* Of what a message, or an entry, says of the things that count. */
static inline uint64_t chains_hash(const struct chains *chains, uint64_t bits, uint64_t process)
{
	unsigned __int128 product =
		(unsigned __int128)((bits & chains->mask.bits) ^ UINT64_C(0x5bd1e995)) *
		((process & chains->mask.process) ^ UINT64_C(0x9e3779b97f4a7c15));

	uint64_t low = (uint64_t)product;
	uint64_t high = (uint64_t)(product >> 64);

	return low ^ high;
}

static inline struct bucket *chains_at(const struct chains *chains, uint32_t bucket)
{
	size_t position = (size_t)bucket + BUCKETS_MIN;
	size_t top = (size_t)__builtin_clz((uint32_t)position) ^ 31; /* its highest bit */

	return &chains->segments[top - (size_t)__builtin_ctz(BUCKETS_MIN)]
				[position ^ (size_t)1 << top];
}

static inline struct bucket *chains_bucket(const struct chains *chains, uint64_t hash)
{
	uint32_t bucket = (uint32_t)hash & chains->wide;
	uint32_t exists = -(uint32_t)(bucket < chains->buckets); /* as good as random: no branch */

	return chains_at(chains, bucket & (exists | chains->narrow));
}

/* The tag of a hash depends on the slot, so that four of them are a word. It is never 0. */
#define TAG_WORD 4
#define TAG_MIN  1

static inline uint8_t chains_tag(uint64_t hash, unsigned slot)
{
	uint8_t tag = (uint8_t)(hash >> (32 + slot % TAG_WORD * 8));

	return tag < TAG_MIN ? TAG_MIN : tag;
}

/* A bit for each slot that has this hash's tag. */
static inline uint32_t bucket_slots(const struct bucket *bucket, uint64_t hash)
{
#ifdef __SSE2__
	__m128i tags = _mm_load_si128((const __m128i *)(const void *)bucket);
	__m128i tag =
		_mm_shuffle_epi32(_mm_cvtsi64_si128((long long)hash), _MM_SHUFFLE(1, 1, 1, 1));

	tag = _mm_max_epu8(tag, _mm_set1_epi8(TAG_MIN));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, tag)) & ((1u << BUCKET_SLOTS) - 1);
#else
	uint32_t slots = 0;

	for (unsigned s = 0; s < BUCKET_SLOTS; s++)
		slots |= (uint32_t)(bucket->tags[s] == chains_tag(hash, s)) << s;
	return slots;
#endif
}

/* Does an entry of the class ask for this? */
static inline bool chains_ask(const struct chains *chains, const struct match_entry *entry,
	uint64_t bits, uint64_t process)
{
	return (((entry->bits ^ bits) & chains->mask.bits) |
		       ((process_of(entry->nid, entry->pid) ^ process) & chains->mask.process)) ==
	       0;
}

/* Which bucket the chain is in whose entries ask for this, if there is one, and in which of these
 * slots or without one; NULL: there is none. */
static inline const struct bucket *chains_look(
	const struct chains *chains, uint64_t bits, uint64_t process, uint32_t *slots)
{
	uint64_t hash = chains_hash(chains, bits, process);
	const struct bucket *bucket = chains_bucket(chains, hash);

	*slots = bucket_slots(bucket, hash);
	return *slots != 0 || bucket->overflow != MATCH_NONE ? bucket : NULL;
}

/* The first entry of the chain whose entries ask for this; MATCH_NONE: there is none. */
static inline uint32_t chains_find(const struct match_table *table, const struct chains *chains,
	uint64_t bits, uint64_t process)
{
	uint32_t slots;
	const struct bucket *bucket = chains_look(chains, bits, process, &slots);

	if (!bucket)
		return MATCH_NONE;
	return chains_pick(table, chains, bucket, slots, bits, process);
}

#endif
