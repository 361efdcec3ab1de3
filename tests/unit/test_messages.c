/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - two ends of one process send and receive, over loopbacks: where messages live,
 * what happens when a table or memory is full, and random traffic against an oracle.
 * TEST_PROGRESS, TEST_FAULT: other ways to make progress, and losses.
 * Covers: lib/messages/inbound.c, lib/messages/many.c, lib/messages/messages.c,
 * lib/messages/outbound.c, lib/messages/peers.c, lib/messages/shown.c, lib/messages/taken.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <base/clock.h>
#include <base/random.h>
#include <engine/amo.h>
#include <engine/state.h>
#include <engine/statistics.h>
#include <host/inspection.h>
#include <messages/state.h>
#include <wire/message.h>

#include "../nap.h"

#define EAGER   1024
#define LONG    100000
#define SECONDS (20 * SECOND)

static const struct words words = {.entry = "entry",
	.region = "region",
	.queue = "queue",
	.entries = "entries",
	.regions = "regions",
	.queues = "queues",
	.options = &(const struct option_word){0, NULL}};
static const struct topic topics[] = {{"port", NULL, "the device", false, tell_port}};
static struct front front = {.name = "Messages",
	.start = "front_open",
	.closed = -2,
	.topics = topics,
	.topic_count = 1,
	.words = &words};

/* A message and what became of it. */
struct letter {
	struct transfer message;
	unsigned done;
};

static struct messages *ends[2];
static struct process ids[2];
static uint64_t words_told[2];
static bool hostile;    /* end 1: what it does wrong is told of it, */
static uint32_t spare;  /* headers of ends that are opened */
static bool lends_none; /* there is no memory for a copy of a kept message (unexpected.h, U6) */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return lends_none && size == sizeof(struct lent) ? NULL : __real_malloc(size);
}

static void letter_done(void *owner, struct transfer *message)
{
	(void)owner;
	((struct letter *)(void *)message)->done++;
}

static void parts_take(struct transfer *many, const struct transfer *message);
static void part_came(void *owner, struct transfer *many, const struct transfer *message)
{
	(void)owner;
	parts_take(many, message);
}

static void word_told(void *owner, uint32_t peer, uint64_t word)
{
	(void)owner;
	words_told[peer] = word;
}

static void peer_failed(void *owner, uint32_t peer, const char *why)
{
	(void)owner;
	if (!hostile || peer != 1)
		fail_msg("peer %u %s", peer, why);
}

/* strangers: peers come and go, and these two know each other. */
static void ends_open_as(bool strangers, uint64_t memory, uint32_t headers, uint32_t eager)
{
	const char *progress = getenv("TEST_PROGRESS");
	const char *fault = getenv("TEST_FAULT");
	const struct segment_limits none = {0};

	setenv("PTL_IFACE_NAME", "loop:m;loop:m", 1);
	setenv("PTL_PROGRESS", progress ? progress : "inline", 1);
	if (fault)
		setenv("PTL_FAULT", fault, 1);
	else
		unsetenv("PTL_FAULT");
	assert_int_equal(front_open(&front), ANSWER_OK);
	for (unsigned i = 0; i < 2; i++) {
		library_lock();
		assert_int_equal(interface_open(&front, i, 10 + i, &none), ANSWER_OK);
		library_unlock();
		ids[i] = interfaces[i].self;
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct messages_options options = {
			.front = &front,
			.interface = atomic_load(&interfaces[i].handle),
			.space = 1,
			.classes = 2,
			.peers = strangers ? NULL : ids,
			.count = 2,
			.self = i,
			.eager = eager,
			.memory = memory + (uint64_t)(headers + spare) * KEPT_BYTES,
			.headers = headers,
			.spare = spare,
			.done = letter_done,
			.part = part_came,
			.told = word_told,
			.failed = peer_failed,
		};

		assert_int_equal(messages_open(&options, &ends[i]), ANSWER_OK);
	}
	for (unsigned i = 0; strangers && i < 2; i++)
		for (uint32_t peer = 0; peer < 2; peer++) {
			uint32_t rank;

			assert_true(messages_admit(ends[i], ids[peer], &rank));
			assert_int_equal(rank, peer);
		}
	for (unsigned i = 0; strangers && i < 2; i++)
		messages_join(ends[i], 1 - i, messages_name(ends[1 - i], i));
}

static void ends_open(uint64_t memory, uint32_t headers)
{
	ends_open_as(false, memory, headers, EAGER);
}

static int setup(void **state)
{
	(void)state;
	ends_open(4 << 20, 1 << 16);
	return 0;
}

/* Also behind a test that has failed, or has closed both itself. */
static int teardown(void **state)
{
	(void)state;
	if (!ends[0])
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		messages_close(ends[i]);
		ends[i] = NULL;
	}
	front_close(&front);
	return 0;
}

static bool letter_look(void *context)
{
	return ((const struct letter *)context)->done != 0;
}

static bool nothing_flies(void *context)
{
	const struct messages *end = context;

	return messages_flying(end) == 0;
}

static bool nothing_pends(void *context)
{
	return messages_pending(context) == 0;
}

static bool nothing_is_shown(void *context)
{
	const struct messages *end = context;

	return list_empty(&end->unexpected);
}

/* Both ends work until look() is true of `context`. */
static void settle(bool (*look)(void *context), void *context)
{
	uint64_t start = messages_now();

	while (!look(context)) {
		if (messages_progress(ends[0]) + messages_progress(ends[1]) == 0)
			nap();
		assert_true(messages_now() - start < SECONDS);
	}
}

