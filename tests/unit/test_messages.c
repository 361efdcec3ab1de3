/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - sends and receives of two ends: each length, cancels, what stands beside the
 * bits, and random traffic against an oracle.
 * Covers: lib/messages/inbound.c, lib/messages/messages.c, lib/messages/outbound.c,
 * lib/messages/peers.c, lib/messages/taken.c. */
#include "message_rig.h"

#include <pthread.h>

#include <engine/statistics.h>

static void each_length_arrives__posted_or_not_synchronous_or_not(void **state)
{
	(void)state;
	lengths_arrive();
}

static _Thread_local unsigned memory_lacks; /* so many times, for this thread */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	if (memory_lacks == 0)
		return __real_aligned_alloc(alignment, size);
	memory_lacks--;
	return NULL;
}

static void *receive_without_memory(void *letter)
{
	memory_lacks = 3;
	post_receive(letter, 1, 5, 0, NULL, 0);
	return NULL;
}

/* It is the first of all cases: a later thread has the record of this one. */
static void a_thread_without_memory_for_its_first_visit_waits(void **state)
{
	struct letter out, in;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, receive_without_memory, &in), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(in.message.posted);
	post_send(&out, 0, 5, NULL, 0, false);
	letter_settle(&in);
}

static void a_message_longer_than_the_room_is_cut(void **state)
{
	static const uint64_t lengths[] = {100, LONG};
	static char sent[LONG], got[LONG];
	struct letter out, in;

	(void)state;
	fill(sent, sizeof(sent), 3);
	for (unsigned n = 0; n < 4; n++) {
		memset(got, 0, sizeof(got));
		if (n & 1)
			post_receive(&in, 1, 5, 0, got, 50);
		post_send(&out, 0, 5, sent, lengths[n / 2], false);
		settle(n & 1 ? letter_look : nothing_flies, n & 1 ? (void *)&in : (void *)ends[0]);
		if (!(n & 1))
			post_receive(&in, 1, 5, 0, got, 50);
		letter_settle(&in);
		settle(nothing_pends, ends[0]);
		assert_int_equal(in.message.result, TRANSFER_CUT);
		assert_int_equal(in.message.length, 50);
		assert_int_equal(in.message.whole, lengths[n / 2]);
		assert_memory_equal(got, sent, 50);
		assert_int_equal(got[50], 0);
	}
}

static void a_probe_finds_the_message_that_a_receive_then_gets(void **state)
{
	struct message_found found;
	struct letter out[2], in;
	char got[8];

	(void)state;
	assert_false(messages_probe(ends[1], 0, UINT64_MAX, &found));
	post_send(&out[0], 0, 7, "one", 4, false);
	post_send(&out[1], 0, 8, "eight", 6, false);
	settle(nothing_flies, ends[0]);
	assert_false(messages_probe(ends[1], 9, 0, &found));
	assert_true(messages_probe(ends[1], 8, 0, &found));
	assert_int_equal(found.length, 6);
	assert_true(messages_probe(ends[1], 0, UINT64_MAX, &found));
	assert_int_equal(found.bits, 7);
	assert_int_equal(found.peer, 0);
	post_receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	post_receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "eight");
}

/* M9. The peer keeps it, and fetches it no more. */
static void a_synchronous_send_fails_whose_peer_is_dismissed_before_its_ack(void **state)
{
	static const uint64_t lengths[] = {0, 8, EAGER, LONG};
	static char sent[LONG];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct letter out;

		ends_open_as(true, 4 << 20, 1 << 10, EAGER);
		post_send(&out, 0, 1, sent, lengths[i], true);
		assert_int_equal(ends[0]->flying, 1);
		messages_dismiss(ends[0], 1);
		settle(letter_look, &out);
		assert_int_equal(out.done, 1);
		assert_int_equal(out.message.result, TRANSFER_FAILED);
		assert_int_equal(messages_pending(ends[0]), 0);
		teardown(state);
	}
}

