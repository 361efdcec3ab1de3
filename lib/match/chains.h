/* SPDX-License-Identifier: BSD-3-Clause */
/* chains.h - a hash table of chains: of match entries (index.h), or of kept messages (kept.h).
 *
 * Elements that are alike under a mask form a chain, which its owner keeps. The table finds the
 * first element of a chain by what they have in common:
 *
 *     bucket 0     first element of a chain -- first of another -- none
 *     bucket 1     none
 *     bucket 2     first element of a chain -- none
 *
 * The table grows by a bucket at a time (linear hashing): bucket b is divided into b and b plus the
 * number of buckets at the last doubling, in turn. So an insertion moves the chains of one bucket
 * at most. A table that gets no memory does not grow and gets slower; nothing fails.
 *
 * Private memory of the thread that calls; elements are named by their index in an array.
 */
#ifndef MATCH_CHAINS_H
#define MATCH_CHAINS_H

#include <match/match.h>

#define BUCKETS_EACH 4 /* for each chain: so that the first of a bucket is mostly the one */

/* Ones where what a message brings counts, zeros where everything will do. */
struct mask {
	uint64_t bits;
	uint64_t process; /* as process_of() */
};

/* An array of elements, each of which begins with its match bits. */
struct chained {
	void *base;
	size_t size;    /* bytes of an element */
	size_t process; /* offset in an element of its process */
};

struct chains {
	struct mask mask;
	uint64_t secret[2]; /* decides which chains share a bucket */
	size_t link; /* offset in an element of a chain's first one: the next chain of the bucket */
	uint32_t count;   /* chains */
	uint32_t buckets; /* 0: not open */
	uint32_t wide;    /* a hash's bucket: these of its bits, if there is such a bucket, ... */
	uint32_t narrow;  /* ... or these: all of those but the highest */
	uint32_t room;    /* buckets that there is memory for */
	uint32_t *heads;  /* of each bucket the first chain's first element */
};

/* Makes it a table without chains, whatever it was. Returns false without memory, and changes
 * nothing then. */
bool chains_open(
	struct chains *chains, const struct mask *mask, const uint64_t secret[2], size_t link);
void chains_close(struct chains *chains);

/* One bucket more, if there is memory for it. */
void chains_grow(struct chains *chains, struct chained chained);

/* chains_find() from the chain on that comes behind the one that begins with i. */
uint32_t chains_find_behind(const struct chains *chains, struct chained chained, uint32_t i,
	uint64_t bits, uint64_t process);

static inline uint64_t chained_word(struct chained chained, uint32_t i, size_t offset)
{
	typedef uint64_t __attribute__((may_alias)) word;

	return *(
		const word *)(const void *)((const char *)chained.base + i * chained.size + offset);
}

/* Of what a message, or an entry, says of the things that count. */
static inline uint32_t chains_hash(const struct chains *chains, uint64_t bits, uint64_t process)
{
	unsigned __int128 product =
		(unsigned __int128)((bits & chains->mask.bits) ^ chains->secret[0]) *
		((process & chains->mask.process) ^ chains->secret[1]);

	return (uint32_t)product ^ (uint32_t)(product >> 64);
}

static inline uint32_t *chains_bucket(const struct chains *chains, uint32_t hash)
{
	uint32_t bucket = hash & chains->wide;
	uint32_t exists = -(uint32_t)(bucket < chains->buckets); /* as good as random: no branch */

	return &chains->heads[bucket & (exists | chains->narrow)];
}

/* Is an element alike? */
static inline bool chains_ask(const struct chains *chains, struct chained chained, uint32_t i,
	uint64_t bits, uint64_t process)
{
	return (((chained_word(chained, i, 0) ^ bits) & chains->mask.bits) |
		       ((chained_word(chained, i, chained.process) ^ process) &
			       chains->mask.process)) == 0;
}

/* The first element of the chain whose elements are like this; MATCH_NONE: there is none. */
static inline uint32_t chains_find(
	const struct chains *chains, struct chained chained, uint64_t bits, uint64_t process)
{
	uint32_t i = *chains_bucket(chains, chains_hash(chains, bits, process));

	if (i == MATCH_NONE || chains_ask(chains, chained, i, bits, process))
		return i;
	return chains_find_behind(chains, chained, i, bits, process);
}

static inline uint32_t *chain_link(const struct chains *chains, struct chained chained, uint32_t i)
{
	return (uint32_t *)(void *)((char *)chained.base + i * chained.size + chains->link);
}

static inline uint32_t *chain_bucket(
	const struct chains *chains, struct chained chained, uint32_t i)
{
	return chains_bucket(chains, chains_hash(chains, chained_word(chained, i, 0),
					     chained_word(chained, i, chained.process)));
}

static inline void chain_push(const struct chains *chains, struct chained chained, uint32_t i)
{
	uint32_t *head = chain_bucket(chains, chained, i);

	*chain_link(chains, chained, i) = *head;
	*head = i;
}

/* A chain of one element. */
static inline void chains_add(struct chains *chains, struct chained chained, uint32_t i)
{
	if (++chains->count * BUCKETS_EACH > chains->buckets)
		for (unsigned b = 0; b < BUCKETS_EACH; b++)
			chains_grow(chains, chained);
	chain_push(chains, chained, i);
}

/* The chain whose first element was `old` begins with `head` from now on, which is alike, or has no
 * element any more, with MATCH_NONE. */
static inline void chains_replace(
	struct chains *chains, struct chained chained, uint32_t old, uint32_t head)
{
	uint32_t *name = chain_bucket(chains, chained, old);
	uint32_t next = *chain_link(chains, chained, old);

	while (*name != old)
		name = chain_link(chains, chained, *name);
	if (head == MATCH_NONE) {
		*name = next;
		chains->count--;
	} else {
		*name = head;
		*chain_link(chains, chained, head) = next;
	}
}

#endif
