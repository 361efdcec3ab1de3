/* SPDX-License-Identifier: BSD-3-Clause */
/* waiting.c - see waiting.h. */
#include <host/waiting.h>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_pause.h>

#include <base/barrier.h>
#include <base/cancel.h>
#include <base/clock.h>
#include <base/backoff.h>
#include <base/spinning.h>
#include <host/poller.h>

#define SLEEP_INLINE     (50 * MICROSECOND) /* of a thread that drives, at first; doubled up to */
#define SLEEP_INLINE_MAX (500 * MICROSECOND)
#define LOWER_TRIES      10000 /* looks, and naps for a thread that was preempted before it wrote */

static bool segment_is_closed(const struct segment *segment)
{
	return atomic_load_explicit(&segment->closed, memory_order_relaxed) != 0;
}

/* futexes: of the counters, one behind the other. */
static void sleepers_enter(const struct waiting *waiting, struct futex_sleep *futexes)
{
	for (unsigned i = 0; i < waiting->counter_count; i++) {
		const struct counter_view *view = &waiting->counters[i];

		futexes[i].word = &view->counter->futex;
		futexes[i].value = event_counter_enter(view->counter, view->test);
	}
	for (unsigned i = 0; i < waiting->count; i++)
		atomic_fetch_add_explicit(
			&waiting->queues[i].queue->sleepers, 1, memory_order_relaxed);
}

static void sleepers_leave(const struct waiting *waiting)
{
	for (unsigned i = 0; i < waiting->count; i++)
		atomic_fetch_sub_explicit(
			&waiting->queues[i].queue->sleepers, 1, memory_order_relaxed);
	for (unsigned i = 0; i < waiting->counter_count; i++)
		event_counter_leave(waiting->counters[i].counter);
}

/* Sleeps until a futex changes, for at most limit ns, unless there is something to see. Returns
 * true if there was. */
static bool waiting_sleep(const struct waiting *waiting, uint64_t limit)
{
	struct futex_sleep futexes[WAITING_MAX];
	const unsigned total = waiting->count + waiting->counter_count;
	bool found;

	sleepers_enter(waiting, futexes + waiting->count);
	barrier_heavy();
	for (unsigned i = 0; i < waiting->count; i++) {
		futexes[i].word = &waiting->queues[i].queue->futex;
		futexes[i].value = atomic_load_explicit(futexes[i].word, memory_order_acquire);
	}
	found = waiting->look(waiting->context);
	if (!found && !segment_is_closed(waiting->segment) &&
		(!waiting->rest || waiting->rest() == 0)) {
		if (total == 1)
			futex_wait(futexes[0].word, futexes[0].value, limit);
		else
			futex_wait_any(futexes, total, limit);
	}
	sleepers_leave(waiting);
	return found;
}

/* W1. */
static void wake_up_pass_on(const struct waiting *waiting)
{
	for (unsigned i = 0; i < waiting->count && waiting->count > 1; i++) {
		struct queue *queue = waiting->queues[i].queue;

		if (atomic_load_explicit(&queue->sleepers, memory_order_relaxed) != 0 &&
			queue_has_events(&waiting->queues[i]))
			queue_wake(queue, 1);
	}
}

/* What a thread that sleeps in the helper's place must not oversleep. */
struct over {
	const struct waiting *waiting;
	bool found;
};

static bool over_look(void *context)
{
	struct over *over = context;

	over->found = over->waiting->look(over->waiting->context);
	return over->found || segment_is_closed(over->waiting->segment);
}

/* Of the calling thread, over all its waits. */
static _Thread_local struct spinning spinning;

/* Something has come, or the wait is over. */
static void waiting_end(const struct waiting *waiting)
{
	spinning_end(&spinning, spinning.slept != 0 ? waiting->now(NULL) : 0);
}

/* A look was in vain. Returns false if it is time to sleep. */
static bool waiting_spins(const struct waiting *waiting, uint64_t now)
{
	if (!spinning_goes_on(&spinning, now))
		return false;
	if (doorbell_is_here(&waiting->segment->doorbell) ||
		(waiting->shares_cpu && spinning_asks(&spinning, now) && waiting->shares_cpu())) {
		spinning_stop(&spinning, now);
		return false;
	}
	rte_pause();
	return true;
}

/* Sleeps for at most limit ns; on futexes (W1) for at most nap ns, and *slept is set. Returns true
 * if something was found. */
static bool waiting_rest(const struct waiting *waiting, uint64_t limit, uint64_t nap, bool *slept)
{
	struct over over = {.waiting = waiting};
	enum progress_slept how =
		waiting->sleep ? waiting->sleep(over_look, &over, limit) : PROGRESS_UNSLEPT;

	if (how == PROGRESS_WORKED)
		waiting_end(waiting);
	if (how != PROGRESS_UNSLEPT)
		return over.found;
	*slept = true;
	return waiting_sleep(waiting, nap < limit ? nap : limit);
}

