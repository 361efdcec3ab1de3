/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.c - see workload.h. */
#include <sim/workload.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <engine/segment.h>
#include <postern.h>
#include <sim/letters.h>
#include <sim/report.h>
#include <sim/tiers.h>

#define NO_ROOM_DELAY (100 * MICROSECOND) /* until memory for a task is looked for again */
#define PAUSE_MAX     (250 * SECOND)      /* a peer is forgotten before that */
#define START_SPREAD  (1 * MICROSECOND)

static void workload_issue(void *object, uint64_t argument);

void workload_init(struct workload *workload, struct simulation *simulation, struct model *model,
	const struct workload_settings *settings)
{
	*workload = (struct workload){
		.simulation = simulation,
		.settings = *settings,
		.model = model,
		.left = settings->tasks *
			(simulation->node_count - (settings->targets == TARGET_FIRST)),
	};
	simulation->workload = workload;
	workload->latencies = report_memory(
		calloc(settings->tasks * simulation->node_count + 1, sizeof(uint64_t)));
}

void workload_free(struct workload *workload)
{
	free(workload->latencies);
}

static bool node_issues(const struct workload *workload, const struct node *node)
{
	const struct program *program = node->program;

	return node->up && !node->closing && !node->simulation->over &&
	       program->issued < workload->settings.tasks &&
	       !(workload->settings.targets == TARGET_FIRST && node->number == 0);
}

static void workload_plan(struct workload *workload, struct node *node, uint64_t delay)
{
	if (workload->settings.tasks == 0)
		return;
	sim_clock_at(&workload->simulation->clock, simulation_now(workload->simulation) + delay,
		workload_issue, node, node->life);
}

/* The initiator's turn is not over yet, so the next task comes a moment later. */
static void workload_finished(struct task *task, struct node *initiator)
{
	struct workload *workload = initiator->simulation->workload;

	(void)task;
	if (workload->settings.interval == 0)
		workload_plan(workload, initiator, 0);
}

void workload_start(struct workload *workload)
{
	struct simulation *simulation = workload->simulation;

	workload->model->finished = workload_finished;
	for (uint32_t i = 0; i < simulation->node_count; i++)
		workload_plan(workload, &simulation->nodes[i],
			prng_below(&simulation->prng, workload->settings.interval
							      ? workload->settings.interval
							      : START_SPREAD));
}

void workload_resume(struct workload *workload, struct node *node)
{
	workload_plan(workload, node, 0);
}

bool workload_done(const struct workload *workload)
{
	return workload->left == 0 && workload->model->unfinished == 0;
}

static struct node *target_choose(struct workload *workload, const struct node *node)
{
	struct simulation *simulation = workload->simulation;
	const struct program *program = node->program;
	uint32_t nodes = simulation->node_count, target;

	switch (workload->settings.targets) {
	case TARGET_FIRST:
		return &simulation->nodes[0];
	case TARGET_EACH:
		target = (uint32_t)((node->number + 1 + program->issued % (nodes - 1)) % nodes);
		return &simulation->nodes[target];
	case TARGET_FEW:
		target = (uint32_t)(prng_mix(simulation->seed ^
					     prng_mix(node->number * UINT64_C(64) +
						      prng_below(&simulation->prng,
							      workload->settings.few))) %
				    nodes);
		return &simulation->nodes[target];
	case TARGET_RANDOM:
		break;
	}
	if (nodes == 1 || prng_chance(&simulation->prng, workload->settings.self))
		return &simulation->nodes[node->number];
	target = (uint32_t)prng_below(&simulation->prng, nodes - 1);
	return &simulation->nodes[target + (target >= node->number)];
}

static enum task_class class_choose(struct workload *workload)
{
	const struct workload_settings *settings = &workload->settings;
	double choice = prng_fraction(&workload->simulation->prng);

	if ((choice -= settings->slabs) < 0)
		return TASK_SLAB;
	if ((choice -= settings->posted) < 0)
		return TASK_POSTED;
	if ((choice -= settings->discarded) < 0)
		return (enum task_class)prng_between(
			&workload->simulation->prng, TASK_UNMATCHED, TASK_NO_COOKIE);
	return TASK_WINDOW;
}

