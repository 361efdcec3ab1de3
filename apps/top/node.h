/* SPDX-License-Identifier: BSD-3-Clause */
/* node.h - what an interface that is on a node tells of the other processes there. */
#ifndef TOP_NODE_H
#define TOP_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

#define DIRECTORY_BYTES 128

/* Counters that grow, of the pair with another process. */
struct pair_counts {
	uint64_t frames_in, frames_out;
	uint64_t bytes_in, bytes_out;
	uint64_t at; /* ns, when they were read */
};

/* Another process of the node. */
struct pair {
	uint64_t pid; /* Portals' process id */
	uint64_t uid;
	uint64_t process; /* the system's number, 0: not known */
	bool paired;      /* there is a pair; only then the following counts */
	bool hot;
	uint64_t full;    /* bursts that found too little room */
	uint64_t dropped; /* frames that it did not take */
	uint64_t memory;  /* bytes */
	struct pair_counts now;
	struct pair_counts before; /* at == 0: none */
};

struct node {
	char directory[DIRECTORY_BYTES]; /* of its rendezvous; "": the interface is on no node */
	uint64_t refused;                /* other processes, for any reason */
	unsigned count;
	struct pair *pairs; /* by process id */
};

/* Asks for the node of interface `number`. node: zero, or as read before. Returns
 * false if the process does not answer any more. */
bool node_read(struct node *node, struct client *client, uint64_t number, uint64_t now);
void node_free(struct node *node);

/* The growth from `before` to `now`, per second; 0 until there are two counts. */
double pair_rate(const struct pair *pair, uint64_t before, uint64_t now);

#endif
