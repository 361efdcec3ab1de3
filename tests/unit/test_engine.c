/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine.c - the engine's turn: the order of frames and commands, answers, waking, shutting
 * down. */
#include <string.h>

#include <base/barrier.h>
#include <base/handle.h>
#include <base/random.h>
#include <base/ring.h>

#include "fake_transport.h"
#include "rig.h"
#include "shortage.h"
#include "stranger.h"

static char memory[32];
static const struct rig_move move = {.to = RIG_PEER};

static void engine_create__without_a_transport_or_memory_is_none(void **state)
{
	struct rig *rig = *state;
	struct port port = {0};
	struct engine_options options = {.segment = rig->segment,
		.port = &port,
		.clock = &rig->clock,
		.transport = {.self = RIG_SELF}};

	fake_refuse_create();
	assert_null(engine_create(&options));
	memory_is_short = true;
	assert_null(engine_create(&options));
	memory_is_short = false;
}

static void engine_space_open__without_memory_opens_none(void **state)
{
	struct rig *rig = *state;
	struct segment_limits *limits = &rig->segment->limits;
	const struct space_options lists = {.segment = rig->segment};
	const struct space_options tiers = {
		.segment = rig->segment, .kind = SPACE_TIERS, .ranks = UINT32_MAX};
	const uint32_t portals = limits->portals;

	memory_is_short = true;
	assert_false(engine_space_open(rig->engine, 1, &lists));
	memory_is_short = false;
	/* More tables than there are addresses. */
	limits->portals = LIMIT_PORTALS;
	assert_false(engine_space_open(rig->engine, 1, &tiers));
	limits->portals = portals;
	assert_true(engine_space_open(rig->engine, 1, &lists));
}

/* E1: a region is attached after the turn has begun, and after the frame came; the frame finds
 * it. */
struct late {
	struct rig *rig;
	struct command entry, region;
};

static void late_post(void *argument)
{
	struct late *late = argument;

	rig_post(late->rig, &late->entry);
	rig_post(late->rig, &late->region);
	fake_on_receive(NULL, NULL);
}

static void engine_poll__carries_out_commands_before_frames_that_came_with_them(void **state)
{
	struct rig *rig = *state;
	struct segment *segment = rig->segment;
	struct message_header header = rig_put_header(4);
	struct late late = {.rig = rig, .entry = {.kind = COMMAND_ENTRY_ATTACH}};
	uint32_t index = segment_take(segment, segment->free_entries);
	uint32_t generation = segment_generation(segment);
	struct match_entry *match = segment_match(segment, index);
	struct entry *entry = segment_entry(segment, index);
	struct region *region;

	match->nid = match->pid = MATCH_ANY;
	atomic_store(&entry->gate, gate_make(generation, GATE_ATTACHED));
	late.entry.object.index = index;
	late.region = rig_bind_command(rig, &RIG_REGION(memory, 0));
	late.region.kind = COMMAND_REGION_ATTACH;
	region = segment_region(segment, late.region.object.index);
	region->entry = index;
	region->entry_generation = generation;

	fake_queue(RIG_PEER, &header, "data", 4);
	fake_on_receive(late_post, &late);
	engine_poll(rig->engine);
	assert_memory_equal(memory, "data", 4);
	assert_int_equal(rig_drops(rig), 0);
}

static void engine_poll__drains_a_full_ring_in_order(void **state)
{
	struct rig *rig = *state;
	struct region_description description = RIG_REGION(memory, 0);
	uint64_t region;
	struct rig_move numbered = move;

	description.length = 0;
	region = rig_bind(rig, &description);
	for (unsigned i = 0; i < 1500; i++) {
		numbered.value = i;
		assert_true(rig_put_post(rig, region, &numbered));
	}
	assert_true(engine_has_commands(rig->engine));
	assert_false(engine_settled(rig->engine));
	assert_true(engine_poll(rig->engine) >= 1500);
	assert_false(engine_has_commands(rig->engine));
	for (unsigned i = 0; i < 1500; i++) {
		struct fake_sent *sent = fake_next();

		assert_int_equal(sent->header.value, i);
		fake_finish(sent, TRANSPORT_OK);
	}
	assert_true(engine_settled(rig->engine));
	assert_int_equal(engine_poll(rig->engine), 0);
	assert_int_equal(rig_counter(rig, polls_idle), 1);
}

