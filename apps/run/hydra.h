/* SPDX-License-Identifier: BSD-3-Clause */
/* hydra.h - a job on several hosts, whose processes Hydra starts by ssh. */
#ifndef RUN_HYDRA_H
#define RUN_HYDRA_H

#include "job.h"

/* Runs a job on these hosts, such as "a:4,b:4", until Hydra has ended, and returns its exit code.
 * count: of options->words. */
int hydra_run(const struct job_options *options, char *hosts, int count);

#endif
