/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pair.c - tests of pmd-glue/pair.c: both ends in one process, on one mapping. What a hostile
 * peer writes is written through a second mapping of the same memory. */
#include "glue_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/random.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>
#include <pmd-glue/pool.h>

#define FRAME_SIZE   FRAME_MAX
#define STARTS       4096u
#define BURST        32u
#define HELD_MOST    40u
#define ROUNDS       4000u
#define THREAD_ROUND 60000u
#define SCRIBBLES    50000u

/* The layout of the memory, as words. */
#define TAKEN(direction)      ((direction)*16u)
#define FREED(direction)      ((direction)*16u + 1)
#define WORD(direction, slot) (512u + ((direction)*PAIR_SLOTS + (slot)) * 32u)

static struct rte_mempool *pool;
static void *memory;
static void *alias;
static unsigned unmapped;
static uint64_t random_state;

int __real_munmap(void *at, size_t length);
int __wrap_munmap(void *at, size_t length);

/* Both ends have the same mapping, which stays. */
int __wrap_munmap(void *at, size_t length)
{
	if (at != memory)
		return __real_munmap(at, length);
	assert_int_equal(length, pair_bytes());
	unmapped++;
	return 0;
}

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

static void memory_make(void)
{
	int fd = memfd_create("pair", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)pair_bytes()), 0);
	memory = mmap(NULL, pair_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	alias = mmap(NULL, pair_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED && alias != MAP_FAILED);
	close(fd);
	unmapped = 0;
}

static void memory_drop(void)
{
	__real_munmap(memory, pair_bytes());
	__real_munmap(alias, pair_bytes());
	memory = NULL;
}

static _Atomic uint64_t *word_at(unsigned n)
{
	return (_Atomic uint64_t *)alias + n;
}

static struct pair *end_open(unsigned end)
{
	struct pair *pair = pair_open(memory, end, pool, FRAME_SIZE, NULL);

	assert_non_null(pair);
	return pair;
}

struct ends {
	struct pair *a;
	struct pair *b;
};

static struct ends ends_open(void)
{
	memory_make();
	return (struct ends){end_open(0), end_open(1)};
}

static void ends_close(struct ends ends)
{
	pair_close(ends.a);
	pair_close(ends.b);
	assert_int_equal(unmapped, 2);
	memory_drop();
	assert_int_equal(pool_used(pool), 0);
}

/* --- frames --- */

/* Random bytes of an application, which frames refer to, each from some byte on. */
static uint8_t data[FRAME_SIZE + STARTS];

static void data_keep(void *at, void *context)
{
	(void)at;
	(void)context;
}

static struct rte_mbuf_ext_shared_info data_shared = {.free_cb = data_keep};

static struct rte_mbuf *piece_make(const void *bytes, uint32_t length)
{
	struct rte_mbuf *piece = rte_pktmbuf_alloc(pool);

	assert_non_null(piece);
	memcpy(rte_pktmbuf_mtod(piece, void *), bytes, length);
	piece->data_len = (uint16_t)length;
	piece->pkt_len = length;
	return piece;
}

static struct rte_mbuf *piece_refer(const void *bytes, uint32_t length)
{
	struct rte_mbuf *piece = rte_pktmbuf_alloc(pool);

	assert_non_null(piece);
	rte_mbuf_ext_refcnt_set(&data_shared, 2);
	rte_pktmbuf_attach_extbuf(
		piece, (void *)(uintptr_t)bytes, RTE_BAD_IOVA, (uint16_t)length, &data_shared);
	piece->data_off = 0;
	piece->data_len = (uint16_t)length;
	piece->pkt_len = length;
	return piece;
}

static void piece_join(struct rte_mbuf *frame, struct rte_mbuf *piece)
{
	rte_pktmbuf_lastseg(frame)->next = piece;
	frame->nb_segs++;
	frame->pkt_len += piece->data_len;
}

/* A frame of `head` bytes from data on and `tail` bytes that follow them, in a second segment. */
static struct rte_mbuf *frame_of(uint32_t head, uint32_t tail)
{
	struct rte_mbuf *frame = piece_make(data, head);

	if (tail > 0)
		piece_join(frame, piece_refer(data + head, tail));
	return frame;
}

static uint32_t length_random(uint32_t least, uint32_t most)
{
	static const uint32_t around[] = {FRAME_HEADER, PAIR_SLOT_ROOM, 2048, 4096, FRAME_SIZE};
	uint32_t length;

	switch (random_below(4)) {
	case 0:
		length = least + random_below(300);
		break;
	case 1:
		length = around[random_below(5)] - 2 + random_below(5);
		break;
	case 2:
		length = random_below(10000);
		break;
	default:
		length = random_below(FRAME_SIZE);
	}
	return length < least ? least : length > most ? most : length;
}

