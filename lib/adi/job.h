/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the processes of a job: who they are, barriers, the end of all. They were started
 *
 *     by a PMI 1 launcher   PMI_FD, PMI_RANK, PMI_SIZE: postern-run, mpiexec.hydra
 *     one by one            PTL_ADI_RANK, PTL_ADI_HOSTS=NID:PID,NID:PID,...: no launcher; barriers
 *                           and the end are words between the processes
 *     alone                 none of these: a job of one
 */
#ifndef ADI_JOB_H
#define ADI_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <base/pmi.h>
#include <transport/transport.h>

#define JOB_MAX 131072 /* processes: 17 bits of the match bits */

struct job {
	uint32_t rank, size;
	struct process *processes; /* by rank; NULL before job_find() */
	int socket;                /* to the launcher; -1: none */
	bool listed;               /* by PTL_ADI_HOSTS */
	char space[PMI_SPACE];
	struct pmi_lines lines;
	void (*idle)(void); /* does what there is to do while the launcher is awaited */
	char why[512];      /* the error, after a function returned false */
};

/* Reads what the environment says. Returns false after an error: job.why. */
bool job_find(struct job *job);
/* With a launcher: tells it where this process is, and learns where the others are. */
bool job_meet(struct job *job, struct process self);
/* With a launcher: returns when all others have come here, too. */
bool job_barrier(struct job *job);
/* With a launcher: this process leaves the job. */
void job_leave(struct job *job);
/* With a launcher: it shall end all processes of the job. */
void job_abort(struct job *job, int code);

/* "NID:PID,NID:PID,...": how many; 0: it is no such list. processes: NULL, or room for them. */
uint32_t job_hosts(const char *text, struct process *processes);

#endif