static void letter_settle(struct letter *letter)
{
	settle(letter_look, letter);
	assert_int_equal(letter->done, 1);
}

static void send(struct letter *letter, unsigned from, uint64_t bits, const void *data,
	uint64_t length, bool synchronous)
{
	letter->done = 0;
	messages_send(ends[from], &letter->message, 1 - from, bits, data, length, synchronous);
}

static void receive(struct letter *letter, unsigned at, uint64_t bits, uint64_t ignore, void *data,
	uint64_t room)
{
	letter->done = 0;
	messages_receive(ends[at], &letter->message, bits, ignore, data, room);
}

static void fill(char *data, uint64_t length, unsigned seed)
{
	for (uint64_t i = 0; i < length; i++)
		data[i] = (char)(seed + i * 7 + (i >> 8));
}

/* M5, M12. All that counts in a share has been taken, and each of it once. */
static void credit_is_even(void)
{
	for (unsigned end = 0; end < 2; end++)
		assert_int_equal(ends[end]->peers[1 - end].kept, ends[1 - end]->peers[end].taken);
}

static void each_length_arrives__posted_or_not_synchronous_or_not(void **state)
{
	static const uint64_t lengths[] = {0, 1, EAGER, EAGER + 1, LONG};
	static char sent[LONG], got[LONG];
	struct letter out, in;

	(void)state;
	for (unsigned n = 0; n < 5 * 8; n++) {
		uint64_t length = lengths[n / 8];
		bool posted = n & 1, synchronous = n & 2;
		unsigned to = n >> 2 & 1;

		fill(sent, length, n);
		memset(got, 0, sizeof(got));
		if (posted)
			receive(&in, to, n, 0, got, sizeof(got));
		send(&out, 1 - to, n, sent, length, synchronous);
		if (!posted) {
			settle(nothing_flies, ends[1 - to]);
			assert_int_equal(out.done, length <= EAGER && !synchronous);
			receive(&in, to, n, 0, got, sizeof(got));
		}
		letter_settle(&in);
		letter_settle(&out);
		settle(nothing_pends, ends[1 - to]);
		assert_int_equal(in.message.result, TRANSFER_DONE);
		assert_int_equal(in.message.length, length);
		assert_int_equal(in.message.whole, length);
		assert_int_equal(in.message.peer, 1 - to);
		assert_int_equal(in.message.bits, n);
		assert_memory_equal(got, sent, length);
		credit_is_even();
	}
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
			receive(&in, 1, 5, 0, got, 50);
		send(&out, 0, 5, sent, lengths[n / 2], false);
		settle(n & 1 ? letter_look : nothing_flies, n & 1 ? (void *)&in : (void *)ends[0]);
		if (!(n & 1))
			receive(&in, 1, 5, 0, got, 50);
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
	send(&out[0], 0, 7, "one", 4, false);
	send(&out[1], 0, 8, "eight", 6, false);
	settle(nothing_flies, ends[0]);
	assert_false(messages_probe(ends[1], 9, 0, &found));
	assert_true(messages_probe(ends[1], 8, 0, &found));
	assert_int_equal(found.length, 6);
	assert_true(messages_probe(ends[1], 0, UINT64_MAX, &found));
	assert_int_equal(found.bits, 7);
	assert_int_equal(found.peer, 0);
	receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "eight");
}

/* An end refuses fetches, or serves them again. */
static void fetches_let(unsigned end, bool served)
{
	struct command command = {.kind = served ? COMMAND_PORTAL_ENABLE : COMMAND_PORTAL_DISABLE};

	command.object.index = PORTAL_SIDE;
	assert_int_equal(
		front_visit(&front, &ends[end]->visit, ends[end]->handle, HANDLE_INTERFACE, -1), 0);
	assert_int_equal(visit_call(&ends[end]->visit, &command, NULL, NULL), ANSWER_OK);
	visit_leave(&ends[end]->visit);
}

static struct unexpected *shown;

