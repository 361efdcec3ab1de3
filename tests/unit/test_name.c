/* SPDX-License-Identifier: BSD-3-Clause */
/* test_name.c - questions for names of hosts and their answers, and what they can be abused for.
 *
 * Covers: lib/transport/name.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "network.h"

#define FRAME_SIZE 1514
#define MBUFS      2000
#define DELAY      (10 * MICROSECOND)
#define NODES      4
#define PROCESS    7 /* the process id of all nodes */

static struct frame_name name_of(const char *host, uint32_t board)
{
	struct frame_name name = {.board = board};

	(void)snprintf(name.host, sizeof(name.host), "%s", host);
	return name;
}

static void name_give(struct network *network, unsigned node, const char *host, uint32_t board)
{
	const struct frame_name name = name_of(host, board);

	transport_name(network->nodes[node].transport, &name);
}

/* Nodes 10 us from each other: one without a name, and three with. */
static struct network *network_make(void)
{
	struct network *network = network_create(NODES, 1, FRAME_SIZE, MBUFS);

	network->faults.delay = DELAY;
	for (unsigned i = 0; i < NODES; i++)
		node_start(network, i, 5 + i);
	name_give(network, 1, "beta.example.org", 0);
	name_give(network, 2, "gamma", 1);
	name_give(network, 3, "delta", 0);
	return network;
}

static struct transport_counters *counters(struct network *network, unsigned node)
{
	return &network->nodes[node].counters;
}

static struct name_query question(const char *host, uint32_t board)
{
	return (struct name_query){
		.wanted = name_of(host, board), .pid = PROCESS - 3, .pids = 8, .timeout = SECOND};
}

/* Node 0 asks, and waits for the end. */
static void ask(struct network *network, struct name_query *query)
{
	network->nodes[0].names_ended = 0;
	transport_find(network->nodes[0].transport, query);
	while (network->nodes[0].names_ended == 0)
		network_step(network);
	assert_int_equal(network->nodes[0].names_ended, 1);
}

static enum name_outcome find(struct network *network, const char *host, uint32_t board)
{
	struct name_query query = question(host, board);

	ask(network, &query);
	return query.outcome;
}

static void name__is_found_among_process_ids(void **state)
{
	struct network *network = network_make();
	struct name_query query = question("gamma", 1);

	(void)state;
	transport_find(network->nodes[0].transport, &query);
	network_pass(network, 50 * MILLISECOND);
	assert_int_equal(network->nodes[0].names_ended, 1);
	assert_int_equal(query.outcome, NAME_FOUND);
	assert_int_equal(query.nid, network->nodes[2].self.nid);
	assert_string_equal(query.name.host, "gamma");
	assert_in_range(counters(network, 2)->finds_received, 1, 2); /* it goes on for a while */
	assert_int_equal(counters(network, 1)->finds_received, 0);
	network_destroy(network);
}

static void name__is_the_same_in_any_case_and_without_a_domain(void **state)
{
	struct network *network = network_make();

	(void)state;
	assert_int_equal(find(network, "beta", 0), NAME_FOUND);
	assert_int_equal(find(network, "BETA.Example.org", 0), NAME_FOUND);
	assert_int_equal(find(network, "beta.example.com", 0), NAME_UNKNOWN);
	assert_int_equal(find(network, "gamma.example.org", 1), NAME_FOUND);
	assert_int_equal(find(network, "gamma", 0), NAME_UNKNOWN);
	assert_int_equal(find(network, "gam", 1), NAME_UNKNOWN);
	network_destroy(network);
}

static void name__of_a_node_is_asked_for_by_its_id(void **state)
{
	struct network *network = network_make();
	struct name_query query = question("", 0);

	(void)state;
	query.nid = network->nodes[2].self.nid;
	ask(network, &query);
	assert_int_equal(query.outcome, NAME_FOUND);
	assert_string_equal(query.name.host, "gamma");
	assert_int_equal(query.name.board, 1);
	query = question("", 0);
	query.nid = 99; /* nobody */
	ask(network, &query);
	assert_int_equal(query.outcome, NAME_UNKNOWN);
	network_destroy(network);
}

