/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tiers.c - what a space with tiers does with stores and loads: whom it refuses, what it
 * answers and counts, atomics. Which entry takes a request: test_tier_entry.c. What a Portal may
 * fill of a queue: test_portal.c.
 *
 * Covers: lib/engine/tiers.c.
 */
#include <string.h>

#include <base/handle.h>
#include <engine/amo.h>
#include <engine/tally.h>

#include "tier_rig.h"

/* T1 */
static void refusal__tells_why_and_leaves_no_trace(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 8);
	uint64_t counter = rig_event_counter(target->space);

	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_DROPPED, 0, 0, 0);
	assert_int_equal(rig_counter(target->space, dropped_no_match), 1);
	append(target, (struct rig_tier){.ignore = UINT64_MAX,
			       .options = REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE,
			       .counter = counter,
			       .counts = UINT16_MAX,
			       .flags = ATTACHMENT_ONCE,
			       .uid = RIG_UID + 1});
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OPERATION, 0, 0, 0);
	assert_int_equal(rig_counter(target->space, dropped_operation), 1);
	header.uid = 5;
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_PERMISSION, 0, 0, 0);
	assert_int_equal(rig_counter(target->space, dropped_permission), 1);
	header.portal = 2; /* not open */
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_DROPPED, 0, 0, 0);
	header.portal = RIG_PORTALS;
	header.operation = 0; /* no answer is wanted */
	arrive(&header);
	assert_null(fake_next());
	assert_int_equal(rig_counter(target->space, dropped_no_portal), 2);
	rig_no_event(target->space, target->queue);
	assert_int_equal(rig_counted(target->space, counter).success, 0);
	assert_int_equal(target->memory[0], 0);
	/* the entry is still there */
	header = request(MESSAGE_LOAD, 8);
	arrive(&header);
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, 8, 0);
}

/* A sender that always has a message under way does not keep it. */
static void entry__that_leaves_takes_no_more_messages(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 50);
	uint64_t entry = append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	struct fake_arrival *arrival = fake_begin(RIG_PEER, &header, 50);

	assert_int_equal(entry_leave(target, entry, 1), ANSWER_PENDING);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_DROPPED, 0, 0, 0);
	assert_int_equal(entry_leave(target, entry, 1), ANSWER_PENDING);
	assert_int_equal(withdraw(target, entry), ANSWER_PENDING);
	fake_end(arrival, TRANSPORT_OK);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 50, 0);
	assert_int_equal(entry_leave(target, entry, 1), ANSWER_GONE);
}

/* A load of little is answered from a copy, so that its answer stays what it was. */
static void load__of_little_is_answered_from_a_copy(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 1024);
	struct fake_sent *sent;

	memcpy(target->memory, data, sizeof(data));
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	header.offset = 14;
	arrive(&header);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_GET).moved, 50);
	memset(target->memory, 0, sizeof(data));
	sent = fake_next();
	assert_int_equal(sent->header.kind, MESSAGE_LOADED);
	assert_int_equal(sent->header.value, 50);
	assert_int_equal(sent->length, 50);
	assert_memory_equal(sent->data, data + 14, 50);
	fake_finish(sent, TRANSPORT_OK);
	rig_no_event(target->space, target->queue);
}

/* The same of a long one that gets little: the transport has no room to say that so little is not
 * there any more. */
static void load__of_much_that_gets_little_is_answered_from_a_copy(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 1025);
	struct fake_sent *sent;

	memcpy(target->memory, data, sizeof(data));
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	for (uint64_t left = 0; left <= VOID_BYTES; left++) {
		header.offset = sizeof(data) - left;
		arrive(&header);
		assert_int_equal(
			rig_tier_event(target->space, target->queue, TIER_GET).moved, left);
		memset(target->memory, 0, sizeof(data));
		sent = fake_next();
		assert_int_equal(sent->header.value, left);
		assert_int_equal(sent->length, left);
		assert_memory_equal(sent->data, data + header.offset, left);
		fake_finish(sent, TRANSPORT_OK);
		memcpy(target->memory, data, sizeof(data));
	}
	rig_no_event(target->space, target->queue);
}

