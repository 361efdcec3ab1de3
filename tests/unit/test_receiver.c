/* SPDX-License-Identifier: BSD-3-Clause */
/* test_receiver.c - frames that nobody should send: each costs a counter and nothing else. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include <transport/address.h>
#include <transport/internal.h>

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

/* Returns the frame's length. */
static uint32_t forged_make(struct network *network, struct forged *forged, const uint8_t *from)
{
	uint32_t at = FRAME_ETHERNET_BYTES + frame_header_bytes(forged->frame.flags);
	uint32_t record = forged->frame.records == 0
				  ? 0
				  : record_bytes(forged->record.kind, forged->record.header_length,
					    forged->record.data_length);

	ethernet_write(forged->bytes, network->nodes[0].port.address, from);
	forged->frame.length = (uint16_t)(at - FRAME_ETHERNET_BYTES + record);
	if (forged->frame.records != 0)
		record_write(forged->bytes + at, &forged->record);
	frame_encode(&forged->frame, forged->bytes + FRAME_ETHERNET_BYTES);
	return forged->frame.length + FRAME_ETHERNET_BYTES;
}

static void forged_send_from(struct network *network, struct forged *forged, const uint8_t *from)
{
	uint32_t length = forged_make(network, forged, from);

	network_inject(network, 0, forged->bytes, length);
	network_pass(network, 1000);
}

static const uint8_t elsewhere[6] = {2, 9, 9, 9, 9, 9};

static void forged_send(struct network *network, struct forged *forged)
{
	forged_send_from(network, forged, elsewhere);
}

static void frame__of_a_stranger_begins_a_stream(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	/* The model knows no such node, so the message itself is not sent: an end of one that never
	 * was passes. */
	forged.frame.flags = FRAME_FIRST;
	forged.record = (struct record){.kind = RECORD_STOP, .message = 77, .extent = 3};
	forged_send(network, &forged);
	assert_int_equal(counters(network)->peers_made, 2);
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_duplicate, 1);
	network_destroy(network);
}

/* A driver may spread a frame over several buffers, wherever it likes. */
static void frame__in_two_pieces_is_read_as_one(void **state)
{
	struct network *network = network_make();
	struct forged forged;
	uint32_t length;

	(void)state;
	for (uint32_t piece = 1; piece < 100; piece += 13) {
		forge(network, &forged);
		forged.frame.flags = FRAME_FIRST;
		forged.frame.source_pid = 1 + piece;
		forged.record = (struct record){.kind = RECORD_STOP, .message = 77, .extent = 3};
		length = forged_make(network, &forged, elsewhere);
		assert_true(length > piece);
		network_inject_pieces(network, 0, forged.bytes, length, piece);
		network_pass(network, 1000);
		assert_int_equal(counters(network)->peers_made, 2 + piece / 13);
		network_inject(network, 0, forged.bytes, length);
		network_pass(network, 1000);
		assert_int_equal(counters(network)->dropped_duplicate, 1 + piece / 13);
	}
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

/* Frames with what is reserved cost a counter each. */
static void frame__that_goes_on_in_a_ring_is_counted(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	forge(network, &forged);
	forged.frame.flags = FRAME_FIRST;
	forged.record = (struct record){.kind = RECORD_RING};
	forged_send(network, &forged);
	forged.frame.psn = 1;
	forged_send(network, &forged);
	assert_int_equal(counters(network)->dropped_ring, 2);
	assert_int_equal(counters(network)->reordered, 0);
	assert_int_equal(counters(network)->dropped_malformed, 0);
	network_destroy(network);
}

static void frame__that_is_sealed_is_counted(void **state)
{
	struct network *network = network_make();
	struct forged forged;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		forge(network, &forged);
		forged.frame.flags |= i == 0 ? FRAME_SEALED : FRAME_WILL;
		forged_send(network, &forged);
	}
	assert_int_equal(counters(network)->dropped_sealed, 2);
	assert_int_equal(counters(network)->peers_made, 1);
	network_destroy(network);
}

static void version_send(struct network *network, unsigned version, uint8_t type, unsigned pid)
{
	struct frame frame = {.type = type,
		.length = FRAME_HEADER_BYTES,
		.source_nid = STRANGER,
		.source_pid = 7,
		.source_incarnation = 1,
		.destination_nid = network->nodes[0].self.nid,
		.destination_pid = network->nodes[0].self.pid + pid};
	uint8_t bytes[FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES];

	ethernet_write(bytes, network->nodes[0].port.address, (uint8_t[]){2, 9, 9, 9, 9, 9});
	frame_encode(&frame, bytes + FRAME_ETHERNET_BYTES);
	bytes[FRAME_ETHERNET_BYTES] = (uint8_t)(version << 4 | type);
	network_inject(network, 0, bytes, sizeof(bytes));
	network_pass(network, 1000);
}

