/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pair.c - tests of pmd-glue/pair.c: frames of every shape, ends, hostile peers, threads. */
#include "../nap.h"
#include "../sanitized.h"
#include "pair_rig.h"

#include <pthread.h>
#include <sys/mman.h>

#include <base/guard.h>
#include <base/random.h>
#include <pmd-glue/pool.h>

#define FRAMES_TRIED 20000u /* a trial comes after some 600 */
#define BURST        32u
#define HELD_MOST    40u
#define ROUNDS       (SANITIZED ? 1000u : 4000u)
#define THREAD_ROUND (SANITIZED ? 15000u : 60000u)
#define SCRIBBLES    (SANITIZED ? 12500u : 50000u)
#define SAME         (1u << 30) /* of a word (pair.h, P9) */

/* --- everything at random, beside a queue of copies --- */

struct copy {
	struct copy *next;
	uint32_t length;
	uint8_t bytes[];
};

struct oracle {
	struct copy *first;
	struct copy **end;
	struct held {
		struct rte_mbuf *frame;
		struct copy *copy;
	} held[HELD_MOST];
	unsigned count;
};

static void oracle_put(struct oracle *oracle, struct copy *copy)
{
	copy->next = NULL;
	*oracle->end = copy;
	oracle->end = &copy->next;
}

static struct copy *copy_make(const struct rte_mbuf *frame)
{
	struct copy *copy = malloc(sizeof(*copy) + frame->pkt_len);

	assert_non_null(copy);
	copy->length = frame->pkt_len;
	frame_bytes(frame, copy->bytes);
	return copy;
}

static void send_random(struct oracle *oracle, struct pair *pair)
{
	struct rte_mbuf *frames[BURST];
	struct copy *copies[BURST];
	unsigned count = random_below(BURST + 1), sent;

	for (unsigned n = 0; n < count; n++) {
		frames[n] = frame_random();
		copies[n] = copy_make(frames[n]);
	}
	sent = pair_transmit(pair, frames, (uint16_t)count);
	assert_true(sent <= count);
	for (unsigned n = 0; n < sent; n++)
		oracle_put(oracle, copies[n]);
	for (unsigned n = sent; n < count; n++) {
		rte_pktmbuf_free(frames[n]);
		free(copies[n]);
	}
}

/* Is a frame what it should be? */
static void frame_verify(const struct rte_mbuf *frame, const struct copy *copy)
{
	static uint8_t bytes[FRAME_SIZE];

	assert_true(frame_shaped(frame));
	assert_int_equal(frame->pkt_len, copy->length);
	frame_bytes(frame, bytes);
	assert_memory_equal(bytes, copy->bytes, copy->length);
}

static void held_free(struct oracle *oracle, unsigned n)
{
	struct held held = oracle->held[n];

	/* It is still what it was. */
	frame_verify(held.frame, held.copy);
	rte_pktmbuf_free(held.frame);
	free(held.copy);
	oracle->held[n] = oracle->held[--oracle->count];
}

static void take_random(struct oracle *oracle, struct pair *pair)
{
	struct rte_mbuf *frames[BURST];
	unsigned taken = pair_receive(pair, frames, (uint16_t)random_below(BURST + 1));

	for (unsigned n = 0; n < taken; n++) {
		struct copy *copy = oracle->first;

		assert_non_null(copy);
		oracle->first = copy->next;
		if (!oracle->first)
			oracle->end = &oracle->first;
		frame_verify(frames[n], copy);
		if (oracle->count == HELD_MOST)
			held_free(oracle, random_below(HELD_MOST));
		oracle->held[oracle->count++] = (struct held){frames[n], copy};
	}
	if (taken == 0 || random_below(2))
		while (oracle->count > 0 && random_below(20) > 0)
			held_free(oracle, random_below(oracle->count));
}

