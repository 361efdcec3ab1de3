/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - a run of a plan: the machinery, and the troubles of its nodes. See plan.h. */
#include <sim/plan.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <engine/state.h>
#include <sim/cluster.h>
#include <sim/letters.h>
#include <sim/refusals.h>
#include <sim/silent.h>
#include <sim/tiers.h>

#define NOTICED_MS  300 /* ms until what is under way to a crashed node fails */
#define RUN_LIMIT   (3600 * SECOND)
#define QUIET_CHUNK MILLISECOND

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
	if (argument & 1) {
		node->crashed = simulation_now(simulation);
		node_crash(node);
	} else {
		node_close(node);
	}
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
	uint64_t deadline;

	while ((!workload_done(simulation->workload) || !tiers_done(simulation->tiers) ||
		       !letters_done(simulation->letters) || !cluster_done(simulation->cluster)) &&
		simulation_now(simulation) < RUN_LIMIT && simulation_step(simulation))
		;
	simulation->over = true;
	/* Programs that end are as patient as the setting says. */
	deadline = simulation_now(simulation) + 4 * simulation->peer_timeout * simulation->haste +
		   4 * SECOND;
	/* A silent process's gets may come late for the first time, and are answered then. */
	if (simulation->silent->count > 0)
		deadline += simulation->network.settings.late_time;
	if (simulation->cluster)
		deadline += CLUSTER_QUIET;
	while (!simulation_failed(simulation) && simulation_now(simulation) < deadline &&
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

void result_expect(struct result *result, bool good, const char *what, double value)
{
	if (good || result->failed)
		return;
	result->failed = 1;
	snprintf(result->failure, sizeof(result->failure), "%s is %g, which is worse than promised",
		what, value);
}

static void result_refusals(
	struct result *result, const struct plan *plan, const struct simulation *simulation)
{
	double noticed = (double)simulation->model->noticed / MILLISECOND;

	report_metric(result, "crash_noticed", "ms", noticed);
	result_expect(result, !plan->expect || noticed <= NOTICED_MS, "crash_noticed", noticed);
}

/* Nobody asks everybody for a process whose card is right. */
static void result_cards(struct result *result, const struct plan *plan, uint64_t lies)
{
	double asked = (double)result->transport.asks_broadcast;

	report_metric(result, "wrong_cards", "", (double)lies);
	result_expect(result, !plan->expect || asked <= 2 * (double)lies, "asks_broadcast", asked);
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
			transport_hint(node_engine(&nodes[i])->transport,
				(struct process){nodes[j].id.nid, nodes[j].id.pid},
				nodes[lie ? (j + 1) % count : j].port.address);
		}
	return lies;
}

void plan_run(const struct plan *plan, uint64_t seed, bool tracing, struct result *result)
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
	if (plan->forged)
		refusals_forge(&simulation, plan->forged);
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
	if (plan->forged)
		result_refusals(result, plan, &simulation);
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
