/* chart.c - see chart.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "complain.h"

#define LEFT   84.0 /* of the plotted area; the legend is right of it */
#define RIGHT  650.0
#define TOP    44.0
#define BOTTOM 340.0
#define LEGEND 668.0
#define TICKS  48u

/* Told apart also by those who do not see all colors. */
static const char *const colors[] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#5c5c5c"};
#define COLORS (sizeof(colors) / sizeof(colors[0]))

/* A direction of the plotted area. */
struct scale {
	bool log; /* of values; from..to are logarithms then */
	double base;
	double from;
	double to;
	double low; /* pixels */
	double high;
	double ticks[TICKS];
	unsigned count;
};

struct series *chart_series(struct chart *chart, const char *label, unsigned color, bool dashed)
{
	struct series *series;

	for (unsigned i = 0; i < chart->count; i++)
		if (strcmp(chart->series[i].label, label) == 0)
			return &chart->series[i];
	if (chart->count == CHART_SERIES) {
		chart->left_out++;
		return NULL;
	}
	series = &chart->series[chart->count++];
	*series = (struct series){.color = color, .dashed = dashed, .marks = !dashed};
	snprintf(series->label, sizeof(series->label), "%s", label);
	return series;
}

void series_add(struct series *series, double x, double y)
{
	if (series->count == series->room) {
		series->room = series->room > 0 ? series->room * 2 : 32;
		series->points = realloc(series->points, series->room * sizeof(series->points[0]));
		if (series->points == NULL)
			complain("there is no memory for a plot.");
	}
	series->points[series->count++] = (struct point){x, y};
}

void chart_free(struct chart *chart)
{
	for (unsigned i = 0; i < chart->count; i++)
		free(chart->series[i].points);
	chart->count = 0;
}

void svg_text(FILE *file, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", file);
		else if (*text == '>')
			fputs("&gt;", file);
		else if (*text == '&')
			fputs("&amp;", file);
		else if ((unsigned char)*text >= ' ')
			fputc(*text, file);
	}
}

/* --- scales */

static double scale_place(const struct scale *scale, double value)
{
	double at = scale->log ? log(value) / log(scale->base) : value;

	return scale->low +
	       (at - scale->from) / (scale->to - scale->from) * (scale->high - scale->low);
}

static void tick_add(struct scale *scale, double value)
{
	if (scale->count < TICKS)
		scale->ticks[scale->count++] = value;
}

/* 1, 2 or 5 times a power of ten, so that some five of them reach `to`. */
static double linear_step(double to)
{
	double step = pow(10, floor(log10(to / 5)));

	if (to / step > 25)
		return step * 5;
	return to / step > 10 ? step * 2 : step;
}

static void scale_linear(struct scale *scale, double most)
{
	double step = linear_step(most > 0 ? most : 1);

	scale->from = 0;
	scale->to = step * ceil((most > 0 ? most : 1) / step);
	for (unsigned i = 0; step * i <= scale->to * 1.0001; i++)
		tick_add(scale, step * i);
}

static void scale_decades(struct scale *scale, double least, double most)
{
	bool few = most / least < 1000;

	scale->log = true;
	scale->base = 10;
	scale->from = floor(log10(least));
	scale->to = ceil(log10(most));
	for (double decade = scale->from; decade <= scale->to; decade++) {
		tick_add(scale, pow(10, decade));
		if (few && decade < scale->to) {
			tick_add(scale, 2 * pow(10, decade));
			tick_add(scale, 5 * pow(10, decade));
		}
	}
}

/* A zero has a place of its own, one step before the least power. */
static void scale_powers(struct scale *scale, double least, double most)
{
	double step;

	if (least < 1) {
		scale_linear(scale, most);
		return;
	}
	scale->log = true;
	scale->base = 2;
	scale->from = floor(log2(least));
	scale->to = ceil(log2(most));
	if (scale->to == scale->from) {
		scale->from -= 1;
		scale->to += 1;
	}
	step = scale->to - scale->from > 12 ? 2 : 1;
	for (double power = scale->from; power <= scale->to; power += step)
		tick_add(scale, pow(2, power));
}

static void scale_percentiles(struct scale *scale, double most)
{
	scale->from = 0;
	scale->to = most > 1 ? most : 1;
	for (double nines = 0; nines <= scale->to; nines++)
		tick_add(scale, nines);
	tick_add(scale, -log10(0.5));
}

static void scale_make(struct scale *scale, enum axis axis, double least, double most)
{
	if (axis == AXIS_PERCENTILE)
		scale_percentiles(scale, most);
	else if (axis == AXIS_POWERS)
		scale_powers(scale, least, most);
	else if (least > 0 && most / least > 10)
		scale_decades(scale, least, most);
	else
		scale_linear(scale, most);
}