static bool third_is_kept(void *context)
{
	struct message_found found;

	(void)context;
	return messages_probe(ends[1], 3, 0, &found);
}

/* How many commands the poll core takes for a receive that is cancelled. */
static uint64_t receive_commands(void)
{
	const struct engine_counters *counters =
		segment_counters(ends[1]->visit.interface->submission.ring);
	const uint64_t before = counter_read(&counters->commands);
	struct letter in;

	post_receive(&in, 1, 4, 0, NULL, 0);
	assert_true(messages_cancel(ends[1], &in.message));
	return counter_read(&counters->commands) - before;
}

/* M9. A receive asks the poll core for messages only if there are some. */
static void messages_that_were_dismissed_cost_a_receive_no_question(void **state)
{
	static const uint64_t lengths[] = {8, EAGER, LONG};
	const char *progress = getenv("TEST_PROGRESS");
	static char sent[LONG];
	struct letter out[3];

	(void)state;
	if (!progress || strcmp(progress, "core") != 0)
		skip(); /* a receive is carried out at once */
	ends_open_as(true, 4 << 20, 1 << 10, EAGER);
	for (unsigned i = 0; i < 3; i++)
		post_send(&out[i], 0, 1 + i, sent, lengths[i], false);
	settle(third_is_kept, NULL);
	assert_int_equal(receive_commands(), 3); /* the receive, the question, the cancel */
	messages_dismiss(ends[1], 0);
	(void)receive_commands(); /* with what the dismissal has led to */
	assert_int_equal(receive_commands(), 2);
}

static void a_receive_is_cancelled_until_it_matches(void **state)
{
	struct letter out, in, other;
	char got[8], more[8];

	(void)state;
	post_receive(&in, 1, 7, 0, got, sizeof(got));
	assert_true(messages_cancel(ends[1], &in.message));
	post_receive(&other, 1, 7, 0, more, sizeof(more));
	post_send(&out, 0, 7, "one", 4, false);
	letter_settle(&other);
	assert_false(messages_cancel(ends[1], &other.message));
	assert_int_equal(in.done, 0);
	assert_string_equal(more, "one");
}

/* A front end may close its interface while another thread begins a receive. */
static void a_receive_that_finds_the_space_closed_is_cancelled(void **state)
{
	struct letter in, all;
	struct many many;
	char got[8];

	(void)state;
	assert_int_equal(interface_close(ends[1]->options.front, ends[1]->handle), ANSWER_OK);
	post_receive(&in, 1, 7, 0, got, sizeof(got));
	assert_true(messages_cancel(ends[1], &in.message));
	assert_int_equal(in.done, 0);
	messages_many(&many, sizeof(got), 1);
	receive_as(&all, 1,
		&(const struct receive_wish){
			.peer = PEER_ANY, .buffer = got, .room = sizeof(got), .many = &many});
	assert_false(messages_cancel(ends[1], &all.message));
	assert_int_equal(all.done, 1);
	assert_int_equal(all.message.result, TRANSFER_WITHDRAWN);
}

static void words_are_told(void **state)
{
	(void)state;
	messages_tell(ends[0], 1, 0x123456789abcde);
	settle(nothing_pends, ends[0]);
	assert_int_equal(words_told[0], 0x123456789abcde);
}