static void load__is_answered_with_data_and_logged_when_that_has_left(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 1025);
	struct fake_sent *sent;

	memcpy(target->memory, data, sizeof(data));
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	header.offset = 14;
	arrive(&header);
	sent = fake_next();
	assert_int_equal(sent->header.kind, MESSAGE_LOADED);
	assert_int_equal(sent->header.value, 50);
	assert_int_equal(sent->length, 50);
	rig_no_event(target->space, target->queue);
	fake_finish(sent, TRANSPORT_OK);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_GET).moved, 50);
}

static void entry__that_wants_no_acknowledgement_says_only_that(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 8);

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH | REGION_NO_ACK});
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_SILENT, 0, 8, 0);
}

static void question__is_answered_unless_the_answer_is_on_its_way(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_LOAD, 1025);
	struct fake_sent *sent;

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	arrive(&header);
	sent = fake_next();
	header = request(MESSAGE_ASK, 0);
	header.detail = MESSAGE_ASK_LOAD;
	arrive(&header);
	assert_null(fake_next());
	fake_finish(sent, TRANSPORT_OK);
	arrive(&header);
	expect_answer(MESSAGE_LOADED, TIER_UNDELIVERABLE, 0, 0, 0);
	header.detail = 0;
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_UNDELIVERABLE, 0, 0, 0);
}

static void answer__of_a_two_sided_space_waits_for_the_end_of_the_turn(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 1);

	target->rig->engine->opened[target->space->space]->two_sided = true;
	append(target, (struct rig_tier){.bits = 5, .options = BOTH});
	arrive(&header);
	header.requested = 2;
	arrive(&header);
	assert_null(fake_next());
	assert_false(engine_settled(target->rig->engine));
	engine_poll(target->rig->engine);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 1, 0);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 2, 0);
	assert_null(fake_next());
	/* It leaves before what is sent next, and before the question for it is answered. */
	arrive(&header);
	engine_push(target->rig->engine);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 2, 0);
	arrive(&header);
	header = request(MESSAGE_ASK, 0);
	arrive(&header);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 2, 0);
	expect_answer(MESSAGE_STORED, TIER_UNDELIVERABLE, 0, 0, 0);
}

/* The sender of a two-sided message gives up who refuses it (MESSAGE_REFUSALS). */
static void refusal__is_told_to_who_wants_no_other_answer(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 1);
	struct fake_sent *sent;

	header.operation = 0;
	header.cookie = 77;
	arrive(&header);
	assert_null(fake_next());
	for (uint8_t space = 4; space < 6; space++) { /* the second is not there */
		header.space = space;
		header.detail = MESSAGE_REFUSALS;
		arrive(&header);
		sent = fake_next();
		assert_non_null(sent);
		assert_int_equal(sent->header.kind, MESSAGE_STORED);
		assert_int_equal(sent->header.operation, 0);
		assert_int_equal(sent->header.cookie, 77);
		assert_int_equal(
			sent->header.detail, space == 4 ? TIER_DROPPED : TIER_UNDELIVERABLE);
		fake_finish(sent, TRANSPORT_OK);
	}
	header.space = 4;
	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	arrive(&header);
	assert_null(fake_next());
}

static void message__of_another_kind_of_space_is_dropped(void **state)
{
	struct fake_target *target = *state;
	struct message_header header = request(MESSAGE_STORE, 8);
	struct message_header put = rig_put_header(8);

	append(target, (struct rig_tier){.ignore = UINT64_MAX, .options = BOTH});
	put.space = 4;
	fake_deliver(RIG_PEER, &put, data, 8);
	put = rig_get_header(8);
	put.space = 4;
	fake_deliver(RIG_PEER, &put, data, 0);
	assert_int_equal(rig_counter(target->space, dropped_bad_message), 2);
	header.space = 0;
	fake_deliver(RIG_PEER, &header, data, 8);
	assert_int_equal(rig_counter(target->rig, dropped_bad_message), 1);
	rig_no_event(target->space, target->queue);
}

