/* SPDX-License-Identifier: BSD-3-Clause */
/* kills.c - one of two processes of which kills.py kills one at any moment. The other one keeps
 * books of every operation: each that was started must end, once, and leave nothing behind.
 *
 *     kills SELF_PID PEER_NID:PEER_PID LIFE
 *
 * LIFE is a number that grows from one start of a process to the next. Standard output speaks to
 * the driver, a line at a time; standard input listens to it. First "ready" is said, then "go" is
 * awaited, and then any of
 *
 *     run SEED KINDS   starts operations of these kinds (bits: 1 small puts, 2 large puts, 4 gets)
 *                      until "stop": "running" is said when some have ended
 *     stop             no new ones: "stopped NUMBER" is said when all have ended, with the number
 *                      of the last put
 *     settle           when the other process has stopped or is dead: waits until all that it began
 *                      here has ended, unlinks every descriptor, sees that no frame buffer is in
 *                      use, and opens everything anew: "settled FILES KILOBYTES", what the process
 *                      has open, and has taken from malloc()
 *     floor NUMBER     no put that arrives from now on may have this number or a lower one
 *     knock            one put, which may fail: a process that had nothing under way when the
 *                      other one died learns it only now: "knocked"
 *     talk             one operation after the other, none of which may fail: "talked"
 *     look             the books, on standard error
 *     quit             ends
 *
 * One thread does everything but listen; the listener wakes it by a put to the own process.
 *
 * V1. Each operation has a memory descriptor of its own, so an event belongs to one operation for
 * certain.
 * V2. Each entry here takes one message and is gone: what has been received is not overwritten
 * before it was looked at, and no
 *     more events can come than the queue has room for. A message that finds no entry is dropped,
 *     which the books allow.
 * V3. The length and the bytes of a put follow from its number, those of a get from its place: each
 * is checked.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

#include "books.h"
#include "checks.h"
#include "state.h"

#define PORTAL        1
#define PORTAL_WORD   2
#define ROOM          8192 /* events: three for each entry, and those of operations */
#define SMALL_LARGEST 4000
#define LARGE_LARGEST (1u << 20)
#define TALK_ROUNDS   4
#define RUNNING       20   /* operations that have ended until the driver hears of it */
#define SETTLE_LOOKS  3000 /* at the buffers in use, LOOK_NS apart */
#define LOOK_NS       10000000L
#define LIFE_SHIFT    40
#define STATS_MAX     256

enum kind { SMALL, LARGE, GET, KINDS };

static const unsigned op_counts[KINDS] = {32, 6, 6};
static const unsigned entry_counts[KINDS] = {512, 16, 64};

/* What an event's user_ptr points to begins with one of these. */
enum role { ROLE_OP, ROLE_ENTRY, ROLE_WORD };

enum op_state {
	OP_FREE,
	OP_ASKED,   /* nothing has been heard of it */
	OP_STARTED, /* its START event has come */
	OP_ENDED    /* a put whose acknowledgement may come */
};

/* An operation that this process starts. */
struct op {
	enum role role;
	enum kind kind;
	enum op_state state;
	bool acknowledge;
	uint64_t number; /* of a put; where a get begins */
	uint64_t size;
	unsigned char *bytes;
	ptl_handle_md_t md;
	ptl_seq_t link;
};

enum entry_state {
	ENTRY_CLOSED,
	ENTRY_OPEN,
	ENTRY_STARTED,
	ENTRY_ENDED /* its UNLINK event is still to come */
};

/* One message that the other process may start here. */
struct entry {
	enum role role;
	enum kind kind;
	enum entry_state state;
	unsigned char *bytes;
	ptl_handle_me_t me;
	ptl_seq_t link;
};

static struct {
	ptl_handle_ni_t ni;
	ptl_process_id_t self, peer;
	ptl_handle_eq_t queue;
	struct op *ops[KINDS];
	struct entry *entries[KINDS];
	unsigned going; /* operations asked or started */
	unsigned begun; /* entries started or ended */
	bool strict;    /* nothing may fail */
	bool settling;  /* entries are not opened anew */
	unsigned kinds; /* that are started all the time */
	uint64_t random;
	uint64_t number;   /* of the last put */
	uint64_t received; /* the number of the last one that started here */
	uint64_t ended, failed, placed, cut;
	char line[64]; /* the driver's last word */
	bool heard;
	sem_t taken;
} me;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "kills %u:%u: ", me.self.nid, me.self.pid);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	_exit(1);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

