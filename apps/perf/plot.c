/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - see plot.h. gnuplot draws; this file writes its script.
 *
 * G1. A chart is a table of series, each a data block of the script; messages and the bare frames
 * beside them have one color.
 * G2. gnuplot does not notice a full disk, so it draws into memory, and this process writes the
 * file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/file.h>

#include "complain.h"
#include "figures.h"
#include "plot.h"

#define WIDTH         1000 /* of a drawing, pixels, */
#define HEIGHT        420  /* and of each of its charts */
#define NINES_STEP    0.05
#define NINES_MOST    9
#define DISTRIBUTED   8u /* latencies whose distribution is drawn */
#define SERIES_MAX    64u
#define TERMINAL_WIDE 100 /* characters, where the terminal does not say */
#define TERMINAL_HIGH 30
#define MICRO         1e3
#define MEGA          1e6
#define PERCENT       100

struct plot_point {
	struct result result;
	struct histogram times; /* of a latency */
	struct plot_point *bare;
};

static void *room_or_complain(void *memory)
{
	if (!memory)
		complain("there is no memory for a plot; end other programs.");
	return memory;
}

/* A file in memory, for gnuplot. */
static FILE *file_make(void)
{
	int descriptor = memfd_create("plot", MFD_CLOEXEC);

	return room_or_complain(descriptor >= 0 ? fdopen(descriptor, "w+") : NULL);
}

/* The kind of drawing that a path asks for; NULL: none that can be made. */
static const char *terminal_of(const char *path)
{
	const char *ending = strrchr(path, '.');

	if (strcmp(path, "-") == 0)
		return "dumb";
	if (!ending)
		return NULL;
	return strcmp(ending, ".svg") == 0   ? "svg dynamic background rgb 'white' font 'sans,12'"
	       : strcmp(ending, ".png") == 0 ? "pngcairo font 'sans,10'"
	       : strcmp(ending, ".pdf") == 0 ? "pdfcairo font 'sans,10'"
					     : NULL;
}

/* Runs gnuplot with this script; NULL: only asks for its version. drawing, complaints: take its
 * standard output and error. Returns its exit code, or -1: it cannot be run. */
static int gnuplot_run(FILE *script, FILE *drawing, FILE *complaints)
{
	char program[] = "gnuplot", option[] = "--version";
	char *const words[] = {program, !script ? option : NULL, NULL};
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fileno(drawing), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(complaints), STDERR_FILENO);
	if (script)
		posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
	if (posix_spawnp(&child, words[0], &actions, NULL, words, environ) != 0)
		child = -1;
	posix_spawn_file_actions_destroy(&actions);
	if (child < 0)
		return -1;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

void plot_open(struct plot *plot, const char *path)
{
	const char *reason;
	FILE *nothing;

	*plot = (struct plot){.path = path, .file = stdout};
	if (!path)
		return;
	if (!terminal_of(path))
		complain_usage("--plot takes a path that ends in .svg, .png or .pdf, or - for the "
			       "terminal, not %s.",
			path);
	nothing = file_make();
	if (gnuplot_run(NULL, nothing, nothing) != 0)
		complain("--plot needs gnuplot; install it (Debian package gnuplot-nox), or leave "
			 "--plot out.");
	fclose(nothing);
	if (strcmp(path, "-") != 0)
		plot->file = file_stream(path, &reason);
	if (!plot->file)
		complain("the plot cannot be written to %s: %s; give --plot another path.", path,
			reason);
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
	if (!result->times)
		return;
	point->times = *result->times;
	point->result.times = &point->times;
}

void plot_add(struct plot *plot, const struct result *result, const struct result *bare)
{
	struct plot_point *point;

	if (!plot->path)
		return;
	if (plot->count == plot->room) {
		plot->room = plot->room > 0 ? plot->room * 2 : 32;
		plot->points = room_or_complain(
			realloc(plot->points, plot->room * sizeof(plot->points[0])));
	}
	point = room_or_complain(malloc(sizeof(*point)));
	plot->points[plot->count++] = point;
	point_take(point, result);
	if (!bare)
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
	bool pairs;
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
		variety.pairs |= a->pairs != b->pairs;
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
	if (variety->pairs)
		label_add(label, room, "%u pairs", trial->pairs);
	if (variety->faults)
		label_add(label, room, "%.40s", trial->faults);
	if (bare)
		label_add(label, room, "bare frames");
}

/* --- charts */

struct series {
	char label[96];
	unsigned color;
	bool bare;
	char *text; /* its points, a line each */
	size_t size;
	FILE *points;
};

