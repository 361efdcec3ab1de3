/* SPDX-License-Identifier: BSD-3-Clause */
/* lend.h - takes the ports of open interfaces away from Postern for a while, for bare frames, and
 * gives them back.
 *
 * L1. Meanwhile nothing drives the interfaces' engines, so calls that wait for an answer would wait
 *     for ever: none is made. Frames from peers are lost, and retransmitted later.
 * L2. Bare frames run where the engines ran: inline in the calling thread, else in a thread on the
 *     poll thread's CPU; both ends in one thread where one thread polled both.
 */
#ifndef PERF_LEND_H
#define PERF_LEND_H

#include <portals.h>

#include "bare.h"

#define LEND_MAX 2u

/* The MAC address of an open interface's port, as a number. */
uint64_t lend_address(ptl_handle_ni_t ni);
/* Its PTL_MTU, in bytes. */
unsigned lend_mtu(ptl_handle_ni_t ni);

/* An end of bare frames on an interface's port; port and encapsulation of the options are filled
 * in. */
struct lend_end {
	ptl_handle_ni_t ni;
	struct bare_options options;
	struct bare *bare;
};

/* Opens the ends on their ports, runs them until both have ended, and closes them. Returns false
 * when one of them fell silent. progress (may be NULL) is called now and then with the part that is
 * done of the first end's measure, in whatever thread runs it. */
bool lend_run(struct lend_end *ends, unsigned count, void (*progress)(void *context, double part),
	void *context);

#endif
