/* SPDX-License-Identifier: BSD-3-Clause */
/* test_once.c - whole transports: no stream begins twice, and no frame is delivered twice, however
 * late; and peers that live and are silent go on without a failure all the same (peer.h I5). No psn
 * is used twice in a stream (I7).
 *
 * Covers: lib/transport/receiver.c, lib/transport/address.c, lib/transport/life.c,
 * lib/transport/sender.c, lib/transport/timers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

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
static unsigned lost;     /* frames of data from node 1 that are still to be lost */
static bool mute;         /* so are all acknowledgements of node 0 */
static bool shy;          /* and its questions */
static struct frame told; /* node 0's last answer to node 1 */

static void frame_read(const struct network *network, const uint8_t *bytes, struct frame *frame)
{
	frame_recall(bytes + network->nodes[0].transport->encapsulation.bytes, frame);
}

static bool keep_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	frame_read(network, bytes, &frame);
	if (from == 0 && frame.type == FRAME_TELL)
		told = frame;
	if (from != 1 || to != 0)
		return !(mute && frame.type == FRAME_ACK) && !(shy && frame.type == FRAME_ASK);
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
	mute = shy = false;
	network->filter = keep_filter;
	network->faults.delay = 10 * MICROSECOND;
	if (secret)
		network->options.secret = (struct secret){.key = {network_seed(), 1}};
	network_start(network);
	return network;
}

static struct peer *peer_of(struct network *network, unsigned node, unsigned other)
{
	return peer_table_find(&network->nodes[node].transport->peers, network->nodes[other].self);
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

/* Node 1 is asked where it is when its frames come again from elsewhere, and stays where it is. */
static void repeat__from_elsewhere_moves_nobody(void **state)
{
	struct network *network = once_network(true);
	const uint8_t *address = network->nodes[1].port.address;
	const struct node *node = &network->nodes[0];
	const struct peer *peer;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		network_send(network, i % 2, !(i % 2), 100);
		assert_true(network_run(network, SECOND));
	}
	peer = peer_table_find(&node->transport->peers, network->nodes[1].self);
	for (unsigned i = 0, count = kept_count; i < count; i++) {
		kept[i].bytes[FRAME_ADDRESS_BYTES] ^= 4;
		network_inject(network, 0, kept[i].bytes, kept[i].length);
		network_step(network);
		assert_memory_equal(peer->address, address, FRAME_ADDRESS_BYTES);
		network_pass(network, 10 * MILLISECOND);
	}
	assert_true(node->counters.challenges_sent > 2);
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, MILLISECOND));
	network_check(network);
	network_destroy(network);
}

static uint64_t asks_sent(const struct network *network, unsigned node)
{
	return network->nodes[node].counters.asks_sent;
}

/* Each may have forgotten the other, or not, or only one of the two. No silence costs either more
 * than one question. */
static void peers__silent_for_any_time_go_on_without_a_failure(void **state)
{
	struct network *network = once_network(true);

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		unsigned from = network_random(network) % 3 == 0;
		uint64_t asked[] = {asks_sent(network, 0), asks_sent(network, 1)};

		network_send(network, from, !from, 100);
		if (network_random(network) % 2 == 0)
			network_pass(network, network_random(network) % (2 * SECOND));
		if (network_random(network) % 2 == 0)
			network_send(network, !from, from, 100);
		assert_true(network_run(network, SECOND));
		network_pass(network, network_random(network) % (260 * SECOND));
		assert_int_equal(network->nodes[0].failed[TRANSPORT_RESTARTED], 0);
		assert_int_equal(network->nodes[1].failed[TRANSPORT_RESTARTED], 0);
		assert_true(asks_sent(network, 0) <= asked[0] + 1);
		assert_true(asks_sent(network, 1) <= asked[1] + 1);
	}
	network_check(network);
	network_destroy(network);
}

/* A process that was silent for long asks once before it begins a stream, and not before. */
static void question__comes_once_after_a_long_silence(void **state)
{
	struct network *network = once_network(true);
	uint64_t asked;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	asked = asks_sent(network, 1);
	network_pass(network, 85 * SECOND);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(asks_sent(network, 1), asked);
	network_pass(network, 95 * SECOND);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(asks_sent(network, 1), asked + 1);
	assert_int_equal(network->nodes[0].begun, 3);
	network_check(network);
	network_destroy(network);
}

