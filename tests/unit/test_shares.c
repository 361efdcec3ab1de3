/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shares.c - what peers that are silent, or strangers, may hold of what all share.
 *
 * Covers: lib/transport/peer.c, lib/transport/echo.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_mbuf.h>

#include <transport/address.h>
#include <transport/internal.h>

#include "network.h"

#define MBUFS    4000u
#define SILENT   60u
#define LIVE     1u /* the other nodes from here on fall silent */
#define LARGE    (1u << 20)
#define MESSAGES 200u

static void silent_cut(struct network *network, bool cut)
{
	unsigned i;

	for (i = LIVE + 1; i < network->count; i++)
		network->nodes[i].cut = cut;
}

static void silent_send(struct network *network, uint64_t length)
{
	unsigned i;

	for (i = LIVE + 1; i < network->count; i++)
		network_send(network, 0, i, length);
}

/* While the others are silent, all that is sent to the live node arrives; when they speak again, so
 * does what was sent to them. */
static void live_and_silent(struct network *network)
{
	struct node *node = &network->nodes[0];
	uint64_t done = node->done;
	unsigned i;

	silent_cut(network, true);
	network_pass(network, SECOND);
	assert_int_equal(network->nodes[0].transport->in_flight, 0);
	assert_true(network->nodes[0].transport->messages >= SILENT);
	for (i = 0; i < MESSAGES; i++)
		network_send(network, 0, LIVE, 1 + i * 1000);
	network_pass(network, SECOND);
	assert_int_equal(node->done, done + MESSAGES);
	silent_cut(network, false);
	assert_true(network_run(network, 30 * SECOND));
	network_check(network);
}

static struct network *acquaintances(void)
{
	struct network *network = network_create(SILENT + 2, network_seed(), NETWORK_FRAME, MBUFS);
	unsigned i;

