/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.c - see scenario.h. */
#include <sim/scenario.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <engine/state.h>
#include <sim/cluster.h>
#include <sim/letters.h>
#include <sim/silent.h>
#include <sim/tiers.h>
#include <sim/workload.h>

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

#define RUN_LIMIT   (3600 * SECOND)
#define LATE_MAX    (20 * SECOND)
#define REPEATED    0.2 /* of frames, by the adversary */
#define WITHHELD    0.002
#define REPEAT_TIME (600 * SECOND)    /* beyond all that is remembered */
#define DOWN_LEAST  (2 * MILLISECOND) /* that a node is gone */
#define STALL_SHARE 4                 /* of PTL_PEER_TIMEOUT in haste is the longest stall */
#define PAUSE_HASTY 0.02              /* of tasks, that a program pauses before in haste */
#define QUIET_CHUNK MILLISECOND
#define OUTER_MORE  32 /* bytes of a tag, IPv4 and UDP */
#define POOLS       24

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

/* --- a run's machinery */

void simulation_fail(struct simulation *simulation, const char *format, ...)
{
	va_list arguments;
	int length;

	if (simulation_failed(simulation))
		return;
	length = snprintf(simulation->failure, FAILURE_TEXT,
		"at %.6f ms: ", (double)simulation_now(simulation) / 1e6);
	va_start(arguments, format);
	vsnprintf(simulation->failure + length, FAILURE_TEXT - (size_t)length, format, arguments);
	va_end(arguments);
}

bool simulation_step(struct simulation *simulation)
{
	simulation->steps++;
	return !simulation_failed(simulation) && sim_clock_step(&simulation->clock);
}

void simulation_run_until(struct simulation *simulation, uint64_t when)
{
	while (sim_clock_next(&simulation->clock) <= when && simulation_step(simulation))
		;
	if (!simulation_failed(simulation) && simulation->clock.now < when)
		simulation->clock.now = when;
}

static void simulation_deliver(void *context, uint32_t node, struct parcel *parcel)
{
	struct simulation *simulation = context;

	if (node < simulation->node_count)
		node_deliver(&simulation->nodes[node], parcel);
	else
		silent_deliver(simulation->silent, parcel);
}

/* The link of a process, nodes' links first: all silent processes are behind the last one. */
static uint32_t simulation_find(void *context, uint32_t nid, uint32_t pid)
{
	const struct simulation *simulation = context;

	return silent_has(simulation->silent, nid, pid) ? simulation->node_count
							: node_find(context, nid, pid);
}

/* --- troubles */

static void trouble_trace(const struct node *node, const char *what, uint64_t length)
{
	if (node->simulation->tracing)
		printf("%12" PRIu64 " trouble: node %u %s for %.3f ms\n",
			simulation_now(node->simulation), node->number, what, (double)length / 1e6);
}

static void trouble_stall(void *object, uint64_t length)
{
	struct node *node = object;

	trouble_trace(node, "stalls", length);
	node_stall(node, simulation_now(node->simulation) + length);
}

/* The CPU is shared with others: the node waits for it, and has it for a while. */
static void trouble_slice(void *object, uint64_t argument)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;
	uint64_t until = simulation_now(simulation) +
			 prng_below(&simulation->prng, 2 * node->settings->slice_wait);

	if (simulation->over)
		return;
	node_stall(node, until);
	sim_clock_at(&simulation->clock,
		until + prng_below(&simulation->prng, 2 * node->settings->slice_run), trouble_slice,
		node, argument);
}

static void trouble_over(void *object, uint64_t ended)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;

	if (simulation->over)
		return;
	if (simulation->lingering)
		sim_clock_at(&simulation->clock, simulation_now(simulation) + MILLISECOND,
			trouble_over, node, ended);
	else
		model_trouble_over(simulation->model, node, ended);
}

static void trouble_cut(void *object, uint64_t length)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;
	uint64_t until = simulation_now(simulation) + length;

	if (simulation->over)
		return;
	if (length >= simulation->peer_timeout) {
		node->troubled = true;
		if (node->trouble_ended < until)
			node->trouble_ended = until;
		sim_clock_at(&simulation->clock, until + 2 * model_grace(simulation->model),
			trouble_over, node, until);
	}
	trouble_trace(node, "is cut off", length);
	star_cut(&simulation->network, node->number, until);
}

