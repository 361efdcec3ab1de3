/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.c - see fixture.h. */
#include "../nap.h"
#include "fixture.h"

#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#define TIMEOUT_SECONDS 120         /* far beyond anything that the tests wait for */
#define WAY_IN_NS       20000000ull /* CPU time that entering PtlEQWait never takes */
#define TURNS           16          /* looks between two yields */
#define YIELDS          200         /* until it sleeps between two */
#define MOMENT          100000      /* ns */
#define THREADS_MAX     64

struct node here;
struct node there;

static _Atomic unsigned thread_failures;

const char *code_name(int code)
{
	static const char *const names[] = {"PTL_OK", "PTL_FAIL", "PTL_NOINIT", "PTL_NOSPACE",
		"PTL_SEGV", "PTL_INIT_DUP", "PTL_INIT_INV", "PTL_INV_NI", "PTL_INV_EQ",
		"PTL_INV_MD", "PTL_INV_ME", "PTL_INV_HANDLE", "PTL_INV_PROC", "PTL_INV_PTINDEX",
		"PTL_INV_SR_INDX", "PTL_INV_ASIZE", "PTL_AC_INV_INDEX", "PTL_PT_INV_INDEX",
		"PTL_PT_FULL", "PTL_ML_TOOLONG", "PTL_INUSE", "PTL_MD_INUSE", "PTL_ILL_MD",
		"PTL_NOUPDATE", "PTL_EQ_EMPTY", "PTL_EQ_DROPPED"};

	return code >= 0 && (size_t)code < COUNT(names) ? names[code] : "no return code";
}

const char *kind_name(ptl_event_kind_t kind)
{
	static const char *const names[] = {"GET_START", "GET_END", "GET_FAIL", "PUT_START",
		"PUT_END", "PUT_FAIL", "REPLY_START", "REPLY_END", "REPLY_FAIL", "SEND_START",
		"SEND_END", "SEND_FAIL", "ACK", "UNLINK"};

	return (size_t)kind < COUNT(names) ? names[kind] : "no event kind";
}

void code_check(int got, int want, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	print_error("%s returned %s (%d), not %s\n", call, code_name(got), got, code_name(want));
	_fail(file, line);
}

void environment_default(const char *name, const char *value)
{
	setenv(name, value, 0);
}

int group_open(void **state)
{
	int interfaces;

	(void)state;
	environment_default("PTL_IFACE_NAME", "loop:a;loop:a");
	environment_default("PTL_NID", "1;2");
	return PtlInit(&interfaces) == PTL_OK ? 0 : -1;
}

int group_close(void **state)
{
	(void)state;
	PtlFini();
	return 0;
}

void node_open(struct node *node, ptl_interface_t interface, ptl_ni_limits_t *desired)
{
	memset(node, 0, sizeof(*node));
	assert_ok(PtlNIInit(interface, PTL_PID_ANY, desired, &node->limits, &node->ni));
	node->open = true;
	assert_ok(PtlGetId(node->ni, &node->id));
}

void node_close(struct node *node)
{
	if (!node->open)
		return;
	node->open = false;
	assert_ok(PtlNIFini(node->ni));
}

int both_open(void **state)
{
	(void)state;
	node_open(&here, 0, NULL);
	node_open(&there, 1, NULL);
	return 0;
}

int here_open(void **state)
{
	(void)state;
	node_open(&here, 0, NULL);
	return 0;
}

int nodes_close(void **state)
{
	(void)state;
	node_close(&here);
	node_close(&there);
	return 0;
}

static void fence_make(struct node *node)
{
	ptl_handle_me_t me;

	if (node->fenced)
		return;
	node->fence_in = queue_make(node, 8);
	node->fence_out = queue_make(node, 8);
	assert_ok(PtlMEAttach(
		node->ni, PORTAL_FENCE, ANY_PROCESS, 0, EVERY_BIT, PTL_RETAIN, PTL_INS_AFTER, &me));
	region_attach(me, region(NULL, 0, PTL_MD_OP_PUT, node->fence_in), PTL_RETAIN, PTL_RETAIN);
	node->fence_md = region_bind(node, region(NULL, 0, 0, node->fence_out));
	node->fenced = true;
}

