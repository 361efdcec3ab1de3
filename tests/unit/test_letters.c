/* SPDX-License-Identifier: BSD-3-Clause */
/* test_letters.c - receives of two-sided messages in the poll core, the messages that they get, and
 * short messages that want no answer.
 *
 * Covers: lib/engine/letters.c, lib/engine/unexpected.c.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <engine/fetch.h>

#include "mailbox.h"

/* The answer to a message whose operation was 7. */
static void expect_answer(struct mailbox *mailbox, enum tier_verdict verdict, uint64_t moved)
{
	struct fake_sent *sent;

	engine_poll(mailbox->target->rig->engine);
	sent = fake_next();
	assert_non_null(sent);
	assert_int_equal(sent->to.nid, RIG_PEER.nid);
	assert_int_equal(sent->header.kind, MESSAGE_STORED);
	assert_int_equal(sent->header.operation, 7);
	assert_int_equal(sent->header.detail, verdict);
	assert_int_equal(sent->header.value, moved);
	/* U4 */
	assert_int_equal(sent->header.offset, verdict == TIER_OK ? SHARE : 0);
	fake_finish(sent, TRANSPORT_OK);
}

static void receives__get_messages_in_their_order_and_are_told_so(void **state)
{
	enum { COUNT = 3 };
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 10);
	struct outcome ends[COUNT] = {{.kind = 1}}, *next;
	char got[COUNT][16] = {""};

	for (unsigned i = 0; i < COUNT; i++)
		post(mailbox, &ends[i], got[i], sizeof(got[i]));
	for (unsigned i = 0; i < COUNT; i++) {
		header.value = i;
		header.offset = i;
		arrive(&header);
		assert_memory_equal(got[i], data, 10);
	}
	next = outcomes(mailbox);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_ptr_equal(next, &ends[i]);
		assert_int_equal(next->verdict, TIER_OK);
		assert_int_equal(next->peer, 1);
		assert_int_equal(next->bits, 5);
		assert_int_equal(next->value, i);
		assert_int_equal(next->requested, 10);
		assert_int_equal(next->offset, i);
		next = next->next;
	}
	assert_null(next);
	assert_int_equal(ends[0].kind, 1);
	assert_null(fake_next()); /* no answer was asked for */
	arrive(&header);
	assert_int_equal(rig_counter(mailbox->space, dropped_no_match), 1);
	assert_null(outcomes(mailbox));
}

static void message__longer_than_the_receive_is_cut_and_answered(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 50);
	struct outcome end = {0};
	char got[16] = "";

	header.operation = 7;
	post(mailbox, &end, got, 15);
	arrive(&header);
	assert_memory_equal(got, data, 15);
	assert_int_equal(got[15], 0);
	assert_ptr_equal(outcomes(mailbox), &end);
	assert_int_equal(end.requested, 50);
	expect_answer(mailbox, TIER_OK, 15);
}

/* A receive has no region, from which a peer could load. */
static void receive__is_not_found_by_a_load(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 0);
	struct outcome end = {0};
	char got[8];

	post(mailbox, &end, got, sizeof(got));
	header.kind = MESSAGE_LOAD;
	header.operation = 7;
	arrive(&header);
	assert_int_equal(rig_counter(mailbox->space, dropped_no_match), 1);
	assert_int_equal(fake_next()->header.kind, MESSAGE_LOADED);
	assert_null(outcomes(mailbox));
	header = message(mailbox, 8);
	arrive(&header);
	assert_ptr_equal(outcomes(mailbox), &end);
	assert_memory_equal(got, data, 8);
}

/* L2. While the program has not looked, another receive has the slot. */
static void receive__that_has_a_message_is_not_taken_back(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome first = {0}, second = {0};
	char got[2][8];

	post(mailbox, &first, got[0], sizeof(got[0]));
	arrive(&header);
	post(mailbox, &second, got[1], sizeof(got[1]));
	assert_int_equal(first.slot, second.slot);
	assert_int_equal(withdraw(mailbox, &first), ANSWER_GONE);
	assert_int_equal(withdraw(mailbox, &second), ANSWER_OK);
	assert_int_equal(withdraw(mailbox, &second), ANSWER_GONE);
	assert_ptr_equal(outcomes(mailbox), &first);
	arrive(&header);
	assert_int_equal(rig_counter(mailbox->space, dropped_no_match), 1);
}

