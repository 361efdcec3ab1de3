/* SPDX-License-Identifier: BSD-3-Clause */
/* test_neighbour.c - finding hosts by ARP, a router between transports, marks, and what outer
 * headers from liars do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_byteorder.h>
#include <rte_ip.h>

#include <transport/internal.h>
#include <transport/neighbour.h>
#include <wire/arp.h>

#include "network.h"

#define FRAME_SIZE 1514
#define MBUFS      8000
#define IPV4_AT    FRAME_ETHERNET_BYTES
#define STRANGER   0x0a0000f0u

static const uint8_t mac_stranger[6] = {2, 9, 9, 9, 9, 9};
static const uint8_t mac_router[6] = {2, 7, 7, 7, 7, 7};

static struct network *network_make(unsigned nodes)
{
	struct network *network = network_create(nodes, 1, FRAME_SIZE, MBUFS);
	unsigned i;

	assert_true(network->options.encapsulation.udp);
	for (i = 0; i < nodes; i++)
		node_start(network, i, 1);
	return network;
}

static struct transport_counters *counters(struct network *network, unsigned node)
{
	return &network->nodes[node].counters;
}

static void arp_inject(
	struct network *network, unsigned to, const struct arp *arp, const uint8_t *from)
{
	uint8_t bytes[FRAME_ETHERNET_BYTES + ARP_FRAME];
	struct encapsulation_options options = {.udp = true};
	struct encapsulation encapsulation;

	encapsulation_init(&encapsulation, &options, from, false);
	encapsulation_link(&encapsulation, bytes, network->nodes[to].port.address, ARP_ETHERTYPE);
	arp_write(bytes + FRAME_ETHERNET_BYTES, arp);
	network_inject(network, to, bytes, sizeof(bytes));
	network_pass(network, 10000);
}

static struct arp arp_of(uint32_t sender, const uint8_t *hardware, bool answer, uint32_t target)
{
	struct arp arp = {.answer = answer, .sender_address = sender, .target_address = target};

	memcpy(arp.sender, hardware, 6);
	return arp;
}

/* --- finding */

static void send__asks_the_link_once_and_the_process_once(void **state)
{
	struct network *network = network_make(2);
	uint64_t begin = network->now;

	(void)state;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	assert_int_equal(counters(network, 0)->arps_sent, 1);
	assert_int_equal(counters(network, 0)->asks_sent, 1);
	assert_int_equal(counters(network, 1)->arps_answered, 1);
	assert_int_equal(
		counters(network, 1)->arps_sent, 0); /* answers go where frames come from */
	/* The answer of ARP lets the question go at once, not at the next try. */
	assert_true(network->now - begin < MILLISECOND);
	network_destroy(network);
}

static void send__to_a_host_that_is_not_there_asks_less_and_less(void **state)
{
	struct network *network = network_make(2);

	(void)state;
	network_pass(network, MILLISECOND);
	network->nodes[1].cut = true;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 20 * SECOND));
	assert_int_equal(network->nodes[0].failed[TRANSPORT_UNREACHABLE], 1);
	assert_in_range(counters(network, 0)->arps_sent, 10, 25);
	assert_int_equal(counters(network, 0)->asks_sent, 0);
	network_destroy(network);
}

/* A host was not there for long. The first question for it after a pause is lost, and the next one
 * follows soon. */
static void send__after_a_pause_asks_as_at_first(void **state)
{
	struct network *network = network_make(2);
	uint64_t begin;

	(void)state;
	network_pass(network, MILLISECOND);
	network->nodes[1].cut = true;
	network->nodes[1].lost_ok = true;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 20 * SECOND));
	network_pass(network, 2 * SECOND);
	begin = network->now;
	network_send(network, 0, 1, 8);
	network_pass(network, 100 * MICROSECOND);
	network->nodes[1].cut = false;
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	assert_true(network->now - begin < 100 * MILLISECOND);
	network_destroy(network);
}

static uint8_t copy_bytes[FRAME_SIZE];

/* One frame of node 0's is marked, and the first frame that says so is lost. */
static unsigned data_frames;
static unsigned echoes_lost;

