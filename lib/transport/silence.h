/* SPDX-License-Identifier: BSD-3-Clause */
/* silence.h - for how long a peer may be silent. Owned by one poll core.
 *
 * A core that had no CPU, because its process or the whole machine was stopped, heard nothing
 * meanwhile, which says little about its peers: they were perhaps stopped as well.
 *
 * I1. While something is expected of a peer, its timer runs at least SILENCE_LOOKS times in
 *     peer_timeout; so one that runs later than that by a whole look shows that the core was away.
 * I2. Then all peers have half of peer_timeout at least from the return on. A core returns once in
 *     peer_timeout at most, and a peer has that of the first return since it was heard: however
 *     seldom the core runs, a dead peer is found out.
 */
#ifndef TRANSPORT_SILENCE_H
#define TRANSPORT_SILENCE_H

#include <stdint.h>

#include <rte_common.h>

#include <transport/internal.h>
#include <transport/peer.h>

#define SILENCE_LOOKS 8

static inline uint64_t silence_look(const struct transport *transport)
{
	return transport->options.peer_timeout / SILENCE_LOOKS;
}

/* of silence, after which a peer that owes the rest of a message is looked for on the node */
#define ABSENT_SILENCE (100 * MILLISECOND)

/* Until the next look at a peer that owes the rest of a message, at most. */
static inline uint64_t silence_look_inbound(const struct transport *transport)
{
	return RTE_MIN(silence_look(transport), ABSENT_SILENCE);
}

/* When a peer that was to be heard since `since` has been silent for too long. */
static inline uint64_t silence_end(const struct transport *transport, uint64_t since)
{
	const uint64_t timeout = transport->options.peer_timeout, end = since + timeout;
	const uint64_t first = transport->returned_before > since ? transport->returned_before
								  : transport->returned;

	return first > since ? RTE_MAX(end, first + timeout / 2) : end;
}

/* The peer's timer runs. */
static inline void silence_note(struct transport *transport, const struct peer *peer)
{
	const uint64_t planned = peer->timer.tick << WHEEL_TICK_SHIFT;

	if (transport->now > planned + silence_look(transport) &&
		transport->now - transport->returned >= transport->options.peer_timeout) {
		transport->returned_before = transport->returned;
		transport->returned = transport->now;
	}
}

#endif
