/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - the thread that owns an object without locks. Debug builds assert that the owner is the
 * thread that calls.
 *
 * An object may pass from thread to thread: what tells the next thread that the object is free (a
 * progress lock, a parked poll thread) orders the accesses, and the next thread then takes it.
 */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef NDEBUG
#define OWNERS false
#else
#define OWNERS true /* are they noted and checked? */
#endif

/* It is there in each build: tests have assertions where the library that they look into has
 * none. */
struct owner {
	pthread_t thread;
};

/* From here on the object is the calling thread's. */
static inline void owner_take(struct owner *owner)
{
	if (OWNERS)
		owner->thread = pthread_self();
}

static inline void owner_check(const struct owner *owner)
{
	(void)owner;
	assert(pthread_equal(owner->thread, pthread_self()));
}

#endif
