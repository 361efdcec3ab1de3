/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sender.c - whether frames that take the fast path are those of the general way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <transport/internal.h>

#include "../sanitized.h"
#include "network.h"

#define MBUFS  8192
#define NODES  3u
#define ROUNDS 400u
#define SEEDS  (SANITIZED ? 6u : 12u)

/* All bytes of all frames, in the order in which they left. */
static uint64_t trail;

static bool trail_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	uint16_t length;
	uint32_t i;

	(void)network;
	memcpy(&length, bytes + FRAME_ETHERNET_BYTES + offsetof(struct frame_header, length),
		sizeof(length));
	trail = crc_word(trail, from * NODES + to);
	for (i = 0; i < FRAME_ETHERNET_BYTES + (uint32_t)length; i++)
		trail = trail * UINT64_C(0x100000001b3) ^ bytes[i];
	return true;
}

static uint64_t length_choose(struct network *network, uint32_t frame_size)
{
	uint64_t random = network_random(network);

	switch (random >> 60) {
	case 0:
		return 0;
	case 1:
		return random % (4 * frame_size);
	case 2:
	case 3:
		return random % frame_size;
	default:
		return random % 64;
	}
}

/* A conversation, with all that may befall it. Returns the trail. */
static uint64_t conversation(uint64_t seed, bool plain, bool quiet)
{
	uint32_t frame_size = seed % 3 == 0 ? 16398 : 1514;
	struct network *network = network_create(NODES, seed, frame_size, MBUFS);
	unsigned round, i;

	network->options.full_checksum = false;
	network->options.first_psn = (uint32_t)(0 - seed * 7);
	network->filter = trail_filter;
	if (!quiet) {
		network->faults.loss = 0.01;
		network->faults.duplicate = 0.01;
		network->faults.reorder = 0.02;
		network->faults.reorder_by = 30 * MICROSECOND;
	}
	for (i = 0; i < NODES; i++) {
		node_start(network, i, 1);
		assert_true(network->nodes[i].transport->plain);
		network->nodes[i].transport->plain = plain;
	}
	trail = seed;
	for (round = 0; round < ROUNDS; round++) {
		unsigned from = (unsigned)(network_random(network) % NODES);
		unsigned to = (unsigned)(network_random(network) % NODES);
		unsigned count = 1 + (unsigned)(network_random(network) % 3 == 0
							? network_random(network) % 300
							: network_random(network) % 4);

		for (i = 0; i < count; i++)
			network_send(network, from, to, length_choose(network, frame_size));
		if (network_random(network) % 2)
			transport_push(network->nodes[from].transport);
		network_pass(network, network_random(network) % (40 * MICROSECOND));
	}
	assert_true(network_run(network, 60 * SECOND));
	network_destroy(network);
	return trail;
}

static void fast__frames_are_those_of_the_general_way(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++)
		assert_int_equal(
			conversation(seed, true, seed % 2), conversation(seed, false, seed % 2));
}

/* Pushes messages one by one, and returns how many frames they were. */
static uint64_t burst_push(struct network *network, unsigned messages)
{
	struct node *node = &network->nodes[0];
	uint64_t before = node->counters.frames_sent;

	while (messages-- > 0) {
		network_send(network, 0, 1, 8);
		transport_push(node->transport);
	}
	return node->counters.frames_sent - before;
}

/* As long as there is something in flight; the next burst begins as the first one did. */
static void send__while_many_share_a_frame_few_leave_alone(void **state)
{
	struct network *network = network_create(2, 1, 9216, MBUFS);
	const struct peer *peer;
	uint64_t frames;

	(void)state;
	network->faults.delay = 20 * MICROSECOND;
	node_start(network, 0, 1);
	node_start(network, 1, 1);
	for (unsigned i = 0; i < 4; i++) {
		network_send(network, 0, 1, 500000); /* the congestion window grows */
		assert_true(network_run(network, SECOND));
	}
	peer = network->nodes[0].transport->peers.last;
	for (unsigned i = 0; i < 2; i++) {
		frames = burst_push(network, SMALL_FAR + MANY_RECORDS - 1);
		assert_int_equal(frames, SMALL_FAR);
		assert_false(peer->flight != NULL && peer->flight->many);
		frames = burst_push(network, 1000);
		assert_int_equal(frames, 1000 * 40 / BUNDLE_BYTES);
		assert_true(peer->flight->many);
		while (peer->flight->small_count != 0)
			network_step(network);
		assert_true(peer->flight->many);
		assert_int_equal(burst_push(network, 1), SMALL_MANY);
		assert_int_equal(burst_push(network, 1), 0);
		assert_true(network_run(network, SECOND));
		assert_false(peer->flight != NULL && peer->flight->many);
		assert_int_equal(peer->gathered, 0);
	}
	assert_int_equal(network->nodes[0].done, 4 + 2 * (SMALL_FAR + MANY_RECORDS - 1 + 1000 + 2));
	network_destroy(network);
}