static bool message_shown(void *context)
{
	shown = messages_show(context, EAGER);
	return shown != NULL;
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
	send(&out[0], 0, 1, one, sizeof(one), false);
	send(&out[1], 0, 2, "two", 4, false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	settle(show_fetches, ends[1]);
	probes_find_the_first(sizeof(one));
	fetches_let(0, true);
	settle(message_shown, ends[1]);
	assert_string_equal(shown->data, "one");
	messages_shown(ends[1], false);
	receive(&in, 1, 0, UINT64_MAX, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	teardown(state);
}

static void a_probe_finds_nothing_of_a_peer_that_was_dismissed(void **state)
{
	static const char one[COPIED_MAX + 1] = "one";
	struct message_found found;
	struct letter out;

	(void)state;
	ends_open_as(true, 0, 1 << 10, EAGER);
	send(&out, 0, 1, one, sizeof(one), false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	settle(show_fetches, ends[1]);
	messages_dismiss(ends[1], 0);
	assert_int_not_equal(ends[1]->show, SHOW_NOTHING);
	assert_false(messages_probe(ends[1], 1, UINT64_MAX, &found));
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
		messages_send_wish(ends[0], &out.message, 1, &wish);
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
		receive(&in, 1, 5, 0, got, sizeof(got));
		letter_settle(&in);
		assert_true(in.message.marked);
		assert_int_equal(in.message.data, 77);
		assert_memory_equal(got, sent, lengths[n]);
		teardown(state);
	}
}

static bool show_fails(void *context)
{
	const struct messages *end = context;

	assert_false(message_shown(context));
	return end->peers[1].failed;
}

/* It is as lost as one that never came, and no receive waits for it. */
static void a_message_that_cannot_be_shown_loses_its_peer(void **state)
{
	struct letter out, in;
	char got[8];

	(void)state;
	ends_open(0, 1 << 16);
	hostile = lends_none = true;
	send(&out, 1, 1, "one", 4, false);
	settle(nothing_flies, ends[1]);
	settle(show_fails, ends[0]);
	assert_int_equal(ends[0]->show, SHOW_NOTHING);
	assert_true(nothing_is_shown(ends[0]));
	assert_int_equal(ends[0]->peers[1].taken, 1); /* it counts in its share no more */
	hostile = lends_none = false;
	messages_send(ends[0], &out.message, 0, 1, "two", 4, false);
	receive(&in, 0, 1, 0, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "two");
	teardown(state);
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
		send(&out, 0, 1, sent, lengths[i], true);
		assert_int_equal(ends[0]->flying, 1);
		messages_dismiss(ends[0], 1);
		settle(letter_look, &out);
		assert_int_equal(out.done, 1);
		assert_int_equal(out.message.result, TRANSFER_FAILED);
		assert_int_equal(messages_pending(ends[0]), 0);
		teardown(state);
	}
}

static void a_receive_is_cancelled_until_it_matches(void **state)
{
	struct letter out, in, other;
	char got[8], more[8];

	(void)state;
	receive(&in, 1, 7, 0, got, sizeof(got));
	assert_true(messages_cancel(ends[1], &in.message));
	receive(&other, 1, 7, 0, more, sizeof(more));
	send(&out, 0, 7, "one", 4, false);
	letter_settle(&other);
	assert_false(messages_cancel(ends[1], &other.message));
	assert_int_equal(in.done, 0);
	assert_string_equal(more, "one");
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
	send(&out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	receive(&in, 1, 1, 0, got, LONG);
	assert_int_equal(ends[1]->posted, 1 - in.done); /* a poll thread may have fetched it */
	while (!in.message.acknowledged)
		messages_progress(ends[1]);
	assert_int_equal(ends[1]->posted, 1 - in.done);
	letter_settle(&in);
	assert_int_equal(ends[1]->posted, 0);
}

static bool probe_found(void *context)
{
	return ((const struct probe *)context)->found;
}

/* End 1 stores to the side Portal of end 0, or loads from it, what it likes. */
static void forge(struct move move, const struct rma_line line)
{
	struct probe probe = {.kind = ITEM_PROBE};
	struct rma_line named = line;

	named.user = item_name(&probe);
	assert_int_equal(
		front_visit(&front, &ends[1]->visit, ends[1]->handle, HANDLE_INTERFACE, -1), 0);
	rma_command_post(ends[1], &move, &named, 0);
	visit_leave(&ends[1]->visit);
	settle(probe_found, &probe);
}

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
	send(&out, 0, 1, "one", 4, true);
	settle(nothing_flies, ends[0]);
	for (unsigned i = 0; i < 3; i++)
		forge_word(WORD_CREDIT, credits[i]);
	forge_word(WORD_USER + 1, 1);
	ends[0]->options.told = NULL; /* a front end that knows no words */
	forge_word(WORD_USER, 1);
	ends[0]->options.told = word_told;
	forge_word(255, 1);
	assert_int_equal(ends[0]->peers[1].credited, 0);
	forge_word(WORD_CREDIT, 1);
	forge_word(WORD_CREDIT, 0);
	assert_int_equal(ends[0]->peers[1].credited, 1);
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
	receive(&in, 1, 1, 0, got, sizeof(got));
	letter_settle(&in);
	assert_string_equal(got, "one");
	settle(nothing_pends, ends[0]);
	each_length_arrives__posted_or_not_synchronous_or_not(state);
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
	receive(&in, 0, 1, 0, got, sizeof(got));
	forge(move, line);
	send(&out, 1, 1, "one", 4, true);
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
	assert_int_equal(
		front_visit(&front, &ends[1]->visit, ends[1]->handle, HANDLE_INTERFACE, -1), 0);
	segment = ends[1]->visit.segment;
	for (uint32_t i = 0; i < 16; i++)
		segment_region(segment, i)->options |= REGION_NO_ACK;
	visit_leave(&ends[1]->visit);
	send(&out[0], 0, 1, text, 8, true);
	send(&out[1], 0, 1, text, sizeof(text), false);
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
	receive(&in, 0, 1, 0, got, sizeof(got));
	letter_settle(&in);
	assert_int_equal(in.message.result, TRANSFER_WITHDRAWN);
	assert_int_equal(in.message.length, 0);
	assert_false(ends[0]->peers[1].failed);
}

static bool show_ends(void *context)
{
	const struct messages *end = context;

	(void)message_shown(context);
	return end->peers[1].taken != 0;
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
	assert_int_equal(ends[0]->peers[1].taken, 1);
	assert_false(ends[0]->peers[1].failed);
	teardown(state);
}

/* A program that gives up a send has its memory again, and the receiver is told. */
static void sends_are_given_up(void **state)
{
	static const uint64_t lengths[] = {8, LONG};
	static char sent[LONG], got[LONG];
	struct letter out, in;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		send(&out, 0, 1, sent, lengths[i], true);
		while (!messages_abandon(ends[0], &out.message))
			messages_progress(ends[0]);
		assert_int_equal(out.done, 0);
		receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(in.message.result,
			lengths[i] <= EAGER ? TRANSFER_DONE : TRANSFER_WITHDRAWN);
		settle(nothing_pends, ends[0]);
		assert_int_equal(out.done, 0);
	}
	each_length_arrives__posted_or_not_synchronous_or_not(state);
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
	messages_send(ends[0], &out.message, 0, bits, sent, length, synchronous);
	receive(&in, 0, bits, 0, got, sizeof(got));
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
		receive(&in[n], 0, word_forge(&random) >> 2, dice & 1 ? UINT64_MAX >> 2 : 0, got[n],
			rooms[n]);
		if (dice & 2)
			self_send(n, dice & 4, (dice >> 32) % sizeof(sent));
		else
			send(&out[n], 0, n % 8, sent, (dice >> 32) % sizeof(sent), dice & 4);
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
	ends[0]->peers[1].share = UINT32_MAX;
	for (unsigned i = 0; i < SENDS_MAX; i++)
		send(&out[i], 0, 1, sent, sizeof(sent), false);
	assert_true(ends[0]->flying <= SENDS_MAX / 2);
	messages_send(ends[0], &other.message, 0, 1, sent, sizeof(sent), false);
	assert_true(other.message.posted);
	teardown(state);
	hostile = false;
	if (fault)
		setenv("TEST_FAULT", fault, 1);
	else
		unsetenv("TEST_FAULT");
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
		receive(&in, 0, 1, 0, NULL, 0);
		letter_settle(&in);
		assert_int_equal(in.message.result, TRANSFER_DONE);
	}
	assert_false(messages_probe(ends[0], 1, 0, &found));
	for (unsigned i = 0; i < 2 * HEADERS; i++)
		self_send(i, i & 1, i);
	teardown(state);
}