	network_start(network);
	for (i = 1; i < network->count; i++)
		network_send(network, i, 0, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

static void peers__that_never_acknowledged_hold_no_frames(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	silent_cut(network, true);
	silent_send(network, LARGE);
	live_and_silent(network);
	network_destroy(network);
}

/* Each has a window full of frames, some of many small messages, when it falls silent. */
static void peers__that_fall_silent_hold_no_frames(void **state)
{
	struct network *network = acquaintances();
	unsigned i;

	(void)state;
	silent_send(network, 8);
	assert_true(network_run(network, SECOND));
	for (i = 0; i < 200; i++)
		silent_send(network, i % 40);
	network_pass(network, 10 * MICROSECOND);
	silent_send(network, LARGE / 4);
	silent_send(network, 3000);
	network_pass(network, 100 * MICROSECOND);
	assert_true(network->nodes[0].transport->in_flight > SILENT);
	live_and_silent(network);
	network_destroy(network);
}

/* Of what all may queue, a peer that does not acknowledge has its share before it has all; the
 * others have theirs left. */
static void peers__that_many_messages_wait_for_have_their_share(void **state)
{
	struct network *network = acquaintances();
	const struct transport *transport = network->nodes[0].transport;
	const struct process silent = network->nodes[LIVE + 1].self;
	unsigned i;

	(void)state;
	network->nodes[LIVE + 1].cut = true;
	for (i = 0; i < 100; i++)
		network_send(network, 0, LIVE + 1, 1000);
	network_pass(network, SECOND);
	assert_true(transport_has_share(transport, silent, 201));
	assert_false(transport_has_share(transport, silent, 200));
	assert_true(transport_has_share(transport, network->nodes[LIVE].self, 1));
	assert_true(transport_has_share(transport, (struct process){1, 1}, 1));
	network->nodes[LIVE + 1].cut = false;
	assert_true(network_run(network, 30 * SECOND));
	network_destroy(network);
}

/* Nodes whose next frame to node 0 is lost, however often it is sent again. */
static unsigned gaps;
static uint32_t gap_psns[NETWORK_NODES];

static bool gap_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	frame_recall(bytes + network->nodes[0].transport->encapsulation.bytes, &frame);
	return to != 0 || from <= LIVE || from > LIVE + gaps || frame.type != FRAME_DATA ||
	       frame.psn != gap_psns[from];
}

static uint64_t held_of(const struct network *network, unsigned node)
{
	const struct reorder *reorder = network_peer(network, 0, node)->reorder;

	return reorder ? reorder->count : 0;
}

/* A few peers fill what they may with frames that wait for one that never comes; one more finds
 * room. */
static void peers__that_leave_gaps_leave_room_to_others(void **state)
{
	struct network *network = acquaintances();
	struct process node0 = network->nodes[0].self;
	unsigned i, j;

	(void)state;
	gaps = 4;
	for (i = LIVE + 1; i <= LIVE + gaps + 1; i++)
		gap_psns[i] = peer_table_find(&network->nodes[i].transport->peers, node0)->tx_next;
	network->filter = gap_filter;
	for (i = LIVE + 1; i <= LIVE + gaps; i++)
		for (j = 0; j < 400; j++)
			network_send(network, i, 0, 1200);
	network_pass(network, SECOND);
	assert_true(network->nodes[0].transport->held >= network->nodes[0].transport->held_max / 2);
	assert_true(network->nodes[0].transport->held < network->nodes[0].transport->held_max);
	gaps++;
	for (j = 0; j < 40; j++)
		network_send(network, LIVE + gaps, 0, 1200);
	network_pass(network, SECOND);
	assert_true(held_of(network, LIVE + gaps) > 0);
	network->filter = NULL;
	assert_true(network_run(network, 30 * SECOND));
	network_check(network);
	network_destroy(network);
}

static struct process stranger(const struct network *network, uint32_t number)
{
	return (struct process){network->nodes[0].self.nid + 1 + NETWORK_NODES, number};
}

/* The first frame of a stream to node 0. */
static void first_inject(struct network *network, uint32_t number, uint32_t first)
{
	struct encapsulation_options options = network->options.encapsulation;
	static const uint8_t own[FRAME_ADDRESS_BYTES] = {2, 9};
	struct node *node = &network->nodes[0];
	const struct record record = {.kind = RECORD_STOP};
	struct frame frame = {
		.type = FRAME_DATA,
		.flags = FRAME_FIRST | FRAME_FULL_SUM,
		.length = FRAME_HEADER_BYTES + RECORD_HEADER_BYTES,
		.destination_nid = node->self.nid,
		.destination_pid = node->self.pid,
		.source_nid = stranger(network, number).nid,
		.source_pid = number,
		.source_incarnation = 1,
		.destination_incarnation = node->incarnation,
		.psn = first,
		.first = first,
		.records = 1,
	};
	uint8_t room[NETWORK_FRAME];
	struct rte_mbuf mbuf = {.buf_addr = room, .nb_segs = 1};
	struct encapsulation encapsulation;

	options.address = frame.source_nid;
	encapsulation_init(&encapsulation, &options, own, false);
	record_write(room + encapsulation.bytes + FRAME_HEADER_BYTES, &record);
	frame_encode(&frame, room + encapsulation.bytes);
	mbuf.pkt_len = encapsulation.bytes + frame.length;
	mbuf.data_len = (uint16_t)mbuf.pkt_len;
	encapsulation_write(&encapsulation, &mbuf, node->port.address, &frame);
	network_inject(network, 0, room, mbuf.pkt_len);
}

/* From a process that never asked for the psn to begin with. */
static void forged_inject(struct network *network, uint32_t number)
{
	first_inject(network, number, number);
}

/* The answer of node 0 to a stranger's question. */
static uint32_t stranger_told(const struct network *network, uint32_t number)
{
	return address_first(network->nodes[0].transport, stranger(network, number), 1);
}

/* Strangers who ask first, and then say one thing. */
static uint32_t strangers_speak(struct network *network, uint32_t number, uint64_t ns)
{
	for (uint64_t end = network->now + ns; network->now < end; number++) {
		first_inject(network, number, stranger_told(network, number));
		network_pass(network, 100 * MICROSECOND);
	}
	return number;
}

static bool knows(const struct network *network, struct process process)
{
	return peer_table_find(&network->nodes[0].transport->peers, process) != NULL;
}

/* One host answers as more processes than there is room for: they are forgotten, one for the other,
 * but not whom this process wanted. */
static void newcomer__finds_room_among_strangers_who_answer(void **state)
{
	struct network *network = network_create(3, network_seed(), NETWORK_FRAME, MBUFS);
	uint32_t most = network->options.peers_max - network->options.peers_max / 4;
	uint32_t number, first;

	(void)state;
	network->options.secret = (struct secret){.key = {network_seed(), 1}};
	node_start(network, 0, 1);
	node_start(network, 2, 1);
	network_send(network, 0, 2, 8);
	assert_true(network_run(network, SECOND));
	first = stranger_told(network, 0);
	first_inject(network, 0, first);
	number = strangers_speak(network, 1, 500 * MILLISECOND);
	assert_true(number > 2 * most);
	assert_int_equal(network->nodes[0].transport->peers.count, most);
	node_start(network, 1, 1);
	network_send(network, 1, 0, 8);
	number = strangers_speak(network, number, SECOND);
	assert_int_equal(network->nodes[1].done, 1);
	assert_true(knows(network, network->nodes[2].self));
	/* Its messages would be delivered again. */
	assert_false(knows(network, stranger(network, 0)));
	first_inject(network, 0, first);
	network_pass(network, MILLISECOND);
	assert_false(knows(network, stranger(network, 0)));
	/* A process that was forgotten meanwhile learns of it, and goes on. */
	strangers_speak(network, number, SECOND);
	assert_false(knows(network, network->nodes[1].self));
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network->nodes[0].lost_ok = network->nodes[1].failed[TRANSPORT_RESTARTED];
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].done + network->nodes[1].failed[TRANSPORT_RESTARTED], 3);
	assert_true(network->nodes[1].done >= 2);
	network_destroy(network);
}

