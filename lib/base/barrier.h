/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.h - a pair of fences of which the rare side pays for both.
 *
 *     often                          seldom
 *     A = 1                          B = 1
 *     barrier_light()                barrier_heavy()
 *     looks at B                     looks at A
 *
 * One of the two sees the other. membarrier() makes every running thread of the process do a full
 * fence; so the light side is nothing but an order to the compiler. Where the kernel has no such
 * call, both sides are fences.
 *
 * B1. Light pairs with heavy alone: not with light, and not with an ordinary seq_cst fence. Heavy
 *     is such a fence as well.
 * B2. Threads of other processes are not reached.
 */
#ifndef BASE_BARRIER_H
#define BASE_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/core.h>

/* the kernel does the light side's part */
extern bool barrier_cheap CORE_API(barrier_cheap);

/* Once per process, before there is anything to order; without it both sides are fences. */
void barrier_start(void);

static inline void barrier_light(void)
{
	if (barrier_cheap)
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

void barrier_heavy(void) CORE_API(barrier_heavy);

#endif