/* A message needs the answer to a question that is out already, because the peer was challenged. It
 * has the whole peer timeout from then on, not from the last acknowledgement. */
static void question__that_is_out_already_gives_a_message_its_time(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[1].transport;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	network_pass(network, 95 * SECOND);
	network->nodes[0].cut = true;
	address_challenge(
		transport, peer_table_find(&transport->peers, network->nodes[0].self), NULL);
	network_send(network, 1, 0, 100);
	network_pass(network, 9 * SECOND);
	network->nodes[0].cut = false;
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].failed[TRANSPORT_UNREACHABLE], 0);
	assert_int_equal(network->nodes[0].begun, 2);
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

/* Node 1 asks node 0. */
static void ask(struct network *network)
{
	told.type = 0;
	address_challenge(network->nodes[1].transport, peer_of(network, 1, 0), NULL);
	network_pass(network, 10 * MILLISECOND);
	assert_int_equal(told.type, FRAME_TELL);
}

/* Node 1 asks before it begins a stream, and node 0 tells the next psn: the answer is none to what
 * comes behind the question. */
static void stream__that_begins_behind_a_question_outlives_the_answer(void **state)
{
	struct network *network = once_network(true);

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	network_pass(network, STREAM_IDLE + SECOND);
	network->nodes[0].transport->generation++;
	address_challenge(network->nodes[1].transport, peer_of(network, 1, 0), NULL);
	network_send(network, 1, 0, 40000);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].failed[TRANSPORT_RESTARTED], 0);
	assert_int_equal(network->nodes[1].done, 2);
	network_check(network);
	network_destroy(network);
}

/* The same of the next life of node 1, of which node 0 has not heard: what it knows of the earlier
 * one makes no psn good. */
static void stream__of_another_life_goes_on_while_its_psn_is_good(void **state)
{
	(void)state;
	for (unsigned turns = 1; turns <= 2; turns++) {
		struct network *network = once_network(true);
		struct node *node = &network->nodes[0];
		uint16_t generation;

		network_send(network, 1, 0, 100);
		assert_true(network_run(network, SECOND));
		node_kill(network, 1);
		node_start(network, 1, 2);
		lost = 8;
		shy = true;
		network_send(network, 1, 0, 100);
		network_pass(network, MILLISECOND);
		generation = told.stream;
		node->transport->generation += turns;
		ask(network);
		assert_int_equal(told.stream, (uint16_t)(turns == 1 ? generation : generation + 2));
		shy = false;
		assert_true(network_run(network, 5 * SECOND));
		assert_int_equal(network->nodes[1].failed[TRANSPORT_RESTARTED], turns - 1);
		assert_int_equal(node->begun, 3 - turns);
		network_destroy(network);
	}
}

/* --- generations */

static void psn__is_told_for_its_life_and_never_again(void **state)
{
	struct network *network = once_network(true);
	uint32_t psns[8];
	uint64_t begun;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	for (unsigned i = 0; i < RTE_DIM(psns); i++) {
		const uint16_t generation = told.stream;

		begun = network->now;
		psns[i] = told.first;
		for (unsigned n = 0; n < i; n++)
			assert_int_not_equal(psns[i], psns[n]);
		while (told.first == psns[i]) {
			assert_int_equal(told.stream, generation);
			network_pass(network, SECOND);
			network_send(network, 1, 0, 100);
			ask(network);
		}
		assert_int_equal(told.stream, (uint16_t)(generation + 1));
		if (i > 0)
			assert_in_range(
				network->now - begun, PSN_LIFE - 2 * SECOND, PSN_LIFE + 2 * SECOND);
	}
	network_destroy(network);
}

/* Nothing but its own timer makes it look, which runs from when it asks for itself. */
static void generation__goes_on_in_a_process_that_is_alone(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[0].transport;
	uint32_t generation;

	(void)state;
	transport_claim(transport);
	network_pass(network, SECOND);
	generation = transport->generation;
	network_pass(network, 2 * PSN_LIFE + SECOND);
	assert_int_equal(transport->generation - generation, 2);
	network_destroy(network);
}

