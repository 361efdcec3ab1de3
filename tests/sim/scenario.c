/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.c - see scenario.h. */
#include <sim/scenario.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <engine/state.h>
#include <sim/plan.h>

#define GIGABIT        UINT64_C(1000000000)
#define KIBIBYTE       UINT64_C(1024)
#define MEBIBYTE       (KIBIBYTE * 1024)
#define FRAME_STANDARD 1514
#define FRAME_JUMBO    9014

/* What is promised. */
#define INCAST_USED   0.9
#define INCAST_SPREAD 1.5
#define LATENCY_MORE  3000 /* us that the 99.9th percentile may be above the lossless one */
#define SILENT_SHARE  0.5  /* of the goodput, that silent processes leave to the others */

#define LATE_MAX    (20 * SECOND)
#define REPEATED    0.2 /* of frames, by the adversary */
#define WITHHELD    0.002
#define REPEAT_TIME (600 * SECOND) /* beyond all that is remembered */
#define STALL_SHARE 4              /* of PTL_PEER_TIMEOUT in haste is the longest stall */
#define PAUSE_HASTY 0.02           /* of tasks, that a program pauses before in haste */
#define OUTER_MORE  32             /* bytes of a tag, IPv4 and UDP */
#define FORGED      10000
#define POOLS       24

/* --- measures */

static int number_compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void measure_latency(
	struct simulation *simulation, const struct plan *plan, struct result *result)
{
	uint64_t *latencies = simulation->workload->latencies;
	uint64_t count = simulation->workload->latency_count;

	(void)plan;
	if (count == 0)
		return;
	qsort(latencies, count, sizeof(*latencies), number_compare);
	report_metric(result, "latency_p50", "us", (double)latencies[count / 2] / 1e3);
	report_metric(result, "latency_p99", "us", (double)latencies[count * 99 / 100] / 1e3);
	report_metric(result, "latency_p999", "us", (double)latencies[count * 999 / 1000] / 1e3);
	report_metric(result, "latency_max", "us", (double)latencies[count - 1] / 1e3);
}

/* When the last task ended at its target. */
static uint64_t last_arrival(const struct simulation *simulation)
{
	uint64_t last = 1;

	for (uint64_t i = 1; i <= simulation->model->count; i++)
		if (model_task(simulation->model, i)->arrived > last)
			last = model_task(simulation->model, i)->arrived;
	return last;
}

static void measure_goodput(
	struct simulation *simulation, const struct plan *plan, struct result *result)
{
	double seconds = (double)last_arrival(simulation) / 1e9;

	report_metric(
		result, "goodput", "Gbit/s", (double)simulation->model->bytes * 8 / seconds / 1e9);
	report_metric(result, "goodput_of_rate", "",
		(double)simulation->model->bytes * 8 / seconds / (double)plan->network.rate);
}

static void measure_incast(
	struct simulation *simulation, const struct plan *plan, struct result *result)
{
	const struct star_link *link = &simulation->network.links[0];
	uint64_t last = last_arrival(simulation), slowest = 0, fastest = UINT64_MAX;
	double used, spread;

	for (uint64_t i = 1; i <= simulation->model->count; i++) {
		uint64_t taken = model_task(simulation->model, i)->arrived;

		if (taken > slowest)
			slowest = taken;
		if (taken < fastest)
			fastest = taken;
	}
	used = (double)link->down_bytes * 8e9 / (double)(last - link->down_first) /
	       (double)plan->network.rate;
	spread = (double)slowest / (double)fastest;
	report_metric(result, "link_used", "", used);
	report_metric(result, "payload_share", "",
		(double)simulation->model->bytes * 8e9 / (double)last / (double)plan->network.rate);
	report_metric(result, "slowest_to_fastest", "", spread);
	report_metric(result, "finished_after", "ms", (double)last / 1e6);
	report_metric(
		result, "host_missed", "frames", (double)simulation->nodes[0].port_counters.missed);
	report_metric(result, "switch_dropped", "frames",
		(double)simulation->network.counters.queue_dropped);
	report_metric(
		result, "switch_queue_peak", "KiB", (double)simulation->network.queue_peak / 1024);
	if (plan->expect && plan->cards < 0 &&
		(used < INCAST_USED || spread > INCAST_SPREAD ||
			simulation->nodes[0].port_counters.missed != 0))
		simulation_fail(simulation,
			"incast uses %.3f of the link, the slowest takes %.2f times the fastest, "
			"%" PRIu64 " frames missed",
			used, spread, simulation->nodes[0].port_counters.missed);
}