void fence(struct node *from, struct node *to)
{
	fence_make(from);
	fence_make(to);
	assert_ok(PtlPut(from->fence_md, PTL_ACK_REQ, to->id, PORTAL_FENCE, 0, 0, 0, 0));
	expect_pair(to->fence_in, PTL_EVENT_PUT_START);
	expect_pair(from->fence_out, PTL_EVENT_SEND_START);
	expect_event(from->fence_out, PTL_EVENT_ACK);
}

ptl_sr_value_t drops(const struct node *node)
{
	ptl_sr_value_t value = -1;

	assert_ok(PtlNIStatus(node->ni, PTL_SR_DROP_COUNT, &value));
	return value;
}

ptl_handle_eq_t queue_make(const struct node *node, ptl_size_t count)
{
	ptl_handle_eq_t eq = PTL_INVALID_HANDLE;

	assert_ok(PtlEQAlloc(node->ni, count, &eq));
	return eq;
}

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

/* Polls until there is an event or the timeout ends: then PTL_EQ_EMPTY. With PTL_PROGRESS=inline
 * each call is a turn of the engines, so a busy machine must not take the CPU away after each. What
 * takes long waits for a time to come, and leaves the CPU to other tests. */
static int event_poll(ptl_handle_eq_t eq, ptl_event_t *event)
{
	const struct timespec moment = {.tv_nsec = MOMENT};
	uint64_t deadline = seconds() + TIMEOUT_SECONDS;
	unsigned rounds = 0;
	int code;

	do {
		for (int turn = 0; turn < TURNS; turn++) {
			code = PtlEQGet(eq, event);
			if (code != PTL_EQ_EMPTY)
				return code;
		}
		if (rounds++ < YIELDS)
			nap();
		else
			nanosleep(&moment, NULL);
	} while (seconds() < deadline);
	return code;
}

ptl_event_t event_next(ptl_handle_eq_t eq, int code, const char *file, int line)
{
	ptl_event_t event;
	int got;

	memset(&event, 0, sizeof(event));
	got = event_poll(eq, &event);
	if (got == PTL_EQ_EMPTY) {
		print_error("no event came\n");
		_fail(file, line);
	}
	code_check(got, code, "PtlEQGet", file, line);
	return event;
}

ptl_event_t event_expect(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line)
{
	ptl_event_t event = event_next(eq, PTL_OK, file, line);

	if (event.type != kind) {
		print_error("event %s, not %s\n", kind_name(event.type), kind_name(kind));
		_fail(file, line);
	}
	return event;
}

void event_absent(ptl_handle_eq_t eq, const char *file, int line)
{
	ptl_event_t event;
	int code = PtlEQGet(eq, &event);

	if (code == PTL_OK || code == PTL_EQ_DROPPED)
		print_error("event %s, where there should be none\n", kind_name(event.type));
	code_check(code, PTL_EQ_EMPTY, "PtlEQGet", file, line);
}

ptl_event_t event_pair(ptl_handle_eq_t eq, ptl_event_kind_t start, const char *file, int line)
{
	event_expect(eq, start, file, line);
	return event_expect(eq, start + 1, file, line);
}

void event_lengths(
	ptl_event_t event, ptl_size_t rlength, ptl_size_t mlength, const char *file, int line)
{
	_assert_int_equal(event.rlength, rlength, file, line);
	_assert_int_equal(event.mlength, mlength, file, line);
}

ptl_md_t region(void *start, size_t length, unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.max_offset = NO_LIMIT,
		.options = options,
		.user_ptr = NULL,
		.eventq = eq};
}

ptl_md_t limited(ptl_md_t md, int threshold)
{
	md.threshold = threshold;
	return md;
}

