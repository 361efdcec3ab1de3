/* SPDX-License-Identifier: BSD-3-Clause */
/* test_unanswered.c - messages that need no answer, the credit that comes back for them, and shares
 * that grow.
 * Covers: lib/messages/inbound.c, lib/messages/messages.c, lib/messages/outbound.c,
 * lib/messages/peers.c. */
#include <engine/statistics.h>

#include "message_rig.h"

static uint32_t share_at(unsigned end, uint32_t peer)
{
	return share_now(interfaces[end].engine->spaces[1], peer);
}

static bool credit_has_come(void *context)
{
	const struct peer *peer = context;

	return peer->credit.credited == 1;
}

/* M5. The receiver's program makes no call meanwhile. */
static void shares_that_are_used_up_grow_while_headers_are_left(void **state)
{
	enum { LEAST = 2, SPARE = 96, COUNT = 200 };
	static struct letter out[COUNT], in;
	static unsigned sent[COUNT];
	uint64_t start = library_now(), kept;
	unsigned got;
	uint32_t rank;

	(void)state;
	spare = SPARE;
	ends_open_as(true, 4 << 20, 2 * LEAST, EAGER);
	spare = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		sent[i] = i;
		post_send(&out[i], 0, 1, &sent[i], sizeof(sent[i]), false);
	}
	do {
		messages_progress(ends[0]);
		kept = peer_kept(&ends[0]->peers[1]);
		assert_true(library_now() - start < SECONDS);
	} while (kept < ends[0]->peers[1].credit.share || messages_flying(ends[0]) != 0);
	assert_true(kept >= SPARE / 2 && kept < LEAST + SPARE);
	assert_int_equal(share_at(1, 1), LEAST);
	for (unsigned i = 0; i < COUNT; i++) {
		post_receive(&in, 1, 1, 0, &got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(got, i);
	}
	post_send(&out[0], 1, 1, &got, sizeof(got), false);
	settle(nothing_flies, ends[1]);
	post_receive(&in, 0, 1, 0, &got, sizeof(got));
	letter_settle(&in);
	settle(credit_has_come, &ends[1]->peers[0]);
	settle(nothing_pends, ends[0]);
	settle(nothing_pends, ends[1]);
	assert_true(messages_retire(ends[1], 0));
	assert_true(messages_admit(ends[1], ids[0], &rank));
	assert_int_equal(rank, 0);
	assert_int_equal(ends[1]->peers[0].credit.credited, 0);
	assert_int_equal(share_at(1, 0), LEAST);
	assert_int_equal(interfaces[1].engine->spaces[1]->spare, SPARE);
	teardown(state);
}

/* Sends a message of COPIED_MAX bytes that nobody waits for, from end 0. */
static void unanswered_send(struct letter *letter, unsigned number)
{
	char sent[COPIED_MAX];

	memset(sent, (int)number, sizeof(sent));
	post_send(letter, 0, number, sent, sizeof(sent), false);
	assert_int_equal(letter->done, 1);
}

/* Its data is here, in no block. */
static void unanswered_receive(unsigned number, uint64_t room)
{
	char sent[COPIED_MAX], got[COPIED_MAX];
	struct letter in;

	memset(sent, (int)number, sizeof(sent));
	post_receive(&in, 1, number, 0, got, room);
	letter_settle(&in);
	assert_int_equal(in.message.result, room < sizeof(sent) ? TRANSFER_CUT : TRANSFER_DONE);
	assert_int_equal(in.message.whole, sizeof(sent));
	assert_memory_equal(got, sent, room);
}

static uint64_t acks(unsigned end)
{
	const struct engine *engine = interfaces[end].engine;

	return counter_read(&segment_counters(engine->spaces[1]->segment)->acks_delivered);
}

