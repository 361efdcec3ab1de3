/* SPDX-License-Identifier: BSD-3-Clause */
/* incoming.h - the stream from a peer: its begin and its end (incoming.c). */
#ifndef TRANSPORT_INCOMING_H
#define TRANSPORT_INCOMING_H

#include <transport/internal.h>

/* The stream that a frame is of begins. marked: the network has marked that frame (ECN). */
void incoming_open(struct peer *peer, const struct frame_header *frame, bool marked);
/* Fails the messages of the stream that are not all here, and drops the frames that are held.
 * state: INCOMING_NONE or INCOMING_GIVEN_UP. */
void incoming_close(struct transport *transport, struct peer *peer, enum incoming_state state,
	enum transport_fail why);

#endif
