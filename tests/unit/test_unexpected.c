/* SPDX-License-Identifier: BSD-3-Clause */
/* test_unexpected.c - messages that the second tier took: who takes their headers, with which
 * events, and when the memory is free. */
#include <string.h>

#include <base/handle.h>
#include <engine/statistics.h>

#include "fake_transport.h"
#include "rig.h"

#define BOTH    (REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE)
#define LOCAL   (REGION_PUT | REGION_GET | REGION_TRUNCATE)
#define NO_LINK TIER_BIT(TIER_LINK)
#define ALL     UINT64_MAX /* ignored bits */
#define KEPT    (TIER_BIT(TIER_PUT_KEPT) | TIER_BIT(TIER_SEARCH))

static const char data[64] = "fifty bytes that are put where they belong, or not";

static uint64_t append(struct fake_target *target, struct rig_tier tier)
{
	tier.start = target->memory;
	tier.length = tier.length ? tier.length : sizeof(target->memory);
	tier.options = tier.options ? tier.options : BOTH;
	return rig_append(target->space, &tier);
}

/* An entry of the second tier for everything, which logs nothing of its own but UNLINK and FREE. */
static uint64_t overflow(struct fake_target *target, uint8_t flags, uint64_t min_free)
{
	return append(target, (struct rig_tier){.ignore = ALL,
				      .user = 9,
				      .tier = 1,
				      .flags = flags,
				      .min_free = min_free,
				      .options = min_free ? LOCAL : BOTH,
				      .log = NO_LINK | TIER_BIT(TIER_PUT) | TIER_BIT(TIER_GET)});
}

static enum answer withdraw(struct fake_target *target, uint64_t entry)
{
	struct command command = {.kind = COMMAND_WITHDRAW};

	command.object.index = handle_index(entry);
	command.object.generation = handle_generation(entry);
	return rig_ask(target->space, &command);
}

static struct message_header store(uint64_t bits, uint64_t length)
{
	return (struct message_header){.kind = MESSAGE_STORE,
		.space = 4,
		.uid = RIG_UID,
		.match_bits = bits,
		.requested = length,
		.value = bits + 100};
}

static void arrive(uint64_t bits, uint64_t length)
{
	const struct message_header header = store(bits, length);

	fake_deliver(RIG_PEER, &header, data, length);
}

static struct rig_tier_event event_of(struct fake_target *target, unsigned kind)
{
	return rig_tier_event(target->space, target->queue, kind);
}

static void no_event(struct fake_target *target)
{
	rig_no_event(target->space, target->queue);
}

/* --- appends */

static void append__of_an_entry_for_one_takes_the_oldest_and_is_used_up(void **state)
{
	struct fake_target *target = *state;
	struct rig_tier_event event;
	uint64_t entry;

	overflow(target, 0, 0);
	arrive(1, 10);
	arrive(2, 20);
	arrive(2, 30);
	no_event(target);
	entry = append(target, (struct rig_tier){.bits = 2, .user = 5, .flags = ATTACHMENT_ONCE});
	event = event_of(target, TIER_PUT_KEPT);
	assert_int_equal(event.user, 5);
	assert_int_equal(event.start, (uintptr_t)target->memory);
	assert_int_equal(event.requested, 20);
	assert_int_equal(event.moved, 20);
	assert_int_equal(event.value, 102);
	assert_int_equal(event.tier, 1);
	assert_int_equal(event.nid, RIG_PEER.nid);
	event_of(target, TIER_UNLINK);
	no_event(target);
	assert_int_equal(withdraw(target, entry), ANSWER_GONE);
	/* the next message is not for it */
	arrive(2, 40);
	no_event(target);
}

static void append__of_a_persistent_entry_takes_all_in_order_and_is_linked(void **state)
{
	struct fake_target *target = *state;

	overflow(target, 0, 0);
	arrive(2, 10);
	arrive(1, 11);
	arrive(2, 12);
	append(target, (struct rig_tier){.bits = 2, .user = 5});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 10);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 12);
	event_of(target, TIER_LINK);
	no_event(target);
	arrive(2, 13);
	assert_int_equal(event_of(target, TIER_PUT).user, 5);
	append(target, (struct rig_tier){.ignore = ALL, .user = 6, .tier = 1});
	event_of(target, TIER_LINK); /* the second tier takes nothing that is kept */
	append(target, (struct rig_tier){.ignore = ALL, .user = 7, .flags = ATTACHMENT_ONCE});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 11);
}

