/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_gasnet.c - a rank of messages_gasnet.c, with a copy of the library of its own. */
#include "ranks_gasnet.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <gasnet.h>

#define SEGMENT ((size_t)1 << 16)

enum { CAME = 128, ASKS };

static unsigned long came;
static gasnet_node_t other;
static gasnet_seginfo_t segments[2];

static void need(int code)
{
	if (code == GASNET_OK)
		return;
	fprintf(stderr, "messages_gasnet: %s\n", gasnet_ErrorDesc(code));
	exit(EXIT_FAILURE);
}

static void message_came(gasnet_token_t token, gasnet_handlerarg_t one, gasnet_handlerarg_t two)
{
	(void)token;
	came += one + two == 3;
}

static void message_asks(gasnet_token_t token, gasnet_handlerarg_t one, gasnet_handlerarg_t two)
{
	came++;
	need(gasnet_AMReplyShort2(token, CAME, one, two));
}

static void attach(void)
{
	gasnet_handlerentry_t table[] = {
		{CAME, (void (*)())message_came}, {ASKS, (void (*)())message_asks}};

	need(gasnet_init(NULL, NULL));
	need(gasnet_attach(table, 2, SEGMENT, 0));
	need(gasnet_getSegmentInfo(segments, 2));
	need(gasnet_set_waitmode(GASNET_WAIT_SPIN));
	other = 1 - gasnet_mynode();
}

static void request(int asks)
{
	need(gasnet_AMRequestShort2(other, asks ? ASKS : CAME, 1, 2));
}

static void poll(void)
{
	need(gasnet_AMPoll());
}

static void put(void)
{
	static uint64_t word;

	word++;
	gasnet_put(other, segments[other].addr, &word, sizeof(word));
}

static unsigned long messages(void)
{
	return came;
}

extern const struct bench_rank bench_rank BENCH_API;
const struct bench_rank bench_rank = {attach, request, poll, put, messages};
