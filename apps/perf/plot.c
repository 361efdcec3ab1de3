/* plot.c - see plot.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "complain.h"
#include "figures.h"
#include "plot.h"

#define HEAD        64.0 /* pixels above the first chart */
#define NINES_STEP  0.05
#define DISTRIBUTED 6u /* sizes, or whatever else differs, whose distribution is drawn */
#define MICRO       1e3
#define MEGA        1e6

struct plot_point {
	struct result result;
	struct histogram times; /* of a latency */
	struct plot_point *bare;
};

static FILE *file_open(const char *path)
{
	FILE *file = fopen(path, "we");

	if (file == NULL)
		complain("the plot cannot be written to %s: %s; give --plot another path.", path,
			strerror(errno));
	return file;
}

void plot_open(struct plot *plot, const char *path)
{
	*plot = (struct plot){.path = path};
	if (path != NULL)
		fclose(file_open(path));
}

static const char *fact_of(const struct machine *machine, const char *name)
{
	for (unsigned i = 0; i < machine->count; i++)
		if (strcmp(machine->facts[i].name, name) == 0)
			return machine->facts[i].text;
	return "";
}

void plot_machine(struct plot *plot, const struct machine *machine)
{
	snprintf(plot->title, sizeof(plot->title), "postern-perf %s over %s", machine->version,
		fact_of(machine, "interface"));
	snprintf(plot->note, sizeof(plot->note), "%s; MTU %s; progress %s; %s; hugepages %s",
		fact_of(machine, "cpu"), fact_of(machine, "mtu"), fact_of(machine, "progress"),
		fact_of(machine, "cores"), fact_of(machine, "hugepages"));
}

static void point_take(struct plot_point *point, const struct result *result)
{
	point->result = *result;
	point->bare = NULL;
	if (result->times == NULL)
		return;
	point->times = *result->times;
	point->result.times = &point->times;
}

static void *room_or_complain(void *memory)
{
	if (memory == NULL)
		complain("there is no memory for a plot.");
	return memory;
}

void plot_add(struct plot *plot, const struct result *result, const struct result *bare)
{
	struct plot_point *point;

	if (plot->path == NULL)
		return;
	if (plot->count == plot->room) {
		plot->room = plot->room > 0 ? plot->room * 2 : 32;
		plot->points = room_or_complain(
			realloc(plot->points, plot->room * sizeof(plot->points[0])));
	}
	point = room_or_complain(malloc(sizeof(*point)));
	plot->points[plot->count++] = point;
	point_take(point, result);
	if (bare == NULL)
		return;
	point->bare = room_or_complain(malloc(sizeof(*point)));
	point_take(point->bare, bare);
}

/* --- what differs among the trials, and so must be said in a legend */

struct variety {
	bool measures;
	bool sizes;
	bool depths;
	bool positions;
	bool wildcards;
	bool peers;
	bool faults;
};

static struct variety variety_of(const struct plot *plot)
{
	struct variety variety = {0};

	for (unsigned i = 1; i < plot->count; i++) {
		const struct trial *a = &plot->points[0]->result.trial;
		const struct trial *b = &plot->points[i]->result.trial;

		variety.measures |= a->measure != b->measure;
		variety.sizes |= a->size != b->size;
		variety.depths |= a->shape.depth != b->shape.depth;
		variety.positions |= a->shape.position != b->shape.position;
		variety.wildcards |= a->shape.wildcards != b->shape.wildcards;
		variety.peers |= a->peers != b->peers;
		variety.faults |= a->faults != b->faults;
	}
	return variety;
}

