/* SPDX-License-Identifier: BSD-3-Clause */
/* simulation.h - one run: what it was asked for, its parts, and its outcome.
 *
 * I1. Nothing in it outlives the run but what the report takes out of it; no part looks at the wall
 * clock, at addresses or
 *     at the environment.
 */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sim/clock.h>
#include <sim/star.h>
#include <sim/prng.h>

struct node;
struct model;
struct workload;
struct silent;
struct tiers;
struct letters;
struct cluster;

#define FAILURE_TEXT 400

struct simulation {
	uint64_t seed;
	struct sim_clock clock;
	struct star network;
	struct prng prng; /* of the scenario and its workload */
	uint32_t node_count;
	struct node *nodes;
	struct model *model;
	struct workload *workload;
	struct silent *silent;
	struct tiers *tiers;     /* NULL: none */
	struct letters *letters; /* NULL: none; never together with tiers */
	struct cluster *cluster; /* NULL: none; never together with anything else */
	uint64_t peer_timeout;   /* ns, divided by haste */
	uint32_t haste;          /* of transport_options */
	uint32_t stream_psns;    /* of the same */
	bool tracing;            /* writes every frame and event to standard output */
	/* the workload has ended, or taken too long: no more tasks and no more trouble */
	bool over;
	bool lingering; /* a node is being closed: no other may open or close meanwhile */
	uint64_t hash;  /* of every frame sent and every event read */
	uint64_t steps;
	char failure[FAILURE_TEXT]; /* "": none */
};

/* Reports a failure: the first one is kept, and the run ends. */
void simulation_fail(struct simulation *simulation, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool simulation_failed(const struct simulation *simulation)
{
	return simulation->failure[0] != '\0';
}

/* Lets one thing happen. Returns false if nothing more can happen, or if something has failed. */
bool simulation_step(struct simulation *simulation);
/* Steps until then. */
void simulation_run_until(struct simulation *simulation, uint64_t when);

static inline uint64_t simulation_now(const struct simulation *simulation)
{
	return simulation->clock.now;
}

static inline void simulation_note(struct simulation *simulation, uint64_t value)
{
	simulation->hash = prng_rotate(simulation->hash ^ value, 29) * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
