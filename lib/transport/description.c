/* SPDX-License-Identifier: BSD-3-Clause */
/* description.c - a transport as others may look at it. Called by its owner, or while the owner
 * stands aside: so nothing here walks further than LOOK_CELLS.
 */
#include <rte_common.h>

#include <base/report.h>
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

static void peer_tell(const struct peer *peer, uint64_t now, struct report *report)
{
	const bool measured = peer->rtt != 0; /* a round trip */

	report_object(report, NULL);
	report_number(report, "nid", peer->process.nid);
	report_number(report, "pid", peer->process.pid);
	report_address(report, "mac", peer->address);
	report_text(report, "state", peer_state(peer));
	report_number(report, "incarnation", peer->incarnation);
	report_number_if(report, "rtt_ns", measured, peer->rtt);
	report_number_if(report, "rtt_variance_ns", measured, peer->variance);
	report_number_if(report, "delay_min_ns", measured, peer->delay_min);
	report_number(report, "rto_ns", flight_timeout(peer));
	/* Frames; below one it is a rate. */
	report_number(report, "window", peer->window >> 16);
	report_number(report, "window_65536", peer->window & 65535);
	report_number(report, "credit", peer->credit);
	report_number(report, "in_flight", peer_in_flight(peer));
	report_number(report, "messages", peer->queued);
	report_number(report, "retransmits", peer->retransmits);
	report_number(report, "timeouts_in_a_row", peer->backoff);
	report_number(report, "arriving", peer->assembly_count);
	report_number(report, "held", peer->reorder ? peer->reorder->count : 0);
	report_number(report, "heard_ns_ago", now - RTE_MIN(now, peer->heard));
	report_flag(report, "reorders", peer->reorder_factor != 0);
	report_flag(report, "stalled", peer->stalled);
	report_close(report);
}

uint32_t transport_peer_count(const struct transport *transport)
{
	owner_check(&transport->owner);
	return transport->peers.count;
}

unsigned transport_tell_peers(
	const struct transport *transport, uint32_t *cursor, unsigned count, struct report *report)
{
	const struct peer_table *table = &transport->peers;
	uint64_t end = RTE_MIN((uint64_t)*cursor + LOOK_CELLS, (uint64_t)table->mask + 1);
	uint64_t now = clock_now(transport->clock);
	uint64_t i = *cursor;
	unsigned n = 0;

	owner_check(&transport->owner);
	for (; i < end && n < count; i++) {
		if (!table->cells[i].peer)
			continue;
		peer_tell(table->cells[i].peer, now, report);
		n++;
	}
	*cursor = i > table->mask ? UINT32_MAX : (uint32_t)i;
	return n;
}

void transport_tell_life(const struct transport *transport, struct report *report)
{
	owner_check(&transport->owner);
	report_number(report, "incarnation", transport->options.incarnation);
	report_text(report, "checksum", transport->options.full_checksum ? "full" : "header");
	report_number(report, "peers", transport->peers.count);
	report_number(report, "peers_max", transport->peers.max);
}

void transport_tell_queues(const struct transport *transport, struct report *report)
{
	owner_check(&transport->owner);
	report_number(report, "messages", transport->messages);
	report_number(report, "peers_ready", transport->ready_count);
	report_number(report, "peers_sending_here",
		RTE_MAX(transport->senders, transport->senders_before));
	/* Frame buffers that are kept until the frame is acknowledged. */
	report_number(report, "in_flight", transport->in_flight);
	report_number(report, "in_flight_max", transport->in_flight_max);
	/* Frames that came early. */
	report_number(report, "held", transport->held);
	report_number(report, "held_max", transport->held_max);
	report_number(report, "outbox", transport->outbox_count);
	report_number(report, "looped", transport->loop_tail - transport->loop_head);
	/* Frames in flight that a peer alone is let have. */
	report_number(report, "credit_told", transport->credit);
	/* Bytes of transport header and records. */
	report_number(report, "frame_capacity", transport->capacity);
}
