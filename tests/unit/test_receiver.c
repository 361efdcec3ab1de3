/* test_receiver.c - frames that nobody should send: each costs a counter and nothing else. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include <transport/bitmap.h>

#include "network.h"

#define FRAME_SIZE 1514
#define MBUFS      8192
#define STRANGER   0x5000u

/* A network of one node, to which frames are given by hand. What it sends goes nowhere. */
static struct network *network_make(void)
{
	struct network *network = network_create(2, 1, FRAME_SIZE, MBUFS);

	node_start(network, 0, 5);
	network->nodes[0].discard = true;
	network->nodes[0].lost_ok = 1;
	return network;
}

static struct transport_counters *counters(struct network *network)
{
	return &network->nodes[0].counters;
}

/* A frame from a stranger that would be accepted: the first of a stream, with one message. */
struct forged {
	struct frame frame;
	struct record record;
	uint8_t bytes[FRAME_SIZE];
};

static void forge(const struct network *network, struct forged *forged)
{
	memset(forged, 0, sizeof(*forged));
	forged->frame.type = FRAME_DATA;
	forged->frame.flags = FRAME_FIRST | FRAME_START;
	forged->frame.records = 1;
	forged->frame.source_nid = STRANGER;
	forged->frame.source_pid = 1;
	forged->frame.source_incarnation = 1;
	forged->frame.destination_nid = network->nodes[0].self.nid;
	forged->frame.destination_pid = network->nodes[0].self.pid;
	forged->frame.destination_incarnation = 5;
	forged->frame.stream = 1;
	forged->record.kind = RECORD_WHOLE;
	forged->record.header_length = 24;
}

/* An Ethernet header without a tag. */
static void ethernet_write(uint8_t *bytes, const uint8_t *to, const uint8_t *from)
{
	memmove(bytes + FRAME_ADDRESS_BYTES, from, FRAME_ADDRESS_BYTES);
	memcpy(bytes, to, FRAME_ADDRESS_BYTES);
	bytes[12] = FRAME_ETHERTYPE >> 8;
	bytes[13] = FRAME_ETHERTYPE & 255;
}

static void forged_send(struct network *network, struct forged *forged)
{
	static const uint8_t from[6] = {2, 9, 9, 9, 9, 9};
	uint32_t at = FRAME_ETHERNET_BYTES + frame_header_bytes(forged->frame.flags);
	uint32_t record = forged->frame.records == 0 ? 0
						     : record_bytes(forged->record.kind, forged->record.header_length,
							       forged->record.data_length);

	ethernet_write(forged->bytes, network->nodes[0].port.address, from);
	forged->frame.length = (uint16_t)(at - FRAME_ETHERNET_BYTES + record);
	if (forged->frame.records != 0)
		record_write(forged->bytes + at, &forged->record);
	frame_encode(&forged->frame, forged->bytes + FRAME_ETHERNET_BYTES);
	network_inject(network, 0, forged->bytes, forged->frame.length + FRAME_ETHERNET_BYTES);
	network_pass(network, 1000);
}

static void frame__of_a_stranger_begins_a_stream(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	/* The model knows no such node, so the message itself is not sent: an end of one that never was passes. */
	forged.frame.flags = FRAME_FIRST;
	forged.record = (struct record){.kind = RECORD_STOP, .message = 77, .extent = 3};
	forged_send(network, &forged);
	assert_int_equal(counters(network)->peers_made, 2);
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_duplicate, 1);
	network_destroy(network);
}

static void frame__for_another_process_is_dropped(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.destination_pid++;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_no_process, 1);
	assert_int_equal(counters(network)->peers_made, 1);
	network_destroy(network);
}

static void frame__from_this_process_by_the_wire_is_dropped(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.source_nid = network->nodes[0].self.nid;
	forged.frame.source_pid = network->nodes[0].self.pid;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_foreign, 1);
	network_destroy(network);
}

static void frame__of_a_wildcard_or_no_life_is_dropped(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.source_pid = UINT32_MAX;
	forged_send(network, &forged);
	forge(network, &forged);
	forged.frame.source_incarnation = 0;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_malformed, 2);
	assert_int_equal(counters(network)->peers_made, 1);
	network_destroy(network);
}

