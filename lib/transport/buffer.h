/* buffer.h - takes the buffers of frames from a port's pool and gives them back, without a call where the thread's cache of the
 * pool has room. Any thread that may use the pool.
 *
 * B1. A buffer in a pool has one reference, one segment and no successor: so says DPDK of all of them (rte_mbuf_raw_alloc()).
 */
#ifndef TRANSPORT_BUFFER_H
#define TRANSPORT_BUFFER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
		      offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4 &&
		      offsetof(struct rte_mbuf, port) == offsetof(struct rte_mbuf, data_off) + 6,
	"four fields in a word");

/* A buffer whose data starts at `offset`, with so many references; it has no data yet. NULL: none left. */
static inline struct rte_mbuf *buffer_take(
	struct rte_mempool *pool, uint32_t offset, unsigned references)
{
	struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, rte_lcore_id());
	uint64_t word = offset | (uint64_t)references << 16 | UINT64_C(1) << 32 |
			(uint64_t)RTE_MBUF_PORT_INVALID << 48;
	void *object;
	struct rte_mbuf *mbuf;

	if (likely(cache != NULL && cache->len != 0))
		object = cache->objs[--cache->len];
	else if (rte_mempool_generic_get(pool, &object, 1, cache) != 0)
		return NULL;
	mbuf = object;
	memcpy(&mbuf->rearm_data, &word, sizeof(word));
	mbuf->ol_flags = 0;
	return mbuf;
}

/* Drops one reference to a frame, and to what else it consists of. */
static inline void buffer_drop(struct rte_mbuf *mbuf)
{
	struct rte_mempool_cache *cache;

	if (unlikely(mbuf->nb_segs != 1 || !RTE_MBUF_DIRECT(mbuf))) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	/* Acquire: whoever dropped the last other reference has done with the frame. */
	if (__atomic_load_n(&mbuf->refcnt, __ATOMIC_ACQUIRE) != 1) {
		if (__atomic_sub_fetch(&mbuf->refcnt, 1, __ATOMIC_ACQ_REL) != 0)
			return;
		rte_mbuf_refcnt_set(mbuf, 1);
	}
	cache = rte_mempool_default_cache(mbuf->pool, rte_lcore_id());
	if (likely(cache != NULL && cache->len < cache->flushthresh))
		cache->objs[cache->len++] = mbuf;
	else
		rte_mempool_generic_put(mbuf->pool, (void **)&mbuf, 1, cache);
}

#endif
