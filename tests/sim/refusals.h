/* SPDX-License-Identifier: BSD-3-Clause */
/* refusals.h - what hosts refuse, as the port of a node is told that is addressed (base/port.h),
 * and what somebody pretends that they refuse.
 *
 * A host refuses frames for a node that is not up: to each sender REFUSALS_BURST at once, and then
 * one a second, as Linux does. The refusal goes through the network, where it may be lost.
 *
 * The forger knows all names, and sees frames that leave. Half of what he says is refused is such a
 * frame, two in a row, which he says at once: they are in flight, and their receiver lives.
 */
#ifndef SIM_REFUSALS_H
#define SIM_REFUSALS_H

#include <sim/node.h>

#define REFUSALS_BURST 6

/* A frame has come for a node that is not up. */
void refusals_answer(struct node *node, const struct parcel *parcel);
/* A node sends a frame. */
void refusals_see(struct node *node, const struct parcel *parcel);
/* Forges so many a second from now on, until the run is over. */
void refusals_forge(struct simulation *simulation, uint64_t rate);

#endif
