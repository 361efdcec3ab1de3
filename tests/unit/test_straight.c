/* SPDX-License-Identifier: BSD-3-Clause */
/* test_straight.c - frames that go the receiver's straight way, and the general one: it must not
 * matter which.
 *
 * Two transports that are alike get the same frames and are given the same messages at the same
 * times. One gets each frame in one piece, the other in two, which goes the general way. Whatever
 * they do, send, count and say must be the same.
 *
 * Covers: lib/transport/receiver.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include <transport/bitmap.h>

#include "network.h"

#define FRAME_SIZE   1514
#define MBUFS        8192
#define TWIN_LOG     (1u << 20)
#define TWIN_BURST   64
#define TWIN_FELLOWS 2
#define TWIN_MEMORY  (1u << 16)
#define TWIN_PAST    64                /* frames that may come again */
#define TWIN_FIRST   (UINT32_MAX - 20) /* psn that streams begin with */

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
	uint32_t psn, message;
	/* the last message that began and is not all sent: its length, and how much was */
	uint32_t whole, partial;
	uint16_t own_stream; /* the twins' stream to it, and the psn after the last frame of it */
	uint32_t own_next;
	uint32_t echo;
	uint32_t acked;               /* the psn that the twins wait for */
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
static void twin_begin(
	void *context, struct process from, const struct record *record, struct inbound *inbound)
{
	struct twin *twin = context;
	uint32_t wanted = record->message % 4 == 0 ? 0 : (uint32_t)record->extent;

	twin_whole(context, from, record->header, record->header_length, record->data,
		record->data_length);
	twin_log_number(twin, record->extent);
	inbound->stop = record->message % 3 == 0;
	if (twin->used + wanted > TWIN_MEMORY)
		twin->used = 0;
	inbound->memory = map_of_piece(twin->memory + twin->used, wanted);
	inbound->context = twin->memory + twin->used;
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
		.first_psn = TWIN_FIRST,
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
			rte_pktmbuf_chain(mbuf, piece_make(twins, bytes + first, length - first)),
			0);
	twin->queue[twin->queued++] = mbuf;
}

static void fellow_restream(struct fellow *fellow)
{
	fellow->stream++;
	fellow->psn = TWIN_FIRST;
	fellow->acked = TWIN_FIRST;
	fellow->message = fellow->whole = fellow->partial = 0;
	memset(fellow->past_length, 0, sizeof(fellow->past_length));
}

static void twins_queue(struct twins *twins, const uint8_t *bytes, uint32_t length)
{
	twin_queue(twins, &twins->twin[0], bytes, length);
	twin_queue(twins, &twins->twin[1], bytes, length);
}

static void fellow_write(struct twins *twins, const struct fellow *fellow, uint8_t *bytes)
{
	ethernet_write(bytes, twins->twin[0].port.address,
		(const uint8_t[]){2, 0, 0, 0, 1, (uint8_t)fellow->process.nid});
}

/* The twins ask who the fellow is. */
static void fellow_tell(
	struct twins *twins, const struct fellow *fellow, const struct frame *question)
{
	uint8_t bytes[FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES];
	struct frame frame = {.type = FRAME_TELL,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = 1,
		.destination_pid = 2,
		.source_nid = fellow->process.nid,
		.source_pid = fellow->process.pid,
		.source_incarnation = fellow->life,
		.destination_incarnation = 5,
		.psn = question->psn,
		.ack = question->ack,
		.echo = question->timestamp,
		.first = TWIN_FIRST};

	fellow_write(twins, fellow, bytes);
	frame_encode(&frame, bytes + FRAME_ETHERNET_BYTES);
	twins_queue(twins, bytes, sizeof(bytes));
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
	if (frame.type == FRAME_ASK) {
		fellow_tell(twins, fellow, &frame);
		return;
	}
	/* What was spoilt may have been a newer life's, or stream's. */
	if (frame.type == FRAME_RESET)
		fellow->stream = frame.stream;
	if (frame.type == FRAME_RESET || frame.destination_incarnation != fellow->life) {
		fellow->life = frame.destination_incarnation;
		fellow_restream(fellow);
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
	assert_int_equal(transport_deadline(one->transport), transport_deadline(other->transport));
	for (at = 0; at + 2 + FRAME_HEADER_BYTES <= one->logged; at++)
		if (memcmp(one->log + at, "\x88\xb5", 2) == 0)
			fellows_hear(twins, one->log + at + 2, one->logged - at - 2);
	one->logged = other->logged = 0;
}

static uint32_t records_make(
	struct twins *twins, struct fellow *fellow, struct frame *frame, uint8_t *to)
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
			record.data_length = (uint16_t)RTE_MIN(
				record.data_length + 1u, fellow->whole - fellow->partial);
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
		.first = TWIN_FIRST};
	uint8_t records[256];
	uint32_t at, length = 0;

	if (fellow->psn - TWIN_FIRST < 6)
		frame.flags |= FRAME_FIRST;
	if ((odd >> 40) % 16 == 0)
		frame.flags ^= FRAME_ACK_VALID;
	if ((odd >> 44) % 8 == 0)
		frame.flags |= FRAME_FULL_SUM;
	if ((odd >> 48) % 32 == 0)
		frame.marks = (uint8_t)(odd >> 56);
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
	fellow_write(twins, fellow, bytes);
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

/* A fellow's next frame comes, or is to come late; before it perhaps one that is late, or was here
 * before, or that is spoilt. */
static void twins_frame(struct twins *twins)
{
	uint64_t odd = network_random(twins->network);
	struct fellow *fellow = &twins->fellows[odd % 8 == 0];
	uint8_t bytes[512], spoilt[512];
	uint32_t psn, length;

	if ((odd >> 8) % 256 == 0 || fellow->psn - fellow->acked > TWIN_PAST)
		fellow_restream(fellow);
	if ((odd >> 20) % 4096 == 0) {
		fellow->life++;
		fellow_restream(fellow);
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
		message->memory =
			map_of_piece(data, odd % 16 == 0 ? odd >> 32 & 2047 : odd >> 32 & 31);
		message->header_length = 8;
		memcpy(message->header, &twins->messages, 8);
		transport_send(
			twins->twin[i].transport, twins->fellows[odd >> 8 & 1].process, message);
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
		fellow_restream(&twins->fellows[i]);
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
		cmocka_unit_test(frames__that_go_straight_do_what_general_ones_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