static void append__passes_over_what_does_not_fit(void **state)
{
	struct fake_target *target = *state;

	overflow(target, 0, 0);
	arrive(1, 40);
	arrive(1, 20);
	append(target, (struct rig_tier){.bits = 1,
			       .length = 30,
			       .flags = ATTACHMENT_ONCE,
			       .options = REGION_PUT | REGION_REMOTE_OFFSET});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 20);
}

static void append__that_grows_stops_when_it_is_full(void **state)
{
	struct fake_target *target = *state;

	overflow(target, 0, 0);
	arrive(1, 40);
	arrive(1, 30);
	arrive(1, 20);
	append(target, (struct rig_tier){.bits = 1,
			       .length = 100,
			       .min_free = 40,
			       .flags = ATTACHMENT_GROWS,
			       .options = LOCAL});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 40);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 30);
	event_of(target, TIER_UNLINK);
	no_event(target);
	append(target, (struct rig_tier){.bits = 1, .flags = ATTACHMENT_ONCE});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 20);
}

static void append__that_grows_by_units_has_room_for_so_many(void **state)
{
	struct fake_target *target = *state;

	overflow(target, 0, 0);
	for (uint64_t i = 0; i < 3; i++)
		arrive(1, i * 16);
	append(target, (struct rig_tier){.bits = 1,
			       .length = 100,
			       .min_free = 1,
			       .unit = 32,
			       .flags = ATTACHMENT_GROWS,
			       .options = LOCAL});
	/* 32 each, and what is left for the last one */
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, i * 16);
	event_of(target, TIER_LINK);
	arrive(1, 2);
	assert_int_equal(event_of(target, TIER_PUT).start, (uintptr_t)target->memory + 96);
	event_of(target, TIER_UNLINK);
	no_event(target);
}

static void append__counts_what_it_takes(void **state)
{
	struct fake_target *target = *state;
	uint64_t counter = rig_event_counter(target->space);

	overflow(target, 0, 0);
	arrive(1, 40);
	arrive(1, 2);
	append(target, (struct rig_tier){.bits = 1,
			       .counter = counter,
			       .counts = TIER_BIT(TIER_PUT_KEPT),
			       .flags = ATTACHMENT_BYTES,
			       .log = TIER_BIT(TIER_PUT_KEPT)});
	assert_int_equal(rig_counted(target->space, counter).success, 42);
	event_of(target, TIER_LINK);
}

/* --- the second tier */

static void free__comes_with_the_last_header_before_the_takers_unlink(void **state)
{
	struct fake_target *target = *state;
	uint64_t entry = overflow(target, 0, 230);

	arrive(1, 20);
	arrive(2, 10); /* leaves 226 */
	event_of(target, TIER_UNLINK);
	no_event(target);
	assert_int_equal(withdraw(target, entry), ANSWER_GONE);
	append(target, (struct rig_tier){.bits = 1, .flags = ATTACHMENT_ONCE});
	event_of(target, TIER_PUT_KEPT);
	event_of(target, TIER_UNLINK);
	no_event(target);
	append(target, (struct rig_tier){.bits = 2, .user = 3, .flags = ATTACHMENT_ONCE});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).start, (uintptr_t)target->memory + 20);
	assert_int_equal(event_of(target, TIER_FREE).user, 9);
	assert_int_equal(event_of(target, TIER_UNLINK).user, 3);
	no_event(target);
}

static void free__comes_at_once_where_no_header_is_left(void **state)
{
	struct fake_target *target = *state;

	overflow(target, ATTACHMENT_ONCE | ATTACHMENT_NO_HEADERS, 0);
	arrive(1, 20);
	event_of(target, TIER_UNLINK);
	event_of(target, TIER_FREE);
	append(target, (struct rig_tier){.bits = 1, .log = NO_LINK});
	no_event(target);
}