static void frame__of_another_version_is_told_once_a_minute(void **state)
{
	struct network *network = network_make();
	const struct node *node = &network->nodes[0];

	(void)state;
	version_send(network, FRAME_VERSION, FRAME_FOUND + 1, 0);
	version_send(network, FRAME_VERSION - 1, FRAME_ASK, 1); /* to another process */
	assert_int_equal(node->strangers, 0);
	version_send(network, FRAME_VERSION - 1, FRAME_ASK, 0);
	assert_int_equal(node->strangers, 1);
	assert_int_equal(node->stranger.nid, STRANGER);
	assert_int_equal(node->stranger.pid, 7);
	assert_int_equal(node->stranger_version, FRAME_VERSION - 1);
	network_pass(network, 59 * SECOND);
	version_send(network, FRAME_VERSION + 1, FRAME_DATA, 0);
	assert_int_equal(node->strangers, 1);
	network_pass(network, SECOND);
	version_send(network, FRAME_VERSION + 1, FRAME_DATA, 0);
	assert_int_equal(node->strangers, 2);
	assert_int_equal(node->stranger_version, FRAME_VERSION + 1);
	assert_int_equal(counters(network)->dropped_version, 5);
	network_destroy(network);
}

/* Frames from node 0 to node 1: the last one, and whether they are lost. */
static struct frame overheard;
static bool overheard_lost;

static bool overhear_filter(
	struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	if (from != 0 || to != 1)
		return true;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &overheard);
	return !overheard_lost;
}

/* Two nodes that know each other, of which node 0 is overheard. */
static struct network *acquaintances(uint64_t seed)
{
	struct network *network = network_create(2, seed, FRAME_SIZE, MBUFS);

