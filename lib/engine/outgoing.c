/* SPDX-License-Identifier: BSD-3-Clause */
/* outgoing.c - messages that this process sends: puts, gets, replies and notices, until the
 * transport is done with them.
 *
 * O1. SEND_END and GET_END mean that the peer's transport has every byte, not only that the memory
 *     may be reused: so a message to a process that is gone ends in a FAIL event, never in silence.
 * O2. A get whose request has arrived waits for a reply that only the target can send. Since
 *     nothing is in flight meanwhile, the engine asks after it every probe_interval: a dead target
 *     fails the probe, one that has restarted refuses it.
 * O3. ACK is logged after SEND_END. The acknowledgement comes before the transport's word when both
 *     are in one frame, or while the transport still waits to hear that an earlier frame has
 *     arrived: the put keeps it until then. It proves that the put has arrived, whatever becomes of
 *     the peer.
 * O4. SEND_START is logged when the put's frame has had its chance to leave: the event's lines come
 *     from the application's core, and what is stored after them waits for them. So puts begin in
 *     silence (engine.begun), and are announced before anything else is logged and before a command
 *     that is no put is carried out. A put is announced before it is sent if its acknowledgement
 *     will name it by the sequence of SEND_START, or if its region has a threshold, which that
 *     event tells as this put leaves it.
 */
#include <engine/state.h>

#include <string.h>

#include <base/clock.h>

#include <engine/credit.h>
#include <engine/letters.h>
#include <engine/logging.h>
#include <engine/rma.h>
#include <engine/tiers.h>
#include <engine/triggered.h>

/* So many loads that were refused are repeated at a time, and then others after so long: a peer
 * that refuses all for ever costs a small part of a CPU. */
#define REPEATS      64
#define REPEAT_PAUSE (500 * MICROSECOND)

static struct link *sending_list(struct engine *engine, uint64_t link)
{
	return &engine->sending[link % SENDING_LISTS];
}

/* What a put's events say. That most of it is not kept spares the way to the frame some stores. */
static inline struct account put_account(
	const struct engine *engine, const struct operation *operation)
{
	struct account account = {
		.target = operation->account.target,
		.match_bits = operation->account.match_bits,
		.requested = operation->message.memory.length,
		.moved = operation->message.memory.length,
		.value = operation->account.value,
		.link = operation->account.link,
	};

	memcpy(&account.initiator, &engine->self, sizeof(account.initiator));
	return account;
}

/* Logs SEND_START. */
static inline void put_start(struct engine *engine, struct operation *operation)
{
	const struct region *region = operation->region;
	struct space *space = operation->space;
	struct queue *queue = operation_queue(operation);
	struct account account;

	operation->account.link = LINK_OWN;
	if (!queue || !event_wanted(region, EVENT_SEND_START, TRANSPORT_OK))
		return;
	account = put_account(engine, operation);
	operation->account.link =
		event_log(space, queue, region, EVENT_SEND_START, TRANSPORT_OK, &account, LINK_OWN)
			.sequence;
}

void outgoing_announce(struct engine *engine)
{
	struct operation *operation;

	STAILQ_FOREACH (operation, &engine->begun, next)
		put_start(engine, operation);
	STAILQ_INIT(&engine->begun);
}

/* A put that is announced before it is sent. Returns its name for its acknowledgement, the link of
 * SEND_START, if it wants one and there is a queue for it; else 0. */
static uint64_t put_start_first(
	struct engine *engine, struct operation *operation, bool acknowledge)
{
	engine_announce(engine);
	put_start(engine, operation);
	if (!acknowledge || operation->account.link == LINK_OWN)
		return 0;
	operation->acknowledge = true;
	operation->name = operation->account.link;
	list_append(sending_list(engine, operation->name), &operation->link);
	return operation->name;
}

static uint64_t put_trace(struct engine *engine, struct operation *operation, uint64_t name)
{
	const struct account account = put_account(engine, operation);

	operation->name = name ? name : PUT_TRACED | ++engine->traced;
	engine_trace(engine, TRACE_COMMAND, engine->self, operation->name, &account);
	return operation->name;
}

