/* incoming.c - messages that arrive: access control, the walk through the match list, acceptance,
 * and what follows.
 *
 *     put    access, portal, walk -> PUT_START, data placed -> PUT_END, acknowledgement
 *     get    access, portal, walk -> GET_START, reply sent  -> GET_END
 *                                    refused: the initiator is told
 *     ack    descriptor, queue    -> ACK
 *     reply  operation            -> REPLY_START, data placed -> REPLY_END
 *
 * Whatever is discarded is counted, by reason; the sum of the reasons is the interface's drop count
 * (4.2).
 */
#include <engine/state.h>

#include <base/handle.h>

/* What a put or a get is to do to the region that took it. */
struct placement {
	uint64_t offset;
	uint64_t length; /* manipulated length */
};

/* Where that is. Reckoned in integers: nobody goes there when length is 0, and then a remote offset
 * is whatever the initiator said. */
static void *placement_address(
	struct engine *engine, uint32_t index, const struct placement *placement)
{
	return (void *)(uintptr_t)(segment_region(engine->segment, index)->start +
				   placement->offset);
}

enum acceptance { REJECTED, REJECTED_FOR_ROOM, ACCEPTED };

static bool access_admits(
	const struct access_entry *access, struct process from, uint32_t uid, uint32_t portal)
{
	return access->valid && (access->nid == UINT32_MAX || access->nid == from.nid) &&
	       (access->pid == UINT32_MAX || access->pid == from.pid) &&
	       (access->uid == UINT32_MAX || access->uid == uid) &&
	       (access->portal == UINT32_MAX || access->portal == portal);
}

/* Whether the region accepts at all is decided before whether the data fits. What has been accepted
 * is still to be taken from the gate. */
static enum acceptance region_accepts(const struct region *region, uint32_t operation,
	const struct message_header *request, struct placement *placement)
{
	bool remote = region->options & REGION_REMOTE_OFFSET;
	uint64_t room;

	if (region->state != REGION_LIVE || !(region->options & operation) ||
		gate_low(atomic_load_explicit(&region->gate, memory_order_relaxed)) == 0 ||
		(!remote && region->offset > region->max_offset))
		return REJECTED;
	placement->offset = remote ? request->offset : region->offset;
	placement->length = request->requested;
	room = placement->offset < region->length ? region->length - placement->offset : 0;
	if (placement->length <= room)
		return ACCEPTED;
	placement->length = room;
	return region->options & REGION_TRUNCATE ? ACCEPTED : REJECTED_FOR_ROOM;
}

/* The fields of an event that come from a message. */
static void event_from(
	struct event *event, struct process from, const struct message_header *header)
{
	event->fail = TRANSPORT_OK;
	event->nid = from.nid;
	event->pid = from.pid;
	event->uid = header->uid;
	event->portal = header->portal;
	event->match_bits = header->match_bits;
	event->requested = header->requested;
	event->moved = 0;
	event->offset = 0;
	event->value = 0;
	event->link = LINK_OWN;
}

/* A region that was too small for a message that matched, and was attached with that wish, leaves. */
static void region_leave_for_room(struct engine *engine, struct region *region, struct process from,
	const struct message_header *header)
{
	struct event event;

	event_from(&event, from, header);
	event.value = header->kind == MESSAGE_PUT ? header->value : 0;
	region_leave(engine, region, &event);
}

/* The law: the first entry in list order that matches and whose region accepts. INDEX_NONE at the
 * end of the list. */
