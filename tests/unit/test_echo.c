/* SPDX-License-Identifier: BSD-3-Clause */
/* test_echo.c - echo questions and their answers, and what asking can be abused for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "network.h"

#define FRAME_SIZE 1514
#define MBUFS      2000
#define MTU        1500 /* what FRAME_SIZE makes of it */
#define DELAY      (10 * MICROSECOND)

/* Two nodes, 10 us from each other. */
static struct network *network_make(void)
{
	struct network *network = network_create(3, 1, FRAME_SIZE, MBUFS);

	network->faults.delay = DELAY;
	node_start(network, 0, 5);
	node_start(network, 1, 6);
	return network;
}

static struct transport_counters *counters(struct network *network, unsigned node)
{
	return &network->nodes[node].counters;
}

static struct ping ping_now(
	struct network *network, unsigned from, unsigned to, uint32_t size, uint32_t answer)
{
	struct ping ping = {.size = size, .answer = answer};

	network_ping(network, from, to, &ping);
	while (network->nodes[from].pings_ended == 0)
		network_step(network);
	network->nodes[from].pings_ended = 0;
	return ping;
}

static void ping__is_answered_by_the_transport(void **state)
{
	struct network *network = network_make();
	struct ping ping = ping_now(network, 0, 1, 64, 0);

	(void)state;
	assert_int_equal(ping.outcome, PING_ANSWERED);
	assert_int_equal(ping.incarnation, 6);
	assert_int_equal(ping.answered, 64);
	assert_int_equal(ping.capacity, MTU);
	assert_memory_equal(ping.address, network->nodes[1].port.address, 6);
	assert_true(ping.round_trip >= 2 * DELAY);
	assert_true(ping.network + ping.residence <= ping.round_trip);
	assert_true(ping.network >= 2 * DELAY);
	assert_int_equal(counters(network, 1)->pings_received, 1);
	assert_int_equal(counters(network, 1)->pongs_sent, 1);
	network_destroy(network);
}

static void ping__of_a_process_makes_no_peer_there(void **state)
{
	struct network *network = network_make();

	(void)state;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_ANSWERED);
	assert_int_equal(counters(network, 1)->peers_made, 1); /* itself */
	network_destroy(network);
}

static void ping__of_itself_never_touches_the_port(void **state)
{
	struct network *network = network_make();
	struct ping ping = ping_now(network, 0, 0, 1000, 1000);

	(void)state;
	assert_int_equal(ping.outcome, PING_ANSWERED);
	assert_int_equal(ping.answered, 1000);
	assert_int_equal(network->frames, 0);
	network_destroy(network);
}

static void ping__may_have_any_size_that_a_frame_may_have(void **state)
{
	struct network *network = network_make();

	(void)state;
	assert_int_equal(transport_ping_least(network->nodes[0].transport), 64);
	assert_int_equal(transport_ping_most(network->nodes[0].transport), MTU);
	for (uint32_t size = 64; size <= MTU; size += 359) {
		struct ping ping = ping_now(network, 0, 1, size, UINT32_MAX);

		assert_int_equal(ping.outcome, PING_ANSWERED);
		assert_int_equal(ping.answered, size);
	}
	assert_int_equal(ping_now(network, 0, 1, MTU, 100).answered, 100);
	assert_int_equal(ping_now(network, 0, 1, 63, 0).outcome, PING_BAD_SIZE);
	assert_int_equal(ping_now(network, 0, 1, MTU + 1, 0).outcome, PING_BAD_SIZE);
	network_destroy(network);
}

static void ping__of_a_process_with_smaller_frames_gets_as_much_as_it_can_say(void **state)
{
	struct network *network = network_make();
	struct ping ping;

	(void)state;
	node_kill(network, 1);
	network->nodes[1].port.frame_size = 1014;
	node_start(network, 1, 7);
	ping = ping_now(network, 0, 1, MTU, MTU);
	assert_int_equal(ping.outcome, PING_ANSWERED);
	assert_int_equal(ping.answered, 1000);
	assert_int_equal(ping.capacity, 1000);
	network_destroy(network);
}

