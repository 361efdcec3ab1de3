/* SPDX-License-Identifier: BSD-3-Clause */
/* incoming.c - messages that arrive: access control, the walk through the match list, acceptance,
 * and what follows.
 *
 *     put    access, portal, walk -> PUT_START, data placed -> PUT_END, acknowledgement
 *                                    here as a whole: data placed -> PUT_START and PUT_END,
 *                                    acknowledgement
 *     get    access, portal, walk -> GET_START, reply sent  -> GET_END
 *                                    refused: the initiator is told
 *     ack    descriptor, queue    -> ACK
 *     reply  operation            -> REPLY_START, data placed -> REPLY_END, also at once
 *
 * Whatever is discarded is counted, by reason; the sum of the reasons is the interface's drop count
 * (4.2).
 */
#include <engine/logging.h>

#include <inttypes.h>

#include <base/handle.h>
#include <base/log.h>
#include <engine/access.h>
#include <transport/place.h>

/* What a put or a get is to do to the region that took it. */
struct placement {
	uint64_t offset;
	uint64_t length; /* manipulated length */
};

/* Address of the placement, computed in integers because for length 0 the remote offset is
 * unchecked. */
static void *placement_address(const struct region *region, const struct placement *placement)
{
	return (void *)(uintptr_t)(region->start + placement->offset);
}

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE      __attribute__((noinline))

enum acceptance { REJECTED, REJECTED_FOR_ROOM, ACCEPTED };

/* Whether the region accepts at all is decided before whether the data fits. What has been accepted
 * is still to be taken from the gate. */
static ALWAYS_INLINE enum acceptance region_accepts(const struct region *region, uint32_t operation,
	const struct message_header *request, struct placement *placement)
{
	bool remote = region->options & REGION_REMOTE_OFFSET;
	uint64_t room;

	if (!(region->accepts & operation) ||
		gate_low(atomic_load_explicit(&region->gate, memory_order_relaxed)) == 0)
		return REJECTED;
	placement->offset = remote ? request->offset : region->offset;
	placement->length = request->requested;
	room = placement->offset < region->length ? region->length - placement->offset : 0;
	if (placement->length <= room)
		return ACCEPTED;
	placement->length = room;
	return region->options & REGION_TRUNCATE ? ACCEPTED : REJECTED_FOR_ROOM;
}

/* What events say of a message that came. */
static void account_from(
	struct account *account, struct process from, const struct message_header *header)
{
	account->initiator = access_word(from.nid, from.pid);
	account->target = access_word(header->uid, header->portal);
	account->match_bits = header->match_bits;
	account->requested = header->requested;
	account->moved = 0;
	account->offset = 0;
	account->value = 0;
	account->link = LINK_OWN;
}

/* A region that was too small for a message that matched, and was attached with that wish,
 * leaves. */
static void region_leave_for_room(struct space *space, struct region *region, struct process from,
	const struct message_header *header)
{
	struct account account;

	account_from(&account, from, header);
	account.value = header->kind == MESSAGE_PUT ? header->value : 0;
	region_leave(space, region, &account);
}

static uint32_t request_operation(const struct message_header *request)
{
	return request->kind == MESSAGE_PUT ? REGION_PUT : REGION_GET;
}

/* Asks the region of an entry that matches a request, if it has one; ACCEPTED: it has granted one
 * operation. */
static ALWAYS_INLINE enum acceptance entry_ask(const struct space *space, uint32_t i,
	struct process from, const struct message_header *request, struct region **region,
	struct placement *placement)
{
	uint32_t index = match_entry(&space->entries, i)->region;
	enum acceptance answer;

	if (index == INDEX_NONE)
		return REJECTED;
	*region = segment_region(space->segment, index);
	answer = region_accepts(*region, request_operation(request), request, placement);
	if (answer != ACCEPTED)
		return answer;
	/* A sending thread may take the last operation of its threshold at this moment. */
	if (!region_take(*region))
		return REJECTED;
	PROBE(match, from.nid, from.pid, request->portal, request->match_bits, request->requested,
		(int)index);
	return ACCEPTED;
}

/* The law: the first entry in list order that matches and whose region accepts. NULL at the end of
 * the list. */
static NOINLINE struct region *portal_walk(struct space *space, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct match_key key = {.bits = header->match_bits, .nid = from.nid, .pid = from.pid};
	const struct match_list *list = &space->lists[header->portal];
	uint32_t next;

	for (uint32_t i = match_first(&space->entries, list, &key); i != MATCH_NONE; i = next) {
		struct region *region;
		enum acceptance answer = entry_ask(space, i, from, header, &region, placement);

		if (answer == ACCEPTED)
			return region;
		next = match_next(&space->entries, list, i, &key); /* i may go with its region */
		if (answer == REJECTED_FOR_ROOM && region->unlink_nofit)
			region_leave_for_room(space, region, from, header);
	}
	return NULL;
}

