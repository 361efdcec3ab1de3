/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h - what one trial found. */
#ifndef PERF_RESULT_H
#define PERF_RESULT_H

#include <stddef.h>

#include "figures.h"
#include "histogram.h"
#include "trial.h"

/* What one of several runs of a trial found. */
struct run {
	double rate;             /* messages a second; of an overlap: the part */
	double figures[FIGURES]; /* of a latency */
};

struct result {
	struct trial trial;
	uint32_t window;
	uint64_t messages;
	double seconds;
	double part; /* of an overlap, 0 to 1 */
	double rate; /* messages a second, or the part; of several runs the median */
	const struct histogram *times; /* nanoseconds; NULL but for the latencies */
	const struct run *runs;
	unsigned run_count;
};

/* What the messages' figure is to the bare frames': of the median times, or of the rates. */
double result_ratio(const struct result *messages, const struct result *bare);
static inline double ratio_of(double messages, double bare)
{
	return bare > 0 ? messages / bare : 0;
}

static inline double bytes_rate(const struct result *result)
{
	return result->rate * (double)result->trial.size;
}

/* The least and the largest rate of its runs; or of a latency, of each of its figures. */
struct run result_lowest(const struct result *result);
struct run result_highest(const struct result *result);

static inline double result_rate(const struct result *result)
{
	if (measure_is_overlap(result->trial.measure))
		return result->part;
	return result->seconds > 0 ? (double)result->messages / result->seconds : 0;
}

#endif
