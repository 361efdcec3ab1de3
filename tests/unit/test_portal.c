/* SPDX-License-Identifier: BSD-3-Clause */
/* test_portal.c - Portals of spaces with tiers: disabled ones, what they may fill of a queue, and
 * the shares of strangers.
 *
 * Covers: lib/engine/portal.c. */
#include <stdlib.h>
#include <string.h>

#include <base/handle.h>

#include "tier_rig.h"

static enum answer portal(struct fake_target *target, enum command_kind kind)
{
	struct command command = {.kind = (uint8_t)kind};

	return rig_ask(target->space, &command);
}

static void portal__that_is_disabled_refuses_and_waits_for_what_it_has_accepted(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 50);
	uint64_t entry = append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 50);

	assert_int_equal(portal(target, COMMAND_PORTAL_DISABLE), ANSWER_PENDING);
	assert_int_equal(portal(target, COMMAND_PORTAL_CLOSE), ANSWER_NOT_EMPTY);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	assert_int_equal(rig_counter(target->space, dropped_disabled), 1);
	assert_int_equal(withdraw(target, entry), ANSWER_PENDING);
	fake_end(arrival, TRANSPORT_OK);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 50, 0);
	assert_int_equal(portal(target, COMMAND_PORTAL_DISABLE), ANSWER_OK);
	assert_int_equal(portal(target, COMMAND_PORTAL_ENABLE), ANSWER_OK);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 50, 0);
	assert_int_equal(withdraw(target, entry), ANSWER_OK);
	assert_int_equal(withdraw(target, entry), ANSWER_GONE);
	assert_int_equal(portal(target, COMMAND_PORTAL_CLOSE), ANSWER_OK);
	assert_int_equal(portal(target, COMMAND_PORTAL_CLOSE), ANSWER_GONE);
}

/* A Portal that is controlled, with a queue of its own for 4 events, of which it may fill `most`;
 * 0: all. What was open is closed. */
static uint64_t control_part(struct fake_target *target, uint32_t most)
{
	uint64_t queue = rig_queue(target->space, 4);
	struct command open = {.kind = COMMAND_PORTAL_OPEN, .update = 1};

	open.object.most = most;
	assert_int_equal(portal(target, COMMAND_PORTAL_CLOSE), ANSWER_OK);
	atomic_store(&segment_portal(target->space->segment, 0)->state, PORTAL_CLAIMED);
	open.object.other = queue;
	assert_int_equal(rig_ask(target->space, &open), ANSWER_OK);
	return target->queue = queue;
}

static uint64_t control(struct fake_target *target)
{
	return control_part(target, 0);
}

/* So many messages are accepted, and the next one disables the Portal. */
static void fill(struct fake_target *target, uint64_t queue, unsigned count)
{
	struct message_header header = request(MESSAGE_STORE, 8);

	for (unsigned i = 0; i < count; i++) {
		arrive(&header);
		expect_answer(MESSAGE_STORED, TIER_OK, 0, 8, 0);
	}
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	for (unsigned i = 0; i < count; i++)
		rig_tier_event(target->space, queue, TIER_PUT);
	rig_tier_event(target->space, queue, TIER_DISABLED);
}

/* T5. The rest of the queue is for what cannot be refused. */
static void control__of_a_part_of_a_queue_fills_no_more(void **state)
{
	struct fake_target *target = *state;
	uint64_t queue = control_part(target, 2);

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	fill(target, queue, 2);
	rig_no_event(target->space, queue);
}

/* T5 */
static void control__refuses_what_finds_no_entry_or_no_place_and_says_so_once(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 8);
	uint64_t queue = control(target);

	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	assert_int_equal(rig_tier_event(target->space, queue, TIER_DISABLED).verdict, TIER_REFUSED);
	rig_no_event(target->space, queue);
	assert_int_equal(rig_counter(target->space, dropped_disabled), 2);
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	assert_int_equal(portal(target, COMMAND_PORTAL_ENABLE), ANSWER_OK);
	fill(target, queue, 4);
	arrive(&header); /* nobody has enabled it */
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	rig_no_event(target->space, queue);
}

