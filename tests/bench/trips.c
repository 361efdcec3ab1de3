/* SPDX-License-Identifier: BSD-3-Clause */
/* trips.c - 8-byte messages for scripts/instructions to count their instructions, through the
 * abstract device's library or MX's from a process to itself, or between two endpoints of MX: as a
 * program in a ping-pong does, each is received into memory that was posted before, and the next
 * receive is posted after the answer was sent.
 *
 *     trips adi|mx|mxwindow|mxpair|mxpairwindow|mxpairkept N
 *
 * A window: WINDOW receives are posted, as many messages sent, then all of both tested. Kept: the
 * messages of a window are sent first, and its receives are posted when all of them are kept. A
 * pair: from one endpoint to another one; without a window each is the answer to the one before.
 *
 * All in one thread (PTL_PROGRESS=inline), over a loop unless PTL_IFACE_NAME says otherwise. Time
 * goes a fixed step with every look at the clock, as in puts.c.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mx_extensions.h>
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

static unsigned long device_run(unsigned long count)
{
	static char out[BYTES], in[BYTES];
	struct adi_operation *receive, *send;

	if (adi_start(done) != 0)
		exit(EXIT_FAILURE);
	adi_receive(&receive, in, 0, 1, 0, in, BYTES);
	for (unsigned long i = 0; i < count; i++) {
		adi_send(&send, NULL, 0, 0, 1, 0, 0, out, BYTES, 0);
		adi_receive(&receive, in, 0, 1, 0, in, BYTES);
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

#define KEY 1

static struct side {
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t other;
	mx_segment_t from;
	mx_request_t receive; /* of the message that comes next */
	char out[BYTES], in[BYTES];
} sides[2];

static mx_endpoint_t mx_open(unsigned number)
{
	mx_endpoint_t endpoint;

	mx_open_endpoint(MX_ANY_NIC, number, KEY, NULL, 0, &endpoint);
	return endpoint;
}

static void mx_itself(struct side *side)
{
	side->endpoint = mx_open(0);
	side->from = (mx_segment_t){side->out, BYTES};
	mx_get_endpoint_addr(side->endpoint, &side->other);
}

/* A connects to B, whose program looks meanwhile. */
static void side_connect(struct side *side, struct side *to)
{
	mx_endpoint_addr_t address;
	mx_request_t request;
	mx_status_t status;
	uint64_t nic;
	uint32_t id, result;

	mx_get_endpoint_addr(to->endpoint, &address);
	mx_decompose_endpoint_addr(address, &nic, &id);
	mx_iconnect(side->endpoint, nic, id, KEY, 0, NULL, &request);
	do {
		mx_progress(to->endpoint);
		mx_test(side->endpoint, &request, &status, &result);
	} while (!result);
	side->other = status.source;
}

static void sides_open(void)
{
	for (unsigned n = 0; n < 2; n++) {
		sides[n].endpoint = mx_open(n);
		sides[n].from = (mx_segment_t){sides[n].out, BYTES};
	}
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
}

/* The match bits of a window's message: the last has its own. */
static uint64_t window_bits(unsigned n)
{
	return n == WINDOW - 1 ? 2 : 1;
}

static void window_send(struct side *from, mx_request_t sends[WINDOW])
{
	for (unsigned n = 0; n < WINDOW; n++)
		mx_isend(from->endpoint, &from->from, 1, from->other, window_bits(n), NULL,
			&sends[n]);
}

/* Waits until the last message is kept, and thus all. */
static void window_keep(struct side *from, struct side *to)
{
	mx_status_t status;
	uint32_t result = 0;

	while (!result) {
		mx_progress(from->endpoint);
		mx_iprobe(to->endpoint, window_bits(WINDOW - 1), UINT64_MAX, &status, &result);
	}
}

static void window_post(struct side *to, mx_request_t receives[WINDOW])
{
	static char in[WINDOW][BYTES];

	for (unsigned n = 0; n < WINDOW; n++) {
		mx_segment_t segment = {in[n], BYTES};

		mx_irecv(to->endpoint, &segment, 1, window_bits(n), UINT64_MAX, NULL, &receives[n]);
	}
}

