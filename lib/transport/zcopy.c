/* SPDX-License-Identifier: BSD-3-Clause */
/* zcopy.c - see zcopy.h. */
#include <transport/zcopy.h>

#include <string.h>

#include <base/guard.h>
#include <base/log.h>
#include <base/backoff.h>

#define AWAIT_ROUNDS  1000000u /* turns of others that may hold a frame when a transport closes */
#define ZCOPIES_CHUNK 32

/* The message's own reference outlives the others (L1), so nothing is ever left to do. The address
 * tells these frames from others'. */
static void zcopy_over(void *memory, void *context)
{
	(void)memory;
	(void)context;
}

void zcopy_init(struct transport *transport)
{
	pool_init(&transport->zcopy_pool, sizeof(struct zcopy), ZCOPIES_CHUNK, UINT32_MAX);
}

static struct zcopy *zcopy_of(struct transport *transport, struct message *message)
{
	struct zcopy *zcopy = message->zcopy;

	if (zcopy)
		return zcopy;
	zcopy = pool_take(&transport->zcopy_pool);
	if (!zcopy)
		return NULL;
	zcopy->shared.free_cb = zcopy_over;
	zcopy->shared.fcb_opaque = NULL;
	rte_mbuf_ext_refcnt_set(&zcopy->shared, 1);
	zcopy->message = message;
	message->zcopy = zcopy;
	return zcopy;
}

struct rte_mbuf *zcopy_tail(struct transport *transport, struct message *message, uint32_t bytes)
{
	uint64_t run;
	void *memory = map_run(&message->memory, message->framed, &run);
	/* L4 */
	bool there = run >= bytes &&
		     (!message->memory.vector ||
			     guard_probe(&message->memory, message->framed, bytes, false));
	struct zcopy *zcopy = there ? zcopy_of(transport, message) : NULL;
	struct rte_mbuf *tail = zcopy ? rte_pktmbuf_alloc(transport->port->pool) : NULL;

	if (!tail)
		return NULL;
	rte_mbuf_ext_refcnt_update(&zcopy->shared, 1);
	rte_pktmbuf_attach_extbuf(tail, memory, RTE_BAD_IOVA, (uint16_t)bytes, &zcopy->shared);
	tail->data_off = 0;
	tail->data_len = (uint16_t)bytes;
	tail->pkt_len = bytes;
	return tail;
}

void zcopy_join(struct rte_mbuf *head, struct rte_mbuf *tail)
{
	head->next = tail;
	head->nb_segs = 2;
}

bool zcopy_made(const struct rte_mbuf *mbuf)
{
	return mbuf->nb_segs == 2 && RTE_MBUF_HAS_EXTBUF(mbuf->next) &&
	       mbuf->next->shinfo->free_cb == zcopy_over;
}

struct rte_mbuf *zcopy_copy(struct rte_mempool *pool, const struct rte_mbuf *mbuf)
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

static bool zcopy_free(const struct zcopy *zcopy)
{
	/* Acquire pairs with the decrement by the thread that frees a frame: its reads are over. */
	return __atomic_load_n(&zcopy->shared.refcnt, __ATOMIC_ACQUIRE) == 1;
}

/* Frames to a peer that has failed may wait for a port that takes none. */
static void outbox_purge(struct transport *transport, const struct zcopy *zcopy)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < transport->outbox_count; i++) {
		struct rte_mbuf *mbuf = transport->outbox[i];

		if (zcopy_made(mbuf) && mbuf->next->shinfo == &zcopy->shared)
			rte_pktmbuf_free(mbuf);
		else
			transport->outbox[kept++] = mbuf;
	}
	transport->outbox_count = kept;
}

void zcopy_done(struct transport *transport, struct message *message, enum transport_fail why)
{
	struct zcopy *zcopy = message->zcopy;

	if (why != TRANSPORT_OK && !zcopy_free(zcopy))
		outbox_purge(transport, zcopy);
	if (zcopy_free(zcopy)) {
		pool_give(&transport->zcopy_pool, zcopy);
		message_tell(transport, message, why);
		return;
	}
	zcopy->why = why;
	zcopy->next = transport->zcopies_ended;
	transport->zcopies_ended = zcopy;
}

void zcopy_run(struct transport *transport)
{
	struct zcopy **link = &transport->zcopies_ended;
	struct zcopy *zcopy;

	while ((zcopy = *link)) {
		struct message *message = zcopy->message;
		enum transport_fail why = zcopy->why;

		if (!zcopy_free(zcopy)) {
			link = &zcopy->next;
			continue;
		}
		*link = zcopy->next;
		pool_give(&transport->zcopy_pool, zcopy);
		message_tell(transport, message, why);
	}
}

void zcopy_await(struct transport *transport)
{
	if (transport->zcopies_ended && transport->port->operations->recall)
		transport->port->operations->recall(transport->port);
	for (unsigned i = 0, looks = 0; i < AWAIT_ROUNDS && transport->zcopies_ended; i++) {
		zcopy_run(transport);
		if (!transport->zcopies_ended)
			break;
		if (!transport->options.wait || transport->options.wait() == 0)
			backoff(&looks);
	}
	if (!transport->zcopies_ended) {
		pool_free(&transport->zcopy_pool);
		return;
	}
	/* The counts must outlive the frames that refer to them, so they stay. */
	log_error("%s: frames still refer to memory of messages that have ended: do not use that "
		  "memory again before the process "
		  "ends",
		transport->port->name);
	while (transport->zcopies_ended) {
		struct zcopy *zcopy = transport->zcopies_ended;

		transport->zcopies_ended = zcopy->next;
		message_tell(transport, zcopy->message, zcopy->why);
	}
}
