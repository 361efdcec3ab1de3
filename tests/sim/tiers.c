/* SPDX-License-Identifier: BSD-3-Clause */
/* tiers.c - see tiers.h. */
#include <sim/tiers.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/extent.h>
#include <base/handle.h>
#include <engine/call.h>
#include <engine/queue.h>
#include <engine/tiers.h>
#include <engine/triggered.h>
#include <host/submission.h>
#include <sim/letters.h>
#include <sim/model.h>
#include <sim/plain.h>
#include <sim/report.h>

#define SPACE       5
#define INTERFACE   1 /* in handles */
#define REGIONS     128
#define ARENA       (UINT64_C(1) << 20)
#define SOURCE      (UINT64_C(1) << 20)
#define FLIGHTS     512
#define EVENT_BYTES (UINT64_C(1) << 20)
#define WILD_BITS   UINT64_C(0xffffffff00000000) /* a load's number is there */
#define COUNTED     (UINT64_C(1) << 62)          /* names of triggered changes of counters */
#define CALLS_MAX   1000000

struct call_task {
	uint64_t number;
	uint32_t initiator, initiator_life;
	uint32_t target, target_life;
	bool known; /* a call to that life had ended well when it began */
	bool load;
	uint8_t want;
	uint64_t length;
	uint64_t near; /* where in the source memory */
	uint64_t issued;
	uint64_t begun; /* order; 0: not yet */
	uint32_t region, generation;
	uint32_t log;
	uint64_t counter;
	uint16_t counts;
	uint8_t flags;
	struct plain_queue *queue;
	bool triggered;
	bool delivered;
	uint32_t life; /* of its target that got it */
	bool tainted;  /* a load whose memory others wrote to */
	struct plain_decision decision;
	uint8_t *expected; /* of a load */
	bool sent, answered, told;
	bool silent; /* its target does not answer */
	bool over;   /* it has had its last event */
	bool given;  /* and its region was given back */
};

/* A message in progress at a target. */
struct flight {
	const void *name;
	struct call_task *task;
	uint64_t start, moved;
	bool store;
	bool tainted;
};

struct tier_program {
	struct tiers *tiers;
	struct node *node;
	uint32_t life;
	struct segment *segment;
	struct submission submission;
	struct plain plain;
	uint8_t *arena, *shadow, *source;
	struct extent_map *arena_map, *source_map;
	uint64_t entry_at[PLAIN_ENTRIES]; /* where an entry's memory is */
	uint64_t entry_bytes[PLAIN_ENTRIES];
	bool entry_taken[PLAIN_ENTRIES];
	uint32_t generations[PLAIN_ENTRIES];
	struct plain_wish wishes[PLAIN_ENTRIES];
	uint8_t entry_tiers[PLAIN_ENTRIES];
	struct call_task *regions[REGIONS];
	struct flight flights[FLIGHTS];
	uint32_t changes;   /* triggered ones of counters */
	uint32_t triggered; /* commands that wait */
};

struct tiers {
	struct simulation *simulation;
	struct prng prng;
	uint64_t steps, interval, size_max;
	uint64_t *left;
	bool ranked;
	struct process *map;
	struct tier_program **programs;
	struct call_task **tasks;
	uint64_t count;
	uint64_t begun;
	uint64_t *last; /* begun, of the last call from a node's life that another got */
	uint64_t *met;  /* lives of which a call has ended well */
};

static struct call_task *task_of(const struct tiers *tiers, uint64_t number)
{
	return number == 0 || number > tiers->count ? NULL : tiers->tasks[number - 1];
}

static struct tier_program *here(void)
{
	return node_current()->tiers;
}

#define FAIL(program, ...) simulation_fail((program)->tiers->simulation, __VA_ARGS__)

static void task_wrong(const struct tier_program *program, const struct call_task *task,
	const char *what, uint64_t value)
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

static uint64_t *pair_of(const struct tiers *tiers, uint64_t *pairs, const struct call_task *task)
{
	return &pairs[(uint64_t)task->initiator * tiers->simulation->node_count + task->target];
}

static uint64_t task_lives(const struct call_task *task)
{
	return (uint64_t)task->initiator_life << 32 | task->target_life;
}

static bool task_may_fail(const struct tiers *tiers, const struct call_task *task)
{
	return node_troubled(tiers, task->initiator, task->issued) ||
	       node_troubled(tiers, task->target, task->issued) ||
	       (task_lives(task) != (UINT64_C(1) << 32 | 1) &&
		       *pair_of(tiers, tiers->met, task) != task_lives(task));
}

/* --- memory */

static uint8_t pattern(uint64_t number, uint64_t at)
{
	return (uint8_t)(prng_mix(number * UINT64_C(0x9e3779b97f4a7c15) + at / 8) >> at % 8 * 8);
}

static void pattern_write(const struct call_task *task, uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = pattern(task->number, i);
}

static uint64_t arena_offset(const struct tier_program *program, uint64_t start)
{
	return start - (uintptr_t)program->arena;
}

