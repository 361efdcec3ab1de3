/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.h - event counters: a count of successes and one of failures, which the poll core alone
 * changes and any thread reads and waits for.
 *
 * A thread that waits until a counter reaches a test looks at it, then sleeps on its futex:
 *
 *     waiting thread                              poll core
 *     sleepers++                                  changes a count
 *     reads futex                                 light barrier (base/barrier.h)
 *     lowers wake_at to its test                  sleepers != 0, and wake_at is reached?
 *     heavy barrier                               wake_at = UINT64_MAX
 *     looks at the counter once more              futex++, wakes all sleepers
 *     sleeps while futex is what it was
 *
 * N1. Either the poll core sees the sleeper and its test, or the thread sees the counts.
 * N2. The poll core raises wake_at before it changes futex. So a test that a thread has lowered
 *     wake_at to is forgotten only if the thread, which read futex before that, does not fall
 *     asleep. Woken threads whose test is not reached lower it again.
 * N3. A counter that a thread waits for from afar costs its changes nothing: a sleeper is woken
 *     when its test is reached, or on a failure.
 * N4. A counter may be freed, and its place be used again, while a thread reads it. The gate
 *     becomes another one before the counts of the next life are there, and a reader looks at the
 *     gate after the counts (event_counter_read()).
 */
#ifndef ENGINE_COUNTER_H
#define ENGINE_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/barrier.h>
#include <base/core.h>
#include <base/counter.h>

struct trigger_list;

struct event_count {
	uint64_t success;
	uint64_t failure;
};

/* One cache line of the tables that application threads and the poll core share. */
struct event_counter {
	_Alignas(64) _Atomic uint64_t gate; /* its handle; 0: it is dead */
	uint64_t success;                   /* the poll core's; read by any thread */
	uint64_t failure;
	/* shared with threads that wait: */
	_Atomic uint64_t wake_at;  /* the least test of sleepers; UINT64_MAX: none */
	_Atomic uint32_t sleepers; /* threads that are about to sleep or asleep on `futex` */
	_Atomic uint32_t futex;    /* futex word */
	/* the poll core's: */
	struct trigger_list *triggers; /* what waits for it (trigger.h); NULL: nothing ever did */
	struct event_counter
		*touched; /* in a list of counters that have changed; NULL: it is not */
};

/* Has a waiting thread what it waits for? */
static inline bool event_count_reached(struct event_count count, uint64_t test)
{
	return count.success >= test || count.failure != 0;
}

/* Application, before the handle exists: the counter begins at 0. In a fresh segment, or after
 * event_counter_close(). */
void event_counter_init(struct event_counter *counter, uint64_t handle)
	CORE_API(event_counter_init);

/* Any thread. Returns false if the handle is stale; then *count means nothing. The counts are read
 * one after the other: a change between them may be seen in one alone. */
static inline bool event_counter_read(
	const struct event_counter *counter, uint64_t handle, struct event_count *count)
{
	/* Acquire: N4, pairs with the release of event_counter_init(). */
	count->success = __atomic_load_n(&counter->success, __ATOMIC_ACQUIRE);
	count->failure = __atomic_load_n(&counter->failure, __ATOMIC_ACQUIRE);
	return atomic_load_explicit(&counter->gate, memory_order_acquire) == handle;
}

/* A thread that is about to sleep: returns what the futex is. barrier_heavy(), a last look at the
 * counter, the sleep and event_counter_leave() follow. */
uint32_t event_counter_enter(struct event_counter *counter, uint64_t test);
void event_counter_leave(struct event_counter *counter);
/* Wakes all sleepers, which look once more. */
void event_counter_wake(struct event_counter *counter);

/* Poll core, all below. */

static inline struct event_count event_counter_now(const struct event_counter *counter)
{
	return (struct event_count){counter->success, counter->failure};
}

/* Triggered operations compare this sum with their thresholds. */
static inline uint64_t event_counter_sum(const struct event_counter *counter)
{
	return counter->success + counter->failure;
}

static inline void event_counter_add(
	struct event_counter *counter, uint64_t success, uint64_t failure)
{
	counter_add(&counter->success, success);
	if (failure != 0)
		counter_add(&counter->failure, failure);
}

static inline void event_counter_set(struct event_counter *counter, struct event_count count)
{
	__atomic_store_n(&counter->success, count.success, __ATOMIC_RELAXED);
	__atomic_store_n(&counter->failure, count.failure, __ATOMIC_RELAXED);
}

/* Is there a sleeper whose test is reached? A barrier (base/barrier.h, light) lies between the last
 * change and this. */
static inline bool event_counter_wakes(const struct event_counter *counter)
{
	return __builtin_expect(
		atomic_load_explicit(&counter->sleepers, memory_order_relaxed) != 0 &&
			event_count_reached(event_counter_now(counter),
				atomic_load_explicit(&counter->wake_at, memory_order_relaxed)),
		0);
}

/* Wakes the sleepers if there is one whose test is reached; after a barrier, as above. */
void event_counter_ring(struct event_counter *counter);
/* The counter is gone for good: its handle is stale, threads that wait leave. What waited for it to
 * trigger was cancelled. */
void event_counter_close(struct event_counter *counter);

#endif
