/* SPDX-License-Identifier: BSD-3-Clause */
/* assembly.h - messages that arrive (assembly.c). */
#ifndef TRANSPORT_ASSEMBLY_H
#define TRANSPORT_ASSEMBLY_H

#include <stdbool.h>
#include <stdint.h>
#include <transport/peer.h>
#include <transport/transport.h>

enum assembly_verdict {
	ASSEMBLY_FINE,
	ASSEMBLY_UNKNOWN,
	ASSEMBLY_BAD,
	ASSEMBLY_NO_MEMORY,
	ASSEMBLY_RING /* RECORD_RING, which nobody takes yet */
};
/* May this frame be delivered? UNKNOWN: it has data of messages that have not started. in_order:
 * nothing is missing before it. */
enum assembly_verdict assembly_check_records(struct transport *transport, const struct peer *peer,
	struct frame_view frame, bool in_order);
static inline enum assembly_verdict assembly_check(struct transport *transport,
	const struct peer *peer, const struct frame_view *frame, bool in_order)
{
	if (unlikely(!frame->whole))
		return assembly_check_records(transport, peer, *frame, in_order);
	if (!in_order)
		return ASSEMBLY_UNKNOWN;
	return word_read(frame->body, 0) >> 32 == peer->rx_message ? ASSEMBLY_FINE : ASSEMBLY_BAD;
}

/* Delivers records that were found fine: of a frame that is whole, */
void assembly_deliver_whole(
	struct transport *transport, struct peer *peer, const uint8_t *records, unsigned count);
/* or any. */
void assembly_deliver_records(
	struct transport *transport, struct peer *peer, struct frame_view frame);
static inline void assembly_deliver(
	struct transport *transport, struct peer *peer, const struct frame_view *frame)
{
	if (likely(frame->whole))
		assembly_deliver_whole(transport, peer, frame->body, frame->header->records);
	else
		assembly_deliver_records(transport, peer, *frame);
}

void assembly_end_all(struct transport *transport, struct peer *peer, enum transport_fail why);

#endif