/* --- bytes */

static uint64_t draw(uint64_t limit)
{
	me.random = mix(me.random, limit);
	return me.random % limit;
}

static uint64_t kind_largest(enum kind kind)
{
	return kind == SMALL ? SMALL_LARGEST : LARGE_LARGEST;
}

/* V3 */
static uint64_t put_size(enum kind kind, uint64_t number)
{
	uint64_t size = mix(number, 1) % (kind_largest(kind) + 1);

	return number % 4 == 0 ? size % 64 : size;
}

static void *memory_make(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL)
		fail("there is no memory");
	return memory;
}

/* --- operations that are started here */

static void op_start(struct op *op, bool acknowledge)
{
	ptl_md_t md = {.threshold = PTL_MD_THRESH_INF, .user_ptr = op, .eventq = me.queue};
	uint64_t offset = 0;

	op->state = OP_ASKED;
	op->acknowledge = acknowledge;
	if (op->kind == GET) {
		op->size = draw(LARGE_LARGEST / 2);
		op->number = offset = draw(LARGE_LARGEST / 2) & ~UINT64_C(7);
	} else {
		op->number = ++me.number;
		op->size = put_size(op->kind, op->number);
		bytes_fill(op->bytes, op->size, op->number);
	}
	md.start = op->bytes;
	md.length = op->size;
	check(PtlMDBind(me.ni, md, &op->md));
	me.going++;
	if (op->kind == GET)
		check(PtlGet(op->md, me.peer, PORTAL, 0, GET, offset));
	else
		check(PtlPut(op->md, acknowledge ? PTL_ACK_REQ : PTL_NOACK_REQ, me.peer, PORTAL, 0,
			op->kind, 0, op->number));
}

/* Nothing more will be heard of it: its descriptor must be free. */
static void op_free(struct op *op)
{
	check(PtlMDUnlink(op->md));
	op->state = OP_FREE;
}

static void op_end(struct op *op, bool well)
{
	me.going--;
	me.ended += well;
	me.failed += !well;
	if (well && op->acknowledge)
		op->state = OP_ENDED;
	else
		op_free(op);
}

/* The one who might have acknowledged is dead. */
static void ops_forget_acknowledgements(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < op_counts[kind]; i++)
			if (me.ops[kind][i].state == OP_ENDED)
				op_free(&me.ops[kind][i]);
}

static void op_failed(struct op *op, const ptl_event_t *event)
{
	bool get = event->type == PTL_EVENT_REPLY_FAIL;
	ptl_ni_fail_t why = event->ni_fail_type;

	if (me.strict)
		fail("an operation with a living process fails: %s", postern_fail_text(why));
	expect(op->state == OP_STARTED || (get && op->state == OP_ASKED));
	if (op->state == OP_STARTED)
		expect_equal(event->link, op->link);
	expect(why == PTL_NI_UNREACHABLE || why == PTL_NI_PEER_DEAD ||
		why == PTL_NI_PEER_RESTARTED || (get && why == PTL_NI_UNDELIVERABLE));
	op_end(op, false);
	if (why != PTL_NI_UNDELIVERABLE)
		ops_forget_acknowledgements();
}

static void op_event(struct op *op, const ptl_event_t *event)
{
	if (op->state == OP_FREE || event->md_handle != op->md) {
		/* one that was forgotten while its acknowledgement lay in the queue */
		expect_equal(event->type, PTL_EVENT_ACK);
		return;
	}
	switch (event->type) {
	case PTL_EVENT_SEND_START:
	case PTL_EVENT_REPLY_START:
		expect_equal(op->state, OP_ASKED);
		expect_equal(event->type == PTL_EVENT_REPLY_START, op->kind == GET);
		op->state = OP_STARTED;
		op->link = event->sequence;
		break;
	case PTL_EVENT_SEND_END:
		expect_equal(op->state, OP_STARTED);
		expect_equal(event->link, op->link);
		op_end(op, true);
		break;
	case PTL_EVENT_REPLY_END:
		expect_equal(op->state, OP_STARTED);
		expect_equal(event->link, op->link);
		expect_equal(event->mlength, op->size);
		bytes_check(op->bytes, op->size, seed_of(me.peer), op->number);
		op_end(op, true);
		break;
	case PTL_EVENT_ACK:
		expect_equal(op->state, OP_ENDED);
		expect_equal(event->mlength, op->size);
		op_free(op);
		break;
	case PTL_EVENT_SEND_FAIL:
	case PTL_EVENT_REPLY_FAIL:
		op_failed(op, event);
		break;
	default:
		fail("%s of an operation that is started here", postern_event_name(event->type));
	}
}

