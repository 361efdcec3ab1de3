/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_transport.c - see fake_transport.h. */
#include "fake_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

struct queued {
	struct process from;
	struct message_header header;
	const void *data;
	uint64_t length;
};

struct transport {
	const struct clock *clock;
	struct transport_upcalls upcalls;
	struct fake_sent sent[FAKE_MESSAGES];
	unsigned sent_count, sent_seen;
	struct fake_arrival arrivals[FAKE_MESSAGES];
	unsigned arrival_count;
	struct queued queue[FAKE_MESSAGES];
	unsigned queued_count, received;
	struct ping *pings[FAKE_PINGS];
	unsigned ping_count;
	struct name_query *query;
	struct frame_name name;
	bool claimed;
	bool closed;
	struct fake_turn turn;
	struct process spent; /* it has its share */
	struct process marked;
};

static struct transport *fake;
static bool refuse_create;
static int finish_at_once = FAKE_LATER;
static uint64_t frame_bytes = FAKE_FRAME;
static void (*receive_hook)(void *), (*push_hook)(void *);
static void *receive_argument, *push_argument;
static uint64_t fake_deadline = UINT64_MAX;

void fake_refuse_create(void)
{
	refuse_create = true;
}

void fake_finish_at_once(int why)
{
	finish_at_once = why;
}

void fake_on_receive(void (*hook)(void *), void *argument)
{
	receive_hook = hook;
	receive_argument = argument;
}

void fake_on_push(void (*hook)(void *), void *argument)
{
	push_hook = hook;
	push_argument = argument;
}

void fake_set_deadline(uint64_t deadline)
{
	fake_deadline = deadline;
}

struct transport *transport_create(const struct transport_options *options, struct port *port,
	const struct clock *clock, const struct transport_upcalls *upcalls,
	struct transport_counters *counters)
{
	(void)options;
	(void)port;
	(void)counters;
	if (refuse_create) {
		refuse_create = false;
		return NULL;
	}
	assert_null(fake);
	fake = calloc(1, sizeof(*fake));
	assert_non_null(fake);
	fake->clock = clock;
	fake->upcalls = *upcalls;
	finish_at_once = FAKE_LATER;
	receive_hook = NULL;
	push_hook = NULL;
	fake_deadline = UINT64_MAX;
	return fake;
}

void transport_own(struct transport *transport)
{
	(void)transport;
}

static void pings_end(struct transport *transport, enum ping_outcome outcome)
{
	while (transport->ping_count > 0) {
		struct ping *ping = transport->pings[--transport->ping_count];

		ping->outcome = outcome;
		transport->upcalls.ping_done(transport->upcalls.context, ping);
	}
}

void transport_close(struct transport *transport)
{
	transport->closed = true;
	pings_end(transport, PING_CLOSED);
	for (unsigned i = 0; i < transport->arrival_count; i++)
		if (transport->arrivals[i].open)
			fake_end(&transport->arrivals[i], TRANSPORT_SHUTDOWN);
	for (unsigned i = 0; i < transport->sent_count; i++)
		if (transport->sent[i].message)
			fake_finish(&transport->sent[i], TRANSPORT_SHUTDOWN);
	free(transport);
	fake = NULL;
}

void transport_send(struct transport *transport, struct process to, struct message *message)
{
	struct fake_sent *sent = &transport->sent[transport->sent_count];

	assert_false(transport->closed);
	assert_true(transport->sent_count < FAKE_MESSAGES);
	assert_true(
		message->header_length % 8 == 0 && message->header_length <= MESSAGE_HEADER_MAX);
	sent->to = to;
	sent->message = message;
	sent->data = (const void *)(uintptr_t)message->memory.start;
	sent->length = message->memory.length;
	assert_true(message_decode(
		message->header, message->header_length, message->memory.length, &sent->header));
	transport->sent_count++;
}

void fake_share_spent(struct process by)
{
	fake->spent = by;
}

bool transport_has_share(const struct transport *transport, struct process to, uint64_t most)
{
	assert_true(most > 0);
	return to.nid != transport->spent.nid || to.pid != transport->spent.pid;
}

bool transport_is_marked(const struct transport *transport, struct process process)
{
	return transport->marked.nid == process.nid && transport->marked.pid == process.pid;
}

void transport_mark(struct transport *transport, struct process process, bool mark)
{
	if (transport_is_marked(transport, process) != mark)
		transport->marked = mark ? process : (struct process){0};
}