struct chart {
	const char *title;
	const char *x_title;
	const char *y_title;
	bool distribution;
	bool zero;   /* a point has an x of 0, which a logarithm has not */
	bool linear; /* its heights are parts of 100 */
	unsigned count;
	unsigned left_out; /* results that found no room */
	struct series series[SERIES_MAX];
};

static struct series *chart_series(struct chart *chart, const char *label)
{
	for (unsigned i = 0; i < chart->count; i++)
		if (strcmp(chart->series[i].label, label) == 0)
			return &chart->series[i];
	return NULL;
}

/* The line for a trial's messages, or for the bare frames beside it, made if need be; NULL: there
 * is no room. */
static struct series *line_of(
	struct chart *chart, const struct trial *trial, const struct variety *variety, bool bare)
{
	char label[sizeof(chart->series[0].label)];
	struct series *series;
	unsigned color = 1;

	label_write(label, sizeof(label), trial, variety, bare);
	series = chart_series(chart, label);
	if (series)
		return series;
	if (chart->count == SERIES_MAX)
		return NULL;
	for (unsigned i = 0; i < chart->count; i++)
		color += !chart->series[i].bare;
	series = &chart->series[chart->count++];
	*series = (struct series){.color = bare ? color - 1 : color, .bare = bare};
	memcpy(series->label, label, sizeof(label));
	series->points = room_or_complain(open_memstream(&series->text, &series->size));
	return series;
}

static void distribution_add(struct chart *chart, const struct plot_point *point,
	const struct variety *variety, bool bare)
{
	const struct histogram *times = &point->times;
	struct series *series = line_of(chart, &point->result.trial, variety, bare);
	double most = log10((double)times->count);

	if (!series || times->count == 0)
		return;
	for (double nines = 0; nines <= most; nines += NINES_STEP)
		fprintf(series->points, "%g %g\n", nines,
			(double)histogram_percentile(times, 100 * (1 - pow(10, -nines))) / MICRO);
}

/* Is this one of so many that are shown, evenly spread from the first to the last? */
static bool shown(unsigned index, unsigned count)
{
	if (count <= DISTRIBUTED || index == 0)
		return true;
	return index * (DISTRIBUTED - 1) / (count - 1) !=
	       (index - 1) * (DISTRIBUTED - 1) / (count - 1);
}

static void distribution_fill(struct chart *chart, const struct plot *plot)
{
	struct variety variety = variety_of(plot);
	unsigned latencies = 0;
	unsigned seen = 0;

	for (unsigned i = 0; i < plot->count; i++)
		latencies += plot->points[i]->result.times != NULL;
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_point *point = plot->points[i];

		if (!point->result.times)
			continue;
		if (!shown(seen++, latencies)) {
			chart->left_out++;
			continue;
		}
		distribution_add(chart, point, &variety, false);
		if (point->bare)
			distribution_add(chart, point->bare, &variety, true);
	}
}

enum abscissa { BY_SIZE, BY_DEPTH, BY_PEERS, BY_PAIRS, ABSCISSAS };
enum ordinate { MEDIAN_US, MEGA_MESSAGES, MEGABYTES, OVERLAP, ORDINATES };

static double abscissa_of(const struct trial *trial, enum abscissa abscissa)
{
	if (abscissa == BY_SIZE)
		return (double)trial->size;
	return abscissa == BY_DEPTH   ? trial->shape.depth
	       : abscissa == BY_PEERS ? trial->peers
				      : trial->pairs;
}

/* What a measure is about. */
static enum ordinate ordinate_of(enum measure measure)
{
	if (measure_is_latency(measure))
		return MEDIAN_US;
	if (measure_is_overlap(measure))
		return OVERLAP;
	return measure_is_rate(measure) ? MEGA_MESSAGES : MEGABYTES;
}

static double height_of(const struct result *result)
{
	switch (ordinate_of(result->trial.measure)) {
	case MEDIAN_US:
		return (double)histogram_percentile(result->times, 50) / MICRO;
	case MEGA_MESSAGES:
		return result->rate / MEGA;
	case OVERLAP:
		return result->rate * PERCENT;
	default:
		return bytes_rate(result) / MEGA;
	}
}

static void sweep_add(struct chart *chart, const struct result *result, enum abscissa abscissa,
	const struct variety *variety, bool bare)
{
	struct series *series = line_of(chart, &result->trial, variety, bare);
	double x = abscissa_of(&result->trial, abscissa);

	if (!series) {
		chart->left_out++;
		return;
	}
	chart->zero = chart->zero || x == 0;
	fprintf(series->points, "%g %g\n", x, height_of(result));
}

