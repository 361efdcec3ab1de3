/* SPDX-License-Identifier: BSD-3-Clause */
/* test_letters.c - receives of two-sided messages in the poll core, the messages that they get, and
 * short messages that want no answer; messages that wait at their senders.
 *
 * Covers: lib/engine/letters.c, lib/engine/unexpected.c.
 */
#include <string.h>

#include <engine/fetch.h>
#include <engine/outcome.h>
#include <engine/unexpected.h>

#include "fake_transport.h"
#include "rig.h"

#define ANY_RANK UINT32_MAX
#define SHARE    128 /* headers of a rank */
#define EACH     64  /* FETCHES_EACH */

static const char data[64] = "fifty bytes that are put where they belong, or not";

/* A target whose rank 1 is RIG_PEER. */
struct mailbox {
	struct fake_target *target;
	struct rig *space;
	uint64_t queue;
	_Atomic uint32_t selves[RIG_RANKS];
};

static const struct process map[] = {RIG_SELF, RIG_PEER};

static int mailbox_setup(void **state)
{
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
	struct command set = {.kind = COMMAND_MAP};
	void *target;

	assert_non_null(mailbox);
	assert_int_equal(fake_target_setup(&target), 0);
	mailbox->target = target;
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		mailbox->selves[i] = 70 + i;
	mailbox->space =
		rig_letters(mailbox->target->rig, SHARE, 0, mailbox->selves, NULL, &mailbox->queue);
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)map;
	assert_int_equal(rig_ask(mailbox->space, &set), ANSWER_OK);
	*state = mailbox;
	return 0;
}

static int mailbox_teardown(void **state)
{
	struct mailbox *mailbox = *state;
	void *target = mailbox->target;

	rig_stop(mailbox->target->rig);
	rig_space_free(mailbox->space);
	fake_target_teardown(&target);
	free(mailbox);
	return 0;
}

/* A message of so many bytes with bits 5. */
static struct message_header message(const struct mailbox *mailbox, uint64_t length)
{
	return (struct message_header){
		.kind = MESSAGE_STORE,
		.space = (uint8_t)mailbox->space->space,
		.uid = RIG_UID,
		.cookie = 1,
		.match_bits = 5,
		.requested = length,
	};
}

static void arrive(const struct message_header *header)
{
	fake_deliver(RIG_PEER, header, data, header->requested);
}

/* A receive for bits 5. */
static struct command receive_make(struct outcome *outcome, void *start, uint64_t length)
{
	struct command command = {.kind = COMMAND_RECEIVE};

	command.receive.bits = 5;
	command.receive.start = (uintptr_t)start;
	command.receive.length = length;
	command.receive.outcome = (uintptr_t)outcome;
	command.receive.peer = ANY_RANK;
	return command;
}

static void post(
	const struct mailbox *mailbox, struct outcome *outcome, void *start, uint64_t length)
{
	const struct command command = receive_make(outcome, start, length);

	rig_post(mailbox->space, &command);
	engine_poll(mailbox->target->rig->engine);
}

static enum answer withdraw(const struct mailbox *mailbox, struct outcome *outcome)
{
	struct command command = {.kind = COMMAND_RECEIVE_WITHDRAW};

	command.object.other = (uintptr_t)outcome;
	return rig_ask(mailbox->space, &command);
}

static struct outcome *outcomes(const struct mailbox *mailbox)
{
	return outcomes_take(segment_queue(mailbox->space->segment, handle_index(mailbox->queue)));
}

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
			rig_news(mailbox->space, mailbox->queue, TIER_PUT);
		else
			assert_ptr_equal(outcomes(mailbox), &ends[i / 2]);
	}
	rig_no_event(mailbox->space, mailbox->queue);
}

