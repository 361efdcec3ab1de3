/* result.h - what one measure of one size found. */
#ifndef PERF_RESULT_H
#define PERF_RESULT_H

#include "histogram.h"
#include "options.h"

struct result {
	enum measure measure;
	uint64_t size;
	uint32_t window;
	uint64_t messages;
	double seconds;
	const struct histogram *times; /* nanoseconds; NULL but for the latencies */
};

#endif
