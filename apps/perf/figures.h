/* figures.h - the figures that stand for many times: what tables, JSON, CSV and plots have of a latency. */
#ifndef PERF_FIGURES_H
#define PERF_FIGURES_H

#include "histogram.h"
#include "result.h"

/* min, avg, percentiles, max */
#define FIGURES_PERCENTILES 5u
#define FIGURES             (FIGURES_PERCENTILES + 3u)
#define FIGURES_MEDIAN      2u

struct figure {
	const char *heading; /* of a column */
	const char *name;    /* in JSON and CSV */
};

extern const struct figure figure_table[FIGURES];

/* ns, in that order */
void figures_take(const struct histogram *times, double *figures);

/* What the messages' figure is to the bare frames': of the median times, or of the rates. */
double figures_ratio(const struct result *messages, const struct result *bare);
static inline double ratio_of(double messages, double bare)
{
	return bare > 0 ? messages / bare : 0;
}

static inline double bytes_rate(const struct result *result)
{
	return result->rate * (double)result->trial.size;
}

#endif
