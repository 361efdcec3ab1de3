/* SPDX-License-Identifier: BSD-3-Clause */
/* mx.c - MX (myriexpress.h), for scripts/compare to hold against puts of Portals 3.2 on the same
 * node. See rival.h for its use; PTL_IFACE_NAME and PTL_PROGRESS say where and how.
 *
 * The receiver keeps a receive posted for each message that can be on its way, all of one memory,
 * as the puts go to one place; each message of a latency is checked: it has its number.
 */
#include <stdlib.h>
#include <string.h>

#include <myriexpress.h>

#include "../../apps/perf/rival.h"

#define FILTER  0x62656e63
#define BITS    UINT64_C(1)
#define TIMEOUT 10000 /* ms */
#define WORD    sizeof(uint64_t)

struct name {
	uint64_t nic;
	uint64_t endpoint;
};

struct line {
	mx_endpoint_t endpoint;
	mx_endpoint_addr_t other; /* a server learns it from the first message */
	uint32_t out, in;
	bool checks;
	uint32_t depth; /* receives that are posted, and sends that may be pending */
	uint32_t next;  /* receive that has its message first */
	uint32_t taken; /* receives that are done and not yet posted again */
	uint64_t arrived;
	uint64_t sent;
	uint64_t left; /* sends that have ended */
	unsigned char *from, *to;
	mx_request_t *sends, *receives;
};

/* Errors end the process with a line, which is MX's default. */
static void status_check(const mx_status_t *status, uint32_t bytes)
{
	if (status->code != MX_STATUS_SUCCESS || status->xfer_length != bytes)
		rival_complain("a message of %u bytes ended after %u: %s.", bytes,
			status->xfer_length, mx_strstatus(status->code));
}

static void landings_renew(struct line *line)
{
	mx_segment_t segment = {line->to, line->in};

	for (; line->taken > 0; line->taken--)
		mx_irecv(line->endpoint, &segment, 1, BITS, MX_MATCH_MASK_NONE, NULL,
			&line->receives[(line->next + line->depth - line->taken) % line->depth]);
}

/* Takes sends that have ended; all: waits until all have. */
static void sends_end(struct line *line, uint32_t pending)
{
	mx_status_t status;
	uint32_t result;

	while (line->sent - line->left > pending) {
		mx_wait(line->endpoint, &line->sends[line->left % line->depth], TIMEOUT, &status,
			&result);
		if (!result)
			rival_complain("a send has not ended for %d seconds.", TIMEOUT / 1000);
		status_check(&status, line->out);
		line->left++;
	}
}

/* As programs do: an answer is sent before the next receive is posted. */
static void line_send(void *context, bool more)
{
	struct line *line = context;
	mx_segment_t segment = {line->from, line->out};
	uint64_t number;

	(void)more;
	sends_end(line, line->depth - 1);
	number = ++line->sent;
	if (line->checks)
		memcpy(line->from, &number, sizeof(number));
	mx_isend(line->endpoint, &segment, 1, line->other, BITS, NULL,
		&line->sends[(number - 1) % line->depth]);
	landings_renew(line);
}

static void number_check(const struct line *line)
{
	uint64_t number;

	memcpy(&number, line->to, sizeof(number));
	if (number != line->arrived)
		rival_complain("message %llu has the number %llu.",
			(unsigned long long)line->arrived, (unsigned long long)number);
}

static uint32_t line_receive(void *context)
{
	struct line *line = context;
	uint32_t arrived = 0;
	mx_status_t status;
	uint32_t result;

	landings_renew(line);
	while (line->taken < line->depth) {
		mx_test(line->endpoint, &line->receives[line->next], &status, &result);
		if (!result)
			break;
		status_check(&status, line->in);
		line->other = status.source;
		line->next = (line->next + 1) % line->depth;
		line->taken++;
		line->arrived++;
		arrived++;
		if (line->checks) {
			number_check(line);
			break;
		}
	}
	return arrived;
}

static void line_prepare(struct line *line, const struct rival_end *end)
{
	line->out = end->out;
	line->in = end->in;
	line->checks = !end->request->stream && end->in >= WORD;
	line->depth = end->request->window * STREAM_WINDOWS + 1;
	line->from = calloc(1, line->out);
	line->to = calloc(1, line->in);
	line->sends = calloc(line->depth, sizeof(*line->sends));
	line->receives = calloc(line->depth, sizeof(*line->receives));
	if (!line->from || !line->to || !line->sends || !line->receives)
		rival_complain("there is no memory.");
	line->taken = line->depth;
}

static void *line_open(const struct rival_end *end)
{
	struct line *line = calloc(1, sizeof(*line));
	struct name own, other;
	mx_endpoint_addr_t address;
	uint32_t id;

	if (!line)
		rival_complain("there is no memory.");
	line_prepare(line, end);
	mx_init();
	mx_open_endpoint(MX_ANY_NIC, MX_ANY_ENDPOINT, FILTER, NULL, 0, &line->endpoint);
	mx_get_endpoint_addr(line->endpoint, &address);
	mx_decompose_endpoint_addr(address, &own.nic, &id);
	own.endpoint = id;
	landings_renew(line);
	rival_swap(end, &own, &other, sizeof(own));
	if (!end->server)
		mx_connect(line->endpoint, other.nic, (uint32_t)other.endpoint, FILTER, TIMEOUT,
			&line->other);
	return line;
}

int main(int argc, char **argv)
{
	static const struct rival mx = {
		.name = "bench-mx",
		.transports = "TRANSPORT is mx; MODE is poll.\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
	};

	return rival_main(argc, argv, &mx);
}