/* --- plans */

static void plan_begin(struct plan *plan, uint32_t nodes)
{
	*plan = (struct plan){
		.nodes = nodes,
		.network =
			{
				.rate = 25 * GIGABIT,
				.delay = MICROSECOND,
				.queue_bytes = 1024 * KIBIBYTE,
				.mark_bytes = 128 * KIBIBYTE,
				.frame_size = FRAME_STANDARD,
				.reorder_delay = 50 * MICROSECOND,
				.burst_time = 100 * MICROSECOND,
				.fault_until = UINT64_MAX,
			},
		.node =
			{
				.processes_per_host = 1,
				.receive_ring = 1024,
				.transmit_ring = 512,
				.pool_frames = 8191,
				.pools = 16,
				.queue_events = 8192,
				.turn = 200,
				.turn_frame = 60,
				.limits = {.max_match_entries = 4096,
					.max_mem_descriptors = 8192,
					.max_event_queues = 4,
					.max_atable_index = 7,
					.max_ptable_index = PORTALS - 1},
			},
		.workload = {.outstanding = 16, .tasks = 100, .size_min = 1, .size_max = 65536},
		.troubles = {.span = 1},
		.window_bytes = 8 * MEBIBYTE,
		.source_bytes = 4 * MEBIBYTE,
		.peer_timeout = 10 * SECOND,
		.event_memory = 8 * MEBIBYTE,
		.measure = measure_goodput,
	};
}

static void plan_faults(struct plan *plan, struct prng *prng)
{
	struct star_settings *network = &plan->network;

	if (prng_chance(prng, 0.6))
		network->drop = prng_fraction(prng) * 0.08;
	if (prng_chance(prng, 0.3))
		network->burst = prng_fraction(prng) * 0.003;
	network->burst_time = prng_scale(prng, 10 * MICROSECOND, 3 * MILLISECOND);
	if (prng_chance(prng, 0.4))
		network->duplicate = prng_fraction(prng) * 0.1;
	network->late = prng_chance(prng, 0.5) ? 0.3 : 0;
	network->late_time = prng_scale(prng, MILLISECOND, LATE_MAX);
	if (prng_chance(prng, 0.5))
		network->reorder = prng_fraction(prng) * 0.3;
	network->reorder_delay = prng_scale(prng, MICROSECOND, 2 * MILLISECOND);
	if (prng_chance(prng, 0.4))
		network->corrupt = prng_fraction(prng) * 0.03;
}

static void plan_all_faults(struct plan *plan)
{
	plan->network.drop = 0.01;
	plan->network.burst = 0.0003;
	plan->network.duplicate = 0.01;
	plan->network.reorder = 0.03;
	plan->network.corrupt = 0.003;
}

static void plan_troubles(struct plan *plan, struct prng *prng)
{
	struct troubles *troubles = &plan->troubles;

	troubles->span = plan->workload.interval * plan->workload.tasks + 1;
	if (prng_chance(prng, 0.4))
		troubles->stalls = (uint32_t)prng_between(prng, 1, 5);
	troubles->stall_most = prng_scale(prng, 10 * MICROSECOND, 30 * MILLISECOND);
	if (prng_chance(prng, 0.4))
		troubles->cuts = (uint32_t)prng_between(prng, 1, 5);
	troubles->cut_most = prng_scale(prng, 10 * MICROSECOND, plan->peer_timeout / 4);
	if (prng_chance(prng, 0.1))
		troubles->long_cuts = 1;
	if (prng_chance(prng, 0.3))
		troubles->restarts = (uint32_t)prng_between(prng, 1, 4);
	troubles->crash = 0.7;
	troubles->down_most = prng_chance(prng, 0.2) ? 3 * plan->peer_timeout : 100 * MILLISECOND;
}

static void plan_mix(struct plan *plan)
{
	struct workload_settings *workload = &plan->workload;

	plan->slabs = true;
	workload->empty = 0.05;
	workload->gets = 0.3;
	workload->acks = 0.5;
	workload->slabs = 0.2;
	workload->posted = 0.2;
	workload->discarded = 0.05;
	workload->self = 0.05;
}

