/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.c - see tracing.h. */
#include <engine/tracing.h>

#include <base/trace.h>
#include <engine/rma.h>
#include <engine/state.h>

/* A record of what a process began under this name; 0: it has none. */
static void record_named(const struct engine *engine, enum trace_point point,
	struct process initiator, uint64_t name, uint64_t length)
{
	trace(point, engine->interface,
		name != 0 ? trace_message(initiator.nid, initiator.pid, name) : 0, length);
}

static bool is_request(const struct message_header *header)
{
	return header->kind == MESSAGE_STORE || header->kind == MESSAGE_LOAD ||
	       header->kind == MESSAGE_ATOMIC || header->kind == MESSAGE_FETCH;
}

static bool is_atomic(const struct message_header *header)
{
	return header->kind == MESSAGE_ATOMIC || header->kind == MESSAGE_FETCH;
}

/* Before the engine has a message. */
static void arrived(
	const struct engine *engine, struct process from, const struct message_header *header)
{
	if (is_request(header))
		record_named(engine, TRACE_ARRIVED, from, header->operation, header->requested);
}

/* After it has carried it out. */
static void carried_out(
	const struct engine *engine, struct process from, const struct message_header *header)
{
	if (is_request(header))
		record_named(engine, is_atomic(header) ? TRACE_ATOMIC : TRACE_DONE, from,
			header->operation, header->requested);
	else if (header->kind == MESSAGE_STORED)
		record_named(engine, TRACE_ACK, engine->self, header->operation, header->value);
	else if (header->kind == MESSAGE_LOADED)
		record_named(engine, TRACE_EVENT, engine->self, header->operation, header->value);
}

static void message_whole(void *context, struct process from, const void *bytes,
	uint32_t header_length, const void *data, uint32_t length)
{
	struct message_header header;
	bool known = message_decode(bytes, header_length, length, &header);

	if (known)
		arrived(context, from, &header);
	incoming_whole(context, from, bytes, header_length, data, length);
	if (known)
		carried_out(context, from, &header);
}

static void message_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound)
{
	struct message_header header;
	bool known = message_decode(record->header, record->header_length, record->extent, &header);

	if (known)
		arrived(context, from, &header);
	incoming_begin(context, from, record, inbound);
	if (known && !inbound->want_end)
		carried_out(context, from, &header);
}

static void message_end(void *context, void *inbound_context, enum transport_fail why)
{
	const struct operation *operation = inbound_context;
	const struct engine *engine = context;
	enum trace_point point = TRACE_POINTS;
	struct process initiator = engine->self;
	uint64_t name = 0, length = 0;

	/* before it is freed */
	if (operation->kind == OPERATION_RMA) {
		point = TRACE_EVENT;
		name = operation_name(operation);
		length = operation->rma.moved;
	} else if (operation->kind == OPERATION_RECEIVE && operation->space->kind == SPACE_TIERS) {
		point = TRACE_DONE;
		initiator = operation->peer;
		name = operation->remote;
		length = operation->account.moved;
	}
	incoming_end(context, inbound_context, why);
	if (point != TRACE_POINTS)
		record_named(engine, point, initiator, name, length);
}

static void message_done(void *context, struct message *message, enum transport_fail why)
{
	const struct operation *operation = operation_of(message);
	const struct engine *engine = context;

	if (operation->kind == OPERATION_RMA)
		record_named(engine, TRACE_ACKNOWLEDGED, engine->self,
			operation->rma.want != WANT_NOTHING || rma_loads(operation)
				? operation_name(operation)
				: 0,
			operation->rma.length);
	outgoing_done(context, message, why);
}

void tracing_wrap(struct transport_upcalls *upcalls)
{
	upcalls->message_whole = message_whole;
	upcalls->message_begin = message_begin;
	upcalls->message_end = message_end;
	upcalls->message_done = message_done;
}