static void control__keeps_places_for_the_ends_of_what_it_has_accepted(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 20);
	uint64_t queue = control(target);
	struct fake_arrival *first, *second, *third;

	/* PUT, PUT, UNLINK and another PUT: 4 */
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = LOCAL, .min_free = 30});
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	first = fake_begin(RIG_PEER, &header, 20);
	second = fake_begin(RIG_PEER, &header, 20);
	third = fake_begin(RIG_PEER, &header, 20);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_REFUSED, 0, 0, 0);
	rig_no_event(target->space, queue); /* messages are in progress */
	fake_end(third, TRANSPORT_OK);
	rig_tier_event(target->space, queue, TIER_PUT);
	fake_end(second, TRANSPORT_OK);
	rig_tier_event(target->space, queue, TIER_PUT);
	rig_no_event(target->space, queue);
	fake_end(first, TRANSPORT_OK);
	rig_tier_event(target->space, queue, TIER_PUT);
	rig_tier_event(target->space, queue, TIER_UNLINK);
	rig_tier_event(target->space, queue, TIER_DISABLED);
	assert_int_equal(segment_queue(target->space->segment, handle_index(queue))->incoming, 0);
}

static void control__is_lost_when_events_that_cannot_be_refused_fill_the_queue(void **state)
{
	struct fake_target *target = *state;
	uint64_t queue = control(target);

	for (int i = 0; i < 4; i++)
		rig_append(target->space, &(struct rig_tier){.options = BOTH});
	for (int i = 0; i < 4; i++)
		rig_tier_event(target->space, queue, TIER_LINK);
	for (int i = 0; i < 6; i++)
		rig_append(target->space, &(struct rig_tier){.options = BOTH});
	for (int i = 0; i < 5; i++)
		rig_tier_event(target->space, queue, TIER_LINK);
	rig_tier_event(target->space, queue, TIER_DISABLED);
	rig_tier_event(target->space, queue, TIER_LINK);
}

/* A space with as many Portals as there may be, which are controlled and log to one queue of 4
 * events. */
static struct rig *space_wide(struct fake_target *target, uint64_t *queue)
{
	const struct segment_limits limits = {.entries = 64,
		.regions = 64,
		.attached = 64,
		.queues = 1,
		.portals = LIMIT_PORTALS,
		.access = 1,
		.event_bytes = 1 << 20,
		.further = true};
	struct space_options options = {
		.kind = SPACE_TIERS, .interface = RIG_INTERFACE + 2, .uid = RIG_UID};
	struct command open = {.kind = COMMAND_PORTAL_OPEN, .update = 1};
	struct rig *space = calloc(1, sizeof(*space));
	size_t fixed, size = (segment_size(&limits, &fixed) + 4095) & ~(size_t)4095;
	void *memory = aligned_alloc(4096, size);

	assert_true(space && memory);
	memset(memory, 0, size);
	*space = *target->space;
	space->space = 5;
	options.segment = space->segment = segment_init(memory, &limits, 300);
	space->events_used = 0;
	assert_true(engine_space_open(space->engine, space->space, &options));
	open.object.other = *queue = rig_queue(space, 4);
	for (; open.object.index < LIMIT_PORTALS; open.object.index++) {
		atomic_store(
			&segment_portal(space->segment, open.object.index)->state, PORTAL_CLAIMED);
		assert_int_equal(rig_ask(space, &open), ANSWER_OK);
	}
	return space;
}

