/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.h - times counted in buckets that grow with the time, so that every percentile is known
 * to 1 %.
 *
 * Times below 128 ns have a bucket each; above, every power of two is cut into 128 buckets. Not
 * thread-safe.
 */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_CUT_BITS 7
#define HISTOGRAM_CUTS     (1u << HISTOGRAM_CUT_BITS)
#define HISTOGRAM_BUCKETS  ((64 - HISTOGRAM_CUT_BITS + 1) * HISTOGRAM_CUTS)

struct histogram {
	uint64_t count;
	uint64_t sum;
	uint64_t min; /* UINT64_MAX when empty */
	uint64_t max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);
/* Adds all values of another one. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/* The least value that percent (0 to 100) of all values do not exceed, to the precision of a
 * bucket, between min and max; 0 when empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

#endif