	network->filter = overhear_filter;
	overheard_lost = false;
	node_start(network, 0, 5);
	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

/* Both ways to tell a psn say of which generation it is. */
static void psn__is_told_with_its_generation(void **state)
{
	struct network *network = network_create(2, 1, FRAME_SIZE, MBUFS);

	(void)state;
	network->filter = overhear_filter;
	overheard_lost = false;
	node_start(network, 0, 5);
	node_start(network, 1, 1);
	network->nodes[0].transport->generation = 0x1234;
	network_send(network, 1, 0, 8);
	overheard.type = 0;
	while (overheard.type != FRAME_TELL)
		network_pass(network, MICROSECOND);
	assert_int_equal(overheard.stream, 0x1234);
	assert_true(network_run(network, SECOND));
	network_pass(network, 31 * SECOND);
	network->nodes[0].transport->generation = 0x2345;
	network_send(network, 0, 1, 8);
	while (overheard.type != FRAME_DATA)
		network_pass(network, MICROSECOND);
	assert_int_equal(overheard.flags & (FRAME_FIRST | FRAME_ACK_VALID), FRAME_FIRST);
	assert_int_equal(overheard.ack_stream, 0x2345);
	assert_true(network_run(network, SECOND));
	network_destroy(network);
}

/* Frame in the name of node 1 that acknowledges what node 0 has never sent. It would say that node
 * 1 is elsewhere, alive, and what its clock shows. */
static void unsent_acknowledge(struct network *network, uint8_t type, bool bitmap)
{
	const struct peer before = *network_peer(network, 0, 1);
	uint64_t dropped = counters(network)->dropped_bad_ack;
	const struct peer *after = network_peer(network, 0, 1);
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
	assert_memory_equal(after->address, before.address, sizeof(before.address));
	assert_int_equal(after->credit, before.credit);
	assert_int_equal(peer_in_flight(after), 1);
	assert_int_equal(after->heard, before.heard);
}

static void frame__that_acknowledges_what_was_never_sent_changes_nothing(void **state)
{
	struct network *network = acquaintances(1);
	uint32_t echo;

	(void)state;
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

/* A forged acknowledgement from node 1, of what node 0 sent it. */
static void acknowledgement_forge(struct network *network, uint32_t ack, uint64_t bitmap)
{
	struct forged forged;

	forge(network, &forged);
	forged.frame.type = FRAME_ACK;
	forged.frame.flags = FRAME_ACK_VALID;
	forged.frame.records = 0;
	forged.frame.source_nid = network->nodes[1].self.nid;
	forged.frame.source_pid = network->nodes[1].self.pid;
	forged.frame.ack_stream = overheard.stream;
	forged.frame.ack = ack;
	if (bitmap != 0) {
		forged.frame.flags |= FRAME_SACK;
		forged.frame.sack[0] = bitmap;
	}
	forged.frame.credit = 16;
	forged.frame.echo = overheard.timestamp;
	forged.frame.timestamp = overheard.echo + 1000000;
	forged_send_from(network, &forged, network->nodes[1].port.address);
}

/* First that the second of two frames has arrived without the first, then that only the first
 * has. */
static void acknowledgements__that_contradict_each_other_do_no_harm(void **state)
{
	struct network *network = acquaintances(1);
	uint32_t psn;

	(void)state;
	network->nodes[0].lost_ok = 1; /* the lie is believed */
	overheard_lost = true;
	network_send(network, 0, 1, 8);
	network_pass(network, 1000);
	psn = overheard.psn;
	network_send(network, 0, 1, 8);
	network_pass(network, 1000);
	assert_int_equal(overheard.psn, psn + 1);
	acknowledgement_forge(network, psn, 1);
	acknowledgement_forge(network, psn + 1, 0);
	network_pass(network, 20 * SECOND);
	assert_int_equal(network->nodes[0].done, 3);
	network_destroy(network);
}

/* Whatever a peer reports as arrived, every message ends once, and nothing is taken for what it is
 * not. */
static void acknowledgements__of_a_liar_end_every_message(void **state)
{
	struct network *network;
	struct node *node;
	uint64_t failed;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		network = acquaintances(seed);
		node = &network->nodes[0];
		node->lost_ok = network->nodes[1].lost_ok = 1;
		network->faults.delay = 10 * MICROSECOND;
		for (unsigned i = 0; i < 250; i++) {
			uint32_t behind = (uint32_t)(network_random(network) % 64);

			for (uint64_t n = network_random(network) % 8; n > 0; n--)
				network_send(network, 0, 1,
					network_random(network) % (n % 2 ? 64 : 20000));
			if (network_random(network) % 8 == 0)
				overheard_lost = !overheard_lost;
			network_pass(network, network_random(network) % (20 * MICROSECOND));
			acknowledgement_forge(network, overheard.psn + 1 - behind,
				behind < 2 || i % 2 ? 0 : network_random(network) >> (65 - behind));
		}
		overheard_lost = false;
		network_pass(network, 30 * SECOND);
		failed = 0;
		for (unsigned why = 0; why < RTE_DIM(node->failed); why++)
			failed += node->failed[why];
		assert_int_equal(node->done + failed, node->sent[1]);
		network_destroy(network);
	}
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
		/* as it would be told */
		forged.frame.psn = forged.frame.first = address_first(network->nodes[0].transport,
			(struct process){STRANGER + i, forged.frame.source_pid},
			forged.frame.source_incarnation);
		forged.record = (struct record){.kind = RECORD_STOP};
		forged_send(network, &forged);
	}
	after = mallinfo2();
	assert_int_equal(counters(network)->peers_made, 100001);
	printf("%zu bytes\n", after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
	assert_true(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < 50000000);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__of_a_stranger_begins_a_stream),
		cmocka_unit_test(frame__in_two_pieces_is_read_as_one),
		cmocka_unit_test(frame__for_another_process_is_dropped),
		cmocka_unit_test(frame__from_this_process_by_the_wire_is_dropped),
		cmocka_unit_test(frame__of_a_wildcard_or_no_life_is_dropped),
		cmocka_unit_test(frame__for_an_earlier_life_is_answered_with_a_reset),
		cmocka_unit_test(frame__that_goes_on_with_an_unknown_stream_makes_no_state),
		cmocka_unit_test(frame__beyond_the_window_is_dropped),
		cmocka_unit_test(frame__with_a_wrong_message_number_is_dropped),
		cmocka_unit_test(frame__that_goes_on_in_a_ring_is_counted),
		cmocka_unit_test(frame__that_is_sealed_is_counted),
		cmocka_unit_test(frame__of_another_version_is_told_once_a_minute),
		cmocka_unit_test(psn__is_told_with_its_generation),
		cmocka_unit_test(frame__that_acknowledges_what_was_never_sent_changes_nothing),
		cmocka_unit_test(acknowledgements__that_contradict_each_other_do_no_harm),
		cmocka_unit_test(acknowledgements__of_a_liar_end_every_message),
		cmocka_unit_test(frames__of_random_bytes_change_nothing),
		cmocka_unit_test(frames__mutated_do_no_harm),
		cmocka_unit_test(flood__from_strangers_is_bounded),
		cmocka_unit_test(peers__one_hundred_thousand_fit_in_50_megabytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