static void frame__for_an_earlier_life_is_answered_with_a_reset(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.destination_incarnation = 4;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_stale, 1);
	assert_int_equal(counters(network)->resets_sent, 1);
	assert_int_equal(counters(network)->peers_made, 1);
	network_destroy(network);
}

static void frame__that_goes_on_with_an_unknown_stream_makes_no_state(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.flags = FRAME_START;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->resets_sent, 1);
	assert_int_equal(counters(network)->peers_made, 1);
	network_destroy(network);
}

static void frame__beyond_the_window_is_dropped(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.psn = FRAME_WINDOW;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_malformed, 1);
	assert_int_equal(counters(network)->peers_made, 1);
	forge(network, &forged);
	forged.frame.psn = FRAME_WINDOW - 1;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->reordered, 1);
	forge(network, &forged);
	forged.frame.flags = FRAME_START;
	forged.frame.psn = FRAME_WINDOW;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_window, 1);
	/* Nor does it say that its sender has a new life. */
	forge(network, &forged);
	forged.frame.psn = FRAME_WINDOW;
	forged.frame.source_incarnation++;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_malformed, 2);
	assert_int_equal(counters(network)->peers_restarted, 0);
	assert_int_equal(network->nodes[0].begun, 0);
	network_destroy(network);
}

static void frame__with_a_wrong_message_number_is_dropped(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.record.message = 1;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_malformed, 1);
	forge(network, &forged);
	forged.frame.flags = FRAME_FIRST;
	forged.record.kind = RECORD_MORE;
	forged.record.header_length = 0;
	forged.record.data_length = 8;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_malformed, 2);
	assert_int_equal(network->nodes[0].begun, 0);
	network_destroy(network);
}

/* Frames from node 0 to node 1: the last one, and whether they are lost. */
static struct frame overheard;
static bool overheard_lost;

static bool overhear_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	if (from != 0 || to != 1)
		return true;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &overheard);
	return !overheard_lost;
}

static struct peer_info peer_look(struct network *network, unsigned index)
{
	const struct transport *transport = network->nodes[0].transport;
	struct peer_info info[4];
	uint32_t cursor = 0;
	unsigned count = transport_peers(transport, &cursor, info, 4);

	assert_int_equal(cursor, UINT32_MAX);
	while (count-- > 0)
		if (info[count].process.nid == network->nodes[index].self.nid)
			return info[count];
	fail_msg("node %u is no peer", index);
	return (struct peer_info){0};
}

/* Frame in the name of node 1 that acknowledges what node 0 has never sent. It would say that node 1 is elsewhere, alive, and what its
 * clock shows. */
static void unsent_acknowledge(struct network *network, uint8_t type, bool bitmap)
{
	struct peer_info before = peer_look(network, 1);
	uint64_t dropped = counters(network)->dropped_bad_ack;
	struct peer_info after;
	struct forged forged;

	forge(network, &forged);
	forged.frame.type = type;
	forged.frame.flags = FRAME_ACK_VALID;
	if (type == FRAME_DATA)
		forged.frame.flags |= FRAME_FIRST | FRAME_START;
	else
		forged.frame.records = 0;
	forged.frame.source_nid = network->nodes[1].self.nid;
	forged.frame.source_pid = network->nodes[1].self.pid;
	forged.frame.stream = overheard.ack_stream + 1;
	forged.frame.ack_stream = overheard.stream;
	forged.frame.ack = overheard.psn + 2;
	if (bitmap) {
		forged.frame.flags |= FRAME_SACK;
		forged.frame.ack = overheard.psn;
		forged.frame.sack[0] = 1;
	}
	forged.frame.credit = 1;
	forged.frame.timestamp = overheard.echo + 1000000;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_bad_ack, dropped + 1);
	after = peer_look(network, 1);
	assert_memory_equal(after.address, before.address, sizeof(after.address));
	assert_int_equal(after.credit, before.credit);
	assert_int_equal(after.in_flight, 1);
	assert_true(after.heard_ago > before.heard_ago);
}

