/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - chunks of objects; see pool.h. */
#include <base/pool.h>

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#define POOL_ALIGN 64
#define POOL_BATCH 1024 /* bytes of the objects that are made at a time */

void pool_init(struct pool *pool, size_t size, unsigned chunk_objects, unsigned max)
{
	*pool = (struct pool){
		.size = (size + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1),
		.chunk_shift = (unsigned)__builtin_ctz(chunk_objects),
		.max = max,
	};
}

void pool_free(struct pool *pool)
{
	for (unsigned i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	pool->chunks = NULL;
	pool->chunk_count = 0;
	pool->free = NULL;
}

/* Memory for so many objects. */
static bool chunk_take(struct pool *pool, unsigned count)
{
	const unsigned chunk = pool->chunk_count;

	if ((chunk & (chunk - 1)) == 0) { /* the list has room up to each power of two */
		char **chunks = realloc(pool->chunks, RTE_MAX(2 * chunk, 1u) * sizeof(*chunks));

		if (!chunks)
			return false;
		pool->chunks = chunks;
	}
	pool->chunks[chunk] = aligned_alloc(POOL_ALIGN, count * pool->size);
	return pool->chunks[chunk] && ++pool->chunk_count;
}

/* Makes a few more objects of a chunk, whose other memory stays untouched. */
static bool pool_grow(struct pool *pool)
{
	unsigned in_chunk = pool->made & ((1u << pool->chunk_shift) - 1);
	unsigned count = RTE_MIN((1u << pool->chunk_shift) - in_chunk, pool->max - pool->made);
	char *first;

	if (count == 0 || (in_chunk == 0 && !chunk_take(pool, count)))
		return false;
	count = RTE_MIN(count, (unsigned)(POOL_BATCH / pool->size) + 1);
	first = pool->chunks[pool->chunk_count - 1] + in_chunk * pool->size;
	memset(first, 0, count * pool->size);
	pool->made += count;
	for (unsigned i = count; i-- > 0;)
		pool_give(pool, first + i * pool->size);
	return true;
}

bool pool_make(struct pool *pool, unsigned count)
{
	while (pool->left < count)
		if (!pool_grow(pool))
			return false;
	return true;
}
