/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.h - a poll thread, which calls engine_poll() for one or more engines. Without poll threads
 * a thread drives an engine while it holds its progress lock (host/progress.h).
 *
 * How the thread waits (PTL_POLL): busy, it spins. Adaptive, it spins for as long as is worth while
 * (base/spinning.h), then sleeps on an eventfd, which is its engines' doorbell, and on the ports'
 * descriptors; where frames may come to a port that has none, it looks for them now and then. By
 * interrupt, it does the same, but never spins for long.
 *
 * P1. A poller's list of engines changes only while it is paused; the caller of all but
 *     poller_run() holds one lock.
 *
 * P2. Nobody misses a command: the poll thread raises doorbell.sleeping and then looks at the ring,
 *     an application thread puts into the ring and then looks at doorbell.sleeping, with a barrier
 *     in between (base/barrier.h: the poll thread's is the heavy one); one of the two sees the
 *     other.
 *
 * P3. A poll thread that was woken from its own CPU does not spin until it has slept again: the
 *     thread that woke it was preempted, and brings the next command only when it runs. (Where that
 *     thread had another CPU it would have been waiting, and W8 would have let it sleep.) If this
 *     happens again and again, it moves to another CPU (W10).
 */
#ifndef HOST_POLLER_H
#define HOST_POLLER_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>
#include <base/futex.h>
#include <engine/engine.h>

#define POLLER_ENGINES FUTEX_ANY_MAX

struct poller;

enum poller_mode { POLLER_BUSY, POLLER_ADAPTIVE, POLLER_INTERRUPT };

/* A poller that is paused and has no engines; NULL: no memory, or no descriptor. */
struct poller *poller_create(enum poller_mode mode, const struct clock *clock);
/* While it is paused. */
void poller_set_mode(struct poller *poller, enum poller_mode mode);
void poller_destroy(struct poller *poller); /* its thread has ended, or never began */

/* The poll thread's body; argument: the poller. Returns after poller_stop(). */
void poller_run(void *poller);

/* Returns when the thread touches no engine any more, and when it polls again. */
void poller_pause(struct poller *poller);
void poller_resume(struct poller *poller);
/* While it is paused: makes its thread return. */
void poller_stop(struct poller *poller);

/* While it is paused. external: frames may come at any time, so it never sleeps long. */
void poller_add(
	struct poller *poller, struct engine *engine, struct segment *segment, bool external);
void poller_remove(struct poller *poller, const struct engine *engine);
unsigned poller_count(const struct poller *poller);
/* Wakes the thread if it sleeps: a frame that nothing announces may have come to one of its
 * engines. */
void poller_wake(struct poller *poller);

/* How long the thread has been in turns that found something to do, ns. Any thread. */
uint64_t poller_busy(const struct poller *poller);

/* Is there a poll thread that is awake and, as far as it has said, on the caller's CPU? Then it
 * needs this CPU. */
static inline bool doorbell_is_here(const struct doorbell *doorbell)
{
	uint32_t cpu = atomic_load_explicit(&doorbell->cpu, memory_order_relaxed);

	return cpu != 0 && cpu == (uint32_t)sched_getcpu() + 1 &&
	       !atomic_load_explicit(&doorbell->sleeping, memory_order_relaxed);
}

/* Wakes the thread that has said that it sleeps. */
void doorbell_wake(struct doorbell *doorbell);

/* Wakes the poll thread that sleeps on a doorbell, if it sleeps. After a barrier (P2). Any
 * thread. */
static inline void doorbell_ring(struct doorbell *doorbell)
{
	if (atomic_load_explicit(&doorbell->sleeping, memory_order_relaxed) == 0)
		return;
	if (atomic_exchange_explicit(&doorbell->sleeping, 0, memory_order_relaxed) != 0)
		doorbell_wake(doorbell);
}

#endif
