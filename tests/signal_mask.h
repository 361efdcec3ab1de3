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

/* Does a thread of this process block a signal? */
static inline bool thread_blocks(const char *thread, int number)
{
	unsigned long long blocked = 0;
	char line[256], path[300];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
		;
	fclose(status);
	return blocked >> (number - 1) & 1;
}

/* All threads but the first one leave the program's signals to it, which may block one, and wait
 * for it; but they take faults, of memory that is not there. Returns how many they are. */
static inline unsigned threads_leave_signals(void)
{
	const struct dirent *entry;
	unsigned threads = 0;
	DIR *tasks = opendir("/proc/self/task");

	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid()) {
			threads++;
			assert_true(thread_blocks(entry->d_name, SIGTERM));
			assert_false(thread_blocks(entry->d_name, SIGSEGV));
		}
	closedir(tasks);
	return threads;
}

#endif
