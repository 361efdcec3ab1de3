/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - see counter.h. */
#include <engine/counter.h>

#include <assert.h>
#include <limits.h>

#include <base/futex.h>
#include <base/handle.h>
#include <base/trace.h>

static_assert(sizeof(struct event_counter) == 64, "a cache line");

void event_counter_init(struct event_counter *counter, uint64_t handle)
{
	/* Release: N4. A thread that reads these counts sees that the gate before was cleared. */
	__atomic_store_n(&counter->success, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&counter->failure, 0, __ATOMIC_RELEASE);
	/* Sleepers of the life before were woken, and find the gate changed. */
	atomic_store_explicit(&counter->wake_at, UINT64_MAX, memory_order_relaxed);
	/* Release: a thread that sees the gate sees the counter behind it. */
	atomic_store_explicit(&counter->gate, handle, memory_order_release);
}

uint32_t event_counter_enter(struct event_counter *counter, uint64_t test)
{
	uint64_t wake_at;
	uint32_t futex;

	atomic_fetch_add_explicit(&counter->sleepers, 1, memory_order_relaxed);
	/* Acquire: N2, pairs with the release of event_counter_ring(). */
	futex = atomic_load_explicit(&counter->futex, memory_order_acquire);
	wake_at = atomic_load_explicit(&counter->wake_at, memory_order_relaxed);
	while (test < wake_at)
		if (atomic_compare_exchange_weak_explicit(&counter->wake_at, &wake_at, test,
			    memory_order_relaxed, memory_order_relaxed))
			break;
	return futex;
}

void event_counter_leave(struct event_counter *counter)
{
	atomic_fetch_sub_explicit(&counter->sleepers, 1, memory_order_relaxed);
}

void event_counter_wake(struct event_counter *counter)
{
	atomic_fetch_add_explicit(&counter->futex, 1, memory_order_release);
	futex_wake(&counter->futex, INT_MAX);
}

void event_counter_ring(struct event_counter *counter)
{
	if (!event_counter_wakes(counter))
		return;
	atomic_store_explicit(&counter->wake_at, UINT64_MAX, memory_order_relaxed);
	event_counter_wake(counter);
	trace(TRACE_WAKE,
		handle_interface(atomic_load_explicit(&counter->gate, memory_order_relaxed)), 0,
		event_counter_sum(counter));
}

void event_counter_close(struct event_counter *counter)
{
	atomic_store_explicit(&counter->gate, 0, memory_order_release);
	/* N4: the counts of the next life are stored behind this. And a thread that enters either
	 * finds the gate changed, or is woken. */
	atomic_thread_fence(memory_order_seq_cst);
	event_counter_wake(counter);
}
