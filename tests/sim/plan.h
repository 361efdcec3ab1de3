/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - what a run is like: its network, nodes, programs and troubles, and what is measured. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <sim/node.h>
#include <sim/report.h>
#include <sim/simulation.h>
#include <sim/star.h>
#include <sim/workload.h>

#define DOWN_LEAST (2 * MILLISECOND) /* that a node is gone */

/* What befalls the nodes. Spans are counted from the start. */
struct troubles {
	uint64_t span;
	uint32_t stalls;
	uint64_t stall_most;
	uint32_t cuts; /* too short to count as death */
	uint64_t cut_most;
	uint32_t long_cuts; /* longer than PTL_PEER_TIMEOUT */
	uint32_t restarts;
	double crash;       /* share of restarts that are crashes */
	uint64_t down_most; /* ns until it lives again */
};

struct plan {
	uint32_t nodes;
	struct star_settings network;
	struct node_settings node;
	struct workload_settings workload;
	struct troubles troubles;
	uint64_t window_bytes;
	uint64_t source_bytes;
	bool slabs;
	uint32_t silent;
	uint64_t forged;     /* refusals a second */
	double cards;        /* as in scenario_options */
	uint64_t tier_steps; /* of each node (tiers.h) */
	uint64_t tier_interval;
	uint64_t letter_steps; /* of each node (letters.h) */
	uint64_t letter_interval;
	bool letters_asleep;
	uint64_t cluster_steps; /* of each node (cluster.h) */
	uint64_t cluster_interval;
	uint64_t peer_timeout;
	uint32_t haste;
	uint32_t stream_psns;
	bool unprotected;
	bool expect;
	uint64_t event_memory;
	void (*measure)(
		struct simulation *simulation, const struct plan *plan, struct result *result);
};

/* One run. The result is complete, also when result->failed is 1. */
void plan_run(const struct plan *plan, uint64_t seed, bool tracing, struct result *result);
/* Fails a run that has not failed before, unless the value is good. */
void result_expect(struct result *result, bool good, const char *what, double value);

#endif
