/* result.h - what one trial found. */
#ifndef PERF_RESULT_H
#define PERF_RESULT_H

#include <stddef.h>

#include "histogram.h"
#include "trial.h"

struct result {
	struct trial trial;
	uint32_t window;
	uint64_t messages;
	double seconds;
	double rate;                   /* messages a second */
	const struct histogram *times; /* nanoseconds; NULL but for the latencies */
};

static inline double result_rate(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages / result->seconds : 0;
}

#endif
