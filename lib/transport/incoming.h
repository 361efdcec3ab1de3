/* SPDX-License-Identifier: BSD-3-Clause */
/* incoming.h - the stream from a peer: its begin and its end (incoming.c). */
#ifndef TRANSPORT_INCOMING_H
#define TRANSPORT_INCOMING_H

#include <transport/internal.h>

/* The stream that a frame is of begins. marked: the network has marked that frame (ECN). */
void incoming_open(struct peer *peer, const struct frame *frame, bool marked);
/* Ends what has begun and forgets what was held; the stream counts as `state` (0, or RX_CLOSED)
 * from now on. */
void incoming_close(
	struct transport *transport, struct peer *peer, uint16_t state, enum transport_fail why);

#endif