/* A store whose last byte has just been placed, or that has failed. */
static void store_look(struct tier_program *program, const struct call_task *task, uint64_t start,
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

/* Others in progress that share memory with a message no longer know what they move. Returns true
 * if there are such. */
static bool flights_taint(struct tier_program *program, uint64_t start, uint64_t moved, bool store)
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

static struct flight *flight_find(struct tier_program *program, const void *name)
{
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (program->flights[i].task && program->flights[i].name == name)
			return &program->flights[i];
	return NULL;
}

/* Keeps what a load finds now. Returns true if a message in progress may change it meanwhile. */
static bool load_expect(struct tier_program *program, struct call_task *task)
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

static void flight_begin(
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

/* --- messages, on their way into the engine */

/* J1 */
static struct call_task *request_arrived(
	struct tier_program *program, struct process from, const struct message_header *header)
{
	struct tiers *tiers = program->tiers;
	uint64_t number = header->kind == MESSAGE_STORE ? header->value : header->match_bits >> 32;
	struct call_task *task = task_of(tiers, number);
	const struct node *initiator;
	uint64_t *last;

	if (!task || task->load != (header->kind == MESSAGE_LOAD)) {
		FAIL(program, "tiers: a message that nobody sent, number %" PRIu64, number);
		return NULL;
	}
	initiator = &tiers->simulation->nodes[task->initiator];
	if (task->delivered)
		task_wrong(program, task, "arrives a second time", 0);
	if (task->begun == 0)
		task_wrong(program, task, "arrives before it has begun", 0);
	if (task->target != program->node->number || initiator->id.nid != from.nid ||
		initiator->id.pid != from.pid || header->requested != task->length)
		task_wrong(program, task, "arrives at another process, or another one does", 0);
	if (program->life < task->target_life ||
		(program->life != task->target_life && task->known))
		task_wrong(program, task, "arrives in another life", program->life);
	last = pair_of(tiers, tiers->last, task);
	if (*last >= task->begun)
		task_wrong(program, task, "arrives after a later one", *last);
	*last = task->begun;
	task->delivered = true;
	task->life = program->life;
	return task;
}

void __real_tiers_store(struct space *space, struct process from,
	const struct message_header *header, const void *data);
void __wrap_tiers_store(struct space *space, struct process from,
	const struct message_header *header, const void *data);
void __real_tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);
void __wrap_tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);
void __real_tiers_load(
	struct space *space, struct process from, const struct message_header *header);
void __wrap_tiers_load(
	struct space *space, struct process from, const struct message_header *header);
void __real_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __wrap_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __real_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __wrap_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why);

/* The initiator of a store that nobody answers has had its last event with SEND. */
static void store_hush(struct call_task *task)
{
	task->silent = task->decision.verdict == TIER_OK && task->decision.silent;
	task->over |= task->sent && task->silent;
}

void __wrap_tiers_store(struct space *space, struct process from,
	const struct message_header *header, const void *data)
{
	if (!here()) {
		letters_arrived(header);
		__real_tiers_store(space, from, header, data);
		return;
	}
	struct tier_program *program = here();
	struct call_task *task = request_arrived(program, from, header);
	struct plain_message *message;

	if (task)
		task->decision =
			plain_request(&program->plain, from, header, header->requested, &message);
	__real_tiers_store(space, from, header, data);
	if (task)
		store_hush(task);
	if (!task || task->decision.verdict != TIER_OK)
		return;
	flights_taint(program, task->decision.start, task->decision.moved, true);
	store_look(program, task, task->decision.start, task->decision.moved, true);
}

void __wrap_tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	if (!here()) {
		letters_arrived(header);
		__real_tiers_store_begin(space, from, header, record, inbound);
		return;
	}
	struct tier_program *program = here();
	struct call_task *task = request_arrived(program, from, header);
	struct plain_message *message = NULL;

	if (task)
		task->decision =
			plain_request(&program->plain, from, header, record->data_length, &message);
	__real_tiers_store_begin(space, from, header, record, inbound);
	if (task)
		store_hush(task);
	if (!task || task->decision.verdict != TIER_OK)
		return;
	if (inbound->taken == (message != NULL)) {
		task_wrong(program, task, "ends at once, or should", inbound->taken);
	} else if (message) {
		message->name = inbound->context;
		flight_begin(program, inbound->context, task, true);
	} else {
		flights_taint(program, task->decision.start, task->decision.moved, true);
		store_look(program, task, task->decision.start, task->decision.moved, true);
	}
}

void __wrap_tiers_load(
	struct space *space, struct process from, const struct message_header *header)
{
	if (!here()) {
		__real_tiers_load(space, from, header);
		return;
	}
	struct tier_program *program = here();
	struct call_task *task = request_arrived(program, from, header);
	const struct link *serving = &space->engine->serving;
	struct plain_message *message = NULL;
	const void *operation;

	if (task)
		task->decision = plain_request(&program->plain, from, header, 0, &message);
	if (message) /* its data is copied from now on */
		flight_begin(program, message, task, false);
	else if (task && task->decision.verdict == TIER_OK) /* or at once */
		load_expect(program, task);
	__real_tiers_load(space, from, header);
	if (!message)
		return;
	operation = list_empty(serving) ? NULL : link_entry(serving->prev, struct operation, link);
	flight_find(program, message)->name = operation;
	message->name = operation;
}

static void request_ended(
	struct operation *operation, enum transport_fail why, enum tier_verdict verdict)
{
	struct tier_program *program = here();
	struct plain_message *message = plain_message(&program->plain, operation);
	struct flight *flight = flight_find(program, operation);

	if (!message || !flight) {
		FAIL(program, "tiers: node %u: an operation ends that never began",
			program->node->number);
		return;
	}
	if (why != TRANSPORT_OK && !task_may_fail(program->tiers, flight->task))
		task_wrong(program, flight->task, "fails at its target for no reason", why);
	if (flight->store)
		store_look(program, flight->task, flight->start, flight->moved,
			why == TRANSPORT_OK && !flight->tainted);
	flight->task = NULL;
	plain_ended(&program->plain, message, verdict);
}

void __wrap_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	if (!here()) {
		__real_tiers_stored(engine, operation, why);
		return;
	}
	request_ended(operation, why, why == TRANSPORT_OK ? TIER_OK : TIER_UNDELIVERABLE);
	__real_tiers_stored(engine, operation, why);
}

void __wrap_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	if (!here()) {
		__real_tiers_served(engine, operation, why);
		return;
	}
	request_ended(operation, why, why == TRANSPORT_OK ? TIER_OK : TIER_UNDELIVERABLE);
	__real_tiers_served(engine, operation, why);
}

/* --- commands, on their way into the engine */

void __real_tiers_append(struct space *space, const struct command *command);
void __wrap_tiers_append(struct space *space, const struct command *command);
enum answer __real_tiers_answer(struct space *space, const struct command *command);
enum answer __wrap_tiers_answer(struct space *space, const struct command *command);
void __real_triggered_keep(struct space *space, const struct long_command *command);
void __wrap_triggered_keep(struct space *space, const struct long_command *command);
void __real_triggered_cancel(struct space *space, const struct command *command);
void __wrap_triggered_cancel(struct space *space, const struct command *command);
void __real_call_begin(struct space *space, const struct long_command *command);
void __wrap_call_begin(struct space *space, const struct long_command *command);