/* The process was stopped, and hears the question before any timer has run. */
static void psn__that_is_too_old_is_not_told_after_a_stop(void **state)
{
	struct network *network = once_network(true);
	uint32_t psn;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	psn = told.first;
	network->now += 1000 * SECOND;
	ask(network);
	assert_int_not_equal(told.first, psn);
	network_destroy(network);
}

/* A psn of 65,536 generations before does not return. */
static void psn__does_not_return_when_generations_wrap_round(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[0].transport;
	uint32_t psn;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	ask(network);
	psn = told.first;
	transport->generation += 1u << 16;
	ask(network);
	assert_int_not_equal(told.first, psn);
	network_destroy(network);
}

/* Of two streams that the process has begun, the first comes again while its psn is good. */
static void stream__of_an_earlier_generation_is_not_begun_again(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	node->transport->generation++;
	ask(network);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	all_repeat(network);
	assert_int_equal(node->begun, 2);
	network_destroy(network);
}

/* Node 0 has forgotten node 1, and knows it again because it has sent it a message. */
static void stream__of_a_process_that_is_known_again_is_not_begun_again(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];
	uint32_t generation;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	generation = node->transport->generation;
	while (node->counters.peers_forgotten == 0)
		network_pass(network, SECOND);
	assert_int_equal(node->transport->generation - generation, 2);
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	all_repeat(network);
	assert_int_equal(node->begun, 1);
	network_destroy(network);
}

/* A stream whose number cannot be compared with that of the first one that began with its psn. */
static void stream__too_far_from_the_first_of_its_psn_does_not_begin(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];
	struct peer *peer;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	network_pass(network, STREAM_IDLE + SECOND);
	peer = peer_of(network, 0, 1);
	peer->rx_base = (uint16_t)(peer->rx_stream + 1 - INT16_MAX);
	network_send(network, 1, 0, 100);
	network_pass(network, SECOND);
	assert_int_equal(node->begun, 1);
	peer->rx_base++;
	assert_true(network_run(network, SECOND));
	assert_int_equal(node->begun, 2);
	network_check(network);
	network_destroy(network);
}

/* --- questions for psns */

/* Node 1 sends a message, and asks so often before. */
static void asks_before_a_message(struct network *network, unsigned questions)
{
	const uint64_t asked = asks_sent(network, 1), begun = network->nodes[0].begun;

	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(asks_sent(network, 1), asked + questions);
	assert_int_equal(network->nodes[0].begun, begun + 1);
	network_check(network);
}

static void question__comes_once_when_a_psn_has_begun_many_streams(void **state)
{
	struct network *network = once_network(true);
	struct peer *peer;

	(void)state;
	asks_before_a_message(network, 1);
	peer = peer_of(network, 1, 0);
	peer->tx_base = (uint16_t)(peer->tx_stream - PSN_STREAMS + 1);
	network_pass(network, STREAM_IDLE + SECOND);
	asks_before_a_message(network, 0);
	network_pass(network, STREAM_IDLE + SECOND);
	asks_before_a_message(network, 1);
	network_pass(network, STREAM_IDLE + SECOND);
	asks_before_a_message(network, 0);
	network_destroy(network);
}

/* A psn was told while the stream of another one was open, and not used. */
static void question__comes_before_a_psn_that_was_not_used_for_long(void **state)
{
	struct network *network = once_network(true);

	(void)state;
	asks_before_a_message(network, 1);
	network->nodes[0].transport->generation++;
	ask(network);
	network_pass(network, PSN_FRESH + 10 * SECOND);
	asks_before_a_message(network, 1);
	network_destroy(network);
}

/* So long that the time when it was told has wrapped round. Node 0 alone sends meanwhile. */
static void question__comes_before_a_psn_that_was_not_used_for_very_long(void **state)
{
	const uint64_t round = (UINT64_C(1) << (16 + PSN_TICK_SHIFT)) + SECOND;
	struct network *network = once_network(true);
	uint64_t end;

	(void)state;
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	for (end = network->now + round; network->now < end;) {
		network_pass(network, RTE_MIN(STREAM_IDLE / 2, end - network->now));
		network_send(network, 0, 1, 100);
		assert_true(network_run(network, SECOND));
	}
	asks_before_a_message(network, 1);
	network_destroy(network);
}

