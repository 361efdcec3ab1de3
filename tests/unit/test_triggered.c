/* SPDX-License-Identifier: BSD-3-Clause */
/* test_triggered.c - commands that wait for counters of an engine. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

struct target {
	struct rig *rig, *space;
	uint64_t queue, descriptor;
	uint64_t first, second; /* counters */
	char memory[64];
};

static int setup(void **state)
{
	struct target *target = calloc(1, sizeof(*target));

	assert_non_null(target);
	rig_setup((void **)&target->rig);
	fake_set_frame(FAKE_FRAME);
	target->space = rig_tiers(target->rig, false, &target->queue);
	target->first = rig_event_counter(target->space);
	target->second = rig_event_counter(target->space);
	target->descriptor = rig_describe(target->space, &(struct rig_tier){.start = target->memory,
								 .length = sizeof(target->memory),
								 .log = UINT32_MAX});
	*state = target;
	return 0;
}

static int teardown(void **state)
{
	struct target *target = *state;

	if (target->rig->engine)
		rig_stop(target->rig);
	rig_space_free(target->space);
	rig_destroy(target->rig);
	free(target);
	return 0;
}

static struct command count_command(enum command_kind kind, uint64_t counter, uint64_t success)
{
	struct command command = {.kind = (uint8_t)kind};

	command.count.index = handle_index(counter);
	command.count.generation = handle_generation(counter);
	command.count.by.success = success;
	return command;
}

static enum answer counter_do(
	struct target *target, enum command_kind kind, uint64_t counter, uint64_t success)
{
	struct command command = count_command(kind, counter, success);

	return rig_ask(target->space, &command);
}

static void trigger_count(struct target *target, uint64_t counter, uint64_t threshold,
	enum command_kind kind, uint64_t changed, uint64_t success)
{
	const struct long_command command = {.command = count_command(kind, changed, success)};

	rig_trigger(target->space, counter, threshold, &command, 1);
}

/* A store whose match bits tell which one it is. */
static void trigger_store(
	struct target *target, uint64_t counter, uint64_t threshold, uint64_t bits)
{
	const struct long_command command = rig_rma_command(target->descriptor,
		&(struct rig_rma){
			.to = RIG_PEER, .bits = bits, .length = 8, .message = MESSAGE_STORE});

	rig_trigger(target->space, counter, threshold, &command, 2);
}

static void expect_store(uint64_t bits)
{
	struct fake_sent *sent = fake_next();

	assert_non_null(sent);
	assert_int_equal(sent->header.kind, MESSAGE_STORE);
	assert_int_equal(sent->header.space, 4);
	assert_int_equal(sent->header.match_bits, bits);
	assert_int_equal(sent->length, 8);
	fake_finish(sent, TRANSPORT_OK);
}

static uint64_t counted(struct target *target, uint64_t counter)
{
	return rig_counted(target->space, counter).success;
}

static uint32_t waiting(struct target *target)
{
	return atomic_load(&target->space->segment->triggered);
}

static void store__waits_for_its_counter(void **state)
{
	struct target *target = *state;

	trigger_store(target, target->first, 2, 7);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	assert_null(fake_next());
	assert_int_equal(waiting(target), 1);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	expect_store(7);
	assert_int_equal(waiting(target), 0);
	trigger_store(target, target->first, 2, 8); /* it is reached already */
	expect_store(8);
	assert_null(fake_next());
}

/* A message counts, and the answer leaves without the program. */
static void store__is_sent_by_a_message_that_counts(void **state)
{
	struct target *target = *state;
	const struct message_header header = {
		.kind = MESSAGE_STORE, .space = 4, .uid = RIG_UID, .match_bits = 1, .requested = 4};

	rig_append(target->space, &(struct rig_tier){.start = target->memory,
					  .length = sizeof(target->memory),
					  .ignore = UINT64_MAX,
					  .options = REGION_PUT | REGION_REMOTE_OFFSET,
					  .counter = target->first,
					  .counts = TIER_BIT(TIER_PUT)});
	trigger_store(target, target->first, 1, 7);
	fake_deliver(RIG_PEER, &header, "data", 4);
	expect_store(7);
}

/* What collectives rely on: the store of the first counter leaves before that of the second one,
 * which an increment between them makes due. */
static void order__is_that_of_becoming_due(void **state)
{
	struct target *target = *state;

	trigger_store(target, target->second, 1, 4);
	trigger_store(target, target->first, 2, 1);
	trigger_count(target, target->first, 1, COMMAND_COUNTER_ADD, target->second, 1);
	trigger_store(target, target->first, 1, 2);
	trigger_store(target, target->first, 2, 3);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 2);
	expect_store(1);
	expect_store(2);
	expect_store(3);
	expect_store(4);
	assert_null(fake_next());
}

/* A barrier's counter: it triggers increments of itself. */
static void counter__may_trigger_its_own_change(void **state)
{
	struct target *target = *state;

	for (uint64_t i = 1; i <= 50; i++)
		trigger_count(target, target->first, i, COMMAND_COUNTER_ADD, target->first, 1);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	assert_int_equal(counted(target, target->first), 51);
	assert_int_equal(waiting(target), 0);
	trigger_count(target, target->first, 51, COMMAND_COUNTER_SET, target->first, 5);
	assert_int_equal(counted(target, target->first), 5);
}