/* However many they are: none is disabled within the end of another. */
static void control__of_all_portals_of_a_queue_is_lost_at_once(void **state)
{
	struct fake_target *target = *state;
	struct rig_tier_event event;
	uint64_t queue;
	struct rig *space = space_wide(target, &queue);

	for (int i = 0; i < 5; i++)
		rig_append(space, &(struct rig_tier){.options = BOTH});
	assert_int_equal(rig_take_tier(space, queue, &event), QUEUE_EVENT_AFTER_GAP);
	for (int i = 0; i < 4 + QUEUE_SPARE; i++) {
		assert_int_equal(event.kind, TIER_DISABLED);
		(void)rig_take_tier(space, queue, &event);
	}
	assert_int_equal(segment_queue(space->segment, handle_index(queue))->controlled, 0);
	assert_int_equal(rig_counter(space, events_lost), 5 + LIMIT_PORTALS - 4 - QUEUE_SPARE);
	rig_stop(target->rig);
	rig_space_free(space);
}

static void queue__that_is_full_loses_its_oldest_events_and_says_so(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 1);
	struct rig_tier_event event;

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	header.operation = 0;
	for (header.value = 0; header.value < 200; header.value++)
		arrive(&header);
	assert_int_equal(
		rig_take_tier(target->space, target->queue, &event), QUEUE_EVENT_AFTER_GAP);
	for (uint64_t value = 200 - 16 - QUEUE_SPARE; value < 200; value++) {
		assert_int_equal(event.value, value);
		if (value == 199)
			break;
		assert_int_equal(rig_take_tier(target->space, target->queue, &event), QUEUE_EVENT);
	}
	rig_no_event(target->space, target->queue);
	assert_int_equal(rig_counter(target->space, events_lost), 200 - 16 - QUEUE_SPARE);
	arrive(&header);
	rig_tier_event(target->space, target->queue, TIER_PUT);
}

#define STRANGER_PORTAL 1
#define STRANGER_PLACES 40u
#define LIFE            77u

/* A space whose Portals log to one queue. One has this position, and STRANGER_PLACES. */
static struct rig *space_with(struct fake_target *target, uint8_t position, uint64_t *queue)
{
	struct rig *space = rig_tiers(target->rig, true, queue);
	struct command open = {.kind = COMMAND_PORTAL_OPEN, .update = 1, .position = position};
	struct command close = {.kind = COMMAND_PORTAL_CLOSE};

	*queue = rig_queue(space, 128);
	open.object.index = close.object.index = STRANGER_PORTAL;
	open.object.other = *queue;
	open.object.most = STRANGER_PLACES;
	assert_int_equal(rig_ask(space, &close), ANSWER_OK);
	atomic_store(&segment_portal(space->segment, STRANGER_PORTAL)->state, PORTAL_CLAIMED);
	assert_int_equal(rig_ask(space, &open), ANSWER_OK);
	rig_append(space, &(struct rig_tier){.start = target->memory,
				  .length = 8,
				  .portal = STRANGER_PORTAL,
				  .ignore = UINT64_MAX,
				  .options = BOTH,
				  .log = TIER_BIT(TIER_LINK)});
	return space;
}

static struct rig *space_for_strangers(struct fake_target *target, uint64_t *queue)
{
	return space_with(target, POSITION_STRANGERS, queue);
}

static enum tier_verdict process_says(struct process from, uint32_t cookie, uint64_t length)
{
	struct message_header header = request(MESSAGE_STORE, length);
	enum tier_verdict verdict;
	struct fake_sent *sent;

	header.space = 6;
	header.portal = STRANGER_PORTAL;
	header.cookie = cookie;
	fake_deliver(from, &header, data, length);
	sent = fake_next();
	assert_non_null(sent);
	verdict = sent->header.detail & MESSAGE_VERDICT;
	fake_finish(sent, TRANSPORT_OK);
	return verdict;
}

static enum tier_verdict stranger_says(uint32_t nid, uint64_t length)
{
	return process_says((struct process){.nid = nid, .pid = 80}, LIFE, length);
}

/* Until it is refused. */
static unsigned stranger_fills(uint32_t nid)
{
	unsigned count = 0;

	while (stranger_says(nid, 0) == TIER_OK)
		count++;
	return count;
}

static unsigned events_read(struct rig *space, uint64_t queue)
{
	struct rig_tier_event event;
	unsigned count = 0;

	for (; rig_take_tier(space, queue, &event) == QUEUE_EVENT; count++)
		assert_int_equal(event.kind, TIER_PUT);
	return count;
}

