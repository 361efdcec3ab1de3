/* SPDX-License-Identifier: BSD-3-Clause */
/* effort.h - how long is measured, how far a measure is, and the cost of reading the clock.
 *
 * The clock is the library's own: nanoseconds by the TSC. Any thread, after PtlNIInit.
 */
#ifndef PERF_EFFORT_H
#define PERF_EFFORT_H

#include <stdbool.h>
#include <stdint.h>

#include "instrument.h"

struct effort {
	double seconds;      /* each time */
	double warm_up;      /* before that, not counted; negative: a part of it */
	uint64_t iterations; /* messages; 0: by time */
};

/* A measure on its way, by time or by steps. */
struct course {
	uint64_t start; /* ns */
	double length;  /* ns */
	uint64_t steps; /* messages, or windows of them; 0: by time */
};

static inline uint64_t clock_look(void)
{
	return instrument->now(NULL);
}

/* ns that pass between two looks with nothing between them: it is taken off every time that was
 * measured with two looks. The first call takes 150 ms; it is made while there is one thread. */
uint64_t clock_cost(void);
static inline uint64_t clock_between(uint64_t start, uint64_t end, uint64_t cost)
{
	return end - start > cost ? end - start - cost : 0;
}

/* Begins now. window: messages of a step. warm_up: the part before it, which is not counted. */
struct course course_begin(const struct effort *effort, uint32_t window, bool warm_up);

/* The part that is done, 1 at the end. */
static inline double course_part(const struct course *course, uint64_t done, uint64_t now)
{
	return course->steps > 0    ? (double)done / (double)course->steps
	       : course->length > 0 ? (double)(now - course->start) / course->length
				    : 1;
}

#endif