/* L1 */
static void receive__takes_what_was_kept(void **state)
{
	struct mailbox *mailbox = *state;
	struct message_header header = message(mailbox, 8);
	struct outcome end = {0};
	char kept[16], got[8] = "";
	struct rig_news news;

	rig_append(mailbox->space, &(struct rig_tier){.start = kept,
					   .length = sizeof(kept),
					   .ignore = UINT64_MAX,
					   .tier = 1,
					   .options = REGION_PUT | REGION_TRUNCATE,
					   .log = TIER_BIT(TIER_LINK) | TIER_BIT(TIER_PUT)});
	arrive(&header);
	post(mailbox, &end, got, sizeof(got));
	news = rig_news(mailbox->space, mailbox->queue, TIER_PUT_KEPT);
	assert_int_equal(news.user, (uintptr_t)&end);
	assert_int_equal(news.moved, 8);
	assert_int_equal(withdraw(mailbox, &end), ANSWER_GONE);
	assert_null(outcomes(mailbox));
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

/* --- messages that are kept */

/* There is no memory. */
static void memory_end(const struct mailbox *mailbox)
{
	rig_append(mailbox->space, &(struct rig_tier){.ignore = UINT64_MAX,
					   .tier = 1,
					   .options = REGION_PUT | REGION_TRUNCATE,
					   .log = UINT32_MAX});
}

/* U6. Their places are free when the program has read them, in the order of the events. */
static void letters__that_were_kept_are_lent_until_they_are_read(void **state)
{
	enum { COUNT = 8, READ = 3 };
	struct mailbox *mailbox = *state;
	struct space *space = mailbox->target->rig->engine->spaces[mailbox->space->space];
	struct message_header header = message(mailbox, 8);
	struct command ended = {.kind = COMMAND_RANK_ENDED};
	struct event_data *lent[COUNT];
	struct outcome end = {0};
	char got[8];

	memory_end(mailbox);
	header.detail = MESSAGE_REFUSALS;
	for (unsigned i = 0; i < COUNT; i++)
		fake_deliver(RIG_PEER, &header, data + i, 8);
	for (unsigned i = 0; i < COUNT; i++) {
		struct rig_news news;

		post(mailbox, &end, got, sizeof(got));
		news = rig_news(mailbox->space, mailbox->queue, TIER_PUT_KEPT);
		assert_int_equal(news.tier, TIER_DATA);
		assert_int_equal(news.moved, 8);
		lent[i] = (struct event_data *)(uintptr_t)news.start;
		assert_true(lent[i] >= space->copies && lent[i] < space->copies + SHARE);
		assert_memory_equal(lent[i]->data, data + i, 8);
	}
	assert_int_equal(space->kept_of[1], COUNT);
	for (unsigned i = 0; i < READ; i++)
		lent[i]->read = true;
	fake_deliver(RIG_PEER, &header, data, 8);
	assert_int_equal(space->kept_of[1], COUNT - READ + 1);
	assert_memory_equal(lent[READ]->data, data + READ, 8);
	for (unsigned i = READ; i < COUNT; i++)
		lent[i]->read = true;
	/* A share is full of what was lent and has been read. */
	for (unsigned i = COUNT - READ + 1; i < SHARE + COUNT - READ; i++)
		fake_deliver(RIG_PEER, &header, data, 8);
	assert_int_equal(space->kept_of[1], SHARE);
	assert_int_equal(rig_counter(mailbox->space, dropped_no_header), 0);
	unexpected_forget(space, 0);
	post(mailbox, &end, got, sizeof(got));
	assert_int_equal(space->kept_of[1], 0);
	ended.object.index = 1;
	assert_int_equal(rig_ask(mailbox->space, &ended), ANSWER_OK);
}

/* There is memory for so many messages. */
static void memory_come(const struct mailbox *mailbox, char *memory, unsigned count)
{
	rig_append(mailbox->space, &(struct rig_tier){.start = memory,
					   .length = 8 * count,
					   .ignore = UINT64_MAX,
					   .min_free = 8,
					   .most = 8,
					   .tier = 1,
					   .first = true,
					   .options = REGION_PUT,
					   .log = UINT32_MAX});
}

/* So many messages of a rank's arrive, each with a copy at its sender. */
static void arrive_from(const struct mailbox *mailbox, uint32_t rank, unsigned count)
{
	struct message_header header = message(mailbox, 8);

	header.cookie = rank;
	for (unsigned i = 0; i < count; i++) {
		header.value = (uint64_t)NAME_CHUNK << 32 | i * 8;
		fake_deliver(map[rank], &header, data, 8);
	}
}

/* The next message that was sent is a fetch from a rank, from such a place there. */
static struct fake_sent *expect_fetch(const struct mailbox *mailbox, uint32_t rank, uint64_t offset)
{
	struct fake_sent *sent = fake_next();

	assert_non_null(sent);
	assert_int_equal(sent->to.nid, map[rank].nid);
	assert_int_equal(sent->header.kind, MESSAGE_LOAD);
	assert_int_equal(sent->header.cookie, mailbox->selves[rank]);
	assert_int_equal(sent->header.match_bits, NAME_CHUNK);
	assert_int_equal(sent->header.offset, offset);
	assert_int_equal(sent->header.requested, 8);
	return sent;
}

/* Its sender answers a fetch. */
static void fetch_answer(const struct mailbox *mailbox, const struct fake_sent *sent, uint32_t rank,
	enum tier_verdict verdict)
{
	const struct message_header answer = {.kind = MESSAGE_LOADED,
		.space = (uint8_t)mailbox->space->space,
		.detail = (uint16_t)verdict,
		.operation = sent->header.operation,
		.value = verdict == TIER_OK ? 8 : 0};

	fake_deliver(map[rank], &answer, data + 1, answer.value);
}

/* The same when the transport has told that the request has arrived. */
static void fetch_end(const struct mailbox *mailbox, struct fake_sent *sent, uint32_t rank,
	enum tier_verdict verdict)
{
	fake_finish(sent, TRANSPORT_OK);
	fetch_answer(mailbox, sent, rank, verdict);
}

/* U7. */
static void fetches__of_a_silent_rank_leave_others_their_turn(void **state)
{
	enum { MORE = 20 };
	struct mailbox *mailbox = *state;
	char memory[2 * SHARE * 8];
	struct fake_sent *silent[EACH], *sent;
	struct outcome end = {0};
	struct command receive;
	struct rig_news news;
	char got[8];

	memory_end(mailbox);
	arrive_from(mailbox, 1, EACH + MORE);
	arrive_from(mailbox, 0, 2);
	memory_come(mailbox, memory, sizeof(memory) / 8);
	silent[0] = expect_fetch(mailbox, 1, 0);
	sent = expect_fetch(mailbox, 0, 0);
	silent[1] = expect_fetch(mailbox, 1, 8);
	fetch_end(mailbox, sent, 0, TIER_OK);
	sent = expect_fetch(mailbox, 0, 8);
	for (unsigned i = 2; i < EACH; i++)
		silent[i] = expect_fetch(mailbox, 1, 8 * i);
	assert_null(fake_next()); /* it has its share */
	fetch_end(mailbox, sent, 0, TIER_OK);
	receive = receive_make(&end, got, sizeof(got));
	receive.receive.peer = 0;
	rig_post(mailbox->space, &receive);
	engine_poll(mailbox->target->rig->engine);
	news = rig_news(mailbox->space, mailbox->queue, TIER_PUT_KEPT);
	assert_int_equal(news.moved, 8);
	assert_memory_equal((const char *)(uintptr_t)news.start, data + 1, 8);
	/* What has an answer makes room, also if its sender has it no more. */
	fetch_end(mailbox, silent[0], 1, TIER_OK);
	expect_fetch(mailbox, 1, 8 * EACH);
	fetch_end(mailbox, silent[1], 1, TIER_REFUSED);
	assert_null(fake_next()); /* it is repeated, and has its place */
	/* A rank that is lost takes no more memory. */
	fake_finish(silent[2], TRANSPORT_DEAD);
	fake_finish(silent[3], TRANSPORT_DEAD);
	assert_null(fake_next());
}

/* Time passes, and the poll core looks. */
static void pass(const struct mailbox *mailbox, uint64_t time)
{
	struct rig *rig = mailbox->target->rig;

	rig->now += time;
	engine_poll(rig->engine);
}

/* Of rank 1. */
static void expect_kept(const struct mailbox *mailbox, uint64_t moved)
{
	struct outcome end = {0};
	char got[8];
	struct command receive = receive_make(&end, got, sizeof(got));

	receive.receive.peer = 1;
	rig_post(mailbox->space, &receive);
	engine_poll(mailbox->target->rig->engine);
	assert_int_equal(rig_news(mailbox->space, mailbox->queue, TIER_PUT_KEPT).moved, moved);
}

/* C7, U7. No program has a part in it. */
static void fetch__that_is_refused_is_repeated(void **state)
{
	static const struct process left[] = {RIG_SELF, {.nid = UINT32_MAX, .pid = UINT32_MAX}};
	struct mailbox *mailbox = *state;
	struct command set = {.kind = COMMAND_MAP}, receive;
	struct fake_sent *first, *again, *other, *claimed;
	struct outcome end = {0};
	char memory[3 * 8], got[8];

	memory_end(mailbox);
	arrive_from(mailbox, 1, 3);
	memory_come(mailbox, memory, 3);
	first = expect_fetch(mailbox, 1, 0);
	claimed = expect_fetch(mailbox, 1, 8);
	other = expect_fetch(mailbox, 1, 16);
	fetch_end(mailbox, first, 1, TIER_REFUSED);
	pass(mailbox, 400 * MICROSECOND);
	assert_null(fake_next());
	pass(mailbox, 100 * MICROSECOND);
	again = expect_fetch(mailbox, 1, 0);
	assert_true(again->header.operation != first->header.operation);
	/* The answer may come before the transport's word; no further one is an answer to what
	 * follows. */
	fetch_answer(mailbox, again, 1, TIER_REFUSED);
	fetch_answer(mailbox, again, 1, TIER_UNDELIVERABLE);
	pass(mailbox, MILLISECOND);
	assert_null(fake_next());
	fake_finish(again, TRANSPORT_OK);
	pass(mailbox, MILLISECOND);
	again = expect_fetch(mailbox, 1, 0);
	fetch_end(mailbox, again, 1, TIER_OK);
	expect_kept(mailbox, 8);
	/* A receive that waits for a message asks for it itself. */
	receive = receive_make(&end, got, sizeof(got));
	rig_post(mailbox->space, &receive);
	engine_poll(mailbox->target->rig->engine);
	fetch_end(mailbox, claimed, 1, TIER_REFUSED);
	assert_int_equal(rig_news(mailbox->space, mailbox->queue, TIER_PUT_KEPT).moved, 0);
	/* A rank that is no more is not asked again. */
	fetch_end(mailbox, other, 1, TIER_REFUSED);
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)left;
	assert_int_equal(rig_ask(mailbox->space, &set), ANSWER_OK);
	pass(mailbox, MILLISECOND);
	assert_null(fake_next());
	expect_kept(mailbox, 0);
}