uint32_t transport_marks(const struct transport *transport)
{
	return transport->marked.pid != 0;
}

void transport_ping(struct transport *transport, struct ping *ping)
{
	assert_false(transport->closed);
	assert_true(transport->ping_count < FAKE_PINGS);
	transport->pings[transport->ping_count++] = ping;
}

void transport_ping_abandon(struct transport *transport)
{
	pings_end(transport, PING_CLOSED);
}

struct name_query *fake_find(void)
{
	return fake->query;
}

const struct frame_name *fake_name(void)
{
	return &fake->name;
}

void fake_find_end(enum name_outcome outcome)
{
	struct name_query *query = fake->query;

	fake->query = NULL;
	query->outcome = outcome;
	fake->upcalls.name_done(fake->upcalls.context, query);
}

void transport_name(struct transport *transport, const struct frame_name *name)
{
	transport->name = *name;
}

void transport_find(struct transport *transport, struct name_query *query)
{
	assert_false(transport->closed);
	assert_null(transport->query);
	transport->query = query;
}

void transport_hint(struct transport *transport, struct process process, const uint8_t *address)
{
	(void)transport;
	(void)process;
	(void)address;
}

void transport_find_abandon(struct transport *transport)
{
	if (transport->query)
		fake_find_end(NAME_CLOSED);
}

uint32_t transport_ping_least(const struct transport *transport)
{
	(void)transport;
	return FRAME_HEADER_BYTES;
}

uint32_t transport_ping_most(const struct transport *transport)
{
	(void)transport;
	return FAKE_MTU;
}

void transport_claim(struct transport *transport)
{
	transport->claimed = true;
}

bool fake_claimed(void)
{
	return fake->claimed;
}

struct ping *fake_ping(void)
{
	return fake->ping_count > 0 ? fake->pings[0] : NULL;
}

void fake_pings_end(enum ping_outcome outcome)
{
	pings_end(fake, outcome);
}

struct fake_sent *fake_next(void)
{
	return fake->sent_seen < fake->sent_count ? &fake->sent[fake->sent_seen++] : NULL;
}

unsigned fake_unfinished(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < fake->sent_count; i++)
		count += fake->sent[i].message != NULL;
	return count;
}

void fake_expect(const struct fake_sent *sent, const struct message_header *header)
{
	assert_int_equal(sent->header.kind, header->kind);
	assert_int_equal(sent->header.space, header->space);
	assert_int_equal(sent->header.detail, header->detail);
	assert_int_equal(sent->header.uid, header->uid);
	assert_int_equal(sent->header.portal, header->portal);
	assert_int_equal(sent->header.cookie, header->cookie);
	assert_int_equal(sent->header.match_bits, header->match_bits);
	assert_int_equal(sent->header.value, header->value);
	assert_int_equal(sent->header.offset, header->offset);
	assert_int_equal(sent->header.operation, header->operation);
}

void fake_finish(struct fake_sent *sent, enum transport_fail why)
{
	struct message *message = sent->message;

	assert_non_null(message);
	sent->message = NULL;
	fake->upcalls.message_done(fake->upcalls.context, message, why);
}

/* The message starts in a frame that has `present` bytes of its data. */
static struct fake_arrival *arrival_begin(struct process from, const void *header,
	uint32_t header_length, uint64_t length, const void *data, uint64_t present)
{
	struct fake_arrival *arrival = &fake->arrivals[fake->arrival_count++];
	struct record record;

	assert_true(fake->arrival_count < FAKE_MESSAGES);
	assert_true(header_length <= MESSAGE_HEADER_MAX);
	arrival->from = from;
	arrival->header_length = header_length;
	arrival->length = length;
	if (header_length != 0)
		memcpy(arrival->bytes, header, header_length);
	if (present == length) {
		arrival->whole = arrival->inbound.stop = true;
		fake->upcalls.message_whole(fake->upcalls.context, from, arrival->bytes,
			header_length, data, (uint32_t)length);
		return arrival;
	}
	record = (struct record){.kind = RECORD_START,
		.header_length = (uint8_t)header_length,
		.data_length = (uint16_t)present,
		.extent = length,
		.header = arrival->bytes,
		.data = data};
	fake->upcalls.message_begin(fake->upcalls.context, from, &record, &arrival->inbound);
	arrival->open = arrival->inbound.want_end;
	if (arrival->open && arrival->inbound.memory.length <= present) {
		fake_place(arrival, 0, data, present);
		fake_end(arrival, TRANSPORT_OK);
	}
	return arrival;
}

