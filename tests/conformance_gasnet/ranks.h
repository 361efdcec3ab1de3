/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - what the scenarios of test_ranks.c share. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <gasnet.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %u: %s:%d: %s\n", gasnet_mynode(), __FILE__,         \
				__LINE__, #condition);                                             \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#define SEGMENT   ((size_t)4 << 20)
#define RANKS_MAX 64

/* Handlers: messages.c has 128 to 229. */
enum { HANDLER_MESSAGES = 128, HANDLER_OTHERS = 232, HANDLER_LONGS = 240, HANDLER_COPIES = 250 };

extern uint8_t *segments[]; /* of all ranks */
extern unsigned rank, ranks;

static inline void barrier_pass(void)
{
	CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

/* A byte of a message that can be told from others. */
static inline uint8_t pattern(unsigned seed, size_t at)
{
	return (uint8_t)(seed * 31 + at * 7 + (at >> 8));
}

static inline void pattern_fill(uint8_t *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = pattern(seed, i);
}

static inline bool pattern_is(const uint8_t *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != pattern(seed, i))
			return false;
	return true;
}

/* messages.c: fills a table of 102 handlers. */
void messages_table(gasnet_handlerentry_t *table);
void messages_run(void);
/* collectives.c */
void collectives_run(void);
/* copies.c; while the segment is made the process lacks what RANKS_REFUSE says; copies_table
 * returns how many handlers it has added. */
void copies_refuse(void);
void copies_allow(void);
int copies_table(gasnet_handlerentry_t *table);
void copies_shared(void);
void copies_silent(void);
void copies_order(void);
void copies_sleep(void);
void copies_spin(void);
void copies_wait(void);
void copies_send(void);
/* longs.c; longs_table returns how many handlers it has added. */
int longs_table(gasnet_handlerentry_t *table);
void longs_run(void);
/* pieces.c */
void pieces_run(void);
/* transfers.c */
void transfers_run(void);
void transfers_seen(void);

#endif
