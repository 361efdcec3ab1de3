/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery.c - what was lost, and when to believe it. Owned by one poll core.
 *
 * Three means, the quickest first:
 *
 *     RACK     A frame is lost when one that was sent after it has been delivered, and it is itself
 *              overdue by the time that the network may need to reorder (nothing while no
 *              reordering was ever seen and DELIVERED_FOR_LOSS frames beyond it were delivered).
 *     probe    When nothing is heard for two round trips, the last frame is sent again: what it is
 *              answered with lets RACK find the rest.
 *     timeout  When nothing is heard for rtt + 4 variance, at least TIMEOUT_MIN, everything that is
 *              not acknowledged counts as lost; each timeout in a row doubles the next. After
 *              ASK_AFTER of them the peer is asked for its address; its answer shows that frames
 *              get through again, and the next timeout is a short one.
 *
 * I1. A peer whose acknowledgements have made no progress for peer_timeout (but see silence.h) is
 *     dead, whatever else is heard from it. A peer whose host refuses what is in flight to it, or
 *     whose name no process has, is dead after REFUSED_LIFE, unless it is heard, or answers:
 *     refusals are no proof, and what a process sent before its end may still be on its way.
 */
#include <transport/recovery.h>

#include <string.h>

#include <rte_common.h>

#include <base/log.h>
#include <transport/acknowledgement.h>
#include <transport/address.h>
#include <transport/congestion.h>
#include <transport/flight.h>
#include <transport/ready.h>
#include <transport/sender.h>
#include <transport/silence.h>

#define DELIVERED_FOR_LOSS 3 /* frames beyond a gap, while no reordering was seen */
#define REFUSALS           2 /* of frames in flight, or questions, after which */
#define REFUSED_LIFE       (100 * MILLISECOND) /* of silence are enough */
#define ASK_AFTER          3 /* timeouts in a row: it may have moved or restarted */

static uint64_t recovery_end(const struct transport *transport, const struct peer *peer)
{
	uint64_t end = silence_end(transport, peer->progress);

	if (peer->flight->refusals >= REFUSALS && peer->heard < peer->flight->refused_from)
		end = RTE_MIN(end, peer->flight->refused_from + REFUSED_LIFE);
	return end;
}

uint64_t recovery_due(const struct transport *transport, const struct peer *peer)
{
	uint64_t due = flight_due(peer);

	if (!peer->flight || peer->flight->refusals < REFUSALS)
		return due;
	return RTE_MIN(due, RTE_MAX(recovery_end(transport, peer), transport->now));
}

static uint64_t reorder_window(const struct peer *peer)
{
	const struct flight *flight = peer->flight;
	uint64_t window = (uint64_t)peer->delay_min / 4 * RTE_MAX(peer->reorder_factor, 1u);

	if (peer->reorder_factor == 0 && flight->sacked_count >= DELIVERED_FOR_LOSS)
		return 0;
	return RTE_MIN(window, peer->rtt);
}

void recovery_lose(struct peer *peer, uint32_t psn)
{
	bitmap_set(peer->flight->lost, psn);
	peer->flight->lost_count++;
	peer->flight->disturbed = true;
}

void recovery_detect(struct transport *transport, struct peer *peer)
{
	struct flight *flight = peer->flight;
	uint64_t lost_after = flight->rack_rtt + reorder_window(peer);
	uint32_t lost = flight->lost_count;
	uint64_t due = UINT64_MAX;

	for (uint32_t psn = peer->tx_una; psn != peer->tx_next; psn++) {
		const struct slot *slot = &flight->slots[psn % FRAME_WINDOW];

		if (bitmap_test(flight->sacked, psn) || bitmap_test(flight->lost, psn))
			continue;
		if (slot->sent > flight->rack_sent ||
			(slot->sent == flight->rack_sent && !serial_before(psn, flight->rack_psn)))
			continue;
		if (slot->sent + lost_after <= transport->now) {
			recovery_lose(peer, psn);
		} else {
			due = RTE_MIN(due, slot->sent + lost_after);
		}
	}
	flight->reorder_due = due == UINT64_MAX ? 0 : due;
	if (flight->reorder_due != 0)
		peer_wake(transport, peer, due);
	if (flight->lost_count == lost)
		return;
	congestion_lost(transport, peer, flight->lost_count - lost);
	sender_ready(transport, peer);
}

/* The last frame that has not arrived is sent once more, whatever the window says. */
static void recovery_probe(struct transport *transport, struct peer *peer)
{
	uint32_t psn = peer->tx_next - 1;

	while (bitmap_test(peer->flight->sacked, psn))
		psn--;
	if (!sender_resend(transport, peer, psn)) {
		peer->data_sent = transport->now;
		return;
	}
	peer->flight->disturbed = true;
	peer->flight->probed = true;
	COUNT(transport, retransmits_probe);
}

/* When this core itself was away for a good part of the timeout, its frames may have left late, and
 * half the time is given again. */
