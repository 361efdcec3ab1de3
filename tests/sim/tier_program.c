/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_program.c - see tier_program.h. */
#include <sim/tier_program.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <engine/queue.h>
#include <engine/tiers.h>
#include <engine/triggered.h>
#include <elements.h>
#include <sim/report.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>

#define WILD_BITS UINT64_C(0xffffffff00000000) /* a load's number is there */

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
		.amo = (uint16_t)(word >> TIER_OPERATION_AT),
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
	       event->amo == due->amo && event->user == due->user &&
	       (loose || event->tier == due->tier) && event->start == due->start &&
	       event->value == due->value && event->initiator == due->initiator &&
	       event->target == due->target && event->match_bits == due->match_bits &&
	       event->requested == due->requested &&
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

void program_events_read(struct tier_program *program, unsigned number, uint64_t limit)
{
	struct plain_queue *queue = &program->plain.queues[number];
	const struct queue_view view = queue_view(
		program->segment, segment_queue(program->segment, number), queue->handle);
	struct plain_event event = {0};

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

void program_counters_look(struct tier_program *program)
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

enum answer program_ask(struct tier_program *program, struct command *command)
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

#define MESSAGES_KINDS                                                                             \
	(TIER_BIT(TIER_GET) | TIER_BIT(TIER_PUT) | TIER_BIT(TIER_ATOMIC) | TIER_BIT(TIER_FETCH))
#define KEPT_KINDS (MESSAGES_KINDS << 1) /* GET_KEPT and the others follow theirs */
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
		/* Through an entry that is all memory others may write there. */
		if (!flights_store(program, program->arena.at + at, bytes) &&
			memcmp(program->arena.bytes + at, program->shadow + at, bytes) != 0)
			FAIL(program,
				"tiers: node %u: the memory of entry %u holds what no message "
				"brought",
				program->node->number, i);
		if (bytes != 0)
			memory_give(&program->arena, at, bytes);
	}
}

/* Memory of an entry: a part that is always there, one that comes and goes, or all memory that
 * there is. Returns false if there is none left. */
static bool entry_place(struct tier_program *program, uint32_t index, struct plain_wish *wish)
{
	struct prng *prng = chance(program);
	bool wild = prng_chance(prng, 0.5);
	uint64_t at;

	program->entry_at[index] = program->entry_bytes[index] = 0;
	if (prng_chance(prng, 0.1)) {
		wish->start = 0;
		wish->length = UINT64_MAX;
		wish->options |= REGION_REMOTE_OFFSET;
		wish->min_free = 0;
		return true;
	}
	at = memory_take(&program->arena, wish->length, wild);
	if (at == EXTENT_NONE)
		at = memory_take(&program->arena, wish->length, false);
	if (at == EXTENT_NONE)
		return false;
	program->entry_at[index] = at;
	program->entry_bytes[index] = wish->length;
	wish->start = program->arena.at + at;
	return true;
}

/* Memory that may not be there is in a vector; other memory, too, for half of all regions. */
static const struct map_vector *vector_choose(
	struct tier_program *program, const struct tier_memory *memory, uint64_t start)
{
	bool kept = start >= memory->at && start < memory->at + MEMORY_KEPT;

	return kept && prng_chance(chance(program), 0.5) ? NULL : MAP_MEMORY;
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

	entries_reap(program);
	if (program->plain.portals[portal].state == PORTAL_FREE ||
		(index = segment_take(segment, segment->free_entries)) == INDEX_NONE)
		return;
	if (program->entry_taken[index] || !entry_place(program, index, &wish)) {
		FAIL(program, "tiers: node %u: entry %u is given away twice, or memory is short",
			program->node->number, index);
		return;
	}
	program->entry_taken[index] = true;
	program->wishes[index] = wish;
	program->entry_tiers[index] = prng_chance(prng, 0.5) ? 1 : 0;
	program->generations[index] = segment_generation(segment);
	*segment_match(segment, index) = wish.ask;
	region = segment_region(segment, index);
	region->start = wish.start;
	region->length = wish.length;
	region->vector = vector_choose(program, &program->arena, wish.start);
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
	program_ask(program, &command);
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
	program_ask(program, &command.command);
}

