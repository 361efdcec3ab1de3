/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - see report.h. */
#include <sim/report.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wire/frame.h>

#define TAG_BYTES 4  /* 802.1Q */
#define UDP_BYTES 28 /* IPv4 and UDP */

struct result report_current;
char report_replay[REPORT_COMMAND];

void report_stop(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "postern-sim: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s%s\n", report_replay[0] ? "\n  replay with: " : "", report_replay);
	exit(2);
}

void *report_memory(void *memory)
{
	if (!memory)
		report_stop("there is no memory; simulate fewer nodes or smaller messages");
	return memory;
}

void report_metric(struct result *result, const char *name, const char *unit, double value)
{
	if (result->metric_count == METRICS_MAX)
		return;
	result->metrics[result->metric_count++] = (struct metric){
		.name = name, .unit = unit, .value = value, .least = value, .most = value};
}

void report_count(const struct node *node)
{
	const struct transport_counters *from = node_transport_counters(node);

#define X(name, help) report_current.transport.name += from->name;
	TRANSPORT_COUNTERS(X)
#undef X
	report_current.missed += node->port_counters.missed;
}

static void metrics_add(struct result *total, const struct result *run)
{
	for (unsigned i = 0; i < run->metric_count; i++) {
		const struct metric *metric = &run->metrics[i];
		struct metric *sum = &total->metrics[i];

		if (i >= total->metric_count) {
			*sum = *metric;
			total->metric_count = i + 1;
			continue;
		}
		sum->value += metric->value;
		if (metric->least < sum->least)
			sum->least = metric->least;
		if (metric->most > sum->most)
			sum->most = metric->most;
	}
}

void report_add(struct result *total, const struct result *run)
{
	total->runs += run->runs;
	total->failed += run->failed;
	total->simulated += run->simulated;
	total->tasks += run->tasks;
	total->fail_events += run->fail_events;
	total->drops += run->drops;
	total->bytes += run->bytes;
	total->missed += run->missed;
	total->hash = prng_mix(total->hash ^ run->hash);
#define X(name) total->network.name += run->network.name;
	STAR_COUNTERS(X)
#undef X
#define X(name, help) total->transport.name += run->transport.name;
	TRANSPORT_COUNTERS(X)
#undef X
	metrics_add(total, run);
}

static void row(FILE *file, const char *group, const char *name, uint64_t value)
{
	if (value)
		fprintf(file, "  %-10s %-22s %18" PRIu64 "\n", group, name, value);
}

void report_table(FILE *file, const char *experiment, const struct result *total)
{
	double runs = total->runs ? (double)total->runs : 1;

	fprintf(file, "%s: %" PRIu64 " runs, %" PRIu64 " failed, hash %016" PRIx64 "\n", experiment,
		total->runs, total->failed, total->hash);
	row(file, "tasks", "issued", total->tasks);
	row(file, "tasks", "fail_events", total->fail_events);
	row(file, "tasks", "discarded", total->drops);
	row(file, "tasks", "payload_bytes", total->bytes);
	row(file, "host", "missed", total->missed);
#define X(name) row(file, "network", #name, total->network.name);
	STAR_COUNTERS(X)
#undef X
#define X(name, help) row(file, "transport", #name, total->transport.name);
	TRANSPORT_COUNTERS(X)
#undef X
	fprintf(file, "  %-33s %18.3f s\n", "simulated", (double)total->simulated / 1e9);
	for (unsigned i = 0; i < total->metric_count; i++) {
		const struct metric *metric = &total->metrics[i];

		fprintf(file, "  %-33s %18.4g %s", metric->name, metric->value / runs,
			metric->unit);
		if (total->runs > 1)
			fprintf(file, "   (%.4g to %.4g)", metric->least, metric->most);
		fputc('\n', file);
	}
}

void report_json(
	FILE *file, const char *experiment, uint64_t first_seed, const struct result *total)
{
	double runs = total->runs ? (double)total->runs : 1;

	fprintf(file,
		"{\"experiment\":\"%s\",\"first_seed\":%" PRIu64 ",\"runs\":%" PRIu64
		",\"failed\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"simulated_ns\":%" PRIu64
		",\"tasks\":%" PRIu64 ",\"fail_events\":%" PRIu64 ",\"discarded\":%" PRIu64
		",\"payload_bytes\":%" PRIu64 ",\"host_missed\":%" PRIu64 ",\"network\":{",
		experiment, first_seed, total->runs, total->failed, total->hash, total->simulated,
		total->tasks, total->fail_events, total->drops, total->bytes, total->missed);
#define X(name) fprintf(file, "\"%s\":%" PRIu64 ",", #name, total->network.name);
	STAR_COUNTERS(X)
#undef X
	fprintf(file, "\"end\":0},\"transport\":{");
#define X(name, help) fprintf(file, "\"%s\":%" PRIu64 ",", #name, total->transport.name);
	TRANSPORT_COUNTERS(X)
#undef X
	fprintf(file, "\"end\":0},\"metrics\":{");
	for (unsigned i = 0; i < total->metric_count; i++) {
		const struct metric *metric = &total->metrics[i];

		fprintf(file,
			"%s\"%s\":{\"mean\":%.9g,\"least\":%.9g,\"most\":%.9g,\"unit\":\"%s\"}",
			i ? "," : "", metric->name, metric->value / runs, metric->least,
			metric->most, metric->unit);
	}
	fprintf(file, "}}\n");
}

void report_progress(uint64_t done, uint64_t of, uint64_t failed, uint64_t simulated)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr,
		"\r%" PRIu64 " of %" PRIu64 " runs, %" PRIu64 " failed, %.3f s simulated   ", done,
		of, failed, (double)simulated / 1e9);
	fflush(stderr);
}

void report_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputc('\n', stderr);
}

/* Where a frame's transport header begins, behind a tag and the headers of IPv4 and UDP. */
static uint32_t frame_transport(const uint8_t *bytes, uint32_t length)
{
	uint32_t at = FRAME_ETHERNET_BYTES;

	if (length >= at + TAG_BYTES && bytes[at - 2] == 0x81 && bytes[at - 1] == 0)
		at += TAG_BYTES;
	if (length >= at && bytes[at - 2] == 0x08 && bytes[at - 1] == 0)
		at += UDP_BYTES;
	return at;
}

void report_frame(const uint8_t *bytes, uint32_t length)
{
	static const char *const types[] = {
		"?", "DATA", "ACK", "ASK", "TELL", "RESET", "BYE", "PING", "PONG", "FIND", "FOUND"};
	struct frame_view view;
	const struct frame_header *frame;
	const uint32_t at = frame_transport(bytes, length);

	if (length < at || frame_decode(bytes + at, length - at, &view) != FRAME_OK) {
		printf(" undecodable\n");
		return;
	}
	frame = view.header;
	printf(" %s %u.%u -> %u.%u flags %#x stream %u psn %u first %u ack %u/%u credit %u records "
	       "%u sack %016" PRIx64 " inc %u for %u\n",
		types[frame_type(frame)], frame->source_nid, frame->source_pid,
		frame->destination_nid, frame->destination_pid, frame->flags, frame->stream,
		frame->psn, frame->first, frame->ack_stream, frame->ack, frame->credit,
		frame->records, (frame->flags & FRAME_SACK) ? word_read(frame_sack(frame), 0) : 0,
		frame->source_incarnation, frame->destination_incarnation);
}
