/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_watch.c - see tier_program.h. */
#include <sim/tier_program.h>

#include <inttypes.h>
#include <string.h>

#include <base/handle.h>
#include <engine/fetch.h>
#include <engine/rma.h>
#include <engine/letters.h>
#include <engine/tiers.h>
#include <engine/triggered.h>
#include <sim/cluster.h>
#include <sim/letters.h>
#include <sim/model.h>

#define COUNTED (UINT64_C(1) << 62) /* names of triggered changes of counters */

static struct rma_task *task_of(const struct tiers *tiers, uint64_t number)
{
	return number == 0 || number > tiers->count ? NULL : tiers->tasks[number - 1];
}

static struct tier_program *here(void)
{
	return node_current()->tiers;
}

/* Without tiers it is two-sided messages that are watched. */
static void arrived(struct space *space, struct process from, const struct message_header *header)
{
	if (node_current()->simulation->cluster)
		cluster_arrived(space, from, header);
	else
		letters_arrived(header);
}

/* All of its data is here, or no more will come; else some is under way. */
static void whole(const struct space *space, uint64_t bits, bool whole)
{
	if (node_current()->simulation->cluster)
		cluster_whole(space, bits, whole);
}

/* A store has come. A word to a peer is no message, whatever its bits are. */
static void store_whole(const struct space *space, uint32_t portal, uint64_t bits)
{
	if (portal != FETCH_PORTAL)
		whole(space, bits, true);
}

static void posted(const struct space *space, const struct command *command)
{
	if (node_current()->simulation->cluster)
		cluster_posted(space, command);
	else
		letters_posted(space, command);
}

/* --- messages, on their way into the engine */

/* J1 */
static struct rma_task *request_arrived(
	struct tier_program *program, struct process from, const struct message_header *header)
{
	struct tiers *tiers = program->tiers;
	uint64_t number = plain_brings(header->kind) ? header->value : header->match_bits >> 32;
	struct rma_task *task = task_of(tiers, number);
	const struct node *initiator;
	uint64_t *last;

	if (!task || task->message != header->kind || task->amo != header->detail) {
		FAIL(program, "tiers: a message that nobody sent, number %" PRIu64, number);
		return NULL;
	}
	initiator = &tiers->simulation->nodes[task->initiator];
	if (task->delivered)
		task_wrong(program, task, "arrives a second time", 0);
	if (task->begun == 0)
		task_wrong(program, task, "arrives before it has begun", 0);
	if (task->absent)
		task_wrong(program, task, "leaves without its data", 0);
	if (task->target != program->node->number || initiator->id.nid != from.nid ||
		initiator->id.pid != from.pid ||
		header->requested != task_operand(task) + task->length)
		task_wrong(program, task, "arrives at another process, or another one does", 0);
	if (program->life < task->target_life ||
		(program->life != task->target_life && task->known))
		task_wrong(program, task, "arrives in another life", program->life);
	last = task_pair(tiers, tiers->last, task);
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
void __real_tiers_amo(struct space *space, struct process from, const struct message_header *header,
	const void *data);
void __wrap_tiers_amo(struct space *space, struct process from, const struct message_header *header,
	const void *data);
void __real_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __wrap_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __real_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __wrap_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why);

/* A store that was accepted and has ended where it was taken. */
static void store_taken(struct tier_program *program, struct rma_task *task)
{
	const struct plain_decision *decision = &task->decision;

	bool tainted = flights_taint(program, decision->start, decision->moved, true);
	enum store_left left = tainted ? LEFT_ANY : LEFT_SOME;

	task->fault = decision->fault;
	store_look(
		program, task, decision->start, decision->moved, decision->fault ? left : LEFT_ALL);
}

/* The initiator of a store that nobody answers has had its last event with SEND. */
static void store_hush(struct rma_task *task)
{
	task->silent = task->decision.verdict == TIER_OK && task->decision.silent;
	task->over |= task->sent && task->silent;
}