static void label_add(char *label, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void label_add(char *label, size_t room, const char *format, ...)
{
	size_t used = strlen(label);
	va_list arguments;

	if (used > 0 && used + 2 < room) {
		memcpy(label + used, ", ", 3);
		used += 2;
	}
	va_start(arguments, format);
	vsnprintf(label + used, room - used, format, arguments);
	va_end(arguments);
}

static void label_write(char *label, size_t room, const struct trial *trial,
	const struct variety *variety, bool bare)
{
	label[0] = '\0';
	label_add(label, room, "%s", measure_name(trial->measure));
	if (variety->sizes)
		label_add(label, room, "%" PRIu64 " bytes", trial->size);
	if (variety->depths)
		label_add(label, room, "%u deep", trial->shape.depth);
	if (variety->positions)
		label_add(label, room, "%s", position_name(trial->shape.position));
	if (variety->wildcards && trial->shape.wildcards == WILDCARDS_ALL)
		label_add(label, room, "all wild");
	else if (variety->wildcards)
		label_add(label, room, "%u wild", trial->shape.wildcards);
	if (variety->peers)
		label_add(label, room, "%u peers", trial->peers);
	if (variety->faults)
		label_add(label, room, "%.40s", trial->faults);
	if (bare)
		label_add(label, room, "bare frames");
}

/* The number of a trial's line among those of its chart: its color. */
static unsigned color_of(const struct chart *chart)
{
	unsigned colors = 0;

	for (unsigned i = 0; i < chart->count; i++)
		colors += !chart->series[i].dashed;
	return colors;
}

/* The line for a trial's messages, or for the bare frames beside it, which has the same color. */
static struct series *line_of(
	struct chart *chart, const struct trial *trial, const struct variety *variety, bool bare)
{
	char label[sizeof(chart->series[0].label)];
	struct series *messages;

	label_write(label, sizeof(label), trial, variety, false);
	messages = chart_series(chart, label, color_of(chart), false);
	if (!bare || messages == NULL)
		return messages;
	label_write(label, sizeof(label), trial, variety, true);
	return chart_series(chart, label, messages->color, true);
}

/* --- charts */

/* Latencies that differ in what a chart has room for: every n-th. */
static void distribution_add(struct chart *chart, const struct plot_point *point,
	const struct variety *variety, bool bare)
{
	const struct histogram *times = &point->times;
	struct series *series = line_of(chart, &point->result.trial, variety, bare);
	double most = log10((double)times->count);

	if (series == NULL || times->count == 0)
		return;
	series->marks = false;
	for (double nines = 0; nines <= most; nines += NINES_STEP)
		series_add(series, nines,
			(double)histogram_percentile(times, 100 * (1 - pow(10, -nines))) / MICRO);
}

static void distribution_fill(struct chart *chart, const struct plot *plot)
{
	struct variety variety = variety_of(plot);
	unsigned latencies = 0;
	unsigned stride;
	unsigned seen = 0;

	for (unsigned i = 0; i < plot->count; i++)
		latencies += plot->points[i]->result.times != NULL;
	stride = (latencies + DISTRIBUTED - 1) / DISTRIBUTED;
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_point *point = plot->points[i];

		if (point->result.times == NULL || seen++ % stride != 0)
			continue;
		distribution_add(chart, point, &variety, false);
		if (point->bare != NULL)
			distribution_add(chart, point->bare, &variety, true);
	}
	chart->left_out = latencies - (latencies + stride - 1) / (stride > 0 ? stride : 1);
}

enum abscissa { BY_SIZE, BY_DEPTH, BY_PEERS };
enum ordinate { MEDIAN_US, MEGABYTES, MEGA_MESSAGES };

static double abscissa_of(const struct trial *trial, enum abscissa abscissa)
{
	if (abscissa == BY_SIZE)
		return (double)trial->size;
	return abscissa == BY_DEPTH ? trial->shape.depth : trial->peers;
}

static double ordinate_of(const struct result *result, enum ordinate ordinate)
{
	if (ordinate == MEDIAN_US)
		return (double)histogram_percentile(result->times, 50) / MICRO;
	return ordinate == MEGABYTES ? bytes_rate(result) / MEGA : result->rate / MEGA;
}

static void sweep_fill(struct chart *chart, const struct plot *plot, enum abscissa abscissa,
	enum ordinate ordinate)
{
	struct variety variety = variety_of(plot);

	if (abscissa == BY_SIZE)
		variety.sizes = false;
	else if (abscissa == BY_DEPTH)
		variety.depths = false;
	else
		variety.peers = false;
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_point *point = plot->points[i];
		const struct trial *trial = &point->result.trial;
		struct series *series;

