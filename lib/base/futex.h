/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.h - sleeping on a word until another thread of this process changes it. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <base/timespec.h>

#define FUTEX_ANY_MAX   64 /* words that one thread sleeps on at once; the kernel's limit is 128 */
#define FUTEX_ANY_SLEEP 500000 /* ns, the longest sleep where the kernel has no futex_waitv() */

/* Sleeps while *word is value, for at most timeout ns (UINT64_MAX: for ever). May return early. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout)
{
	const struct timespec limit = timespec_of(timeout);

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout == UINT64_MAX ? NULL : &limit,
		NULL, 0);
}

/* Wakes up to count sleepers. */
static inline void futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

struct futex_sleep {
	_Atomic uint32_t *word;
	uint32_t value;
};

/* Sleeps while each of count words (at most FUTEX_ANY_MAX) is its value, for at most timeout ns
 * (UINT64_MAX: for ever). May return early: kernels before 5.16 sleep a short time and let the
 * caller look. */
static inline void futex_wait_any(
	const struct futex_sleep *sleeps, unsigned count, uint64_t timeout)
{
	struct timespec limit;

#if defined(SYS_futex_waitv) && defined(FUTEX_32)
	struct futex_waitv waits[FUTEX_ANY_MAX];

	if (timeout > INT_MAX * SECOND)
		timeout = INT_MAX * SECOND;
	limit = timespec_of(time_monotonic() + timeout);
	for (unsigned i = 0; i < count; i++)
		waits[i] = (struct futex_waitv){.val = sleeps[i].value,
			.uaddr = (uintptr_t)sleeps[i].word,
			.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
	if (syscall(SYS_futex_waitv, waits, count, 0, &limit, CLOCK_MONOTONIC) >= 0 ||
		(errno != ENOSYS && errno != EPERM))
		return;
	timeout = FUTEX_ANY_SLEEP;
#endif
	(void)sleeps;
	(void)count;
	limit = timespec_of(timeout < FUTEX_ANY_SLEEP ? timeout : FUTEX_ANY_SLEEP);
	syscall(SYS_nanosleep, &limit, NULL); /* no cancellation point, as above (cancel.h) */
}

#endif
