/* SPDX-License-Identifier: BSD-3-Clause */
/* exit.c - the end of a job, from any state.
 *
 * The first thread that calls gasnet_exit() ends the process; others wait for that. Ranks of a
 * program that ends everywhere leave shortly after each other, often while some ranks are still in
 * the last barrier. So a rank waits for GRACE first, and then writes the code into rank 0's word.
 * Triggered operations, which were posted at the start, carry it down a tree to all ranks, while
 * their programs compute. A rank that sees its word in a call raises SIGQUIT at itself, once, which
 * the client may catch, and leaves. Ranks that leave are counted at rank 0; when all have, a notice
 * goes down the same tree, and each rank closes and ends with its code. A rank that waits for this
 * too long has the launcher end the job, whose SIGTERM reaches programs that make no calls.
 *
 * E1. A signal's handler calls nothing of Portals and nothing that locks: it ends the process.
 * E2. A child that a rank has made by fork() ends alone.
 */
#include "state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <portals4/pmi.h>

#define FLUSH_WAIT 5u                  /* s that closing may take beyond the wait for others */
#define GRACE      0.2                 /* s, in which all ranks may leave of their own accord */
#define SLEEP      10u                 /* ms */
#define PRESENT    (UINT64_C(1) << 32) /* in the word, beside the code */

enum notice { NOTICE_CODE, NOTICE_LEFT, NOTICE_ALL, NOTICE_COUNT };

volatile uint64_t exit_word;
static uint64_t own_word;
static ptl_handle_ct_t counters[NOTICE_COUNT];
static int leaving;     /* 1: a thread is in gasnet_exit() */
static int interrupted; /* 1: a signal ends the process */
static volatile sig_atomic_t last_code;
static pid_t process; /* the rank's; not that of a child (E2) */

/* --- signals */

/* SIGTERM, SIGINT, SIGHUP: the client may catch the SIGQUIT that follows. */
static void signal_pass(int number)
{
	last_code = 128 + number;
	/* Release: another thread's quit_take() that sees it has the code. */
	__atomic_store_n(&interrupted, 1, __ATOMIC_RELEASE);
	raise(SIGQUIT);
	_exit(last_code);
}

/* That of signal_pass(), or one that comes from elsewhere, at any time (E1). */
static void quit_take(int number)
{
	_exit(__atomic_load_n(&interrupted, __ATOMIC_ACQUIRE) ? last_code : 128 + number);
}

/* The others have not left, or closing hangs. */
static void alarm_take(int number)
{
	(void)number;
	PMI_Abort(last_code, NULL);
}