#define MANY 3000

/* Sends MANY messages that nobody waits for, then receives them all, in order. */
static void flood(uint64_t length)
{
	static struct letter out[MANY], in;
	static char sent[2 * EAGER], got[2 * EAGER];

	for (unsigned i = 0; i < MANY; i++) {
		fill(sent, length, i);
		send(&out[i], 0, 1, sent, length, false);
		if (i % 64 == 0)
			messages_progress(ends[1]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		fill(sent, length, i);
		receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(in.message.length, length);
		assert_memory_equal(got, sent, length);
	}
	settle(nothing_pends, ends[0]);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(out[i].done, 1);
}

/* Its queue is so long that no event is lost (M6), and needs memory for the events that come. */
static void messages_that_nobody_sends_take_little_memory(void **state)
{
	static unsigned char pages[1 << 16];
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uintptr_t start = (uintptr_t)ends[0]->queue.slots & ~(page - 1);
	const uint64_t bytes = ends[0]->queue.mask;
	uint64_t resident = 0;

	(void)state;
	assert_true(bytes > 4 << 20 && bytes / page < sizeof(pages));
	assert_int_equal(mincore((void *)start, bytes, pages), 0);
	for (uint64_t i = 0; i < bytes / page; i++)
		resident += (pages[i] & 1) * page;
	assert_true(resident <= 1 << 20);
}

/* Its poll core keeps what comes as long as memory is left, and the sender goes on. */
static void a_program_that_makes_no_call_holds_up_no_sender(void **state)
{
	enum { COUNT = 4000, BYTES = 1000 };
	static struct letter out[COUNT], in;
	static char sent[BYTES], got[BYTES];

	(void)state;
	ends_open(16 << 20, 1 << 16);
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t start = messages_now();

		fill(sent, BYTES, i);
		send(&out[i], 0, 1, sent, BYTES, false);
		while (messages_flying(ends[0]) != 0 || !out[i].done) {
			messages_progress(ends[0]);
			assert_true(messages_now() - start < SECONDS);
		}
	}
	for (unsigned i = 0; i < COUNT; i++) {
		fill(sent, BYTES, i);
		receive(&in, 1, 1, 0, got, BYTES);
		letter_settle(&in);
		assert_memory_equal(got, sent, BYTES);
	}
	teardown(state);
}

static void memory_for_unexpected_messages_may_end(void **state)
{
	(void)state;
	ends_open(BLOCK_BYTES, 1 << 16);
	/* Beyond CHUNKS_MAX * CHUNK_SLOTS sends wait with their buffer, which then must stay. */
	for (unsigned round = 0; round < 3; round++) {
		static struct letter out[CHUNKS_MAX * CHUNK_SLOTS + 1000], in;
		static char sent[sizeof(out) / sizeof(out[0])][EAGER], got[EAGER];
		const unsigned count = sizeof(out) / sizeof(out[0]);

		for (unsigned i = 0; i < count; i++) {
			fill(sent[i], EAGER, i + round);
			send(&out[i], 0, 1, sent[i], EAGER, false);
			if (i % 64 == 0)
				for (unsigned n = 0; n < 2; n++)
					messages_progress(ends[n]);
		}
		for (unsigned i = 0; i < count; i++) {
			receive(&in, 1, 1, 0, got, sizeof(got));
			letter_settle(&in);
			assert_memory_equal(got, sent[i], EAGER);
		}
		settle(nothing_pends, ends[0]);
	}
	assert_int_equal(ends[1]->blocks, 1);
	teardown(state);
}

/* A receiver has had no memory, has received what took it, and makes no call any more: the sender's
 * slots are free again. */
