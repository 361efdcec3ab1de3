/* SPDX-License-Identifier: BSD-3-Clause */
/* figures.h - the figures that stand for many times: tables, JSON, CSV and plots show these
 * of a latency. */
#ifndef PERF_FIGURES_H
#define PERF_FIGURES_H

#include "histogram.h"

/* min, avg, percentiles, max */
#define FIGURES_PERCENTILES 5u
#define FIGURES             (FIGURES_PERCENTILES + 3u)
#define FIGURES_MEDIAN      2u
/* Which of them may be compared: the least, the median, the 90th percentile. Those beyond, and the
 * mean with them, are made by the few moments in which the machine did something else, which meet
 * one of two runs and not the other. */
#define FIGURES_COMPARED ((1u << 0) | (1u << FIGURES_MEDIAN) | (1u << (FIGURES_MEDIAN + 1)))

struct figure {
	const char *heading; /* of a column */
	const char *name;    /* in JSON and CSV */
};

extern const struct figure figure_table[FIGURES];

/* ns, in that order */
void figures_take(const struct histogram *times, double *figures);

#endif