/* M6. */
static void a_receive_that_fetches_counts_as_posted(void **state)
{
	static char got[LONG], sent[LONG];
	struct letter out, in;

	(void)state;
	post_send(&out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	post_receive(&in, 1, 1, 0, got, LONG);
	assert_int_equal(ends[1]->posted, 1 - in.done); /* a poll thread may have fetched it */
	while (!in.message.acknowledged)
		messages_progress(ends[1]);
	assert_int_equal(ends[1]->posted, 1 - in.done);
	letter_settle(&in);
	assert_int_equal(ends[1]->posted, 0);
}

/* End 1 does not know yet what its name at end 0 is. */
static void ends_open_unknown(void **state)
{
	teardown(state);
	ends_open_as(true, 4 << 20, 1 << 10, EAGER);
	ends[1]->peers[0].joined = false;
	ends[1]->peers[0].self = RANK_NONE;
	atomic_store(&ends[1]->peers[0].credit.self, RANK_NONE);
}

/* A peer that knows its name may send before its receiver knows its own: what has to be fetched or
 * told waits for that. */
static void a_message_of_a_peer_that_has_not_joined_is_received(void **state)
{
	static const uint64_t lengths[] = {0, 8, EAGER, LONG};
	static char got[LONG], sent[LONG];

	fill(sent, sizeof(sent), 5);
	for (unsigned i = 0; i < 8; i++) {
		const uint64_t length = lengths[i / 2];
		struct letter out, in;

		ends_open_unknown(state);
		memset(got, 0, sizeof(got));
		post_send(&out, 0, 1, sent, length, i % 2);
		while (!ends[1]->peers[0].carried) {
			struct message_found found;

			messages_progress(ends[0]);
			ends[1]->peers[0].carried = messages_probe(ends[1], 1, 0, &found);
		}
		post_receive(&in, 1, 1, 0, got, sizeof(got));
		if (length < LONG && i % 2 == 0) {
			letter_settle(&in);
		} else {
			for (unsigned n = 0; n < 10; n++) {
				messages_progress(ends[0]);
				messages_progress(ends[1]);
				nap();
			}
			assert_int_equal(in.done, 0);
		}
		messages_join(ends[1], 0, messages_name(ends[0], 1));
		letter_settle(&in);
		letter_settle(&out);
		assert_int_equal(in.message.result, TRANSFER_DONE);
		assert_int_equal(out.message.result, TRANSFER_DONE);
		assert_int_equal(in.message.length, length);
		assert_memory_equal(got, sent, length);
	}
}

/* Its sender hears that nobody needs its data, as soon as the name for that is known. */
static void a_receive_is_given_up_when_its_sender_has_joined(void **state)
{
	static char got[LONG], sent[LONG];
	struct letter out, in;

	ends_open_unknown(state);
	post_send(&out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	post_receive(&in, 1, 1, 0, got, sizeof(got));
	while (!in.message.acknowledged)
		messages_progress(ends[1]);
	assert_false(messages_abandon(ends[1], &in.message));
	messages_join(ends[1], 0, messages_name(ends[0], 1));
	assert_true(messages_abandon(ends[1], &in.message));
	letter_settle(&out);
	assert_int_equal(in.done, 0);
	assert_int_equal(ends[1]->posted, 0);
}

/* A program that gives up a send has its memory again, and the receiver is told. */
static void sends_are_given_up(void **state)
{
	static const uint64_t lengths[] = {8, LONG};
	static char sent[LONG], got[LONG];
	struct letter out, in;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		post_send(&out, 0, 1, sent, lengths[i], true);
		while (!messages_abandon(ends[0], &out.message))
			messages_progress(ends[0]);
		assert_int_equal(out.done, 0);
		post_receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(in.message.result,
			lengths[i] <= EAGER ? TRANSFER_DONE : TRANSFER_WITHDRAWN);
		settle(nothing_pends, ends[0]);
		assert_int_equal(out.done, 0);
	}
	lengths_arrive();
}

/* A sender has used all names for longer sends, while nobody received two of them. */
static void names_of_longer_sends_come_again(void **state)
{
	enum { COUNT = 5 };
	static char sent[COUNT][LONG], got[LONG];
	struct letter out[COUNT], in;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		fill(sent[i], LONG, i);
		if (i == 2)
			ends[0]->peers[1].names = NAMES - 2;
		post_send(&out[i], 0, i, sent[i], LONG, false);
	}
	settle(nothing_flies, ends[0]);
	for (uint32_t i = 0; i < COUNT; i++) {
		post_receive(&in, 1, i, 0, got, LONG);
		letter_settle(&in);
		letter_settle(&out[i]);
		assert_int_equal(in.message.result, TRANSFER_DONE);
		assert_memory_equal(got, sent[i], LONG);
	}
}

