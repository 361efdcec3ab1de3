/* SPDX-License-Identifier: BSD-3-Clause */
/* portal.h - the Portals of a space with tiers (tiers.h): opened and closed, enabled and disabled.
 * What of them only the poll core uses is struct tier_portal; their states are in the segment.
 *
 * T5. A Portal that is controlled accepts a message only if the events that it will make have
 *     places in the queue (queue.incoming counts those that are kept), or in the part of it that
 *     the Portal may fill. One that cannot be accepted disables the Portal; so does an event that
 *     cannot be refused and finds `refuse_at` others.
 *     Then DISABLED is logged, when messages accepted before have ended.
 * T10. Messages to a Portal for strangers, unless the space has a life that they must name, and
 *     refusals of letters (rma.c, C6), can come from any process. All together have as many places
 *     in the queue as such a Portal may fill, whatever others have. A node has at most a quarter of
 *     those that are left for its messages, and as many for its refusals, which no access control
 *     stops. The rest is refused, and no Portal is disabled by it. Places are counted in rounds. A
 *     round ends when the program has read all events that were in the queue when the round began;
 *     so those of this round and of the one before count as in use. Nodes whose numbers are mixed
 *     to the same value have one share together in this round, and hardly ever in the next.
 * T11. Messages of ranks to a Portal with shares, as far as they make events, have as many places
 *     as that Portal may fill, whatever others have. They are counted in the same way. A node has
 *     at most half of those that are left, and a process at most half of those that are left for
 *     its node. The rest is refused, and no Portal is disabled by it: so neither a process that
 *     sends without end nor a node with many such processes stops what others send.
 */
#ifndef ENGINE_PORTAL_H
#define ENGINE_PORTAL_H

#include <engine/tiers.h>

/* The list of a tier. */
static inline struct match_list *portal_list(
	const struct space *space, uint32_t portal, unsigned tier)
{
	return &space->lists[portal * TIERS + tier];
}

/* A controlled Portal has run out of something. */
void portal_exhaust(struct space *space, uint32_t index);
/* All controlled Portals that log to this queue have. */
void portals_exhaust(struct space *space, const struct queue *queue);
/* T10. Takes a place in a queue for an event that a stranger causes, of `most` for all strangers.
 * Returns false if there is none. */
bool stranger_has_place(struct space *space, const struct queue *queue, uint64_t most,
	struct process from, bool refuses);
/* T11. The same for a message of a rank's to a Portal with shares. */
bool peer_has_place(struct space *space, const struct queue *queue, uint64_t most,
	struct process from) __attribute__((noinline));
/* After the end of a message: T5. */
void portal_settle(struct space *space, uint32_t index);
/* The answer to a command for a Portal. */
enum answer portal_answer(struct space *space, const struct command *command);

#endif