static uint32_t portal_walk(struct engine *engine, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct match_key key = {.bits = header->match_bits, .nid = from.nid, .pid = from.pid};
	const struct match_list *list = &engine->lists[header->portal];
	uint32_t operation = header->kind == MESSAGE_PUT ? REGION_PUT : REGION_GET;
	uint32_t next;

	for (uint32_t i = match_first(&engine->entries, list, &key); i != MATCH_NONE; i = next) {
		uint32_t index = segment_entry(engine->segment, i)->region;
		struct region *region = NULL;
		enum acceptance answer = REJECTED;

		if (index != INDEX_NONE) {
			region = segment_region(engine->segment, index);
			answer = region_accepts(region, operation, header, placement);
		}
		/* A sending thread may take the last operation of its threshold at this moment. */
		if (answer == ACCEPTED && region_take(region)) {
			PROBE(match, from.nid, from.pid, header->portal, header->match_bits,
				header->requested, (int)index);
			return index;
		}
		next = match_next(&engine->entries, list, i, &key); /* i may go with its region */
		if (answer == REJECTED_FOR_ROOM && region->unlink_nofit)
			region_leave_for_room(engine, region, from, header);
	}
	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested, -1);
	return INDEX_NONE;
}

/* Access control, then translation; INDEX_NONE after counting why not. Otherwise the region has
 * granted one operation, and there is memory for it. */
static uint32_t request_admit(struct engine *engine, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct segment_limits *limits = &engine->segment->limits;
	uint32_t index;

	if (header->portal >= limits->portals) {
		engine_count(engine, dropped_no_portal);
		return INDEX_NONE;
	}
	if (header->cookie >= limits->access) {
		engine_count(engine, dropped_bad_cookie);
		return INDEX_NONE;
	}
	if (!access_admits(segment_access(engine->segment, header->cookie), from, header->uid,
		    header->portal)) {
		engine_count(engine, dropped_access_denied);
		return INDEX_NONE;
	}
	if (!operation_reserve(engine, 1)) {
		engine_count(engine, dropped_no_memory_operation);
		return INDEX_NONE;
	}
	index = portal_walk(engine, from, header, placement);
	if (index == INDEX_NONE)
		engine_count(engine, dropped_no_match);
	return index;
}

/* Begins an operation that a remote process asked for and request_admit() has granted. */
static struct operation *operation_accept(struct engine *engine, enum operation_kind kind,
	uint32_t index, struct process from, const struct message_header *header,
	const struct placement *placement)
{
	struct region *region = segment_region(engine->segment, index);
	struct operation *operation = operation_take(engine, kind);
	struct event *event;
	uint64_t link;

	operation->peer = from;
	event = &operation->event;
	event_from(event, from, header);
	event->moved = placement->length;
	event->offset = placement->offset;
	event->value = kind == OPERATION_RECEIVE ? header->value : 0;
	event->kind = kind == OPERATION_RECEIVE ? EVENT_PUT_START : EVENT_GET_START;
	region_begin(engine, region, operation);
	operation->exhausts = region_spend(region, true, placement->length);
	engine_trace(engine, TRACE_MATCH, from, header->operation, event);
	link = region_log(engine, region, operation->queue, event, NULL);
	event->link = link ? link : LINK_OWN;
	return operation;
}

static void put_begin(struct engine *engine, struct process from,
	const struct message_header *header, struct inbound *inbound)
{
	struct placement placement;
	struct operation *operation;
	uint32_t index = request_admit(engine, from, header, &placement);

	inbound->stop = true;
	if (index == INDEX_NONE)
		return;
	operation = operation_accept(engine, OPERATION_RECEIVE, index, from, header, &placement);
	engine_count(engine, puts_received);
	operation->acknowledge = header->handle != 0;
	operation->handle = header->handle;
	operation->remote = header->operation;
	operation->request_offset = header->offset;
	inbound->base = placement_address(engine, index, &placement);
	inbound->limit = placement.length;
	inbound->context = operation;
	inbound->want_end = true;
}

/* Sends the short answer to a message: an acknowledgement of a put, a refusal of a get. */
static void notice_send(struct engine *engine, struct process to, struct message_header *header)
{
	struct operation *operation = operation_take(engine, OPERATION_NOTICE);

	if (!operation) {
		engine_count(engine, dropped_no_memory_operation);
		return;
	}
	operation->peer = to;
	operation->message.data = NULL;
	operation->message.length = 0;
	outgoing_send(engine, operation, header);
}

