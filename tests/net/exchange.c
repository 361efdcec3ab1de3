/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.c - one of two processes that exchange messages over a real device. exchange.py starts
 * both and says when to begin.
 *
 *     exchange SELF_PID PEER_NID:PEER_PID SCENARIO
 *
 * Standard output speaks to the driver, a word a line; standard input listens to it. First "ready"
 * is said, when all that the other process may reach is in place; then "go" is awaited. Scenarios,
 * of which all but the last two run alike on both sides:
 *
 *     operations   every operation once: events, lengths, offsets, bytes
 *     sizes        puts and gets from 0 to 64 MiB, one after another
 *     both         many puts of all sizes at once, both ways
 *     threads      several threads, each talking with its counterpart
 *     small        very many small puts, in order
 *     brief        as both, with fewer and smaller ones, for machines that are emulated
 *     marked       as both, over a network that must have marked frames (ECN)
 *     passive      lets the other put and get until standard input ends
 *     active       at "talk" puts and gets, at "flood" puts until the other dies, at "quit" ends
 *
 * X1. Bytes are a function of a seed and their offset, and lie between guards: each is checked, and
 *     what is beside them too.
 * X2. Both sides take the same steps; meet() keeps them together.
 * X3. Nothing is timed: the driver bounds the whole.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

#include "checks.h"
#include "state.h"

#define PORTAL_MEET    0
#define PORTAL         1
#define PORTAL_DROP    2 /* has no entries */
#define PORTAL_OTHERS  3 /* processes other than the peer may get here */
#define GUARD          64
#define GUARD_BYTE     0xa5
#define ROOM           1024 /* events */
#define MIB            (UINT64_C(1) << 20)
#define SIZE_LARGEST   (64 * MIB)
#define BOTH_MESSAGES  400
#define BOTH_LARGEST   (300 * 1000)
#define BRIEF_MESSAGES 120
#define BRIEF_LARGEST  (70 * 1000)
#define BOTH_WINDOW    16
#define THREADS        6
#define THREAD_ROUNDS  200
#define THREAD_LARGEST 20000
#define SMALL_MESSAGES 60000
#define SMALL_WINDOW   500
#define TALK_MESSAGES  200
#define TALK_SIZE      3000
#define FLOOD_WINDOW   64
#define FLOOD_SIZE     20000
#define OTHERS_SIZE    300000
#define HEAR_MS        1 /* between two Portals calls of a process that listens to the driver */

static ptl_handle_ni_t ni;
static ptl_process_id_t self, peer;
static ptl_handle_eq_t meet_queue;
/* stays empty: looking into it lets time go on, and takes nobody's events */
static ptl_handle_eq_t idle_queue;
static ptl_handle_md_t meet_voice;
static uint64_t meetings;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "exchange %u:%u: ", self.nid, self.pid);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

/* Memory between guards. */
struct block {
	unsigned char *bytes;
	uint64_t size;
};

static void block_clear(struct block *block)
{
	memset(block->bytes - GUARD, GUARD_BYTE, block->size + 2 * GUARD);
}

static struct block block_make(uint64_t size)
{
	unsigned char *memory = malloc(size + 2 * GUARD);
	struct block block;

	expect(memory != NULL);
	block = (struct block){.bytes = memory + GUARD, .size = size};
	block_clear(&block);
	return block;
}

static void block_free(struct block *block)
{
	free(block->bytes - GUARD);
}

static void untouched(const unsigned char *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		expect(bytes[i] == GUARD_BYTE);
}

/* The block's first size bytes are the seed's, and everything else is as it was. */
static void block_check(const struct block *block, uint64_t size, uint64_t seed)
{
	bytes_check(block->bytes, size, seed, 0);
	untouched(block->bytes - GUARD, GUARD);
	untouched(block->bytes + size, block->size - size + GUARD);
}

static ptl_handle_eq_t queue_make(ptl_size_t count)
{
	ptl_handle_eq_t queue;

	check(PtlEQAlloc(ni, count, &queue));
	return queue;
}

static ptl_event_t event_next(ptl_handle_eq_t queue)
{
	ptl_event_t event;

	check(PtlEQWait(queue, &event));
	if (event.ni_fail_type != PTL_NI_OK)
		fail("%s: %s", postern_event_name(event.type),
			postern_fail_text(event.ni_fail_type));
	return event;
}

