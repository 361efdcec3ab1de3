/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.h - what every conformance test of MX starts from. The suite uses the headers alone. */
#ifndef CONFORMANCE_MX_FIXTURE_H
#define CONFORMANCE_MX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mx_extensions.h>
#include <mx_io.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define assert_ok(call)         code_check(call, MX_SUCCESS, #call, __FILE__, __LINE__)
#define assert_code(call, want) code_check(call, want, #call, __FILE__, __LINE__)
void code_check(mx_return_t got, mx_return_t want, const char *call, const char *file, int line);

/* Two boards of node ids 1 and 2 on a wire within the process; errors return; mx_init(). */
int group_open(void **state);
int group_close(void **state);

/* Runs body() in a child made by fork(); returns its exit status, or -1 if a signal ended it. What
 * it writes to standard error goes to text, if that is not NULL. */
int child_run(void (*body)(void), char *text, size_t size);

/* Bytes of the process in memory. */
uint64_t resident(void);

#endif
