/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - a program whose results cannot be written says so, and does not end as if all were
 * well. */
#ifndef APPS_OUTPUT_H
#define APPS_OUTPUT_H

#include <stdbool.h>

/* At the begin of main(): from now on the process, when it ends by exit(), looks whether all of
 * standard output was written, and else says why not and ends with this code. Standard input,
 * output and error that are closed are kept closed to the files that the process opens, which would
 * be written to otherwise. */
void output_watch(const char *program, int code);
/* Writes buffered output. Returns false after a failure, which is reported once. */
bool output_flush(void);

#endif