/* Places are used again, in any order. */
static void receives__fill_the_table_again_and_again(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome ends[RIG_RECEIVES] = {{0}};
	char got[RIG_RECEIVES][8];

	for (unsigned round = 0; round < 3; round++) {
		struct outcome *end;

		for (unsigned i = 0; i < RIG_RECEIVES; i++)
			post(mailbox, &ends[i], got[i], sizeof(got[i]));
		assert_int_equal(withdraw(mailbox, &ends[1 + round % 2]), ANSWER_OK);
		post(mailbox, &ends[1 + round % 2], got[1 + round % 2], sizeof(got[0]));
		for (unsigned i = 0; i < RIG_RECEIVES; i++)
			arrive(&header);
		end = outcomes(mailbox);
		for (unsigned i = 0; i < RIG_RECEIVES; i++, end = end->next)
			assert_non_null(end);
		assert_null(end);
	}
}

/* A receive for many messages is an entry, and each takes what comes when it is the oldest. */
static void receives__stand_among_entries(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome ends[2] = {{0}};
	char got[3][8] = {""};

	post(mailbox, &ends[0], got[0], sizeof(got[0]));
	rig_append(mailbox->space, &(struct rig_tier){.start = got[1],
					   .length = sizeof(got[1]),
					   .bits = 5,
					   .flags = ATTACHMENT_ONCE,
					   .options = REGION_PUT | REGION_TRUNCATE,
					   .log = TIER_BIT(TIER_LINK) | TIER_BIT(TIER_UNLINK)});
	post(mailbox, &ends[1], got[2], sizeof(got[2]));
	for (unsigned i = 0; i < 3; i++) {
		arrive(&header);
		assert_memory_equal(got[i], data, 8);
		if (i == 1)
			rig_tier_event(mailbox->space, mailbox->queue, TIER_PUT);
		else
			assert_ptr_equal(outcomes(mailbox), &ends[i / 2]);
	}
	rig_no_event(mailbox->space, mailbox->queue);
}

/* L1. Also of a message whose sender is told if it is refused. */
static void receive__takes_what_was_kept(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome end = {0};
	char kept[16], got[8] = "";

	rig_append(mailbox->space, &(struct rig_tier){.start = kept,
					   .length = sizeof(kept),
					   .ignore = UINT64_MAX,
					   .tier = 1,
					   .options = REGION_PUT | REGION_TRUNCATE,
					   .log = TIER_BIT(TIER_LINK) | TIER_BIT(TIER_PUT)});
	for (unsigned i = 0; i < 2; i++) {
		header.detail = i ? MESSAGE_REFUSALS : 0;
		header.value = 3 + i;
		header.offset = 5 + i;
		memset(got, 0, sizeof(got));
		arrive(&header);
		post(mailbox, &end, got, sizeof(got));
		assert_ptr_equal(outcomes(mailbox), &end);
		assert_int_equal(end.tier, 1);
		assert_int_equal(end.value, 3 + i);
		assert_int_equal(end.offset, 5 + i);
		assert_int_equal(end.moved, 8);
		assert_memory_equal(got, data, 8);
		assert_int_equal(withdraw(mailbox, &end), ANSWER_GONE);
		assert_null(outcomes(mailbox));
	}
	header.match_bits = 6;
	arrive(&header);
	post(mailbox, &end, got, sizeof(got));
	rig_no_event(mailbox->space, mailbox->queue);
	assert_int_equal(withdraw(mailbox, &end), ANSWER_OK);
}

static void receive__from_one_rank_gets_no_other_s_into_all_its_pieces(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 50);
	struct map_vector *vector = calloc(1, map_vector_size(2));
	struct outcome ends[2] = {{0}};
	struct command command;
	char got[2][25];

	assert_non_null(vector);
	map_vector_add(vector, got[1], sizeof(got[1]));
	map_vector_add(vector, got[0], sizeof(got[0]));
	for (uint32_t rank = 0; rank < 2; rank++) {
		command = receive_make(&ends[rank], vector, 50);
		command.position = RECEIVE_VECTOR;
		command.receive.peer = rank;
		rig_post(mailbox->space, &command);
	}
	engine_poll(mailbox->target->rig->engine);
	arrive(&header);
	assert_ptr_equal(outcomes(mailbox), &ends[1]);
	assert_int_equal(ends[1].verdict, TIER_OK);
	assert_memory_equal(got[1], data, 25);
	assert_memory_equal(got[0], data + 25, 25);
	arrive(&header);
	assert_null(outcomes(mailbox));
	free(vector);
}

