/* SPDX-License-Identifier: BSD-3-Clause */
/* test_once.c - whole transports: no stream begins twice, and no frame is delivered twice, however
 * late; and peers that live and are silent go on without a failure all the same (peer.h I5).
 *
 * Covers: lib/transport/receiver.c, lib/transport/address.c, lib/transport/life.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <transport/address.h>
#include <transport/internal.h>
#include <transport/life.h>
#include <transport/peer.h>

#include "network.h"

#define KEPT_MAX 2000

/* Every frame from node 1 to node 0. */
static struct kept {
	uint32_t length;
	uint8_t bytes[NETWORK_FRAME];
} kept[KEPT_MAX];
static unsigned kept_count;
static unsigned lost; /* frames of data from node 1 that are still to be lost */
static bool mute;     /* so are all acknowledgements of node 0 */

static void frame_read(const struct network *network, const uint8_t *bytes, struct frame *frame)
{
	frame_recall(bytes + network->nodes[0].transport->encapsulation.bytes, frame);
}

static bool keep_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	frame_read(network, bytes, &frame);
	if (from != 1 || to != 0)
		return !mute || frame.type != FRAME_ACK;
	if (kept_count < KEPT_MAX) {
		struct kept *one = &kept[kept_count++];

		one->length = network->nodes[0].transport->encapsulation.bytes + frame.length;
		memcpy(one->bytes, bytes, one->length);
	}
	if (frame.type != FRAME_DATA || lost == 0)
		return true;
	lost--;
	return false;
}

static struct network *once_network(bool secret)
{
	struct network *network = network_standard(2, network_seed());

	kept_count = lost = 0;
	mute = false;
	network->filter = keep_filter;
	network->faults.delay = 10 * MICROSECOND;
	if (secret)
		network->options.secret = (struct secret){.key = {network_seed(), 1}};
	network_start(network);
	return network;
}

/* All that node 1 has ever sent comes again. */
static void all_repeat(struct network *network)
{
	const unsigned count = kept_count;

	for (unsigned i = 0; i < count; i++) {
		network_inject(network, 0, kept[i].bytes, kept[i].length);
		network_pass(network, 10 * MICROSECOND);
	}
}

static void repeats__are_delivered_at_no_time(bool secret, uint64_t wait)
{
	struct network *network = once_network(secret);
	struct node *node = &network->nodes[0];

	for (unsigned i = 1; i <= 4; i++) {
		network_send(network, 1, 0, 100);
		assert_true(network_run(network, SECOND));
		network_pass(network, STREAM_IDLE + SECOND);
		assert_int_equal(node->begun, i);
	}
	for (unsigned i = 0; i < 5; i++) {
		network_pass(network, wait);
		all_repeat(network);
		assert_int_equal(node->begun, 4);
	}
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(node->begun, 5);
	assert_int_equal(network->nodes[1].done, 5);
	network_check(network);
	network_destroy(network);
}

/* The stream is not gone on with any more, and the process is known. */
static void stream__that_is_over_is_not_begun_again(void **state)
{
	(void)state;
	repeats__are_delivered_at_no_time(false, 33 * SECOND);
	repeats__are_delivered_at_no_time(true, 33 * SECOND);
	repeats__are_delivered_at_no_time(true, 63 * SECOND);
}

/* The process is forgotten, and what it sent is repeated at once. */
static void stream__of_a_process_that_was_forgotten_is_not_begun_again(void **state)
{
	(void)state;
	repeats__are_delivered_at_no_time(false, 130 * SECOND);
	repeats__are_delivered_at_no_time(true, 130 * SECOND);
	repeats__are_delivered_at_no_time(true, 3600 * SECOND);
}

/* The receiver was stopped meanwhile, so it has told no other psn. */
static void stream__is_not_begun_again_after_a_stop(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	for (unsigned i = 0; i < 5; i++) {
		network->now += 200 * SECOND;
		all_repeat(network);
		assert_int_equal(node->begun, 1);
	}
	network_destroy(network);
}