static void engine_poll__leaves_commands_in_the_ring_while_there_is_no_memory(void **state)
{
	struct rig *rig = *state;
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, 0));

	rig_operations_use(rig, OPERATION_NOTICE);
	memory_is_short = true;
	assert_true(rig_put(rig, region, &move));
	assert_null(fake_next());
	assert_true(engine_has_commands(rig->engine));
	memory_is_short = false;
	engine_poll(rig->engine);
	assert_int_equal(fake_next()->header.kind, MESSAGE_PUT);
}

static void engine_poll__survives_commands_that_make_no_sense(void **state)
{
	struct rig *rig = *state;
	uint64_t seed = 3;

	for (unsigned round = 0; round < 3000; round++) {
		struct command command;
		uint64_t *words = (uint64_t *)(void *)&command;

		for (unsigned i = 0; i < sizeof(command) / 8; i++)
			words[i] = random_next(&seed);
		command.kind = (uint8_t)round;
		if (command.kind <= COMMAND_GET || round % 2)
			command.move.region = UINT32_MAX - round;
		/* Entries have no check but that they are not in a list: those are the
		 * application's own. */
		if (command.kind == COMMAND_ENTRY_ATTACH)
			command.object.index |= 1u << 31;
		rig_post(rig, &command);
		engine_poll(rig->engine);
	}
	assert_int_equal(rig_counter(rig, commands), 3000);
}

static void engine_execute__comes_after_what_is_in_the_ring(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	const struct rig_move moves[] = {
		{.to = RIG_PEER, .value = 1}, {.to = RIG_PEER, .value = 2}};
	const struct command second = rig_move_command(region, &moves[1], COMMAND_PUT);

	assert_true(rig_put_post(rig, region, &moves[0]));
	assert_true(engine_execute(rig->engine, &second));
	assert_int_equal(fake_next()->header.value, 1);
	assert_int_equal(fake_next()->header.value, 2);
	engine_push(rig->engine);
	rig_event(rig, queue, EVENT_SEND_START);
	rig_event(rig, queue, EVENT_SEND_START);
}

static void engine_look__puts_off_what_nobody_waits_for_when_there_are_events(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(4);
	struct fake_turn *turn = fake_turn();

	rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, queue), 0);
	turn->transmits = 0;
	assert_int_equal(engine_look(rig->engine), 0);
	assert_int_equal(turn->transmits, 1);
	fake_queue(RIG_PEER, &header, "data", 4);
	assert_true(engine_look(rig->engine) > 0);
	rig_event(rig, queue, EVENT_PUT_START);
	assert_int_equal(turn->transmits, 1);
	assert_int_equal(engine_look(rig->engine), 0); /* that of the last turn, and its own */
	assert_int_equal(turn->transmits, 3);
	assert_int_equal(engine_look(rig->engine), 0);
	assert_int_equal(turn->transmits, 4);
}

/* A put is work as a command, whether its frame leaves at once or not. */
static void engine_poll__counts_a_put_that_it_begins_once(void **state)
{
	struct rig *rig = *state;
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, 0));

	for (unsigned left = 0; left <= 1; left++) {
		fake_turn()->left = left;
		assert_true(rig_put_post(rig, region, &move));
		assert_int_equal(engine_poll(rig->engine), 1);
	}
}

/* Puts from the ring have begun, and their frames do not wait. */
static void engine_look__sends_what_it_has_begun(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	*fake_turn() = (struct fake_turn){0};
	engine_touch(rig->engine->spaces[0], segment_queue(rig->segment, handle_index(queue)));
	assert_true(rig_put_post(rig, region, &move));
	assert_true(engine_look(rig->engine) > 0);
	assert_int_equal(fake_turn()->pushes, 1);
	rig_event(rig, queue, EVENT_SEND_START);
}

static void engine_look__sends_what_is_urgent_before_it_returns(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	*fake_turn() = (struct fake_turn){.urgent = true};
	assert_true(rig_put_post(rig, region, &move));
	assert_true(engine_look(rig->engine) > 0);
	assert_int_equal(fake_turn()->transmits, 1);
	rig_event(rig, queue, EVENT_SEND_START);
}