static ptl_event_t event_expect(ptl_handle_eq_t queue, ptl_event_kind_t kind)
{
	ptl_event_t event = event_next(queue);

	if (event.type != kind)
		fail("%s came, %s was expected", postern_event_name(event.type),
			postern_event_name(kind));
	return event;
}

/* Passes over others. */
static ptl_event_t event_await(ptl_handle_eq_t queue, ptl_event_kind_t kind)
{
	ptl_event_t event;

	do
		event = event_next(queue);
	while (event.type != kind);
	return event;
}

static ptl_handle_me_t target_make(
	ptl_pt_index_t portal, ptl_match_bits_t match, ptl_match_bits_t ignore, ptl_md_t md)
{
	ptl_handle_me_t entry;

	check(PtlMEAttach(ni, portal, peer, match, ignore, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL));
	return entry;
}

static ptl_md_t md_of(struct block *block, unsigned options, ptl_handle_eq_t queue)
{
	return (ptl_md_t){.start = block->bytes,
		.length = block->size,
		.threshold = PTL_MD_THRESH_INF,
		.max_offset = UINT32_MAX,
		.options = options,
		.eventq = queue};
}

static ptl_handle_md_t source_make(void *bytes, ptl_size_t size, ptl_handle_eq_t queue)
{
	const ptl_md_t md = {
		.start = bytes, .length = size, .threshold = PTL_MD_THRESH_INF, .eventq = queue};
	ptl_handle_md_t handle;

	check(PtlMDBind(ni, md, &handle));
	return handle;
}

static void put(ptl_handle_md_t md, ptl_match_bits_t match, ptl_size_t offset, ptl_hdr_data_t data)
{
	check(PtlPut(md, PTL_NOACK_REQ, peer, PORTAL, 0, match, offset, data));
}

static void meet_open(void)
{
	struct block none = {0};

	meet_queue = queue_make(ROOM);
	idle_queue = queue_make(1);
	target_make(
		PORTAL_MEET, 0, 0, md_of(&none, PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE, meet_queue));
	meet_voice = source_make(NULL, 0, PTL_EQ_NONE);
}

/* Waits until the other process is as far. */
static void meet(void)
{
	ptl_event_t event;

	meetings++;
	check(PtlPut(meet_voice, PTL_NOACK_REQ, peer, PORTAL_MEET, 0, 0, 0, meetings));
	event = event_await(meet_queue, PTL_EVENT_PUT_END);
	expect_equal(event.hdr_data, meetings);
}

/* operations: a target of 1000 bytes, put to and got from in every way. Both sides are initiator
 * and target at once. */

enum { OPERATION_SIZE = 1000, OPERATION_OFFSET = 304, OPERATION_SHORT = 200 };

struct operations {
	struct block out;
	struct block in;
	ptl_handle_eq_t sends;
	ptl_handle_eq_t arrivals;
};

static void put_plain(struct operations *o)
{
	ptl_handle_me_t target = target_make(
		PORTAL, 7, 0, md_of(&o->in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, o->arrivals));
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SIZE, o->sends);
	ptl_event_t start, end;

	meet();
	put(source, 7, 0, UINT64_C(0x1122334455667788));
	start = event_expect(o->sends, PTL_EVENT_SEND_START);
	end = event_expect(o->sends, PTL_EVENT_SEND_END);
	expect_equal(end.link, start.sequence);
	start = event_expect(o->arrivals, PTL_EVENT_PUT_START);
	end = event_expect(o->arrivals, PTL_EVENT_PUT_END);
	expect_equal(end.link, start.sequence);
	expect_equal(end.initiator.nid, peer.nid);
	expect_equal(end.initiator.pid, peer.pid);
	expect_equal(end.uid, getuid());
	expect_equal(end.match_bits, 7);
	expect_equal(end.hdr_data, UINT64_C(0x1122334455667788));
	expect_equal(end.rlength, OPERATION_SIZE);
	expect_equal(end.mlength, OPERATION_SIZE);
	block_check(&o->in, OPERATION_SIZE, seed_of(peer));
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
}

