/* SPDX-License-Identifier: BSD-3-Clause */
/* letters.h - two-sided messages (lib/messages) between the nodes' programs, which are the ranks of
 * a job: sends of all lengths, synchronous or not, receives with wildcards, probes, cancellations
 * and words at random, compared with an oracle of two lists for each rank.
 *
 *     rank -- sends, receives --> lib/messages --> engine ~~ faults ~~ engine --> lib/messages
 *                                                    |                   |
 *                                 receives come, messages arrive: the oracle says what matches
 *
 * The oracle is given each message when it arrives and each receive when the poll core takes it
 * (tier_watch.c wraps the engine), so what it says does not depend on chance.
 *
 * K1. A message arrives once, at the rank that it was sent to, after those that were sent there
 *     before it.
 * K2. A receive gets what the oracle says, byte for byte, and is done once. Its memory changes
 *     nowhere else.
 * K3. A send is done once: a synchronous one after a receive has matched it, a long one after its
 *     data has been read. Its buffer is written to from then on.
 * K4. Between ranks that were never in trouble (node.h) nothing fails, and at the end nothing is
 *     missing. A rank that ends or crashes never comes back; its successor is not of the job.
 * K5. A rank whose program sleeps is never the reason that a send to it is not done while memory is
 *     left there: a send that is copied and not synchronous, when fewer messages than half of the
 *     headers that begin in no share, and fewer bytes than the blocks may have, have been sent to
 *     that rank in all. When a program that had no memory left has received what took it, the
 *     same is true of all that it has not received, less what has copies at its sender.
 * K6. What a rank has granted and keeps never takes more memory than it may have (granted.h).
 * K7. When a rank has sent much, all of which was received, and is silent, and then another one
 *     sends to the same rank, whose program sleeps, that one gets at least half of what the first
 *     one had.
 */
#ifndef SIM_LETTERS_H
#define SIM_LETTERS_H

#include <sim/node.h>

struct command;
struct letters;
struct message_header;
struct space;

/* steps: of each rank's program, an interval (ns) apart on average; 0: none. */
struct letters *letters_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max);
/* Before the nodes begin: rank 0's program sleeps until rank 1 has sent it as much as K5 says, and
 * a while longer; or until there is more, and again when it has received a part; or until rank 1
 * has sent, and then, when it has received all, until rank 2 has (K7). The others do nothing. */
void letters_sleep(struct letters *letters);
void letters_free(struct letters *letters);
/* A node, which is entered, has begun a life. */
void letters_begin(struct letters *letters, struct node *node);
/* A node's life is over, and its interface is closed. */
void letters_end(struct letters *letters, struct node *node);
/* Handles all that has happened; the node is entered. */
void letters_progress(struct node *node);
bool letters_done(const struct letters *letters);
/* Has everything come that has to? */
bool letters_quiet(const struct letters *letters);
/* All is quiet: nothing may be missing. */
void letters_finish(struct letters *letters);
/* How many sends and receives have begun. */
uint64_t letters_count(const struct letters *letters);

/* What the engine of the entered node is about to do, and the answer that it has given. */
void letters_arrived(const struct message_header *header);
void letters_posted(const struct space *space, const struct command *command);
void letters_asked(const struct command *command);
void letters_answered(const struct command *command, bool done);

#endif
