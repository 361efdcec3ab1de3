/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - chunks of objects; see pool.h. */
#include <base/pool.h>

#include <stdlib.h>
#include <string.h>

#define POOL_ALIGN 64

void pool_init(struct pool *pool, size_t size, unsigned chunk_objects, unsigned max)
{
	memset(pool, 0, sizeof(*pool));
	pool->size = (size + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1);
	pool->chunk_objects = chunk_objects;
	pool->max = max;
}

void pool_free(struct pool *pool)
{
	void *chunk;

	while ((chunk = pool->chunks) != NULL) {
		pool->chunks = *(void **)chunk;
		free(chunk);
	}
	pool->free = NULL;
}

/* A chunk is a line that links it to the next chunk, and its objects. */
static bool pool_grow(struct pool *pool)
{
	unsigned count = pool->chunk_objects;
	char *chunk;
	unsigned i;

	if (count > pool->max - pool->made)
		count = pool->max - pool->made;
	if (count == 0)
		return false;
	chunk = aligned_alloc(POOL_ALIGN, POOL_ALIGN + count * pool->size);
	if (chunk == NULL)
		return false;
	*(void **)(void *)chunk = pool->chunks;
	pool->chunks = chunk;
	for (i = count; i > 0; i--) {
		void *object = chunk + POOL_ALIGN + (i - 1) * pool->size;

		*(void **)object = pool->free;
		pool->free = object;
	}
	pool->made += count;
	return true;
}

bool pool_reserve(struct pool *pool, unsigned count)
{
	while (pool->made - pool->taken < count)
		if (!pool_grow(pool))
			return false;
	return true;
}