static void put_acknowledged(struct operations *o)
{
	ptl_handle_me_t target = target_make(
		PORTAL, 7, 0, md_of(&o->in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, o->arrivals));
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SIZE, o->sends);
	ptl_event_t ack;

	meet();
	check(PtlPut(source, PTL_ACK_REQ, peer, PORTAL, 0, 7, 0, 0));
	event_expect(o->sends, PTL_EVENT_SEND_START);
	event_expect(o->sends, PTL_EVENT_SEND_END);
	ack = event_expect(o->sends, PTL_EVENT_ACK);
	expect_equal(ack.mlength, OPERATION_SIZE);
	expect_equal(ack.initiator.nid, peer.nid);
	event_await(o->arrivals, PTL_EVENT_PUT_END);
	block_check(&o->in, OPERATION_SIZE, seed_of(peer));
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
}

static void put_truncated(struct operations *o)
{
	struct block small = block_make(OPERATION_SHORT);
	ptl_handle_me_t target = target_make(PORTAL, 7, 0,
		md_of(&small, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, o->arrivals));
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SIZE, o->sends);
	ptl_event_t event;

	meet();
	check(PtlPut(source, PTL_ACK_REQ, peer, PORTAL, 0, 7, 0, 0));
	event = event_await(o->sends, PTL_EVENT_ACK);
	expect_equal(event.mlength, OPERATION_SHORT);
	event = event_await(o->arrivals, PTL_EVENT_PUT_END);
	expect_equal(event.rlength, OPERATION_SIZE);
	expect_equal(event.mlength, OPERATION_SHORT);
	block_check(&small, OPERATION_SHORT, seed_of(peer));
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
	block_free(&small);
}

static void put_at_offset(struct operations *o)
{
	ptl_handle_me_t target = target_make(
		PORTAL, 7, 0, md_of(&o->in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, o->arrivals));
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SHORT, o->sends);
	ptl_event_t event;

	meet();
	put(source, 7, OPERATION_OFFSET, 0);
	event = event_await(o->arrivals, PTL_EVENT_PUT_END);
	expect_equal(event.offset, OPERATION_OFFSET);
	bytes_check(o->in.bytes + OPERATION_OFFSET, OPERATION_SHORT, seed_of(peer), 0);
	untouched(o->in.bytes - GUARD, OPERATION_OFFSET + GUARD);
	untouched(o->in.bytes + OPERATION_OFFSET + OPERATION_SHORT,
		OPERATION_SIZE - OPERATION_OFFSET - OPERATION_SHORT + GUARD);
	event_await(o->sends, PTL_EVENT_SEND_END);
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
}

/* Without a remote offset messages are laid one behind the other. */
static void put_in_a_row(struct operations *o)
{
	ptl_handle_me_t target =
		target_make(PORTAL, 7, 0, md_of(&o->in, PTL_MD_OP_PUT, o->arrivals));
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SHORT, o->sends);

	meet();
	for (unsigned i = 0; i < OPERATION_SIZE / OPERATION_SHORT; i++)
		put(source, 7, 0, i);
	for (unsigned i = 0; i < OPERATION_SIZE / OPERATION_SHORT; i++) {
		ptl_event_t event = event_await(o->arrivals, PTL_EVENT_PUT_END);

		bytes_check(o->in.bytes + event.hdr_data * OPERATION_SHORT, OPERATION_SHORT,
			seed_of(peer), 0);
		event_await(o->sends, PTL_EVENT_SEND_END);
	}
	untouched(o->in.bytes - GUARD, GUARD);
	untouched(o->in.bytes + OPERATION_SIZE, GUARD);
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
}

static void put_nothing(struct operations *o)
{
	ptl_handle_me_t target = target_make(
		PORTAL, 7, 0, md_of(&o->in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, o->arrivals));
	ptl_handle_md_t source = source_make(NULL, 0, o->sends);
	ptl_event_t event;

	meet();
	check(PtlPut(source, PTL_ACK_REQ, peer, PORTAL, 0, 7, 0, 99));
	event = event_await(o->sends, PTL_EVENT_ACK);
	expect_equal(event.mlength, 0);
	event = event_await(o->arrivals, PTL_EVENT_PUT_END);
	expect_equal(event.hdr_data, 99);
	expect_equal(event.rlength, 0);
	untouched(o->in.bytes - GUARD, OPERATION_SIZE + 2 * GUARD);
	meet();
	check(PtlMDUnlink(source));
	check(PtlMEUnlink(target));
}

