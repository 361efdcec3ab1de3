/* SPDX-License-Identifier: BSD-3-Clause */
/* test_transport.c - whole transports over a faulty network, against a model of what must arrive
 * (network.h checks T1 to T3 as it goes). A run depends on its seed alone; TEST_SEED sets the first
 * one.
 *
 * Covers: lib/transport/transport.c, lib/transport/acknowledgement.c, lib/transport/assembly.c,
 * lib/transport/congestion.c, lib/transport/flight.c, lib/transport/incoming.c,
 * lib/transport/zcopy.c, lib/transport/outbox.c, lib/transport/outline.c,
 * lib/transport/recovery.c, lib/transport/timers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <rte_common.h>

#include <transport/congestion.h>
#include <transport/internal.h>
#include <transport/peer.h>

#include "network.h"
#include "stranger.h"

static uint64_t size_random(struct network *network)
{
	switch (network_random(network) % 8) {
	case 0:
		return 0;
	case 1:
		return 1 + network_random(network) % 16;
	case 2:
		return 1300 + network_random(network) % 300;
	case 3:
		return network_random(network) % 100000;
	default:
		return network_random(network) % 2000;
	}
}

static void send__one_message_arrives(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_int_equal(network->nodes[0].counters.asks_sent, 1);
	assert_int_equal(network->nodes[0].counters.retransmits, 0);
	network_destroy(network);
}

static void push__sends_what_is_ready_and_leaves_acknowledgements_and_timers(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0], *other = &network->nodes[1];
	uint64_t acks, sent;

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_pass(network, MILLISECOND); /* the last acknowledgement arrives */
	acks = other->counters.acks_sent;
	sent = node->counters.frames_sent;
	assert_false(transport_urgent(node->transport));
	assert_true(transport_push(node->transport));
	assert_int_equal(node->counters.frames_sent, sent);
	network_send(network, 0, 1, 8);
	assert_true(transport_urgent(node->transport));
	assert_true(transport_push(node->transport));
	assert_int_equal(node->counters.frames_sent, sent + 1);
	assert_false(transport_urgent(node->transport));
	while (other->head == other->tail)
		network_step(network);
	transport_receive(other->transport);
	transport_process(other->transport);
	assert_int_equal(other->ended, 2);
	/* It owes an acknowledgement, which may wait; when its time has come, it still waits for a
	 * turn. */
	assert_false(transport_urgent(other->transport));
	network->now += MILLISECOND;
	assert_true(transport_push(other->transport));
	assert_int_equal(other->counters.acks_sent, acks);
	transport_receive(other->transport);
	transport_transmit(other->transport);
	assert_int_equal(other->counters.acks_sent, acks + 1);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void send__an_empty_message_ends_at_once(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 0);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void send__a_large_message_arrives_whole(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	network_send(network, 0, 1, NETWORK_PATTERN);
	assert_true(network_run(network, 10 * SECOND));
	network_check(network);
	assert_int_equal(network->nodes[1].bytes, NETWORK_PATTERN);
	assert_int_equal(network->nodes[0].counters.retransmits, 0);
	network_destroy(network);
}

/* Large frames come in bursts so short that what a process sends to itself could fill them all. */
static void send__to_itself_leaves_the_port_its_turn(void **state)
{
	struct network *network = network_create(2, network_seed(), 9014, NETWORK_MBUFS);
	const struct node *busy = &network->nodes[0];
	unsigned step;

	(void)state;
	network_start(network);
	for (step = 0; step < 1000 && network->nodes[1].done == 0; step++) {
		while (busy->sent[0] < busy->done + 4)
			network_send(network, 0, 0, 1u << 20);
		if (step == 100)
			network_send(network, 1, 0, 8);
		network_step(network);
	}
	assert_int_equal(network->nodes[1].done, 1);
	assert_true(network_run(network, SECOND));
	network_destroy(network);
}

static void send__to_itself_never_touches_the_port(void **state)
{
	struct network *network = network_standard(1, network_seed());
	unsigned i;

	(void)state;
	network_start(network);
	for (i = 0; i < 300; i++)
		network_send(network, 0, 0, size_random(network));
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_int_equal(network->frames, 0);
	network_destroy(network);
}

