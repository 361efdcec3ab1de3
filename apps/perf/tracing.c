/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.c - see tracing.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/file.h>

#include "complain.h"
#include "instrument.h"
#include "tracing.h"

#define TRACKS  16    /* threads that are recorded */
#define RECORDS 32768 /* the latest of each thread, a power of two */

static FILE *trace_file;
static const char *trace_name;

void tracing_begin(const char *file)
{
	const char *reason;

	if (!file)
		return;
	trace_name = file;
	trace_file = file_stream(file, &reason);
	if (!trace_file)
		complain("the trace cannot be written to %s: %s; give --trace another path.", file,
			reason);
	if (instrument->trace_start(TRACKS, RECORDS) != 0)
		complain("there is no memory for a trace; leave --trace out.");
}

void tracing_end(void)
{
	uint64_t made, kept;
	bool well;

	if (!trace_file)
		return;
	instrument->trace_stop();
	instrument->trace_count(&made, &kept);
	well = instrument->trace_write(trace_file);
	if (fclose(trace_file) != 0 || !well)
		complain("the trace cannot be written to %s: %s; give --trace another path.",
			trace_name, strerror(errno));
	fprintf(stderr, "%s has ", trace_name);
	if (kept == made)
		fprintf(stderr, "all %" PRIu64, made);
	else
		fprintf(stderr, "the last %" PRIu64 " of %" PRIu64, kept, made);
	fputs(" records; ui.perfetto.dev and chrome://tracing show it.\n", stderr);
}
