/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - what stands behind an option: numbers, sizes, lists, process ids. Whatever makes no
 * sense ends the process with a sentence. option: its name, for that. */
#ifndef PERF_VALUES_H
#define PERF_VALUES_H

#include "options.h"

uint64_t value_number(const char *option, const char *text, uint64_t min, uint64_t max);
double value_seconds(const char *option, const char *text);
enum library value_library(const char *option, const char *text);
ptl_process_id_t value_process(const char *option, const char *text);

/* "8,64K" or "1..4M" (each power of two, and both ends) or both, added to numbers. word (may be
 * NULL) stands for word_value. */
void values_list(struct numbers *numbers, const char *option, const char *text, uint64_t min,
	uint64_t max, const char *word, uint64_t word_value);
/* "first,last" */
void values_positions(struct numbers *numbers, const char *option, const char *text);
/* "none;drop=0.01;drop=0.1,dup=0.1": returns how many. */
unsigned values_faults(char **faults, unsigned max, const char *option, char *text);
/* "0,1" */
unsigned values_cores(unsigned *cores, unsigned max, const char *option, const char *text);

#endif