static void send__waiting_messages_share_frames(void **state)
{
	struct network *network = network_standard(2, network_seed());
	unsigned i;

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->frames = 0;
	for (i = 0; i < 100; i++)
		network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_true(network->frames < 15);
	network_destroy(network);
}

#define GATHERED_LEAST 32 /* messages of 8 bytes that fill a frame, whatever stands before it */
#define GATHERED_MOST  40

/* However far the congestion window has grown. What fills a frame does not wait for it. */
static void burst_check(uint64_t delay, unsigned most)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t before, frames;
	unsigned i;

	network->faults.delay = delay;
	network_start(network);
	for (i = 0; i < 4; i++) {
		network_send(network, 0, 1, 500000);
		assert_true(network_run(network, SECOND));
	}
	for (i = 0; i < 50; i++) {
		network_send(network, 0, 1, 8);
		assert_true(network_run(network, SECOND));
	}
	network_pass(network, MILLISECOND);
	before = node->counters.frames_sent;
	for (i = 0; i < 100; i++) {
		network_send(network, 0, 1, 8);
		/* The first that cannot leave finds out that the window is closed. */
		assert_int_equal(transport_push(node->transport), i != most);
		frames = node->counters.frames_sent - before;
		if (i < most) {
			assert_int_equal(frames, i + 1);
		} else {
			assert_true(frames >= most + (i - most) / GATHERED_MOST);
			assert_true(frames <= most + (i - most) / GATHERED_LEAST);
		}
	}
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_true(node->counters.frames_sent - before <= most + 8);
	network_pass(network, MILLISECOND);
	before = node->counters.frames_sent;
	for (i = 0; i < 2 * SMALL_FAR; i++) {
		network_send(network, 0, 1, SMALL_BYTES);
		assert_true(transport_push(node->transport));
	}
	assert_int_equal(node->counters.frames_sent - before, 2 * SMALL_FAR);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void send__a_burst_of_small_messages_leaves_in_few_frames(void **state)
{
	(void)state;
	burst_check(20 * MICROSECOND, SMALL_FAR);
}

static void send__a_burst_of_small_messages_to_a_near_peer_leaves_in_fewer(void **state)
{
	(void)state;
	burst_check(MICROSECOND, SMALL_NEAR);
}

static void send__a_short_message_overtakes_the_rest_of_a_long_one(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[1];

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 2000000);
	network_pass(network, 30 * MICROSECOND);
	network_send(network, 0, 1, 8);
	while (node->ended == 0)
		network_step(network);
	assert_int_equal(node->bytes, 8);
	assert_true(network_run(network, 10 * SECOND));
	network_check(network);
	network_destroy(network);
}

/* A message is under way, and more than 2^31 others begin meanwhile. */
static void send__a_message_that_is_under_way_outlives_two_billion_others(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[1];

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 2000000);
	while (node->begun == 0)
		network_step(network);
	((struct peer *)(uintptr_t)network_peer(network, 0, 1))->tx_message += 1u << 31;
	((struct peer *)(uintptr_t)network_peer(network, 1, 0))->rx_message += 1u << 31;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 10 * SECOND));
	network_check(network);
	network_destroy(network);
}

/* Bursts of messages of all sizes among all nodes, which all arrive. */
static void traffic_run(struct network *network, unsigned messages)
{
	unsigned nodes = network->count;
	unsigned sent = 0;

	network_start(network);
	while (sent < messages) {
		unsigned burst = (unsigned)(network_random(network) % 8);

		while (burst-- > 0 && sent < messages) {
			unsigned from = (unsigned)(network_random(network) % nodes);
			unsigned to = (unsigned)(network_random(network) % nodes);

			network_send(network, from, to, size_random(network));
			sent++;
		}
		network_pass(network, network_random(network) % (50 * MICROSECOND));
	}
	assert_true(network_run(network, 100 * SECOND));
	network_check(network);
}