static void pair__carries_frames_of_every_length_and_shape_in_order(void **state)
{
	struct ends ends = ends_open();
	struct oracle there = {.end = &there.first}, back = {.end = &back.first};
	struct pair_counters a, b;

	(void)state;
	random_state = 1;
	for (unsigned n = 0; n < ROUNDS; n++) {
		if (n % 64 == 0)
			pair_rest(ends.a);
		send_random(&there, ends.a);
		take_random(&there, ends.b);
		if (n % 8 == 0)
			send_random(&back, ends.b);
		take_random(&back, ends.a);
	}
	while (there.first || there.count > 0)
		take_random(&there, ends.b);
	while (back.first || back.count > 0)
		take_random(&back, ends.a);
	assert_true(pair_sound(ends.a) && pair_sound(ends.b));
	a = pair_count(ends.a);
	b = pair_count(ends.b);
	assert_int_equal(a.sent, b.received);
	assert_int_equal(b.sent, a.received);
	assert_true(a.sent > ROUNDS && b.sent > 0);
	/* It was full now and then. */
	assert_true(a.full > 0);
	assert_int_equal(a.errors + b.errors + a.no_mbuf + b.no_mbuf, 0);
	ends_close(ends);
}

/* --- what is full --- */

static void pair_transmit__stops_at_256_frames_until_some_are_received(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *frame = frame_of(100, 0);

	(void)state;
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		send_one(ends.a, frame_of(FRAME_HEADER + n % 200, 0));
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	assert_int_equal(pair_count(ends.a).full, 1);
	for (unsigned n = 0; n < PAIR_SLOTS; n++) {
		expect_one(ends.b, FRAME_HEADER + n % 200);
		send_one(ends.a, frame_of(100, 0));
		assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	}
	rte_pktmbuf_free(frame);
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		expect_one(ends.b, 100);
	assert_true(takes_nothing(ends.b));
	ends_close(ends);
}

static void pair_leaves__counts_slots_and_bulk(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	for (unsigned n = 0; n < PAIR_SLOTS; n++) {
		assert_int_equal(pair_leaves(ends.a, 3), n < PAIR_SLOTS / 4);
		assert_int_equal(pair_leaves(ends.a, 1), n < 3 * PAIR_SLOTS / 4);
		send_one(ends.a, frame_of(100, 0));
	}
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		expect_one(ends.b, 100);
	assert_true(takes_nothing(ends.b));
	/* Of bulk, a pair that has sent little has 64 KiB. */
	for (unsigned n = 0; n < 4; n++) {
		assert_int_equal(pair_leaves(ends.a, 3), n < 2);
		assert_int_equal(pair_leaves(ends.a, 1), n < 4);
		send_one(ends.a, frame_of(300, 14000));
	}
	assert_false(pair_leaves(ends.a, 3));
	for (unsigned n = 0; n < 4; n++)
		expect_one(ends.b, 14300);
	assert_true(takes_nothing(ends.b));
	assert_true(pair_leaves(ends.a, 3));
	ends_close(ends);
}

#define FULL (PAIR_BULK / 65536) /* frames of 65,000 bytes with a tail, which fill the bulk */

static void pair_transmit__stops_when_the_bulk_is_full_until_tails_are_freed(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *frame, *held[FULL];

	(void)state;
	for (unsigned n = 0; n < FULL; n++)
		send_one(ends.a, frame_of(300, 64700));
	frame = frame_of(300, 64700);
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	/* A frame that fits into a slot finds room all the same. */
	send_one(ends.a, frame_of(200, 0));
	for (unsigned n = 0; n < FULL; n++)
		held[n] = take_one(ends.b);
	expect_one(ends.b, 200);
	/* The oldest tail is held: nothing is free. */
	for (unsigned n = 1; n < FULL; n++)
		rte_pktmbuf_free(held[n]);
	assert_true(takes_nothing(ends.b));
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	rte_pktmbuf_free(held[0]);
	/* In the middle of a burst a sender is not kept waiting. */
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 1);
	expect_one(ends.b, 65000);
	ends_close(ends);
}

