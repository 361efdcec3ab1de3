/* chains.h - finds the chain of entries that ask for the same, by a hash of what they ask for.
 *
 * A hash table that grows by a bucket at a time (linear hashing): bucket b is divided into b and b
 * plus the number of buckets at the last doubling, in turn. So an insertion moves the chains of two
 * buckets at most, of which there are half as many as buckets.
 *
 *     bucket    tags | head --> first entry of a chain --> first entry of another --> none
 *                                  | chain_next                | chain_next
 *                               its second                  its second
 *                                  | chain_next
 *                               its third
 *
 * The first entry of a chain holds what belongs to the chain: bucket_next, the next chain of the
 * bucket, and chain_tail, its last entry. Tags are a bit for each chain of the bucket, by its hash:
 * most searches for what is not there end with them, and touch no entry.
 *
 * A table that gets no memory does not grow, and gets slower; nothing fails.
 *
 * Private memory of the poll core; entries are in the shared table.
 */
#ifndef MATCH_CHAINS_H
#define MATCH_CHAINS_H

#include <match/blocks.h>
#include <match/match.h>

struct bucket {
	uint32_t tags;
	uint32_t head;
};

struct chains {
	struct blocks blocks;
	uint32_t buckets;
	uint32_t
		mask; /* of a hash: the smallest power of two that is more than all buckets' numbers, minus 1 */
	uint32_t count; /* chains */
};

/* A table without chains; false when there is no memory for it. */
bool chains_open(struct chains *chains);
void chains_close(struct chains *chains);

/* A chain of one entry, of entry->hash. */
void chains_add(const struct match_table *table, struct chains *chains, uint32_t entry);
/* The chain whose first entry was `old` begins with `head` from now on, of the same hash, or has no
 * entry any more, with MATCH_NONE. */
void chains_replace(
	const struct match_table *table, struct chains *chains, uint32_t old, uint32_t head);

static inline struct bucket *chains_bucket(const struct chains *chains, uint32_t hash)
{
	uint32_t b = hash & chains->mask;

	if (b >= chains->buckets)
		b &= chains->mask >> 1;
	return blocks_at(&chains->blocks, b, sizeof(struct bucket));
}

static inline uint32_t chains_tag(uint32_t hash)
{
	return UINT32_C(1) << (hash >> 27);
}

/* The first of the chains that may have this hash: the caller follows bucket_next and compares. */
static inline uint32_t chains_first(const struct bucket *bucket, uint32_t hash)
{
	return (bucket->tags & chains_tag(hash)) != 0 ? bucket->head : MATCH_NONE;
}

#endif