static bool echo_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct rte_ipv4_hdr *ipv4;
	struct frame frame;

	(void)to;
	if (bytes[12] != 8 || bytes[13] != 0)
		return true;
	frame_recall(bytes + network->nodes[0].transport->encapsulation.bytes, &frame);
	if (from == 1 && (frame.flags & FRAME_ACK_VALID) && frame.marks != 0)
		return echoes_lost++ != 0;
	if (from != 0 || frame.type != FRAME_DATA || ++data_frames != 20)
		return true;
	memcpy(copy_bytes, bytes, network->nodes[0].transport->encapsulation.bytes + frame.length);
	ipv4 = (struct rte_ipv4_hdr *)(void *)(copy_bytes + IPV4_AT);
	ipv4->type_of_service |= 3;
	ipv4->hdr_checksum = 0;
	ipv4->hdr_checksum = rte_ipv4_cksum(ipv4);
	network_inject(network, 1, copy_bytes,
		network->nodes[0].transport->encapsulation.bytes + frame.length);
	return false;
}

static void marks__are_told_though_the_first_frame_that_tells_is_lost(void **state)
{
	struct network *network = network_make(2);

	(void)state;
	network->filter = echo_filter;
	network_send(network, 0, 1, 500000);
	assert_true(network_run(network, 10 * SECOND));
	assert_true(echoes_lost > 1);
	assert_int_equal(counters(network, 1)->marks_received, 1);
	assert_int_equal(counters(network, 0)->congestion_cuts, 1);
	network_destroy(network);
}

/* --- a router: node 1's link leads to all the others */

/* Frames to the router's address go on to the node that their IPv4 header names, from it; all of
 * them marked. */
static bool router_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct rte_ipv4_hdr *ipv4 = (struct rte_ipv4_hdr *)(void *)(copy_bytes + IPV4_AT);
	uint32_t length;
	unsigned i;

	(void)from;
	if (to != 1 || bytes[12] != 8 || bytes[13] != 0)
		return true;
	length = IPV4_AT + ((uint32_t)bytes[IPV4_AT + 2] << 8 | bytes[IPV4_AT + 3]);
	memcpy(copy_bytes, bytes, length);
	ipv4->time_to_live--;
	ipv4->type_of_service |= 3;
	ipv4->hdr_checksum = 0;
	ipv4->hdr_checksum = rte_ipv4_cksum(ipv4);
	memcpy(copy_bytes + 6, network->nodes[1].port.address, 6);
	for (i = 0; i < network->count; i++)
		if (network->nodes[i].self.nid == rte_be_to_cpu_32(ipv4->dst_addr) && i != 1) {
			memcpy(copy_bytes, network->nodes[i].port.address, 6);
			network_inject(network, i, copy_bytes, length);
		}
	return false;
}

static struct network *network_routed(unsigned nodes)
{
	struct network *network = network_create(nodes, 1, FRAME_SIZE, MBUFS);
	unsigned i;

	network->options.encapsulation.prefix = 32;
	network->options.encapsulation.gateway = network->nodes[1].self.nid;
	network->filter = router_filter;
	for (i = 0; i < nodes; i++)
		node_start(network, i, 1);
	return network;
}

static void gateway__is_asked_for_once_for_all_nodes_beyond(void **state)
{
	struct network *network = network_routed(10);
	unsigned i;

	(void)state;
	for (i = 2; i < 10; i++)
		network_send(network, 0, i, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 8);
	assert_int_equal(counters(network, 0)->arps_sent, 1);
	assert_int_equal(counters(network, 1)->arps_answered, 9); /* each node's */
	network_destroy(network);
}

static void gateway__carries_large_messages_both_ways(void **state)
{
	struct network *network = network_routed(3);

	(void)state;
	network_send(network, 0, 2, 500000);
	network_send(network, 2, 0, 500000);
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(network->nodes[0].done + network->nodes[2].done, 2);
	assert_int_equal(network->nodes[0].bytes + network->nodes[2].bytes, 1000000);
	network_destroy(network);
}

static void marks__are_told_and_narrow_the_window(void **state)
{
	struct network *network = network_routed(3);

	(void)state;
	network_send(network, 0, 2, 500000);
	assert_true(network_run(network, 10 * SECOND));
	assert_true(counters(network, 2)->marks_received > 300);
	assert_true(counters(network, 0)->congestion_cuts > 3);
	assert_int_equal(counters(network, 0)->retransmits, 0);
	network_destroy(network);
}

