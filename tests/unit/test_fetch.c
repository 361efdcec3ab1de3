/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fetch.c - two-sided messages that are kept or wait at their senders: data that is lent, the
 * poll core's fetches, and loads that a program gives up.
 *
 * Covers: lib/engine/unexpected.c, lib/engine/rma.c.
 */
#include <engine/fetch.h>
#include <engine/unexpected.h>

#include "mailbox.h"

#define EACH 64 /* FETCHES_EACH */

/* --- messages that are kept */

/* There is no memory. */
static void memory_end(const struct mailbox *mailbox)
{
	rig_append(mailbox->space, &(struct rig_tier){.ignore = UINT64_MAX,
					   .tier = 1,
					   .options = REGION_PUT | REGION_TRUNCATE,
					   .log = UINT32_MAX});
}

/* A search takes a letter. Returns what it lends. */
static struct event_data *lend(const struct mailbox *mailbox)
{
	struct rig_tier_event event;

	rig_search(mailbox->space,
		&(struct rig_tier){.bits = 5,
			.flags = ATTACHMENT_ONCE,
			.options = REGION_TRUNCATE,
			.log = ~TIER_BIT(TIER_PUT_KEPT)},
		true);
	event = rig_tier_event(mailbox->space, mailbox->queue, TIER_PUT_KEPT);
	assert_int_equal(event.tier, TIER_DATA);
	assert_int_equal(event.moved, 8);
	return (struct event_data *)(uintptr_t)event.start;
}

/* U6. Their places are free when the program has read them, in the order of the events. */
static void letters__that_a_search_takes_are_lent_until_they_are_read(void **state)
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
		lent[i] = lend(mailbox);
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
	/* A rank that is given back has none that is lent; a place is lent again. */
	assert_int_equal(withdraw(mailbox, &end), ANSWER_OK);
	for (unsigned i = 0; i < 2; i++) {
		fake_deliver(RIG_PEER, &header, data, 8);
		lent[i] = lend(mailbox);
		assert_int_equal(rig_ask(mailbox->space, &ended), ANSWER_PENDING);
		lent[i]->read = true;
		assert_int_equal(rig_ask(mailbox->space, &ended), ANSWER_OK);
	}
	assert_ptr_equal(lent[0], lent[1]);
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
	assert_int_equal(sent->header.cookie, mailbox->credits[rank].self);
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

/* U8. The receive has got a message that was kept, with so many bytes that were here. */
static void expect_end(const struct mailbox *mailbox, const struct outcome *end, uint64_t moved)
{
	assert_ptr_equal(outcomes(mailbox), end);
	assert_null(end->next);
	assert_int_equal(end->verdict, TIER_OK);
	assert_int_equal(end->tier, 1);
	assert_int_equal(end->requested, 8);
	assert_int_equal(end->moved, moved);
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
	expect_end(mailbox, &end, 8);
	assert_memory_equal(got, data + 1, 8);
	/* What has an answer makes room, also if its sender has it no more. A receive that waits
	 * for it has it then. */
	memset(got, 0, sizeof(got));
	post(mailbox, &end, got, sizeof(got));
	assert_null(outcomes(mailbox));
	fetch_end(mailbox, silent[0], 1, TIER_OK);
	expect_end(mailbox, &end, 8);
	assert_memory_equal(got, data + 1, 8);
	expect_fetch(mailbox, 1, 8 * EACH);
	fetch_end(mailbox, silent[1], 1, TIER_REFUSED);
	assert_null(fake_next()); /* it is repeated, and has its place */
	/* A rank that is lost takes no more memory. */
	fake_finish(silent[2], TRANSPORT_DEAD);
	fake_finish(silent[3], TRANSPORT_DEAD);
	assert_null(fake_next());
}

