/* SPDX-License-Identifier: BSD-3-Clause */
/* incoming.c - messages that arrive, and what follows in a space with match lists (lists.h). Those
 * for spaces with tiers go on in tiers.h, rma.h and letters.h.
 *
 *     put    delivery          -> PUT_START, data placed -> PUT_END, acknowledgement
 *                                 here as a whole: data placed -> PUT_START and PUT_END,
 *                                 acknowledgement
 *     get    delivery          -> GET_START, reply sent  -> GET_END
 *                                 refused: the initiator is told
 *     ack    descriptor, queue -> ACK
 *     reply  operation         -> REPLY_START, data placed -> REPLY_END, also at once
 *
 * Whatever is discarded is counted, by reason; the sum of the reasons is the interface's drop count
 * (4.2).
 */
#include <engine/logging.h>

#include <engine/amo.h>
#include <engine/rma.h>
#include <engine/letters.h>
#include <engine/lists.h>
#include <engine/statistics.h>
#include <engine/tiers.h>
#include <engine/triggered.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE      __attribute__((noinline))

/* What the events of a request that has been granted say. */
static void account_accepted(struct account *account, struct process from,
	const struct message_header *header, const struct placement *placement)
{
	account_from(account, from, header);
	account->moved = placement->length;
	account->offset = placement->offset;
}

/* Begins an operation that a remote process asked for. */
static struct operation *operation_accept(struct space *space, enum operation_kind kind,
	struct region *region, struct process from, const struct message_header *header,
	const struct placement *placement)
{
	struct operation *operation = operation_take(space->engine, kind);
	struct account *account = &operation->account;
	uint64_t link;

	operation->peer = from;
	operation->remote = header->operation;
	account_accepted(account, from, header, placement);
	account->value = kind == OPERATION_RECEIVE ? header->value : 0;
	region_begin(space, region, operation);
	operation->exhausts = region_spend(region, true, placement->length);
	engine_trace(space->engine, TRACE_MATCH, from, header->operation, account);
	link = region_log(space, region, operation_queue(operation),
		kind == OPERATION_RECEIVE ? EVENT_PUT_START : EVENT_GET_START, account);
	account->link = link ? link : LINK_OWN;
	return operation;
}

/* NULL, and counted: there is no memory. */
static struct operation *notice_begin(struct engine *engine, struct process to)
{
	struct operation *operation = operation_take(engine, OPERATION_NOTICE);

	if (!operation) {
		engine_count(engine, dropped_no_memory_operation);
		return NULL;
	}
	operation->peer = to;
	operation->message.memory = map_of_piece(NULL, 0);
	return operation;
}

void notice_send(struct engine *engine, struct process to, const struct message_header *header)
{
	struct operation *operation = notice_begin(engine, to);

	if (!operation)
		return;
	outgoing_send(engine, operation, header);
}

void notice_send_late(struct engine *engine, struct process to, const struct message_header *header)
{
	struct operation *operation = notice_begin(engine, to);

	if (!operation)
		return;
	operation->message.header_length = message_encode(header, operation->message.header);
	STAILQ_INSERT_TAIL(&engine->late, operation, next);
	engine->owes = true;
}

void notices_send(struct engine *engine)
{
	struct operation *operation;

	while ((operation = STAILQ_FIRST(&engine->late))) {
		STAILQ_REMOVE_HEAD(&engine->late, next);
		transport_send(engine->transport, operation->peer, &operation->message);
	}
}

bool answer_granted(struct engine *engine, struct process to, const struct message_header *request)
{
	if ((request->kind != MESSAGE_FETCH && request->kind != MESSAGE_LOAD) ||
		request->requested <= COPIED_MAX || request->requested > AMO_BYTES_MAX)
		return true;
	return pool_reserve(&engine->copies, 1) &&
	       (pool_taken(&engine->copies) < COPIES_SHARED ||
		       transport_has_share(engine->transport, to, COPIES_MAX));
}

struct operation *answer_begin(struct engine *engine, struct process to, uint64_t bytes)
{
	struct operation *answer = operation_begin(engine, OPERATION_ANSWER);
	const void *copy = bytes <= sizeof(answer->copied) ? answer->copied
							   : pool_take_reserved(&engine->copies);