static void pair_receive__gives_back_a_short_tail_though_nothing_has_come(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *frame = frame_of(300, 2000), *held[FULL + 1];

	(void)state;
	send_one(ends.a, frame_of(300, 14000));
	for (unsigned n = 1; n < FULL + 1; n++)
		send_one(ends.a, frame_of(300, 64700));
	for (unsigned n = 0; n < FULL + 1; n++)
		held[n] = take_one(ends.b);
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	rte_pktmbuf_free(held[0]);
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	assert_true(takes_nothing(ends.b));
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 1);
	expect_one(ends.b, 2300);
	rte_pktmbuf_free_bulk(held + 1, FULL);
	ends_close(ends);
}

static void pair_transmit__drops_frames_that_are_too_long_or_too_short(void **state)
{
	struct ends ends;
	struct rte_mbuf *frames[4];

	(void)state;
	memory_make();
	ends.a = pair_open(memory, 0, pool, 1514, NULL);
	ends.b = pair_open(memory, 1, pool, 1514, NULL);
	assert_true(ends.a && ends.b);
	frames[0] = frame_of(13, 0);
	frames[1] = frame_of(1515, 0);
	frames[2] = frame_of(1514, 0);
	frames[3] = frame_of(100, 1415);
	assert_int_equal(pair_transmit(ends.a, frames, 4), 4);
	assert_int_equal(pair_count(ends.a).errors, 3);
	expect_one(ends.b, 1514);
	assert_true(takes_nothing(ends.b));
	ends_close(ends);
}

/* Its place is the next one's, whether the tail would have lain in the bulk or behind its head. */
static void pair_transmit__loses_a_frame_whose_memory_has_gone(void **state)
{
	static const uint32_t tails[] = {100, 3000, 60000};
	const size_t bytes = 65536;
	struct ends ends = ends_open();
	uint8_t *gone = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	guard_start();
	assert_true(gone != MAP_FAILED);
	for (unsigned n = 0; n < 3 * PAIR_SLOTS; n++) {
		struct rte_mbuf *frame = frame_of(100, tails[n % 3]);

		send_one(ends.a, frame_of(100 + n, n % 5 * 900));
		frame->next->buf_addr = gone;
		send_one(ends.a, frame);
		send_one(ends.a, frame_of(200, n % 3 * 1000));
		expect_one(ends.b, 100 + n + n % 5 * 900);
		expect_one(ends.b, 200 + n % 3 * 1000);
		assert_true(takes_nothing(ends.b));
	}
	assert_int_equal(pair_count(ends.a).errors, 3 * PAIR_SLOTS);
	assert_true(pair_sound(ends.b));
	ends_close(ends);
	munmap(gone, bytes);
}

/* What it wrote until it has tried the other kind, and what it wrote by that. */
static void pair_transmit__copies_by_either_kind_of_store(void **state)
{
	struct ends ends = ends_open();
	uint64_t first = 0;

	(void)state;
	guard_start();
	for (unsigned n = 0; first == 0 && n < FRAMES_TRIED; n++) {
		send_one(ends.a, frame_of(100, 60000));
		expect_one(ends.b, 60100);
		first = pair_count(ends.a).bytes_streamed;
	}
	if (first == 0)
		skip(); /* under a sanitizer each frame comes after a pause */
	for (unsigned n = 0; n < 500; n++) {
		send_one(ends.a, frame_of(100 + n % 64, 2048 + 117 * n));
		expect_one(ends.b, 100 + n % 64 + 2048 + 117 * n);
	}
	assert_true(pair_count(ends.a).bytes_streamed <= pair_count(ends.a).bytes_sent);
	ends_close(ends);
}

