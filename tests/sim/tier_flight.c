/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_flight.c - see tier_program.h. */
#include <sim/tier_program.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sim/model.h>
#include <sim/report.h>

void task_wrong(const struct tier_program *program, const struct call_task *task, const char *what,
	uint64_t value)
{
	FAIL(program,
		"tiers: call %" PRIu64 ", a %s of %" PRIu64
		" bytes from node %u (life %u) to node %u "
		"(life %u): %s (%" PRIu64 "; at node %u, decided %d)",
		task->number, task->load ? "load" : "store", task->length, task->initiator,
		task->initiator_life, task->target, task->target_life, what, value,
		program->node->number, task->delivered ? (int)task->decision.verdict : -1);
}

/* --- trouble */

static bool node_troubled(const struct tiers *tiers, uint32_t number, uint64_t since)
{
	const struct node *node = &tiers->simulation->nodes[number];

	return node->troubled &&
	       (node->trouble_ended == UINT64_MAX ||
		       node->trouble_ended + model_grace(tiers->simulation->model) >= since);
}

uint64_t *task_pair(const struct tiers *tiers, uint64_t *pairs, const struct call_task *task)
{
	return &pairs[(uint64_t)task->initiator * tiers->simulation->node_count + task->target];
}

uint64_t task_lives(const struct call_task *task)
{
	return (uint64_t)task->initiator_life << 32 | task->target_life;
}

bool task_may_fail(const struct tiers *tiers, const struct call_task *task)
{
	return node_troubled(tiers, task->initiator, task->issued) ||
	       node_troubled(tiers, task->target, task->issued) ||
	       (task_lives(task) != (UINT64_C(1) << 32 | 1) &&
		       *task_pair(tiers, tiers->met, task) != task_lives(task));
}

/* --- memory */

static uint8_t pattern(uint64_t number, uint64_t at)
{
	return (uint8_t)(prng_mix(number * UINT64_C(0x9e3779b97f4a7c15) + at / 8) >> at % 8 * 8);
}

void pattern_write(const struct call_task *task, uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = pattern(task->number, i);
}

static uint64_t arena_offset(const struct tier_program *program, uint64_t start)
{
	return start - (uintptr_t)program->arena;
}

void store_look(struct tier_program *program, const struct call_task *task, uint64_t start,
	uint64_t moved, bool exact)
{
	uint64_t at = arena_offset(program, start);

	for (uint64_t i = 0; exact && i < moved; i++)
		if (program->arena[at + i] != pattern(task->number, i)) {
			task_wrong(program, task, "arrived with a wrong byte", i);
			return;
		}
	if (moved > 0)
		memcpy(program->shadow + at, program->arena + at, moved);
}

bool flights_taint(struct tier_program *program, uint64_t start, uint64_t moved, bool store)
{
	bool tainted = false;

	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *flight = &program->flights[i];

		if (!flight->task || (!store && !flight->store) ||
			start >= flight->start + flight->moved || flight->start >= start + moved)
			continue;
		flight->tainted = true;
		flight->task->tainted |= !flight->store;
		program->node->writes |= !flight->store;
		tainted |= flight->store;
	}
	return tainted;
}

struct flight *flight_find(struct tier_program *program, const void *name)
{
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (program->flights[i].task && program->flights[i].name == name)
			return &program->flights[i];
	return NULL;
}

bool load_expect(struct tier_program *program, struct call_task *task)
{
	const struct plain_decision *decision = &task->decision;
	bool tainted = flights_taint(program, decision->start, decision->moved, false);

	task->tainted |= tainted;
	program->node->writes |= tainted;
	task->expected = report_memory(malloc(decision->moved + 1));
	if (decision->moved > 0)
		memcpy(task->expected, program->shadow + arena_offset(program, decision->start),
			decision->moved);
	return tainted;
}

void flight_begin(
	struct tier_program *program, const void *name, struct call_task *task, bool store)
{
	const struct plain_decision *decision = &task->decision;
	bool tainted = store ? flights_taint(program, decision->start, decision->moved, true)
			     : load_expect(program, task);

	for (unsigned i = 0; i < FLIGHTS; i++)
		if (!program->flights[i].task) {
			program->flights[i] = (struct flight){
				name, task, decision->start, decision->moved, store, tainted};
			return;
		}
	abort();
}
