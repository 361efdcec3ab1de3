/* SPDX-License-Identifier: BSD-3-Clause */
/* test_credit.c - headers that ranks may use at a receiver: how they grow, are taken back from a
 * rank that has fallen silent, and what a liar's words do, at both ends.
 *
 * Covers: lib/engine/credit.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/random.h>
#include <engine/credit.h>
#include <engine/fetch.h>

#include "../sanitized.h"
#include "fake_transport.h"
#include "rig.h"

#define LEAST 4 /* headers of a rank */
#define SPARE 96
#define TABLE (2 * LEAST + SPARE)
#define ALL   UINT32_MAX /* operations */

/* Rank 0 is this process, and rank 1 is RIG_PEER. */
struct ends {
	struct fake_target *target;
	struct rig *rig;
	struct space *space;
	struct credit credits[RIG_RANKS];
};

static const struct process map[] = {RIG_SELF, RIG_PEER};

static int ends_setup(void **state)
{
	struct ends *ends = calloc(1, sizeof(*ends));
	struct command set = {.kind = COMMAND_MAP};
	uint64_t queue;
	void *target;

	assert_non_null(ends);
	assert_int_equal(fake_target_setup(&target), 0);
	ends->target = target;
	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		ends->credits[i].self = i;
		credit_set(&ends->credits[i], LEAST);
	}
	ends->rig = rig_letters(ends->target->rig, LEAST, SPARE, ends->credits, &queue);
	ends->space = ends->target->rig->engine->spaces[ends->rig->space];
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)map;
	assert_int_equal(rig_ask(ends->rig, &set), ANSWER_OK);
	*state = ends;
	return 0;
}

static int ends_teardown(void **state)
{
	struct ends *ends = *state;
	void *target = ends->target;

	rig_stop(ends->target->rig);
	rig_space_free(ends->rig);
	fake_target_teardown(&target);
	free(ends);
	return 0;
}

static struct message_header word_of_rank(const struct ends *ends, uint32_t rank, uint64_t value)
{
	return (struct message_header){
		.kind = MESSAGE_STORE,
		.space = (uint8_t)ends->rig->space,
		.uid = RIG_UID,
		.portal = FETCH_PORTAL,
		.cookie = rank,
		.match_bits = BITS_TOLD,
		.value = value,
	};
}

static void hear(const struct ends *ends, uint32_t rank, unsigned kind, uint64_t number)
{
	const struct message_header word = word_of_rank(ends, rank, word_make(kind, number));

	fake_deliver(map[rank], &word, NULL, 0);
}

/* The next word that was sent. Returns false if there is none. */
static bool word_next(const struct ends *ends, struct message_header *header, uint32_t *rank)
{
	struct fake_sent *sent;

	engine_poll(ends->target->rig->engine);
	while ((sent = fake_next())) {
		*header = sent->header;
		*rank = sent->to.nid == RIG_PEER.nid;
		fake_finish(sent, TRANSPORT_OK);
		if (header->match_bits == BITS_TOLD)
			return true;
	}
	return false;
}

static void expect_word(const struct ends *ends, uint32_t to, unsigned kind, uint64_t number)
{
	struct message_header header;
	uint32_t rank;

	assert_true(word_next(ends, &header, &rank));
	assert_int_equal(rank, to);
	assert_int_equal(header.kind, MESSAGE_STORE);
	assert_int_equal(header.uid, RIG_UID);
	assert_int_equal(header.portal, FETCH_PORTAL);
	assert_int_equal(header.cookie, to);
	assert_int_equal(header.operation, 0);
	assert_int_equal(header.value, word_make(kind, number));
}

static void expect_silence(const struct ends *ends)
{
	struct message_header header;
	uint32_t rank;

	assert_false(word_next(ends, &header, &rank));
}

/* All shares and what is in none are the table; no rank has more than its share. */
static void table_check(const struct ends *ends)
{
	uint64_t all = ends->space->spare;

	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		all += share_now(ends->space, i);
		assert_true(ends->space->kept_of[i] <= share_now(ends->space, i));
		assert_true(share_now(ends->space, i) >= LEAST);
	}
	assert_int_equal(all, TABLE);
}