static void ping__tells_one_that_is_not_there_from_one_that_does_not_answer(void **state)
{
	struct network *network = network_make();

	(void)state;
	assert_int_equal(ping_now(network, 0, 2, 64, 64).outcome, PING_NO_ADDRESS);
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_ANSWERED);
	network->nodes[1].cut = true;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_NO_ANSWER);
	network_destroy(network);
}

static void ping__finds_a_new_life_at_a_new_address(void **state)
{
	struct network *network = network_make();
	struct ping ping;

	(void)state;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).incarnation, 6);
	node_kill(network, 1);
	network->nodes[1].port.address[5] ^= 0x40;
	node_start(network, 1, 9);
	ping = ping_now(
		network, 0, 1, 64, 64); /* goes to where it was, and challenges the peer there */
	assert_int_equal(ping.outcome, PING_NO_ANSWER);
	/* It is asked for there three times, then everywhere. */
	network_pass(network, 10 * MILLISECOND);
	ping = ping_now(network, 0, 1, 64, 64);
	assert_int_equal(ping.outcome, PING_ANSWERED);
	assert_int_equal(ping.incarnation, 9);
	assert_memory_equal(ping.address, network->nodes[1].port.address, 6);
	network_destroy(network);
}

/* Two nodes whose ports do not say when a frame came, and which know each other. */
static struct network *network_silent(void)
{
	struct network *network = network_make();

	network->nodes[0].silent = network->nodes[1].silent = true;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_ANSWERED);
	return network;
}

/* Node 0 asks node 1. Both look at their ports every microsecond, but one that is away. */
static struct ping ping_polled(struct network *network)
{
	struct ping ping = {.size = 64, .answer = 64};

	for (unsigned i = 0; i < 100; i++)
		network_pass(network, MICROSECOND);
	network_ping(network, 0, 1, &ping);
	while (network->nodes[0].pings_ended == 0)
		network_pass(network, MICROSECOND);
	network->nodes[0].pings_ended = 0;
	assert_int_equal(ping.outcome, PING_ANSWERED);
	/* These are bounds, whichever process was away. */
	assert_true(ping.network <= 2 * DELAY + 2 * MICROSECOND);
	assert_true(ping.round_trip >= 2 * DELAY);
	assert_true(ping.residence + ping.network <= ping.round_trip);
	return ping;
}

static void ping__between_hosts_that_look_tells_network_from_hosts(void **state)
{
	struct network *network = network_silent();
	struct ping ping = ping_polled(network);

	(void)state;
	assert_true(ping.exact);
	assert_true(ping.network >= 2 * DELAY);
	network_destroy(network);
}

/* The question waited for nearly all of that time, but the target cannot know it. */
static void ping__of_a_target_that_was_away_does_not(void **state)
{
	struct network *network = network_silent();
	struct ping ping;

	(void)state;
	network->nodes[1].stalled_until = network->now + MILLISECOND;
	ping = ping_polled(network);
	assert_false(ping.exact);
	assert_true(ping.round_trip >= 800 * MICROSECOND);
	assert_true(ping_polled(network).exact); /* it is back */
	network_destroy(network);
}

/* So long that the field in the answer cannot say it. */
static void ping__of_a_target_that_was_away_for_seconds_does_not(void **state)
{
	struct network *network = network_silent();
	struct ping ping;

	(void)state;
	ping_polled(network); /* it has just looked */
	network->nodes[1].stalled_until = network->now + (UINT64_C(1) << 32);
	network_pass(network, (UINT64_C(1) << 32) - 200 * MICROSECOND);
	ping = ping_polled(network);
	assert_false(ping.exact);
	assert_true(ping.residence == ping.round_trip);
	network_destroy(network);
}