static void plan_random(struct plan *plan, uint64_t seed)
{
	static const uint32_t frames[] = {
		270, 600, FRAME_STANDARD, FRAME_STANDARD, 4110, FRAME_JUMBO};
	static const uint64_t rates[] = {GIGABIT, 10 * GIGABIT, 25 * GIGABIT, 100 * GIGABIT};
	struct prng prng = prng_make(seed * 2 + 1);

	plan_begin(plan, (uint32_t)prng_scale(&prng, 2, 12));
	plan_mix(plan);
	plan->network.frame_size = frames[prng_below(&prng, 6)];
	plan->network.rate = rates[prng_below(&prng, 4)];
	plan->network.delay = prng_scale(&prng, 200, 100 * MICROSECOND);
	plan->network.queue_bytes = (uint32_t)prng_scale(&prng, 64 * KIBIBYTE, 4 * MEBIBYTE);
	plan->node.processes_per_host = (uint32_t)prng_between(&prng, 1, 3);
	plan->node.receive_ring = (uint16_t)prng_scale(&prng, 128, 4096);
	plan->node.wrap = prng_chance(&prng, 0.5);
	plan->node.moves = prng_chance(&prng, 0.5);
	plan->node.pools = POOLS;
	if (prng_chance(&prng, 0.3))
		plan->node.vlan = 5;
	if (prng_chance(&prng, 0.4)) {
		plan->node.udp = true;
		plan->node.processes_per_host = 1;
	}
	plan->network.frame_size += OUTER_MORE;
	/* Nearly no node needs more, and to prepare thousands takes as long as a short run. */
	plan->node.pool_frames = 2047u + plan->node.receive_ring;
	if (prng_chance(&prng, 0.3))
		plan->node.pool_frames = 2u * plan->node.receive_ring - 1;
	if (prng_chance(&prng, 0.3))
		plan->node.transmit_ring = (uint16_t)prng_scale(&prng, 16, 512);
	if (prng_chance(&prng, 0.3))
		plan->node.turn_frame = prng_scale(&prng, 20, 5000);
	if (prng_chance(&prng, 0.3))
		plan->network.slow = 0.3;
	if (prng_chance(&prng, 0.1)) {
		plan->node.slice_run = prng_scale(&prng, 100 * MICROSECOND, 5 * MILLISECOND);
		plan->node.slice_wait = prng_scale(&prng, 100 * MICROSECOND, 5 * MILLISECOND);
	}
	if (prng_chance(&prng, 0.2))
		plan->workload.pause = 0.01;
	plan->workload.tasks = 600 / plan->nodes;
	plan->workload.outstanding = (uint32_t)prng_scale(&prng, 1, 64);
	plan->workload.interval = prng_scale(&prng, 500, 300 * MICROSECOND);
	plan->workload.size_max = prng_scale(&prng, 64, 256 * KIBIBYTE);
	if (plan->network.frame_size < 1000 && plan->workload.size_max > 32 * KIBIBYTE)
		plan->workload.size_max = 32 * KIBIBYTE;
	plan->peer_timeout = prng_chance(&prng, 0.5) ? 2 * SECOND : 10 * SECOND;
	if (prng_chance(&prng, 0.8))
		plan_faults(plan, &prng);
	plan_troubles(plan, &prng);
	plan->node.gathers = prng_chance(&prng, 0.5);
}

/* Spaces with tiers, with a little of Portals 3 beside them on the same engines. */
static void plan_tiers(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 7);

	plan_random(plan, seed);
	if (plan->nodes > 16)
		plan->nodes = 16;
	plan->workload.tasks = 100 / plan->nodes;
	plan->workload.pause = 0;
	plan->workload.size_max = prng_scale(&prng, 64, 16 * KIBIBYTE);
	plan->workload.interval *= 4;
	plan->tier_steps = 800 / plan->nodes;
	plan->tier_interval = plan->workload.interval * plan->workload.tasks / plan->tier_steps + 1;
	plan_troubles(plan, &prng);
}

/* Two-sided messages between the ranks of a job, with a little of Portals 3 beside them. */
static void plan_letters(struct plan *plan, uint64_t seed)
{
	plan_tiers(plan, seed);
	plan->letter_steps = plan->tier_steps;
	plan->letter_interval = plan->tier_interval;
	plan->tier_steps = 0;
}

/* Two-sided messages to a rank whose program sleeps, alone. */
static void plan_asleep(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 11);

	plan_begin(plan, (uint32_t)prng_between(&prng, 2, 16));
	plan->workload = (struct workload_settings){.targets = TARGET_EACH, .size_max = 4096};
	plan->letters_asleep = true;
	plan->letter_steps = 1;
	plan->letter_interval = prng_scale(&prng, 1, 100) * MICROSECOND;
}

