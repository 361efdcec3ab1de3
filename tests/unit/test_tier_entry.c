/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tier_entry.c - which entry of a space with tiers takes a store or a load, and where in it.
 *
 * Covers: lib/engine/tier_entry.c, lib/engine/tiers.c.
 */
#include "tier_rig.h"

static void store__is_placed_counted_logged_and_answered(void **state)
{
	struct fake_target *target = *state;
	uint64_t counter = rig_event_counter(target->space);
	struct message_header header = request(MESSAGE_STORE, 10);
	struct rig_tier_event event;

	append(target, (struct rig_tier){.bits = 5,
			       .options = BOTH,
			       .user = 77,
			       .counter = counter,
			       .counts = TIER_BIT(TIER_PUT)});
	header.offset = 3;
	header.value = 99;
	arrive(&header);
	assert_memory_equal(target->memory + 3, data, 10);
	assert_int_equal(rig_counted(target->space, counter).success, 1);
	event = rig_tier_event(target->space, target->queue, TIER_PUT);
	assert_int_equal(event.user, 77);
	assert_int_equal(event.start, (uintptr_t)target->memory + 3);
	assert_int_equal(event.value, 99);
	assert_int_equal(event.bits, 5);
	assert_int_equal(event.requested, 10);
	assert_int_equal(event.moved, 10);
	assert_int_equal(event.offset, 3);
	assert_int_equal(event.nid, RIG_PEER.nid);
	assert_int_equal(event.pid, RIG_PEER.pid);
	assert_int_equal(event.uid, RIG_UID + 1);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 10, 3);
}

static void store__in_pieces_ends_with_the_last(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 50);
	struct fake_arrival *arrival;
	uint64_t entry = append(target,
		(struct rig_tier){.ignore = UINT64_MAX, .options = BOTH, .flags = ATTACHMENT_ONCE});

	arrival = fake_begin(RIG_PEER, &header, 50);
	rig_no_event(target->space, target->queue);
	assert_null(fake_next());
	assert_int_equal(withdraw(target, entry), ANSWER_GONE); /* it left its list */
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	assert_memory_equal(target->memory, data, 50);
	rig_tier_event(target->space, target->queue, TIER_PUT);
	rig_tier_event(target->space, target->queue, TIER_UNLINK);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 50, 0);
}

static void store__whose_sender_dies_fails_and_is_not_answered(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 50);
	uint64_t counter = rig_event_counter(target->space);
	struct fake_arrival *arrival;

	append(target, (struct rig_tier){.ignore = UINT64_MAX,
			       .options = BOTH,
			       .counter = counter,
			       .counts = TIER_BIT(TIER_PUT)});
	arrival = fake_begin(RIG_PEER, &header, 50);
	fake_end(arrival, TRANSPORT_DEAD);
	assert_int_equal(
		rig_tier_event(target->space, target->queue, TIER_PUT).verdict, TIER_UNDELIVERABLE);
	assert_int_equal(rig_counted(target->space, counter).failure, 1);
	assert_null(fake_next());
}

static void unlink__comes_after_the_event_of_the_last_message_in_progress(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 30);
	struct fake_arrival *first, *second;

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = LOCAL, .min_free = 10});
	first = fake_begin(RIG_PEER, &header, 30);
	second = fake_begin(RIG_PEER, &header, 30); /* leaves 4: less than 10 */
	fake_place(second, 0, data, 30);
	fake_end(second, TRANSPORT_OK);
	rig_tier_event(target->space, target->queue, TIER_PUT);
	rig_no_event(target->space, target->queue);
	fake_place(first, 0, data, 30);
	fake_end(first, TRANSPORT_OK);
	rig_tier_event(target->space, target->queue, TIER_PUT);
	rig_tier_event(target->space, target->queue, TIER_UNLINK);
	assert_memory_equal(target->memory, data, 30);
	assert_memory_equal(target->memory + 30, data, 30);
	arrive(&header);
	assert_int_equal(rig_counter(target->space, dropped_no_match), 1);
}

