/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.c - one of many processes of a node, each of which puts to and gets from all others, always
 * one operation for each. crowd.py stops and kills some of them, and judges what this one reports.
 *
 *     crowd SELF_PID COUNT LIFE
 *
 * The processes have the ids 1 to COUNT. LIFE is different in each start. Standard input and output
 * speak with the driver, a line at a time. "ready" is said first; then any of these is obeyed:
 *
 *     go       begins operations: "going"
 *     rest     begins no more: "resting" when all have ended
 *     count    "counted N1 N2 ...": operations with each process that have ended well
 *     look     "looked JSON": what the interface tells of its node, without line ends
 *     pour PID "poured": puts more to that process than the memory between the two holds, and waits
 *              for nothing
 *     settle   after "rest": "settled FILES KILOBYTES", when no frame buffer is in use
 *     quit     ends
 *
 * and these are reported at any time:
 *
 *     failed PID SINCE    an operation with this process failed. The last one with it that ended
 *                         well began at SINCE, in ns of CLOCK_MONOTONIC; without one, the first
 *                         one began then
 *     lost PID SINCE      what had been put there is gone: SINCE is when the put began
 *
 * V1. Each operation has a memory descriptor of its own, which can be unlinked once the operation
 *     has ended. An event of a descriptor that has gone, or a second end, fails the test.
 * V2. What is put follows from a number; what is gotten must be what was last put, or nothing at
 *     all, if the target has been started anew.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "books.h"
#include "checks.h"
#include "state.h"

#define PORTAL        1
#define PORTAL_SINK   2
#define COUNT_MOST    64
#define POURED        100  /* puts of LARGEST bytes */
#define ROOM          1024 /* events: an operation has two, and each other process one operation */
#define LARGEST       (200u << 10)
#define SMALL_LARGEST 200u
#define LIFE_SHIFT    40
#define SETTLE_LOOKS  3000 /* at the buffers in use, LOOK_NS apart */
#define LOOK_NS       10000000L
#define JSON_BYTES    65536

enum state { FREE, ASKED, STARTED };

/* Another process. */
struct other {
	ptl_process_id_t process;
	unsigned char *store;  /* that it puts to and gets from */
	unsigned char *memory; /* of the operation with it */
	enum state state;
	bool get;
	uint64_t number; /* of the last put; 0: nothing is known to be there */
	uint64_t size;   /* of that put */
	uint64_t put_at; /* when it began */
	uint64_t began;  /* when the operation under way did */
	uint64_t since;  /* when the last one did that ended well */
	uint64_t ended;  /* operations */
	ptl_handle_md_t md;
};

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t queue;
	ptl_process_id_t self;
	unsigned count;
	unsigned going; /* operations */
	bool on;
	bool resting; /* "rest" was said, and not yet answered */
	bool poured;
	ptl_handle_md_t pour;
	unsigned char *sink; /* what is poured, and where it goes */
	uint64_t numbers;
	uint64_t random;
	struct other others[COUNT_MOST + 1];
} me;

static _Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "crowd %u: ", me.self.pid);
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

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t draw(uint64_t limit)
{
	me.random = mix(me.random, limit);
	return me.random % limit;
}