/* A rank is believed when the target's own map says the same. */
static void rank__must_be_that_of_the_sender(void **state)
{
	struct fake_target *target = *state;
	const struct process map[] = {RIG_SELF, RIG_PEER};
	const struct {
		struct process map[2];
		uint32_t names[2];
	} named = {{RIG_SELF, RIG_PEER}, {0, 2 << NAME_RANK_BITS | 1}};
	struct message_header header = request(MESSAGE_STORE, 8);
	struct command set = {.kind = COMMAND_MAP};
	struct rig *space;
	uint64_t queue;

	space = rig_tiers(target->rig, true, &queue);
	rig_append(space, &(struct rig_tier){.start = target->memory,
				  .length = sizeof(target->memory),
				  .ignore = UINT64_MAX,
				  .options = BOTH,
				  .log = TIER_BIT(TIER_LINK)});
	header.space = 6;
	header.cookie = 1;
	header.operation = 0;
	arrive(&header); /* there is no map */
	set.object.index = 2;
	set.object.other = (uintptr_t)map;
	assert_int_equal(rig_ask(space, &set), ANSWER_OK);
	arrive(&header);
	assert_int_equal(rig_tier_event(space, queue, TIER_PUT).nid, 1);
	header.cookie = 0; /* is another process */
	arrive(&header);
	header.cookie = 2;
	arrive(&header);
	rig_no_event(space, queue);
	assert_int_equal(rig_counter(space, dropped_bad_cookie), 3);
	/* The rank is used again: the cookie of its earlier process is not the later one's. */
	set.object.portal = 1;
	set.object.other = (uintptr_t)&named;
	assert_int_equal(rig_ask(space, &set), ANSWER_OK);
	for (uint32_t use = 0; use < 4; use++) {
		header.cookie = use << NAME_RANK_BITS | 1;
		arrive(&header);
	}
	assert_int_equal(rig_tier_event(space, queue, TIER_PUT).nid, 1);
	rig_no_event(space, queue);
	assert_int_equal(rig_counter(space, dropped_bad_cookie), 6);
	rig_stop(target->rig);
	rig_space_free(space);
}

static enum answer rank_ended(struct rig *space, uint32_t rank)
{
	struct command command = {.kind = COMMAND_RANK_ENDED};

	command.object.index = rank;
	return rig_ask(space, &command);
}

/* A rank has ended when none of its messages is kept, or under way. */
static void rank__has_ended_with_its_last_message(void **state)
{
	struct fake_target *target = *state;
	const struct process map[] = {RIG_SELF, RIG_PEER};
	const struct rig_tier once = {.bits = 5, .options = BOTH, .flags = ATTACHMENT_ONCE};
	struct message_header header = request(MESSAGE_STORE, 8);
	struct command set = {.kind = COMMAND_MAP};
	struct fake_arrival *arrival;
	struct rig *space;
	uint64_t queue;

	space = rig_tiers(target->rig, true, &queue);
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)map;
	assert_int_equal(rig_ask(space, &set), ANSWER_OK);
	rig_append(space, &(struct rig_tier){.start = target->memory,
				  .length = sizeof(target->memory),
				  .ignore = UINT64_MAX,
				  .tier = 1,
				  .options = BOTH,
				  .log = TIER_BIT(TIER_LINK) | TIER_BIT(TIER_PUT)});
	header.space = 6;
	header.cookie = 1;
	header.operation = 0;
	assert_int_equal(rank_ended(space, 1), ANSWER_OK);
	assert_int_equal(rank_ended(space, RIG_RANKS), ANSWER_PENDING);
	for (unsigned i = 0; i < 2; i++)
		arrive(&header);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rank_ended(space, 1), ANSWER_PENDING);
		assert_int_equal(rank_ended(space, 0), ANSWER_OK);
		assert_int_equal(rig_search(space, &once, true), ANSWER_OK);
	}
	assert_int_equal(rank_ended(space, 1), ANSWER_OK);
	rig_append(space, &(struct rig_tier){.start = target->memory,
				  .length = sizeof(target->memory),
				  .bits = 5,
				  .options = BOTH,
				  .log = TIER_BIT(TIER_LINK)});
	header.requested = 50;
	arrival = fake_begin(RIG_PEER, &header, 50);
	assert_int_equal(rank_ended(space, 1), ANSWER_PENDING);
	fake_place(arrival, 0, data, 50);
	fake_end(arrival, TRANSPORT_OK);
	assert_int_equal(rank_ended(space, 1), ANSWER_OK);
	rig_stop(target->rig);
	rig_space_free(space);
}

