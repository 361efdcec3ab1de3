/* SPDX-License-Identifier: BSD-3-Clause */
/* test_absent.c - whole transports: how long messages wait for a process that is not there, where
 * ports know which processes there are.
 *
 * Covers: lib/transport/address.c, lib/transport/recovery.c, lib/transport/timers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <transport/internal.h>

#include "network.h"

#define PEER_TIMEOUT (100 * SECOND) /* the peer timeout */
#define LONG         (1u << 20)     /* bytes */

static bool absent_truly(const struct network *network, unsigned index)
{
	return !network->nodes[index].transport;
}

static bool absent_falsely(const struct network *network, unsigned index)
{
	(void)network;
	(void)index;
	return true;
}

/* Node 1 is not there yet. */
static struct network *network_with(uint64_t start_timeout)
{
	struct network *network = network_standard(2, network_seed());

	network->options.peer_timeout = PEER_TIMEOUT;
	network->options.start_timeout = start_timeout;
	network->options.secret =
		(struct secret){{network_random(network), network_random(network)}};
	network->absent = absent_truly;
	node_start(network, 0, 1);
	return network;
}

static struct network *network_make(void)
{
	return network_with(SECOND);
}

static struct network *acquaintances(void)
{
	struct network *network = network_make();

	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

/* How long it takes until so many messages of node 0 have failed for this reason. */
static uint64_t wait(struct network *network, enum transport_fail why, uint64_t count)
{
	const uint64_t begun = network->now;

	while (network->nodes[0].failed[why] < count && network->now - begun < 2 * PEER_TIMEOUT)
		network_pass(network, MILLISECOND);
	assert_int_equal(network->nodes[0].failed[why], count);
	return network->now - begun;
}

static void process__that_never_was_is_waited_for_a_second(void **state)
{
	struct network *network = network_make();

	(void)state;
	network_send(network, 0, 1, 8);
	network_send(network, 0, 1, LONG);
	assert_in_range(wait(network, TRANSPORT_ABSENT, 2), SECOND, SECOND + SECOND / 2);
	network_destroy(network);
}

static void process__that_never_was_may_start_as_late_as_the_front_end_lets_it(void **state)
{
	struct network *network = network_with(0);

	(void)state;
	network_send(network, 0, 1, 8);
	network_send(network, 0, 1, LONG);
	network_pass(network, PEER_TIMEOUT - SECOND);
	node_start(network, 1, 1);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_check(network);
	network_destroy(network);
}

static void process__that_starts_within_a_second_gets_what_waits_for_it(void **state)
{
	struct network *network = network_make();

	(void)state;
	network_send(network, 0, 1, 8);
	network_send(network, 0, 1, LONG);
	network_pass(network, SECOND - 10 * MILLISECOND);
	node_start(network, 1, 1);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_check(network);
	network_destroy(network);
}

/* It has begun to start: its port is open, and its frames are lost for now. */
static void process__that_is_there_has_the_whole_peer_timeout(void **state)
{
	struct network *network = network_make();

	(void)state;
	node_start(network, 1, 1);
	network->nodes[1].cut = true;
	network_send(network, 0, 1, 8);
	network_pass(network, PEER_TIMEOUT - SECOND);
	assert_int_equal(network->nodes[0].failed[TRANSPORT_ABSENT], 0);
	network->nodes[1].cut = false;
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void process__that_was_killed_fails_what_is_in_flight(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	network_send(network, 0, 1, 8);
	network_send(network, 0, 1, LONG);
	network->nodes[0].lost_ok = 1;
	node_kill(network, 1);
	assert_in_range(wait(network, TRANSPORT_DEAD, 2), 100 * MILLISECOND, 200 * MILLISECOND);
	network_destroy(network);
}

/* The end of a message that will never come is told as soon. */
static void process__that_was_killed_ends_what_it_had_begun(void **state)
{
	struct network *network = acquaintances();
	const struct node *node = &network->nodes[0];
	uint64_t begun;

	(void)state;
	network_send(network, 1, 0, LONG);
	while (node->begun < 2)
		network_pass(network, 10 * MICROSECOND);
	node_kill(network, 1);
	begun = network->now;
	while (node->ended_badly == 0 && network->now - begun < 2 * PEER_TIMEOUT)
		network_pass(network, MILLISECOND);
	assert_int_equal(node->ended_badly, 1);
	assert_in_range(network->now - begun, 50 * MILLISECOND, 300 * MILLISECOND);
	network_destroy(network);
}

/* One that is there, and does not run for a while, goes on. */
static void process__that_is_there_is_waited_for_in_the_middle_of_a_message(void **state)
{
	struct network *network = acquaintances();
	const struct node *node = &network->nodes[0];

	(void)state;
	network_send(network, 1, 0, LONG);
	while (node->begun < 2)
		network_pass(network, 10 * MICROSECOND);
	network->nodes[1].cut = true;
	network_pass(network, PEER_TIMEOUT / 4);
	network->nodes[1].cut = false;
	assert_true(network_run(network, PEER_TIMEOUT));
	assert_int_equal(node->ended_badly, 0);
	network_check(network);
	network_destroy(network);
}

static void process__that_was_killed_fails_further_messages_at_once(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	network->nodes[0].lost_ok = 1;
	node_kill(network, 1);
	network_send(network, 0, 1, 8);
	(void)wait(network, TRANSPORT_DEAD, 1);
	for (unsigned n = 1; n <= 10; n++) {
		network_send(network, 0, 1, n % 2 == 0 ? LONG : 8);
		assert_true(wait(network, TRANSPORT_ABSENT, n) < 5 * MILLISECOND);
		network_pass(network, n * 100 * MILLISECOND);
	}
	network_destroy(network);
}

static void process__that_has_said_bye_fails_further_messages_at_once(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	transport_close(network->nodes[1].transport);
	network->nodes[1].transport = NULL;
	network_pass(network, MILLISECOND);
	network_send(network, 0, 1, 8);
	assert_true(wait(network, TRANSPORT_ABSENT, 1) < 5 * MILLISECOND);
	network_destroy(network);
}

/* Where the port knows nothing. start_timeout: of the front end. */
static struct network *parted(uint64_t start_timeout)
{
	struct network *network = network_with(start_timeout);

	network->absent = NULL;
	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	transport_close(network->nodes[1].transport);
	network->nodes[1].transport = NULL;
	network_pass(network, MILLISECOND);
	return network;
}

static void process__that_has_just_said_bye_fails_messages_soon(void **state)
{
	const uint64_t start_timeouts[] = {0, SECOND};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct network *network = parted(start_timeouts[i]);

		for (unsigned count = 1; count <= 3; count++) {
			network_send(network, 0, 1, count == 2 ? LONG : 8);
			assert_in_range(wait(network, TRANSPORT_ABSENT, count), 50 * MILLISECOND,
				200 * MILLISECOND);
		}
		network_destroy(network);
	}
}

static void process__that_said_bye_a_second_ago_is_waited_for_as_a_new_one(void **state)
{
	struct network *network = parted(SECOND);

	(void)state;
	network_pass(network, SECOND);
	network_send(network, 0, 1, 8);
	assert_in_range(wait(network, TRANSPORT_ABSENT, 1), SECOND, SECOND + SECOND / 2);
	network_destroy(network);
	network = parted(0);
	network_pass(network, SECOND);
	network_send(network, 0, 1, 8);
	network_pass(network, PEER_TIMEOUT - SECOND);
	network->nodes[1].lost_ok = true;
	node_start(network, 1, 2);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

static void process__that_has_said_bye_and_is_there_again_gets_the_next_message(void **state)
{
	struct network *network = parted(0);

	(void)state;
	network_send(network, 0, 1, 8);
	network_pass(network, 20 * MILLISECOND);
	network->nodes[1].lost_ok = true;
	node_start(network, 1, 2);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].failed[TRANSPORT_ABSENT], 0);
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

/* A message that waits while the process is not heard is for the life that answers. */
static void process__that_says_bye_to_one_that_waits_for_it_is_waited_for(void **state)
{
	struct network *network = network_with(0);

	(void)state;
	network->absent = NULL;
	node_start(network, 1, 1);
	network_send(network, 0, 1, 8);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network->nodes[1].cut = true;
	network->nodes[1].lost_ok = true;
	network_send(network, 0, 1, 8);
	(void)wait(network, TRANSPORT_DEAD, 1);
	network_send(network, 0, 1, 8);
	network_pass(network, 10 * MILLISECOND);
	network->nodes[1].cut = false;
	transport_close(network->nodes[1].transport);
	network->nodes[1].transport = NULL;
	network_pass(network, SECOND);
	assert_int_equal(network->nodes[0].failed[TRANSPORT_ABSENT], 0);
	node_start(network, 1, 2);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 2);
	network_destroy(network);
}

