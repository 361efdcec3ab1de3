/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.h - what an interface of Portals 4 tells of its counters, and of the operations that wait
 * for them. */
#ifndef TOP_COUNTER_H
#define TOP_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

#define COUNTER_NAME_BYTES 24
#define OPERATION_BYTES    64

struct counter {
	char name[COUNTER_NAME_BYTES]; /* its handle */
	uint64_t success;
	uint64_t failure;
	uint64_t waiting;           /* operations */
	uint64_t threshold;         /* the least of theirs */
	uint64_t sleepers;          /* threads */
	uint64_t test;              /* the least count that one of them waits for; 0: not known */
	char next[OPERATION_BYTES]; /* the operation that is due first; "": not known */
};

struct counters {
	unsigned count;
	struct counter *items; /* by index */
};

/* Asks for the counters of interface `number`, none if it is not of Portals 4. counters: zero, or
 * as read before. Returns false if the process does not answer any more. */
bool counters_read(struct counters *counters, struct client *client, uint64_t number);
void counters_free(struct counters *counters);

#endif