static void frame__that_acknowledges_what_was_never_sent_changes_nothing(void **state)
{
	struct network *network = network_create(2, 1, FRAME_SIZE, MBUFS);
	uint32_t echo;

	(void)state;
	network->filter = overhear_filter;
	overheard_lost = false;
	node_start(network, 0, 5);
	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	overheard_lost = true;
	network_send(network, 0, 1, 8);
	network_pass(network, 1000);
	assert_int_equal(overheard.type, FRAME_DATA);
	echo = overheard.echo;
	unsent_acknowledge(network, FRAME_ACK, false);
	unsent_acknowledge(network, FRAME_ACK, true);
	unsent_acknowledge(network, FRAME_DATA, false);
	unsent_acknowledge(network, FRAME_DATA, true);
	assert_int_equal(network->nodes[0].begun, 1);
	assert_int_equal(network->nodes[0].done, 1);
	overheard_lost = false;
	assert_true(network_run(network, SECOND));
	assert_int_equal(overheard.echo, echo);
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

static void frames__of_random_bytes_change_nothing(void **state)
{
	struct network *network = network_make();
	uint8_t bytes[256];
	unsigned i;
	unsigned j;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint32_t length = (uint32_t)(network_random(network) % sizeof(bytes));

		for (j = 0; j < length; j++)
			bytes[j] = (uint8_t)network_random(network);
		if (length >= FRAME_ETHERNET_BYTES && i % 2 == 0)
			ethernet_write(bytes, network->nodes[0].port.address, bytes + 6);
		network_inject(network, 0, bytes, length);
		if (i % 64 == 0)
			network_pass(network, 1000);
	}
	network_pass(network, 100000);
	assert_int_equal(counters(network)->peers_made, 1);
	assert_int_equal(network->nodes[0].begun, 0);
	network_destroy(network);
}

/* Valid checksums, everything else mutated: whatever comes out must not break the model or leak. */
static void frames__mutated_do_no_harm(void **state)
{
	struct network *network = network_make();
	struct forged forged;
	unsigned i;

	(void)state;
	for (i = 0; i < 50000; i++) {
		uint8_t *raw = (uint8_t *)&forged.frame;

		forge(network, &forged);
		forged.frame.flags &= (uint8_t)~FRAME_START;
		forged.frame.psn = (uint32_t)(network_random(network) % 300);
		forged.record.kind = (uint8_t)(RECORD_MORE + network_random(network) % 2);
		forged.record.header_length = 0;
		forged.record.message = (uint32_t)(network_random(network) % 4);
		forged.record.data_length = (uint16_t)(network_random(network) % 200);
		forged.record.extent = network_random(network) % 100000;
		raw[network_random(network) % offsetof(struct frame, sack)] ^=
			(uint8_t)(1u << network_random(network) % 8);
		if (forged.frame.records > 1)
			forged.frame.records = 1;
		forged_send(network, &forged);
	}
	assert_int_equal(network->nodes[0].begun, 0);
	network_destroy(network);
}

static void flood__from_strangers_is_bounded(void **state)
{
	struct network *network = network_make();
	struct forged forged;
	unsigned i;

	(void)state;
	for (i = 0; i < 3000; i++) {
		forge(network, &forged);
		forged.frame.flags = FRAME_FIRST;
		forged.frame.source_nid = STRANGER + i;
		forged.record = (struct record){.kind = RECORD_STOP};
		forged_send(network, &forged);
	}
	assert_int_equal(counters(network)->peers_made, 1024 - 1024 / 4);
	assert_int_equal(counters(network)->dropped_no_memory, 3000 - 767);
	/* Own messages still find room. */
	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	network_destroy(network);
}