/* What was put off may have brought the events, and the thread that posted the commands may rely on
 * the one that looks. */
static void engine_look__carries_out_commands_also_when_there_are_events_already(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	engine_touch(rig->engine->spaces[0], segment_queue(rig->segment, handle_index(queue)));
	assert_true(rig_put_post(rig, region, &move));
	assert_true(engine_look(rig->engine) > 0);
	assert_false(engine_has_commands(rig->engine));
	assert_int_equal(fake_next()->header.kind, MESSAGE_PUT);
	rig_event(rig, queue, EVENT_SEND_START);
}

/* The next call ends the turn, be it a look, a turn or a push. */
static void engine_poll__first_does_what_a_look_has_put_off(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct message_header header = rig_put_header(4);
	struct fake_turn *turn = fake_turn();

	rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, queue), 0);
	turn->transmits = 0;
	fake_queue(RIG_PEER, &header, "data", 4);
	assert_true(engine_look(rig->engine) > 0);
	assert_int_equal(turn->transmits, 0);
	engine_poll(rig->engine);
	assert_int_equal(turn->transmits, 2);
	fake_queue(RIG_PEER, &header, "data", 4);
	assert_true(engine_look(rig->engine) > 0);
	assert_int_equal(turn->transmits, 2);
	turn->left = true;
	engine_push(rig->engine);
	assert_int_equal(turn->transmits, 3);
	engine_push(rig->engine);
	assert_int_equal(turn->transmits, 3);
	for (unsigned i = 0; i < 2; i++) {
		rig_event(rig, queue, EVENT_PUT_START);
		rig_event(rig, queue, EVENT_PUT_END);
	}
}

static void engine_push__takes_frames_when_nothing_could_leave_or_none_were_taken_for_long(
	void **state)
{
	struct rig *rig = *state;
	struct fake_turn *turn = fake_turn();

	turn->left = true;
	turn->looked_ago = 999;
	engine_push(rig->engine);
	assert_int_equal(rig_counter(rig, polls_idle), 0);
	turn->looked_ago = 1000;
	engine_push(rig->engine);
	assert_int_equal(rig_counter(rig, polls_idle), 1);
	turn->looked_ago = 0;
	turn->left = false;
	engine_push(rig->engine);
	assert_int_equal(rig_counter(rig, polls_idle), 2);
	assert_int_equal(turn->pushes, 3);
}

/* Where a look takes long, a program that only sends looks less often. */
static void engine_push__looks_seldom_where_a_look_is_dear(void **state)
{
	const struct transport_options options = {
		.self = RIG_SELF, .peer_timeout = RIG_PEER_TIMEOUT};
	static struct port dear = {.look = 400};
	struct rig *rig = rig_create(&dear, &options);

	*state = rig;
	fake_turn()->left = true;
	fake_turn()->looked_ago = 9999;
	engine_push(rig->engine);
	assert_int_equal(rig_counter(rig, polls_idle), 0);
	fake_turn()->looked_ago = 10000;
	engine_push(rig->engine);
	assert_int_equal(rig_counter(rig, polls_idle), 1);
}

/* A target that has ended is found out by what it is sent. */
static void engine_create__asks_after_targets_at_least_once_a_second(void **state)
{
	const struct transport_options options = {.self = RIG_SELF, .peer_timeout = 1000 * SECOND};
	static struct port port;
	struct rig *rig = rig_create(&port, &options);
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));

	*state = rig;
	assert_true(rig_get(rig, region, &move));
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_null(fake_next());
	rig_pass(rig, SECOND);
	assert_non_null(fake_next());
}

static void engine_execute__begins_nothing_without_memory(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, queue));
	const struct command put = rig_move_command(region, &move, COMMAND_PUT);

	rig_operations_use(rig, OPERATION_NOTICE);
	memory_is_short = true;
	assert_false(engine_execute(rig->engine, &put));
	assert_int_equal(rig_counter(rig, commands_stale), 0);
	memory_is_short = false;
	assert_true(engine_execute(rig->engine, &put));
	assert_int_equal(fake_next()->header.kind, MESSAGE_PUT);
	engine_push(rig->engine);
	rig_event(rig, queue, EVENT_SEND_START);
}