	answer->peer = to;
	answer->message.memory = map_of_piece(copy, bytes);
	return answer;
}

void answer_end(struct engine *engine, struct operation *answer)
{
	if (answer->message.memory.length > sizeof(answer->copied))
		pool_give(&engine->copies, (void *)(uintptr_t)answer->message.memory.start);
	operation_free(engine, answer);
}

/* Tells the initiator of a put that it has been placed. account: of PUT_END. The rest is the put's,
 * to echo. */
static NOINLINE void put_acknowledge(struct space *space, struct process to,
	const struct account *account, uint64_t handle, uint64_t offset, uint64_t operation)
{
	struct message_header ack = {
		.kind = MESSAGE_ACK,
		.space = space->number,
		.portal = account->portal,
		.match_bits = account->match_bits,
		.offset = offset,
		.handle = handle,
		.requested = account->requested,
		.value = account->moved,
		.operation = operation,
	};

	notice_send(space->engine, to, &ack);
}

/* A put whose data, as far as it is wanted, is here: it is never pending, since nothing but this
 * thread frees regions (R1). */
static ALWAYS_INLINE void put_take(struct space *space, struct region *region, struct process from,
	const struct message_header *header, const void *data, const struct placement *placement)
{
	/* The options are looked at before the end, which may free the region. */
	bool acknowledge = header->handle != 0 && !(region->options & REGION_NO_ACK);
	bool exhausts = region_spend(region, true, placement->length);
	const struct map memory = placement_map(region, placement);
	bool traced = trace_wanted();
	struct account account;
	uint64_t link;

	account_accepted(&account, from, header, placement);
	account.value = header->value;
	if (traced)
		engine_trace(space->engine, TRACE_MATCH, from, header->operation, &account);
	map_copy_in(&memory, 0, data, placement->length);
	PROBE(place, from.nid, from.pid, map_place(&memory, 0), placement->length);
	if (traced)
		engine_trace(space->engine, TRACE_PLACE, from, header->operation, &account);
	link = region_log_whole(space, region, &account, EVENT_PUT_START);
	if (traced)
		engine_trace(space->engine, TRACE_EVENT, from, header->operation, &account);
	if (exhausts || acknowledge) {
		/* so that the account itself may stay in registers */
		struct account copy = account;

		copy.link = link ? link : LINK_OWN;
		if (exhausts) /* R3: a region that accepts is not on its way out */
			region_settle(space, region, &copy, exhausts);
		if (acknowledge)
			put_acknowledge(space, from, &copy, header->handle, header->offset,
				header->operation);
	}
}

/* A put that is here as a whole. */
static ALWAYS_INLINE void put_whole(struct space *space, struct process from,
	const struct message_header *header, const void *data)
{
	struct placement placement;
	struct region *region = lists_deliver(space, from, header, header->handle != 0, &placement);

	if (!region)
		return;
	space_count(space, puts_received);
	put_take(space, region, from, header, data, &placement);
}

/* A put of which data is still to come. */
static void put_begin(struct space *space, struct process from, const struct message_header *header,
	struct inbound *inbound)
{
	struct placement placement;
	struct region *region = lists_deliver(space, from, header, true, &placement);
	struct operation *operation;

	if (!region)
		return;
	space_count(space, puts_received);
	operation = operation_accept(space, OPERATION_RECEIVE, region, from, header, &placement);
	operation->acknowledge = header->handle != 0;
	operation->handle = header->handle;
	operation->request_offset = header->offset;
	inbound->memory = placement_map(region, &placement);
	inbound->context = operation;
	inbound->want_end = true;
}

static void get_refuse(
	struct engine *engine, struct process from, const struct message_header *request)
{
	struct message_header refusal = *request;

	if (!operation_granted(engine, from)) {
		engine_count(engine, dropped_no_memory_operation);
		return;
	}
	refusal.kind = MESSAGE_REFUSE;
	refusal.uid = 0;
	refusal.cookie = 0;
	refusal.value = 0;
	notice_send(engine, from, &refusal);
}

