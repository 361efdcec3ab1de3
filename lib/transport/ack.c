/* SPDX-License-Identifier: BSD-3-Clause */
/* ack.c - tells peers what has arrived. Owned by one poll core.
 *
 * Every frame to a peer acknowledges. One is sent for that alone when nothing else goes to the peer
 * in time: at once (with the turn) after something out of order or ACK_EVERY frames, a small one
 * counting as ACK_SMALL, after ACK_SOON_DELAY when the peer has nothing more to send, after
 * ACK_LATER_DELAY otherwise.
 *
 * I1. A peer that is owed an acknowledgement is in the list of its ack_list; each list is in the
 *     order of ack_due, because its delay is constant.
 */
#include <transport/ack.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include <transport/outbox.h>

void acknowledgement_write(
	struct transport *transport, struct peer *peer, struct frame *frame, bool bitmap)
{
	if (!incoming_is_open(peer))
		return;
	/* A peer that may have forgotten this process is told what psn its streams begin with,
	 * instead, by a frame that can say so. */
	if (frame->type == FRAME_DATA && peer->outgoing == OUTGOING_FIRST && !bitmap &&
		transport->now - peer->heard > transport->spans.stream_idle)
		return;
	acknowledgement_fields(transport, peer, frame);
	if (bitmap) {
		frame->flags |= FRAME_SACK;
		bitmap_turn(peer->received, peer->rx_next + 1, frame->sack);
	}
	if (bitmap || peer->incoming != INCOMING_GAP)
		acknowledgement_forget(transport, peer);
}

/* Returns false if there is no room or buffer now. */
static bool acknowledgement_send(struct transport *transport, struct peer *peer)
{
	struct frame frame = {.type = FRAME_ACK};
	struct rte_mbuf *mbuf = outbox_begin(transport, peer);

	if (!mbuf)
		return false;
	sender_address(transport, peer, &frame);
	acknowledgement_write(transport, peer, &frame, acknowledgement_needs_bitmap(peer));
	frame.length = (uint16_t)frame_header_bytes(frame.flags);
	frame_encode(&frame, outbox_header(mbuf));
	outbox_put(transport, mbuf, &frame, peer->self ? NULL : peer->address);
	peer->sent = transport->now;
	COUNT(transport, acks_sent);
	return true;
}

void acknowledgement_run(struct transport *transport)
{
	if (!acknowledgement_is_due(transport))
		return;
	for (unsigned i = 0; i < ACK_LISTS && transport->acks_owed != 0; i++) {
		struct link *list = &transport->acks[i];

		list_each (struct peer, peer, list, ack_link) {
			if (peer->ack_due > transport->now)
				break;
			if (!incoming_is_open(peer)) {
				acknowledgement_forget(transport, peer);
				continue;
			}
			if (!acknowledgement_send(transport, peer)) {
				transport->blocked = true;
				return;
			}
		}
	}
	transport->ack_next = acknowledgement_deadline(transport);
}

uint64_t acknowledgement_deadline(const struct transport *transport)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < ACK_LISTS; i++) {
		const struct peer *peer = list_first(&transport->acks[i], struct peer, ack_link);

		if (peer)
			due = RTE_MIN(due, peer->ack_due);
	}
	return due;
}
