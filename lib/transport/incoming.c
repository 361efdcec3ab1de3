/* SPDX-License-Identifier: BSD-3-Clause */
/* incoming.c - see incoming.h. Owned by one poll core. */
#include <transport/incoming.h>

#include <string.h>

#include <rte_mbuf.h>

#include <transport/ack.h>
#include <transport/assembly.h>

void incoming_open(struct peer *peer, const struct frame_header *frame, bool marked)
{
	incoming_turn(peer, INCOMING_OPEN);
	peer->rx_stream = frame->stream;
	peer->rx_next = frame->first;
	peer->rx_message = 0;
	peer->rx_marks = marked;
	memset(peer->received, 0, sizeof(peer->received));
}

static void reorder_drop(struct transport *transport, struct peer *peer)
{
	struct reorder *reorder = peer->reorder;

	if (!reorder)
		return;
	for (unsigned i = 0; i < FRAME_WINDOW; i++) {
		if (!reorder->held[i])
			continue;
		rte_pktmbuf_free(reorder->held[i]);
		transport->held--;
	}
	peer->reorder = NULL;
	pool_give(&transport->reorder_pool, reorder);
}

void incoming_close(struct transport *transport, struct peer *peer, enum incoming_state state,
	enum transport_fail why)
{
	incoming_turn(peer, state);
	memset(peer->received, 0, sizeof(peer->received));
	acknowledgement_forget(transport, peer);
	reorder_drop(transport, peer);
	assembly_end_all(transport, peer, why);
}
