/* SPDX-License-Identifier: BSD-3-Clause */
/* paced.c - the CPU time of a process that waits for messages which come one at a time, a given
 * time apart. A child sends puts of 8 bytes; the receiver waits by PtlEQWait().
 *
 *     PTL_NID=1 bench-paced [MICROSECONDS [MESSAGES]]      (default: 1000, 1000)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <portals.h>

#define QUEUE 4096 /* the messages of a time without a CPU */
#define BITS  7
#define PID   1 /* the receiver's */

struct moment {
	double wall; /* s */
	double cpu;  /* s, of all threads of this process */
};

static ptl_handle_ni_t interface;

static void need(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "bench-paced: %s returns %d\n", call, code);
	exit(1);
}

static void interface_open(ptl_pid_t pid)
{
	int interfaces;

	need(PtlInit(&interfaces), "PtlInit");
	need(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &interface), "PtlNIInit");
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static struct moment moment_now(void)
{
	struct timespec wall;
	struct rusage used;

	clock_gettime(CLOCK_MONOTONIC, &wall);
	getrusage(RUSAGE_SELF, &used);
	return (struct moment){
		.wall = (double)wall.tv_sec + (double)wall.tv_nsec * 1e-9,
		.cpu = seconds(used.ru_utime) + seconds(used.ru_stime),
	};
}

/* The child. Times are counted from the first put, so that a late one delays no other. */
static void messages_send(ptl_nid_t nid, long interval, long messages)
{
	const ptl_process_id_t to = {.nid = nid, .pid = PID};
	ptl_md_t nothing = {.length = 8, .threshold = PTL_MD_THRESH_INF, .eventq = PTL_EQ_NONE};
	struct timespec next;
	ptl_handle_md_t source;
	uint64_t word = 0;

	interface_open(PTL_PID_ANY);
	nothing.start = &word;
	need(PtlMDBind(interface, nothing, &source), "PtlMDBind");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i <= messages; i++) {
		need(PtlPut(source, PTL_NOACK_REQ, to, 0, 0, BITS, 0, 0), "PtlPut");
		next.tv_nsec += interval % 1000000 * 1000;
		next.tv_sec += interval / 1000000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	PtlNIFini(interface);
	PtlFini();
}

static ptl_handle_eq_t memory_show(void)
{
	static uint64_t word;
	const ptl_process_id_t anyone = {.nid = PTL_NID_ANY, .pid = PTL_PID_ANY};
	ptl_md_t memory = {
		.start = &word,
		.length = sizeof(word),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE,
	};
	ptl_handle_me_t entry;
	ptl_handle_eq_t queue;

	need(PtlEQAlloc(interface, QUEUE, &queue), "PtlEQAlloc");
	memory.eventq = queue;
	need(PtlMEAttach(interface, 0, anyone, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	need(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
	return queue;
}

static void message_await(ptl_handle_eq_t queue)
{
	ptl_event_t event;

	do
		need(PtlEQWait(queue, &event), "PtlEQWait");
	while (event.type != PTL_EVENT_PUT_END);
}

/* Starts the sender once the receiver can be found: the process that receives is the child's
 * parent. */
int main(int count, char **words)
{
	const long interval = count > 1 ? atol(words[1]) : 1000;
	const long messages = count > 2 ? atol(words[2]) : 1000;
	struct moment start, end;
	ptl_process_id_t own;
	ptl_handle_eq_t queue;
	int ready[2];
	pid_t child;

	if (count > 3 || interval <= 0 || messages <= 0) {
		fputs("usage: bench-paced [MICROSECONDS [MESSAGES]]\n", stderr);
		return 2;
	}
	if (pipe(ready) != 0 || (child = fork()) < 0) {
		perror("bench-paced");
		return 1;
	}
	if (child == 0) {
		close(ready[1]);
		if (read(ready[0], &own, sizeof(own)) == sizeof(own))
			messages_send(own.nid, interval, messages);
		return 0;
	}
	interface_open(PID);
	queue = memory_show();
	need(PtlGetId(interface, &own), "PtlGetId");
	if (write(ready[1], &own, sizeof(own)) != sizeof(own))
		return 1;
	message_await(queue);
	start = moment_now();
	for (long i = 0; i < messages; i++)
		message_await(queue);
	end = moment_now();
	printf("%.1f us of CPU time a message, %.2f %% of a CPU\n",
		(end.cpu - start.cpu) / (double)messages * 1e6,
		(end.cpu - start.cpu) / (end.wall - start.wall) * 100);
	PtlNIFini(interface);
	PtlFini();
	wait(NULL);
	return 0;
}
