/* SPDX-License-Identifier: BSD-3-Clause */
/* test_life.c - whole transports over a faulty network: which life of a process is believed in, and
 * what forged and late frames can do.
 *
 * Covers: lib/transport/life.c, lib/transport/address.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include <transport/internal.h>

#include "network.h"

#define LIFE  NETWORK_LIFE
#define DAY   (24 * 3600 * SECOND)
#define LONG  (1u << 20) /* bytes */
#define DELAY (5 * MICROSECOND)
#define ROUND (2 * DELAY)

static const uint8_t stranger[6] = {2, 9, 9, 9, 9, 9};
static const uint8_t everybody[6] = {255, 255, 255, 255, 255, 255};

/* A frame to node 0 in the name of node 1, as right as a stranger can make it that reads nothing
 * but what is told to everybody. */
static struct frame forged(const struct network *network, uint8_t type, uint32_t life)
{
	const struct node *to = &network->nodes[0], *from = &network->nodes[1];
	struct frame frame = {
		.type = type,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = to->self.nid,
		.destination_pid = to->self.pid,
		.destination_incarnation = to->incarnation,
		.source_nid = from->self.nid,
		.source_pid = from->self.pid,
		.source_incarnation = life,
		.timestamp = (uint32_t)network->now + 1000,
		.echo = (uint32_t)network->now,
		.credit = 1,
	};

	switch (type) {
	case FRAME_DATA:
		frame.flags = FRAME_FIRST | FRAME_ACK_VALID;
		frame.stream = 0x7fff;
		break;
	case FRAME_ACK:
	case FRAME_BYE:
		frame.flags = FRAME_ACK_VALID;
		break;
	case FRAME_PONG:
		frame.first = 1500;
		frame.ack = FRAME_HEADER_BYTES;
		frame.flags = FRAME_FULL_SUM;
		break;
	case FRAME_PING:
		frame.ack = FRAME_HEADER_BYTES;
		frame.flags = FRAME_FULL_SUM;
		frame.destination_incarnation = 0;
		break;
	default:
		break;
	}
	return frame;
}

static void frame_inject(struct network *network, struct frame *frame, const uint8_t *from)
{
	static const struct record record = {.kind = RECORD_STOP};
	uint8_t bytes[FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES + RECORD_HEADER_BYTES] = {0};

	ethernet_write(bytes, network->nodes[0].port.address, from);
	if (frame->type == FRAME_DATA) {
		frame->records = 1;
		frame->length += RECORD_HEADER_BYTES;
		record_write(bytes + FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES, &record);
	}
	frame_encode(frame, bytes + FRAME_ETHERNET_BYTES);
	network_inject(network, 0, bytes, FRAME_ETHERNET_BYTES + frame->length);
}

/* Every type, in the name of the known life and of others, from where node 1 is and from
 * elsewhere. */
static void attack(struct network *network, unsigned turn)
{
	static const uint32_t lives[] = {LIFE, LIFE + 1, LIFE - 1, LIFE + 0x80000000u, UINT32_MAX};
	static const uint8_t types[] = {FRAME_ASK, FRAME_BYE, FRAME_RESET, FRAME_TELL, FRAME_DATA,
		FRAME_ACK, FRAME_PING, FRAME_PONG};
	const uint8_t *places[] = {stranger, network->nodes[1].port.address, everybody};
	struct frame frame = forged(network, types[turn % RTE_DIM(types)],
		lives[turn / RTE_DIM(types) % RTE_DIM(lives)]);

	frame_inject(
		network, &frame, places[turn / RTE_DIM(types) / RTE_DIM(lives) % RTE_DIM(places)]);
}

/* Long messages both ways, until all is done; with an attack each `every` ns, 0: without. Returns
 * how long it took. */
static uint64_t exchange(struct network *network, uint64_t every)
{
	uint64_t start = network->now;
	unsigned turn = 0, i;

	for (i = 0; i < 4; i++) {
		network_send(network, 0, 1, LONG);
		network_send(network, 1, 0, LONG);
	}
	while (network->nodes[0].done < 5 || network->nodes[1].done < 5) {
		if (every != 0)
			attack(network, turn++);
		network_pass(network, every != 0 ? every : MICROSECOND);
		assert_true(network->now - start < SECOND);
	}
	return network->now - start;
}

