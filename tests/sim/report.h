/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what a run has shown, and how it is told: a table, JSON, progress. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sim/model.h>
#include <transport/statistics.h>

#define METRICS_MAX 24

struct metric {
	const char *name;
	const char *unit;
	double value;
	double least; /* over all seeds */
	double most;
};

/* Of one run, or of many added up. */
struct result {
	uint64_t runs;
	uint64_t failed;
	uint64_t simulated; /* ns */
	uint64_t tasks;
	uint64_t fail_events;
	uint64_t drops;
	uint64_t bytes;  /* payload that arrived whole */
	uint64_t missed; /* frames that receiving hosts had no room for */
	uint64_t hash;
	struct star_counters network;
	struct transport_counters transport;
	struct metric metrics[METRICS_MAX];
	unsigned metric_count;
	char failure[FAILURE_TEXT];
};

/* The result of the run that is under way; node.c adds each life's counters to it. */
extern struct result report_current;

void report_metric(struct result *result, const char *name, const char *unit, double value);
void report_count(const struct node *node);
void report_add(struct result *total, const struct result *run);

void report_table(FILE *file, const char *experiment, const struct result *total);
void report_json(
	FILE *file, const char *experiment, uint64_t first_seed, const struct result *total);
/* One line that overwrites the last, on a terminal. */
void report_progress(uint64_t done, uint64_t of, uint64_t failed, uint64_t simulated);
void report_progress_end(void);

/* The interesting fields of a frame, and a newline. */
void report_frame(const uint8_t *bytes, uint32_t length);

/* The command that repeats the run that is under way; "": there is none yet. */
#define REPORT_COMMAND 1088
extern char report_replay[REPORT_COMMAND];

/* Ends the program: the run cannot go on, for a reason that is not the library's. */
void report_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
