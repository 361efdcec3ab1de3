/* SPDX-License-Identifier: BSD-3-Clause */
/* path.h - the largest frame that the path to a process carries, found by echo questions. For
 * postern-ping and postern-info. */
#ifndef APPS_PATH_H
#define APPS_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include <postern.h>

/* Sizes as PTL_MTU counts them. */
struct path {
	bool answered;   /* the process answers at all; otherwise the rest means nothing */
	uint32_t own;    /* largest frame of this interface, */
	uint32_t target; /* and of the target's, as it says */
	uint32_t there;  /* largest question that arrives there */
	uint32_t back;   /* largest answer that arrives here, no more than `there` */
	/* Both are 0 when nothing passes any more since larger frames were tried. */
};

/* The value of PTL_MTU that both processes should have; 0: none helps. */
uint32_t path_mtu(const struct path *path);

/* Looks; takes about as long as some lost frames are waited for when the path is narrower than the
 * interface. latency: ns that an answer takes, 0 when not known. PTL_OK, or postern_ping()'s
 * code. */
int path_find(ptl_handle_ni_t ni, ptl_process_id_t target, uint64_t latency, struct path *path);

#endif