static enum answer rank_ended(const struct mailbox *mailbox)
{
	struct command command = {.kind = COMMAND_RANK_ENDED};

	command.object.index = 1;
	return rig_ask(mailbox->space, &command);
}

/* A receive whose message has begun is nobody else's. */
static void message__in_pieces_ends_when_all_of_it_is_here(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 50);
	const enum transport_fail ends[] = {TRANSPORT_OK, TRANSPORT_DEAD};

	for (unsigned i = 0; i < 2; i++) {
		struct fake_arrival *arrival;
		struct outcome end = {0};
		char got[64] = "";

		header.operation = 7;
		post(mailbox, &end, got, sizeof(got));
		arrival = fake_begin(RIG_PEER, &header, 50);
		assert_int_equal(withdraw(mailbox, &end), ANSWER_GONE);
		assert_null(outcomes(mailbox));
		assert_int_equal(rank_ended(mailbox), ANSWER_PENDING);
		if (ends[i] == TRANSPORT_OK)
			fake_place(arrival, 0, data, 50);
		fake_end(arrival, ends[i]);
		assert_int_equal(rank_ended(mailbox), ANSWER_OK);
		assert_ptr_equal(outcomes(mailbox), &end);
		assert_int_equal(end.peer, 1);
		assert_int_equal(end.requested, 50);
		if (ends[i] == TRANSPORT_OK) {
			assert_int_equal(end.verdict, TIER_OK);
			assert_memory_equal(got, data, 50);
			expect_answer(mailbox, TIER_OK, 50);
		} else {
			assert_int_equal(end.verdict, TIER_UNDELIVERABLE);
			engine_poll(mailbox->target->rig->engine);
			assert_null(fake_next());
		}
	}
}

/* Who is not the rank, or another user, gets nothing, and the receive stays. */
static void message__of_others_leaves_the_receive_alone(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome end = {0};
	char got[8] = "";

	header.operation = 7;
	post(mailbox, &end, got, sizeof(got));
	header.cookie = 0;
	arrive(&header);
	expect_answer(mailbox, TIER_DROPPED, 0);
	header.cookie = 2;
	arrive(&header);
	expect_answer(mailbox, TIER_DROPPED, 0);
	assert_int_equal(rig_counter(mailbox->space, dropped_bad_cookie), 2);
	header.cookie = 1;
	header.uid = RIG_UID + 1;
	arrive(&header);
	expect_answer(mailbox, TIER_PERMISSION, 0);
	assert_int_equal(rig_counter(mailbox->space, dropped_permission), 1);
	header.uid = RIG_UID;
	header.portal = 99;
	arrive(&header);
	expect_answer(mailbox, TIER_DROPPED, 0);
	assert_null(outcomes(mailbox));
	assert_int_equal(got[0], 0);
	header.portal = 0;
	arrive(&header);
	assert_ptr_equal(outcomes(mailbox), &end);
}

/* A message that needs an operation and gets none leaves its receive to one that needs none. */
static void message__without_memory_leaves_the_receive_alone(void **state)
{
	struct mailbox *mailbox = *state;
	struct pool *operations = &mailbox->target->rig->engine->operations;
	struct message_header header = message(mailbox, 8);
	struct outcome end = {0};
	char got[8] = "";
	unsigned made;

	header.operation = 7;
	post(mailbox, &end, got, sizeof(got));
	made = operations->made;
	operations->made = OPERATIONS_MAX; /* as if all others were in use */
	fake_share_spent(RIG_PEER);
	arrive(&header);
	assert_null(fake_next()); /* nor is there one for a refusal */
	assert_int_equal(rig_counter(mailbox->space, dropped_no_memory_operation), 1);
	assert_null(outcomes(mailbox));
	assert_int_equal(got[0], 0);
	header.operation = 0;
	arrive(&header);
	assert_ptr_equal(outcomes(mailbox), &end);
	assert_memory_equal(got, data, sizeof(got));
	operations->made = made;
}