static void question__is_repeated_until_its_time_is_over(void **state)
{
	struct network *network = network_make();
	struct name_query query = question("nobody", 0);

	(void)state;
	transport_find(network->nodes[0].transport, &query);
	network_pass(network, SECOND - MILLISECOND);
	assert_int_equal(network->nodes[0].names_ended, 0);
	network_pass(network, 2 * MILLISECOND);
	assert_int_equal(network->nodes[0].names_ended, 1);
	assert_int_equal(query.outcome, NAME_UNKNOWN);
	assert_in_range(counters(network, 0)->finds_sent, 5 * query.pids, 20 * query.pids);
	network_destroy(network);
}

static void question__is_answered_though_frames_are_lost(void **state)
{
	struct network *network = network_make();
	unsigned found = 0;

	(void)state;
	network->faults.loss = 0.3;
	for (unsigned i = 0; i < 50; i++)
		found += find(network, "beta", 0) == NAME_FOUND;
	assert_in_range(found, 48, 50); /* six rounds, of which each fails with a half */
	network_destroy(network);
}

static void name__that_two_nodes_have_is_nobodys(void **state)
{
	struct network *network = network_make();
	struct name_query query = question("delta", 0);

	(void)state;
	name_give(network, 1, "Delta", 0);
	ask(network, &query);
	assert_int_equal(query.outcome, NAME_AMBIGUOUS);
	assert_int_equal(
		query.nid + query.other, network->nodes[1].self.nid + network->nodes[3].self.nid);
	network_destroy(network);
}

static void names__are_asked_for_at_once(void **state)
{
	static const char *const hosts[] = {"beta", "delta", "nobody"};
	struct network *network = network_make();
	struct name_query queries[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		queries[i] = question(hosts[i], 0);
		transport_find(network->nodes[0].transport, &queries[i]);
	}
	network_pass(network, 2 * SECOND);
	assert_int_equal(network->nodes[0].names_ended, 3);
	assert_int_equal(queries[0].nid, network->nodes[1].self.nid);
	assert_int_equal(queries[1].nid, network->nodes[3].self.nid);
	assert_int_equal(queries[2].outcome, NAME_UNKNOWN);
	network_destroy(network);
}

static void question__makes_no_peer_there(void **state)
{
	struct network *network = network_make();

	(void)state;
	assert_int_equal(find(network, "beta", 0), NAME_FOUND);
	assert_int_equal(counters(network, 1)->peers_made, 1); /* itself */
	assert_int_equal(counters(network, 0)->peers_made, 1);
	network_destroy(network);
}

static void close__ends_every_question(void **state)
{
	struct network *network = network_make();
	struct name_query queries[2] = {question("beta", 0), question("nobody", 0)};

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		transport_find(network->nodes[0].transport, &queries[i]);
	transport_find_abandon(network->nodes[0].transport);
	assert_int_equal(queries[0].outcome, NAME_CLOSED);
	assert_int_equal(queries[1].outcome, NAME_CLOSED);
	transport_find(network->nodes[0].transport, &queries[0]);
	node_kill(network, 0);
	assert_int_equal(queries[0].outcome, NAME_CLOSED);
	network_destroy(network);
}

static void question__is_not_asked_where_addresses_are_names(void **state)
{
	struct network *network = network_make();
	struct name_query query = question("beta", 0);

	(void)state;
	node_kill(network, 0);
	network->options.encapsulation.udp = true;
	node_start(network, 0, 20);
	transport_find(network->nodes[0].transport, &query);
	assert_int_equal(query.outcome, NAME_UNKNOWN);
	network_destroy(network);
}

/* --- frames of nobody */

static const uint8_t stranger[6] = {2, 9, 9, 9, 9, 9};

/* A frame with a name, from a process that is none of the nodes'. */
static void name_inject(
	struct network *network, unsigned to, struct frame *frame, const struct frame_name *name)
{
	uint8_t bytes[14 + FRAME_HEADER_BYTES + sizeof(*name)];

