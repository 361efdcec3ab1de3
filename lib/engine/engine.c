/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c - the engine's turn: frames in, commands, matching, frames out. See engine.h for its
 * order and why. */
#include <engine/state.h>

#include <stdlib.h>
#include <string.h>

#include <base/barrier.h>
#include <base/futex.h>
#include <base/backoff.h>
#include <base/report.h>
#include <engine/access.h>
#include <engine/amo.h>
#include <engine/fetch.h>
#include <engine/rma.h>
#include <engine/letters.h>
#include <engine/statistics.h>
#include <engine/tier_entry.h>
#include <engine/tiers.h>
#include <engine/tracing.h>
#include <engine/triggered.h>
#include <engine/unexpected.h>

/* A turn that finds nothing is what an engine does most: it makes no calls but those that it
 * must. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define SETTLE_TRIES  100000 /* moments for a thread that was preempted inside an enqueue */
/* A program that only sends looks for frames so often, and where a look takes long, no oftener than
 * this times as long: on UDP sockets this doubles the rate. */
#define PUSH_LOOK  MICROSECOND
#define PUSH_LOOKS 25

struct engine *engine_create(const struct engine_options *options)
{
	const struct space_options first = {
		.segment = options->segment,
		.interface = options->interface,
		.uid = options->uid,
	};
	struct engine *engine = calloc(1, sizeof(*engine));
	struct transport_upcalls upcalls = {
		.message_whole = incoming_whole,
		.message_begin = incoming_begin,
		.message_end = incoming_end,
		.message_done = outgoing_done,
		.ping_done = ping_done,
		.name_done = name_done,
		.duplicate = ping_duplicate,
		.stranger = ping_stranger,
		.context = engine,
	};

	if (!engine)
		return NULL;
	if (trace_wanted())
		tracing_wrap(&upcalls);
	owner_take(&engine->owner);
	engine->segment = options->segment;
	ring_reader_init(&engine->commands, segment_ring(engine->segment));
	engine->interface = options->interface;
	engine->port = options->port;
	engine->clock = options->clock;
	engine->push_look = RTE_MAX(PUSH_LOOK, (uint64_t)options->port->look * PUSH_LOOKS);
	engine->self = options->transport.self;
	engine->udp = options->transport.encapsulation.udp;
	engine->probe_interval =
		RTE_MIN(options->transport.peer_timeout / PROBES_PER_LIFE, PROBE_LATEST);
	memcpy(engine->secret, options->transport.secret.key, sizeof(engine->secret));
	pool_init(&engine->operations, sizeof(struct operation), OPERATION_CHUNK, OPERATIONS_MAX);
	engine->operations_shared = OPERATIONS_SHARED;
	pool_init(&engine->copies, AMO_BYTES_MAX, COPIES_CHUNK, COPIES_MAX);
	triggers_init(&engine->triggers, TRIGGERED_MAX);
	STAILQ_INIT(&engine->begun);
	STAILQ_INIT(&engine->late);
	list_init(&engine->serving);
	list_init(&engine->waiting);
	list_init(&engine->refused);
	for (unsigned i = 0; i < SENDING_LISTS; i++)
		list_init(&engine->sending[i]);
	/* A segment without Portals has the ring and no space. */
	if (options->segment->limits.portals == 0 || engine_space_open(engine, 0, &first))
		engine->transport = transport_create(&options->transport, engine->port,
			engine->clock, &upcalls, segment_transport(engine->segment));
	if (!engine->transport) {
		spaces_free(engine);
		free(engine);
		return NULL;
	}
	return engine;
}

static void counters_wake(struct engine *engine)
{
	struct event_counter *next = engine->changed;

	engine->changed = NULL;
	while (next) {
		struct event_counter *counter = next;

		next = counter->touched == counter ? NULL : counter->touched;
		counter->touched = NULL;
		event_counter_ring(counter);
	}
}

void sleepers_wake(struct engine *engine)
{
	uint32_t next = engine->touched;
	struct queue *queue;

	barrier_light();
	while (next != 0) {
		queue = queue_marked(engine, next);
		next = queue->touched - 1;
		queue->touched = 0;
		queue_ring(queue);
	}
	engine->touched = 0;
	counters_wake(engine);
}

static enum answer queue_free(struct space *space, uint32_t index, uint32_t generation)
{
	struct queue *queue;

	if (index >= space->segment->limits.queues)
		return ANSWER_GONE;
	queue = segment_queue(space->segment, index);
	if (!gate_is(atomic_load_explicit(&queue->gate, memory_order_relaxed), generation))
		return ANSWER_GONE;
	queue_close(queue);
	return ANSWER_OK;
}

