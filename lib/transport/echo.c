/* SPDX-License-Identifier: BSD-3-Clause */
/* echo.c - echo questions to other processes, and the answers to theirs. Owned by one poll core.
 *
 * It works beside all streams: nothing of it is acknowledged, sent again, or waits for anything
 * else.
 *
 * I1. A question makes no peer where it arrives, and its answer is no longer than it (wire/frame.c)
 *     and goes where it came from. Answers are bounded per turn (PONGS_MAX) and in time
 *     (answer_allowed()), so that nobody can keep this core, or a third, busy by asking.
 * I2. Answers leave in the next transmit half, before data, and at once: what they say of their
 *     time here is true.
 * I3. Every transport_ping() ends in one ping_done().
 * I4. A host that was away does not know when a frame came: it takes all the time since its last
 *     look, GAP_LEAST or more (arrival_estimate()), for its own. So a shorter time is what it was,
 *     and a longer one the most that it may have been.
 */
#include <transport/echo.h>

#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <transport/address.h>
#include <transport/name.h>
#include <transport/neighbour.h>
#include <transport/outbox.h>

#define ANSWER_BYTES_LEAST 512

/* --- sizes */

/* The longest transport header and padding that a frame has room for. */
static uint32_t echo_capacity(const struct transport *transport)
{
	return RTE_MIN(transport->port->frame_size - transport->encapsulation.bytes,
		(uint32_t)PORT_MTU_MAX);
}

/* What PTL_MTU counts in front of the transport header. */
static uint32_t echo_overhead(const struct transport *transport)
{
	return transport->encapsulation.bytes - FRAME_ETHERNET_BYTES + transport->port->around;
}

uint32_t transport_ping_least(const struct transport *transport)
{
	owner_check(&transport->owner);
	return echo_overhead(transport) + FRAME_HEADER_BYTES;
}

uint32_t transport_ping_most(const struct transport *transport)
{
	owner_check(&transport->owner);
	return echo_overhead(transport) + echo_capacity(transport);
}

/* --- answering */

/* I1. A bucket that fills with time. */
static bool answer_allowed(struct transport *transport, uint32_t length)
{
	struct echoes *echoes = &transport->echoes;

	return echoes->pong_count < PONGS_MAX &&
	       answer_spend(transport, &echoes->answers_paid,
		       RTE_MAX(length, (uint32_t)ANSWER_BYTES_LEAST));
}

void echo_asked(struct transport *transport, const struct frame_header *frame, const uint8_t *from)
{
	struct echoes *echoes = &transport->echoes;
	struct pong *pong = &transport->pongs[echoes->pong_count];
	uint32_t length = RTE_MIN(frame->ack, echo_capacity(transport));

	COUNT(transport, pings_received);
	if (!answer_allowed(transport, length)) {
		COUNT(transport, dropped_ping);
		return;
	}
	echoes->pong_count++;
	echoes->busy = true;
	pong->looped = !from;
	if (from)
		memcpy(pong->to, from, FRAME_ADDRESS_BYTES);
	pong->arrival = transport->arrival;
	pong->frame = (struct frame){
		.type = FRAME_PONG,
		.flags = FRAME_FULL_SUM,
		.length = (uint16_t)length,
		.destination_nid = frame->source_nid,
		.destination_pid = frame->source_pid,
		.destination_incarnation = frame->source_incarnation,
		.psn = frame->psn,
		.ack = frame->length,
		.echo = frame->timestamp,
		.first = echo_capacity(transport),
	};
}

static void pongs_send(struct transport *transport)
{
	struct echoes *echoes = &transport->echoes;

	for (unsigned i = 0; i < echoes->pong_count; i++) {
		struct pong *pong = &transport->pongs[i];

		pong->frame.delay =
			(uint32_t)RTE_MIN(transport->now - pong->arrival, (uint64_t)UINT32_MAX);
		if (outbox_send(transport, &pong->frame, NULL, pong->looped ? NULL : pong->to))
			COUNT(transport, pongs_sent);
		else
			COUNT(transport, dropped_ping);
	}
	echoes->pong_count = 0;
}

/* --- asking */

static void ping_end(struct transport *transport, struct ping *ping, enum ping_outcome outcome)
{
	const struct transport_upcalls *upcalls = &transport->upcalls;

	link_remove(&ping->link);
	ping->outcome = outcome;
	upcalls->ping_done(upcalls->context, ping);
}

void transport_ping(struct transport *transport, struct ping *ping)
{
	struct echoes *echoes = &transport->echoes;
	const struct peer *peer;

	owner_check(&transport->owner);
	peer = peer_get(transport, ping->to, false);
	transport_stir(transport);
	ping->begun = 0; /* the clock was read in the last turn, perhaps long ago */
	ping->sent = 0;
	ping->number = ++echoes->number;
	list_append(&echoes->pings, &ping->link);
	if (!peer)
		ping_end(transport, ping, PING_NO_MEMORY);
	else if (ping->size < transport_ping_least(transport) ||
		 ping->size > transport_ping_most(transport))
		ping_end(transport, ping, PING_BAD_SIZE);
	else
		echoes->busy = true;
}

