/* SPDX-License-Identifier: BSD-3-Clause */
/* figures.c - see figures.h. */
#include "figures.h"

static const double percents[FIGURES_PERCENTILES] = {50, 90, 99, 99.9, 99.99};

const struct figure figure_table[FIGURES] = {
	{"Min", "min"},
	{"Avg", "avg"},
	{"50%", "p50"},
	{"90%", "p90"},
	{"99%", "p99"},
	{"99.9%", "p99.9"},
	{"99.99%", "p99.99"},
	{"Max", "max"},
};

void figures_take(const struct histogram *times, double *figures)
{
	figures[0] = times->count > 0 ? (double)times->min : 0;
	figures[1] = times->count > 0 ? (double)times->sum / (double)times->count : 0;
	for (unsigned i = 0; i < FIGURES_PERCENTILES; i++)
		figures[FIGURES_MEDIAN + i] = (double)histogram_percentile(times, percents[i]);
	figures[FIGURES - 1] = (double)times->max;
}