static void blind_frames__do_not_disturb_a_pair(void **state)
{
	struct network *network = network_acquainted();
	uint8_t address[6];
	uint64_t calm, took;

	(void)state;
	network->faults.rate = 1.25;
	calm = exchange(network, 0);
	network_destroy(network);
	network = network_acquainted();
	network->faults.rate = 1.25;
	memcpy(address, network->nodes[1].port.address, 6);
	took = exchange(network, 20 * MICROSECOND);
	assert_memory_equal(network_peer(network, 0, 1)->address, address, 6);
	assert_int_equal(network_peer(network, 0, 1)->incarnation, LIFE);
	assert_int_equal(network->nodes[0].counters.peers_restarted, 0);
	assert_true(network->nodes[0].counters.challenges_sent > 1);
	printf("%llu ns alone, %llu ns with a forged frame each 20 us\n", (unsigned long long)calm,
		(unsigned long long)took);
	assert_true(took < calm + calm / 8);
	network_check(network);
	network_destroy(network);
}

/* Each alone: the next message is as quick as the one before. */
static void blind_frame__holds_up_a_pair_for_a_round_trip_at_most(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 8 * 5 * 3; turn++) {
		struct network *network = network_acquainted();
		uint64_t start;

		attack(network, turn);
		network_pass(network, MICROSECOND);
		start = network->now;
		network_send(network, 0, 1, 8);
		network_send(network, 1, 0, 8);
		while (network->nodes[0].ended < 2 || network->nodes[1].ended < 2)
			network_step(network);
		assert_true(network->now - start <= DELAY + ROUND);
		assert_true(network_run(network, SECOND));
		network_check(network);
		network_destroy(network);
	}
}

/* Before the two have ever talked: the frames know of nothing that node 0 has told, and make
 * nothing there. */
static void blind_frames__before_the_first_message_do_not_matter(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 8 * 5 * 3; turn++) {
		struct network *network = network_guarded();

		attack(network, turn);
		network_pass(network, MICROSECOND);
		assert_int_equal(network->nodes[0].counters.peers_made, 1);
		network_send(network, 0, 1, 8);
		network_send(network, 1, 0, 8);
		network_pass(network, 3 * ROUND);
		assert_int_equal(network->nodes[0].ended, 1);
		assert_int_equal(network->nodes[1].ended, 1);
		network_destroy(network);
	}
}

/* While node 0 looks for node 1, which is not there yet. */
static void blind_frames__to_one_who_asks_do_not_answer(void **state)
{
	struct network *network = network_guarded();
	unsigned turn;

	(void)state;
	network_send(network, 0, 1, 8);
	node_kill(network, 1);
	for (turn = 0; turn < 8 * 5 * 3; turn++) {
		attack(network, turn);
		network_pass(network, 10 * MICROSECOND);
	}
	assert_int_equal(network_peer(network, 0, 1)->incarnation, 0);
	node_start(network, 1, LIFE + 7);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

static void answer__never_goes_to_a_group(void **state)
{
	struct network *network = network_guarded();
	uint64_t sent = network->nodes[0].counters.frames_sent;

	(void)state;
	for (uint8_t type = FRAME_DATA; type <= FRAME_PONG; type++) {
		struct frame frame = forged(network, type, LIFE);

		if (type != FRAME_PING)
			frame.destination_incarnation = LIFE - 1; /* what makes a reset */
		frame_inject(network, &frame, everybody);
		network_pass(network, MILLISECOND);
	}
	assert_int_equal(network->nodes[0].counters.frames_sent, sent);
	assert_int_equal(network->nodes[0].counters.dropped_malformed, FRAME_PONG);
	network_destroy(network);
}

static void questions__in_a_flood_are_answered_within_bounds(void **state)
{
	struct network *network = network_guarded();
	struct transport_counters *counters = &network->nodes[0].counters;
	uint64_t begun = network->now;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct frame frame = forged(network, FRAME_ASK, LIFE);

		frame.source_nid = 4711 + i;
		frame_inject(network, &frame, stranger);
		if (i % 8 == 0)
			network_pass(network, MICROSECOND);
	}
	network_pass(network, MILLISECOND);
	assert_int_equal(counters->asks_received, 20000);
	/* A microsecond each, and 2 ms of them at once. */
	assert_in_range(counters->asks_received - counters->dropped_ask, 1000,
		(network->now - begun + 2 * MILLISECOND) / MICROSECOND);
	network_pass(network, 10 * MILLISECOND);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_destroy(network);
}