static void pair_receive__copies_out_what_more_than_64_tails_are_held_before(void **state)
{
	struct rte_mbuf *held[PAIR_TAILS + 10];
	struct ends ends = ends_open();

	(void)state;
	for (unsigned n = 0; n < PAIR_TAILS + 10; n++)
		send_one(ends.a, frame_of(100, 3000));
	for (unsigned n = 0; n < PAIR_TAILS + 10; n++) {
		held[n] = take_one(ends.b);
		assert_int_equal(held[n]->nb_segs, n < PAIR_TAILS ? 2 : 1);
		assert_memory_equal(rte_pktmbuf_mtod(held[n], void *), data, 100);
	}
	assert_int_equal(pair_count(ends.b).copied, 10);
	/* A later one that is free is not yet the oldest. */
	rte_pktmbuf_free(held[1]);
	send_one(ends.a, frame_of(100, 3000));
	expect_one(ends.b, 3100);
	assert_int_equal(pair_count(ends.b).copied, 11);
	rte_pktmbuf_free(held[0]);
	send_one(ends.a, frame_of(100, 3000));
	expect_one(ends.b, 3100);
	assert_int_equal(pair_count(ends.b).copied, 11);
	for (unsigned n = 2; n < PAIR_TAILS + 10; n++)
		rte_pktmbuf_free(held[n]);
	ends_close(ends);
}

static void pair_receive__leaves_a_frame_until_there_are_buffers(void **state)
{
	struct rte_mempool *few;
	struct rte_mbuf *frame;
	struct ends ends;

	(void)state;
	assert_int_equal(eal_need(), 0);
	few = rte_pktmbuf_pool_create("few", 1, 0, 0, RTE_PKTMBUF_HEADROOM + 4096, SOCKET_ID_ANY);
	assert_non_null(few);
	memory_make();
	ends.a = pair_open(memory, 0, pool, 4096, NULL);
	ends.b = pair_open(memory, 1, few, 4096, NULL);
	assert_true(ends.a && ends.b);
	send_one(ends.a, frame_of(100, 0));
	send_one(ends.a, frame_of(101, 0));
	send_one(ends.a, frame_of(100, 3000)); /* two buffers */
	frame = take_one(ends.b);
	assert_true(takes_nothing(ends.b));
	assert_int_equal(pair_count(ends.b).no_mbuf, 1);
	rte_pktmbuf_free(frame);
	expect_one(ends.b, 101);
	assert_true(takes_nothing(ends.b));
	assert_int_equal(pair_count(ends.b).no_mbuf, 2);
	assert_int_equal(rte_mempool_avail_count(few), 1);
	assert_true(pair_sound(ends.b));
	ends_close(ends);
	rte_mempool_free(few);
}

/* --- looks for frames --- */

static void pair_is_on__the_cpu_that_the_peer_has_said(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	for (unsigned cpu = 0; cpu < 3; cpu++)
		assert_false(pair_is_on(ends.a, cpu)); /* not known */
	for (unsigned n = 0; n < 6; n++) {
		pair_set_cpu(ends.b, n / 2);
		assert_true(pair_is_on(ends.a, n / 2));
		assert_int_equal(pair_cpu(ends.a), n / 2);
		assert_false(pair_is_on(ends.a, n / 2 + 1));
		assert_false(pair_is_on(ends.b, n / 2));
	}
	ends_close(ends);
}

static void pair_waits__is_a_frame_that_was_not_received(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	for (unsigned n = 0; n < 2 * PAIR_SLOTS; n++) { /* in two laps */
		assert_false(pair_waits(ends.b));
		send_one(ends.a, frame_of(100, 0));
		assert_true(pair_waits(ends.b));
		assert_false(pair_waits(ends.a));
		expect_one(ends.b, 100);
	}
	assert_false(pair_waits(ends.b));
	ends_close(ends);
}

/* --- the end --- */

static void pair_close__unmaps_when_no_frame_refers_to_the_memory(void **state)
{
	struct rte_mbuf *first, *second;
	struct ends ends = ends_open();

	(void)state;
	send_one(ends.a, frame_of(100, 3000));
	send_one(ends.a, frame_of(100, 3000));
	first = take_one(ends.b);
	second = take_one(ends.b);
	pair_close(ends.a);
	assert_int_equal(unmapped, 1);
	pair_close(ends.b);
	rte_pktmbuf_free(second);
	assert_int_equal(unmapped, 1);
	rte_pktmbuf_free(first);
	assert_int_equal(unmapped, 2);
	memory_drop();
	assert_int_equal(pool_used(pool), 0);
}