/* A rank sends all that it can, which is kept, and is received if `received`. Returns its share. */
static uint32_t burst(const struct ends *ends, uint32_t rank, bool received)
{
	while (ends->space->kept_of[rank] < share_now(ends->space, rank))
		share_keep(ends->space, rank);
	table_check(ends);
	if (received)
		ends->space->kept_of[rank] = 0;
	return share_now(ends->space, rank);
}

static void memory__comes_back_from_a_rank_that_burst_and_fell_silent(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, true);
	uint32_t asked = had / 2, all;

	assert_true(had > SPARE / 2);
	expect_silence(ends);
	for (unsigned round = 0; round < 4; round++) {
		const uint32_t before = share_now(ends->space, 1);

		/* Nothing is free before the answer; then the rank that waits gets some. */
		all = burst(ends, 1, false);
		if (round == 0)
			assert_true(all < had / 2);
		if (all >= had / 2)
			break;
		expect_word(ends, 0, WORD_TAKE, asked);
		assert_int_equal(share_now(ends->space, 0), 2 * asked > had ? 2 * asked : had);
		hear(ends, 0, WORD_GIVEN, asked);
		table_check(ends);
		assert_int_equal(share_now(ends->space, 0), asked);
		assert_true(share_now(ends->space, 1) > before);
		expect_word(ends, 1, WORD_SHARE, share_now(ends->space, 1));
	}
	assert_true(share_now(ends->space, 1) >= had / 2);
}

static void memory__is_not_taken_from_others_by_a_rank_that_has_its_part(void **state)
{
	enum { ROUNDS = 100 };
	struct ends *ends = *state;
	const struct sharer *silent = &ends->space->sharers[1];

	burst(ends, 1, true);
	expect_silence(ends);
	for (unsigned round = 0; round < ROUNDS; round++) {
		burst(ends, 0, true);
		if (silent->asked != 0)
			hear(ends, 1, WORD_GIVEN, silent->asked);
		table_check(ends);
	}
	assert_int_equal(silent->asked, 0);
	assert_true(share_now(ends->space, 0) >= TABLE / 2);
	assert_true(share_now(ends->space, 1) > TABLE / 8);
}

/* Both ranks have more than the least share. Which one would be asked first? */
static uint32_t silent_first(const struct ends *ends)
{
	return (uint32_t)(list_first(&ends->space->silent, struct sharer, silent) -
			  ends->space->sharers);
}

/* C3. A message that is kept, is placed, or begins was heard. */
static void rank__that_has_sent_meanwhile_is_not_the_first_to_be_asked(void **state)
{
	const struct ends *ends = *state;
	struct outcome outcomes[2] = {{.kind = 0}};
	struct message_header store = {.kind = MESSAGE_STORE,
		.space = (uint8_t)ends->rig->space,
		.uid = RIG_UID,
		.cookie = 1};
	char got[64];

	for (uint32_t rank = 0; rank < RIG_RANKS; rank++)
		for (unsigned i = 0; i < LEAST / 2; i++)
			share_keep(ends->space, rank);
	assert_int_equal(silent_first(ends), 0);
	share_keep(ends->space, 0);
	assert_int_equal(share_now(ends->space, 0), 2 * LEAST); /* which it has had before */
	assert_int_equal(silent_first(ends), 1);
	for (unsigned i = 0; i < 2; i++) {
		struct command receive = {.kind = COMMAND_RECEIVE, .position = RECEIVE_PIECE};

		receive.receive.ignore = UINT64_MAX;
		receive.receive.start = (uintptr_t)got;
		receive.receive.length = sizeof(got);
		receive.receive.outcome = (uintptr_t)&outcomes[i];
		receive.receive.peer = MATCH_ANY;
		rig_post(ends->rig, &receive);
	}
	engine_poll(ends->target->rig->engine);
	fake_deliver(map[1], &store, NULL, 0);
	assert_int_equal(silent_first(ends), 0);
	store.cookie = 0;
	store.requested = sizeof(got);
	fake_end(fake_begin(map[0], &store, sizeof(got)), TRANSPORT_DEAD);
	assert_int_equal(silent_first(ends), 1);
}