/* Frames of this type in the name of node 1, eight in each microsecond. Returns how many answers
 * may go meanwhile: one in a microsecond, and 2 ms of them at once. */
static uint64_t flood(struct network *network, uint8_t type, uint32_t to_life)
{
	uint64_t begun = network->now;

	for (unsigned i = 0; i < 20000; i++) {
		struct frame frame = forged(network, type, LIFE);

		frame.destination_incarnation = to_life;
		frame_inject(network, &frame, stranger);
		if (i % 8 == 0)
			network_pass(network, MICROSECOND);
	}
	network_pass(network, MICROSECOND);
	return (network->now - begun + 2 * MILLISECOND) / MICROSECOND;
}

static void resets__in_a_flood_are_sent_within_bounds(void **state)
{
	struct network *network = network_guarded();
	struct transport_counters *counters = &network->nodes[0].counters;
	uint64_t most;

	(void)state;
	most = flood(network, FRAME_DATA, LIFE - 1);
	assert_int_equal(counters->dropped_stale, 20000);
	assert_in_range(counters->resets_sent, 1000, most);
	network_pass(network, 10 * MILLISECOND);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_destroy(network);
}

static void questions__that_a_flood_causes_are_sent_within_bounds(void **state)
{
	struct network *network = network_guarded();
	struct transport_counters *counters = &network->nodes[0].counters;
	uint64_t most;

	(void)state;
	network_send(network, 0, 1, 8);
	node_kill(network, 1);
	network_pass(network, 20 * MILLISECOND);
	assert_in_range(counters->asks_sent, 3, 10);
	most = flood(network, FRAME_ACK, LIFE);
	assert_in_range(counters->asks_sent, 1000, most + 20);
	node_start(network, 1, LIFE + 7);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* Frames of both nodes to each other that are kept, to come again later. */
static uint8_t kept[64][NETWORK_FRAME];
static uint32_t kept_length[64];
static unsigned kept_count;

static bool keep_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)network;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	if (from == 1 && to == 0 && kept_count < RTE_DIM(kept)) {
		kept_length[kept_count] = FRAME_ETHERNET_BYTES + frame.length;
		memcpy(kept[kept_count], bytes, kept_length[kept_count]);
		kept_count++;
	}
	return true;
}

/* A life that is over comes not back, whatever of it comes late: frames are on their way for 30 s
 * at most. */
static void life__that_is_over_stays_so(void **state)
{
	static const uint32_t lives[] = {LIFE + 1, LIFE - 1, LIFE + 0x80000000u, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(lives); i++) {
		struct network *network = network_guarded();
		struct node *node = &network->nodes[0];
		uint64_t begun;

		network->filter = keep_filter;
		kept_count = 0;
		node->lost_ok = network->nodes[1].lost_ok = 1;
		network_send(network, 0, 1, 8);
		network_send(network, 1, 0, 8);
		network_send(network, 1, 0, 5000);
		assert_true(network_run(network, SECOND));
		network->filter = NULL;
		/* A minute in which it is only pinged: nothing of its streams is remembered. */
		for (unsigned n = 0; n < 7; n++) {
			struct ping ping = {.size = 100};

			network_ping(network, 0, 1, &ping);
			network_pass(network, 10 * SECOND);
			assert_int_equal(ping.outcome, PING_ANSWERED);
		}
		node_kill(network, 1);
		/* The model wants lives that grow; none of this one's messages is seen. */
		node_start(network, 1, lives[i]);
		node->next_life[1] = lives[i] - 1;
		network_send(network, 1, 0, 8);
		assert_true(network_run(network, SECOND));
		assert_int_equal(network_peer(network, 0, 1)->incarnation, lives[i]);
		assert_int_equal(node->counters.peers_restarted, 1);
		begun = node->begun;
		for (unsigned n = 0; n < kept_count; n++) {
			network_inject(network, 0, kept[n], kept_length[n]);
			network_pass(network, SECOND);
			assert_int_equal(network_peer(network, 0, 1)->incarnation, lives[i]);
		}
		assert_int_equal(node->begun, begun);
		assert_int_equal(node->counters.peers_restarted, 1);
		network_send(network, 1, 0, 8);
		assert_true(network_run(network, SECOND));
		assert_int_equal(node->begun, begun + 1);
		network_destroy(network);
	}
}