/* --- entries */

static void entry_open(struct entry *entry)
{
	ptl_md_t md = {
		.start = entry->bytes,
		.length = kind_largest(entry->kind),
		.threshold = 1,
		.max_offset = UINT32_MAX,
		.options =
			PTL_MD_MANAGE_REMOTE | (entry->kind == GET ? PTL_MD_OP_GET : PTL_MD_OP_PUT),
		.user_ptr = entry,
		.eventq = me.queue,
	};

	entry->state = ENTRY_OPEN;
	check(PtlMEAttach(
		me.ni, PORTAL, me.peer, entry->kind, 0, PTL_UNLINK, PTL_INS_AFTER, &entry->me));
	check(PtlMDAttach(entry->me, md, PTL_UNLINK, PTL_RETAIN, NULL));
}

static void entry_gone(struct entry *entry)
{
	me.begun--;
	entry->state = ENTRY_CLOSED;
	if (!me.settling)
		entry_open(entry);
}

static void entry_started(struct entry *entry, const ptl_event_t *event)
{
	expect_equal(entry->state, ENTRY_OPEN);
	entry->state = ENTRY_STARTED;
	entry->link = event->sequence;
	me.begun++;
	if (entry->kind == GET)
		return;
	if (event->hdr_data <= me.received)
		fail("put %" PRIx64 " starts after %" PRIx64, event->hdr_data, me.received);
	me.received = event->hdr_data;
}

static void entry_event(struct entry *entry, const ptl_event_t *event)
{
	bool get = entry->kind == GET;

	switch (event->type) {
	case PTL_EVENT_PUT_START:
	case PTL_EVENT_GET_START:
		expect_equal(event->type == PTL_EVENT_GET_START, get);
		entry_started(entry, event);
		break;
	case PTL_EVENT_PUT_END:
		expect_equal(entry->state, ENTRY_STARTED);
		expect_equal(event->link, entry->link);
		expect_equal(event->mlength, put_size(entry->kind, event->hdr_data));
		bytes_check(entry->bytes, event->mlength, event->hdr_data, 0);
		entry->state = ENTRY_ENDED;
		me.placed++;
		break;
	case PTL_EVENT_GET_END:
		expect_equal(entry->state, ENTRY_STARTED);
		expect_equal(event->link, entry->link);
		entry->state = ENTRY_ENDED;
		me.placed++;
		break;
	case PTL_EVENT_PUT_FAIL:
	case PTL_EVENT_GET_FAIL:
		expect_equal(entry->state, ENTRY_STARTED);
		expect_equal(event->link, entry->link);
		if (me.strict)
			fail("a message from a living process fails: %s",
				postern_fail_text(event->ni_fail_type));
		me.cut++;
		check(PtlMEUnlink(entry->me)); /* a failed operation unlinks nothing */
		entry_gone(entry);
		break;
	case PTL_EVENT_UNLINK:
		expect_equal(entry->state, ENTRY_ENDED);
		expect_equal(event->link, entry->link);
		entry_gone(entry);
		break;
	default:
		fail("%s of an entry", postern_event_name(event->type));
	}
}

/* --- the driver's words */

static void *listen(void *argument)
{
	const ptl_md_t none = {.threshold = PTL_MD_THRESH_INF, .eventq = PTL_EQ_NONE};
	ptl_handle_md_t voice;

	(void)argument;
	check(PtlMDBind(me.ni, none, &voice));
	for (;;) {
		if (fgets(me.line, sizeof(me.line), stdin) == NULL)
			_exit(1); /* the driver has gone away */
		me.line[strcspn(me.line, "\n")] = '\0';
		check(PtlPut(voice, PTL_NOACK_REQ, me.self, PORTAL_WORD, 0, 0, 0, 0));
		while (sem_wait(&me.taken) != 0)
			;
	}
	return NULL;
}