static void access_set(struct space *space, const struct command *command)
{
	const struct process process = {.nid = command->access.nid, .pid = command->access.pid};

	if (command->access.index < space->segment->limits.access)
		access_admit(segment_access(space->segment, command->access.index), process,
			command->access.uid, command->access.portal);
}

static enum answer command_answer(
	struct space *space, const struct command *command, struct reply *reply)
{
	uint32_t index = command->object.index;
	uint32_t generation = command->object.generation;

	switch (command->kind) {
	case COMMAND_ENTRY_INSERT:
		return entry_insert(space, command);
	case COMMAND_ENTRY_UNLINK:
		return entry_unlink(space, index, generation);
	case COMMAND_REGION_UNLINK:
		return region_unlink(space, index, generation);
	case COMMAND_REGION_UPDATE:
		return region_update(space, command, reply);
	case COMMAND_QUEUE_FREE:
		return queue_free(space, index, generation);
	default: /* UNKNOWN: only a corrupt ring gets here */
		return space->kind == SPACE_TIERS ? tiers_answer(space, command) : ANSWER_UNKNOWN;
	}
}

/* Gives the answer and wakes the caller. Both words are seq_cst: the caller raises `sleeping`
 * before it looks at `state` for the last time, so one of the two sees the other. */
static void reply_give(struct reply *reply, enum answer answer)
{
	reply->answer = answer;
	atomic_store_explicit(&reply->state, REPLY_DONE, memory_order_seq_cst);
	if (atomic_load_explicit(&reply->sleeping, memory_order_seq_cst) != 0)
		futex_wake(&reply->state, 1);
}

void engine_answer(struct engine *engine, uint32_t slot, enum answer answer)
{
	reply_give(segment_reply(engine->segment, slot), answer);
}

/* A put or a get, for whose operation there is memory. */
static void move_run(struct space *space, const struct command *command)
{
	const struct move *move = &command->move;
	struct region *region = region_find(space, move->region, move->generation);

	if (!region)
		space_count(space, commands_stale);
	else if (command->kind == COMMAND_PUT)
		outgoing_put(space, region, move, command->taken, command->acknowledge);
	else
		outgoing_get(space, region, move);
}

/* Has it an answer, and a slot for it? Only a corrupt ring brings one without. */
static bool command_is_answered(const struct command *command)
{
	return command->kind >= COMMAND_ENTRY_INSERT && command->reply < REPLY_SLOTS;
}

/* A posted command that spaces with tiers alone have. An RMA operation has two lines or more. */
static void command_tiers(struct space *space, const struct command *command)
{
	if (command->kind == COMMAND_APPEND)
		tiers_append(space, command);
	else if (command->kind == COMMAND_RECEIVE && space->two_sided)
		letters_post(space, command);
	else if (command->kind == COMMAND_LETTER && space->two_sided)
		letters_send(space, command,
			((const struct long_command *)(const void *)command)->further);
	else if (command->kind == COMMAND_JOINED)
		unexpected_joined(space, command->object.index);
	else if (command->kind == COMMAND_TRIGGER)
		triggered_keep(space, (const struct long_command *)(const void *)command);
	else if (command->kind == COMMAND_RMA)
		rma_command(space, (const struct long_command *)(const void *)command);
}

/* A command to the objects of a space. */
static void command_space(struct space *space, const struct command *command)
{
	struct reply *reply;

	switch (command->kind) {
	case COMMAND_PUT:
	case COMMAND_GET:
		move_run(space, command);
		return;
	case COMMAND_ENTRY_ATTACH:
		entry_attach(space, command);
		return;
	case COMMAND_REGION_ATTACH:
		region_attach(space, command->object.index, command->object.generation);
		return;
	case COMMAND_REGION_BIND:
		region_bind(space, command->object.index, command->object.generation);
		return;
	case COMMAND_ACCESS:
		access_set(space, command);
		return;
	case COMMAND_COUNTER_CANCEL:
		if (command_is_answered(command))
			triggered_cancel(space, command);
		return;
	case COMMAND_RMA:
	case COMMAND_APPEND:
	case COMMAND_RECEIVE:
	case COMMAND_LETTER:
	case COMMAND_JOINED:
	case COMMAND_TRIGGER:
		if (space->kind == SPACE_TIERS)
			command_tiers(space, command);
		return;
	default:
		if (!command_is_answered(command))
			return;
		reply = segment_reply(space->engine->segment, command->reply);
		reply_give(reply, command_answer(space, command, reply));
	}
}

