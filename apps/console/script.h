/* SPDX-License-Identifier: BSD-3-Clause */
/* script.h - where commands come from: somebody at a terminal, or a file. */
#ifndef CONSOLE_SCRIPT_H
#define CONSOLE_SCRIPT_H

#include <stdbool.h>
#include <stdio.h>

struct cmdline;

/* Runs the lines of a file up to the first that fails. Returns false after such a line, whose
 * number the error names. */
bool script_run(struct cmdline *cmdline, FILE *file, const char *name);

/* Reads lines from the terminal, with completion, help and history, until quit or the end of the
 * input. */
void terminal_run(struct cmdline *cmdline);

#endif