/* Node 1 was stopped meanwhile: no timer of its own has run, and node 0 takes that psn no more. */
static void question__comes_before_a_psn_that_was_not_used_while_the_process_was_stopped(
	void **state)
{
	const uint64_t round = (UINT64_C(1) << (16 + PSN_TICK_SHIFT)) + SECOND;
	struct network *network = once_network(true);

	(void)state;
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	network->nodes[1].stalled_until = network->now + round;
	network_pass(network, round);
	asks_before_a_message(network, 1);
	network_destroy(network);
}

/* Node 0 was suspended meanwhile, with its clock. */
static void question__that_tells_the_same_psn_is_enough(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[0].transport;
	uint32_t generation;

	(void)state;
	asks_before_a_message(network, 1);
	generation = transport->generation;
	network_pass(network, PSN_KNOWN + SECOND);
	transport->generation = generation;
	transport->generation_at = network->now;
	asks_before_a_message(network, 1);
	network_destroy(network);
}

/* Node 0 has forgotten node 1, whose stream is open, and says so in its answer. */
static void stream__ends_when_another_psn_is_told(void **state)
{
	struct network *network = once_network(false);
	struct transport *transport = network->nodes[0].transport;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		asks_before_a_message(network, i == 0);
	transport->generation += 2;
	peer_forget(transport, peer_of(network, 0, 1));
	ask(network);
	asks_before_a_message(network, 0);
	network_destroy(network);
}

/* Node 1 asks while messages are in flight on a stream that goes on at node 0, and is told another
 * psn: they do not fail. */
static void stream__of_which_something_was_acknowledged_outlives_an_answer(void **state)
{
	struct network *network = once_network(true);
	const struct peer *peer;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	peer = peer_of(network, 1, 0);
	lost = 4;
	network_send(network, 1, 0, 100);
	network_send(network, 1, 0, 100);
	network_pass(network, MICROSECOND);
	assert_non_null(peer->flight);
	network->nodes[0].transport->generation += 3;
	ask(network);
	assert_int_not_equal(told.first, peer->first);
	assert_true(network_run(network, 5 * SECOND));
	assert_int_equal(network->nodes[1].done, 3);
	assert_int_equal(network->nodes[0].begun, 3);
	network_check(network);
	network_destroy(network);
}

/* Nothing of the stream was acknowledged, and node 0 does not take its psn any more: what was sent
 * fails. What waits behind it goes out at once, with the psn that is told. */
static void stream__that_is_not_taken_fails_alone(void **state)
{
	const unsigned count = 200;
	struct network *network = once_network(true);
	const uint64_t *failed = network->nodes[1].failed;
	uint64_t begun;

	(void)state;
	network->nodes[0].lost_ok = 1;
	lost = UINT32_MAX;
	for (unsigned i = 0; i < count; i++)
		network_send(network, 1, 0, 1300);
	network_pass(network, MILLISECOND);
	begun = UINT32_MAX - lost;
	assert_in_range(begun, 1, count - 1);
	lost = 0;
	network->nodes[0].transport->generation += 2;
	ask(network);
	assert_in_range(failed[TRANSPORT_RESTARTED], 1, begun);
	assert_in_range(network->nodes[0].begun, 1, count);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].done + failed[TRANSPORT_RESTARTED], count);
	assert_int_equal(network->nodes[0].begun, network->nodes[1].done);
	assert_in_range(failed[TRANSPORT_RESTARTED], 1, begun);
	network_destroy(network);
}

/* Node 1 has forgotten node 0 and begins with a number that node 0 knows to be over. */
static void stream__goes_on_under_a_later_number(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[1].transport;
	struct peer *peer;

	(void)state;
	asks_before_a_message(network, 1);
	peer_forget(transport, peer_of(network, 1, 0));
	transport->stream = (uint16_t)(transport->stream - 5000);
	asks_before_a_message(network, 1);
	peer = peer_of(network, 1, 0);
	assert_int_equal(network->nodes[1].counters.resets_received, 1);
	assert_int_equal((uint16_t)(peer->tx_stream - peer->tx_base), 1);
	assert_int_equal(peer->tx_stream, peer_of(network, 0, 1)->rx_stream);
	network_destroy(network);
}

