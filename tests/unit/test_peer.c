/* SPDX-License-Identifier: BSD-3-Clause */
/* test_peer.c - whole transports over a faulty network: what becomes of a peer, and when what it
 * tells is read.
 *
 * Covers: lib/transport/peer.c, lib/transport/description.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <transport/peer.h>

#include <transport/internal.h>

#include "network.h"

/* It may have waited for a link to come up: what is lost next must not wait as long. */
static void peer__that_answers_late_is_not_taken_for_far(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network->faults.delay = 20 * MILLISECOND;
	network_start(network);
	network_send(network, 0, 1, 8);
	while (network_peer(network, 0, 1)->incarnation == 0)
		network_step(network);
	assert_int_equal(network_peer(network, 0, 1)->rtt, 0);
	assert_true(network_run(network, SECOND));
	assert_true(network_peer(network, 0, 1)->rtt >= 40 * MILLISECOND);
	network_check(network);
	network_destroy(network);
}

/* Both nodes look once a microsecond. */
static void nodes_poll(struct network *network, uint64_t ns)
{
	while (ns > 0) {
		network_pass(network, MICROSECOND);
		ns -= MICROSECOND;
	}
}

/* Then it does not know how long the frames have waited that it finds, and says that all the time
 * was its own. */
static void peer__that_was_away_is_not_taken_for_near(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *away = &network->nodes[1];

	(void)state;
	network->faults.delay = 100 * MICROSECOND;
	network->nodes[0].silent = away->silent = true;
	network_start(network);
	network_send(network, 0, 1, 8);
	nodes_poll(network, 2 * MILLISECOND);
	assert_true(network_peer(network, 0, 1)->delay_min >= 180 * MICROSECOND);
	for (unsigned i = 0; i < 3; i++) {
		away->stalled_until = network->now + MILLISECOND;
		nodes_poll(network, 300 * MICROSECOND);
		network_send(network, 0, 1, 8);
		nodes_poll(network, 2 * MILLISECOND);
	}
	assert_true(network_settled(network));
	assert_true(network_peer(network, 0, 1)->delay_min >= 180 * MICROSECOND);
	network_check(network);
	network_destroy(network);
}

/* A process that joins a crowd sees a full queue from its first frame on, and would take that for
 * the length of the way. */
static void peer__is_no_farther_than_its_first_answer_says(void **state)
{
	struct network *network = network_standard(2, network_seed());
	uint64_t first;

	(void)state;
	network->faults.delay = 10 * MICROSECOND;
	network->nodes[0].silent = network->nodes[1].silent = true;
	network_start(network);
	network_send(network, 0, 1, 8);
	nodes_poll(network, 2 * MICROSECOND);
	/* A node that comes so late to the answer knows only that the way takes no longer than the
	 * whole. */
	network->nodes[0].stalled_until = network->now + 60 * MICROSECOND;
	while (network_peer(network, 0, 1)->rtt == 0)
		network_pass(network, MICROSECOND);
	first = network_peer(network, 0, 1)->rtt;
	network->faults.delay = MILLISECOND;
	for (unsigned i = 0; i < 3; i++) {
		network_send(network, 0, 1, 8);
		nodes_poll(network, 4 * MILLISECOND);
	}
	assert_true(network_settled(network));
	assert_true(network_peer(network, 0, 1)->rtt > first);
	assert_true(network_peer(network, 0, 1)->delay_min <= first);
	network_check(network);
	network_destroy(network);
}

/* In a simulation that is so hasty a peer is forgotten after as much less, and so is its mark. */
static void peer__is_forgotten_sooner_in_haste(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct transport_counters *counters = &network->nodes[1].counters;

	(void)state;
	network->options.haste = 250;
	network->options.peer_timeout /= 250;
	network_start(network);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	for (unsigned i = 0; i < 2; i++)
		transport_mark(network->nodes[1].transport, network->nodes[0].self, true);
	network_pass(network, PEER_MEMORY / 250 - 20 * MILLISECOND);
	assert_int_equal(counters->peers_forgotten, 0);
	assert_int_equal(transport_marks(network->nodes[1].transport), 1);
	network_pass(network, 40 * MILLISECOND);
	assert_int_equal(counters->peers_forgotten, 1);
	assert_int_equal(transport_marks(network->nodes[1].transport), 0);
	network_destroy(network);
}

