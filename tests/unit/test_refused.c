/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refused.c - whole transports over a network whose hosts say that they refuse frames.
 *
 * Covers: lib/transport/recovery.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include <transport/internal.h>

#include "network.h"

#define LONG  (1u << 20) /* bytes */
#define DELAY (5 * MICROSECOND)
#define ROUND (2 * DELAY)

static uint64_t refused;     /* frames to node 1 */
static unsigned refuse_most; /* in one look */
static unsigned refuse_ever; /* before the host is silent, as kernels are: 0 for no end */
static bool refuse_blindly;  /* as somebody does who knows the lives of both, but no number */
static bool refuse_lost;     /* and the frame is lost */

/* A byte of the refusal that is not as it was sent, and which frames are refused then. */
struct spoiled {
	size_t at; /* behind the Ethernet header, unless it is of the refusing host's address */
	uint8_t flips;
	enum frame_type of;
	bool address;
};
static const struct spoiled *refuse_spoiled; /* NULL: all is as it was */
static bool tells_lost;                      /* of node 1 */
static bool asks_pass;                       /* and are not refused */

/* Tells node 0 that a frame of its was refused. */
static bool refuse(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	uint8_t told[FRAME_ETHERNET_BYTES + PORT_REFUSAL_BYTES];
	struct frame_header *quote = (void *)(told + FRAME_ETHERNET_BYTES);

	if (from != 0 || to != 1)
		return !tells_lost ||
		       frame_type((const void *)(bytes + FRAME_ETHERNET_BYTES)) != FRAME_TELL;
	memcpy(told, bytes, sizeof(told));
	if ((frame_type(quote) != FRAME_DATA && frame_type(quote) != FRAME_ASK) ||
		(refuse_ever != 0 && refused >= refuse_ever))
		return !refuse_lost;
	if (asks_pass && frame_type(quote) == FRAME_ASK)
		return true;
	if (refuse_spoiled && frame_type(quote) != refuse_spoiled->of)
		return !refuse_lost;
	ethernet_write(told, network->nodes[0].port.address, network->nodes[1].port.address);
	told[2 * FRAME_ADDRESS_BYTES] = PORT_REFUSED >> 8;
	told[2 * FRAME_ADDRESS_BYTES + 1] = PORT_REFUSED & 255;
	if (refuse_spoiled)
		told[refuse_spoiled->at +
			(refuse_spoiled->address ? FRAME_ADDRESS_BYTES : FRAME_ETHERNET_BYTES)] ^=
			refuse_spoiled->flips;
	for (unsigned n = 0; n < refuse_most; n++) {
		if (refuse_blindly) {
			quote->psn = (uint32_t)network_random(network);
			quote->ack = (uint32_t)network_random(network);
			quote->stream = (uint16_t)network_random(network);
		}
		network_inject(network, 0, told, sizeof(told));
		refused++;
	}
	return !refuse_lost;
}

static struct network *refusing(bool lost, bool blindly, unsigned most)
{
	struct network *network = network_acquainted();

	network->nodes[0].port.addressed = true;
	refused = 0;
	refuse_ever = 0;
	refuse_lost = lost;
	refuse_blindly = blindly;
	refuse_most = most;
	refuse_spoiled = NULL;
	tells_lost = asks_pass = false;
	network->filter = refuse;
	return network;
}

/* How long node 0 waits in vain for a message to node 1, which has gone. */
static uint64_t timeout_of(struct network *network)
{
	uint64_t begun = network->now, failed = network->nodes[0].failed[TRANSPORT_DEAD];

	network->nodes[0].lost_ok = 1;
	node_kill(network, 1);
	network_send(network, 0, 1, 8);
	for (unsigned n = 0; n < 20000 && network->nodes[0].failed[TRANSPORT_DEAD] == failed; n++)
		network_pass(network, MILLISECOND);
	assert_int_equal(network->nodes[0].failed[TRANSPORT_DEAD], failed + 1);
	return network->now - begun;
}