static void trouble_open(void *object, uint64_t argument)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;

	if (simulation->over && simulation_failed(simulation))
		return;
	if (simulation->lingering) {
		sim_clock_at(&simulation->clock, simulation_now(simulation) + MILLISECOND,
			trouble_open, node, argument);
		return;
	}
	trouble_trace(node, "lives again", 0);
	node_open(node);
	node->trouble_ended = simulation_now(simulation);
	workload_resume(simulation->workload, node);
}

/* argument: as of trouble_restart(). */
static void trouble_end(struct node *node, uint64_t argument)
{
	struct simulation *simulation = node->simulation;

	node->troubled = true;
	node->trouble_ended = UINT64_MAX;
	trouble_trace(node, argument & 1 ? "crashes" : "closes", argument / 2);
	if (argument & 1)
		node_crash(node);
	else
		node_close(node);
	if (!simulation->cluster)
		model_end(simulation->model, node);
	if (simulation->tiers)
		tiers_end(simulation->tiers, node);
	if (simulation->letters)
		letters_end(simulation->letters, node);
	sim_clock_at(&simulation->clock, simulation_now(simulation) + argument / 2, trouble_open,
		node, 0);
}

/* All endpoints of a process go at once. */
static void process_crash(struct node *node, uint64_t length)
{
	struct node *end, *first = node_process(node, &end);

	for (struct node *one = first; one < end; one++)
		one->silent = true;
	for (struct node *one = first; one < end; one++)
		if (one->up)
			trouble_end(one, length * 2 + 1);
}

/* argument: how long it stays down, twice; the lowest bit says that it crashes. */
static void trouble_restart(void *object, uint64_t argument)
{
	struct node *node = object;
	struct simulation *simulation = node->simulation;

	if (simulation->over || !node->up || simulation_failed(simulation))
		return;
	if (simulation->lingering) {
		sim_clock_at(&simulation->clock, simulation_now(simulation) + MILLISECOND,
			trouble_restart, node, argument);
		return;
	}
	if (simulation->cluster && argument & 1)
		process_crash(node, argument / 2);
	else
		trouble_end(node, argument);
}

static void trouble_plan(struct simulation *simulation, const struct troubles *troubles,
	uint32_t count, happening_call *call, uint64_t least, uint64_t most, double odd)
{
	for (uint32_t i = 0; i < count; i++) {
		struct node *node =
			&simulation->nodes[prng_below(&simulation->prng, simulation->node_count)];
		uint64_t when = prng_below(&simulation->prng, troubles->span);
		uint64_t length = prng_between(&simulation->prng, least, most);

		if (call == trouble_restart)
			length = length * 2 + prng_chance(&simulation->prng, odd);
		sim_clock_at(&simulation->clock, when, call, node, length);
	}
}

static void troubles_plan(struct simulation *simulation, const struct troubles *troubles)
{
	uint64_t timeout = simulation->peer_timeout;
	struct node *end;

	for (uint32_t i = 0; i < simulation->node_count; i++)
		if (simulation->nodes[i].settings->slice_run &&
			node_process(&simulation->nodes[i], &end) == &simulation->nodes[i])
			trouble_slice(&simulation->nodes[i], 0);
	trouble_plan(simulation, troubles, troubles->stalls, trouble_stall, MICROSECOND,
		troubles->stall_most, 0);
	trouble_plan(simulation, troubles, troubles->cuts, trouble_cut, MICROSECOND,
		troubles->cut_most, 0);
	trouble_plan(
		simulation, troubles, troubles->long_cuts, trouble_cut, timeout, 2 * timeout, 0);
	trouble_plan(simulation, troubles, troubles->restarts, trouble_restart, DOWN_LEAST,
		troubles->down_most, troubles->crash);
}

/* --- a run */

static bool all_up(const struct simulation *simulation)
{
	for (uint32_t i = 0; i < simulation->node_count; i++)
		if (!simulation->nodes[i].up)
			return false;
	return true;
}

static bool all_settled(const struct simulation *simulation)
{
	for (uint32_t i = 0; i < simulation->node_count; i++)
		if (simulation->nodes[i].up && !node_settled(&simulation->nodes[i]))
			return false;
	return simulation->network.in_transit == 0;
}

static bool far_ends_missing(const struct simulation *simulation)
{
	for (uint64_t i = 1; i <= simulation->model->count; i++) {
		const struct task *task = model_task(simulation->model, i);

		if ((task->seen & TARGET_START) && !(task->seen & (TARGET_END | TARGET_FAIL)) &&
			task->target_life == simulation->nodes[task->target].life)
			return true;
	}
	return false;
}

