/* SPDX-License-Identifier: BSD-3-Clause */
/* tiers.h - a space with tiers (engine/tiers.h) on each node's engine, beside the space of Portals
 * 3: what the nodes' programs do with it at random, and what is compared with plain lists
 * (plain.h).
 *
 *     program -- commands --> engine -- events --> program
 *                                |                    |
 *     plain lists <-- the same --+     compared with -+
 *
 * The linker puts tier_watch.c between the engine's parts (-Wl,--wrap): so the plain lists are
 * given every message and every command just when the engine carries it out, and say what must come
 * of it, to the byte and in order. What the network does to messages is judged from both ends:
 *
 * J1. A call reaches the life of a process that it was begun for, or the next one if there was
 *     none; once; and calls of one process to another arrive in the order in which they began.
 * J2. Each call ends, with what its target decided, or as undeliverable where a party was in
 *     trouble (node.h).
 * J3. A node's memory changes where messages were placed, and nowhere else.
 * J4. An atomic changes each element as elements.h says, once, from what the messages before it
 *     have left; a fetch brings what it found, whatever comes later.
 * J5. A call whose memory was missing (tier_memory.h), of either end, when it was looked at, fails
 *     for that, and no other does; it has left bytes of its own, or none. The ends may differ where
 *     all had arrived before the memory went.
 */
#ifndef SIM_TIERS_H
#define SIM_TIERS_H

#include <sim/node.h>

struct tiers;

/* steps: of each node's program, an interval (ns) apart on average; 0: none. */
struct tiers *tiers_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max);
void tiers_free(struct tiers *tiers);
/* A node, which is entered, has begun a life. */
void tiers_begin(struct tiers *tiers, struct node *node);
/* A node's life is over. */
void tiers_end(struct tiers *tiers, struct node *node);
bool tiers_done(const struct tiers *tiers);
/* Have all calls of living nodes ended that a target has got? */
bool tiers_quiet(const struct tiers *tiers);
/* All is quiet: nothing may be missing. */
void tiers_finish(struct tiers *tiers);
/* How many calls have begun. */
uint64_t tiers_calls(const struct tiers *tiers);

#endif
