/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_rig.h - rendezvous for tests: each case has a directory of its own, and the log goes
 * to a file.
 *
 * CASE() puts setup() and teardown() around a case. The functions are for one thread;
 * rendezvous_at() may also be called by children of the test.
 */
#ifndef RENDEZVOUS_RIG_H
#define RENDEZVOUS_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <pmd-glue/rendezvous.h>

#define NID     7u
#define FRAME   9000u
#define PAGE    4096u
#define BYTES   (16 * PAGE)
#define TOUCHED (2 * PAGE)
#define LIMIT   300   /* s, until a test that hangs is ended */
#define WAIT    20000 /* ms for what must happen */
#define NOBODY  65534u

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

extern char runtime[64]; /* the case's XDG_RUNTIME_DIR */

int setup(void **state);
int teardown(void **state);

/* A rendezvous of a node; NULL when it cannot be opened. name: NULL for the node without a name. */
struct rendezvous *rendezvous_at(const char *name, uint32_t pid);
/* The same in the node without a name; it must open, with this process id. */
struct rendezvous *rendezvous_of(uint32_t pid);
/* Waits for the rendezvous's next event, which must be the expected one. */
struct rendezvous_connection *expect(struct rendezvous *rendezvous, enum rendezvous_event expected);
/* Nothing has happened in the rendezvous. */
void expect_nothing(struct rendezvous *rendezvous);
/* Drops a connection and its memory. */
void forget(struct rendezvous *rendezvous, struct rendezvous_connection *connection);
bool readable(int fd);
/* Entries of /proc/self/fd. */
unsigned descriptors(void);
/* A socket connected to the rendezvous as that of a stranger. */
int raw_connect(const struct rendezvous *rendezvous);
/* Returns true if these words were logged during the case. */
bool log_said(const char *words);
/* Empties the log. */
void log_forget(void);
/* Removes a directory with all that it holds. */
void remove_all(const char *path);

#endif
