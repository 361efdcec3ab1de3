/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shown.c - a front end looks at messages that no receive waits for, and takes them.
 * Covers: lib/messages/shown.c, lib/messages/taken.c. */
#include "message_rig.h"

#define SMALL 256

static bool memory_ends; /* there is none for a small object */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return memory_ends && size < SMALL ? NULL : __real_malloc(size);
}

/* Probes at end 1 find a message of so many bytes with bits 1, which is before others. */
static void probes_find_the_first(uint64_t length)
{
	struct message_found found = {.bits = 0};

	for (unsigned any = 0; any < 2; any++) {
		assert_true(messages_probe(ends[1], 1, any ? UINT64_MAX : 0, &found));
		assert_int_equal(found.bits, 1);
		assert_int_equal(found.peer, 0);
		assert_int_equal(found.length, length);
	}
}

/* A poll core may be late with its answer to the search: then it is asked again. */
static bool show_fetches(void *context)
{
	const struct messages *end = context;

	(void)message_shown(context);
	return end->show == SHOW_FETCHED;
}

/* Its data is being fetched: it is too long to be kept with its header (M12). */
static void a_probe_finds_what_is_fetched_to_be_shown(void **state)
{
	static const char one[COPIED_MAX + 1] = "one";
	struct letter out[2], in;
	char got[sizeof(one)];

	(void)state;
	ends_open(0, 1 << 16);
	post_send(&out[0], 0, 1, one, sizeof(one), false);
	post_send(&out[1], 0, 2, "two", 4, false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	settle(show_fetches, ends[1]);
	probes_find_the_first(sizeof(one));
	fetches_let(0, true);
	settle(message_shown, ends[1]);
	assert_string_equal(shown->data, "one");
	messages_shown(ends[1], false);
	post_receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	teardown(state);
}

/* Its sender copies longer messages than this end. It was shown, or taken. */
static void a_letter_longer_than_what_this_end_copies_has_room(void **state)
{
	static char sent[COPIED_MAX], got[COPIED_MAX];
	struct message_found found;
	struct unexpected *kept;
	struct letter out, in;

	(void)state;
	fill(sent, sizeof(sent), 9);
	for (unsigned taken = 0; taken < 2; taken++) {
		ends_open(1 << 20, 1 << 16);
		ends[1]->options.eager = 8;
		post_send(&out, 0, 1, sent, sizeof(sent), false);
		settle(nothing_flies, ends[0]);
		if (taken) {
			kept = take_from(0, 1, &found);
			assert_non_null(kept);
		} else {
			settle(message_shown, ends[1]);
			kept = shown;
		}
		assert_int_equal(kept->moved, sizeof(sent));
		assert_true(kept->moved <= kept->room);
		assert_memory_equal(kept->data, sent, sizeof(sent));
		if (taken) {
			messages_discard(ends[1], kept);
		} else {
			messages_shown(ends[1], false);
			post_receive(&in, 1, 1, 0, got, sizeof(got));
			letter_settle(&in);
			assert_memory_equal(got, sent, sizeof(sent));
		}
		teardown(state);
	}
}

static void messages_that_were_seen_are_received_in_their_order(void **state)
{
	char got[4];

	(void)state;
	ends_open(1 << 20, 1 << 16);
	for (unsigned i = 0; i < 2; i++) {
		struct letter out;

		post_send(&out, 0, 1, i == 0 ? "one" : "two", 4, false);
		settle(message_shown, ends[1]);
		messages_shown(ends[1], false);
		letter_settle(&out);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct letter in;

		post_receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_string_equal(got, i == 0 ? "one" : "two");
	}
	teardown(state);
}

static void a_probe_finds_nothing_of_a_peer_that_was_dismissed(void **state)
{
	static const char one[COPIED_MAX + 1] = "one";
	struct message_found found;
	struct letter out;

	(void)state;
	ends_open_as(true, 0, 1 << 10, EAGER);
	post_send(&out, 0, 1, one, sizeof(one), false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	settle(show_fetches, ends[1]);
	messages_dismiss(ends[1], 0); /* a poll core may have ended the fetch by now */
	assert_false(messages_probe(ends[1], 1, UINT64_MAX, &found));
	teardown(state);
}

/* M6. As many receives as there may be are posted, others wait, and what was taken is fetched. */
static void a_fetch_beside_all_receives_lets_no_other_be_posted(void **state)
{
	enum { COUNT = RECEIVES_MAX + 10 };
	static const char one[EAGER + 1] = "one";
	static struct letter in[COUNT];
	struct letter out, taken = {.done = 0};
	struct message_found found;
	char got[sizeof(one)];

	(void)state;
	ends_open(0, 1 << 16);
	for (unsigned i = 0; i < COUNT; i++)
		post_receive(&in[i], 1, 2, 0, got, 1);
	post_send(&out, 0, 1, one, sizeof(one), false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	messages_receive_taken(
		ends[1], &taken.message, take_from(0, 1, &found), got, sizeof(got), NULL);
	messages_progress(ends[1]);
	assert_int_equal(ends[1]->posted, RECEIVES_MAX + 1);
	assert_int_equal(interfaces[1].engine->spaces[1]->posted_made, RECEIVES_MAX);
	fetches_let(0, true);
	letter_settle(&taken);
	assert_string_equal(got, "one");
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(messages_cancel(ends[1], &in[i].message));
	teardown(state);
}

/* Its data was kept with it, or is fetched to be shown. */
static void a_message_that_is_shown_is_known_as_it_was_sent(void **state)
{
	static const uint64_t lengths[] = {COPIED_MAX, COPIED_MAX + 1};
	static char sent[COPIED_MAX + 1], got[COPIED_MAX + 1];

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		const struct send_wish wish = {.bits = 5,
			.buffer = sent,
			.length = lengths[n],
			.data = 77,
			.marked = true};
		struct message_found found;
		struct letter out, in;

		ends_open(0, 1 << 16);
		fill(sent, sizeof(sent), n);
		messages_send(ends[0], &out.message, 1, &wish);
		settle(nothing_flies, ends[0]);
		settle(message_shown, ends[1]);
		assert_int_equal(shown->transfer.peer, 0);
		assert_int_equal(shown->transfer.bits, 5);
		assert_int_equal(shown->transfer.whole, lengths[n]);
		assert_int_equal(shown->moved, lengths[n]);
		assert_memory_equal(shown->data, sent, lengths[n]);
		assert_int_equal(ends[1]->posted, 0);
		assert_true(messages_has_carried(ends[1], 0));
		messages_shown(ends[1], false);
		assert_true(messages_probe(ends[1], 5, 0, &found));
		assert_true(found.marked);
		assert_int_equal(found.data, 77);
		post_receive(&in, 1, 5, 0, got, sizeof(got));
		letter_settle(&in);
		assert_true(in.message.marked);
		assert_int_equal(in.message.data, 77);
		assert_memory_equal(got, sent, lengths[n]);
		assert_int_equal(ends[1]->peers[0].credit.taken, 1);
		teardown(state);
	}
}

/* Its sender waits for a receive, not for the fetch. */
static void a_synchronous_message_that_is_fetched_to_be_shown_is_not_done(void **state)
{
	static const char one[COPIED_MAX + 1] = "one";
	struct letter out, in;
	char got[sizeof(one)];

	(void)state;
	ends_open(0, 1 << 16);
	post_send(&out, 0, 1, one, sizeof(one), true);
	settle(message_shown, ends[1]);
	assert_string_equal(shown->data, "one");
	messages_progress(ends[0]);
	assert_int_equal(out.done, 0);
	messages_shown(ends[1], false);
	post_receive(&in, 1, 1, 0, got, sizeof(got));
	letter_settle(&in);
	letter_settle(&out);
	assert_string_equal(got, "one");
	teardown(state);
}

/* M12. What is kept of it is lent to the program. */
static void a_short_message_that_was_kept_is_received_without_memory(void **state)
{
	struct letter out, in;
	char got[8];

	(void)state;
	ends_open(0, 1 << 16);
	post_send(&out, 1, 1, "one", 4, false);
	settle(nothing_pends, ends[1]);
	memory_ends = true;
	post_receive(&in, 0, 1, 0, got, sizeof(got));
	letter_settle(&in);
	memory_ends = false;
	assert_int_equal(in.message.result, TRANSFER_DONE);
	assert_string_equal(got, "one");
	teardown(state);
}

static bool show_ends(void *context)
{
	const struct messages *end = context;

	(void)message_shown(context);
	return end->peers[1].credit.taken != 0;
}

/* M5. Its peer has given it up, and is still told that it was taken, once. */
static void what_was_withdrawn_is_not_shown(void **state)
{
	static char data[COPIED_MAX + 1];
	const struct move move = {
		.portal = PORTAL_MATCH, .match_bits = 1, .value = UINT64_C(5) << 32};
	const struct rma_line line = {.local = (uintptr_t)data,
		.length = sizeof(data),
		.message = MESSAGE_STORE,
		.want = WANT_EVENT};

	(void)state;
	ends_open(0, 1 << 16);
	forge(move, line);
	settle(show_ends, ends[0]);
	settle(nothing_is_shown, ends[0]);
	assert_null(shown);
	assert_int_equal(ends[0]->peers[1].credit.taken, 1);
	assert_false(ends[0]->peers[1].failed);
	teardown(state);
}

static void a_message_that_was_taken_is_one_receive_s(void **state)
{
	static const uint64_t lengths[] = {0, EAGER, LONG};
	static char sent[LONG], got[LONG];
	struct unexpected *taken;
	struct message_found found;
	struct letter out, in, other;
	char word[8];

	(void)state;
	assert_null(take_from(PEER_ANY, 5, &found));
	for (unsigned n = 0; n < 3 * 4; n++) {
		const struct send_wish wish = {.bits = 5,
			.buffer = sent,
			.length = lengths[n / 4],
			.data = n,
			.marked = true,
			.synchronous = n & 1};

		fill(sent, sizeof(sent), n);
		send_as(&out, 0, 1, &wish);
		settle(nothing_flies, ends[0]);
		taken = take_from(0, 5, &found);
		assert_non_null(taken);
		assert_int_equal(found.length, wish.length);
		assert_int_equal(found.data, n);
		assert_int_equal(out.done, !wish.synchronous && wish.length <= EAGER);
		post_receive(&other, 1, 5, 0, word, sizeof(word));
		assert_int_equal(other.done, 0);
		if (n & 2) {
			messages_discard(ends[1], taken);
		} else {
			in.done = 0;
			messages_receive_taken(ends[1], &in.message, taken, got, sizeof(got), NULL);
			assert_false(messages_cancel(ends[1], &in.message));
			letter_settle(&in);
			assert_int_equal(in.message.length, wish.length);
			assert_int_equal(in.message.bits, 5);
			assert_int_equal(in.message.data, n);
			assert_memory_equal(got, sent, wish.length);
		}
		letter_settle(&out);
		settle(nothing_pends, ends[0]);
		assert_int_equal(other.done, 0);
		assert_true(messages_cancel(ends[1], &other.message));
	}
	/* Credit has come back for all, and none is left. */
	assert_int_equal(ends[1]->peers[0].credit.taken, 12);
	settle(nothing_is_shown, ends[1]); /* the last fetch may have been lost */
	/* One that nobody asks for goes with the space. */
	post_send(&out, 0, 5, "rest", 5, false);
	settle(nothing_flies, ends[0]);
	assert_non_null(take_from(0, 5, &found));
}

/* The receives of a program that has posted as many as there may be; another one waits. */
static struct letter crowd[RECEIVES_MAX + 1], caller;

/* When the first of them ends, a message for another one comes. */
static void another_comes(struct letter *letter)
{
	letter_ended = NULL;
	assert_ptr_equal(letter, &crowd[0]);
	post_send(&caller, 0, 1, "two", 4, false);
	if (ends[1]->visit.interface->inlined)
		(void)interface_drive();
}

/* The message that a receive gets, which has waited for a place, is not the one that is taken. */
static void what_is_taken_is_what_was_found(void **state)
{
	static char sent[EAGER], got[EAGER];
	struct unexpected *taken;
	struct message_found found;
	struct letter out, in, waits;
	char word[8];

	(void)state;
	fill(sent, sizeof(sent), 9);
	for (unsigned i = 0; i <= RECEIVES_MAX; i++)
		post_receive(&crowd[i], 1, 1, 0, word, sizeof(word));
	post_receive(&waits, 1, 7, 0, got, sizeof(got));
	post_send(&out, 0, 7, "a", 1, true);
	post_send(&out, 0, 7, sent, sizeof(sent), false);
	settle(nothing_flies, ends[0]);
	post_send(&out, 0, 1, "one", 4, false);
	letter_ended = another_comes;
	taken = take_from(0, 7, &found);
	/* Else frames may take longer. */
	assert_true(getenv("TEST_PROGRESS") || getenv("TEST_FAULT") || !letter_ended);
	letter_ended = NULL;
	assert_non_null(taken);
	in.done = 0;
	memset(got, 0, sizeof(got));
	messages_receive_taken(ends[1], &in.message, taken, got, sizeof(got), NULL);
	letter_settle(&in);
	assert_int_equal(in.message.length, found.length);
	assert_int_equal(in.message.whole, found.length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_message_that_was_taken_is_one_receive_s),
		CASE(what_is_taken_is_what_was_found),
		CASE_OPEN(a_probe_finds_what_is_fetched_to_be_shown),
		CASE_OPEN(a_fetch_beside_all_receives_lets_no_other_be_posted),
		CASE_OPEN(what_was_withdrawn_is_not_shown),
		CASE_OPEN(a_message_that_is_shown_is_known_as_it_was_sent),
		CASE_OPEN(a_synchronous_message_that_is_fetched_to_be_shown_is_not_done),
		CASE_OPEN(a_short_message_that_was_kept_is_received_without_memory),
		CASE_OPEN(a_letter_longer_than_what_this_end_copies_has_room),
		CASE_OPEN(messages_that_were_seen_are_received_in_their_order),
		CASE_OPEN(a_probe_finds_nothing_of_a_peer_that_was_dismissed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
