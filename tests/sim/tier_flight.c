/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_flight.c - see tier_program.h. */
#include <sim/tier_program.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <elements.h>
#include <sim/model.h>
#include <sim/report.h>

void task_wrong(const struct tier_program *program, const struct rma_task *task, const char *what,
	uint64_t value)
{
	static const char *const names[] = {
		[MESSAGE_STORE] = "store",
		[MESSAGE_LOAD] = "load",
		[MESSAGE_ATOMIC] = "atomic",
		[MESSAGE_FETCH] = "fetch",
	};

	FAIL(program,
		"tiers: call %" PRIu64 ", a %s (%#x) of %" PRIu64
		" bytes from node %u (life %u) to node %u "
		"(life %u): %s (%" PRIu64 "; at node %u, decided %d)",
		task->number, names[task->message], task->amo, task->length, task->initiator,
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

uint64_t *task_pair(const struct tiers *tiers, uint64_t *pairs, const struct rma_task *task)
{
	return &pairs[(uint64_t)task->initiator * tiers->simulation->node_count + task->target];
}

uint64_t task_lives(const struct rma_task *task)
{
	return (uint64_t)task->initiator_life << 32 | task->target_life;
}

bool task_knows(const struct tiers *tiers, const struct rma_task *task)
{
	uint64_t met_at = *task_pair(tiers, tiers->met_at, task);

	return *task_pair(tiers, tiers->met, task) == task_lives(task) &&
	       !node_troubled(tiers, task->initiator, met_at) &&
	       !node_troubled(tiers, task->target, met_at);
}

bool task_may_fail(const struct tiers *tiers, const struct rma_task *task)
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

uint64_t task_operand(const struct rma_task *task)
{
	return task->message == MESSAGE_FETCH && (task->amo & 0xff) > AMO_SWAP
		       ? element_size(task->amo >> 8)
		       : 0;
}

/* Of an atomic, which is no longer than AMO_BYTES_MAX: values that often meet others. */
static void elements_write(const struct rma_task *task, uint8_t *bytes, uint64_t length)
{
	const unsigned size = element_size(task->amo >> 8);
	uint8_t element[AMO_SIZE_MAX] = {0};

	for (uint64_t i = 0; i < length; i += size) {
		uint64_t chance = prng_mix(task->number * UINT64_C(0x9e3779b97f4a7c15) + i);

		element_make(element, task->amo >> 8, (unsigned)(chance % ELEMENT_VALUES), chance);
		memcpy(bytes + i, element, length - i < size ? length - i : size);
	}
}

void pattern_write(const struct rma_task *task, uint8_t *bytes, uint64_t length)
{
	if (task->message == MESSAGE_ATOMIC || task->message == MESSAGE_FETCH) {
		elements_write(task, bytes, length);
		return;
	}
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = pattern(task->number, i);
}

static const struct tier_program *initiator_of(
	const struct tiers *tiers, const struct rma_task *task)
{
	const struct node *node = &tiers->simulation->nodes[task->initiator];

	return node->up && node->life == task->initiator_life ? node->tiers : NULL;
}

bool task_missed(const struct tiers *tiers, const struct rma_task *task, enum memory_access access)
{
	const struct tier_program *initiator = initiator_of(tiers, task);
	uint64_t at = access == MEMORY_READ ? task->data : task->near;

	return !initiator || memory_misses(&initiator->source, initiator->source.at + at,
				     task->length, access, MISSING_ONCE, task->moment);
}

void store_look(struct tier_program *program, const struct rma_task *task, uint64_t start,
	uint64_t moved, enum store_left left)
{
	uint64_t at = memory_offset(&program->arena, start, &moved);
	const uint8_t *bytes = program->arena.bytes + at;

	for (uint64_t i = 0; left != LEFT_ANY && i < moved; i++)
		if (bytes[i] != pattern(task->number, i) &&
			(left == LEFT_ALL || bytes[i] != program->shadow[at + i])) {
			task_wrong(program, task, "arrived with a wrong byte", i);
			return;
		}
	memcpy(program->shadow + at, bytes, moved);
}

static bool flight_meets(const struct flight *flight, uint64_t start, uint64_t bytes)
{
	return flight->task && start < flight->start + flight->moved &&
	       flight->start < start + bytes;
}

bool flights_store(const struct tier_program *program, uint64_t start, uint64_t bytes)
{
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (program->flights[i].store && flight_meets(&program->flights[i], start, bytes))
			return true;
	return false;
}

bool flights_taint(struct tier_program *program, uint64_t start, uint64_t moved, bool store)
{
	bool tainted = false;

	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *flight = &program->flights[i];

		if (!flight_meets(flight, start, moved) || (!store && !flight->store))
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

bool load_expect(struct tier_program *program, struct rma_task *task)
{
	const struct plain_decision *decision = &task->decision;
	uint64_t moved = decision->moved;
	const uint64_t at = memory_offset(&program->arena, decision->start, &moved);
	bool tainted = flights_taint(program, decision->start, moved, false);

	task->tainted |= tainted;
	program->node->writes |= tainted;
	task->expected = report_memory(malloc(moved + 1));
	memcpy(task->expected, program->shadow + at, moved);
	return tainted;
}

/* J4 */
void atomic_expect(struct tier_program *program, struct rma_task *task)
{
	const struct plain_decision *decision = &task->decision;
	uint64_t moved = decision->moved;
	const uint64_t at = memory_offset(&program->arena, decision->start, &moved);
	bool tainted = flights_taint(program, decision->start, moved, true);

	memcpy(program->before, program->arena.bytes + at, moved);
	if (!tainted && memcmp(program->before, program->shadow + at, moved) != 0)
		task_wrong(program, task, "finds what no message brought", at);
	if (task->message != MESSAGE_FETCH || decision->fault)
		return;
	task->expected = report_memory(malloc(moved + 1));
	memcpy(task->expected, program->before, moved);
}

void atomic_look(struct tier_program *program, struct rma_task *task)
{
	const struct plain_decision *decision = &task->decision;
	const unsigned operation = task->amo & 0xff, type = task->amo >> 8;
	const unsigned size = element_size(type);
	uint64_t moved = decision->moved;
	const uint64_t at = memory_offset(&program->arena, decision->start, &moved);
	uint8_t source[AMO_BYTES_MAX];

	if (decision->fault) {
		if (memcmp(program->before, program->arena.bytes + at, moved) != 0)
			task_wrong(program, task, "changed memory although it failed", at);
		return;
	}
	pattern_write(task, source, task->length);
	for (uint64_t i = 0; i < decision->moved; i += size) {
		uint8_t *element = program->before + i;

		element_change(operation, type, element, source + i, task->operand);
		/* Complex products that are no numbers are the compiler's business. */
		if (operation == AMO_PROD && !element_is_number(element, type))
			continue;
		if (!element_is(program->arena.bytes + at + i, element, type)) {
			task_wrong(program, task, "made something else of an element", i);
			return;
		}
	}
	memcpy(program->shadow + at, program->arena.bytes + at, moved);
}

void flight_begin(struct tier_program *program, const void *name, struct rma_task *task, bool store)
{
	const struct plain_decision *decision = &task->decision;
	bool tainted = store ? flights_taint(program, decision->start, decision->moved, true)
			     : load_expect(program, task);

	for (unsigned i = 0; i < FLIGHTS; i++)
		if (!program->flights[i].task) {
			program->flights[i] = (struct flight){
				.name = name,
				.task = task,
				.start = decision->start,
				.moved = decision->moved,
				.moment = program->tiers->moment,
				.store = store,
				.tainted = tainted,
			};
			return;
		}
	abort();
}
