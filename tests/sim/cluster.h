/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster.h - endpoints of MX (lib/mx), one to a node: connects, sends of all lengths, synchronous
 * or not, receives with masks, probes, cancels, forgotten requests, unexpected handlers and pauses
 * of theirs, disconnects at random, compared with an oracle of MX's matching.
 *
 *     program -- calls of MX --> lib/mx --> lib/messages --> engine ~~ faults ~~
 *        |                                                     |
 *        '-- handler, results <-- the oracle says what matches '-- messages arrive, receives come
 *
 * The oracle has for each endpoint the receives that are with the poll core and the messages that
 * no receive has got, in order. It is given each message and each receive when the poll core takes
 * it (tier_watch.c wraps the engine), so what it says does not depend on chance.
 *
 * C1. A message arrives once, at the session that it was sent to, after those that were sent there
 *     before it, and never after one of a later life of its sender.
 * C2. A receive gets what the oracle says, byte for byte, and ends once. Its memory changes nowhere
 *     else. Nothing of a session that was dismissed is received any more.
 * C3. The handler is shown each message that no receive has got once, in their order, and not while
 *     it is halted; what it posts for that message gets it.
 * C4. A send ends once: a synchronous one after a receive has matched it or the handler has taken
 *     it, a long one after it has arrived. Its buffer is written to from then on.
 * C5. Between endpoints that were never in trouble (node.h) nor disconnected nothing fails. Of all
 *     others each request ends, with a status that says that the peer is gone.
 * C6. A peer has never more messages kept, or under way, than its share; what was shown and is kept
 *     has no more memory than blocks may have, and one message. At the end nothing is left.
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include <sim/node.h>

#define CLUSTER_PID_BASE UINT32_C(0x4d580000)
/* ns after which MX gives up to connect, and more */
#define CLUSTER_QUIET (70 * SECOND)

struct cluster;
struct command;
struct message_header;
struct space;

bool cluster_library_open(void);
void cluster_library_close(void);

/* steps: of each node's program, an interval (ns) apart on average; 0: none. */
struct cluster *cluster_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max);
void cluster_free(struct cluster *cluster);
/* Opens and closes the endpoint of a node, which is entered. */
void cluster_begin(struct node *node);
void cluster_end(struct node *node);
bool cluster_done(const struct cluster *cluster);
/* Has everything ended that has to? */
bool cluster_quiet(const struct cluster *cluster);
/* All is quiet: nothing may be missing. */
void cluster_finish(struct cluster *cluster);
/* How many requests have begun. */
uint64_t cluster_count(const struct cluster *cluster);

/* What the engine of the entered node is about to do, and the answer that it has given. */
void cluster_arrived(struct space *space, struct process from, const struct message_header *header);
void cluster_whole(const struct space *space, uint64_t bits, bool whole);
void cluster_posted(const struct space *space, const struct command *command);
void cluster_asked(const struct space *space, const struct command *command);
void cluster_answered(const struct space *space, const struct command *command, bool done);

#endif