static void listen_open(void)
{
	static enum role role = ROLE_WORD;
	const ptl_md_t md = {.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT,
		.user_ptr = &role,
		.eventq = me.queue};
	ptl_handle_me_t entry;
	pthread_t thread;

	check(PtlMEAttach(me.ni, PORTAL_WORD, me.self, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL));
	expect(sem_init(&me.taken, 0, 0) == 0);
	expect(pthread_create(&thread, NULL, listen, NULL) == 0);
}

static void event_handle(const ptl_event_t *event)
{
	switch (*(enum role *)event->mem_desc.user_ptr) {
	case ROLE_OP:
		op_event(event->mem_desc.user_ptr, event);
		break;
	case ROLE_ENTRY:
		entry_event(event->mem_desc.user_ptr, event);
		break;
	case ROLE_WORD:
		me.heard = me.heard || event->type == PTL_EVENT_PUT_END;
		break;
	}
}

static void event_await(void)
{
	ptl_event_t event;

	check(PtlEQWait(me.queue, &event));
	event_handle(&event);
}

/* Starts what may be started. When nothing is going on but acknowledgements that have not come,
 * their puts may have been dropped. */
static void ops_fill(void)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned kind = 0; kind < KINDS; kind++)
			for (unsigned i = 0; me.kinds & 1u << kind && i < op_counts[kind]; i++)
				if (me.ops[kind][i].state == OP_FREE)
					op_start(&me.ops[kind][i], kind != GET && draw(2) == 0);
		if (me.kinds == 0 || me.going > 0)
			break;
		ops_forget_acknowledgements();
	}
}

static void run(uint64_t seed, unsigned kinds)
{
	uint64_t before = me.ended;

	me.random = seed;
	me.kinds = kinds;
	while (kinds != 0 && me.ended - before < RUNNING) {
		ops_fill();
		event_await();
	}
	say("running");
}

static void stop(void)
{
	me.kinds = 0;
	while (me.going > 0)
		event_await();
	say("stopped %" PRIu64, me.number);
}

static void op_talk(enum kind kind, bool acknowledge)
{
	struct op *op = me.ops[kind];

	op_start(op, acknowledge);
	while (op->state != OP_FREE)
		event_await();
}

static void knock(void)
{
	op_talk(SMALL, true);
	say("knocked");
}

static void talk(void)
{
	me.strict = true;
	for (unsigned i = 0; i < TALK_ROUNDS; i++) {
		op_talk(SMALL, true);
		op_talk(SMALL, false);
		op_talk(GET, false);
		op_talk(LARGE, true);
	}
	me.strict = false;
	say("talked");
}

static void look(void)
{
	struct postern_stat stats[STATS_MAX];
	unsigned count = postern_stats(me.ni, stats, STATS_MAX);

	fprintf(stderr, "kills %u:%u: %u operations going on, %u begun by the peer\n", me.self.nid,
		me.self.pid, me.going, me.begun);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		unsigned ops[OP_ENDED + 1] = {0}, entries[ENTRY_ENDED + 1] = {0};

		for (unsigned i = 0; i < op_counts[kind]; i++)
			ops[me.ops[kind][i].state]++;
		for (unsigned i = 0; i < entry_counts[kind]; i++)
			entries[me.entries[kind][i].state]++;
		fprintf(stderr,
			"  kind %u: operations %u free, %u asked, %u started, %u ended; entries %u "
			"closed, %u open, %u started, %u ended\n",
			kind, ops[OP_FREE], ops[OP_ASKED], ops[OP_STARTED], ops[OP_ENDED],
			entries[ENTRY_CLOSED], entries[ENTRY_OPEN], entries[ENTRY_STARTED],
			entries[ENTRY_ENDED]);
	}
	for (unsigned i = 0; i < count && i < STATS_MAX; i++)
		if (stats[i].value != 0)
			fprintf(stderr, "%16" PRIu64 "  %s\n", stats[i].value, stats[i].name);
}