static void entry__whose_headers_are_not_taken_is_in_use(void **state)
{
	struct fake_target *target = *state;
	uint64_t entry = overflow(target, 0, 0);

	arrive(1, 20);
	assert_int_equal(withdraw(target, entry), ANSWER_PENDING);
	rig_search(target->space, &(struct rig_tier){.ignore = ALL, .options = BOTH}, true);
	event_of(target, TIER_PUT_KEPT);
	assert_int_equal(withdraw(target, entry), ANSWER_OK);
	no_event(target);
}

static void message__without_a_header_left_is_dropped(void **state)
{
	struct fake_target *target = *state;

	overflow(target, 0, 0);
	for (unsigned i = 0; i < RIG_UNEXPECTED; i++)
		arrive(1, 1);
	arrive(1, 33);
	assert_int_equal(rig_counter(target->space, dropped_no_header), 1);
	assert_int_equal(target->memory[32], 0);
	append(target, (struct rig_tier){.bits = 1, .flags = ATTACHMENT_ONCE});
	arrive(1, 33);
	assert_int_equal(rig_counter(target->space, dropped_no_header), 1);
	assert_int_equal(target->memory[32], data[32]);
}

static void portal__that_closes_forgets_what_is_kept(void **state)
{
	struct fake_target *target = *state;
	struct command close = {.kind = COMMAND_PORTAL_CLOSE};

	overflow(target, ATTACHMENT_ONCE, 0);
	arrive(1, 20);
	event_of(target, TIER_UNLINK);
	assert_int_equal(rig_ask(target->space, &close), ANSWER_OK);
	no_event(target);
	assert_true(kept_has_room(&target->rig->engine->spaces[4]->kept));
	assert_int_equal(target->rig->engine->spaces[4]->kept_lists[0].length, 0);
}

/* --- messages that are still arriving */

static void claim__ends_with_the_message(void **state)
{
	struct fake_target *target = *state;
	const struct message_header header = store(1, 50);
	struct fake_arrival *arrival;
	uint64_t entry;

	append(target, (struct rig_tier){
			       .ignore = ALL, .tier = 1, .flags = ATTACHMENT_ONCE, .log = NO_LINK});
	arrival = fake_begin(RIG_PEER, &header, 50);
	entry = append(target, (struct rig_tier){.bits = 1, .user = 5, .flags = ATTACHMENT_ONCE});
	no_event(target);
	assert_int_equal(withdraw(target, entry), ANSWER_PENDING);
	/* it is claimed: nobody else has it */
	rig_search(target->space, &(struct rig_tier){.ignore = ALL, .options = BOTH}, false);
	assert_int_equal(event_of(target, TIER_SEARCH).verdict, TIER_NO_MATCH);
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	event_of(target, TIER_PUT);
	event_of(target, TIER_UNLINK);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).user, 5);
	event_of(target, TIER_FREE);
	assert_int_equal(event_of(target, TIER_UNLINK).user, 5);
	no_event(target);
	assert_int_equal(withdraw(target, entry), ANSWER_GONE);
	assert_memory_equal(target->memory, data, 50);
}

static void claim__of_a_message_that_fails_says_so(void **state)
{
	struct fake_target *target = *state;
	uint64_t counter = rig_event_counter(target->space);
	const struct message_header header = store(1, 50);
	struct fake_arrival *arrival;
	uint64_t entry;

	overflow(target, 0, 0);
	arrival = fake_begin(RIG_PEER, &header, 50);
	entry = append(target, (struct rig_tier){.bits = 1,
				       .user = 5,
				       .counter = counter,
				       .counts = TIER_BIT(TIER_PUT_KEPT)});
	event_of(target, TIER_LINK);
	assert_int_equal(withdraw(target, entry), ANSWER_PENDING);
	fake_end(arrival, TRANSPORT_DEAD);
	assert_int_equal(event_of(target, TIER_PUT).verdict, TIER_UNDELIVERABLE);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).verdict, TIER_UNDELIVERABLE);
	assert_int_equal(rig_counted(target->space, counter).failure, 1);
	assert_int_equal(withdraw(target, entry), ANSWER_OK);
	no_event(target);
}