static void gateway__that_fails_over_is_found_again(void **state)
{
	struct network *network = network_routed(3);
	struct arp moved =
		arp_of(network->nodes[1].self.nid, mac_router, false, network->nodes[1].self.nid);

	(void)state;
	network_send(network, 0, 2, 8);
	assert_true(network_run(network, SECOND));
	/* A lie, so far: frames to it vanish. The peer is asked for again, by ARP too, and
	 * found. */
	arp_inject(network, 0, &moved, mac_router);
	assert_memory_equal(neighbour_find(network->nodes[0].transport, network->nodes[1].self.nid),
		mac_router, 6);
	memcpy(network->nodes[1].port.address, mac_stranger, 6);
	node_kill(network, 1);
	node_start(network, 1, 2);
	network_send(network, 0, 2, 8);
	assert_true(network_run(network, 9 * SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	assert_memory_equal(neighbour_find(network->nodes[0].transport, network->nodes[1].self.nid),
		mac_stranger, 6);
	network_destroy(network);
}

/* --- what others say */

static void receive__a_question_is_answered_and_teaches_nothing(void **state)
{
	struct network *network = network_make(2);
	uint32_t own = network->nodes[0].self.nid;
	struct arp question = arp_of(STRANGER, mac_stranger, false, own);
	struct arp probe = arp_of(0, mac_stranger, false, own);
	struct arp other = arp_of(STRANGER, mac_stranger, false, own + 1);

	(void)state;
	arp_inject(network, 0, &question, mac_stranger);
	assert_int_equal(counters(network, 0)->arps_answered, 1);
	assert_null(neighbour_find(network->nodes[0].transport, STRANGER));
	arp_inject(network, 0, &probe, mac_stranger);
	assert_int_equal(counters(network, 0)->arps_answered, 2);
	assert_null(neighbour_find(network->nodes[0].transport, 0));
	arp_inject(network, 0, &other, mac_stranger);
	assert_int_equal(counters(network, 0)->arps_answered, 2);
	assert_int_equal(counters(network, 0)->dropped_arp, 0);
	network_destroy(network);
}

static void receive__answers_that_nobody_asked_for_are_dropped(void **state)
{
	struct network *network = network_make(2);
	uint32_t nid = network->nodes[1].self.nid;
	struct arp lie = arp_of(nid, mac_stranger, true, network->nodes[0].self.nid);
	uint64_t dropped;

	(void)state;
	arp_inject(network, 0, &lie, mac_stranger);
	assert_null(neighbour_find(network->nodes[0].transport, nid));
	assert_int_equal(counters(network, 0)->dropped_arp, 1);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	dropped = counters(network, 0)->dropped_arp; /* this network returns broadcasts */
	arp_inject(network, 0, &lie, mac_stranger);  /* it has been answered */
	assert_memory_equal(neighbour_find(network->nodes[0].transport, nid),
		network->nodes[1].port.address, 6);
	assert_int_equal(counters(network, 0)->dropped_arp, dropped + 1);
	network_destroy(network);
}

static void receive__who_claims_the_own_address_is_dropped(void **state)
{
	struct network *network = network_make(2);
	uint32_t own = network->nodes[0].self.nid;
	struct arp lie = arp_of(own, mac_stranger, false, own);

	(void)state;
	arp_inject(network, 0, &lie, mac_stranger);
	assert_int_equal(counters(network, 0)->dropped_arp, 1);
	assert_int_equal(counters(network, 0)->arps_answered, 0);
	assert_memory_equal(neighbour_find(network->nodes[0].transport, own),
		network->nodes[0].port.address, 6);
	network_destroy(network);
}

static void find__forgets_after_a_while(void **state)
{
	struct network *network = network_make(2);

	(void)state;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_non_null(neighbour_find(network->nodes[0].transport, network->nodes[1].self.nid));
	network_pass(network, 100 * SECOND);
	network_step(network);
	network_send(network, 0, 1, 8);
	assert_null(neighbour_find(network->nodes[0].transport, network->nodes[1].self.nid));
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

static void ask__for_more_than_the_table_holds_keeps_the_newest(void **state)
{
	struct network *network = network_make(1);
	struct transport *transport = network->nodes[0].transport;
	struct process nobody = {1, 1};
	uint32_t i;

	(void)state;
	for (i = 0; i < 5000; i++) {
		uint32_t address = 0x0b000000 + i * 7;
		struct arp answer = arp_of(address, mac_stranger, true, network->nodes[0].self.nid);

		neighbour_ask(transport, address, nobody);
		arp_inject(network, 0, &answer, mac_stranger);
		assert_memory_equal(neighbour_find(transport, address), mac_stranger, 6);
	}
	network_destroy(network);
}

/* --- liars */

/* A frame as node 1 would send it to node 0, with one part of it wrong. */
static uint32_t frame_forge(struct network *network, uint8_t *bytes, uint32_t nid)
{
	struct encapsulation_options options = network->options.encapsulation;
	struct rte_mbuf mbuf = {.buf_addr = bytes};
	struct encapsulation encapsulation;
	struct frame frame = {
		.type = FRAME_ASK,
		.length = FRAME_HEADER_BYTES,
		.source_nid = nid,
		.source_pid = 7,
		.source_incarnation = 1,
		.destination_nid = network->nodes[0].self.nid,
		.destination_pid = 7,
	};

	options.address = network->nodes[1].self.nid;
	encapsulation_init(&encapsulation, &options, network->nodes[1].port.address, false);
	frame_encode(&frame, bytes + encapsulation.bytes);
	encapsulation_write(&encapsulation, &mbuf, network->nodes[0].port.address, &frame);
	return encapsulation.bytes + frame.length;
}

static void outer__lies_cost_a_counter_each(void **state)
{
	struct network *network = network_make(2);
	uint8_t bytes[FRAME_SIZE];
	uint32_t length;

	(void)state;
	length = frame_forge(network, bytes, network->nodes[1].self.nid);
	network_inject(network, 0, bytes, length);
	bytes[IPV4_AT + 10] ^= 1;
	network_inject(network, 0, bytes, length);
	bytes[IPV4_AT + 10] ^= 1;
	bytes[length - 1] ^= 1;
	network_inject(network, 0, bytes, length);
	length = frame_forge(network, bytes, STRANGER);
	network_inject(network, 0, bytes, length);
	network_pass(network, 10000);
	assert_int_equal(counters(network, 0)->asks_received, 1);
	assert_int_equal(counters(network, 0)->dropped_ipv4, 1);
	assert_int_equal(counters(network, 0)->dropped_udp, 1);
	assert_int_equal(counters(network, 0)->dropped_spoofed, 1);
	network_destroy(network);
}

static void outer__mutated_does_no_harm(void **state)
{
	struct network *network = network_make(2);
	uint8_t bytes[FRAME_SIZE];
	unsigned i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint32_t length = frame_forge(network, bytes, network->nodes[1].self.nid);
		unsigned flips = (unsigned)network_random(network) % 4;
		struct arp arp = arp_of((uint32_t)network_random(network),
			network->nodes[1].port.address, flips & 1, network->nodes[0].self.nid);

		if (i % 3 == 0) {
			bytes[13] = 6;
			arp_write(bytes + FRAME_ETHERNET_BYTES, &arp);
		}
		for (; flips > 0; flips--)
			bytes[6 + network_random(network) % (length - 6)] ^=
				(uint8_t)(1u << network_random(network) % 8);
		if (i % 5 == 0)
			length = (uint32_t)(network_random(network) % (length + 1));
		network_inject(network, 0, bytes, length);
		if (i % 64 == 0)
			network_pass(network, 10000);
	}
	network_pass(network, MILLISECOND);
	assert_int_equal(counters(network, 0)->peers_made, 1);
	network_send(network, 0, 1, 5000);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].ended, 1);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__asks_the_link_once_and_the_process_once),
		cmocka_unit_test(send__to_a_host_that_is_not_there_asks_less_and_less),
		cmocka_unit_test(send__after_a_pause_asks_as_at_first),
		cmocka_unit_test(marks__are_told_though_the_first_frame_that_tells_is_lost),
		cmocka_unit_test(gateway__is_asked_for_once_for_all_nodes_beyond),
		cmocka_unit_test(gateway__carries_large_messages_both_ways),
		cmocka_unit_test(marks__are_told_and_narrow_the_window),
		cmocka_unit_test(gateway__that_fails_over_is_found_again),
		cmocka_unit_test(receive__a_question_is_answered_and_teaches_nothing),
		cmocka_unit_test(receive__answers_that_nobody_asked_for_are_dropped),
		cmocka_unit_test(receive__who_claims_the_own_address_is_dropped),
		cmocka_unit_test(find__forgets_after_a_while),
		cmocka_unit_test(ask__for_more_than_the_table_holds_keeps_the_newest),
		cmocka_unit_test(outer__lies_cost_a_counter_each),
		cmocka_unit_test(outer__mutated_does_no_harm),
	};

	setenv("TEST_ENCAP", "udp", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
