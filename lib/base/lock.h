/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - a lock between threads of this process: taken and released without a call where no other
 * thread wants it, and released without an atomic instruction. It is not fair, and a thread that
 * holds it must not take it again.
 *
 *     owner                          waiter
 *     held = 0                       waiters++
 *     (light)                        barrier_heavy()
 *     looks at waiters               looks at held
 *
 * The owner looks at waiters when the lock may be held by another thread already, and may wake a
 * thread that does not wait for it. So the memory of a lock is never freed: it may become another
 * lock, and is not set to zero before. Where barrier_light() is a fence, waiters has LOCK_FENCES,
 * so that an owner needs no look at barrier_cheap.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>

#include <base/barrier.h>
#include <base/futex.h>

#define LOCK_FENCES (UINT32_C(1) << 31)

struct lock {
	_Atomic uint32_t held;
	_Atomic uint32_t waiters; /* threads in lock_await(), and LOCK_FENCES */
};

/* Once barrier_start() was called, and before the first lock_take(), of a lock that is zero. */
static inline void lock_start(struct lock *lock)
{
	if (!barrier_cheap)
		atomic_fetch_or_explicit(&lock->waiters, LOCK_FENCES, memory_order_relaxed);
}

/* Returns true if no thread had it, and the caller has it now. */
static inline bool lock_try(struct lock *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(
		&lock->held, &free, 1, memory_order_acquire, memory_order_relaxed);
}

static __attribute__((noinline, unused)) void lock_await(struct lock *lock)
{
	atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
	barrier_heavy();
	while (!lock_try(lock))
		futex_wait(&lock->held, 1, UINT64_MAX);
	atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
}

static inline void lock_take(struct lock *lock)
{
	if (!lock_try(lock))
		lock_await(lock);
}

static __attribute__((noinline, unused)) void lock_wake(struct lock *lock)
{
	barrier_light();
	if ((atomic_load_explicit(&lock->waiters, memory_order_relaxed) & ~LOCK_FENCES) != 0)
		futex_wake(&lock->held, 1);
}

static inline void lock_give(struct lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0, 0))
		lock_wake(lock);
}

#endif