static struct rte_mbuf *frame_random(void)
{
	uint32_t length = length_random(FRAME_HEADER, FRAME_SIZE);
	uint32_t at = random_below(STARTS), pieces = 1 + random_below(4), done;
	struct rte_mbuf *frame;

	done = pieces == 1 ? length : length_random(0, length);
	frame = piece_make(data + at, done);
	for (; pieces > 1; pieces--) {
		uint32_t bytes = pieces == 2 ? length - done : length_random(0, length - done);

		piece_join(frame, random_below(2) ? piece_refer(data + at + done, bytes)
						  : piece_make(data + at + done, bytes));
		done += bytes;
	}
	assert_int_equal(frame->pkt_len, length);
	return frame;
}

static void frame_bytes(const struct rte_mbuf *frame, uint8_t *to)
{
	for (; frame; frame = frame->next) {
		memcpy(to, rte_pktmbuf_mtod(frame, const void *), frame->data_len);
		to += frame->data_len;
	}
}

/* Has it a shape that pair_receive() promises? */
static bool frame_shaped(const struct rte_mbuf *frame)
{
	const struct rte_mbuf *tail = frame->next;
	const uint8_t *bytes = tail ? rte_pktmbuf_mtod(tail, const uint8_t *) : NULL;

	if (frame->pkt_len < FRAME_HEADER || frame->pkt_len > FRAME_SIZE)
		return false;
	if (!tail)
		return frame->nb_segs == 1 && frame->data_len == frame->pkt_len;
	return frame->nb_segs == 2 && !tail->next && RTE_MBUF_HAS_EXTBUF(tail) &&
	       frame->data_len + tail->data_len == frame->pkt_len &&
	       frame->data_len <= PAIR_HEAD_MAX && bytes >= (const uint8_t *)memory &&
	       bytes + tail->data_len <= (const uint8_t *)memory + pair_bytes();
}

static void send_one(struct pair *pair, struct rte_mbuf *frame)
{
	assert_int_equal(pair_transmit(pair, &frame, 1), 1);
}

static struct rte_mbuf *take_one(struct pair *pair)
{
	struct rte_mbuf *frame = NULL;

	assert_int_equal(pair_receive(pair, &frame, 1), 1);
	assert_true(frame_shaped(frame));
	return frame;
}

static bool takes_nothing(struct pair *pair)
{
	struct rte_mbuf *frame;

	return pair_receive(pair, &frame, 1) == 0;
}

/* Takes one and checks that its bytes are data's from the start on. */
static void expect_one(struct pair *pair, uint32_t length)
{
	struct rte_mbuf *frame = take_one(pair);
	static uint8_t bytes[FRAME_SIZE];

	assert_int_equal(frame->pkt_len, length);
	frame_bytes(frame, bytes);
	assert_memory_equal(bytes, data, length);
	rte_pktmbuf_free(frame);
}

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

/* --- company --- */

static void pair_company__is_a_peer_that_has_looked_since(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	assert_false(pair_company(ends.a));
	assert_true(takes_nothing(ends.b));
	assert_true(pair_company(ends.a));
	assert_false(pair_company(ends.a));
	assert_false(pair_company(ends.b));
	send_one(ends.a, frame_of(100, 0));
	expect_one(ends.b, 100);
	assert_true(pair_company(ends.a));
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
	(void)pair_company(ends.a);
	assert_false(pair_waits(ends.b));
	assert_false(pair_company(ends.a)); /* the peer does not see it */
	ends_close(ends);
}

/* --- memory --- */

/* Bytes of the bulk of the first direction that have memory. */
static size_t bulk_memory(void)
{
	unsigned char there[PAIR_BULK / 4096];
	size_t pages = 0;

	assert_int_equal(
		mincore((uint8_t *)alias + 4096 + 2 * PAIR_SLOTS * (size_t)256, PAIR_BULK, there),
		0);
	for (unsigned n = 0; n < PAIR_BULK / 4096; n++)
		pages += there[n] & 1;
	return pages * 4096;
}

#define SIXTEEN_LONG UINT64_C(533504)

static void exchange(struct ends ends, unsigned frames, unsigned at_once, uint32_t tail)
{
	for (; frames > 0; frames -= at_once) {
		for (unsigned n = 0; n < at_once; n++)
			send_one(ends.a, frame_of(300, tail));
		for (unsigned n = 0; n < at_once; n++)
			expect_one(ends.b, 300 + tail);
	}
}