static void process__that_is_there_again_gets_the_next_message(void **state)
{
	struct network *network = acquaintances();
	struct node *first = &network->nodes[0];

	(void)state;
	first->lost_ok = 1;
	network->nodes[1].lost_ok = 1;
	node_kill(network, 1);
	network_send(network, 0, 1, LONG);
	(void)wait(network, TRANSPORT_DEAD, 1);
	network_send(network, 0, 1, 8);
	(void)wait(network, TRANSPORT_ABSENT, 1);
	node_start(network, 1, 2);
	for (unsigned n = 0; n < 10; n++)
		network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	assert_int_equal(first->done, 11);
	assert_int_equal(network->nodes[1].ended, 11);
	network_destroy(network);
}

/* Whatever the port says, a process that answers lives. */
static void process__that_answers_is_not_missed(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	network->absent = absent_falsely;
	network->faults.loss = 0.2;
	for (unsigned n = 0; n < 1000; n++) {
		network_send(network, 0, 1, n % 100 == 0 ? LONG : 8);
		network_pass(network, MILLISECOND);
	}
	assert_true(network_run(network, PEER_TIMEOUT));
	assert_true(network->nodes[0].counters.timeouts > 10);
	network_check(network);
	network_destroy(network);
}

/* The port knows of others only. */
static void process__is_not_missed_by_itself(void **state)
{
	struct network *network = network_make();

	(void)state;
	network->absent = absent_falsely;
	network_send(network, 0, 0, LONG);
	network->nodes[0].stalled_until = network->now + SECOND;
	assert_true(network_run(network, 10 * SECOND));
	network_check(network);
	network_destroy(network);
}