/* A command for a space that does not exist, or no longer. */
static void command_stale(struct engine *engine, const struct command *command)
{
	engine_count(engine, commands_stale);
	if (command_is_answered(command))
		engine_answer(engine, command->reply, ANSWER_CLOSED);
}

/* A thread asks another process, or the network. */
static void command_question(struct engine *engine, const struct command *command)
{
	if (!command_is_answered(command))
		return;
	if (command->kind == COMMAND_PING)
		ping_begin(engine, command);
	else
		name_command(engine, command);
}

static void questions_abandon(struct engine *engine)
{
	transport_ping_abandon(engine->transport);
	transport_find_abandon(engine->transport);
}

static void command_run(struct engine *engine, const struct command *command)
{
	struct space *space = space_find(engine, command->space);

	engine_count(engine, commands);
	if (command->kind != COMMAND_PUT)
		engine_announce(engine);
	if (command->kind >= COMMAND_PING && command->kind <= COMMAND_HOST_FIND)
		command_question(engine, command);
	else if (command->kind == COMMAND_PING_ABANDON)
		questions_abandon(engine);
	else if (command->kind == COMMAND_HINT)
		transport_hint(engine->transport,
			(struct process){command->hint.nid, command->hint.pid},
			command->hint.address);
	else if (!space)
		command_stale(engine, command);
	else
		command_space(space, command);
	triggered_settle(engine);
}

/* Carries out up to limit commands. A command may need an operation, and one that has been taken
 * cannot be put back: so an operation is made sure of before. Without memory for one the commands
 * wait in the ring. */
static unsigned engine_drain(struct engine *engine, unsigned limit)
{
	struct long_command taken;
	unsigned done = 0;

	while (done < limit && !ring_empty(&engine->commands) && operation_reserve(engine, 1)) {
		if (ring_take(&engine->commands, &taken) == 0)
			break;
		command_run(engine, &taken.command);
		done++;
	}
	return done;
}

void engine_own(struct engine *engine)
{
	owner_take(&engine->owner);
	transport_own(engine->transport);
}

void engine_destroy(struct engine *engine)
{
	owner_check(&engine->owner);
	engine_drain(engine, COMMAND_RING); /* every call is answered, every put ends in an event */
	engine_announce(engine);
	notices_send(engine);
	for (unsigned i = 0; i < SPACES; i++)
		if (engine->opened[i]) {
			triggered_close(engine->opened[i]);
			engine->opened[i]->credits = NULL; /* nothing more is fetched */
		}
	transport_close(engine->transport);
	outgoing_abandon(engine);
	engine_ring(engine);
	spaces_free(engine);
	free(engine->pings);
	pool_free(&engine->operations);
	pool_free(&engine->copies);
	triggers_free(&engine->triggers);
	free(engine);
}

/* May there be a command whose posting has returned? */
static ALWAYS_INLINE bool engine_posted(const struct engine *engine)
{
	return engine_has_commands(engine) || !ring_settled(&engine->commands);
}

/* E1: every command whose posting had returned when the frames were taken from the port. A producer
 * that is preempted inside its enqueue hides those behind it: the naps give it the CPU. */
static unsigned engine_drain_settled(struct engine *engine)
{
	unsigned done = engine_drain(engine, COMMAND_RING), looks = 0;

	for (unsigned tries = 0; tries < SETTLE_TRIES; tries++) {
		if (engine_has_commands(engine) || ring_settled(&engine->commands))
			break;
		backoff(&looks);
		done += engine_drain(engine, COMMAND_RING);
	}
	return done;
}

void engine_catch_up(struct engine *engine)
{
	owner_check(&engine->owner);
	engine_drain_settled(engine);
	engine_announce(engine); /* the turn that follows may be a look, which takes it for done */
}

/* The last part of a turn: frames out, timers. */
static ALWAYS_INLINE unsigned turn_end(struct engine *engine)
{
	if (!STAILQ_EMPTY(&engine->late))
		notices_send(engine);
	/* Puts have begun, and are counted as commands: their frames leave, then their events are
	 * logged. */
	if (!STAILQ_EMPTY(&engine->begun)) {
		transport_push(engine->transport);
		outgoing_announce(engine);
	}
	engine->owes = triggers_are_ready(&engine->triggers);
	if (engine->awaits != 0)
		outgoing_probe(engine);
	return transport_transmit(engine->transport);
}