static void pair_transmit__stays_in_a_small_window_while_little_is_in_flight(void **state)
{
	struct ends ends = ends_open();

	(void)state;
	exchange(ends, 4096, 4, 1000);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	/* The window grows for a long frame, but not by each one. */
	exchange(ends, 512, 1, 33000);
	assert_in_range(bulk_memory(), 33000, 65536);
	exchange(ends, 512, 16, 33000);
	assert_in_range(bulk_memory(), 16 * 33000, PAIR_BULK);
	assert_int_equal(pair_count(ends.a).full, 0);
	ends_close(ends);
}

static void pair_rest__gives_back_what_is_not_needed_any_more(void **state)
{
	struct ends ends = ends_open();
	struct rte_mbuf *held;
	size_t used;

	(void)state;
	exchange(ends, 256, 16, 33000);
	used = bulk_memory();
	/* Half of it was in flight at times. */
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), used);
	/* It was not any more: half of it goes, and what is in flight stays what it was. */
	exchange(ends, 64, 1, 1000);
	send_one(ends.a, frame_of(300, 1000));
	held = take_one(ends.b);
	for (unsigned n = 0; n < 8; n++) {
		exchange(ends, 64, 1, 1000);
		pair_rest(ends.a);
	}
	assert_in_range(bulk_memory(), PAIR_WINDOW, used);
	assert_memory_equal(rte_pktmbuf_mtod(held->next, void *), data + 300, 1000);
	rte_pktmbuf_free(held);
	assert_true(takes_nothing(ends.b));
	exchange(ends, 64, 1, 1000);
	assert_true(takes_nothing(ends.b));
	pair_rest(ends.a);
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	assert_true(pair_sound(ends.a) && pair_sound(ends.b));
	ends_close(ends);
}

/* 16 frames of 320 and 33,024 bytes of bulk, all of which are free: the window has 768 KiB, of
 * which 533,504 bytes are used. Returns the bytes that have memory. */
static size_t sixteen_long(struct ends ends)
{
	exchange(ends, 16, 16, 33000);
	pair_rest(ends.a); /* more than a quarter was in flight */
	return bulk_memory();
}

/* A frame is held, and so many long ones have come before and after it. Half of the window is
 * 384 KiB. */
static void rest_while_held(unsigned before, unsigned after)
{
	struct ends ends = ends_open();
	struct rte_mbuf *held;
	size_t used;

	(void)sixteen_long(ends);
	exchange(ends, before, 1, 33000);
	send_one(ends.a, frame_of(300, 33000));
	held = take_one(ends.b);
	exchange(ends, after, 1, 33000);
	used = bulk_memory();
	for (unsigned n = 0; n < 3; n++)
		pair_rest(ends.a);
	assert_int_equal(bulk_memory(), used);
	assert_memory_equal(rte_pktmbuf_mtod(held->next, void *), data + 300, 33000);
	rte_pktmbuf_free(held);
	assert_true(takes_nothing(ends.b));
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	ends_close(ends);
}

static void pair_rest__keeps_what_is_in_flight_beyond_the_next_window(void **state)
{
	(void)state;
	rest_while_held(0, 0);
	rest_while_held(0, 1);
	/* From byte 600,192 on: less than a quarter is in flight when the fifth begins a lap. */
	rest_while_held(2, 6);
}

static void pair_rest__keeps_what_a_peer_says_is_in_flight(void **state)
{
	struct ends ends = ends_open();
	size_t used;

	(void)state;
	used = sixteen_long(ends);
	atomic_store(word_at(FREED(0)), SIXTEEN_LONG - 64);
	for (unsigned n = 0; n < 3; n++)
		pair_rest(ends.a);
	assert_true(pair_sound(ends.a));
	assert_int_equal(bulk_memory(), used);
	atomic_store(word_at(FREED(0)), SIXTEEN_LONG);
	pair_rest(ends.a);
	assert_int_equal(bulk_memory(), PAIR_WINDOW);
	exchange(ends, 256, 16, 33000);
	ends_close(ends);
}

static void pair_rest__ends_the_pair_for_a_position_that_cannot_be(void **state)
{
	static const uint64_t freed[] = {UINT64_MAX - 63, SIXTEEN_LONG + 64};

	(void)state;
	for (unsigned n = 0; n < sizeof(freed) / sizeof(freed[0]); n++) {
		struct ends ends = ends_open();
		size_t used = sixteen_long(ends);

		atomic_store(word_at(FREED(0)), freed[n]);
		pair_rest(ends.a);
		assert_false(pair_sound(ends.a));
		assert_int_equal(bulk_memory(), used);
		ends_close(ends);
	}
}

