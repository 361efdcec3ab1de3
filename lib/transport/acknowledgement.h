/* SPDX-License-Identifier: BSD-3-Clause */
/* acknowledgement.h - what peers acknowledge (acknowledgement.c). */
#ifndef TRANSPORT_ACKNOWLEDGEMENT_H
#define TRANSPORT_ACKNOWLEDGEMENT_H

#include <transport/internal.h>
#include <transport/ready.h>

/* What a frame acknowledges. Changes nothing. */
enum acknowledged {
	/* nothing, or nothing of what is under way: what it says of it is passed over */
	ACKNOWLEDGED_NOTHING,
	ACKNOWLEDGED_SENT,
	ACKNOWLEDGED_UNSENT /* what was never sent: the whole frame is invalid */
};
enum acknowledged acknowledgement_check(const struct peer *peer, const struct frame *frame);
/* Reads what a frame acknowledges, which is ACKNOWLEDGED_SENT, or notes it for
 * acknowledgement_settle(). */
void acknowledgement_take(
	struct transport *transport, struct peer *peer, const struct frame *frame);
void acknowledgement_note_odd(struct transport *transport, struct note *note, bool data);

/* Does an acknowledgement speak of the present stream, and of nothing that was never sent or is
 * long known? */
static inline bool acknowledgement_applies(const struct peer *peer, uint16_t stream, uint32_t ack)
{
	return peer->outgoing != OUTGOING_CLOSED && stream == peer->tx_stream &&
	       ack - peer->tx_una <= peer_in_flight(peer);
}

/* Where the next one is noted, */
static inline struct note *acknowledgement_room(struct transport *transport)
{
	return &transport->notes[transport->note_count];
}

/* The messages whose last frame the newest note acknowledges end. */
void acknowledgement_end(struct transport *transport);

/* and has been: it applies. What opens a window, tells of gaps, or is not the first of this peer is
 * more than a note. data: the frame has data, which is delivered next. */
static inline void acknowledgement_note(struct transport *transport, struct note *note, bool data)
{
	const struct peer *peer = note->peer;

	if (!peer->flight || note->sack || sender_has_work(peer) ||
		(transport->note_count > 0 && note[-1].peer == peer) ||
		transport->note_count == NOTES_MAX - 1) {
		acknowledgement_note_odd(transport, note, data);
		return;
	}
	transport->note_count++;
	if (data && peer->unacked.head && serial_before(peer->unacked.head->last_psn, note->ack))
		acknowledgement_end(transport);
}

/* Reads what was put off. */
void acknowledgement_settle(struct transport *transport);
void acknowledgement_told(
	struct transport *transport, struct peer *peer, const struct frame *frame);
/* Takes the messages whose last frame is acknowledged off the peer, and tells. */
void acknowledgement_complete(struct transport *transport, struct peer *peer);
/* A stop of one of the own messages arrived. */
void acknowledgement_stopped(struct transport *transport, struct peer *peer, uint32_t number);

#endif
