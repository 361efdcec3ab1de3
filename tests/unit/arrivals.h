/* SPDX-License-Identifier: BSD-3-Clause */
/* arrivals.h - messages from RIG_PEER that arrive at a rig on a fake transport, for the tests of
 * lib/engine/incoming.c.
 *
 * What is tested so is tested twice, since the engine takes them in two ways: with data that come
 * after their message's beginning, and with data that come with it.
 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include "fake_transport.h"
#include "rig.h"

extern char memory[64]; /* where data land; zeros at the beginning of a test */
extern const char data[64];

/* For cmocka_run_group_tests(). */
int arrivals_in_pieces(void **state);
int arrivals_whole(void **state);
extern bool arrivals_are_whole;

/* As rig_setup(). */
int arrivals_setup(void **state);
/* A region of memory on an entry of its own for everything at Portal 0. */
uint64_t attach_any(struct rig *rig, uint64_t queue, uint32_t options);
/* A put of so many bytes of data arrives. */
struct fake_arrival *put(struct message_header *header, uint64_t length);

#endif