/* Answers to pings leave no trace at the one who answers: it forgets the peer that still hears from
 * it, and must not be taken for going on with a stream of which it knows nothing more. */
static void stream__is_forgotten_though_pings_are_answered(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[1];

	(void)state;
	network_start(network);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_pass(network, STREAM_IDLE + SECOND);
	for (unsigned i = 0; i < 3; i++) {
		network_send(network, 1, 0, 8); /* of a second stream */
		assert_true(network_run(network, SECOND));
	}
	for (unsigned i = 0; i < 10; i++) {
		struct ping ping = {.size = 100, .answer = 100};

		network_ping(network, 0, 1, &ping);
		network_pass(network, 20 * SECOND);
		assert_int_equal(ping.outcome, PING_ANSWERED);
	}
	assert_int_equal(node->counters.peers_forgotten, 1);
	for (unsigned i = 0; i < 5; i++) {
		network_send(network, 1, 0, 8);
		assert_true(network_run(network, SECOND));
	}
	assert_int_equal(node->done, 9);
	network_check(network);
	network_destroy(network);
}

/* Both nodes know each other; what node 0 sent lies at node 1, whose answer with the
 * acknowledgement on it lies at node 0, which has not looked yet. */
static void answer_arrive(struct network *network, unsigned messages)
{
	struct node *node = &network->nodes[0];

	network_start(network);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	while (messages-- > 0)
		network_send(network, 0, 1, 8);
	transport_transmit(node->transport);
	node->stalled_until = UINT64_MAX;
	network_pass(network, 6 * MICROSECOND); /* a frame takes 5 */
	network_send(network, 1, 0, 8);
	network_pass(network, 10 * MICROSECOND);
	assert_int_equal(node->done, 1);
}

/* The messages that it ends end before the data is there; the rest of it is read when answers to
 * the data have had their turn. */
