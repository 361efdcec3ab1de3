/* SPDX-License-Identifier: BSD-3-Clause */
/* kills4.c - kills.c with Portals 4: puts, gets, atomics and triggered operations. It speaks to
 * kills.py with the same words.
 *
 * W1. An operation of the first kinds has its own user_ptr, and each of its events is due once:
 *     SEND and then ACK or REPLY, or what tells that they will not come.
 * W2. Of counted and of triggered puts a counter alone tells: twice for each, well or not.
 * W3. The other process adds to a word here, and each time it gets what it was before: numbers that
 *     grow as long as nobody dies, by one where nothing may fail.
 * W4. A put brings its number and is kept apart from others by it, so that none of an earlier life
 *     can arrive unseen.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals4.h>

#include "books.h"
#include "bytes.h"

#define PORTAL     1
#define ROOM       4096 /* events */
#define PLACES     4096 /* of puts, by their numbers */
#define LARGEST    (1u << 20)
#define COUNTED    16 /* puts at a time */
#define TRIGGERED  8  /* of them */
#define RUNNING    20 /* operations that have ended until the driver hears of it */
#define TALKS      4
#define LIFE_SHIFT 40
#define WAIT_MS    10

enum kind { SMALL, LARGE, GET, FETCH, KINDS };
static const unsigned op_counts[KINDS] = {32, 4, 6, 8};
static const unsigned chosen[KINDS] = {1, 2, 4, 4}; /* bits of the driver's */

struct op {
	enum kind kind;
	bool going, sent;
	uint64_t number, size;
	unsigned char *bytes;
};

static struct {
	ptl_handle_ni_t ni;
	ptl_process_t self, peer;
	ptl_handle_eq_t queue;
	ptl_handle_ct_t count, trigger;
	ptl_handle_md_t logged, counted;
	ptl_handle_me_t entry;
	struct op ops[KINDS][32];
	unsigned going;
	bool strict;
	unsigned kinds;
	uint64_t random, number, floor, drawn;
	uint64_t ended, failed;
	uint64_t told; /* that the counter must come to */
	uint64_t fired;
	char line[64];
	_Atomic bool heard;
} me;

/* What the other process may use. */
static struct shared {
	uint64_t word;
	uint64_t puts[PLACES];
	unsigned char large[LARGEST];
	unsigned char read[2 * LARGEST];
} shared;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "kills4 %u:%u: ", me.self.phys.nid, me.self.phys.pid);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	_exit(1);
}

#define check(call) check_code((call), #call, __LINE__)
static void check_code(int code, const char *call, int line)
{
	if (code != PTL_OK)
		fail("line %d: %s gives %d", line, call, code);
}

static uint64_t draw(uint64_t limit)
{
	me.random = mix(me.random, limit);
	return me.random % limit;
}

static uint64_t seed_of(ptl_process_t process)
{
	return process.phys.nid + ((uint64_t)process.phys.pid << 16);
}

/* --- operations */

static void op_begin(struct op *op)
{
	uint64_t offset = 0;
	ptl_size_t at = (uintptr_t)op->bytes;

	op->going = true;
	op->sent = false;
	op->number = ++me.number;
	me.going++;
	switch (op->kind) {
	case SMALL:
		memcpy(op->bytes, &op->number, 8);
		check(PtlPut(me.logged, at, 8, PTL_ACK_REQ, me.peer, PORTAL, 0,
			offsetof(struct shared, puts) + op->number % PLACES * 8, op, 0));
		break;
	case LARGE:
		op->size = draw(LARGEST);
		check(PtlPut(me.logged, at, op->size, PTL_ACK_REQ, me.peer, PORTAL, 0,
			offsetof(struct shared, large), op, 0));
		break;
	case GET:
		op->size = draw(LARGEST);
		op->number = offset = draw(LARGEST) & ~UINT64_C(7);
		check(PtlGet(me.logged, at, op->size, me.peer, PORTAL, 0,
			offsetof(struct shared, read) + offset, op));
		break;
	default:
		op->number = 1;
		memcpy(op->bytes + 8, &op->number, 8);
		check(PtlFetchAtomic(me.logged, at, me.logged, at + 8, 8, me.peer, PORTAL, 0,
			offsetof(struct shared, word), op, 0, PTL_SUM, PTL_UINT64_T));
	}
}

static void op_end(struct op *op, bool well)
{
	op->going = false;
	me.going--;
	me.ended += well;
	me.failed += !well;
}

/* What the reply to an operation has brought. W3 */
static void op_look(const struct op *op, ptl_size_t length)
{
	uint64_t before;

	if (op->kind == GET) {
		if (length != op->size)
			fail("a get of %" PRIu64 " bytes brings %" PRIu64, op->size, length);
		bytes_check(op->bytes, length, seed_of(me.peer), op->number);
		return;
	}
	memcpy(&before, op->bytes, 8);
	if (me.strict && before != me.drawn && me.drawn != 0)
		fail("a fetch brings %" PRIu64 " instead of %" PRIu64, before, me.drawn);
	if (before < me.drawn && me.failed == 0)
		fail("a fetch brings %" PRIu64 " after %" PRIu64, before, me.drawn - 1);
	me.drawn = before + 1;
}