static void counter__is_set_added_to_and_freed(void **state)
{
	struct fake_target *target = *state;
	uint64_t counter = rig_event_counter(target->space);
	struct command command = {.kind = COMMAND_COUNTER_SET};

	command.count.index = handle_index(counter);
	command.count.generation = handle_generation(counter);
	command.count.by = (struct event_count){7, 1};
	assert_int_equal(rig_ask(target->space, &command), ANSWER_OK);
	command.kind = COMMAND_COUNTER_ADD;
	command.count.by = (struct event_count){2, 0};
	assert_int_equal(rig_ask(target->space, &command), ANSWER_OK);
	assert_int_equal(rig_counted(target->space, counter).success, 9);
	assert_int_equal(rig_counted(target->space, counter).failure, 1);
	command.kind = COMMAND_COUNTER_FREE;
	assert_int_equal(rig_ask(target->space, &command), ANSWER_OK);
	assert_int_equal(rig_ask(target->space, &command), ANSWER_GONE);
}

/* An atomic or a fetch of these bytes at the first entry's memory. */
static void arrive_amo(
	unsigned kind, unsigned operation, unsigned type, const void *bytes, uint64_t length)
{
	struct message_header header = request(kind, length);

	header.detail = message_amo(operation, type);
	fake_deliver(RIG_PEER, &header, bytes, length);
}

static void fetch__answers_what_it_found_and_keeps_that_until_the_answer_is_done(void **state)
{
	struct fake_target *target = *state;
	static uint64_t words[16], ones[16];
	struct fake_sent *sent[4];

	rig_append(target->space, &(struct rig_tier){.start = words,
					  .length = sizeof(words),
					  .bits = 5,
					  .log = ~0u,
					  .options = BOTH});
	for (unsigned i = 0; i < 16; i++)
		ones[i] = 1;
	for (unsigned i = 0; i < 4; i++) {
		arrive_amo(MESSAGE_FETCH, AMO_SUM, AMO_UINT64, ones,
			i % 2 == 0 ? sizeof(ones) : sizeof(ones[0]));
		sent[i] = fake_next();
	}
	assert_int_equal(words[0], 4);
	assert_int_equal(words[15], 2);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(sent[i]->header.kind, MESSAGE_LOADED);
		assert_int_equal(sent[i]->header.operation, 0x700000003);
		assert_int_equal(sent[i]->length, i % 2 == 0 ? sizeof(ones) : sizeof(ones[0]));
		assert_int_equal(sent[i]->header.value, sent[i]->length);
		assert_int_equal(((const uint64_t *)sent[i]->data)[0], i);
	}
	assert_int_equal(((const uint64_t *)sent[2]->data)[15], 1);
	for (unsigned i = 0; i < 4; i++)
		fake_finish(sent[i], i == 1 ? TRANSPORT_DEAD : TRANSPORT_OK);
	/* The copies are used again. */
	for (unsigned i = 0; i < 1000; i++) {
		arrive_amo(MESSAGE_FETCH, AMO_SUM, AMO_UINT64, ones, sizeof(ones));
		fake_finish(fake_next(), TRANSPORT_OK);
	}
	assert_int_equal(pool_taken(&target->rig->engine->copies), 0);
	assert_true(target->rig->engine->copies.made <= COPIES_CHUNK);
}