static void get_refuse(
	struct engine *engine, struct process from, const struct message_header *request)
{
	struct message_header refusal = *request;

	refusal.kind = MESSAGE_REFUSE;
	refusal.uid = 0;
	refusal.cookie = 0;
	refusal.value = 0;
	notice_send(engine, from, &refusal);
}

static void get_begin(
	struct engine *engine, struct process from, const struct message_header *header)
{
	struct message_header reply = *header;
	struct placement placement;
	struct operation *operation;
	uint32_t index = request_admit(engine, from, header, &placement);

	if (index == INDEX_NONE) {
		get_refuse(engine, from, header);
		return;
	}
	operation = operation_accept(engine, OPERATION_SERVE, index, from, header, &placement);
	engine_count(engine, gets_received);
	operation->remote = header->operation;
	TAILQ_INSERT_TAIL(&engine->serving, operation, link);
	operation->message.data = placement_address(engine, index, &placement);
	operation->message.length = placement.length;
	reply.kind = MESSAGE_REPLY;
	reply.uid = 0;
	reply.cookie = 0;
	reply.value = placement.length;
	outgoing_send(engine, operation, &reply);
}

/* 4.2: the descriptor and its queue must still exist and have room; nothing else is checked. */
void incoming_acknowledged(
	struct engine *engine, struct process from, const struct message_header *header)
{
	struct region *region = region_of(engine, header->handle);
	struct operation operation = {.kind = OPERATION_NOTICE};
	bool lost = true;

	if (region) {
		event_from(&operation.event, from, header);
		operation.event.kind = EVENT_ACK;
		operation.event.moved = header->value;
		operation.event.offset = header->offset;
		operation.event.link = header->operation ? header->operation : LINK_OWN;
		operation.exhausts = region_spend(region, region_take(region), 0);
		engine_trace(engine, TRACE_ACK, engine->self, header->operation, &operation.event);
		region_log(engine, region, region->queue, &operation.event, &lost);
		region_settle(engine, region, &operation);
	}
	if (lost)
		engine_count(engine, dropped_late_ack);
	else
		engine_count(engine, acks_delivered);
}

/* The get that a reply or a refusal names, if it really was sent to that process and still waits;
 * NULL if not. */
static struct operation *get_find(
	struct engine *engine, struct process from, const struct message_header *header)
{
	struct operation *operation = operation_find(engine, header->operation, OPERATION_GET);

	if (!operation || operation->replying || operation->ended ||
		operation->region_handle != header->handle || operation->peer.nid != from.nid ||
		operation->peer.pid != from.pid)
		return NULL;
	return operation;
}

static void reply_begin(struct engine *engine, struct process from,
	const struct message_header *header, uint64_t length, struct inbound *inbound)
{
	struct operation *operation = get_find(engine, from, header);
	struct region *region;
	uint64_t link;

	inbound->stop = true;
	if (!operation) {
		engine_count(engine, dropped_late_reply);
		return;
	}
	region = segment_region(engine->segment, operation->region);
	engine_count(engine, replies_received);
	operation->replying = true;
	outgoing_heard(engine, operation);
	event_from(&operation->event, from, header);
	operation->event.kind = EVENT_REPLY_START;
	operation->event.moved = length < region->length ? length : region->length;
	operation->queue = region->queue;
	operation->exhausts = region_spend(region, region_take(region), 0);
	link = region_log(engine, region, operation->queue, &operation->event, NULL);
	operation->event.link = link ? link : LINK_OWN;
	inbound->base = (void *)(uintptr_t)region->start;
	inbound->limit = operation->event.moved;
	inbound->context = operation;
	inbound->want_end = true;
}

static void refusal_begin(
	struct engine *engine, struct process from, const struct message_header *header)
{
	struct operation *operation = get_find(engine, from, header);

