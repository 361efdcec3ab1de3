/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the processes of a job on this machine: their start, their requests, and their end. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include <stdbool.h>

#define RANKS_MAX 1024u

#define EXIT_USAGE   2
#define EXIT_REFUSED 126 /* the program cannot be started, */
#define EXIT_MISSING 127 /* or is not there: as shells have it */

struct job_options {
	unsigned size;
	bool label;    /* output has the rank before each line */
	char **words;  /* the program and its arguments */
	char *meet;    /* HOST:PORT; NULL: all ranks are this process's children */
	unsigned rank; /* with meet: this process's child's */
};

/* Runs a job until all its processes have ended, and returns its exit code. */
int job_run(const struct job_options *options);

/* One sentence on standard error. */
void job_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