static bool recovery_excused(struct transport *transport, const struct peer *peer)
{
	struct flight *flight = peer->flight;
	uint64_t timeout = flight_timeout(peer);
	uint64_t late = transport->now - flight->timeout_from - timeout;

	if (flight->excused || late < timeout / 2)
		return false;
	flight->excused = true;
	flight->timeout_from = transport->now - timeout / 2;
	return true;
}

static void recovery_expire(struct transport *transport, struct peer *peer)
{
	struct flight *flight = peer->flight;

	COUNT(transport, timeouts);
	if (peer->backoff < UINT8_MAX)
		peer->backoff++;
	flight->timeout_from = transport->now;
	flight->excused = false;
	flight->expired = true;
	for (uint32_t psn = peer->tx_una; psn != peer->tx_next; psn++) {
		if (bitmap_test(flight->sacked, psn))
			continue;
		if (!bitmap_test(flight->lost, psn))
			recovery_lose(peer, psn);
		flight_outline(transport, peer, psn); /* internal.h I2 */
	}
	flight->reorder_due = 0;
	congestion_timeout(transport, peer);
	sender_ready(transport, peer);
	if (peer->backoff == ASK_AFTER)
		address_challenge(transport, peer, NULL);
	else if (peer->backoff > ASK_AFTER)
		address_challenge_still(transport, peer);
	if (address_absent(transport, peer))
		recovery_refused(transport, peer);
}

/* Do frames or acknowledgements of the process to itself wait in it? They are not lost, however
 * late it is. */
static bool recovery_waits(const struct transport *transport, const struct peer *peer)
{
	return peer->self &&
	       (transport->loop_head != transport->loop_tail || peer->ack_list != ACK_NONE);
}

bool recovery_run(struct transport *transport, struct peer *peer)
{
	struct flight *flight = peer->flight;

	if (!flight)
		return true;
	if (recovery_waits(transport, peer)) {
		flight->timeout_from = transport->now;
		peer->progress = transport->now;
	}
	if (transport->now >= recovery_end(transport, peer)) {
		COUNT(transport, peers_dead);
		log_debug(LOG_TRANSPORT, "%s: %u:%u acknowledges nothing any more",
			transport->port->name, peer->process.nid, peer->process.pid);
		return false;
	}
	if (transport->now >= flight->timeout_from + flight_timeout(peer)) {
		if (!recovery_excused(transport, peer))
			recovery_expire(transport, peer);
		return true;
	}
	if (flight->reorder_due != 0 && transport->now >= flight->reorder_due)
		recovery_detect(transport, peer);
	if (transport->now >= flight_probe_due(peer))
		recovery_probe(transport, peer);
	return true;
}

void recovery_refused(struct transport *transport, struct peer *peer)
{
	struct flight *flight = peer->flight;

	if (flight->refusals == 0 || peer->heard >= flight->refused_from) {
		flight->refusals = 0;
		flight->refused_from = transport->now;
	}
	if (flight->refusals < REFUSALS)
		flight->refusals++;
	address_challenge(transport, peer, NULL);
	peer_wake(transport, peer, RTE_MIN(recovery_due(transport, peer), address_due(peer)));
}

/* Is it of a frame in flight to the peer, or of the question that it is asked? To forge this takes
 * the numbers of frames. */
static bool refusal_fine(const struct transport *transport, const struct peer *peer,
	const struct frame_header *quote)
{
	if (quote->source_nid != transport->options.self.nid ||
		quote->source_pid != transport->options.self.pid ||
		quote->source_incarnation != transport->options.incarnation)
		return false;
	if (frame_type(quote) == FRAME_ASK)
		return address_asks(transport, peer, quote);
	return frame_type(quote) == FRAME_DATA &&
	       quote->destination_incarnation == peer->incarnation &&
	       quote->stream == peer->tx_stream &&
	       quote->psn - peer->tx_una < peer->tx_next - peer->tx_una;
}

void recovery_refusal(struct transport *transport, const uint8_t *bytes, const struct outer *outer)
{
	const struct frame_header *quote = (const void *)(bytes + outer->at);
	struct peer *peer;

	if (!transport->port->addressed || outer->length < sizeof(*quote)) {
		COUNT(transport, dropped_foreign);
		return;
	}
	acknowledgement_settle(transport);
	peer = peer_table_find(&transport->peers,
		(struct process){quote->destination_nid, quote->destination_pid});
	if (!peer || !refusal_fine(transport, peer, quote))
		return;
	COUNT(transport, refusals_received);
	if (peer->flight && memcmp(peer->address, outer->from, FRAME_ADDRESS_BYTES) == 0)
		recovery_refused(transport, peer);
}

void recovery_answered(struct transport *transport, struct peer *peer)
{
	if (!peer->flight)
		return;
	peer->flight->refusals = 0;
	if (peer->backoff == 0)
		return;
	peer->backoff = 0;
	peer->flight->timeout_from = transport->now;
	peer_wake(transport, peer, flight_due(peer));
}
