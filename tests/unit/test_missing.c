/* SPDX-License-Identifier: BSD-3-Clause */
/* test_missing.c - memory of a message that goes while it is on its way: no byte is sent in its
 * place, and both ends hear of it.
 *
 * Covers: lib/transport/sender.c, lib/transport/outline.c, lib/transport/assembly.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <sys/mman.h>

#include <base/guard.h>

#include "network.h"

#define PAGE   4096
#define ARENA  (40 * PAGE)
#define LOSSES 100 /* runs with lost frames */

/* The memory, and when it goes: with the so many-th frame of node 0. */
static uint8_t *arena;
static uint64_t frames_left;
static uint64_t pages_left; /* of the arena, from then on */

static void arena_close(void)
{
	assert_int_equal(
		mprotect(arena + pages_left * PAGE, ARENA - pages_left * PAGE, PROT_NONE), 0);
}

static void arena_open(void)
{
	assert_int_equal(mprotect(arena, ARENA, PROT_READ | PROT_WRITE), 0);
}

static bool frame_count(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	(void)to;
	(void)bytes;
	if (from == 0 && frames_left > 0 && --frames_left == 0)
		arena_close();
	return true;
}

static struct network *network_missing(uint64_t seed)
{
	struct network *network = network_standard(2, seed);

	guard_start();
	network->nodes[0].port.gathers = false; /* the model of the wire is not guarded */
	network->filter = frame_count;
	network_start(network);
	/* They know each other. */
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	return network;
}

static void network_end(struct network *network)
{
	frames_left = 0;
	arena_open();
	network_send(network, 0, 1, 100000);
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(network->nodes[0].done, network->nodes[0].sent[1]);
	assert_int_equal(network->nodes[1].begun, network->nodes[0].sent[1]);
	assert_int_equal(
		network->nodes[1].ended + network->nodes[1].ended_badly, network->nodes[0].sent[1]);
	network_destroy(network);
}

/* From the first byte on, between two messages that wait with it. */
static void message__whose_memory_is_not_there_is_begun_and_ends_badly(void **state)
{
	static const uint64_t lengths[] = {25, 64, 1000, 1400, 1430, 5000, ARENA};
	struct network *network = network_missing(network_seed());
	const struct node *here = &network->nodes[0], *there = &network->nodes[1];

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned before = 0; before < 1400; before += 99) {
			uint64_t badly = there->ended_badly, well = there->ended;
			uint64_t missing = here->missing;

			arena_open();
			network_send(network, 0, 1, before);
			network_send_from(network, 0, 1, arena, lengths[i]);
			network_send(network, 0, 1, 8);
			pages_left = 0;
			arena_close();
			assert_true(network_run(network, SECOND));
			assert_int_equal(there->ended, well + 2);
			assert_int_equal(there->ended_badly, badly + 1);
			assert_int_equal(here->missing, missing + 1);
		}
	network_end(network);
}

/* After each of its frames but the last, wherever the hole is. */
static void message__whose_memory_goes_ends_badly_at_both_ends(void **state)
{
	struct network *network = network_missing(network_seed());
	const struct node *here = &network->nodes[0], *there = &network->nodes[1];

	(void)state;
	for (uint64_t frames = 1; frames < ARENA / NETWORK_FRAME; frames += 3) {
		uint64_t badly = there->ended_badly, missing = here->missing;

		arena_open();
		network_send_from(network, 0, 1, arena, ARENA);
		pages_left = network_random(network) % (ARENA / PAGE);
		frames_left = frames;
		assert_true(network_run(network, SECOND));
		frames_left = 0;
		assert_int_equal(here->missing - missing, there->ended_badly - badly);
	}
	assert_true(there->ended_badly > 10);
	network_end(network);
}

/* The frames to be sent again cannot be made again. A message that had arrived all the same is
 * whole there. */
static void message__whose_memory_goes_before_a_frame_is_sent_again_is_voided(void **state)
{
	uint64_t voided = 0, whole = 0;

	(void)state;
	for (unsigned seed = 0; seed < LOSSES; seed++) {
		struct network *network = network_missing(network_seed() + seed);
		const struct node *here = &network->nodes[0], *there = &network->nodes[1];
		uint64_t length = 25 + network_random(network) % (ARENA - 25);

		network->faults.loss = 0.3;
		arena_open();
		network_send(network, 0, 1, 100);
		network_send_from(network, 0, 1, arena, length);
		network_send(network, 0, 1, 1000);
		pages_left = 0;
		frames_left = 1 + network_random(network) % (1 + length / 700);
		assert_true(network_run(network, 60 * SECOND));
		frames_left = 0;
		network->faults.loss = 0;
		assert_int_equal(here->done, 4);
		assert_true(there->ended_badly <= here->missing);
		voided += there->ended_badly;
		whole += here->missing - there->ended_badly;
		network_end(network);
	}
	printf("%llu voided, %llu that had arrived\n", (unsigned long long)voided,
		(unsigned long long)whole);
	assert_true(voided > LOSSES / 3);
}

#define MANY       300 /* messages, more than a frame has records */
#define LONG_FRAME 40000

/* The first frames are lost, and the memory of their messages goes. */
static bool frame_lose(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	(void)network;
	(void)to;
	(void)bytes;
	if (from != 0 || frames_left == 0)
		return true;
	frames_left--;
	arena_close();
	return false;
}

/* Each record becomes two: they still are no more than a frame may have. */
static void messages__that_share_a_frame_are_voided(void **state)
{
	struct network *network = network_create(2, network_seed(), LONG_FRAME, 2000);
	const struct node *here = &network->nodes[0], *there = &network->nodes[1];

	(void)state;
	guard_start();
	network->nodes[0].port.gathers = false;
	network_start(network);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, SECOND));
	arena_open();
	for (unsigned i = 0; i < MANY; i++)
		network_send_from(network, 0, 1, arena + 72 * i, 65);
	pages_left = 0;
	frames_left = 8; /* until it is made again */
	network->filter = frame_lose;
	assert_true(network_run(network, 10 * SECOND));
	assert_int_equal(here->done, MANY + 1);
	assert_int_equal(here->missing, there->ended_badly);
	assert_in_range(here->missing, 100, MANY);
	network_end(network);
}

static int arena_map(void **state)
{
	(void)state;
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arena == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__whose_memory_is_not_there_is_begun_and_ends_badly),
		cmocka_unit_test(message__whose_memory_goes_ends_badly_at_both_ends),
		cmocka_unit_test(message__whose_memory_goes_before_a_frame_is_sent_again_is_voided),
		cmocka_unit_test(messages__that_share_a_frame_are_voided),
	};

	return cmocka_run_group_tests(tests, arena_map, NULL);
}
