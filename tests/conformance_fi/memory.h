/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - a region at one side that the other side reads and writes. */
#ifndef CONFORMANCE_FI_MEMORY_H
#define CONFORMANCE_FI_MEMORY_H

#include "fixture.h"

#define BYTES (3u << 20)
#define EDGE  4096 /* on both sides of the region, for nobody */
#define KEY   UINT64_C(0x1234)
#define BOTH  (FI_REMOTE_READ | FI_REMOTE_WRITE)

extern uint8_t *target, *mirror; /* with edges; and what it is to be */
extern uint8_t *local;
extern struct fid_mr *region;
extern uint64_t base, key; /* of the region, for the initiator */
extern int context;

void region_open(uint64_t access);
void memory_open(void);
/* A pair with memory and a region, as a setup, and its teardown. */
int opened(void **state);
int opened_basic(void **state);
int closed(void **state);
/* Nothing else was written. */
void target_is_as_it_should_be(void);
void target_gets(const void *data, uint64_t at, size_t length);
void written_take(void);
/* Reads and writes end with this error, and none does anything. */
void both_fail(uint64_t at, size_t length, uint64_t with, int err);

#define TEST(name)       cmocka_unit_test_setup_teardown(name, opened, closed)
#define TEST_BASIC(name) cmocka_unit_test_setup_teardown(name, opened_basic, closed)

#endif