/* C3. It sends, and hears that it is to give some back. */
static void share__of_a_rank_that_does_not_answer_grows_no_more(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, true);

	burst(ends, 1, true);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	for (unsigned round = 0; round < 100; round++) {
		assert_int_equal(burst(ends, 0, true), had);
		assert_true(burst(ends, 1, true) >= LEAST);
		assert_int_equal(
			share_answer(ends->space, 0, VALUE_SHORT), 0); /* it is not told any */
	}
	expect_silence(ends);
	/* Nor does it get any when there is some. */
	ends->space->spare += SPARE;
	while (ends->space->kept_of[0] < had)
		share_keep(ends->space, 0);
	assert_int_equal(share_now(ends->space, 0), had);
	ends->space->kept_of[0] = 0;
	ends->space->spare -= SPARE;
	/* What it had is free when its process is another one. */
	share_reset(ends->space, 0);
	table_check(ends);
	assert_true(burst(ends, 1, false) > TABLE / 2);
}

static void memory__that_is_said_to_be_given_back_is_no_more_than_was_asked_for(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, false);

	hear(ends, 0, WORD_GIVEN, 0); /* nobody has asked */
	assert_int_equal(share_now(ends->space, 0), had);
	ends->space->kept_of[0] = had - 3;
	burst(ends, 1, false);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	hear(ends, 0, WORD_GIVEN, UINT32_MAX);
	assert_int_equal(share_now(ends->space, 0), had);
	hear(ends, 0, WORD_GIVEN, 1); /* less than is kept */
	assert_int_equal(share_now(ends->space, 0), had - 3);
	table_check(ends);
	ends->space->kept_of[0] = 0;
	hear(ends, 0, WORD_GIVEN, 1); /* less than is wanted */
	assert_int_equal(share_now(ends->space, 0), LEAST);
	table_check(ends);
	/* Its answers say nothing of a share that is taken back, and then again. */
	ends->space->sharers[0].asked = 5;
	assert_int_equal(share_answer(ends->space, 0, VALUE_SHORT), 0);
	ends->space->sharers[0].asked = 0;
	assert_int_equal(share_answer(ends->space, 0, 0), UINT64_C(1) << 32 | LEAST);
}

/* C3. What was lent of a rank's messages (unexpected.h, U6) and has been read is not in use. */
static void memory__that_was_lent_is_given_back_when_it_was_read(void **state)
{
	struct ends *ends = *state;
	char got[8] = "";
	const struct message_header letter = {.kind = MESSAGE_STORE,
		.space = (uint8_t)ends->rig->space,
		.detail = MESSAGE_REFUSALS,
		.uid = RIG_UID,
		.requested = sizeof(got)};
	const struct rig_tier all = {
		.ignore = UINT64_MAX, .options = REGION_TRUNCATE, .log = ~TIER_BIT(TIER_PUT_KEPT)};
	const uint32_t had = burst(ends, 0, true);

	rig_append(ends->rig,
		&(struct rig_tier){
			.ignore = UINT64_MAX, .tier = 1, .options = REGION_PUT | REGION_TRUNCATE});
	for (uint32_t i = 0; i < had; i++)
		fake_deliver(map[0], &letter, got, sizeof(got));
	rig_search(ends->rig, &all, true);
	assert_int_equal(ends->space->kept_of[0], had);
	for (uint32_t i = 0; i < TABLE; i++)
		ends->space->copies[i].read = true;
	burst(ends, 1, false);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	hear(ends, 0, WORD_GIVEN, had / 2);
	assert_int_equal(ends->space->kept_of[0], 0);
	assert_int_equal(share_answer(ends->space, 0, 0), UINT64_C(1) << 32 | had / 2);
}

/* C6. Of a rank that is another process's now nothing was taken. */
static void share__of_a_rank_begins_again(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, true);

	burst(ends, 1, false);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	assert_int_equal(share_answer(ends->space, 0, 0), 0);
	ends->credits[0].taken = 5;
	hear(ends, 0, WORD_GIVEN, had / 2);
	expect_word(ends, 0, WORD_CREDIT, 5);
	expect_word(ends, 1, WORD_SHARE, share_now(ends->space, 1));
	ends->space->kept_of[1] = 0;
	for (uint32_t rank = 0; rank < RIG_RANKS; rank++)
		share_reset(ends->space, rank);
	assert_int_equal(share_answer(ends->space, 0, 0), LEAST);
	/* As many have been taken of the new process. */
	assert_int_equal(burst(ends, 0, true), had);
	burst(ends, 1, false);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	hear(ends, 0, WORD_GIVEN, had / 2);
	expect_word(ends, 0, WORD_CREDIT, 5);
}