static void get_begin(struct space *space, struct process from, const struct message_header *header)
{
	struct message_header reply = *header;
	struct placement placement;
	struct operation *operation;
	struct region *region = lists_deliver(space, from, header, true, &placement);

	if (!region) {
		get_refuse(space->engine, from, header);
		return;
	}
	operation = operation_accept(space, OPERATION_SERVE, region, from, header, &placement);
	space_count(space, gets_received);
	list_append(&space->engine->serving, &operation->link);
	operation->message.memory = placement_map(region, &placement);
	reply.kind = MESSAGE_REPLY;
	reply.uid = 0;
	reply.cookie = 0;
	reply.value = placement.length;
	outgoing_send(space->engine, operation, &reply);
}

/* 4.2: the descriptor and its queue must still exist and have room; nothing else is checked. */
void incoming_acknowledged(
	struct space *space, struct process from, const struct message_header *header)
{
	struct region *region = region_of(space, header->handle);
	struct account account;
	struct queue *queue;
	bool exhausts, lost = true;

	if (region) {
		account_from(&account, from, header);
		account.moved = header->value;
		account.offset = header->offset;
		account.link = header->operation ? header->operation : LINK_OWN;
		exhausts = region_spend(region, region_take(region), 0);
		engine_trace(
			space->engine, TRACE_ACK, space->engine->self, header->operation, &account);
		queue = region_queue(region);
		lost = event_wanted(region, EVENT_ACK, TRANSPORT_OK) &&
		       (!queue || !event_log(space, queue, region, EVENT_ACK, TRANSPORT_OK,
					  &account, account.link)
					   .slot);
		region_settle(space, region, &account, exhausts);
	}
	if (lost)
		space_count(space, dropped_late_ack);
	else
		space_count(space, acks_delivered);
}

/* The get that a reply or a refusal names, if it really was sent to that process and still waits;
 * NULL if not. */
static struct operation *get_find(
	struct space *space, struct process from, const struct message_header *header)
{
	struct operation *operation =
		operation_find(space->engine, header->operation, OPERATION_GET);

	if (!operation || operation->replying || operation->ended ||
		operation->region->handle != header->handle || !process_same(operation->peer, from))
		return NULL;
	return operation;
}

/* A reply whose data is here. */
static void reply_take(
	struct space *space, struct operation *operation, struct process from, const void *data)
{
	struct region *region = operation->region;
	struct account *account = &operation->account;
	const struct map memory = region_map(region, 0, account->moved);
	uint64_t link;

	map_copy_in(&memory, 0, data, account->moved);
	PROBE(place, from.nid, from.pid, map_place(&memory, 0), account->moved);
	engine_trace(space->engine, TRACE_PLACE, space->engine->self, operation_name(operation),
		account);
	region->pending--; /* R2 */
	link = region_log_whole(space, region, account, EVENT_REPLY_START);
	account->link = link ? link : LINK_OWN;
	region_settle(space, region, account, operation->exhausts);
	engine_trace(space->engine, TRACE_EVENT, space->engine->self, operation_name(operation),
		account);
	outgoing_finish(space->engine, operation);
}

/* Begins what a reply brings; NULL: nobody waits for it. */
static struct operation *reply_accept(struct space *space, struct process from,
	const struct message_header *header, uint64_t extent)
{
	struct operation *operation = get_find(space, from, header);
	struct region *region;

	if (!operation) {
		space_count(space, dropped_late_reply);
		return NULL;
	}
	region = operation->region;
	space_count(space, replies_received);
	operation->replying = true;
	outgoing_heard(operation);
	account_from(&operation->account, from, header);
	operation->account.moved = extent < region->length ? extent : region->length;
	operation->exhausts = region_spend(region, region_take(region), 0);
	return operation;
}

static void reply_whole(struct space *space, struct process from,
	const struct message_header *header, const void *data, uint64_t length)
{
	struct operation *operation = reply_accept(space, from, header, length);

	if (operation)
		reply_take(space, operation, from, data);
}

