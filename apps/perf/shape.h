/* SPDX-License-Identifier: BSD-3-Clause */
/* shape.h - a long match list at one end: entries that all take messages, each with its own match
 * bits.
 *
 * Entry i has match bits i. One with ignored bits, a wildcard, ignores a bit that no message has,
 * so that whatever stands where, a message meets the entry of its own number and no other.
 */
#ifndef PERF_SHAPE_H
#define PERF_SHAPE_H

#include "endpoint.h"
#include "trial.h"

#define PORTAL_SHAPE 2
/* Entries, and as many descriptors, that an interface needs beside them. */
#define SHAPE_BESIDE 1024

struct shape {
	struct match_shape match;
	bool gets; /* the entries take gets, not puts */
	ptl_handle_me_t *entries;
	uint32_t count; /* of those that are there */
};

/* Makes the list for messages of a peer that land in memory, unless it is there already. Returns
 * false if there is no room for it. */
bool shape_make(struct shape *shape, struct endpoint *endpoint, ptl_process_id_t peer,
	const struct landing *landing, const struct match_shape *match, bool gets);
/* Unlinks all of it; waits until nothing is landing any more. */
void shape_free(struct shape *shape);

#endif