static void receives_beyond_the_table_wait_in_order(void **state)
{
	enum { COUNT = RECEIVES_MAX + 500 };
	static struct letter in[COUNT], out;
	static uint32_t got[COUNT];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++)
		post_receive(&in[i], 1, 1, 0, &got[i], sizeof(got[i]));
	for (uint32_t i = 0; i < COUNT; i++) {
		post_send(&out, 0, 1, &i, sizeof(i), true);
		letter_settle(&out);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		letter_settle(&in[i]);
		assert_int_equal(got[i], i);
	}
}

static void receive_from(struct letter *letter, unsigned at, uint32_t peer, uint64_t bits,
	uint64_t ignore, void *data, uint64_t room)
{
	const struct receive_wish wish = {
		.peer = peer, .bits = bits, .ignore = ignore, .buffer = data, .room = room};

	receive_as(letter, at, &wish);
}

static void data_stands_beside_the_bits(void **state)
{
	static const uint64_t lengths[] = {0, 4, EAGER, LONG};
	static char sent[LONG], got[LONG];
	struct message_found found;
	struct letter out, in;

	(void)state;
	for (unsigned n = 0; n < 4 * 8; n++) {
		const struct send_wish wish = {.bits = 5,
			.buffer = sent,
			.length = lengths[n / 8],
			.data = UINT64_MAX - n,
			.marked = n & 1,
			.synchronous = n & 2};

		fill(sent, sizeof(sent), n);
		if (n & 4)
			post_receive(&in, 1, 5, 0, got, sizeof(got));
		send_as(&out, 0, 1, &wish);
		if (!(n & 4)) {
			settle(nothing_flies, ends[0]);
			assert_true(probe_from(0, 5, &found));
			assert_int_equal(found.marked, n & 1);
			assert_int_equal(found.data, n & 1 ? UINT64_MAX - n : 0);
			post_receive(&in, 1, 5, 0, got, sizeof(got));
		}
		letter_settle(&in);
		letter_settle(&out);
		assert_int_equal(in.message.marked, n & 1);
		assert_true(in.message.data == (n & 1 ? UINT64_MAX - n : 0));
		assert_int_equal(in.message.length, wish.length);
		assert_memory_equal(got, sent, wish.length);
	}
}

static void a_late_send_is_done_when_it_is_delivered(void **state)
{
	struct send_wish wish = {.bits = 1, .buffer = "late", .length = 5};
	struct letter out, in;
	char got[8];

	(void)state;
	send_as(&out, 0, 1, &wish);
	assert_int_equal(out.done, 1);
	wish.late = true;
	send_as(&out, 0, 1, &wish);
	assert_int_equal(out.done, 0);
	letter_settle(&out); /* kept is delivered: nobody receives it */
	for (unsigned i = 0; i < 2; i++) {
		post_receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_string_equal(got, "late");
	}
}

static void a_receive_from_one_peer_gets_no_other_s(void **state)
{
	struct send_wish wish = {.bits = 1, .buffer = "zero", .length = 5};
	struct letter out, in[3];
	struct message_found found;
	char got[3][8];

	(void)state;
	receive_from(&in[0], 1, 1, 0, UINT64_MAX, got[0], sizeof(got[0]));
	send_as(&out, 0, 1, &wish); /* kept */
	settle(nothing_flies, ends[0]);
	assert_false(probe_from(1, 1, &found));
	assert_true(probe_from(0, 1, &found));
	receive_from(&in[1], 1, 1, 1, 0, got[1], sizeof(got[1]));
	assert_int_equal(in[0].done + in[1].done, 0);
	receive_from(&in[2], 1, 0, 1, 0, got[2], sizeof(got[2]));
	letter_settle(&in[2]);
	assert_string_equal(got[2], "zero");
	wish.buffer = "one!";
	for (unsigned i = 0; i < 2; i++) {
		send_as(&out, 1, 1, &wish);
		letter_settle(&in[i]);
		assert_int_equal(in[i].message.peer, 1);
		assert_string_equal(got[i], "one!");
	}
}