static bool is_zero(const unsigned char *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* --- operations */

/* A put, and then a get of what was put. */
static void op_begin(struct other *other)
{
	ptl_md_t md = {.start = other->memory,
		.threshold = PTL_MD_THRESH_INF,
		.user_ptr = other,
		.eventq = me.queue};

	other->get = other->number != 0 && !other->get;
	other->began = now();
	if (other->since == 0)
		other->since = other->began;
	if (other->get) {
		memset(other->memory, 1, other->size);
	} else {
		other->number = ++me.numbers;
		other->size = 8 + draw(draw(4) == 0 ? LARGEST - 8 : SMALL_LARGEST);
		other->put_at = other->began;
		bytes_fill(other->memory, other->size, other->number);
	}
	md.length = other->size;
	other->state = ASKED;
	me.going++;
	check(PtlMDBind(me.ni, md, &other->md));
	if (other->get)
		check(PtlGet(other->md, other->process, PORTAL, 0, 0, 0));
	else
		check(PtlPut(other->md, PTL_NOACK_REQ, other->process, PORTAL, 0, 0, 0, 0));
}

/* V1 */
static void op_end(struct other *other, bool well)
{
	check(PtlMDUnlink(other->md));
	other->state = FREE;
	me.going--;
	if (well) {
		other->ended++;
		other->since = other->began;
		return;
	}
	say("failed %u %" PRIu64, other->process.pid, other->since);
	other->number = 0;
	other->get = false;
}

/* V2 */
static void get_check(struct other *other)
{
	if (is_zero(other->memory, other->size)) {
		say("lost %u %" PRIu64, other->process.pid, other->put_at);
		other->number = 0;
		return;
	}
	bytes_check(other->memory, other->size, other->number, 0);
}

static void event_handle(const ptl_event_t *event)
{
	struct other *other = event->mem_desc.user_ptr;
	bool reply = event->type == PTL_EVENT_REPLY_START || event->type == PTL_EVENT_REPLY_END ||
		     event->type == PTL_EVENT_REPLY_FAIL;

	if (other->state == FREE || event->md_handle != other->md)
		fail("%s of an operation with %u that has ended", postern_event_name(event->type),
			other->process.pid);
	expect_equal(reply, other->get);
	switch (event->type) {
	case PTL_EVENT_SEND_START:
	case PTL_EVENT_REPLY_START:
		expect_equal(other->state, ASKED);
		other->state = STARTED;
		break;
	case PTL_EVENT_SEND_END:
	case PTL_EVENT_REPLY_END:
		expect_equal(other->state, STARTED);
		if (reply)
			get_check(other);
		op_end(other, true);
		break;
	case PTL_EVENT_SEND_FAIL:
	case PTL_EVENT_REPLY_FAIL:
		op_end(other, false);
		break;
	default:
		fail("%s", postern_event_name(event->type));
	}
}

/* --- the driver's words */

static void pour(unsigned pid)
{
	const ptl_md_t md = {.start = me.sink,
		.length = LARGEST,
		.threshold = PTL_MD_THRESH_INF,
		.eventq = PTL_EQ_NONE};

	expect(pid >= 1 && pid <= me.count && !me.poured);
	check(PtlMDBind(me.ni, md, &me.pour));
	me.poured = true;
	for (unsigned n = 0; n < POURED; n++)
		check(PtlPut(
			me.pour, PTL_NOACK_REQ, me.others[pid].process, PORTAL_SINK, 0, 0, 0, 0));
	say("poured");
}

static void settle(void)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	unsigned looks = 0;

	expect_equal(me.going, 0);
	while (me.poured) {
		int code = PtlMDUnlink(me.pour);

		expect(code == PTL_OK || code == PTL_MD_INUSE);
		me.poured = code != PTL_OK;
		nanosleep(&pause, NULL);
	}
	for (; buffers_used(me.ni) != 0 && looks < SETTLE_LOOKS; looks++)
		nanosleep(&pause, NULL);
	if (looks == SETTLE_LOOKS) {
		state_tell(me.ni);
		fail("%" PRIu64 " frame buffers stay in use", buffers_used(me.ni));
	}
	say("settled %u %zu", files_open(), heap_kilobytes());
}

static void count_say(void)
{
	printf("counted");
	for (unsigned i = 1; i <= me.count; i++)
		printf(" %" PRIu64, me.others[i].ended);
	say("%s", "");
}

static void look_say(void)
{
	static char json[JSON_BYTES];
	int length = postern_inspect(me.ni, "node", 0, 0, json, sizeof(json));

	expect(length > 0 && (size_t)length < sizeof(json));
	for (int i = 0; i < length; i++)
		if (json[i] == '\n')
			json[i] = ' ';
	say("looked %s", json);
}

