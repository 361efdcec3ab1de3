/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - see table.h. */
#include <inttypes.h>
#include <stdio.h>

#include "../parse.h"
#include "figures.h"
#include "table.h"

#define MICRO   1e3 /* ns */
#define MEGA    1e6
#define PERCENT 100

#define FIGURES_ALL ((1u << FIGURES) - 1)

void table_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	printf("# postern-perf %s, from %s to %s\n", machine->version, process_text(self).text,
		process_text(peer).text);
	for (unsigned i = 0; i < machine->count; i++)
		printf("# %-13s %s\n", machine->facts[i].name, machine->facts[i].text);
}

void table_begin(const struct columns *columns, const struct trial *trial)
{
	printf("\n# %s\n", measure_title(trial->measure, trial->two_sided));
	if (trial->faults)
		printf("# under faults: %s\n", trial->faults);
	printf("%10s", "# Size");
	if (columns->shape)
		printf(" %6s %6s %8s", "Depth", "Wild", "Position");
	if (columns->peers)
		printf(" %5s", "Peers");
	if (columns->pairs)
		printf(" %5s", "Pairs");
	printf(" %10s", "Messages");
	if (measure_is_latency(trial->measure)) {
		for (unsigned i = 0; i < FIGURES; i++)
			printf(" %9s", figure_table[i].heading);
	} else if (measure_is_overlap(trial->measure)) {
		printf(" %10s", "Overlap, %");
		if (columns->runs)
			printf(" %10s %10s", "Lowest", "Highest");
	} else {
		printf(" %8s %12s %12s", "Window", "MB/s", "Messages/s");
		if (columns->runs)
			printf(" %12s %12s", "Lowest/s", "Highest/s");
		if (columns->bare)
			printf(" %12s %12s %8s", "Bare MB/s", "Bare/s", "Ratio");
	}
	putchar('\n');
}

/* The first columns, before those of the messages; for a comment line, a word. */
static void case_print(const struct columns *columns, const struct trial *trial, const char *word)
{
	if (word)
		printf("# %8s", word);
	else
		printf("%10" PRIu64, trial->size);
	if (columns->shape && word)
		printf(" %22s", "");
	else if (columns->shape)
		printf(" %6u %6u %8s", trial->shape.depth, shape_wildcards(&trial->shape),
			position_name(trial->shape.position));
	if (columns->peers && word)
		printf(" %5s", "");
	else if (columns->peers)
		printf(" %5u", trial->peers);
	if (columns->pairs && word)
		printf(" %5s", "");
	else if (columns->pairs)
		printf(" %5u", trial->pairs);
}

/* which: a bit for each. */
static void figures_print(const double *figures, double unit, unsigned which)
{
	for (unsigned i = 0; i < FIGURES; i++)
		if (which >> i & 1)
			printf(" %9.2f", figures[i] / unit);
		else
			printf(" %9s", "-");
	putchar('\n');
}

/* The least and the largest of each figure among the runs. */
static void runs_print(const struct columns *columns, const struct result *result)
{
	struct run lowest = result_lowest(result);
	struct run highest = result_highest(result);

	case_print(columns, &result->trial, "lowest");
	printf(" %10s", "");
	figures_print(lowest.figures, MICRO, FIGURES_ALL);
	case_print(columns, &result->trial, "highest");
	printf(" %10s", "");
	figures_print(highest.figures, MICRO, FIGURES_ALL);
}

static void latency_row(
	const struct columns *columns, const struct result *result, const struct result *bare)
{
	double figures[FIGURES];
	double bares[FIGURES];
	double above[FIGURES];
	double ratios[FIGURES];

	figures_take(result->times, figures);
	case_print(columns, &result->trial, NULL);
	printf(" %10" PRIu64, result->messages);
	figures_print(figures, MICRO, FIGURES_ALL);
	if (columns->runs)
		runs_print(columns, result);
	if (!bare)
		return;
	figures_take(bare->times, bares);
	for (unsigned i = 0; i < FIGURES; i++) {
		above[i] = figures[i] - bares[i];
		ratios[i] = ratio_of(figures[i], bares[i]);
	}
	case_print(columns, &result->trial, "bare");
	printf(" %10" PRIu64, bare->messages);
	figures_print(bares, MICRO, FIGURES_ALL);
	case_print(columns, &result->trial, "above");
	printf(" %10s", "");
	figures_print(above, MICRO, FIGURES_COMPARED);
	case_print(columns, &result->trial, "ratio");
	printf(" %10s", "");
	figures_print(ratios, 1, FIGURES_COMPARED);
}

static void overlap_print(const struct columns *columns, const struct result *result)
{
	printf(" %10" PRIu64 " %10.1f", result->messages, result->rate * PERCENT);
	if (columns->runs)
		printf(" %10.1f %10.1f", result_lowest(result).rate * PERCENT,
			result_highest(result).rate * PERCENT);
	putchar('\n');
}

void table_row(
	const struct columns *columns, const struct result *result, const struct result *bare)
{
	if (result->times) {
		latency_row(columns, result, bare);
		return;
	}
	case_print(columns, &result->trial, NULL);
	if (measure_is_overlap(result->trial.measure)) {
		overlap_print(columns, result);
		return;
	}
	printf(" %10" PRIu64 " %8u %12.2f %12.0f", result->messages, result->window,
		bytes_rate(result) / MEGA, result->rate);
	if (columns->runs)
		printf(" %12.0f %12.0f", result_lowest(result).rate, result_highest(result).rate);
	if (bare)
		printf(" %12.2f %12.0f %8.3f", bytes_rate(bare) / MEGA, bare->rate,
			result_ratio(result, bare));
	putchar('\n');
}
