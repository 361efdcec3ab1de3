/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - ends CODE: a job whose rank 1 calls postern_job_abort(CODE) while another thread of it
 * and all other ranks are in a barrier. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <portals.h>
#include <postern.h>

static void *barrier_enter(void *context)
{
	(void)context;
	(void)postern_job_barrier();
	return NULL;
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
		(rank == 1 && pthread_create(&thread, NULL, barrier_enter, NULL) != 0)) {
		fprintf(stderr, "usage: ends CODE, in a job\n");
		return 2;
	}
	if (rank != 1) {
		(void)postern_job_barrier();
		pause();
	}
	usleep(300000);
	printf("before the end"); /* and no end of a line */
	postern_job_abort(atoi(words[1]));
	return 3;
}