static uint8_t *slot_bytes(unsigned slot)
{
	return (uint8_t *)alias + WORD(0, slot) * sizeof(uint64_t);
}

/* How many bytes of a slot have changed since all behind its word were `value`. */
static unsigned slot_written(unsigned slot, uint8_t value)
{
	unsigned end = 256;

	while (slot_bytes(slot)[end - 1] == value)
		end--;
	return end;
}

static void pair__leaves_out_a_header_that_the_frame_before_had(void **state)
{
	static const struct {
		uint32_t from, head, tail;
		bool same;
	} frames[] = {
		{0, 126, 0, false},
		{0, 126, 0, true},
		{1, 126, 0, false}, /* another one */
		{0, 126, 0, false},
		{1, 100, 3000, false}, /* a frame that the bulk holds changes nothing */
		{0, 14, 0, true},
		{0, 248, 0, true},
		{0, 249, 0, false}, /* not in a slot */
		{0, 248, 0, true},
	};
	struct ends ends = ends_open();

	(void)state;
	for (unsigned n = 0; n < sizeof(frames) / sizeof(frames[0]); n++) {
		struct rte_mbuf *frame = frame_of(frames[n].head, frames[n].tail), *taken;
		static uint8_t want[FRAME_SIZE], got[FRAME_SIZE];

		rte_pktmbuf_mtod(frame, uint8_t *)[13] = (uint8_t)frames[n].from;
		frame_bytes(frame, want);
		memset(slot_bytes(n) + sizeof(uint64_t), 0xa5, 256 - sizeof(uint64_t));
		send_one(ends.a, frame);
		assert_int_equal((*word_at(WORD(0, n)) & SAME) != 0, frames[n].same);
		if (frames[n].tail == 0 && frames[n].head <= PAIR_SLOT_ROOM)
			assert_in_range(slot_written(n, 0xa5), 0,
				sizeof(uint64_t) + frames[n].head - (frames[n].same ? 14 : 0));
		taken = take_one(ends.b);
		frame_bytes(taken, got);
		assert_int_equal(taken->pkt_len, frames[n].head + frames[n].tail);
		assert_memory_equal(got, want, taken->pkt_len);
		rte_pktmbuf_free(taken);
	}
	ends_close(ends);
}

static void pair_move__sends_what_was_not_taken_in_its_order(void **state)
{
	static const uint32_t lengths[][2] = {
		{100, 0}, {100, 5000}, {300, 0}, {2000, 60000}, {FRAME_SIZE, 0}, {14, 0}};
	struct ends ends = ends_open();
	void *old = memory, *old_alias = alias;
	struct ends fresh = ends_open();

	(void)state;
	for (unsigned n = 0; n < 6; n++)
		send_one(ends.a, frame_of(lengths[n][0], lengths[n][1]));
	/* The other end made the fresh one. */
	pair_move(ends.a, fresh.b);
	send_one(fresh.b, frame_of(77, 0));
	for (unsigned n = 0; n < 6; n++)
		expect_one(fresh.a, lengths[n][0] + lengths[n][1]);
	expect_one(fresh.a, 77);
	assert_true(takes_nothing(fresh.a));
	ends_close(fresh);
	memory = old;
	alias = old_alias;
	unmapped = 0;
	ends_close(ends);
}

static void pair_move__moves_a_full_ring(void **state)
{
	struct ends ends = ends_open();
	void *old = memory, *old_alias = alias;
	struct ends fresh = ends_open();

	(void)state;
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		send_one(ends.a, frame_of(FRAME_HEADER + n, n % 2 ? 1700 : 0));
	pair_move(ends.a, fresh.b);
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		expect_one(fresh.a, FRAME_HEADER + n + (n % 2 ? 1700 : 0));
	assert_true(takes_nothing(fresh.a));
	ends_close(fresh);
	memory = old;
	alias = old_alias;
	unmapped = 0;
	ends_close(ends);
}

