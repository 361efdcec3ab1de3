/* SPDX-License-Identifier: BSD-3-Clause */
/* job4.h - how a process of a job opens Portals 4: pingpong4.c, counter4.c and barrier4.c begin
 * with it.
 *
 * postern-run, like Hydra, gives each process its rank, the number of ranks, and a socket
 * (PMI_RANK, PMI_SIZE, PMI_FD), on which it answers lines of PMI 1. job_open() opens a logical
 * interface, and tells the others where this process is. job_ready() learns where they are and sets
 * the map. What a process appends between the two calls is there before any message comes.
 */
#ifndef JOB4_H
#define JOB4_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals4.h>

#define JOB_MOST  64 /* ranks */
#define JOB_LINE  256
#define ANY_RANK  ((ptl_process_t){.rank = PTL_RANK_ANY})
#define RANK(one) ((ptl_process_t){.rank = (one)})

struct job {
	ptl_handle_ni_t ni;
	unsigned rank, size;
	FILE *pmi;
};

static inline void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, PtlToStr(code, PTL_STR_ERROR));
	exit(1);
}

static inline unsigned job_number(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr,
			"%s is not set: start this program by postern-run, such as postern-run "
			"-n 2 PROGRAM\n",
			name);
		exit(2);
	}
	return (unsigned)strtoul(value, NULL, 10);
}

/* Says a line, and reads the answer into `line`. */
static inline void job_ask(struct job *job, char line[JOB_LINE])
{
	fputs(line, job->pmi);
	fflush(job->pmi);
	if (!fgets(line, JOB_LINE, job->pmi) || strstr(line, "rc=-1")) {
		fputs("the launcher has ended, or its answer is no PMI 1: start the job again\n",
			stderr);
		exit(1);
	}
}

/* Opens a logical interface; kind is PTL_NI_MATCHING or PTL_NI_NO_MATCHING. */
static inline void job_open(struct job *job, unsigned kind)
{
	char line[JOB_LINE] = "cmd=init pmi_version=1 pmi_subversion=1\n";
	ptl_process_t self;

	job->rank = job_number("PMI_RANK");
	job->size = job_number("PMI_SIZE");
	job->pmi = fdopen((int)job_number("PMI_FD"), "r+");
	if (!job->pmi || job->size > JOB_MOST) {
		fprintf(stderr,
			"PMI_FD is no open descriptor, or PMI_SIZE is more than %d: start "
			"up to %d ranks by postern-run\n",
			JOB_MOST, JOB_MOST);
		exit(2);
	}
	setvbuf(job->pmi, NULL, _IOLBF, JOB_LINE);
	job_ask(job, line);
	check(PtlInit(), "PtlInit");
	check(PtlNIInit(
		      PTL_IFACE_DEFAULT, kind | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &job->ni),
		"PtlNIInit");
	check(PtlGetPhysId(job->ni, &self), "PtlGetPhysId");
	snprintf(line, sizeof(line), "cmd=put kvsname=job key=at-%u value=%u:%u\n", job->rank,
		self.phys.nid, self.phys.pid);
	job_ask(job, line);
}

/* Waits until all are here, and sets the map. */
static inline void job_ready(struct job *job)
{
	char line[JOB_LINE] = "cmd=barrier_in\n";
	ptl_process_t map[JOB_MOST];

	job_ask(job, line);
	for (unsigned i = 0; i < job->size; i++) {
		const char *value;

		snprintf(line, sizeof(line), "cmd=get kvsname=job key=at-%u\n", i);
		job_ask(job, line);
		value = strstr(line, "value=");
		if (!value ||
			sscanf(value, "value=%u:%u", &map[i].phys.nid, &map[i].phys.pid) != 2) {
			fprintf(stderr, "rank %u has published no address: start the job again\n",
				i);
			exit(1);
		}
	}
	check(PtlSetMap(job->ni, job->size, map), "PtlSetMap");
	/* Messages to a process that has no map are dropped, so all wait for all maps. */
	snprintf(line, sizeof(line), "cmd=barrier_in\n");
	job_ask(job, line);
}

/* Closes all: what was sent still arrives. */
static inline void job_close(struct job *job)
{
	char line[JOB_LINE] = "cmd=finalize\n";

	PtlNIFini(job->ni);
	PtlFini();
	job_ask(job, line);
	fclose(job->pmi);
}

#endif