static unsigned full_frames, frames_of_other_lengths;

static bool length_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	const struct frame_header *header = (const void *)(bytes + FRAME_ETHERNET_BYTES);

	(void)from, (void)to;
	if ((header->version_type & 15) != FRAME_DATA)
		return true;
	full_frames += header->length == network->nodes[0].transport->capacity;
	frames_of_other_lengths += header->length != network->nodes[0].transport->capacity;
	return true;
}

/* Frames that a port may join are of one length, but for those with the end of a message. */
static void send__fills_frames_for_a_port_that_joins_them(void **state)
{
	struct network *network = network_create(2, 1, 1514, MBUFS);

	(void)state;
	network->nodes[0].port.joins = 44;
	network->filter = length_filter;
	node_start(network, 0, 1);
	node_start(network, 1, 1);
	assert_int_equal(network->nodes[0].transport->turn_frames, 44);
	for (unsigned i = 0; i < 32; i++)
		network_send(network, 0, 1, 65536);
	assert_true(network_run(network, SECOND));
	assert_true(full_frames >= 32 * 65536 / 1514);
	assert_in_range(frames_of_other_lengths, 0, 32);
	network_destroy(network);
}

static unsigned whole_records, torn_records;

static bool record_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	const uint8_t *header = bytes + FRAME_ETHERNET_BYTES;
	struct frame frame;
	const uint8_t *at;

	(void)network, (void)from, (void)to;
	frame_recall(header, &frame);
	at = header + frame_header_bytes(frame.flags);
	for (unsigned i = 0; frame.type == FRAME_DATA && i < frame.records; i++) {
		struct record record;

		at += record_look(at, &record);
		whole_records += record.kind == RECORD_WHOLE;
		torn_records += record.kind != RECORD_WHOLE;
	}
	return true;
}

/* A message that fits into a frame of its own begins in no other one's rest. */
static void send__tears_no_message_that_fits_into_a_frame(void **state)
{
	struct network *network = network_create(2, 1, 1514, MBUFS);

	(void)state;
	network->filter = record_filter;
	node_start(network, 0, 1);
	node_start(network, 1, 1);
	for (unsigned before = 0; before < 4; before++) {
		for (unsigned i = 0; i < before; i++)
			network_send(network, 0, 1, 300);
		network_send(network, 0, 1, 1200);
		network_send(network, 0, 1, 1200);
		assert_true(network_run(network, SECOND));
	}
	assert_int_equal(whole_records, 8 + 0 + 1 + 2 + 3);
	assert_int_equal(torn_records, 0);
	network_destroy(network);
}

static unsigned records_most;

static bool records_filter(
	struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)network, (void)from, (void)to;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	if (frame.type == FRAME_DATA && frame.records > records_most)
		records_most = frame.records;
	return true;
}

/* A frame counts its records in a byte, and may have to be made again with one more for each
 * message whose memory may go (outline.h, O2). */
static void send__no_frame_has_more_records_than_it_counts(void **state)
{
	enum { MESSAGES = 1000 };
	static uint8_t memory[MESSAGES][8];

	(void)state;
	for (unsigned goes = 0; goes <= 1; goes++) {
		struct network *network = network_create(2, 1, 16398, MBUFS);

		network->filter = records_filter;
		network->options.full_checksum = false;
		node_start(network, 0, 1);
		node_start(network, 1, 1);
		for (unsigned i = 0; i < 4; i++) { /* from now on the path is the fast one */
			network_send(network, i % 2, 1 - i % 2, 0);
			assert_true(network_run(network, SECOND));
		}
		records_most = 0;
		for (unsigned i = 0; i < MESSAGES; i++)
			if (goes)
				network_send_from(network, 0, 1, memory[i], sizeof(memory[i]));
			else
				network_send(network, 0, 1, 0);
		assert_true(network_run(network, SECOND));
		network_check(network);
		assert_int_equal(network->nodes[0].done, 2 + MESSAGES);
		assert_in_range(records_most, UINT8_MAX / 4, UINT8_MAX / (1 + goes));
		network_destroy(network);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast__frames_are_those_of_the_general_way),
		cmocka_unit_test(send__while_many_share_a_frame_few_leave_alone),
		cmocka_unit_test(send__tears_no_message_that_fits_into_a_frame),
		cmocka_unit_test(send__fills_frames_for_a_port_that_joins_them),
		cmocka_unit_test(send__no_frame_has_more_records_than_it_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