static struct network *faults_network(
	uint64_t seed, uint32_t first_psn, struct faults faults, unsigned nodes)
{
	static const uint32_t sizes[] = {NETWORK_FRAME, 270, 9014, 320};
	uint32_t size = sizes[seed % 4];
	struct network *network =
		network_create(nodes, seed, size, size > 4000 ? 8000 : NETWORK_MBUFS);

	printf("seed %llu\n", (unsigned long long)seed);
	network->faults = faults;
	network->options.first_psn = first_psn;
	return network;
}

static void faults_run(
	uint64_t seed, uint32_t first_psn, struct faults faults, unsigned nodes, unsigned messages)
{
	struct network *network = faults_network(seed, first_psn, faults, nodes);

	traffic_run(network, messages);
	network_check_faults(network);
	network_destroy(network);
}

static void faults__loss_duplication_reordering_and_corruption_lose_nothing(void **state)
{
	struct faults faults = {
		.loss = 0.05,
		.duplicate = 0.02,
		.reorder = 0.05,
		.reorder_by = 100 * MICROSECOND,
		.corrupt = 0.01,
		.delay = 5 * MICROSECOND,
	};
	uint64_t seed = network_seed();
	unsigned i;

	(void)state;
	for (i = 0; i < 10; i++)
		faults_run(seed + i, UINT32_MAX - 200, faults, 4, 500);
}

/* Two frames of each forty, one after the other. */
static bool pairs_lost(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)to;
	(void)bytes;
	return from != 0 || network->frames % 40 < 38;
}

/* The smallest window, frames, that losses leave a sender of bulk that had a large one. */
static uint32_t window_under_loss(bool lone)
{
	struct network *network = network_standard(2, network_seed());
	uint32_t least = UINT32_MAX;
	const struct peer *peer;

	network->faults.delay = MICROSECOND;
	for (unsigned i = 0; i < 2; i++)
		network->nodes[i].port.lone = lone;
	network_start(network);
	for (unsigned i = 0; i < 4; i++) {
		network_send(network, 0, 1, 500000);
		assert_true(network_run(network, SECOND));
	}
	peer = peer_table_find(&network->nodes[0].transport->peers, network->nodes[1].self);
	assert_true(peer->window > 64 * WINDOW_ONE);
	network->filter = pairs_lost;
	for (unsigned i = 0; i < 8; i++)
		network_send(network, 0, 1, 500000);
	while (!network_settled(network)) {
		network_step(network);
		least = RTE_MIN(least, peer->window / WINDOW_ONE);
	}
	network_check(network);
	assert_true(network->nodes[0].counters.retransmits > 100);
	assert_int_equal(network->nodes[0].counters.timeouts, 0);
	network_destroy(network);
	return least;
}

static void loss__leaves_a_window_that_keeps_both_ends_at_work_within_a_host(void **state)
{
	(void)state;
	assert_true(window_under_loss(false) < 32);
	assert_int_equal(window_under_loss(true), 32);
}

static unsigned frames_of_first;

static bool first_lost(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network, (void)to, (void)bytes;
	return from != 0 || frames_of_first++ != 0;
}

