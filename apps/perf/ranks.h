/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a library whose processes are the ranks of a job, which a launcher starts: rank 0
 * measures against rank 1. */
#ifndef PERF_RANKS_H
#define PERF_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <portals.h>

#include "library.h"

/* Joins the job, for messages of so many bytes at most; returns the own rank, 0 or 1, or ends the
 * program. */
int ranks_join(enum library library, uint64_t largest);
bool ranks_joined(void);

/* Rank 1 tells rank 0 where it serves, which waits for that. */
void ranks_tell(ptl_process_id_t own);
ptl_process_id_t ranks_hear(void);

/* At the end of a process that has joined: waits for the other one's. */
void ranks_part(void);

#endif
