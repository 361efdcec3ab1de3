/* SPDX-License-Identifier: BSD-3-Clause */
/* flight.h - what is in flight to one peer: its frames, and when they must be looked at (flight.c).
 */
#ifndef TRANSPORT_FLIGHT_H
#define TRANSPORT_FLIGHT_H

#include <transport/ack.h>
#include <transport/buffer.h>
#include <transport/internal.h>

/* beyond two round trips of silence, without the time in hosts; less than any timeout */
#define PROBE_MARGIN (2 * ACK_LATER_DELAY)

/* Gives a peer's flight back: no frame is in flight any more. */
static inline void flight_end(struct transport *transport, struct peer *peer)
{
	pool_give(&transport->flight_pool, peer->flight);
	peer->flight = NULL;
}

/* Frees the slot of a frame that has its buffer. */
static inline void slot_free(struct transport *transport, struct flight *flight, uint32_t psn)
{
	struct slot *slot = &flight->slots[psn % FRAME_WINDOW];

	flight->small_count -= slot->frame->pkt_len < transport->encapsulation.bytes + SMALL_BYTES;
	transport->in_flight -= slot->frame->nb_segs;
	buffer_drop(slot->frame);
	slot->frame = NULL;
}

/* A frame in flight gives up its buffer: an outline is kept of it. Returns false if there is no
 * memory; then the frame keeps its buffer. */
bool flight_outline(struct transport *transport, struct peer *peer, uint32_t psn);
/* A frame in flight has arrived, or is given up: lets go of its buffer or outline. */
void flight_forget(struct transport *transport, struct peer *peer, uint32_t psn);

/* The retransmission timeout, ns. */
uint64_t flight_timeout(const struct peer *peer);
/* When a tail loss probe must be sent. */
uint64_t flight_probe_due(const struct peer *peer);
/* When the peer's flight must be looked at. */
uint64_t flight_due(const struct peer *peer);

/* Something is in flight from now on: sets the timer, unless it runs so soon anyway. */
static inline void flight_watch(struct transport *transport, struct peer *peer)
{
	if (!timer_set(&peer->timer) ||
		peer->timer.tick > wheel_tick(transport->now + PROBE_MARGIN))
		peer_wake(transport, peer, flight_due(peer));
}

#endif