void __wrap_tiers_append(struct space *space, const struct command *command)
{
	if (!here()) {
		letters_appended(space, command);
		__real_tiers_append(space, command);
		return;
	}
	struct tier_program *program = here();
	uint32_t index = command->object.index;

	plain_append(&program->plain, index, command->object.generation, command->object.portal,
		program->entry_tiers[index], &program->wishes[index]);
	__real_tiers_append(space, command);
}

/* A command that was triggered is run: it must be the first that is ready. */
static void ready_expect(struct tier_program *program, uint64_t name)
{
	uint64_t due = plain_ready(&program->plain);

	program->triggered--;
	if (due != name)
		FAIL(program,
			"tiers: node %u runs the triggered command %#" PRIx64 ", but %#" PRIx64
			" is due",
			program->node->number, name, due);
}

static struct plain_wish wish_of_search(const struct search_lines *lines)
{
	return (struct plain_wish){
		.ask = {.bits = lines->bits,
			.ignore = lines->ignore,
			.nid = lines->nid,
			.pid = lines->pid},
		.length = lines->length,
		.user = lines->user,
		.counter = lines->counter,
		.min_free = lines->min_free,
		.log = lines->log,
		.counts = lines->counts,
		.flags = lines->flags,
		.options = lines->options,
	};
}

static enum answer command_expected(struct tier_program *program, const struct command *command)
{
	const struct long_command *search = (const void *)command;
	struct plain *plain = &program->plain;
	struct search_lines lines;
	struct plain_wish wish;
	struct plain_queue *queue = NULL;

	switch (command->kind) {
	case COMMAND_SEARCH:
		memcpy(&lines, search->further, sizeof(lines));
		wish = wish_of_search(&lines);
		plain_search(plain, command->object.portal, &wish, lines.remove);
		return ANSWER_OK;
	case COMMAND_WITHDRAW:
		return plain_withdraw(plain, command->object.index, command->object.generation);
	case COMMAND_PORTAL_OPEN:
	case COMMAND_PORTAL_CLOSE:
	case COMMAND_PORTAL_ENABLE:
	case COMMAND_PORTAL_DISABLE:
		for (unsigned i = 0; i < PLAIN_QUEUES; i++)
			if (plain->queues[i].handle == command->object.other)
				queue = &plain->queues[i];
		return plain_portal(plain, command, queue);
	case COMMAND_COUNTER_SET:
	case COMMAND_COUNTER_ADD:
		if (command->reply >= REPLY_SLOTS)
			ready_expect(program, COUNTED | command->reply);
		return plain_counter(plain, command);
	case COMMAND_COUNTER_FREE:
		return plain_counter(plain, command);
	default:
		return ANSWER_OK;
	}
}

/* Commands that waited for a counter, and wait no more. */
static void waits_forget(struct tier_program *program, uint32_t index, uint32_t generation)
{
	const struct plain_counter *counter = &program->plain.counters[index];

	if (counter->handle == 0 || handle_generation(counter->handle) != generation)
		return;
	for (uint32_t i = 0; i < counter->waits; i++) {
		struct call_task *task = task_of(program->tiers, counter->waiting[i].name);

		program->triggered--;
		if (!(counter->waiting[i].name & COUNTED))
			task->over = true;
	}
}

enum answer __wrap_tiers_answer(struct space *space, const struct command *command)
{
	if (!here()) {
		enum answer answer;

		letters_asked(command);
		answer = __real_tiers_answer(space, command);
		letters_answered(command, answer == ANSWER_OK);
		return answer;
	}
	struct tier_program *program = here();
	enum answer expected, answer;

	if (command->kind == COMMAND_COUNTER_FREE)
		waits_forget(program, command->count.index, command->count.generation);
	expected = command_expected(program, command);
	answer = __real_tiers_answer(space, command);
	if (answer != expected)
		FAIL(program,
			"tiers: node %u: command %u to object %u is answered %d, but %d is due",
			program->node->number, command->kind, command->object.index, (int)answer,
			(int)expected);
	return answer;
}

static uint64_t name_of_command(const struct long_command *command)
{
	const struct call_line *line = (const void *)command->further[0];

	return command->command.kind == COMMAND_CALL ? line->user
						     : COUNTED | command->command.reply;
}

void __wrap_triggered_keep(struct space *space, const struct long_command *command)
{
	if (!here()) {
		__real_triggered_keep(space, command);
		return;
	}
	struct tier_program *program = here();
	struct long_command inner = {0};
	struct call_task *task;
	uint64_t name;

	memcpy(&inner, command->further, command->command.lines * RING_BYTES);
	name = name_of_command(&inner);
	if (plain_trigger(&program->plain, command->command.object.index,
		    command->command.object.generation, command->command.object.other, name)) {
		program->triggered++;
	} else if (!(name & COUNTED)) {
		task = task_of(program->tiers, name);
		task->over = true;
	}
	__real_triggered_keep(space, command);
}

void __wrap_triggered_cancel(struct space *space, const struct command *command)
{
	if (!here()) {
		__real_triggered_cancel(space, command);
		return;
	}
	struct tier_program *program = here();

	waits_forget(program, command->count.index, command->count.generation);
	plain_cancel(&program->plain, command);
	__real_triggered_cancel(space, command);
}

void __wrap_call_begin(struct space *space, const struct long_command *command)
{
	if (!here()) {
		__real_call_begin(space, command);
		return;
	}
	struct tier_program *program = here();
	const struct call_line *line = (const void *)command->further[0];
	struct call_task *task = task_of(program->tiers, line->user);
	const struct node *target = &program->tiers->simulation->nodes[task->target];

	if (task->triggered)
		ready_expect(program, task->number);
	if (task->begun != 0)
		task_wrong(program, task, "begins a second time", 0);
	task->begun = ++program->tiers->begun;
	task->target_life = target->life;
	task->known = target->up &&
		      *pair_of(program->tiers, program->tiers->met, task) == task_lives(task);
	if (line->copied)
		memset(program->source + task->near, POISON, task->length);
	__real_call_begin(space, command);
}