static void catch_unless_caught(int number, const char *name, void (*function)(int))
{
	struct sigaction action;

	if (environment_lists("GASNET_NO_CATCH_SIGNAL", name))
		return;
	if (sigaction(number, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_handler = function;
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_NODEFER;
	(void)sigaction(number, &action, NULL);
}

/* exit(), and the end of main. */
static void program_ended(int code, void *nothing)
{
	(void)nothing;
	if (gasnet.stage != STAGE_NONE && getpid() == process)
		gasnet_exit(code);
}

void exit_catch(void)
{
	process = getpid();
	catch_unless_caught(SIGQUIT, "QUIT", quit_take);
	catch_unless_caught(SIGTERM, "TERM", signal_pass);
	catch_unless_caught(SIGINT, "INT", signal_pass);
	catch_unless_caught(SIGHUP, "HUP", signal_pass);
	(void)on_exit(program_ended, NULL);
}

/* --- the tree */

static void entry_open(enum notice notice, void *word, size_t size)
{
	ptl_handle_me_t entry;
	ptl_me_t me = {
		.start = word,
		.length = size,
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
			   PTL_ME_EVENT_COMM_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
		.match_bits = notice,
	};

	must(PtlCTAlloc(gasnet.ni, &counters[notice]));
	me.ct_handle = counters[notice];
	must(PtlMEAppend(gasnet.ni, PORTAL_EXIT, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

/* A notice goes on to the ranks below this one, when the counter reaches a number. */
static void pass_on(enum notice notice, const volatile void *word, size_t size,
	ptl_handle_ct_t counter, uint64_t number)
{
	for (uint64_t child = 2 * (uint64_t)gasnet.rank + 1;
		child <= 2 * (uint64_t)gasnet.rank + 2 && child < gasnet.size; child++)
		must(PtlTriggeredPut(gasnet.quiet, (ptl_size_t)(uintptr_t)word, size,
			PTL_NO_ACK_REQ, (ptl_process_t){.rank = (uint32_t)child}, PORTAL_EXIT,
			notice, 0, NULL, 0, counter, number));
}

void exit_open(void)
{
	const ptl_ct_event_t one = {.success = 1};
	ptl_pt_index_t index;

	must(PtlPTAlloc(gasnet.ni, 0, PTL_EQ_NONE, PORTAL_EXIT, &index));
	entry_open(NOTICE_CODE, (void *)(uintptr_t)&exit_word, sizeof(exit_word));
	entry_open(NOTICE_LEFT, NULL, 0);
	entry_open(NOTICE_ALL, NULL, 0);
	pass_on(NOTICE_CODE, &exit_word, sizeof(exit_word), counters[NOTICE_CODE], 1);
	pass_on(NOTICE_ALL, NULL, 0, counters[NOTICE_ALL], 1);
	if (gasnet.rank == 0)
		must(PtlTriggeredCTInc(
			counters[NOTICE_ALL], one, counters[NOTICE_LEFT], gasnet.size));
}

static void root_tell(enum notice notice, const void *word, size_t size)
{
	must(PtlPut(gasnet.quiet, (ptl_size_t)(uintptr_t)word, size, PTL_NO_ACK_REQ,
		(ptl_process_t){.rank = 0}, PORTAL_EXIT, notice, 0, NULL, 0));
}

/* --- leaving */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Returns true when all ranks leave. */
static bool others_leave(void)
{
	const ptl_size_t test = 1;
	/* A short GASNET_EXITTIMEOUT leaves as much time to the ranks that see the code. */
	const double begun = now(), half = gasnet.exit_wait / 2;
	const double grace = half < GRACE ? half : GRACE;
	bool told = false;
	ptl_ct_event_t count;
	unsigned which;

	root_tell(NOTICE_LEFT, NULL, 0);
	do {
		if (!told && now() - begun >= grace) {
			root_tell(NOTICE_CODE, &own_word, sizeof(own_word));
			told = true;
		}
		if (PtlCTPoll(&counters[NOTICE_ALL], &test, 1, SLEEP, &count, &which) == PTL_OK)
			return true;
	} while (now() - begun < gasnet.exit_wait);
	return false;
}

static void alarm_set(int code)
{
	struct sigaction action = {.sa_handler = alarm_take};

	last_code = code;
	sigemptyset(&action.sa_mask);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)alarm((unsigned)gasnet.exit_wait + FLUSH_WAIT);
}

void gasnet_exit(int exitcode)
{
	if (__atomic_load_n(&interrupted, __ATOMIC_RELAXED) || gasnet.stage == STAGE_NONE ||
		getpid() != process)
		_exit(exitcode);
	while (__atomic_exchange_n(&leaving, 1, __ATOMIC_ACQ_REL))
		pause();
	(void)signal(SIGQUIT, SIG_IGN);
	alarm_set(exitcode);
	fflush(NULL);
	if (gasnet.syncs)
		sync();
	own_word = PRESENT | (uint32_t)exitcode;
	if (!others_leave())
		PMI_Abort(exitcode, NULL);
	(void)PtlNIFini(gasnet.ni);
	(void)PMI_Finalize();
	_exit(exitcode);
}

void exit_await(void)
{
	while (__atomic_load_n(&leaving, __ATOMIC_ACQUIRE))
		pause();
}

void exit_follow(void)
{
	int code = (int)(uint32_t)exit_word;
	struct sigaction action;

	exit_await();
	/* The library's own handler, or none, would end the rank with another code. */
	if (sigaction(SIGQUIT, NULL, &action) == 0 && action.sa_handler != quit_take &&
		action.sa_handler != SIG_DFL)
		raise(SIGQUIT);
	gasnet_exit(code);
}