static void get_at(struct operations *o, ptl_size_t offset, ptl_size_t size)
{
	ptl_handle_me_t target = target_make(
		PORTAL, 7, 0, md_of(&o->out, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, o->arrivals));
	ptl_handle_md_t want = source_make(o->in.bytes, size, o->sends);
	ptl_event_t start, end;

	meet();
	check(PtlGet(want, peer, PORTAL, 0, 7, offset));
	start = event_expect(o->sends, PTL_EVENT_REPLY_START);
	end = event_expect(o->sends, PTL_EVENT_REPLY_END);
	expect_equal(end.link, start.sequence);
	expect_equal(end.mlength, size);
	start = event_expect(o->arrivals, PTL_EVENT_GET_START);
	end = event_expect(o->arrivals, PTL_EVENT_GET_END);
	expect_equal(end.link, start.sequence);
	expect_equal(end.mlength, size);
	expect_equal(end.offset, offset);
	bytes_check(o->in.bytes, size, seed_of(peer), offset);
	untouched(o->in.bytes - GUARD, GUARD);
	untouched(o->in.bytes + size, OPERATION_SIZE - size + GUARD);
	meet();
	check(PtlMDUnlink(want));
	check(PtlMEUnlink(target));
}

static void get_plain(struct operations *o)
{
	get_at(o, 0, OPERATION_SIZE);
}

static void get_offset(struct operations *o)
{
	get_at(o, OPERATION_OFFSET, OPERATION_SHORT);
}

static void get_nothing(struct operations *o)
{
	get_at(o, 0, 0);
}

static void get_truncated(struct operations *o)
{
	struct block small = {.bytes = o->out.bytes, .size = OPERATION_SHORT};
	ptl_handle_me_t target = target_make(PORTAL, 7, 0,
		md_of(&small, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, o->arrivals));
	ptl_handle_md_t want = source_make(o->in.bytes, OPERATION_SIZE, o->sends);
	ptl_event_t event;

	meet();
	check(PtlGet(want, peer, PORTAL, 0, 7, 0));
	event = event_await(o->sends, PTL_EVENT_REPLY_END);
	expect_equal(event.rlength, OPERATION_SIZE);
	expect_equal(event.mlength, OPERATION_SHORT);
	event_await(o->arrivals, PTL_EVENT_GET_END);
	block_check(&o->in, OPERATION_SHORT, seed_of(peer));
	meet();
	check(PtlMDUnlink(want));
	check(PtlMEUnlink(target));
}

/* Counted, and the message behind it arrives. */
static void put_dropped(struct operations *o)
{
	ptl_handle_md_t source = source_make(o->out.bytes, OPERATION_SIZE, o->sends);
	ptl_sr_value_t before, after;

	check(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &before));
	meet();
	check(PtlPut(source, PTL_NOACK_REQ, peer, PORTAL_DROP, 0, 7, 0, 0));
	event_await(o->sends, PTL_EVENT_SEND_END);
	meet();
	check(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &after));
	expect_equal((uint64_t)(after - before), 1);
	check(PtlMDUnlink(source));
}

static void scenario_operations(void)
{
	static void (*const steps[])(struct operations *) = {put_plain, put_acknowledged,
		put_truncated, put_at_offset, put_in_a_row, put_nothing, get_plain, get_offset,
		get_nothing, get_truncated, put_dropped};
	struct operations o = {.out = block_make(OPERATION_SIZE),
		.in = block_make(OPERATION_SIZE),
		.sends = queue_make(ROOM),
		.arrivals = queue_make(ROOM)};

	bytes_fill(o.out.bytes, OPERATION_SIZE, seed_of(self));
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		ptl_event_t event;

		block_clear(&o.in);
		steps[i](&o);
		while (PtlEQGet(o.sends, &event) == PTL_OK)
			; /* of those that only awaited an END */
		while (PtlEQGet(o.arrivals, &event) == PTL_OK)
			;
	}
	block_free(&o.out);
	block_free(&o.in);
}