static void peers__one_hundred_thousand_fit_in_50_megabytes(void **state)
{
	struct network *network = network_create(2, 1, FRAME_SIZE, MBUFS);
	struct mallinfo2 before = mallinfo2();
	struct mallinfo2 after;
	struct forged forged;
	unsigned i;

	(void)state;
	network->options.peers_max = 140000;
	node_start(network, 0, 5);
	for (i = 0; i < 100000; i++) {
		forge(network, &forged);
		forged.frame.flags = FRAME_FIRST;
		forged.frame.source_nid = STRANGER + i;
		forged.record = (struct record){.kind = RECORD_STOP};
		forged_send(network, &forged);
	}
	after = mallinfo2();
	assert_int_equal(counters(network)->peers_made, 100001);
	printf("%zu bytes\n", after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
	assert_true(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < 50000000);
	network_destroy(network);
}

/* --- the straight way and the general one
 *
 * Two transports that are alike get the same frames and are given the same messages at the same times. One gets each frame in one
 * piece, the other in two, which goes the general way. Whatever they do, send, count and say must be the same. */

#define TWIN_LOG     (1u << 20)
#define TWIN_BURST   64
#define TWIN_FELLOWS 2
#define TWIN_MEMORY  (1u << 16)
#define TWIN_PAST    64 /* frames that may come again */

struct twin {
	struct port port;
	bool pieces; /* its frames come in two */
	struct transport *transport;
	struct transport_counters counters;
	struct rte_mbuf *queue[TWIN_BURST];
	unsigned queued;
	uint8_t *log; /* what it has done */
	uint32_t logged;
	uint8_t *memory; /* of messages that arrive in parts */
	uint32_t used;
};

/* What the frames of a fellow go on with. */
struct fellow {
	struct process process;
	uint32_t life;
	uint16_t stream;
	uint32_t first, psn, message;
	uint32_t whole, partial; /* the last message that began and is not all sent: its length, and how much was */
	uint16_t own_stream; /* the twins' stream to it, and the psn after the last frame of it */
	uint32_t own_next;
	uint32_t echo;
	uint32_t acked; /* the psn that the twins wait for */
	uint8_t past[TWIN_PAST][512]; /* sequenced frames by psn: they may come again */
	uint32_t past_length[TWIN_PAST];
	uint8_t late[512]; /* a frame that is to come, 0 bytes: none */
	uint32_t late_length;
};

struct twins {
	struct twin twin[2];
	struct fellow fellows[TWIN_FELLOWS];
	struct network *network; /* a clock, chance and a pool */
	uint64_t messages;
};

static void twin_log(struct twin *twin, const void *bytes, uint32_t length)
{
	assert_true(twin->logged + length <= TWIN_LOG);
	memcpy(twin->log + twin->logged, bytes, length);
	twin->logged += length;
}

static void twin_log_number(struct twin *twin, uint64_t number)
{
	twin_log(twin, &number, sizeof(number));
}

static uint16_t twin_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct twin *twin = (struct twin *)(void *)port;
	unsigned taken = twin->queued < count ? twin->queued : count;

	memcpy(frames, twin->queue, taken * sizeof(*frames));
	memmove(twin->queue, twin->queue + taken, (twin->queued - taken) * sizeof(*frames));
	twin->queued -= taken;
	return (uint16_t)taken;
}

static uint16_t twin_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct twin *twin = (struct twin *)(void *)port;

	for (uint16_t i = 0; i < count; i++) {
		twin_log(twin, rte_pktmbuf_mtod(frames[i], const void *), frames[i]->data_len);
		rte_pktmbuf_free(frames[i]);
	}
	return count;
}

static const struct port_operations twin_operations = {
	.receive = twin_receive,
	.transmit = twin_transmit,
};

static void twin_whole(void *context, struct process from, const void *header,
	uint32_t header_length, const void *data, uint32_t length)
{
	twin_log(context, &from, sizeof(from));
	twin_log(context, header, header_length);
	twin_log(context, data, length);
}

/* What becomes of a message that comes in parts depends on what it says. */
static void twin_begin(void *context, struct process from, const struct record *record,
	struct inbound *inbound)
{
	struct twin *twin = context;
	uint32_t wanted = record->message % 4 == 0 ? 0 : (uint32_t)record->extent;

	twin_whole(context, from, record->header, record->header_length, record->data,
		record->data_length);
	twin_log_number(twin, record->extent);
	inbound->stop = record->message % 3 == 0;
	if (twin->used + wanted > TWIN_MEMORY)
		twin->used = 0;
	inbound->base = twin->memory + twin->used;
	inbound->limit = wanted;
	inbound->context = inbound->base;
	inbound->want_end = wanted != 0;
	twin->used += wanted;
}

static void twin_end(void *context, void *inbound_context, enum transport_fail why)
{
	struct twin *twin = context;

	twin_log_number(twin, (uint64_t)((uint8_t *)inbound_context - twin->memory));
	twin_log_number(twin, why);
}

static void twin_done(void *context, struct message *message, enum transport_fail why)
{
	twin_log(context, message->header, 8);
	twin_log_number(context, why);
	free(message);
}

static void twin_ping(void *context, struct ping *ping)
{
	(void)context;
	(void)ping;
}

