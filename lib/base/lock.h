/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - a lock between threads of this process. It is not fair, and a thread that holds it must
 * not take it again.
 *
 * A thread that alone uses a lock becomes its owner. The owner takes and releases the lock without
 * a call and without an atomic instruction, which saves 12 % of the time of a message of MX in a
 * window, and 2 % to 3 % of one that is answered. Another thread that comes ends this:
 *
 *     owner                          another thread
 *     inside = 1                     sets held, by an atomic instruction
 *     (light)                        owner = LOCK_REVOKED
 *     looks at owner                 barrier_heavy()
 *                                    waits until inside is 0
 *                                    owner = 0
 *
 * L1. Only a thread that has set held changes owner.
 * L2. A thread has the lock if it has set inside and then found that it is the owner; or if it has
 *     set held, and owner is 0. The other thread sees that the owner is inside, or the owner sees
 *     that it is revoked. Then the owner clears inside, and takes the lock as the other thread
 *     does.
 * L3. The owner is known by its thread pointer. A new thread may get the pointer of an owner that
 *     has ended, and is the owner then. This is safe: the ended thread is not inside.
 * L4. A thread becomes the owner when it has taken the lock LOCK_SETTLES times in a row, so that
 *     threads that share a lock seldom pay for heavy barriers. lock_try() ends an ownership, but
 *     does not count: the next lock_take() of the same thread makes it the owner again.
 * L5. Only one thread ever owns a lock, the first that could. It alone writes inside: a thread that
 *     has found itself the owner, and then slept for long, may set and clear inside at any time.
 * L6. A thread that waits increments waiters and then looks again, behind a heavy barrier. A thread
 *     that releases the lock then looks at waiters, when another thread may have the lock already.
 *     It may wake a thread that does not wait for the lock. So the memory of a lock is never freed:
 *     it may become another lock, and is not set to zero before.
 * L7. Where barrier_light() is a fence, a lock has no owner, and waiters has LOCK_FENCES, so that a
 *     thread that releases the lock needs no look at barrier_cheap.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <base/barrier.h>
#include <base/futex.h>

#define LOCK_FENCES  (UINT32_C(1) << 31)
#define LOCK_REVOKED 1    /* no thread's pointer */
#define LOCK_SETTLES 1024 /* atomic instructions take longer than one heavy barrier does */

struct lock {
	_Atomic uintptr_t owner; /* 0: none */
	_Atomic uint32_t inside; /* the owner is */
	_Atomic uint32_t held;
	_Atomic uint32_t waiters; /* threads that wait until held or inside is 0, and LOCK_FENCES */
	/* They belong to the thread that has set held. */
	uint32_t takes;      /* L4: in a row, by the candidate */
	uintptr_t candidate; /* L5: the thread that may become the owner, */
	bool owned;          /* and has been it */
};

static inline uintptr_t lock_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* Once barrier_start() was called, and before the first lock_take(), of a lock that is zero. */
static inline void lock_start(struct lock *lock)
{
	if (!barrier_cheap)
		atomic_fetch_or_explicit(&lock->waiters, LOCK_FENCES, memory_order_relaxed);
}

/* Returns true if no thread had set held, and the caller has set it now. */
static inline bool lock_hold(struct lock *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(
		&lock->held, &free, 1, memory_order_acquire, memory_order_relaxed);
}

/* The caller has set held, and the lock has an owner. Afterwards it has none. */
static __attribute__((noinline, unused)) void lock_revoke(struct lock *lock)
{
	atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
	atomic_store_explicit(&lock->owner, LOCK_REVOKED, memory_order_relaxed);
	barrier_heavy();
	while (atomic_load_explicit(&lock->inside, memory_order_acquire) != 0)
		futex_wait(&lock->inside, 1, UINT64_MAX);
	atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
}

static __attribute__((noinline, unused)) void lock_wake(struct lock *lock, _Atomic uint32_t *word)
{
	barrier_light();
	if ((atomic_load_explicit(&lock->waiters, memory_order_relaxed) & ~LOCK_FENCES) != 0)
		futex_wake(word, 1);
}

static inline void lock_clear(struct lock *lock, _Atomic uint32_t *word)
{
	atomic_store_explicit(word, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0, 0))
		lock_wake(lock, word);
}

/* L4, L5. The caller has the lock, and is not its owner. */
static inline void lock_settle(struct lock *lock)
{
	const uintptr_t self = lock_self();

	if (lock->candidate != self) {
		if (!lock->owned)
			lock->candidate = self;
		lock->takes = 0;
	} else if (lock->takes < LOCK_SETTLES) {
		lock->takes++;
	} else if (barrier_cheap) {
		lock->owned = true;
		atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
		atomic_store_explicit(&lock->owner, self, memory_order_release);
		lock_clear(lock, &lock->held);
	}
}

/* Takes the lock for a thread that is not its owner. */
static __attribute__((noinline, unused)) void lock_await(struct lock *lock)
{
	if (!lock_hold(lock)) {
		atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
		barrier_heavy();
		while (!lock_hold(lock))
			futex_wait(&lock->held, 1, UINT64_MAX);
		atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
	}
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != 0)
		lock_revoke(lock);
	lock_settle(lock);
}

/* L2. The caller has set inside, and was revoked before. */
static __attribute__((noinline, unused)) void lock_retreat(struct lock *lock)
{
	lock_clear(lock, &lock->inside);
	lock_await(lock);
}

static inline void lock_take(struct lock *lock)
{
	const uintptr_t self = lock_self();

	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != self) {
		lock_await(lock);
		return;
	}
	atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&lock->owner, memory_order_relaxed) != self, 0))
		lock_retreat(lock);
}

/* Returns true if the caller has the lock now; false if a thread had it. May wait for an owner that
 * takes it meanwhile. */
static inline bool lock_try(struct lock *lock)
{
	if (atomic_load_explicit(&lock->inside, memory_order_relaxed) != 0 || !lock_hold(lock))
		return false;
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != 0)
		lock_revoke(lock);
	return true;
}

static __attribute__((noinline, unused)) void lock_release(struct lock *lock)
{
	lock_clear(lock, &lock->held);
}

static inline void lock_give(struct lock *lock)
{
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != 0)
		lock_clear(lock, &lock->inside);
	else
		lock_release(lock);
}

#endif
