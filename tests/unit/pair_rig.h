/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_rig.h - pairs for tests: both ends in one process, on one mapping. What a hostile peer
 * writes is written through a second mapping of the same memory. The test is linked with
 * --wrap=munmap. */
#ifndef PAIR_RIG_H
#define PAIR_RIG_H

#include "glue_fixture.h"

#include <stdatomic.h>

#include <pmd-glue/eal.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pair.h>

#define FRAME_SIZE FRAME_MAX
#define STARTS     4096u

/* The layout of the memory, as words. */
#define TAKEN(direction)      ((direction)*16u)
#define FREED(direction)      ((direction)*16u + 1)
#define WORD(direction, slot) (512u + ((direction)*PAIR_SLOTS + (slot)) * 32u)

struct ends {
	struct pair *a;
	struct pair *b;
};

extern uint64_t random_state; /* of random_below() */
extern struct rte_mempool *pool;
extern void *memory;
extern void *alias;       /* the same memory */
extern unsigned unmapped; /* how often an end has unmapped it */
/* Random bytes of an application, which frames refer to, each from some byte on. */
extern uint8_t data[FRAME_SIZE + STARTS];

int pool_make(void **state);
uint32_t random_below(uint32_t n);
void memory_make(void);
void memory_drop(void);
_Atomic uint64_t *word_at(unsigned n);
struct pair *end_open(unsigned end);
struct ends ends_open(void);
void ends_close(struct ends ends);

/* A frame of `head` bytes from data on and `tail` bytes that follow them, in a second segment. */
struct rte_mbuf *frame_of(uint32_t head, uint32_t tail);
struct rte_mbuf *frame_random(void);
void frame_bytes(const struct rte_mbuf *frame, uint8_t *to);
/* Has it a shape that pair_receive() promises? */
bool frame_shaped(const struct rte_mbuf *frame);
void send_one(struct pair *pair, struct rte_mbuf *frame);
struct rte_mbuf *take_one(struct pair *pair);
bool takes_nothing(struct pair *pair);
/* Takes one and checks that its bytes are data's from the start on. */
void expect_one(struct pair *pair, uint32_t length);

#endif