/* A process that ended, and lives after all, has said what it said. */
static void stream__is_not_begun_again_when_a_life_was_thought_over(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];
	struct peer *peer;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	peer = peer_table_find(&node->transport->peers, network->nodes[1].self);
	node->lost_ok = 1;
	peer_ended(node->transport, peer);
	all_repeat(network);
	network_pass(network, SECOND);
	assert_int_equal(peer->address_state, ADDRESS_KNOWN);
	all_repeat(network);
	assert_int_equal(node->begun, 1);
	network_send(network, 1, 0, 100);
	network_run(network, SECOND);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_true(node->begun >= 2);
	network_destroy(network);
}

/* Each may have forgotten the other, or not, or only one of the two. */
static void peers__silent_for_any_time_go_on_without_a_failure(void **state)
{
	struct network *network = once_network(true);

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		unsigned from = network_random(network) % 3 == 0;

		network_send(network, from, !from, 100);
		if (network_random(network) % 2 == 0)
			network_pass(network, network_random(network) % (2 * SECOND));
		if (network_random(network) % 2 == 0)
			network_send(network, !from, from, 100);
		assert_true(network_run(network, SECOND));
		network_pass(network, network_random(network) % (260 * SECOND));
		assert_int_equal(network->nodes[0].failed[TRANSPORT_RESTARTED], 0);
		assert_int_equal(network->nodes[1].failed[TRANSPORT_RESTARTED], 0);
	}
	network_check(network);
	network_destroy(network);
}

/* A process that was silent for long asks once before it begins a stream, and not before. */
static void question__comes_once_after_a_long_silence(void **state)
{
	struct network *network = once_network(true);
	const struct transport_counters *counters = &network->nodes[1].counters;
	uint64_t asked;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	asked = counters->asks_sent;
	network_pass(network, 85 * SECOND);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(counters->asks_sent, asked);
	network_pass(network, 95 * SECOND);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(counters->asks_sent, asked + 1);
	assert_int_equal(network->nodes[0].begun, 3);
	network_check(network);
	network_destroy(network);
}

/* Node 1 asks while nothing of its stream is acknowledged, because frames were lost; meanwhile node
 * 0 tells others another psn. `taken`: the frames came, and the acknowledgements were lost. */
static void generation__turns_meanwhile(bool taken, unsigned turns, uint64_t failed)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];

	lost = taken ? 0 : 8;
	mute = taken;
	network_send(network, 1, 0, 100);
	network_pass(network, MILLISECOND);
	assert_int_equal(node->begun, taken);
	node->transport->generation += turns;
	network_pass(network, 100 * MILLISECOND);
	mute = false;
	assert_true(network_run(network, 5 * SECOND));
	assert_true(network->nodes[1].counters.asks_sent > 1);
	assert_int_equal(network->nodes[1].failed[TRANSPORT_RESTARTED], failed);
	assert_int_equal(node->begun, 1 - failed);
	network_destroy(network);
}

static void stream__goes_on_while_its_psn_is_good(void **state)
{
	(void)state;
	generation__turns_meanwhile(false, 1, 0);
	generation__turns_meanwhile(true, 1, 0);
	generation__turns_meanwhile(true, 5, 0);
	generation__turns_meanwhile(false, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream__that_is_over_is_not_begun_again),
		cmocka_unit_test(stream__of_a_process_that_was_forgotten_is_not_begun_again),
		cmocka_unit_test(stream__is_not_begun_again_after_a_stop),
		cmocka_unit_test(stream__is_not_begun_again_when_a_life_was_thought_over),
		cmocka_unit_test(peers__silent_for_any_time_go_on_without_a_failure),
		cmocka_unit_test(question__comes_once_after_a_long_silence),
		cmocka_unit_test(stream__goes_on_while_its_psn_is_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
