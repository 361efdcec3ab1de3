/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c - lists of processes, and numbers, as the environment has them. */
#include <job/number.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <job/job.h>

bool number_read(const char **text, const char *ends, uint32_t *number)
{
	char *end;
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno != 0 || value > UINT32_MAX || !strchr(ends, *end))
		return false;
	*number = (uint32_t)value;
	*text = end;
	return true;
}

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