static bool put_at_once(struct rig *rig, uint64_t region, const struct rig_move *put)
{
	const struct move told = {
		.region = handle_index(region),
		.generation = handle_generation(region),
		.to = put->to,
		.portal = put->portal,
		.cookie = put->cookie,
		.match_bits = put->bits,
		.offset = put->offset,
		.value = put->value,
	};

	return engine_put(rig->engine, 0, rig_region(rig, region), &told, put->acknowledge);
}

/* Two regions that differ in their index alone, one put from by commands, the other at once. */
struct pair {
	uint64_t queues[2], regions[2];
};

static void pair_event(struct rig *rig, const struct pair *pair, unsigned kind)
{
	struct event event[2];

	for (unsigned i = 0; i < 2; i++) {
		event[i] = rig_event(rig, pair->queues[i], kind);
		assert_int_equal(event[i].region, pair->regions[i]);
		event[i].region = event[i].queue = 0;
	}
	assert_memory_equal(&event[0], &event[1], sizeof(event[0]));
}

static void pair_put(struct rig *rig, const struct pair *pair, const struct rig_move *put)
{
	bool granted = rig_put(rig, pair->regions[0], put);
	struct fake_sent *sent[2];

	assert_int_equal(put_at_once(rig, pair->regions[1], put), granted);
	assert_int_equal(
		rig_threshold(rig, pair->regions[0]), rig_threshold(rig, pair->regions[1]));
	if (!granted)
		return;
	for (unsigned i = 0; i < 2; i++) {
		sent[i] = fake_next();
		assert_int_equal(sent[i]->header.handle, put->acknowledge ? pair->regions[i] : 0);
		sent[i]->header.handle = 0;
	}
	assert_memory_equal(&sent[0]->header, &sent[1]->header, sizeof(sent[0]->header));
	assert_memory_equal(&sent[0]->to, &sent[1]->to, sizeof(sent[0]->to));
	assert_ptr_equal(sent[0]->data, sent[1]->data);
	assert_int_equal(sent[0]->length, sent[1]->length);
	pair_event(rig, pair, EVENT_SEND_START);
	if (put->value % 5 == 0) {
		fake_finish(sent[0], TRANSPORT_DEAD);
		fake_finish(sent[1], TRANSPORT_DEAD);
		pair_event(rig, pair, EVENT_SEND_FAILED);
	} else {
		fake_finish(sent[0], TRANSPORT_OK);
		fake_finish(sent[1], TRANSPORT_OK);
		pair_event(rig, pair, EVENT_SEND_END);
	}
}

static void engine_put__does_what_the_command_does(void **state)
{
	struct rig *rig = *state;
	uint64_t seed = 7;

	for (unsigned round = 0; round < 200; round++) {
		struct region_description description = RIG_REGION(memory, 0);
		struct pair pair;

		description.threshold = round % 2 ? round % 7 : GATE_THRESHOLD_INFINITE;
		description.options |= round % 3 == 0 ? REGION_REMOTE_OFFSET : 0;
		for (unsigned i = 0; i < 2; i++) {
			pair.queues[i] = description.queue = rig_queue(rig, 4);
			pair.regions[i] = rig_bind(rig, &description);
		}
		for (unsigned i = 0; i < 5; i++) {
			uint64_t random = random_next(&seed);

			pair_put(rig, &pair,
				&(struct rig_move){.to = RIG_PEER,
					.portal = (uint32_t)(random >> 60),
					.cookie = (uint32_t)(random >> 56 & 3),
					.bits = random >> 30,
					.offset = random >> 40 & 1 ? random >> 20 : 0,
					.value = random >> 41 & 1 ? random >> 10 : 0,
					.acknowledge = random >> 42 & 1});
		}
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(rig_region_unlink(rig, pair.regions[i]), ANSWER_OK);
			assert_int_equal(rig_queue_free(rig, pair.queues[i]), ANSWER_OK);
		}
	}
}