/* sizes: each is put by both sides at once, then got by both. */
static void scenario_sizes(void)
{
	static const uint64_t sizes[] = {0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 255, 256, 257, 511,
		1000, 1399, 1400, 1401, 1449, 1450, 1451, 1465, 1470, 1471, 1472, 1473, 1486, 1487,
		1499, 1500, 1501, 2047, 2048, 2049, 2999, 3000, 4095, 4096, 4097, 8191, 8192, 8935,
		8999, 9000, 9001, 16383, 16385, 32767, 60001, 65279, 65280, 65281, 65407, 65408,
		65535, 65536, 65537, 131071, 262145, 1000003, MIB, MIB + 3, 4 * MIB, 16 * MIB - 1,
		SIZE_LARGEST};
	struct block out = block_make(SIZE_LARGEST);
	struct block in = block_make(SIZE_LARGEST);
	ptl_handle_eq_t sends = queue_make(ROOM);
	ptl_handle_eq_t arrivals = queue_make(ROOM);
	ptl_handle_me_t into = target_make(
		PORTAL, 1, 0, md_of(&in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, arrivals));
	ptl_handle_me_t from = target_make(
		PORTAL, 2, 0, md_of(&out, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, arrivals));

	bytes_fill(out.bytes, out.size, seed_of(self));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ptl_handle_md_t source = source_make(out.bytes, sizes[i], sends);
		ptl_handle_md_t want = source_make(in.bytes, sizes[i], sends);

		meet();
		put(source, 1, 0, sizes[i]);
		expect_equal(event_await(arrivals, PTL_EVENT_PUT_END).mlength, sizes[i]);
		event_await(sends, PTL_EVENT_SEND_END);
		bytes_check(in.bytes, sizes[i], seed_of(peer), 0);
		untouched(in.bytes - GUARD, GUARD);
		untouched(in.bytes + sizes[i], GUARD);
		memset(in.bytes, GUARD_BYTE, sizes[i]);
		meet();
		check(PtlGet(want, peer, PORTAL, 0, 2, 0));
		expect_equal(event_await(sends, PTL_EVENT_REPLY_END).mlength, sizes[i]);
		event_await(arrivals, PTL_EVENT_GET_END);
		bytes_check(in.bytes, sizes[i], seed_of(peer), 0);
		untouched(in.bytes - GUARD, GUARD);
		untouched(in.bytes + sizes[i], GUARD);
		memset(in.bytes, GUARD_BYTE, sizes[i]);
		check(PtlMDUnlink(source));
		check(PtlMDUnlink(want));
	}
	meet();
	check(PtlMEUnlink(into));
	check(PtlMEUnlink(from));
	block_free(&out);
	block_free(&in);
}

/* both: message n lies in slot n % BOTH_WINDOW on either side. The slot is used again when the
 * message has left, and the receiver has looked at it: an acknowledgement would not tell that, so
 * the receiver puts no bytes with its number. */

struct both {
	struct block out;
	struct block in;
	ptl_handle_eq_t queue;
	ptl_handle_md_t voice;
	unsigned busy[BOTH_WINDOW]; /* how much is missing until the slot is free: 0 to 2 */
	unsigned sent;
	unsigned received;
	unsigned open; /* sum of busy */
};

enum { BOTH_DATA = 1, BOTH_FREE = 2 };

static uint64_t both_messages = BOTH_MESSAGES, both_largest = BOTH_LARGEST;

static uint64_t both_size(uint64_t seed, uint64_t number)
{
	uint64_t size = mix(seed, number) % both_largest;

	return number % 3 == 0 ? size % 100 : size;
}

static void both_send(struct both *b)
{
	unsigned slot = b->sent % BOTH_WINDOW;
	unsigned char *bytes = b->out.bytes + (uint64_t)slot * BOTH_LARGEST;
	uint64_t size = both_size(seed_of(self), b->sent);
	ptl_handle_md_t source;
	ptl_md_t md = {.start = bytes,
		.length = size,
		.threshold = 1,
		.user_ptr = &b->busy[slot],
		.eventq = b->queue};

	bytes_fill(bytes, size, mix(seed_of(self), b->sent));
	check(PtlMDBind(ni, md, &source));
	put(source, BOTH_DATA, (uint64_t)slot * BOTH_LARGEST, b->sent);
	b->busy[slot] = 2;
	b->open += 2;
	b->sent++;
}

static void both_event(struct both *b)
{
	ptl_event_t event = event_next(b->queue);

	if (event.type == PTL_EVENT_SEND_END) {
		unsigned *busy = event.mem_desc.user_ptr;

		check(PtlMDUnlink(event.md_handle));
		--*busy;
		b->open--;
	} else if (event.type == PTL_EVENT_PUT_END && event.match_bits == BOTH_FREE) {
		b->busy[event.hdr_data % BOTH_WINDOW]--;
		b->open--;
	} else if (event.type == PTL_EVENT_PUT_END) {
		expect_equal(event.mlength, both_size(seed_of(peer), event.hdr_data));
		bytes_check(b->in.bytes + event.offset, event.mlength,
			mix(seed_of(peer), event.hdr_data), 0);
		b->received++;
		put(b->voice, BOTH_FREE, 0, event.hdr_data);
	}
}

