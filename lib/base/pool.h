/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h - objects of one size, made in chunks that are kept until the pool goes. Owned by one poll
 * core.
 *
 * I1. pool_take() asks the system for memory only when no object is free, a chunk at a time, up to
 *     max objects, and makes a few objects of a chunk at a time.
 * I2. Objects are aligned to a cache line and hold what they held when they were given back, at
 *     first zeros; only the first word of a free object is the pool's.
 * I3. An object has a number, its place in the order of making. New ones are taken in that order.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool {
	void *free;    /* the first word of a free object is the next one */
	unsigned left; /* free ones */
	unsigned made;
	size_t size;
	char **chunks;
	unsigned chunk_count;
	unsigned chunk_shift;
	unsigned max;
};

/* size: rounded up to whole cache lines. chunk_objects: a power of two. */
void pool_init(struct pool *pool, size_t size, unsigned chunk_objects, unsigned max);
void pool_free(struct pool *pool);
/* pool_reserve() where there are not as many. */
bool pool_make(struct pool *pool, unsigned count);

/* Makes sure that count objects can be taken. */
static inline bool pool_reserve(struct pool *pool, unsigned count)
{
	return pool->left >= count || pool_make(pool, count);
}

/* One that pool_reserve() has found. */
static inline void *pool_take_reserved(struct pool *pool)
{
	void *object = pool->free;

	pool->free = *(void **)object;
	pool->left--;
	return object;
}

/* NULL: no memory, or max are taken. */
static inline void *pool_take(struct pool *pool)
{
	return pool_reserve(pool, 1) ? pool_take_reserved(pool) : NULL;
}

static inline void pool_give(struct pool *pool, void *object)
{
	*(void **)object = pool->free;
	pool->free = object;
	pool->left++;
}

static inline unsigned pool_taken(const struct pool *pool)
{
	return pool->made - pool->left;
}

/* The object of a number below `made`, taken or free. */
static inline void *pool_at(const struct pool *pool, unsigned number)
{
	unsigned mask = (1u << pool->chunk_shift) - 1;

	return pool->chunks[number >> pool->chunk_shift] + (number & mask) * pool->size;
}

#endif