/* Node 1 ends and starts again; how long until what it then sends has arrived. */
static uint64_t restart(struct network *network, uint32_t life, bool bye)
{
	struct node *node = &network->nodes[0];
	uint64_t ended = node->ended, start;

	if (bye) {
		transport_close(network->nodes[1].transport);
		network->nodes[1].transport = NULL;
		network_pass(network, 50 * MICROSECOND);
	} else {
		node_kill(network, 1);
	}
	node_start(network, 1, life);
	node->next_life[1] = life - 1;
	start = network->now;
	network_send(network, 1, 0, 8);
	while (node->ended == ended)
		network_step(network);
	assert_int_equal(network_peer(network, 0, 1)->incarnation, life);
	return network->now - start;
}

/* At any time after the last start, and whatever number the life has. A message of a process that
 * starts needs two round trips: for the question and for itself, without an acknowledgement one and
 * a half. */
static void restart__at_any_time_is_noticed_within_a_round_trip(void **state)
{
	static const uint64_t spans[] = {
		MILLISECOND, SECOND, DAY, 26 * DAY, 40 * DAY, 52 * DAY, 365 * DAY, 3 * 365 * DAY};
	static const uint32_t lives[] = {
		LIFE + 1, LIFE - 1, LIFE + 0x80000000u, LIFE + 0x7fffffffu, 1, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(spans) * RTE_DIM(lives) * 2; i++) {
		struct network *network = network_acquainted();
		struct ping ping = {.size = 100};
		uint64_t took;

		network->nodes[0].lost_ok = 1;
		network->now += spans[i % RTE_DIM(spans)];
		/* It is known when it restarts. */
		network_send(network, 0, 1, 8);
		network_send(network, 1, 0, 8);
		network_ping(network, 0, 1, &ping);
		assert_true(network_run(network, SECOND));
		took = restart(network, lives[i / RTE_DIM(spans) % RTE_DIM(lives)], i & 1);
		assert_true(took <= 2 * ROUND);
		assert_int_equal(network->nodes[0].counters.peers_restarted, 1);
		network_destroy(network);
	}
}

/* One that has moved meanwhile is asked for where it was first. */
static void restart__elsewhere_is_noticed_within_milliseconds(void **state)
{
	struct network *network = network_acquainted();

	(void)state;
	network->nodes[0].lost_ok = 1;
	node_kill(network, 1);
	network->nodes[1].port.address[4] ^= 0x40;
	node_start(network, 1, LIFE - 2);
	network->nodes[0].next_life[1] = LIFE - 3;
	network_send(network, 1, 0, 8);
	network_pass(network, 20 * MILLISECOND);
	assert_int_equal(network_peer(network, 0, 1)->incarnation, LIFE - 2);
	assert_memory_equal(
		network_peer(network, 0, 1)->address, network->nodes[1].port.address, 6);
	assert_int_equal(network->nodes[0].ended, 2);
	network_destroy(network);
}

static void node_move(struct network *network, unsigned index)
{
	struct node *node = &network->nodes[index];

	node->port.address[4] ^= 0x40;
	encapsulation_init(&node->transport->encapsulation, &node->transport->options.encapsulation,
		node->port.address, false);
}

