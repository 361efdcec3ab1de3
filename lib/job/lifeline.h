/* SPDX-License-Identifier: BSD-3-Clause */
/* lifeline.h - a TCP connection between two ranks, over which nothing is ever sent. The system
 * ends it when the process at its other end ends, and answers for that process while it computes:
 * so it tells of a process that answers in its own calls only (PTL_PROGRESS=inline) whether it is
 * dead.
 *
 * L1. A rank listens on an address of the network that its interface is on, and on no other: there
 *     its neighbour reaches it, and no other host has that address.
 * L2. Only a line that has been up can be down. Where a firewall or another network stands between
 *     two ranks there is no line, and nothing is known.
 * L3. Nobody accepts: a connection is up once the system has taken it.
 */
#ifndef JOB_LIFELINE_H
#define JOB_LIFELINE_H

#include <stdint.h>

#include <job/card.h>

enum lifeline_state {
	LIFELINE_NONE,  /* it has not been up, and may never be */
	LIFELINE_UP,    /* the other process is there */
	LIFELINE_DOWN,  /* it was up; it is tried again */
	LIFELINE_SILENT /* it was up; the other's host has not answered for as long as was asked */
};

/* All zero is one that is not used. */
struct lifeline {
	int listener, socket; /* with 1 added; 0: none */
	enum lifeline_state state;
	struct card_lifeline to;
	unsigned scope; /* of link-local addresses */
	uint64_t asks;  /* lifeline_ask() */
};

/* Listens, and sets `self->lifeline`. Without an address, or a socket, it stays empty. */
void lifeline_listen(struct lifeline *line, struct card *self);
/* Begins to connect to the process whose card says where it listens. */
void lifeline_begin(struct lifeline *line, const struct card *self, const struct card *other);
/* How it stands; a line that is down is tried again, and may be up at the next look. */
enum lifeline_state lifeline_look(struct lifeline *line);
/* The system asks the other's host each second or so, and gives it up after so many ns without an
 * answer. 0: it asks nothing. */
void lifeline_ask(struct lifeline *line, uint64_t peer_timeout);
void lifeline_end(struct lifeline *line);

#endif