/* Node 1 has forgotten node 0, and its next stream happens to have the number of the open one. */
static void stream__of_the_same_number_and_another_psn_begins(void **state)
{
	struct network *network = once_network(true);
	struct transport *transport = network->nodes[1].transport;
	uint16_t number;

	(void)state;
	asks_before_a_message(network, 1);
	network->nodes[0].transport->generation++;
	peer_forget(transport, peer_of(network, 1, 0));
	number = peer_of(network, 0, 1)->rx_stream;
	transport->stream = (uint16_t)(number - 1 - transport->now / STREAM_TICK);
	asks_before_a_message(network, 1);
	assert_int_equal(peer_of(network, 1, 0)->tx_stream, number);
	assert_int_equal(network->nodes[0].counters.dropped_stale, 1);
	all_repeat(network);
	assert_int_equal(network->nodes[0].begun, 2);
	network_destroy(network);
}

/* --- crowds */

#define CROWD      60 /* of which a table for 64 leaves room for 48 */
#define CROWD_ROOM 64

static struct network *crowd_network(void)
{
	struct network *network = network_standard(CROWD, network_seed());

	network->options.secret = (struct secret){.key = {network_seed(), 1}};
	network->options.peers_max = CROWD_ROOM;
	network_start(network);
	return network;
}

/* Nodes `from` to `to` send node 0 a message, one after the other. */
static void crowd_sends(struct network *network, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		network_send(network, i, 0, 100);
		network_pass(network, 25 * MILLISECOND);
	}
}

/* It turns generations so fast that others can be forgotten. */
static void crowd__finds_room(void **state)
{
	struct network *network = crowd_network();

	(void)state;
	crowd_sends(network, 1, CROWD);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].begun, CROWD - 1);
	assert_in_range(network->nodes[0].counters.peers_forgotten, 11, 20);
	network_check(network);
	network_destroy(network);
}

/* Those who may take the next stream for the last one are not forgotten. */
static void crowd__does_not_make_a_number_return(void **state)
{
	const uint64_t returns = (UINT64_C(1) << 16) * STREAM_TICK - PSN_KNOWN;
	struct network *network = crowd_network();
	const unsigned known = 45;

	(void)state;
	crowd_sends(network, 1, known);
	for (unsigned i = 1; i < known; i++)
		network_send(network, 0, i, 100);
	assert_true(network_run(network, SECOND));
	for (unsigned i = 0; i < 4; i++) {
		network_pass(network, returns / 4 + SECOND);
		crowd_sends(network, 1, known);
	}
	crowd_sends(network, known, CROWD);
	assert_true(network->nodes[0].counters.peers_forgotten > 0);
	for (unsigned i = 1; i < known; i++)
		assert_non_null(peer_of(network, 0, i));
	network_destroy(network);
}

/* --- psns */

/* The stream to node 0 goes on as if so many of its psns had been used. */
static struct peer *psns_used(struct network *network, uint32_t used)
{
	struct peer *to =
		peer_table_find(&network->nodes[1].transport->peers, network->nodes[0].self);
	struct peer *from =
		peer_table_find(&network->nodes[0].transport->peers, network->nodes[1].self);

	assert_null(to->flight);
	assert_int_equal(to->tx_next, from->rx_next);
	to->tx_una = to->tx_next = from->rx_next = to->first + used;
	return to;
}

/* Sends messages of so many bytes without a pause. */
static void messages_follow(struct network *network, unsigned count, uint64_t length)
{
	for (unsigned i = 0; i < count; i++) {
		if (i % 4 == 0)
			network_pass(network, 5 * MICROSECOND);
		network_send(network, 1, 0, length);
	}
}

static void stream__ends_when_its_psns_are_used(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];
	struct peer *peer;
	uint16_t stream;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	peer = psns_used(network, STREAM_PSNS - 500);
	stream = peer->tx_stream;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	messages_follow(network, 3000, 1300);
	assert_true(network_run(network, SECOND));
	assert_int_equal((uint16_t)(peer->tx_stream - stream), 1);
	assert_true(peer->tx_next - peer->first < 3000);
	assert_int_equal(node->begun, 3002);
	network_check(network);
	all_repeat(network);
	assert_int_equal(node->begun, 3002);
	network_destroy(network);
}