static void engine_put__leaves_to_the_ring_what_something_stands_in_the_way_of(void **state)
{
	struct rig *rig = *state;
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, 0));
	struct ring *ring = segment_ring(rig->segment);
	uint64_t taken;

	assert_true(rig_put_post(rig, region, &move));
	assert_false(put_at_once(rig, region, &move)); /* it would overtake */
	engine_poll(rig->engine);
	assert_non_null(fake_next());
	rig_operations_use(rig, OPERATION_NOTICE);
	memory_is_short = true;
	assert_false(put_at_once(rig, region, &move));
	memory_is_short = false;
	assert_true(put_at_once(rig, region, &move));
	assert_non_null(fake_next());

	taken = atomic_fetch_add(&ring->tail, 1); /* by a thread that is preempted */
	assert_true(rig_put_post(rig, region, &move));
	assert_false(put_at_once(rig, region, &move));
	atomic_store(&ring->slots[taken % COMMAND_RING].sequence, taken + 1);
	engine_poll(rig->engine);
	assert_true(put_at_once(rig, region, &move));
}

static void engine_put__takes_nothing_from_a_region_that_is_not_alive(void **state)
{
	struct rig *rig = *state;
	struct region_description description = RIG_REGION(memory, 0);
	uint64_t region;
	struct command bind = rig_bind_command(rig, &description);
	struct region *unborn = segment_region(rig->segment, bind.object.index);
	struct move early = {
		.region = bind.object.index, .generation = bind.object.generation, .to = RIG_PEER};

	/* its command was not posted */
	assert_false(engine_put(rig->engine, 0, unborn, &early, false));
	description.threshold = 1;
	region = rig_bind(rig, &description);
	assert_true(put_at_once(rig, region, &move));
	assert_false(put_at_once(rig, region, &move));
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_int_equal(rig_region_unlink(rig, region), ANSWER_OK);
	assert_false(put_at_once(rig, region, &move));
	assert_null(fake_next());
	assert_int_equal(rig_counter(rig, commands_stale), 0);
}

/* As a thread that is preempted inside its enqueue leaves the ring: a place is taken, and hides
 * what comes after it. */
static void engine_execute__does_not_overtake_what_was_posted_and_cannot_be_seen(void **state)
{
	struct rig *rig = *state;
	struct ring *ring = segment_ring(rig->segment);
	struct reply *first = segment_reply(rig->segment, 2);
	struct reply *reply = segment_reply(rig->segment, 3);
	const struct command unlink = {.kind = COMMAND_ENTRY_UNLINK, .reply = 3};
	const struct command posted = {.kind = COMMAND_ENTRY_UNLINK, .reply = 2};
	uint64_t taken = atomic_fetch_add(&ring->tail, 1);
	struct ring_slot *slot = &ring->slots[taken % COMMAND_RING];

	atomic_store(&first->state, REPLY_PENDING);
	atomic_store(&reply->state, REPLY_PENDING);
	rig_post(rig, &posted);
	assert_false(engine_execute(rig->engine, &unlink));
	assert_int_equal(atomic_load(&reply->state), REPLY_PENDING);
	assert_int_equal(atomic_load(&first->state), REPLY_PENDING);

	memset(slot->words, 0, sizeof(slot->words)); /* no command that there is */
	((struct command *)slot->words)->reply = UINT32_MAX;
	atomic_store(&slot->sequence, taken + 1);
	assert_true(engine_execute(rig->engine, &unlink));
	assert_int_equal(atomic_load(&first->state), REPLY_DONE);
	assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
}

static void command__of_no_known_kind_is_answered_with_a_failure(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = segment_reply(rig->segment, 3);

	reply->answer = ANSWER_OK;
	atomic_store(&reply->state, REPLY_PENDING);
	rig_post(rig, &(struct command){.kind = UINT8_MAX, .reply = 3});
	engine_poll(rig->engine);
	assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
	assert_int_equal(reply->answer, ANSWER_UNKNOWN);
}