/* The process lives on, and its frames come from elsewhere. */
static void move__is_followed(void **state)
{
	struct network *network = network_acquainted();

	(void)state;
	node_move(network, 1);
	network_send(network, 1, 0, 8);
	network_send(network, 0, 1, 8);
	assert_true(network_run(network, MILLISECOND));
	node_move(network, 0);
	network_send(network, 1, 0, 8);
	assert_true(network_run(network, SECOND));
	network_check(network);
	network_destroy(network);
}

/* Three messages of node 1 that have begun and are not all here. */
static struct network *incomplete(void)
{
	struct network *network = network_acquainted();
	struct node *node = &network->nodes[0];

	node->lost_ok = network->nodes[1].lost_ok = 1;
	network->faults.rate = 1.25;
	for (unsigned i = 0; i < 3; i++)
		network_send(network, 1, 0, LONG);
	while (node->begun < 4)
		network_step(network);
	assert_int_equal(node->ended, 1);
	return network;
}

static void messages__incomplete_when_their_life_ends_have_failed(void **state)
{
	struct network *network = incomplete();

	(void)state;
	restart(network, LIFE + 1, true);
	assert_int_equal(network->nodes[0].ended_badly, 3);
	network_destroy(network);
	network = incomplete();
	restart(network, LIFE + 1, false);
	assert_int_equal(network->nodes[0].ended_badly, 3);
	network_destroy(network);
}

/* A frame that is kept from the network, to come later. */
struct late {
	uint8_t bytes[NETWORK_FRAME];
	uint32_t length; /* 0: none */
};

static struct late late_data, late_sack; /* the oldest of node 0's, node 1's answer to the others */
static bool answers_lost;                /* all of node 1's are */
static bool asked;                       /* node 0 has asked */

static void late_keep(struct late *late, const uint8_t *bytes, const struct frame *frame)
{
	late->length = FRAME_ETHERNET_BYTES + frame->length;
	memcpy(late->bytes, bytes, late->length);
}

static bool late_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)network;
	(void)to;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	asked = asked || (from == 0 && frame.type == FRAME_ASK);
	if (from == 1 && answers_lost)
		return false;
	if (from == 0 && frame.type == FRAME_DATA && late_data.length == 0) {
		late_keep(&late_data, bytes, &frame);
		return false;
	}
	if (from == 1 && (frame.flags & FRAME_SACK) && late_sack.length == 0) {
		late_keep(&late_sack, bytes, &frame);
		return false;
	}
	return true;
}

static void life_begin_again(struct network *network)
{
	node_kill(network, 1);
	node_start(network, 1, LIFE + 1);
}

/* The message has failed, and the second life has seen nothing of it. */
static void failed_once(struct network *network, uint64_t ended)
{
	network_pass(network, SECOND);
	assert_int_equal(network->nodes[0].failed[TRANSPORT_RESTARTED], 1);
	assert_int_equal(network->nodes[1].ended, ended);
	network_destroy(network);
}

/* A second life refuses a frame of which the first life may have had a copy. */
static void message__sent_again_is_not_for_the_next_life(void **state)
{
	struct network *network = network_acquainted();
	uint64_t ended = network->nodes[1].ended;

	(void)state;
	network->nodes[0].lost_ok = 1;
	network->filter = late_filter;
	late_data.length = late_sack.length = 1; /* nothing is kept */
	answers_lost = true;
	network_send(network, 0, 1, 8);
	while (network->nodes[1].ended == ended)
		network_step(network);
	life_begin_again(network);
	answers_lost = false;
	failed_once(network, ended + 1);
}

