/* SPDX-License-Identifier: BSD-3-Clause */
/* lease.c - see lease.h. */
#include <transport/lease.h>

#include <string.h>

#include <base/guard.h>
#include <base/log.h>
#include <base/backoff.h>

#define AWAIT_ROUNDS 1000000u /* turns of others that may hold a frame when a transport closes */
#define LEASES_CHUNK 32

/* The message's own reference outlives the others (L1), so nothing is ever left to do. The address
 * tells these frames from others'. */
static void lease_over(void *memory, void *context)
{
	(void)memory;
	(void)context;
}

void lease_init(struct transport *transport)
{
	pool_init(&transport->lease_pool, sizeof(struct lease), LEASES_CHUNK, UINT32_MAX);
}

static struct lease *lease_of(struct transport *transport, struct message *message)
{
	struct lease *lease = message->lease;

	if (lease)
		return lease;
	lease = pool_take(&transport->lease_pool);
	if (!lease)
		return NULL;
	lease->shared.free_cb = lease_over;
	lease->shared.fcb_opaque = NULL;
	rte_mbuf_ext_refcnt_set(&lease->shared, 1);
	lease->message = message;
	message->lease = lease;
	return lease;
}

struct rte_mbuf *lease_tail(struct transport *transport, struct message *message, uint32_t bytes)
{
	uint64_t run;
	void *memory = map_run(&message->memory, message->framed, &run);
	/* L4 */
	bool there = run >= bytes &&
		     (!message->memory.vector ||
			     guard_probe(&message->memory, message->framed, bytes, false));
	struct lease *lease = there ? lease_of(transport, message) : NULL;
	struct rte_mbuf *tail = lease ? rte_pktmbuf_alloc(transport->port->pool) : NULL;

	if (!tail)
		return NULL;
	rte_mbuf_ext_refcnt_update(&lease->shared, 1);
	rte_pktmbuf_attach_extbuf(tail, memory, RTE_BAD_IOVA, (uint16_t)bytes, &lease->shared);
	tail->data_off = 0;
	tail->data_len = (uint16_t)bytes;
	tail->pkt_len = bytes;
	return tail;
}

void lease_join(struct rte_mbuf *head, struct rte_mbuf *tail)
{
	head->next = tail;
	head->nb_segs = 2;
}

bool lease_made(const struct rte_mbuf *mbuf)
{
	return mbuf->nb_segs == 2 && RTE_MBUF_HAS_EXTBUF(mbuf->next) &&
	       mbuf->next->shinfo->free_cb == lease_over;
}

struct rte_mbuf *lease_copy(struct rte_mempool *pool, const struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(pool);
	const struct rte_mbuf *tail = mbuf->next;
	uint8_t *to;

	if (!copy)
		return NULL;
	copy->data_off = mbuf->data_off;
	if (mbuf->pkt_len > rte_pktmbuf_tailroom(copy)) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	to = rte_pktmbuf_mtod(copy, uint8_t *);
	memcpy(to, rte_pktmbuf_mtod(mbuf, const void *), mbuf->data_len);
	memcpy(to + mbuf->data_len, rte_pktmbuf_mtod(tail, const void *), tail->data_len);
	copy->data_len = (uint16_t)mbuf->pkt_len;
	copy->pkt_len = mbuf->pkt_len;
	return copy;
}

/* --- ends */

static bool lease_free(const struct lease *lease)
{
	/* Acquire pairs with the decrement by the thread that frees a frame: its reads are over. */
	return __atomic_load_n(&lease->shared.refcnt, __ATOMIC_ACQUIRE) == 1;
}

/* Frames to a peer that has failed may wait for a port that takes none. */
static void outbox_purge(struct transport *transport, const struct lease *lease)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < transport->outbox_count; i++) {
		struct rte_mbuf *mbuf = transport->outbox[i];

		if (lease_made(mbuf) && mbuf->next->shinfo == &lease->shared)
			rte_pktmbuf_free(mbuf);
		else
			transport->outbox[kept++] = mbuf;
	}
	transport->outbox_count = kept;
}

void lease_done(struct transport *transport, struct message *message, enum transport_fail why)
{
	struct lease *lease = message->lease;

	if (why != TRANSPORT_OK && !lease_free(lease))
		outbox_purge(transport, lease);
	if (lease_free(lease)) {
		pool_give(&transport->lease_pool, lease);
		message_tell(transport, message, why);
		return;
	}
	lease->why = why;
	lease->next = transport->lent;
	transport->lent = lease;
}

void lease_run(struct transport *transport)
{
	struct lease **link = &transport->lent;
	struct lease *lease;

	while ((lease = *link)) {
		struct message *message = lease->message;
		enum transport_fail why = lease->why;

		if (!lease_free(lease)) {
			link = &lease->next;
			continue;
		}
		*link = lease->next;
		pool_give(&transport->lease_pool, lease);
		message_tell(transport, message, why);
	}
}

void lease_await(struct transport *transport)
{
	if (transport->lent && transport->port->operations->recall)
		transport->port->operations->recall(transport->port);
	for (unsigned i = 0, looks = 0; i < AWAIT_ROUNDS && transport->lent; i++) {
		lease_run(transport);
		if (!transport->lent)
			break;
		if (!transport->options.wait || transport->options.wait() == 0)
			backoff(&looks);
	}
	if (!transport->lent) {
		pool_free(&transport->lease_pool);
		return;
	}
	/* The counts must outlive the frames that refer to them, so they stay. */
	log_error("%s: frames still refer to memory of messages that have ended: do not use that "
		  "memory again before the process "
		  "ends",
		transport->port->name);
	while (transport->lent) {
		struct lease *lease = transport->lent;

		transport->lent = lease->next;
		message_tell(transport, lease->message, lease->why);
	}
}