/* What a tally has counted is told once, until it is taken. */
static void tally__counts_what_is_wanted_by_what_it_does(void **state)
{
	struct fake_target *target = *state;
	struct queue *queue = segment_queue(target->space->segment, handle_index(target->queue));
	struct tally tally = {.wanted = 1u << TALLY_CHANGES | 1u << TALLY_WRITES};
	static uint64_t words[16];
	const struct {
		unsigned kind, amo;
		uint64_t value;
	} requests[] = {
		{MESSAGE_STORE, 0, TALLY_READS},
		{MESSAGE_LOAD, 0, 0},
		{MESSAGE_ATOMIC, message_amo(AMO_SUM, AMO_UINT64), TALLY_READS},
		{MESSAGE_FETCH, message_amo(AMO_SUM, AMO_UINT64), 0},
		{MESSAGE_FETCH, message_amo(AMO_SUM, AMO_UINT64), TALLY_READS},
		{MESSAGE_FETCH, message_amo(AMO_SWAP, AMO_UINT64), TALLY_WRITES},
		{MESSAGE_FETCH, message_amo(AMO_SUM, AMO_UINT64), UINT64_MAX},
	};

	rig_append(target->space, &(struct rig_tier){.start = words,
					  .length = sizeof(words),
					  .bits = 5,
					  .log = ~0u,
					  .options = BOTH,
					  .user = (uintptr_t)&tally,
					  .counts = TIER_BIT(TIER_PUT) | TIER_BIT(TIER_GET) |
						    TIER_BIT(TIER_ATOMIC) | TIER_BIT(TIER_FETCH),
					  .flags = ATTACHMENT_TALLY});
	for (unsigned round = 1; round <= 2; round++) {
		for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
			struct message_header header = request(requests[i].kind, 8);

			header.detail = (uint16_t)requests[i].amo;
			header.value = requests[i].value;
			fake_deliver(
				RIG_PEER, &header, words, requests[i].kind == MESSAGE_LOAD ? 0 : 8);
			fake_finish(fake_next(), TRANSPORT_OK);
		}
		assert_ptr_equal(outcomes_take(queue), &tally);
		assert_null(tally.outcome.next);
		assert_null(outcomes_take(queue));
		tally_taken(&tally);
		assert_int_equal(tally.successes[TALLY_CHANGES], 2 * round);
		assert_int_equal(tally.successes[TALLY_READS], 0);
		assert_int_equal(tally.successes[TALLY_WRITES], 3 * round);
	}
	rig_no_event(target->space, target->queue);
}

static void tally__counts_failures_and_nothing_that_is_refused(void **state)
{
	struct fake_target *target = *state;
	struct queue *queue = segment_queue(target->space->segment, handle_index(target->queue));
	struct message_header header = request(MESSAGE_STORE, 50);
	struct tally tally = {.wanted = 1u << TALLY_WRITES | 1u << TALLY_READS};
	struct fake_arrival *arrival;

	append(target, (struct rig_tier){.bits = 5,
			       .options = BOTH & ~REGION_GET,
			       .log = ~0u & ~TIER_BIT(TIER_LINK),
			       .user = (uintptr_t)&tally,
			       .counts = TIER_BIT(TIER_PUT) | TIER_BIT(TIER_GET),
			       .flags = ATTACHMENT_TALLY});
	arrival = fake_begin(RIG_PEER, &header, 50);
	assert_null(outcomes_take(queue));
	fake_end(arrival, TRANSPORT_DEAD);
	assert_ptr_equal(outcomes_take(queue), &tally);
	tally_taken(&tally);
	assert_int_equal(tally.failures[TALLY_WRITES], 1);
	assert_int_equal(tally.successes[TALLY_WRITES], 0);
	header = request(MESSAGE_LOAD, 8);
	arrive(&header);
	expect_answer(MESSAGE_LOADED, TIER_OPERATION, 0, 0, 0);
	assert_null(outcomes_take(queue));
}

