/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h - what a fuzz target is made of.
 *
 * With clang a target is a libFuzzer program; with other compilers replay.c gives it a main() that
 * runs it over files, so that what was once found stays found.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A mutator of the target's own; libFuzzer takes it when it is there. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

/* Targets whose inputs are frames count those that are accepted. A corpus without any is that of an
 * earlier version of the wire's format, and tests nothing. */
extern __attribute__((weak)) unsigned fuzz_accepted;

/* A promise that the code under test has to keep; stays in release builds. */
#define fuzz_assert(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