static void nodes_greet(struct network *network, unsigned from, unsigned count, bool answered)
{
	for (unsigned i = from; i < from + count; i++) {
		node_start(network, i, 1);
		network_send(network, i, 0, 8);
		assert_true(network_run(network, SECOND));
		if (answered)
			network_send(network, 0, i, 8);
		assert_true(network_run(network, SECOND));
		network_pass(network, 30 * MILLISECOND);
	}
}

/* The next look for a peer to forget sees the node's. */
static void look_begin(struct network *network, unsigned node)
{
	struct peer_table *peers = &network->nodes[0].transport->peers;
	const struct peer *peer = peer_table_find(peers, network->nodes[node].self);

	peers->hand = 0;
	while (peers->cells[peers->hand].peer != peer)
		peers->hand++;
	peers->hand -= 32;
}

/* More processes than there is room for have sent a message and been sent one, all within the time
 * in which a stream is remembered. Those that were sent none are forgotten first. */
static void newcomer__finds_room_among_strangers_who_were_answered(void **state)
{
	struct network *network = network_create(SILENT, network_seed(), NETWORK_FRAME, MBUFS);
	struct peer *kept;
	unsigned most = 24, i;

	(void)state;
	network->options.secret = (struct secret){.key = {network_seed(), 1}};
	network->options.peers_max = most * 4 / 3;
	node_start(network, 0, 1);
	nodes_greet(network, 1, most - 3, true);
	nodes_greet(network, most - 2, 2, false);
	assert_int_equal(network->nodes[0].transport->peers.count, most);
	for (i = most - 2; i < most; i++) {
		look_begin(network, i);
		nodes_greet(network, i + 2, 1, true);
		assert_false(knows(network, network->nodes[i].self));
	}
	assert_int_equal(network->nodes[0].transport->peers.count, most);
	/* The number of the stream to it is about to be that of new peers' first streams. */
	assert_true(knows(network, network->nodes[1].self));
	kept = peer_table_find(&network->nodes[0].transport->peers, network->nodes[1].self);
	kept->tx_stream = (uint16_t)(kept->tx_stream + 20000);
	nodes_greet(network, most + 2, 20, true);
	assert_int_equal(network->nodes[0].transport->peers.count, most);
	assert_true(knows(network, network->nodes[1].self));
	assert_false(knows(network, network->nodes[2].self));
	/* Data for processes that were forgotten, and may remember a stream, is new to them. */
	for (i = 2; network->nodes[0].transport->peers.count < network->options.peers_max; i++)
		if (!knows(network, network->nodes[i].self))
			network_send(network, 0, i, 8);
	assert_true(i < most);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* Forged frames, more than the table has room for, make no peers; so a newcomer finds room among
 * them. */
static void newcomer__finds_room_in_a_flood(void **state)
{
	struct network *network = network_create(2, network_seed(), NETWORK_FRAME, MBUFS);
	uint32_t forged;

	(void)state;
	network->options.secret = (struct secret){.key = {network_seed(), 1}};
	node_start(network, 0, 1);
	for (forged = 0; forged < 3 * network->options.peers_max; forged++) {
		forged_inject(network, forged);
		network_step(network);
	}
	assert_int_equal(network->nodes[0].transport->peers.count, 1);
	node_start(network, 1, 1);
	network_send(network, 1, 0, 8);
	for (uint64_t end = network->now + SECOND; network->now < end; forged++) {
		forged_inject(network, forged);
		network_pass(network, 100 * MICROSECOND);
	}
	assert_int_equal(network->nodes[1].done, 1);
	assert_int_equal(network->nodes[0].transport->peers.count, 2);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers__that_never_acknowledged_hold_no_frames),
		cmocka_unit_test(peers__that_fall_silent_hold_no_frames),
		cmocka_unit_test(peers__that_many_messages_wait_for_have_their_share),
		cmocka_unit_test(peers__that_leave_gaps_leave_room_to_others),
		cmocka_unit_test(newcomer__finds_room_in_a_flood),
		cmocka_unit_test(newcomer__finds_room_among_strangers_who_answer),
		cmocka_unit_test(newcomer__finds_room_among_strangers_who_were_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
