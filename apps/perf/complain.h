/* SPDX-License-Identifier: BSD-3-Clause */
/* complain.h - how the program ends when it cannot go on: one sentence on standard error and an
 * exit code. */
#ifndef PERF_COMPLAIN_H
#define PERF_COMPLAIN_H

#define EXIT_RUN   1 /* the run failed */
#define EXIT_USAGE 2 /* the options make no sense */

/* Ends the process. Any thread. */
_Noreturn void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for wrong options; tells of --help. */
_Noreturn void complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the process unless code is PTL_OK; call is the function's name. */
void complain_unless_ok(int code, const char *call);

#endif