	/* No drop if not: a probe that crossed the reply is refused, and nobody misses anything. */
	if (operation)
		outgoing_fail(engine, operation, FAIL_UNDELIVERABLE);
	else
		engine_count(engine, refusals_late);
}

/* A get waits for a reply that this process knows nothing of: it has lived since, or never got the
 * get. Gets and probes come in the order in which they were sent, so the get itself cannot be still
 * to come. */
static void probe_begin(
	struct engine *engine, struct process from, const struct message_header *header)
{
	struct operation *operation;

	TAILQ_FOREACH(operation, &engine->serving, link)
	{
		if (operation->remote == header->operation && operation->peer.nid == from.nid &&
			operation->peer.pid == from.pid)
			return;
	}
	get_refuse(engine, from, header);
}

/* Only puts and replies have data, and a put's says how much. */
static bool request_is_sound(const struct message_header *header, uint64_t length)
{
	switch (header->kind) {
	case MESSAGE_PUT:
		return header->requested == length;
	case MESSAGE_REPLY:
		return header->value == length;
	default:
		return length == 0;
	}
}

void incoming_begin(void *context, struct process from, const void *bytes, uint32_t header_length,
	uint64_t length, struct inbound *inbound)
{
	struct engine *engine = context;
	struct message_header header;

	if (!message_decode(bytes, header_length, &header) || !request_is_sound(&header, length)) {
		engine_count(engine, dropped_bad_message);
		inbound->stop = true;
		return;
	}
	switch (header.kind) {
	case MESSAGE_PUT:
		put_begin(engine, from, &header, inbound);
		break;
	case MESSAGE_GET:
		get_begin(engine, from, &header);
		break;
	case MESSAGE_ACK:
		if (!outgoing_keep(engine, from, &header))
			incoming_acknowledged(engine, from, &header);
		break;
	case MESSAGE_REPLY:
		reply_begin(engine, from, &header, length, inbound);
		break;
	case MESSAGE_REFUSE:
		refusal_begin(engine, from, &header);
		break;
	case MESSAGE_PROBE:
		probe_begin(engine, from, &header);
		break;
	default: /* message_decode() knows no other */
		break;
	}
}

static void put_acknowledge(struct engine *engine, const struct operation *operation)
{
	struct message_header ack = {
		.kind = MESSAGE_ACK,
		.portal = operation->event.portal,
		.match_bits = operation->event.match_bits,
		.offset = operation->request_offset,
		.handle = operation->handle,
		.requested = operation->event.requested,
		.value = operation->event.moved,
		.operation = operation->remote,
	};

	notice_send(engine, operation->peer, &ack);
}

void incoming_end(void *context, void *inbound_context, enum transport_fail why)
{
	struct engine *engine = context;
	struct operation *operation = inbound_context;
	bool failed = why != TRANSPORT_OK;
	bool acknowledge;

	if (operation->kind == OPERATION_GET) {
		engine_trace(engine, TRACE_PLACE, engine->self, operation_name(operation),
			&operation->event);
		region_end(engine, operation, failed ? EVENT_REPLY_FAIL : EVENT_REPLY_END, why);
		engine_trace(engine, TRACE_EVENT, engine->self, operation_name(operation),
			&operation->event);
		outgoing_finish(engine, operation);
		return;
	}
	/* The options are looked at before the end, which may free the region. */
	acknowledge =
		!failed && operation->acknowledge &&
		!(segment_region(engine->segment, operation->region)->options & REGION_NO_ACK);
	engine_trace(engine, TRACE_PLACE, operation->peer, operation->remote, &operation->event);
	region_end(engine, operation, failed ? EVENT_PUT_FAIL : EVENT_PUT_END, why);
	engine_trace(engine, TRACE_EVENT, operation->peer, operation->remote, &operation->event);
	if (acknowledge)
		put_acknowledge(engine, operation);
	operation_free(engine, operation);
}
