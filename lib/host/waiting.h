/* SPDX-License-Identifier: BSD-3-Clause */
/* waiting.h - how threads wait for events: in a call for any of several queues, or at a descriptor
 * of a queue, for programs with an event loop of their own. Neutral: what an event is, is its
 * reader's business.
 *
 * A thread that waits in a call spins, then sleeps (base/spinning.h). One that drives, and has a
 * helper, sleeps in the helper's place, where the next frame wakes it (host/progress.h). All others
 * sleep on the queues' futexes:
 *
 *     reader                                      poll core
 *     sleepers++                                  publishes the event
 *     heavy barrier                               light barrier (base/barrier.h)
 *     reads futex, looks at the queue once more   sleepers != 0?
 *     sleeps while futex is what it was           futex++, wakes one sleeper
 *
 * Either the poll core sees the sleeper, or the reader sees the event. A futex that changed between
 * reading and sleeping makes the sleep end at once. The same holds for `closed` and for a queue
 * that is freed.
 *
 * W1. A thread that was woken by one queue may leave with an event of another one. So a thread that
 *     has slept on several queues passes the wake-up on to each of the others that still has
 *     events.
 *
 * A queue's descriptor is an eventfd. It is readable while the queue has events, and for good once
 * the queue or its interface is gone. It counts as a sleeper only while it is not readable, so the
 * poll core makes one system call for the first event that finds the queue empty and nothing for
 * those that follow:
 *
 *     WATCH_RAISED     readable, or about to be. A reader that finds the queue empty makes it
 *     WATCH_LOWERING   and alone reads the eventfd. Then it is
 *     WATCH_ARMED      not readable, and a sleeper. A thread that wakes sleepers makes it
 *                      WATCH_RAISED and writes to the eventfd
 *
 * W2. The eventfd is written once each time the state becomes WATCH_RAISED, just afterwards; a
 *     reader that lowers it waits for that. So a reader that returns with nothing leaves no
 *     readable descriptor behind, unless there is an event by now.
 * W3. The thread that moves the state from WATCH_ARMED to WATCH_RAISED takes the descriptor from
 *     the sleepers.
 * W4. A thread that frees a queue first makes its handle stale and then waits until no thread is
 *     counted in `waiters`; a thread that uses the eventfd is first counted and then looks at the
 *     handle. So the eventfd is closed behind the last use.
 */
#ifndef HOST_WAITING_H
#define HOST_WAITING_H

#include <base/core.h>
#include <base/futex.h>
#include <engine/queue.h>
#include <host/progress.h>

#define WAITING_MAX FUTEX_ANY_MAX /* queues or counters that a thread waits for at once */

/* A counter that a thread waits for. */
struct counter_view {
	struct event_counter *counter;
	uint64_t handle;
	uint64_t test;
};

struct waiting {
	const struct queue_view *queues; /* at most WAITING_MAX, of one segment */
	unsigned count;
	const struct counter_view *counters; /* the same; together at most WAITING_MAX */
	unsigned counter_count;
	const struct segment *segment;
	bool (*look)(void *context); /* looks at them; true: the wait is over */
	void *context;
	/* a turn of the engines that no poll thread drives, returns how much was done; NULL: there
	 * are none */
	unsigned (*drive)(void);
	/* The thread is about to sleep: others drive from now on. Returns how much was done by a
	 * last turn, 0: the thread may sleep; NULL: nobody else would drive. */
	unsigned (*rest)(void);
	/* With drive(): as progress_sleep(), where frames wake the thread; or NULL. */
	enum progress_slept (*sleep)(bool (*look)(void *context), void *context, uint64_t limit);
	/* NULL: not known. Does somebody whom the thread waits for need its CPU? */
	bool (*shares_cpu)(void);
	uint64_t (*now)(void *); /* ns */
	uint64_t timeout;        /* ns; UINT64_MAX: none */
};

enum waiting_answer {
	WAITING_FOUND,
	WAITING_TIMEOUT, /* nothing was found by the last look, at or after the timeout */
	WAITING_CLOSED   /* the interface goes */
};

/* Waits, as long awake as the thread's earlier waits make worth while. The caller is counted in
 * `waiters` of each queue. */
enum waiting_answer waiting_run(const struct waiting *waiting);

/* --- descriptors */

/* A descriptor of the queue for the caller, who closes it. The eventfd is made if there is none:
 * the caller holds a lock against other callers. -1: there is none to be had; the queue may
 * be gone. */
int queue_watch(const struct queue_view *view, const struct segment *segment);
/* A reader has found the queue empty while its descriptor was readable. */
void queue_lower(const struct queue_view *view, const struct segment *segment)
	CORE_API(queue_lower);
/* Gives the eventfd up. The queue is gone, nobody is counted in `waiters`, and no poll core is at
 * work with the queue. */
void queue_unwatch(struct queue *queue);

/* Does a reader that finds the queue empty have to call queue_lower()? */
static inline bool queue_is_raised(const struct queue *queue)
{
	return __builtin_expect(
		atomic_load_explicit(&queue->watch, memory_order_relaxed) == WATCH_RAISED, 0);
}

#endif