void __wrap_tiers_store(struct space *space, struct process from,
	const struct message_header *header, const void *data)
{
	if (!here()) {
		__real_tiers_store(space, from, header, data);
		return;
	}
	struct tier_program *program = here();
	struct rma_task *task = request_arrived(program, from, header);
	struct plain_message *message;

	if (task)
		task->decision =
			plain_request(&program->plain, from, header, header->requested, &message);
	__real_tiers_store(space, from, header, data);
	if (task)
		store_hush(task);
	if (task && task->decision.verdict == TIER_OK)
		store_taken(program, task);
}

void __wrap_tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	if (!here()) {
		__real_tiers_store_begin(space, from, header, record, inbound);
		return;
	}
	struct tier_program *program = here();
	struct rma_task *task = request_arrived(program, from, header);
	struct plain_message *message = NULL;

	if (task)
		task->decision =
			plain_request(&program->plain, from, header, record->data_length, &message);
	__real_tiers_store_begin(space, from, header, record, inbound);
	if (task)
		store_hush(task);
	if (!task || task->decision.verdict != TIER_OK)
		return;
	if (inbound->want_end != (message != NULL)) {
		task_wrong(program, task, "ends at once, or should", !inbound->want_end);
	} else if (message) {
		message->name = inbound->context;
		flight_begin(program, inbound->context, task, true);
	} else {
		store_taken(program, task);
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
	struct rma_task *task = request_arrived(program, from, header);
	const struct link *serving = &space->engine->serving;
	struct plain_message *message = NULL;
	const void *operation;

	if (task)
		task->decision = plain_request(&program->plain, from, header, 0, &message);
	if (message) /* its data is copied from now on */
		flight_begin(program, message, task, false);
	else if (task && task->decision.verdict == TIER_OK &&
		 !task->decision.fault) /* or at once */
		load_expect(program, task);
	if (task)
		task->fault = task->decision.fault;
	__real_tiers_load(space, from, header);
	if (!message)
		return;
	operation = list_empty(serving) ? NULL : link_entry(serving->prev, struct operation, link);
	flight_find(program, message)->name = operation;
	message->name = operation;
}

void __wrap_tiers_amo(struct space *space, struct process from, const struct message_header *header,
	const void *data)
{
	struct tier_program *program = here();
	struct rma_task *task;
	struct message_header request = *header;
	struct plain_message *message;
	bool accepted;

	if (!program) {
		__real_tiers_amo(space, from, header, data);
		return;
	}
	task = request_arrived(program, from, header);
	if (!task)
		return;
	request.requested = task->length;
	task->decision = plain_request(&program->plain, from, &request, task->length, &message);
	accepted = task->decision.verdict == TIER_OK;
	if (accepted)
		atomic_expect(program, task);
	__real_tiers_amo(space, from, header, data);
	task->fault = task->decision.fault;
	if (accepted)
		atomic_look(program, task);
	if (!plain_fetches(task->message))
		store_hush(task);
}

/* J5: how a message in progress may end, of whose memory some was missing for a while. */
static void fault_look(
	const struct tier_program *program, const struct flight *flight, enum tier_verdict verdict)
{
	enum memory_access access = flight->store ? MEMORY_WRITE : MEMORY_READ;
	bool once = memory_misses(&program->arena, flight->start, flight->moved, access,
		MISSING_ONCE, flight->moment);
	bool always = memory_misses(&program->arena, flight->start, flight->moved, access,
		MISSING_ALWAYS, flight->moment);

	once |= flight->store && task_missed(program->tiers, flight->task, MEMORY_READ);
	if (verdict == TIER_FAULT && !once)
		task_wrong(program, flight->task, "finds no memory where there is", 0);
	if (verdict == TIER_OK && always)
		task_wrong(program, flight->task, "ends well without memory", 0);
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
	if (verdict == TIER_UNDELIVERABLE && !task_may_fail(program->tiers, flight->task))
		task_wrong(program, flight->task, "fails at its target for no reason", why);
	fault_look(program, flight, verdict);
	flight->task->fault = verdict == TIER_FAULT;
	if (flight->store)
		store_look(program, flight->task, flight->start, flight->moved,
			flight->tainted      ? LEFT_ANY
			: verdict == TIER_OK ? LEFT_ALL
					     : LEFT_SOME);
	flight->task = NULL;
	plain_ended(&program->plain, message, verdict);
}

