/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - what a figure depends on beside the code: the machine, the port and the settings. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include "options.h"

#define MACHINE_FACTS 16u

struct fact {
	const char *name; /* "cpu" */
	char text[256];
};

struct machine {
	unsigned count;
	struct fact facts[MACHINE_FACTS];
	long cpus; /* that this process may use */
	const char *version;
};

/* ni: the client's interface; servers: how many of them this process is. */
void machine_describe(struct machine *machine, const struct options *options, ptl_handle_ni_t ni,
	unsigned servers);

/* The model of the CPU. */
void machine_cpu(char *cpu, size_t size);

#endif