/* That of a turn before, which put it off, or what was ready and is left. */
static __attribute__((noinline)) unsigned turn_owed(struct engine *engine)
{
	triggered_settle(engine);
	return turn_end(engine);
}

/* The turn of an engine that has received frames, or has commands in its rings. */
static __attribute__((noinline)) unsigned turn_work(struct engine *engine, unsigned frames)
{
	unsigned commands;

	if (frames == 0)
		return engine_drain(engine, COMMAND_RING);
	commands = engine_posted(engine) ? engine_drain_settled(engine) : 0;
	engine_announce(engine);
	transport_process(engine->transport);
	return frames + commands;
}

/* The first part: frames in, commands, events. */
static ALWAYS_INLINE unsigned turn_begin(struct engine *engine)
{
	unsigned frames = transport_receive(engine->transport);

	return frames != 0 || engine_has_commands(engine) ? turn_work(engine, frames) : 0;
}

static ALWAYS_INLINE unsigned turn_count(struct engine *engine, unsigned work)
{
	if (engine->logged) {
		engine_ring(engine);
		work++;
	}
	if (work == 0)
		engine_count(engine, polls_idle);
	else
		engine_count(engine, polls_busy);
	return work;
}

unsigned engine_poll(struct engine *engine)
{
	unsigned work;

	owner_check(&engine->owner);
	work = engine->owes ? turn_owed(engine) : 0;
	work += turn_begin(engine);
	work += turn_end(engine);
	return turn_count(engine, work);
}

/* A look that has something to do: `work` was done, so many frames came. */
static __attribute__((noinline)) unsigned look_on(
	struct engine *engine, unsigned work, unsigned frames)
{
	if (frames != 0 || engine_has_commands(engine))
		work += turn_work(engine, frames);
	if (engine->logged && STAILQ_EMPTY(&engine->begun) && !transport_urgent(engine->transport))
		engine->owes = true;
	else
		work += turn_end(engine);
	return turn_count(engine, work);
}

/* A look before which something is to be done. */
static __attribute__((noinline)) unsigned look_owed(struct engine *engine)
{
	unsigned work = engine->owes ? turn_owed(engine) : 0;

	/* Commands do not wait: their threads may rely on this one (host/progress.h, S1). */
	if (engine->logged && !engine_has_commands(engine))
		return turn_count(engine, work);
	return look_on(engine, work, transport_receive(engine->transport));
}

/* A look whose last part has found something to do. */
static __attribute__((noinline)) unsigned look_end(struct engine *engine, unsigned sent)
{
	return turn_count(engine, sent);
}

/* A waiting thread calls this all the time, and mostly there is no work. If there is any, the
 * general way does it. */
unsigned engine_look(struct engine *engine)
{
	unsigned frames, sent;

	owner_check(&engine->owner);
	if (engine->owes || engine->logged)
		return look_owed(engine);
	frames = transport_receive(engine->transport);
	if (frames != 0 || engine_has_commands(engine) || engine->logged || engine->awaits != 0)
		return look_on(engine, 0, frames);
	sent = transport_transmit(engine->transport);
	if (sent != 0 || engine->logged)
		return look_end(engine, sent);
	engine_count(engine, polls_idle);
	return 0;
}

static ALWAYS_INLINE void push(struct engine *engine)
{
	bool left;

	if (!STAILQ_EMPTY(&engine->late))
		notices_send(engine);
	left = transport_push(engine->transport);
	engine_announce(engine);
	if (!left || transport_unlooked(engine->transport) >= engine->push_look)
		engine_poll(engine);
	else if (engine->owes)
		turn_owed(engine);
	engine_ring(engine);
}

void engine_push(struct engine *engine)
{
	owner_check(&engine->owner);
	push(engine);
}

bool engine_put(struct engine *engine, uint32_t number, struct region *region,
	const struct move *move, bool acknowledge)
{
	struct space *space = engine->spaces[number];
	bool taken;

	owner_check(&engine->owner);
	if (engine_posted(engine) || !operation_reserve(engine, 1) ||
		region->state == REGION_FREE || !gate_take(&region->gate, move->generation, &taken))
		return false;
	engine_count(engine, commands);
	outgoing_put(space, region, move, taken, acknowledge);
	push(engine);
	return true;
}

/* May a command that did not come by the ring be carried out? Then it is counted. */
static ALWAYS_INLINE bool command_may_run(struct engine *engine, bool needs_operation)
{
	owner_check(&engine->owner);
	if (engine_posted(engine) || (needs_operation && !operation_reserve(engine, 1)))
		return false;
	engine_count(engine, commands);
	engine_announce(engine);
	return true;
}