static void twin_duplicate(void *context, const uint8_t *address)
{
	twin_log(context, address, FRAME_ADDRESS_BYTES);
}

static void twin_make(struct twins *twins, unsigned which)
{
	struct twin *twin = &twins->twin[which];
	struct transport_upcalls upcalls = {.message_begin = twin_begin,
		.message_whole = twin_whole,
		.message_end = twin_end,
		.message_done = twin_done,
		.ping_done = twin_ping,
		.duplicate = twin_duplicate,
		.context = twin};
	struct transport_options options = {.self = {1, 2},
		.incarnation = 5,
		.peer_timeout = 10 * SECOND,
		.peers_max = 16,
		.first_psn = UINT32_MAX - 20,
		.seed = 7};

	twin->port.operations = &twin_operations;
	twin->port.pool = twins->network->pool;
	twin->port.frame_size = FRAME_SIZE;
	twin->port.receive_frames = 256;
	twin->port.address[0] = 2;
	twin->pieces = which == 1;
	twin->log = malloc(TWIN_LOG);
	twin->memory = calloc(1, TWIN_MEMORY);
	assert_true(twin->log != NULL && twin->memory != NULL);
	twin->transport = transport_create(
		&options, &twin->port, &twins->network->clock, &upcalls, &twin->counters);
	assert_non_null(twin->transport);
}

static struct rte_mbuf *piece_make(struct twins *twins, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(twins->network->pool);

	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)length), bytes, length);
	return mbuf;
}

static void twin_queue(
	struct twins *twins, struct twin *twin, const uint8_t *bytes, uint32_t length)
{
	uint32_t first = twin->pieces ? length / 2 : length;
	struct rte_mbuf *mbuf = piece_make(twins, bytes, first);

	if (first < length)
		assert_int_equal(
			rte_pktmbuf_chain(mbuf, piece_make(twins, bytes + first, length - first)), 0);
	twin->queue[twin->queued++] = mbuf;
}

static void fellow_restream(struct twins *twins, struct fellow *fellow)
{
	fellow->stream++;
	fellow->first = (uint32_t)network_random(twins->network);
	fellow->psn = fellow->first;
	fellow->acked = fellow->first;
	fellow->message = fellow->whole = fellow->partial = 0;
	memset(fellow->past_length, 0, sizeof(fellow->past_length));
}

/* What a fellow sees of the frames that the twins sent. */
static void fellows_hear(struct twins *twins, const uint8_t *bytes, uint32_t length)
{
	struct fellow *fellow;
	struct frame frame;

	if (frame_decode(bytes, length, &frame) != FRAME_OK || frame.destination_nid < 100 ||
		frame.destination_nid >= 100 + TWIN_FELLOWS)
		return;
	fellow = &twins->fellows[frame.destination_nid - 100];
	/* What was spoilt may have been a newer life's, or stream's. */
	if (frame.type == FRAME_RESET)
		fellow->stream = frame.stream;
	if (frame.type == FRAME_RESET || frame.destination_incarnation != fellow->life) {
		fellow->life = frame.destination_incarnation;
		fellow_restream(twins, fellow);
	}
	fellow->echo = frame.timestamp;
	if ((frame.flags & FRAME_ACK_VALID) && frame.ack_stream == fellow->stream)
		fellow->acked = frame.ack;
	if (frame.type != FRAME_DATA)
		return;
	if (frame.stream != fellow->own_stream || serial_before(fellow->own_next, frame.psn + 1))
		fellow->own_next = frame.psn + 1;
	fellow->own_stream = frame.stream;
}

/* What can be seen of a twin's inside. */
static void twin_log_state(struct twin *twin)
{
	struct transport_info info;
	struct peer_info peers[4];
	uint32_t cursor = 0;
	unsigned count;

	transport_describe(twin->transport, &info);
	twin_log_number(twin, info.in_flight);
	twin_log_number(twin, info.held);
	twin_log_number(twin, info.ready);
	twin_log_number(twin, info.credit);
	twin_log_number(twin, info.senders);
	twin_log_number(twin, info.messages);
	count = transport_peers(twin->transport, &cursor, peers, 4);
	for (unsigned i = 0; i < count; i++) {
		const struct peer_info *peer = &peers[i];

		twin_log(twin, &peer->process, sizeof(peer->process));
		twin_log(twin, peer->address, sizeof(peer->address));
		twin_log(twin, peer->state, (uint32_t)strlen(peer->state));
		twin_log_number(twin, peer->incarnation);
		twin_log_number(twin, peer->in_flight);
		twin_log_number(twin, peer->credit);
		twin_log(twin, &peer->window,
			offsetof(struct peer_info, reorders) - offsetof(struct peer_info, window));
		twin_log_number(twin, peer->reorders);
		twin_log_number(twin, peer->stalled);
	}
}