/* C7. */
static void load__without_memory_for_its_answer_is_refused_until_there_is_some(void **state)
{
	struct mailbox *mailbox = *state;
	struct engine *engine = mailbox->target->rig->engine;
	struct message_header header = {.kind = MESSAGE_LOAD,
		.space = (uint8_t)mailbox->space->space,
		.uid = RIG_UID,
		.portal = FETCH_PORTAL,
		.cookie = 1,
		.match_bits = 9,
		.requested = COPIED_MAX + 1,
		.operation = 7};
	const unsigned copies = engine->copies.made, operations = engine->operations.made;

	engine->copies.made = COPIES_MAX; /* as if all others were in use */
	fake_share_spent(RIG_PEER);
	for (unsigned asks = 0; asks < 2; asks++) {
		struct fake_sent *sent;

		/* Nor is there an operation for a refusal: the initiator asks. */
		engine->operations.made = asks ? OPERATIONS_MAX : operations;
		fake_deliver(RIG_PEER, &header, NULL, 0);
		engine->operations.made = operations;
		if (asks) {
			assert_null(fake_next());
			header.kind = MESSAGE_ASK;
			header.detail = MESSAGE_ASK_LOAD;
			fake_deliver(RIG_PEER, &header, NULL, 0);
		}
		engine_poll(engine);
		sent = fake_next();
		assert_non_null(sent);
		assert_int_equal(sent->header.kind, MESSAGE_LOADED);
		assert_int_equal(sent->header.operation, 7);
		assert_int_equal(sent->header.detail, TIER_REFUSED);
		fake_finish(sent, TRANSPORT_OK);
	}
	engine->copies.made = copies;
}

static void receive__in_a_space_without_two_sided_messages_is_nothing(void **state)
{
	struct mailbox *mailbox = *state;
	struct rig *other = mailbox->target->space;
	struct outcome end = {0};
	char got[8];
	const struct command command = receive_make(&end, got, sizeof(got));

	rig_post(other, &command);
	engine_poll(mailbox->target->rig->engine);
	assert_int_equal(rig_counter(other, commands_stale), 0);
	assert_null(fake_next());
}

/* --- letters */

/* A letter to RIG_PEER. */
static void letter_send(const struct mailbox *mailbox, struct dispatch *dispatch, const void *from,
	uint32_t length, uint64_t value)
{
	struct long_command command = {.command = {.kind = COMMAND_LETTER, .length = length}};

	command.command.space = mailbox->space->space;
	command.command.letter.dispatch = (uintptr_t)dispatch;
	command.command.letter.to = RIG_PEER;
	command.command.letter.portal = 1;
	command.command.letter.cookie = 77;
	command.command.letter.match_bits = 5;
	command.command.letter.value = value;
	memcpy(command.further, from, length);
	assert_true(
		ring_put_lines(segment_ring(mailbox->space->ring), &command, letter_lines(length)));
	engine_poll(mailbox->target->rig->engine);
}

static void letter__is_a_copy_that_wants_no_answer(void **state)
{
	static const uint32_t lengths[] = {0, 1, 8, RING_BYTES, RING_BYTES + 1, COPIED_MAX};
	struct mailbox *mailbox = *state;
	_Atomic uint64_t all = 0;
	struct dispatch dispatch = {.all = &all};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct fake_sent *sent;

		letter_send(mailbox, &dispatch, data, lengths[i], i);
		sent = fake_next();
		assert_non_null(sent);
		assert_int_equal(sent->to.nid, RIG_PEER.nid);
		fake_expect(sent, &(struct message_header){
					  .kind = MESSAGE_STORE,
					  .space = mailbox->space->space,
					  .detail = MESSAGE_REFUSALS,
					  .uid = RIG_UID,
					  .portal = 1,
					  .cookie = 77,
					  .match_bits = 5,
					  .value = i,
				  });
		assert_int_equal(sent->length, lengths[i]);
		assert_memory_equal(sent->data, data, lengths[i]);
		assert_int_equal(dispatch.ended, i);
		fake_finish(sent, TRANSPORT_OK);
		assert_int_equal(dispatch.ended, i + 1);
		assert_int_equal(all, i + 1);
	}
	assert_null(outcomes(mailbox));
	rig_no_event(mailbox->space, mailbox->queue);
}

static struct dispatch ending;
static void *counted; /* a page: of *ending.all */
static uint64_t ended_before;