/* --- ends of calls, on their way to counters and queues */

void __real_tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once);
void __wrap_tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once);

static void call_sent(struct tier_program *program, struct call_task *task,
	enum tier_verdict verdict, uint64_t bytes)
{
	struct plain_event event = {
		.kind = TIER_SEND, .verdict = (uint8_t)verdict, .user = task->number};

	if (task->load || task->sent || bytes != task->length)
		task_wrong(program, task, "SEND is not due", bytes);
	task->sent = true;
	task->told = verdict != TIER_OK &&
		     (task->want != WANT_EVENT || task->log & TIER_BIT_FAILED(TIER_SEND));
	if (task->told || (verdict == TIER_OK && task->log & TIER_BIT(TIER_SEND)))
		plain_log(&program->plain, task->queue, &event);
	task->over =
		task->want == WANT_NOTHING ||
		(task->delivered && task->decision.verdict == TIER_OK && task->decision.silent);
}

static void load_look(const struct tier_program *program, const struct call_task *task)
{
	const uint8_t *bytes = program->source + task->near;

	for (uint64_t i = 0; i < task->length; i++) {
		bool moved = i < task->decision.moved;

		if (moved && task->tainted)
			continue;
		if (bytes[i] != (moved ? task->expected[i] : POISON)) {
			task_wrong(program, task, "brought a wrong byte", i);
			return;
		}
	}
}

static void call_concluded(struct tier_program *program, struct call_task *task,
	enum tier_event kind, enum tier_verdict verdict, uint64_t bytes, bool once)
{
	const struct plain_decision *decision = &task->decision;
	bool decided = task->delivered && verdict == decision->verdict;
	struct plain_event event = {
		.kind = (uint8_t)kind, .verdict = (uint8_t)verdict, .user = task->number};

	if (kind != (task->load ? TIER_REPLY : TIER_ACK) ||
		(!task->load && (!task->sent || task->want == WANT_NOTHING)) || task->answered ||
		once != (task->want == WANT_END))
		task_wrong(program, task, "ACK or REPLY is not due", kind);
	if (decided && bytes != decision->moved)
		task_wrong(program, task, "is answered with another length", bytes);
	if (!decided && bytes != 0)
		task_wrong(program, task, "fails with a length", bytes);
	if (decided) {
		event.tier = decision->tier;
		event.moved = decision->moved;
		event.offset = decision->offset;
	}
	if (decided && verdict == TIER_OK && task->load)
		load_look(program, task);
	task->answered = true;
	task->over = true;
	if ((task->load || (task->want == WANT_EVENT && !task->told)) &&
		task->log & (verdict == TIER_OK ? TIER_BIT(kind) : TIER_BIT_FAILED(kind)))
		plain_log(&program->plain, task->queue, &event);
}

void __wrap_tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once)
{
	if (!here()) {
		__real_tier_count(space, region, kind, verdict, bytes, once);
		return;
	}
	struct tier_program *program = here();
	struct tiers *tiers = program->tiers;
	uint32_t index = region_number(space, region) - space->segment->limits.attached;
	struct call_task *task = program->regions[index];

	/* J2 */
	if (verdict != TIER_OK && !(task->delivered && task->decision.verdict == verdict) &&
		(verdict != TIER_UNDELIVERABLE || !task_may_fail(tiers, task)))
		task_wrong(program, task, "fails for no reason", verdict);
	if (verdict == TIER_OK && task->delivered && task->life == task->target_life)
		*pair_of(tiers, tiers->met, task) = task_lives(task);
	if (task->counts & TIER_BIT(kind))
		plain_count(&program->plain, task->counter, verdict,
			task->flags & ATTACHMENT_BYTES && !once ? bytes : 1);
	if (kind == TIER_SEND)
		call_sent(program, task, verdict, bytes);
	else
		call_concluded(program, task, kind, verdict, bytes, once);
	__real_tier_count(space, region, kind, verdict, bytes, once);
}

/* --- what a program sees */

static void event_copy(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	struct plain_event *event = to;
	uint64_t word = atomic_load(&slot->words[EVENT_REGION]);

	(void)attributes;
	(void)second;
	*event = (struct plain_event){
		.kind = TIER_FIELD(word, TIER_KIND_AT),
		.tier = TIER_FIELD(word, TIER_LIST_AT),
		.verdict = TIER_FIELD(word, TIER_VERDICT_AT),
		.start = atomic_load(&slot->words[EVENT_START]),
		.user = atomic_load(&slot->words[EVENT_USER]),
		.value = atomic_load(&slot->words[EVENT_VALUE]),
		.initiator = atomic_load(&slot->words[EVENT_INITIATOR]),
		.target = atomic_load(&slot->words[EVENT_TARGET]),
		.match_bits = atomic_load(&slot->words[EVENT_MATCH_BITS]),
		.requested = atomic_load(&slot->words[EVENT_REQUESTED]),
		.moved = atomic_load(&slot->words[EVENT_MOVED]),
		.offset = atomic_load(&slot->words[EVENT_OFFSET]),
	};
}

/* The tier of SEND, and what a failed call says beside its verdict, mean nothing. */
static bool event_is(const struct plain_event *event, const struct plain_event *due)
{
	bool loose =
		due->kind == TIER_SEND ||
		((due->kind == TIER_ACK || due->kind == TIER_REPLY) && due->verdict != TIER_OK);

	return event->kind == due->kind && event->verdict == due->verdict &&
	       event->user == due->user && (loose || event->tier == due->tier) &&
	       event->start == due->start && event->value == due->value &&
	       event->initiator == due->initiator && event->target == due->target &&
	       event->match_bits == due->match_bits && event->requested == due->requested &&
	       (loose || (event->moved == due->moved && event->offset == due->offset));
}

