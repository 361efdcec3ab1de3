/* SPDX-License-Identifier: BSD-3-Clause */
/* trips.c - 8-byte messages through the abstract device's library from a process to itself, for
 * scripts/instructions to count their instructions: as a program in a ping-pong does, each is
 * received into memory that was posted before, and the next receive is posted after the answer was
 * sent.
 *
 *     trips adi N
 *
 * All in one thread (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with every look at
 * the clock, as in puts.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <postern-adi.h>

#define CLOCK_STEP 50
#define BYTES      8

static unsigned long arrived;

uint64_t __wrap_glue_now(void *context);

uint64_t __wrap_glue_now(void *context)
{
	static uint64_t time = 1000000000;

	(void)context;
	return time += CLOCK_STEP;
}

static void done(void *owner, const struct adi_result *result)
{
	(void)owner;
	arrived += result->bytes == BYTES;
}

int main(int argc, char **argv)
{
	static char out[BYTES], in[BYTES];
	struct adi_operation *receive, *send;
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	setenv("PTL_IFACE_NAME", "loop:trips", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	if (adi_start(done) != 0)
		return 1;
	adi_receive(&receive, in, 0, 1, 0, in, BYTES, 0);
	for (unsigned long i = 0; i < count; i++) {
		adi_send(&send, NULL, 0, 0, 1, 0, 0, out, BYTES, 0);
		adi_receive(&receive, in, 0, 1, 0, in, BYTES, 0);
		while (arrived == i)
			adi_check(0);
	}
	if (arrived != count) {
		fprintf(stderr, "trips: %lu of %lu messages have arrived\n", arrived, count);
		return 1;
	}
	_Exit(0);
}
