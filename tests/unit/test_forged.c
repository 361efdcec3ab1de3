/* SPDX-License-Identifier: BSD-3-Clause */
/* test_forged.c - a peer sends what the library would not, and harms only its own messages.
 * Covers: lib/messages/inbound.c, lib/messages/messages.c, lib/messages/outbound.c,
 * lib/messages/peers.c. */
#include <engine/statistics.h>
#include <engine/tiers.h>

#include "message_rig.h"

static void forge_word(uint64_t kind, uint64_t word)
{
	const struct move move = {.portal = PORTAL_SIDE,
		.match_bits = BITS_TOLD,
		.value = kind << MESSAGES_WORD | word};

	forge(move, (struct rma_line){.message = MESSAGE_STORE, .want = WANT_EVENT});
}

/* Returns the first byte that came; -1: none. */
static int forge_fetch(uint64_t name, uint64_t offset)
{
	static char got[EAGER];
	const struct move move = {.portal = PORTAL_SIDE, .match_bits = name, .offset = offset};

	memset(got, -1, sizeof(got));
	forge(move,
		(struct rma_line){
			.local = (uintptr_t)got, .length = sizeof(got), .message = MESSAGE_LOAD});
	return got[0];
}

static void a_peer_that_forges_words_and_fetches_harms_only_its_own_messages(void **state)
{
	static const uint64_t credits[] = {0, 2, UINT64_MAX >> (64 - MESSAGES_WORD)};
	struct letter out, in;
	char got[8];

	(void)state;
	post_send(&out, 0, 1, "one", 4, true);
	settle(nothing_flies, ends[0]);
	for (unsigned i = 0; i < 3; i++)
		forge_word(WORD_CREDIT, credits[i]);
	forge_word(WORD_USER + 1, 1);
	ends[0]->options.told = NULL; /* a front end that knows no words */
	forge_word(WORD_USER, 1);
	ends[0]->options.told = word_told;
	forge_word(255, 1);
	assert_int_equal(ends[0]->peers[1].credit.credited, 0);
	forge_word(WORD_CREDIT, 1);
	forge_word(WORD_CREDIT, 0);
	assert_int_equal(ends[0]->peers[1].credit.credited, 1);
	/* Names that are not there, a slot that is free, and what lies behind the last. Nobody
	 * else's fetch is refused for that. */
	assert_int_equal(forge_fetch(0, 0), -1);
	assert_int_equal(forge_fetch(NAME_CHUNK | 1, 0), -1);
	assert_false(ends[0]->disabled);
	assert_int_equal(forge_fetch(BITS_TOLD, 0), -1);
	assert_int_equal(forge_fetch(NAME_CHUNK, SLOT_SMALL * CHUNK_SLOTS), -1);
	assert_int_equal(forge_fetch(NAME_CHUNK, UINT64_MAX), -1);
	assert_int_equal(forge_fetch(NAME_CHUNK, SLOT_SMALL), 0);
	/* Its own message, before a receive takes it: the peer has it still. The first fetch says
	 * that it is not received yet. */
	assert_int_equal(forge_fetch(BITS_EARLY | NAME_CHUNK, 0), 'o');
	assert_int_equal(forge_fetch(BITS_EARLY | NAME_CHUNK | 1, 0), -1);
	settle(nothing_flies, ends[0]);
	assert_int_equal(out.done, 0);
	assert_int_equal(forge_fetch(NAME_CHUNK, 0), 'o');
	letter_settle(&out);
	post_receive(&in, 1, 1, 0, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	settle(nothing_pends, ends[0]);
	lengths_arrive();
}

/* An atomic is none of the library's messages: it would use a receive up, or be kept, and no event
 * would tell of it. */
static void a_peer_that_sends_atomics_uses_nothing_up(void **state)
{
	const struct move move = {.portal = PORTAL_MATCH, .match_bits = 1};
	const struct rma_line line = {.length = 8,
		.local = (uintptr_t)&ids,
		.message = MESSAGE_ATOMIC,
		.amo = AMO_SUM | AMO_UINT64 << 8,
		.want = WANT_EVENT};
	struct message_found found;
	struct letter in, out;
	char got[8];

	(void)state;
	forge(move, line);
	assert_false(messages_probe(ends[0], 1, 0, &found));
	assert_null(messages_show(ends[0], 0));
	post_receive(&in, 0, 1, 0, got, sizeof(got));
	forge(move, line);
	post_send(&out, 1, 1, "one", 4, true);
	letter_settle(&in);
	letter_settle(&out);
	assert_string_equal(got, "one");
}

/* M7. A send ends whatever its peer answers. */
static void a_peer_that_answers_with_silence_fails(void **state)
{
	static char text[LONG];
	const struct segment *segment = NULL;
	struct letter out[2];

	(void)state;
	hostile = true;
	end_visit(1);
	segment = ends[1]->visit.segment;
	for (uint32_t i = 0; i < 16; i++)
		segment_region(segment, i)->options |= REGION_NO_ACK;
	visit_leave(&ends[1]->visit);
	post_send(&out[0], 0, 1, text, 8, true);
	post_send(&out[1], 0, 1, text, sizeof(text), false);
	messages_tell(ends[0], 1, 5);
	settle(nothing_pends, ends[0]);
	assert_int_equal(ends[0]->flying, 0);
	assert_int_equal(ends[0]->peers[1].flying, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(out[i].done, 1);
		assert_int_equal(out[i].message.result, TRANSFER_FAILED);
	}
	assert_true(ends[0]->peers[1].failed);
	hostile = false;
}

/* A message whose data nobody has. */
static void a_receive_of_what_was_withdrawn_ends(void **state)
{
	static char data[3 * EAGER], got[3 * EAGER];
	const struct move move = {
		.portal = PORTAL_MATCH, .match_bits = 1, .value = UINT64_C(5) << 32};
	const struct rma_line line = {.local = (uintptr_t)data,
		.length = sizeof(data),
		.message = MESSAGE_STORE,
		.want = WANT_EVENT};
	struct letter in;

	(void)state;
	forge(move, line);
	post_receive(&in, 0, 1, 0, got, sizeof(got));
	letter_settle(&in);
	assert_int_equal(in.message.result, TRANSFER_WITHDRAWN);
	assert_int_equal(in.message.length, 0);
	assert_false(ends[0]->peers[1].failed);
}

/* Any word: small numbers, names and bits that the library knows, or chance. */
static uint64_t word_forge(uint64_t *random)
{
	uint64_t dice = random_next(random), word = dice >> 8;

	switch (dice & 7) {
	case 0:
		return word;
	case 1:
		return word % 8;
	case 2:
		return UINT64_MAX - word % 4;
	case 3:
		return BITS_TOLD;
	case 4:
		return (uint64_t)(word % 256) << MESSAGES_WORD | (word >> 8) % 1000;
	case 5:
		return NAME_CHUNK | word % 3;
	default:
		return (word & 1 ? VALUE_SYNCHRONOUS : 0) | (NAME_CHUNK | (word >> 1) % 2) << 32 |
		       (word >> 4) % (EAGER * CHUNK_SLOTS);
	}
}

/* A store or a load of end 1's that the library would not make. */
static void message_forge(uint64_t *random)
{
	static char data[3 * EAGER];
	uint64_t dice = random_next(random);
	const struct move move = {.portal = dice & 1 ? PORTAL_SIDE : PORTAL_MATCH,
		.match_bits = word_forge(random) & UINT64_MAX >> 2,
		.value = word_forge(random),
		.offset = dice & 2 ? 0 : word_forge(random)};
	const struct rma_line line = {.local = (uintptr_t)data,
		.length = (dice >> 8) % sizeof(data),
		.message = dice & 12 ? MESSAGE_STORE : MESSAGE_LOAD,
		.want = WANT_EVENT};

	forge(move, line);
}

/* End 0 sends itself a message, which has the highest of bits, and receives what it likes. */
static void self_send(unsigned seed, bool synchronous, uint64_t length)
{
	const uint64_t bits = UINT64_C(1) << 63 | UINT64_C(1) << 62 | seed;
	static char sent[3 * EAGER], got[3 * EAGER];
	struct letter out = {.done = 0}, in;

	fill(sent, length, seed);
	messages_send(ends[0], &out.message, 0,
		&(const struct send_wish){.bits = bits,
			.buffer = sent,
			.length = length,
			.synchronous = synchronous});
	post_receive(&in, 0, bits, 0, got, sizeof(got));
	letter_settle(&in);
	letter_settle(&out);
	assert_int_equal(in.message.result, TRANSFER_DONE);
	assert_int_equal(in.message.length, length);
	assert_memory_equal(got, sent, length);
}

/* Words of any bits, lengths, fetches of what is not the peer's, and messages that it never
 * serves. */
static void a_peer_that_sends_anything_harms_nobody_else(void **state)
{
	enum { STEPS = 1500, ROOM = 2 * EAGER };
	static char got[STEPS][ROOM + 1], sent[3 * EAGER];
	static struct letter in[STEPS], out[STEPS];
	unsigned results[TRANSFER_FAILED + 1] = {0};
	uint64_t random = 5, rooms[STEPS];

	(void)state;
	hostile = true;
	for (unsigned n = 0; n < STEPS; n++) {
		uint64_t dice = random_next(&random);

		message_forge(&random);
		rooms[n] = (dice >> 8) % ROOM;
		memset(got[n], 'x', ROOM + 1);
		post_receive(&in[n], 0, word_forge(&random) >> 2, dice & 1 ? UINT64_MAX >> 2 : 0,
			got[n], rooms[n]);
		if (dice & 2)
			self_send(n, dice & 4, (dice >> 32) % sizeof(sent));
		else
			post_send(&out[n], 0, n % 8, sent, (dice >> 32) % sizeof(sent), dice & 4);
		/* It would have no chance to do more. */
		ends[0]->peers[1].failed = false;
	}
	hostile = false;
	for (unsigned n = 0; n < STEPS; n++) {
		assert_true(in[n].done <= 1);
		for (uint64_t i = rooms[n]; i <= ROOM; i++)
			assert_int_equal(got[n][i], 'x');
		if (in[n].done) {
			assert_true(in[n].message.length <= rooms[n]);
			results[in[n].message.result]++;
		}
	}
	/* All kinds of things have happened. */
	assert_true(results[TRANSFER_DONE] > 50 && results[TRANSFER_CUT] > 50);
}

/* M6. It has said that it keeps more than anybody sends. */
static void a_peer_that_answers_nothing_leaves_room_for_messages_to_others(void **state)
{
	static struct letter out[SENDS_MAX], other;
	static char sent[EAGER + 1];
	const char *fault = getenv("TEST_FAULT");

	(void)state;
	setenv("TEST_FAULT", "drop=1", 1);
	ends_open(0, 1 << 16);
	hostile = true;
	ends[0]->peers[1].credit.share = UINT32_MAX;
	for (unsigned i = 0; i < SENDS_MAX; i++)
		post_send(&out[i], 0, 1, sent, sizeof(sent), false);
	assert_true(ends[0]->flying <= SENDS_MAX / 2);
	messages_send(ends[0], &other.message, 0,
		&(const struct send_wish){
			.bits = 1, .buffer = sent, .length = sizeof(sent), .synchronous = false});
	assert_true(other.message.posted);
	teardown(state);
	hostile = false;
	if (fault)
		setenv("TEST_FAULT", fault, 1);
	else
		unsetenv("TEST_FAULT");
}

/* M6. The rest of the queue is for what this process does. */
static void what_others_send_fills_a_part_of_the_queue(void **state)
{
	const struct space *space = interfaces[0].engine->spaces[1];
	const unsigned open[] = {PORTAL_SIDE, PORTAL_MATCH};

	(void)state;
	for (unsigned i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		const struct tier_portal *portal = &space->portals[open[i]];
		uint64_t most = portal->shared != 0 ? portal->shared : portal->most;

		assert_in_range(most, 1, portal->logs->refuse_at / 4);
	}
}

/* M5. What a peer sends that minds no share is refused beyond it, and others go on as before. */
static void a_peer_may_flood(void **state)
{
	enum { HEADERS = 64 };
	const struct move move = {.portal = PORTAL_MATCH, .match_bits = 1};
	const struct rma_line line = {.message = MESSAGE_STORE, .want = WANT_EVENT};
	struct message_found found;
	struct letter in;

	(void)state;
	ends_open(BLOCK_BYTES, HEADERS);
	for (unsigned i = 0; i < 4 * HEADERS; i++)
		forge(move, line);
	for (unsigned i = 0; i < 2 * HEADERS; i++)
		self_send(i, i & 1, i);
	for (unsigned i = 0; i < HEADERS / 2; i++) {
		assert_true(messages_probe(ends[0], 1, 0, &found));
		post_receive(&in, 0, 1, 0, NULL, 0);
		letter_settle(&in);
		assert_int_equal(in.message.result, TRANSFER_DONE);
	}
	assert_false(messages_probe(ends[0], 1, 0, &found));
	for (unsigned i = 0; i < 2 * HEADERS; i++)
		self_send(i, i & 1, i);
	teardown(state);
}

/* M5. A share that no receiver can have given is not believed. */
static void a_peer_that_grants_more_than_there_can_be_grants_nothing(void **state)
{
	static const struct {
		uint32_t granted, believed;
	} cases[] = {{UINT32_MAX, 64}, {64 + SPARE_MOST + 1, 64},
		{64 + SPARE_MOST, 64 + SPARE_MOST}, {65, 64 + SPARE_MOST}};
	struct letter out, in;
	char got[8];

	(void)state;
	ends_open(4 << 20, 2 * 64);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		atomic_store(&ends[1]->shares[0], cases[i].granted - 64);
		post_receive(&in, 1, 1, 0, got, sizeof(got));
		post_send(&out, 0, 1, "one", 4, true);
		letter_settle(&in);
		settle(nothing_pends, ends[0]);
		assert_int_equal(ends[0]->peers[1].credit.share, cases[i].believed);
	}
	atomic_store(&ends[1]->shares[0], 0);
	teardown(state);
}