/* A message has ended when its frame is known to have arrived, whatever was lost before. */
static void loss__of_a_frame_delays_no_message_of_a_later_one(void **state)
{
	struct network *network = network_standard(2, network_seed());
	const struct node *node = &network->nodes[0];
	uint64_t before;

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	before = node->done;
	frames_of_first = 0;
	network->filter = first_lost;
	for (unsigned i = 0; i < 2; i++) {
		network_send(network, 0, 1, 8);
		transport_push(node->transport);
	}
	while (node->done == before)
		network_step(network);
	assert_int_equal(node->done, before + 1);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void faults__half_of_all_frames_lost_lose_nothing(void **state)
{
	struct faults faults = {.loss = 0.5, .delay = 5 * MICROSECOND};

	(void)state;
	faults_run(network_seed(), UINT32_MAX - 10, faults, 2, 100);
}

static void faults__slow_links_and_stalls_lose_nothing(void **state)
{
	struct faults faults = {
		.loss = 0.001,
		.delay = 2 * MICROSECOND,
		.rate = 1.25,
		.stall = 3 * MILLISECOND,
	};

	(void)state;
	faults_run(network_seed(), 0, faults, 8, 2000);
}

/* Where threads take turns at a transport, each on its own CPU. */
static void faults__clocks_that_are_a_hair_apart_lose_nothing(void **state)
{
	struct faults faults = {
		.loss = 0.01,
		.delay = 2 * MICROSECOND,
		.behind = 2 * MICROSECOND,
	};
	uint64_t seed = network_seed();
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		faults_run(seed + i, 0, faults, 4, 500);
}

static void send__the_same_seed_gives_the_same_run(void **state)
{
	uint64_t frames[2];
	uint64_t time[2];
	unsigned i;
	unsigned n;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct network *network = network_standard(3, network_seed());

		network->faults.loss = 0.1;
		network_start(network);
		for (n = 0; n < 200; n++)
			network_send(network, n % 3, (n + 1) % 3, size_random(network));
		assert_true(network_run(network, 100 * SECOND));
		frames[i] = network->frames;
		time[i] = network->now;
		network_destroy(network);
	}
	assert_int_equal(frames[0], frames[1]);
	assert_int_equal(time[0], time[1]);
}

/* As a device without its other end: what waits costs next to no turns, and leaves soon after there
 * is room. */
static void deadline__of_a_port_that_takes_nothing_is_ever_later(void **state)
{
	struct network *network = network_standard(2, network_seed());
	unsigned turns = 0;
	uint64_t opened;

	(void)state;
	network_start(network);
	assert_true(network_run(network, SECOND));
	network->nodes[0].full = true;
	network_send(network, 0, 1, 100);
	for (opened = network->now + 10 * SECOND; network->now < opened; turns++)
		network_step(network);
	assert_in_range(turns, 1, 1000);
	network->nodes[0].full = false;
	assert_true(network_run(network, 2 * SECOND));
	network_check(network);
	network_destroy(network);
}

static void transmit__a_port_that_takes_little_loses_nothing(void **state)
{
	struct network *network = network_standard(2, network_seed());
	unsigned i;

	(void)state;
	network_start(network);
	network->nodes[0].accept = 2;
	network->nodes[1].accept = 1;
	for (i = 0; i < 200; i++)
		network_send(network, i % 2, 1 - i % 2, size_random(network));
	assert_true(network_run(network, 100 * SECOND));
	network_check(network);
	assert_true(network->nodes[0].counters.port_full > 0);
	network_destroy(network);
}

/* Frames with data fill the outbox while the port takes none, and the one question that comes
 * meanwhile is answered all the same. */
static void transmit__a_full_outbox_has_room_for_answers(void **state)
{
	const unsigned nodes = 20, asker = nodes - 1;
	struct network *network = network_standard(nodes, network_seed());
	struct transport *transport;

	(void)state;
	network_start(network);
	for (unsigned i = 1; i < asker; i++)
		network_send(network, 0, i, 100);
	assert_true(network_run(network, SECOND));
	network->nodes[0].full = true;
	for (unsigned i = 1; i < asker; i++)
		network_send(network, 0, i, 50000);
	network_pass(network, 100 * MICROSECOND);
	transport = network->nodes[0].transport;
	assert_in_range(transport->outbox_count, 50, OUTBOX_FRAMES);
	network_send(network, asker, 0, 100);
	network_pass(network, 200 * MICROSECOND);
	/* In UDP it first asks for a MAC address, whose answer waits as well. */
	assert_int_equal(network->nodes[asker].counters.asks_sent, !network_is_udp());
	assert_int_equal(network->nodes[0].counters.asks_received, !network_is_udp());
	network->nodes[0].full = false;
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[asker].counters.asks_sent, 1);
	network_check(network);
	network_destroy(network);
}

/* Hundreds of processes that do not answer do not keep a turn from ending: frames of others wait
 * for that. */
