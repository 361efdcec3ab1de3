/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h - objects of one size, made in chunks that are kept until the pool goes. Owned by one poll
 * core.
 *
 * I1. pool_take() asks the system for memory only when no object is free, a chunk at a time, up to
 *     max objects.
 * I2. Objects are aligned to a cache line and hold what they held when they were given back.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool {
	void *free; /* the first word of a free object is the next one */
	void *chunks;
	size_t size;
	unsigned chunk_objects;
	unsigned made;
	unsigned max;
	unsigned taken;
};

/* size: rounded up to whole cache lines. */
void pool_init(struct pool *pool, size_t size, unsigned chunk_objects, unsigned max);
void pool_free(struct pool *pool);
/* Makes sure that count objects can be taken. */
bool pool_reserve(struct pool *pool, unsigned count);

static inline void *pool_take(struct pool *pool)
{
	void *object;

	if (pool->free == NULL && !pool_reserve(pool, 1))
		return NULL;
	object = pool->free;
	pool->free = *(void **)object;
	pool->taken++;
	return object;
}

static inline void pool_give(struct pool *pool, void *object)
{
	*(void **)object = pool->free;
	pool->free = object;
	pool->taken--;
}

#endif
