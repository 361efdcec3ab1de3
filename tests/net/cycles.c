/* SPDX-License-Identifier: BSD-3-Clause */
/* cycles.c - opens two interfaces, sends a message between them and closes them, again and again.
 * In the end a process may hold no more than after the first times.
 *
 *     PTL_IFACE_NAME="ONE;OTHER" cycles COUNT
 *          one process has both and sends from one to the other
 *     PTL_IFACE_NAME=DEVICE cycles COUNT SEED
 *          two processes open one each at the same moment, and then send to each other at once
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <portals.h>
#include <postern.h>

#include "checks.h"
#include "../nap.h"

#define PORTAL 4
#define PID    5
#define WORDS  64    /* bytes of a message */
#define LATE   20000 /* turns of an empty loop by which one of two is late */
#define LOOKS  20    /* at what it holds */
#define WARM   8     /* cycles until memory that stays has been touched */
#ifdef __SANITIZE_ADDRESS__
#define SLACK (1 << 20) /* KiB: the sanitizer holds back what was freed; it finds leaks itself */
#else
/* KiB: allocators keep a little now and then, at most 650 in 1,500 cycles beside eight computing
 * processes; 14 KiB a cycle are more after 150 */
#define SLACK 2048
#endif

struct held {
	unsigned descriptors, threads;
	uint64_t kilobytes; /* of memory that has been touched */
};

static _Noreturn void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

static unsigned entries(const char *name)
{
	unsigned count = 0;
	DIR *all = opendir(name);

	expect(all != NULL);
	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

static struct held process_holds_now(void)
{
	struct held held = {
		.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
	uint64_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	expect(file != NULL && fscanf(file, "%*u %" SCNu64, &pages) == 1);
	fclose(file);
	held.kilobytes = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	return held;
}

static unsigned less(unsigned one, unsigned other)
{
	return one < other ? one : other;
}

/* What it holds all the time: another thread may be about to close something. */
static struct held process_holds(void)
{
	struct held least = process_holds_now();

	for (unsigned look = 1; look < LOOKS; look++) {
		struct held held;

		usleep(5000);
		held = process_holds_now();
		least.descriptors = less(least.descriptors, held.descriptors);
		least.threads = less(least.threads, held.threads);
		least.kilobytes = held.kilobytes;
	}
	return least;
}

/* One end of the way, for one cycle. */
struct end {
	ptl_handle_ni_t interface;
	ptl_handle_eq_t queue;
	ptl_process_id_t id;
	char in[WORDS], out[WORDS];
};

/* Events by kind. */
struct seen {
	unsigned sent, acknowledged, put;
};

/* How the two processes come to the same moment. */
struct meeting {
	_Atomic uint64_t *arrivals; /* of both, in memory that they share */
	uint64_t times;             /* how often this one has come */
	uint64_t random;            /* never 0 */
};

static void end_open(struct end *end, ptl_interface_t number, ptl_pid_t pid)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t entry;
	ptl_md_t memory = {.start = end->in,
		.length = sizeof(end->in),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT};

	check(PtlNIInit(number, pid, NULL, NULL, &end->interface));
	check(PtlEQAlloc(end->interface, 8, &end->queue));
	check(PtlGetId(end->interface, &end->id));
	memory.eventq = end->queue;
	check(PtlMEAttach(
		end->interface, PORTAL, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry));
	check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL));
}

static void words_write(char *words, ptl_pid_t pid, unsigned round)
{
	memset(words, 0, WORDS);
	snprintf(words, WORDS, "from %u in round %u", pid, round);
}

static void end_send(struct end *end, ptl_process_id_t target, unsigned round)
{
	ptl_handle_md_t descriptor;
	ptl_md_t memory = {.start = end->out,
		.length = sizeof(end->out),
		.threshold = PTL_MD_THRESH_INF,
		.eventq = end->queue};

	words_write(end->out, end->id.pid, round);
	check(PtlMDBind(end->interface, memory, &descriptor));
	check(PtlPut(descriptor, PTL_ACK_REQ, target, PORTAL, 0, 0, 0, 0));
}

/* Waits until the end has seen all that is wanted, and fails if it sees more. */
static void end_await(struct end *end, struct seen wanted)
{
	struct seen seen = {0};

	while (memcmp(&seen, &wanted, sizeof(seen)) != 0) {
		ptl_event_t event;

		check(PtlEQWait(end->queue, &event));
		expect_equal(event.ni_fail_type, PTL_NI_OK);
		seen.sent += event.type == PTL_EVENT_SEND_END;
		seen.acknowledged += event.type == PTL_EVENT_ACK;
		seen.put += event.type == PTL_EVENT_PUT_END;
		expect(seen.sent <= wanted.sent && seen.acknowledged <= wanted.acknowledged &&
			seen.put <= wanted.put);
	}
}