static void turn__asks_some_of_many_silent_processes(void **state)
{
	static struct ping pings[300];
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t before, all = 0;

	(void)state;
	if (network_is_udp()) { /* the node is asked for by ARP */
		network_destroy(network);
		skip();
	}
	network_start(network);
	for (unsigned i = 0; i < 300; i++) {
		pings[i] = (struct ping){.to = {network->nodes[1].self.nid, 1000 + i},
			.size = 100,
			.timeout = 60 * SECOND};
		transport_ping(node->transport, &pings[i]);
	}
	network_pass(network, 100 * MILLISECOND);
	network->now += SECOND; /* the core was away */
	for (unsigned turn = 0; turn < 5; turn++, all += node->counters.asks_sent - before) {
		before = node->counters.asks_sent;
		(void)transport_receive(node->transport);
		(void)transport_transmit(node->transport);
		assert_in_range(node->counters.asks_sent - before, 0, 64);
	}
	assert_int_equal(all, 300);
	network_destroy(network);
}

static void pool__when_it_is_small_everything_still_arrives(void **state)
{
	struct network *network = network_create(4, network_seed(), NETWORK_FRAME, 96);
	unsigned i;

	(void)state;
	network->faults.loss = 0.02;
	for (i = 0; i < 4; i++)
		network->nodes[i].port.receive_frames = 8;
	network_start(network);
	for (i = 0; i < 400; i++)
		network_send(network, i % 4, (i + 1 + i / 4 % 3) % 4, size_random(network));
	assert_true(network_run(network, 100 * SECOND));
	network_check(network);
	network_destroy(network);
}

static void gather_set(struct network *network, bool gathers)
{
	for (unsigned i = 0; i < network->count; i++)
		network->nodes[i].port.gathers = gathers;
}

static void gather__large_messages_are_sent_from_where_they_lie(void **state)
{
	struct network *network = network_standard(2, network_seed());
	const struct transport_counters *counters = &network->nodes[0].counters;

	(void)state;
	gather_set(network, true);
	network->options.full_checksum = false;
	network_start(network);
	network_send(network, 0, 1, 1000000);
	network_send(network, 0, 1, 999999);
	assert_true(network_run(network, SECOND));
	network_check(network);
	/* All but the last, odd part. */
	assert_true(counters->frames_gathered > 2 * (1000000 / NETWORK_FRAME));
	assert_true(counters->frames_gathered < counters->frames_sent);
	network_destroy(network);
}

/* Nor would it notice: checksums are of headers alone. */
static void gather__a_port_that_is_not_known_to_gather_gets_frames_in_one_piece(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	gather_set(network, false);
	network->options.full_checksum = false;
	network->nodes[0].garbles = true;
	network_start(network);
	network_send(network, 0, 0, 1000000);
	network_send(network, 0, 1, 1000000);
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_int_equal(network->nodes[0].counters.frames_gathered, 0);
	network_destroy(network);
}

/* Memory in pieces, at either end, under every fault. gathers: what lies in one piece is sent from
 * there. */
static void scattered_run(uint64_t seed, bool gathers)
{
	static const struct faults faults = {
		.loss = 0.05,
		.duplicate = 0.02,
		.reorder = 0.05,
		.reorder_by = 100 * MICROSECOND,
		.delay = 5 * MICROSECOND,
	};
	struct network *network = faults_network(seed, UINT32_MAX - 200, faults, 3);

	network->scattered = true;
	network->options.full_checksum = !gathers;
	if (gathers)
		gather_set(network, true);
	traffic_run(network, 300);
	if (gathers)
		assert_true(network->nodes[0].counters.frames_gathered > 0);
	network_destroy(network);
}

static void scattered__memory_in_pieces_arrives_as_memory_in_one(void **state)
{
	uint64_t seed = network_seed();

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		scattered_run(seed + i, i / 4 != 0);
}

/* What is beyond counts for nothing: with frames lost, the last of what is wanted often comes
 * before the rest of it. */