/* W1 */
static void event_handle(const ptl_event_t *event)
{
	struct op *op = event->user_ptr;
	bool put = op->kind == SMALL || op->kind == LARGE;
	bool well = event->ni_fail_type == PTL_NI_OK;

	if (!op->going)
		fail("event %d of an operation that is over, of kind %d", event->type, op->kind);
	if (!well && me.strict)
		fail("event %d, kind %d: an operation with a living process fails: %d", event->type,
			op->kind, event->ni_fail_type);
	/* dropped: its target has begun anew, and is not ready */
	if (!well && event->ni_fail_type != PTL_NI_UNDELIVERABLE &&
		event->ni_fail_type != PTL_NI_DROPPED)
		fail("event %d, kind %d: fails with %d", event->type, op->kind,
			event->ni_fail_type);
	if (event->type == PTL_EVENT_SEND) {
		if (op->kind == GET || op->sent)
			fail("SEND of kind %d is not due", op->kind);
		op->sent = true;
		if (!well && put)
			op_end(op, false);
		return;
	}
	if (event->type != (put ? PTL_EVENT_ACK : PTL_EVENT_REPLY) ||
		(op->kind != GET && !op->sent))
		fail("event %d of kind %d is not due", event->type, op->kind);
	if (well && !put)
		op_look(op, event->mlength);
	op_end(op, well);
}

/* Handles an event, if there is one in time. */
static void turn(void)
{
	ptl_event_t event;
	unsigned which;
	int code = PtlEQPoll(&me.queue, 1, WAIT_MS, &event, &which);

	if (code == PTL_EQ_EMPTY)
		return;
	check_code(code, "PtlEQPoll", __LINE__);
	event_handle(&event);
}

/* Of counted puts. W2 */
static uint64_t count_now(void)
{
	ptl_ct_event_t count;

	check(PtlCTGet(me.count, &count));
	if (count.success + count.failure > me.told)
		fail("the counter is %" PRIu64 "/%" PRIu64 ", but at most %" PRIu64 " are due",
			count.success, count.failure, me.told);
	return count.success + count.failure;
}

/* COUNTED puts, of which some are triggered and then run at once, in one go. */
static void counted_begin(void)
{
	static uint64_t numbers[COUNTED];

	for (unsigned i = 0; i < COUNTED; i++) {
		uint64_t offset;

		numbers[i] = ++me.number;
		offset = offsetof(struct shared, puts) + numbers[i] % PLACES * 8;
		if (i < TRIGGERED)
			check(PtlTriggeredPut(me.counted, (uintptr_t)&numbers[i], 8, PTL_CT_ACK_REQ,
				me.peer, PORTAL, 0, offset, NULL, 0, me.trigger,
				me.fired + 1 + i / 2));
		else
			check(PtlPut(me.counted, (uintptr_t)&numbers[i], 8, PTL_CT_ACK_REQ, me.peer,
				PORTAL, 0, offset, NULL, 0));
	}
	me.told += UINT64_C(2) * COUNTED;
	me.fired += TRIGGERED / 2;
	check(PtlCTInc(me.trigger, (ptl_ct_event_t){.success = TRIGGERED / 2}));
}

static void ops_fill(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; me.kinds & chosen[kind] && i < op_counts[kind]; i++)
			if (!me.ops[kind][i].going)
				op_begin(&me.ops[kind][i]);
	if (me.kinds & 1 && count_now() == me.told)
		counted_begin();
}

/* --- memory that the other process may use */

static void entry_open(void)
{
	const ptl_me_t entry = {
		.start = &shared,
		.length = sizeof(shared),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
		.match_id = me.peer,
	};

	check(PtlMEAppend(me.ni, PORTAL, &entry, PTL_PRIORITY_LIST, NULL, &me.entry));
}

/* W4 */
static void puts_look(void)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (shared.puts[i] != 0 && shared.puts[i] <= me.floor)
			fail("put %" PRIx64 " has come, of a life up to %" PRIx64, shared.puts[i],
				me.floor);
}

/* --- the driver's words */

static void *listen(void *argument)
{
	(void)argument;
	for (;;) {
		while (atomic_load(&me.heard))
			usleep(1000);
		if (!fgets(me.line, sizeof(me.line), stdin))
			_exit(1); /* the driver has gone away */
		me.line[strcspn(me.line, "\n")] = '\0';
		atomic_store(&me.heard, true);
	}
	return NULL;
}

static void drain(void)
{
	while (me.going > 0 || count_now() != me.told)
		turn();
}

static void run(uint64_t seed, unsigned kinds)
{
	uint64_t before = me.ended;

	me.random = seed;
	me.kinds = kinds;
	while (kinds != 0 && me.ended - before < RUNNING) {
		ops_fill();
		turn();
	}
	puts("running");
}