void outgoing_put(struct space *space, struct region *region, const struct move *move, bool taken,
	bool acknowledge)
{
	struct engine *engine = space->engine;
	struct operation *operation = operation_begin(engine, OPERATION_PUT);
	struct message *message = &operation->message;
	struct message_header header = {
		.kind = MESSAGE_PUT,
		.space = space->number,
		.uid = space->uid,
		.portal = move->portal,
		.cookie = move->cookie,
		.match_bits = move->match_bits,
		.value = move->value,
		.offset = move->offset,
	};
	bool first;

	region->pending++;
	operation->space = space;
	operation->region = region;
	operation_aim(operation, region);
	operation->peer = move->to;
	operation->exhausts = region_spend(region, taken, 0);
	operation->account.target = space->uid | (uint64_t)move->portal << 32;
	operation->account.match_bits = move->match_bits;
	operation->account.value = move->value;
	message->memory = region_map(region, 0, region->length);
	first = acknowledge || region->threshold != GATE_THRESHOLD_INFINITE; /* O4 */
	if (first)
		header.operation = put_start_first(engine, operation, acknowledge);
	else
		STAILQ_INSERT_TAIL(&engine->begun, operation, next);
	if (operation->acknowledge)
		header.handle = region->handle;
	if (trace_wanted())
		header.operation = put_trace(engine, operation, header.operation);
	message->header_length = message_encode(&header, message->header);
	PROBE(put, operation, operation->peer.nid, operation->peer.pid, move->portal,
		move->match_bits, message->memory.length);
	transport_send(engine->transport, move->to, message);
}

bool outgoing_keep(struct engine *engine, struct process from, const struct message_header *ack)
{
	struct link *list = sending_list(engine, ack->operation);

	list_each (struct operation, operation, list, link) {
		if (operation->name != ack->operation || operation->acknowledged ||
			operation->region->handle != ack->handle ||
			!process_same(operation->peer, from))
			continue;
		operation->acknowledged = true;
		operation->remote = ack->value;
		operation->request_offset = ack->offset;
		return true;
	}
	return false;
}

static __attribute__((noinline)) void put_settle(
	struct engine *engine, const struct operation *operation, enum transport_fail why)
{
	const struct account account = put_account(engine, operation);

	/* Only a successful operation's end unlinks. */
	region_settle(operation->space, operation->region, &account,
		operation->exhausts && why == TRANSPORT_OK);
}

/* Logs SEND_END or SEND_FAIL. */
static inline __attribute__((always_inline)) void put_end(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	struct region *region = operation->region;
	struct space *space = operation->space;
	const struct account account = put_account(engine, operation);

	region_log_end(space, region, operation_queue(operation), EVENT_SEND_END, why, &account);
	if (operation->exhausts || region->state != REGION_LIVE)
		put_settle(engine, operation, why);
}

/* The end of a put whose acknowledgement is wanted, and may be here (O3). */
static void put_end_acknowledged(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	const struct message_header ack = {
		.kind = MESSAGE_ACK,
		.portal = operation->account.portal,
		.match_bits = operation->account.match_bits,
		.offset = operation->request_offset,
		.handle = operation->region->handle,
		.requested = operation->message.memory.length,
		.value = operation->remote,
		.operation = operation->name,
	};

	link_remove(&operation->link);
	put_end(engine, operation, operation->acknowledged ? TRANSPORT_OK : why);
	if (operation->acknowledged)
		incoming_acknowledged(operation->space, operation->peer, &ack);
}

/* Portals 3 has one word for both. */
static enum transport_fail fail_told(enum transport_fail why)
{
	return why == TRANSPORT_ABSENT ? TRANSPORT_UNREACHABLE : why;
}

/* The end of a put that is not as most are. */
static __attribute__((noinline)) void put_end_unusual(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	const struct account account = put_account(engine, operation);

	engine_trace(engine, TRACE_ACKNOWLEDGED, engine->self, operation->name, &account);
	if (operation->acknowledge)
		put_end_acknowledged(engine, operation, fail_told(why));
	else
		put_end(engine, operation, fail_told(why));
}