static void pair_transmit__keeps_to_its_budget_and_has_room_for_any_frame(void **state)
{
	struct pair_budget budget = {.most = 4 * PAIR_WINDOW};
	struct rte_mbuf *frame = frame_of(300, 1000);
	struct pair *others[4];
	unsigned sent = 0;
	struct ends ends;

	(void)state;
	memory_make();
	for (unsigned n = 0; n < 3; n++)
		others[n] = pair_open(memory, 0, pool, FRAME_SIZE, &budget);
	ends.a = pair_open(memory, 0, pool, FRAME_SIZE, &budget);
	ends.b = end_open(1);
	/* Half of what the others leave: it does not grow. */
	while (pair_transmit(ends.a, &frame, 1) == 1) {
		frame = frame_of(300, 1000);
		sent++;
	}
	assert_int_equal(sent, PAIR_WINDOW / (320 + 1024));
	while (sent-- > 0)
		expect_one(ends.b, 1300);
	send_one(ends.a, frame);
	expect_one(ends.b, 1300);
	/* The longest frame there is, once the sender knows that all is free. */
	assert_true(takes_nothing(ends.b));
	for (unsigned n = 0; n < 64; n++) {
		send_one(ends.a, frame_of(FRAME_SIZE, 0));
		expect_one(ends.b, FRAME_SIZE);
	}
	assert_in_range(bulk_memory(), FRAME_SIZE, FRAME_SIZE + PAIR_WINDOW);
	for (unsigned n = 0; n < 3; n++)
		pair_close(others[n]);
	unmapped = 0;
	pair_close(ends.a);
	pair_close(ends.b);
	assert_int_equal(budget.used, 0);
	memory_drop();
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
		assert_true(pair_waits(ends.b)); /* who looks is to find that it is unsound */
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
			word = word_of(random >> 16 & 3, word & 1023, word >> 32 & 0x3fff);
		atomic_store_explicit((random >> 11 & 63) ? word_at(WORD(direction, slot))
							  : word_at(TAKEN(direction) + slot % 2),
			word, memory_order_relaxed);
		if (n % 64 == 0)
			sched_yield();
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
			sched_yield();
	}
	return NULL;
}

static void pair__carries_everything_in_order_between_two_threads(void **state)
{
	struct rte_mempool *other = pool_take("other", FRAME_SIZE, 256, SOCKET_ID_ANY, true);
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
			sched_yield();
	}
	pthread_join(sender, NULL);
	assert_true(takes_nothing(ends.b));
	ends_close(ends);
	assert_int_equal(pool_used(other), 0);
	pool_give(other);
}

static int pool_make(void **state)
{
	if (fixture_start(state) != 0)
		return -1;
	pool = pool_take("test", FRAME_SIZE, 256, SOCKET_ID_ANY, true);
	for (unsigned n = 0; n < sizeof(data); n++)
		data[n] = (uint8_t)random_next(&random_state);
	return pool ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair__carries_frames_of_every_length_and_shape_in_order),
		cmocka_unit_test(pair_transmit__stops_at_256_frames_until_some_are_received),
		cmocka_unit_test(pair_transmit__stops_when_the_bulk_is_full_until_tails_are_freed),
		cmocka_unit_test(pair_receive__gives_back_a_short_tail_though_nothing_has_come),
		cmocka_unit_test(pair_transmit__drops_frames_that_are_too_long_or_too_short),
		cmocka_unit_test(pair_receive__copies_out_what_more_than_64_tails_are_held_before),
		cmocka_unit_test(pair_receive__leaves_a_frame_until_there_are_buffers),
		cmocka_unit_test(pair_company__is_a_peer_that_has_looked_since),
		cmocka_unit_test(pair_waits__is_a_frame_that_was_not_received),
		cmocka_unit_test(pair_transmit__stays_in_a_small_window_while_little_is_in_flight),
		cmocka_unit_test(pair_rest__gives_back_what_is_not_needed_any_more),
		cmocka_unit_test(pair_rest__keeps_what_is_in_flight_beyond_the_next_window),
		cmocka_unit_test(pair_rest__keeps_what_a_peer_says_is_in_flight),
		cmocka_unit_test(pair_rest__ends_the_pair_for_a_position_that_cannot_be),
		cmocka_unit_test(pair_transmit__keeps_to_its_budget_and_has_room_for_any_frame),
		cmocka_unit_test(pair_close__unmaps_when_no_frame_refers_to_the_memory),
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
