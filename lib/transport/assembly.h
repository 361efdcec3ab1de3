/* SPDX-License-Identifier: BSD-3-Clause */
/* assembly.h - messages that arrive (assembly.c). */
#ifndef TRANSPORT_ASSEMBLY_H
#define TRANSPORT_ASSEMBLY_H

#include <stdbool.h>
#include <stdint.h>
#include <transport/transport.h>

struct peer;

enum assembly_verdict { ASSEMBLY_FINE, ASSEMBLY_UNKNOWN, ASSEMBLY_BAD, ASSEMBLY_NO_MEMORY };
/* May this frame be delivered? UNKNOWN: it has data of messages that have not started. in_order:
 * nothing is missing before it. */
enum assembly_verdict assembly_check(struct transport *transport, const struct peer *peer,
	const struct frame *frame, bool in_order);
/* Delivers records that were found fine: a frame's, */
void assembly_deliver(struct transport *transport, struct peer *peer, const struct frame *frame);
/* or those of a frame that is whole. */
void assembly_deliver_whole(
	struct transport *transport, struct peer *peer, const uint8_t *records, unsigned count);
void assembly_end_all(struct transport *transport, struct peer *peer, enum transport_fail why);

#endif