static void scenario_both(void)
{
	static struct both
		b; /* its memory stays open to the peer until the interface is shut down */
	struct block none = {0};

	b = (struct both){.out = block_make((uint64_t)BOTH_WINDOW * BOTH_LARGEST),
		.in = block_make((uint64_t)BOTH_WINDOW * BOTH_LARGEST),
		.queue = queue_make(ROOM),
		.voice = source_make(NULL, 0, PTL_EQ_NONE)};

	target_make(
		PORTAL, BOTH_DATA, 0, md_of(&b.in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, b.queue));
	target_make(PORTAL, BOTH_FREE, 0, md_of(&none, PTL_MD_OP_PUT, b.queue));
	meet();
	while (b.sent < both_messages || b.received < both_messages || b.open > 0)
		if (b.sent < both_messages && b.busy[b.sent % BOTH_WINDOW] == 0)
			both_send(&b);
		else
			both_event(&b);
	untouched(b.in.bytes - GUARD, GUARD);
	untouched(b.in.bytes + b.in.size, GUARD);
	meet();
}

/* threads: each has a queue, memory and match bits of its own, and takes turns with its
 * counterpart. */

struct talker {
	pthread_t thread;
	unsigned number;
	struct block out;
	struct block in;
	struct block got;
	ptl_handle_eq_t arrivals;
	ptl_handle_eq_t sends;
};

enum { TALK_PUT = 100, TALK_GET = 200 };

static uint64_t talk_size(const struct talker *talker, uint64_t side, uint64_t round)
{
	return mix(side * THREADS + talker->number, round) % THREAD_LARGEST;
}

static void *talker_run(void *argument)
{
	struct talker *t = argument;
	uint64_t seed = mix(seed_of(self), t->number), peer_seed = mix(seed_of(peer), t->number);

	for (unsigned round = 0; round < THREAD_ROUNDS; round++) {
		uint64_t size = talk_size(t, seed_of(self), round);
		ptl_handle_md_t source = source_make(t->out.bytes, size, t->sends);
		ptl_event_t event;

		put(source, TALK_PUT + t->number, 0, round);
		event_await(t->sends, PTL_EVENT_SEND_END);
		check(PtlMDUnlink(source));
		event = event_await(t->arrivals, PTL_EVENT_PUT_END);
		expect_equal(event.hdr_data, round);
		expect_equal(event.mlength, talk_size(t, seed_of(peer), round));
		bytes_check(t->in.bytes, event.mlength, peer_seed, 0);

		/* what the counterpart offers never changes */
		source = source_make(t->got.bytes, size, t->sends);
		check(PtlGet(source, peer, PORTAL, 0, TALK_GET + t->number, 0));
		event = event_await(t->sends, PTL_EVENT_REPLY_END);
		expect_equal(event.mlength, size);
		bytes_check(t->got.bytes, size, peer_seed, 0);
		check(PtlMDUnlink(source));
	}
	bytes_check(t->out.bytes, t->out.size, seed, 0);
	return NULL;
}

