/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.c - see histogram.h. */
#include <string.h>

#include "histogram.h"

void histogram_clear(struct histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min = UINT64_MAX;
}

static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < HISTOGRAM_CUTS)
		return (unsigned)value;
	shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_CUT_BITS;
	return (shift + 1) * HISTOGRAM_CUTS + (unsigned)(value >> shift) - HISTOGRAM_CUTS;
}

/* The largest value in a bucket. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned shift;

	if (bucket < HISTOGRAM_CUTS)
		return bucket;
	shift = bucket / HISTOGRAM_CUTS - 1;
	return ((uint64_t)(bucket % HISTOGRAM_CUTS + HISTOGRAM_CUTS) << shift) +
	       ((UINT64_C(1) << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->count++;
	histogram->sum += value;
	if (value < histogram->min)
		histogram->min = value;
	if (value > histogram->max)
		histogram->max = value;
	histogram->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	histogram->count += other->count;
	histogram->sum += other->sum;
	if (other->min < histogram->min)
		histogram->min = other->min;
	if (other->max > histogram->max)
		histogram->max = other->max;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->buckets[i] += other->buckets[i];
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
	double wanted = (double)histogram->count * percent / 100;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t top = bucket_top(i);

		seen += histogram->buckets[i];
		if (seen == 0 || (double)seen < wanted)
			continue;
		if (top > histogram->max)
			top = histogram->max;
		return top < histogram->min ? histogram->min : top;
	}
	return histogram->max;
}
