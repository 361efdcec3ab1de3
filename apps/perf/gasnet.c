/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet.c - a module of postern-perf: GASNet (gasnet.h), between the two ranks of a job. See
 * line.h.
 *
 *     latency                       a request, and the reply of its handler
 *     rate, bandwidth               requests
 *     get-latency, put-latency      gasnet_get(), gasnet_put()
 *     get-bandwidth, put-bandwidth  gasnet_get_nb_bulk(), gasnet_put_nb_bulk()
 *
 * Y1. An active message of up to SHORT bytes is a short one, which has them as its arguments; one
 *     of up to gasnet_AMMaxMedium() is a medium one, any other a long one, into the target's
 *     segment.
 * Y2. Handlers get no line: a process has one at a time.
 */
#include <stdio.h>
#include <stdlib.h>

#include <gasnet.h>

#include "line.h"

#define RANKS 2
#define SHORT 8

enum handler {
	HANDLER_SHORT = 128, /* are counted */
	HANDLER_BYTES,
	HANDLER_SHORT_ASKS, /* are answered */
	HANDLER_BYTES_ASK,
	HANDLER_CREDIT,
	HANDLER_NUMBER
};

struct line {
	struct line_request request;
	gasnet_node_t other;
	uint32_t arrived;         /* messages, and operations that are done */
	gasnet_handle_t *handles; /* of operations, in their order; */
	uint32_t first;           /* one that is the oldest */
	uint32_t pending;         /* operations that are not done */
};

static struct line *current; /* Y2; NULL: there is none */
static gasnet_seginfo_t segments[RANKS];
static volatile bool number_came;
static uint64_t number;

static void need(int code, const char *function)
{
	if (code != GASNET_OK && current)
		current->request.complain(
			"%s of GASNet fails: %s.", function, gasnet_ErrorDesc(code));
}

/* --- handlers */

static void arrive(void)
{
	if (current)
		current->arrived++;
}

static void short_came(gasnet_token_t token, gasnet_handlerarg_t first, gasnet_handlerarg_t second)
{
	(void)token;
	(void)first;
	(void)second;
	arrive();
}

static void bytes_came(gasnet_token_t token, void *bytes, size_t length)
{
	(void)token;
	(void)bytes;
	(void)length;
	arrive();
}

static void short_asks(gasnet_token_t token, gasnet_handlerarg_t first, gasnet_handlerarg_t second)
{
	need(gasnet_AMReplyShort2(token, HANDLER_SHORT, first, second), "gasnet_AMReplyShort2");
	arrive();
}

static void bytes_ask(gasnet_token_t token, void *bytes, size_t length)
{
	arrive();
	if (length <= gasnet_AMMaxMedium())
		need(gasnet_AMReplyMedium0(token, HANDLER_BYTES, bytes, length),
			"gasnet_AMReplyMedium0");
	else
		need(gasnet_AMReplyLong0(token, HANDLER_BYTES, bytes, length,
			     segments[1 - gasnet_mynode()].addr),
			"gasnet_AMReplyLong0");
}

static void credit_came(gasnet_token_t token)
{
	(void)token;
	arrive();
}

static void number_take(gasnet_token_t token, gasnet_handlerarg_t upper, gasnet_handlerarg_t lower)
{
	(void)token;
	number = (uint64_t)(uint32_t)upper << 32 | (uint32_t)lower;
	number_came = true;
}

/* --- messages and operations */

static void message_send(struct line *line)
{
	const bool asks = line->request.measure == MEASURE_LATENCY;
	const gasnet_handler_t shorts = asks ? HANDLER_SHORT_ASKS : HANDLER_SHORT;
	const gasnet_handler_t bytes = asks ? HANDLER_BYTES_ASK : HANDLER_BYTES;
	const size_t size = line->request.size;

	if (asks && line->request.server) /* its handler has answered */
		return;
	if (size <= SHORT)
		need(gasnet_AMRequestShort2(line->other, shorts, 1, 2), "gasnet_AMRequestShort2");
	else if (size <= gasnet_AMMaxMedium())
		need(gasnet_AMRequestMedium0(line->other, bytes, line->request.memory, size),
			"gasnet_AMRequestMedium0");
	else
		need(gasnet_AMRequestLong0(line->other, bytes, line->request.memory, size,
			     segments[line->other].addr),
			"gasnet_AMRequestLong0");
}

static void operation_begin(struct line *line)
{
	void *there = segments[line->other].addr;
	gasnet_handle_t *handle =
		&line->handles[(line->first + line->pending++) % line->request.messages];

	if (line->request.measure == MEASURE_PUT_BANDWIDTH)
		*handle = gasnet_put_nb_bulk(
			line->other, there, line->request.memory, line->request.size);
	else
		*handle = gasnet_get_nb_bulk(
			line->request.memory, line->other, there, line->request.size);
}