static void reply_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	struct operation *operation = reply_accept(space, from, header, record->extent);
	struct region *region;
	uint64_t link;

	if (!operation)
		return;
	region = operation->region;
	operation_aim(operation, region);
	link = region_log(
		space, region, region_queue(region), EVENT_REPLY_START, &operation->account);
	operation->account.link = link ? link : LINK_OWN;
	inbound->memory = region_map(region, 0, operation->account.moved);
	inbound->context = operation;
	inbound->want_end = true;
}

static void refusal_begin(
	struct space *space, struct process from, const struct message_header *header)
{
	struct operation *operation = get_find(space, from, header);

	/* No drop if not: a probe that crossed the reply is refused, and nobody misses anything. */
	if (operation)
		outgoing_fail(space->engine, operation, FAIL_UNDELIVERABLE);
	else
		space_count(space, refusals_late);
}

/* A get waits for a reply that this process knows nothing of: it has lived since, or never got the
 * get. Gets and probes come in the order in which they were sent, so the get itself cannot be still
 * to come. */
static void probe_begin(
	struct space *space, struct process from, const struct message_header *header)
{
	list_each (const struct operation, operation, &space->engine->serving, link) {
		if (operation->remote == header->operation && process_same(operation->peer, from))
			return;
	}
	get_refuse(space->engine, from, header);
}

/* Only requests that bring data, and what answers gets and loads have any. */
static bool message_is_sound(const struct message_header *header, uint64_t length)
{
	bool answers = header->kind == MESSAGE_REPLY || header->kind == MESSAGE_LOADED;

	return length == (answers ? header->value : 0) || message_brings(header->kind);
}

/* Is a message of a kind that such spaces have? */
static bool message_suits(const struct space *space, const struct message_header *header)
{
	return (header->kind >= MESSAGE_STORE) == (space->kind == SPACE_TIERS);
}

/* A message for a space that does not exist. */
static NOINLINE void message_refuse(
	struct engine *engine, struct process from, const struct message_header *header)
{
	engine_count(engine, dropped_no_space);
	if (header->kind == MESSAGE_GET || header->kind == MESSAGE_PROBE)
		get_refuse(engine, from, header);
	else if (header->kind >= MESSAGE_STORE && header->kind != MESSAGE_STORED &&
		 header->kind != MESSAGE_LOADED)
		tiers_refuse(engine, from, header, TIER_UNDELIVERABLE);
}

/* A sound message that is here as a whole, but a put. */
static void message_take(struct space *space, struct process from,
	const struct message_header *header, const void *data, uint32_t length)
{
	switch (header->kind) {
	case MESSAGE_GET:
		get_begin(space, from, header);
		break;
	case MESSAGE_ACK:
		if (!outgoing_keep(space->engine, from, header))
			incoming_acknowledged(space, from, header);
		break;
	case MESSAGE_REPLY:
		reply_whole(space, from, header, data, length);
		break;
	case MESSAGE_REFUSE:
		refusal_begin(space, from, header);
		break;
	case MESSAGE_PROBE:
		probe_begin(space, from, header);
		break;
	case MESSAGE_STORE:
		tiers_store(space, from, header, data);
		break;
	case MESSAGE_LOAD:
		tiers_load(space, from, header);
		break;
	case MESSAGE_STORED:
		rma_stored(space, from, header);
		break;
	case MESSAGE_LOADED:
		rma_loaded(space, from, header, data);
		break;
	case MESSAGE_ASK:
		tiers_asked(space, from, header);
		break;
	case MESSAGE_ATOMIC:
	case MESSAGE_FETCH:
		tiers_amo(space, from, header, data);
		break;
	default: /* message_decode() knows no other but puts */
		break;
	}
}

/* A message that is here as a whole, but a put to a space with match lists. */
static NOINLINE void message_whole(struct engine *engine, struct process from,
	const struct message_header *header, const void *data, uint32_t length)
{
	struct space *space = space_find(engine, header->space);

	if (!message_is_sound(header, length))
		engine_count(engine, dropped_bad_message);
	else if (!space)
		message_refuse(engine, from, header);
	else if (!message_suits(space, header))
		space_count(space, dropped_bad_message);
	else
		message_take(space, from, header, data, length);
	triggered_settle(engine);
}