static void limit__ends_a_message_when_all_that_is_wanted_is_here(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[1];

	(void)state;
	network->faults.loss = 0.2;
	network_start(network);
	for (unsigned i = 0; i < 100; i++) {
		node->limit = 1 + network_random(network) % 20000;
		network_send(network, 0, 1, 20000);
		assert_true(network_run(network, 10 * SECOND));
	}
	network_pass(network, SECOND);
	assert_int_equal(node->ended, 100);
	assert_int_equal(network->nodes[0].done, 100);
	network_destroy(network);
}

static void stop__spares_the_rest_of_a_message(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *b = &network->nodes[1];

	(void)state;
	b->discard = true;
	b->stop = true;
	network_start(network);
	network_send(network, 0, 1, NETWORK_PATTERN);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	assert_int_equal(b->begun, 2);
	assert_true(network->nodes[0].counters.bytes_sent < NETWORK_PATTERN / 4);
	network_destroy(network);
}

static void discard__without_a_stop_takes_it_all(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network->nodes[1].discard = true;
	network_start(network);
	network_send(network, 0, 1, 300000);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	assert_int_equal(network->nodes[0].counters.bytes_sent, 300000);
	network_destroy(network);
}

static bool is_not_of_16(const struct message *message)
{
	return message->memory.length != 16;
}

static void await__counts_what_was_sent_until_then(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct transport_awaited awaited;
	struct transport *transport;

	(void)state;
	network_start(network);
	transport = network->nodes[0].transport;
	for (unsigned i = 0; i < 2; i++) {
		network_send(network, 0, 1, 16);
		network_send(network, 0, 1, 8);
		network_send(network, 0, 1, 300000);
		assert_false(transport_awaits(transport));
		transport_await(transport, is_not_of_16);
		network_send(network, 0, 1, 8);
		assert_true(transport_awaits(transport));
		transport_awaited(transport, &awaited);
		assert_int_equal(awaited.left, 2);
		assert_int_equal(awaited.known, i == 1);
		assert_true(network_run(network, SECOND));
		assert_false(transport_awaits(transport));
		transport_awaited(transport, &awaited);
		assert_int_equal(awaited.left + awaited.lost, 0);
	}
	network_destroy(network);
}

/* Lets data of node 0 through after the fourth timeout only. */
static bool unlucky_filter(
	struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)to;
	frame_recall(
		bytes + encapsulation_skip(&network->nodes[from].transport->encapsulation, bytes),
		&frame);
	return from != 0 || frame.type != FRAME_DATA || network->nodes[0].counters.timeouts > 3;
}

static void timeout__is_short_again_when_the_peer_answers_a_question(void **state)
{
	struct network *network = network_standard(2, network_seed());
	uint64_t begin;

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->filter = unlucky_filter;
	begin = network->now;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_check(network);
	/* Lost: the frame, a probe and three repetitions, after 1, 3 and 7 ms. The last one goes
	 * with a question, whose answer makes the next timeout 1 ms instead of 8 ms. */
	assert_int_equal(network->filtered, 5);
	assert_int_equal(network->nodes[0].counters.timeouts, 4);
	assert_int_equal(network->nodes[0].counters.retransmits_probe, 1);
	assert_int_equal(network->nodes[0].counters.retransmits_timeout, 4);
	assert_int_equal(network->nodes[0].counters.retransmits, 5);
	assert_int_equal(network_peer(network, 0, 1)->retransmits, 5);
	assert_in_range(network->now - begin, 7 * MILLISECOND, 12 * MILLISECOND);
	network_destroy(network);
}

/* Loses the second frame of data of node 0 and its first repetition, and what node 1 sends until
 * then. */
static bool halved_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	static unsigned count;
	struct frame frame;

	(void)to;
	if (from != 0)
		return network->nodes[0].counters.retransmits_probe != 0;
	frame_recall(
		bytes + encapsulation_skip(&network->nodes[from].transport->encapsulation, bytes),
		&frame);
	count += frame.type == FRAME_DATA;
	return frame.type != FRAME_DATA || count == 1 || count > 3;
}