static void ping__of_an_asker_that_was_away_does_not(void **state)
{
	struct network *network = network_silent();
	struct ping ping = {.size = 64, .answer = 64};

	(void)state;
	network_ping(network, 0, 1, &ping);
	network_pass(network, MICROSECOND);
	network->nodes[0].stalled_until = network->now + MILLISECOND;
	while (network->nodes[0].pings_ended == 0)
		network_pass(network, MICROSECOND);
	network->nodes[0].pings_ended = 0;
	assert_int_equal(ping.outcome, PING_ANSWERED);
	assert_false(ping.exact);
	assert_true(ping.residence < 20 * MICROSECOND);
	assert_true(ping.network <= 2 * DELAY);
	assert_true(ping_polled(network).exact);
	network_destroy(network);
}

static uint32_t path_mtu;

static bool path_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	(void)from;
	(void)to;
	return (uint32_t)(bytes[FRAME_ETHERNET_BYTES + 2] | bytes[FRAME_ETHERNET_BYTES + 3] << 8) <=
	       path_mtu;
}

static void ping__larger_than_the_path_carries_is_lost_and_never_repeated(void **state)
{
	struct network *network = network_make();
	uint64_t frames;

	(void)state;
	path_mtu = 900;
	network->filter = path_filter;
	assert_int_equal(ping_now(network, 0, 1, 900, 900).outcome, PING_ANSWERED);
	frames = counters(network, 0)->pings_sent;
	assert_int_equal(ping_now(network, 0, 1, 901, 64).outcome, PING_NO_ANSWER);
	assert_int_equal(counters(network, 0)->pings_sent, frames + 1);
	assert_int_equal(ping_now(network, 0, 1, 900, 64).outcome, PING_ANSWERED);
	network_destroy(network);
}

static void pings__of_many_get_their_own_answers(void **state)
{
	struct network *network = network_make();
	struct ping pings[10];

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		pings[i] = (struct ping){.size = 64 + 8 * i, .answer = 64 + 8 * i};
		network_ping(network, 0, 1, &pings[i]);
	}
	while (network->nodes[0].pings_ended < 10)
		network_step(network);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(pings[i].outcome, PING_ANSWERED);
		assert_int_equal(pings[i].answered, 64 + 8 * i);
	}
	network_destroy(network);
}

static void pings__beside_data_disturb_nothing(void **state)
{
	struct network *network = network_make();
	struct ping ping = {.size = 256, .answer = 256};

	(void)state;
	network->faults.loss = 0.05;
	network_send(network, 0, 1, 1000000);
	for (unsigned i = 0; i < 100; i++) {
		network_ping(network, 0, 1, &ping);
		while (network->nodes[0].pings_ended == 0)
			network_step(network);
		network->nodes[0].pings_ended = 0;
	}
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	assert_int_equal(network->nodes[1].ended, 1);
	network_destroy(network);
}

static void close__ends_every_ping(void **state)
{
	struct network *network = network_make();
	struct ping pings[2] = {{.size = 64}, {.size = 64}};

	(void)state;
	network_ping(network, 0, 1, &pings[0]);
	network_ping(network, 0, 2, &pings[1]);
	transport_ping_abandon(network->nodes[0].transport);
	assert_int_equal(pings[0].outcome, PING_CLOSED);
	assert_int_equal(pings[1].outcome, PING_CLOSED);
	network_ping(network, 0, 2, &pings[0]);
	node_kill(network, 0);
	assert_int_equal(pings[0].outcome, PING_CLOSED);
	network_destroy(network);
}

/* --- frames of nobody */

static const uint8_t stranger[6] = {2, 9, 9, 9, 9, 9};

static void frame_inject(struct network *network, struct frame *frame, const uint8_t *from)
{
	uint8_t bytes[FRAME_SIZE] = {0};
	const struct node *node = &network->nodes[0];

	memcpy(bytes, node->port.address, 6);
	memcpy(bytes + 6, from, 6);
	bytes[12] = FRAME_ETHERTYPE >> 8;
	bytes[13] = FRAME_ETHERTYPE & 255;
	frame->destination_nid = node->self.nid;
	if (frame->destination_pid == 0)
		frame->destination_pid = node->self.pid;
	frame_pad(bytes + FRAME_ETHERNET_BYTES, frame->length);
	frame_encode(frame, bytes + FRAME_ETHERNET_BYTES);
	network_inject(network, 0, bytes, frame->length + FRAME_ETHERNET_BYTES);
}

