/* report.c - see report.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <postern.h>

#include "../json.h"
#include "report.h"

#define MICRO 1e3 /* nanoseconds */

static const struct {
	const char *title;
	const char *json;
} measures[MEASURE_COUNT] = {
	[MEASURE_LATENCY] = {"Latency of put: half of the round trip, microseconds", "latency"},
	[MEASURE_RATE] = {"Rate of puts", "rate"},
	[MEASURE_BANDWIDTH] = {"Bandwidth of put", "bandwidth"},
	[MEASURE_BIDIRECTIONAL] = {"Bandwidth of put, both ways at once, summed", "bidirectional"},
	[MEASURE_GET_LATENCY] = {"Latency of get: round trip, microseconds", "get-latency"},
	[MEASURE_GET_BANDWIDTH] = {"Bandwidth of get", "get-bandwidth"},
};

static const struct {
	double percent;
	const char *json;
	const char *heading;
} percentiles[] = {
	{50, "p50", "50%"},
	{90, "p90", "90%"},
	{99, "p99", "99%"},
	{99.9, "p99.9", "99.9%"},
	{99.99, "p99.99", "99.99%"},
};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static void json_member(const char *name, const char *value)
{
	printf("    \"%s\": ", name);
	json_text(value);
	printf(",\n");
}

static void begin_json(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	printf("{\n  \"program\": \"postern-perf\",\n  \"version\": ");
	json_text(machine->version);
	printf(",\n  \"self\": \"%u:%u\",\n  \"peer\": \"%u:%u\",\n  \"machine\": {\n", self.nid,
		self.pid, peer.nid, peer.pid);
	json_member("cpu", machine->cpu);
	json_member("kernel", machine->kernel);
	json_member("interface", machine->interface);
	json_member("encapsulation", machine->encapsulation);
	json_member("mtu", machine->mtu);
	json_member("hugepages", machine->hugepages);
	json_member("progress", machine->progress);
	json_member("faults", machine->faults);
	printf("    \"cpus\": %ld\n  },\n  \"results\": [", machine->cpus);
}

static void begin_text(const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	printf("# postern-perf %s, from %u:%u to %u:%u\n", machine->version, self.nid, self.pid,
		peer.nid, peer.pid);
	printf("# CPU        %s, %ld usable\n", machine->cpu, machine->cpus);
	printf("# kernel     %s\n", machine->kernel);
	printf("# interface  %s, frames in %s, MTU: %s\n",
		machine->interface[0] != '\0' ? machine->interface : "loopback",
		machine->encapsulation, machine->mtu);
	printf("# hugepages  %s\n", machine->hugepages);
	printf("# progress   %s\n", machine->progress);
	if (machine->faults[0] != '\0')
		printf("# faults     %s\n", machine->faults);
}

void report_begin(struct report *report, bool json, unsigned steps, const struct machine *machine,
	ptl_process_id_t self, ptl_process_id_t peer)
{
	*report = (struct report){.json = json,
		.progress = isatty(STDERR_FILENO) != 0,
		.measure = MEASURE_COUNT,
		.steps = steps};
	if (json)
		begin_json(machine, self, peer);
	else
		begin_text(machine, self, peer);
	fflush(stdout);
}

static void progress_clear(const struct report *report)
{
	if (report->progress)
		fputs("\r\033[K", stderr);
}

void report_expect(struct report *report, enum measure measure, uint64_t size)
{
	if (measure != report->measure && !report->json) {
		bool latency = measure == MEASURE_LATENCY || measure == MEASURE_GET_LATENCY;

		progress_clear(report);
		printf("\n# %s\n", measures[measure].title);
		if (latency) {
			printf("%10s %10s %9s %9s", "# Size", "Messages", "Min", "Avg");
			for (unsigned i = 0; i < PERCENTILES; i++)
				printf(" %9s", percentiles[i].heading);
			printf(" %9s\n", "Max");
		} else {
			printf("%10s %10s %8s %14s %14s\n", "# Size", "Messages", "Window", "MB/s",
				"Messages/s");
		}
		fflush(stdout);
	}
	report->measure = measure;
	report->size = size;
	report->step++;
	report_progress(report, 0);
}

void report_progress(void *context, double part)
{
	const struct report *report = context;

	if (!report->progress)
		return;
	if (part > 1)
		part = 1;
	fprintf(stderr, "\r\033[K%s of %" PRIu64 " bytes: %3.0f %% (%u of %u)",
		measures[report->measure].json, report->size, part * 100, report->step,
		report->steps);
	fflush(stderr);
}

static double rate_of(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages / result->seconds : 0;
}

static void result_text(const struct result *result)
{
	const struct histogram *times = result->times;

	printf("%10" PRIu64 " %10" PRIu64, result->size, result->messages);
	if (times == NULL) {
		printf(" %8u %14.2f %14.0f\n", result->window,
			rate_of(result) * (double)result->size / 1e6, rate_of(result));
		return;
	}
	printf(" %9.2f %9.2f", (double)times->min / MICRO,
		(double)times->sum / (double)times->count / MICRO);
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(" %9.2f",
			(double)histogram_percentile(times, percentiles[i].percent) / MICRO);
	printf(" %9.2f\n", (double)times->max / MICRO);
}

static void result_json(const struct report *report, const struct result *result)
{
	const struct histogram *times = result->times;

	printf("%s\n    {\"measure\": \"%s\", \"size\": %" PRIu64 ", \"messages\": %" PRIu64
	       ", \"seconds\": %.6f, ",
		report->results > 0 ? "," : "", measures[result->measure].json, result->size,
		result->messages, result->seconds);
	if (times == NULL) {
		printf("\"window\": %u, \"bytes_per_second\": %.0f, \"messages_per_second\": %.0f}",
			result->window, rate_of(result) * (double)result->size, rate_of(result));
		return;
	}
	printf("\"latency_ns\": {\"min\": %" PRIu64 ", \"avg\": %.0f", times->min,
		(double)times->sum / (double)times->count);
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(", \"%s\": %" PRIu64, percentiles[i].json,
			histogram_percentile(times, percentiles[i].percent));
	printf(", \"max\": %" PRIu64 "}}", times->max);
}

void report_result(struct report *report, const struct result *result)
{
	progress_clear(report);
	if (report->json)
		result_json(report, result);
	else
		result_text(result);
	report->results++;
	fflush(stdout);
}

void report_end(struct report *report)
{
	if (report->json)
		printf("\n}\n");
	fflush(stdout);
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
	bool any = false;

	postern_stats(counters->ni, stats, COUNTERS_MAX);
	if (report->json)
		printf("%s\n    \"%u:%u\": {", first ? "\n  ],\n  \"counters\": {" : ",", who.nid,
			who.pid);
	else
		printf("\n# Counters of %u:%u that have changed\n", who.nid, who.pid);
	for (unsigned i = 0; i < counters->count; i++) {
		int64_t grown = (int64_t)(stats[i].value - counters->before[i]);

		if (grown == 0)
			continue;
		if (report->json)
			printf("%s\"%s\": %" PRId64, any ? ", " : "", stats[i].name, grown);
		else
			printf("%16" PRId64 "  %-28s %s\n", grown, stats[i].name, stats[i].help);
		any = true;
	}
	if (report->json)
		putchar('}');
}

void report_counters_end(struct report *report)
{
	if (report->json)
		printf("\n  }");
}
