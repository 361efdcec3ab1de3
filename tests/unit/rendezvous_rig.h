/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_rig.h - halls for tests: each case has a directory of its own, and the log goes to a file.
 *
 * CASE() puts setup() and teardown() around a case. The functions are for one thread; hall_at() may
 * also be called by children of the test.
 */
#ifndef HALL_RIG_H
#define HALL_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <pmd-glue/rendezvous.h>

#define NID     7u
#define FRAME   9000u
#define PAGE    4096u
#define BYTES   (16 * PAGE)
#define TOUCHED (2 * PAGE)
#define LIMIT   60    /* s, until a test that hangs is ended */
#define WAIT    20000 /* ms for what must happen */
#define NOBODY  65534u

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

extern char runtime[64]; /* the case's XDG_RUNTIME_DIR */

int setup(void **state);
int teardown(void **state);

/* A hall of a node; NULL when it cannot be opened. name: NULL for the node without a name. */
struct hall *hall_at(const char *name, uint32_t pid);
/* The same in the node without a name; it must open, with this process id. */
struct hall *hall_of(uint32_t pid);
/* Waits for the hall's next event, which must be the expected one. */
struct hall_link *expect(struct hall *hall, enum hall_event expected);
/* Nothing has happened in the hall. */
void expect_nothing(struct hall *hall);
/* Drops a link and its memory. */
void forget(struct hall *hall, struct hall_link *link);
bool readable(int fd);
/* Entries of /proc/self/fd. */
unsigned descriptors(void);
/* A socket connected to the hall as that of a stranger. */
int raw_connect(const struct hall *hall);
/* Returns true if these words were logged during the case. */
bool log_said(const char *words);
/* Empties the log. */
void log_forget(void);
/* Removes a directory with all that it holds. */
void remove_all(const char *path);

#endif