/* A turn of both, and what they did. */
static void twins_turn(struct twins *twins)
{
	struct twin *one = &twins->twin[0], *other = &twins->twin[1];
	uint32_t at;

	for (unsigned i = 0; i < 2; i++) {
		struct transport *transport = twins->twin[i].transport;

		transport_receive(transport);
		transport_process(transport);
		transport_transmit(transport);
		twin_log_state(&twins->twin[i]);
	}
	assert_int_equal(one->logged, other->logged);
	assert_memory_equal(one->log, other->log, one->logged);
	assert_memory_equal(one->memory, other->memory, TWIN_MEMORY);
	assert_memory_equal(&one->counters, &other->counters, sizeof(one->counters));
	assert_int_equal(
		transport_deadline(one->transport), transport_deadline(other->transport));
	for (at = 0; at + 2 + FRAME_HEADER_BYTES <= one->logged; at++)
		if (memcmp(one->log + at, "\x88\xb5", 2) == 0)
			fellows_hear(twins, one->log + at + 2, one->logged - at - 2);
	one->logged = other->logged = 0;
}

static uint32_t records_make(struct twins *twins, struct fellow *fellow, struct frame *frame, uint8_t *to)
{
	unsigned count = 1 + (unsigned)(network_random(twins->network) % 3);
	uint32_t length = 0;

	for (; count > 0; count--, frame->records++) {
		unsigned what = (unsigned)(network_random(twins->network) % 16);
		struct record record = {.kind = RECORD_START,
			.header_length = (uint8_t)(8 * (1 + what % 3)),
			.data_length = (uint16_t)(network_random(twins->network) % 30)};
		uint32_t bytes;

		if (fellow->partial < fellow->whole && what < 8) {
			record.kind = RECORD_MORE;
			record.header_length = 0;
			record.message = fellow->message - 1;
			record.extent = fellow->partial;
			record.data_length = (uint16_t)RTE_MIN(record.data_length + 1u, fellow->whole - fellow->partial);
			fellow->partial += record.data_length;
		} else {
			frame->flags |= FRAME_START;
			record.message = fellow->message++;
			record.extent = record.data_length;
			if (what == 15)
				record.extent += 1 + network_random(twins->network) % 50;
			else
				record.kind = RECORD_WHOLE;
			fellow->whole = (uint32_t)record.extent;
			fellow->partial = record.data_length;
		}
		bytes = record_bytes(record.kind, record.header_length, record.data_length);
		memset(to + length, (int)record.message, bytes);
		record_write(to + length, &record);
		length += bytes;
	}
	return length;
}