/* --- hostile peers --- */

static uint64_t word_of(uint32_t lap, uint32_t head, uint32_t tail)
{
	return lap | (uint64_t)head << 32 | (uint64_t)tail << 48;
}

static void pair_receive__does_not_see_a_frame_whose_word_is_missing(void **state)
{
	struct ends ends = ends_open();
	uint64_t word;

	(void)state;
	send_one(ends.a, frame_of(100, 3000));
	/* Its sender has ended before it wrote the word. */
	word = atomic_exchange(word_at(WORD(0, 0)), 0);
	assert_true(word == word_of(1, 100, 3000));
	assert_true(takes_nothing(ends.b));
	assert_true(pair_sound(ends.b));
	atomic_store(word_at(WORD(0, 0)), word);
	expect_one(ends.b, 3100);
	ends_close(ends);
}

static void pair_receive__ends_the_pair_for_a_word_that_cannot_be(void **state)
{
	static const struct {
		uint32_t lap, head, tail;
	} words[] = {
		{2, 100, 0},                 /* a lap that has not come */
		{UINT32_MAX, 100, 0},        /* or has long gone */
		{1, FRAME_HEADER - 1, 0},    /* too short */
		{1, 0, 0},                   /* empty */
		{1, 0, 100},                 /* no head */
		{1, FRAME_SIZE + 1, 0},      /* too long */
		{1, 100, FRAME_SIZE - 99},   /* too long together */
		{1, UINT16_MAX, UINT16_MAX}, /* more so */
		{1, PAIR_HEAD_MAX + 1, 100}, /* more than a head has */
		{1 | SAME, FRAME_HEADER - 1, 0},
	};

	(void)state;
	for (unsigned n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
		struct ends ends = ends_open();
		struct rte_mbuf *frame = frame_of(100, 0);

		atomic_store(
			word_at(WORD(0, 0)), word_of(words[n].lap, words[n].head, words[n].tail));
		assert_true(pair_waits(ends.b));
		assert_true(takes_nothing(ends.b));
		atomic_store(word_at(WORD(0, 0)), 0);
		assert_true(pair_waits(ends.b)); /* the next look is to find that it is unsound */
		assert_false(pair_sound(ends.b));
		/* For good, and both ways. */
		atomic_store(word_at(WORD(0, 0)), word_of(1, 100, 0));
		assert_true(takes_nothing(ends.b));
		assert_int_equal(pair_transmit(ends.b, &frame, 1), 0);
		rte_pktmbuf_free(frame);
		ends_close(ends);
	}
}

static void pair_receive__ends_the_pair_for_more_bulk_than_there_is(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *held[FULL];
	unsigned count = 0;

	(void)state;
	for (unsigned n = 0; n < FULL + 1; n++)
		atomic_store(word_at(WORD(0, n)), word_of(1, 100, 65000));
	while (count < FULL && pair_receive(ends.b, &held[count], 1) == 1)
		count++;
	assert_int_equal(count, FULL);
	assert_true(takes_nothing(ends.b));
	assert_false(pair_sound(ends.b));
	while (count > 0)
		rte_pktmbuf_free(held[--count]);
	ends_close(ends);
}

static void pair_transmit__ends_the_pair_for_a_position_that_cannot_be(void **state)
{
	static const struct {
		uint32_t word;
		uint64_t value;
	} positions[] = {
		{TAKEN(0), PAIR_SLOTS + 1}, /* more than was sent */
		{TAKEN(0), UINT64_MAX},
		{FREED(0), 64},
		{FREED(0), UINT64_MAX - 63},
	};

	(void)state;
	for (unsigned n = 0; n < sizeof(positions) / sizeof(positions[0]); n++) {
		struct ends ends = ends_open();
		struct rte_mbuf *frame = frame_of(100, 0);

		for (unsigned sent = 0; sent < PAIR_SLOTS; sent++)
			send_one(ends.a, frame_of(50, 0));
		atomic_store(word_at(positions[n].word), positions[n].value);
		assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
		assert_false(pair_sound(ends.a));
		assert_true(takes_nothing(ends.a));
		rte_pktmbuf_free(frame);
		ends_close(ends);
	}
}