void __wrap_tiers_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	if (!here()) {
		store_whole(
			operation->space, operation->account.portal, operation->account.match_bits);
		__real_tiers_stored(engine, operation, why);
		return;
	}
	request_ended(operation, why, verdict_of(why));
	__real_tiers_stored(engine, operation, why);
}

void __wrap_tiers_served(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	if (!here()) {
		__real_tiers_served(engine, operation, why);
		return;
	}
	request_ended(operation, why,
		why == TRANSPORT_OK && operation->message.missing ? TIER_FAULT : verdict_of(why));
	__real_tiers_served(engine, operation, why);
}

/* --- two-sided messages and receives, on their way into the engine */

void __real_letters_post(struct space *space, const struct command *command);
void __wrap_letters_post(struct space *space, const struct command *command);
void __real_letters_store(struct space *space, struct process from,
	const struct message_header *header, const void *data);
void __wrap_letters_store(struct space *space, struct process from,
	const struct message_header *header, const void *data);
void __real_letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);
void __wrap_letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);
void __real_letters_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);
void __wrap_letters_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why);

void __wrap_letters_post(struct space *space, const struct command *command)
{
	posted(space, command);
	__real_letters_post(space, command);
}

void __wrap_letters_store(struct space *space, struct process from,
	const struct message_header *header, const void *data)
{
	arrived(space, from, header);
	store_whole(space, header->portal, header->match_bits);
	__real_letters_store(space, from, header, data);
}

void __wrap_letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	arrived(space, from, header);
	__real_letters_store_begin(space, from, header, record, inbound);
	if (!inbound->context)
		store_whole(space, header->portal, header->match_bits);
}

void __wrap_letters_stored(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	whole(operation->space, operation->receive->bits, true);
	__real_letters_stored(engine, operation, why);
}

void __real_rma_fetch(struct space *space, const struct fetch *fetch);
void __wrap_rma_fetch(struct space *space, const struct fetch *fetch);
void __real_unexpected_fetched(struct operation *operation);
void __wrap_unexpected_fetched(struct operation *operation);

void __wrap_rma_fetch(struct space *space, const struct fetch *fetch)
{
	whole(space, space->kept.base[fetch->kept].bits, false);
	__real_rma_fetch(space, fetch);
}

