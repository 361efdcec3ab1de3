/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h - the buffers of ports.
 *
 * I1. A pool is never freed: frames of a closed port may still lie in another port's queue or in a
 *     device. It is parked, and the next port of its kind takes it over.
 *
 * I2. A buffer that a thread frees goes to the thread's cache first, where no other thread can take
 *     it, and an idle thread keeps it there. So at most POOL_THREADS threads have caches at a time.
 *     The caches are small, and are emptied when their threads end. A pool has as many more buffers
 *     as all caches can hold (POOL_ASIDE), so they never leave others without.
 *
 * I3. In memory of the process's own a buffer is made when none of those made is free. Before that,
 *     none of its pages are touched. A thread that finds none free makes some. Free ones are used
 *     again in the order last in, first out, under one lock, which caches keep from being busy. A
 *     thread's cache is made when the pool has been given buffers for a while: a filled cache of
 *     long buffers is a page for each of them.
 */
#ifndef PMD_GLUE_POOL_H
#define PMD_GLUE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_config.h>

struct rte_mempool;

#define POOL_THREADS 16u
/* Their numbers, which DPDK has for threads, are the last ones: EAL gives out the first. */
#define POOL_LCORES (RTE_MAX_LCORE - POOL_THREADS)
/* buffers; DPDK empties a cache of half as many more */
#define POOL_CACHE 32u
#define POOL_ASIDE (POOL_THREADS * POOL_CACHE * 3 / 2) /* in all caches */

/* Once, before the first pool. */
void pool_prepare(void);
/* A pool whose buffers hold frame_size bytes behind the headroom, enough for rings of `descriptors`
 * frames and what the transport keeps. `copied`: the device copies frames, so that the buffers may
 * lie in any memory. NULL after an error line. */
struct rte_mempool *mempool_take(
	const char *port, uint32_t frame_size, uint32_t descriptors, int socket, bool copied);
void mempool_give(struct rte_mempool *pool);
/* Empties the caches of the thread that has this number in EAL: the caller itself, or one that has
 * ended. Needs no lock. */
void pool_empty_caches(unsigned lcore);
/* How many buffers are not free; exact while nobody takes or gives one. */
uint64_t pool_used(const struct rte_mempool *pool);

/* Bytes that such a pool takes: without hugepages EAL is started with room for those that it holds
 * itself. */
size_t pool_bytes(uint32_t frame_size, uint32_t descriptors);

#endif