static void pair_transmit__ends_the_pair_for_a_position_that_goes_back(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *frame = frame_of(100, 0);

	(void)state;
	for (unsigned n = 0; n < PAIR_SLOTS; n++)
		send_one(ends.a, frame_of(50, 0));
	atomic_store(word_at(TAKEN(0)), 2);
	send_one(ends.a, frame_of(50, 0));
	send_one(ends.a, frame_of(50, 0));
	atomic_store(word_at(TAKEN(0)), 1);
	assert_int_equal(pair_transmit(ends.a, &frame, 1), 0);
	assert_false(pair_sound(ends.a));
	rte_pktmbuf_free(frame);
	ends_close(ends);
}

/* Writes random words, most of them nearly right, until it has written enough. */
static void *scribble(void *context)
{
	atomic_bool *done = context;
	uint64_t state = 7;

	for (unsigned n = 0; n < SCRIBBLES; n++) {
		uint64_t random = random_next(&state);
		unsigned slot = random % PAIR_SLOTS, direction = random >> 8 & 1;
		uint64_t word = random_next(&state);

		if ((random >> 9 & 3) == 0)
			word = word_of((uint32_t)(random >> 16 & 3) | ((uint32_t)random & SAME),
				word & 1023, word >> 32 & 0x3fff);
		atomic_store_explicit((random >> 11 & 63) ? word_at(WORD(direction, slot))
							  : word_at(TAKEN(direction) + slot % 2),
			word, memory_order_relaxed);
		if (n % 64 == 0)
			nap();
	}
	atomic_store(done, true);
	return NULL;
}

/* Whatever a peer writes, frames have the shapes that are promised, and all memory is given
 * back. */
static void pair__survives_words_that_change_while_they_are_read(void **state)
{
	struct ends ends = ends_open();
	pthread_t scribbler;
	atomic_bool done = false;
	unsigned received = 0;

	(void)state;
	assert_int_equal(pthread_create(&scribbler, NULL, scribble, &done), 0);
	while (!atomic_load(&done)) {
		struct rte_mbuf *frame = frame_of(100, random_below(2) * random_below(9000));
		struct rte_mbuf *frames[BURST];
		unsigned taken;

		if (pair_transmit(ends.a, &frame, 1) == 0)
			rte_pktmbuf_free(frame);
		taken = pair_receive(ends.b, frames, BURST);
		for (unsigned n = 0; n < taken; n++)
			assert_true(frame_shaped(frames[n]));
		rte_pktmbuf_free_bulk(frames, taken);
		received += taken;
		if (pair_sound(ends.a) && pair_sound(ends.b) && taken > 0)
			continue;
		/* Another begins, in the same memory. */
		pair_close(ends.a);
		pair_close(ends.b);
		for (unsigned n = 0; n < 2 * PAIR_SLOTS; n++)
			atomic_store_explicit(word_at(WORD(0, n)), 0, memory_order_relaxed);
		for (unsigned n = 0; n < 32; n++)
			atomic_store_explicit(word_at(n), 0, memory_order_relaxed);
		ends = (struct ends){end_open(0), end_open(1)};
	}
	pthread_join(scribbler, NULL);
	assert_true(received > 0);
	unmapped = 0;
	ends_close(ends);
}

/* --- two threads --- */

static void *send_numbers(void *context)
{
	struct pair *pair = context;

	for (uint32_t n = 0; n < THREAD_ROUND; n++) {
		struct rte_mbuf *frame =
			frame_of(FRAME_HEADER + n % 500, n % 16 == 0 ? n % 9000 : 0);

		memcpy(rte_pktmbuf_mtod(frame, void *), &n, sizeof(n));
		while (pair_transmit(pair, &frame, 1) == 0)
			nap();
	}
	return NULL;
}

