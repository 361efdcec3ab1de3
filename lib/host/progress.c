/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - see progress.h. */
#include <host/progress.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_pause.h>

#include <base/futex.h>
#include <base/log.h>
#include <base/remedy.h>
#include <base/timespec.h>
#include <engine/statistics.h>

#define HELPER_AWAY    (50 * MICROSECOND) /* without a look for frames: the program is elsewhere */
#define HELPER_NAP     (50 * MICROSECOND) /* the first; doubled while the program drives, up to */
#define HELPER_NAP_MAX (800 * MICROSECOND)
#define HELPER_LOOK    (500 * MICROSECOND) /* between looks at a port that cannot signal */
#define HELPER_AWAIT   (100 * MICROSECOND) /* for the helper to release the lock, at most */
#define SLEEP_MAX      SECOND

struct helper {
	struct progress *progress;
	const struct clock *clock;
	/* epoll descriptor that the thread always sleeps on: the timer and the port; -1: the helper
	 * is absent, */
	int set;
	int timer;  /* and has no timer; S3 */
	int wakeup; /* eventfd that wakes the thread in its place (S4) */
	_Atomic bool stopping;
	/* Of the thread that holds the lock. */
	struct segment *segment;
	bool external;
	int port;     /* the descriptor of the port in the set; -1: none */
	bool watches; /* the port may wake the thread by the set */
	bool relieve; /* the last sleep in its place was a long one */
	/* when the last one began, ns; any thread reads it */
	_Atomic uint64_t lent;
};

/* --- the helper's sleep --- */

/* The thread wakes then, at the latest; 0: no more by the timer. */
static void helper_set_timer(const struct helper *helper, uint64_t time)
{
	const struct itimerspec when = {.it_value = timespec_of(time)};

	if (helper->timer >= 0)
		timerfd_settime(helper->timer, 0, &when, NULL);
}

/* The thread wakes once, by the set, when this descriptor becomes readable, or is. Returns false if
 * it cannot. */
static bool helper_watch(struct helper *helper, int port)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

	/* A descriptor that was closed has left the set, and its number may be another one's. */
	if (helper->port >= 0 && helper->port != port)
		epoll_ctl(helper->set, EPOLL_CTL_DEL, helper->port, NULL);
	helper->port = port;
	helper->watches =
		port >= 0 && (epoll_ctl(helper->set, EPOLL_CTL_MOD, port, &event) == 0 ||
				     (errno == ENOENT && epoll_ctl(helper->set, EPOLL_CTL_ADD, port,
								 &event) == 0));
	return helper->watches;
}

/* port: -1, or it wakes the thread as well; limit: ns, UINT64_MAX: none. */
static void helper_sleep(const struct helper *helper, int port, uint64_t limit)
{
	struct pollfd descriptors[] = {
		{.fd = helper->set, .events = POLLIN}, {.fd = port, .events = POLLIN}};
	const struct timespec time = timespec_of(limit);
	struct epoll_event events[2];

	ppoll(descriptors, 2, limit == UINT64_MAX ? NULL : &time, NULL);
	/* What the set has told of leaves it. */
	if (descriptors[0].revents != 0)
		epoll_wait(helper->set, events, 2, 0);
}

/* The port does not wake the thread by the set. */
static void helper_unwatch(struct helper *helper)
{
	struct epoll_event event = {.events = 0};

	if (helper->watches)
		epoll_ctl(helper->set, EPOLL_CTL_MOD, helper->port, &event);
	helper->watches = false;
}

/* --- the progress lock --- */

/* For the holder of the lock: makes the port signal. Returns for how long there will be nothing to
 * do, ns; 0: there is something, and the port does not signal. */
static uint64_t progress_ready(struct progress *progress, int *port)
{
	uint64_t leisure;

	*port = engine_interrupt(progress->engine, true);
	if (engine_poll(progress->engine) == 0) {
		leisure = engine_deadline(progress->engine);
		if (leisure >= MICROSECOND)
			return leisure < SLEEP_MAX ? leisure : SLEEP_MAX;
	}
	engine_interrupt(progress->engine, false);
	return 0;
}

/* For the holder of the lock, after progress_ready(): leaves the lock armed, or lent. Returns false
 * if a thread has called; then the port does not signal, and the caller still holds the lock. */
static bool progress_leave_as(struct progress *progress, uint32_t state)
{
	const bool cancels = progress->cancels;
	const int cancel = progress->cancel;
	uint32_t taken = PROGRESS_TAKEN;

	counter_add(&segment_counters(progress->helper->segment)->sleeps, 1);
	/* Release: as progress_try_leave(). */
	if (atomic_compare_exchange_strong_explicit(
		    &progress->state, &taken, state, memory_order_release, memory_order_relaxed)) {
		if (cancels)
			cancel_release(cancel);
		return true;
	}
	engine_interrupt(progress->engine, false);
	return false;
}

