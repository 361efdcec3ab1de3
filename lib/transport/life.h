/* SPDX-License-Identifier: BSD-3-Clause */
/* life.h - a peer's lives: what an answer says of them, and what ends with one (life.c). */
#ifndef TRANSPORT_LIFE_H
#define TRANSPORT_LIFE_H

#include <transport/internal.h>

/* Ends every message to the peer, and the stream. */
void peer_fail(struct transport *transport, struct peer *peer, enum transport_fail why);
/* Ends messages of which something was sent, and the stream; those that wait stay. */
void peer_fail_begun(struct transport *transport, struct peer *peer, enum transport_fail why);
/* The peer has answered that it is this incarnation, which is another than the known one. */
void peer_restarted(struct transport *transport, struct peer *peer, uint32_t incarnation);
/* The peer said BYE. */
void peer_ended(struct transport *transport, struct peer *peer);
/* FRAME_TELL from a peer. */
void life_told(struct transport *transport, struct peer *peer, const struct frame_header *frame,
	const uint8_t *from);

/* A stream from the peer, or an answer of it, tells the psn that streams to it begin with. */
void life_psn(struct transport *transport, struct peer *peer, uint32_t first);

#endif
