/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.h - results as a drawing by gnuplot, into a file or the terminal: how times are distributed,
 * and how they depend on sizes, depths and numbers of peers. Each chart is drawn if it has
 * results.
 */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include <stdio.h>

#include "machine.h"
#include "result.h"

struct plot_point;

struct plot {
	const char *path; /* NULL: none is wanted */
	FILE *file;
	char title[512];
	char note[512];
	struct plot_point **points;
	unsigned count;
	unsigned room;
};

/* path: ends in .svg, .png or .pdf; "-": the terminal; NULL: no drawing. Ends the program if there
 * is no gnuplot or the file cannot be written: better now than after a long run. */
void plot_open(struct plot *plot, const char *path);
void plot_machine(struct plot *plot, const struct machine *machine);
/* bare: NULL without. */
void plot_add(struct plot *plot, const struct result *result, const struct result *bare);
/* Writes the file. */
void plot_close(struct plot *plot);

#endif