/* The same, which nearly always ends with the first entry that matches. */
static ALWAYS_INLINE struct region *portal_search(struct space *space, struct process from,
	const struct message_header *header, struct placement *placement)
{
	const struct match_key key = {.bits = header->match_bits, .nid = from.nid, .pid = from.pid};
	uint32_t first = match_first(&space->entries, &space->lists[header->portal], &key);
	struct region *region;

	if (first == MATCH_NONE)
		return NULL;
	if (entry_ask(space, first, from, header, &region, placement) != ACCEPTED) {
		/* Copies, so that the caller's stay in registers. */
		const struct message_header copy = *header;
		struct placement walked = {0};

		region = portal_walk(space, from, &copy, &walked);
		*placement = walked;
	}
	return region;
}

enum refusal { REFUSED_PORTAL, REFUSED_COOKIE, REFUSED_ACCESS, REFUSED_MEMORY, REFUSED_MATCH };

/* Nothing else says that a put was dropped. Once for each Portal: there may be any number of
 * them. */
static void unmatched_tell(
	struct space *space, struct process from, const struct message_header *header)
{
	if (space->unmatched[header->portal] || !log_wants(LOG_LEVEL_INFO))
		return;
	space->unmatched[header->portal] = true;
	log_info("interface %" PRIu32 ": a %s of %" PRIu64 " bytes from %" PRIu32 ":%" PRIu32
		 " to Portal %" PRIu32 " with match bits 0x%" PRIx64
		 " was dropped, because no match entry and descriptor accept it; attach them "
		 "before the sender may send, and let it ask "
		 "for an acknowledgement (further drops at this Portal are only counted, in "
		 "dropped_no_match)",
		space->interface, header->kind == MESSAGE_PUT ? "put" : "get", header->requested,
		from.nid, from.pid, header->portal, header->match_bits);
}

static NOINLINE void request_refuse(
	struct space *space, struct process from, struct message_header header, enum refusal why)
{
	switch (why) {
	case REFUSED_PORTAL:
		space_count(space, dropped_no_portal);
		break;
	case REFUSED_COOKIE:
		space_count(space, dropped_bad_cookie);
		break;
	case REFUSED_ACCESS:
		space_count(space, dropped_access_denied);
		break;
	case REFUSED_MEMORY:
		space_count(space, dropped_no_memory_operation);
		break;
	case REFUSED_MATCH:
		PROBE(match, from.nid, from.pid, header.portal, header.match_bits, header.requested,
			-1);
		space_count(space, dropped_no_match);
		unmatched_tell(space, from, &header);
		break;
	}
}

/* Access control, then translation; NULL after counting why not. Otherwise the region has granted
 * one operation. There is memory for a struct operation, unless the request needs none: it is here
 * as a whole and wants no acknowledgement. */
static ALWAYS_INLINE struct region *request_admit(struct space *space, struct process from,
	const struct message_header *header, bool whole, struct placement *placement)
{
	const struct segment *segment = space->segment;
	enum refusal why = REFUSED_MATCH;
	struct region *region = NULL;

	if (header->portal >= segment->limits.portals)
		why = REFUSED_PORTAL;
	else if (header->cookie >= segment->limits.access)
		why = REFUSED_COOKIE;
	else if (!access_admits(segment_access(segment, header->cookie), from, header->uid,
			 header->portal))
		why = REFUSED_ACCESS;
	else if ((!whole || header->handle != 0) &&
		 !(operation_granted(space->engine, from) && operation_reserve(space->engine, 1)))
		why = REFUSED_MEMORY;
	else
		region = portal_search(space, from, header, placement);
	if (!region)
		request_refuse(space, from, *header, why);
	return region;
}

/* What the events of a request that request_admit() has granted say. */
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
	link = region_log(space, region, operation->queue,
		kind == OPERATION_RECEIVE ? EVENT_PUT_START : EVENT_GET_START, account);
	account->link = link ? link : LINK_OWN;
	return operation;
}

/* Sends the short answer to a message: an acknowledgement of a put, for which there is an
 * operation; a refusal of a get, which is repeated if there is none: the initiator asks after the
 * get. */
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
	void *to = placement_address(region, placement);
	bool traced = trace_wanted();
	struct account account;
	uint64_t link;

	account_accepted(&account, from, header, placement);
	account.value = header->value;
	if (traced)
		engine_trace(space->engine, TRACE_MATCH, from, header->operation, &account);
	place_data(to, data, placement->length);
	PROBE(place, from.nid, from.pid, to, placement->length);
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