/* Messages from one endpoint to another one, which may be the same. Unexpected: each receive is
 * posted when all messages of its window are kept. */
static unsigned long mx_windows(
	struct side *from, struct side *to, bool unexpected, unsigned long count)
{
	mx_request_t sends[WINDOW], receives[WINDOW];

	for (unsigned long i = 0; i < count; i += WINDOW) {
		if (!unexpected)
			window_post(to, receives);
		window_send(from, sends);
		if (unexpected) {
			window_keep(from, to);
			window_post(to, receives);
		}
		for (unsigned n = 0; n < WINDOW; n++)
			request_end(from->endpoint, sends[n]);
		for (unsigned n = 0; n < WINDOW; n++)
			request_end(to->endpoint, receives[n]);
	}
	return arrived / 2;
}

static unsigned long mx_run(struct side *self, unsigned long count)
{
	static char in[2][BYTES];
	mx_segment_t to[2] = {{in[0], BYTES}, {in[1], BYTES}};
	mx_request_t send, receives[2];

	mx_irecv(self->endpoint, &to[0], 1, 1, UINT64_MAX, NULL, &receives[0]);
	for (unsigned long i = 0; i < count; i++) {
		unsigned next = (i + 1) % 2;

		mx_isend(self->endpoint, &self->from, 1, self->other, 1, NULL, &send);
		mx_irecv(self->endpoint, &to[next], 1, 1, UINT64_MAX, NULL, &receives[next]);
		request_end(self->endpoint, send);
		request_end(self->endpoint, receives[i % 2]);
	}
	return arrived / 2;
}

static void side_post(struct side *side)
{
	mx_segment_t to = {side->in, BYTES};

	mx_irecv(side->endpoint, &to, 1, 1, UINT64_MAX, NULL, &side->receive);
}

static unsigned long mx_pair(unsigned long count)
{
	mx_request_t send;

	side_post(&sides[0]);
	side_post(&sides[1]);
	for (unsigned long i = 0; i < count; i++) {
		struct side *from = &sides[i % 2], *to = &sides[1 - i % 2];

		mx_isend(from->endpoint, &from->from, 1, from->other, 1, NULL, &send);
		if (i > 0)
			side_post(from);
		request_end(from->endpoint, send);
		request_end(to->endpoint, to->receive);
	}
	return arrived / 2;
}

/* Returns how many messages came. */
static unsigned long messages_run(const char *way, unsigned long count)
{
	if (strcmp(way, "adi") == 0)
		return device_run(count);
	mx_init();
	if (strncmp(way, "mxpair", 6) == 0)
		sides_open();
	else
		mx_itself(&sides[0]);
	if (strcmp(way, "mx") == 0)
		return mx_run(&sides[0], count);
	if (strcmp(way, "mxwindow") == 0)
		return mx_windows(&sides[0], &sides[0], false, count);
	if (strcmp(way, "mxpair") == 0)
		return mx_pair(count);
	if (strcmp(way, "mxpairwindow") == 0)
		return mx_windows(&sides[0], &sides[1], false, count);
	if (strcmp(way, "mxpairkept") == 0)
		return mx_windows(&sides[0], &sides[1], true, count);
	fprintf(stderr, "trips: there is no %s\n", way);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, came;

	if (argc != 3) {
		fprintf(stderr, "Usage: trips adi|mx|mxwindow|mxpair|mxpairwindow|mxpairkept N\n");
		return EXIT_FAILURE;
	}
	setenv("PTL_IFACE_NAME", "loop:trips", 0);
	setenv("PTL_PROGRESS", "inline", 1);
	came = messages_run(argv[1], count);
	if (came != count) {
		fprintf(stderr, "trips: %lu of %lu messages have arrived\n", came, count);
		return EXIT_FAILURE;
	}
	_Exit(EXIT_SUCCESS);
}
