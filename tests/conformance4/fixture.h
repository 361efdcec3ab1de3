/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture.h - what every conformance test of Portals 4 starts from: two processes' worth of
 * interfaces in one process, on two ports of an in-process wire.
 *
 * The suite uses portals4.h alone. One test, one promise of the interface; its name is the promise.
 * A wait ends with what it waits for or, long after anything could still happen, with a failure.
 */
#ifndef CONFORMANCE4_FIXTURE_H
#define CONFORMANCE4_FIXTURE_H

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
#include <unistd.h>
#include <cmocka.h>
#include <portals4.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MATCHING   (PTL_NI_MATCHING | PTL_NI_PHYSICAL)
#define LISTED     (PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL)
#define MATCHING_L (PTL_NI_MATCHING | PTL_NI_LOGICAL)
#define LISTED_L   (PTL_NI_NO_MATCHING | PTL_NI_LOGICAL)

#define ANYONE ((ptl_process_t){.phys = {PTL_NID_ANY, PTL_PID_ANY}})

/* Fails with the call, what it returned and what it should have. */
#define assert_code(call, want) code_check((call), (want), #call, __FILE__, __LINE__)
#define assert_ok(call)         assert_code(call, PTL_OK)
void code_check(int got, int want, const char *call, const char *file, int line);

/* An interface of this process, with a portal (index 0), its queue and a counter. */
struct node {
	ptl_handle_ni_t ni;
	bool logical;
	ptl_process_t id; /* as others name it */
	ptl_handle_eq_t eq;
	ptl_handle_ct_t ct;
	ptl_pt_index_t portal;
	ptl_ni_limits_t limits;
};

/* PtlInit with an environment of two ports; PtlFini. */
int group_open(void **state);
int group_close(void **state);

/* Opens an interface of these options on port 0 or 1. */
void node_open(struct node *node, ptl_interface_t iface, unsigned options);
void node_close(struct node *node);
/* Both ends of an interface of these options; logical ones have ranks 0 and 1. */
void pair_open(struct node *here, struct node *there, unsigned options);
void pair_close(struct node *here, struct node *there);

/* Bytes that tell where they were; none is 0. */
void memory_fill(unsigned char *memory, size_t bytes);

ptl_handle_md_t md_make(const struct node *node, void *start, ptl_size_t length, unsigned options);
/* An entry on the priority list of the node's portal that matches everybody. */
ptl_handle_me_t entry_make(const struct node *node, void *start, ptl_size_t length,
	unsigned options, ptl_match_bits_t bits, void *user);

/* The next event, which must be of this kind. */
#define expect_event(eq, kind) event_expect((eq), (kind), __FILE__, __LINE__)
ptl_event_t event_expect(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line);
/* The queue is empty now. */
#define expect_none(eq) none_expect((eq), __FILE__, __LINE__)
void none_expect(ptl_handle_eq_t eq, const char *file, int line);
/* Waits until a counter has so many successes and failures. */
void expect_count(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure);

#endif