/* C4. What was taken, and was not worth a word while the share was larger. */
static void messages__that_were_taken_are_told_with_a_smaller_share(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, true);

	burst(ends, 1, false);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	ends->credits[0].taken = 5;
	hear(ends, 0, WORD_GIVEN, had / 2);
	expect_word(ends, 0, WORD_CREDIT, 5);
}

/* As if so many operations were left, or ALL again. */
static void operations_leave(const struct ends *ends, unsigned count)
{
	struct pool *operations = &ends->target->rig->engine->operations;
	static unsigned made, left;

	if (count == ALL) {
		operations->made = made;
		operations->left = left;
		return;
	}
	made = operations->made;
	left = operations->left;
	operations->made = OPERATIONS_MAX;
	operations->left = count;
}

/* C5. Nothing else comes, or is sent, that would remind the poll core. */
static void words__for_which_there_is_no_operation_are_sent_later(void **state)
{
	struct ends *ends = *state;
	const struct engine *engine = ends->target->rig->engine;
	const uint32_t had = burst(ends, 0, true);

	assert_true(engine_deadline(engine) > SECOND);
	operations_leave(ends, 0);
	burst(ends, 1, false);
	expect_silence(ends);
	assert_true(engine_deadline(engine) < MILLISECOND);
	operations_leave(ends, ALL);
	expect_word(ends, 0, WORD_TAKE, had / 2);
	expect_silence(ends);
	operations_leave(ends, 0);
	ends->credits[0].taken = 5;
	hear(ends, 0, WORD_GIVEN, had / 2);
	credit_set(&ends->credits[1], 64);
	hear(ends, 1, WORD_TAKE, 5);
	expect_silence(ends);
	assert_int_equal(ends->credits[1].share, 64);
	operations_leave(ends, ALL);
	expect_word(ends, 0, WORD_CREDIT, 5);
	expect_word(ends, 1, WORD_SHARE, share_now(ends->space, 1));
	expect_word(ends, 1, WORD_GIVEN, 5);
	expect_silence(ends);
	assert_int_equal(ends->credits[1].share, 5);
	assert_true(engine_deadline(engine) > SECOND);
	/* A rank that is another process's is owed nothing. */
	operations_leave(ends, 0);
	hear(ends, 1, WORD_TAKE, 1);
	share_reset(ends->space, 1);
	operations_leave(ends, ALL);
	expect_silence(ends);
	assert_int_equal(engine->awaits, 0);
}

/* C5. What has changed since a word was owed makes it needless. */
static void words__that_are_owed_are_sent_as_long_as_they_are_true(void **state)
{
	struct ends *ends = *state;
	const uint32_t had = burst(ends, 0, true);
	uint32_t left;

	/* A liar gives back before it was asked; the other rank, which got that, is asked then. */
	operations_leave(ends, 0);
	burst(ends, 1, false);
	hear(ends, 0, WORD_GIVEN, had / 2);
	ends->space->kept_of[1] = 0;
	burst(ends, 0, false);
	left = share_now(ends->space, 1) / 2;
	operations_leave(ends, ALL);
	expect_word(ends, 1, WORD_TAKE, left);
	expect_silence(ends);
	/* What was sent is not owed any more. */
	operations_leave(ends, 0);
	ends->credits[1].taken = 3;
	hear(ends, 1, WORD_GIVEN, left);
	operations_leave(ends, ALL);
	expect_word(ends, 1, WORD_CREDIT, 3);
	expect_word(ends, 0, WORD_SHARE, share_now(ends->space, 0));
	expect_silence(ends);
	/* There is an operation before the poll core looks for one. */
	operations_leave(ends, 0);
	credit_set(&ends->credits[1], 64);
	hear(ends, 1, WORD_TAKE, 5);
	operations_leave(ends, ALL);
	ends->credits[1].sent = 1;
	hear(ends, 1, WORD_CREDIT, 1);
	expect_word(ends, 1, WORD_GIVEN, 5);
	expect_silence(ends);
	assert_int_equal(ends->credits[1].share, 5);
}

