/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_pair.c - two ends of a pair, in whose memory somebody writes what the input says, also while
 * they read it: frames have the promised shapes, no byte beyond a frame or the memory is touched,
 * and all buffers come back. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/random.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>

#include "fuzz.h"

#define PAGE         ((size_t)4096)
#define SEND_FRAMES  16u
#define TAKE_FRAMES  256u
#define HELD_MOST    100u
#define BURST        32u
#define PAIRS        4u
#define SCRIBBLES    2048u
#define CANARY       0xa5
#define CONTROL      (PAGE + 2 * PAIR_SLOTS * (size_t)256) /* bytes before the bulk */
#define CONTROL_HEAD (32u)                                 /* words with positions in them */

struct script {
	const uint8_t *at, *end;
};

struct world {
	uint32_t frame_size;
	struct pair_budget budget; /* most: 0 for none */
	struct pair *ends[2];
	uint8_t *mappings[PAIRS]; /* each with a page before and behind it that nobody may touch */
	unsigned mapped;
	uint8_t *foreign; /* the mapping that somebody else writes to */
	bool written;
	pthread_t scribbler;
	uint64_t scribbler_seed;
	bool scribbling;
	atomic_bool scribbled;
	struct rte_mbuf *held[HELD_MOST];
	unsigned count;
};

static struct rte_mempool *send_pool, *take_pool;

/* The clock: each look takes a little, the same each time. */
uint64_t glue_now(void *context)
{
	static uint64_t now = 1000000000;

	(void)context;
	return now += 1000;
}

static uint64_t script_number(struct script *script, unsigned bytes)
{
	uint64_t number = 0;

	while (bytes-- > 0)
		number = number << 8 | (script->at < script->end ? *script->at++ : 0);
	return number;
}

/* --- memory --- */

static uint8_t *memory_map(struct world *world, int fd)
{
	size_t size = pair_bytes();
	uint8_t *around = mmap(NULL, size + 2 * PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	fuzz_assert(around != MAP_FAILED && world->mapped < PAIRS);
	world->mappings[world->mapped++] = around;
	fuzz_assert(mmap(around + PAGE, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			    0) != MAP_FAILED);
	return around + PAGE;
}

static void ends_open(struct world *world, struct pair *ends[2])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_assert(fd >= 0 && ftruncate(fd, (off_t)pair_bytes()) == 0);
	for (unsigned n = 0; n < 2; n++) {
		ends[n] = pair_open(memory_map(world, fd), n, take_pool, world->frame_size,
			world->budget.most > 0 ? &world->budget : NULL);
		fuzz_assert(ends[n]);
	}
	if (!world->foreign) {
		world->foreign =
			mmap(NULL, pair_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		fuzz_assert(world->foreign != MAP_FAILED);
	}
	close(fd);
}

static void word_write(struct world *world, size_t index, uint64_t value)
{
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)world->foreign;

	atomic_store_explicit(&words[index % (pair_bytes() / 8)], value, memory_order_relaxed);
}

/* --- frames --- */

static struct rte_mbuf *frame_make(uint32_t length, unsigned pieces, uint32_t head)
{
	struct rte_mbuf *frame = NULL;

	for (unsigned n = 0; n < pieces; n++) {
		struct rte_mbuf *piece = rte_pktmbuf_alloc(send_pool);
		uint32_t bytes = n + 1 == pieces ? length : head < length ? head : length;

		fuzz_assert(piece && rte_pktmbuf_append(piece, (uint16_t)bytes));
		memset(rte_pktmbuf_mtod(piece, void *), (int)length, bytes);
		length -= bytes;
		if (frame)
			fuzz_assert(rte_pktmbuf_chain(frame, piece) == 0);
		else
			frame = piece;
	}
	return frame;
}

static bool in_bulk(const struct world *world, const uint8_t *bytes, uint32_t length)
{
	for (unsigned n = 0; n < world->mapped; n++) {
		const uint8_t *bulk = world->mappings[n] + PAGE + CONTROL;

		if (bytes >= bulk && bytes + length <= bulk + 2 * (size_t)PAIR_BULK)
			return true;
	}
	return false;
}

/* Nothing is written behind a frame's bytes. */
static void canary_check(const struct rte_mbuf *frame)
{
	const uint8_t *end = (const uint8_t *)frame->buf_addr + frame->buf_len;
	const uint8_t *at =
		rte_pktmbuf_mtod_offset(frame, const uint8_t *, (size_t)frame->data_len);

	fuzz_assert(
		at == end || (*at == CANARY && memcmp(at, at + 1, (size_t)(end - at) - 1) == 0));
}

