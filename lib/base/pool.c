/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - chunks of objects; see pool.h. */
#include <base/pool.h>

#include <stdlib.h>
#include <string.h>

#define POOL_ALIGN 64

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

static bool pool_grow(struct pool *pool)
{
	unsigned count = 1u << pool->chunk_shift;
	char **chunks, *chunk;

	if (count > pool->max - pool->made)
		count = pool->max - pool->made;
	if (count == 0)
		return false;
	chunks = realloc(pool->chunks, (pool->chunk_count + 1) * sizeof(*chunks));
	if (!chunks)
		return false;
	pool->chunks = chunks;
	chunk = aligned_alloc(POOL_ALIGN, count * pool->size);
	if (!chunk)
		return false;
	memset(chunk, 0, count * pool->size);
	chunks[pool->chunk_count++] = chunk;
	pool->made += count;
	for (unsigned i = count; i-- > 0;)
		pool_give(pool, chunk + i * pool->size);
	return true;
}

bool pool_make(struct pool *pool, unsigned count)
{
	while (pool->left < count)
		if (!pool_grow(pool))
			return false;
	return true;
}