#define ENDPOINTS_MOST 4 /* of a process */

/* Endpoints of MX, alone. */
static void plan_mx(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 9);

	plan_letters(plan, seed);
	plan->cluster_steps = plan->letter_steps;
	plan->cluster_interval = plan->letter_interval;
	plan->letter_steps = plan->workload.tasks = 0;
	plan->node.endpoints = (uint32_t)prng_between(&prng, 1, ENDPOINTS_MOST);
	plan->workload.size_max = prng_scale(&prng, 64, 128 * KIBIBYTE);
}

static void plan_restart(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 1);

	plan_begin(plan, (uint32_t)prng_between(&prng, 2, 6));
	plan_mix(plan);
	plan->workload.tasks = 600 / plan->nodes;
	plan->workload.interval = prng_scale(&prng, 10 * MICROSECOND, MILLISECOND);
	plan->peer_timeout = 2 * SECOND;
	plan->node.wrap = prng_chance(&prng, 0.5);
	plan->troubles.span = plan->workload.interval * plan->workload.tasks + 1;
	plan->troubles.restarts = (uint32_t)prng_between(&prng, 1, 8);
	plan->troubles.crash = 0.7;
	plan->troubles.down_most =
		prng_chance(&prng, 0.2) ? 3 * plan->peer_timeout : 20 * MILLISECOND;
	if (prng_chance(&prng, 0.5))
		plan_faults(plan, &prng);
}

/* Nodes have their addresses from life to life, as processes on UDP sockets mostly have. */
static void plan_refusals(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 1);

	plan_begin(plan, (uint32_t)prng_between(&prng, 3, 8));
	plan_mix(plan);
	plan->node.addressed = true;
	plan->forged = FORGED;
	plan->workload.tasks = 1200 / plan->nodes;
	plan->workload.interval = prng_scale(&prng, 50 * MICROSECOND, MILLISECOND);
	plan->troubles.span = plan->workload.interval * plan->workload.tasks + 1;
	plan->troubles.restarts = (uint32_t)prng_below(&prng, 4);
	plan->troubles.crash = 0.7;
	plan->troubles.down_most = SECOND;
	if (prng_chance(&prng, 0.3))
		plan->network.drop = 0.01;
}

static void plan_stall(struct plan *plan, uint64_t seed)
{
	struct prng prng = prng_make(seed * 2 + 1);

	plan_begin(plan, (uint32_t)prng_between(&prng, 2, 8));
	plan_mix(plan);
	plan->workload.tasks = 800 / plan->nodes;
	plan->workload.interval = prng_scale(&prng, MICROSECOND, 50 * MICROSECOND);
	plan->node.receive_ring = (uint16_t)prng_scale(&prng, 64, 1024);
	plan->troubles.span = plan->workload.interval * plan->workload.tasks + 1;
	plan->troubles.stalls = 20;
	plan->troubles.stall_most = prng_scale(&prng, 100 * MICROSECOND, 100 * MILLISECOND);
}

static void plan_incast(struct plan *plan, uint64_t seed)
{
	(void)seed;
	plan_begin(plan, 33);
	plan->workload = (struct workload_settings){.targets = TARGET_FIRST,
		.tasks = 1,
		.outstanding = 1,
		.size_min = MEBIBYTE,
		.size_max = MEBIBYTE};
	plan->node.pools = 33;
	plan->measure = measure_incast;
}

static void plan_alltoall(struct plan *plan, uint64_t seed)
{
	(void)seed;
	plan_begin(plan, 64);
	plan->workload = (struct workload_settings){.targets = TARGET_EACH,
		.tasks = 63,
		.outstanding = 63,
		.size_min = 1,
		.size_max = 16384,
		.empty = 0.02,
		.gets = 0.2,
		.acks = 0.5};
	plan->window_bytes = 2 * MEBIBYTE;
	plan->source_bytes = 2 * MEBIBYTE;
	plan->node.pools = 64;
	plan->node.pool_frames = 4095;
}