void program_portal_change(struct tier_program *program, uint32_t index)
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
	program_ask(program, &command);
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
	program_ask(program, &command.command);
	if (command.command.kind != COMMAND_COUNTER_FREE)
		return;
	counter->count = (struct event_count){0};
	counter->handle =
		handle_make(HANDLE_COUNTER, INTERFACE, index, segment_generation(program->segment));
	event_counter_init(segment_counter(program->segment, index), counter->handle);
}

static void region_release(
	struct tier_program *program, const struct rma_task *task, const struct rma_end *end)
{
	struct command command = {.kind = COMMAND_REGION_RELEASE};

	command.object.index = end->region;
	command.object.generation = end->generation;
	if (program_ask(program, &command) != ANSWER_OK)
		task_wrong(program, task, "its region is gone already", end->region);
}

/* A program may do so while the call is under way. */
static void task_release(struct tier_program *program, struct rma_task *task)
{
	task->released = true;
	region_release(program, task, &task->end);
	if (task->source.region != task->end.region)
		region_release(program, task, &task->source);
}

/* A call is over: gives back its memory, and its regions unless they were released before. */
static void task_give(struct tier_program *program, struct rma_task *task)
{
	if (!task->over)
		task_wrong(program, task, "its region is given away while it is in progress", 0);
	task->given = true;
	if (!task->released)
		task_release(program, task);
	memory_give(&program->source, task->near, task->bytes);
}

