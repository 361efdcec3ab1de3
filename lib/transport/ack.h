/* SPDX-License-Identifier: BSD-3-Clause */
/* ack.h - acknowledgements that this process owes its peers (ack.c). */
#ifndef TRANSPORT_ACK_H
#define TRANSPORT_ACK_H

#include <transport/internal.h>

#define ACK_SOON_DELAY  (4 * MICROSECOND)  /* the peer has nothing more to send */
#define ACK_LATER_DELAY (25 * MICROSECOND) /* it has */
#define ACK_EVERY       8                  /* frames */
/* what a frame of less than SMALL_BYTES counts of them */
#define ACK_SMALL 3
static_assert(SMALL_NEAR * ACK_SMALL >= ACK_EVERY && SMALL_FAR >= SMALL_NEAR,
	"a window of small frames is acknowledged without a delay");

/* How long an acknowledgement of this list may wait, ns. */
static inline uint64_t acknowledgement_delay(enum ack_list list)
{
	static const uint64_t delays[] = {
		[ACK_URGENT] = 0, [ACK_SOON] = ACK_SOON_DELAY, [ACK_LATER] = ACK_LATER_DELAY};

	return delays[list];
}

/* A sequenced frame of so many bytes arrived. */
static inline void acknowledgement_owe(
	struct transport *transport, struct peer *peer, uint32_t length, enum ack_list list)
{
	peer->ack_owed = (uint16_t)(peer->ack_owed + (length < SMALL_BYTES ? ACK_SMALL : 1));
	if (peer->ack_owed >= ACK_EVERY)
		list = ACK_URGENT;
	if (peer->ack_list <= list)
		return;
	if (peer->ack_list != ACK_NONE)
		link_remove(&peer->ack_link);
	else
		transport->acks_owed++;
	peer->ack_list = (uint8_t)list;
	peer->ack_due = transport->now + acknowledgement_delay(list);
	if (transport->acks_owed == 1 || peer->ack_due < transport->ack_next)
		transport->ack_next = peer->ack_due;
	list_append(&transport->acks[list], &peer->ack_link);
}

static inline void acknowledgement_forget(struct transport *transport, struct peer *peer)
{
	peer->ack_owed = 0;
	if (peer->ack_list == ACK_NONE)
		return;
	transport->acks_owed--;
	link_remove(&peer->ack_link);
	peer->ack_list = ACK_NONE;
}

/* The fields that acknowledge what came in order. The peer's stream is open. */
static inline void acknowledgement_fields(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	frame->flags |= FRAME_ACK_VALID;
	frame->ack = peer->rx_next;
	frame->ack_stream = peer->rx_stream;
	frame->echo = peer->echo;
	frame->delay = (uint32_t)transport->now - peer->echo_at;
	frame->credit = transport->credit;
	frame->marks = peer->rx_marks;
}

/* Fills in what acknowledges the peer's frames. SACK only if the frame has room for it. */
void acknowledgement_write(
	struct transport *transport, struct peer *peer, struct frame *frame, bool bitmap);

/* Is a bitmap needed to say what has arrived? */
static inline bool acknowledgement_needs_bitmap(const struct peer *peer)
{
	return peer->incoming == INCOMING_GAP;
}

/* Sends the acknowledgements that are due. */
void acknowledgement_run(struct transport *transport);

/* May an acknowledgement be due? */
static inline bool acknowledgement_is_due(const struct transport *transport)
{
	return transport->acks_owed != 0 && transport->ack_next <= transport->now;
}

uint64_t acknowledgement_deadline(const struct transport *transport);

#endif
