/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.h - words that one thread writes while others read them, at less than what atomics cost.
 *
 * The machines that this is for read and write an aligned word as a whole. Where no order is
 * promised, the writer may therefore add to it as to any variable: of an atomic load and an atomic
 * store the compilers make three instructions instead of one. The thread sanitizer would call it a
 * race, so for that one RACES_ARE_ATOMIC is defined.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define RACES_ARE_ATOMIC
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_ARE_ATOMIC
#endif
#endif

/* The one writer. */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
#ifdef RACES_ARE_ATOMIC
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
#else
	*counter += n;
#endif
}

/* Any thread. */
static inline uint64_t counter_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
