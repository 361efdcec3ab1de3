/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.h - --trace: the life of each message, as a file to look at. */
#ifndef PERF_TRACING_H
#define PERF_TRACING_H

/* Begins, before the library is opened. file: its name, or NULL, and then nothing happens. Ends the
 * process when the file cannot be made. */
void tracing_begin(const char *file);
/* Writes the file; the interfaces have been closed. */
void tracing_end(void);

#endif