void incoming_whole(void *context, struct process from, const void *bytes, uint32_t header_length,
	const void *data, uint32_t length)
{
	struct engine *engine = context;
	struct message_header header;
	struct space *space;

	if (!message_decode(bytes, header_length, length, &header)) {
		engine_count(engine, dropped_bad_message);
		return;
	}
	space = space_find(engine, header.space);
	if (__builtin_expect(
		    header.kind == MESSAGE_PUT && space && space->kind == SPACE_LISTS, 1)) {
		put_whole(space, from, &header, data);
	} else {
		const struct message_header copy =
			header; /* so that the original stays in registers */

		if (copy.kind == MESSAGE_STORE && space && space->two_sided) {
			letters_store(space, from, &copy, data);
		} else if (copy.kind == MESSAGE_STORE && space && space->kind == SPACE_TIERS) {
			tiers_store(space, from, &copy, data);
			triggered_settle(engine);
		} else {
			message_whole(engine, from, &copy, data, length);
		}
	}
}

/* A message with data of which only the first is here. */
static void message_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	switch (header->kind) {
	case MESSAGE_PUT:
		put_begin(space, from, header, inbound);
		break;
	case MESSAGE_STORE:
		if (space->two_sided)
			letters_store_begin(space, from, header, record, inbound);
		else
			tiers_store_begin(space, from, header, record, inbound);
		break;
	case MESSAGE_LOADED:
		rma_loaded_begin(space, from, header, inbound);
		break;
	case MESSAGE_ATOMIC:
	case MESSAGE_FETCH:
		/* None has more data than fit into a frame (doc/wire.md, section 11). */
		space_count(space, dropped_bad_message);
		break;
	default:
		reply_begin(space, from, header, record, inbound);
	}
}

void incoming_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound)
{
	struct engine *engine = context;
	struct message_header header;
	struct space *space;

	inbound->stop = true;
	if (!message_decode(record->header, record->header_length, record->extent, &header) ||
		!message_is_sound(&header, record->extent)) {
		engine_count(engine, dropped_bad_message);
		return;
	}
	space = space_find(engine, header.space);
	if (!space)
		message_refuse(engine, from, &header);
	else if (!message_suits(space, &header))
		space_count(space, dropped_bad_message);
	else
		message_begin(space, from, &header, record, inbound);
	triggered_settle(engine);
}

/* The last of a reply has been placed, or will not come. */
static void reply_end(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	engine_trace(
		engine, TRACE_PLACE, engine->self, operation_name(operation), &operation->account);
	region_end(operation, EVENT_REPLY_END, why);
	engine_trace(
		engine, TRACE_EVENT, engine->self, operation_name(operation), &operation->account);
	outgoing_finish(engine, operation);
}

/* The same of a put. */
static void put_end(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	struct space *space = operation->space;
	/* The options are looked at before the end, which may free the region. */
	bool acknowledge = why == TRANSPORT_OK && operation->acknowledge &&
			   !(operation->region->options & REGION_NO_ACK);

	engine_trace(engine, TRACE_PLACE, operation->peer, operation->remote, &operation->account);
	region_end(operation, EVENT_PUT_END, why);
	engine_trace(engine, TRACE_EVENT, operation->peer, operation->remote, &operation->account);
	/* Freed first, so that the acknowledgement certainly has an operation: perhaps this one. */
	operation_free(engine, operation);
	if (acknowledge)
		put_acknowledge(space, operation->peer, &operation->account, operation->handle,
			operation->request_offset, operation->remote);
}

void incoming_end(void *context, void *inbound_context, enum transport_fail why)
{
	struct operation *operation = inbound_context;

	/* Memory of lists is there: a peer has voided what it began. */
	if (why == TRANSPORT_FAULT && operation->space->kind == SPACE_LISTS)
		why = (enum transport_fail)FAIL_UNDELIVERABLE;
	if (operation->kind == OPERATION_GET)
		reply_end(context, operation, why);
	else if (operation->kind == OPERATION_RMA)
		rma_placed(operation, why);
	else if (operation_has_receive(operation))
		letters_stored(context, operation, why);
	else if (operation->space->kind == SPACE_TIERS)
		tiers_stored(context, operation, why);
	else
		put_end(context, operation, why);
	triggered_settle(context);
}
