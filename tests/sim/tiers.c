/* SPDX-License-Identifier: BSD-3-Clause */
/* tiers.c - see tiers.h. */
#include <sim/tier_program.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <engine/queue.h>
#include <engine/statistics.h>
#include <engine/tiers.h>
#include <sim/report.h>

#define EVENT_BYTES (UINT64_C(1) << 20)

static void tiers_plan(struct tiers *tiers, struct node *node);

static void tiers_step(void *object, uint64_t life)
{
	struct node *node = object;
	struct tier_program *program = node->tiers;
	struct tiers *tiers = program->tiers;
	struct prng *prng = &tiers->prng;

	if (!node->up || node->closing || node->life != life || tiers->left[node->number] == 0 ||
		tiers->simulation->over || simulation_failed(tiers->simulation))
		return;
	node_enter(node);
	tiers->left[node->number]--;
	for (uint64_t i = prng_between(prng, 1, 4); i > 0; i--)
		program_act(program);
	if (prng_chance(prng, 0.5))
		memory_change(prng_chance(prng, 0.5) ? &program->arena : &program->source, prng,
			++tiers->moment);
	for (unsigned i = 0; i < PLAIN_QUEUES; i++)
		if (prng_chance(prng, 0.4))
			program_events_read(program, i, prng_scale(prng, 1, 64));
	program_counters_look(program);
	program_calls_reap(program);
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		if (program->plain.portals[i].state != PORTAL_ENABLED && prng_chance(prng, 0.15))
			program_portal_change(program, i);
	node_leave(node);
	node_plan(node);
	tiers_plan(tiers, node);
}

static void tiers_plan(struct tiers *tiers, struct node *node)
{
	sim_clock_at(&tiers->simulation->clock,
		simulation_now(tiers->simulation) + prng_below(&tiers->prng, 2 * tiers->interval),
		tiers_step, node, node->life);
}

/* --- lives */

struct tiers *tiers_create(
	struct simulation *simulation, uint64_t steps, uint64_t interval, uint64_t size_max)
{
	uint64_t nodes = simulation->node_count;
	struct tiers *tiers;

	if (steps == 0)
		return NULL;
	tiers = report_memory(calloc(1, sizeof(*tiers)));
	*tiers = (struct tiers){
		.simulation = simulation,
		.prng = prng_make(prng_mix(~simulation->seed)),
		.steps = steps,
		.interval = interval,
		.size_max = size_max,
		.left = report_memory(calloc(nodes, sizeof(uint64_t))),
		.map = report_memory(calloc(nodes, sizeof(struct process))),
		.programs = report_memory(calloc(nodes, sizeof(struct tier_program *))),
		.tasks = report_memory(calloc(TASKS_MAX, sizeof(struct rma_task *))),
		.last = report_memory(calloc(nodes * nodes, sizeof(uint64_t))),
		.met = report_memory(calloc(nodes * nodes, sizeof(uint64_t))),
		.met_at = report_memory(calloc(nodes * nodes, sizeof(uint64_t))),
	};
	guard_start();
	tiers->ranked = prng_chance(&tiers->prng, 0.5);
	for (uint64_t i = 0; i < nodes; i++)
		tiers->left[i] = steps;
	return tiers;
}

static void program_free(struct tier_program *program)
{
	if (!program)
		return;
	memory_close(&program->arena);
	memory_close(&program->source);
	free(segment_memory(program->segment));
	free(program->shadow);
	free(program);
}

void tiers_free(struct tiers *tiers)
{
	if (!tiers)
		return;
	for (uint32_t i = 0; i < tiers->simulation->node_count; i++)
		program_free(tiers->simulation->nodes[i].tiers);
	for (uint64_t i = 0; i < tiers->count; i++) {
		free(tiers->tasks[i]->expected);
		free(tiers->tasks[i]);
	}
	free(tiers->left);
	free(tiers->map);
	free(tiers->programs);
	free(tiers->tasks);
	free(tiers->last);
	free(tiers->met);
	free(tiers->met_at);
	free(tiers);
}

static void segment_make(struct tier_program *program)
{
	const struct segment_limits limits = {
		.entries = PLAIN_ENTRIES,
		.regions = PLAIN_ENTRIES + REGIONS,
		.queues = PLAIN_QUEUES,
		.portals = PLAIN_PORTALS,
		.counters = PLAIN_COUNTERS,
		.unexpected = PLAIN_UNEXPECTED,
		.attached = PLAIN_ENTRIES,
		.list_length = PLAIN_ENTRIES,
		.event_bytes = EVENT_BYTES,
		.further = true,
	};
	size_t fixed, size = segment_size(&limits, &fixed);
	void *memory;

	size = (size + 4095) & ~(size_t)4095;
	memory = report_memory(aligned_alloc(4096, size));
	memset(memory, 0, size);
	program->segment = segment_init(memory, &limits, program->life << 20);
}