/* The next frame of a fellow; mostly as it should be. */
static uint32_t fellow_frame(struct twins *twins, struct fellow *fellow, uint8_t *bytes)
{
	struct network *network = twins->network;
	uint64_t odd = network_random(network);
	struct frame frame = {.type = FRAME_DATA,
		.flags = (uint8_t)(FRAME_ACK_VALID | (odd & FRAME_ACK_NOW)),
		.destination_nid = 1,
		.destination_pid = 2,
		.source_nid = fellow->process.nid,
		.source_pid = fellow->process.pid,
		.source_incarnation = fellow->life,
		.destination_incarnation = 5,
		.psn = fellow->psn,
		.ack = fellow->own_next - (uint32_t)(odd >> 8 & 15) / 12,
		.stream = fellow->stream,
		.ack_stream = fellow->own_stream,
		.timestamp = (uint32_t)network->now - (uint32_t)(odd >> 16 & 15) / 15,
		.echo = fellow->echo,
		.delay = (uint32_t)(odd >> 20 & 1023),
		.credit = (uint16_t)(10 + (odd >> 32 & 63)),
		.first = fellow->first};
	uint8_t records[256];
	uint32_t at, length = 0;

	if (fellow->psn - fellow->first < 6)
		frame.flags |= FRAME_FIRST;
	if ((odd >> 40) % 16 == 0)
		frame.flags ^= FRAME_ACK_VALID;
	if ((odd >> 44) % 8 == 0)
		frame.flags |= FRAME_FULL_SUM;
	if ((odd >> 48) % 32 == 0)
		frame.flags |= FRAME_CE;
	if ((odd >> 50) % 32 == 0) {
		frame.flags |= FRAME_SACK;
		frame.sack[0] = odd >> 60 & 1;
	}
	if ((odd >> 54) % 16 == 0) {
		frame.type = FRAME_ACK;
		frame.flags &= (uint8_t)~FRAME_FIRST;
	} else {
		fellow->psn++;
		length = records_make(twins, fellow, &frame, records);
	}
	at = FRAME_ETHERNET_BYTES + frame_header_bytes(frame.flags);
	ethernet_write(bytes, twins->twin[0].port.address, (const uint8_t[]){2, 0, 0, 0, 1, (uint8_t)fellow->process.nid});
	memcpy(bytes + at, records, length);
	frame.length = (uint16_t)(at - FRAME_ETHERNET_BYTES + length);
	frame_encode(&frame, bytes + FRAME_ETHERNET_BYTES);
	return at + length;
}

static void frame_spoil(struct twins *twins, uint8_t *bytes, uint32_t length)
{
	uint64_t where = network_random(twins->network);
	struct frame frame;

	bytes[where % length] ^= (uint8_t)(1u << (where >> 32) % 8);
	/* Often with a checksum that covers it. */
	if ((where >> 40) % 4 == 0)
		return;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	if ((uint32_t)frame.length + FRAME_ETHERNET_BYTES > length ||
		frame_header_bytes(frame.flags) > frame.length)
		return;
	memcpy(&frame, bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES);
	frame.type &= 15;
	frame_encode(&frame, bytes + FRAME_ETHERNET_BYTES);
}

static void twins_queue(struct twins *twins, const uint8_t *bytes, uint32_t length)
{
	twin_queue(twins, &twins->twin[0], bytes, length);
	twin_queue(twins, &twins->twin[1], bytes, length);
}

/* A frame that the fellow sent before, with an acknowledgement of now. */
static void fellow_repeat(struct twins *twins, struct fellow *fellow, uint32_t psn)
{
	uint8_t *bytes = fellow->past[psn % TWIN_PAST];
	uint32_t length = fellow->past_length[psn % TWIN_PAST];
	struct frame frame;

	if (length == 0)
		return;
	memcpy(&frame, bytes + FRAME_ETHERNET_BYTES, FRAME_HEADER_BYTES);
	frame.type &= 15;
	frame.tail_length = 0;
	frame.ack = fellow->own_next;
	frame.ack_stream = fellow->own_stream;
	memcpy(frame.sack, bytes + FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES, sizeof(frame.sack));
	frame_encode(&frame, bytes + FRAME_ETHERNET_BYTES);
	twins_queue(twins, bytes, length);
}

/* A fellow's next frame comes, or is to come late; before it perhaps one that is late, or was here before, or that is spoilt. */
static void twins_frame(struct twins *twins)
{
	uint64_t odd = network_random(twins->network);
	struct fellow *fellow = &twins->fellows[odd % 8 == 0];
	uint8_t bytes[512], spoilt[512];
	uint32_t psn, length;

	if ((odd >> 8) % 256 == 0 || fellow->psn - fellow->acked > TWIN_PAST)
		fellow_restream(twins, fellow);
	if ((odd >> 20) % 4096 == 0) {
		fellow->life++;
		fellow_restream(twins, fellow);
	}
	if (fellow->psn - fellow->acked > TWIN_PAST / 4)
		fellow_repeat(twins, fellow, fellow->acked);
	psn = fellow->psn;
	length = fellow_frame(twins, fellow, bytes);
	if (psn != fellow->psn) {
		memcpy(fellow->past[psn % TWIN_PAST], bytes, length);
		fellow->past_length[psn % TWIN_PAST] = length;
	}
	if (fellow->late_length != 0 && (odd >> 32) % 2 == 0) {
		twins_queue(twins, fellow->late, fellow->late_length);
		fellow->late_length = 0;
	}
	if ((odd >> 40) % 32 == 0)
		fellow_repeat(twins, fellow, (uint32_t)(odd >> 50));
	if ((odd >> 44) % 128 == 0) {
		memcpy(spoilt, bytes, length);
		frame_spoil(twins, spoilt, length);
		twins_queue(twins, spoilt, length);
	}
	if ((odd >> 34) % 64 == 0 && fellow->late_length == 0) {
		memcpy(fellow->late, bytes, length);
		fellow->late_length = length;
		return;
	}
	twins_queue(twins, bytes, length);
}

