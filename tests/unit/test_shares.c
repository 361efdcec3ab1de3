/* test_shares.c - what peers that are silent, or strangers, may hold of what all share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <transport/transport.h>

#include "network.h"

#define MBUFS    4000u
#define SILENT   60u
#define LIVE     1u /* the other nodes from here on fall silent */
#define LARGE    (1u << 20)
#define MESSAGES 200u

static struct transport_info look(const struct network *network, unsigned node)
{
	struct transport_info info;

	transport_describe(network->nodes[node].transport, &info);
	return info;
}

static void silent_cut(struct network *network, bool cut)
{
	unsigned i;

	for (i = LIVE + 1; i < network->count; i++)
		network->nodes[i].cut = cut;
}

static void silent_send(struct network *network, uint64_t length)
{
	unsigned i;

	for (i = LIVE + 1; i < network->count; i++)
		network_send(network, 0, i, length);
}

/* While the others are silent, all that is sent to the live node arrives; when they speak again, so does what was sent to them. */
static void live_and_silent(struct network *network)
{
	struct node *node = &network->nodes[0];
	uint64_t done = node->done;
	unsigned i;

	silent_cut(network, true);
	network_pass(network, SECOND);
	assert_int_equal(look(network, 0).in_flight, 0);
	assert_true(look(network, 0).messages >= SILENT);
	for (i = 0; i < MESSAGES; i++)
		network_send(network, 0, LIVE, 1 + i * 1000);
	network_pass(network, SECOND);
	assert_int_equal(node->done, done + MESSAGES);
	silent_cut(network, false);
	assert_true(network_run(network, 30 * SECOND));
	network_check(network);
}

static struct network *acquaintances(void)
{
	struct network *network = network_create(SILENT + 2, network_seed(), NETWORK_FRAME, MBUFS);
	unsigned i;

	network_start(network);
	for (i = 1; i < network->count; i++)
		network_send(network, i, 0, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

static void peers__that_never_acknowledged_hold_no_frames(void **state)
{
	struct network *network = acquaintances();

	(void)state;
	silent_cut(network, true);
	silent_send(network, LARGE);
	live_and_silent(network);
	network_destroy(network);
}

/* Each has a window full of frames, some of many small messages, when it falls silent. */
static void peers__that_fall_silent_hold_no_frames(void **state)
{
	struct network *network = acquaintances();
	unsigned i;

	(void)state;
	silent_send(network, 8);
	assert_true(network_run(network, SECOND));
	for (i = 0; i < 200; i++)
		silent_send(network, i % 40);
	network_pass(network, 10 * MICROSECOND);
	silent_send(network, LARGE / 4);
	silent_send(network, 3000);
	network_pass(network, 100 * MICROSECOND);
	assert_true(look(network, 0).in_flight > SILENT);
	live_and_silent(network);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers__that_never_acknowledged_hold_no_frames),
		cmocka_unit_test(peers__that_fall_silent_hold_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