/* M6. A word that finds no place disables the side Portal for all, until its end looks. */
static void a_peer_that_fills_its_part_of_the_queue_disables_the_portal_for_a_moment(void **state)
{
	struct tier_portal *portal = &interfaces[0].engine->spaces[1]->portals[PORTAL_SIDE];
	const struct segment *segment = ends[0]->visit.segment;
	const uint64_t most = portal->most;

	(void)state;
	portal->most = 0;
	forge_word(WORD_USER, 1);
	portal->most = most;
	assert_int_equal(words_told[1], 0);
	assert_int_equal(counter_read(&segment_counters(segment)->dropped_disabled), 1);
	messages_progress(ends[0]);
	assert_int_equal(atomic_load(&segment_portal(segment, PORTAL_SIDE)->state), PORTAL_ENABLED);
	forge_word(WORD_USER, 1);
	assert_int_equal(words_told[1], 1);
	words_told[1] = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_OPEN(a_peer_that_grants_more_than_there_can_be_grants_nothing),
		CASE(a_receive_of_what_was_withdrawn_ends),
		CASE(what_others_send_fills_a_part_of_the_queue),
		CASE(a_peer_that_fills_its_part_of_the_queue_disables_the_portal_for_a_moment),
		CASE(a_peer_that_forges_words_and_fetches_harms_only_its_own_messages),
		CASE(a_peer_that_sends_anything_harms_nobody_else),
		CASE(a_peer_that_sends_atomics_uses_nothing_up),
		CASE(a_peer_that_answers_with_silence_fails),
		CASE_OPEN(a_peer_may_flood),
		CASE_OPEN(a_peer_that_answers_nothing_leaves_room_for_messages_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