static void queues_make(struct tier_program *program)
{
	struct segment *segment = program->segment;
	uint64_t slots = segment->events;

	for (unsigned i = 0; i < PLAIN_QUEUES; i++) {
		struct plain_queue *queue = &program->plain.queues[i];
		uint32_t index = segment_take(segment, segment->free_queues);

		queue->count = prng_scale(&program->tiers->prng, 1, 256);
		queue->places = queue_places(segment, queue->count);
		queue->handle =
			handle_make(HANDLE_QUEUE, INTERFACE, index, segment_generation(segment));
		queue_init(segment, queue->handle, queue->count, slots);
		slots += queue_bytes(queue->places);
		if (index != i)
			report_stop("queue %u is number %u", i, index);
	}
	for (uint32_t i = 0; i < PLAIN_COUNTERS; i++) {
		uint32_t index = segment_take(segment, segment->free_counters);

		program->plain.counters[index].handle =
			handle_make(HANDLE_COUNTER, INTERFACE, index, segment_generation(segment));
		event_counter_init(
			segment_counter(segment, index), program->plain.counters[index].handle);
	}
}

static bool arena_is_there(const void *arena, uint64_t start, uint64_t length, bool write)
{
	return !memory_misses(
		arena, start, length, write ? MEMORY_WRITE : MEMORY_READ, MISSING_NOW, 0);
}

void tiers_begin(struct tiers *tiers, struct node *node)
{
	struct tier_program *program = report_memory(calloc(1, sizeof(*program)));
	struct command map = {.kind = COMMAND_MAP};
	struct space_options options = {
		.kind = SPACE_TIERS,
		.interface = INTERFACE,
		.uid = node->number % 2,
		.ranked = tiers->ranked,
	};

	program_free(node->tiers);
	node->tiers = program;
	program->tiers = tiers;
	program->node = node;
	program->life = node->life;
	memory_open(&program->arena, node->number, 0);
	memory_open(&program->source, node->number, 1);
	program->shadow = report_memory(calloc(1, MEMORY_BYTES));
	segment_make(program);
	options.segment = program->segment;
	if (!engine_space_open(interfaces[0].engine, SPACE, &options))
		report_stop("node %u: no memory for a space", node->number);
	program->submission = interfaces[0].submission;
	program->submission.segment = program->segment;
	program->submission.space = SPACE;
	for (uint32_t i = 0; i < tiers->simulation->node_count; i++)
		memcpy(&tiers->map[i], &tiers->simulation->nodes[i].id, sizeof(tiers->map[i]));
	program->plain.ranked = tiers->ranked;
	program->plain.map = tiers->map;
	program->plain.map_count = tiers->simulation->node_count;
	program->plain.there = arena_is_there;
	program->plain.context = &program->arena;
	map.object.index = tiers->simulation->node_count;
	map.object.other = (uintptr_t)tiers->map;
	program_ask(program, &map);
	queues_make(program);
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		program_portal_change(program, i);
	/* What this life does is of no interest to the order of the one before it. */
	for (uint32_t i = 0; i < tiers->simulation->node_count; i++)
		tiers->last[(uint64_t)i * tiers->simulation->node_count + node->number] = 0;
	tiers_plan(tiers, node);
}

void tiers_end(struct tiers *tiers, struct node *node)
{
	(void)tiers;
	/* Calls of this life end with it. */
	for (uint32_t i = 0; i < REGIONS; i++)
		if (node->tiers->regions[i])
			node->tiers->regions[i]->over = true;
}

/* --- the end */

bool tiers_done(const struct tiers *tiers)
{
	for (uint32_t i = 0; tiers && i < tiers->simulation->node_count; i++)
		if (tiers->left[i] != 0)
			return false;
	return true;
}

bool tiers_quiet(const struct tiers *tiers)
{
	for (uint64_t i = 0; tiers && i < tiers->count; i++) {
		const struct rma_task *task = tiers->tasks[i];
		const struct node *node = &tiers->simulation->nodes[task->initiator];

		if (task->begun != 0 && !task->over && node->up &&
			node->life == task->initiator_life)
			return false;
	}
	return true;
}