static void data_comes_from_its_sender_when_there_is_memory__without_a_call(void **state)
{
	enum { BLOCK = BLOCK_BYTES / EAGER, SLOTS = CHUNKS_MAX * CHUNK_SLOTS, MORE = 500 };
	static struct letter out[BLOCK + SLOTS + MORE], in;
	static char sent[BLOCK + SLOTS + MORE][EAGER], got[EAGER];
	struct letter *last = &out[BLOCK + SLOTS + MORE - 1];
	uint64_t start;

	(void)state;
	ends_open(BLOCK_BYTES, 1 << 16);
	for (unsigned i = 0; i < BLOCK + SLOTS + MORE; i++) {
		fill(sent[i], EAGER, i);
		send(&out[i], 0, 1, sent[i], EAGER, false);
		if (i < BLOCK + SLOTS && i % 64 == 63)
			settle(nothing_flies, ends[0]);
	}
	assert_int_equal(out[BLOCK + SLOTS - 1].done, 1);
	assert_int_equal(out[BLOCK + SLOTS].done, 0);
	for (unsigned i = 0; i < BLOCK; i++) {
		receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	start = messages_now();
	while (!last->done) {
		if (messages_progress(ends[0]) == 0)
			nap();
		assert_true(messages_now() - start < SECONDS);
	}
	for (unsigned i = BLOCK; i < BLOCK + SLOTS + MORE; i++) {
		receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	settle(nothing_pends, ends[0]);
	teardown(state);
}

/* Their data stays at the sender until receives fetch it. */
static void short_messages_take_no_slot_of_longer_ones(void **state)
{
	enum { SLOTS = CHUNKS_MAX * CHUNK_SLOTS };
	static struct letter shorts[SLOTS + 1], longer, last, in;
	static char sent[EAGER], got[EAGER];
	char text[COPIED_MAX + 1] = ""; /* what is shorter has no slot */

	(void)state;
	ends_open(0, 1 << 16);
	fill(sent, EAGER, 9);
	for (unsigned i = 0; i < SLOTS; i++) {
		memcpy(text, &i, sizeof(i));
		send(&shorts[i], 0, 1, text, sizeof(text), false);
	}
	send(&longer, 0, 2, sent, EAGER, false);
	assert_int_equal(longer.done, 1);
	send(&shorts[SLOTS], 0, 1, sent, sizeof(text), false);
	assert_int_equal(shorts[SLOTS].done, 0);
	/* It needs no slot, and passes nobody. */
	send(&last, 0, 1, "last", 5, false);
	assert_int_equal(last.done, 0);
	receive(&in, 1, 2, 0, got, EAGER);
	letter_settle(&in);
	assert_memory_equal(got, sent, EAGER);
	for (unsigned i = 0; i <= SLOTS; i++) {
		receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, i < SLOTS ? (const void *)&i : sent, sizeof(i));
	}
	receive(&in, 1, 1, 0, got, EAGER);
	letter_settle(&in);
	assert_string_equal(got, "last");
	settle(nothing_pends, ends[0]);
	teardown(state);
}

static void headers_that_a_peer_keeps_are_bounded_by_its_share(void **state)
{
	(void)state;
	ends_open(4 << 20, 64);
	for (unsigned round = 0; round < 2; round++) {
		flood(0);
		assert_true(ends[1]->peers[0].taken > 64);
		assert_true(ends[0]->peers[1].kept == ends[1]->peers[0].taken);
	}
	teardown(state);
}

/* Whatever memory an end has, its peers begin with what it expects of theirs, and all that is
 * granted and kept has no more than the memory. */
static void memory_is_divided_among_shares_spare_headers_and_blocks(void **state)
{
	uint64_t dice = 1;

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		struct messages_options one = {
			.count = 1 + (uint32_t)(random_next(&dice) % (n % 2 ? 1 << 17 : 2000)),
			.memory = random_next(&dice) % (UINT64_C(1) << random_next(&dice) % 40)};
		struct messages_options other = one;
		uint64_t bytes;

		one.peers = other.peers = n % 4 < 2 ? ids : NULL;
		other.memory = random_next(&dice) % (UINT64_C(1) << 40);
		messages_divide(&one);
		messages_divide(&other);
		assert_true(one.headers % one.count == 0 && one.headers >= one.count);
		assert_int_equal(one.headers, other.headers);
		bytes = (uint64_t)one.headers * KEPT_BYTES;
		if (one.memory <= bytes) {
			assert_int_equal(one.spare, 0);
			continue;
		}
		/* At least half of the rest is for blocks. */
		bytes += UINT64_C(2) * one.spare * KEPT_BYTES;
		assert_true(bytes <= one.memory);
		assert_true(one.spare == SPARE_MOST || bytes + 2 * KEPT_BYTES > one.memory);
	}
}

static uint32_t share_at(unsigned end, uint32_t peer)
{
	return interfaces[end].engine->spaces[1]->share_of[peer];
}

static bool credit_has_come(void *context)
{
	const struct peer *peer = context;

	return peer->credited == 1;
}