bool engine_rma(struct engine *engine, uint32_t number, const struct move *move,
	const struct rma_line *line, const void *given)
{
	if (!command_may_run(engine, true))
		return false;
	rma_begin(engine->spaces[number], move, line, given);
	triggered_settle(engine);
	push(engine);
	return true;
}

/* Most receives begin nothing that another process or thread waits for. */
bool engine_receive(struct engine *engine, uint32_t number, const struct command *receive)
{
	if (!command_may_run(engine, false))
		return false;
	letters_post(engine->spaces[number], receive);
	if (engine->owes)
		push(engine);
	return true;
}

bool engine_letter(
	struct engine *engine, uint32_t number, const struct command *letter, const void *data)
{
	if (!command_may_run(engine, true))
		return false;
	letters_send(engine->spaces[number], letter, data);
	push(engine);
	return true;
}

bool engine_execute(struct engine *engine, const struct command *command)
{
	bool begins = command->kind == COMMAND_PUT || command->kind == COMMAND_GET ||
		      command->kind == COMMAND_RMA || command->kind == COMMAND_LETTER;

	owner_check(&engine->owner);
	/* The caller may wait for work that a look has put off: a descriptor is in use until an
	 * acknowledgement has been read. */
	if (engine->owes && !begins)
		turn_owed(engine);
	/* Commands that are still in the ring then go first: they wait for memory too. A producer
	 * that was preempted inside its enqueue hides those behind it, perhaps an earlier command
	 * of this very thread: then this one must go behind them. */
	if (engine_has_commands(engine)) {
		engine_drain(engine, COMMAND_RING);
		if (engine_has_commands(engine))
			return false;
	}
	if (!ring_settled(&engine->commands) || (begins && !operation_reserve(engine, 1)))
		return false;
	command_run(engine, command);
	return true;
}

uint64_t engine_deadline(const struct engine *engine)
{
	uint64_t transport, probe;

	owner_check(&engine->owner);
	transport = transport_deadline(engine->transport);
	probe = outgoing_deadline(engine);
	return transport < probe ? transport : probe;
}

int engine_interrupt(struct engine *engine, bool on)
{
	struct port *port = engine->port;

	owner_check(&engine->owner);
	return port->operations->interrupt ? port->operations->interrupt(port, on) : -1;
}

bool engine_shares_cpu(struct engine *engine)
{
	struct port *port = engine->port;

	owner_check(&engine->owner);
	return port->operations->shares_cpu && port->operations->shares_cpu(port);
}

bool engine_settled(const struct engine *engine)
{
	owner_check(&engine->owner);
	return ring_empty(&engine->commands) && STAILQ_EMPTY(&engine->late) &&
	       transport_settled(engine->transport);
}

/* A space stays while an operation names it. */
static bool message_counts(const struct message *message)
{
	const struct operation *operation = operation_of(message);
	struct message_header header;

	if (operation->kind != OPERATION_NOTICE &&
		!(operation->kind == OPERATION_RMA && operation->space->two_sided))
		return true;
	return !message_decode(
		       message->header, message->header_length, message->memory.length, &header) ||
	       header.kind != MESSAGE_STORE || header.portal != FETCH_PORTAL ||
	       header.match_bits != BITS_TOLD || word_kind(header.value) == WORD_USER;
}

void engine_await(struct engine *engine)
{
	engine_catch_up(engine);
	transport_await(engine->transport, message_counts);
}

bool engine_has_commands(const struct engine *engine)
{
	owner_check(&engine->owner);
	return !ring_empty(&engine->commands);
}

void engine_claim(struct engine *engine)
{
	owner_check(&engine->owner);
	transport_claim(engine->transport);
}

const struct transport *engine_transport(const struct engine *engine)
{
	owner_check(&engine->owner);
	return engine->transport;
}

void engine_tell_queues(const struct engine *engine, struct report *report)
{
	owner_check(&engine->owner);
	report_number(report, "commands", ring_count(&engine->commands));
	report_number(report, "operations", pool_taken(&engine->operations));
	report_number(report, "operations_kept", engine->operations.made);
}

void engine_tell_list(
	const struct engine *engine, uint32_t space, uint32_t portal, struct report *report)
{
	const struct space *listed = engine->spaces[space];

	owner_check(&engine->owner);
	match_list_tell(
		&listed->lists[listed->kind == SPACE_TIERS ? portal * TIERS : portal], report);
}

uint64_t engine_turn(const struct engine *engine)
{
	owner_check(&engine->owner);
	return transport_looked(engine->transport);
}