/* An atomic whose memory goes while it is sent comes in pieces, and is discarded (wire.md). */
static void voids_look(const struct tier_program *program)
{
	const struct tiers *tiers = program->tiers;
	uint64_t voids = 0;

	for (uint64_t i = 0; i < tiers->count; i++) {
		const struct rma_task *task = tiers->tasks[i];

		voids += task->target == program->node->number && task->message >= MESSAGE_ATOMIC &&
			 task->begun != 0 && !task->absent && !task->delivered;
	}
	if (segment_counters(program->segment)->dropped_bad_message > voids)
		FAIL(program, "tiers: node %u: dropped_bad_message is %" PRIu64,
			program->node->number,
			segment_counters(program->segment)->dropped_bad_message);
}

static void drops_look(struct tier_program *program)
{
	const struct engine_counters *counters = segment_counters(program->segment);
	const struct plain *plain = &program->plain;
	const struct {
		const char *name;
		uint64_t is, due;
	} rows[] = {
		{"dropped_no_portal", counters->dropped_no_portal, plain->no_portal},
		{"dropped_bad_cookie", counters->dropped_bad_cookie, plain->bad_cookie},
		{"dropped_disabled", counters->dropped_disabled, plain->disabled},
		{"dropped_no_match", counters->dropped_no_match, plain->no_match},
		{"dropped_permission", counters->dropped_permission, plain->permission},
		{"dropped_operation", counters->dropped_operation, plain->operation},
		{"dropped_no_header", counters->dropped_no_header, plain->no_header},
		{"dropped_no_memory_operation", counters->dropped_no_memory_operation, 0},
		{"triggers_lost", counters->triggers_lost, 0},
		{"triggered", atomic_load(&program->segment->triggered), program->triggered},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is != rows[i].due)
			FAIL(program, "tiers: node %u: %s is %" PRIu64 ", but %" PRIu64 " is due",
				program->node->number, rows[i].name, rows[i].is, rows[i].due);
}

/* Only calls that still wait for a counter have regions. */
static void regions_look(const struct tier_program *program)
{
	const struct segment *segment = program->segment;
	const uint32_t count = segment->limits.regions - segment->limits.attached;
	const uint32_t free_ = freelist_count(segment_at(segment, segment->free_regions), count);
	uint32_t held = 0;

	for (uint32_t i = 0; i < REGIONS; i++)
		held += program->regions[i] && !program->regions[i]->over;
	if (free_ + held != count)
		FAIL(program, "tiers: node %u: %u regions of %u are free, and %u are held",
			program->node->number, free_, count, held);
}

static void program_finish(struct tier_program *program)
{
	for (unsigned i = 0; i < PLAIN_QUEUES; i++)
		program_events_read(program, i, UINT64_MAX);
	program_counters_look(program);
	program_calls_reap(program);
	regions_look(program);
	drops_look(program);
	voids_look(program);
	if (program->plain.ready_head != program->plain.ready_tail)
		FAIL(program, "tiers: node %u: triggered commands are ready, and were never run",
			program->node->number);
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (program->flights[i].task)
			task_wrong(
				program, program->flights[i].task, "never ended at its target", 0);
	if (memcmp(program->arena.bytes, program->shadow, MEMORY_BYTES) != 0)
		FAIL(program, "tiers: node %u: memory holds what no message brought",
			program->node->number);
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		for (unsigned tier = 0; tier < TIERS; tier++)
			if (atomic_load(&segment_portal(program->segment, i)->length[tier]) !=
				program->plain.portals[i].lengths[tier])
				FAIL(program,
					"tiers: node %u: list %u of Portal %u has another length",
					program->node->number, tier, i);
}

void tiers_finish(struct tiers *tiers)
{
	for (uint64_t i = 0; tiers && i < tiers->count; i++) {
		const struct rma_task *task = tiers->tasks[i];
		struct node *node = &tiers->simulation->nodes[task->initiator];

		if (task->begun != 0 && !task->over && node->up &&
			node->life == task->initiator_life)
			task_wrong(node->tiers, task, "never ended at its initiator", 0);
	}
	for (uint32_t i = 0; tiers && i < tiers->simulation->node_count; i++) {
		struct node *node = &tiers->simulation->nodes[i];

		if (!node->up)
			continue;
		node_enter(node);
		program_finish(node->tiers);
		node_leave(node);
	}
}

uint64_t tiers_calls(const struct tiers *tiers)
{
	return tiers ? tiers->count : 0;
}
