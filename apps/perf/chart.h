/* chart.h - one chart of an SVG drawing: axes, grid, lines with marks, legend. */
#ifndef PERF_CHART_H
#define PERF_CHART_H

#include <stdbool.h>
#include <stdio.h>

#define CHART_WIDTH  960.0
#define CHART_HEIGHT 400.0
#define CHART_SERIES 24u /* at most, in a chart */

/* What an axis counts, and so how it is divided and labelled. */
enum axis {
	AXIS_VALUE,     /* decades, or linear from 0 where all values lie within one */
	AXIS_POWERS,    /* powers of two, linear where there is 0 */
	AXIS_PERCENTILE /* 0 %, 90 %, 99 %, ...; values are -log10(1 - part) */
};

struct point {
	double x;
	double y;
};

struct series {
	char label[96];
	unsigned color; /* any number; the same one is the same color */
	bool dashed;
	bool marks; /* at each point */
	struct point *points;
	unsigned count;
	unsigned room;
};

struct chart {
	const char *title;
	const char *x_title;
	const char *y_title;
	enum axis x_axis;
	struct series series[CHART_SERIES];
	unsigned count;
	unsigned left_out; /* series that found no room */
};

/* The series with this label, made if there is none; NULL: there is no room for it. */
struct series *chart_series(struct chart *chart, const char *label, unsigned color, bool dashed);
void series_add(struct series *series, double x, double y);
/* Draws into an SVG element, the upper left corner at 0, top. */
void chart_draw(FILE *file, const struct chart *chart, double top);
void chart_free(struct chart *chart);

/* Text with what XML wants escaped. */
void svg_text(FILE *file, const char *text);

#endif