/* The transport is done with a put. A function of its own, as rma_done() and message_done() are, so
 * that the end of a letter saves no registers. */
static __attribute__((noinline)) void put_done(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	PROBE(acknowledge, operation, operation->peer.nid, operation->peer.pid,
		operation->account.portal, operation->account.match_bits, why);
	if (operation->acknowledge || why != TRANSPORT_OK || trace_wanted())
		put_end_unusual(engine, operation, why);
	else
		put_end(engine, operation, TRANSPORT_OK);
	operation_free(engine, operation);
}

void outgoing_get(struct space *space, struct region *region, const struct move *move)
{
	struct engine *engine = space->engine;
	struct operation *operation = operation_begin(engine, OPERATION_GET);
	struct message_header header = {
		.kind = MESSAGE_GET,
		.space = space->number,
		.uid = space->uid,
		.portal = move->portal,
		.cookie = move->cookie,
		.match_bits = move->match_bits,
		.offset = move->offset,
		.handle = region->handle,
		.requested = region->length,
		.operation = operation_name(operation),
	};

	region_begin(space, region, operation);
	operation->peer = move->to;
	operation->requested = true;
	operation->message.memory = map_of_piece(NULL, 0);
	/* What its FAIL event says if no reply ever comes. */
	operation->account = (struct account){
		.nid = move->to.nid,
		.pid = move->to.pid,
		.uid = space->uid,
		.portal = move->portal,
		.match_bits = move->match_bits,
		.requested = region->length,
		.link = LINK_OWN,
	};
	engine_trace(engine, TRACE_COMMAND, engine->self, header.operation, &operation->account);
	outgoing_send(engine, operation, &header);
}

void outgoing_heard(struct operation *operation)
{
	if (operation->waits) {
		link_remove(&operation->link);
		operation->waits = false;
		operation->space->engine->awaits--;
	}
}

void outgoing_finish(struct engine *engine, struct operation *operation)
{
	operation->ended = true;
	outgoing_heard(operation);
	if (!operation->requested)
		operation_free(engine, operation);
}

void outgoing_fail(struct engine *engine, struct operation *operation, uint32_t why)
{
	struct region *region = operation->region;

	if (operation->kind == OPERATION_RMA) {
		rma_fail(operation, TIER_UNDELIVERABLE);
		return;
	}
	operation_aim(operation, region);
	operation->exhausts = region_spend(region, region_take(region), 0);
	operation->account.link = LINK_OWN;
	operation->account.moved = 0;
	region_end(operation, EVENT_REPLY_END, why);
	outgoing_finish(engine, operation);
}

void operation_wait(struct operation *operation, struct link *list)
{
	struct engine *engine = operation->space->engine;

	operation->asked = transport_looked(engine->transport);
	operation->waits = true;
	engine->awaits++;
	list_append(list, &operation->link);
}

/* The request of a get, or a probe for it, has arrived, or never will. */
static void get_requested(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	operation->requested = false;
	if (operation->ended) {
		operation_free(engine, operation);
	} else if (operation->replying) {
		return; /* the reply's end is its end */
	} else if (why != TRANSPORT_OK || operation->space->closing) {
		outgoing_fail(engine, operation,
			why != TRANSPORT_OK ? fail_told(why) : TRANSPORT_SHUTDOWN);
	} else {
		operation_wait(operation, &engine->waiting);
	}
}

static __attribute__((noinline)) void rma_done(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	PROBE(acknowledge, operation, operation->peer.nid, operation->peer.pid,
		(uint32_t)word_read(
			operation->message.header, offsetof(struct message_header, portal)),
		word_read(operation->message.header, offsetof(struct message_header, match_bits)),
		why);
	rma_requested(operation, why);
	triggered_settle(engine);
}

