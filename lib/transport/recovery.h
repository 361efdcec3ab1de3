/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery.h - what was lost (recovery.c). */
#ifndef TRANSPORT_RECOVERY_H
#define TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

struct outer;
struct peer;
struct transport;

/* A frame that is not thought lost yet is. */
void recovery_lose(struct peer *peer, uint32_t psn);
/* Something was delivered: is something sent before it lost? */
void recovery_detect(struct transport *transport, struct peer *peer);
/* The peer's host has refused a frame in flight, or a timeout found that no process has the peer's
 * name. */
void recovery_refused(struct transport *transport, struct peer *peer);
/* The start of a frame that a host has refused, as the port was told. A refusal of a question that
 * went elsewhere than where the process was says nothing of its life. */
void recovery_refusal(struct transport *transport, const uint8_t *bytes, const struct outer *outer);
/* The peer has answered a question. */
void recovery_answered(struct transport *transport, struct peer *peer);
/* When to look at it again. */
uint64_t recovery_due(const struct transport *transport, const struct peer *peer);
/* Looks at the flight. Returns false if the peer is dead. */
bool recovery_run(struct transport *transport, struct peer *peer);

#endif
