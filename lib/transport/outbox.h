/* SPDX-License-Identifier: BSD-3-Clause */
/* outbox.h - frames on their way to the port, or back into this process (outbox.c). */
#ifndef TRANSPORT_OUTBOX_H
#define TRANSPORT_OUTBOX_H

#include <transport/buffer.h>
#include <transport/internal.h>

/* A frame's mbuf with room for everything, its transport header aligned to a cache line. NULL: none
 * left. */
static inline struct rte_mbuf *outbox_alloc(struct transport *transport, uint16_t references)
{
	return buffer_take(transport->port->pool,
		RTE_PKTMBUF_HEADROOM - transport->encapsulation.bytes, references);
}

static inline uint8_t *outbox_header(const struct rte_mbuf *mbuf)
{
	return (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
}

/* Places in the outbox that frames with data leave free for answers and acknowledgements: a process
 * that has more to send than its port takes still answers others. */
#define OUTBOX_SPARE 8

bool outbox_make_room(struct transport *transport, const struct peer *peer, unsigned count);

/* Room for count more frames to this peer? */
static inline bool outbox_fits(
	const struct transport *transport, const struct peer *peer, unsigned count)
{
	if (peer && peer->self)
		return transport->loop_tail - transport->loop_head <= LOOP_FRAMES - count;
	return transport->outbox_count <= OUTBOX_FRAMES - count;
}

/* The same; tries to make some. */
static inline bool outbox_room(struct transport *transport, const struct peer *peer, unsigned count)
{
	return outbox_fits(transport, peer, count) || outbox_make_room(transport, peer, count);
}

/* The mbuf of a frame to this peer, or with NULL to a process that may be no peer. Returns NULL if
 * there is no room, or no buffer. */
static inline struct rte_mbuf *outbox_begin(struct transport *transport, const struct peer *peer)
{
	return outbox_room(transport, peer, 1) ? outbox_alloc(transport, 1) : NULL;
}

/* Takes over one reference of a frame whose transport header and records are written, and writes
 * what stands before them. There is room. to: MAC address; NULL: it goes to this process. */
void outbox_put(struct transport *transport, struct rte_mbuf *mbuf, const struct frame *frame,
	const uint8_t *to);

/* Sends a frame without records whose fields but source and timestamp are filled in; a length of 0
 * is that of its header. body: what stands behind the header; NULL: the padding of an echo frame,
 * up to the length. to: as above; the process may be no peer. Returns false if there is no room. */
bool outbox_send(
	struct transport *transport, struct frame *frame, const void *body, const uint8_t *to);

static const uint8_t broadcast[FRAME_ADDRESS_BYTES] = {255, 255, 255, 255, 255, 255};

/* outbox_put() for a frame all of whose bytes are written. */
static inline void outbox_put_bytes(
	struct transport *transport, struct rte_mbuf *mbuf, uint32_t length)
{
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
	transport->outbox[transport->outbox_count++] = mbuf;
}

/* The same for one to this process, which has no encapsulation. */
static inline void outbox_loop(struct transport *transport, struct rte_mbuf *mbuf, uint32_t length)
{
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
	transport->loop[transport->loop_tail++ % LOOP_FRAMES] = mbuf;
	transport->sent++;
	COUNT(transport, frames_sent);
}

/* Keeps the frames that the port did not take: it took the first `taken`. */
void outbox_keep(struct transport *transport, unsigned taken);

static inline void outbox_flush(struct transport *transport)
{
	unsigned count = transport->outbox_count;
	unsigned taken;

	if (count == 0)
		return;
	taken = port_transmit(transport->port, transport->outbox, (uint16_t)count);
	transport->sent += taken;
	COUNT_ADD(transport, frames_sent, taken);
	if (taken == count)
		transport->outbox_count = 0;
	else
		outbox_keep(transport, taken);
}

/* Fills in the sender, and when the frame is sent. */
static inline void sender_sign(const struct transport *transport, struct frame *frame)
{
	frame->source_nid = transport->options.self.nid;
	frame->source_pid = transport->options.self.pid;
	frame->source_incarnation = transport->options.incarnation;
	frame->timestamp = (uint32_t)transport->now;
}

/* Fills in the receiver as well. */
static inline void sender_names(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	sender_sign(transport, frame);
	frame->destination_nid = peer->process.nid;
	frame->destination_pid = peer->process.pid;
	frame->destination_incarnation = peer->incarnation;
}

/* Fills in the fields that every frame to a peer has. */
static inline void sender_address(
	const struct transport *transport, const struct peer *peer, struct frame *frame)
{
	sender_names(transport, peer, frame);
	if (transport->options.full_checksum)
		frame->flags |= FRAME_FULL_SUM;
}

#endif