static void cycle(unsigned round)
{
	struct end ends[2];

	for (unsigned n = 0; n < 2; n++)
		end_open(&ends[n], (ptl_interface_t)n, PID + n);
	end_send(&ends[0], ends[1].id, round);
	end_await(&ends[1], (struct seen){.put = 1});
	end_await(&ends[0], (struct seen){.sent = 1, .acknowledged = 1});
	expect(memcmp(ends[0].out, ends[1].in, sizeof(ends[0].out)) == 0);
	for (unsigned n = 0; n < 2; n++)
		check(PtlNIFini(ends[n].interface));
}

/* Returns at the same moment in both processes, give or take some microseconds. */
static void meet(struct meeting *meeting)
{
	meeting->random ^= meeting->random << 13;
	meeting->random ^= meeting->random >> 7;
	meeting->random ^= meeting->random << 17;
	meeting->times++;
	atomic_fetch_add(meeting->arrivals, 1);
	while (atomic_load(meeting->arrivals) < 2 * meeting->times)
		nap();
	for (volatile uint64_t turns = meeting->random % LATE; turns > 0; turns--)
		;
}

static void cycle_of_two(unsigned round, unsigned side, struct meeting *meeting)
{
	struct end end;
	ptl_event_t event;
	ptl_process_id_t peer;
	char wanted[sizeof(end.in)] = "";

	meet(meeting);
	end_open(&end, 0, PID + side);
	peer = (ptl_process_id_t){end.id.nid, PID + 1 - side};
	meet(meeting);
	end_send(&end, peer, round);
	end_await(&end, (struct seen){.sent = 1, .acknowledged = 1, .put = 1});
	words_write(wanted, peer.pid, round);
	expect(memcmp(end.in, wanted, sizeof(wanted)) == 0);
	meet(meeting);
	expect(PtlEQGet(end.queue, &event) == PTL_EQ_EMPTY);
	check(PtlNIFini(end.interface));
}

/* What a process does, `side` is its number if there are two. */
static void cycles_run(unsigned cycles, unsigned side, struct meeting *meeting)
{
	struct held first = {0}, last;
	int interfaces;

	check(PtlInit(&interfaces));
	for (unsigned n = 1; n <= cycles; n++) {
		if (meeting)
			cycle_of_two(n, side, meeting);
		else
			cycle(n);
		if (n == WARM)
			first = process_holds();
	}
	last = process_holds();
	PtlFini();
	printf("after %d cycles %u descriptors, %u threads, %" PRIu64
	       " KiB; after %u cycles %u, %u, %" PRIu64 "\n",
		WARM, first.descriptors, first.threads, first.kilobytes, cycles, last.descriptors,
		last.threads, last.kilobytes);
	expect_equal(last.descriptors, first.descriptors);
	expect_equal(last.threads, first.threads);
	expect(last.kilobytes <= first.kilobytes + SLACK);
}

/* Two processes; if one fails, the other does not wait for it. */
static void cycles_run_in_two(unsigned cycles, uint64_t seed)
{
	pid_t children[2];
	void *arrivals = mmap(NULL, sizeof(_Atomic uint64_t), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	expect(arrivals != MAP_FAILED);
	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	for (unsigned side = 0; side < 2; side++) {
		children[side] = fork();
		expect(children[side] >= 0);
		if (children[side] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			cycles_run(cycles, side,
				&(struct meeting){
					.arrivals = arrivals, .random = 2 * seed + side + 1});
			exit(0);
		}
	}
	for (unsigned ended = 0; ended < 2; ended++) {
		int status;
		pid_t child = wait(&status);

		expect(child >= 0);
		if (status != 0) {
			kill(children[child == children[0]], SIGKILL);
			fail("process %d ended with status %#x", child == children[1],
				(unsigned)status);
		}
	}
}

int main(int count, char **words)
{
	unsigned cycles = count == 2 || count == 3 ? (unsigned)strtoul(words[1], NULL, 10) : 0;

	/* Pools ask for huge pages: the first buffer that is used in one would count for 2 MiB, and
	 * how many are used at once depends on what else the machine does. */
	expect(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
	if (cycles <= WARM)
		fail("usage: cycles COUNT [SEED], COUNT of more than %d", WARM);
	if (count == 3)
		cycles_run_in_two(cycles, strtoull(words[2], NULL, 10));
	else
		cycles_run(cycles, 0, NULL);
	return 0;
}