/* A sender has a larger share when it needs one, though its messages are received at once. */
static void shares_grow_by_asking(void **state)
{
	enum { ROUNDS = 2000 };
	struct letter out, in;
	char got;

	(void)state;
	spare = 100000;
	ends_open(1 << 20, 2 * SHARE_FIRST);
	spare = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_receive(&in, 1, i, 0, &got, 1);
		post_send(&out, 0, i, "", 1, false);
		letter_settle(&in);
	}
	settle(nothing_pends, ends[0]);
	settle(nothing_pends, ends[1]);
	assert_int_equal(share_at(1, 0), SHARE_ENOUGH);
	assert_int_equal(ends[0]->peers[1].credit.share, SHARE_ENOUGH);
	assert_int_equal(share_at(1, 1), SHARE_FIRST);
	assert_true(acks(0) < 10);
	teardown(state);
}

/* M5. A message counts once, whatever its length and however it is sent, also when it is taken. */
static void a_message_of_each_length_counts_once(void **state)
{
	static char data[COPIED_MAX + 1], got[COPIED_MAX + 1];
	struct map_vector *vector = calloc(1, map_vector_size(1));
	const struct peer *to = &ends[0]->peers[1];
	struct letter out, in;
	uint64_t sent = 0;

	(void)state;
	assert_non_null(vector);
	fill(data, sizeof(data), 1);
	for (uint64_t length = 0; length <= sizeof(data); length++) {
		const struct send_wish wish = {.buffer = data, .length = length};
		const bool injected = messages_inject(ends[0], 1, &wish);

		assert_int_equal(injected, length <= COPIED_MAX);
		post_send(&out, 0, 0, data, length, false);
		vector->count = 0;
		map_vector_add(vector, data, length);
		send_as(&out, 0, 1, &(const struct send_wish){.vector = vector});
		sent += 2 + injected;
		assert_int_equal(to->credit.sent, sent);
	}
	for (uint64_t i = 0; i < sent; i++) {
		post_receive(&in, 1, 0, 0, got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(in.message.length, i / 3);
		assert_memory_equal(got, data, i / 3);
	}
	settle(nothing_pends, ends[0]);
	assert_int_equal(ends[1]->peers[0].credit.taken, peer_kept(to)); /* but what was placed */
	free(vector);
}

/* M12. */
static void a_short_message_needs_no_answer(void **state)
{
	struct letter out[4], in;
	struct message_found found;
	struct unexpected *taken;
	char got[COPIED_MAX];

	(void)state;
	ends_open(0, 1 << 16);
	for (unsigned i = 0; i < 4; i++)
		unanswered_send(&out[i], i);
	settle(nothing_pends, ends[0]);
	assert_true(messages_has_carried(ends[1], 0)); /* it keeps some */
	assert_int_equal(ends[1]->blocks_made, 0);
	assert_int_equal(acks(0), 0);
	unanswered_receive(2, COPIED_MAX);
	unanswered_receive(3, 5);
	taken = take_from(0, 1, &found);
	assert_non_null(taken);
	in.done = 0;
	messages_receive_taken(ends[1], &in.message, taken, got, sizeof(got), NULL);
	letter_settle(&in);
	assert_int_equal(got[0] + got[COPIED_MAX - 1], 2);
	settle(message_shown, ends[1]);
	assert_int_equal(shown->moved, COPIED_MAX);
	assert_int_equal(shown->data[COPIED_MAX - 1], 0);
	messages_shown(ends[1], true);
	assert_int_equal(peer_kept(&ends[0]->peers[1]), 4);
	assert_int_equal(ends[1]->peers[0].credit.taken, 4);
	teardown(state);
}

/* M12. The poll core counts in the record of the peer until then. */
static void a_peer_stays_until_its_short_messages_have_ended(void **state)
{
	struct peer *peer = &ends[1]->peers[0];

	(void)state;
	peer->letters++; /* as if one were under way */
	assert_false(messages_retire(ends[1], 0));
	peer->letters--;
	peer->dispatch.told = true; /* as if the loss of one were to be read */
	assert_false(messages_retire(ends[1], 0));
	peer->dispatch.told = false;
	assert_true(messages_retire(ends[1], 0));
}

/* M12. Longer than what is copied: the program's until a receive has it, however short. */
static void a_message_that_is_not_copied_is_answered(void **state)
{
	struct letter out, in;
	char got[COPIED_MAX];

	(void)state;
	ends_open_as(false, 4 << 20, 1 << 16, 8);
	post_send(&out, 0, 1, "too long for a copy", 20, false);
	assert_int_equal(out.done, 0);
	post_receive(&in, 1, 1, 0, got, sizeof(got));
	letter_settle(&out);
	letter_settle(&in);
	assert_string_equal(got, "too long for a copy");
	assert_int_equal(acks(0), 1);
	teardown(state);
}

/* Has end 0 read each word of end 1's? */
static bool credit_is_known(void *context)
{
	struct messages *const *both = context;

	return messages_pending(both[1]) == 0 &&
	       both[0]->peers[1].credit.credited == both[1]->peers[0].told;
}

/* M5. End 0 sends much and makes no call any more; then end 1 sends to itself. */
static void memory_of_a_peer_that_fell_silent_is_taken_back_for_another_one(void **state)
{
	enum { LEAST = 2, SPARE = 96, COUNT = 60 };
	static struct letter out[COUNT], in[COUNT];
	static unsigned sent[COUNT], got[COUNT];
	uint64_t start = library_now();
	uint32_t had;

	(void)state;
	spare = SPARE;
	ends_open_as(false, 4 << 20, 2 * LEAST, EAGER);
	spare = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		sent[i] = i;
		post_send(&out[i], 0, 1, &sent[i], sizeof(sent[i]), false);
	}
	while (peer_kept(&ends[0]->peers[1]) < COUNT || messages_flying(ends[0]) != 0) {
		messages_progress(ends[0]);
		assert_true(library_now() - start < SECONDS);
	}
	had = share_at(1, 0);
	assert_true(had > COUNT && interfaces[1].engine->spaces[1]->spare < had / 2);
	for (unsigned i = 0; i < COUNT; i++) {
		post_receive(&in[i], 1, 1, 0, &got[i], sizeof(got[i]));
		assert_int_equal(in[i].done, 1);
		assert_int_equal(got[i], i);
	}
	for (unsigned i = 0; i < COUNT; i++)
		send_as(&out[i], 1, 1,
			&(const struct send_wish){
				.bits = 1, .buffer = &sent[i], .length = sizeof(sent[i])});
	while (share_at(1, 1) < had / 2) {
		messages_progress(ends[1]);
		assert_true(library_now() - start < SECONDS);
	}
	assert_true(share_at(1, 0) <= had / 2);
	for (unsigned i = 0; i < COUNT; i++) {
		post_receive(&in[i], 1, 1, 0, &got[i], sizeof(got[i]));
		letter_settle(&in[i]);
		assert_int_equal(got[i], i);
	}
	teardown(state);
}