/* C7. Peers that refuse all cost little. */
static void fetches__that_are_refused_are_repeated_a_few_at_a_time(void **state)
{
	struct mailbox *mailbox = *state;
	struct fake_sent *sent[2 * EACH];
	char memory[2 * EACH * 8];

	memory_end(mailbox);
	for (uint32_t rank = 0; rank < 2; rank++)
		arrive_from(mailbox, rank, EACH);
	memory_come(mailbox, memory, 2 * EACH);
	for (unsigned i = 0; i < 2 * EACH; i++)
		sent[i] = fake_next();
	for (unsigned i = 0; i < 2 * EACH; i++)
		fetch_end(mailbox, sent[i], i % 2, TIER_REFUSED);
	for (unsigned half = 0; half < 2; half++) {
		pass(mailbox, MILLISECOND);
		for (unsigned i = 0; i < EACH; i++)
			assert_non_null(fake_next());
		pass(mailbox, 400 * MICROSECOND);
		assert_null(fake_next());
	}
}

/* U7. */
static void fetch__waits_until_the_rank_has_told_its_name_for_this_process(void **state)
{
	struct mailbox *mailbox = *state;
	struct command joined = {.kind = COMMAND_JOINED};
	char memory[2 * 8];

	mailbox->selves[1] = RANK_NONE;
	memory_end(mailbox);
	arrive_from(mailbox, 1, 3);
	memory_come(mailbox, memory, 2);
	assert_null(fake_next());
	mailbox->selves[1] = 77;
	joined.object.index = 1;
	rig_post(mailbox->space, &joined);
	engine_poll(mailbox->target->rig->engine);
	expect_fetch(mailbox, 1, 0);
	expect_fetch(mailbox, 1, 8);
	assert_null(fake_next()); /* there is no memory */
}