static void frame_check(const struct world *world, const struct rte_mbuf *frame)
{
	const struct rte_mbuf *tail = frame->next;

	fuzz_assert(frame->pkt_len >= FRAME_HEADER && frame->pkt_len <= world->frame_size);
	canary_check(frame);
	if (!tail) {
		fuzz_assert(frame->nb_segs == 1 && frame->data_len == frame->pkt_len);
		return;
	}
	fuzz_assert(frame->nb_segs == 2 && !tail->next && RTE_MBUF_HAS_EXTBUF(tail));
	fuzz_assert(frame->data_len <= PAIR_HEAD_MAX && tail->data_len > 0);
	fuzz_assert(frame->data_len + tail->data_len == frame->pkt_len);
	fuzz_assert(in_bulk(world, rte_pktmbuf_mtod(tail, const uint8_t *), tail->data_len));
}

static void frame_free(struct rte_mbuf *frame)
{
	/* As a function that places a tail does. */
	if (frame->next)
		(void)rte_pktmbuf_mtod(
			frame->next, const volatile uint8_t *)[frame->next->data_len - 1];
	memset(rte_pktmbuf_mtod(frame, void *), CANARY, frame->data_len);
	rte_pktmbuf_free(frame);
}

/* --- what happens --- */

static void frames_send(
	struct world *world, unsigned end, uint32_t length, unsigned pieces, uint32_t head)
{
	struct rte_mbuf *frame = frame_make(length, pieces, head);
	bool sound = pair_sound(world->ends[end]);
	unsigned sent = pair_transmit(world->ends[end], &frame, 1);

	fuzz_assert(sent == 0 || (sent == 1 && sound));
	if (sent == 0)
		rte_pktmbuf_free(frame);
}

static void held_free(struct world *world, unsigned n)
{
	frame_free(world->held[n]);
	world->held[n] = world->held[--world->count];
}

static void frames_take(struct world *world, unsigned end, uint16_t most, bool hold)
{
	bool sound = pair_sound(world->ends[end]);
	struct rte_mbuf *frames[BURST];
	unsigned taken = pair_receive(world->ends[end], frames, most);

	fuzz_assert(taken <= most && (sound || taken == 0));
	for (unsigned n = 0; n < taken; n++) {
		frame_check(world, frames[n]);
		if (hold && world->count < HELD_MOST)
			world->held[world->count++] = frames[n];
		else
			frame_free(frames[n]);
	}
}

static void *scribble(void *context)
{
	struct world *world = context;
	uint64_t state = world->scribbler_seed;

	for (unsigned n = 0; n < SCRIBBLES; n++) {
		uint64_t random = random_next(&state), value = random_next(&state);
		size_t index = random % 32 == 0 ? random >> 8 & 31
						: CONTROL_HEAD + (random >> 8) % (CONTROL / 8);

		/* Many are words that may be. */
		if (random & 64)
			index = PAGE / 8 + (random >> 8 & 31) * 32;
		if (random & 64)
			value = 1 | (value & 0x3ff) << 32 | (value >> 16 & 0xfff) << 48;
		word_write(world, index, value);
	}
	atomic_store(&world->scribbled, true);
	return NULL;
}

static void scribble_start(struct world *world, uint64_t seed)
{
	if (world->scribbling)
		return;
	world->scribbling = true;
	world->scribbler_seed = seed;
	fuzz_assert(pthread_create(&world->scribbler, NULL, scribble, world) == 0);
}

/* The ends go on while the other thread writes. */
static void scribble_end(struct world *world)
{
	if (!world->scribbling)
		return;
	while (!atomic_load(&world->scribbled)) {
		for (unsigned end = 0; end < 2; end++) {
			frames_send(world, end, 300, 2, 100);
			frames_take(world, 1 - end, BURST, false);
		}
	}
	pthread_join(world->scribbler, NULL);
}

/* The first end's frames go to another pair. */
static void pair_change(struct world *world)
{
	struct pair *fresh[2], *old = world->ends[0];

	if (world->mapped == PAIRS)
		return;
	ends_open(world, fresh);
	pair_move(old, fresh[0]);
	pair_close(old);
	pair_close(world->ends[1]);
	memcpy(world->ends, fresh, sizeof(fresh));
}