/* Longer than any kind that there is, between two usual commands. */
static void command__of_more_lines_is_taken_whole_and_in_order(void **state)
{
	struct rig *rig = *state;
	uint64_t region = rig_bind(rig, &RIG_REGION(memory, 0));
	struct reply *reply = segment_reply(rig->segment, 3);
	struct long_command longer = {
		.command = {.kind = UINT8_MAX, .space = rig->space, .reply = 3}};
	struct rig_move numbered = move;

	/* Taken for a command, a further line would put. */
	for (unsigned i = 0; i < RING_LINES - 1; i++)
		memcpy(longer.further[i], &(struct command){.kind = COMMAND_PUT, .taken = true},
			RING_BYTES);
	for (unsigned round = 0; round < 100; round++) {
		unsigned lines = 1 + round % RING_LINES;

		reply->answer = ANSWER_OK;
		atomic_store(&reply->state, REPLY_PENDING);
		numbered.value = 2 * round;
		assert_true(rig_put_post(rig, region, &numbered));
		assert_true(ring_put_lines(segment_ring(rig->ring), &longer, lines));
		numbered.value++;
		assert_true(rig_put_post(rig, region, &numbered));
		engine_poll(rig->engine);
		for (unsigned i = 0; i < 2; i++) {
			struct fake_sent *sent = fake_next();

			assert_int_equal(sent->header.value, 2 * round + i);
			fake_finish(sent, TRANSPORT_OK);
		}
		assert_null(fake_next());
		assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
		assert_int_equal(reply->answer, ANSWER_UNKNOWN);
	}
	assert_int_equal(rig_counter(rig, commands_stale), 0);
	assert_false(engine_has_commands(rig->engine));
}

static void command_queue_free__makes_the_queue_stale_once(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 8);
	struct event event;

	assert_int_equal(
		rig_queue_free(rig, handle_make(HANDLE_QUEUE, RIG_INTERFACE, HANDLE_INDEX_MAX, 1)),
		ANSWER_GONE);
	assert_int_equal(rig_queue_free(rig, queue + (UINT64_C(1) << 32)), ANSWER_GONE);
	assert_int_equal(rig_queue_free(rig, queue), ANSWER_OK);
	assert_int_equal(rig_queue_free(rig, queue), ANSWER_GONE);
	assert_int_equal(rig_take(rig->segment, queue, &event), QUEUE_GONE);
}

static void engine_deadline__is_the_transports_when_no_get_waits(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(engine_deadline(rig->engine), UINT64_MAX);
	fake_set_deadline(77);
	assert_int_equal(engine_deadline(rig->engine), 77);
}

static void engine_poll__rings_the_sleepers_of_every_queue_it_wrote(void **state)
{
	struct rig *rig = *state;
	uint64_t queues[12], regions[12];

	for (unsigned i = 0; i < 12; i++) {
		queues[i] = rig_queue(rig, 4);
		regions[i] = rig_bind(rig, &RIG_REGION(memory, queues[i]));
		atomic_store(&segment_queue(rig->segment, handle_index(queues[i]))->sleepers, 1);
	}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 12; i++)
			assert_true(rig_put_post(rig, regions[i], &move));
	engine_poll(rig->engine);
	for (unsigned i = 0; i < 12; i++)
		assert_true(
			atomic_load(&segment_queue(rig->segment, handle_index(queues[i]))->futex) >=
			1);
}