static void event_note(struct tier_program *program, const struct plain_event *event)
{
	struct simulation *simulation = program->tiers->simulation;

	simulation_note(simulation, simulation_now(simulation));
	simulation_note(simulation, (uint64_t)program->node->number << 32 | event->kind);
	simulation_note(simulation, event->user ^ event->value);
	simulation_note(simulation, event->moved);
	if (simulation->tracing)
		printf("%12" PRIu64 " tiers: node %u event %u of %" PRIu64
		       ", verdict %u, value %" PRIu64 ", %" PRIu64 " bytes\n",
			simulation_now(simulation), program->node->number, event->kind, event->user,
			event->verdict, event->value, event->moved);
}

/* Up to limit events of a queue, each as it must be. */
static void events_read(struct tier_program *program, unsigned number, uint64_t limit)
{
	struct plain_queue *queue = &program->plain.queues[number];
	const struct queue_view view = queue_view(
		program->segment, segment_queue(program->segment, number), queue->handle);
	struct plain_event event;

	for (uint64_t i = 0; i < limit && !simulation_failed(program->tiers->simulation); i++) {
		enum queue_answer answer = queue_take_oldest(&view, event_copy, &event);
		bool gap = false;
		const struct plain_event *due = plain_take(queue, &gap);
		enum queue_answer expected = !due  ? QUEUE_EMPTY
					     : gap ? QUEUE_EVENT_AFTER_GAP
						   : QUEUE_EVENT;

		if (answer != expected)
			FAIL(program,
				"tiers: node %u, queue %u: %d is told instead of %d (event %u of "
				"%" PRIu64 ")",
				program->node->number, number, (int)answer, (int)expected,
				due ? due->kind : event.kind, due ? due->user : event.user);
		else if (due && !event_is(&event, due))
			FAIL(program,
				"tiers: node %u, queue %u: event %u of %" PRIu64
				" verdict %u (tier %u, %" PRIu64 " bytes at %#" PRIx64
				", value %" PRIu64 "), but %u of %" PRIu64
				" verdict %u (tier %u, %" PRIu64 " at %#" PRIx64 ", value %" PRIu64
				") is due",
				program->node->number, number, event.kind, event.user,
				event.verdict, event.tier, event.moved, event.offset, event.value,
				due->kind, due->user, due->verdict, due->tier, due->moved,
				due->offset, due->value);
		if (!due)
			return;
		event_note(program, &event);
	}
}

static void counters_look(struct tier_program *program)
{
	for (uint32_t i = 0; i < PLAIN_COUNTERS; i++) {
		const struct plain_counter *counter = &program->plain.counters[i];
		struct event_count count = {0};
		bool alive = event_counter_read(
			segment_counter(program->segment, i), counter->handle, &count);

		if (counter->handle != 0 && (!alive || count.success != counter->count.success ||
						    count.failure != counter->count.failure))
			FAIL(program,
				"tiers: node %u: counter %u is %" PRIu64 "/%" PRIu64
				", but %" PRIu64 "/%" PRIu64 " is due",
				program->node->number, i, count.success, count.failure,
				counter->count.success, counter->count.failure);
	}
}

/* --- what a program does */

static enum answer ask(struct tier_program *program, struct command *command)
{
	return submission_call(&program->submission, command, NULL, NULL);
}

static struct prng *chance(const struct tier_program *program)
{
	return &program->tiers->prng;
}

/* A mask over kinds of events: often all, sometimes a few. */
static uint32_t mask_choose(struct prng *prng, uint32_t kinds)
{
	return prng_chance(prng, 0.6) ? kinds : kinds & (uint32_t)prng_next(prng);
}

static uint64_t counter_choose(const struct tier_program *program)
{
	return program->plain.counters[prng_below(chance(program), PLAIN_COUNTERS)].handle;
}

static struct match_entry ask_choose(struct tier_program *program)
{
	static const uint64_t ignores[] = {
		0, WILD_BITS, WILD_BITS, WILD_BITS | 1, WILD_BITS | 7, UINT64_MAX, 4, 3};
	struct tiers *tiers = program->tiers;
	struct prng *prng = chance(program);
	uint32_t number = (uint32_t)prng_below(prng, tiers->simulation->node_count);
	const struct node *node = &tiers->simulation->nodes[number];
	struct match_entry entry = {
		.bits = prng_below(prng, 6),
		.ignore = ignores[prng_below(prng, 8)],
		.nid = MATCH_ANY,
		.pid = MATCH_ANY,
	};

	if (prng_chance(prng, 0.6))
		return entry;
	entry.nid = tiers->ranked ? number : node->id.nid;
	if (!tiers->ranked && prng_chance(prng, 0.8))
		entry.pid = node->id.pid;
	return entry;
}

#define MESSAGES_KINDS (TIER_BIT(TIER_GET) | TIER_BIT(TIER_PUT))
#define KEPT_KINDS     (TIER_BIT(TIER_GET_KEPT) | TIER_BIT(TIER_PUT_KEPT))
#define ENTRY_KINDS                                                                                \
	(MESSAGES_KINDS | KEPT_KINDS | TIER_BIT(TIER_LINK) | TIER_BIT(TIER_UNLINK) |               \
		TIER_BIT(TIER_FREE) | TIER_BIT(TIER_SEARCH))

static struct plain_wish wish_choose(struct tier_program *program)
{
	struct prng *prng = chance(program);
	struct plain_wish wish = {
		.ask = ask_choose(program),
		.length = prng_scale(prng, 1, 2 * program->tiers->size_max),
		.user = prng_next(prng) >> 8,
		.counter = counter_choose(program),
		.log = mask_choose(prng, ENTRY_KINDS) |
		       mask_choose(prng, MESSAGES_KINDS | KEPT_KINDS | TIER_BIT(TIER_SEARCH))
			       << TIER_EVENTS,
		.counts = (uint16_t)mask_choose(
			prng, MESSAGES_KINDS | KEPT_KINDS | TIER_BIT(TIER_SEARCH)),
		.options = REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE,
		.uid = UINT32_MAX,
	};