/* The workload, then quiet. */
static void simulation_play(struct simulation *simulation)
{
	uint64_t patience;

	while ((!workload_done(simulation->workload) || !tiers_done(simulation->tiers) ||
		       !letters_done(simulation->letters) || !cluster_done(simulation->cluster)) &&
		simulation_now(simulation) < RUN_LIMIT && simulation_step(simulation))
		;
	simulation->over = true;
	/* Programs that end are as patient as the setting says. */
	patience = simulation_now(simulation) + 4 * simulation->peer_timeout * simulation->haste +
		   4 * SECOND;
	/* A silent process's gets may come late for the first time, and are answered then. */
	if (simulation->silent->count > 0)
		patience += simulation->network.settings.late_time;
	if (simulation->cluster)
		patience += CLUSTER_PATIENCE;
	while (!simulation_failed(simulation) && simulation_now(simulation) < patience &&
		(!all_up(simulation) || !all_settled(simulation) || far_ends_missing(simulation) ||
			!tiers_quiet(simulation->tiers) || !letters_quiet(simulation->letters) ||
			!cluster_quiet(simulation->cluster)))
		simulation_run_until(simulation, simulation_now(simulation) + QUIET_CHUNK);
	if (!simulation->cluster)
		model_finish(simulation->model);
	tiers_finish(simulation->tiers);
	letters_finish(simulation->letters);
	cluster_finish(simulation->cluster);
	if (!workload_done(simulation->workload))
		simulation_fail(simulation,
			"%" PRIu64 " tasks were not issued and %" PRIu64 " have not ended",
			simulation->workload->left, simulation->model->unfinished);
}

static void simulation_close(struct simulation *simulation)
{
	for (uint32_t i = 0; i < simulation->node_count; i++)
		if (simulation->nodes[i].up)
			node_close(&simulation->nodes[i]);
	while (sim_clock_step(&simulation->clock))
		;
	if (simulation->network.in_transit)
		simulation_fail(simulation, "%" PRIu64 " parcels are lost in the simulator",
			simulation->network.in_transit);
}

static void result_fill(const struct simulation *simulation, uint64_t ended, struct result *result)
{
	result->runs = 1;
	result->simulated = ended;
	result->tasks = simulation->model->count + tiers_calls(simulation->tiers) +
			letters_count(simulation->letters) + cluster_count(simulation->cluster);
	result->fail_events = simulation->model->failed;
	result->drops = simulation->model->dropped;
	result->bytes = simulation->model->bytes;
	result->network = simulation->network.counters;
	result->hash = simulation->hash;
	result->failed = simulation_failed(simulation);
	memcpy(result->failure, simulation->failure, sizeof(result->failure));
}

static void result_expect(struct result *result, bool good, const char *what, double value)
{
	if (good || result->failed)
		return;
	result->failed = 1;
	snprintf(result->failure, sizeof(result->failure), "%s is %g, which is worse than promised",
		what, value);
}

/* Nobody asks everybody for a process whose card is right. */
static void result_cards(struct result *result, const struct plan *plan, uint64_t lies)
{
	double asked = (double)result->transport.asks_everybody;

	report_metric(result, "wrong_cards", "", (double)lies);
	result_expect(result, !plan->expect || asked <= 2 * (double)lies, "asks_everybody", asked);
}

/* Each node is told where all others are, as by a launcher. Returns how often that is wrong. */
static uint64_t cards_tell(struct simulation *simulation, double wrong)
{
	struct node *nodes = simulation->nodes;
	uint32_t count = simulation->node_count;
	uint64_t lies = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < count; j++) {
			bool lie = prng_chance(&simulation->prng, wrong);

			lies += lie;
			transport_way(node_engine(&nodes[i])->transport,
				(struct process){nodes[j].id.nid, nodes[j].id.pid},
				nodes[lie ? (j + 1) % count : j].port.address);
		}
	return lies;
}

