/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ranks.c - a program of GASNet whose ranks try one promise of the interface each:
 *
 *     postern-run -n 3 ranks SCENARIO
 *
 * Compiled for SEQ, PAR and PARSYNC. The scenarios of leave_table end the job, each in its own way,
 * which test_exit.py watches.
 *
 * Covers: lib/gasnet/collective.c, lib/gasnet/dispatch.c, lib/gasnet/exit.c, lib/gasnet/library.c,
 * lib/gasnet/phases.c, lib/gasnet/pieces.c, lib/gasnet/segments.c, lib/gasnet/receive.c,
 * lib/gasnet/send.c, lib/gasnet/start.c, lib/gasnet/transfer.c, lib/gasnet/variables.c,
 * lib/p4/cards.c, lib/runtime/runtime.c. */
#include "ranks.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint8_t *segments[RANKS_MAX];
unsigned rank, ranks;

/* --- queries and errors */

static void queries(void)
{
	gasnet_seginfo_t info[RANKS_MAX + 1];
	gasnet_nodeinfo_t nodes[RANKS_MAX];

	CHECK(gasnet_init(NULL, NULL) == GASNET_ERR_NOT_INIT);
	CHECK(gasnet_attach(NULL, 0, SEGMENT, 0) == GASNET_ERR_NOT_INIT);
	CHECK(gasnet_AMMaxArgs() == 16 && gasnet_AMMaxMedium() == 2048);
	CHECK(gasnet_AMMaxLongRequest() >= 512 && gasnet_AMMaxLongReply() >= 512);
	memset(info, 0x5a, sizeof(info));
	CHECK(gasnet_getSegmentInfo(info, (int)ranks + 1) == GASNET_OK);
	for (unsigned i = 0; i < ranks; i++) {
		CHECK(info[i].size == SEGMENT && (uintptr_t)info[i].addr % GASNET_PAGESIZE == 0);
		CHECK((uintptr_t)info[i].addr != 0);
	}
	CHECK((uintptr_t)info[ranks].addr == 0x5a5a5a5a5a5a5a5a);
	CHECK(gasnet_getSegmentInfo(NULL, 1) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_getSegmentInfo(info, 0) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_getNodeInfo(nodes, (int)ranks) == GASNET_OK);
	for (unsigned i = 0; i < ranks; i++)
		CHECK(nodes[i].host == 0 && nodes[i].supernode == i);
	CHECK(gasnet_getNodeInfo(NULL, 1) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_getMaxLocalSegmentSize() % GASNET_PAGESIZE == 0);
	CHECK(gasnet_getMaxGlobalSegmentSize() <= gasnet_getMaxLocalSegmentSize());
	CHECK(strcmp(gasnet_getenv("RANKS_WORD"), "a word") == 0);
	CHECK(gasnet_getenv("RANKS_NO_WORD") == NULL);
	CHECK(strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY") == 0);
	CHECK(gasnet_ErrorName(7) && gasnet_ErrorDesc(7) && *gasnet_ErrorDesc(GASNET_OK));
	CHECK(gasnet_set_waitmode(3) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_AMRequestShort0(ranks, 200) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_AMRequestMedium0(0, 200, segments[rank], 2049) == GASNET_ERR_BAD_ARG);
	CHECK(gasnet_AMRequestShort(0, 200, 17) == GASNET_ERR_BAD_ARG);
	barrier_pass();
}

/* RANKS_MEMORY says how much memory the control group has. */
static void limits(void)
{
	uint64_t memory = strtoull(gasnet_getenv("RANKS_MEMORY"), NULL, 10);

	CHECK(gasnet_getMaxLocalSegmentSize() ==
		memory / 100 * 85 / ranks / GASNET_PAGESIZE * GASNET_PAGESIZE);
	barrier_pass();
}

static void locks(void)
{
	static gasnet_hsl_t fixed = GASNET_HSL_INITIALIZER;
	gasnet_hsl_t made;

	gasnet_hsl_init(&made);
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	gasnet_hsl_lock(&fixed);
	CHECK(gasnet_hsl_trylock(&made) == GASNET_OK);
#ifndef GASNET_SEQ
	CHECK(gasnet_hsl_trylock(&made) == GASNET_ERR_NOT_READY);
#endif
	if (rank < ranks)
		gasnet_hsl_unlock(&made);
	gasnet_hsl_unlock(&fixed);
	gasnet_hsl_destroy(&made);
}

/* --- floods */

enum { FLOOD_LONG = HANDLER_OTHERS, FLOOD_LONG_REPLY, FLOOD_SHORT, FLOOD_MEDIUM, EXIT_REQUEST };
#define FLOOD_BYTES 5000
#define FLOOD_LANE  8 /* landing places of each rank in each segment */

static volatile unsigned shorts[RANKS_MAX], mediums, long_requests, long_replies;

static void flood_long(gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t number)
{
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK(length == FLOOD_BYTES);
	__atomic_add_fetch(&long_requests, 1, __ATOMIC_RELAXED);
	/* Another message to the same place may have come meanwhile, so the place is not read. */
	CHECK(gasnet_AMReplyLong1(token, FLOOD_LONG_REPLY, bytes, length,
		      segments[from] + SEGMENT / 2 +
			      (rank * FLOOD_LANE + (unsigned)number % FLOOD_LANE) * FLOOD_BYTES,
		      number) == GASNET_OK);
}

static void flood_long_reply(
	gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t number)
{
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK((uint8_t *)bytes ==
			segments[rank] + SEGMENT / 2 +
				(from * FLOOD_LANE + (unsigned)number % FLOOD_LANE) * FLOOD_BYTES &&
		length == FLOOD_BYTES);
	__atomic_add_fetch(&long_replies, 1, __ATOMIC_RELAXED);
}

/* To one peer, shorts come in any order, but each once. */
static void flood_short(gasnet_token_t token, gasnet_handlerarg_t number)
{
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	shorts[from] += (unsigned)number;
}

static void flood_medium(gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t seed)
{
	(void)token;
	CHECK(pattern_is(bytes, length, (unsigned)seed));
	__atomic_add_fetch(&mediums, 1, __ATOMIC_RELAXED);
}

/* All to all, more than fits, of all kinds, most without a reply. */
static void flood(void)
{
	const unsigned rounds = 1500;
	static uint8_t bytes[FLOOD_BYTES];
	unsigned mediums_sent = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned to = 0; to < ranks; to++) {
			if (to == rank)
				continue;
			CHECK(gasnet_AMRequestShort1(to, FLOOD_SHORT, (int)i) == GASNET_OK);
			if (i % 4 == 0) {
				pattern_fill(bytes, i, i);
				CHECK(gasnet_AMRequestMedium1(to, FLOOD_MEDIUM, bytes, i, (int)i) ==
					GASNET_OK);
				mediums_sent++;
			}
			if (i % 8 == 0)
				CHECK(gasnet_AMRequestLong1(to, FLOOD_LONG, bytes, FLOOD_BYTES,
					      segments[to] +
						      (rank * FLOOD_LANE + i / 8 % FLOOD_LANE) *
							      FLOOD_BYTES,
					      (int)(i / 8)) == GASNET_OK);
		}
	}
	barrier_pass();
	GASNET_BLOCKUNTIL(mediums == mediums_sent);
	GASNET_BLOCKUNTIL(long_replies == (ranks - 1) * ((rounds + 7) / 8));
	GASNET_BLOCKUNTIL(long_requests == (ranks - 1) * ((rounds + 7) / 8));
	for (unsigned from = 0; from < ranks; from++)
		GASNET_BLOCKUNTIL(from == rank || shorts[from] == rounds * (rounds - 1) / 2);
	barrier_pass();
}

