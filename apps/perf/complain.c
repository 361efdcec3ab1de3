/* SPDX-License-Identifier: BSD-3-Clause */
/* complain.c - see complain.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <postern.h>

#include "complain.h"
#include "leave.h"

static _Noreturn void finish(const char *format, va_list arguments, int code)
{
	leave_begin(); /* what fails because the process ends is no news */
	fflush(stdout);
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr); /* the progress line */
	fputs("postern-perf: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	if (code == EXIT_USAGE)
		fputs("postern-perf --help lists the options.\n", stderr);
	fflush(stderr);
	leave(code);
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	finish(format, arguments, EXIT_RUN);
}

void complain_usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	finish(format, arguments, EXIT_USAGE);
}

void complain_unless_ok(int code, const char *call)
{
	if (code != PTL_OK)
		complain("%s failed with %s: %s", call, postern_error_name(code),
			postern_error_text(code));
}