/* For another thread than the helper, which holds the lock: arms it for the helper and releases it
 * (S3). Returns false if there is something to do; then the caller still holds the lock. */
static bool progress_arm(struct progress *progress)
{
	struct helper *helper = progress->helper;
	int port;
	uint64_t leisure = progress_ready(progress, &port);

	if (leisure == 0)
		return false;
	if (!helper_watch(helper, port) && helper->external && leisure > HELPER_LOOK)
		leisure = HELPER_LOOK;
	helper_set_timer(helper, leisure);
	if (progress_leave_as(progress, PROGRESS_ARMED))
		return true;
	helper_set_timer(helper, HELPER_NAP);
	return false;
}

/* Takes a lock that is `from`, armed or lent, and writes there which it was. Returns false if it is
 * neither any more. */
static bool progress_take_from(struct progress *progress, uint32_t *from)
{
	while (*from >= PROGRESS_ARMED)
		if (atomic_compare_exchange_weak_explicit(&progress->state, from, PROGRESS_TAKEN,
			    memory_order_acquire, memory_order_relaxed))
			return true;
	return false;
}

/* After another thread than the helper has taken a lock that was `from`. */
static void progress_disarm(struct progress *progress, uint32_t from)
{
	progress_own(progress);
	engine_interrupt(progress->engine, false);
	if (from != PROGRESS_LENT)
		helper_set_timer(progress->helper, HELPER_NAP); /* S3 */
}

/* Has the place been lent for so long that the helper need not nap meanwhile? Any answer is safe,
 * and any thread may ask. */
static bool helper_lent_long(const struct helper *helper)
{
	return clock_now(helper->clock) -
		       atomic_load_explicit(&helper->lent, memory_order_relaxed) >=
	       HELPER_NAP_MAX;
}

/* After progress_ready(): lends the lock to the caller's sleep. After a long one the next one
 * may be as long: then a helper that naps does not wake to see it. Returns false as
 * progress_leave_as(). */
static bool progress_lend(struct progress *progress)
{
	struct helper *helper = progress->helper;

	helper_unwatch(helper);
	atomic_store_explicit(&helper->lent, clock_now(helper->clock), memory_order_relaxed);
	if (!helper->relieve)
		return progress_leave_as(progress, PROGRESS_LENT);
	helper_set_timer(helper, 0);
	if (progress_leave_as(progress, PROGRESS_RELIEVED))
		return true;
	helper_set_timer(helper, HELPER_NAP);
	return false;
}

/* The same by another thread than the one that it was lent to. */
static void progress_seize(struct progress *progress, uint32_t from)
{
	progress_disarm(progress, from);
	if (from != PROGRESS_ARMED)
		cancel_event_write(progress->helper->wakeup); /* S4 */
}

bool progress_take_armed(struct progress *progress)
{
	uint32_t from = atomic_load_explicit(&progress->state, memory_order_relaxed);

	if (!progress_take_from(progress, &from))
		return false;
	progress_seize(progress, from);
	return true;
}

unsigned progress_turn(struct progress *progress)
{
	unsigned work = 0;

	do
		if (progress->engine)
			work += engine_look(progress->engine);
	while (!progress_try_leave(progress));
	if (atomic_load_explicit(&progress->awaited, memory_order_relaxed))
		futex_wake(&progress->state, 1); /* S6 */
	return work;
}

