/* SPDX-License-Identifier: BSD-3-Clause */
/* nap.h - how tests wait for another thread or process. A yield gives a whole time slice away on a
 * busy machine (Linux 6.18), and a test that yields a thousand times takes minutes there. */
#ifndef TESTS_NAP_H
#define TESTS_NAP_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

static inline void nap(void)
{
	nanosleep(&(const struct timespec){.tv_nsec = 10000}, NULL);
}

/* After so many looks that found nothing. The thread that helps may lose its CPU while it drives;
 * then no look finds anything until it has one again. */
static inline void look_pause(unsigned looks)
{
	if (looks % 1000 == 0)
		nap();
}

/* Does a thread of this process sleep, as the scheduler says? Not one that has ended. */
static inline bool thread_sleeps(pid_t thread)
{
	char path[64], state = 'R';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'R';
	fclose(file);
	return state == 'S';
}

#endif
