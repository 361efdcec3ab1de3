/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - a lock of one word, between threads of this process: taken and released without a call
 * where no other thread wants it. Zero is a lock that nobody holds. It is not fair, and a thread
 * that holds it must not take it again.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>

#include <base/futex.h>

enum lock_state { LOCK_FREE, LOCK_HELD, LOCK_WANTED /* held, and others may sleep */ };

static __attribute__((noinline, unused)) void lock_await(_Atomic uint32_t *lock)
{
	/* Whether more sleep is not known from here on, so the word says that they may. */
	while (atomic_exchange_explicit(lock, LOCK_WANTED, memory_order_acquire) != LOCK_FREE)
		futex_wait(lock, LOCK_WANTED, UINT64_MAX);
}

/* Returns true if no thread had it, and the caller has it now. */
static inline bool lock_try(_Atomic uint32_t *lock)
{
	uint32_t expected = LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(
		lock, &expected, LOCK_HELD, memory_order_acquire, memory_order_relaxed);
}

static inline void lock_take(_Atomic uint32_t *lock)
{
	if (!lock_try(lock))
		lock_await(lock);
}

static inline void lock_give(_Atomic uint32_t *lock)
{
	if (atomic_exchange_explicit(lock, LOCK_FREE, memory_order_release) == LOCK_WANTED)
		futex_wake(lock, 1);
}

#endif
