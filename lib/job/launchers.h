/* SPDX-License-Identifier: BSD-3-Clause */
/* launchers.h - which launcher has started this process. launchers.c has the table.
 *
 * L1. No rank is silently alone: a launcher that has started this process as one of several and
 *     cannot be used is an error of the join, which says what to type.
 * L2. A process that is alone on purpose is not taken for a rank: the batch script of a Slurm job,
 *     what salloc starts, srun -n 1.
 * L3. The environment is read once, before Postern opens descriptors: later ones may have the
 *     number in PMI_FD.
 */
#ifndef JOB_LAUNCHERS_H
#define JOB_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>

enum launcher_kind { LAUNCHER_NONE, LAUNCHER_PMI, LAUNCHER_PMIX, LAUNCHER_LIST };

struct launcher {
	enum launcher_kind kind;
	uint32_t rank;
	uint32_t size;        /* LAUNCHER_PMIX: 0, the server knows it */
	int socket;           /* LAUNCHER_PMI: to the launcher */
	bool spread;          /* the job has processes on several hosts, and the launcher says so */
	char name_space[256]; /* LAUNCHER_PMIX: of the job */
	char why[512];        /* the error; "": there is none */
};

/* Which launcher the environment names now. lists: the front end takes PTL_ADI_HOSTS. */
void launcher_read(struct launcher *launcher, bool lists);
/* The same as of the first call in this process. */
const struct launcher *launcher_find(bool lists) CORE_API(launcher_find);

#endif
