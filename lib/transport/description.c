/* SPDX-License-Identifier: BSD-3-Clause */
/* description.c - a transport as others may look at it. Called by its owner, or while the owner
 * stands aside: so nothing here walks further than LOOK_CELLS.
 */
#include <string.h>

#include <rte_common.h>

#include <transport/flight.h>

#define LOOK_CELLS 4096 /* cells of the table of peers, in one call */

static const char *peer_state(const struct peer *peer)
{
	if (peer->self)
		return "self";
	if (peer->address_state == ADDRESS_ENDED)
		return "ended";
	if (peer->address_state == ADDRESS_KNOWN)
		return "known";
	return peer->asking ? "asking" : "unknown";
}

static void peer_describe(const struct peer *peer, uint64_t now, struct peer_info *info)
{
	*info = (struct peer_info){
		.process = peer->process,
		.state = peer_state(peer),
		.incarnation = peer->incarnation,
		.in_flight = peer_in_flight(peer),
		.credit = peer->credit,
		.window = peer->window,
		.rtt = peer->rtt,
		.rtt_variance = peer->variance,
		.delay_min = peer->delay_min,
		.rto = flight_timeout(peer),
		.retransmits = peer->retransmits,
		.timeouts = peer->backoff,
		.queued = peer->queued,
		.arriving = peer->assembly_count,
		.held = peer->reorder ? peer->reorder->count : 0,
		.heard_ago = now - RTE_MIN(now, peer->heard),
		.reorders = peer->reorder_factor != 0,
		.stalled = peer->stalled,
	};
	memcpy(info->address, peer->address, sizeof(info->address));
}

unsigned transport_peers(
	const struct transport *transport, uint32_t *cursor, struct peer_info *info, unsigned count)
{
	const struct peer_table *table = &transport->peers;
	uint64_t end = RTE_MIN((uint64_t)*cursor + LOOK_CELLS, (uint64_t)table->mask + 1);
	uint64_t now = clock_now(transport->clock);
	uint64_t i = *cursor;
	unsigned n = 0;

	owner_check(&transport->owner);
	for (; i < end && n < count; i++)
		if (table->cells[i].peer)
			peer_describe(table->cells[i].peer, now, &info[n++]);
	*cursor = i > table->mask ? UINT32_MAX : (uint32_t)i;
	return n;
}

void transport_describe(const struct transport *transport, struct transport_info *info)
{
	owner_check(&transport->owner);
	*info = (struct transport_info){
		.incarnation = transport->options.incarnation,
		.full_checksum = transport->options.full_checksum,
		.peers = transport->peers.count,
		.peers_max = transport->peers.max,
		.in_flight = transport->in_flight,
		.in_flight_max = transport->in_flight_max,
		.held = transport->held,
		.held_max = transport->held_max,
		.ready = transport->ready_count,
		.outbox = transport->outbox_count,
		.looped = transport->loop_tail - transport->loop_head,
		.capacity = transport->capacity,
		.credit = transport->credit,
		.senders = RTE_MAX(transport->senders, transport->senders_before),
		.messages = transport->messages,
	};
}
