/* SPDX-License-Identifier: BSD-3-Clause */
/* records.c - see records.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../json.h"
#include "../parse.h"
#include "figures.h"
#include "records.h"
#include "table.h"

void json_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	printf("{\n  \"program\": \"postern-perf\",\n  \"version\": ");
	json_text(machine->version);
	printf(",\n  \"self\": \"%s\",\n  \"peer\": \"%s\",\n  \"machine\": {\n",
		process_text(self).text, process_text(peer).text);
	for (unsigned i = 0; i < machine->count; i++) {
		printf("    \"%s\": ", machine->facts[i].name);
		json_text(machine->facts[i].text);
		printf(",\n");
	}
	printf("    \"cpus\": %ld\n  },\n  \"results\": [", machine->cpus);
}

static void json_times(const double *figures)
{
	putchar('{');
	for (unsigned i = 0; i < FIGURES; i++)
		printf("%s\"%s\": %.0f", i > 0 ? ", " : "", figure_table[i].name, figures[i]);
	putchar('}');
}

static bool is_overlap(const struct result *result)
{
	return measure_is_overlap(result->trial.measure);
}

static void json_runs(const struct result *result)
{
	printf(", \"runs\": [");
	for (unsigned i = 0; i < result->run_count; i++) {
		printf("%s", i > 0 ? ", " : "");
		if (result->times)
			json_times(result->runs[i].figures);
		else
			printf(is_overlap(result) ? "%.4f" : "%.0f", result->runs[i].rate);
	}
	putchar(']');
}

static void json_figures(const struct result *result)
{
	printf("\"messages\": %" PRIu64 ", \"seconds\": %.6f, ", result->messages, result->seconds);
	if (result->times) {
		double figures[FIGURES];

		figures_take(result->times, figures);
		printf("\"latency_ns\": ");
		json_times(figures);
	} else if (is_overlap(result)) {
		printf("\"overlap\": %.4f", result->rate);
	} else {
		printf("\"window\": %u, \"bytes_per_second\": %.0f, \"messages_per_second\": %.0f",
			result->window, bytes_rate(result), result->rate);
	}
	json_runs(result);
}

void json_result(const struct result *result, const struct result *bare, bool first)
{
	const struct trial *trial = &result->trial;

	printf("%s\n    {\"measure\": \"%s\", \"size\": %" PRIu64 ", ", first ? "" : ",",
		measure_name(trial->measure), trial->size);
	if (trial->shape.depth > 0)
		printf("\"depth\": %u, \"wildcards\": %u, \"position\": \"%s\", ",
			trial->shape.depth, shape_wildcards(&trial->shape),
			position_name(trial->shape.position));
	if (trial->peers > 1)
		printf("\"peers\": %u, ", trial->peers);
	if (trial->pairs > 1)
		printf("\"pairs\": %u, ", trial->pairs);
	if (trial->faults) {
		printf("\"faults\": ");
		json_text(trial->faults);
		printf(", ");
	}
	json_figures(result);
	if (bare) {
		printf(",\n     \"bare\": {");
		json_figures(bare);
		printf("}, \"ratio\": %.4g", result_ratio(result, bare));
	}
	putchar('}');
}

/* --- CSV: the same columns for every run; a column that does not apply is empty */

void csv_machine(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	table_machine(machine, self, peer);
	printf("measure,size,window,depth,wildcards,position,peers,pairs,faults");
	for (unsigned bare = 0; bare < 2; bare++) {
		const char *prefix = bare ? "bare_" : "";

		printf(",%smessages,%sseconds,%sbytes_per_second,%smessages_per_second", prefix,
			prefix, prefix, prefix);
		for (unsigned i = 0; i < FIGURES; i++)
			printf(",%s%s_ns", prefix, figure_table[i].name);
	}
	printf(",ratio,runs,lowest_messages_per_second,highest_messages_per_second,lowest_p50_ns,"
	       "highest_p50_ns,overlap,lowest_overlap,highest_overlap\n");
}

static void csv_figures(const struct result *result)
{
	double figures[FIGURES];

	if (!result) {
		for (unsigned i = 0; i < FIGURES + 4; i++)
			putchar(',');
		return;
	}
	printf(",%" PRIu64 ",%.6f,", result->messages, result->seconds);
	if (is_overlap(result)) {
		printf(",");
		for (unsigned i = 0; i < FIGURES; i++)
			putchar(',');
		return;
	}
	if (!result->times) {
		printf("%.0f,%.0f", bytes_rate(result), result->rate);
		for (unsigned i = 0; i < FIGURES; i++)
			putchar(',');
		return;
	}
	putchar(',');
	figures_take(result->times, figures);
	for (unsigned i = 0; i < FIGURES; i++)
		printf(",%.0f", figures[i]);
}

/* In quotes, for it has commas; it cannot have quotes. */
static void csv_faults(const char *faults)
{
	const char *quote = strchr(faults, ',') ? "\"" : "";

	printf("%s%s%s", quote, faults, quote);
}

static void csv_runs(const struct result *result)
{
	struct run lowest = result_lowest(result);
	struct run highest = result_highest(result);

	printf(",%u,", result->run_count);
	if (is_overlap(result))
		printf(",,,,%.4f,%.4f,%.4f\n", result->rate, lowest.rate, highest.rate);
	else if (!result->times)
		printf("%.0f,%.0f,,,,,\n", lowest.rate, highest.rate);
	else
		printf(",,%.0f,%.0f,,,\n", lowest.figures[FIGURES_MEDIAN],
			highest.figures[FIGURES_MEDIAN]);
}

void csv_result(const struct result *result, const struct result *bare)
{
	const struct trial *trial = &result->trial;

	printf("%s,%" PRIu64 ",%u,", measure_name(trial->measure), trial->size, result->window);
	if (trial->shape.depth > 0)
		printf("%u,%u,%s,", trial->shape.depth, shape_wildcards(&trial->shape),
			position_name(trial->shape.position));
	else
		printf(",,,");
	printf("%u,%u,", trial->peers, trial->pairs);
	if (trial->faults)
		csv_faults(trial->faults);
	csv_figures(result);
	csv_figures(bare);
	if (bare)
		printf(",%.4g", result_ratio(result, bare));
	else
		putchar(',');
	csv_runs(result);
}