static void plan_sparse(struct plan *plan, uint64_t seed)
{
	(void)seed;
	plan_begin(plan, 10000);
	plan->workload = (struct workload_settings){.targets = TARGET_FEW,
		.few = 3,
		.tasks = 10,
		.outstanding = 4,
		.interval = 500 * MICROSECOND,
		.size_min = 1,
		.size_max = 4096,
		.gets = 0.3,
		.acks = 0.3};
	plan->network.directed = true;
	plan->network.drop = 0.001;
	plan->window_bytes = 128 * KIBIBYTE;
	plan->source_bytes = 32 * KIBIBYTE;
	plan->node.receive_ring = 128;
	plan->node.queue_events = 1024;
	plan->node.pools = 8;
	plan->node.pool_frames = 32767;
	plan->node.limits.max_match_entries = 64;
	plan->node.limits.max_mem_descriptors = 256;
	plan->event_memory = 256 * KIBIBYTE;
}

/* A stream of 64 KiB puts to one neighbour; --drop says how much is lost. */
static void plan_loss(struct plan *plan, uint64_t seed)
{
	(void)seed;
	plan_begin(plan, 2);
	plan->workload = (struct workload_settings){.targets = TARGET_FIRST,
		.tasks = 4000,
		.outstanding = 32,
		.size_min = 65536,
		.size_max = 65536};
	plan->source_bytes = 16 * MEBIBYTE;
}

/* The same, between nodes that share their CPUs with others. */
static void plan_shared(struct plan *plan, uint64_t seed)
{
	plan_loss(plan, seed);
	plan->workload.tasks = 2000;
	plan->node.slice_run = 2 * MILLISECOND;
	plan->node.slice_wait = 2 * MILLISECOND;
}

/* Puts of 8 bytes, one at a time. */
static void plan_latency(struct plan *plan, uint64_t seed)
{
	(void)seed;
	plan_begin(plan, 2);
	plan->workload = (struct workload_settings){.targets = TARGET_FIRST,
		.tasks = 50000,
		.outstanding = 1,
		.acks = 1,
		.size_min = 8,
		.size_max = 8};
	plan->measure = measure_latency;
}

const struct scenario scenarios[] = {
	{"random", "2 to 23 nodes, a random network with faults, puts and gets of all sizes",
		plan_random, false, 100},
	{"tiers", "as random, 2 to 16 nodes, and Portals 4 beside Portals 3.2", plan_tiers, false,
		100},
	{"letters", "as random, 2 to 16 ranks with sends and receives", plan_letters, false, 100},
	{"asleep", "2 to 16 ranks that send to a rank whose program makes no calls", plan_asleep,
		false, 40},
	{"mx", "as random, 2 to 16 endpoints of MX with handlers and disconnects", plan_mx, false,
		100},
	{"restart", "nodes that end or crash, and start again", plan_restart, false, 50},
	{"refusals",
		"nodes that crash, after which their hosts refuse frames; and 10,000 forged "
		"refusals a second",
		plan_refusals, false, 50},
	{"stall", "receivers that stop for a while", plan_stall, false, 50},
	{"incast", "32 nodes that each send 1 MiB to the same node", plan_incast, false, 1},
	{"alltoall", "64 nodes, each of which sends to all others and reads from them",
		plan_alltoall, false, 1},
	{"sparse", "10,000 nodes, each of which sends to a few others from time to time",
		plan_sparse, false, 1},
	{"loss", "a stream of 64 KiB puts; --drop sets the loss", plan_loss, true, 1},
	{"shared", "as loss, but each node has its CPU only half of the time", plan_shared, false,
		1},
	{"latency", "8-byte puts, one at a time; --drop sets the loss", plan_latency, true, 1},
	{NULL, NULL, NULL, false, 0},
};

const struct scenario *scenario_find(const char *name)
{
	for (const struct scenario *scenario = scenarios; scenario->name; scenario++)
		if (strcmp(scenario->name, name) == 0)
			return scenario;
	return NULL;
}

/* The largest message fits, and so do all that one node is sent: nothing but the network holds them
 * up. */
static void plan_room(struct plan *plan)
{
	const struct workload_settings *workload = &plan->workload;
	uint64_t message = workload->size_max + RANGE_MORE, inbound = message;

	if (workload->targets == TARGET_FIRST)
		inbound *= (uint64_t)(plan->nodes - 1) * workload->outstanding;
	if (plan->source_bytes < message)
		plan->source_bytes = message;
	if (plan->window_bytes < inbound)
		plan->window_bytes = inbound;
}

/* What the library's times say how long it may last is divided as they are. Programs pause, so that
 * these times are met. */
