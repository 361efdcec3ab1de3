/* SPDX-License-Identifier: BSD-3-Clause */
/* test_backlog.c - thousands of messages that no receive waits for: where they live when a share, a
 * table or memory is full.
 * Covers: lib/messages/blocks.c, lib/messages/inbound.c, lib/messages/messages.c,
 * lib/messages/outbound.c. */
#include <sys/mman.h>
#include <unistd.h>

#include "message_rig.h"

#define MANY 3000

/* Sends MANY messages that nobody waits for, then receives them all, in order. */
static void flood(uint64_t length)
{
	static struct letter out[MANY], in;
	static char sent[2 * EAGER], got[2 * EAGER];

	for (unsigned i = 0; i < MANY; i++) {
		fill(sent, length, i);
		post_send(&out[i], 0, 1, sent, length, false);
		if (i % 64 == 0)
			messages_progress(ends[1]);
	}
	for (unsigned i = 0; i < MANY; i++) {
		fill(sent, length, i);
		post_receive(&in, 1, 1, 0, got, sizeof(got));
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

/* Its poll core keeps what comes of both classes as long as memory is left: the sender goes on. */
static void a_program_that_makes_no_call_holds_up_no_sender(void **state)
{
	enum { COUNT = 4000, BYTES = 1000 };
	static struct letter out[COUNT], in;
	static char sent[BYTES], got[BYTES];

	(void)state;
	ends_open(16 << 20, 1 << 16);
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t start = library_now();

		fill(sent, BYTES, i);
		send_as(&out[i], 0, 1,
			&(const struct send_wish){
				.class = i % 2, .bits = 1, .buffer = sent, .length = BYTES});
		while (messages_flying(ends[0]) != 0 || !out[i].done) {
			messages_progress(ends[0]);
			assert_true(library_now() - start < SECONDS);
		}
	}
	for (unsigned i = 0; i < COUNT; i++) {
		fill(sent, BYTES, i);
		receive_as(&in, 1,
			&(const struct receive_wish){.class = i % 2,
				.peer = 0,
				.bits = 1,
				.buffer = got,
				.room = BYTES});
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
			post_send(&out[i], 0, 1, sent[i], EAGER, false);
			if (i % 64 == 0)
				for (unsigned n = 0; n < 2; n++)
					messages_progress(ends[n]);
		}
		for (unsigned i = 0; i < count; i++) {
			post_receive(&in, 1, 1, 0, got, sizeof(got));
			letter_settle(&in);
			assert_memory_equal(got, sent[i], EAGER);
		}
		settle(nothing_pends, ends[0]);
	}
	assert_int_equal(ends[1]->blocks_made, 1);
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
		post_send(&out[i], 0, 1, sent[i], EAGER, false);
		if (i < BLOCK + SLOTS && i % 64 == 63)
			settle(nothing_flies, ends[0]);
	}
	assert_int_equal(out[BLOCK + SLOTS - 1].done, 1);
	assert_int_equal(out[BLOCK + SLOTS].done, 0);
	/* Nothing overtakes those that wait. */
	assert_false(messages_inject(ends[0], 1, &(const struct send_wish){.bits = 1}));
	for (unsigned i = 0; i < BLOCK; i++) {
		post_receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	start = library_now();
	while (!last->done) {
		if (messages_progress(ends[0]) == 0)
			nap();
		assert_true(library_now() - start < SECONDS);
	}
	for (unsigned i = BLOCK; i < BLOCK + SLOTS + MORE; i++) {
		post_receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	settle(nothing_pends, ends[0]);
	teardown(state);
}

/* C7. A receive has asked for its data, was refused, and its program makes no call any more. */
static void a_fetch_that_was_refused_is_repeated__without_a_call(void **state)
{
	static char sent[LONG], got[LONG];
	struct letter out, in;
	uint64_t start;

	(void)state;
	fill(sent, LONG, 1);
	post_send(&out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	post_receive(&in, 1, 1, 0, got, LONG);
	for (unsigned i = 0; i < 20; i++) {
		messages_progress(ends[1]);
		nap();
	}
	fetches_let(0, true);
	start = library_now();
	while (!out.done) {
		if (messages_progress(ends[0]) == 0)
			nap();
		assert_true(library_now() - start < SECONDS);
	}
	letter_settle(&in);
	assert_memory_equal(got, sent, LONG);
	settle(nothing_pends, ends[0]);
}

/* A program gives up a receive whose data is refused: its sender hears of it later. */
static void fetch_give_up(const struct receive_wish *wish)
{
	static char sent[LONG];
	struct letter out, in;
	uint64_t start;

	fill(sent, LONG, 1);
	post_send(&out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	receive_as(&in, 1, wish);
	start = library_now();
	while (!messages_abandon(ends[1], &in.message)) {
		for (unsigned i = 0; i < 2; i++)
			messages_progress(ends[i]);
		assert_true(library_now() - start < SECONDS);
	}
	assert_int_equal(in.done, 0);
	assert_int_equal(ends[1]->posted, 0);
	assert_int_equal(ends[1]->vectors, 0);
	assert_int_equal(ends[1]->peers[0].fetches, 0);
	fetches_let(0, true);
	letter_settle(&out);
	settle(nothing_pends, ends[0]);
}

/* In one piece, and in two. */
static void a_receive_whose_fetch_is_refused_is_given_up(void **state)
{
	struct map_vector *vector = calloc(1, map_vector_size(2));
	static char got[LONG];

	(void)state;
	assert_non_null(vector);
	map_vector_add(vector, got, LONG / 2);
	map_vector_add(vector, got + LONG / 2, LONG / 2);
	fetch_give_up(
		&(const struct receive_wish){.peer = 0, .bits = 1, .buffer = got, .room = LONG});
	fetch_give_up(&(const struct receive_wish){.peer = 0, .bits = 1, .vector = vector});
	assert_int_equal(got[0], 0);
	free(vector);
	lengths_arrive();
}

static bool fetch_is_late(void *context)
{
	return messages_is_late(context);
}

/* A receive into two pieces gets a message whose fetch waits for a region. */
static struct map_vector *fetch_wait(
	struct letter *out, const char *sent, struct letter *in, char *got)
{
	struct map_vector *vector = calloc(1, map_vector_size(2));

	assert_non_null(vector);
	map_vector_add(vector, got, LONG / 2);
	map_vector_add(vector, got + LONG / 2, LONG / 2);
	post_send(out, 0, 1, sent, LONG, false);
	settle(nothing_flies, ends[0]);
	ends[1]->vectors = VECTORS;
	receive_as(in, 1, &(const struct receive_wish){.peer = 0, .bits = 1, .vector = vector});
	settle(fetch_is_late, ends[1]);
	return vector;
}

static void a_receive_whose_fetch_waits_is_given_up(void **state)
{
	static char sent[LONG], got[LONG];
	struct map_vector *vector;
	struct letter out, in;

	(void)state;
	fill(sent, LONG, 1);
	vector = fetch_wait(&out, sent, &in, got);
	assert_true(messages_abandon(ends[1], &in.message));
	ends[1]->vectors = 0;
	free(vector);
	letter_settle(&out);
	assert_int_equal(in.done, 0);
	assert_int_equal(got[0], 0);
	assert_int_equal(ends[1]->posted, 0);
	assert_int_equal(ends[1]->peers[0].fetches, 0);
	settle(nothing_pends, ends[0]);
	lengths_arrive();
}

/* Nothing else waits, and no event comes that says when there is a region. */
static void a_fetch_that_waits_for_a_region_goes_on_when_there_is_one(void **state)
{
	static char sent[LONG], got[LONG];
	struct map_vector *vector;
	struct letter out, in;

	(void)state;
	fill(sent, LONG, 1);
	vector = fetch_wait(&out, sent, &in, got);
	ends[1]->vectors = 0;
	letter_settle(&in);
	letter_settle(&out);
	assert_memory_equal(got, sent, LONG);
	assert_false(ends[1]->waits);
	free(vector);
}

/* The poll core fetches the data of a message, without an answer, when a receive gets it. */
static void a_receive_whose_message_is_being_fetched_is_given_up(void **state)
{
	enum { BLOCK = BLOCK_BYTES / EAGER, MORE = 20 };
	static struct letter out[BLOCK + MORE], in;
	static char sent[BLOCK + MORE][EAGER], got[EAGER];
	uint64_t start;

	(void)state;
	ends_open(BLOCK_BYTES, 1 << 16);
	for (unsigned i = 0; i < BLOCK + MORE; i++) {
		fill(sent[i], EAGER, i);
		post_send(&out[i], 0, 1, sent[i], EAGER, false);
		if (i % 64 == 63)
			settle(nothing_flies, ends[0]);
	}
	settle(nothing_flies, ends[0]);
	fetches_let(0, false);
	for (unsigned i = 0; i < BLOCK; i++) {
		post_receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	for (unsigned i = 0; i < MORE / 2; i++) {
		post_receive(&in, 1, 0, 1, got, EAGER);
		start = library_now();
		while (!messages_abandon(ends[1], &in.message)) {
			messages_progress(ends[1]);
			assert_true(library_now() - start < SECONDS);
		}
		assert_int_equal(in.done, 0);
		assert_int_equal(in.message.bits, 1);
	}
	assert_memory_equal(got, sent[BLOCK - 1], EAGER);
	fetches_let(0, true);
	for (unsigned i = BLOCK + MORE / 2; i < BLOCK + MORE; i++) {
		post_receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, sent[i], EAGER);
	}
	settle(nothing_pends, ends[0]);
	settle(nothing_pends, ends[1]);
	assert_int_equal(ends[1]->posted, 0);
	assert_int_equal(ends[1]->peers[0].credit.taken, BLOCK + MORE);
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
		post_send(&shorts[i], 0, 1, text, sizeof(text), false);
	}
	post_send(&longer, 0, 2, sent, EAGER, false);
	assert_int_equal(longer.done, 1);
	post_send(&shorts[SLOTS], 0, 1, sent, sizeof(text), false);
	assert_int_equal(shorts[SLOTS].done, 0);
	/* It needs no slot, and passes nobody. */
	post_send(&last, 0, 1, "last", 5, false);
	assert_int_equal(last.done, 0);
	post_receive(&in, 1, 2, 0, got, EAGER);
	letter_settle(&in);
	assert_memory_equal(got, sent, EAGER);
	for (unsigned i = 0; i <= SLOTS; i++) {
		post_receive(&in, 1, 1, 0, got, EAGER);
		letter_settle(&in);
		assert_memory_equal(got, i < SLOTS ? (const void *)&i : sent, sizeof(i));
	}
	post_receive(&in, 1, 1, 0, got, EAGER);
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
		assert_true(ends[1]->peers[0].credit.taken > 64);
		assert_true(peer_kept(&ends[0]->peers[1]) == ends[1]->peers[0].credit.taken);
	}
	teardown(state);
}

/* The data of short messages lie with their headers (M12), whose places are used again. */
static void short_messages_need_no_block(void **state)
{
	static struct letter out[MANY], in;
	static char sent[MANY][8], got[8];

	(void)state;
	ends_open(0, 64);
	for (unsigned i = 0; i < MANY; i++) {
		fill(sent[i], sizeof(sent[i]), i);
		post_send(&out[i], 0, 1, sent[i], sizeof(sent[i]), false);
	}
	for (unsigned i = 0; i < MANY; i++) {
		post_receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		assert_memory_equal(got, sent[i], sizeof(got));
	}
	settle(nothing_pends, ends[0]);
	assert_int_equal(ends[1]->blocks_made, 0);
	teardown(state);
}

/* M6. A receiver keeps longer sends, and fetches none. */
static void longer_sends_that_are_kept_leave_entries_for_others(void **state)
{
	static struct letter out[ENTRIES], other;
	static char sent[EAGER + 1];

	(void)state;
	ends_open(4 << 20, 4 * ENTRIES);
	for (unsigned i = 0; i < ENTRIES; i++) {
		post_send(&out[i], 0, 1, sent, sizeof(sent), false);
		if (i % 64 == 63)
			settle(nothing_flies, ends[0]);
	}
	assert_int_equal(ends[1]->peers[0].credit.taken, 0);
	assert_false(out[ENTRIES - 1].message.posted);
	send_as(&other, 0, 0,
		&(const struct send_wish){.bits = 1, .buffer = sent, .length = sizeof(sent)});
	assert_true(other.message.posted);
	teardown(state);
}

/* The same of regions, which those of several pieces need. */
static void longer_sends_of_pieces_that_are_kept_leave_regions_for_others(void **state)
{
	static struct letter out[VECTORS], other;
	static char sent[2 * EAGER], got[2 * EAGER];
	struct map_vector *vector = calloc(1, map_vector_size(2));
	const struct send_wish wish = {.bits = 1, .vector = vector};

	(void)state;
	assert_non_null(vector);
	map_vector_add(vector, sent, EAGER);
	map_vector_add(vector, sent + EAGER + 8, 8);
	for (unsigned i = 0; i < VECTORS; i++)
		send_as(&out[i], 0, 1, &wish);
	assert_false(out[VECTORS - 1].message.posted);
	send_as(&other, 0, 0, &wish);
	assert_true(other.message.posted);
	for (unsigned i = 0; i < VECTORS; i++) {
		struct letter in;

		post_receive(&in, 1, 1, 0, got, sizeof(got));
		letter_settle(&in);
		letter_settle(&out[i]);
	}
	assert_int_equal(ends[0]->peers[1].vectors, 0);
	assert_int_equal(ends[0]->peers[1].longer, 0);
	teardown(state);
	free(vector);
}

static uint32_t blocks_linked(const struct messages *end)
{
	return end->linked[0] + end->linked[1];
}

static bool block_is_full(void *context)
{
	return blocks_linked(context) < BLOCKS_LINKED;
}

/* The block after one that is full is linked later. */
static void a_block_that_finds_no_entry_is_linked_when_there_is_one(void **state)
{
	static uint32_t taken[ENTRIES];
	static char data[EAGER];
	const struct segment *segment;
	struct letter out;
	uint32_t count = 0;

	(void)state;
	block = sizeof(data);
	ends_open(2 * BLOCKS_LINKED * block, 1 << 10);
	block = 0;
	assert_int_equal(blocks_linked(ends[1]), BLOCKS_LINKED);
	segment = ends[1]->visit.segment;
	while ((taken[count] = segment_take(segment, segment->free_entries)) != INDEX_NONE)
		count++;
	post_send(&out, 0, 1, data, sizeof(data), false);
	settle(block_is_full, ends[1]);
	while (count > 0)
		segment_give(segment, segment->free_entries, taken[--count]);
	end_visit(1);
	blocks_renew(ends[1]);
	visit_leave(&ends[1]->visit);
	assert_int_equal(blocks_linked(ends[1]), BLOCKS_LINKED);
	assert_int_equal(ends[1]->blocks_made, BLOCKS_LINKED + 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(messages_that_nobody_sends_take_little_memory),
		CASE_OPEN(a_program_that_makes_no_call_holds_up_no_sender),
		CASE_OPEN(memory_for_unexpected_messages_may_end),
		CASE_OPEN(data_comes_from_its_sender_when_there_is_memory__without_a_call),
		CASE(a_fetch_that_was_refused_is_repeated__without_a_call),
		CASE(a_receive_whose_fetch_is_refused_is_given_up),
		CASE(a_receive_whose_fetch_waits_is_given_up),
		CASE(a_fetch_that_waits_for_a_region_goes_on_when_there_is_one),
		CASE_OPEN(a_receive_whose_message_is_being_fetched_is_given_up),
		CASE_OPEN(short_messages_take_no_slot_of_longer_ones),
		CASE_OPEN(headers_that_a_peer_keeps_are_bounded_by_its_share),
		CASE_OPEN(short_messages_need_no_block),
		CASE_OPEN(longer_sends_that_are_kept_leave_entries_for_others),
		CASE(longer_sends_of_pieces_that_are_kept_leave_regions_for_others),
		CASE_OPEN(a_block_that_finds_no_entry_is_linked_when_there_is_one),
		cmocka_unit_test(memory_is_divided_among_shares_spare_headers_and_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
