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

void report_begin(struct report *report, bool json, bool raw, unsigned steps,
	const struct machine *machine, ptl_process_id_t self, ptl_process_id_t peer)
{
	*report = (struct report){.json = json,
		.raw = raw,
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
			printf("%10s %10s %8s %14s %14s", "# Size", "Messages", "Window", "MB/s",
				"Messages/s");
			if (report->raw)
				printf(" %14s %14s %8s", "Bare MB/s", "Bare/s", "Ratio");
			putchar('\n');
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

/* What a table or a JSON object has of a latency: min, avg, percentiles, max, in ns. */
#define FIGURES (PERCENTILES + 3)

static void figures_take(const struct histogram *times, double *figures)
{
	figures[0] = (double)times->min;
	figures[1] = (double)times->sum / (double)times->count;
	for (unsigned i = 0; i < PERCENTILES; i++)
		figures[2 + i] = (double)histogram_percentile(times, percentiles[i].percent);
	figures[FIGURES - 1] = (double)times->max;
}

static double ratio_of(double messages, double bare)
{
	return bare > 0 ? messages / bare : 0;
}

/* Of the median times, or of the rates. */
static double result_ratio(const struct result *result, const struct result *bare)
{
	if (result->times == NULL)
		return ratio_of(result->rate, bare->rate);
	return ratio_of((double)histogram_percentile(result->times, 50),
		(double)histogram_percentile(bare->times, 50));
}

static void latency_text(const struct result *result, const struct result *bare)
{
	double figures[FIGURES];
	double of_bare[FIGURES];

	figures_take(result->times, figures);
	printf("%10" PRIu64 " %10" PRIu64, result->size, result->messages);
	for (unsigned i = 0; i < FIGURES; i++)
		printf(" %9.2f", figures[i] / MICRO);
	putchar('\n');
	if (bare == NULL)
		return;
	figures_take(bare->times, of_bare);
	printf("%10s %10" PRIu64, "#     bare", bare->messages);
	for (unsigned i = 0; i < FIGURES; i++)
		printf(" %9.2f", of_bare[i] / MICRO);
	printf("\n%10s %10s", "#    ratio", "");
	for (unsigned i = 0; i < FIGURES; i++)
		printf(" %9.2f", ratio_of(figures[i], of_bare[i]));
	putchar('\n');
}

static void rate_text(const struct result *result, const struct result *bare)
{
	printf("%10" PRIu64 " %10" PRIu64 " %8u %14.2f %14.0f", result->size, result->messages,
		result->window, result->rate * (double)result->size / 1e6, result->rate);
	if (bare != NULL)
		printf(" %14.2f %14.0f %8.3f", bare->rate * (double)bare->size / 1e6, bare->rate,
			ratio_of(result->rate, bare->rate));
	putchar('\n');
}

static void latency_json(const struct histogram *times, const char *name)
{
	double figures[FIGURES];

	figures_take(times, figures);
	printf("\"%s\": {\"min\": %.0f, \"avg\": %.0f", name, figures[0], figures[1]);
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(", \"%s\": %.0f", percentiles[i].json, figures[2 + i]);
	printf(", \"max\": %.0f}", figures[FIGURES - 1]);
}

static void rate_json(const struct result *result)
{
	printf("\"window\": %u, \"bytes_per_second\": %.0f, \"messages_per_second\": %.0f",
		result->window, result->rate * (double)result->size, result->rate);
}

static void result_json(
	const struct report *report, const struct result *result, const struct result *bare)
{
	printf("%s\n    {\"measure\": \"%s\", \"size\": %" PRIu64 ", \"messages\": %" PRIu64
	       ", \"seconds\": %.6f, ",
		report->results > 0 ? "," : "", measures[result->measure].json, result->size,
		result->messages, result->seconds);
	if (result->times != NULL)
		latency_json(result->times, "latency_ns");
	else
		rate_json(result);
	if (bare != NULL) {
		printf(",\n     \"bare\": {\"messages\": %" PRIu64 ", \"seconds\": %.6f, ",
			bare->messages, bare->seconds);
		if (bare->times != NULL)
			latency_json(bare->times, "latency_ns");
		else
			rate_json(bare);
		printf("}, \"ratio\": %.4f", result_ratio(result, bare));
	}
	putchar('}');
}

void report_result(struct report *report, const struct result *result, const struct result *bare)
{
	progress_clear(report);
	if (report->json)
		result_json(report, result, bare);
	else if (result->times != NULL)
		latency_text(result, bare);
	else
		rate_text(result, bare);
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