static void sweep_fill(struct chart *chart, const struct plot *plot, enum abscissa abscissa,
	enum ordinate ordinate)
{
	struct variety variety = variety_of(plot);

	if (abscissa == BY_SIZE)
		variety.sizes = false;
	else if (abscissa == BY_DEPTH)
		variety.depths = false;
	else if (abscissa == BY_PEERS)
		variety.peers = false;
	else
		variety.pairs = false;
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_point *point = plot->points[i];

		if (ordinate_of(point->result.trial.measure) != ordinate)
			continue;
		sweep_add(chart, &point->result, abscissa, &variety, false);
		if (point->bare)
			sweep_add(chart, &point->bare->result, abscissa, &variety, true);
	}
}

/* --- gnuplot's words */

/* A text in quotes. */
static void quote(FILE *script, const char *text)
{
	fputc('"', script);
	for (; *text != '\0'; text++)
		if (*text == '\n')
			fputs("\\n", script);
		else
			fprintf(script, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', script);
}

static void word(FILE *script, const char *before, const char *text)
{
	fputs(before, script);
	quote(script, text);
	fputc('\n', script);
}

static void axes_write(FILE *script, const struct chart *chart)
{
	char title[128];

	snprintf(title, sizeof(title), chart->left_out > 0 ? "%s (%u results are left out)" : "%s",
		chart->title, chart->left_out);
	word(script, "set title ", title);
	word(script, "set xlabel ", chart->x_title);
	word(script, "set ylabel ", chart->y_title);
	fputs("unset logscale\nset xtics auto\n", script);
	fputs(chart->linear ? "set yrange [0:100]\n" : "set logscale y\nset yrange [*:*]\n",
		script);
	if (chart->distribution) {
		fputs("set format x '%g'\nset xtics ('0%%' 0, '90%%' 1", script);
		for (int nines = 2; nines <= NINES_MOST; nines++)
			fprintf(script, ", '%.*f%%%%' %d", nines - 2, 100 - pow(10, 2 - nines),
				nines);
		fputs(")\n", script);
	} else if (chart->zero) {
		fputs("set format x '%g'\n", script);
	} else {
		fputs("set logscale x 2\nset format x '%.0b%B'\n", script);
	}
}

static void chart_write(FILE *script, struct chart *chart)
{
	for (unsigned i = 0; i < chart->count; i++) {
		fclose(chart->series[i].points);
		fprintf(script, "$series%u << end\n%send\n", i, chart->series[i].text);
	}
	axes_write(script, chart);
	for (unsigned i = 0; i < chart->count; i++) {
		const struct series *series = &chart->series[i];

		fprintf(script, "%s $series%u with ", i == 0 ? "plot" : ",", i);
		if (chart->distribution)
			fputs("lines", script);
		else
			fprintf(script, "linespoints pointtype %u", series->color);
		fprintf(script, " linecolor %u dashtype %u title ", series->color,
			series->bare ? 2u : 1u);
		quote(script, series->label);
	}
	fputc('\n', script);
	for (unsigned i = 0; i < chart->count; i++)
		free(chart->series[i].text);
}

/* Returns how many charts were written: 0 or 1. */
static unsigned chart_finish(FILE *script, struct chart *chart)
{
	if (chart->count == 0)
		return 0;
	chart_write(script, chart);
	return 1;
}

static unsigned sweep_write(
	FILE *script, const struct plot *plot, enum abscissa abscissa, enum ordinate ordinate)
{
	static const char *const titles[] = {[MEDIAN_US] = "Median latency",
		[MEGA_MESSAGES] = "Rate",
		[MEGABYTES] = "Bandwidth",
		[OVERLAP] = "Overlap with computing"};
	static const char *const x_titles[] = {[BY_SIZE] = "message size, bytes",
		[BY_DEPTH] = "entries of the match list",
		[BY_PEERS] = "peers that the messages go to, in turns",
		[BY_PAIRS] = "pairs at once"};
	static const char *const y_titles[] = {[MEDIAN_US] = "microseconds",
		[MEGA_MESSAGES] = "million messages a second",
		[MEGABYTES] = "MB/s",
		[OVERLAP] = "% of a message's time"};
	struct chart chart = {
		.title = titles[ordinate],
		.x_title = x_titles[abscissa],
		.y_title = y_titles[ordinate],
		.linear = ordinate == OVERLAP,
	};

	sweep_fill(&chart, plot, abscissa, ordinate);
	return chart_finish(script, &chart);
}

static unsigned charts_write(FILE *script, const struct plot *plot)
{
	struct variety variety = variety_of(plot);
	const bool wanted[ABSCISSAS] = {
		[BY_SIZE] = variety.sizes || (!variety.depths && !variety.peers && !variety.pairs),
		[BY_DEPTH] = variety.depths,
		[BY_PEERS] = variety.peers,
		[BY_PAIRS] = variety.pairs,
	};
	struct chart chart = {
		.title = "How latencies are distributed",
		.x_title = "part of the messages that were at least that fast",
		.y_title = "microseconds",
		.distribution = true,
	};
	unsigned count;

	distribution_fill(&chart, plot);
	count = chart_finish(script, &chart);
	for (enum abscissa abscissa = BY_SIZE; abscissa < ABSCISSAS; abscissa++)
		for (enum ordinate ordinate = MEDIAN_US; wanted[abscissa] && ordinate < ORDINATES;
			ordinate++)
			count += sweep_write(script, plot, abscissa, ordinate);
	return count;
}

static void terminal_write(FILE *script, const char *path, unsigned charts)
{
	struct winsize size;

	fprintf(script, "set terminal %s ", terminal_of(path));
	if (strcmp(path, "-") != 0) {
		/* A PDF is measured in inches. */
		if (strstr(path, ".pdf"))
			fprintf(script, "size %d,%d\n", WIDTH / 96,
				(int)(charts * HEIGHT / 96 + 1));
		else
			fprintf(script, "size %d,%u\n", WIDTH, charts * HEIGHT + 60);
		return;
	}
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		size = (struct winsize){.ws_col = TERMINAL_WIDE, .ws_row = TERMINAL_HIGH};
	fprintf(script, "size %u,%u\n", size.ws_col - 1u,
		size.ws_row > 10 ? size.ws_row - 2u : 10u);
}

/* gnuplot repeats each command that it does not like: its last line says why. */
static void gnuplot_draw(const struct plot *plot, FILE *script, FILE *drawing)
{
	FILE *complaints = file_make();
	char line[512] = "", last[512] = "nothing was said";

	if (gnuplot_run(script, drawing, complaints) == 0) {
		fclose(complaints);
		return;
	}
	rewind(complaints);
	while (fgets(line, sizeof(line), complaints)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[strspn(line, " ")] != '\0')
			snprintf(last, sizeof(last), "%s", line + strspn(line, " "));
	}
	complain("gnuplot could not draw %s: %s.", plot->path, last);
}