/* --- barriers */

static void linger(unsigned milliseconds)
{
	const struct timespec nap = {.tv_nsec = (long)milliseconds * 1000000};

	nanosleep(&nap, NULL);
}

static int barrier_late(unsigned late, int id, int flags)
{
	if (rank == late)
		linger(2);
	gasnet_barrier_notify(id, flags);
	if (rank == late + 1)
		linger(1);
	if (rank % 2 == 0)
		return gasnet_barrier_wait(id, flags);
	for (;;) {
		int code = gasnet_barrier_try(id, flags);

		if (code != GASNET_ERR_NOT_READY)
			return code;
	}
}

/* What ranks 0 and the last one say, of which the others say nothing. */
static void barriers(void)
{
	static const struct {
		int id, flags;
	} ways[] = {{7, 0}, {-7, 0}, {0, 0}, {INT32_MIN, 0}, {INT32_MAX, 0}, {5, 1}, {0, 2}, {7, 2},
		{7, 9}};
	const unsigned count = sizeof(ways) / sizeof(ways[0]);
	int name;

	for (unsigned a = 0; a < count; a++) {
		for (unsigned b = 0; b < count; b++) {
			unsigned way = rank == 0 ? a : b;
			bool between = rank > 0 && rank + 1 < ranks;
			int flags = between ? 1 : ways[way].flags, id = between ? 99 : ways[way].id;
			bool named_a = ways[a].flags == 0, named_b = ways[b].flags == 0;
			bool clash = ((ways[a].flags | (ranks > 1 ? ways[b].flags : 0)) & 2) ||
				     (ranks > 1 && named_a && named_b && ways[a].id != ways[b].id);
			int code = barrier_late((a + b) % ranks, id, flags);

			CHECK(code == (clash ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
			if (clash)
				continue;
			if (named_a || (named_b && ranks > 1)) {
				CHECK(gasnet_barrier_result(&name) == 0);
				CHECK(name == ways[named_a ? a : b].id);
			} else {
				CHECK(gasnet_barrier_result(&name) != 0);
			}
		}
	}
	/* A rank's own error is its own. */
	gasnet_barrier_notify(3, 0);
	CHECK(gasnet_barrier_wait(rank == 0 ? 4 : 3, 0) ==
		(rank == 0 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
	gasnet_barrier_notify(3, 0);
	CHECK(gasnet_barrier_wait(3, rank == 0) ==
		(rank == 0 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
	for (unsigned i = 0; i < 300; i++)
		CHECK(gasnet_barrier((int)i, 0) == GASNET_OK);
}

/* --- children of a rank */

static bool is_child;

/* A child has not the pages that have the only pointers to some of the parent's memory. */
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return is_child;
}

static int child_run(void (*end)(void))
{
	const pid_t child = fork();
	int ended;

	if (child == 0) {
		is_child = true;
		end();
	}
	CHECK(child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended));
	return WEXITSTATUS(ended);
}

static void child_exits(void)
{
	exit(3);
}

static void child_calls(void)
{
	gasnet_exit(4);
}

/* The end of a child is not the end of the job. */
static void children(void)
{
	CHECK(child_run(child_exits) == 3);
	CHECK(child_run(child_calls) == 4);
	barrier_pass();
}

#define PAUSE 1000 /* us */

/* --- ways to leave */

/* These loops leave the CPUs to the ranks that end the job. */
static void spin_without_calls(void)
{
	for (;;)
		usleep(PAUSE);
}

static void spin_polling(void)
{
	for (;;) {
		CHECK(gasnet_AMPoll() == GASNET_OK);
		usleep(PAUSE);
	}
}

/* Nothing is open, so each call is over at once. */
static void spin_syncing(void)
{
	gasnet_handle_t none = GASNET_INVALID_HANDLE;

	for (;;) {
		gasnet_wait_syncnbi_all();
		CHECK(gasnet_try_syncnbi_puts() == GASNET_OK);
		CHECK(gasnet_try_syncnb(none) == GASNET_OK);
	}
}

static void spin_waiting(void)
{
	for (;;)
		gasnet_wait_syncnbi_all();
}

static void spin_sending(void)
{
	for (;;)
		CHECK(gasnet_AMRequestShort1((rank + 1) % ranks, FLOOD_SHORT, 1) == GASNET_OK);
}

static void exit_request(gasnet_token_t token, gasnet_handlerarg_t code)
{
	(void)token;
	gasnet_exit(code);
}

static void leave_together(void)
{
	gasnet_exit(7);
}

/* Rank 0 makes calls when the others leave, and leaves by itself. The job has its code. */
static void leave_soon(void)
{
	for (unsigned n = 0; rank == 0 && n < 20; n++) {
		CHECK(gasnet_AMPoll() == GASNET_OK);
		linger(1);
	}
	gasnet_exit(rank == 0 ? 4 : 0);
}

static void leave_quietly(void)
{
	gasnet_exit(0);
}

static void leave_by_main(void)
{
	exit(9);
}

#define LEAVE_ONE(name, others)                                                                    \
	static void leave_one_##name(void)                                                         \
	{                                                                                          \
		if (rank == ranks - 1) {                                                           \
			linger(50);                                                                \
			gasnet_exit(5);                                                            \
		}                                                                                  \
		others;                                                                            \
	}
LEAVE_ONE(barrier, barrier_pass(); spin_polling())
LEAVE_ONE(computing, spin_without_calls())
LEAVE_ONE(polling, spin_polling())
LEAVE_ONE(sending, spin_sending())
LEAVE_ONE(syncing, spin_syncing())
LEAVE_ONE(waiting, spin_waiting())

static void leave_zero_computing(void)
{
	if (rank == 0)
		gasnet_exit(0);
	spin_without_calls();
}

static void leave_from_handler(void)
{
	if (rank == 0)
		CHECK(gasnet_AMRequestShort1(ranks - 1, EXIT_REQUEST, 6) == GASNET_OK);
	spin_polling();
}

static void leave_from_own_handler(void)
{
	if (rank == 0)
		CHECK(gasnet_AMRequestShort1(0, EXIT_REQUEST, 6) == GASNET_OK);
	spin_polling();
}

static void quit_caught(int number)
{
	(void)number;
	if (write(STDOUT_FILENO, "caught\n", 7) == 7)
		gasnet_exit(8);
}

static void leave_caught(void)
{
	(void)signal(SIGQUIT, quit_caught);
	barrier_pass();
	if (rank == 0)
		gasnet_exit(8);
	spin_polling();
}

static void leave_by_signal(void)
{
	barrier_pass();
	if (rank == 0)
		raise(SIGINT);
	spin_without_calls();
}

static void leave_by_abort(void)
{
	barrier_pass();
	if (rank == 0)
		abort();
	spin_polling();
}

static void leave_by_fault(void)
{
	barrier_pass();
	if (rank == 0)
		raise(SIGSEGV);
	spin_without_calls();
}

/* An index that nobody registered. */
static void leave_by_index(void)
{
	CHECK(gasnet_AMRequestShort0((rank + 1) % ranks, 255) == GASNET_OK);
	spin_polling();
}

static void leave_outside_segment(void)
{
	static uint8_t byte;

	if (rank == 0)
		(void)gasnet_AMRequestLong0(
			ranks - 1, FLOOD_LONG, &byte, 1, segments[ranks - 1] + SEGMENT);
	spin_polling();
}

static void leave_put_outside(void)
{
	if (rank == 0)
		gasnet_put_val(ranks - 1, segments[ranks - 1] - 1, 0, 2);
	spin_polling();
}

static void wait_to_be_killed(void)
{
	barrier_pass();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	spin_polling();
}

#ifndef GASNET_SEQ
static void *thread_poll(void *nothing)
{
	(void)nothing;
	spin_polling();
	return NULL;
}

static volatile bool never;

/* Handlers on several threads, of which one leaves. */
static void leave_threads(void)
{
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_poll, NULL) == 0);
	barrier_pass();
	if (rank == 0)
		gasnet_exit(4);
	GASNET_BLOCKUNTIL(never);
}

#define THREADS       8u
#define THREAD_ROUNDS 250u

/* Puts, gets and handles of a thread are its own. */
static void thread_transfer(unsigned number)
{
	unsigned to = (rank + 1) % ranks;
	uint8_t *place = segments[to] + SEGMENT - (rank * THREADS + number + 1) * 1024;
	uint8_t bytes[1024], back[1024];

	for (unsigned i = 0; i < 200; i++) {
		gasnet_handle_t handle;

		pattern_fill(bytes, sizeof(bytes), i + number);
		if (i % 2) {
			gasnet_put_nbi(to, place, bytes, sizeof(bytes));
			gasnet_wait_syncnbi_puts();
		} else {
			handle = gasnet_put_nb_bulk(to, place, bytes, sizeof(bytes));
			gasnet_memset_nbi(to, segments[to] + SEGMENT - 65536 + number, 1, 1);
			gasnet_wait_syncnb(handle);
			gasnet_wait_syncnbi_all();
		}
		gasnet_get(back, to, place, sizeof(back));
		CHECK(pattern_is(back, sizeof(back), i + number));
	}
}

static void *thread_flood(void *which)
{
	unsigned number = (unsigned)(uintptr_t)which;
	static uint8_t bytes[64];

	for (unsigned i = 0; i < THREAD_ROUNDS; i++) {
		unsigned to = (rank + 1 + (i + number) % (ranks - 1)) % ranks;

		CHECK(gasnet_AMRequestLong1(to, FLOOD_LONG, segments[rank] + SEGMENT / 2,
			      FLOOD_BYTES,
			      segments[to] + (rank * FLOOD_LANE + i % FLOOD_LANE) * FLOOD_BYTES,
			      (int)i) == GASNET_OK);
		CHECK(gasnet_AMRequestMedium1(to, EXIT_REQUEST + 1, bytes, sizeof(bytes), 1) ==
			GASNET_OK);
	}
	thread_transfer(number);
	return NULL;
}

static unsigned thread_replies;

static void thread_medium(gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t by)
{
	CHECK(length == 64);
	CHECK(gasnet_AMReplyMedium1(token, EXIT_REQUEST + 2, bytes, length, by) == GASNET_OK);
}

static void thread_medium_reply(
	gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t by)
{
	(void)token;
	(void)bytes;
	(void)length;
	__atomic_add_fetch(&thread_replies, (unsigned)by, __ATOMIC_RELAXED);
}

/* Threads that share an endpoint. */
static void threads(void)
{
	pthread_t made[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&made[i], NULL, thread_flood, (void *)i) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(made[i], NULL) == 0);
	GASNET_BLOCKUNTIL(
		__atomic_load_n(&thread_replies, __ATOMIC_RELAXED) == THREADS * THREAD_ROUNDS);
	barrier_pass();
}
#endif

/* --- the program */

static const struct {
	const char *name;
	void (*run)(void);
	bool leaves;
} scenarios[] = {
	{"queries", queries, false},
	{"limits", limits, false},
	{"locks", locks, false},
	{"messages", messages_run, false},
	{"transfers", transfers_run, false},
	{"seen", transfers_seen, false},
	{"shared", copies_shared, false},
	{"silent", copies_silent, false},
	{"order", copies_order, false},
	{"sleep", copies_sleep, false},
	{"spin", copies_spin, false},
	{"wait-copying", copies_wait, true},
	{"wait-sending", copies_send, true},
	{"collectives", collectives_run, false},
	{"longs", longs_run, false},
	{"pieces", pieces_run, false},
	{"flood", flood, false},
	{"barriers", barriers, false},
	{"children", children, false},
#ifndef GASNET_SEQ
	{"threads", threads, false},
	{"leave-threads", leave_threads, true},
#endif
	{"leave-together", leave_together, true},
	{"leave-soon", leave_soon, true},
	{"leave-quietly", leave_quietly, true},
	{"leave-by-main", leave_by_main, true},
	{"leave-barrier", leave_one_barrier, true},
	{"leave-computing", leave_one_computing, true},
	{"leave-polling", leave_one_polling, true},
	{"leave-sending", leave_one_sending, true},
	{"leave-syncing", leave_one_syncing, true},
	{"leave-waiting", leave_one_waiting, true},
	{"leave-zero-computing", leave_zero_computing, true},
	{"leave-from-handler", leave_from_handler, true},
	{"leave-from-own-handler", leave_from_own_handler, true},
	{"leave-caught", leave_caught, true},
	{"leave-by-signal", leave_by_signal, true},
	{"leave-by-abort", leave_by_abort, true},
	{"leave-by-fault", leave_by_fault, true},
	{"leave-by-index", leave_by_index, true},
	{"leave-outside-segment", leave_outside_segment, true},
	{"leave-put-outside", leave_put_outside, true},
	{"wait", wait_to_be_killed, true},
};

/* A call that fails keeps no descriptor, */
static unsigned descriptors_count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* and no memory that is shared. */
static unsigned mappings_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned count = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/memfd:") != NULL;
	fclose(maps);
	return count;
}