void progress_command(struct progress *progress)
{
	uint32_t state = atomic_load_explicit(&progress->state, memory_order_relaxed);

	/* Either swap succeeds on what the state really is, so the thread that holds the lock next,
	 * or still, finds the command. */
	for (;;) {
		bool held = state == PROGRESS_TAKEN || state == PROGRESS_CALLED;
		uint32_t next = held ? PROGRESS_CALLED : PROGRESS_TAKEN;

		if (!atomic_compare_exchange_weak_explicit(&progress->state, &state, next,
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (held)
			return;
		if (state >= PROGRESS_ARMED)
			progress_seize(progress, state);
		else
			progress_own(progress);
		progress_turn(progress);
		return;
	}
}

unsigned progress_rest(struct progress *progress)
{
	bool helped;

	if (atomic_load_explicit(&progress->state, memory_order_relaxed) != PROGRESS_FREE ||
		!progress_take(progress))
		return 0;
	helped = progress->helper && progress->helper->set >= 0;
	if (helped && progress_arm(progress))
		return 0;
	progress_leave(progress);
	return helped;
}

/* Sleeps while the lock is lent to the caller. */
static void sleep_lent(const struct helper *helper, int port, uint64_t limit)
{
	struct pollfd descriptors[] = {
		{.fd = helper->wakeup, .events = POLLIN}, {.fd = port, .events = POLLIN}};
	const struct timespec time = timespec_of(limit);
	eventfd_t rung;

	ppoll(descriptors, 2, &time, NULL);
	if (descriptors[0].revents != 0)
		eventfd_read(helper->wakeup, &rung);
}

/* Returns false if another thread has taken the lock since, which has woken the caller (S4). */
static bool progress_take_back(struct progress *progress)
{
	uint32_t from = atomic_load_explicit(&progress->state, memory_order_relaxed);

	if (from == PROGRESS_ARMED || !progress_take_from(progress, &from))
		return false;
	progress_disarm(progress, from);
	progress->helper->relieve = helper_lent_long(progress->helper);
	return true;
}

/* As progress_sleep(), for the holder of the lock; releases it. */
static enum progress_slept progress_sleep_in(
	struct progress *progress, bool (*look)(void *context), void *context, uint64_t limit)
{
	struct helper *helper = progress->helper;
	enum progress_slept slept = PROGRESS_WORKED;
	int port;
	uint64_t leisure = progress_ready(progress, &port);

	if (leisure != 0 && port < 0) {
		engine_interrupt(progress->engine, false);
		slept = PROGRESS_UNSLEPT;
	}
	if (leisure == 0 || port < 0) {
		progress_leave(progress);
		return slept;
	}
	if (!progress_lend(progress)) {
		progress_leave(progress);
		return PROGRESS_WORKED;
	}
	slept = look(context) ? PROGRESS_FOUND : PROGRESS_SLEPT;
	if (slept == PROGRESS_SLEPT)
		sleep_lent(helper, port, leisure < limit ? leisure : limit);
	if (progress_take_back(progress)) {
		if (slept == PROGRESS_SLEPT && engine_look(progress->engine) != 0)
			slept = PROGRESS_WORKED;
		progress_leave(progress);
	}
	return slept;
}

/* S6. Takes the lock from the helper, once that releases it. Returns false if it has not for some
 * time, or if another thread holds it. */
static bool progress_await_helper(struct progress *progress)
{
	uint32_t state = PROGRESS_TAKEN;

	if (!atomic_load_explicit(&progress->helped, memory_order_relaxed))
		return false;
	atomic_store_explicit(&progress->awaited, true, memory_order_relaxed);
	/* Release: a thread that finds the lock called finds it awaited. */
	if (atomic_compare_exchange_strong_explicit(&progress->state, &state, PROGRESS_CALLED,
		    memory_order_release, memory_order_relaxed) ||
		state == PROGRESS_CALLED)
		futex_wait(&progress->state, PROGRESS_CALLED, HELPER_AWAIT);
	atomic_store_explicit(&progress->awaited, false, memory_order_relaxed);
	return progress_take(progress);
}

enum progress_slept progress_sleep(
	struct progress *progress, bool (*look)(void *context), void *context, uint64_t limit)
{
	enum progress_slept slept = PROGRESS_UNSLEPT;
	int cancel;

	if (atomic_exchange_explicit(&progress->slept, true, memory_order_acquire))
		return PROGRESS_UNSLEPT;
	cancel = cancel_hold();
	if (progress_take(progress) || progress_await_helper(progress)) {
		if (progress->helper)
			slept = progress_sleep_in(progress, look, context, limit);
		else
			progress_leave(progress);
	}
	atomic_store_explicit(&progress->slept, false, memory_order_release);
	cancel_release(cancel);
	return slept;
}

bool progress_shares_cpu(struct progress *progress)
{
	bool shares;

	if (!progress_take(progress))
		return false;
	shares = progress->engine && engine_shares_cpu(progress->engine);
	progress_leave(progress);
	return shares;
}

/* --- the helper --- */

/* May the helper sleep until its timer is set? */
static bool helper_is_relieved(const struct helper *helper)
{
	struct progress *progress = helper->progress;
	uint32_t state = atomic_load_explicit(&progress->state, memory_order_relaxed);

	/* Nothing is published here: the thread that takes the lock learns the state alone. */
	return state == PROGRESS_RELIEVED ||
	       (state == PROGRESS_LENT && helper_lent_long(helper) &&
		       atomic_compare_exchange_strong_explicit(&progress->state, &state,
			       PROGRESS_RELIEVED, memory_order_relaxed, memory_order_relaxed));
}

/* *armed: the lock was armed. Returns false if the program has it. */
static bool helper_take(struct progress *progress, bool *armed)
{
	uint32_t state = PROGRESS_ARMED;

	*armed = atomic_compare_exchange_strong_explicit(&progress->state, &state, PROGRESS_TAKEN,
		memory_order_acquire, memory_order_relaxed);
	if (!*armed && (state != PROGRESS_FREE || !progress_take_free(progress)))
		return false;
	atomic_store_explicit(&progress->helped, true, memory_order_relaxed);
	if (*armed) {
		progress_own(progress);
		engine_interrupt(progress->engine, false);
	}
	return true;
}

/* A turn of the engine, whose lock the helper has taken. *turn: the time of its last turn, 0 before
 * the first. *work: how much was done. Returns false if the program drives, or the engine is
 * closing. */
static bool helper_turn(const struct helper *helper, bool armed, uint64_t *turn, unsigned *work)
{
	struct engine *engine = helper->progress->engine;
	uint64_t looked;

	if (!engine)
		return false;
	looked = engine_turn(engine);
	if (*turn != 0 ? looked != *turn
		       : !armed && looked + HELPER_AWAY > clock_now(helper->clock))
		return false;
	*work = engine_poll(engine);
	*turn = engine_turn(engine);
	return true;
}

/* Arms the lock, which the helper holds, and sleeps (S3). Returns false if there is something to
 * do; then it still holds the lock. */
static bool helper_rest(struct helper *helper)
{
	int port;
	uint64_t leisure = progress_ready(helper->progress, &port);

	if (leisure == 0)
		return false;
	atomic_store_explicit(&helper->progress->helped, false, memory_order_relaxed);
	if (port < 0 && helper->external && leisure > HELPER_LOOK)
		leisure = HELPER_LOOK;
	if (!progress_leave_as(helper->progress, PROGRESS_ARMED))
		return false;
	helper_sleep(helper, port, leisure);
	return true;
}

/* Drives the engine while the program does not, and sleeps on the port when there is nothing to do.
 * Returns false at once if the program drives; true: the helper has slept so. */
static bool helper_serve(struct helper *helper)
{
	struct progress *progress = helper->progress;
	uint64_t turn = 0;
	unsigned work = 0;
	bool armed, goes = true;

	while (goes && helper_take(progress, &armed)) {
		goes = helper_turn(helper, armed, &turn, &work);
		if (goes && work == 0 && helper_rest(helper))
			return true;
		atomic_store_explicit(&progress->helped, false, memory_order_relaxed);
		progress_leave(progress);
		rte_pause();
	}
	return false;
}

void helper_run(void *argument)
{
	struct helper *helper = argument;
	uint64_t nap = HELPER_NAP;

	while (!atomic_load_explicit(&helper->stopping, memory_order_acquire)) {
		if (helper_is_relieved(helper)) {
			helper_sleep(helper, -1, UINT64_MAX);
			nap = HELPER_NAP;
		} else if (helper_serve(helper)) {
			nap = HELPER_NAP;
		} else {
			/* Twice as long while the program drives. */
			helper_sleep(helper, -1, nap);
			if (nap < HELPER_NAP_MAX)
				nap *= 2;
		}
	}
}

struct helper *helper_create(struct progress *progress, struct segment *segment, bool external,
	const struct clock *clock)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	/* Each time it ends is told once, without being read. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	if (!helper)
		return NULL;
	*helper = (struct helper){
		.progress = progress,
		.clock = clock,
		.set = epoll_create1(EPOLL_CLOEXEC),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
		.wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.segment = segment,
		.external = external,
		.port = -1,
	};
	if (helper->set >= 0 && helper->timer >= 0 && helper->wakeup >= 0 &&
		epoll_ctl(helper->set, EPOLL_CTL_ADD, helper->timer, &event) == 0)
		return helper;
	log_error("the helper's thread cannot be told when to wake: %s: %s", strerror(errno),
		remedy_for(errno, "set PTL_PROGRESS=inline, which needs no such thread"));
	helper_destroy(helper);
	return NULL;
}

struct helper *helper_create_absent(
	struct progress *progress, struct segment *segment, const struct clock *clock)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	*helper = (struct helper){
		.progress = progress,
		.clock = clock,
		.set = -1,
		.timer = -1,
		.wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.segment = segment,
		.port = -1,
	};
	if (helper->wakeup >= 0)
		return helper;
	helper_destroy(helper);
	return NULL;
}

void helper_stop(struct helper *helper)
{
	atomic_store_explicit(&helper->stopping, true, memory_order_release);
	helper_set_timer(helper, 1);
}

void helper_destroy(struct helper *helper)
{
	if (!helper)
		return;
	if (helper->timer >= 0)
		close(helper->timer);
	if (helper->wakeup >= 0)
		close(helper->wakeup);
	if (helper->set >= 0)
		close(helper->set);
	free(helper);
}
