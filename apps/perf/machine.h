/* machine.h - what a figure depends on beside the code: the machine and the settings. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include <stdbool.h>

struct machine {
	char cpu[128]; /* model */
	long cpus;     /* that this process may use */
	char kernel[128];
	char interface[256];    /* PTL_IFACE_NAME */
	char encapsulation[32]; /* PTL_ENCAP */
	char mtu[64];           /* "1500", "the device's own" */
	char hugepages[64];
	char progress[64]; /* PTL_PROGRESS, PTL_POLL */
	char faults[128];  /* PTL_FAULT, "" for none */
	const char *version;
};

/* After PtlInit. */
void machine_describe(struct machine *machine);

#endif