static void probe__follows_a_probe_after_which_a_part_was_acknowledged(void **state)
{
	struct network *network = network_standard(2, network_seed());
	const struct transport_counters *counters = &network->nodes[0].counters;

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->filter = halved_filter;
	network_send(network, 0, 1, 8);
	network_pass(network, 2 * MICROSECOND);
	network_send(network, 0, 1, 8);
	network_pass(network, 200 * MICROSECOND);
	assert_int_equal(counters->retransmits_probe, 1);
	network_send(network, 1, 0, 8); /* acknowledges the first one */
	network_pass(network, 200 * MICROSECOND);
	assert_int_equal(counters->retransmits_probe, 2);
	assert_true(network_run(network, SECOND));
	network_check(network);
	assert_int_equal(counters->timeouts, 0);
	network_destroy(network);
}

static void close__ends_every_message(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *a = &network->nodes[0];
	unsigned i;

	(void)state;
	network_start(network);
	for (i = 0; i < 50; i++)
		network_send(network, 0, 1, 10000);
	network_pass(network, 60 * MICROSECOND);
	node_kill(network, 0);
	assert_int_equal(a->done + a->failed[TRANSPORT_SHUTDOWN], 50);
	network_destroy(network);
}

/* A life: random kills and restarts under random faults; every message is done once, each begun one
 * ended once (the model frees them; a leak or a second end is found by the sanitizer and by the
 * counts). */
static void chaos_run(uint64_t seed)
{
	struct network *network = network_standard(5, seed);
	uint32_t life[5] = {1, 1, 1, 1, 1};
	uint64_t sent = 0;
	uint64_t done = 0;
	unsigned i;

	network->faults = (struct faults){
		.loss = 0.02,
		.duplicate = 0.02,
		.reorder = 0.05,
		.reorder_by = 200 * MICROSECOND,
		.delay = 5 * MICROSECOND,
	};
	network->options.first_psn = (uint32_t)network_random(network);
	for (i = 0; i < 5; i++)
		network->nodes[i].lost_ok = 1;
	network_start(network);
	for (i = 0; i < 1500; i++) {
		unsigned from = (unsigned)(network_random(network) % 5);
		unsigned to = (unsigned)(network_random(network) % 5);

		if (network_random(network) % 50 == 0) {
			node_kill(network, to);
			network_pass(network, network_random(network) % (5 * MILLISECOND));
			node_start(network, to, ++life[to]);
		}
		if (network_random(network) % 200 == 0) {
			network->nodes[from].cut = true;
			network_pass(network, network_random(network) % (20 * SECOND));
			network->nodes[from].cut = false;
		}
		network_send(network, from, to, size_random(network));
		sent++;
		network_pass(network, network_random(network) % (100 * MICROSECOND));
	}
	assert_true(network_run(network, 100 * SECOND));
	for (i = 0; i < 5; i++) {
		struct node *node = &network->nodes[i];
		unsigned why;

		done += node->done;
		for (why = 0; why < 8; why++)
			done += node->failed[why];
		/* A message that its sender gave up while the other half was awaited ends with the
		 * next stream or life. */
		assert_true(node->begun - node->ended - node->ended_badly <= 5);
	}
	assert_int_equal(done, sent);
	network_destroy(network);
}

static void chaos__kills_restarts_and_cuts_end_every_message_once(void **state)
{
	uint64_t seed = network_seed();
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		chaos_run(seed + i);
}

static void *take(void *transport)
{
	transport_own(transport);
	return NULL;
}