	if (prng_chance(prng, 0.4))
		wish.options &= (uint8_t)~REGION_REMOTE_OFFSET;
	if (prng_chance(prng, 0.3))
		wish.options &= (uint8_t)~REGION_TRUNCATE;
	if (prng_chance(prng, 0.1))
		wish.options &= (uint8_t) ~(prng_chance(prng, 0.5) ? REGION_PUT : REGION_GET);
	if (prng_chance(prng, 0.1))
		wish.options |= REGION_NO_ACK;
	if (prng_chance(prng, 0.4))
		wish.flags |= ATTACHMENT_ONCE;
	if (prng_chance(prng, 0.3))
		wish.flags |= ATTACHMENT_BYTES;
	if (prng_chance(prng, 0.1))
		wish.flags |= ATTACHMENT_NO_HEADERS;
	if (prng_chance(prng, 0.3))
		wish.flags |= ATTACHMENT_GROWS;
	if (!(wish.options & REGION_REMOTE_OFFSET) && prng_chance(prng, 0.7))
		wish.min_free = prng_below(prng, wish.length);
	if (prng_chance(prng, 0.1))
		wish.uid = (uint32_t)prng_below(prng, 2);
	return wish;
}

/* Memory of entries that the engine has given back: written to by nobody since. */
static void entries_reap(struct tier_program *program)
{
	for (uint32_t i = 0; i < PLAIN_ENTRIES; i++) {
		uint64_t at = program->entry_at[i], bytes = program->entry_bytes[i];

		if (!program->entry_taken[i] || program->plain.entries[i].used)
			continue;
		program->entry_taken[i] = false;
		if (memcmp(program->arena + at, program->shadow + at, bytes) != 0)
			FAIL(program,
				"tiers: node %u: the memory of entry %u holds what no message "
				"brought",
				program->node->number, i);
		extent_give(program->arena_map, at, bytes);
	}
}

static void entry_append(struct tier_program *program)
{
	struct segment *segment = program->segment;
	struct prng *prng = chance(program);
	struct plain_wish wish = wish_choose(program);
	uint32_t portal = (uint32_t)prng_below(prng, PLAIN_PORTALS);
	struct command command = {.kind = COMMAND_APPEND};
	struct attachment *attachment;
	struct region *region;
	uint32_t index;
	uint64_t at;

	entries_reap(program);
	if (program->plain.portals[portal].state == PORTAL_FREE ||
		(index = segment_take(segment, segment->free_entries)) == INDEX_NONE)
		return;
	at = extent_take(program->arena_map, wish.length);
	if (at == EXTENT_NONE || program->entry_taken[index]) {
		FAIL(program, "tiers: node %u: entry %u is given away twice, or memory is short",
			program->node->number, index);
		return;
	}
	program->entry_taken[index] = true;
	program->entry_at[index] = at;
	program->entry_bytes[index] = wish.length;
	wish.start = (uintptr_t)program->arena + at;
	program->wishes[index] = wish;
	program->entry_tiers[index] = prng_chance(prng, 0.5) ? 1 : 0;
	program->generations[index] = segment_generation(segment);
	*segment_match(segment, index) = wish.ask;
	region = segment_region(segment, index);
	region->start = wish.start;
	region->length = wish.length;
	region->vector = NULL;
	region->user = wish.user;
	region->options = wish.options;
	region->log = wish.log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	attachment = segment_attachment(segment, index);
	attachment->counter = wish.counter;
	attachment->counts = wish.counts;
	attachment->flags = wish.flags;
	attachment->tier = program->entry_tiers[index];
	attachment->uid = wish.uid;
	attachment->min_free = wish.min_free;
	atomic_fetch_add(&segment_portal(segment, portal)->length[attachment->tier], 1);
	atomic_store_explicit(&segment_entry(segment, index)->gate,
		gate_make(program->generations[index], 0), memory_order_release);
	command.object.index = index;
	command.object.generation = program->generations[index];
	command.object.portal = portal;
	submission_post(&program->submission, &command);
}

static void entry_withdraw(struct tier_program *program)
{
	struct command command = {.kind = COMMAND_WITHDRAW};

	command.object.index = (uint32_t)prng_below(chance(program), PLAIN_ENTRIES);
	command.object.generation = program->generations[command.object.index];
	ask(program, &command);
}

static void search(struct tier_program *program)
{
	struct prng *prng = chance(program);
	const struct plain_wish wish = wish_choose(program);
	const struct search_lines lines = {
		.bits = wish.ask.bits,
		.ignore = wish.ask.ignore,
		.nid = wish.ask.nid,
		.pid = wish.ask.pid,
		.user = wish.user,
		.counter = wish.counter,
		.length = wish.length,
		.min_free = wish.min_free,
		.log = wish.log,
		.counts = wish.counts,
		.flags = wish.flags,
		.options = wish.options,
		.remove = prng_chance(prng, 0.5),
	};
	struct long_command command = {.command = {.kind = COMMAND_SEARCH}};

	command.command.object.portal = (uint32_t)prng_below(prng, PLAIN_PORTALS);
	memcpy(command.further, &lines, sizeof(lines));
	ask(program, &command.command);
}

static void portal_change(struct tier_program *program, uint32_t index)
{
	struct plain_portal *portal = &program->plain.portals[index];
	struct prng *prng = chance(program);
	struct command command = {.kind = COMMAND_PORTAL_ENABLE};

	command.object.index = index;
	if (portal->state == PORTAL_FREE) {
		unsigned queue = (unsigned)prng_below(prng, PLAIN_QUEUES + 1);

		command.kind = COMMAND_PORTAL_OPEN;
		if (queue < PLAIN_QUEUES) {
			command.object.other = program->plain.queues[queue].handle;
			command.update = prng_chance(prng, 0.4);
		}
		command.position = prng_chance(prng, 0.1);
		atomic_store(&segment_portal(program->segment, index)->state, PORTAL_CLAIMED);
	} else if (portal->state == PORTAL_ENABLED && prng_chance(prng, 0.5)) {
		command.kind = COMMAND_PORTAL_DISABLE;
	} else if (prng_chance(prng, 0.3)) {
		command.kind = COMMAND_PORTAL_CLOSE;
	}
	ask(program, &command);
}

/* --- calls */