static void plan_run(const struct plan *plan, uint64_t seed, bool tracing, struct result *result)
{
	struct simulation simulation = {
		.seed = seed,
		.prng = prng_make(prng_mix(seed)),
		.node_count = plan->nodes,
		.peer_timeout = plan->peer_timeout / plan->haste,
		.haste = plan->haste,
		.stream_psns = plan->stream_psns,
		.tracing = tracing,
		.hash = seed,
	};
	struct model model;
	struct workload workload;
	struct silent silent;
	uint64_t ended, lies = 0;

	report_current = (struct result){0};
	sim_clock_init(&simulation.clock);
	star_init(&simulation.network, &plan->network, plan->nodes + (plan->silent != 0),
		&simulation.clock, ~seed);
	simulation.network.find = simulation_find;
	simulation.network.deliver = simulation_deliver;
	simulation.network.context = &simulation;
	simulation.nodes =
		report_memory(aligned_alloc(CACHE_LINE, plan->nodes * sizeof(struct node)));
	model_init(&model, &simulation, plan->window_bytes, plan->source_bytes, plan->slabs,
		plan->silent != 0);
	model.one_target = plan->workload.targets == TARGET_FIRST;
	simulation.model = &model;
	simulation.tiers = tiers_create(
		&simulation, plan->tier_steps, plan->tier_interval, plan->workload.size_max);
	simulation.letters = letters_create(
		&simulation, plan->letter_steps, plan->letter_interval, plan->workload.size_max);
	if (plan->letters_asleep)
		letters_sleep(simulation.letters);
	simulation.cluster = cluster_create(
		&simulation, plan->cluster_steps, plan->cluster_interval, plan->workload.size_max);
	node_library_open(plan->peer_timeout, plan->network.corrupt > 0 && !plan->unprotected,
		plan->event_memory, simulation.cluster != NULL);
	for (uint32_t i = 0; i < plan->nodes; i++)
		node_init(&simulation.nodes[i], &simulation, &plan->node, i);
	for (uint32_t i = 0; i < plan->nodes; i++)
		node_open(&simulation.nodes[i]);
	if (plan->cards >= 0)
		lies = cards_tell(&simulation, plan->cards);
	workload_init(&workload, &simulation, &model, &plan->workload);
	silent_init(&silent, &simulation, &plan->node, plan->silent);
	simulation.silent = &silent;
	silent_start(&silent);
	troubles_plan(&simulation, &plan->troubles);
	workload_start(&workload);

	simulation_play(&simulation);
	ended = simulation_now(&simulation);
	if (plan->measure && !simulation_failed(&simulation))
		plan->measure(&simulation, plan, &report_current);
	simulation_close(&simulation);
	node_library_close(&simulation, &plan->node);

	result_fill(&simulation, ended, &report_current);
	*result = report_current;
	if (plan->cards >= 0)
		result_cards(result, plan, lies);
	silent_free(&silent);
	workload_free(&workload);
	model_free(&model);
	tiers_free(simulation.tiers);
	letters_free(simulation.letters);
	cluster_free(simulation.cluster);
	for (uint32_t i = 0; i < plan->nodes; i++)
		node_free(&simulation.nodes[i]);
	free(simulation.nodes);
	star_free(&simulation.network);
	sim_clock_free(&simulation.clock);
}

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
	if (plan->expect && (used < INCAST_USED || spread > INCAST_SPREAD ||
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
	{"random", "2 to 23 nodes, any network, faults and troubles, puts and gets of all sizes",
		plan_random, false, 100},
	{"tiers", "2 to 16 nodes, the same, beside them spaces of Portals 4", plan_tiers, false,
		100},
	{"letters", "2 to 16 ranks, the same, sends and receives", plan_letters, false, 100},
	{"asleep", "2 to 16 ranks, sends to one whose program makes no calls", plan_asleep, false,
		40},
	{"mx", "2 to 16 endpoints of MX, the same, handlers, disconnects", plan_mx, false, 100},
	{"restart", "nodes that end and crash and come again", plan_restart, false, 50},
	{"stall", "receivers that stop for a while", plan_stall, false, 50},
	{"incast", "32 nodes send 1 MiB each to one", plan_incast, false, 1},
	{"alltoall", "each of 64 nodes sends to and reads from each other", plan_alltoall, false,
		1},
	{"sparse", "10,000 nodes, each talks to a few now and then", plan_sparse, false, 1},
	{"loss", "a stream of 64 KiB puts; say what is lost with --drop", plan_loss, true, 1},
	{"shared", "the same between nodes that have a CPU half of the time", plan_shared, false,
		1},
	{"latency", "8-byte puts, one at a time; say what is lost with --drop", plan_latency, true,
		1},
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
	if (options->tasks)
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
