/* chains.c - see chains.h. The poll core owns all of it. */
#include <match/chains.h>

#define BUCKETS_MIN 64
#define SPARSE      2 /* buckets for each chain at least, ... */
#define EMPTY       4 /* ... and at most, but for what a removal may give back */

static struct bucket *bucket_at(const struct chains *chains, uint32_t b)
{
	return blocks_at(&chains->blocks, b, sizeof(struct bucket));
}

static void bucket_push(const struct match_table *table, struct bucket *bucket, uint32_t i)
{
	struct match_entry *entry = match_entry(table, i);

	entry->bucket_next = bucket->head;
	bucket->head = i;
	bucket->tags |= chains_tag(entry->hash);
}

/* Deals the chains of a bucket to where they belong now. */
static void bucket_deal(
	const struct match_table *table, const struct chains *chains, struct bucket *bucket)
{
	uint32_t next;
	uint32_t i = bucket->head;

	*bucket = (struct bucket){0, MATCH_NONE};
	for (; i != MATCH_NONE; i = next) {
		const struct match_entry *entry = match_entry(table, i);

		next = entry->bucket_next;
		bucket_push(table, chains_bucket(chains, entry->hash), i);
	}
}

/* One bucket more; false when there is no memory for it. */
static bool chains_grow(const struct match_table *table, struct chains *chains)
{
	uint32_t added = chains->buckets;

	if (added == chains->blocks.count * BLOCK_ELEMENTS &&
		!blocks_add(&chains->blocks, sizeof(struct bucket)))
		return false;
	*bucket_at(chains, added) = (struct bucket){0, MATCH_NONE};
	if (added > chains->mask)
		chains->mask = 2 * chains->mask + 1;
	chains->buckets++;
	bucket_deal(table, chains, bucket_at(chains, added & chains->mask >> 1));
	return true;
}

/* One bucket less. */
static void chains_shrink(const struct match_table *table, struct chains *chains)
{
	uint32_t last = --chains->buckets;

	if (last <= chains->mask >> 1)
		chains->mask >>= 1;
	bucket_deal(table, chains, bucket_at(chains, last));
	if (last % BLOCK_ELEMENTS == 0)
		blocks_drop(&chains->blocks);
}

bool chains_open(struct chains *chains)
{
	*chains = (struct chains){.mask = BUCKETS_MIN - 1, .buckets = BUCKETS_MIN};
	if (!blocks_add(&chains->blocks, sizeof(struct bucket))) {
		chains_close(chains);
		return false;
	}
	for (uint32_t b = 0; b < BUCKETS_MIN; b++)
		bucket_at(chains, b)->head = MATCH_NONE;
	return true;
}

void chains_close(struct chains *chains)
{
	blocks_clear(&chains->blocks);
}

void chains_add(const struct match_table *table, struct chains *chains, uint32_t i)
{
	chains->count++;
	for (unsigned n = 0; n < SPARSE && chains->count * SPARSE > chains->buckets; n++)
		if (!chains_grow(table, chains))
			break;
	bucket_push(table, chains_bucket(chains, match_entry(table, i)->hash), i);
}

void chains_replace(
	const struct match_table *table, struct chains *chains, uint32_t old, uint32_t head)
{
	const struct match_entry *entry = match_entry(table, old);
	struct bucket *bucket = chains_bucket(chains, entry->hash);
	uint32_t *link = &bucket->head;

	while (*link != old)
		link = &match_entry(table, *link)->bucket_next;
	if (head != MATCH_NONE) {
		match_entry(table, head)->bucket_next = entry->bucket_next;
		*link = head;
		return;
	}
	*link = entry->bucket_next;
	bucket->tags = 0;
	for (uint32_t i = bucket->head; i != MATCH_NONE; i = match_entry(table, i)->bucket_next)
		bucket->tags |= chains_tag(match_entry(table, i)->hash);
	chains->count--;
	for (unsigned n = 0; n < EMPTY && chains->buckets > BUCKETS_MIN &&
			     chains->count * EMPTY < chains->buckets;
		n++)
		chains_shrink(table, chains);
}