static void a_message_that_waits_can_be_moved(void **state)
{
	enum { SHARE = 4 };
	static struct letter out[SHARE + 1], in[SHARE + 1];
	char text[8] = "before", copy[8] = "moved", got[8];

	ends_open(1 << 20, 2 * SHARE);
	for (unsigned i = 0; i <= SHARE; i++)
		post_send(&out[i], 0, i, text, sizeof(text), false);
	assert_int_equal(out[SHARE - 1].done, 1);
	assert_false(messages_move(&out[SHARE - 1].message, copy));
	assert_int_equal(out[SHARE].done, 0);
	assert_true(messages_move(&out[SHARE].message, copy));
	strcpy(text, "after");
	for (unsigned i = 0; i <= SHARE; i++) {
		post_receive(&in[i], 1, i, 0, got, sizeof(got));
		letter_settle(&in[i]);
		assert_string_equal(got, i < SHARE ? "before" : "moved");
	}
	letter_settle(&out[SHARE]);
	teardown(state);
}

/* What the oracle knows: the messages and the receives that wait at an end, in order. */
struct oracle {
	struct {
		uint64_t bits, ignore;
		unsigned number;
	} items[2][64]; /* messages, receives */
	unsigned counts[2];
};

/* Adds an item; returns the number of its match, which goes, or -1. */
static int oracle_add(
	struct oracle *oracle, unsigned kind, uint64_t bits, uint64_t ignore, unsigned number)
{
	unsigned other = 1 - kind, *count = &oracle->counts[other];

	for (unsigned i = 0; i < *count; i++) {
		uint64_t ignored = ignore | oracle->items[other][i].ignore;
		int found = (int)oracle->items[other][i].number;

		if (((bits ^ oracle->items[other][i].bits) & ~ignored) != 0)
			continue;
		memmove(&oracle->items[other][i], &oracle->items[other][i + 1],
			(*count - i - 1) * sizeof(oracle->items[0][0]));
		--*count;
		return found;
	}
	count = &oracle->counts[kind];
	oracle->items[kind][*count].bits = bits;
	oracle->items[kind][*count].ignore = ignore;
	oracle->items[kind][(*count)++].number = number;
	return -1;
}

