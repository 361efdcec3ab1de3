/* SPDX-License-Identifier: BSD-3-Clause */
/* model_rank.c - a rank of test_model.c: sends requests of all kinds to all ranks, answers those of
 * others in all ways, and looks at every byte, once when a handler begins and once when it ends.
 */
#include "model.h"

#include <string.h>

#include <gasnet.h>

#ifdef GASNET_SEQ
#define THREADS 1u
#define PER_THREAD
#else
#define THREADS    2u
#define PER_THREAD __thread
#endif

/* The last page is for puts and gets. */
#define SEGMENT     ((size_t)2 * RANKS_MAX * THREADS * REQUESTS * ROOM + GASNET_PAGESIZE)
#define HALF        ((SEGMENT - GASNET_PAGESIZE) / 2)
#define PUTS        8u    /* nbi operations for each request, at most */
#define PUTS_MANY   1200u /* now and then: more than the queue of their events has room for */
#define PACKED_MOST (2112u - 8)
#define ARGUMENTS   4u
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fake_fail("rank %u: %s:%d: %s", fake_rank(), __FILE__, __LINE__,           \
				#condition);                                                       \
	} while (0)

enum { REQUEST_SHORT = 128, REQUEST_LONGER, REPLY_SHORT, REPLY_LONGER };
enum way { WAY_SHORT, WAY_MEDIUM, WAY_LONG, WAY_ASYNC, WAYS };

static unsigned ranks, rank;
static bool attached;
static uint8_t *segments[RANKS_MAX];
/* By number of the request, which no two of a pair of ranks share. */
static bool handled[RANKS_MAX][THREADS * REQUESTS];
static uint8_t answer_wanted[RANKS_MAX][THREADS * REQUESTS];  /* as ANSWER_..., 0 once it came */
static uint8_t answer_credits[RANKS_MAX][THREADS * REQUESTS]; /* that the request took */
static unsigned handled_count, answers_open;
static uint8_t sources[THREADS * RANKS_MAX * REQUESTS][ROOM]; /* async ones need one each */
static PER_THREAD bool in_handler;

static uint8_t byte_of(unsigned seed, size_t at)
{
	return (uint8_t)(seed * 131 + at * 7 + (at >> 8));
}

static void bytes_fill(uint8_t *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = byte_of(seed, i);
}

static void bytes_check(const uint8_t *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != byte_of(seed, i))
			fake_fail("rank %u: byte %zu of %zu is not what was sent", fake_rank(), i,
				length);
}

static unsigned seed_of(unsigned from, unsigned to, unsigned number)
{
	return (from * RANKS_MAX + to) * 1009 + number;
}

/* Each long message has a place of its own. */
static uint8_t *place_of(unsigned at, unsigned other, unsigned number, bool reply)
{
	return segments[at] + (reply ? HALF : 0) +
	       (other * THREADS * REQUESTS + number) * (size_t)ROOM;
}

static size_t length_some(bool is_long)
{
	static const size_t lengths[] = {0, 1, 16, 40, 64, 500, 1000, 2047, 2048};
	static const size_t longer[] = {2080, 2088, 2089, 3000, ROOM};

	return is_long && fake_random(2) ? longer[fake_random(5)] : lengths[fake_random(9)];
}

/* --- handlers */

/* Only a reply to the rank itself runs in a handler: its request's. Returns whether it does.
 */
static bool handler_begin(bool may_be_inner)
{
	bool inner = in_handler;

	CHECK(!inner || may_be_inner);
	in_handler = true;
	return inner;
}

static void others_run(void)
{
	for (unsigned i = fake_random(4); i > 0; i--)
		fake_yield();
}