ptl_handle_me_t entry_make(const struct node *node, ptl_match_bits_t bits, ptl_match_bits_t ignore,
	ptl_unlink_t unlink)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;

	assert_ok(PtlMEAttach(
		node->ni, PORTAL, ANY_PROCESS, bits, ignore, unlink, PTL_INS_AFTER, &me));
	return me;
}

ptl_handle_md_t region_attach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t op, ptl_unlink_t nofit)
{
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;

	assert_ok(PtlMDAttach(me, md, op, nofit, &handle));
	return handle;
}

ptl_handle_md_t region_bind(const struct node *node, ptl_md_t md)
{
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;

	assert_ok(PtlMDBind(node->ni, md, &handle));
	return handle;
}

struct end target_make(const struct node *node, void *start, size_t length, unsigned options)
{
	struct end end;

	end.eq = queue_make(node, EQ_ROOM);
	end.me = entry_make(node, 0, EVERY_BIT, PTL_RETAIN);
	end.md = region_attach(
		end.me, region(start, length, options, end.eq), PTL_RETAIN, PTL_RETAIN);
	return end;
}

struct end target_of(const struct node *node, ptl_md_t md, ptl_unlink_t op, ptl_unlink_t nofit)
{
	struct end end;

	if (md.eventq == PTL_EQ_NONE)
		md.eventq = queue_make(node, EQ_ROOM);
	end.eq = md.eventq;
	end.me = entry_make(node, 0, EVERY_BIT, PTL_UNLINK);
	end.md = region_attach(end.me, md, op, nofit);
	return end;
}

struct end source_make(const struct node *node, void *start, size_t length)
{
	struct end end;

	end.eq = queue_make(node, EQ_ROOM);
	end.me = PTL_INVALID_HANDLE;
	end.md = region_bind(node, region(start, length, 0, end.eq));
	return end;
}

void ends_free(const struct end *target, const struct end *source)
{
	assert_ok(PtlMEUnlink(target->me));
	assert_ok(PtlMDUnlink(source->md));
	assert_ok(PtlEQFree(target->eq));
	assert_ok(PtlEQFree(source->eq));
}

void put_to(ptl_handle_md_t md, const struct node *to, ptl_match_bits_t bits)
{
	assert_ok(PtlPut(md, PTL_NOACK_REQ, to->id, PORTAL, 0, bits, 0, 0));
}

void put_acked(ptl_handle_md_t md, const struct node *to, ptl_match_bits_t bits)
{
	assert_ok(PtlPut(md, PTL_ACK_REQ, to->id, PORTAL, 0, bits, 0, 0));
}

void get_from(ptl_handle_md_t md, const struct node *from, ptl_match_bits_t bits)
{
	assert_ok(PtlGet(md, from->id, PORTAL, 0, bits, 0));
}

static unsigned char pattern(size_t place, unsigned seed)
{
	uint32_t x = (uint32_t)place * 2654435761u + seed * 40503u;

	return (unsigned char)(x >> 24 ^ x >> 11);
}

void pattern_fill(void *memory, size_t length, unsigned seed)
{
	unsigned char *bytes = memory;

	for (size_t i = 0; i < length; i++)
		bytes[i] = pattern(i, seed);
}

bool pattern_is(const void *memory, size_t length, unsigned seed)
{
	const unsigned char *bytes = memory;

	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != pattern(i, seed)) {
			print_error("byte %zu of %zu is 0x%02x, not 0x%02x\n", i, length, bytes[i],
				pattern(i, seed));
			return false;
		}
	}
	return true;
}

bool bytes_are(const void *memory, size_t length, unsigned char value)
{
	const unsigned char *bytes = memory;

	for (size_t i = 0; i < length; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static uint64_t thread_cpu(pthread_t thread)
{
	struct timespec used;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void *waiter_body(void *argument)
{
	struct waiter *waiter = argument;

	waiter->cpu = thread_cpu(pthread_self());
	atomic_store(&waiter->tid, (pid_t)syscall(SYS_gettid));
	waiter->code = PtlEQWait(waiter->eq, &waiter->event);
	atomic_store(&waiter->back, true);
	return NULL;
}

void waiter_start(struct waiter *waiter, ptl_handle_eq_t eq)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->eq = eq;
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_body, waiter), 0);
}