/* M5. The receiver's program makes no call meanwhile. */
static void shares_that_are_used_up_grow_while_headers_are_left(void **state)
{
	enum { LEAST = 2, SPARE = 96, COUNT = 200 };
	static struct letter out[COUNT], in;
	static unsigned sent[COUNT];
	uint64_t start = messages_now(), kept;
	unsigned got;
	uint32_t rank;

	(void)state;
	spare = SPARE;
	ends_open_as(true, 4 << 20, 2 * LEAST, EAGER);
	spare = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		sent[i] = i;
		send(&out[i], 0, 1, &sent[i], sizeof(sent[i]), false);
	}
	do {
		messages_progress(ends[0]);
		kept = ends[0]->peers[1].kept;
		assert_true(messages_now() - start < SECONDS);
	} while (kept < ends[0]->peers[1].share || messages_flying(ends[0]) != 0);
	assert_true(kept >= SPARE / 2 && kept < LEAST + SPARE);
	assert_int_equal(share_at(1, 1), LEAST);
	for (unsigned i = 0; i < COUNT; i++) {
		receive(&in, 1, 1, 0, &got, sizeof(got));
		letter_settle(&in);
		assert_int_equal(got, i);
	}
	send(&out[0], 1, 1, &got, sizeof(got), false);
	settle(nothing_flies, ends[1]);
	receive(&in, 0, 1, 0, &got, sizeof(got));
	letter_settle(&in);
	settle(credit_has_come, &ends[1]->peers[0]);
	settle(nothing_pends, ends[0]);
	settle(nothing_pends, ends[1]);
	assert_true(messages_retire(ends[1], 0));
	assert_true(messages_admit(ends[1], ids[0], &rank));
	assert_int_equal(rank, 0);
	assert_int_equal(ends[1]->peers[0].credited, 0);
	assert_int_equal(share_at(1, 0), LEAST);
	assert_int_equal(interfaces[1].engine->spaces[1]->spare, SPARE);
	teardown(state);
}

static void receives_beyond_the_table_wait_in_order(void **state)
{
	enum { COUNT = RECEIVES_MAX + 500 };
	static struct letter in[COUNT], out;
	static uint32_t got[COUNT];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++)
		receive(&in[i], 1, 1, 0, &got[i], sizeof(got[i]));
	for (uint32_t i = 0; i < COUNT; i++) {
		send(&out, 0, 1, &i, sizeof(i), true);
		letter_settle(&out);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		letter_settle(&in[i]);
		assert_int_equal(got[i], i);
	}
}

/* --- receives from one peer, data beside the bits, ends that are told late, messages taken */

/* Sends from an end to either. */
static void send_as(struct letter *letter, unsigned from, uint32_t to, const struct send_wish *wish)
{
	letter->done = 0;
	messages_send_wish(ends[from], &letter->message, to, wish);
}

static void receive_as(struct letter *letter, unsigned at, const struct receive_wish *wish)
{
	letter->done = 0;
	messages_receive_wish(ends[at], &letter->message, wish);
}

static void receive_from(struct letter *letter, unsigned at, uint32_t peer, uint64_t bits,
	uint64_t ignore, void *data, uint64_t room)
{
	const struct receive_wish wish = {
		.peer = peer, .bits = bits, .ignore = ignore, .buffer = data, .room = room};

	receive_as(letter, at, &wish);
}

static bool probe_from(uint32_t peer, uint64_t bits, struct message_found *found)
{
	return messages_probe_wish(
		ends[1], &(struct receive_wish){.peer = peer, .bits = bits}, found);
}