static uint64_t counter_value(const char *name)
{
	struct postern_stat stats[256];
	unsigned count = postern_stats(ni, stats, 256);

	for (unsigned i = 0; i < count && i < 256; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	fail("there is no counter %s", name);
}

/* The marks of the network were seen here, and told to the sender, who narrowed its window. */
static void scenario_brief(void)
{
	both_messages = BRIEF_MESSAGES;
	both_largest = BRIEF_LARGEST;
	scenario_both();
}

static void scenario_marked(void)
{
	scenario_both();
	if (counter_value("marks_received") == 0)
		fail("no frame arrived with a mark");
	if (counter_value("congestion_cuts") == 0)
		fail("marks did not narrow the window");
	if (counter_value("dropped_ipv4") + counter_value("dropped_udp") != 0)
		fail("marked frames were dropped");
	meet();
}

static void scenario_threads(void)
{
	static struct talker talkers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		struct talker *t = &talkers[i];

		*t = (struct talker){.number = i,
			.out = block_make(THREAD_LARGEST),
			.in = block_make(THREAD_LARGEST),
			.got = block_make(THREAD_LARGEST),
			.arrivals = queue_make(ROOM),
			.sends = queue_make(ROOM)};
		bytes_fill(t->out.bytes, t->out.size, mix(seed_of(self), i));
		target_make(PORTAL, TALK_PUT + i, 0,
			md_of(&t->in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, t->arrivals));
		target_make(PORTAL, TALK_GET + i, 0,
			md_of(&t->out, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
	}
	meet();
	for (unsigned i = 0; i < THREADS; i++)
		expect(pthread_create(&talkers[i].thread, NULL, talker_run, &talkers[i]) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(talkers[i].thread, NULL);
	meet(); /* the counterpart may still get */
}

/* small: 24 bytes each, laid one behind the other; starts come in the order of sending. */
static void scenario_small(void)
{
	enum { SIZE = 24, FREE = 2 };
	static struct block out, in; /* stay open to the peer until the interface is shut down */
	struct block none = {0};
	ptl_handle_eq_t queue = queue_make(SMALL_WINDOW * 8 + ROOM);
	ptl_handle_md_t source;
	ptl_handle_md_t voice = source_make(NULL, 0, PTL_EQ_NONE);
	unsigned sent = 0, freed = 0, started = 0, ended = 0;

	out = block_make(SIZE);
	in = block_make((uint64_t)SMALL_MESSAGES * SIZE);
	bytes_fill(out.bytes, SIZE, seed_of(self));
	source = source_make(out.bytes, SIZE, PTL_EQ_NONE);
	target_make(PORTAL, 1, 0, md_of(&in, PTL_MD_OP_PUT, queue));
	target_make(PORTAL, FREE, 0, md_of(&none, PTL_MD_OP_PUT, queue));
	meet();
	while (freed < SMALL_MESSAGES || ended < SMALL_MESSAGES) {
		ptl_event_t event;

		if (sent < SMALL_MESSAGES && sent - freed < 2 * SMALL_WINDOW) {
			put(source, 1, 0, sent++);
			continue;
		}
		event = event_next(queue);
		if (event.match_bits == FREE) {
			freed += event.type == PTL_EVENT_PUT_END ? SMALL_WINDOW : 0;
		} else if (event.type == PTL_EVENT_PUT_START) {
			expect_equal(event.hdr_data, started++);
		} else if (event.type == PTL_EVENT_PUT_END) {
			expect_equal(event.offset, event.hdr_data * SIZE);
			if (++ended % SMALL_WINDOW == 0)
				put(voice, FREE, 0, 0);
		}
	}
	for (unsigned i = 0; i < SMALL_MESSAGES; i++)
		bytes_check(in.bytes + i * SIZE, SIZE, seed_of(peer), 0);
	untouched(in.bytes - GUARD, GUARD);
	untouched(in.bytes + in.size, GUARD);
	meet();
}

/* passive and active: one may die and come again, so they never meet() but through what the passive
 * one leaves open. */

enum { TALK_IN = 1, TALK_OUT = 2 };

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* With PTL_PROGRESS=inline nothing moves unless this process calls Portals: what it owes the other,
 * an acknowledgement or a retransmission, is still due while it listens to the driver. */
static bool hear(char *line, int size)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	ptl_event_t event;

	while (poll(&input, 1, HEAR_MS) == 0)
		PtlEQGet(idle_queue, &event);
	if (fgets(line, size, stdin) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* The objects that the active process uses exist before "ready" is written; the library does the
 * rest. */
static void scenario_passive(void)
{
	char line[64];

	while (hear(line, sizeof(line)))
		if (strcmp(line, "count") == 0) {
			snprintf(line, sizeof(line), "counted %llu",
				(unsigned long long)counter_value("messages_received"));
			say(line);
		}
}

static void passive_open(void)
{
	static struct block in, out, others;
	ptl_process_id_t anybody = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};
	ptl_handle_me_t entry;

	in = block_make(FLOOD_SIZE);
	out = block_make(TALK_SIZE);
	bytes_fill(out.bytes, out.size, seed_of(self));
	target_make(
		PORTAL, TALK_IN, 0, md_of(&in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
	target_make(PORTAL, TALK_OUT, 0,
		md_of(&out, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE));
	others = block_make(OTHERS_SIZE);
	check(PtlMEAttach(ni, PORTAL_OTHERS, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md_of(&others, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, PTL_RETAIN, NULL));
}

/* Puts with acknowledgement, then a get; nothing may fail. */
static void talk(void)
{
	struct block out = block_make(TALK_SIZE), in = block_make(TALK_SIZE);
	ptl_handle_eq_t queue = queue_make(ROOM);
	ptl_handle_md_t source = source_make(out.bytes, TALK_SIZE, queue);
	ptl_handle_md_t want = source_make(in.bytes, TALK_SIZE, queue);

	for (unsigned i = 0; i < TALK_MESSAGES; i++) {
		check(PtlPut(source, PTL_ACK_REQ, peer, PORTAL, 0, TALK_IN, 0, 0));
		expect_equal(event_await(queue, PTL_EVENT_ACK).mlength, TALK_SIZE);
	}
	check(PtlGet(want, peer, PORTAL, 0, TALK_OUT, 0));
	event_await(queue, PTL_EVENT_REPLY_END);
	block_check(&in, TALK_SIZE, seed_of(peer));
	check(PtlMDUnlink(source));
	check(PtlMDUnlink(want));
	check(PtlEQFree(queue));
	block_free(&out);
	block_free(&in);
	say("talked");
}

/* Puts until one fails, and then waits until each has ended, one way or the other. */
static void flood(void)
{
	struct block out = block_make(FLOOD_SIZE);
	ptl_handle_eq_t queue = queue_make(FLOOD_WINDOW * 8);
	ptl_handle_md_t source = source_make(out.bytes, FLOOD_SIZE, queue);
	uint64_t sent = 0, ended = 0, failed = 0;
	bool told = false;

	while (failed == 0 || ended + failed < sent) {
		ptl_event_t event;

		if (failed == 0 && sent - ended < FLOOD_WINDOW) {
			put(source, TALK_IN, 0, 0);
			sent++;
			continue;
		}
		check(PtlEQWait(queue, &event));
		if (event.type == PTL_EVENT_SEND_END)
			ended++;
		else if (event.type == PTL_EVENT_SEND_FAIL)
			failed++;
		if (event.type == PTL_EVENT_SEND_FAIL)
			expect(event.ni_fail_type == PTL_NI_PEER_DEAD ||
				event.ni_fail_type == PTL_NI_UNREACHABLE ||
				event.ni_fail_type == PTL_NI_PEER_RESTARTED);
		if (!told && ended > 4 * FLOOD_WINDOW) {
			told = true;
			say("flooding");
		}
	}
	check(PtlMDUnlink(source));
	check(PtlEQFree(queue));
	block_free(&out);
	say("flooded");
}

static void scenario_active(void)
{
	char line[64];

	while (hear(line, sizeof(line)) && strcmp(line, "quit") != 0) {
		if (strcmp(line, "talk") == 0)
			talk();
		else if (strcmp(line, "flood") == 0)
			flood();
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"marked", scenario_marked},
	{"operations", scenario_operations},
	{"sizes", scenario_sizes},
	{"both", scenario_both},
	{"brief", scenario_brief},
	{"threads", scenario_threads},
	{"small", scenario_small},
	{"passive", scenario_passive},
	{"active", scenario_active},
};

static void scenario_run(const char *name)
{
	for (unsigned i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(scenarios[i].name, name) == 0) {
			scenarios[i].run();
			return;
		}
	fail("there is no scenario %s", name);
}

int main(int count, char **words)
{
	char line[64];
	int interfaces;

	if (count != 4 || sscanf(words[2], "%u:%u", &peer.nid, &peer.pid) != 2)
		fail("usage: exchange SELF_PID PEER_NID:PEER_PID SCENARIO");
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see every word that has not been read */
	state_block();
	check(PtlInit(&interfaces));
	check(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)atoi(words[1]), NULL, NULL, &ni));
	expect(state_open(&ni));
	check(PtlGetId(ni, &self));
	meet_open();
	if (strcmp(words[3], "passive") == 0)
		passive_open();
	say("ready");
	if (!hear(line, sizeof(line)) || strcmp(line, "go") != 0)
		fail("the driver has gone away");
	scenario_run(words[3]);
	say("done");
	if (!hear(line, sizeof(line)) ||
		strcmp(line, "leave") != 0) /* when the other is done as well */
		if (strcmp(words[3], "passive") != 0)
			fail("the driver has gone away");
	check(PtlNIFini(ni));
	PtlFini();
	return 0;
}
