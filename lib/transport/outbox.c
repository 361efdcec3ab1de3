/* SPDX-License-Identifier: BSD-3-Clause */
/* outbox.c - frames on their way to the port, or back into this process. Owned by one poll core.
 *
 * I1. A frame in the outbox has one reference here; another may be in a slot. Nothing writes to it
 *     while it is here.
 * I2. What the port does not take stays in front and goes first next time: frames leave in the
 *     order they were put.
 */
#include <transport/outbox.h>

#include <string.h>

#include <rte_mbuf.h>

/* Whatever stands before it, the transport header starts at a multiple of a cache line. */
static_assert(RTE_PKTMBUF_HEADROOM % 64 == 0, "the transport header starts a cache line");
static_assert(RTE_PKTMBUF_HEADROOM >= ENCAPSULATION_BYTES_MAX, "there is room before it");

void outbox_keep(struct transport *transport, unsigned taken)
{
	unsigned left = transport->outbox_count - taken;
	uint64_t sent = transport->counters->frames_sent;

	transport->outbox_count = left;
	COUNT_ADD(transport, port_full, left);
	if (transport->full_sent != sent) {
		transport->full_sent = sent;
		transport->full_since = transport->now;
	}
	memmove(transport->outbox, transport->outbox + taken, left * sizeof(transport->outbox[0]));
	transport->blocked = true;
}

bool outbox_make_room(struct transport *transport, const struct peer *peer, unsigned count)
{
	if (peer && peer->self)
		return false;
	if (!transport->blocked)
		outbox_flush(transport);
	return OUTBOX_FRAMES - transport->outbox_count >= count;
}

void outbox_put(struct transport *transport, struct rte_mbuf *mbuf, const struct frame *frame,
	const uint8_t *to)
{
	uint32_t length = transport->encapsulation.bytes + frame->length;

	mbuf->data_len = (uint16_t)(length - frame->tail_length);
	mbuf->pkt_len = length;
	if (to) {
		encapsulation_write(&transport->encapsulation, mbuf, to, frame);
		transport->outbox[transport->outbox_count++] = mbuf;
		return;
	}
	transport->loop[transport->loop_tail++ % LOOP_FRAMES] = mbuf;
	transport->sent++;
	COUNT(transport, frames_sent);
}

bool outbox_send(
	struct transport *transport, struct frame *frame, const void *body, const uint8_t *to)
{
	struct rte_mbuf *mbuf = outbox_begin(transport, to ? NULL : transport->self);
	uint8_t *header;

	if (!mbuf)
		return false;
	header = outbox_header(mbuf);
	if (frame->length == 0)
		frame->length = FRAME_HEADER_BYTES;
	if (body)
		memcpy(header + FRAME_HEADER_BYTES, body, frame->length - FRAME_HEADER_BYTES);
	else
		frame_pad(header, frame->length);
	sender_sign(transport, frame);
	frame_encode(frame, header);
	outbox_put(transport, mbuf, frame, to);
	return true;
}