static void counter_line(struct tier_program *program, struct command *command)
{
	struct prng *prng = chance(program);
	uint64_t counter = counter_choose(program);

	*command = (struct command){
		.kind = prng_chance(prng, 0.7) ? COMMAND_COUNTER_ADD : COMMAND_COUNTER_SET};
	command->space = SPACE;
	command->count.index = handle_index(counter);
	command->count.generation = handle_generation(counter);
	if (prng_chance(prng, 0.1))
		command->count.by.failure = 1;
	else
		command->count.by.success = prng_below(prng, 4);
}

/* Keeps a command until a counter has come a little further. */
static void trigger(struct tier_program *program, const struct long_command *inner, unsigned lines)
{
	uint64_t handle = counter_choose(program);
	const struct plain_counter *counter = &program->plain.counters[handle_index(handle)];
	struct long_command command = {.command = {.kind = COMMAND_TRIGGER}};

	command.command.lines = (uint8_t)lines;
	command.command.object.index = handle_index(handle);
	command.command.object.generation = handle_generation(handle);
	command.command.object.other =
		counter->count.success + counter->count.failure + prng_below(chance(program), 6);
	memcpy(command.further, inner, lines * RING_BYTES);
	atomic_fetch_add(&program->segment->triggered, 1);
	submission_post_lines(&program->submission, &command, 1 + lines);
}

static void counter_change(struct tier_program *program)
{
	struct prng *prng = chance(program);
	struct long_command command = {0};
	struct plain_counter *counter;
	uint32_t index;

	counter_line(program, &command.command);
	index = command.command.count.index;
	counter = &program->plain.counters[index];
	if (prng_chance(prng, 0.4) && program->triggered < PLAIN_TRIGGERS / 2) {
		command.command.reply = REPLY_SLOTS + ++program->changes;
		trigger(program, &command, 1);
		return;
	}
	if (prng_chance(prng, 0.1))
		command.command.kind = COMMAND_COUNTER_CANCEL;
	else if (prng_chance(prng, 0.1))
		command.command.kind = COMMAND_COUNTER_FREE;
	ask(program, &command.command);
	if (command.command.kind != COMMAND_COUNTER_FREE)
		return;
	counter->count = (struct event_count){0};
	counter->handle =
		handle_make(HANDLE_COUNTER, INTERFACE, index, segment_generation(program->segment));
	event_counter_init(segment_counter(program->segment, index), counter->handle);
}

static bool region_make(struct tier_program *program, struct call_task *task)
{
	struct segment *segment = program->segment;
	struct prng *prng = chance(program);
	uint32_t index = segment_take(segment, segment->free_regions);
	struct command command = {.kind = COMMAND_REGION_BIND};
	const uint32_t kinds = TIER_BIT(TIER_SEND) | TIER_BIT(TIER_ACK) | TIER_BIT(TIER_REPLY);
	struct attachment *attachment;
	struct region *region;

	if (index == INDEX_NONE)
		return false;
	task->region = segment->limits.attached + index;
	task->generation = segment_generation(segment);
	task->log = mask_choose(prng, kinds) | kinds << TIER_EVENTS;
	if (prng_chance(prng, 0.2))
		task->log &= ~TIER_BIT_FAILED(TIER_SEND);
	task->counts = (uint16_t)mask_choose(prng, kinds);
	task->flags = prng_chance(prng, 0.3) ? ATTACHMENT_BYTES : 0;
	task->counter = counter_choose(program);
	task->queue = &program->plain.queues[prng_below(prng, PLAIN_QUEUES)];
	program->regions[index] = task;
	region = segment_region(segment, task->region);
	region->start = (uintptr_t)program->source + task->near;
	region->length = task->length;
	region->vector = NULL;
	region->user = 0;
	region->queue = task->queue->handle;
	region->options = REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = task->log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	region->handle = handle_make(HANDLE_REGION, INTERFACE, task->region, task->generation);
	attachment = segment_attachment(segment, task->region);
	attachment->counter = task->counter;
	attachment->counts = task->counts;
	attachment->flags = task->flags;
	command.object.index = task->region;
	command.object.generation = task->generation;
	atomic_store_explicit(&region->gate, gate_make(task->generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	submission_post(&program->submission, &command);
	return true;
}

static struct call_task *task_make(struct tier_program *program)
{
	struct tiers *tiers = program->tiers;
	struct prng *prng = chance(program);
	const struct node *target =
		&tiers->simulation->nodes[prng_below(prng, tiers->simulation->node_count)];
	struct call_task *task = report_memory(calloc(1, sizeof(*task)));
	bool free_ = false;

	*task = (struct call_task){
		.number = tiers->count + 1,
		.initiator = program->node->number,
		.initiator_life = program->life,
		.target = target->number,
		.target_life = target->life,
		.load = prng_chance(prng, 0.35),
		.want = (uint8_t)prng_below(prng, 4),
		.length = prng_chance(prng, 0.05) ? 0 : prng_scale(prng, 1, tiers->size_max),
		.issued = simulation_now(tiers->simulation),
	};
	task->near = extent_take(program->source_map, task->length + 1);
	free_ = task->near == EXTENT_NONE;
	if (task->load)
		task->want = WANT_EVENT;
	if (free_ || tiers->count == CALLS_MAX || !region_make(program, task)) {
		if (!free_)
			extent_give(program->source_map, task->near, task->length + 1);
		free(task);
		return NULL;
	}
	if (task->load)
		memset(program->source + task->near, POISON, task->length);
	else
		pattern_write(task, program->source + task->near, task->length);
	tiers->tasks[tiers->count++] = task;
	return task;
}

static void call_make(struct tier_program *program)
{
	struct call_task *task = task_make(program);
	struct prng *prng = chance(program);
	struct long_command command = {.command = {.kind = COMMAND_CALL}};
	struct move *move = &command.command.move;
	struct call_line line;
	unsigned lines = 2;

	if (!task)
		return;
	command.command.space = SPACE;
	move->region = task->region;
	move->generation = task->generation;
	memcpy(&move->to, &program->tiers->simulation->nodes[task->target].id, sizeof(move->to));
	move->portal =
		(uint32_t)prng_below(prng, PLAIN_PORTALS + (prng_chance(prng, 0.05) ? 2 : 0));
	if (program->tiers->ranked)
		move->cookie = prng_chance(prng, 0.01) ? 1000 : program->node->number;
	move->match_bits = prng_below(prng, 6);
	if (task->load)
		move->match_bits |= task->number << 32;
	else
		move->value = task->number;
	move->offset = prng_chance(prng, 0.5) ? 0 : prng_below(prng, program->tiers->size_max);
	line = (struct call_line){
		.length = task->length,
		.user = task->number,
		.message = task->load ? MESSAGE_LOAD : MESSAGE_STORE,
		.want = task->want,
	};
	task->triggered = prng_chance(prng, 0.15) && program->triggered < PLAIN_TRIGGERS / 2;
	if (!task->load && !task->triggered && task->length <= COPIED_MAX &&
		prng_chance(prng, 0.3)) {
		line.copied = 1;
		lines += (unsigned)(task->length + RING_BYTES - 1) / RING_BYTES;
		memcpy(command.further[1], program->source + task->near, task->length);
	}
	memcpy(command.further[0], &line, sizeof(line));
	if (task->triggered)
		trigger(program, &command, lines);
	else
		submission_post_lines(&program->submission, &command, lines);
}

/* Regions and memory of calls that have ended. */
static void calls_reap(struct tier_program *program)
{
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct call_task *task = program->regions[i];
		struct command command = {.kind = COMMAND_REGION_RELEASE};

		/* The region of a store that nobody answers is freed with it. */
		if (!task || !task->over || task->given)
			continue;
		task->given = true;
		command.object.index = task->region;
		command.object.generation = task->generation;
		if (ask(program, &command) != ANSWER_OK)
			task_wrong(program, task, "its region is gone already", 0);
		extent_give(program->source_map, task->near, task->length + 1);
	}
}

static void program_act(struct tier_program *program)
{
	double choice = prng_fraction(chance(program));

	if ((choice -= 0.5) < 0)
		call_make(program);
	else if ((choice -= 0.25) < 0)
		entry_append(program);
	else if ((choice -= 0.08) < 0)
		search(program);
	else if ((choice -= 0.04) < 0)
		entry_withdraw(program);
	else if ((choice -= 0.05) < 0)
		portal_change(program, (uint32_t)prng_below(chance(program), PLAIN_PORTALS));
	else
		counter_change(program);
}

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
	for (unsigned i = 0; i < PLAIN_QUEUES; i++)
		if (prng_chance(prng, 0.4))
			events_read(program, i, prng_scale(prng, 1, 64));
	counters_look(program);
	calls_reap(program);
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		if (program->plain.portals[i].state != PORTAL_ENABLED && prng_chance(prng, 0.15))
			portal_change(program, i);
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
		.tasks = report_memory(calloc(CALLS_MAX, sizeof(struct call_task *))),
		.last = report_memory(calloc(nodes * nodes, sizeof(uint64_t))),
		.met = report_memory(calloc(nodes * nodes, sizeof(uint64_t))),
	};
	tiers->ranked = prng_chance(&tiers->prng, 0.5);
	for (uint64_t i = 0; i < nodes; i++)
		tiers->left[i] = steps;
	return tiers;
}