/* U7. A receive gives up a message whose data is being fetched. */
static void fetch__goes_on_for_a_receive_that_is_given_up(void **state)
{
	enum { ITEM = 4711 };
	struct mailbox *mailbox = *state;
	char memory[2 * 8], got[8] = "";
	struct outcome ends[2] = {{0}};
	struct fake_sent *sent[2];
	struct rig_tier_event event;

	memory_end(mailbox);
	arrive_from(mailbox, 1, 2);
	memory_come(mailbox, memory, 2);
	for (unsigned i = 0; i < 2; i++)
		sent[i] = expect_fetch(mailbox, 1, 8 * i);
	assert_int_equal(receive_pass(mailbox, &ends[0], ITEM), ANSWER_GONE);
	for (unsigned i = 0; i < 2; i++)
		post(mailbox, &ends[i], got, sizeof(got));
	while (rig_take_tier(mailbox->space, mailbox->queue, &event) != QUEUE_EMPTY)
		;
	assert_int_equal(withdraw(mailbox, &ends[0]), ANSWER_GONE);
	assert_int_equal(receive_pass(mailbox, &ends[0], ITEM), ANSWER_OK);
	assert_int_equal(ends[0].peer, 1);
	assert_int_equal(receive_pass(mailbox, &ends[0], ITEM), ANSWER_GONE);
	fetch_end(mailbox, sent[1], 1, TIER_OK);
	assert_int_equal(receive_pass(mailbox, &ends[1], ITEM), ANSWER_GONE);
	expect_end(mailbox, &ends[1], 8);
	memset(got, 0, sizeof(got));
	fetch_end(mailbox, sent[0], 1, TIER_OK);
	event = rig_tier_event(mailbox->space, mailbox->queue, TIER_PUT_KEPT);
	assert_int_equal(event.user, ITEM);
	assert_int_equal(event.moved, 8);
	assert_null(outcomes(mailbox));
	assert_int_equal(got[0], 0);
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
	expect_end(mailbox, &end, moved);
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
	expect_end(mailbox, &end, 0);
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

	mailbox->credits[1].self = RANK_NONE;
	memory_end(mailbox);
	arrive_from(mailbox, 1, 3);
	memory_come(mailbox, memory, 2);
	assert_null(fake_next());
	mailbox->credits[1].self = 77;
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
	struct rig_tier_event event;

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
	assert_int_equal(rig_take_tier(mailbox->space, mailbox->queue, &event), QUEUE_EMPTY);
	/* Its target is gone. */
	sent = load_begin(mailbox, descriptor, &ends[1]);
	assert_int_equal(withdraw(mailbox, &ends[1]), ANSWER_OK);
	fake_finish(sent, TRANSPORT_DEAD);
	assert_int_equal(pool_taken(&engine->operations), 0);
	assert_int_equal(rig_take_tier(mailbox->space, mailbox->queue, &event), QUEUE_EMPTY);
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
	assert_int_equal(rig_tier_event(mailbox->space, mailbox->queue, TIER_REPLY).moved, 20);
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
	assert_int_equal(rig_tier_event(mailbox->space, mailbox->queue, TIER_REPLY).verdict,
		TIER_UNDELIVERABLE);
	assert_int_equal(pool_taken(&mailbox->target->rig->engine->operations), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, mailbox_setup, mailbox_teardown)
	const struct CMUnitTest tests[] = {
		TEST(letters__that_a_search_takes_are_lent_until_they_are_read),
		TEST(fetches__of_a_silent_rank_leave_others_their_turn),
		TEST(fetch__goes_on_for_a_receive_that_is_given_up),
		TEST(fetch__that_is_refused_is_repeated),
		TEST(fetches__that_are_refused_are_repeated_a_few_at_a_time),
		TEST(fetch__waits_until_the_rank_has_told_its_name_for_this_process),
		TEST(load__that_is_given_up_goes_on_without_data),
		TEST(load__whose_answer_comes_is_not_given_up),
		TEST(load__of_a_rank_that_is_lost_ends_without_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