/* C5. A rank asks for its share all the time, and takes no word: operations are left for others. */
static void words__to_a_rank_that_takes_none_leave_operations_for_others(void **state)
{
	struct ends *ends = *state;

	fake_share_spent(map[1]);
	operations_leave(ends, 10);
	for (unsigned i = 0; i < 10; i++) {
		hear(ends, 1, WORD_TAKE, 1);
		hear(ends, 0, WORD_TAKE, 1);
		expect_word(ends, 0, WORD_GIVEN, 1);
	}
	expect_silence(ends);
	fake_share_spent((struct process){.nid = 0});
	expect_word(ends, 1, WORD_GIVEN, 1);
	expect_silence(ends);
	operations_leave(ends, ALL);
}

/* C5. A rank sends until others are asked for memory. What it is answered needs the operation. */
static void answer__to_a_message_has_the_last_operation(void **state)
{
	struct ends *ends = *state;
	struct message_header store = {.kind = MESSAGE_STORE,
		.space = (uint8_t)ends->rig->space,
		.uid = RIG_UID,
		.cookie = 1};
	const uint32_t had = burst(ends, 0, true);

	rig_append(ends->rig,
		&(struct rig_tier){
			.ignore = UINT64_MAX, .tier = 1, .options = REGION_PUT | REGION_TRUNCATE});
	operations_leave(ends, 1);
	while (ends->space->kept_of[1] < share_now(ends->space, 1)) {
		struct fake_sent *sent;

		store.operation++;
		fake_deliver(map[1], &store, NULL, 0);
		engine_poll(ends->target->rig->engine);
		sent = fake_next();
		assert_non_null(sent);
		assert_int_equal(sent->header.kind, MESSAGE_STORED);
		assert_int_equal(sent->header.operation, store.operation);
		fake_finish(sent, TRANSPORT_OK);
		expect_silence(ends);
	}
	operations_leave(ends, ALL);
	expect_word(ends, 0, WORD_TAKE, had / 2);
}

/* What a program sends while the poll core makes the share smaller. */
static struct credit *spender;
static uint64_t spends;

void __real_postern_core_barrier_heavy(void);
void __wrap_postern_core_barrier_heavy(void);

void __wrap_postern_core_barrier_heavy(void)
{
	if (spender)
		spender->sent += spends;
	spends = 0;
	__real_postern_core_barrier_heavy();
}

/* C4 */
static void share__that_a_program_uses_meanwhile_is_not_given_back(void **state)
{
	struct ends *ends = *state;

	spender = &ends->credits[1];
	spends = 40;
	credit_set(spender, 64);
	spender->sent = 10;
	hear(ends, 1, WORD_TAKE, 5);
	expect_word(ends, 1, WORD_GIVEN, 51);
	assert_int_equal(spender->share, 51);
	hear(ends, 1, WORD_CREDIT, 50);
	expect_word(ends, 1, WORD_GIVEN, 5);
	/* No more than there was, whatever is in use. */
	credit_set(spender, 64);
	spends = 100;
	hear(ends, 1, WORD_TAKE, 5);
	expect_word(ends, 1, WORD_GIVEN, 64);
	spender = NULL;
}

static void share__goes_as_far_as_what_is_in_use_and_then_further(void **state)
{
	struct ends *ends = *state;
	struct credit *credit = &ends->credits[1];

	credit_set(credit, 64);
	credit->sent = 60;
	hear(ends, 1, WORD_TAKE, 5);
	expect_silence(ends); /* too little for a word */
	hear(ends, 1, WORD_CREDIT, 50);
	expect_word(ends, 1, WORD_GIVEN, 11);
	assert_int_equal(credit->share, 11);
	assert_int_equal(credit->quiet, 0);
	hear(ends, 1, WORD_CREDIT, 58);
	expect_word(ends, 1, WORD_GIVEN, 5);
	hear(ends, 1, WORD_CREDIT, 59);
	expect_silence(ends); /* all that was wanted */
	assert_int_equal(credit->freed, 59);
	hear(ends, 1, WORD_TAKE, 0);
	expect_word(ends, 1, WORD_GIVEN, 2);
	credit_answered(ends->space, &(const struct outcome){.peer = 1}); /* it was placed */
	expect_word(ends, 1, WORD_GIVEN, 1);
	assert_int_equal(credit->freed, 60);
	hear(ends, 1, WORD_TAKE, 200); /* more than there is */
	expect_word(ends, 1, WORD_GIVEN, 1);
}