struct fake_arrival *fake_begin_bytes(
	struct process from, const void *header, uint32_t header_length, uint64_t length)
{
	return arrival_begin(from, header, header_length, length, NULL, 0);
}

struct fake_arrival *fake_begin(
	struct process from, const struct message_header *header, uint64_t length)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];

	return fake_begin_bytes(from, bytes, message_encode(header, bytes), length);
}

void fake_place(struct fake_arrival *arrival, uint64_t offset, const void *data, uint64_t length)
{
	const struct inbound *inbound = &arrival->inbound;

	if (offset >= inbound->memory.length)
		return;
	if (length > inbound->memory.length - offset)
		length = inbound->memory.length - offset;
	map_copy_in(&inbound->memory, offset, data, length);
}

void fake_end(struct fake_arrival *arrival, enum transport_fail why)
{
	assert_true(arrival->open);
	arrival->open = false;
	fake->upcalls.message_end(fake->upcalls.context, arrival->inbound.context, why);
}

void fake_set_frame(uint64_t bytes)
{
	frame_bytes = bytes;
}

struct fake_arrival *fake_deliver(
	struct process from, const struct message_header *header, const void *data, uint64_t length)
{
	uint8_t bytes[MESSAGE_HEADER_BYTES];
	uint64_t present = length < frame_bytes ? length : frame_bytes;
	uint32_t header_length = message_encode(header, bytes);
	struct fake_arrival *arrival;

	arrival = arrival_begin(from, bytes, header_length, length, data, present);
	if (arrival->open) {
		fake_place(arrival, 0, data, length);
		fake_end(arrival, TRANSPORT_OK);
	}
	return arrival;
}

void fake_queue(
	struct process from, const struct message_header *header, const void *data, uint64_t length)
{
	assert_true(fake->queued_count < FAKE_MESSAGES);
	fake->queue[fake->queued_count++] = (struct queued){from, *header, data, length};
}

unsigned transport_receive(struct transport *transport)
{
	if (receive_hook)
		receive_hook(receive_argument);
	transport->received = transport->queued_count;
	return transport->received;
}

void transport_process(struct transport *transport)
{
	for (unsigned i = 0; i < transport->received; i++) {
		const struct queued *queued = &transport->queue[i];

		fake_deliver(queued->from, &queued->header, queued->data, queued->length);
	}
	transport->received = 0;
	transport->queued_count = 0;
}

unsigned transport_transmit(struct transport *transport)
{
	transport->turn.transmits++;
	for (unsigned i = 0; finish_at_once != FAKE_LATER && i < transport->sent_count; i++)
		if (transport->sent[i].message)
			fake_finish(&transport->sent[i], (enum transport_fail)finish_at_once);
	return 0;
}

bool transport_push(struct transport *transport)
{
	transport->turn.pushes++;
	if (push_hook)
		push_hook(push_argument);
	return transport->turn.left;
}

bool transport_urgent(const struct transport *transport)
{
	return transport->turn.urgent;
}

uint64_t transport_looked(const struct transport *transport)
{
	return clock_now(transport->clock) - transport->turn.looked_ago;
}

uint64_t transport_unlooked(const struct transport *transport)
{
	return transport->turn.looked_ago;
}

struct fake_turn *fake_turn(void)
{
	return &fake->turn;
}

uint64_t transport_deadline(const struct transport *transport)
{
	(void)transport;
	return fake_deadline;
}

void transport_await(struct transport *transport, bool (*counts)(const struct message *message))
{
	(void)transport;
	(void)counts;
}

bool transport_settled(const struct transport *transport)
{
	(void)transport;
	return fake_unfinished() == 0;
}

int fake_target_setup(void **state)
{
	struct fake_target *target = calloc(1, sizeof(*target));

	assert_non_null(target);
	rig_setup((void **)&target->rig);
	fake_set_frame(FAKE_FRAME);
	target->space = rig_tiers(target->rig, false, &target->queue);
	*state = target;
	return 0;
}

int fake_target_teardown(void **state)
{
	struct fake_target *target = *state;

	rig_destroy(target->rig);
	rig_space_free(target->space);
	free(target);
	return 0;
}
