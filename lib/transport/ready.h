/* SPDX-License-Identifier: BSD-3-Clause */
/* ready.h - peers that have something to send and leave to send it, in the order of their turns. */
#ifndef TRANSPORT_READY_H
#define TRANSPORT_READY_H

#include <transport/internal.h>

static inline void sender_ready(struct transport *transport, struct peer *peer)
{
	if (link_listed(&peer->ready_link))
		return;
	list_append(&transport->ready, &peer->ready_link);
	transport->ready_count++;
}

static inline void sender_unready(struct transport *transport, struct peer *peer)
{
	if (!link_listed(&peer->ready_link))
		return;
	link_remove(&peer->ready_link);
	transport->ready_count--;
}

static inline bool sender_has_work(const struct peer *peer)
{
	return ((uintptr_t)peer->waiting.head | (uintptr_t)peer->open.head | peer->stop_count) !=
		       0 ||
	       (peer->flight && peer->flight->lost_count != 0);
}

#endif