/* --- loads that a program gives up */

/* A program loads 20 bytes from rank 1 for a receive. */
static struct fake_sent *load_begin(
	const struct mailbox *mailbox, uint64_t descriptor, struct outcome *end)
{
	struct fake_sent *sent;

	rig_begin(mailbox->space, descriptor,
		&(struct rig_rma){
			.to = RIG_PEER,
			.portal = FETCH_PORTAL,
			.cookie = 71,
			.bits = 9,
			.value = 1,
			.length = 20,
			.user = (uintptr_t)end,
			.message = MESSAGE_LOAD,
		});
	sent = fake_next();
	assert_non_null(sent);
	assert_int_equal(sent->header.requested, 20);
	return sent;
}

/* Its sender answers a load. */
static void load_answer(const struct mailbox *mailbox, const struct fake_sent *sent,
	enum tier_verdict verdict, uint64_t moved)
{
	const struct message_header answer = {.kind = MESSAGE_LOADED,
		.space = (uint8_t)mailbox->space->space,
		.detail = (uint16_t)verdict,
		.operation = sent->header.operation,
		.value = moved};

	fake_deliver(RIG_PEER, &answer, data, moved);
}

/* C8. The memory is the program's again, and the sender hears that nobody needs its data. */
static void load__that_is_given_up_goes_on_without_data(void **state)
{
	struct mailbox *mailbox = *state;
	const struct engine *engine = mailbox->target->rig->engine;
	char memory[64] = "";
	const uint64_t descriptor = rig_describe(mailbox->space,
		&(struct rig_tier){
			.start = memory, .length = sizeof(memory), .queue = mailbox->queue});
	struct outcome ends[3] = {{0}};
	struct fake_sent *sent, *again;
	struct rig_news news;

	/* While its request is under way; it is refused. */
	sent = load_begin(mailbox, descriptor, &ends[0]);
	assert_int_equal(withdraw(mailbox, &ends[1]), ANSWER_GONE);
	assert_int_equal(withdraw(mailbox, &ends[0]), ANSWER_OK);
	assert_int_equal(withdraw(mailbox, &ends[0]), ANSWER_GONE);
	assert_int_equal(rig_region(mailbox->space, descriptor)->pending, 0);
	fake_finish(sent, TRANSPORT_OK);
	load_answer(mailbox, sent, TIER_REFUSED, 0);
	pass(mailbox, MILLISECOND);
	again = fake_next();
	assert_non_null(again);
	assert_int_equal(again->header.kind, MESSAGE_LOAD);
	assert_int_equal(again->header.match_bits, 9);
	assert_int_equal(again->header.requested, 0);
	fake_finish(again, TRANSPORT_OK);
	load_answer(mailbox, again, TIER_OK, 0);
	/* While it waits for the answer, which brings data. */
	for (unsigned longer = 0; longer < 2; longer++) {
		fake_set_frame(longer ? 10 : FAKE_FRAME);
		sent = load_begin(mailbox, descriptor, &ends[1]);
		fake_finish(sent, TRANSPORT_OK);
		assert_int_equal(withdraw(mailbox, &ends[1]), ANSWER_OK);
		load_answer(mailbox, sent, TIER_OK, 20);
	}
	assert_int_equal(pool_taken(&engine->operations), 0);
	assert_int_equal(memory[0], 0);
	assert_int_equal(rig_take_news(mailbox->space, mailbox->queue, &news), QUEUE_EMPTY);
	/* Its target is gone. */
	sent = load_begin(mailbox, descriptor, &ends[1]);
	assert_int_equal(withdraw(mailbox, &ends[1]), ANSWER_OK);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(pool_taken(&engine->operations), 0);
	assert_int_equal(rig_take_news(mailbox->space, mailbox->queue, &news), QUEUE_EMPTY);
	assert_null(fake_next());
}

