/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h - named experiments: what the network, the nodes and their programs are like, and what
 * is measured. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/report.h>

/* What a caller may change; negative or 0: as the experiment has it. */
struct scenario_options {
	bool tracing;
	bool expect;      /* what the project promises of the experiment must come true */
	bool unprotected; /* checksums cover headers only, so that corruption must show */
	bool faults;      /* all kinds of fault, for experiments that have none of their own */
	bool udp;
	uint32_t nodes;
	uint64_t tasks; /* of each node */
	uint32_t outstanding;
	uint64_t size;      /* bytes */
	uint64_t rate;      /* bit/s */
	uint64_t delay;     /* ns, of each link */
	uint32_t frame;     /* bytes from the Ethernet header on */
	uint64_t slice_run; /* ns, both or neither */
	uint64_t slice_wait;
	bool adversary;
	uint32_t haste;       /* what times are divided by; 0: 1 */
	uint32_t stream_psns; /* of transport_options */
	uint32_t silent;      /* processes that ask for data and never acknowledge it */
	double cards;         /* share of wrong ones; below 0: nodes have none */
	double drop;
	double burst;
	double duplicate;
	double reorder;
	double corrupt;
};

struct plan;

struct scenario {
	const char *name;
	const char *help;
	void (*plan)(struct plan *plan, uint64_t seed);
	bool compared;  /* with a run that loses nothing, if --drop is given */
	uint64_t seeds; /* runs unless the caller says how many */
};

/* Ends with an entry without a name. */
extern const struct scenario scenarios[];

const struct scenario *scenario_find(const char *name); /* NULL: there is none */

/* One run. The result is complete, also when result->failed is 1. */
void scenario_run(const struct scenario *scenario, uint64_t seed,
	const struct scenario_options *options, struct result *result);

#endif