static __attribute__((noinline)) void message_done(
	struct engine *engine, struct operation *operation, enum transport_fail why)
{
	switch (operation->kind) {
	case OPERATION_GET:
		get_requested(engine, operation, why);
		break;
	case OPERATION_SERVE:
		if (operation->space->kind == SPACE_TIERS) {
			tiers_served(engine, operation, why);
			break;
		}
		link_remove(&operation->link);
		region_end(operation, EVENT_GET_END, fail_told(why));
		operation_free(engine, operation);
		break;
	case OPERATION_NOTICE:
		operation_free(engine, operation);
		break;
	case OPERATION_ANSWER:
		answer_end(engine, operation);
		break;
	case OPERATION_LETTER:
		letter_lose(operation, why);
		break;
	default: /* others send nothing */
		break;
	}
	triggered_settle(engine);
}

void outgoing_done(void *context, struct message *message, enum transport_fail why)
{
	struct engine *engine = context;
	struct operation *operation = operation_of(message);

	if (operation->kind == OPERATION_PUT) {
		put_done(engine, operation, why);
	} else if (operation->kind == OPERATION_RMA) {
		rma_done(engine, operation, why);
	} else if (operation->kind == OPERATION_LETTER && why == TRANSPORT_OK) {
		letter_done(operation);
	} else {
		message_done(engine, operation, why);
	}
}

/* Asks after the answer to a get or an RMA operation. */
static void probe_send(struct engine *engine, struct operation *operation)
{
	struct message_header header = {
		.kind = MESSAGE_PROBE,
		.space = operation->space->number,
		.uid = operation->space->uid,
		.operation = operation_name(operation),
	};

	if (operation->kind == OPERATION_RMA) {
		header.kind = MESSAGE_ASK;
		header.detail = rma_loads(operation) ? MESSAGE_ASK_LOAD : 0;
		operation->message.memory = map_of_piece(NULL, 0);
	} else {
		header.portal = operation->account.portal;
		header.match_bits = operation->account.match_bits;
		header.handle = operation->region->handle;
		header.requested = operation->account.requested;
	}
	outgoing_send(engine, operation, &header);
}

/* When the oldest load that was refused is to be repeated, ns; UINT64_MAX: there is none. */
static uint64_t repeat_due(const struct engine *engine)
{
	const struct operation *first = list_first(&engine->refused, struct operation, link);

	if (!first)
		return UINT64_MAX;
	return (first->asked > engine->repeated ? first->asked : engine->repeated) + REPEAT_PAUSE;
}

static void refused_repeat(struct engine *engine)
{
	const uint64_t now = transport_looked(engine->transport);
	struct operation *operation;
	unsigned count = 0;

	while (count < REPEATS && now >= repeat_due(engine)) {
		operation = list_first(&engine->refused, struct operation, link);
		outgoing_heard(operation);
		rma_repeat(operation);
		count++;
	}
	if (count > 0)
		engine->repeated = now;
}

void outgoing_probe(struct engine *engine)
{
	struct operation *operation;

	refused_repeat(engine);
	if (engine->owing != 0) {
		credit_resume(engine);
		notices_send(engine);
	}
	/* The longest silent one is first, so the first that is not due ends it. */
	while ((operation = list_first(&engine->waiting, struct operation, link)) &&
		transport_looked(engine->transport) - operation->asked >= engine->probe_interval) {
		outgoing_heard(operation);
		if (operation->kind == OPERATION_RMA && !rma_is_wanted(operation))
			continue;
		operation->requested = true;
		probe_send(engine, operation);
	}
}

uint64_t outgoing_deadline(const struct engine *engine)
{
	const struct operation *first = list_first(&engine->waiting, struct operation, link);
	uint64_t due = repeat_due(engine), now, left;

	if (first && first->asked + engine->probe_interval < due)
		due = first->asked + engine->probe_interval;
	if (due == UINT64_MAX && engine->owing == 0)
		return UINT64_MAX;
	now = clock_now(engine->clock);
	left = due > now ? due - now : 0;
	return engine->owing != 0 && left > REPEAT_PAUSE ? REPEAT_PAUSE : left;
}

void outgoing_abandon(struct engine *engine)
{
	struct operation *operation;

	while ((operation = list_first(&engine->waiting, struct operation, link)) ||
		(operation = list_first(&engine->refused, struct operation, link)))
		outgoing_fail(engine, operation, TRANSPORT_SHUTDOWN);
}
