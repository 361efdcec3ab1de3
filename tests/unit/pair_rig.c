/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_rig.c - see pair_rig.h. */
#include "pair_rig.h"

#include <sys/mman.h>
#include <unistd.h>

#include <base/random.h>
#include <pmd-glue/pool.h>

struct rte_mempool *pool;
void *memory;
void *alias;
unsigned unmapped;
uint64_t random_state;

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

uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_next(&random_state) % n);
}

void memory_make(void)
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

void memory_drop(void)
{
	__real_munmap(memory, pair_bytes());
	__real_munmap(alias, pair_bytes());
	memory = NULL;
}

_Atomic uint64_t *word_at(unsigned n)
{
	return (_Atomic uint64_t *)alias + n;
}

struct pair *end_open(unsigned end)
{
	struct pair *pair = pair_open(memory, end, pool, FRAME_SIZE, NULL);

	assert_non_null(pair);
	return pair;
}

struct ends ends_open(void)
{
	memory_make();
	return (struct ends){end_open(0), end_open(1)};
}

void ends_close(struct ends ends)
{
	pair_close(ends.a);
	pair_close(ends.b);
	assert_int_equal(unmapped, 2);
	memory_drop();
	assert_int_equal(pool_used(pool), 0);
}

/* --- frames --- */

uint8_t data[FRAME_SIZE + STARTS];

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

struct rte_mbuf *frame_of(uint32_t head, uint32_t tail)
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

struct rte_mbuf *frame_random(void)
{
	uint32_t length = length_random(FRAME_HEADER, FRAME_SIZE);
	/* Many have the same header (pair.h, P9). */
	uint32_t at = random_below(3) ? 0 : random_below(STARTS), pieces = 1 + random_below(4),
		 done;
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

void frame_bytes(const struct rte_mbuf *frame, uint8_t *to)
{
	for (; frame; frame = frame->next) {
		memcpy(to, rte_pktmbuf_mtod(frame, const void *), frame->data_len);
		to += frame->data_len;
	}
}

bool frame_shaped(const struct rte_mbuf *frame)
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

void send_one(struct pair *pair, struct rte_mbuf *frame)
{
	assert_int_equal(pair_transmit(pair, &frame, 1), 1);
}

struct rte_mbuf *take_one(struct pair *pair)
{
	struct rte_mbuf *frame = NULL;

	assert_int_equal(pair_receive(pair, &frame, 1), 1);
	assert_true(frame_shaped(frame));
	return frame;
}

bool takes_nothing(struct pair *pair)
{
	struct rte_mbuf *frame;

	return pair_receive(pair, &frame, 1) == 0;
}

void expect_one(struct pair *pair, uint32_t length)
{
	struct rte_mbuf *frame = take_one(pair);
	static uint8_t bytes[FRAME_SIZE];

	assert_int_equal(frame->pkt_len, length);
	frame_bytes(frame, bytes);
	assert_memory_equal(bytes, data, length);
	rte_pktmbuf_free(frame);
}

int pool_make(void **state)
{
	if (fixture_start(state) != 0)
		return -1;
	pool = mempool_take("test", FRAME_SIZE, 256, SOCKET_ID_ANY, true);
	for (unsigned n = 0; n < sizeof(data); n++)
		data[n] = (uint8_t)random_next(&random_state);
	return pool ? 0 : -1;
}