static void acknowledgement__ends_messages_before_the_data_beside_it_is_delivered(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	answer_arrive(network, 1);
	assert_int_equal(transport_receive(node->transport), 1);
	transport_process(node->transport);
	assert_int_equal(node->ended, 2);
	assert_int_equal(node->done, 2);
	assert_int_equal(node->done_before, 2);
	assert_false(transport_settled(node->transport));
	assert_int_equal(transport_deadline(node->transport), 0);
	transport_transmit(node->transport);
	assert_int_not_equal(transport_deadline(node->transport), 0);
	node->stalled_until = 0;
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* Nor is it forgotten when the turn is never ended. */
static void acknowledgement__is_read_before_the_next_frames(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	answer_arrive(network, 1);
	transport_receive(node->transport);
	transport_process(node->transport);
	assert_int_equal(node->transport->pending_ack_count, 1);
	transport_receive(node->transport);
	assert_int_equal(node->transport->pending_ack_count, 0);
	network_destroy(network);
}

static void acknowledgement__outlives_the_peer_that_ends_behind_it(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	answer_arrive(network, 1);
	transport_close(network->nodes[1].transport); /* says BYE */
	network->nodes[1].transport = NULL;
	network_pass(network, 10 * MICROSECOND);
	assert_int_equal(transport_receive(node->transport), 2);
	transport_process(node->transport);
	assert_int_equal(node->done, 2);
	assert_int_equal(node->ended, 2);
	assert_int_equal(node->failed[TRANSPORT_RESTARTED], 0);
	network_destroy(network);
}

static void acknowledgement__that_opens_the_window_is_used_in_its_turn(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t sent;
	unsigned i;

	(void)state;
	answer_arrive(network, 1);
	/* More than a window lets go, queued before the acknowledgement is looked at, and then
	 * after it. */
	for (i = 0; i < 40; i++)
		network_send(network, 0, 1, 1400);
	transport_transmit(node->transport);
	sent = node->counters.frames_sent;
	transport_transmit(node->transport);
	assert_int_equal(node->counters.frames_sent, sent);
	transport_receive(node->transport);
	transport_process(node->transport);
	transport_transmit(node->transport);
	assert_true(node->counters.frames_sent > sent);
	node->stalled_until = 0;
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void acknowledgement__noted_opens_the_window_for_an_answer(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t sent;
	unsigned i;

	(void)state;
	answer_arrive(network, 3);
	transport_receive(node->transport);
	transport_process(node->transport);
	assert_int_equal(node->done, 4);
	for (i = 0; i < 40; i++)
		network_send(network, 0, 1, 1400);
	sent = node->counters.frames_sent;
	transport_push(node->transport);
	i = (unsigned)(node->counters.frames_sent - sent);
	transport_transmit(node->transport);
	assert_true(node->counters.frames_sent > sent + i);
	node->stalled_until = 0;
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* The acknowledgement comes late, and is that of the frame that was sent first. */
static void retransmission__that_was_not_needed_is_noticed(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_int_equal(node->counters.retransmits, 0);
	network->faults.delay = 3 * MILLISECOND;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_true(node->counters.retransmits > 0);
	assert_int_equal(node->counters.spurious, 1);
	network_check(network);
	network_destroy(network);
}

/* Nothing of it is lost while the process has no CPU. */
static void self__is_sent_nothing_twice_however_late_it_is(void **state)
{
	struct network *network = network_standard(1, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	network_start(network);
	for (unsigned i = 0; i < 20; i++)
		network_send(network, 0, 0, i * 10000);
	while (!network_settled(network)) {
		network_pass(network, MICROSECOND);
		node->stalled_until = network->now + 300 * MILLISECOND;
		network_pass(network, 300 * MILLISECOND);
	}
	assert_int_equal(node->counters.retransmits, 0);
	assert_int_equal(node->counters.timeouts, 0);
	network_check(network);
	network_destroy(network);
}

/* It waits for no longer than it takes to look again, though its peer timeout is over. */
static void self__is_not_dead_when_the_process_was_stopped(void **state)
{
	struct network *network = network_standard(1, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	network_start(network);
	network_send(network, 0, 0, 1 << 20);
	while (!network_settled(network)) {
		network_pass(network, MICROSECOND);
		node->stalled_until = network->now + 20 * SECOND;
		network_pass(network, 20 * SECOND);
	}
	assert_int_equal(node->counters.peers_dead, 0);
	network_check(network);
	network_destroy(network);
}

/* The stops are longer than a stream may be idle. A message ends in the stream that it began in. */
static void self__goes_on_after_a_stop_in_the_middle_of_messages(void **state)
{
	struct network *network = network_standard(1, network_seed());
	struct node *node = &network->nodes[0];

	(void)state;
	network_start(network);
	for (unsigned i = 0; i < 4; i++)
		network_send(network, 0, 0, 100000);
	while (!network_settled(network)) {
		network_pass(network, MICROSECOND);
		node->stalled_until = network->now + 40 * SECOND;
		network_pass(network, 40 * SECOND);
	}
	assert_int_equal(node->counters.peers_dead, 0);
	network_check(network);
	network_destroy(network);
}

static void peer__that_does_not_exist_is_unreachable(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	node_start(network, 0, 1);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 20 * SECOND));
	assert_int_equal(network->nodes[0].failed[TRANSPORT_UNREACHABLE], 1);
	network_destroy(network);
}

static void peer__that_falls_silent_is_dead_and_may_come_back(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t start;

	(void)state;
	network->nodes[1].lost_ok = 1;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->nodes[1].cut = true;
	start = network->now;
	network_send(network, 0, 1, 8);
	network_send(network, 0, 1, 100000);
	while (node->failed[TRANSPORT_DEAD] < 2)
		network_step(network);
	assert_true(network->now - start >= 10 * SECOND);
	assert_true(network->now - start < 12 * SECOND);
	network->nodes[1].cut = false;
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, 20 * SECOND));
	assert_int_equal(node->done, 2);
	assert_int_equal(network->nodes[1].ended, 2);
	network_destroy(network);
}

/* The machine was stopped: longer than a peer may be silent, in the middle of messages. */
static void peer__is_not_dead_when_all_were_stopped(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	for (unsigned n = 0; n < 10; n++) {
		const uint64_t stop = 10 + 5 * n; /* less than a stream is kept in mind */

		network_send(network, 0, 1, 1000000);
		network_send(network, 1, 0, 1000000);
		network_pass(network, (1 + n * 7) * MICROSECOND);
		for (unsigned i = 0; i < 2; i++)
			network->nodes[i].stalled_until = network->now + stop * SECOND;
		network_pass(network, stop * SECOND);
		assert_true(network_run(network, SECOND));
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(network->nodes[i].counters.peers_dead, 0);
		assert_int_equal(network->nodes[i].done, 10);
	}
	network_check(network);
	network_destroy(network);
}

/* A process that runs once in so many seconds, as one may that makes progress in its calls. */
static void death_awaited(uint64_t seconds)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[0];
	uint64_t start;

	network->nodes[1].lost_ok = 1;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->nodes[1].cut = true;
	start = network->now;
	network_send(network, 0, 1, 8);
	while (node->failed[TRANSPORT_DEAD] < 1) {
		network_pass(network, MICROSECOND);
		node->stalled_until = network->now + seconds * SECOND;
		network_pass(network, seconds * SECOND);
		/* one and a half peer timeouts, until a run, and until its turn to look */
		assert_true(network->now - start < (15 + 3 * seconds) * SECOND);
	}
	network_destroy(network);
}

