/* SPDX-License-Identifier: BSD-3-Clause */
/* waiting.c - see waiting.h. */
#include <host/waiting.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/barrier.h>
#include <base/clock.h>
#include <host/patience.h>

#define SLEEP_INLINE     (50 * MICROSECOND) /* of a thread that drives, at first; doubled up to */
#define SLEEP_INLINE_MAX (500 * MICROSECOND)
#define COMPANY_ROUNDS   64    /* of PATIENCE_SPINS each: about a millisecond */
#define LOWER_TRIES      10000 /* yields to a thread that was preempted before it wrote */

static bool segment_is_closed(const struct segment *segment)
{
	return atomic_load_explicit(&segment->closed, memory_order_relaxed) != 0;
}

/* bells: of the counters, one behind the other. */
static void sleepers_enter(const struct waiting *waiting, struct futex_sleep *bells)
{
	for (unsigned i = 0; i < waiting->counter_count; i++) {
		const struct counter_view *view = &waiting->counters[i];

		bells[i].word = &view->counter->bell;
		bells[i].value = event_counter_enter(view->counter, view->test);
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

/* Sleeps until a bell rings, for at most limit ns, unless there is something to see. Returns true
 * if there was. */
static bool waiting_sleep(const struct waiting *waiting, uint64_t limit)
{
	struct futex_sleep bells[WAITING_MAX];
	const unsigned total = waiting->count + waiting->counter_count;
	bool found;

	sleepers_enter(waiting, bells + waiting->count);
	barrier_heavy();
	for (unsigned i = 0; i < waiting->count; i++) {
		bells[i].word = &waiting->queues[i].queue->bell;
		bells[i].value = atomic_load_explicit(bells[i].word, memory_order_acquire);
	}
	found = waiting->look(waiting->context);
	if (!found && !segment_is_closed(waiting->segment) &&
		(!waiting->rest || waiting->rest() == 0)) {
		if (total == 1)
			futex_wait(bells[0].word, bells[0].value, limit);
		else
			futex_wait_any(bells, total, limit);
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
			queue_has_news(&waiting->queues[i]))
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

/* Sleeps for at most limit ns. Returns true if something was found. *slept: on bells (W1). */
static bool waiting_rest(const struct waiting *waiting, uint64_t limit, bool *slept)
{
	struct over over = {.waiting = waiting};

	if (waiting->rest && waiting->sleep(over_look, &over, limit) != SEAT_UNSLEPT)
		return over.found;
	*slept = true;
	return waiting_sleep(waiting, limit);
}

/* A moment of a thread that has found nothing to do. Returns false if it is time to sleep. */
static bool waiting_wait(const struct waiting *waiting, struct patience *patience)
{
	enum engine_company company;

	if (waiting->rest && patience->turns == 0 && patience_cpus() < 2)
		patience->turns = PATIENCE_SPINS;
	if (!waiting->rest || patience->turns == 0 || patience->turns % PATIENCE_SPINS != 0)
		return patience_wait(patience);
	company = waiting->company();
	if (company == COMPANY_UNKNOWN)
		return patience_wait(patience);
	if (company == COMPANY_NONE || ++patience->rounds == COMPANY_ROUNDS)
		return false;
	patience->turns = 1;
	return true;
}

/* Waits until something is found, or the time is over, in sleeps and looks. */
static enum waiting_answer waiting_loop(const struct waiting *waiting, bool *slept)
{
	uint64_t start = waiting->timeout == UINT64_MAX ? 0 : waiting->now(NULL);
	bool alone = waiting->drive && !waiting->rest; /* nobody drives while this thread sleeps */
	uint64_t nap = alone ? SLEEP_INLINE : UINT64_MAX;
	uint64_t left = waiting->timeout;
	struct patience patience = {0};

	for (;;) {
		bool drove;

		if (waiting->look(waiting->context))
			return WAITING_FOUND;
		if (segment_is_closed(waiting->segment))
			return WAITING_CLOSED;
		drove = waiting->drive && waiting->drive() != 0;
		if (drove) {
			patience = (struct patience){0};
			nap = alone ? SLEEP_INLINE : UINT64_MAX;
		}
		if (waiting->timeout != UINT64_MAX) {
			uint64_t passed = waiting->now(NULL) - start;

			if (passed >= waiting->timeout)
				return drove && waiting->look(waiting->context) ? WAITING_FOUND
										: WAITING_TIMEOUT;
			left = waiting->timeout - passed;
		}
		if (drove || waiting_wait(waiting, &patience))
			continue;
		if (waiting_rest(waiting, nap < left ? nap : left, slept))
			return WAITING_FOUND;
		if (waiting->rest)
			patience = (struct patience){0};
		if (alone && nap < SLEEP_INLINE_MAX)
			nap = nap * 2 < SLEEP_INLINE_MAX ? nap * 2 : SLEEP_INLINE_MAX;
	}
}

enum waiting_answer waiting_run(const struct waiting *waiting)
{
	bool slept = false;
	enum waiting_answer answer = waiting_loop(waiting, &slept);

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

	for (unsigned i = 0; i < LOWER_TRIES && eventfd_read(queue_event(queue), &count) != 0; i++)
		sched_yield();
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
	if (queue_has_news(view) || segment_is_closed(segment))
		queue_raise(queue);
}

void queue_lower(const struct queue_view *view, const struct segment *segment)
{
	if (queue_enter(view))
		watch_lower(view, segment);
	queue_leave(view);
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
	int event = queue_enter(view) ? event_make(view, segment) : -1;

	if (event >= 0)
		event = fcntl(event, F_DUPFD_CLOEXEC, 0);
	queue_leave(view);
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