/* 0.05, 1, 2.5, 64K, 99.9% */
static void tick_text(FILE *file, enum axis axis, double value)
{
	static const char letters[] = " KMG";
	unsigned unit = 0;

	if (axis == AXIS_PERCENTILE) {
		fprintf(file, "%.6g%%", 100 * (1 - pow(10, -value)));
		return;
	}
	while (axis == AXIS_POWERS && value >= 1024 && fmod(value, 1024) == 0 && unit < 3) {
		value /= 1024;
		unit++;
	}
	if (axis == AXIS_VALUE && value >= 1e6)
		fprintf(file, "%.6gM", value / 1e6);
	else
		fprintf(file, "%.6g%.*s", value, unit > 0, &letters[unit]);
}

/* --- drawing */

static void line_draw(FILE *file, double x1, double y1, double x2, double y2, const char *color)
{
	fprintf(file,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
		"stroke-width=\"1\"/>\n",
		x1, y1, x2, y2, color);
}

static void grid_draw(
	FILE *file, const struct chart *chart, const struct scale *x, const struct scale *y)
{
	for (unsigned i = 0; i < x->count; i++) {
		double at = scale_place(x, x->ticks[i]);

		line_draw(file, at, TOP, at, BOTTOM, "#e4e4e4");
		fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at,
			BOTTOM + 17);
		tick_text(file, chart->x_axis, x->ticks[i]);
		fputs("</text>\n", file);
	}
	for (unsigned i = 0; i < y->count; i++) {
		double at = scale_place(y, y->ticks[i]);

		line_draw(file, LEFT, at, RIGHT, at, "#e4e4e4");
		fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 7, at + 4);
		tick_text(file, AXIS_VALUE, y->ticks[i]);
		fputs("</text>\n", file);
	}
	line_draw(file, LEFT, BOTTOM, RIGHT, BOTTOM, "#555");
	line_draw(file, LEFT, TOP, LEFT, BOTTOM, "#555");
}

static void titles_draw(FILE *file, const struct chart *chart)
{
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"15\" font-weight=\"bold\">", LEFT,
		TOP - 18);
	svg_text(file, chart->title);
	fprintf(file, "</text>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
		(LEFT + RIGHT) / 2, BOTTOM + 38);
	svg_text(file, chart->x_title);
	fprintf(file,
		"</text>\n<text transform=\"translate(%.1f %.1f) rotate(-90)\" "
		"text-anchor=\"middle\">",
		LEFT - 58, (TOP + BOTTOM) / 2);
	svg_text(file, chart->y_title);
	fputs("</text>\n", file);
}

static void stroke_write(FILE *file, const struct series *series)
{
	fprintf(file,
		" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-linejoin=\"round\"%s",
		colors[series->color % COLORS], series->dashed ? " stroke-dasharray=\"6 4\"" : "");
}

static void series_draw(
	FILE *file, const struct series *series, const struct scale *x, const struct scale *y)
{
	fputs("<polyline points=\"", file);
	for (unsigned i = 0; i < series->count; i++)
		fprintf(file, "%s%.1f,%.1f", i > 0 ? " " : "", scale_place(x, series->points[i].x),
			scale_place(y, series->points[i].y));
	fputc('"', file);
	stroke_write(file, series);
	fputs("/>\n", file);
	for (unsigned i = 0; series->marks && i < series->count; i++)
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\"/>\n",
			scale_place(x, series->points[i].x), scale_place(y, series->points[i].y),
			colors[series->color % COLORS]);
}

static void legend_draw(FILE *file, const struct chart *chart)
{
	double at = TOP + 8;

	for (unsigned i = 0; i < chart->count; i++, at += 14) {
		fprintf(file, "<path d=\"M%.1f %.1fh26\"", LEGEND, at);
		stroke_write(file, &chart->series[i]);
		fprintf(file, "/>\n<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\">", LEGEND + 32,
			at + 4);
		svg_text(file, chart->series[i].label);
		fputs("</text>\n", file);
	}
	if (chart->left_out > 0)
		fprintf(file,
			"<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\">not drawn: %u more</text>\n",
			LEGEND, at + 4, chart->left_out);
}

void chart_draw(FILE *file, const struct chart *chart, double top)
{
	struct scale x = {.low = LEFT, .high = RIGHT};
	struct scale y = {.low = BOTTOM, .high = TOP};
	struct point least = {INFINITY, INFINITY};
	struct point most = {0, 0};

	for (unsigned i = 0; i < chart->count; i++)
		for (unsigned j = 0; j < chart->series[i].count; j++) {
			struct point point = chart->series[i].points[j];

			least.x = fmin(least.x, point.x);
			least.y = fmin(least.y, point.y);
			most.x = fmax(most.x, point.x);
			most.y = fmax(most.y, point.y);
		}
	scale_make(&x, chart->x_axis, least.x, most.x);
	scale_make(&y, AXIS_VALUE, least.y, most.y);
	fprintf(file, "<g transform=\"translate(0 %.1f)\">\n", top);
	grid_draw(file, chart, &x, &y);
	titles_draw(file, chart);
	for (unsigned i = 0; i < chart->count; i++)
		series_draw(file, &chart->series[i], &x, &y);
	legend_draw(file, chart);
	fputs("</g>\n", file);
}