/* Returns false at the end. */
static bool word_obey(const char *word)
{
	unsigned pid;

	if (sscanf(word, "pour %u", &pid) == 1) {
		pour(pid);
	} else if (strcmp(word, "go") == 0) {
		me.on = true;
		say("going");
	} else if (strcmp(word, "rest") == 0) {
		me.on = false;
		me.resting = true;
	} else if (strcmp(word, "count") == 0) {
		count_say();
	} else if (strcmp(word, "look") == 0) {
		look_say();
	} else if (strcmp(word, "settle") == 0) {
		settle();
	} else if (strcmp(word, "quit") == 0) {
		return false;
	} else {
		fail("there is no word \"%s\"", word);
	}
	return true;
}

/* Waits for an event, or for the driver. Returns true if the driver has written something, or has
 * ended. */
static bool wait_for_any(int events)
{
	struct pollfd fds[] = {
		{.fd = events, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0)
		;
	return fds[1].revents != 0;
}

static void work(int events)
{
	ptl_event_t event;
	char line[64];
	int code;

	for (;;) {
		for (unsigned i = 1; me.on && i <= me.count; i++)
			if (i != me.self.pid && me.others[i].state == FREE)
				op_begin(&me.others[i]);
		for (unsigned n = 0;
			n < ROOM && (code = PtlEQGet(me.queue, &event)) != PTL_EQ_EMPTY; n++) {
			check_code(code, "PtlEQGet", __LINE__);
			event_handle(&event);
			if (me.on && ((struct other *)event.mem_desc.user_ptr)->state == FREE)
				op_begin(event.mem_desc.user_ptr);
		}
		if (me.resting && me.going == 0) {
			me.resting = false;
			say("resting");
		}
		if (!wait_for_any(events))
			continue;
		if (fgets(line, sizeof(line), stdin) == NULL)
			_exit(1); /* the driver has gone */
		line[strcspn(line, "\n")] = '\0';
		if (!word_obey(line))
			return;
	}
}

static void other_open(unsigned pid)
{
	struct other *other = &me.others[pid];
	ptl_md_t md = {.length = LARGEST,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		.eventq = PTL_EQ_NONE};
	ptl_handle_me_t entry;

	other->process = (ptl_process_id_t){me.self.nid, pid};
	other->store = calloc(1, LARGEST);
	other->memory = calloc(1, LARGEST);
	expect(other->store != NULL && other->memory != NULL);
	md.start = other->store;
	check(PtlMEAttach(me.ni, PORTAL, other->process, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL));
}

static void sink_open(void)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.length = LARGEST,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = PTL_EQ_NONE};
	ptl_handle_me_t entry;

	me.sink = calloc(1, LARGEST);
	expect(me.sink != NULL);
	md.start = me.sink;
	check(PtlMEAttach(me.ni, PORTAL_SINK, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, md, PTL_RETAIN, PTL_RETAIN, NULL));
}

int main(int count, char **words)
{
	int interfaces, events;

	if (count != 4 || atoi(words[2]) < 1 || atoi(words[2]) > COUNT_MOST)
		fail("usage: crowd SELF_PID COUNT LIFE");
	me.count = (unsigned)atoi(words[2]);
	me.random = strtoull(words[3], NULL, 10);
	me.numbers = me.random << LIFE_SHIFT;
	setvbuf(stdin, NULL, _IONBF, 0); /* a line in stdio's buffer would not wake poll() */
	state_block();
	check(PtlInit(&interfaces));
	check(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)atoi(words[1]), NULL, NULL, &me.ni));
	expect(state_open(&me.ni));
	check(PtlGetId(me.ni, &me.self));
	check(PtlEQAlloc(me.ni, ROOM, &me.queue));
	for (unsigned pid = 1; pid <= me.count; pid++)
		if (pid != me.self.pid)
			other_open(pid);
	sink_open();
	events = postern_eq_fd(me.queue);
	expect(events >= 0);
	say("ready");
	work(events);
	check(PtlNIFini(me.ni));
	PtlFini();
	return 0;
}