static void answer_give(gasnet_token_t token, unsigned from, unsigned number, enum answer answer)
{
	static uint8_t copies[THREADS * RANKS_MAX][ROOM];
	uint8_t *bytes = copies[fake_random(THREADS * RANKS_MAX)];
	unsigned seed = seed_of(rank, from, number) + 1;
	size_t length = length_some(answer == ANSWER_LONG);
	gasnet_handlerarg_t n = (int)number, a = (int)answer;

#ifndef GASNET_SEQ
	static PER_THREAD uint8_t own[ROOM];

	bytes = own;
#endif
	bytes_fill(bytes, length, seed);
	if (answer == ANSWER_SHORT)
		CHECK(gasnet_AMReplyShort1(token, REPLY_SHORT, n) == GASNET_OK);
	else if (answer == ANSWER_MEDIUM)
		CHECK(gasnet_AMReplyMedium2(token, REPLY_LONGER, bytes, length <= 2048 ? length : 0,
			      n, a) == GASNET_OK);
	else if (answer == ANSWER_LONG)
		CHECK(gasnet_AMReplyLong2(token, REPLY_LONGER, bytes, length,
			      place_of(from, rank, number, true), n, a) == GASNET_OK);
	memset(bytes, 0xee, ROOM);
	if (answer != ANSWER_NONE)
		CHECK(gasnet_AMReplyShort1(token, REPLY_SHORT, n) == GASNET_ERR_BAD_ARG);
}

static uint8_t request_credits(enum way way, size_t length)
{
	return way >= WAY_LONG && ARGUMENTS * sizeof(gasnet_handlerarg_t) + length > PACKED_MOST
		       ? 2
		       : 1;
}

static void request_handle(gasnet_token_t token, const uint8_t *bytes, size_t length,
	unsigned number, enum way way, enum answer answer)
{
	gasnet_node_t from;

	(void)handler_begin(false);
	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	CHECK(number < THREADS * REQUESTS && !handled[from][number]);
	handled[from][number] = true;
	handled_count++;
	if (way >= WAY_LONG)
		CHECK(bytes == place_of(rank, from, number, false));
	bytes_check(bytes, length, seed_of(from, rank, number));
	others_run();
	bytes_check(bytes, length, seed_of(from, rank, number));
	answer_give(token, from, number, answer);
	others_run();
	in_handler = false;
	if (from != rank)
		model_handled(from, request_credits(way, length), answer != ANSWER_NONE);
}

static void request_short(gasnet_token_t token, gasnet_handlerarg_t number, gasnet_handlerarg_t way,
	gasnet_handlerarg_t answer, gasnet_handlerarg_t nothing)
{
	CHECK(way == WAY_SHORT && nothing == -1);
	request_handle(token, NULL, 0, (unsigned)number, (enum way)way, (enum answer)answer);
}

static void request_longer(gasnet_token_t token, void *bytes, size_t length,
	gasnet_handlerarg_t number, gasnet_handlerarg_t way, gasnet_handlerarg_t answer,
	gasnet_handlerarg_t same)
{
	CHECK((size_t)same == length);
	request_handle(token, bytes, length, (unsigned)number, (enum way)way, (enum answer)answer);
}

static void reply_handle(gasnet_token_t token, const uint8_t *bytes, size_t length, unsigned number,
	enum answer answer)
{
	gasnet_node_t from;
	bool inner;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	inner = handler_begin(from == rank);
	CHECK(number < THREADS * REQUESTS && answer_wanted[from][number] == answer);
	if (from != rank)
		model_answered(from, answer_credits[from][number]);
	answer_wanted[from][number] = ANSWER_NONE;
	if (answer == ANSWER_LONG)
		CHECK(bytes == place_of(rank, from, number, true));
	bytes_check(bytes, length, seed_of(from, rank, number) + 1);
	others_run();
	bytes_check(bytes, length, seed_of(from, rank, number) + 1);
	answers_open--;
	in_handler = inner;
}

static void reply_short(gasnet_token_t token, gasnet_handlerarg_t number)
{
	reply_handle(token, NULL, 0, (unsigned)number, ANSWER_SHORT);
}

static void reply_longer(gasnet_token_t token, void *bytes, size_t length,
	gasnet_handlerarg_t number, gasnet_handlerarg_t answer)
{
	reply_handle(token, bytes, length, (unsigned)number, (enum answer)answer);
}

/* --- sending */