static void transport__is_called_by_its_owner_alone(void **state)
{
	struct network *network = network_standard(2, network_seed());
	const struct process to = network->nodes[1].self;
	struct transport *transport;
	struct message message = {.header_length = 8};
	struct ping ping = {.to = to};
	uint32_t cursor = 0;

	(void)state;
	network_start(network);
	transport = network->nodes[0].transport;
	if (!pthread_equal(transport->owner.thread, pthread_self())) {
		network_destroy(network);
		skip(); /* the library is built without assertions */
	}
#define aborts(call) assert_true(stranger_aborts(take, transport, call))
	aborts(transport_close(transport));
	aborts(transport_send(transport, to, &message));
	aborts(transport_has_share(transport, to, 1));
	aborts(transport_ping(transport, &ping));
	aborts(transport_ping_abandon(transport));
	aborts(transport_ping_least(transport));
	aborts(transport_ping_most(transport));
	aborts(transport_claim(transport));
	aborts(transport_receive(transport));
	aborts(transport_process(transport));
	aborts(transport_transmit(transport));
	aborts(transport_push(transport));
	aborts(transport_urgent(transport));
	aborts(transport_unlooked(transport));
	aborts(transport_looked(transport));
	aborts(transport_deadline(transport));
	aborts(transport_settled(transport));
	aborts(transport_tell_life(transport, NULL));
	aborts(transport_tell_queues(transport, NULL));
	aborts(transport_peer_count(transport));
	aborts(transport_tell_peers(transport, &cursor, 1, NULL));
#undef aborts
	assert_false(stranger_aborts(
		take, transport, (transport_own(transport), transport_receive(transport))));
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__one_message_arrives),
		cmocka_unit_test(push__sends_what_is_ready_and_leaves_acknowledgements_and_timers),
		cmocka_unit_test(send__an_empty_message_ends_at_once),
		cmocka_unit_test(send__a_large_message_arrives_whole),
		cmocka_unit_test(send__to_itself_leaves_the_port_its_turn),
		cmocka_unit_test(send__to_itself_never_touches_the_port),
		cmocka_unit_test(send__waiting_messages_share_frames),
		cmocka_unit_test(send__a_burst_of_small_messages_leaves_in_few_frames),
		cmocka_unit_test(send__a_burst_of_small_messages_to_a_near_peer_leaves_in_fewer),
		cmocka_unit_test(send__a_short_message_overtakes_the_rest_of_a_long_one),
		cmocka_unit_test(send__a_message_that_is_under_way_outlives_two_billion_others),
		cmocka_unit_test(faults__loss_duplication_reordering_and_corruption_lose_nothing),
		cmocka_unit_test(loss__leaves_a_window_that_keeps_both_ends_at_work_within_a_host),
		cmocka_unit_test(loss__of_a_frame_delays_no_message_of_a_later_one),
		cmocka_unit_test(faults__half_of_all_frames_lost_lose_nothing),
		cmocka_unit_test(faults__slow_links_and_stalls_lose_nothing),
		cmocka_unit_test(faults__clocks_that_are_a_hair_apart_lose_nothing),
		cmocka_unit_test(send__the_same_seed_gives_the_same_run),
		cmocka_unit_test(transmit__a_port_that_takes_little_loses_nothing),
		cmocka_unit_test(transmit__a_full_outbox_has_room_for_answers),
		cmocka_unit_test(deadline__of_a_port_that_takes_nothing_is_ever_later),
		cmocka_unit_test(turn__asks_some_of_many_silent_processes),
		cmocka_unit_test(pool__when_it_is_small_everything_still_arrives),
		cmocka_unit_test(gather__large_messages_are_sent_from_where_they_lie),
		cmocka_unit_test(
			gather__a_port_that_is_not_known_to_gather_gets_frames_in_one_piece),
		cmocka_unit_test(scattered__memory_in_pieces_arrives_as_memory_in_one),
		cmocka_unit_test(limit__ends_a_message_when_all_that_is_wanted_is_here),
		cmocka_unit_test(stop__spares_the_rest_of_a_message),
		cmocka_unit_test(discard__without_a_stop_takes_it_all),
		cmocka_unit_test(await__counts_what_was_sent_until_then),
		cmocka_unit_test(timeout__is_short_again_when_the_peer_answers_a_question),
		cmocka_unit_test(probe__follows_a_probe_after_which_a_part_was_acknowledged),
		cmocka_unit_test(close__ends_every_message),
		cmocka_unit_test(chaos__kills_restarts_and_cuts_end_every_message_once),
		cmocka_unit_test(transport__is_called_by_its_owner_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
