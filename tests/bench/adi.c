/* SPDX-License-Identifier: BSD-3-Clause */
/* adi.c - the abstract device (postern-adi.h), for scripts/compare to hold against puts of
 * Portals 3.2 on the same node. See rival.h for its use; PTL_IFACE_NAME and PTL_PROGRESS say
 * where and how.
 *
 * The two ends are the ranks of a job by list: the server is rank 0.
 */
#include <stdio.h>
#include <stdlib.h>

#include <postern-adi.h>

#include "../../apps/perf/rival.h"

#define HOSTS "1:2000,1:2001" /* PTL_NID=1 */
#define TAG   1

struct line;

struct landing {
	struct line *line;
	struct adi_operation *operation;
};

struct line {
	int other;
	uint32_t out, in;
	uint32_t arrived; /* since the last look */
	uint32_t taken;   /* receives that are done and not yet posted again */
	char *to_send;
	char *memory;   /* of all receives, as the puts of postern-perf go to one place */
	uint32_t depth; /* receives that are posted */
	uint32_t next;  /* that has its message first */
	struct landing *landings;
};

static void landing_post(struct landing *landing)
{
	adi_receive(&landing->operation, landing, landing->line->other, TAG, 0,
		landing->line->memory, (int)landing->line->in);
}

static void message_done(void *owner, const struct adi_result *result)
{
	struct landing *landing = owner;

	if ((uint32_t)result->bytes != landing->line->in)
		rival_complain("a message of %d bytes came.", result->bytes);
	landing->line->arrived++;
}

static void landings_renew(struct line *line)
{
	for (; line->taken > 0; line->taken--) {
		landing_post(&line->landings[line->next]);
		line->next = (line->next + 1) % line->depth;
	}
}

/* As programs do: an answer is sent before the next receive is posted. */
static void line_send(void *context, bool more)
{
	struct line *line = context;
	struct adi_operation *operation;

	(void)more;
	adi_send(&operation, NULL, line->other, adi_rank(), TAG, 0, 0, line->to_send,
		(int)line->out, 0);
	if (operation)
		adi_detach(operation);
	landings_renew(line);
}

static uint32_t line_receive(void *context)
{
	struct line *line = context;
	uint32_t count;

	landings_renew(line);
	if (line->arrived == 0)
		adi_check(0);
	count = line->arrived;
	line->arrived = 0;
	line->taken += count;
	return count;
}

static void *line_open(const struct rival_end *end)
{
	struct line *line = calloc(1, sizeof(*line));
	char ready = 0;

	if (!line)
		rival_complain("there is no memory.");
	line->other = end->server ? 1 : 0;
	line->out = end->out;
	line->in = end->in;
	line->depth = end->request->window * STREAM_WINDOWS + 1;
	line->to_send = calloc(1, line->out);
	line->memory = calloc(1, line->in);
	line->landings = calloc(line->depth, sizeof(*line->landings));
	setenv("PTL_ADI_HOSTS", HOSTS, 1);
	setenv("PTL_ADI_RANK", end->server ? "0" : "1", 1);
	if (!line->to_send || !line->memory || !line->landings || adi_start(message_done) != 0)
		rival_complain("the device does not start.");
	for (uint32_t i = 0; i < line->depth; i++) {
		struct landing *landing = &line->landings[i];

		landing->line = line;
		landing_post(landing);
	}
	rival_swap(end, &ready, &ready, sizeof(ready));
	return line;
}

int main(int argc, char **argv)
{
	static const struct rival device = {
		.name = "bench-adi",
		.transports = "TRANSPORT is adi; MODE is poll.\n",
		.open = line_open,
		.send = line_send,
		.receive = line_receive,
	};

	return rival_main(argc, argv, &device);
}