static void line_send(struct line *line)
{
	void *there = segments[line->other].addr;

	switch (line->request.measure) {
	case MEASURE_PUT_LATENCY:
		gasnet_put(line->other, there, line->request.memory, line->request.size);
		line->arrived++;
		break;
	case MEASURE_GET_LATENCY:
		gasnet_get(line->request.memory, line->other, there, line->request.size);
		line->arrived++;
		break;
	case MEASURE_PUT_BANDWIDTH:
	case MEASURE_GET_BANDWIDTH:
		operation_begin(line);
		break;
	default:
		message_send(line);
	}
}

static void line_credit(struct line *line)
{
	need(gasnet_AMRequestShort0(line->other, HANDLER_CREDIT), "gasnet_AMRequestShort0");
}

static int line_receive(struct line *line)
{
	int arrived;

	if (line->pending == 0 && line->arrived == 0)
		need(gasnet_AMPoll(), "gasnet_AMPoll");
	while (line->pending > 0 && gasnet_try_syncnb(line->handles[line->first]) == GASNET_OK) {
		line->first = (line->first + 1) % line->request.messages;
		line->pending--;
		line->arrived++;
	}
	arrived = (int)line->arrived;
	line->arrived = 0;
	return arrived;
}

/* --- a line's life */

static struct line *line_open(
	const struct line_request *request, struct line_address *own, char *why, size_t room)
{
	struct line *line;

	(void)own; /* that of a rank is its number */
	if (!measure_gets(request->measure) && request->size > gasnet_AMMaxLongRequest()) {
		snprintf(why, room, "an active message has at most %zu bytes; give smaller --sizes",
			gasnet_AMMaxLongRequest());
		return NULL;
	}
	line = calloc(1, sizeof(*line));
	if (line)
		line->handles = calloc(request->messages, sizeof(gasnet_handle_t));
	if (!line || !line->handles) {
		snprintf(why, room, "there is no memory");
		free(line);
		return NULL;
	}
	line->request = *request;
	line->other = 1 - gasnet_mynode();
	current = line;
	return line;
}

static bool line_meet(struct line *line, const struct line_address *other)
{
	(void)line;
	(void)other;
	return true;
}

static void line_close(struct line *line)
{
	current = NULL;
	free(line->handles);
	free(line);
}

/* --- the job */

static int join(uint64_t bytes, char *why, size_t room)
{
	gasnet_handlerentry_t handlers[] = {
		{HANDLER_SHORT, (void (*)())short_came},
		{HANDLER_BYTES, (void (*)())bytes_came},
		{HANDLER_SHORT_ASKS, (void (*)())short_asks},
		{HANDLER_BYTES_ASK, (void (*)())bytes_ask},
		{HANDLER_CREDIT, (void (*)())credit_came},
		{HANDLER_NUMBER, (void (*)())number_take},
	};
	uintptr_t size = (bytes / GASNET_PAGESIZE + 1) * GASNET_PAGESIZE;

	if (gasnet_init(NULL, NULL) != GASNET_OK) {
		snprintf(why, room, "gasnet_init fails; see above");
		return -1;
	}
	if (gasnet_nodes() != RANKS) {
		snprintf(why, room,
			"it takes a job of two ranks, and this one has %u: postern-run -n 2 "
			"postern-perf --library gasnet",
			(unsigned)gasnet_nodes());
		return -1;
	}
	if (gasnet_attach(handlers, sizeof(handlers) / sizeof(handlers[0]), size, 0) != GASNET_OK ||
		gasnet_getSegmentInfo(segments, RANKS) != GASNET_OK) {
		snprintf(why, room, "gasnet_attach fails; see above");
		return -1;
	}
	return (int)gasnet_mynode();
}

static uint64_t hand_over(uint64_t given)
{
	if (gasnet_mynode() == 1) {
		(void)gasnet_AMRequestShort2(0, HANDLER_NUMBER,
			(gasnet_handlerarg_t)(uint32_t)(given >> 32),
			(gasnet_handlerarg_t)(uint32_t)given);
		return given;
	}
	GASNET_BLOCKUNTIL(number_came);
	return number;
}

static void part(void)
{
	(void)gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

extern const struct line_module perf_line __attribute__((visibility("default")));

const struct line_module perf_line = {
	.release = PERF_RELEASE,
	.open = line_open,
	.meet = line_meet,
	.send = line_send,
	.credit = line_credit,
	.receive = line_receive,
	.close = line_close,
	.join = join,
	.hand_over = hand_over,
	.part = part,
};