/* Sends the question, once there is an address to send it to. */
static void ping_send(struct transport *transport, struct ping *ping)
{
	struct peer *peer = peer_get(transport, ping->to, false);
	uint32_t overhead = echo_overhead(transport);
	uint32_t least = transport_ping_least(transport);
	struct frame frame = {
		.type = FRAME_PING,
		.flags = FRAME_FULL_SUM,
		.length = (uint16_t)(ping->size - overhead),
		.destination_nid = ping->to.nid,
		.destination_pid = ping->to.pid,
		.psn = ping->number,
		.ack = RTE_MAX(RTE_MIN(ping->answer, ping->size), least) - overhead,
	};

	if (!peer)
		return;
	if (peer->address_state != ADDRESS_KNOWN) {
		address_ask(transport, peer);
		return;
	}
	if (!outbox_send(transport, &frame, NULL, peer->self ? NULL : peer->address))
		return;
	COUNT(transport, pings_sent);
	memcpy(ping->address, peer->address, FRAME_ADDRESS_BYTES);
	ping->sent = transport->now;
	peer->sent = transport->now;
}

/* The reason why no answer came. A silent process is challenged, because its incarnation and
 * address may have changed. */
static enum ping_outcome ping_failure(struct transport *transport, struct ping *ping)
{
	struct peer *peer = peer_table_find(&transport->peers, ping->to);
	uint32_t hop = encapsulation_hop(&transport->encapsulation, ping->to.nid);

	ping->absent = peer && address_absent(transport, peer);
	if (ping->sent != 0) {
		if (peer)
			address_challenge(transport, peer, NULL);
		return PING_NO_ANSWER;
	}
	if (peer && peer->address_state == ADDRESS_KNOWN)
		return PING_NOT_SENT;
	if (transport->neighbours && !neighbour_find(transport, hop))
		return PING_NO_NODE;
	return PING_NO_ADDRESS;
}

static void pings_run(struct transport *transport)
{
	list_each (struct ping, ping, &transport->echoes.pings, link) {
		if (ping->begun == 0)
			ping->begun = transport->now;
		if (ping->sent == 0)
			ping_send(transport, ping);
		if (transport->now - ping->begun >= ping->timeout)
			ping_end(transport, ping, ping_failure(transport, ping));
	}
}

/* The question that a frame answers; NULL: none. */
static struct ping *ping_find(struct transport *transport, const struct frame_header *frame)
{
	const struct process from = {frame->source_nid, frame->source_pid};

	list_each (struct ping, ping, &transport->echoes.pings, link)
		if (ping->number == frame->psn && ping->sent != 0 && process_same(ping->to, from))
			return ping;
	return NULL;
}

void echo_answered(
	struct transport *transport, const struct peer *peer, const struct frame_header *frame)
{
	uint64_t away = transport->now - transport->arrival;
	struct ping *ping = ping_find(transport, frame);

	if (!ping) {
		COUNT(transport, dropped_pong);
		return;
	}
	COUNT(transport, pongs_received);
	ping->incarnation = frame->source_incarnation;
	ping->answered = frame->length + echo_overhead(transport);
	ping->capacity = frame->first + echo_overhead(transport);
	ping->round_trip = transport->now - ping->sent;
	ping->residence = RTE_MIN((uint64_t)frame->delay, ping->round_trip);
	ping->network = ping->round_trip - ping->residence;
	ping->network -= RTE_MIN(away, ping->network);
	ping->exact = frame->delay < GAP_LEAST && away < GAP_LEAST; /* I4 */
	if (!peer->self)
		memcpy(ping->address, peer->address, FRAME_ADDRESS_BYTES);
	ping_end(transport, ping, PING_ANSWERED);
}

/* --- the turn */

void echo_run(struct transport *transport)
{
	struct echoes *echoes = &transport->echoes;
	unsigned before = transport->outbox_count;

	pongs_send(transport);
	pings_run(transport);
	names_run(transport);
	echoes->busy = !list_empty(&echoes->pings) || !list_empty(&transport->names.queries);
	if (transport->outbox_count > before && !transport->blocked)
		outbox_flush(transport);
}

uint64_t echo_deadline(const struct transport *transport)
{
	const struct echoes *echoes = &transport->echoes;
	uint64_t due = UINT64_MAX;

	if (echoes->pong_count > 0)
		return 0;
	list_each (const struct ping, ping, &echoes->pings, link) {
		const struct peer *peer = peer_table_find(&transport->peers, ping->to);

		due = RTE_MIN(due, ping->begun + RTE_MIN(ping->timeout, UINT64_MAX - ping->begun));
		/* There was no room for it, or it is new. */
		if (ping->sent == 0 && (!peer || !peer->asking))
			due = RTE_MIN(due, transport->now + RETRY_DELAY);
	}
	return due;
}

void transport_ping_abandon(struct transport *transport)
{
	struct ping *ping;

	owner_check(&transport->owner);
	while ((ping = list_first(&transport->echoes.pings, struct ping, link)))
		ping_end(transport, ping, PING_CLOSED);
}
