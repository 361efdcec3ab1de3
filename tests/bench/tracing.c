/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.c - what a record of a trace costs, and what it costs when there is no trace.
 *
 *     bench-tracing
 *
 * The best of several rounds counts, since machines are shared.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <base/trace.h>

#define RECORDS 4096
#define ROUNDS  2000

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The least time of a record over all rounds, ns. */
static double record_ns(void)
{
	double best = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = now_ns(), each;

		for (unsigned i = 0; i < RECORDS; i++)
			trace(TRACE_COMMAND, 0, trace_message(1, 2, i), 8);
		each = (now_ns() - begun) / RECORDS;
		if (each < best)
			best = each;
	}
	return best;
}

static double counter_ns(void)
{
	double best = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = now_ns(), each;

		for (unsigned i = 0; i < RECORDS; i++)
			(void)trace_now();
		each = (now_ns() - begun) / RECORDS;
		if (each < best)
			best = each;
	}
	return best;
}

int main(void)
{
	double off = record_ns(), on;

	if (trace_start(1, RECORDS) != 0) {
		fprintf(stderr, "there is no memory for a trace\n");
		return 1;
	}
	on = record_ns();
	printf("a record without a trace   %6.2f ns\n", off);
	printf("a record                   %6.2f ns\n", on);
	printf("the time stamp counter     %6.2f ns of it\n", counter_ns());
	return 0;
}
