/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.c - each of the 119 functions of active messages, with distinct arguments, at many sizes
 * and alignments. A request's handler checks what came and replies with the same; the reply's
 * handler checks it again. */
#include "ranks.h"

#include <string.h>

#define COUNTS    17
#define ROOM      (SEGMENT / 16) /* of each rank in each segment */
#define MEDIUM    2048
#define ALIGNMENT 16

static gasnet_handlerarg_t values[16]; /* of the message under way, in all ranks */
static uint8_t source[ROOM + ALIGNMENT];
static volatile unsigned replies;
static unsigned seed;

static gasnet_handlerarg_t value(unsigned sender, unsigned number, unsigned at)
{
	uint32_t mixed = (sender + 1) * 0x9e3779b9u ^ number * 0x85ebca6bu ^ (at + 1) * 0xc2b2ae35u;

	return (gasnet_handlerarg_t)mixed; /* negative ones, too */
}

/* Arguments follow from the sender, the first from the number of the message. */
static unsigned arguments_check(
	gasnet_token_t token, unsigned count, const gasnet_handlerarg_t *list, bool reply)
{
	gasnet_node_t from;

	CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);
	if (reply) {
		for (unsigned i = 0; i < count; i++)
			CHECK(list[i] == values[i]);
		replies++;
		return seed;
	}
	for (unsigned i = 1; i < count; i++)
		CHECK(list[i] == value(from, count, i));
	return count > 0 ? (unsigned)list[0] : from;
}

static void payload_check(const void *bytes, size_t length, unsigned number)
{
	CHECK(pattern_is(bytes, length, number));
}

#define V0
#define V1  V0, v[0]
#define V2  V1, v[1]
#define V3  V2, v[2]
#define V4  V3, v[3]
#define V5  V4, v[4]
#define V6  V5, v[5]
#define V7  V6, v[6]
#define V8  V7, v[7]
#define V9  V8, v[8]
#define V10 V9, v[9]
#define V11 V10, v[10]
#define V12 V11, v[11]
#define V13 V12, v[12]
#define V14 V13, v[13]
#define V15 V14, v[14]
#define V16 V15, v[15]

enum { SHORT_REQUEST, SHORT_REPLY, MEDIUM_REQUEST, MEDIUM_REPLY, LONG_REQUEST, LONG_REPLY };
#define INDEX(kind, m) ((gasnet_handler_t)(HANDLER_MESSAGES + (kind)*COUNTS + (m)))

/* Where a rank's long messages land in another's segment, so that replies come back to the same
 * offset of its own. */
static uint8_t *landing(unsigned at, unsigned of, size_t offset)
{
	return segments[at] + of * ROOM + offset;
}