static bool task_issue(struct workload *workload, struct node *node)
{
	const struct workload_settings *settings = &workload->settings;
	struct prng *prng = &workload->simulation->prng;
	struct node *target = target_choose(workload, node);
	enum task_class class = class_choose(workload);
	uint64_t length = prng_chance(prng, settings->empty)
				  ? 0
				  : prng_scale(prng, settings->size_min, settings->size_max);
	bool get = class != TASK_SLAB && prng_chance(prng, settings->gets);
	bool acknowledge = class != TASK_SLAB && prng_chance(prng, settings->acks);

	if (class == TASK_SLAB && length > SLAB_MESSAGE_MAX)
		length = SLAB_MESSAGE_MAX;
	if (!model_issue(workload->model, node, target, class, get, acknowledge, length))
		return false;
	((struct program *)node->program)->issued++;
	workload->left--;
	return true;
}

static uint64_t interval_choose(struct workload *workload)
{
	struct prng *prng = &workload->simulation->prng;

	if (prng_chance(prng, workload->settings.pause))
		return prng_scale(prng, SECOND, PAUSE_MAX) / workload->simulation->haste;
	return prng_below(prng, 2 * workload->settings.interval);
}

static void workload_issue(void *object, uint64_t argument)
{
	struct node *node = object;
	struct workload *workload = node->simulation->workload;
	const struct program *program = node->program;
	uint64_t interval = workload->settings.interval, issued = program->issued;

	if (argument != node->life || !node_issues(workload, node))
		return;
	while (node_issues(workload, node) &&
		program->outstanding < workload->settings.outstanding &&
		!simulation_failed(node->simulation)) {
		if (!task_issue(workload, node)) {
			workload_plan(workload, node, NO_ROOM_DELAY);
			return;
		}
		if (interval)
			break;
	}
	if (interval)
		workload_plan(workload, node,
			program->issued != issued
				? interval_choose(workload)
				: prng_below(&node->simulation->prng, 2 * interval));
}

void workload_begin(struct node *node)
{
	model_begin(node->simulation->model, node);
	if (node->simulation->tiers)
		tiers_begin(node->simulation->tiers, node);
	if (node->simulation->letters)
		letters_begin(node->simulation->letters, node);
}

static void event_note(
	struct simulation *simulation, const struct node *node, const ptl_event_t *event)
{
	simulation_note(simulation, simulation_now(simulation));
	simulation_note(simulation, (uint64_t)node->number << 32 | (uint64_t)event->type);
	simulation_note(simulation, event->match_bits);
	simulation_note(simulation, event->mlength);
	simulation_note(simulation, event->offset);
	simulation_note(simulation, event->sequence);
	simulation_note(simulation, event->link);
	simulation_note(simulation, (uint64_t)event->ni_fail_type);
	if (simulation->tracing)
		printf("%12" PRIu64 " event node %u %s task %" PRIu64 " %" PRIu64
		       " bytes at %" PRIu64 ", link %" PRIu64 ", failure %d\n",
			simulation_now(simulation), node->number, postern_event_name(event->type),
			event->match_bits & TASK_NUMBER_MASK, event->mlength, event->offset,
			event->link, (int)event->ni_fail_type);
}

static void latency_note(struct workload *workload, const ptl_event_t *event)
{
	const struct task *task;

	if (!workload || event->type != PTL_EVENT_PUT_END)
		return;
	task = model_task(workload->model, event->match_bits & TASK_NUMBER_MASK);
	if (task && workload->latency_count <
			    workload->settings.tasks * workload->simulation->node_count)
		workload->latencies[workload->latency_count++] =
			simulation_now(workload->simulation) - task->issued;
}

void workload_events(struct node *node)
{
	struct simulation *simulation = node->simulation;
	ptl_event_t event;
	int code;

	while (!simulation_failed(simulation) &&
		(code = PtlEQGet(node->eq, &event)) != PTL_EQ_EMPTY) {
		node->events_seen++;
		if (code != PTL_OK) {
			simulation_fail(
				simulation, "node %u: PtlEQGet returned %d", node->number, code);
			return;
		}
		event_note(simulation, node, &event);
		model_event(simulation->model, node, &event);
		latency_note(simulation->workload, &event);
	}
}