static void step(struct world *world, struct script *script)
{
	unsigned what = (unsigned)script_number(script, 1), end = what >> 7;

	switch (what & 7) {
	case 0:
	case 1: {
		uint32_t length = (uint32_t)script_number(script, 2) % (FRAME_MAX + 1);

		frames_send(world, end, length, 1 + (what >> 3 & 3),
			(uint32_t)script_number(script, 2) % (FRAME_MAX + 1));
		break;
	}
	case 2:
	case 3:
		frames_take(world, end, (what >> 3 & 15) * 2, what & 1);
		break;
	case 4:
		if (world->count > 0)
			held_free(world, (unsigned)script_number(script, 1) % world->count);
		break;
	case 5: {
		size_t index = script_number(script, 3);

		world->written = true;
		if (what & 8)
			index %= CONTROL_HEAD;
		else if (what & 16)
			index = PAGE / 8 + index % (2 * PAIR_SLOTS) * 32;
		word_write(world, index, script_number(script, what & 32 ? 8 : 2));
		break;
	}
	case 6: {
		/* A word that may be. */
		size_t slot = script_number(script, 1) + (what & 8 ? PAIR_SLOTS : 0);
		uint64_t value = script_number(script, 4);

		world->written = true;
		word_write(world, PAGE / 8 + slot * 32, value << 32 | (1 + (what >> 4 & 1)));
		break;
	}
	default:
		if (what & 8) {
			pair_change(world);
		} else if (what & 16) {
			pair_rest(world->ends[end]);
		} else {
			world->written = true;
			scribble_start(world, script_number(script, 2));
		}
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char words[][16] = {"fuzz", "--no-huge", "--no-shconf", "-m", "64", "--no-pci",
		"--no-telemetry", "-l", "0", "--log-level=1"};
	char *arguments[sizeof(words) / sizeof(words[0]) + 1] = {0};
	struct rte_mbuf *frames[TAKE_FRAMES];

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		arguments[i] = words[i];
	fuzz_assert(rte_eal_init((int)(sizeof(words) / sizeof(words[0])), arguments) >= 0);
	send_pool = rte_pktmbuf_pool_create(
		"send", SEND_FRAMES, 0, 0, RTE_PKTMBUF_HEADROOM + FRAME_MAX, SOCKET_ID_ANY);
	take_pool = rte_pktmbuf_pool_create(
		"take", TAKE_FRAMES, 0, 0, RTE_PKTMBUF_HEADROOM + FRAME_MAX, SOCKET_ID_ANY);
	fuzz_assert(send_pool && take_pool);
	fuzz_assert(rte_pktmbuf_alloc_bulk(take_pool, frames, TAKE_FRAMES) == 0);
	for (unsigned n = 0; n < TAKE_FRAMES; n++)
		memset(frames[n]->buf_addr, CANARY, frames[n]->buf_len);
	rte_pktmbuf_free_bulk(frames, TAKE_FRAMES);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t frame_sizes[] = {FRAME_MIN, 1514, 9216, FRAME_MAX};
	struct script script = {data, data + size};
	unsigned first = (unsigned)script_number(&script, 1);
	struct world world = {.frame_size = frame_sizes[first & 3],
		.budget = {.most = (first >> 2 & 3) * (FRAME_MAX + PAIR_WINDOW)}};

	if (size == 0 || size > 4096)
		return 0;
	ends_open(&world, world.ends);
	while (script.at < script.end)
		step(&world, &script);
	scribble_end(&world);
	if (!world.written)
		fuzz_assert(pair_sound(world.ends[0]) && pair_sound(world.ends[1]));
	pair_close(world.ends[0]);
	pair_close(world.ends[1]);
	while (world.count > 0)
		held_free(&world, world.count - 1);
	fuzz_assert(world.budget.most == 0 || world.budget.used == 0);
	fuzz_assert(rte_mempool_avail_count(send_pool) == SEND_FRAMES);
	fuzz_assert(rte_mempool_avail_count(take_pool) == TAKE_FRAMES);
	munmap(world.foreign, pair_bytes());
	for (unsigned n = 0; n < world.mapped; n++) {
		munmap(world.mappings[n], PAGE);
		munmap(world.mappings[n] + PAGE + pair_bytes(), PAGE);
	}
	return 0;
}