static void refusals__end_the_wait_for_a_dead_process(void **state)
{
	struct network *network = refusing(true, false, 1);

	(void)state;
	assert_in_range(timeout_of(network), 100 * MILLISECOND, 300 * MILLISECOND);
	assert_true(network->nodes[0].counters.refusals_received >= 2);
	network_destroy(network);
}

/* Linux sends six at once, and then one a second. */
static void refusals__that_are_few_are_enough(void **state)
{
	struct network *network = refusing(true, false, 1);

	(void)state;
	refuse_ever = 6;
	assert_in_range(timeout_of(network), 100 * MILLISECOND, 150 * MILLISECOND);
	network_destroy(network);
}

/* One may be of an earlier time, or forged. */
static void refusals__that_are_one_are_not_enough(void **state)
{
	struct network *network = refusing(true, false, 1);

	(void)state;
	refuse_ever = 1;
	assert_true(timeout_of(network) > SECOND);
	assert_int_equal(network->nodes[0].counters.refusals_received, 1);
	network_destroy(network);
}

static void refusals__that_are_blind_end_nothing(void **state)
{
	struct network *network = refusing(true, true, 100);

	(void)state;
	assert_true(timeout_of(network) > SECOND);
	assert_int_equal(network->nodes[0].counters.refusals_received, 0);
	assert_true(refused >= 500);
	network_destroy(network);
}

#define FIELD(name) offsetof(struct frame_header, name)

/* A refusal counts only if it is of a frame in flight, or of the question, and of the peer's
 * address. */
static void refusals__of_anything_else_end_nothing(void **state)
{
	static const struct spoiled spoiled[] = {
		{FIELD(source_nid), 64, FRAME_DATA, false},
		{FIELD(source_pid), 64, FRAME_DATA, false},
		{FIELD(source_incarnation), 64, FRAME_DATA, false},
		{FIELD(destination_nid), 64, FRAME_DATA, false},
		{FIELD(destination_pid), 64, FRAME_DATA, false},
		{FIELD(destination_incarnation), 64, FRAME_DATA, false},
		{FIELD(stream), 64, FRAME_DATA, false},
		{FIELD(psn), 64, FRAME_DATA, false},
		{FIELD(version_type), FRAME_DATA ^ FRAME_ACK, FRAME_DATA, false},
		{FIELD(source_incarnation), 64, FRAME_ASK, false},
		{FIELD(psn), 64, FRAME_ASK, false},
		{FIELD(ack), 64, FRAME_ASK, false},
		{0, 64, FRAME_DATA, true},
		{0, 64, FRAME_ASK, true},
	};

	(void)state;
	for (unsigned n = 0; n < RTE_DIM(spoiled); n++) {
		struct network *network = refusing(true, false, 10);

		refuse_spoiled = &spoiled[n];
		assert_true(timeout_of(network) > SECOND);
		assert_true(refused > 0);
		assert_int_equal(
			network->nodes[0].counters.refusals_received > 0, spoiled[n].address);
		network_destroy(network);
	}
}

/* Somebody reads all frames and forges refusals of each. */
static void refusals__end_no_process_that_lives(void **state)
{
	struct network *network = refusing(false, false, 10);

	(void)state;
	for (unsigned n = 0; n < 1000; n++) {
		network_send(network, 0, 1, 8);
		network_pass(network, MILLISECOND);
	}
	network_send(network, 0, 1, LONG);
	assert_true(network_run(network, 10 * SECOND));
	assert_true(network->nodes[0].counters.refusals_received >= 10000);
	network_check(network);
	network_destroy(network);
}

/* Node 0 has always frames in flight meanwhile. */
static void send_on(struct network *network, uint64_t time)
{
	for (uint64_t end = network->now + time; network->now < end;) {
		network_send(network, 0, 1, 8);
		network_pass(network, DELAY / 4);
	}
}

/* Node 0 sends and is told four refusals, then it hears node 1, which does not answer questions. */
static struct network *refusing_within(void)
{
	struct network *network = refusing(false, false, 0);