/* M12. A quarter of the share goes unanswered, and is credited whether it was kept or placed. */
static void messages_beyond_a_quarter_of_a_share_are_answered(void **state)
{
	enum { SHARE = 64, ROUNDS = 4 };
	static struct letter out[SHARE], in[SHARE];
	char got;

	(void)state;
	ends_open(4 << 20, 2 * SHARE);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint64_t before = acks(0);
		const struct peer *peer = &ends[0]->peers[1];
		uint64_t left, asked, freed, quiet;

		settle(credit_is_known, ends);
		asked = peer->asked;
		freed = atomic_load(&peer->credit.freed);
		/* When it has heard of credit for the first time it asks for a larger share. */
		left = SHARE / 4 - (peer_kept(peer) - peer->credit.credited) - peer->asks;
		for (unsigned i = 0; round % 2 == 1 && i < SHARE; i++)
			post_receive(&in[i], 1, i, 0, &got, 1);
		for (unsigned i = 0; i < SHARE / 2; i++)
			post_send(&out[i], 0, i, "", 1, false);
		/* More credit may come meanwhile, and be used: for what was taken, and for an
		 * answered message that was placed. */
		freed = atomic_load(&peer->credit.freed) - freed;
		settle(nothing_flies, ends[0]);
		quiet = SHARE / 2 - (acks(0) - before);
		/* One message asks when the program hears of a larger share, which the poll core
		 * may have known before. */
		assert_true(left > 0 && quiet >= left - (peer->asked != asked));
		assert_true(quiet <= left + freed);
		for (unsigned i = 0; round % 2 == 0 && i < SHARE / 2; i++)
			post_receive(&in[i], 1, i, 0, &got, 1);
		for (unsigned i = 0; i < SHARE / 2; i++)
			letter_settle(&in[i]);
		for (unsigned i = SHARE / 2; round % 2 == 1 && i < SHARE; i++)
			assert_true(messages_cancel(ends[1], &in[i].message));
		settle(nothing_pends, ends[1]);
		settle(nothing_pends, ends[0]);
	}
	teardown(state);
}