static struct frame question(uint16_t length)
{
	return (struct frame){.type = FRAME_PING,
		.flags = FRAME_FULL_SUM,
		.length = length,
		.source_nid = 99,
		.source_pid = 1,
		.source_incarnation = 1,
		.psn = 1,
		.ack = length};
}

static void question__of_a_stranger_is_answered_to_where_it_came_from(void **state)
{
	struct network *network = network_make();
	struct frame frame = question(200);

	(void)state;
	frame_inject(network, &frame, stranger);
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 0)->pongs_sent, 1);
	assert_int_equal(counters(network, 0)->frames_sent, 1);
	assert_int_equal(counters(network, 0)->peers_made, 1); /* itself */
	network_destroy(network);
}

static void question__for_another_process_is_dropped(void **state)
{
	struct network *network = network_make();
	struct frame frame = question(200);

	(void)state;
	frame.destination_pid = 4711;
	frame_inject(network, &frame, stranger);
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 0)->dropped_foreign, 1);
	assert_int_equal(counters(network, 0)->frames_sent, 0);
	network_destroy(network);
}

static void question__from_a_group_address_is_dropped(void **state)
{
	static const uint8_t everybody[6] = {255, 255, 255, 255, 255, 255};
	struct network *network = network_make();
	struct frame frame = question(200);

	(void)state;
	frame_inject(network, &frame, everybody);
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 0)->dropped_malformed, 1);
	assert_int_equal(counters(network, 0)->frames_sent, 0);
	network_destroy(network);
}

static void questions__in_a_flood_are_answered_within_bounds(void **state)
{
	struct network *network = network_make();
	uint64_t begun = network->now;
	uint64_t most;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		struct frame frame = question(1400);

		frame_inject(network, &frame, stranger);
		network_pass(network, MICROSECOND);
	}
	/* 8 ns a byte, and 2 ms of them at once. */
	most = (network->now - begun + 2 * MILLISECOND) / (1400 * 8) + 1;
	assert_in_range(counters(network, 0)->pongs_sent, most / 2, most);
	assert_int_equal(counters(network, 0)->pongs_sent + counters(network, 0)->dropped_ping,
		counters(network, 0)->pings_received);
	network_destroy(network);
}

static void answer__that_nobody_waits_for_is_dropped(void **state)
{
	struct network *network = network_make();
	struct frame frame = question(64);

	(void)state;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_ANSWERED);
	frame.type = FRAME_PONG;
	frame.first = 1500;
	frame.destination_incarnation = 5;
	frame.source_nid = network->nodes[1].self.nid;
	frame.source_pid = network->nodes[1].self.pid;
	frame.source_incarnation = 6;
	frame_inject(network, &frame, network->nodes[1].port.address);
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 0)->dropped_pong, 1);
	network_destroy(network);
}

static void answer__to_a_question_that_went_to_another_is_dropped(void **state)
{
	struct network *network = network_make();
	struct ping ping = {.size = 64};
	struct frame frame = question(64);

	(void)state;
	assert_int_equal(ping_now(network, 0, 1, 64, 64).outcome, PING_ANSWERED);
	network->nodes[1].cut = true;
	network_ping(network, 0, 1, &ping);
	network_pass(network, 100 * MICROSECOND);
	frame.type = FRAME_PONG;
	frame.psn = 2; /* the right number */
	frame.first = 1500;
	frame.destination_incarnation = 5;
	frame_inject(network, &frame, stranger);
	network_pass(network, MILLISECOND);
	assert_int_equal(network->nodes[0].pings_ended, 0);
	assert_int_equal(counters(network, 0)->dropped_stale, 1); /* of a stranger */
	network_destroy(network);
}

/* --- two of one name */