/* T10 */
static void strangers__of_one_node_or_of_twelve_leave_places_to_others(void **state)
{
	struct fake_target *target = *state;
	unsigned count = 0;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	count += stranger_fills(100);
	assert_int_equal(count, 9);
	for (uint32_t nid = 101; nid < 112; nid++)
		count += stranger_fills(nid);
	assert_int_equal(stranger_says(200, 0), TIER_OK);
	assert_int_equal(rig_counter(space, dropped_share), 12);
	assert_int_equal(rig_counter(space, dropped_disabled), 0);
	assert_int_equal(events_read(space, queue), count + 1);
	/* Those that were read count no more. */
	assert_int_equal(stranger_says(100, 0), TIER_OK);
	assert_int_equal(stranger_fills(100), 8);
	assert_int_equal(events_read(space, queue), 9);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* T10. However many there are, and whenever the program reads some. */
static void strangers__fill_their_places_alone(void **state)
{
	struct fake_target *target = *state;
	struct rig_tier_event event;
	unsigned used = 0;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	for (uint32_t i = 0; i < 3000; i++) {
		used += stranger_says(1000 + i, 0) == TIER_OK;
		assert_in_range(used, 1, STRANGER_PLACES);
		if (i % 3 == 0 && i % 500 > 100)
			used -= rig_take_tier(space, queue, &event) == QUEUE_EVENT;
	}
	assert_true(rig_counter(space, dropped_share) > 1000);
	assert_int_equal(events_read(space, queue), used);
	assert_int_equal(stranger_says(7, 0), TIER_OK);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* T10. Another user of the node can refuse, but not greet. */
static void strangers__that_refuse_leave_places_to_those_that_greet(void **state)
{
	const struct message_header refusal = {.kind = MESSAGE_STORED,
		.space = 6,
		.portal = STRANGER_PORTAL,
		.detail = TIER_DROPPED};
	struct fake_target *target = *state;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	target->rig->engine->opened[space->space]->two_sided = true;
	for (unsigned i = 0; i < 100; i++)
		fake_deliver((struct process){.nid = 100, .pid = 81}, &refusal, NULL, 0);
	assert_in_range(rig_counter(space, refusals_late), 50, 95);
	target->rig->engine->opened[space->space]->two_sided = false;
	assert_int_equal(stranger_says(100, 0), TIER_OK);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* T10. The Portal that peers fetch from may fill more of the queue, but no letter goes there. */
static void strangers__refuse_nothing_at_a_portal_without_letters(void **state)
{
	const struct message_header refusal = {
		.kind = MESSAGE_STORED, .space = 6, .detail = TIER_DROPPED};
	struct command open = {.kind = COMMAND_PORTAL_OPEN, .update = 1};
	struct command close = {.kind = COMMAND_PORTAL_CLOSE};
	struct fake_target *target = *state;
	struct rig_tier_event event;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	open.object.other = queue;
	open.object.most = 3 * STRANGER_PLACES;
	assert_int_equal(rig_ask(space, &close), ANSWER_OK);
	atomic_store(&segment_portal(space->segment, 0)->state, PORTAL_CLAIMED);
	assert_int_equal(rig_ask(space, &open), ANSWER_OK);
	target->rig->engine->opened[space->space]->two_sided = true;
	for (unsigned i = 0; i < 200; i++) {
		fake_deliver((struct process){.nid = 100, .pid = 81}, &refusal, NULL, 0);
		if (i == 100)
			(void)rig_take_tier(space, queue, &event);
	}
	target->rig->engine->opened[space->space]->two_sided = false;
	assert_int_equal(stranger_says(200, 0), TIER_OK);
	assert_int_equal(rig_counter(space, refusals_late), 200);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* T10 */
static void strangers__bring_no_data(void **state)
{
	struct fake_target *target = *state;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	assert_int_equal(stranger_says(100, 8), TIER_OPERATION);
	assert_int_equal(rig_counter(space, dropped_operation), 1);
	assert_int_equal(target->memory[0], 0);
	assert_int_equal(events_read(space, queue), 0);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* Those of remote memory name a life, and have no shares. */
static void strangers__that_know_the_life_of_the_space_bring_data(void **state)
{
	struct fake_target *target = *state;
	uint64_t queue;
	struct rig *space = space_for_strangers(target, &queue);

	target->rig->engine->opened[space->space]->life = LIFE;
	for (unsigned i = 0; i < STRANGER_PLACES; i++)
		assert_int_equal(stranger_says(100, 8), TIER_OK);
	assert_memory_equal(target->memory, data, 8);
	assert_int_equal(events_read(space, queue), STRANGER_PLACES);
	rig_stop(target->rig);
	rig_space_free(space);
}

/* Ranks 0 to 15 are of one node, 16 and 17 of another one. */
static struct process crowd[18];

static struct rig *space_for_crowd(struct fake_target *target, uint64_t *queue)
{
	struct rig *space = space_with(target, POSITION_SHARES, queue);
	struct command map = {.kind = COMMAND_MAP};

	for (uint32_t i = 0; i < 18; i++)
		crowd[i] = (struct process){.nid = 100 + i / 16, .pid = 10 + i};
	map.object.index = 18;
	map.object.other = (uintptr_t)crowd;
	assert_int_equal(rig_ask(space, &map), ANSWER_OK);
	return space;
}

static unsigned rank_fills(uint32_t rank)
{
	unsigned count = 0;

	while (process_says(crowd[rank], rank, 8) == TIER_OK)
		count++;
	return count;
}

/* T11 */
static void processes__that_send_without_end_leave_places_to_others(void **state)
{
	struct fake_target *target = *state;
	unsigned count = 0;
	uint64_t queue;
	struct rig *space = space_for_crowd(target, &queue);

	count = rank_fills(0);
	assert_in_range(count, 5, STRANGER_PLACES / 4);
	/* so it does to others of its node, */
	assert_int_equal(process_says(crowd[1], 1, 8), TIER_OK);
	count++;
	/* and its node, with all of them, to other nodes */
	for (uint32_t rank = 1; rank < 16; rank++)
		count += rank_fills(rank);
	assert_in_range(count, STRANGER_PLACES / 4, STRANGER_PLACES / 2);
	for (uint32_t rank = 16; rank < 18; rank++) {
		assert_int_equal(process_says(crowd[rank], rank, 8), TIER_OK);
		count++;
	}
	/* Nothing disables the Portal. */
	assert_int_equal(rig_counter(space, dropped_disabled), 0);
	assert_int_equal(rig_counter(space, dropped_share), 16);
	assert_int_equal(events_read(space, queue), count);
	/* Those that were read count no more. */
	assert_int_equal(process_says(crowd[0], 0, 8), TIER_OK);
	rig_stop(target->rig);
	rig_space_free(space);
}

int main(void)
{
#define test(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, fake_target_setup, fake_target_teardown)
	const struct CMUnitTest tests[] = {
		test(portal__that_is_disabled_refuses_and_waits_for_what_it_has_accepted),
		test(control__of_a_part_of_a_queue_fills_no_more),
		test(control__refuses_what_finds_no_entry_or_no_place_and_says_so_once),
		test(control__keeps_places_for_the_ends_of_what_it_has_accepted),
		test(control__is_lost_when_events_that_cannot_be_refused_fill_the_queue),
		test(control__of_all_portals_of_a_queue_is_lost_at_once),
		test(queue__that_is_full_loses_its_oldest_events_and_says_so),
		test(strangers__of_one_node_or_of_twelve_leave_places_to_others),
		test(strangers__fill_their_places_alone),
		test(strangers__that_refuse_leave_places_to_those_that_greet),
		test(strangers__refuse_nothing_at_a_portal_without_letters),
		test(strangers__bring_no_data),
		test(strangers__that_know_the_life_of_the_space_bring_data),
		test(processes__that_send_without_end_leave_places_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