/* The second life refuses the oldest frame, and then it is heard that the first one had others. */
static void message__acknowledged_in_part_is_not_for_the_next_life(void **state)
{
	struct network *network = network_acquainted();
	uint64_t ended = network->nodes[1].ended;

	(void)state;
	network->nodes[0].lost_ok = 1;
	network->filter = late_filter;
	late_data.length = late_sack.length = 0;
	answers_lost = asked = false;
	network_send(network, 0, 1, 3 * NETWORK_FRAME);
	while (late_sack.length == 0)
		network_step(network);
	life_begin_again(network);
	assert_false(asked);
	network_inject(network, 1, late_data.bytes, late_data.length);
	while (!asked)
		network_step(network);
	network_inject(network, 0, late_sack.bytes, late_sack.length);
	failed_once(network, ended);
}

static bool copy_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)network;
	(void)to;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	if (from == 0 && frame.type == FRAME_DATA)
		late_keep(&late_data, bytes, &frame);
	return from != 1 || !answers_lost;
}

/* The first life has had it, and its acknowledgement is lost; then a copy of it, which somebody has
 * repeated, is refused by the second life before it is sent again. */
static void message__whose_copy_meets_the_next_life_is_not_for_that(void **state)
{
	struct network *network = network_acquainted();
	uint64_t ended = network->nodes[1].ended;

	(void)state;
	network->nodes[0].lost_ok = 1;
	network->filter = copy_filter;
	answers_lost = true;
	network_send(network, 0, 1, 8);
	while (network->nodes[1].ended == ended)
		network_step(network);
	life_begin_again(network);
	answers_lost = false;
	network_inject(network, 1, late_data.bytes, late_data.length);
	failed_once(network, ended + 1);
}

/* Each stream of node 1 is after the last one, also where their numbers wrap round. */
static uint16_t streams[16];
static unsigned stream_count;

static bool stream_filter(struct network *network, unsigned from, unsigned to, const uint8_t *bytes)
{
	struct frame frame;

	(void)network;
	frame_recall(bytes + FRAME_ETHERNET_BYTES, &frame);
	if (from == 1 && to == 0 && frame.type == FRAME_DATA && stream_count < RTE_DIM(streams) &&
		(stream_count == 0 || streams[stream_count - 1] != frame.stream))
		streams[stream_count++] = frame.stream;
	return true;
}

static void streams__go_on_where_their_numbers_wrap_round(void **state)
{
	struct network *network = network_guarded();

	(void)state;
	network->filter = stream_filter;
	network->nodes[1].transport->stream =
		(uint16_t)(UINT16_MAX - 4 - network->now / STREAM_TICK);
	for (unsigned i = 0; i < 9; i++) {
		network_send(network, 1, 0, 8);
		assert_true(network_run(network, SECOND));
		network_pass(network, STREAM_IDLE + SECOND);
	}
	assert_int_equal(stream_count, 9);
	assert_true(streams[8] < streams[0]);
	assert_int_equal(network->nodes[0].counters.resets_sent, 0);
	network_check(network);
	network_destroy(network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blind_frames__do_not_disturb_a_pair),
		cmocka_unit_test(blind_frame__holds_up_a_pair_for_a_round_trip_at_most),
		cmocka_unit_test(blind_frames__before_the_first_message_do_not_matter),
		cmocka_unit_test(blind_frames__to_one_who_asks_do_not_answer),
		cmocka_unit_test(answer__never_goes_to_a_group),
		cmocka_unit_test(questions__in_a_flood_are_answered_within_bounds),
		cmocka_unit_test(resets__in_a_flood_are_sent_within_bounds),
		cmocka_unit_test(questions__that_a_flood_causes_are_sent_within_bounds),
		cmocka_unit_test(life__that_is_over_stays_so),
		cmocka_unit_test(restart__at_any_time_is_noticed_within_a_round_trip),
		cmocka_unit_test(restart__elsewhere_is_noticed_within_milliseconds),
		cmocka_unit_test(move__is_followed),
		cmocka_unit_test(messages__incomplete_when_their_life_ends_have_failed),
		cmocka_unit_test(message__sent_again_is_not_for_the_next_life),
		cmocka_unit_test(message__acknowledged_in_part_is_not_for_the_next_life),
		cmocka_unit_test(message__whose_copy_meets_the_next_life_is_not_for_that),
		cmocka_unit_test(streams__go_on_where_their_numbers_wrap_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