/* C3. The end of a message may be told behind the word that was sent after its answer. */
static void answer__that_was_sent_before_a_share_was_taken_back_says_nothing_of_it(void **state)
{
	struct ends *ends = *state;
	struct outcome answer = {.peer = 1, .tier = 1, .offset = 64};

	credit_set(&ends->credits[1], 64);
	hear(ends, 1, WORD_TAKE, 5);
	expect_word(ends, 1, WORD_GIVEN, 5);
	credit_answered(ends->space, &answer);
	assert_int_equal(ends->credits[1].share, 5);
	answer.offset = UINT64_C(1) << 32 | 9;
	credit_answered(ends->space, &answer);
	assert_int_equal(ends->credits[1].share, 9);
}

static void words__of_a_liar_are_not_believed(void **state)
{
	struct ends *ends = *state;
	struct credit *credit = &ends->credits[1];
	struct message_header word = word_of_rank(ends, 1, word_make(WORD_SHARE, 9));
	struct outcome answer = {.peer = 1, .tier = 1};

	credit->sent = 3;
	/* Of another process, or user, and of no such rank. */
	fake_deliver(RIG_SELF, &word, NULL, 0);
	word.uid++;
	fake_deliver(RIG_PEER, &word, NULL, 0);
	word.uid--;
	word.cookie = RIG_RANKS;
	fake_deliver(RIG_PEER, &word, NULL, 0);
	assert_int_equal(credit->share, LEAST);
	hear(ends, 1, WORD_CREDIT, 4); /* it was sent three */
	assert_int_equal(credit->freed, 0);
	hear(ends, 1, WORD_CREDIT, 2);
	hear(ends, 1, WORD_CREDIT, 1);
	assert_int_equal(credit->freed, 2);
	/* Nobody has so many headers. */
	hear(ends, 1, WORD_SHARE, UINT32_MAX);
	hear(ends, 1, WORD_SHARE, LEAST + SPARE_MOST + 1);
	answer.offset = UINT32_MAX;
	credit_answered(ends->space, &answer);
	answer.offset = LEAST + SPARE_MOST + 1;
	credit_answered(ends->space, &answer);
	assert_int_equal(credit->share, LEAST);
	answer.offset = 50;
	answer.verdict = TIER_DROPPED;
	credit_answered(ends->space, &answer);
	answer.verdict = TIER_OK;
	answer.peer = RIG_RANKS;
	credit_answered(ends->space, &answer);
	assert_int_equal(credit->share, LEAST);
	answer.peer = 1;
	credit_answered(ends->space, &answer);
	assert_int_equal(credit->share, 50);
	assert_int_equal(credit->quiet, 12);
	hear(ends, 1, WORD_SHARE, LEAST + SPARE_MOST);
	assert_int_equal(credit->share, LEAST + SPARE_MOST);
	hear(ends, 1, WORD_SHARE, LEAST); /* it does not become smaller so */
	assert_int_equal(credit->share, LEAST + SPARE_MOST);
}

/* What is on its way from this process to itself: a message, or a word. */
struct under_way {
	bool message;
	uint64_t value;
};

