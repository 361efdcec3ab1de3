/* SPDX-License-Identifier: BSD-3-Clause */
/* events.h - event queues for calls: made, waited for and given up during a visit. Any thread. */
#ifndef HOST_EVENTS_H
#define HOST_EVENTS_H

#include <stdint.h>

#include <base/core.h>
#include <host/visitor.h>
#include <host/waiting.h>

/* The queue that is visited. */
static inline struct queue *visit_queue(const struct visit *visit)
{
	return (struct queue *)(uintptr_t)visit->gate;
}

/* Makes a queue of so many events on the interface that is visited. OK or NO_MEMORY. */
enum answer events_make(const struct visit *visit, uint64_t count, uint64_t *handle)
	CORE_API(events_make);
/* Frees the queue that is visited, once the threads that wait for it have left. OK or GONE. */
enum answer events_free(const struct visit *visit) CORE_API(events_free);

/* Waits until look(context) returns true, for at most timeout ns: it looks at these queues of the
 * interface that is visited. Inline, the thread drives meanwhile. */
enum waiting_answer events_await(const struct visit *visit, const struct queue_view *queues,
	unsigned count, bool (*look)(void *context), void *context, uint64_t timeout)
	CORE_API(events_await);

/* The same for counters of the interface that is visited, at most WAITING_MAX. */
enum waiting_answer counters_await(const struct visit *visit, const struct counter_view *counters,
	unsigned count, bool (*look)(void *context), void *context, uint64_t timeout)
	CORE_API(counters_await);

/* A descriptor of the queue that is visited, for the caller; -1, with errno: there is none to be
 * had, or the queue is gone. */
int events_watch(const struct visit *visit, uint64_t handle) CORE_API(events_watch);

#endif