static void attach(void)
{
	gasnet_handlerentry_t table[102 + 11];
	gasnet_seginfo_t info[RANKS_MAX];
	int count = 102;

	messages_table(table);
	table[count++] = (gasnet_handlerentry_t){FLOOD_LONG, (void (*)())flood_long};
	table[count++] = (gasnet_handlerentry_t){FLOOD_LONG_REPLY, (void (*)())flood_long_reply};
	table[count++] = (gasnet_handlerentry_t){FLOOD_SHORT, (void (*)())flood_short};
	table[count++] = (gasnet_handlerentry_t){FLOOD_MEDIUM, (void (*)())flood_medium};
	table[count++] = (gasnet_handlerentry_t){EXIT_REQUEST, (void (*)())exit_request};
#ifndef GASNET_SEQ
	table[count++] = (gasnet_handlerentry_t){EXIT_REQUEST + 1, (void (*)())thread_medium};
	table[count++] = (gasnet_handlerentry_t){EXIT_REQUEST + 2, (void (*)())thread_medium_reply};
#endif
	count += longs_table(table + count);
	count += copies_table(table + count);
	if (gasnet_getenv("RANKS_WORD")) {
		gasnet_handlerentry_t twice[] = {table[0], table[0]};
		const unsigned descriptors = descriptors_count(), mappings = mappings_count();

		CHECK(gasnet_attach(NULL, 0, SEGMENT + 1, 0) == GASNET_ERR_BAD_ARG);
		CHECK(gasnet_attach(twice, 2, SEGMENT, 0) == GASNET_ERR_RESOURCE);
		CHECK(gasnet_attach(NULL, 0, SEGMENT, UINTPTR_MAX) == GASNET_ERR_RESOURCE);
		CHECK(descriptors_count() == descriptors && mappings_count() == mappings);
	}
	copies_refuse();
	CHECK(gasnet_attach(table, count, SEGMENT, 0) == GASNET_OK);
	copies_allow();
	ranks = gasnet_nodes();
	rank = gasnet_mynode();
	CHECK(gasnet_getSegmentInfo(info, (int)ranks) == GASNET_OK);
	for (unsigned i = 0; i < ranks; i++)
		segments[i] = info[i].addr;
}

int main(int argc, char **argv)
{
	CHECK(gasnet_AMPoll() == GASNET_ERR_NOT_INIT);
	CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
	if (argc == 2 && strcmp(argv[1], "leave-unattached") == 0) {
		if (gasnet_mynode() == 0)
			gasnet_exit(3);
		gasnet_attach(NULL, 0, SEGMENT, 0);
		spin_without_calls();
	}
	attach();
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (argc != 2 || strcmp(argv[1], scenarios[i].name) != 0)
			continue;
		scenarios[i].run();
		CHECK(!scenarios[i].leaves);
		barrier_pass();
		gasnet_exit(0);
	}
	fprintf(stderr, "usage: ranks SCENARIO\n");
	return 2;
}