/* G2. A failure of standard output is told at the program's end. */
static void drawing_write(const struct plot *plot, FILE *drawing)
{
	char bytes[4096];
	size_t count;

	rewind(drawing);
	while ((count = fread(bytes, 1, sizeof(bytes), drawing)) > 0)
		if (fwrite(bytes, 1, count, plot->file) < count)
			break;
	if (plot->file != stdout && (fflush(plot->file) != 0 || count > 0))
		complain("the plot cannot be written to %s: %s; give --plot another path.",
			plot->path, strerror(errno));
}

/* The charts go into memory first, because the head says how many there are. */
static void plot_write(const struct plot *plot)
{
	FILE *script = file_make(), *drawing = file_make();
	char title[sizeof(plot->title) + sizeof(plot->note) + 2];
	char *body = NULL;
	size_t size = 0;
	FILE *memory = room_or_complain(open_memstream(&body, &size));
	unsigned charts = charts_write(memory, plot);

	fclose(memory);
	terminal_write(script, plot->path, charts);
	fputs("set termoption noenhanced\nset encoding utf8\nset grid\nset key outside right top\n",
		script);
	snprintf(title, sizeof(title), "%s\n%s", plot->title, plot->note);
	if (strcmp(plot->path, "-") != 0) {
		fprintf(script, "set multiplot layout %u,1 title ", charts);
		quote(script, title);
		fputc('\n', script);
	}
	fwrite(body, 1, size, script);
	free(body);
	rewind(script);
	gnuplot_draw(plot, script, drawing);
	drawing_write(plot, drawing);
	fclose(script);
	fclose(drawing);
}

void plot_close(struct plot *plot)
{
	if (!plot->path)
		return;
	plot_write(plot);
	if (plot->file != stdout)
		fclose(plot->file);
	for (unsigned i = 0; i < plot->count; i++) {
		free(plot->points[i]->bare);
		free(plot->points[i]);
	}
	free(plot->points);
	plot->points = NULL;
}
