/* SPDX-License-Identifier: BSD-3-Clause */
/* longs.c - all ranks are in gasnet_AMRequestLong() and gasnet_AMReplyLong() at once, and every
 * byte is looked at: with the least of queues this is where a wait for a queue that nobody reads
 * would show, and with losses a message that comes twice or never.
 */
#include "ranks.h"

#define BYTES  5000
#define LANES  8 /* landing places for each rank; one is used again after its reply */
#define ROUNDS 200

enum { REQUEST = HANDLER_LONGS, REPLY };

static volatile bool busy[RANKS_MAX][LANES];
static uint8_t sources[RANKS_MAX][LANES][BYTES];

static uint8_t *request_place(unsigned from, unsigned to, unsigned lane)
{
	return segments[to] + (from * LANES + lane) * (size_t)BYTES;
}

static uint8_t *reply_place(unsigned from, unsigned to, unsigned lane)
{
	return segments[to] + SEGMENT / 2 + (from * LANES + lane) * (size_t)BYTES;
}

static unsigned seed_of(unsigned from, unsigned number)
{
	return from * ROUNDS + number;
}

static void request_take(
	gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t number)
{
	unsigned lane = (unsigned)number % LANES;
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK((uint8_t *)bytes == request_place(from, rank, lane) && length == BYTES);
	CHECK(pattern_is(bytes, length, seed_of(from, (unsigned)number)));
	CHECK(gasnet_AMReplyLong1(token, REPLY, bytes, length, reply_place(rank, from, lane),
		      number) == GASNET_OK);
}

static void reply_take(gasnet_token_t token, void *bytes, size_t length, gasnet_handlerarg_t number)
{
	unsigned lane = (unsigned)number % LANES;
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK((uint8_t *)bytes == reply_place(from, rank, lane) && length == BYTES);
	CHECK(pattern_is(bytes, length, seed_of(rank, (unsigned)number)));
	CHECK(busy[from][lane]);
	busy[from][lane] = false;
}

int longs_table(gasnet_handlerentry_t *table)
{
	table[0] = (gasnet_handlerentry_t){REQUEST, (void (*)())request_take};
	table[1] = (gasnet_handlerentry_t){REPLY, (void (*)())reply_take};
	return 2;
}

static void request_send(unsigned to, unsigned number)
{
	unsigned lane = number % LANES;
	uint8_t *source = sources[to][lane], *place = request_place(rank, to, lane);

	GASNET_BLOCKUNTIL(!busy[to][lane]);
	busy[to][lane] = true;
	pattern_fill(source, BYTES, seed_of(rank, number));
	if (number % 2)
		CHECK(gasnet_AMRequestLongAsync1(to, REQUEST, source, BYTES, place, (int)number) ==
			GASNET_OK);
	else
		CHECK(gasnet_AMRequestLong1(to, REQUEST, source, BYTES, place, (int)number) ==
			GASNET_OK);
}

void longs_run(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned k = 1; k < ranks; k++)
			request_send((rank + k) % ranks, i);
	for (unsigned to = 0; to < ranks; to++)
		for (unsigned lane = 0; lane < LANES; lane++)
			GASNET_BLOCKUNTIL(!busy[to][lane]);
	barrier_pass();
}
