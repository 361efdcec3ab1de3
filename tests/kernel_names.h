/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_names.h - lets a program of libfabric start in less than half of the time. */
#ifndef TESTS_KERNEL_NAMES_H
#define TESTS_KERNEL_NAMES_H

#include <stdio.h>
#include <string.h>

/* libfabric calls this function instead of fopen(). When a program starts, the verbs provider reads
 * the names of all functions of the kernel twice, for 0.1 s. Without the file it does not. */
FILE *file_open(const char *path, const char *mode) __asm__("fopen");

__attribute__((visibility("default"))) FILE *file_open(const char *path, const char *mode)
{
	return strcmp(path, "/proc/kallsyms") == 0 ? NULL : fopen64(path, mode);
}

#endif
