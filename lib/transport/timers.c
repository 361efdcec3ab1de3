/* SPDX-License-Identifier: BSD-3-Clause */
/* timers.c - what peers' timers find due. Owned by one poll core.
 *
 * I1. A peer's timer is always set; what it finds when it runs may be nothing.
 */
#include <transport/timers.h>

#include <rte_common.h>

#include <base/log.h>
#include <transport/address.h>
#include <transport/incoming.h>
#include <transport/life.h>
#include <transport/ready.h>
#include <transport/recovery.h>
#include <transport/silence.h>

/* Peers whose timers run in a turn. When thousands are silent all of them send again and ask, and
 * where a frame costs a system call, that takes longer than frames of the others may wait. */
#define TIMERS_MOST 64u

/* When its silence makes a message that it has begun a failure. */
static uint64_t inbound_due(const struct transport *transport, const struct peer *peer)
{
	if (!peer->assemblies && !peer->reorder)
		return UINT64_MAX;
	return silence_end(transport, peer->heard);
}

/* When to look at a peer of which more is expected: silence.h I1. */
static uint64_t look_due(const struct transport *transport, const struct peer *peer)
{
	const uint64_t due = inbound_due(transport, peer);

	return due == UINT64_MAX ? due
				 : RTE_MIN(due, transport->now + silence_look_inbound(transport));
}

/* Will the rest of what it has begun never come? */
static bool inbound_is_lost(const struct transport *transport, const struct peer *peer)
{
	const uint64_t due = inbound_due(transport, peer);

	return transport->now >= due ||
	       (due != UINT64_MAX && transport->now - peer->heard >= ABSENT_SILENCE &&
		       address_absent(transport, peer));
}

/* When a window below one frame lets the next one go. */
static uint64_t pace_due(const struct peer *peer)
{
	if (link_listed(&peer->ready_link) || peer->address_state != ADDRESS_KNOWN ||
		!sender_has_work(peer) || peer_pipe(peer) != 0)
		return UINT64_MAX;
	return peer->pace_due;
}

static uint64_t forget_due(const struct transport *transport, const struct peer *peer)
{
	uint64_t due = RTE_MAX(peer->heard, peer->sent) + transport->spans.peer_memory;

	/* This process is a peer, too: so psns are told anew in time. */
	return due > transport->now && !peer->self ? due
						   : transport->now + transport->spans.psn_life;
}

/* The psn to begin with was told, and not used in time. */
static void psn_age(const struct transport *transport, struct peer *peer)
{
	uint16_t age = (uint16_t)((transport->now >> PSN_TICK_SHIFT) - peer->told);

	if (!peer->taken && age > transport->spans.psn_fresh >> PSN_TICK_SHIFT)
		peer->stale = true;
}

/* The stream to it must end before its psns come again (peer.h I7). */
static void psns_spend(struct transport *transport, struct peer *peer)
{
	const uint32_t used = peer->tx_next - peer->first;

	if (peer->outgoing == OUTGOING_OPEN && used >= transport->spans.stream_psns)
		outgoing_turn(peer, OUTGOING_LAST);
	if (peer->outgoing != OUTGOING_LAST || used / STREAM_END < transport->spans.stream_psns)
		return;
	log_debug(LOG_TRANSPORT, "%s: what is sent to %u:%u needs more frames than a stream has",
		transport->port->name, peer->process.nid, peer->process.pid);
	peer_fail_begun(transport, peer, TRANSPORT_DEAD);
}

/* The program names another process, and never hears the reason otherwise. */
static void alone_tell(struct transport *transport, const struct peer *peer)
{
	if (!transport->port->alone || transport->alone_told)
		return;
	transport->alone_told = true;
	log_error("%s: process %u:%u cannot be reached, because this interface leads to no other "
		  "process: set PTL_IFACE_NAME to node, udp or a network interface; a warning at "
		  "its start says why it has none without",
		transport->port->name, peer->process.nid, peer->process.pid);
}

/* A peer's timer: whatever is due, and the timer set anew. */
static void peer_run(struct transport *transport, struct peer *peer)
{
	uint64_t due;

	silence_note(transport, peer);
	generation_turn(transport, transport->spans.psn_life);
	psn_age(transport, peer);
	psns_spend(transport, peer);
	if (peer->asking && !address_run(transport, peer)) {
		alone_tell(transport, peer);
		peer_fail(transport, peer, address_failure(transport, peer));
	}
	if (!recovery_run(transport, peer))
		peer_fail(transport, peer, TRANSPORT_DEAD);
	if (inbound_is_lost(transport, peer)) {
		COUNT(transport, peers_dead);
		log_debug(LOG_TRANSPORT, "%s: %u:%u has been silent for too long",
			transport->port->name, peer->process.nid, peer->process.pid);
		incoming_close(transport, peer, INCOMING_GIVEN_UP, TRANSPORT_DEAD);
	}
	if (transport->now >= pace_due(peer))
		sender_ready(transport, peer);
	if (peer_idle(peer) && peer_outlived(transport, peer) &&
		transport->now - RTE_MAX(peer->heard, peer->sent) >= transport->spans.peer_memory) {
		peer_forget(transport, peer);
		return;
	}
	due = RTE_MIN(address_due(peer), recovery_due(transport, peer));
	due = RTE_MIN(due, look_due(transport, peer));
	due = RTE_MIN(due, pace_due(peer));
	due = RTE_MIN(due, forget_due(transport, peer));
	peer_wake(transport, peer, due);
}

void timers_run(struct transport *transport)
{
	struct timer *timer;

	if (!wheel_is_due(&transport->wheel, transport->now))
		return;
	wheel_advance(&transport->wheel, transport->now);
	for (unsigned n = 0; n < TIMERS_MOST && (timer = wheel_take(&transport->wheel)); n++)
		peer_run(transport, link_entry(&timer->link, struct peer, timer.link));
	wheel_leave(&transport->wheel);
}
