/* SPDX-License-Identifier: BSD-3-Clause */
/* delivery.h - what a delivery says of a request. There is one for each kind of space, which finds
 * memory for its requests: lists.h. What follows, operations, placement, replies and ends, is the
 * same for all (incoming.c).
 */
#ifndef ENGINE_DELIVERY_H
#define ENGINE_DELIVERY_H

#include <engine/access.h>
#include <engine/state.h>

/* The bytes of a region that a put or a get moves. */
struct placement {
	uint64_t offset;
	uint64_t length; /* manipulated length */
};

/* Fills in the sender's part of the account of an incoming message. */
static inline void account_from(
	struct account *account, struct process from, const struct message_header *header)
{
	account->initiator = access_word(from.nid, from.pid);
	account->target = access_word(header->uid, header->portal);
	account->match_bits = header->match_bits;
	account->requested = header->requested;
	account->moved = 0;
	account->offset = 0;
	account->value = 0;
	account->link = LINK_OWN;
}

#endif
