/* SPDX-License-Identifier: BSD-3-Clause */
/* delivery.h - the memory and the account of a request, the same in spaces of all kinds. */
#ifndef ENGINE_DELIVERY_H
#define ENGINE_DELIVERY_H

#include <engine/access.h>
#include <engine/state.h>

/* The bytes of a region that a put or a get moves. */
struct placement {
	uint64_t offset;
	uint64_t length; /* manipulated length */
};

/* The placement's memory. For length 0 the remote offset is unchecked. */
static inline struct map placement_map(
	const struct region *region, const struct placement *placement)
{
	return region_map(region, placement->offset, placement->length);
}

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