/* Messages that begin later wait for the end of what was sent. */
static void message__ends_in_the_stream_that_it_began_in(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	struct peer *peer;
	uint16_t stream;

	(void)state;
	network->faults.delay = 10 * MICROSECOND;
	network->options.stream_psns = 1000;
	network_start(network);
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	peer = psns_used(network, 500);
	stream = peer->tx_stream;
	network_send(network, 1, 0, NETWORK_PATTERN / 2);
	while (peer->outgoing != OUTGOING_LAST) {
		assert_int_not_equal(peer->queued, 0);
		network_step(network);
	}
	network_send(network, 1, 0, 100);
	while (peer->open.head) {
		assert_int_equal(peer->tx_stream, stream);
		network_step(network);
	}
	assert_int_equal(node->begun, 2);
	assert_true(network_run(network, SECOND));
	assert_int_equal(node->begun, 3);
	assert_int_equal((uint16_t)(peer->tx_stream - stream), 1);
	network_check(network);
	network_destroy(network);
}

static void message__that_needs_more_psns_than_a_stream_has_fails(void **state)
{
	struct network *network = once_network(true);
	struct node *node = &network->nodes[0];
	struct peer *peer;

	(void)state;
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	peer = psns_used(network, STREAM_END * STREAM_PSNS - 500);
	node->lost_ok = 1;
	network->faults.delay = MILLISECOND;
	network_send(network, 1, 0, NETWORK_PATTERN / 2);
	assert_true(network_run(network, SECOND));
	network_send(network, 1, 0, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[1].failed[TRANSPORT_DEAD], 1);
	assert_int_equal(network->nodes[1].done, 2);
	assert_int_equal(node->begun, 3);
	assert_int_equal(node->ended_badly, 1);
	assert_true(peer->tx_next - peer->first < 10);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream__that_is_over_is_not_begun_again),
		cmocka_unit_test(stream__of_a_process_that_was_forgotten_is_not_begun_again),
		cmocka_unit_test(stream__is_not_begun_again_after_a_stop),
		cmocka_unit_test(stream__is_not_begun_again_when_a_life_was_thought_over),
		cmocka_unit_test(repeat__from_elsewhere_moves_nobody),
		cmocka_unit_test(peers__silent_for_any_time_go_on_without_a_failure),
		cmocka_unit_test(question__comes_once_after_a_long_silence),
		cmocka_unit_test(question__that_is_out_already_gives_a_message_its_time),
		cmocka_unit_test(stream__goes_on_while_its_psn_is_good),
		cmocka_unit_test(stream__that_begins_behind_a_question_outlives_the_answer),
		cmocka_unit_test(stream__of_another_life_goes_on_while_its_psn_is_good),
		cmocka_unit_test(psn__is_told_for_its_life_and_never_again),
		cmocka_unit_test(generation__goes_on_in_a_process_that_is_alone),
		cmocka_unit_test(psn__that_is_too_old_is_not_told_after_a_stop),
		cmocka_unit_test(psn__does_not_return_when_generations_wrap_round),
		cmocka_unit_test(stream__of_an_earlier_generation_is_not_begun_again),
		cmocka_unit_test(stream__of_a_process_that_is_known_again_is_not_begun_again),
		cmocka_unit_test(stream__too_far_from_the_first_of_its_psn_does_not_begin),
		cmocka_unit_test(question__comes_once_when_a_psn_has_begun_many_streams),
		cmocka_unit_test(question__comes_before_a_psn_that_was_not_used_for_long),
		cmocka_unit_test(question__comes_before_a_psn_that_was_not_used_for_very_long),
		cmocka_unit_test(
			question__comes_before_a_psn_that_was_not_used_while_the_process_was_stopped),
		cmocka_unit_test(question__that_tells_the_same_psn_is_enough),
		cmocka_unit_test(stream__ends_when_another_psn_is_told),
		cmocka_unit_test(stream__of_which_something_was_acknowledged_outlives_an_answer),
		cmocka_unit_test(stream__that_is_not_taken_fails_alone),
		cmocka_unit_test(stream__goes_on_under_a_later_number),
		cmocka_unit_test(stream__of_the_same_number_and_another_psn_begins),
		cmocka_unit_test(crowd__finds_room),
		cmocka_unit_test(crowd__does_not_make_a_number_return),
		cmocka_unit_test(stream__ends_when_its_psns_are_used),
		cmocka_unit_test(message__ends_in_the_stream_that_it_began_in),
		cmocka_unit_test(message__that_needs_more_psns_than_a_stream_has_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