/* The count of all is about to be written. */
static void count_is_written(int signal)
{
	(void)signal;
	ended_before = atomic_load(&ending.ended);
	(void)mprotect(counted, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
}

/* L3. When its last letter counts as ended the object is the program's: nothing is read of it any
 * more. */
static void letters__count_for_their_peer_last(void **state)
{
	const struct sigaction notes = {.sa_handler = count_is_written};
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mailbox *mailbox = *state;
	struct sigaction before;

	counted = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(counted, MAP_FAILED);
	ending = (struct dispatch){.all = counted};
	ended_before = UINT64_MAX;
	letter_send(mailbox, &ending, data, 8, 0);
	assert_int_equal(sigaction(SIGSEGV, &notes, &before), 0);
	fake_finish(fake_next(), TRANSPORT_OK);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(ended_before, 0);
	assert_int_equal(ending.ended, 1);
	assert_int_equal(*ending.all, 1);
	assert_int_equal(munmap(counted, page), 0);
}

/* L3 */
static void letters__that_are_not_delivered_are_told_once(void **state)
{
	static const enum transport_fail ends[] = {TRANSPORT_DEAD, TRANSPORT_RESTARTED};
	struct mailbox *mailbox = *state;
	_Atomic uint64_t all = 0;
	struct dispatch dispatch = {.lost = {.kind = 3}, .all = &all};

	for (unsigned round = 0; round < 2; round++) {
		struct fake_sent *sent[3];

		for (unsigned i = 0; i < 3; i++) {
			letter_send(mailbox, &dispatch, data, 8, 0);
			sent[i] = fake_next();
		}
		fake_finish(sent[0], TRANSPORT_OK);
		assert_null(outcomes(mailbox));
		fake_finish(sent[1], ends[round]);
		fake_finish(sent[2], ends[round]);
		assert_int_equal(dispatch.ended, 3 * (round + 1));
		assert_true(dispatch.told);
		assert_ptr_equal(outcomes(mailbox), &dispatch.lost);
		assert_int_equal(dispatch.lost.kind, 3);
		assert_int_equal(dispatch.lost.verdict,
			ends[round] == TRANSPORT_DEAD ? TIER_UNDELIVERABLE : TIER_CLOSED);
		assert_null(outcomes(mailbox));
		dispatch.told = false;
	}
}

/* A letter, and a message that a receive has taken, that end after the program's last look. */
static void outcomes__of_a_closing_space_are_not_told(void **state)
{
	struct mailbox *mailbox = *state;
	struct engine *engine = mailbox->target->rig->engine;
	struct message_header header = message(mailbox, 50);
	_Atomic uint64_t all = 0;
	struct dispatch dispatch = {.all = &all};
	struct outcome end = {0};
	struct fake_arrival *arrival;
	struct fake_sent *sent;
	char got[64];

	letter_send(mailbox, &dispatch, data, 8, 0);
	sent = fake_next();
	post(mailbox, &end, got, sizeof(got));
	arrival = fake_begin(RIG_PEER, &header, 50);
	assert_false(engine_space_close(engine, mailbox->space->space));
	fake_end(arrival, TRANSPORT_DEAD);
	assert_null(outcomes(mailbox));
	assert_false(engine_space_close(engine, mailbox->space->space));
	fake_finish(sent, TRANSPORT_DEAD);
	assert_null(outcomes(mailbox));
	assert_int_equal(dispatch.ended, 1);
	assert_int_equal(all, 1);
	assert_true(engine_space_close(engine, mailbox->space->space));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, mailbox_setup, mailbox_teardown)
	const struct CMUnitTest tests[] = {
		TEST(receives__get_messages_in_their_order_and_are_told_so),
		TEST(message__longer_than_the_receive_is_cut_and_answered),
		TEST(receive__is_not_found_by_a_load),
		TEST(receive__that_has_a_message_is_not_taken_back),
		TEST(receives__fill_the_table_again_and_again),
		TEST(receives__stand_among_entries),
		TEST(receive__takes_what_was_kept),
		TEST(receive__from_one_rank_gets_no_other_s_into_all_its_pieces),
		TEST(message__in_pieces_ends_when_all_of_it_is_here),
		TEST(message__of_others_leaves_the_receive_alone),
		TEST(message__without_memory_leaves_the_receive_alone),
		TEST(load__without_memory_for_its_answer_is_refused_until_there_is_some),
		TEST(receive__in_a_space_without_two_sided_messages_is_nothing),
		TEST(letter__is_a_copy_that_wants_no_answer),
		TEST(letters__count_for_their_peer_last),
		TEST(letters__that_are_not_delivered_are_told_once),
		TEST(outcomes__of_a_closing_space_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
