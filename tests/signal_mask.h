/* SPDX-License-Identifier: BSD-3-Clause */
/* signal_mask.h - which signals the threads of a library take. The first thread calls; include it
 * after cmocka. */
#ifndef TESTS_SIGNAL_MASK_H
#define TESTS_SIGNAL_MASK_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own signal: only glibc can block it, and does so while a thread begins or ends. */
#define SIGNAL_OF_GLIBC 32

static inline bool mask_has(unsigned long long mask, int number)
{
	return mask >> (number - 1) & 1;
}

/* Reads which signals a thread of this process blocks once it has begun. Returns false if the
 * thread has ended. */
static inline bool thread_mask(const char *thread, unsigned long long *blocked)
{
	char line[256], path[300];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	do {
		*blocked = 0;
		status = fopen(path, "r");
		if (!status)
			return false;
		while (fgets(line, sizeof(line), status) &&
			sscanf(line, "SigBlk: %llx", blocked) != 1)
			;
		fclose(status);
	} while (mask_has(*blocked, SIGNAL_OF_GLIBC));
	return true;
}

/* All threads but the first one leave the program's signals to it, which may block one, and wait
 * for it; but they take faults, of memory that is not there. Returns how many they are. */
static inline unsigned threads_leave_signals(void)
{
	const struct dirent *entry;
	unsigned long long blocked;
	unsigned threads = 0;
	DIR *tasks = opendir("/proc/self/task");

	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid() &&
			thread_mask(entry->d_name, &blocked)) {
			threads++;
			assert_true(mask_has(blocked, SIGTERM));
			assert_false(mask_has(blocked, SIGSEGV));
		}
	closedir(tasks);
	return threads;
}

#endif