/* The greedy peer's requests would use up the last quarter of the copies; another peer's are
 * answered, and so are those that need no copy. */
static void copies__of_a_peer_that_has_its_share_are_left_to_others(void **state)
{
	struct fake_target *target = *state;
	static char words[AMO_BYTES_MAX];
	static const char ones[COPIED_MAX + 1];
	const struct process other = {RIG_PEER.nid + 1, RIG_PEER.pid};
	struct message_header load = request(MESSAGE_LOAD, COPIED_MAX + 1);
	struct pool *copies = &target->rig->engine->copies;
	unsigned made;

	rig_append(target->space, &(struct rig_tier){.start = words,
					  .length = sizeof(words),
					  .bits = 5,
					  .log = ~0u,
					  .options = BOTH});
	fake_share_spent(RIG_PEER);
	arrive(&load); /* there are copies for all */
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, COPIED_MAX + 1, 0);
	made = copies->made;
	copies->made = COPIES_MAX; /* as if all others were in use */
	arrive(&load);
	expect_answer(MESSAGE_LOADED, TIER_DROPPED, 0, 0, 0);
	arrive_amo(MESSAGE_FETCH, AMO_SUM, AMO_INT8, ones, sizeof(ones));
	expect_answer(MESSAGE_LOADED, TIER_DROPPED, 0, 0, 0);
	assert_int_equal(rig_counter(target->space, dropped_no_memory_operation), 2);
	arrive_amo(MESSAGE_FETCH, AMO_SUM, AMO_INT8, ones, COPIED_MAX);
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, COPIED_MAX, 0);
	load.requested = AMO_BYTES_MAX + 1;
	arrive(&load);
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, AMO_BYTES_MAX, 0);
	load.requested = AMO_BYTES_MAX;
	fake_deliver(other, &load, NULL, 0);
	assert_int_equal(fake_next()->header.detail, TIER_OK);
	copies->left = 0; /* and now they are */
	fake_deliver(other, &load, NULL, 0);
	assert_int_equal(fake_next()->header.detail, TIER_DROPPED);
	copies->left = made - 1;
	copies->made = made;
}

/* A request of so many bytes is refused or taken, and so answered. */
static void expect_load(struct process from, uint64_t bytes, enum tier_verdict verdict)
{
	struct message_header load = request(MESSAGE_LOAD, bytes);
	struct fake_sent *sent;

	fake_deliver(from, &load, NULL, 0);
	sent = fake_next();
	assert_non_null(sent);
	assert_int_equal(sent->header.detail & MESSAGE_VERDICT, verdict);
	fake_finish(sent, TRANSPORT_OK);
}

static void resume(struct process from)
{
	struct message_header header = request(MESSAGE_LOAD, 0);
	struct fake_sent *sent;

	header.portal = MESSAGE_RESUME;
	fake_deliver(from, &header, NULL, 0);
	sent = fake_next();
	assert_int_equal(sent->header.detail & MESSAGE_VERDICT, TIER_DROPPED);
	fake_finish(sent, TRANSPORT_OK);
}