/* Rank 0 is a sender and its receiver, in one engine; rank 1 is short of memory now and then. */
static void shares__are_kept_to_by_a_sender_that_gives_back_whatever_comes_when(void **state)
{
	enum { OPS = 100000, PHASE = 200, ROOM = 4096 };
	struct ends *ends = *state;
	struct space *space = ends->space;
	struct credit *credit = &ends->credits[0];
	static struct under_way line[ROOM];
	unsigned first = 0, last = 0, given = 0;
	struct message_header header;
	uint64_t dice = 1;
	uint32_t rank;

	for (unsigned op = 0; op < OPS; op++) {
		const uint64_t what = random_next(&dice) % 16;
		const bool bursts = op / PHASE % 2 == 0; /* else rank 1 does */

		if (what < 6 && (bursts || what == 0) &&
			credit->sent - credit->freed < credit->share) {
			credit->sent++;
			line[last++ % ROOM] = (struct under_way){.message = true};
		} else if (what < 9 && first != last) {
			const struct under_way *next = &line[first++ % ROOM];

			if (next->message) {
				assert_true(space->kept_of[0] < share_now(space, 0));
				share_keep(space, 0);
				/* As if the message had been answered. */
				line[last++ % ROOM] = (struct under_way){
					.value = word_make(WORD_SHARE,
						(uint32_t)share_answer(
							space, 0, op % 3 == 0 ? VALUE_SHORT : 0))};
			} else {
				given += word_kind(next->value) == WORD_GIVEN;
				header = word_of_rank(ends, 0, next->value);
				credit_word(space, RIG_SELF, &header);
			}
		} else if (what < 12 && !bursts && space->kept_of[0] > 0) {
			space->kept_of[0]--;
			credit->taken++;
			if (random_next(&dice) % 4 == 0)
				line[last++ % ROOM] = (struct under_way){
					.value = word_make(WORD_CREDIT, credit->taken)};
		} else if (what < 14 && !bursts && space->kept_of[1] < share_now(space, 1)) {
			share_keep(space, 1);
		} else if (what == 14 && bursts) {
			space->kept_of[1] = 0;
		} else if (space->sharers[1].asked != 0) {
			header = word_of_rank(
				ends, 1, word_make(WORD_GIVEN, space->sharers[1].asked));
			credit_word(space, RIG_PEER, &header);
		}
		while (word_next(ends, &header, &rank))
			if (rank == 0)
				line[last++ % ROOM] = (struct under_way){.value = header.value};
		assert_true(last - first < ROOM);
		table_check(ends);
		assert_true(credit->share <= share_now(space, 0));
	}
	assert_true(given > OPS / PHASE / 8);
}

/* unexpected.h, U4. Ranks ask for more, as often as not in vain, and go. */
static void shares__are_the_table_whoever_asks(void **state)
{
	enum { RANKS = 40, OPS = 3000, TRACES = 50 };
	static _Atomic uint32_t shares[RANKS];
	static struct sharer sharers[RANKS];
	struct segment segment = {0};
	uint64_t dice = 1;

	(void)state;
	for (unsigned trace = 0; trace < TRACES; trace++) {
		const uint32_t table = (uint32_t)(random_next(&dice) % 50000);
		struct space space = {.segment = &segment,
			.kept_share = LEAST,
			.ranks = RANKS,
			.share_of = shares,
			.sharers = sharers};
		uint64_t expected[RANKS], free = table;

		segment.limits.unexpected = RANKS * LEAST + table;
		memset(sharers, 0, sizeof(sharers));
		credit_open(&space);
		for (uint32_t i = 0; i < RANKS; i++) {
			expected[i] = LEAST;
			shares[i] = 0;
		}
		for (unsigned op = 0; op < OPS; op++) {
			const uint32_t rank = (uint32_t)(random_next(&dice) % RANKS);
			const bool asks = random_next(&dice) % 2;
			uint64_t more = expected[rank] < free / 2 ? expected[rank] : free / 2;

			if (random_next(&dice) % 64 == 0) {
				share_reset(&space, rank);
				free += expected[rank] - LEAST;
				expected[rank] = LEAST;
				continue;
			}
			if (!asks || expected[rank] > free / ASKERS)
				more = 0;
			expected[rank] += more;
			free -= more;
			assert_int_equal(
				share_answer(&space, rank, asks ? VALUE_SHORT : 0), expected[rank]);
			assert_int_equal(space.spare, free);
		}
		assert_int_equal(share_answer(&space, RANKS, VALUE_SHORT), 0);
		space.closing = true;
		assert_int_equal(share_answer(&space, 0, VALUE_SHORT), 0);
		credit_close(&space);
	}
}

/* --- many senders */

/* Bytes of this process that are in memory. */
static uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long all, pages;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &pages), 2);
	(void)fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A message of a rank's whose copy is at its sender. */
