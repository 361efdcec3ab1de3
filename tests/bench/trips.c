/* SPDX-License-Identifier: BSD-3-Clause */
/* trips.c - 8-byte messages through the abstract device's library or MX's from a process to itself,
 * for scripts/instructions to count their instructions: as a program in a ping-pong does, each is
 * received into memory that was posted before, and the next receive is posted after the answer was
 * sent.
 *
 *     trips adi|mx|mxwindow N
 *
 * mxwindow: WINDOW receives are posted, as many messages sent, then all of both tested.
 *
 * All in one thread (PTL_PROGRESS=inline), over a loop. Time goes a fixed step with every look at
 * the clock, as in puts.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <myriexpress.h>
#include <postern-adi.h>

#define CLOCK_STEP 50
#define BYTES      8
#define WINDOW     64

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

/* Returns how many messages came. */
static unsigned long device_run(unsigned long count)
{
	static char out[BYTES], in[BYTES];
	struct adi_operation *receive, *send;

	if (adi_start(done) != 0)
		exit(EXIT_FAILURE);
	adi_receive(&receive, in, 0, 1, 0, in, BYTES, 0);
	for (unsigned long i = 0; i < count; i++) {
		adi_send(&send, NULL, 0, 0, 1, 0, 0, out, BYTES, 0);
		adi_receive(&receive, in, 0, 1, 0, in, BYTES, 0);
		while (arrived == i)
			adi_check(0);
	}
	return arrived;
}

static void request_end(mx_endpoint_t endpoint, mx_request_t request)
{
	mx_status_t status;
	uint32_t result;

	do
		mx_test(endpoint, &request, &status, &result);
	while (!result);
	arrived += status.code == MX_STATUS_SUCCESS && status.xfer_length == BYTES;
}

/* Returns the address of an endpoint for itself. */
static mx_endpoint_addr_t mx_open(mx_endpoint_t *endpoint)
{
	mx_endpoint_addr_t self;

	mx_init();
	mx_open_endpoint(MX_ANY_NIC, 0, 0, NULL, 0, endpoint);
	mx_get_endpoint_addr(*endpoint, &self);
	return self;
}

static unsigned long mx_window(unsigned long count)
{
	static char out[BYTES], in[WINDOW][BYTES];
	mx_request_t sends[WINDOW], receives[WINDOW];
	mx_segment_t from = {out, BYTES};
	mx_endpoint_t endpoint;
	const mx_endpoint_addr_t self = mx_open(&endpoint);

	for (unsigned long i = 0; i < count; i += WINDOW) {
		for (unsigned n = 0; n < WINDOW; n++) {
			mx_segment_t to = {in[n], BYTES};

			mx_irecv(endpoint, &to, 1, 1, UINT64_MAX, NULL, &receives[n]);
		}
		for (unsigned n = 0; n < WINDOW; n++)
			mx_isend(endpoint, &from, 1, self, 1, NULL, &sends[n]);
		for (unsigned n = 0; n < WINDOW; n++)
			request_end(endpoint, sends[n]);
		for (unsigned n = 0; n < WINDOW; n++)
			request_end(endpoint, receives[n]);
	}
	return arrived / 2;
}

static unsigned long mx_run(unsigned long count)
{
	static char out[BYTES], in[2][BYTES];
	mx_segment_t from = {out, BYTES}, to[2] = {{in[0], BYTES}, {in[1], BYTES}};
	mx_request_t send, receives[2];
	mx_endpoint_t endpoint;
	const mx_endpoint_addr_t self = mx_open(&endpoint);

	mx_irecv(endpoint, &to[0], 1, 1, UINT64_MAX, NULL, &receives[0]);
	for (unsigned long i = 0; i < count; i++) {
		unsigned next = (i + 1) % 2;

		mx_isend(endpoint, &from, 1, self, 1, NULL, &send);
		mx_irecv(endpoint, &to[next], 1, 1, UINT64_MAX, NULL, &receives[next]);
		request_end(endpoint, send);
		request_end(endpoint, receives[i % 2]);
	}
	return arrived / 2;
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, came;

	setenv("PTL_IFACE_NAME", "loop:trips", 1);
	setenv("PTL_PROGRESS", "inline", 1);
	if (argc == 3 && strcmp(argv[1], "mx") == 0)
		came = mx_run(count);
	else if (argc == 3 && strcmp(argv[1], "mxwindow") == 0)
		came = mx_window(count);
	else
		came = device_run(count);
	if (came != count) {
		fprintf(stderr, "trips: %lu of %lu messages have arrived\n", came, count);
		return EXIT_FAILURE;
	}
	_Exit(EXIT_SUCCESS);
}