/* T9. */
static void requests__that_follow_a_refused_one_wait_for_it(void **state)
{
	const struct process other = {.nid = 9, .pid = 90};
	static uint8_t memory[AMO_BYTES_MAX];
	struct fake_target *target = *state;
	struct pool *copies = &target->rig->engine->copies;
	const unsigned most = copies->max;
	const uint64_t dropped = rig_counter(target->space, dropped_no_portal);

	target->rig->engine->spaces[4]->life = 0;
	rig_append(target->space, &(struct rig_tier){.start = memory,
					  .length = sizeof(memory),
					  .bits = 5,
					  .log = ~0u,
					  .options = BOTH});
	for (unsigned lives = 0; lives < 2; lives++) {
		target->rig->engine->spaces[4]->life = lives;
		copies->max = copies->made; /* none is left */
		expect_load(RIG_PEER, AMO_BYTES_MAX, lives ? TIER_REFUSED : TIER_DROPPED);
		expect_load(RIG_PEER, 8, lives ? TIER_REFUSED : TIER_OK);
		expect_load(other, 8, TIER_OK);
		copies->max = most;
		expect_load(RIG_PEER, 8, lives ? TIER_REFUSED : TIER_OK);
		if (lives == 0)
			continue;
		copies->max = copies->made;
		resume(other); /* it is not held */
		expect_load(RIG_PEER, 8, TIER_REFUSED);
		resume(RIG_PEER);
		expect_load(RIG_PEER, AMO_BYTES_MAX, TIER_REFUSED);
		expect_load(RIG_PEER, 8, TIER_REFUSED);
		assert_int_equal(target->rig->engine->operations_shared, 0);
		transport_mark(target->rig->engine->transport, RIG_PEER, false); /* forgotten */
		expect_load(other, 8, TIER_OK);
		assert_int_not_equal(target->rig->engine->operations_shared, 0);
		expect_load(RIG_PEER, AMO_BYTES_MAX, TIER_REFUSED);
		copies->max = most;
		resume(RIG_PEER);
		expect_load(RIG_PEER, AMO_BYTES_MAX, TIER_OK);
		expect_load(RIG_PEER, 8, TIER_OK);
	}
	assert_int_not_equal(target->rig->engine->operations_shared, 0);
	assert_int_equal(rig_counter(target->space, dropped_no_portal), dropped);
}

static void fetch__of_one_element_has_its_operand_before_its_source(void **state)
{
	struct fake_target *target = *state;
	static int32_t word;
	const int32_t swap[2] = {7, 9};

	word = 7;
	rig_append(target->space, &(struct rig_tier){.start = &word,
					  .length = sizeof(word),
					  .bits = 5,
					  .log = ~TIER_BIT(TIER_FETCH),
					  .options = BOTH});
	arrive_amo(MESSAGE_FETCH, AMO_CSWAP, AMO_INT32, swap, sizeof(swap));
	assert_int_equal(word, 9);
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_FETCH).requested, 4);
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, 4, 0);
	arrive_amo(MESSAGE_FETCH, AMO_CSWAP, AMO_INT32, swap, sizeof(swap));
	assert_int_equal(word, 9);
	rig_tier_event(target->space, target->queue, TIER_FETCH);
	expect_answer(MESSAGE_LOADED, TIER_OK, 0, 4, 0);
}

/* Where nothing may be read. */
static void swap__writes_alone_unless_it_fetches(void **state)
{
	struct fake_target *target = *state;
	static const uint64_t source[2] = {7, 8};
	uint64_t words[2];

	append(target,
		(struct rig_tier){
			.bits = 5, .options = BOTH & ~REGION_GET, .log = ~TIER_BIT(TIER_ATOMIC)});
	arrive_amo(MESSAGE_FETCH, AMO_SWAP, AMO_UINT64, source, sizeof(source));
	expect_answer(MESSAGE_LOADED, TIER_OPERATION, 0, 0, 0);
	memcpy(words, target->memory, sizeof(words));
	assert_int_equal(words[0] | words[1], 0);
	arrive_amo(MESSAGE_ATOMIC, AMO_SWAP, AMO_UINT64, source, sizeof(source));
	expect_answer(MESSAGE_STORED, TIER_OK, 0, sizeof(source), 0);
	assert_memory_equal(target->memory, source, sizeof(source));
	assert_int_equal(rig_tier_event(target->space, target->queue, TIER_ATOMIC).moved, 16);
}

