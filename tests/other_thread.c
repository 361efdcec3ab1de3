/* SPDX-License-Identifier: BSD-3-Clause */
/* other_thread.c - says which assertion of cmocka's failed in a thread that is not the test's.
 * cmocka ends the program then, with code 255 and without a word. It is linked into all tests of
 * cmocka's, and stands before the library's function of this name. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((visibility("default"))) void _fail(const char *const file, const int line);

void _fail(const char *const file, const int line)
{
	void (*fail)(const char *const file, const int line) =
		(void (*)(const char *const, const int))dlsym(RTLD_NEXT, "_fail");

	if (gettid() != getpid())
		fprintf(stderr, "%s:%d: this assertion failed in a thread beside the test's\n",
			file, line);
	fail(file, line);
}