	tells_lost = true;
	send_on(network, 10 * ROUND);
	refuse_ever = 4;
	refuse_most = 1;
	send_on(network, 10 * ROUND);
	assert_int_equal(refused, 4);
	return network;
}

/* A process that acknowledges frames lives, though its answers are lost. */
static void refusals__end_no_process_that_is_heard(void **state)
{
	struct network *network = refusing_within();

	(void)state;
	send_on(network, 150 * MILLISECOND);
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(network->nodes[0].counters.refusals_received, 4);
	network_check(network);
	network_destroy(network);
}

/* How long node 0 waits in vain if it was told refusals before it heard node 1 last, and so many
 * afterwards. */
static uint64_t timeout_after_noise(unsigned more)
{
	struct network *network = refusing_within();
	uint64_t begun;

	network->nodes[0].lost_ok = 1000;
	node_kill(network, 1);
	refuse_lost = true;
	refuse_ever += more;
	begun = network->now;
	for (unsigned n = 0; n < 20000 && network->nodes[0].failed[TRANSPORT_DEAD] == 0; n++)
		network_pass(network, MILLISECOND);
	assert_true(network->nodes[0].failed[TRANSPORT_DEAD] > 0);
	begun = network->now - begun;
	network_destroy(network);
	return begun;
}

/* Those that came before say nothing of its end. */
static void refusals__count_from_the_last_sign_of_life(void **state)
{
	(void)state;
	assert_in_range(timeout_after_noise(100), 50 * MILLISECOND, 300 * MILLISECOND);
	assert_true(timeout_after_noise(1) > SECOND);
}

/* A process whose frames do not arrive is asked at once, and its answer is a sign of life. */
static void refusals__have_the_process_asked(void **state)
{
	struct network *network = refusing(true, false, 10);
	uint64_t asks = network->nodes[0].counters.asks_sent;

	(void)state;
	asks_pass = true;
	network_send(network, 0, 1, 8);
	network_pass(network, MILLISECOND);
	assert_int_equal(network->nodes[0].counters.asks_sent, asks + 1);
	network_pass(network, SECOND);
	refuse_lost = false;
	assert_true(network_run(network, 10 * SECOND));
	network_check(network);
	network_destroy(network);
}

/* A host without the process is there, as users want to know; but the process may come. */
static void refusals__of_a_process_that_has_not_begun_only_count(void **state)
{
	struct network *network = network_guarded();

	(void)state;
	network->nodes[0].port.addressed = true;
	refused = 0;
	refuse_ever = 0;
	refuse_lost = true;
	refuse_blindly = false;
	refuse_most = 1;
	refuse_spoiled = NULL;
	tells_lost = asks_pass = false;
	network->filter = refuse;
	network_send(network, 0, 1, 8);
	for (unsigned n = 0; n < 1000; n++)
		network_pass(network, MILLISECOND);
	assert_true(network->nodes[0].counters.refusals_received >= 5);
	network->filter = NULL;
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* On other ports nobody says so but who forges it. */
static void refusals__on_a_port_that_hears_of_none_are_dropped(void **state)
{
	struct network *network = refusing(true, false, 1);

	(void)state;
	network->nodes[0].port.addressed = false;
	assert_true(timeout_of(network) > SECOND);
	assert_int_equal(network->nodes[0].counters.refusals_received, 0);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals__end_the_wait_for_a_dead_process),
		cmocka_unit_test(refusals__that_are_few_are_enough),
		cmocka_unit_test(refusals__that_are_one_are_not_enough),
		cmocka_unit_test(refusals__that_are_blind_end_nothing),
		cmocka_unit_test(refusals__end_no_process_that_is_heard),
		cmocka_unit_test(refusals__count_from_the_last_sign_of_life),
		cmocka_unit_test(refusals__have_the_process_asked),
		cmocka_unit_test(refusals__of_anything_else_end_nothing),
		cmocka_unit_test(refusals__end_no_process_that_lives),
		cmocka_unit_test(refusals__of_a_process_that_has_not_begun_only_count),
		cmocka_unit_test(refusals__on_a_port_that_hears_of_none_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