static void peer__that_falls_silent_is_dead_however_seldom_the_core_runs(void **state)
{
	(void)state;
	for (uint64_t seconds = 1; seconds < 25; seconds++)
		death_awaited(seconds);
}

static void peer__that_is_silent_does_not_block_another(void **state)
{
	struct network *network = network_standard(3, network_seed());
	uint64_t start;
	unsigned i;

	(void)state;
	network_start(network);
	network->nodes[1].cut = true;
	for (i = 0; i < 100; i++)
		network_send(network, 0, 1, 10000);
	start = network->now;
	for (i = 0; i < 100; i++)
		network_send(network, 0, 2, 1000);
	while (network->nodes[2].ended < 100)
		network_step(network);
	assert_true(network->now - start < 5 * MILLISECOND);
	network_destroy(network);
}

static void peer__restarted_ends_the_old_life_and_begins_a_new_one(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *a = &network->nodes[0];
	struct node *b = &network->nodes[1];

	(void)state;
	a->lost_ok = 1;
	b->lost_ok = 1;
	network_start(network);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_send(network, 0, 1, 1000000);
	network_send(network, 1, 0, 1000000);
	network_pass(network, 50 * MICROSECOND);
	node_kill(network, 1);
	network_pass(network, 10 * MILLISECOND);
	node_start(network, 1, 2);
	while (a->failed[TRANSPORT_RESTARTED] < 1)
		network_step(network);
	assert_int_equal(a->ended_badly, 1);
	assert_int_equal(a->counters.peers_restarted, 1);
	network_send(network, 0, 1, 5000);
	network_send(network, 1, 0, 5000);
	assert_true(network_run(network, 5 * SECOND));
	assert_int_equal(a->done, 2);
	assert_int_equal(a->ended, 2);
	network_destroy(network);
}

static void peer__restarted_after_its_death_gets_what_waits_for_it(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *a = &network->nodes[0];

	(void)state;
	a->lost_ok = 1;
	network->nodes[1].lost_ok = 1;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_send(network, 0, 1, 1000000);
	network_pass(network, 20 * MICROSECOND);
	node_kill(network, 1);
	while (a->failed[TRANSPORT_DEAD] < 1)
		network_step(network);
	network_send(network, 0, 1, 8);
	network_pass(network, MILLISECOND);
	node_start(network, 1, 2);
	assert_true(network_run(network, 5 * SECOND));
	assert_int_equal(a->done, 2);
	assert_int_equal(a->failed[TRANSPORT_RESTARTED], 0);
	network_destroy(network);
}

/* `claims`: it asks for itself when it starts, and questions go to all, which they do not in UDP.
 * Else what is sent at first is for the life before, and has failed. */
static void restarted__while_idle(bool claims)
{
	struct network *network = network_standard(2, network_seed());
	struct node *a = &network->nodes[0];

	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	node_kill(network, 1);
	network_pass(network, SECOND);
	a->lost_ok = network->nodes[1].lost_ok = 1;
	node_start(network, 1, 2);
	if (claims)
		transport_claim(network->nodes[1].transport);
	network_pass(network, MILLISECOND);
	network_send(network, 0, 1, 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(a->failed[TRANSPORT_RESTARTED], !claims);
	for (unsigned i = 0; i < 20; i++)
		network_send(network, 0, 1, i % 5 == 0 ? 20000 : 100);
	assert_true(network_run(network, SECOND));
	assert_int_equal(a->done, 21 + claims);
	assert_int_equal(network->nodes[1].ended, 21 + claims);
	assert_int_equal(a->counters.peers_restarted, 1);
	network_destroy(network);
}

static void peer__restarted_while_idle_gets_what_is_sent_afterwards(void **state)
{
	(void)state;
	if (!network_is_udp())
		restarted__while_idle(true);
	restarted__while_idle(false);
}

static void peer__that_says_bye_fails_what_is_in_flight(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *a = &network->nodes[0];

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_send(network, 0, 1, 1000000);
	network_pass(network, 30 * MICROSECOND);
	transport_close(network->nodes[1].transport);
	network->nodes[1].transport = NULL;
	network_pass(network, 1 * MILLISECOND);
	assert_int_equal(a->failed[TRANSPORT_RESTARTED], 1);
	network_destroy(network);
}

static bool from_1_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	(void)to;
	(void)bytes;
	return from != 1;
}