	frame->source_nid = 4711;
	frame->source_pid = 1;
	frame->source_incarnation = 9;
	frame->flags = FRAME_FULL_SUM;
	frame->length = FRAME_HEADER_BYTES + sizeof(*name);
	ethernet_write(bytes, network->nodes[to].port.address, stranger);
	memcpy(bytes + 14 + FRAME_HEADER_BYTES, name, sizeof(*name));
	frame_encode(frame, bytes + 14);
	network_inject(network, to, bytes, sizeof(bytes));
}

static void questions__in_a_flood_are_answered_within_bounds(void **state)
{
	const struct frame_name wanted = name_of("beta", 0);
	struct network *network = network_make();
	const struct transport_counters *count = counters(network, 1);
	uint64_t sent = count->frames_sent;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		struct frame frame = {.type = FRAME_FIND,
			.destination_nid = PORT_ANY_NODE,
			.destination_pid = PROCESS};

		name_inject(network, 1, &frame, &wanted);
		network_pass(network, MICROSECOND / 2);
	}
	assert_int_equal(count->finds_received, 5000);
	assert_true(count->dropped_find > 1000);
	assert_int_equal(count->frames_sent - sent, 5000 - count->dropped_find);
	network_destroy(network);
}

static void question__with_a_name_that_is_none_is_not_answered(void **state)
{
	struct network *network = network_make();
	struct frame_name wanted;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct frame frame = {.type = FRAME_FIND,
			.destination_nid = i == 3 ? network->nodes[2].self.nid : PORT_ANY_NODE,
			.destination_pid = PROCESS};

		memset(&wanted, 0, sizeof(wanted));
		if (i == 0)
			memset(wanted.host, 'a', sizeof(wanted.host));
		if (i == 1)
			strcpy(wanted.host, "be ta");
		/* i is 2: what is everybody's name? 3: what is the name of another node? */
		name_inject(network, 1, &frame, &wanted);
	}
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 1)->finds_received, 0);
	network_destroy(network);
}

/* Without the number of the question nobody is believed, and nobody with a name that is none. */
static void answer__that_nobody_waits_for_is_dropped(void **state)
{
	static const char *const names[] = {"nobody", "no body", ""};
	struct network *network = network_make();
	struct name_query query = question("nobody", 0);

	(void)state;
	transport_find(network->nodes[0].transport, &query);
	network_pass(network, MILLISECOND);
	for (unsigned i = 0; i < 6; i++) {
		const struct frame_name name = name_of(names[i / 2], 0);
		struct frame frame = {.type = FRAME_FOUND,
			.destination_nid = network->nodes[0].self.nid,
			.destination_pid = PROCESS,
			.destination_incarnation = 5,
			.psn = (uint32_t)query.number,
			.ack = (uint32_t)(query.number >> 32)};

		if (i < 2)
			frame.psn += 1 + i;
		name_inject(network, 0, &frame, &name);
	}
	network_pass(network, 2 * SECOND);
	assert_int_equal(query.outcome, NAME_UNKNOWN);
	assert_int_equal(counters(network, 0)->dropped_find_answer, 6);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name__is_found_among_process_ids),
		cmocka_unit_test(name__is_the_same_in_any_case_and_without_a_domain),
		cmocka_unit_test(name__of_a_node_is_asked_for_by_its_id),
		cmocka_unit_test(question__is_repeated_until_its_time_is_over),
		cmocka_unit_test(question__is_answered_though_frames_are_lost),
		cmocka_unit_test(name__that_two_nodes_have_is_nobodys),
		cmocka_unit_test(names__are_asked_for_at_once),
		cmocka_unit_test(question__makes_no_peer_there),
		cmocka_unit_test(close__ends_every_question),
		cmocka_unit_test(question__is_not_asked_where_addresses_are_names),
		cmocka_unit_test(questions__in_a_flood_are_answered_within_bounds),
		cmocka_unit_test(question__with_a_name_that_is_none_is_not_answered),
		cmocka_unit_test(answer__that_nobody_waits_for_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
