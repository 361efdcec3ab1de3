/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - threads that wait for queues or counters, and PtlAbort, which lets them go.
 *
 * `waits` counts the threads that wait; its highest bit says that PtlAbort was called while there
 * was one. The last thread that leaves clears it with the same step. A thread that has not found
 * out yet whether it must wait is not counted: it sees that `aborts` has changed since it came.
 */
#include <p4/interface.h>

#include <base/clock.h>
#include <host/events.h>

#define ABORTED (UINT32_C(1) << 31)
#define NAP     (50 * MICROSECOND) /* between looks at more objects than a thread can sleep on */

static _Atomic uint32_t waits;
static _Atomic uint32_t aborts; /* calls of PtlAbort */

/* Behind the object that gave something last, in the array that this thread polled last. */
static _Thread_local struct {
	const uint32_t *names;
	unsigned next;
} turns[NAME_KINDS];

static void wait_enter(void)
{
	/* Before it looks at aborts: PtlAbort counts there, and then looks here. */
	atomic_fetch_add_explicit(&waits, 1, memory_order_seq_cst);
}

static void wait_leave(void)
{
	uint32_t seen = atomic_load_explicit(&waits, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&waits, &seen,
		(seen & ~ABORTED) == 1 ? 0 : seen - 1, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Has PtlAbort ended the waits that are going on? */
static bool wait_aborted(const struct wait *wait)
{
	return (atomic_load_explicit(&waits, memory_order_relaxed) & ABORTED) ||
	       atomic_load_explicit(&aborts, memory_order_seq_cst) != wait->aborts;
}

void PtlAbort(void)
{
	uint32_t seen;

	atomic_fetch_add_explicit(&aborts, 1, memory_order_seq_cst);
	seen = atomic_load_explicit(&waits, memory_order_seq_cst);
	do {
		if ((seen & ~ABORTED) == 0)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&waits, &seen, seen | ABORTED, memory_order_seq_cst, memory_order_relaxed));
	if (front_is_open(&portals4))
		interface_rouse(&portals4);
}

/* Looks at the objects in turn. Returns true if that ends the wait. */
static bool objects_look(struct wait *wait)
{
	for (unsigned i = 0; i < wait->count; i++) {
		uint64_t handle;

		wait->found = wait->first + i < wait->count ? wait->first + i
							    : wait->first + i - wait->count;
		handle = call_object(&wait->call, wait->names[wait->found], wait->kind);
		wait->code = handle != 0 ? wait->take(wait, wait->found, handle) : PTL_INTERRUPTED;
		if (wait->code != wait->nothing)
			return true;
	}
	return false;
}

static bool wait_look(void *context)
{
	struct wait *wait = context;

	wait->code = PTL_ABORTED;
	return wait_aborted(wait) || objects_look(wait);
}

/* What a thread does before it is one that waits, if it has one object, which it visits: mostly
 * there is something, or the timeout is 0, and then it needs no more. Of half a round trip with
 * counters that is some 30 ns (scripts/compare, Portals 4 counted). */
static bool wait_first(struct wait *wait, uint64_t timeout)
{
	if (wait->count != 1)
		return false;
	if (wait_look(wait))
		return true;
	if (wait->call.visit.interface->inlined && interface_drive() != 0 && wait_look(wait))
		return true;
	return timeout == 0;
}

/* The objects that a thread can sleep on. */
struct views {
	unsigned count;
	union {
		struct queue_view queues[WAITING_MAX];
		struct counter_view counters[WAITING_MAX];
	};
};

static enum waiting_answer views_await(
	struct wait *wait, const struct views *views, uint64_t timeout)
{
	const struct visit *visit = &wait->call.visit;

	return wait->kind == NAME_QUEUE
		       ? events_await(visit, views->queues, views->count, wait_look, wait, timeout)
		       : counters_await(
				 visit, views->counters, views->count, wait_look, wait, timeout);
}

/* Returns false if a handle is bad. Has the first WAITING_MAX objects in views. */
static bool views_make(const struct wait *wait, struct views *views)
{
	struct segment *segment = wait->call.visit.segment;

	views->count = wait->count < WAITING_MAX ? wait->count : WAITING_MAX;
	for (unsigned i = 0; i < wait->count; i++) {
		uint64_t handle = call_object(&wait->call, wait->names[i], wait->kind);

		if (handle == 0)
			return false;
		if (i >= views->count)
			continue;
		if (wait->kind == NAME_QUEUE)
			views->queues[i] = queue_view(
				segment, segment_queue(segment, handle_index(handle)), handle);
		else
			views->counters[i] = (struct counter_view){
				segment_counter(segment, handle_index(handle)), handle,
				wait->tests[i]};
	}
	return true;
}

static int wait_sleep(struct wait *wait, const struct views *views, uint64_t timeout)
{
	const bool naps = views->count < wait->count;
	const uint64_t start = library_now();
	enum waiting_answer answer;
	uint64_t left = timeout;

	do {
		uint64_t passed = timeout == UINT64_MAX ? 0 : library_now() - start;

		left = passed < timeout ? timeout - passed : 0;
		answer = views_await(wait, views, naps && left > NAP ? NAP : left);
	} while (answer == WAITING_TIMEOUT && naps && left > NAP);
	if (answer == WAITING_CLOSED)
		return PTL_INTERRUPTED;
	return answer == WAITING_TIMEOUT ? wait->nothing : wait->code;
}

static int wait_visiting(struct wait *wait, uint64_t timeout)
{
	struct views views;
	int code;

	if (!views_make(wait, &views))
		return PTL_ARG_INVALID;
	wait_enter();
	code = wait_sleep(wait, &views, timeout);
	wait_leave();
	return code;
}

int wait_run(struct wait *wait, uint64_t timeout)
{
	int code;

	if (!front_is_open(&portals4))
		return PTL_NO_INIT;
	if (!wait->names || wait->count == 0 || !wait->event || !wait->which)
		return PTL_ARG_INVALID;
	code = call_enter(&wait->call, wait->names[0], wait->kind);
	if (code != PTL_OK)
		return code;
	wait->aborts = atomic_load_explicit(&aborts, memory_order_relaxed);
	if (turns[wait->kind].names == wait->names && turns[wait->kind].next < wait->count)
		wait->first = turns[wait->kind].next;
	code = wait_first(wait, timeout) ? wait->code : wait_visiting(wait, timeout);
	visit_leave(&wait->call.visit);
	if (code == PTL_OK || code == PTL_EQ_DROPPED) {
		*wait->which = wait->found;
		turns[wait->kind].names = wait->names;
		turns[wait->kind].next = wait->found + 1;
	}
	return code;
}