static void stop(void)
{
	me.kinds = 0;
	drain();
	printf("stopped %" PRIu64 "\n", me.number);
}

static void talk(bool strict)
{
	me.strict = strict;
	me.drawn = 0;
	for (unsigned i = 0; i < (strict ? TALKS : 1); i++)
		for (unsigned kind = 0; kind < (strict ? (unsigned)KINDS : 1); kind++) {
			ptl_ct_event_t before, after;

			op_begin(&me.ops[kind][0]);
			drain();
			if (!strict)
				continue;
			check(PtlCTGet(me.count, &before));
			counted_begin();
			drain();
			check(PtlCTGet(me.count, &after));
			if (after.failure != before.failure)
				fail("a counted put to a living process fails");
		}
	me.strict = false;
	puts_look();
	puts(strict ? "talked" : "knocked");
}

/* PTL_IN_USE as long as a message is in progress that the other one has begun. */
static void settle(void)
{
	int code;

	while ((code = PtlMEUnlink(me.entry)) == PTL_IN_USE)
		usleep(1000);
	check_code(code, "PtlMEUnlink", __LINE__);
	puts_look();
	entry_open();
	printf("settled %u %zu\n", files_open(), heap_kilobytes());
}

static void look(void)
{
	ptl_ct_event_t count;

	check(PtlCTGet(me.count, &count));
	fprintf(stderr,
		"kills4 %u:%u: %u operations going on; the counter is %" PRIu64 "/%" PRIu64
		", %" PRIu64 " are due\n",
		me.self.phys.nid, me.self.phys.pid, me.going, count.success, count.failure,
		me.told);
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < op_counts[kind]; i++)
			if (me.ops[kind][i].going)
				fprintf(stderr, "  kind %u: SEND %s\n", kind,
					me.ops[kind][i].sent ? "has come" : "has not come");
}

/* Returns false at the end. */
static bool word_obey(const char *line)
{
	uint64_t number;
	unsigned kinds;

	if (sscanf(line, "run %" SCNu64 " %u", &number, &kinds) == 2)
		run(number, kinds);
	else if (sscanf(line, "floor %" SCNu64, &number) == 1)
		me.floor = number > me.floor ? number : me.floor;
	else if (strcmp(line, "stop") == 0)
		stop();
	else if (strcmp(line, "settle") == 0)
		settle();
	else if (strcmp(line, "knock") == 0)
		talk(false);
	else if (strcmp(line, "talk") == 0)
		talk(true);
	else if (strcmp(line, "look") == 0)
		look();
	else if (strcmp(line, "quit") == 0)
		return false;
	else if (strcmp(line, "go") != 0)
		fail("there is no word \"%s\"", line);
	fflush(stdout);
	return true;
}

static void obey(void)
{
	char line[sizeof(me.line)];

	do {
		while (!atomic_load(&me.heard)) {
			ops_fill();
			turn();
		}
		memcpy(line, me.line, sizeof(line));
		atomic_store(&me.heard, false);
	} while (word_obey(line));
}

static void books_open(void)
{
	const ptl_md_t logged = {
		.length = PTL_SIZE_MAX, .eq_handle = me.queue, .ct_handle = PTL_CT_NONE};
	const ptl_md_t counted = {.length = PTL_SIZE_MAX,
		.options = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK,
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = me.count};

	check(PtlMDBind(me.ni, &logged, &me.logged));
	check(PtlMDBind(me.ni, &counted, &me.counted));
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < op_counts[kind]; i++) {
			me.ops[kind][i] =
				(struct op){.kind = (enum kind)kind, .bytes = calloc(1, LARGEST)};
			if (!me.ops[kind][i].bytes)
				fail("there is no memory");
		}
	bytes_fill(shared.read, sizeof(shared.read), seed_of(me.self));
}

int main(int count, char **words)
{
	ptl_pt_index_t portal;
	pthread_t thread;

	if (count != 4 || sscanf(words[2], "%u:%u", &me.peer.phys.nid, &me.peer.phys.pid) != 2)
		fail("usage: kills4 SELF_PID PEER_NID:PEER_PID LIFE");
	me.number = strtoull(words[3], NULL, 10) << LIFE_SHIFT;
	check(PtlInit());
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
		(ptl_pid_t)atoi(words[1]), NULL, NULL, &me.ni));
	check(PtlGetPhysId(me.ni, &me.self));
	check(PtlEQAlloc(me.ni, ROOM, &me.queue));
	check(PtlCTAlloc(me.ni, &me.count));
	check(PtlCTAlloc(me.ni, &me.trigger));
	books_open();
	check(PtlPTAlloc(me.ni, 0, PTL_EQ_NONE, PORTAL, &portal));
	entry_open();
	if (pthread_create(&thread, NULL, listen, NULL) != 0)
		fail("there is no thread");
	puts("ready");
	fflush(stdout);
	obey();
	check(PtlNIFini(me.ni));
	PtlFini();
	return 0;
}