static void message__that_ends_unclaimed_waits_for_its_taker(void **state)
{
	struct fake_target *target = *state;
	const struct message_header header = store(1, 50);
	struct fake_arrival *arrival;

	overflow(target, 0, 0);
	arrival = fake_begin(RIG_PEER, &header, 50);
	rig_search(target->space, &(struct rig_tier){.bits = 1, .user = 8, .options = BOTH}, false);
	assert_int_equal(event_of(target, TIER_SEARCH).user, 8); /* at once */
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	no_event(target);
	append(target, (struct rig_tier){.bits = 1, .flags = ATTACHMENT_ONCE});
	assert_int_equal(event_of(target, TIER_PUT_KEPT).moved, 50);
}

/* A search has no entry: what it claims outlives it. */
static void search__claims_as_well(void **state)
{
	struct fake_target *target = *state;
	const struct message_header header = store(1, 50);
	struct fake_arrival *arrival;

	overflow(target, 0, 0);
	arrival = fake_begin(RIG_PEER, &header, 50);
	rig_search(target->space, &(struct rig_tier){.bits = 1, .user = 8, .options = BOTH}, true);
	no_event(target);
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).user, 8);
	no_event(target);
}

/* U5. A process that never sends the rest of a message holds up its own alone. */
static void search__for_what_is_here_passes_over_what_arrives(void **state)
{
	const struct rig_tier here = {
		.ignore = ALL, .options = BOTH, .flags = ATTACHMENT_ONCE | ATTACHMENT_HERE};
	const struct process another = {.nid = 1023, .pid = 1}; /* the last that is told apart */
	const struct message_header first = store(1, 50), other = store(3, 5);
	struct fake_target *target = *state;
	struct fake_arrival *arrival;

	overflow(target, 0, 0);
	assert_int_equal(rig_search(target->space, &here, true), ANSWER_OK);
	assert_int_equal(event_of(target, TIER_SEARCH).verdict, TIER_NO_MATCH);
	arrival = fake_begin(RIG_PEER, &first, 50);
	arrive(2, 5);
	fake_deliver(another, &other, data, 5);
	assert_int_equal(rig_search(target->space, &here, true), ANSWER_OK);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).bits, 3);
	assert_int_equal(rig_search(target->space, &here, true), ANSWER_PENDING);
	assert_int_equal(event_of(target, TIER_SEARCH).verdict, TIER_NO_MATCH);
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	for (uint64_t bits = 1; bits <= 2; bits++) {
		assert_int_equal(rig_search(target->space, &here, true), ANSWER_OK);
		assert_int_equal(event_of(target, TIER_PUT_KEPT).bits, bits);
	}
	no_event(target);
}

/* --- searches: how many events, successes and failures, for one and for all */

static void search__tells_and_counts(void **state)
{
	struct fake_target *target = *state;
	uint64_t counter = rig_event_counter(target->space);
	struct rig_tier one = {.ignore = ALL,
		.user = 4,
		.options = BOTH,
		.counter = counter,
		.counts = KEPT,
		.flags = ATTACHMENT_ONCE};
	struct rig_tier all = one;

	all.flags = 0;
	overflow(target, 0, 0);
	rig_search(target->space, &one, false);
	assert_int_equal(event_of(target, TIER_SEARCH).verdict, TIER_NO_MATCH);
	assert_int_equal(rig_counted(target->space, counter).failure, 1);
	arrive(1, 10);
	arrive(1, 20);
	rig_search(target->space, &one, false);
	assert_int_equal(event_of(target, TIER_SEARCH).requested, 10);
	no_event(target);
	assert_int_equal(rig_counted(target->space, counter).success, 1);
	assert_int_equal(rig_counted(target->space, counter).failure, 1);
	rig_search(target->space, &all, false);
	assert_int_equal(event_of(target, TIER_SEARCH).requested, 10);
	assert_int_equal(event_of(target, TIER_SEARCH).requested, 20);
	no_event(target);
	assert_int_equal(rig_counted(target->space, counter).success, 3);
	assert_int_equal(rig_counted(target->space, counter).failure, 2);
	rig_search(target->space, &one, true);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 10);
	assert_int_equal(rig_counted(target->space, counter).success, 4);
	assert_int_equal(rig_counted(target->space, counter).failure, 2);
	rig_search(target->space, &all, true);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).requested, 20);
	no_event(target);
	assert_int_equal(rig_counted(target->space, counter).success, 5);
	assert_int_equal(rig_counted(target->space, counter).failure, 3);
	rig_search(target->space, &all, true);
	assert_int_equal(event_of(target, TIER_SEARCH).user, 4);
	assert_int_equal(rig_counted(target->space, counter).failure, 4);
	no_event(target);
}

