/* SPDX-License-Identifier: BSD-3-Clause */
/* congestion.h - how much may be in flight to a peer (congestion.c). */
#ifndef TRANSPORT_CONGESTION_H
#define TRANSPORT_CONGESTION_H

#include <transport/internal.h>

#define WINDOW_ONE      65536u             /* of a window: a frame */
#define TARGET_DELAY    (50 * MICROSECOND) /* beyond the least delay */
#define MEASURE_SPACING (10 * MICROSECOND) /* less than the least delay of most networks */

void congestion_reset(struct peer *peer);
/* A measure of the path: all the time to the acknowledgement, and that in the network. exact: no
 * host was away meanwhile; else it may have been more. */
void congestion_rtt(
	struct transport *transport, struct peer *peer, uint32_t rtt, uint32_t delay, bool exact);

/* Is another measure worth its while? */
static inline bool congestion_measures(const struct transport *transport, const struct peer *peer)
{
	return peer->rtt == 0 || (uint32_t)transport->now - peer->measured >= MEASURE_SPACING;
}

/* Does it change the window that frames without a mark were delivered? A window that is not used
 * says nothing about the path; and mostly the delay is fine by far. */
static inline bool congestion_matters(const struct peer *peer, unsigned frames, uint32_t delay)
{
	return delay > peer->delay_min + TARGET_DELAY ||
	       peer_pipe(peer) + frames >= peer->window / WINDOW_ONE / 2;
}

/* frames were delivered; delay: of the newest, 0 if not known; marked: the network says that it is
 * congested. */
void congestion_delivered(struct transport *transport, struct peer *peer, unsigned frames,
	uint32_t delay, bool marked);
/* So many frames were found lost at once. */
void congestion_lost(struct transport *transport, struct peer *peer, uint32_t frames);
void congestion_timeout(struct transport *transport, struct peer *peer);
/* The last loss or timeout was none. */
void congestion_undo(struct peer *peer);

/* May another frame go? */
static inline bool congestion_open(const struct transport *transport, const struct peer *peer)
{
	uint32_t pipe = peer_pipe(peer);

	if (pipe == 0)
		return peer->window >= WINDOW_ONE || transport->now >= peer->pace_due;
	return pipe < peer->window / WINDOW_ONE && pipe < peer->credit;
}

/* A frame went. */
static inline void congestion_sent(const struct transport *transport, struct peer *peer)
{
	if (peer->window < WINDOW_ONE)
		peer->pace_due = transport->now + (uint64_t)peer->rtt * WINDOW_ONE / peer->window;
}

#endif