static void local_offset__grows_and_the_answer_tells_it(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 40);

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = LOCAL});
	header.offset = 7; /* means nothing here */
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 40, 0);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 24, 40);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 0, 64);
	rig_tier_event(target->space, target->queue, TIER_PUT);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).moved, 24);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).offset, 7);
}

static void local_offset__grows_by_units(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 0);

	append(target, (struct rig_tier){.ignore = UINT64_MAX,
			       .length = 40,
			       .min_free = 1,
			       .unit = 16,
			       .options = LOCAL | REGION_TRUNCATE});
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 0, 0);
	header.requested = 16;
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 16, 16);
	header.requested = 1;
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 1, 32);
	for (unsigned i = 0; i < 3; i++)
		rig_tier_event(target->space, target->queue, TIER_PUT);
	rig_tier_event(target->space, target->queue, TIER_UNLINK);
	rig_no_event(target->space, target->queue);
}

static void entry__that_must_not_truncate_is_passed_over(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 20);

	append(target, (struct rig_tier){.ignore = UINT64_MAX,
			       .length = 10,
			       .user = 1,
			       .options = REGION_PUT | REGION_REMOTE_OFFSET});
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .user = 2, .options = BOTH});
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).user, 2);
	header.requested = 10;
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).user, 1);
	header.offset = UINT64_MAX; /* offset + length wraps */
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).user, 2);
}

static void entry__for_shorter_messages_is_passed_over(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 10);

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .user = 1, .options = BOTH});
	append(target, (struct rig_tier){.ignore = UINT64_MAX,
			       .user = 2,
			       .first = true,
			       .most = 10,
			       .options = BOTH});
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).user, 2);
	header.requested = 11;
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).user, 1);
}

/* The transport has no messages that are longer, whatever a peer asks of an entry that is. */
static void load__of_more_than_a_message_has_is_discarded(void **state)
{
	static const uint64_t wrong[] = {MESSAGE_LENGTH_MAX + 1, UINT64_MAX - 63, UINT64_MAX};
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 0);
	struct fake_sent *sent;

	append(target,
		(struct rig_tier){.ignore = UINT64_MAX, .length = UINT64_MAX, .options = BOTH});
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		header.requested = wrong[i];
		arrive(&header);
		assert_int_equal(rig_counter(target->space, dropped_bad_message), i + 1);
		assert_null(fake_next());
	}
	header.requested = MESSAGE_LENGTH_MAX;
	arrive(&header);
	sent = fake_next();
	assert_non_null(sent);
	assert_int_equal(sent->length, MESSAGE_LENGTH_MAX);
	fake_finish(sent, TRANSPORT_DEAD);
}

static void load__of_a_silent_entry_tells_its_tier(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 4);

	append(target, (struct rig_tier){
			       .tier = 1, .ignore = UINT64_MAX, .options = BOTH | REGION_NO_ACK});
	arrive(&header);
	expect_answer(MESSAGE_LOADED, TIER_OK, 1, 4, 0);
}

static void second_tier__takes_what_the_first_does_not(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 1);

	append(target,
		(struct rig_tier){.ignore = UINT64_MAX, .user = 2, .tier = 1, .options = BOTH});
	append(target, (struct rig_tier){.bits = 5, .user = 1, .options = BOTH});
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).tier, 0);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 1, 0);
	header.match_bits = 6;
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_PUT).tier, 1);
	expect_answer(MESSAGE_STORED, TIER_OK, 1, 1, 0);
}

int main(void)
{
#define test(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, fake_target_setup, fake_target_teardown)
	const struct CMUnitTest tests[] = {
		test(store__is_placed_counted_logged_and_answered),
		test(store__in_pieces_ends_with_the_last),
		test(store__whose_sender_dies_fails_and_is_not_answered),
		test(unlink__comes_after_the_event_of_the_last_message_in_progress),
		test(local_offset__grows_and_the_answer_tells_it),
		test(local_offset__grows_by_units),
		test(entry__that_must_not_truncate_is_passed_over),
		test(entry__for_shorter_messages_is_passed_over),
		test(load__of_more_than_a_message_has_is_discarded),
		test(load__of_a_silent_entry_tells_its_tier),
		test(second_tier__takes_what_the_first_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
