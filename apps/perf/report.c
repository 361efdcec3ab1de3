/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - see report.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "effort.h"
#include "records.h"
#include "report.h"

#define PROGRESS_TIME (100 * MILLISECOND) /* between two looks of the progress line */

void report_open(struct report *report, const struct options *options, unsigned steps)
{
	*report = (struct report){
		.format = options->format,
		.progress = isatty(STDERR_FILENO) != 0,
		.columns =
			{
				.bare = options->raw,
				.shape = options->depths.items[0] > 0,
				.peers = options->peers.count > 1 || options->peers.items[0] > 1,
				.pairs = options->pairs.count > 1 || options->pairs.items[0] > 1,
				.runs = options->runs > 1,
			},
		.steps = steps,
		.trial.measure = MEASURE_COUNT,
	};
	plot_open(&report->plot, options->plot);
}

void report_begin(struct report *report, const struct machine *machine, ptl_process_id_t self,
	ptl_process_id_t peer)
{
	if (report->begun)
		return;
	report->begun = true;
	plot_machine(&report->plot, machine);
	if (report->format == FORMAT_JSON)
		json_machine(machine, self, peer);
	else if (report->format == FORMAT_CSV)
		csv_machine(machine, self, peer);
	else
		table_machine(machine, self, peer);
	(void)output_flush();
}

static void progress_clear(const struct report *report)
{
	if (report->progress)
		fputs("\r\033[K", stderr);
}

void report_expect(struct report *report, const struct trial *trial)
{
	bool other =
		trial->measure != report->trial.measure || trial->faults != report->trial.faults;

	if (other && report->format == FORMAT_TABLE) {
		progress_clear(report);
		table_begin(&report->columns, trial);
		(void)output_flush();
	}
	report->trial = *trial;
	report->step++;
	report->shown = 0;
	report_progress(report, 0);
}

static void progress_case(const struct trial *trial)
{
	fprintf(stderr, "%s of %" PRIu64 " bytes", measure_name(trial->measure), trial->size);
	if (trial->shape.depth > 0)
		fprintf(stderr, ", %u entries", trial->shape.depth);
	if (trial->peers > 1)
		fprintf(stderr, ", %u peers", trial->peers);
	if (trial->pairs > 1)
		fprintf(stderr, ", %u pairs", trial->pairs);
	if (trial->faults)
		fprintf(stderr, ", %.30s", trial->faults);
}

void report_progress(void *context, double part)
{
	struct report *report = context;
	uint64_t now;

	if (!report->progress)
		return;
	now = clock_look();
	if (report->shown != 0 && now - report->shown < PROGRESS_TIME)
		return;
	report->shown = now;
	fputs("\r\033[K", stderr);
	progress_case(&report->trial);
	fprintf(stderr, ": %3.0f %% (%u of %u)", (part > 1 ? 1 : part) * 100, report->step,
		report->steps);
	fflush(stderr);
}

void report_result(struct report *report, const struct result *result, const struct result *bare)
{
	progress_clear(report);
	plot_add(&report->plot, result, bare);
	if (report->format == FORMAT_JSON)
		json_result(result, bare, report->results == 0);
	else if (report->format == FORMAT_CSV)
		csv_result(result, bare);
	else
		table_row(&report->columns, result, bare);
	report->results++;
	(void)output_flush();
}

void report_results_end(struct report *report)
{
	if (report->format == FORMAT_JSON)
		printf("\n  ]");
}

void report_end(struct report *report)
{
	if (report->format == FORMAT_JSON)
		printf("\n}\n");
	(void)output_flush();
	plot_close(&report->plot);
}

void counters_begin(struct counters *counters, ptl_handle_ni_t ni)
{
	struct postern_stat stats[COUNTERS_MAX];

	counters->ni = ni;
	counters->count = postern_stats(ni, stats, COUNTERS_MAX);
	if (counters->count > COUNTERS_MAX)
		counters->count = COUNTERS_MAX;
	for (unsigned i = 0; i < counters->count; i++)
		counters->before[i] = stats[i].value;
}

void report_counters(
	struct report *report, const struct counters *counters, ptl_process_id_t who, bool first)
{
	struct postern_stat stats[COUNTERS_MAX];
	const char *comment = report->format == FORMAT_CSV ? "# " : "";
	bool json = report->format == FORMAT_JSON;
	bool any = false;

	postern_stats(counters->ni, stats, COUNTERS_MAX);
	if (json)
		printf("%s\n    \"%s\": {", first ? ",\n  \"counters\": {" : ",",
			process_text(who).text);
	else
		printf("\n# Counters of %s that have changed\n", process_text(who).text);
	for (unsigned i = 0; i < counters->count; i++) {
		int64_t grown = (int64_t)(stats[i].value - counters->before[i]);

		if (grown == 0)
			continue;
		if (json)
			printf("%s\"%s\": %" PRId64, any ? ", " : "", stats[i].name, grown);
		else
			printf("%s%16" PRId64 "  %-28s %s\n", comment, grown, stats[i].name,
				stats[i].help);
		any = true;
	}
	if (json)
		putchar('}');
}

void report_counters_end(struct report *report)
{
	if (report->format == FORMAT_JSON)
		printf("\n  }");
}