/* A chain is run in parts, one a turn. */
static void chain__leaves_room_for_others(void **state)
{
	struct target *target = *state;
	unsigned turns = 0;

	for (uint64_t i = 1; i <= 500; i++)
		trigger_count(target, target->first, i, COMMAND_COUNTER_ADD, target->first, 1);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	assert_in_range(counted(target, target->first), 60, 200);
	for (; counted(target, target->first) < 501; turns++) {
		assert_true(turns < 20);
		assert_true(engine_look(target->rig->engine) > 0);
	}
	assert_in_range(turns, 3, 12);
	while (engine_look(target->rig->engine) > 0)
		;
	assert_int_equal(waiting(target), 0);
}

static void cancel__leaves_the_counter_and_nothing_that_waits(void **state)
{
	struct target *target = *state;

	trigger_store(target, target->first, 2, 7);
	trigger_store(target, target->first, 1, 8);
	assert_int_equal(counter_do(target, COMMAND_COUNTER_CANCEL, target->first, 0), ANSWER_OK);
	assert_int_equal(waiting(target), 0);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 5);
	assert_null(fake_next());
	assert_int_equal(counted(target, target->first), 5);
	trigger_store(target, target->first, 6, 9);
	assert_int_equal(counter_do(target, COMMAND_COUNTER_FREE, target->first, 0), ANSWER_OK);
	assert_int_equal(waiting(target), 0);
	assert_int_equal(counter_do(target, COMMAND_COUNTER_CANCEL, target->first, 0), ANSWER_GONE);
	trigger_store(target, target->first, 0, 9); /* stale */
	assert_int_equal(waiting(target), 0);
	assert_int_equal(rig_counter(target->space, commands_stale), 1);
	assert_null(fake_next());
}

/* Its answer comes when what was ready before has run. */
static void cancel__is_answered_behind_what_is_ready(void **state)
{
	struct target *target = *state;
	struct command change = count_command(COMMAND_COUNTER_ADD, target->first, 1);
	struct command cancel = count_command(COMMAND_COUNTER_CANCEL, target->first, 0);
	struct rig *rig = target->space;
	struct reply *replies[2];

	for (uint64_t i = 1; i <= 100; i++)
		trigger_count(target, target->first, i, COMMAND_COUNTER_ADD, target->first, 1);
	trigger_store(target, target->first, 1, 7);
	for (unsigned i = 0; i < 2; i++) {
		struct command *command = i == 0 ? &change : &cancel;

		command->reply = segment_take(rig->ring, rig->ring->free_replies);
		replies[i] = segment_reply(rig->ring, command->reply);
		atomic_store(&replies[i]->state, REPLY_PENDING);
		rig_post(rig, command);
	}
	while (engine_look(target->rig->engine) > 0)
		;
	assert_int_equal(atomic_load(&replies[0]->state), REPLY_DONE);
	assert_int_equal(atomic_load(&replies[1]->state), REPLY_DONE);
	assert_int_equal(replies[1]->answer, ANSWER_OK);
	expect_store(7);
	assert_true(counted(target, target->first) < 101);
	assert_int_equal(waiting(target), 0);
}

static void command__that_is_none_to_be_kept_is_dropped(void **state)
{
	struct target *target = *state;
	const struct long_command wrong = {.command = {.kind = COMMAND_TRIGGER}};

	rig_trigger(target->space, target->first, 0, &wrong, 1);
	assert_int_equal(waiting(target), 0);
	assert_null(fake_next());
}

/* The descriptor has gone meanwhile. */
static void store__of_a_stale_descriptor_vanishes_and_is_counted(void **state)
{
	struct target *target = *state;
	struct command release = {.kind = COMMAND_REGION_RELEASE};

	trigger_store(target, target->first, 1, 7);
	release.object.index = handle_index(target->descriptor);
	release.object.generation = handle_generation(target->descriptor);
	assert_int_equal(rig_ask(target->space, &release), ANSWER_OK);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	assert_null(fake_next());
	assert_int_equal(rig_counter(target->space, commands_stale), 1);
	assert_int_equal(waiting(target), 0);
}

static void space__that_closes_drops_what_waits(void **state)
{
	struct target *target = *state;

	for (uint64_t i = 1; i <= 300; i++)
		trigger_count(target, target->first, i, COMMAND_COUNTER_ADD, target->first, 1);
	trigger_store(target, target->first, 1000, 7);
	counter_do(target, COMMAND_COUNTER_ADD, target->first, 1);
	assert_true(engine_space_close(target->rig->engine, 4));
	while (engine_look(target->rig->engine) > 0)
		;
	assert_false(triggers_are_ready(&target->rig->engine->triggers));
	assert_int_equal(pool_taken(&target->rig->engine->triggers.pool), 0);
	assert_null(fake_next());
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(store__waits_for_its_counter),
		test(store__is_sent_by_a_message_that_counts),
		test(order__is_that_of_becoming_due),
		test(counter__may_trigger_its_own_change),
		test(chain__leaves_room_for_others),
		test(cancel__leaves_the_counter_and_nothing_that_waits),
		test(cancel__is_answered_behind_what_is_ready),
		test(command__that_is_none_to_be_kept_is_dropped),
		test(store__of_a_stale_descriptor_vanishes_and_is_counted),
		test(space__that_closes_drops_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
