/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hints.c - where processes are said to be: the hints, and the questions that it saves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <transport/hints.h>

#include "network.h"

#define PROCESSES 10000u

static struct process process_of(uint32_t n)
{
	return (struct process){.nid = n / 8 * 65536, .pid = n % 8};
}

static void address_of(uint32_t n, uint8_t *address)
{
	memset(address, 0, FRAME_ADDRESS_BYTES);
	memcpy(address, &n, sizeof(n));
}

static void hints__find_what_was_put_last(void **state)
{
	struct hints hints = {0};
	uint8_t address[FRAME_ADDRESS_BYTES];

	(void)state;
	assert_null(hints_find(&hints, process_of(0)));
	for (uint32_t n = 0; n < 2 * PROCESSES; n++) {
		address_of(n, address);
		hints_put(&hints, process_of(n % PROCESSES), address);
	}
	for (uint32_t n = 0; n < PROCESSES; n++) {
		address_of(n + PROCESSES, address);
		assert_memory_equal(hints_find(&hints, process_of(n)), address, sizeof(address));
	}
	assert_null(hints_find(&hints, process_of(PROCESSES)));
	hints_free(&hints);
	assert_null(hints_find(&hints, process_of(0)));
}

static void hint_give(struct network *network, unsigned to, unsigned of, const uint8_t *address)
{
	transport_hint(network->nodes[to].transport, network->nodes[of].self, address);
}

/* Each of some nodes knows where the others are. */
static struct network *network_known(unsigned nodes)
{
	struct network *network = network_standard(nodes, network_seed());

	network_start(network);
	for (unsigned i = 0; i < nodes; i++)
		for (unsigned j = 0; j < nodes; j++)
			hint_give(network, i, j, network->nodes[j].port.address);
	return network;
}

static void send_to_all(struct network *network)
{
	for (unsigned i = 0; i < network->count; i++)
		for (unsigned j = 0; j < network->count; j++)
			if (i != j)
				network_send(network, i, j, 100);
}

static void way__leads_questions_to_the_process_alone(void **state)
{
	struct network *network = network_known(8);

	(void)state;
	send_to_all(network);
	assert_true(network_run(network, SECOND));
	for (unsigned i = 0; i < network->count; i++) {
		assert_int_equal(network->nodes[i].counters.asks_broadcast, 0);
		assert_int_equal(network->nodes[i].counters.arps_sent, 0);
		assert_true(network->nodes[i].counters.asks_sent <= 7);
	}
	network_check(network);
	network_destroy(network);
}

static void way__that_is_wrong_costs_a_third_of_a_second(void **state)
{
	static const uint8_t wrong[FRAME_ADDRESS_BYTES] = {2, 9, 9, 9, 9, 9};
	struct network *network = network_known(3);

	(void)state;
	hint_give(network, 0, 1, wrong);
	network_send(network, 0, 1, 100);
	network_send(network, 0, 2, 100);
	assert_true(network_run(network, 400 * MILLISECOND));
	if (network_is_udp())
		assert_true(network->nodes[0].counters.arps_sent > 0);
	else
		assert_int_equal(network->nodes[0].counters.asks_broadcast, 1);
	network_check(network);
	network_destroy(network);
}

/* Whoever is there says that the process is not; with UDP the host's kernel gets the question, and
 * nobody says so. */
static void way__to_another_process_is_told_at_once(void **state)
{
	struct network *network = network_known(3);

	(void)state;
	hint_give(network, 0, 1, network->nodes[2].port.address);
	network_send(network, 0, 1, 100);
	network_send(network, 0, 2, 100);
	assert_true(network_run(network, network_is_udp() ? 400 * MILLISECOND : 4 * MILLISECOND));
	if (!network_is_udp()) {
		assert_int_equal(network->nodes[2].counters.denials_sent, 1);
		assert_int_equal(network->nodes[0].counters.denials_received, 1);
		assert_int_equal(network->nodes[0].counters.asks_broadcast, 1);
	}
	network_check(network);
	network_destroy(network);
}

/* What it said would be taken for a lie there. */
static void way__to_another_process_behind_posternd_is_told_by_nobody(void **state)
{
	struct network *network = network_known(3);

	(void)state;
	network->nodes[2].port.attested = true;
	hint_give(network, 0, 1, network->nodes[2].port.address);
	network_send(network, 0, 1, 100);
	network_send(network, 0, 2, 100);
	assert_true(network_run(network, 400 * MILLISECOND));
	assert_int_equal(network->nodes[2].counters.denials_sent, 0);
	network_check(network);
	network_destroy(network);
}

/* The hints outlive the peer that is forgotten. */
static void way__leads_to_a_process_that_was_forgotten(void **state)
{
	struct network *network = network_known(2);
	struct node *node = &network->nodes[0];

	(void)state;
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	for (unsigned n = 0; n < 100 && node->counters.peers_forgotten == 0; n++)
		network_pass(network, 60 * SECOND);
	assert_true(node->counters.peers_forgotten > 0);
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(node->counters.asks_broadcast, 0);
	network_check(network);
	network_destroy(network);
}

/* A hint that comes while everybody could be asked is used for what is still to be asked. */
static void way__may_be_told_late(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 100);
	hint_give(network, 0, 1, network->nodes[1].port.address);
	hint_give(network, 0, 0, network->nodes[1].port.address); /* of oneself: nothing */
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints__find_what_was_put_last),
		cmocka_unit_test(way__leads_questions_to_the_process_alone),
		cmocka_unit_test(way__that_is_wrong_costs_a_third_of_a_second),
		cmocka_unit_test(way__to_another_process_is_told_at_once),
		cmocka_unit_test(way__to_another_process_behind_posternd_is_told_by_nobody),
		cmocka_unit_test(way__leads_to_a_process_that_was_forgotten),
		cmocka_unit_test(way__may_be_told_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