static void plan_hasten(struct plan *plan)
{
	struct troubles *troubles = &plan->troubles;

	plan->peer_timeout = 10 * SECOND;
	plan->network.late_time /= plan->haste;
	troubles->cut_most = MICROSECOND + troubles->cut_most / plan->haste;
	troubles->down_most = DOWN_LEAST + troubles->down_most / plan->haste;
	if (troubles->stall_most > plan->peer_timeout / plan->haste / STALL_SHARE)
		troubles->stall_most = plan->peer_timeout / plan->haste / STALL_SHARE;
	plan->workload.pause = PAUSE_HASTY;
}

static void plan_override(struct plan *plan, const struct scenario_options *options)
{
	struct star_settings *network = &plan->network;

	plan->unprotected = options->unprotected;
	plan->expect = options->expect;
	if (options->faults)
		plan_all_faults(plan);
	if (options->nodes)
		plan->nodes = options->nodes;
	if (options->slice_run && options->slice_wait) {
		plan->node.slice_run = options->slice_run;
		plan->node.slice_wait = options->slice_wait;
	}
	if (options->udp) {
		plan->node.udp = true;
		plan->node.processes_per_host = 1;
	}
	if (options->outstanding)
		plan->workload.outstanding = options->outstanding;
	if (options->tasks && plan->workload.tasks)
		plan->workload.tasks = options->tasks;
	if (options->size) {
		plan->workload.size_max = options->size;
		if (plan->workload.size_min > 1)
			plan->workload.size_min = options->size;
	}
	if (options->rate)
		network->rate = options->rate;
	if (options->delay)
		network->delay = options->delay;
	if (options->frame)
		network->frame_size = options->frame;
	plan->silent = options->silent;
	plan->cards = options->cards;
	plan->stream_psns = options->stream_psns;
	plan->haste = options->haste ? options->haste : 1;
	if (options->haste)
		plan_hasten(plan);
	if (options->adversary) {
		network->repeat = REPEATED;
		network->withhold = WITHHELD;
		network->repeat_time = REPEAT_TIME / plan->haste;
	}
	network->drop = options->drop >= 0 ? options->drop : network->drop;
	network->burst = options->burst >= 0 ? options->burst : network->burst;
	network->duplicate = options->duplicate >= 0 ? options->duplicate : network->duplicate;
	network->reorder = options->reorder >= 0 ? options->reorder : network->reorder;
	network->corrupt = options->corrupt >= 0 ? options->corrupt : network->corrupt;
	plan_room(plan);
}

static double metric_value(const struct result *result, const char *name)
{
	for (unsigned i = 0; i < result->metric_count; i++)
		if (strcmp(result->metrics[i].name, name) == 0)
			return result->metrics[i].value;
	return 0;
}

/* The least share of the lossless goodput, by the share of frames that is lost. */
static double goodput_promised(double drop)
{
	return drop <= 0.0001  ? 0.98
	       : drop <= 0.001 ? 0.95
	       : drop <= 0.01  ? 0.80
	       : drop <= 0.05  ? 0.40
			       : 0;
}

/* What loss and silent processes cost. */
static void result_compare(
	struct result *result, const struct result *calm, const struct plan *plan)
{
	double goodput = metric_value(calm, "goodput");
	double promised = goodput_promised(plan->network.drop) * (plan->silent ? SILENT_SHARE : 1);
	double share, more;

	if (goodput > 0) {
		share = metric_value(result, "goodput") / goodput;
		report_metric(result, "goodput_of_lossless", "", share);
		result_expect(
			result, !plan->expect || share >= promised, "goodput_of_lossless", share);
	} else {
		more = metric_value(result, "latency_p999") - metric_value(calm, "latency_p999");
		report_metric(result, "latency_p999_above_lossless", "us", more);
		result_expect(result, !plan->expect || more <= LATENCY_MORE,
			"latency_p999_above_lossless", more);
	}
}

void scenario_run(const struct scenario *scenario, uint64_t seed,
	const struct scenario_options *options, struct result *result)
{
	bool compared = scenario->compared && (options->drop > 0 || options->silent > 0);
	struct plan plan, calm;
	struct result undisturbed;

	scenario->plan(&plan, seed);
	plan_override(&plan, options);
	if (compared) {
		calm = plan;
		calm.network.drop = 0;
		calm.silent = 0;
		plan_run(&calm, seed, false, &undisturbed);
	}
	plan_run(&plan, seed, options->tracing, result);
	if (compared)
		result_compare(result, &undisturbed, &plan);
}