/* Waits until something is found, or the time is over, in sleeps and looks. */
static enum waiting_answer waiting_loop(const struct waiting *waiting, bool *slept)
{
	uint64_t start = waiting->timeout == UINT64_MAX ? 0 : waiting->now(NULL);
	bool alone = waiting->drive && !waiting->rest; /* nobody drives while this thread sleeps */
	uint64_t nap = alone ? SLEEP_INLINE : UINT64_MAX;
	uint64_t left = waiting->timeout;

	for (;;) {
		uint64_t now;
		bool drove;

		if (waiting->look(waiting->context))
			return WAITING_FOUND;
		if (segment_is_closed(waiting->segment))
			return WAITING_CLOSED;
		drove = waiting->drive && waiting->drive() != 0;
		if (drove) {
			waiting_end(waiting);
			nap = alone ? SLEEP_INLINE : UINT64_MAX;
			if (waiting->timeout == UINT64_MAX)
				continue;
		}
		now = waiting->now(NULL);
		if (waiting->timeout != UINT64_MAX) {
			uint64_t passed = now - start;

			if (passed >= waiting->timeout)
				return drove && waiting->look(waiting->context) ? WAITING_FOUND
										: WAITING_TIMEOUT;
			left = waiting->timeout - passed;
		}
		if (drove || waiting_spins(waiting, now))
			continue;
		if (waiting_rest(waiting, left, nap, slept))
			return WAITING_FOUND;
		if (alone && nap < SLEEP_INLINE_MAX)
			nap = nap * 2 < SLEEP_INLINE_MAX ? nap * 2 : SLEEP_INLINE_MAX;
	}
}

enum waiting_answer waiting_run(const struct waiting *waiting)
{
	bool slept = false;
	enum waiting_answer answer = waiting_loop(waiting, &slept);

	waiting_end(waiting);
	if (slept)
		wake_up_pass_on(waiting);
	return answer;
}

/* --- descriptors */

/* W4. Returns false if the queue is gone. */
static bool queue_enter(const struct queue_view *view)
{
	atomic_fetch_add_explicit(&view->queue->waiters, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with that of queue_close() */
	return atomic_load_explicit(&view->queue->gate, memory_order_acquire) == view->handle;
}

static void queue_leave(const struct queue_view *view)
{
	/* Release: pairs with the thread that frees the queue, and looks at `waiters`. */
	atomic_fetch_sub_explicit(&view->queue->waiters, 1, memory_order_release);
}

/* W2. A program that has read the descriptor itself, which it should not, only waits a little. */
static void event_read(const struct queue *queue)
{
	eventfd_t count;
	unsigned looks = 0;

	while (looks < LOWER_TRIES && eventfd_read(queue_event(queue), &count) != 0)
		backoff(&looks);
}

static void watch_lower(const struct queue_view *view, const struct segment *segment)
{
	struct queue *queue = view->queue;
	uint32_t raised = WATCH_RAISED;

	if (!atomic_compare_exchange_strong_explicit(&queue->watch, &raised, WATCH_LOWERING,
		    memory_order_acquire, memory_order_relaxed))
		return;
	event_read(queue);
	atomic_fetch_add_explicit(&queue->sleepers, 1, memory_order_relaxed);
	atomic_store_explicit(&queue->watch, WATCH_ARMED, memory_order_release);
	/* pairs with the poll core's, between publishing an event and looking at sleepers */
	barrier_heavy();
	if (queue_has_events(view) || segment_is_closed(segment))
		queue_raise(queue);
}

void queue_lower(const struct queue_view *view, const struct segment *segment)
{
	const int cancel = cancel_hold();

	if (queue_enter(view))
		watch_lower(view, segment);
	queue_leave(view);
	cancel_release(cancel);
}

/* The eventfd of a queue, made if there is none; -1: it cannot be. */
static int event_make(const struct queue_view *view, const struct segment *segment)
{
	struct queue *queue = view->queue;
	int event = queue_event(queue);

	if (event >= 0)
		return event;
	event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	if (event < 0)
		return -1;
	atomic_store_explicit(&queue->event, event + 1, memory_order_relaxed);
	/* Release: a thread that sees the state finds the eventfd. */
	atomic_store_explicit(&queue->watch, WATCH_RAISED, memory_order_release);
	watch_lower(view, segment);
	return event;
}

int queue_watch(const struct queue_view *view, const struct segment *segment)
{
	const int cancel = cancel_hold();
	int event = queue_enter(view) ? event_make(view, segment) : -1;

	if (event >= 0)
		event = fcntl(event, F_DUPFD_CLOEXEC, 0);
	queue_leave(view);
	cancel_release(cancel);
	return event;
}

void queue_unwatch(struct queue *queue)
{
	int event = queue_event(queue);

	if (event < 0)
		return;
	if (atomic_exchange_explicit(&queue->watch, WATCH_NONE, memory_order_relaxed) ==
		WATCH_ARMED)
		atomic_fetch_sub_explicit(&queue->sleepers, 1, memory_order_relaxed);
	atomic_store_explicit(&queue->event, 0, memory_order_relaxed);
	close(event);
}
