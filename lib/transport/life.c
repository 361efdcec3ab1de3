/* SPDX-License-Identifier: BSD-3-Clause */
/* life.c - a peer's lives: what an answer says of them, and what ends with one. Owned by one poll
 * core. */
#include <transport/life.h>

#include <base/log.h>
#include <transport/ack.h>
#include <transport/acknowledgement.h>
#include <transport/address.h>
#include <transport/congestion.h>
#include <transport/flight.h>
#include <transport/incoming.h>
#include <transport/zcopy.h>
#include <transport/ready.h>
#include <transport/recovery.h>

static void messages_fail(
	struct transport *transport, struct message *message, enum transport_fail why)
{
	while (message) {
		struct message *next = message->next;

		message_done(transport, message, why);
		message = next;
	}
}

/* Drops what is in flight. */
static void flight_drop(struct transport *transport, struct peer *peer)
{
	outgoing_turn(peer, OUTGOING_CLOSED);
	peer->stalled = false;
	peer->gathered = 0;
	if (!peer->flight)
		return;
	for (uint32_t psn = peer->tx_una; psn != peer->tx_next; psn++) {
		if (bitmap_test(peer->flight->sacked, psn))
			continue;
		flight_forget(transport, peer, psn);
	}
	peer->tx_una = peer->tx_next;
	peer->backoff = 0;
	flight_end(transport, peer);
}

static uint32_t messages_count(const struct message *message)
{
	uint32_t count = 0;

	for (; message; message = message->next)
		count++;
	return count;
}

void peer_fail_begun(struct transport *transport, struct peer *peer, enum transport_fail why)
{
	struct message *unacked = peer->unacked.head;
	struct message *open = peer->open.head;

	flight_drop(transport, peer);
	peer->unacked.head = NULL;
	peer->open.head = NULL;
	peer->open_count = 0;
	peer->queued -= messages_count(unacked) + messages_count(open);
	messages_fail(transport, unacked, why);
	messages_fail(transport, open, why);
}

void peer_fail(struct transport *transport, struct peer *peer, enum transport_fail why)
{
	struct message *waiting = peer->waiting.head;

	/* What an upcall sends meanwhile is a new try, which begins with asking. */
	peer->waiting.head = NULL;
	peer->queued -= messages_count(waiting);
	peer->stop_count = 0;
	if (!peer->self) {
		peer->asking = false;
		if (peer->address_state == ADDRESS_KNOWN)
			address_turn(peer, ADDRESS_LAPSED);
	}
	sender_unready(transport, peer);
	peer_fail_begun(transport, peer, why);
	messages_fail(transport, waiting, why);
}

/* The life that was known is over. Messages that wait while no life is known stay: they
 * are for the life that answers first. */
static void peer_over(struct transport *transport, struct peer *peer, enum incoming_state incoming)
{
	acknowledgement_forget(transport, peer);
	if (peer->address_state == ADDRESS_KNOWN)
		peer_fail(transport, peer, TRANSPORT_RESTARTED);
	if (incoming == INCOMING_NONE || incoming_is_open(peer))
		incoming_close(transport, peer, incoming, TRANSPORT_RESTARTED);
}

void peer_restarted(struct transport *transport, struct peer *peer, uint32_t incarnation)
{
	COUNT(transport, peers_restarted);
	log_debug(LOG_TRANSPORT, "%s: %u:%u has restarted as %u, was %u", transport->port->name,
		peer->process.nid, peer->process.pid, incarnation, peer->incarnation);
	peer->incarnation = incarnation;
	peer->rtt = 0;
	peer->delay_period = 0;
	peer->credit = CREDIT_INITIAL;
	congestion_reset(peer);
	peer_over(transport, peer, INCOMING_NONE);
	address_turn(peer, ADDRESS_UNKNOWN);
}

void peer_ended(struct transport *transport, struct peer *peer)
{
	log_debug(LOG_TRANSPORT, "%s: %u:%u has ended", transport->port->name, peer->process.nid,
		peer->process.pid);
	/* An answer from before is out of date, too. */
	peer->question = ++transport->questions;
	/* Should it live after all, its streams are not begun again. */
	peer_over(transport, peer, INCOMING_GIVEN_UP);
	address_turn(peer, ADDRESS_ENDED);
	peer->heard = transport->now;
}

void life_psn(struct transport *transport, struct peer *peer, uint32_t first)
{
	/* The stream goes on, or is refused. */
	if (peer->flight || peer->open.head)
		return;
	if (first != peer->first && peer->outgoing != OUTGOING_CLOSED)
		outgoing_turn(peer, OUTGOING_CLOSED);
	address_psn(transport, peer, first);
}

/* A stream of which nothing was acknowledged began with another psn than the peer says, who does
 * not take that one any more. Its messages may have arrived before the peer forgot this process. */
static void life_forgotten(struct transport *transport, struct peer *peer, uint32_t first)
{
	peer_fail_begun(transport, peer, TRANSPORT_RESTARTED);
	address_psn(transport, peer, first);
	if (sender_has_work(peer))
		sender_ready(transport, peer);
}

void life_told(struct transport *transport, struct peer *peer, const struct frame_header *frame,
	const uint8_t *from)
{
	if (!address_answered(transport, peer, frame)) {
		COUNT(transport, dropped_stale);
		return;
	}
	if (peer->incarnation == 0)
		peer->incarnation = frame->source_incarnation;
	else if (peer->incarnation != frame->source_incarnation)
		peer_restarted(transport, peer, frame->source_incarnation);
	if (peer->address_state == ADDRESS_ENDED)
		address_turn(peer, ADDRESS_UNKNOWN);
	address_learn(transport, peer, from);
	acknowledgement_told(transport, peer, frame);
	recovery_answered(transport, peer);
	if (peer->address_state != ADDRESS_KNOWN) {
		address_psn(transport, peer, frame->first);
		address_complete(transport, peer);
	} else if (peer->outgoing == OUTGOING_FIRST && peer->first != frame->first) {
		life_forgotten(transport, peer, frame->first);
	} else {
		life_psn(transport, peer, frame->first);
	}
}
