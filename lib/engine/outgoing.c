/* outgoing.c - messages that this process sends: puts, gets, replies and notices, until the
 * transport is done with them.
 *
 * O1. SEND_END and GET_END mean that the peer's transport has every byte, not only that the memory
 *     may be reused: so a message to a process that is gone ends in a FAIL event, never in silence.
 * O2. A get whose request has arrived waits for a reply that only the target can send. Since
 *     nothing is in flight meanwhile, the engine asks after it every probe_interval: a dead target
 *     fails the probe, one that has restarted refuses it.
 * O3. ACK is logged after SEND_END. The acknowledgement comes before the transport's word when both are in one frame, or while the
 *     transport still waits to hear that an earlier frame has arrived: the put keeps it until then.
 *     It proves that the put has arrived, whatever becomes of the peer.
 */
#include <engine/state.h>

void outgoing_send(
	struct engine *engine, struct operation *operation, const struct message_header *header)
{
	struct message *message = &operation->message;

	message->header_length = message_encode(header, message->header);
	transport_send(engine->transport, operation->peer, message);
}

/* The operation of a put or get command, begun on its region; NULL when there is nothing to begin. */
static struct operation *operation_command(
	struct engine *engine, enum operation_kind kind, const struct command *command)
{
	struct region *region = region_find(engine, command->move.region, command->move.generation);
	struct operation *operation;
	struct account *account;

	/* operation_reserve() has been asked before, so only a stale region ends here. */
	operation = region ? operation_take(engine, kind) : NULL;
	if (!operation) {
		engine_count(engine, commands_stale);
		return NULL;
	}
	operation->peer = (struct process){.nid = command->move.nid, .pid = command->move.pid};
	region_begin(engine, region, operation);
	account = &operation->account;
	account->nid = engine->self.nid;
	account->pid = engine->self.pid;
	account->uid = engine->uid;
	account->portal = command->move.portal;
	account->match_bits = command->move.match_bits;
	account->requested = region->length;
	account->moved = region->length;
	account->offset = 0;
	account->value = command->move.value;
	account->link = LINK_OWN;
	return operation;
}

static void header_fill(const struct engine *engine, const struct command *command,
	const struct operation *operation, struct message_header *header)
{
	*header = (struct message_header){
		.uid = engine->uid,
		.portal = command->move.portal,
		.cookie = command->move.cookie,
		.match_bits = command->move.match_bits,
		.offset = command->move.offset,
		.requested = operation->account.requested,
		.value = command->move.value,
	};
}

static struct operation_list *sending_list(struct engine *engine, uint64_t link)
{
	return &engine->sending[link % SENDING_LISTS];
}

/* A put's name on the wire: an acknowledgement finds it by the link of its SEND_START; else nobody asks for it but traces. */
static uint64_t put_name(struct engine *engine, uint64_t sequence, bool acknowledge)
{
	if (acknowledge)
		return sequence;
	if (!trace_wanted())
		return 0;
	return sequence ? sequence : PUT_UNLOGGED | ++engine->unlogged;
}

void outgoing_put(struct engine *engine, const struct command *command)
{
	struct operation *operation = operation_command(engine, OPERATION_PUT, command);
	struct message_header header;
	struct region *region;
	uint64_t sequence;

	if (!operation)
		return;
	region = segment_region(engine->segment, operation->region);
	operation->exhausts = region_spend(region, command->taken, 0);
	sequence = region_log(engine, region, operation->queue, EVENT_SEND_START, TRANSPORT_OK,
		&operation->account, NULL);
	operation->account.link = sequence ? sequence : LINK_OWN;

	header_fill(engine, command, operation, &header);
	header.kind = MESSAGE_PUT;
	header.handle = command->acknowledge && sequence ? operation->region_handle : 0;
	header.operation = put_name(engine, sequence, header.handle != 0);
	operation->message.data = (const void *)(uintptr_t)region->start;
	operation->message.length = region->length;
	operation->acknowledge = header.handle != 0;
	operation->handle = header.operation;
	if (operation->acknowledge)
		TAILQ_INSERT_TAIL(sending_list(engine, sequence), operation, link);
	engine_trace(engine, TRACE_COMMAND, engine->self, header.operation, &operation->account);
	PROBE(put, operation, operation->peer.nid, operation->peer.pid, header.portal,
		header.match_bits, operation->message.length);
	outgoing_send(engine, operation, &header);
}

bool outgoing_keep(struct engine *engine, struct process from, const struct message_header *ack)
{
	struct operation *operation;

	TAILQ_FOREACH(operation, sending_list(engine, ack->operation), link)
	{
		if (operation->account.link != ack->operation ||
			operation->region_handle != ack->handle || operation->acknowledged ||
			operation->peer.nid != from.nid || operation->peer.pid != from.pid)
			continue;
		operation->acknowledged = true;
		operation->remote = ack->value;
		operation->request_offset = ack->offset;
		return true;
	}
	return false;
}

