/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - ends CODE: a job whose rank 1 calls postern_job_abort(CODE) while another thread of it
 * and all other ranks are in a barrier.
 *
 * ends kill, ends exit, ends quit, ends leave: its rank 1 is killed, exits with code 9, exits with
 * code 0, or leaves the job and ends while all others are in a barrier.
 *
 * ends late: its rank 1 comes to the barrier two seconds after the others, which say how often they
 * slept meanwhile. */
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

static void *barrier_enter(void *context)
{
	(void)context;
	(void)postern_job_barrier();
	return NULL;
}

static void rank_end(const char *how)
{
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "exit") == 0)
		_exit(9);
	if (strcmp(how, "quit") == 0)
		_exit(0);
	if (strcmp(how, "leave") == 0)
		_exit(postern_job_leave() == PTL_OK ? 0 : 3);
}

/* Of all threads. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static int come_late(bool late)
{
	long before = sleeps();

	if (late)
		sleep(2);
	if (postern_job_barrier() != PTL_OK)
		return 4;
	if (!late)
		printf("slept %ld times\n", sleeps() - before);
	return postern_job_leave() == PTL_OK ? 0 : 3;
}

int main(int count, char **words)
{
	ptl_handle_ni_t ni;
	pthread_t thread;
	unsigned rank, size;
	int interfaces;

	if (count != 2 || PtlInit(&interfaces) != PTL_OK ||
		PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK ||
		postern_job_join(ni, &rank, &size) != PTL_OK ||
		(rank == 1 && isdigit(words[1][0]) &&
			pthread_create(&thread, NULL, barrier_enter, NULL) != 0)) {
		fprintf(stderr, "usage: ends CODE|kill|exit|quit|leave|late, in a job\n");
		return 2;
	}
	if (strcmp(words[1], "late") == 0)
		return come_late(rank == 1);
	if (rank != 1) {
		if (postern_job_barrier() != PTL_OK)
			return 4;
		pause();
	}
	usleep(300000);
	rank_end(words[1]);
	printf("before the end"); /* and no end of a line */
	postern_job_abort(atoi(words[1]));
	return 3;
}