static void pair__carries_everything_in_order_between_two_threads(void **state)
{
	struct rte_mempool *other = mempool_take("other", FRAME_SIZE, 256, SOCKET_ID_ANY, true);
	struct rte_mbuf *frames[BURST];
	uint32_t expected = 0;
	struct ends ends;
	pthread_t sender;

	(void)state;
	assert_non_null(other);
	memory_make();
	/* Processes have pools of their own. */
	ends.a = end_open(0);
	ends.b = pair_open(memory, 1, other, FRAME_SIZE, NULL);
	assert_non_null(ends.b);
	assert_int_equal(pthread_create(&sender, NULL, send_numbers, ends.a), 0);
	while (expected < THREAD_ROUND) {
		unsigned taken = pair_receive(ends.b, frames, BURST);

		for (unsigned n = 0; n < taken; n++, expected++) {
			uint32_t head = FRAME_HEADER + expected % 500;
			uint32_t tail = expected % 16 == 0 ? expected % 9000 : 0;
			static uint8_t bytes[FRAME_SIZE];

			assert_int_equal(frames[n]->pkt_len, head + tail);
			frame_bytes(frames[n], bytes);
			assert_memory_equal(bytes, &expected, sizeof(expected));
			assert_memory_equal(bytes + 4, data + 4, head + tail - 4);
		}
		rte_pktmbuf_free_bulk(frames, taken);
		if (taken == 0)
			nap();
	}
	pthread_join(sender, NULL);
	assert_true(takes_nothing(ends.b));
	ends_close(ends);
	assert_int_equal(pool_used(other), 0);
	mempool_give(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair__carries_frames_of_every_length_and_shape_in_order),
		cmocka_unit_test(pair_transmit__stops_at_256_frames_until_some_are_received),
		cmocka_unit_test(pair_leaves__counts_slots_and_bulk),
		cmocka_unit_test(pair_transmit__stops_when_the_bulk_is_full_until_tails_are_freed),
		cmocka_unit_test(pair_receive__gives_back_a_short_tail_though_nothing_has_come),
		cmocka_unit_test(pair_transmit__drops_frames_that_are_too_long_or_too_short),
		cmocka_unit_test(pair_transmit__loses_a_frame_whose_memory_has_gone),
		cmocka_unit_test(pair_transmit__copies_by_either_kind_of_store),
		cmocka_unit_test(pair_receive__copies_out_what_more_than_64_tails_are_held_before),
		cmocka_unit_test(pair_receive__leaves_a_frame_until_there_are_buffers),
		cmocka_unit_test(pair_is_on__the_cpu_that_the_peer_has_said),
		cmocka_unit_test(pair_waits__is_a_frame_that_was_not_received),
		cmocka_unit_test(pair_close__unmaps_when_no_frame_refers_to_the_memory),
		cmocka_unit_test(pair__leaves_out_a_header_that_the_frame_before_had),
		cmocka_unit_test(pair_move__sends_what_was_not_taken_in_its_order),
		cmocka_unit_test(pair_move__moves_a_full_ring),
		cmocka_unit_test(pair_receive__does_not_see_a_frame_whose_word_is_missing),
		cmocka_unit_test(pair_receive__ends_the_pair_for_a_word_that_cannot_be),
		cmocka_unit_test(pair_receive__ends_the_pair_for_more_bulk_than_there_is),
		cmocka_unit_test(pair_transmit__ends_the_pair_for_a_position_that_cannot_be),
		cmocka_unit_test(pair_transmit__ends_the_pair_for_a_position_that_goes_back),
		cmocka_unit_test(pair__survives_words_that_change_while_they_are_read),
		cmocka_unit_test(pair__carries_everything_in_order_between_two_threads),
	};

	return cmocka_run_group_tests(tests, pool_make, NULL);
}