/* --- what the host of a process says */

static bool deny_blindly; /* without the question's number */
static uint64_t denials;

/* Each question for node 1 is answered as by posternd. */
static bool deny(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	const struct frame_header *question = (const void *)(bytes + FRAME_ETHERNET_BYTES);
	uint8_t told[FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES];
	struct frame answer = {.type = FRAME_BYE, .length = FRAME_HEADER_BYTES};

	if (from != 0 || to != 1 || frame_type(question) != FRAME_ASK)
		return true;
	answer.destination_nid = question->source_nid;
	answer.destination_pid = question->source_pid;
	answer.destination_incarnation = answer.source_incarnation = question->source_incarnation;
	answer.source_nid = question->destination_nid;
	answer.source_pid = question->destination_pid;
	answer.psn = question->psn ^ deny_blindly;
	answer.ack = question->ack;
	ethernet_write(told, network->nodes[0].port.address, network->nodes[1].port.address);
	frame_encode(&answer, told + FRAME_ETHERNET_BYTES);
	network_inject(network, 0, told, sizeof(told));
	denials++;
	return true;
}

static void denying(struct network *network, bool blindly)
{
	network->absent = NULL;
	network->filter = deny;
	deny_blindly = blindly;
	denials = 0;
}

static void process__that_is_denied_and_was_known_fails_messages_soon(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	network->nodes[0].lost_ok = 1;
	denying(network, false);
	node_kill(network, 1);
	network_send(network, 0, 1, 8);
	assert_in_range(wait(network, TRANSPORT_DEAD, 1), SECOND, 2 * SECOND);
	for (unsigned n = 1; n <= 3; n++) {
		network_send(network, 0, 1, 8);
		assert_in_range(wait(network, TRANSPORT_ABSENT, n), SECOND, SECOND + SECOND / 2);
	}
	assert_true(network->nodes[0].counters.denials_received == denials);
	network_destroy(network);
}