static void request_send(unsigned to, unsigned number)
{
	enum way way = fake_random(WAYS);
	enum answer answer = way == WAY_ASYNC ? 1 + fake_random(ANSWERS - 1) : fake_random(ANSWERS);
	size_t length = way == WAY_SHORT ? 0 : length_some(way >= WAY_LONG);
	uint8_t *bytes = sources[to * THREADS * REQUESTS + number];
	uint8_t *place = place_of(to, rank, number, false);
	gasnet_handlerarg_t n = (int)number, w = (int)way, a = (int)answer, l = (int)length;

	bytes_fill(bytes, length, seed_of(rank, to, number));
	answer_wanted[to][number] = (uint8_t)answer;
	answers_open += answer != ANSWER_NONE;
	answer_credits[to][number] = request_credits(way, length);
	if (way == WAY_SHORT)
		CHECK(gasnet_AMRequestShort4(to, REQUEST_SHORT, n, w, a, -1) == GASNET_OK);
	else if (way == WAY_MEDIUM)
		CHECK(gasnet_AMRequestMedium4(to, REQUEST_LONGER, bytes, length, n, w, a, l) ==
			GASNET_OK);
	else if (way == WAY_LONG)
		CHECK(gasnet_AMRequestLong4(to, REQUEST_LONGER, bytes, length, place, n, w, a, l) ==
			GASNET_OK);
	else
		CHECK(gasnet_AMRequestLongAsync4(
			      to, REQUEST_LONGER, bytes, length, place, n, w, a, l) == GASNET_OK);
	if (to != rank)
		model_sent(to, request_credits(way, length));
	if (way != WAY_ASYNC)
		memset(bytes, 0xee, length);
}

/* Puts and gets, which have their own room, of a byte each. They begin and are waited for later. */
static void transfers_begin(unsigned to)
{
	static PER_THREAD uint8_t bytes[PUTS_MANY];

	for (unsigned i = fake_random(fake_random(200) ? PUTS : PUTS_MANY); i > 0; i--) {
		if (fake_random(2))
			gasnet_put_nbi(to, segments[to] + SEGMENT - 1, &bytes[i], 1);
		else
			gasnet_get_nbi(&bytes[i], to, segments[to] + SEGMENT - 2, 1);
	}
	if (fake_random(16) == 0)
		gasnet_wait_syncnbi_all();
}

static void attach(void)
{
	gasnet_handlerentry_t table[] = {
		{REQUEST_SHORT, (void (*)())request_short},
		{REQUEST_LONGER, (void (*)())request_longer},
		{REPLY_SHORT, (void (*)())reply_short},
		{REPLY_LONGER, (void (*)())reply_longer},
	};
	gasnet_seginfo_t info[RANKS_MAX];

	CHECK(gasnet_init(NULL, NULL) == GASNET_OK);
	CHECK(gasnet_attach(table, 4, SEGMENT, 0) == GASNET_OK);
	rank = gasnet_mynode();
	ranks = gasnet_nodes();
	CHECK(gasnet_getSegmentInfo(info, (int)ranks) == GASNET_OK);
	for (unsigned i = 0; i < ranks; i++)
		segments[i] = info[i].addr;
	attached = true;
}

static bool all_handled(void)
{
	return handled_count == ranks * THREADS * REQUESTS && answers_open == 0;
}

__attribute__((visibility("default"))) model_rank_run model_rank;
void model_rank(unsigned thread)
{
	bool over = false;

	if (thread == 0)
		attach();
	while (!attached)
		fake_yield();
	/* A thread that spins while another one polls would keep the baton. */
	CHECK(gasnet_set_waitmode(THREADS > 1 ? GASNET_WAIT_BLOCK : (int)fake_random(3)) ==
		GASNET_OK);
	for (unsigned i = 0; i < REQUESTS; i++) {
		for (unsigned k = 0; k < ranks; k++) {
			request_send((rank + k) % ranks, thread * REQUESTS + i);
			transfers_begin((rank + k) % ranks);
		}
		if (fake_random(8) == 0)
			CHECK(gasnet_AMPoll() == GASNET_OK);
	}
	gasnet_wait_syncnbi_all();
	GASNET_BLOCKUNTIL(all_handled());
	while (!model_is_over(!over)) {
		over = true;
		CHECK(gasnet_AMPoll() == GASNET_OK);
		fake_yield();
	}
}
