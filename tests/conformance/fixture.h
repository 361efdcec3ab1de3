/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.h - what every conformance test starts from: two interfaces of one process on one
 * in-process wire, queues, descriptors, and ways to wait for events and to prove that there are
 * none.
 *
 * The suite uses portals.h alone. One test, one promise of the specification; its name is the
 * promise.
 *
 * F1. A wait ends with the event or, long after anything could still happen, with a failure;
 *     nothing is timed.
 * F2. That nothing happens is proved by fence(): messages of one process to another start in order,
 *     so once a later message has arrived, an earlier one has been accepted or discarded.
 * F3. Every test has fresh interfaces: nothing of one test reaches the next.
 */
#ifndef CONFORMANCE_FIXTURE_H
#define CONFORMANCE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <cmocka.h>
#include <portals.h>

#include "../sanitized.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PORTAL       3 /* where most tests put and get */
#define PORTAL_FENCE 7 /* where fence() does */
#define EQ_ROOM      256
#define NO_LIMIT     UINT32_MAX             /* max_offset */
#define EVERY_BIT    UINT64_MAX             /* ignore bits */
#define WILD         ((void *)(uintptr_t)1) /* certainly no legal address */
#define ANY_PROCESS  ((ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY})
#define BAD_PROCESS  ((ptl_process_id_t){1, PTL_PID_MAX + 1})

/* Fails with the call, what it returned and what it should have. */
#define assert_code(call, want) code_check((call), (want), #call, __FILE__, __LINE__)
#define assert_ok(call)         assert_code(call, PTL_OK)
void code_check(int got, int want, const char *call, const char *file, int line);
const char *code_name(int code);
const char *kind_name(ptl_event_kind_t kind);

/* An interface of this process. */
struct node {
	bool open;
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_ni_limits_t limits;
	bool fenced; /* the fence's objects exist: */
	ptl_handle_eq_t fence_in;
	ptl_handle_eq_t fence_out;
	ptl_handle_md_t fence_md;
};
extern struct node here;  /* interface 0, node id 1 */
extern struct node there; /* interface 1, node id 2 */

/* Group setup and teardown: the environment of two interfaces, PtlInit; PtlFini. */
int group_open(void **state);
int group_close(void **state);
void environment_default(
	const char *name, const char *value); /* set unless the caller has set it */
/* Test setup and teardown. */
int both_open(void **state);
int here_open(void **state);
int nodes_close(void **state);
#define TEST_BOTH(function) cmocka_unit_test_setup_teardown(function, both_open, nodes_close)
#define TEST_HERE(function) cmocka_unit_test_setup_teardown(function, here_open, nodes_close)
#define TEST_BARE(function) cmocka_unit_test_teardown(function, nodes_close)

void node_open(struct node *node, ptl_interface_t interface, ptl_ni_limits_t *desired);
void node_close(struct node *node);
/* Returns once everything that `from` sent to `to` before has been accepted or discarded, and once
 * the acknowledgements that this caused have been received. */
void fence(struct node *from, struct node *to);
ptl_sr_value_t drops(const struct node *node);

/* Queues. */
ptl_handle_eq_t queue_make(const struct node *node, ptl_size_t count);
#define next_event(eq)         event_next((eq), PTL_OK, __FILE__, __LINE__)
#define next_event_after(eq)   event_next((eq), PTL_EQ_DROPPED, __FILE__, __LINE__)
#define expect_event(eq, kind) event_expect((eq), (kind), __FILE__, __LINE__)
#define expect_no_event(eq)    event_absent((eq), __FILE__, __LINE__)
ptl_event_t event_next(ptl_handle_eq_t eq, int code, const char *file, int line);
ptl_event_t event_expect(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line);
void event_absent(ptl_handle_eq_t eq, const char *file, int line);
/* START and END of one operation, with nothing between them; returns END. */
#define expect_pair(eq, start) event_pair((eq), (start), __FILE__, __LINE__)
ptl_event_t event_pair(ptl_handle_eq_t eq, ptl_event_kind_t start, const char *file, int line);
/* How much was asked for, and how much was moved. */
#define expect_lengths(event, rlength, mlength)                                                    \
	event_lengths((event), (rlength), (mlength), __FILE__, __LINE__)
void event_lengths(
	ptl_event_t event, ptl_size_t rlength, ptl_size_t mlength, const char *file, int line);

/* A description of memory: unbounded threshold, no maximal offset. */
ptl_md_t region(void *start, size_t length, unsigned options, ptl_handle_eq_t eq);
/* The same for so many operations. */
ptl_md_t limited(ptl_md_t md, int threshold);
/* A match entry after the last one of PORTAL. */
ptl_handle_me_t entry_make(const struct node *node, ptl_match_bits_t bits, ptl_match_bits_t ignore,
	ptl_unlink_t unlink);
ptl_handle_md_t region_attach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t op, ptl_unlink_t nofit);
ptl_handle_md_t region_bind(const struct node *node, ptl_md_t md);

/* One end of an operation, with a queue of its own. */
struct end {
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
};
/* An entry that matches everything, after the last one of PORTAL; both are retained. */
struct end target_make(const struct node *node, void *start, size_t length, unsigned options);
/* The same for a description whose queue, unless it has one, is made. The entry goes with its
 * descriptor. */
struct end target_of(const struct node *node, ptl_md_t md, ptl_unlink_t op, ptl_unlink_t nofit);
struct end source_make(const struct node *node, void *start, size_t length);
/* The entry of a target_make() goes, the descriptor of a source_make(), and their queues. */
void ends_free(const struct end *target, const struct end *source);

void put_to(ptl_handle_md_t md, const struct node *to, ptl_match_bits_t bits);
void put_acked(ptl_handle_md_t md, const struct node *to, ptl_match_bits_t bits);
void get_from(ptl_handle_md_t md, const struct node *from, ptl_match_bits_t bits);

/* Bytes that tell their place: a different sequence for each seed. */
void pattern_fill(void *memory, size_t length, unsigned seed);
bool pattern_is(const void *memory, size_t length, unsigned seed);
bool bytes_are(const void *memory, size_t length, unsigned char value);

/* A thread inside PtlEQWait. */
struct waiter {
	pthread_t thread;
	ptl_handle_eq_t eq;
	_Atomic pid_t tid; /* set just before the call */
	_Atomic bool back;
	uint64_t cpu; /* CPU time at the call */
	int code;
	ptl_event_t event;
};
void waiter_start(struct waiter *waiter, ptl_handle_eq_t eq);
/* Returns when the thread is inside the call for certain: it sleeps, or has used far more CPU than
 * the way in takes. */
void waiter_settle(struct waiter *waiter);
void waiter_join(struct waiter *waiter);

/* Runs body in `count` threads and joins them; each gets its number. Threads cannot use cmocka's
 * assertions: they say what went wrong with thread_expect(), and threads_run() fails. */
#define thread_expect(condition) thread_check((condition), #condition, __FILE__, __LINE__)
bool thread_check(bool condition, const char *text, const char *file, int line);
void threads_run(unsigned count, void (*body)(unsigned number));
/* Calls PtlEQGet until there is an event. Returns false if there is none for too long. For
 * threads. */
bool thread_next(ptl_handle_eq_t eq, ptl_event_t *event);

/* Calls each of the functions that return PTL_NOINIT without initialisation; returns the name of
 * the first that returns something else, or NULL. */
const char *initialised_call(void);

#endif