static void random_messages_match_as_the_oracle_says(void **state)
{
	enum { STEPS = 2000 };
	static struct letter letters[STEPS];
	static char *data[STEPS];
	static unsigned partner[STEPS];
	static uint64_t lengths[STEPS];
	static uint32_t froms[STEPS];
	struct oracle oracles[2] = {0};
	uint64_t random = 1;

	(void)state;
	for (unsigned n = 0; n < STEPS; n++) {
		uint64_t dice = random_next(&random);
		unsigned at = dice & 1, kind = dice >> 1 & 1;
		uint64_t bits = dice >> 2 & 3, ignore = kind ? dice >> 4 & 3 & (dice >> 6) : 0;
		/* The sender and the class stand beside the bits, for the oracle. */
		uint32_t peer = dice >> 10 & 1;
		bool any = kind && dice >> 11 & 1, takes = dice >> 12 & 1;
		const uint8_t class = dice >> 14 & 1;
		struct message_found found;
		struct receive_wish wish;
		int match;

		if (oracles[at].counts[kind] == 60)
			kind = 1 - kind, ignore = 0;
		lengths[n] = kind || dice >> 20 & 1 ? EAGER * 3 : (dice >> 32) % (EAGER * 3);
		data[n] = malloc(EAGER * 3 + 1);
		assert_non_null(data[n]);
		fill(data[n], kind ? 0 : lengths[n], n);
		match = oracle_add(&oracles[at], kind, bits | peer << 8 | (uint64_t) class << 9,
			ignore | (any ? UINT64_C(1) << 8 : 0), n);
		wish = (struct receive_wish){.class = class,
			.peer = any ? PEER_ANY : peer,
			.bits = bits,
			.ignore = ignore,
			.buffer = data[n],
			.room = EAGER * 3};
		froms[n] = peer;
		partner[n] = match < 0 ? UINT32_MAX : (unsigned)match;
		if (match >= 0)
			partner[match] = n;
		letters[n].done = 0;
		if (kind && takes && match >= 0)
			messages_receive_taken(ends[at], &letters[n].message,
				messages_take(ends[at], &wish, &found), data[n], EAGER * 3, NULL);
		else if (kind)
			receive_as(&letters[n], at, &wish);
		else
			send_as(&letters[n], peer, at,
				&(struct send_wish){.class = class,
					.bits = bits,
					.buffer = data[n],
					.length = lengths[n],
					.data = n,
					.marked = dice >> 13 & 1,
					.synchronous = dice >> 8 & 1,
					.late = dice >> 9 & 1});
		/* Synchronous semantics for the oracle: each step has been taken. */
		if (kind && match >= 0)
			letter_settle(&letters[n]);
		settle(nothing_flies, ends[0]);
		settle(nothing_flies, ends[1]);
		if (match >= 0)
			letter_settle(&letters[kind ? (unsigned)match : n]);
		if (match >= 0)
			letter_settle(&letters[kind ? n : (unsigned)match]);
	}
	for (unsigned n = 0; n < STEPS; n++) {
		unsigned other = partner[n];

		if (letters[n].message.kind == ITEM_RECEIVE) {
			assert_int_equal(letters[n].done, other != UINT32_MAX);
			if (other != UINT32_MAX) {
				assert_int_equal(letters[n].message.length, lengths[other]);
				assert_memory_equal(data[n], data[other], lengths[other]);
				assert_int_equal(letters[n].message.peer, froms[other]);
				assert_int_equal(letters[n].message.data,
					letters[n].message.marked ? other : 0);
				assert_int_equal(
					letters[n].message.marked, letters[other].message.marked);
			}
		}
	}
	for (unsigned n = 0; n < STEPS; n++)
		free(data[n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_thread_without_memory_for_its_first_visit_waits),
		CASE(each_length_arrives__posted_or_not_synchronous_or_not),
		CASE(a_message_longer_than_the_room_is_cut),
		CASE(a_probe_finds_the_message_that_a_receive_then_gets),
		CASE(a_receive_is_cancelled_until_it_matches),
		CASE(a_receive_that_finds_the_space_closed_is_cancelled),
		CASE(words_are_told),
		CASE(a_receive_that_fetches_counts_as_posted),
		CASE(a_message_of_a_peer_that_has_not_joined_is_received),
		CASE(a_receive_is_given_up_when_its_sender_has_joined),
		CASE(sends_are_given_up),
		CASE(names_of_longer_sends_come_again),
		CASE(receives_beyond_the_table_wait_in_order),
		CASE(random_messages_match_as_the_oracle_says),
		CASE(data_stands_beside_the_bits),
		CASE(a_late_send_is_done_when_it_is_delivered),
		CASE(a_receive_from_one_peer_gets_no_other_s),
		CASE_OPEN(a_message_that_waits_can_be_moved),
		CASE_OPEN(messages_that_were_dismissed_cost_a_receive_no_question),
		CASE_OPEN(a_synchronous_send_fails_whose_peer_is_dismissed_before_its_ack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