static uint64_t removed(const struct fake_target *target)
{
	return counter_read(&segment_counters(target->space->segment)->unexpected_removed);
}

/* Of all others the program is told. */
static void search__counts_what_it_removes_without_an_event(void **state)
{
	struct fake_target *target = *state;
	const struct rig_tier told = {.ignore = ALL, .options = BOTH, .flags = ATTACHMENT_ONCE};
	const struct message_header late = store(4, 40);
	struct rig_tier silent = told;
	struct fake_arrival *arrival;

	silent.log = UINT32_MAX;
	overflow(target, 0, 0);
	for (uint64_t bits = 1; bits <= 3; bits++)
		arrive(bits, 10);
	arrival = fake_begin(RIG_PEER, &late, 40);
	rig_search(target->space, &told, true);
	assert_int_equal(event_of(target, TIER_PUT_KEPT).bits, 1);
	append(target, (struct rig_tier){.bits = 2, .flags = ATTACHMENT_ONCE, .log = UINT32_MAX});
	rig_search(target->space, &silent, false);
	assert_int_equal(removed(target), 0);
	rig_search(target->space, &silent, true);
	assert_int_equal(removed(target), 1);
	rig_search(target->space, &silent, true);
	assert_int_equal(removed(target), 1); /* the message has not ended */
	fake_place(arrival, 0, data, 40);
	fake_end(arrival, TRANSPORT_OK);
	assert_int_equal(removed(target), 2);
	no_event(target);
}

/* A load of the second tier leaves a header as well. */
static void load__leaves_a_header(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = {.kind = MESSAGE_LOAD,
		.space = 4,
		.uid = RIG_UID,
		.match_bits = 1,
		.requested = 1025, /* no longer from a copy */
		.operation = 0x700000003};
	struct fake_sent *sent;

	overflow(target, 0, 0);
	fake_deliver(RIG_PEER, &header, NULL, 0);
	sent = fake_next();
	append(target, (struct rig_tier){.bits = 1, .flags = ATTACHMENT_ONCE});
	no_event(target);
	fake_finish(sent, TRANSPORT_OK);
	assert_int_equal(event_of(target, TIER_GET_KEPT).moved, sizeof(target->memory));
	event_of(target, TIER_UNLINK);
	no_event(target);
}

int main(void)
{
#define test(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, fake_target_setup, fake_target_teardown)
	const struct CMUnitTest tests[] = {
		test(append__of_an_entry_for_one_takes_the_oldest_and_is_used_up),
		test(append__of_a_persistent_entry_takes_all_in_order_and_is_linked),
		test(append__passes_over_what_does_not_fit),
		test(append__that_grows_stops_when_it_is_full),
		test(append__that_grows_by_units_has_room_for_so_many),
		test(append__counts_what_it_takes),
		test(free__comes_with_the_last_header_before_the_takers_unlink),
		test(free__comes_at_once_where_no_header_is_left),
		test(entry__whose_headers_are_not_taken_is_in_use),
		test(message__without_a_header_left_is_dropped),
		test(portal__that_closes_forgets_what_is_kept),
		test(claim__ends_with_the_message),
		test(claim__of_a_message_that_fails_says_so),
		test(message__that_ends_unclaimed_waits_for_its_taker),
		test(search__claims_as_well),
		test(search__for_what_is_here_passes_over_what_arrives),
		test(search__tells_and_counts),
		test(search__counts_what_it_removes_without_an_event),
		test(load__leaves_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
