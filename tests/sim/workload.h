/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h - what the nodes' programs do: put and get as the settings say, read every event, and
 * let the model judge.
 *
 * A program issues a task when its interval has passed, or, with interval 0, whenever it has fewer
 * outstanding than it may.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/model.h>

enum workload_targets {
	TARGET_RANDOM,
	TARGET_FIRST, /* node 0, which itself issues nothing */
	TARGET_EACH,  /* all others, one after another */
	TARGET_FEW    /* a handful of others, chosen once */
};

struct workload_settings {
	enum workload_targets targets;
	uint64_t tasks;       /* of each node */
	uint32_t outstanding; /* of each node at most */
	uint64_t interval;    /* ns between two tasks, on average; 0: as soon as possible */
	double pause;         /* that a node is silent for seconds or minutes before it goes on */
	uint64_t size_min;    /* sizes are spread over the powers of two */
	uint64_t size_max;
	double empty; /* shares: puts and gets of nothing, */
	double gets;
	double acks;
	double slabs; /* of each class; the rest go to windows */
	double posted;
	double discarded;
	double self;  /* to the node itself */
	uint32_t few; /* TARGET_FEW: how many */
};

struct workload {
	struct simulation *simulation;
	struct workload_settings settings;
	struct model *model;
	uint64_t left; /* tasks that have not been issued */
	/* Latencies, if wanted: time from issue to the event, ns. */
	uint64_t *latencies; /* to the target's END */
	uint64_t latency_count;
};

void workload_init(struct workload *workload, struct simulation *simulation, struct model *model,
	const struct workload_settings *settings);
void workload_free(struct workload *workload);
/* All nodes are open: they begin. */
void workload_start(struct workload *workload);
/* A node that was opened again goes on. */
void workload_resume(struct workload *workload, struct node *node);
/* Everything was issued, and every initiator has all its events. */
bool workload_done(const struct workload *workload);

/* A node has just been opened; it is entered. */
void workload_begin(struct node *node);
/* Reads all events of a node, which is entered. */
void workload_events(struct node *node);

#endif