#define HANDLERS(m)                                                                                \
	static void short_request_##m(gasnet_token_t token GASNET_POSTERN_P##m)                    \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		(void)arguments_check(token, m, v, false);                                         \
		CHECK(gasnet_AMReplyShort##m(token, INDEX(SHORT_REPLY, m) V##m) == GASNET_OK);     \
		CHECK(gasnet_AMReplyShort##m(token, INDEX(SHORT_REPLY, m) V##m) ==                 \
			GASNET_ERR_BAD_ARG);                                                       \
	}                                                                                          \
	static void short_reply_##m(gasnet_token_t token GASNET_POSTERN_P##m)                      \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		(void)arguments_check(token, m, v, true);                                          \
	}                                                                                          \
	static void medium_request_##m(                                                            \
		gasnet_token_t token, void *bytes, size_t length GASNET_POSTERN_P##m)              \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		CHECK((uintptr_t)bytes % ALIGNMENT == 0);                                          \
		payload_check(bytes, length, arguments_check(token, m, v, false));                 \
		CHECK(gasnet_AMReplyMedium##m(                                                     \
			      token, INDEX(MEDIUM_REPLY, m), bytes, length V##m) == GASNET_OK);    \
		memset(bytes, 0, length);                                                          \
	}                                                                                          \
	static void medium_reply_##m(                                                              \
		gasnet_token_t token, void *bytes, size_t length GASNET_POSTERN_P##m)              \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		CHECK((uintptr_t)bytes % ALIGNMENT == 0);                                          \
		payload_check(bytes, length, arguments_check(token, m, v, true));                  \
	}                                                                                          \
	static void long_request_##m(                                                              \
		gasnet_token_t token, void *bytes, size_t length GASNET_POSTERN_P##m)              \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		gasnet_node_t from;                                                                \
		CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK);                           \
		payload_check(bytes, length, arguments_check(token, m, v, false));                 \
		CHECK(gasnet_AMReplyLong##m(token, INDEX(LONG_REPLY, m), bytes, length,            \
			      segments[from] + ((uint8_t *)bytes - segments[rank]) V##m) ==        \
			GASNET_OK);                                                                \
	}                                                                                          \
	static void long_reply_##m(                                                                \
		gasnet_token_t token, void *bytes, size_t length GASNET_POSTERN_P##m)              \
	{                                                                                          \
		const gasnet_handlerarg_t v[m + 1] = {GASNET_POSTERN_L##m 0};                      \
		payload_check(bytes, length, arguments_check(token, m, v, true));                  \
	}                                                                                          \
	static void call_##m(                                                                      \
		unsigned to, int kind, uint8_t *bytes, size_t length, uint8_t *destination)        \
	{                                                                                          \
		const gasnet_handlerarg_t *v = values;                                             \
		(void)v;                                                                           \
		if (kind == 0)                                                                     \
			CHECK(gasnet_AMRequestShort##m(to, INDEX(SHORT_REQUEST, m) V##m) ==        \
				GASNET_OK);                                                        \
		else if (kind == 1)                                                                \
			CHECK(gasnet_AMRequestMedium##m(to, INDEX(MEDIUM_REQUEST, m), bytes,       \
				      length V##m) == GASNET_OK);                                  \
		else if (kind == 2)                                                                \
			CHECK(gasnet_AMRequestLong##m(to, INDEX(LONG_REQUEST, m), bytes, length,   \
				      destination V##m) == GASNET_OK);                             \
		else                                                                               \
			CHECK(gasnet_AMRequestLongAsync##m(to, INDEX(LONG_REQUEST, m), bytes,      \
				      length, destination V##m) == GASNET_OK);                     \
	}
#define EACH(x)                                                                                    \
	x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)
EACH(HANDLERS)

#define CALL(m) call_##m,
static void (*const calls[COUNTS])(unsigned, int, uint8_t *, size_t, uint8_t *) = {EACH(CALL)};

void messages_table(gasnet_handlerentry_t *table)
{
#define ENTRY(kind, name, m)                                                                       \
	*table++ = (gasnet_handlerentry_t){INDEX(kind, m), (void (*)())name##_##m};
#define ENTRIES(m)                                                                                 \
	ENTRY(SHORT_REQUEST, short_request, m)                                                     \
	ENTRY(SHORT_REPLY, short_reply, m)                                                         \
	ENTRY(MEDIUM_REQUEST, medium_request, m)                                                   \
	ENTRY(MEDIUM_REPLY, medium_reply, m)                                                       \
	ENTRY(LONG_REQUEST, long_request, m)                                                       \
	ENTRY(LONG_REPLY, long_reply, m)
	EACH(ENTRIES)
}

/* One message and its reply. The source is spoiled once it may be. */
static void exchange(unsigned to, unsigned count, int kind, size_t length, size_t offset)
{
	uint8_t *bytes = source + offset;
	unsigned before = replies;

	seed++;
	for (unsigned i = 0; i < 16; i++)
		values[i] = i == 0 ? (gasnet_handlerarg_t)seed : value(rank, count, i);
	if (count == 0)
		seed = rank;
	pattern_fill(bytes, length, seed);
	calls[count](to, kind, bytes, length, landing(to, rank, offset * 5 % ALIGNMENT));
	if (kind != 3)
		memset(bytes, 0xee, length);
	GASNET_BLOCKUNTIL(replies != before);
	CHECK(replies == before + 1);
	if (count == 0)
		seed = before + 1;
}

void messages_run(void)
{
	static const size_t mediums[] = {0, 1, 4, 15, 16, 17, 63, 64, 65, 511, 2047, MEDIUM};
	static const size_t longs[] = {0, 1, 8, 64, 2040, 2041, 2096, 2097, 2104, 2105, 2112, 4096,
		100000, ROOM - ALIGNMENT};

	for (unsigned to = 0; to < ranks; to++) {
		for (unsigned count = 0; count < COUNTS; count++) {
			exchange(to, count, 0, 0, 0);
			for (size_t i = 0; i < sizeof(mediums) / sizeof(mediums[0]); i++)
				exchange(to, count, 1, mediums[i], (count + i) % ALIGNMENT);
			for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
				if (longs[i] > 100000 && count % 8 != 0)
					continue;
				/* Overlap with the source is undefined to oneself. */
				exchange(to, count, 2, longs[i], (count + i) % ALIGNMENT);
				exchange(to, count, 3, longs[i], (count * 3 + i) % ALIGNMENT);
			}
		}
	}
	barrier_pass();
}
