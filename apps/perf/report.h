/* report.h - how results reach people (tables, a progress line) and programs (one JSON object). */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <portals.h>

#include "machine.h"
#include "result.h"

struct report {
	bool json;
	bool raw;      /* with bare frames */
	bool progress; /* standard error is a terminal */
	unsigned results;
	enum measure measure; /* of the table that is being printed */
	uint64_t size;        /* being measured */
	unsigned step;        /* of so many */
	unsigned steps;
};

void report_begin(struct report *report, bool json, bool raw, unsigned steps,
	const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer);
/* The next result will be of this; the progress line says so. */
void report_expect(struct report *report, enum measure measure, uint64_t size);
void report_progress(void *report, double part);
/* bare: of bare frames, or NULL. */
void report_result(struct report *report, const struct result *result, const struct result *bare);
void report_end(struct report *report);

/* The library's counters of an interface, before and after. */
#define COUNTERS_MAX 512
struct counters {
	ptl_handle_ni_t ni;
	unsigned count;
	uint64_t before[COUNTERS_MAX];
};

void counters_begin(struct counters *counters, ptl_handle_ni_t ni);
/* Prints those that have changed; who is the interface's process id. Between the last result and
 * report_end(). */
void report_counters(
	struct report *report, const struct counters *counters, ptl_process_id_t who, bool first);
/* After the last call of report_counters(). */
void report_counters_end(struct report *report);

#endif