/* Returns true if the entry is gone. If it is not, events of it are in the queue or will come. */
static bool entry_close(struct entry *entry)
{
	int code;

	if (entry->state != ENTRY_OPEN)
		return entry->state == ENTRY_CLOSED;
	code = PtlMEUnlink(entry->me);
	if (code == PTL_MD_INUSE || code == PTL_INV_ME)
		return false;
	check_code(code, "PtlMEUnlink", __LINE__);
	entry->state = ENTRY_CLOSED;
	return true;
}

static void entries_close(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < entry_counts[kind]; i++)
			while (!entry_close(&me.entries[kind][i]))
				event_await();
	expect_equal(me.begun, 0);
}

static void entries_open(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < entry_counts[kind]; i++)
			entry_open(&me.entries[kind][i]);
}

static void settle(void)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	unsigned looks = 0;

	ops_forget_acknowledgements();
	me.settling = true;
	while (me.begun > 0)
		event_await();
	entries_close();
	for (; buffers_used(me.ni) != 0 && looks < SETTLE_LOOKS; looks++)
		nanosleep(&pause, NULL);
	if (looks == SETTLE_LOOKS) {
		look();
		fail("%" PRIu64 " frame buffers stay in use", buffers_used(me.ni));
	}
	me.settling = false;
	entries_open();
	say("settled %u %zu", files_open(), heap_kilobytes());
}

/* Returns false at the end. */
static bool word_obey(const char *line)
{
	uint64_t number;
	unsigned kinds;

	if (sscanf(line, "run %" SCNu64 " %u", &number, &kinds) == 2)
		run(number, kinds);
	else if (sscanf(line, "floor %" SCNu64, &number) == 1)
		me.received = number > me.received ? number : me.received;
	else if (strcmp(line, "stop") == 0)
		stop();
	else if (strcmp(line, "settle") == 0)
		settle();
	else if (strcmp(line, "knock") == 0)
		knock();
	else if (strcmp(line, "talk") == 0)
		talk();
	else if (strcmp(line, "look") == 0)
		look();
	else if (strcmp(line, "quit") == 0)
		return false;
	else if (strcmp(line, "go") != 0)
		fail("there is no word \"%s\"", line);
	return true;
}

static void obey(void)
{
	char line[sizeof(me.line)];

	do {
		while (!me.heard) {
			ops_fill();
			event_await();
		}
		memcpy(line, me.line, sizeof(line));
		me.heard = false;
		sem_post(&me.taken);
	} while (word_obey(line));
}

static void books_open(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		me.ops[kind] = memory_make(op_counts[kind], sizeof(struct op));
		me.entries[kind] = memory_make(entry_counts[kind], sizeof(struct entry));
		for (unsigned i = 0; i < op_counts[kind]; i++)
			me.ops[kind][i] = (struct op){.role = ROLE_OP,
				.kind = (enum kind)kind,
				.bytes = memory_make(1, kind_largest((enum kind)kind))};
		for (unsigned i = 0; i < entry_counts[kind]; i++)
			me.entries[kind][i] = (struct entry){.role = ROLE_ENTRY,
				.kind = (enum kind)kind,
				.bytes = kind == GET && i > 0
						 ? me.entries[GET][0].bytes
						 : memory_make(1, kind_largest((enum kind)kind))};
	}
	bytes_fill(me.entries[GET][0].bytes, LARGE_LARGEST, seed_of(me.self));
}

int main(int count, char **words)
{
	int interfaces;

	if (count != 4 || sscanf(words[2], "%u:%u", &me.peer.nid, &me.peer.pid) != 2)
		fail("usage: kills SELF_PID PEER_NID:PEER_PID LIFE");
	me.number = strtoull(words[3], NULL, 10) << LIFE_SHIFT;
	state_block();
	check(PtlInit(&interfaces));
	check(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)atoi(words[1]), NULL, NULL, &me.ni));
	expect(state_open(&me.ni));
	check(PtlGetId(me.ni, &me.self));
	check(PtlEQAlloc(me.ni, ROOM, &me.queue));
	books_open();
	entries_open();
	listen_open();
	say("ready");
	obey();
	check(PtlNIFini(me.ni));
	PtlFini();
	return 0;
}