/* A put of which data is still to come. */
static void put_accept(struct space *space, struct region *region, struct process from,
	const struct message_header *header, const struct placement *placement,
	struct inbound *inbound)
{
	struct operation *operation =
		operation_accept(space, OPERATION_RECEIVE, region, from, header, placement);

	operation->acknowledge = header->handle != 0;
	operation->handle = header->handle;
	operation->request_offset = header->offset;
	inbound->base = placement_address(region, placement);
	inbound->limit = placement->length;
	inbound->context = operation;
	inbound->want_end = true;
}

/* A put that is here as a whole. */
static ALWAYS_INLINE void put_whole(struct space *space, struct process from,
	const struct message_header *header, const void *data)
{
	struct placement placement;
	struct region *region = request_admit(space, from, header, true, &placement);

	if (!region)
		return;
	space_count(space, puts_received);
	put_take(space, region, from, header, data, &placement);
}

/* A put of which only the first data is here; that may be all that is wanted. */
static void put_begin(struct space *space, struct process from, const struct message_header *header,
	const struct record *record, struct inbound *inbound)
{
	struct placement placement;
	struct region *region = request_admit(space, from, header, false, &placement);

	if (!region)
		return;
	space_count(space, puts_received);
	if (placement.length <= record->data_length) {
		put_take(space, region, from, header, record->data, &placement);
		inbound->taken = true;
	} else {
		put_accept(space, region, from, header, &placement, inbound);
	}
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
	struct region *region = request_admit(space, from, header, false, &placement);

	if (!region) {
		get_refuse(space->engine, from, header);
		return;
	}
	operation = operation_accept(space, OPERATION_SERVE, region, from, header, &placement);
	space_count(space, gets_received);
	TAILQ_INSERT_TAIL(&space->engine->serving, operation, link);
	operation->message.data = placement_address(region, &placement);
	operation->message.length = placement.length;
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
		queue = queue_find(space->segment, region->queue);
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
		operation->region->handle != header->handle || operation->peer.nid != from.nid ||
		operation->peer.pid != from.pid)
		return NULL;
	return operation;
}

/* A reply whose data, as far as it is wanted, is here. */
static void reply_take(
	struct space *space, struct operation *operation, struct process from, const void *data)
{
	struct region *region = operation->region;
	struct account *account = &operation->account;
	void *to = (void *)(uintptr_t)region->start;
	uint64_t link;

	place_data(to, data, account->moved);
	PROBE(place, from.nid, from.pid, to, account->moved);
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
	outgoing_heard(space->engine, operation);
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
	if (operation->account.moved <= record->data_length) {
		reply_take(space, operation, from, record->data);
		inbound->taken = true;
		return;
	}
	region = operation->region;
	operation->queue = region->queue;
	link = region_log(space, region, operation->queue, EVENT_REPLY_START, &operation->account);
	operation->account.link = link ? link : LINK_OWN;
	inbound->base = (void *)(uintptr_t)region->start;
	inbound->limit = operation->account.moved;
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
	struct operation *operation;

	TAILQ_FOREACH(operation, &space->engine->serving, link)
	{
		if (operation->remote == header->operation && operation->peer.nid == from.nid &&
			operation->peer.pid == from.pid)
			return;
	}
	get_refuse(space->engine, from, header);
}

/* Only puts and replies have data. */
static bool message_is_sound(const struct message_header *header, uint64_t length)
{
	return length == (header->kind == MESSAGE_REPLY ? header->value : 0) ||
	       header->kind == MESSAGE_PUT;
}

/* A message for a space that does not exist. */
static NOINLINE void message_refuse(
	struct engine *engine, struct process from, const struct message_header *header)
{
	engine_count(engine, dropped_no_space);
	if (header->kind == MESSAGE_GET || header->kind == MESSAGE_PROBE)
		get_refuse(engine, from, header);
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
	default: /* message_decode() knows no other but puts */
		break;
	}
}

/* A message that is here as a whole, but a put to a space. */
static NOINLINE void message_whole(struct engine *engine, struct process from,
	const struct message_header *header, const void *data, uint32_t length)
{
	struct space *space = space_find(engine, header->space);

	if (!message_is_sound(header, length))
		engine_count(engine, dropped_bad_message);
	else if (!space)
		message_refuse(engine, from, header);
	else
		message_take(space, from, header, data, length);
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
	if (__builtin_expect(header.kind == MESSAGE_PUT && space, 1)) {
		put_whole(space, from, &header, data);
	} else {
		const struct message_header copy = header; /* as in portal_search() */

		message_whole(engine, from, &copy, data, length);
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
	else if (header.kind == MESSAGE_PUT)
		put_begin(space, from, &header, record, inbound);
	else
		reply_begin(space, from, &header, record, inbound);
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

	if (operation->kind == OPERATION_GET)
		reply_end(context, operation, why);
	else
		put_end(context, operation, why);
}