void __wrap_unexpected_fetched(struct operation *operation)
{
	const struct space *space = operation->space;

	whole(space, space->kept.base[operation->kept].bits, true);
	__real_unexpected_fetched(operation);
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
void __real_rma_begin(struct space *space, const struct move *move, const struct rma_line *line,
	const void *given);
void __wrap_rma_begin(struct space *space, const struct move *move, const struct rma_line *line,
	const void *given);

void __wrap_tiers_append(struct space *space, const struct command *command)
{
	if (!here()) {
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
		struct rma_task *task = task_of(program->tiers, counter->waiting[i].name);

		program->triggered--;
		if (!(counter->waiting[i].name & COUNTED))
			task->over = true;
	}
}

enum answer __wrap_tiers_answer(struct space *space, const struct command *command)
{
	if (!here()) {
		enum answer answer;

		if (node_current()->simulation->cluster) {
			cluster_asked(space, command);
			answer = __real_tiers_answer(space, command);
			cluster_answered(space, command, answer == ANSWER_OK);
			return answer;
		}
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
	const struct rma_line *line = (const void *)command->further[0];

	return command->command.kind == COMMAND_RMA ? line->user : COUNTED | command->command.reply;
}

void __wrap_triggered_keep(struct space *space, const struct long_command *command)
{
	if (!here()) {
		__real_triggered_keep(space, command);
		return;
	}
	struct tier_program *program = here();
	struct long_command inner = {0};
	struct rma_task *task;
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

void __wrap_rma_begin(struct space *space, const struct move *move, const struct rma_line *line,
	const void *given)
{
	if (!here()) {
		__real_rma_begin(space, move, line, given);
		return;
	}
	struct tier_program *program = here();
	struct rma_task *task = task_of(program->tiers, line->user);
	const struct node *target = &program->tiers->simulation->nodes[task->target];

	if (task->triggered)
		ready_expect(program, task->number);
	if (task->begun != 0)
		task_wrong(program, task, "begins a second time", 0);
	task->begun = ++program->tiers->begun;
	task->target_life = target->life;
	task->known = task_knows(program->tiers, task);
	task->moment = program->tiers->moment;
	task->absent = plain_brings(task->message) && !task->copied &&
		       memory_misses(&program->source, program->source.at + task->data,
			       task->length, MEMORY_READ, MISSING_NOW, 0);
	if (line->copied)
		memset(program->source.bytes + task->data, POISON, task->length);
	__real_rma_begin(space, move, line, given);
}

/* --- ends of calls, on their way to counters and queues */

void __real_tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once);
void __wrap_tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once);

/* The region whose SEND a call has. */
static const struct rma_end *send_end(const struct rma_task *task)
{
	return task->message == MESSAGE_FETCH ? &task->source : &task->end;
}

static void rma_sent(struct tier_program *program, struct rma_task *task, enum tier_verdict verdict,
	uint64_t bytes)
{
	struct plain_event event = {
		.kind = TIER_SEND, .verdict = (uint8_t)verdict, .user = task->number};
	const struct rma_end *end = send_end(task);
	bool fetches = plain_fetches(task->message), told;

	if (!plain_brings(task->message) || task->sent || bytes != task->length)
		task_wrong(program, task, "SEND is not due", bytes);
	task->sent = true;
	if (verdict == TIER_OK)
		told = end->log & TIER_BIT(TIER_SEND);
	else
		told = end->log & TIER_BIT_FAILED(TIER_SEND) ||
		       (!fetches && task->want != WANT_EVENT);
	if (told)
		plain_log(&program->plain, end->queue, &event);
	if (fetches)
		return;
	task->told = told && verdict != TIER_OK;
	task->over =
		task->want == WANT_NOTHING ||
		(task->delivered && task->decision.verdict == TIER_OK && task->decision.silent);
}

/* whole: all of an answer has arrived, else some of it, or nothing. */
static void load_look(const struct tier_program *program, const struct rma_task *task, bool whole)
{
	const uint8_t *bytes = program->source.bytes + task->near;

	for (uint64_t i = 0; i < task->length; i++) {
		bool moved = i < task->decision.moved && task->expected;

		if ((moved && task->tainted) || (!whole && bytes[i] == POISON))
			continue;
		if (bytes[i] != (moved ? task->expected[i] : POISON)) {
			task_wrong(program, task, "brought a wrong byte", i);
			return;
		}
	}
}

/* J5: may a call end well that its target has accepted? Only of a long load an initiator may have
 * all when the target finds its memory gone, to send a frame again. What is got has its place. */
static bool outcome_is_whole(const struct tier_program *program, const struct rma_task *task)
{
	bool resent = task->message == MESSAGE_LOAD && task->length > AMO_BYTES_MAX;

	if (task->fault && !resent)
		return false;
	return !plain_fetches(task->message) ||
	       !memory_misses(&program->source, program->source.at + task->near,
		       task->decision.moved, MEMORY_WRITE, MISSING_ALWAYS, task->moment);
}

/* Was memory of a call's missing, so that it may fail for that? SEND is about what it brings. */
static bool fault_may_be(
	const struct tiers *tiers, const struct rma_task *task, enum tier_event kind)
{
	const struct node *target = &tiers->simulation->nodes[task->target];
	bool brings = plain_brings(task->message) && !task->copied;

	if (brings && task_missed(tiers, task, MEMORY_READ))
		return true;
	if (kind == TIER_SEND)
		return false;
	if (task->fault || (plain_fetches(task->message) && task_missed(tiers, task, MEMORY_WRITE)))
		return true;
	if (task->message != MESSAGE_LOAD || !task->delivered)
		return false;
	return !target->up || target->life != task->life ||
	       memory_misses(&target->tiers->arena, task->decision.start, task->decision.moved,
		       MEMORY_READ, MISSING_ONCE, task->moment);
}

/* J2, J5 */
static bool failure_may_be(const struct tiers *tiers, const struct rma_task *task,
	enum tier_event kind, enum tier_verdict verdict)
{
	if (verdict == TIER_FAULT)
		return fault_may_be(tiers, task, kind);
	if (verdict == TIER_UNDELIVERABLE && task_may_fail(tiers, task))
		return true;
	return task->delivered && task->decision.verdict == verdict;
}

static void rma_concluded(struct tier_program *program, struct rma_task *task, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once)
{
	const struct plain_decision *decision = &task->decision;
	bool decided = task->delivered && verdict == decision->verdict;
	bool fetches = plain_fetches(task->message);
	struct plain_event event = {
		.kind = (uint8_t)kind, .verdict = (uint8_t)verdict, .user = task->number};

	if (kind != (fetches ? TIER_REPLY : TIER_ACK) ||
		(plain_brings(task->message) && !task->sent) ||
		(!fetches && task->want == WANT_NOTHING) || task->answered ||
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
	if (verdict == TIER_OK && (!decided || !outcome_is_whole(program, task)))
		task_wrong(program, task, "ends well although it cannot", 0);
	if (fetches)
		load_look(program, task, verdict == TIER_OK);
	task->answered = true;
	task->over = true;
	if ((fetches || (task->want == WANT_EVENT && !task->told)) &&
		task->end.log & (verdict == TIER_OK ? TIER_BIT(kind) : TIER_BIT_FAILED(kind)))
		plain_log(&program->plain, task->end.queue, &event);
}

/* The initiator knows that the target's life is the one it meant. */
static void rma_met(struct tier_program *program, const struct rma_task *task)
{
	struct tiers *tiers = program->tiers;

	if (!task->delivered || task->life != task->target_life)
		return;
	*task_pair(tiers, tiers->met, task) = task_lives(task);
	*task_pair(tiers, tiers->met_at, task) = simulation_now(tiers->simulation);
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
	struct rma_task *task = program->regions[index];
	const struct rma_end *end = kind == TIER_SEND ? send_end(task) : &task->end;

	if (end->region != region_number(space, region))
		task_wrong(program, task, "tells of another region", kind);
	if (verdict != TIER_OK && !failure_may_be(tiers, task, kind, verdict))
		task_wrong(program, task, "fails for no reason", verdict);
	if (verdict != TIER_FAULT && task->absent)
		task_wrong(program, task, "has no data, and does not say so", verdict);
	if (verdict == TIER_OK)
		rma_met(program, task);
	if (end->counts & TIER_BIT(kind))
		plain_count(&program->plain, end->counter, verdict,
			end->flags & ATTACHMENT_BYTES && !once ? bytes : 1);
	if (kind == TIER_SEND)
		rma_sent(program, task, verdict, bytes);
	else
		rma_concluded(program, task, kind, verdict, bytes, once);
	__real_tier_count(space, region, kind, verdict, bytes, once);
}

void __real_rma_requested(struct operation *operation, enum transport_fail why);
void __wrap_rma_requested(struct operation *operation, enum transport_fail why);

/* A store whose SEND nobody counts or wants ends here, and tier_count() is not told. A call that
 * has ended has no region any more: it may be another call's. */
void __wrap_rma_requested(struct operation *operation, enum transport_fail why)
{
	struct tier_program *program = here();
	struct rma_task *task;
	uint32_t index;

	if (!program || operation->ended) {
		__real_rma_requested(operation, why);
		return;
	}
	index = region_number(operation->space, operation->region) -
		operation->space->segment->limits.attached;
	task = program->regions[index];
	__real_rma_requested(operation, why);
	if (why != TRANSPORT_OK || task->sent || plain_fetches(task->message) ||
		!plain_brings(task->message))
		return;
	if ((task->end.counts | task->end.log) & TIER_BIT(TIER_SEND))
		task_wrong(program, task, "ends without SEND", 0);
	rma_met(program, task);
	rma_sent(program, task, TIER_OK, task->length);
}
