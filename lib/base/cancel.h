/* SPDX-License-Identifier: BSD-3-Clause */
/* cancel.h - calls are no cancellation points: a thread that pthread_cancel() ended inside one
 * would take along what it holds, a lock, the progress lock of an engine, a place among the
 * sleepers.
 *
 * What is held there says so to the C library, which costs a few instructions. System calls made by
 * syscall() need it not.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <pthread.h>
#include <sys/eventfd.h>

/* From now on the calling thread is not ended. Returns what cancel_release() is to be given. */
static inline int cancel_hold(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_release(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* A mutex whose holder is not ended. */
struct cancel_lock {
	pthread_mutex_t mutex;
	int before; /* of the thread that has it: what cancel_release() is to be given */
};
#define CANCEL_LOCK_INITIAL                                                                        \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

static inline void cancel_lock_take(struct cancel_lock *lock)
{
	const int before = cancel_hold();

	pthread_mutex_lock(&lock->mutex);
	lock->before = before;
}

static inline void cancel_lock_give(struct cancel_lock *lock)
{
	const int before = lock->before;

	pthread_mutex_unlock(&lock->mutex);
	cancel_release(before);
}

/* Makes an eventfd readable. */
static inline void cancel_event_write(int descriptor)
{
	const int cancel = cancel_hold();

	eventfd_write(descriptor, 1);
	cancel_release(cancel);
}

#endif
