/* SPDX-License-Identifier: BSD-3-Clause */
/* flight.c - see flight.h. Owned by one poll core. */
#include <transport/flight.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <transport/outbox.h>
#include <transport/outline.h>

#define TIMEOUT_MIN     (1 * MILLISECOND)
#define TIMEOUT_INITIAL (5 * MILLISECOND) /* before the first round trip */
#define TIMEOUT_MAX     (250 * MILLISECOND)
#define BACKOFF_MAX     10u /* doublings */

/* --- buffers and outlines */

bool flight_outline(struct transport *transport, struct peer *peer, uint32_t psn)
{
	struct flight *flight = peer->flight;
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];
	struct outline *outline;

	if (bitmap_test(flight->outlined, psn))
		return true;
	outline = outline_make(&transport->outline_pool, outbox_header(slot->frame));
	if (!outline)
		return false;
	transport->in_flight -= slot->frame->nb_segs;
	rte_pktmbuf_free(slot->frame);
	slot->outline = outline;
	bitmap_set(flight->outlined, psn);
	flight->disturbed = true;
	return true;
}

void flight_forget(struct transport *transport, struct peer *peer, uint32_t psn)
{
	struct flight *flight = peer->flight;
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];

	if (!bitmap_test(flight->outlined, psn)) {
		slot_free(transport, flight, psn);
		return;
	}
	flight->small_count -= slot->outline->small;
	outline_free(&transport->outline_pool, slot->outline);
	bitmap_clear(flight->outlined, psn);
}

/* --- time */

uint64_t flight_timeout(const struct peer *peer)
{
	uint64_t timeout = TIMEOUT_INITIAL;
	unsigned backoff = RTE_MIN((unsigned)peer->backoff, BACKOFF_MAX);

	if (peer->rtt != 0)
		timeout = RTE_MAX(peer->rtt + 4 * (uint64_t)peer->variance, TIMEOUT_MIN);
	return RTE_MIN(timeout << backoff, RTE_MAX(TIMEOUT_MAX, timeout));
}

uint64_t flight_probe_due(const struct peer *peer)
{
	if (peer->flight->probed || peer->rtt == 0 || peer->backoff != 0 ||
		peer->flight->lost_count != 0)
		return UINT64_MAX;
	/* The time in the network alone: an answer that was lost was in its host until it was sent
	 * again, which says nothing of the next one. */
	return RTE_MAX(peer->data_sent, peer->progress) + 2 * (uint64_t)peer->delay + PROBE_MARGIN;
}

uint64_t flight_due(const struct peer *peer)
{
	const struct flight *flight = peer->flight;
	uint64_t due;

	if (!flight)
		return UINT64_MAX;
	due = flight->timeout_from + flight_timeout(peer);
	if (flight->reorder_due != 0)
		due = RTE_MIN(due, flight->reorder_due);
	return RTE_MIN(due, flight_probe_due(peer));
}