static void program_free(struct tier_program *program)
{
	if (!program)
		return;
	extent_destroy(program->arena_map);
	extent_destroy(program->source_map);
	free(program->segment);
	free(program->arena);
	free(program->shadow);
	free(program->source);
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

	size = (size + 4095) & ~(size_t)4095;
	program->segment = report_memory(aligned_alloc(4096, size));
	memset(program->segment, 0, size);
	segment_init(program->segment, &limits, program->life << 20);
}

static void queues_make(struct tier_program *program)
{
	struct segment *segment = program->segment;
	uint64_t slots = segment->events;

	for (unsigned i = 0; i < PLAIN_QUEUES; i++) {
		struct plain_queue *queue = &program->plain.queues[i];
		uint32_t index = segment_take(segment, segment->free_queues);

		queue->count = prng_scale(chance(program), 1, 256);
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
	program->arena = report_memory(calloc(1, ARENA));
	program->shadow = report_memory(calloc(1, ARENA));
	program->source = report_memory(calloc(1, SOURCE));
	program->arena_map = report_memory(extent_create(ARENA, 64));
	program->source_map = report_memory(extent_create(SOURCE, 64));
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
	map.object.index = tiers->simulation->node_count;
	map.object.other = (uintptr_t)tiers->map;
	ask(program, &map);
	queues_make(program);
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		portal_change(program, i);
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
		const struct call_task *task = tiers->tasks[i];
		const struct node *node = &tiers->simulation->nodes[task->initiator];

		if (task->begun != 0 && !task->over && node->up &&
			node->life == task->initiator_life)
			return false;
	}
	return true;
}

static void drops_look(struct tier_program *program)
{
	const struct engine_counters *counters = &program->segment->counters;
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
		{"dropped_bad_message", counters->dropped_bad_message, 0},
		{"triggers_lost", counters->triggers_lost, 0},
		{"triggered", atomic_load(&program->segment->triggered), program->triggered},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is != rows[i].due)
			FAIL(program, "tiers: node %u: %s is %" PRIu64 ", but %" PRIu64 " is due",
				program->node->number, rows[i].name, rows[i].is, rows[i].due);
}

static void program_finish(struct tier_program *program)
{
	for (unsigned i = 0; i < PLAIN_QUEUES; i++)
		events_read(program, i, UINT64_MAX);
	counters_look(program);
	calls_reap(program);
	drops_look(program);
	if (program->plain.ready_head != program->plain.ready_tail)
		FAIL(program, "tiers: node %u: triggered commands are ready, and were never run",
			program->node->number);
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (program->flights[i].task)
			task_wrong(
				program, program->flights[i].task, "never ended at its target", 0);
	if (memcmp(program->arena, program->shadow, ARENA) != 0)
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
		const struct call_task *task = tiers->tasks[i];
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
