/* SPDX-License-Identifier: BSD-3-Clause */
/* granted.h - memory for what an endpoint of two-sided messages keeps, and has allowed its peers to
 * send. It is never more than the endpoint may have (messages.h, `memory`). */
#ifndef SIM_GRANTED_H
#define SIM_GRANTED_H

#include <engine/state.h>
#include <messages/state.h>

/* Headers: those in shares, also if some of one is to be given back, and those in none; of each
 * rank no more are kept than its share. Data: all blocks. Returns UINT64_MAX if a rank has more
 * than it was granted. */
static inline uint64_t granted_bytes(const struct messages *messages, const struct space *space)
{
	uint64_t headers = space->spare;

	for (uint32_t i = 0; i < space->ranks; i++) {
		headers += share_now(space, i);
		if (space->kept_of[i] > share_now(space, i))
			return UINT64_MAX;
	}
	return headers * KEPT_BYTES + messages->blocks_made * messages->options.block;
}

/* What it may be: the least shares are there in any case. */
static inline uint64_t granted_most(const struct messages *messages)
{
	const uint64_t least = (uint64_t)messages->options.headers * KEPT_BYTES;

	return messages->options.memory > least ? messages->options.memory : least;
}

#endif
