/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - how results reach people (tables, a plot, a progress line) and programs (JSON,
 * CSV). */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "machine.h"
#include "plot.h"
#include "result.h"
#include "table.h"

struct report {
	enum format format;
	bool begun;
	bool progress; /* standard error is a terminal */
	struct columns columns;
	struct plot plot;
	unsigned results;
	struct trial trial; /* being measured; of the table that is being printed */
	unsigned step;      /* of so many */
	unsigned steps;
	uint64_t shown; /* when the progress line was last written, ns */
};

/* steps: how many results there will be. */
void report_open(struct report *report, const struct options *options, unsigned steps);
/* Once, before the first result. */
void report_begin(struct report *report, const struct machine *machine, ptl_process_id_t self,
	ptl_process_id_t peer);
/* The next result will be of this; the progress line says so. */
void report_expect(struct report *report, const struct trial *trial);
void report_progress(void *report, double part);
/* bare: of bare frames, or NULL. */
void report_result(struct report *report, const struct result *result, const struct result *bare);
/* Ends the list of results. */
void report_results_end(struct report *report);
void report_end(struct report *report);

/* The library's counters of an interface, before and after. */
#define COUNTERS_MAX 512
struct counters {
	ptl_handle_ni_t ni;
	unsigned count;
	uint64_t before[COUNTERS_MAX];
};

void counters_begin(struct counters *counters, ptl_handle_ni_t ni);
/* Prints the counters that have changed; who: the interface's process id. To be called between
 * report_results_end() and report_counters_end(). */
void report_counters(
	struct report *report, const struct counters *counters, ptl_process_id_t who, bool first);
void report_counters_end(struct report *report);

#endif