/* It was stopped while it owed an acknowledgement, before any of its own was acknowledged. */
static void acknowledgement__owed_for_long_is_sent_once(void **state)
{
	struct network *network = network_standard(2, network_seed());
	struct node *node = &network->nodes[1];

	(void)state;
	network->faults.delay = 10 * MICROSECOND;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network->filter = from_1_filter;
	network_send(network, 1, 0, 8);
	network_pass(network, 100 * MICROSECOND);
	network_send(network, 0, 1, 8);
	while (node->ended < 2)
		network_step(network);
	network->nodes[0].cut = true;
	network->now += STREAM_IDLE + SECOND;
	network_pass(network, 10 * MILLISECOND);
	assert_in_range(node->counters.acks_sent, 1, 100);
	network_destroy(network);
}

static void peer__forgotten_when_idle_is_made_anew(void **state)
{
	struct network *network = network_standard(2, network_seed());

	(void)state;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	network_pass(network, 200 * SECOND);
	assert_int_equal(network->nodes[0].counters.peers_forgotten, 1);
	assert_int_equal(network->nodes[1].counters.peers_forgotten, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void peer__idle_for_any_time_goes_on_without_a_failure(void **state)
{
	struct network *network = network_standard(2, network_seed());
	unsigned i;

	(void)state;
	network_start(network);
	for (i = 0; i < 40; i++) {
		network_send(network, i % 3 == 0, i % 3 != 0, 100);
		assert_true(network_run(network, SECOND));
		network_pass(network, network_random(network) % (70 * SECOND));
	}
	network_check(network);
	assert_int_equal(network->nodes[0].counters.resets_received, 0);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledgement__owed_for_long_is_sent_once),
		cmocka_unit_test(peer__is_forgotten_sooner_in_haste),
		cmocka_unit_test(stream__is_forgotten_though_pings_are_answered),
		cmocka_unit_test(peer__that_answers_late_is_not_taken_for_far),
		cmocka_unit_test(peer__that_was_away_is_not_taken_for_near),
		cmocka_unit_test(
			acknowledgement__ends_messages_before_the_data_beside_it_is_delivered),
		cmocka_unit_test(peer__is_no_farther_than_its_first_answer_says),
		cmocka_unit_test(acknowledgement__is_read_before_the_next_frames),
		cmocka_unit_test(acknowledgement__outlives_the_peer_that_ends_behind_it),
		cmocka_unit_test(acknowledgement__that_opens_the_window_is_used_in_its_turn),
		cmocka_unit_test(acknowledgement__noted_opens_the_window_for_an_answer),
		cmocka_unit_test(retransmission__that_was_not_needed_is_noticed),
		cmocka_unit_test(self__is_sent_nothing_twice_however_late_it_is),
		cmocka_unit_test(self__is_not_dead_when_the_process_was_stopped),
		cmocka_unit_test(self__goes_on_after_a_stop_in_the_middle_of_messages),
		cmocka_unit_test(peer__that_does_not_exist_is_unreachable),
		cmocka_unit_test(peer__that_falls_silent_is_dead_and_may_come_back),
		cmocka_unit_test(peer__is_not_dead_when_all_were_stopped),
		cmocka_unit_test(peer__that_falls_silent_is_dead_however_seldom_the_core_runs),
		cmocka_unit_test(peer__that_is_silent_does_not_block_another),
		cmocka_unit_test(peer__restarted_ends_the_old_life_and_begins_a_new_one),
		cmocka_unit_test(peer__restarted_after_its_death_gets_what_waits_for_it),
		cmocka_unit_test(peer__restarted_while_idle_gets_what_is_sent_afterwards),
		cmocka_unit_test(peer__that_says_bye_fails_what_is_in_flight),
		cmocka_unit_test(peer__forgotten_when_idle_is_made_anew),
		cmocka_unit_test(peer__idle_for_any_time_goes_on_without_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
