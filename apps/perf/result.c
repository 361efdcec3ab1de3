/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - see result.h. */
#include "result.h"

double result_ratio(const struct result *messages, const struct result *bare)
{
	if (!messages->times)
		return ratio_of(messages->rate, bare->rate);
	return ratio_of((double)histogram_percentile(messages->times, 50),
		(double)histogram_percentile(bare->times, 50));
}

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

static struct run result_extreme(const struct result *result, double (*choose)(double a, double b))
{
	struct run run = result->runs[0];

	for (unsigned i = 1; i < result->run_count; i++) {
		run.rate = choose(run.rate, result->runs[i].rate);
		for (unsigned j = 0; j < FIGURES; j++)
			run.figures[j] = choose(run.figures[j], result->runs[i].figures[j]);
	}
	return run;
}

struct run result_lowest(const struct result *result)
{
	return result_extreme(result, lesser);
}

struct run result_highest(const struct result *result)
{
	return result_extreme(result, greater);
}
