/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c - lists of processes, as the environment has them. */
#include <base/number.h>
#include <job/job.h>

uint32_t job_hosts(const char *text, struct process *processes)
{
	uint32_t count = 0;

	for (;;) {
		struct process process;

		if (count == JOB_SIZE_MAX || !number_read(&text, ":", &process.nid) ||
			*text++ != ':' || !number_read(&text, ",", &process.pid) ||
			process.nid == UINT32_MAX || process.pid == UINT32_MAX)
			return 0;
		if (processes)
			processes[count] = process;
		count++;
		if (*text == '\0')
			return count;
		text++;
	}
}
