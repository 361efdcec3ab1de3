/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - see output.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

static const char *watched_program;
static int watched_code;
static bool watched_told;

bool output_flush(void)
{
	bool flushed = fflush(stdout) == 0;

	if (flushed && !ferror(stdout))
		return true;
	if (watched_told)
		return false;
	watched_told = true;
	if (flushed) /* it failed earlier, and why is forgotten */
		fprintf(stderr,
			"%s: standard output could not be written to, or only in part; send it "
			"elsewhere\n",
			watched_program);
	else if (errno != EPIPE) /* its reader wants no more */
		fprintf(stderr, "%s: standard output cannot be written to: %s; send it elsewhere\n",
			watched_program, strerror(errno));
	return false;
}

static void output_end(void)
{
	if (!output_flush())
		_exit(watched_code);
}

/* /dev/null opened for the other direction: a program that uses the descriptor gets the error of a
 * closed one. */
static void descriptor_hold(int descriptor)
{
	if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
		open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

void output_watch(const char *program, int code)
{
	watched_program = program;
	watched_code = code;
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		descriptor_hold(i);
	atexit(output_end);
}