/* A region of a call's, of so much source memory from there on, or of all memory. */
static bool region_make(struct tier_program *program, struct rma_task *task, struct rma_end *end,
	uint64_t at, uint64_t length)
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
	*end = (struct rma_end){
		.region = segment->limits.attached + index,
		.generation = segment_generation(segment),
		.log = mask_choose(prng, kinds) | kinds << TIER_EVENTS,
		.counts = (uint16_t)mask_choose(prng, kinds),
		.flags = prng_chance(prng, 0.3) ? ATTACHMENT_BYTES : 0,
		.counter = counter_choose(program),
		.queue = &program->plain.queues[prng_below(prng, PLAIN_QUEUES)],
	};
	if (prng_chance(prng, 0.2))
		end->log &= ~TIER_BIT_FAILED(TIER_SEND);
	if (program->regions[index] && !program->regions[index]->given)
		task_give(program, program->regions[index]);
	program->regions[index] = task;
	region = segment_region(segment, end->region);
	end->all = prng_chance(prng, 0.2);
	region->start = end->all ? 0 : program->source.at + at;
	region->length = end->all ? UINT64_MAX : length;
	region->vector = vector_choose(program, &program->source, region->start);
	region->user = 0;
	region->queue = end->queue->handle;
	region->options = REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = end->log;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	region->handle = handle_make(HANDLE_REGION, INTERFACE, end->region, end->generation);
	attachment = segment_attachment(segment, end->region);
	attachment->counter = end->counter;
	attachment->counts = end->counts;
	attachment->flags = end->flags;
	command.object.index = end->region;
	command.object.generation = end->generation;
	atomic_store_explicit(&region->gate, gate_make(end->generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	submission_post(&program->submission, &command);
	return true;
}

/* An atomic fits into one frame, which its sender sees to: lib/p4/limit.c. */
static uint64_t atomic_most(void)
{
	const uint32_t overhead = ENCAPSULATION_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_SACK_BYTES +
				  RECORD_WHOLE_BYTES + MESSAGE_HEADER_BYTES + RECORD_ALIGN;
	const uint32_t frame = interfaces[0].port->frame_size;

	return frame < overhead + AMO_BYTES_MAX ? frame - overhead : AMO_BYTES_MAX;
}

/* What a call does, and how much. */
static void task_choose(struct tier_program *program, struct rma_task *task)
{
	static const uint8_t messages[] = {MESSAGE_STORE, MESSAGE_STORE, MESSAGE_STORE,
		MESSAGE_LOAD, MESSAGE_LOAD, MESSAGE_ATOMIC, MESSAGE_FETCH, MESSAGE_FETCH};
	struct prng *prng = chance(program);
	uint64_t most = program->tiers->size_max;
	unsigned operation, type, size = 1;

	task->message = messages[prng_below(prng, sizeof(messages))];
	if (task->message == MESSAGE_ATOMIC || task->message == MESSAGE_FETCH) {
		unsigned operations =
			task->message == MESSAGE_ATOMIC ? AMO_CSWAP : (unsigned)AMO_OPERATIONS;

		do {
			operation = (unsigned)prng_below(prng, operations);
			type = (unsigned)prng_below(prng, AMO_TYPES);
		} while (!element_valid(operation, type));
		size = element_size(type);
		task->amo = message_amo(operation, type);
		element_make(task->operand, type, (unsigned)prng_below(prng, ELEMENT_VALUES),
			prng_next(prng));
		most = operation > AMO_SWAP ? size : atomic_most();
	}
	task->length = prng_chance(prng, 0.05) ? 0 : prng_scale(prng, size, most);
	if (task->amo != 0 && prng_chance(prng, 0.8))
		task->length -= task->length % size;
	task->want = (uint8_t)prng_below(prng, 4);
	if (plain_fetches(task->message))
		task->want = WANT_EVENT;
}

/* The regions of a call, and where it finds memory in them. */
static bool task_bind(struct tier_program *program, struct rma_task *task)
{
	bool fetch = task->message == MESSAGE_FETCH, apart;

	task->bytes = (fetch ? 2 : 1) * task->length + 1;
	task->near = memory_take(&program->source, task->bytes, prng_chance(chance(program), 0.5));
	if (task->near == EXTENT_NONE)
		return false;
	task->data = task->near + (fetch ? task->length : 0);
	apart = fetch && prng_chance(chance(program), 0.5);
	if (region_make(program, task, &task->end, task->near,
		    apart ? task->length : task->bytes - 1)) {
		task->source = task->end;
		if (!apart || region_make(program, task, &task->source, task->data, task->length))
			return true;
		region_release(program, task, &task->end);
		program->regions[task->end.region - program->segment->limits.attached] = NULL;
	}
	memory_give(&program->source, task->near, task->bytes);
	return false;
}

static struct rma_task *task_make(struct tier_program *program)
{
	struct tiers *tiers = program->tiers;
	const struct node *target =
		&tiers->simulation
			 ->nodes[prng_below(chance(program), tiers->simulation->node_count)];
	struct rma_task *task = report_memory(calloc(1, sizeof(*task)));

	*task = (struct rma_task){
		.number = tiers->count + 1,
		.initiator = program->node->number,
		.initiator_life = program->life,
		.target = target->number,
		.target_life = target->life,
		.issued = simulation_now(tiers->simulation),
	};
	task_choose(program, task);
	if (tiers->count == TASKS_MAX || !task_bind(program, task)) {
		free(task);
		return NULL;
	}
	if (plain_fetches(task->message))
		memset(program->source.bytes + task->near, POISON, task->length);
	if (plain_brings(task->message))
		pattern_write(task, program->source.bytes + task->data, task->length);
	tiers->tasks[tiers->count++] = task;
	return task;
}

/* Puts what goes with a command into it: an operand, and perhaps data. Returns its lines. */
static unsigned rma_copy(const struct tier_program *program, struct rma_task *task,
	struct rma_line *line, struct long_command *command)
{
	uint64_t bytes = task_operand(task);

	memcpy(command->further[1], task->operand, bytes);
	if (plain_brings(task->message) && !task->triggered && bytes + task->length <= COPIED_MAX &&
		prng_chance(chance(program), 0.3)) {
		task->copied = true;
		line->copied = 1;
		memcpy((uint8_t *)command->further[1] + bytes, program->source.bytes + task->data,
			task->length);
		bytes += task->length;
	}
	return 2 + (unsigned)((bytes + RING_BYTES - 1) / RING_BYTES);
}

/* Where in an entry a call goes: near its beginning, or, for one that is all of memory, to memory
 * of the target's that comes and goes, to the end of it, or to an address that nothing has. */
static uint64_t offset_choose(struct tier_program *program, const struct rma_task *task)
{
	struct prng *prng = chance(program);
	uint64_t arena = memory_address(task->target, 0);

	if (prng_chance(prng, 0.4))
		return 0;
	if (prng_chance(prng, 0.6))
		return prng_below(prng, program->tiers->size_max);
	if (prng_chance(prng, 0.8))
		return arena + MEMORY_KEPT + prng_below(prng, MEMORY_BYTES - MEMORY_KEPT);
	if (prng_chance(prng, 0.5))
		return arena + MEMORY_BYTES - prng_below(prng, 64);
	return prng_next(prng) | UINT64_C(1) << 63;
}

/* Where a call's part of the source memory is in its region. */
static uint64_t local_of(
	const struct tier_program *program, const struct rma_end *end, uint64_t at, uint64_t from)
{
	return end->all ? program->source.at + at : at - from;
}

static void rma_make(struct tier_program *program)
{
	struct rma_task *task = task_make(program);
	struct prng *prng = chance(program);
	struct long_command command = {.command = {.kind = COMMAND_RMA}};
	struct move *move = &command.command.move;
	struct rma_line line;
	unsigned lines;

	if (!task)
		return;
	command.command.space = SPACE;
	move->region = task->end.region;
	move->generation = task->end.generation;
	memcpy(&move->to, &program->tiers->simulation->nodes[task->target].id, sizeof(move->to));
	move->portal =
		(uint32_t)prng_below(prng, PLAIN_PORTALS + (prng_chance(prng, 0.05) ? 2 : 0));
	if (program->tiers->ranked)
		move->cookie = prng_chance(prng, 0.01) ? 1000 : program->node->number;
	move->match_bits = prng_below(prng, 6);
	if (plain_brings(task->message))
		move->value = task->number;
	else
		move->match_bits |= task->number << 32;
	move->offset = offset_choose(program, task);
	line = (struct rma_line){
		.length = task->length,
		.user = task->number,
		.local = local_of(program, &task->end, task->near, task->near),
		.source = task->source.region,
		.source_generation = task->source.generation,
		.source_local = local_of(program, &task->source, task->data,
			task->source.region == task->end.region ? task->near : task->data),
		.amo = task->amo,
		.message = task->message,
		.want = task->want,
	};
	task->triggered = prng_chance(prng, 0.15) && program->triggered < PLAIN_TRIGGERS / 2;
	lines = rma_copy(program, task, &line, &command);
	memcpy(command.further[0], &line, sizeof(line));
	if (task->triggered)
		trigger(program, &command, lines);
	else
		submission_post_lines(&program->submission, &command, lines);
}

void program_calls_reap(struct tier_program *program)
{
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct rma_task *task = program->regions[i];

		if (task && task->over && !task->given)
			task_give(program, task);
		else if (task && task->begun != 0 && !task->released &&
			 prng_chance(chance(program), 0.05))
			task_release(program, task);
	}
}

void program_act(struct tier_program *program)
{
	double choice = prng_fraction(chance(program));

	if ((choice -= 0.5) < 0)
		rma_make(program);
	else if ((choice -= 0.25) < 0)
		entry_append(program);
	else if ((choice -= 0.08) < 0)
		search(program);
	else if ((choice -= 0.04) < 0)
		entry_withdraw(program);
	else if ((choice -= 0.05) < 0)
		program_portal_change(
			program, (uint32_t)prng_below(chance(program), PLAIN_PORTALS));
	else
		counter_change(program);
}