/* O3 */
static void put_acknowledged(struct engine *engine, const struct operation *operation)
{
	const struct message_header ack = {
		.kind = MESSAGE_ACK,
		.portal = operation->account.portal,
		.match_bits = operation->account.match_bits,
		.offset = operation->request_offset,
		.handle = operation->region_handle,
		.requested = operation->account.requested,
		.value = operation->remote,
		.operation = operation->account.link,
	};

	incoming_acknowledged(engine, operation->peer, &ack);
}

/* The transport is done with a put. */
static void put_done(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	engine_trace(engine, TRACE_ACKNOWLEDGED, engine->self, operation->handle, &operation->account);
	if (operation->acknowledge)
		TAILQ_REMOVE(sending_list(engine, operation->account.link), operation, link);
	if (operation->acknowledged)
		why = TRANSPORT_OK;
	region_end(engine, operation, why ? EVENT_SEND_FAIL : EVENT_SEND_END, why);
	if (operation->acknowledged)
		put_acknowledged(engine, operation);
	operation_free(engine, operation);
}

void outgoing_get(struct engine *engine, const struct command *command)
{
	struct operation *operation = operation_command(engine, OPERATION_GET, command);
	struct message_header header;

	if (!operation)
		return;
	header_fill(engine, command, operation, &header);
	header.kind = MESSAGE_GET;
	header.value = 0;
	header.handle = operation->region_handle;
	header.operation = operation_name(operation);
	operation->requested = true;
	operation->message.data = NULL;
	operation->message.length = 0;
	/* What its FAIL event says if no reply ever comes. */
	operation->account.nid = command->move.nid;
	operation->account.pid = command->move.pid;
	operation->account.moved = 0;
	engine_trace(engine, TRACE_COMMAND, engine->self, header.operation, &operation->account);
	outgoing_send(engine, operation, &header);
}

void outgoing_heard(struct engine *engine, struct operation *operation)
{
	if (operation->waits) {
		TAILQ_REMOVE(&engine->waiting, operation, link);
		operation->waits = false;
	}
}

void outgoing_finish(struct engine *engine, struct operation *operation)
{
	operation->ended = true;
	outgoing_heard(engine, operation);
	if (!operation->requested)
		operation_free(engine, operation);
}

void outgoing_fail(struct engine *engine, struct operation *operation, uint32_t why)
{
	struct region *region = segment_region(engine->segment, operation->region);

	operation->queue = region->queue;
	operation->exhausts = region_spend(region, region_take(region), 0);
	operation->account.link = LINK_OWN;
	operation->account.moved = 0;
	region_end(engine, operation, EVENT_REPLY_FAIL, why);
	outgoing_finish(engine, operation);
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
	} else if (why != TRANSPORT_OK) {
		outgoing_fail(engine, operation, why);
	} else {
		operation->asked = engine->now;
		operation->waits = true;
		TAILQ_INSERT_TAIL(&engine->waiting, operation, link);
	}
}

void outgoing_done(void *context, struct message *message, enum transport_fail why)
{
	struct engine *engine = context;
	struct operation *operation =
		(struct operation *)(void *)((char *)message - offsetof(struct operation, message));

	switch (operation->kind) {
	case OPERATION_PUT:
		PROBE(acknowledge, operation, operation->peer.nid, operation->peer.pid,
			operation->account.portal, operation->account.match_bits, why);
		put_done(engine, operation, why);
		break;
	case OPERATION_GET:
		get_requested(engine, operation, why);
		break;
	case OPERATION_SERVE:
		TAILQ_REMOVE(&engine->serving, operation, link);
		region_end(engine, operation, why ? EVENT_GET_FAIL : EVENT_GET_END, why);
		operation_free(engine, operation);
		break;
	case OPERATION_NOTICE:
		operation_free(engine, operation);
		break;
	case OPERATION_FREE:
	case OPERATION_RECEIVE: /* these send nothing */
		break;
	}
}

void outgoing_probe(struct engine *engine)
{
	struct operation *operation;

	/* Oldest news first, so the first that is not due ends it. */
	while ((operation = TAILQ_FIRST(&engine->waiting)) &&
		engine->now - operation->asked >= engine->probe_interval) {
		struct message_header header = {
			.kind = MESSAGE_PROBE,
			.uid = engine->uid,
			.portal = operation->account.portal,
			.match_bits = operation->account.match_bits,
			.handle = operation->region_handle,
			.requested = operation->account.requested,
			.operation = operation_name(operation),
		};

		outgoing_heard(engine, operation);
		operation->requested = true;
		outgoing_send(engine, operation, &header);
	}
}

uint64_t outgoing_deadline(const struct engine *engine)
{
	const struct operation *first = TAILQ_FIRST(&engine->waiting);
	uint64_t waited;

	if (!first)
		return UINT64_MAX;
	waited = clock_now(engine->clock) - first->asked;
	return waited < engine->probe_interval ? engine->probe_interval - waited : 0;
}

void outgoing_abandon(struct engine *engine)
{
	struct operation *operation;

	while ((operation = TAILQ_FIRST(&engine->waiting)))
		outgoing_fail(engine, operation, TRANSPORT_SHUTDOWN);
}