static void engine_touch__remembers_a_queue_until_the_turn_ends_and_no_longer(void **state)
{
	struct rig *rig = *state;
	struct queue *queues[3];

	for (unsigned i = 0; i < 3; i++)
		queues[i] = segment_queue(rig->segment, handle_index(rig_queue(rig, 4)));
	for (unsigned i = 0; i < 12; i++)
		engine_touch(rig->engine->spaces[0], queues[i % 3]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_not_equal(queues[i]->touched, 0);
	engine_poll(rig->engine);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(queues[i]->touched, 0);
	assert_int_equal(rig->engine->touched, 0);
	engine_touch(rig->engine->spaces[0], queues[1]);
	assert_int_equal(queues[1]->touched, 1);
}

/* A thread that goes to sleep later sees the event. */
static void engine_touch__sees_at_once_who_sleeps_where_that_is_cheap(void **state)
{
	struct rig *rig = *state;
	uint64_t queues[2] = {rig_queue(rig, 4), rig_queue(rig, 4)};
	uint64_t regions[2];

	for (unsigned i = 0; i < 2; i++)
		regions[i] = rig_bind(rig, &RIG_REGION(memory, queues[i]));
	atomic_store(&segment_queue(rig->segment, handle_index(queues[1]))->sleepers, 1);
	barrier_cheap = true;
	for (unsigned i = 0; i < 2; i++)
		assert_true(rig_put_post(rig, regions[i], &move));
	assert_true(engine_poll(rig->engine) > 2);
	barrier_cheap = false;
	assert_int_equal(rig->engine->touched, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct queue *queue = segment_queue(rig->segment, handle_index(queues[i]));

		assert_int_equal(queue->touched, 0);
		assert_int_equal(atomic_load(&queue->futex), i);
		rig_event(rig, queues[i], EVENT_SEND_START);
	}
}

static void engine_destroy__ends_everything_that_was_in_flight(void **state)
{
	struct rig *rig = *state;
	uint64_t queue = rig_queue(rig, 64);
	uint64_t region = rig_attach(rig, rig_entry_any(rig, false), &RIG_REGION(memory, queue), 0);
	struct message_header put = rig_put_header(4), get = rig_get_header(1), header;
	struct fake_sent *sent;
	unsigned kinds[EVENT_KINDS] = {0}, events = 0;
	struct event event;

	assert_true(rig_put(rig, region, &move)); /* SEND */
	put.handle = 1;
	fake_begin(RIG_PEER, &put, 4);           /* PUT */
	fake_deliver(RIG_PEER, &put, "abcd", 4); /* a whole put, its acknowledgement in flight */
	fake_deliver(RIG_PEER, &get, NULL, 0);   /* GET */
	get.portal = 1;
	fake_deliver(RIG_PEER, &get, NULL, 0); /* a refusal in flight */
	fake_next();
	assert_true(rig_get(rig, region, &move)); /* a request in flight */
	do
		sent = fake_next();
	while (sent->header.kind != MESSAGE_GET);
	assert_true(rig_get(rig, region, &move)); /* one that waits */
	sent = fake_next();
	fake_finish(sent, TRANSPORT_OK);
	assert_true(rig_get(rig, region, &move)); /* one whose reply is landing */
	sent = fake_next();
	fake_finish(sent, TRANSPORT_OK);
	header = sent->header;
	header.kind = MESSAGE_REPLY;
	header.value = 2;
	fake_begin(RIG_PEER, &header, 2);
	assert_true(rig_get(rig, region, &move)); /* the same, its request in flight too */
	sent = fake_next();
	header = sent->header;
	header.kind = MESSAGE_REPLY;
	header.value = 2;
	fake_begin(RIG_PEER, &header, 2);
	assert_true(rig_get(rig, region, &move)); /* one that is being asked after */
	fake_finish(fake_next(), TRANSPORT_OK);
	rig_pass(rig, RIG_PEER_TIMEOUT);
	assert_true(rig_put_post(rig, region, &move)); /* still in the ring */

	rig_stop(rig);
	while (rig_take(rig->segment, queue, &event) == QUEUE_EVENT) {
		kinds[event.kind]++;
		events++;
		if (event.kind == EVENT_SEND_FAILED || event.kind == EVENT_PUT_FAILED ||
			event.kind == EVENT_GET_FAILED || event.kind == EVENT_REPLY_FAILED)
			assert_int_equal(event.fail, TRANSPORT_SHUTDOWN);
	}
	assert_int_equal(kinds[EVENT_SEND_START], 2);
	assert_int_equal(kinds[EVENT_SEND_FAILED], 2);
	assert_int_equal(kinds[EVENT_PUT_START], 2);
	assert_int_equal(kinds[EVENT_PUT_END], 1);
	assert_int_equal(kinds[EVENT_PUT_FAILED], 1);
	assert_int_equal(kinds[EVENT_GET_START], 1);
	assert_int_equal(kinds[EVENT_GET_FAILED], 1);
	assert_int_equal(kinds[EVENT_REPLY_START], 2);
	assert_int_equal(kinds[EVENT_REPLY_FAILED], 5);
	assert_int_equal(events, 17);
	assert_int_equal(rig_region(rig, region)->pending, 0);
}

static void engine_destroy__answers_calls_that_wait(void **state)
{
	struct rig *rig = *state;
	struct reply *reply = segment_reply(rig->segment, 0);

	atomic_store(&reply->state, REPLY_PENDING);
	rig_post(
		rig, &(struct command){.kind = COMMAND_REGION_UNLINK, .object = {.generation = 1}});
	rig_stop(rig);
	assert_int_equal(atomic_load(&reply->state), REPLY_DONE);
	assert_int_equal(reply->answer, ANSWER_GONE);
}

static void *take(void *engine)
{
	engine_own(engine);
	return NULL;
}

static void engine__is_called_by_its_owner_alone(void **state)
{
	struct rig *rig = *state;
	struct engine *engine = rig->engine;
	uint64_t handle = rig_bind(rig, &RIG_REGION(memory, 0));
	const struct command put = rig_move_command(handle, &move, COMMAND_PUT);
	struct region *region = rig_region(rig, handle);
	const struct space_options space = {.segment = rig->segment};

	if (!pthread_equal(engine->owner.thread, pthread_self()))
		skip(); /* the library is built without assertions */
#define aborts(call) assert_true(stranger_aborts(take, engine, call))
	aborts(engine_destroy(engine));
	aborts(engine_space_open(engine, 1, &space));
	aborts(engine_space_close(engine, 1));
	aborts(engine_poll(engine));
	aborts(engine_look(engine));
	aborts(engine_push(engine));
	aborts(engine_execute(engine, &put));
	aborts(engine_rma(engine, 0, &put.move, &(struct rma_line){0}, NULL));
	aborts(engine_put(engine, 0, region, &put.move, false));
	aborts(engine_deadline(engine));
	aborts(engine_settled(engine));
	aborts(engine_interrupt(engine, false));
	aborts(engine_has_commands(engine));
	aborts(engine_claim(engine));
	aborts(engine_transport(engine));
	aborts(engine_catch_up(engine));
	aborts(engine_tell_queues(engine, NULL));
	aborts(engine_tell_list(engine, 0, 0, NULL));
	aborts(engine_turn(engine));
#undef aborts
	assert_false(stranger_aborts(take, engine, (engine_own(engine), engine_poll(engine))));
}

#define test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(engine_create__without_a_transport_or_memory_is_none),
		test(engine_space_open__without_memory_opens_none),
		test(engine_poll__carries_out_commands_before_frames_that_came_with_them),
		test(engine_poll__drains_a_full_ring_in_order),
		test(engine_poll__leaves_commands_in_the_ring_while_there_is_no_memory),
		test(engine_poll__survives_commands_that_make_no_sense),
		test(engine_execute__comes_after_what_is_in_the_ring),
		test(engine_look__puts_off_what_nobody_waits_for_when_there_are_events),
		test(engine_poll__counts_a_put_that_it_begins_once),
		test(engine_look__sends_what_it_has_begun),
		test(engine_look__sends_what_is_urgent_before_it_returns),
		test(engine_look__carries_out_commands_also_when_there_are_events_already),
		test(engine_poll__first_does_what_a_look_has_put_off),
		test(engine_push__takes_frames_when_nothing_could_leave_or_none_were_taken_for_long),
		cmocka_unit_test_teardown(
			engine_push__looks_seldom_where_a_look_is_dear, rig_teardown),
		cmocka_unit_test_teardown(
			engine_create__asks_after_targets_at_least_once_a_second, rig_teardown),
		test(engine_execute__begins_nothing_without_memory),
		test(engine_put__does_what_the_command_does),
		test(engine_put__leaves_to_the_ring_what_something_stands_in_the_way_of),
		test(engine_put__takes_nothing_from_a_region_that_is_not_alive),
		test(engine_execute__does_not_overtake_what_was_posted_and_cannot_be_seen),
		test(command__of_no_known_kind_is_answered_with_a_failure),
		test(command__of_more_lines_is_taken_whole_and_in_order),
		test(command_queue_free__makes_the_queue_stale_once),
		test(engine_deadline__is_the_transports_when_no_get_waits),
		test(engine_poll__rings_the_sleepers_of_every_queue_it_wrote),
		test(engine_touch__remembers_a_queue_until_the_turn_ends_and_no_longer),
		test(engine_touch__sees_at_once_who_sleeps_where_that_is_cheap),
		test(engine_destroy__ends_everything_that_was_in_flight),
		test(engine_destroy__answers_calls_that_wait),
		test(engine__is_called_by_its_owner_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
