/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_client.h - a client of PMIx (srun --mpi=pmix, Open MPI's mpirun), by libpmix.so.2, which is
 * opened when it is needed: it is no requirement of Postern.
 *
 * P1. Fences do not block (PMIx_Fence_nb): a thread that waits for one drives, because peers may
 *     need answers before they can reach the fence themselves.
 * P2. All data is collected by the fence: a get that had to ask another host's server would cost
 *     a round trip each.
 * P3. No event handler, no event of our own, no timeout: mpirun and Slurm end jobs at the former,
 *     and a fence that has timed out spoils the next ones.
 * P4. One process is a rank. A child inherits the variables of its rank, and the server would take
 *     it for the rank: a socket with the rank's name shows that the rank lives.
 */
#ifndef JOB_PMIX_CLIENT_H
#define JOB_PMIX_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <job/job.h>

/* Each returns false after an error: job->why. */

/* Connects to the server, and learns the size of the job. */
bool pmix_begin(struct job *job, const char *name_space);
/* Others have the value after the next fence of all. */
bool pmix_put(struct job *job, const char *key, const char *value);
bool pmix_fence(struct job *job);
bool pmix_get(struct job *job, uint32_t rank, const char *key, char *value, size_t size);
bool pmix_end(struct job *job);
void pmix_abort(int code);

#endif