static void keep_one(const struct rig *rig, const struct process *crowd, uint32_t rank)
{
	static const char data[COPIED_MAX + 1];
	const struct message_header header = {.kind = MESSAGE_STORE,
		.space = rig->space,
		.uid = RIG_UID,
		.cookie = rank,
		.value = (uint64_t)NAME_CHUNK << 32,
		.requested = sizeof(data)};
	uint8_t bytes[MESSAGE_HEADER_MAX];
	const uint32_t length = message_encode(&header, bytes);

	incoming_whole(rig->engine, crowd[rank], bytes, length, data, sizeof(data));
}

/* Each sends all that it may to a program that receives nothing, and wants more. What the receiver
 * holds is what it has granted, and 64 bytes for each of them. */
static void senders__that_nobody_receives_from_take_no_more_than_was_granted(void **state)
{
	enum { SENDERS = 10000, FIRST = 6, MORE = 20000 };
	static struct process crowd[SENDERS];
	static _Atomic uint32_t shares[SENDERS];
	static struct credit credits[SENDERS];
	const uint64_t granted = (uint64_t)(SENDERS * FIRST + MORE) * KEPT_BYTES;
	struct fake_target *target;
	struct space *space;
	struct rig *rig;
	struct command set = {.kind = COMMAND_MAP};
	uint64_t queue, before, kept = 0;
	void *made;

	(void)state;
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	assert_int_equal(fake_target_setup(&made), 0);
	target = made;
	for (uint32_t i = 0; i < SENDERS; i++) {
		crowd[i] = (struct process){.nid = 1000 + i, .pid = 1};
		credits[i].self = i;
		credit_set(&credits[i], FIRST);
	}
	rig = rig_crowd(target->rig, SENDERS, shares, FIRST, MORE, credits, &queue);
	space = target->rig->engine->spaces[rig->space];
	set.object.index = SENDERS;
	set.object.other = (uintptr_t)crowd;
	assert_int_equal(rig_ask(rig, &set), ANSWER_OK);
	rig_append(rig, &(struct rig_tier){.ignore = UINT64_MAX,
				.tier = 1,
				.options = REGION_PUT | REGION_TRUNCATE,
				.log = UINT32_MAX});
	before = resident();
	for (uint32_t i = 0; i < SENDERS; i++)
		while (space->kept_of[i] < share_now(space, i)) {
			keep_one(rig, crowd, i);
			kept++;
		}
	assert_true(kept > SENDERS * FIRST + MORE / 2);
	assert_true(kept <= SENDERS * FIRST + MORE);
	assert_int_equal(rig_counter(rig, dropped_no_header), 0);
	if (!SANITIZED)
		assert_true(resident() - before <= granted + 64 * SENDERS);
	rig_stop(target->rig);
	rig_space_free(rig);
	fake_target_teardown(&made);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, ends_setup, ends_teardown)
	const struct CMUnitTest tests[] = {
		TEST(memory__comes_back_from_a_rank_that_burst_and_fell_silent),
		TEST(memory__is_not_taken_from_others_by_a_rank_that_has_its_part),
		TEST(rank__that_has_sent_meanwhile_is_not_the_first_to_be_asked),
		TEST(share__of_a_rank_that_does_not_answer_grows_no_more),
		TEST(memory__that_is_said_to_be_given_back_is_no_more_than_was_asked_for),
		TEST(memory__that_was_lent_is_given_back_when_it_was_read),
		TEST(share__of_a_rank_begins_again),
		TEST(messages__that_were_taken_are_told_with_a_smaller_share),
		TEST(words__for_which_there_is_no_operation_are_sent_later),
		TEST(words__to_a_rank_that_takes_none_leave_operations_for_others),
		TEST(words__that_are_owed_are_sent_as_long_as_they_are_true),
		TEST(answer__to_a_message_has_the_last_operation),
		TEST(share__that_a_program_uses_meanwhile_is_not_given_back),
		TEST(share__goes_as_far_as_what_is_in_use_and_then_further),
		TEST(answer__that_was_sent_before_a_share_was_taken_back_says_nothing_of_it),
		TEST(words__of_a_liar_are_not_believed),
		TEST(shares__are_kept_to_by_a_sender_that_gives_back_whatever_comes_when),
		cmocka_unit_test(shares__are_the_table_whoever_asks),
		cmocka_unit_test(senders__that_nobody_receives_from_take_no_more_than_was_granted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