static void claim__of_a_name_that_another_has_is_told_to_both(void **state)
{
	struct network *network = network_make();

	(void)state;
	node_kill(network, 1);
	network->nodes[1].self = network->nodes[0].self;
	node_start(network, 1, 77);
	transport_claim(network->nodes[1].transport);
	network_pass(network, SECOND);
	assert_int_equal(network->nodes[0].duplicates, 1); /* told once, however often it is seen */
	assert_int_equal(network->nodes[1].duplicates, 1);
	assert_memory_equal(network->nodes[1].duplicate, network->nodes[0].port.address, 6);
	assert_memory_equal(network->nodes[0].duplicate, network->nodes[1].port.address, 6);
	assert_int_equal(counters(network, 1)->asks_sent, 3);
	assert_int_equal(counters(network, 1)->duplicates_seen, 3);
	network_destroy(network);
}

static void claim__of_a_name_of_ones_own_is_not_reported(void **state)
{
	struct network *network = network_make();

	(void)state;
	transport_claim(network->nodes[0].transport);
	network_pass(network, SECOND);
	assert_int_equal(counters(network, 0)->asks_sent, 3);
	assert_int_equal(network->nodes[0].duplicates, 0);
	assert_int_equal(network->nodes[1].duplicates, 0);
	network_send(network, 0, 1, 1000);
	network_send(network, 0, 0, 1000);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

static void claim__of_an_address_that_another_host_has_is_told_to_both(void **state)
{
	struct network *network = network_make();

	(void)state;
	network->options.encapsulation.udp = true;
	node_kill(network, 0);
	node_kill(network, 1);
	network->nodes[1].self.nid = network->nodes[0].self.nid;
	node_start(network, 0, 10);
	node_start(network, 1, 11);
	transport_claim(network->nodes[1].transport);
	network_pass(network, SECOND);
	assert_int_equal(counters(network, 1)->arps_sent, 3);
	assert_int_equal(network->nodes[1].duplicates, 1);
	assert_memory_equal(network->nodes[1].duplicate, network->nodes[0].port.address, 6);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping__is_answered_by_the_transport),
		cmocka_unit_test(ping__of_a_process_makes_no_peer_there),
		cmocka_unit_test(ping__of_itself_never_touches_the_port),
		cmocka_unit_test(ping__may_have_any_size_that_a_frame_may_have),
		cmocka_unit_test(ping__of_a_process_with_smaller_frames_gets_as_much_as_it_can_say),
		cmocka_unit_test(ping__tells_one_that_is_not_there_from_one_that_does_not_answer),
		cmocka_unit_test(ping__finds_a_new_life_at_a_new_address),
		cmocka_unit_test(ping__between_hosts_that_look_tells_network_from_hosts),
		cmocka_unit_test(ping__of_a_target_that_was_away_does_not),
		cmocka_unit_test(ping__of_a_target_that_was_away_for_seconds_does_not),
		cmocka_unit_test(ping__of_an_asker_that_was_away_does_not),
		cmocka_unit_test(ping__larger_than_the_path_carries_is_lost_and_never_repeated),
		cmocka_unit_test(pings__of_many_get_their_own_answers),
		cmocka_unit_test(pings__beside_data_disturb_nothing),
		cmocka_unit_test(close__ends_every_ping),
		cmocka_unit_test(question__of_a_stranger_is_answered_to_where_it_came_from),
		cmocka_unit_test(question__for_another_process_is_dropped),
		cmocka_unit_test(question__from_a_group_address_is_dropped),
		cmocka_unit_test(questions__in_a_flood_are_answered_within_bounds),
		cmocka_unit_test(answer__that_nobody_waits_for_is_dropped),
		cmocka_unit_test(answer__to_a_question_that_went_to_another_is_dropped),
		cmocka_unit_test(claim__of_a_name_that_another_has_is_told_to_both),
		cmocka_unit_test(claim__of_a_name_of_ones_own_is_not_reported),
		cmocka_unit_test(claim__of_an_address_that_another_host_has_is_told_to_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