void waiter_settle(struct waiter *waiter)
{
	while (atomic_load(&waiter->tid) == 0)
		nap();
	while (!atomic_load(&waiter->back) && !thread_sleeps(atomic_load(&waiter->tid)) &&
		thread_cpu(waiter->thread) - waiter->cpu < WAY_IN_NS)
		nap();
}

void waiter_join(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

bool thread_check(bool condition, const char *text, const char *file, int line)
{
	if (!condition && atomic_fetch_add(&thread_failures, 1) < 10)
		fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
	return condition;
}

struct thread_start {
	pthread_t thread;
	unsigned number;
	void (*body)(unsigned number);
};

static void *thread_body(void *argument)
{
	struct thread_start *start = argument;

	start->body(start->number);
	return NULL;
}

void threads_run(unsigned count, void (*body)(unsigned number))
{
	struct thread_start starts[THREADS_MAX];

	assert_true(count <= THREADS_MAX);
	atomic_store(&thread_failures, 0);
	for (unsigned i = 0; i < count; i++) {
		starts[i].number = i;
		starts[i].body = body;
		assert_int_equal(
			pthread_create(&starts[i].thread, NULL, thread_body, &starts[i]), 0);
	}
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_join(starts[i].thread, NULL), 0);
	assert_int_equal(atomic_load(&thread_failures), 0);
}

bool thread_next(ptl_handle_eq_t eq, ptl_event_t *event)
{
	return thread_expect(event_poll(eq, event) == PTL_OK);
}

const char *initialised_call(void)
{
	const ptl_process_id_t process = {1, 1};
	ptl_handle_any_t handle = 0;
	ptl_process_id_t id;
	ptl_ni_limits_t limits;
	ptl_pt_index_t portal;
	ptl_sr_value_t value;
	ptl_event_t event;
	unsigned long distance;
	ptl_uid_t uid;
	ptl_md_t md = region(&value, sizeof(value), PTL_MD_OP_PUT, PTL_EQ_NONE);

#define TRY(call)                                                                                  \
	if ((call) != PTL_NOINIT)                                                                  \
	return #call
	TRY(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &handle));
	TRY(PtlNIFini(here.ni));
	TRY(PtlNIStatus(here.ni, PTL_SR_DROP_COUNT, &value));
	TRY(PtlNIDist(here.ni, process, &distance));
	TRY(PtlNIHandle(here.ni, &handle));
	TRY(PtlGetUid(here.ni, &uid));
	TRY(PtlGetId(here.ni, &id));
	TRY(PtlMEAttach(here.ni, 0, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle));
	TRY(PtlMEAttachAny(here.ni, &portal, ANY_PROCESS, 0, 0, PTL_RETAIN, &handle));
	TRY(PtlMEInsert(handle, ANY_PROCESS, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle));
	TRY(PtlMEUnlink(handle));
	TRY(PtlMDAttach(handle, md, PTL_RETAIN, PTL_RETAIN, &handle));
	TRY(PtlMDBind(here.ni, md, &handle));
	TRY(PtlMDUnlink(handle));
	TRY(PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE));
	TRY(PtlEQAlloc(here.ni, 1, &handle));
	TRY(PtlEQFree(here.fence_in));
	TRY(PtlEQGet(here.fence_in, &event));
	TRY(PtlEQWait(here.fence_in, &event));
	TRY(PtlACEntry(here.ni, 1, ANY_PROCESS, PTL_UID_ANY, PTL_PT_INDEX_ANY));
	TRY(PtlPut(here.fence_md, PTL_NOACK_REQ, process, 0, 0, 0, 0, 0));
	TRY(PtlGet(here.fence_md, process, 0, 0, 0, 0));
#undef TRY
	return NULL;
}
