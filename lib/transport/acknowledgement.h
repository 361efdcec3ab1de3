/* SPDX-License-Identifier: BSD-3-Clause */
/* acknowledgement.h - what peers acknowledge (acknowledgement.c). */
#ifndef TRANSPORT_ACKNOWLEDGEMENT_H
#define TRANSPORT_ACKNOWLEDGEMENT_H

#include <transport/internal.h>
#include <transport/ready.h>

/* The kind of acknowledgement in a frame. The check changes nothing. */
enum acknowledged {
	/* nothing, or nothing of what is under way: what it says of it is passed over */
	ACKNOWLEDGED_NOTHING,
	ACKNOWLEDGED_SENT,
	ACKNOWLEDGED_UNSENT /* what was never sent: the whole frame is invalid */
};
/* Has the bitmap bits of psns that were never sent? */
bool acknowledgement_sack_impossible(const struct peer *peer, const struct frame_header *frame);
static inline enum acknowledged acknowledgement_check(
	const struct peer *peer, const struct frame_header *frame)
{
	if (!(frame->flags & FRAME_ACK_VALID) || peer->outgoing == OUTGOING_CLOSED ||
		frame->ack_stream != peer->tx_stream)
		return ACKNOWLEDGED_NOTHING;
	if (unlikely(frame->ack - peer->tx_una > peer_in_flight(peer)))
		return serial_before(frame->ack, peer->tx_una) ? ACKNOWLEDGED_NOTHING
							       : ACKNOWLEDGED_UNSENT;
	if ((frame->flags & FRAME_SACK) && acknowledgement_sack_impossible(peer, frame))
		return ACKNOWLEDGED_UNSENT;
	return ACKNOWLEDGED_SENT;
}

/* Reads what a frame acknowledges, which is ACKNOWLEDGED_SENT, or leaves it pending for
 * acknowledgement_settle(). */
void acknowledgement_take(
	struct transport *transport, struct peer *peer, const struct frame_header *frame);
/* Reads the pending acknowledgements. */
void acknowledgement_settle(struct transport *transport);
void acknowledgement_told(
	struct transport *transport, struct peer *peer, const struct frame_header *frame);
/* A stop of one of the own messages arrived. */
void acknowledgement_stopped(struct transport *transport, struct peer *peer, uint32_t number);

#endif