/* C8 */
static void load__whose_answer_comes_is_not_given_up(void **state)
{
	struct mailbox *mailbox = *state;
	char memory[64] = "";
	const uint64_t descriptor = rig_describe(mailbox->space,
		&(struct rig_tier){
			.start = memory, .length = sizeof(memory), .queue = mailbox->queue});
	struct outcome end = {0};
	struct fake_arrival *arrival;
	struct fake_sent *sent = load_begin(mailbox, descriptor, &end);
	const struct message_header answer = {.kind = MESSAGE_LOADED,
		.space = (uint8_t)mailbox->space->space,
		.operation = sent->header.operation,
		.value = 20};

	fake_finish(sent, TRANSPORT_OK);
	arrival = fake_begin(RIG_PEER, &answer, 20);
	assert_int_equal(withdraw(mailbox, &end), ANSWER_GONE);
	fake_place(arrival, 0, data, 20);
	fake_end(arrival, TRANSPORT_OK);
	assert_memory_equal(memory, data, 20);
	assert_int_equal(rig_news(mailbox->space, mailbox->queue, TIER_REPLY).moved, 20);
}

/* C7. Its sender's transport lives, and answers to nothing. */
static void load__of_a_rank_that_is_lost_ends_without_an_answer(void **state)
{
	static const struct process left[] = {RIG_SELF, {.nid = UINT32_MAX, .pid = UINT32_MAX}};
	struct mailbox *mailbox = *state;
	struct command set = {.kind = COMMAND_MAP};
	char memory[64] = "";
	const uint64_t descriptor = rig_describe(mailbox->space,
		&(struct rig_tier){
			.start = memory, .length = sizeof(memory), .queue = mailbox->queue});
	struct outcome end = {0};
	struct fake_sent *sent = load_begin(mailbox, descriptor, &end);

	fake_finish(sent, TRANSPORT_OK);
	pass(mailbox, 2 * SECOND);
	sent = fake_next(); /* its sender is asked */
	assert_non_null(sent);
	assert_int_equal(sent->header.kind, MESSAGE_ASK);
	fake_finish(sent, TRANSPORT_OK);
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)left;
	assert_int_equal(rig_ask(mailbox->space, &set), ANSWER_OK);
	pass(mailbox, 2 * SECOND);
	assert_null(fake_next());
	assert_int_equal(
		rig_news(mailbox->space, mailbox->queue, TIER_REPLY).verdict, TIER_UNDELIVERABLE);
	assert_int_equal(pool_taken(&mailbox->target->rig->engine->operations), 0);
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
		TEST(letters__that_are_not_delivered_are_told_once),
		TEST(letters__that_were_kept_are_lent_until_they_are_read),
		TEST(fetches__of_a_silent_rank_leave_others_their_turn),
		TEST(fetch__that_is_refused_is_repeated),
		TEST(fetches__that_are_refused_are_repeated_a_few_at_a_time),
		TEST(fetch__waits_until_the_rank_has_told_its_name_for_this_process),
		TEST(load__that_is_given_up_goes_on_without_data),
		TEST(load__whose_answer_comes_is_not_given_up),
		TEST(load__of_a_rank_that_is_lost_ends_without_an_answer),
		TEST(outcomes__of_a_closing_space_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
