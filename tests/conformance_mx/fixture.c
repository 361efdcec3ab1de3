/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>

void code_check(mx_return_t got, mx_return_t want, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	print_error("%s returned %d (%s), not %d\n", call, (int)got, mx_strerror(got), (int)want);
	_fail(file, line);
}

int group_open(void **state)
{
	(void)state;
	setenv("PTL_IFACE_NAME", "loop:a;loop:a", 1);
	setenv("PTL_NID", "1;2", 1);
	setenv("PTL_MX_HOSTNAME", "alpha.example.org", 1);
	mx_set_error_handler(MX_ERRORS_RETURN);
	return mx_init() == MX_SUCCESS ? 0 : -1;
}

int group_close(void **state)
{
	(void)state;
	return mx_finalize() == MX_SUCCESS ? 0 : -1;
}

int child_run(void (*body)(void), char *text, size_t size)
{
	size_t length = 0;
	int ends[2], status;
	ssize_t count;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		body();
		_exit(0);
	}
	close(ends[1]);
	while (text && length + 1 < size &&
		(count = read(ends[0], text + length, size - 1 - length)) > 0)
		length += (size_t)count;
	if (text)
		text[length] = '\0';
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ends[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	uint64_t pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %" SCNu64, &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