static void atomics__of_hostile_peers_are_counted_and_have_no_effect(void **state)
{
	static const struct {
		uint8_t kind, operation, type;
		uint64_t length;
	} bad[] = {
		{MESSAGE_ATOMIC, AMO_OPERATIONS, AMO_INT8, 8},
		{MESSAGE_ATOMIC, 255, 255, 8},
		{MESSAGE_ATOMIC, AMO_SUM, AMO_TYPES, 8},
		{MESSAGE_FETCH, AMO_SUM, 255, 8},
		{MESSAGE_ATOMIC, AMO_BOR, AMO_DOUBLE, 8},
		{MESSAGE_FETCH, AMO_MIN, AMO_FLOAT_COMPLEX, 8},
		{MESSAGE_ATOMIC, AMO_SWAP, AMO_INT8, AMO_BYTES_MAX + 1},
		{MESSAGE_ATOMIC, AMO_CSWAP, AMO_INT8, 2},
		{MESSAGE_ATOMIC, AMO_SUM, AMO_INT8, AMO_BYTES_MAX + 1},
		{MESSAGE_FETCH, AMO_SWAP, AMO_INT8, AMO_BYTES_MAX + 1},
		{MESSAGE_FETCH, AMO_CSWAP, AMO_INT64, 0},
		{MESSAGE_FETCH, AMO_CSWAP, AMO_INT64, 7},
		{MESSAGE_FETCH, AMO_CSWAP, AMO_INT64, 17},
		{MESSAGE_FETCH, AMO_MSWAP, AMO_INT8, 3},
	};
	static const uint8_t bytes[2 * AMO_BYTES_MAX] = {1, 2, 3};
	struct fake_target *target = *state;
	const char before[64] = {0};

	append(target, (struct rig_tier){.bits = 5, .options = BOTH, .flags = ATTACHMENT_ONCE});
	fake_set_frame(2 * AMO_BYTES_MAX);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		arrive_amo(bad[i].kind, bad[i].operation, bad[i].type, bytes, bad[i].length);
		assert_int_equal(rig_counter(target->space, dropped_bad_message), i + 1);
	}
	/* One that comes in pieces. */
	fake_set_frame(100);
	arrive_amo(MESSAGE_FETCH, AMO_SUM, AMO_INT8, bytes, 200);
	assert_int_equal(
		rig_counter(target->space, dropped_bad_message), 1 + sizeof(bad) / sizeof(bad[0]));
	assert_null(fake_next());
	assert_memory_equal(target->memory, before, sizeof(before));
	/* The entry is still there, for one message. */
	arrive_amo(MESSAGE_ATOMIC, AMO_SUM, AMO_INT8, bytes, 3);
	expect_answer(MESSAGE_STORED, TIER_OK, 0, 3, 0);
	assert_memory_equal(target->memory, bytes, 3);
}

int main(void)
{
#define test(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, fake_target_setup, fake_target_teardown)
	const struct CMUnitTest tests[] = {
		test(refusal__tells_why_and_leaves_no_trace),
		test(entry__that_leaves_takes_no_more_messages),
		test(load__of_little_is_answered_from_a_copy),
		test(load__of_much_that_gets_little_is_answered_from_a_copy),
		test(load__is_answered_with_data_and_logged_when_that_has_left),
		test(entry__that_wants_no_acknowledgement_says_only_that),
		test(question__is_answered_unless_the_answer_is_on_its_way),
		test(answer__of_a_two_sided_space_waits_for_the_end_of_the_turn),
		test(refusal__is_told_to_who_wants_no_other_answer),
		test(message__of_another_kind_of_space_is_dropped),
		test(rank__must_be_that_of_the_sender),
		test(rank__has_ended_with_its_last_message),
		test(counter__is_set_added_to_and_freed),
		test(fetch__answers_what_it_found_and_keeps_that_until_the_answer_is_done),
		test(tally__counts_what_is_wanted_by_what_it_does),
		test(tally__counts_failures_and_nothing_that_is_refused),
		test(copies__of_a_peer_that_has_its_share_are_left_to_others),
		test(requests__that_follow_a_refused_one_wait_for_it),
		test(fetch__of_one_element_has_its_operand_before_its_source),
		test(swap__writes_alone_unless_it_fetches),
		test(atomics__of_hostile_peers_are_counted_and_have_no_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