		if ((point->result.times != NULL) != (ordinate == MEDIAN_US))
			continue;
		series = line_of(chart, trial, &variety, false);
		if (series != NULL)
			series_add(series, abscissa_of(trial, abscissa),
				ordinate_of(&point->result, ordinate));
		if (point->bare == NULL)
			continue;
		series = line_of(chart, trial, &variety, true);
		if (series != NULL)
			series_add(series, abscissa_of(trial, abscissa),
				ordinate_of(&point->bare->result, ordinate));
	}
}

static void chart_finish(FILE *file, struct chart *chart, double *top)
{
	if (chart->count > 0) {
		chart_draw(file, chart, *top);
		*top += CHART_HEIGHT;
	}
	chart_free(chart);
}

static void sweep_draw(FILE *file, const struct plot *plot, enum abscissa abscissa,
	enum ordinate ordinate, double *top)
{
	static const char *const titles[] = {[MEDIAN_US] = "Median latency",
		[MEGABYTES] = "Bandwidth",
		[MEGA_MESSAGES] = "Rate"};
	static const char *const x_titles[] = {[BY_SIZE] = "message size, bytes",
		[BY_DEPTH] = "entries of the match list",
		[BY_PEERS] = "peers that the messages go to, in turns"};
	static const char *const y_titles[] = {[MEDIAN_US] = "microseconds",
		[MEGABYTES] = "MB/s",
		[MEGA_MESSAGES] = "million messages a second"};
	struct chart chart = {
		.title = titles[ordinate],
		.x_title = x_titles[abscissa],
		.y_title = y_titles[ordinate],
		.x_axis = AXIS_POWERS,
	};

	sweep_fill(&chart, plot, abscissa, ordinate);
	chart_finish(file, &chart, top);
}

static void charts_draw(FILE *file, const struct plot *plot, double *top)
{
	struct variety variety = variety_of(plot);
	struct chart chart = {
		.title = "How latencies are distributed",
		.x_title = "part of the messages that were at least that fast",
		.y_title = "microseconds",
		.x_axis = AXIS_PERCENTILE,
	};

	distribution_fill(&chart, plot);
	chart_finish(file, &chart, top);
	if (variety.sizes) {
		sweep_draw(file, plot, BY_SIZE, MEDIAN_US, top);
		sweep_draw(file, plot, BY_SIZE, MEGABYTES, top);
	}
	if (variety.depths) {
		sweep_draw(file, plot, BY_DEPTH, MEDIAN_US, top);
		sweep_draw(file, plot, BY_DEPTH, MEGA_MESSAGES, top);
	}
	if (variety.peers) {
		sweep_draw(file, plot, BY_PEERS, MEDIAN_US, top);
		sweep_draw(file, plot, BY_PEERS, MEGA_MESSAGES, top);
	}
	if (!variety.sizes && !variety.depths && !variety.peers)
		sweep_draw(file, plot, BY_SIZE, MEGA_MESSAGES, top);
}

static void head_draw(FILE *file, const struct plot *plot, double height)
{
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\" "
		"font-size=\"12\" fill=\"#222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"24\" y=\"30\" font-size=\"18\" font-weight=\"bold\">",
		CHART_WIDTH, height, CHART_WIDTH, height);
	svg_text(file, plot->title);
	fputs("</text>\n<text x=\"24\" y=\"50\" fill=\"#555\">", file);
	svg_text(file, plot->note);
	fputs("</text>\n", file);
}

/* The charts go into memory first, because the head says how many there are. */
static void plot_write(const struct plot *plot)
{
	FILE *file = file_open(plot->path);
	double height = HEAD;
	char *body = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&body, &size);

	if (memory == NULL)
		complain("there is no memory for a plot.");
	charts_draw(memory, plot, &height);
	fclose(memory);
	head_draw(file, plot, height);
	fwrite(body, 1, size, file);
	fputs("</svg>\n", file);
	free(body);
	if (ferror(file) | (fclose(file) != 0))
		complain("the plot could not be written to %s: %s.", plot->path, strerror(errno));
}

void plot_close(struct plot *plot)
{
	if (plot->path == NULL)
		return;
	plot_write(plot);
	for (unsigned i = 0; i < plot->count; i++) {
		free(plot->points[i]->bare);
		free(plot->points[i]);
	}
	free(plot->points);
	plot->points = NULL;
}