/* M12. End 0 makes no call but sends; end 1 hears that each word of its own was taken. */
static void a_program_that_only_sends_hears_of_credit(void **state)
{
	enum { SHARE = 64, ROUNDS = 20, COUNT = SHARE / 8 };
	static struct letter out[COUNT], in[COUNT];
	char got;

	(void)state;
	ends_open(4 << 20, 2 * SHARE);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint64_t start = library_now();

		for (unsigned i = 0; i < COUNT; i++) {
			post_receive(&in[i], 1, i, 0, &got, 1);
			post_send(&out[i], 0, i, "", 1, false);
		}
		while (!in[COUNT - 1].done || ends[1]->peers[0].tell.busy) {
			if (messages_progress(ends[1]) == 0)
				nap();
			assert_true(library_now() - start < SECONDS);
		}
	}
	/* The message that asks for a larger share is answered, which is its credit. */
	assert_int_equal(ends[1]->peers[0].credit.taken, ROUNDS * COUNT - 1);
	assert_int_equal(ends[1]->peers[0].told, (ROUNDS - 1) * COUNT);
	assert_int_equal(acks(0), 1);
	teardown(state);
}

static bool peer_is_lost(void *context)
{
	const struct messages *end = context;

	return end->peers[1].failed;
}

/* M12. */
static void a_refusal_is_told_of_a_message_that_needs_no_answer(void **state)
{
	struct letter out;

	(void)state;
	ends_open_as(true, 4 << 20, 1 << 10, EAGER);
	hostile = true;
	messages_dismiss(ends[1], 0);
	unanswered_send(&out, 1);
	settle(peer_is_lost, ends[0]);
	assert_int_equal(acks(0), 0);
	assert_int_equal(messages_pending(ends[0]), 0);
	hostile = false;
	teardown(state);
}

/* M12. The peer takes no frame, and tells of credit all the time. */
static void letters_to_a_peer_that_takes_none_leave_room_for_others(void **state)
{
	static struct letter out[UNANSWERED_MAX], other;
	const char *fault = getenv("TEST_FAULT");
	struct peer *peer;

	(void)state;
	setenv("TEST_FAULT", "drop=1", 1);
	ends_open(4 << 20, 1 << 16);
	hostile = true;
	peer = &ends[0]->peers[1];
	for (unsigned i = 0; i < UNANSWERED_MAX; i++) {
		post_send(&out[i], 0, 1, "letter", 7, false);
		peer_credit(peer);
	}
	assert_true(letters_under_way(ends[0]) <= UNANSWERED_MAX / 2);
	send_as(&other, 0, 0, &(const struct send_wish){.bits = 1, .buffer = "one", .length = 4});
	assert_int_equal(other.done, 1);
	assert_int_equal(ends[0]->peers[0].letters, 1);
	teardown(state);
	hostile = false;
	if (fault)
		setenv("TEST_FAULT", fault, 1);
	else
		unsetenv("TEST_FAULT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_peer_stays_until_its_short_messages_have_ended),
		CASE(a_message_of_each_length_counts_once),
		CASE_OPEN(shares_grow_by_asking),
		CASE_OPEN(shares_that_are_used_up_grow_while_headers_are_left),
		CASE_OPEN(memory_of_a_peer_that_fell_silent_is_taken_back_for_another_one),
		CASE_OPEN(a_short_message_needs_no_answer),
		CASE_OPEN(a_message_that_is_not_copied_is_answered),
		CASE_OPEN(messages_beyond_a_quarter_of_a_share_are_answered),
		CASE_OPEN(a_program_that_only_sends_hears_of_credit),
		CASE_OPEN(a_refusal_is_told_of_a_message_that_needs_no_answer),
		CASE_OPEN(letters_to_a_peer_that_takes_none_leave_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