static void twins_send(struct twins *twins)
{
	static const uint8_t data[3000];
	uint64_t odd = network_random(twins->network);

	twins->messages++;
	for (unsigned i = 0; i < 2; i++) {
		struct message *message = calloc(1, sizeof(*message));

		assert_non_null(message);
		message->data = data;
		message->length = odd % 16 == 0 ? odd >> 32 & 2047 : odd >> 32 & 31;
		message->header_length = 8;
		memcpy(message->header, &twins->messages, 8);
		transport_send(twins->twin[i].transport,
			twins->fellows[odd >> 8 & 1].process, message);
	}
}

static void twins_pass(struct twins *twins)
{
	uint64_t odd = network_random(twins->network);

	twins->network->now += 500 + odd % 2000;
	if ((odd >> 20) % 64 == 0)
		twins->network->now += odd >> 32 & 0xffffff;
	if ((odd >> 30) % 4096 == 0)
		twins->network->now += 70 * SECOND;
}

static void frames__that_go_straight_do_what_general_ones_do(void **state)
{
	struct network *network = network_create(2, 3, FRAME_SIZE, MBUFS);
	struct twins *twins = calloc(1, sizeof(*twins));

	(void)state;
	assert_non_null(twins);
	twins->network = network;
	for (unsigned i = 0; i < 2; i++)
		twin_make(twins, i);
	for (unsigned i = 0; i < TWIN_FELLOWS; i++) {
		twins->fellows[i].process = (struct process){100 + i, 7};
		twins->fellows[i].life = 9;
		fellow_restream(twins, &twins->fellows[i]);
	}
	for (unsigned turn = 0; turn < 60000; turn++) {
		for (uint64_t frames = network_random(network) % 6; frames > 0; frames--)
			twins_frame(twins);
		if (network_random(network) % 4 == 0)
			twins_send(twins);
		twins_turn(twins);
		twins_pass(twins);
	}
	assert_true(twins->twin[0].counters.messages_sent > 10000);
	/* Most went straight, and all kinds of others were among them. */
	assert_true(twins->twin[0].counters.messages_received > 50000);
	assert_true(twins->twin[0].counters.reordered > 1000);
	assert_true(twins->twin[0].counters.dropped_duplicate > 1000);
	assert_true(twins->twin[0].counters.dropped_bad_ack > 10);
	assert_true(twins->twin[0].counters.retransmits > 10);
	assert_true(twins->twin[0].counters.peers_restarted > 10);
	for (unsigned i = 0; i < 2; i++) {
		transport_close(twins->twin[i].transport);
		free(twins->twin[i].log);
		free(twins->twin[i].memory);
	}
	free(twins);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__of_a_stranger_begins_a_stream),
		cmocka_unit_test(frame__for_another_process_is_dropped),
		cmocka_unit_test(frame__from_this_process_by_the_wire_is_dropped),
		cmocka_unit_test(frame__of_a_wildcard_or_no_life_is_dropped),
		cmocka_unit_test(frame__for_an_earlier_life_is_answered_with_a_reset),
		cmocka_unit_test(frame__that_goes_on_with_an_unknown_stream_makes_no_state),
		cmocka_unit_test(frame__beyond_the_window_is_dropped),
		cmocka_unit_test(frame__with_a_wrong_message_number_is_dropped),
		cmocka_unit_test(frame__that_acknowledges_what_was_never_sent_changes_nothing),
		cmocka_unit_test(frames__of_random_bytes_change_nothing),
		cmocka_unit_test(frames__mutated_do_no_harm),
		cmocka_unit_test(frames__that_go_straight_do_what_general_ones_do),
		cmocka_unit_test(flood__from_strangers_is_bounded),
		cmocka_unit_test(peers__one_hundred_thousand_fit_in_50_megabytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
