/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - looking after another rank at a barrier. Some launchers tell nobody that a rank is dead
 * (srun --mpi=pmi2), most wait for ever for one that has left the job while others are at a
 * barrier.
 *
 * W1. Each rank looks after its right neighbour. Somebody has a neighbour that is dead if anybody
 *     is dead, and those that live come to the barrier.
 * W2. A neighbour that has not answered for the peer timeout is dead, and the job ends.
 *     Where a process answers only in its own calls (PTL_PROGRESS=inline) silence says nothing:
 *     there a neighbour is dead if the port knows that it is not there, as a node does, or if the
 *     line to it (lifeline.h) is down, and not up again within that time.
 * W3. Nothing is asked of the launcher at the barrier, which it might not expect.
 * W4. Of a rank that has not joined nobody knows where it is, and whether it is dead or late. So
 *     the first two ranks, which wait for the others to join, say so when a dead one would have had
 *     its time.
 */
#ifndef JOB_WATCH_H
#define JOB_WATCH_H

#include <stdint.h>

#include <job/job.h>

/* This rank is about to come to a barrier. If it does not know its neighbour yet, all ranks join
 * there. */
void watch_begin(struct job *job);
/* The same, at a barrier at which all join. */
void watch_begin_joining(struct job *job);
/* It has passed the barrier. */
void watch_end(struct job *job);
/* This rank waits there: looks after the neighbour if it is time for that. Returns in how many ns
 * it will be again; UINT64_MAX: never. */
uint64_t watch_turn(struct job *job);

/* job.c: for a thread that waits for the launcher. It drives if it has to, and looks after the
 * neighbour. Returns for how many ns it may sleep then; UINT64_MAX: as long as it likes. */
uint64_t job_sleep(struct job *job);

#endif