static struct unexpected *take_from(uint32_t peer, uint64_t bits, struct message_found *found)
{
	return messages_take(ends[1], &(struct receive_wish){.peer = peer, .bits = bits}, found);
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
			receive(&in, 1, 5, 0, got, sizeof(got));
		send_as(&out, 0, 1, &wish);
		if (!(n & 4)) {
			settle(nothing_flies, ends[0]);
			assert_true(probe_from(0, 5, &found));
			assert_int_equal(found.marked, n & 1);
			assert_int_equal(found.data, n & 1 ? UINT64_MAX - n : 0);
			receive(&in, 1, 5, 0, got, sizeof(got));
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
		receive(&in, 1, 1, 0, got, sizeof(got));
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
		send(&out[i], 0, i, text, sizeof(text), false);
	assert_int_equal(out[SHARE - 1].done, 1);
	assert_false(messages_move(&out[SHARE - 1].message, copy));
	assert_int_equal(out[SHARE].done, 0);
	assert_true(messages_move(&out[SHARE].message, copy));
	strcpy(text, "after");
	for (unsigned i = 0; i <= SHARE; i++) {
		receive(&in[i], 1, i, 0, got, sizeof(got));
		letter_settle(&in[i]);
		assert_string_equal(got, i < SHARE ? "before" : "moved");
	}
	letter_settle(&out[SHARE]);
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
		receive(&other, 1, 5, 0, word, sizeof(word));
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
	assert_int_equal(ends[1]->peers[0].taken, 12);
	settle(nothing_is_shown, ends[1]); /* the last fetch may have been lost */
	/* One that nobody asks for goes with the space. */
	send(&out, 0, 5, "rest", 5, false);
	settle(nothing_flies, ends[0]);
	assert_non_null(take_from(0, 5, &found));
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

/* --- receives for many messages */

enum { PARTS = 4000, ROOM = 8 * EAGER, MANY_LEAST = 100 };
static uint64_t part_lengths[PARTS];
static bool part_here[PARTS];
static unsigned parts_here, parts_cut;

/* A buffer, and where the last message that was placed in it ends. */
struct shared {
	struct letter letter; /* first */
	struct many many;
	char memory[ROOM];
	uint32_t parts;
};

static void part_fill(char *data, uint64_t length, unsigned n)
{
	fill(data, length, n * 13 + 5);
}

static void parts_take(struct transfer *many, const struct transfer *message)
{
	struct shared *shared = (struct shared *)(void *)many;
	const uint64_t n = message->data;
	static char wanted[EAGER * 3];

	assert_true(n < PARTS);
	assert_false(part_here[n]);
	assert_int_equal(shared->letter.done, 0);
	part_here[n] = true;
	parts_here++;
	shared->parts++;
	assert_true(shared->parts <= shared->many.most);
	assert_int_equal(message->whole, part_lengths[n]);
	assert_true((char *)message->buffer >= shared->memory);
	assert_true((char *)message->buffer + message->length <= shared->memory + ROOM);
	assert_int_equal(((char *)message->buffer - shared->memory) % 64, 0);
	assert_int_equal(message->result == TRANSFER_CUT, message->length < message->whole);
	parts_cut += message->result == TRANSFER_CUT;
	part_fill(wanted, part_lengths[n], (unsigned)n);
	assert_memory_equal(message->buffer, wanted, message->length);
	memset(message->buffer, 0xee, message->length); /* nobody else's */
}

static void shared_post(struct shared *shared)
{
	const struct receive_wish wish = {.class = 1,
		.peer = PEER_ANY,
		.bits = 7,
		.buffer = shared->memory,
		.room = ROOM,
		.many = &shared->many};

	shared->parts = 0;
	messages_many(&shared->many, ROOM, MANY_LEAST);
	receive_as(&shared->letter, 1, &wish);
}

/* All messages come once, as they were sent, whatever is kept, cut or cancelled. */
static void random_messages_share_buffers(void **state)
{
	enum { BUFFERS = 5 };
	static struct shared buffers[BUFFERS];
	static struct letter out[PARTS];
	static char *data[PARTS];
	unsigned cancelled = 0, used_up = 0;
	uint64_t random = 77;

	(void)state;
	for (unsigned i = 0; i < BUFFERS; i++)
		buffers[i].letter.done = 1;
	parts_here = parts_cut = 0;
	for (unsigned n = 0; n < PARTS; n++) {
		const uint64_t dice = random_next(&random);
		struct shared *shared = &buffers[dice % BUFFERS];

		part_lengths[n] = dice >> 8 & 1 ? (dice >> 16) % 50 : (dice >> 16) % (EAGER * 3);
		part_here[n] = false;
		data[n] = malloc(part_lengths[n] + 1);
		assert_non_null(data[n]);
		part_fill(data[n], part_lengths[n], n);
		send_as(&out[n], 0, 1,
			&(struct send_wish){.class = 1,
				.bits = 7,
				.buffer = data[n],
				.length = part_lengths[n],
				.data = n,
				.marked = true,
				.synchronous = dice >> 9 & 1});
		if (dice >> 10 & 1)
			messages_progress(ends[0]);
		if (dice >> 11 & 1)
			messages_progress(ends[1]);
		if (shared->letter.done == 1)
			shared_post(shared);
		else if ((dice >> 12 & 15) == 0)
			assert_false(messages_cancel(ends[1], &shared->letter.message));
		for (unsigned i = 0; i < BUFFERS; i++)
			if (buffers[i].letter.done == 1 && buffers[i].parts != UINT32_MAX) {
				cancelled += buffers[i].letter.message.result == TRANSFER_WITHDRAWN;
				used_up += buffers[i].letter.message.result == TRANSFER_DONE;
				buffers[i].parts = UINT32_MAX;
			}
	}
	for (uint64_t start = messages_now(); parts_here < PARTS;) {
		for (unsigned i = 0; i < BUFFERS; i++)
			if (buffers[i].letter.done == 1) {
				used_up += buffers[i].parts != UINT32_MAX &&
					   buffers[i].letter.message.result == TRANSFER_DONE;
				shared_post(&buffers[i]);
			}
		if (messages_progress(ends[0]) + messages_progress(ends[1]) == 0)
			nap();
		assert_true(messages_now() - start < SECONDS);
	}
	for (unsigned n = 0; n < PARTS; n++)
		letter_settle(&out[n]);
	for (unsigned i = 0; i < BUFFERS; i++) {
		if (buffers[i].letter.done == 0)
			assert_false(messages_cancel(ends[1], &buffers[i].letter.message));
		letter_settle(&buffers[i].letter);
	}
	assert_int_equal(ends[1]->parts, 0);
	assert_int_equal(ends[1]->posted, 0);
	assert_true(cancelled > 0);
	assert_true(used_up > 100);
	assert_true(parts_cut > 0);
	for (unsigned n = 0; n < PARTS; n++)
		free(data[n]);
}

/* What comes before a buffer is posted is kept with its header, or fetched. */
static void random_messages_share_buffers_without_blocks(void **state)
{
	ends_open(0, 1 << 16);
	random_messages_share_buffers(state);
	assert_int_equal(ends[1]->blocks, 0);
	teardown(state);
}

/* Sends a message of COPIED_MAX bytes that nobody waits for, from end 0. */
static void unanswered_send(struct letter *letter, unsigned number)
{
	char sent[COPIED_MAX];

	memset(sent, (int)number, sizeof(sent));
	send(letter, 0, number, sent, sizeof(sent), false);
	assert_int_equal(letter->done, 1);
}

/* Its data is here, in no block. */
static void unanswered_receive(unsigned number, uint64_t room)
{
	char sent[COPIED_MAX], got[COPIED_MAX];
	struct letter in;

	memset(sent, (int)number, sizeof(sent));
	receive(&in, 1, number, 0, got, room);
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
		receive(&in, 1, i, 0, &got, 1);
		send(&out, 0, i, "", 1, false);
		letter_settle(&in);
	}
	settle(nothing_pends, ends[0]);
	settle(nothing_pends, ends[1]);
	assert_int_equal(share_at(1, 0), SHARE_ENOUGH);
	assert_int_equal(ends[0]->peers[1].share, SHARE_ENOUGH);
	assert_int_equal(share_at(1, 1), SHARE_FIRST);
	assert_true(acks(0) < 10);
	teardown(state);
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
	assert_int_equal(ends[1]->blocks, 0);
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
	assert_int_equal(ends[0]->peers[1].kept, 4);
	assert_int_equal(ends[1]->peers[0].taken, 4);
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
	send(&out, 0, 1, "too long for a copy", 20, false);
	assert_int_equal(out.done, 0);
	receive(&in, 1, 1, 0, got, sizeof(got));
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
	       both[0]->peers[1].credited == both[1]->peers[0].told;
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
		uint64_t left, credited, quiet;

		settle(credit_is_known, ends);
		credited = peer->credited;
		/* When it has heard of credit for the first time it asks for a larger share. */
		left = SHARE / 4 - (peer->kept - peer->credited) - (peer->unanswered == 0);
		for (unsigned i = 0; round % 2 == 1 && i < SHARE; i++)
			receive(&in[i], 1, i, 0, &got, 1);
		for (unsigned i = 0; i < SHARE / 2; i++)
			send(&out[i], 0, i, "", 1, false);
		settle(nothing_flies, ends[0]);
		/* More credit may come meanwhile, and lets one ask again. */
		credited = peer->credited - credited;
		quiet = SHARE / 2 - (acks(0) - before);
		assert_true(left > 0 && quiet >= left - (credited != 0));
		assert_true(quiet <= left + credited);
		for (unsigned i = 0; round % 2 == 0 && i < SHARE / 2; i++)
			receive(&in[i], 1, i, 0, &got, 1);
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
		const uint64_t start = messages_now();

		for (unsigned i = 0; i < COUNT; i++) {
			receive(&in[i], 1, i, 0, &got, 1);
			send(&out[i], 0, i, "", 1, false);
		}
		while (!in[COUNT - 1].done || ends[1]->peers[0].tell.busy) {
			if (messages_progress(ends[1]) == 0)
				nap();
			assert_true(messages_now() - start < SECONDS);
		}
	}
	/* The message that asks for a larger share is answered, which is its credit. */
	assert_int_equal(ends[1]->peers[0].taken, ROUNDS * COUNT - 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_OPEN(name) cmocka_unit_test_teardown(name, teardown) /* it opens both itself */
		TEST(each_length_arrives__posted_or_not_synchronous_or_not),
		TEST(a_message_longer_than_the_room_is_cut),
		TEST(a_probe_finds_the_message_that_a_receive_then_gets),
		TEST(a_receive_is_cancelled_until_it_matches),
		TEST(words_are_told),
		TEST(a_receive_that_fetches_counts_as_posted),
		TEST(a_receive_of_what_was_withdrawn_ends),
		TEST(sends_are_given_up),
		TEST(a_peer_that_forges_words_and_fetches_harms_only_its_own_messages),
		TEST(a_peer_that_sends_anything_harms_nobody_else),
		TEST(a_peer_that_sends_atomics_uses_nothing_up),
		TEST(a_peer_that_answers_with_silence_fails),
		TEST(receives_beyond_the_table_wait_in_order),
		TEST(random_messages_match_as_the_oracle_says),
		TEST(messages_that_nobody_sends_take_little_memory),
		TEST(data_stands_beside_the_bits),
		TEST(a_late_send_is_done_when_it_is_delivered),
		TEST(a_receive_from_one_peer_gets_no_other_s),
		TEST(a_message_that_was_taken_is_one_receive_s),
		TEST(random_messages_share_buffers),
		TEST(a_peer_stays_until_its_short_messages_have_ended),
		TEST_OPEN(a_message_that_waits_can_be_moved),
		TEST_OPEN(a_probe_finds_what_is_fetched_to_be_shown),
		TEST_OPEN(what_was_withdrawn_is_not_shown),
		TEST_OPEN(a_message_that_is_shown_is_known_as_it_was_sent),
		TEST_OPEN(a_message_that_cannot_be_shown_loses_its_peer),
		TEST_OPEN(a_probe_finds_nothing_of_a_peer_that_was_dismissed),
		TEST_OPEN(a_synchronous_send_fails_whose_peer_is_dismissed_before_its_ack),
		TEST_OPEN(a_program_that_makes_no_call_holds_up_no_sender),
		TEST_OPEN(memory_for_unexpected_messages_may_end),
		TEST_OPEN(data_comes_from_its_sender_when_there_is_memory__without_a_call),
		TEST_OPEN(short_messages_take_no_slot_of_longer_ones),
		TEST_OPEN(a_peer_may_flood),
		TEST_OPEN(a_peer_that_answers_nothing_leaves_room_for_messages_to_others),
		TEST_OPEN(headers_that_a_peer_keeps_are_bounded_by_its_share),
		cmocka_unit_test(memory_is_divided_among_shares_spare_headers_and_blocks),
		TEST_OPEN(shares_grow_by_asking),
		TEST_OPEN(shares_that_are_used_up_grow_while_headers_are_left),
		TEST_OPEN(random_messages_share_buffers_without_blocks),
		TEST_OPEN(a_short_message_needs_no_answer),
		TEST_OPEN(a_message_that_is_not_copied_is_answered),
		TEST_OPEN(messages_beyond_a_quarter_of_a_share_are_answered),
		TEST_OPEN(a_program_that_only_sends_hears_of_credit),
		TEST_OPEN(a_refusal_is_told_of_a_message_that_needs_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