static void process__that_is_denied_and_never_was_has_the_time_to_start(void **state)
{
	struct network *network = network_make();

	(void)state;
	denying(network, false);
	network_send(network, 0, 1, 8);
	assert_in_range(wait(network, TRANSPORT_ABSENT, 1), SECOND, SECOND + SECOND / 2);
	network_send(network, 0, 1, 8);
	network_pass(network, SECOND - MILLISECOND);
	network->nodes[1].lost_ok = 1;
	node_start(network, 1, 1);
	assert_true(network_run(network, SECOND));
	assert_int_equal(network->nodes[0].done, 1);
	network_destroy(network);
	network = network_with(0);
	denying(network, false);
	network_send(network, 0, 1, 8);
	network_pass(network, PEER_TIMEOUT - SECOND);
	node_start(network, 1, 1);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void process__that_is_denied_blindly_has_the_whole_peer_timeout(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	network->nodes[0].lost_ok = 1;
	denying(network, true);
	node_kill(network, 1);
	network_send(network, 0, 1, 8);
	assert_true(wait(network, TRANSPORT_DEAD, 1) >= PEER_TIMEOUT);
	network_send(network, 0, 1, 8);
	assert_true(wait(network, TRANSPORT_UNREACHABLE, 1) >= PEER_TIMEOUT - SECOND);
	assert_int_equal(network->nodes[0].counters.denials_received, 0);
	network_destroy(network);
}

/* It has a socket of its own, of which posternd knows nothing. Frames are lost, so that it is
 * challenged. */
static void process__that_is_denied_and_lives_is_not_missed(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	denying(network, false);
	network->faults.loss = 0.4;
	for (unsigned n = 0; n < 2000; n++) {
		network_send(network, 0, 1, n % 100 == 0 ? LONG / 16 : 8);
		network_pass(network, MILLISECOND);
	}
	network->faults.loss = 0;
	assert_true(network_run(network, PEER_TIMEOUT));
	assert_true(network->nodes[0].counters.denials_received > 0);
	network_check(network);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__that_never_was_is_waited_for_a_second),
		cmocka_unit_test(
			process__that_never_was_may_start_as_late_as_the_front_end_lets_it),
		cmocka_unit_test(process__that_starts_within_a_second_gets_what_waits_for_it),
		cmocka_unit_test(process__that_is_there_has_the_whole_peer_timeout),
		cmocka_unit_test(process__that_was_killed_fails_what_is_in_flight),
		cmocka_unit_test(process__that_was_killed_ends_what_it_had_begun),
		cmocka_unit_test(process__that_is_there_is_waited_for_in_the_middle_of_a_message),
		cmocka_unit_test(process__that_was_killed_fails_further_messages_at_once),
		cmocka_unit_test(process__that_has_said_bye_fails_further_messages_at_once),
		cmocka_unit_test(process__that_has_just_said_bye_fails_messages_soon),
		cmocka_unit_test(process__that_said_bye_a_second_ago_is_waited_for_as_a_new_one),
		cmocka_unit_test(
			process__that_has_said_bye_and_is_there_again_gets_the_next_message),
		cmocka_unit_test(process__that_says_bye_to_one_that_waits_for_it_is_waited_for),
		cmocka_unit_test(process__that_is_there_again_gets_the_next_message),
		cmocka_unit_test(process__that_answers_is_not_missed),
		cmocka_unit_test(process__is_not_missed_by_itself),
		cmocka_unit_test(process__that_is_denied_and_was_known_fails_messages_soon),
		cmocka_unit_test(process__that_is_denied_and_never_was_has_the_time_to_start),
		cmocka_unit_test(process__that_is_denied_blindly_has_the_whole_peer_timeout),
		cmocka_unit_test(process__that_is_denied_and_lives_is_not_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
