/* SPDX-License-Identifier: BSD-3-Clause */
/* seat.c - see seat.h. */
#include <host/seat.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include <base/futex.h>
#include <base/lack.h>
#include <base/log.h>
#include <engine/statistics.h>

#define HELPER_AWAY    (50 * MICROSECOND) /* without a look for frames: the program is elsewhere */
#define HELPER_NAP     (50 * MICROSECOND) /* the first; doubled while the program drives, up to */
#define HELPER_NAP_MAX (800 * MICROSECOND)
#define HELPER_LOOK    (500 * MICROSECOND) /* between looks at a port that cannot signal */
#define HELPER_AWAIT   (100 * MICROSECOND) /* for the helper to leave the seat, at most */
#define SLEEP_MAX      SECOND

struct helper {
	struct seat *seat;
	const struct clock *clock;
	/* epoll descriptor that the thread always sleeps on: the timer and the port; -1: the helper
	 * is absent, */
	int set;
	int timer;  /* and has no timer; S3 */
	int wakeup; /* eventfd that wakes the thread in its place (S4) */
	_Atomic bool stopping;
	/* Of the thread in the seat. */
	struct segment *segment;
	bool external;
	int port;     /* the descriptor of the port in the set; -1: none */
	bool watches; /* the port may wake the thread by the set */
	bool relieve; /* the last sleep in its place was a long one */
	/* when the last one began, ns; any thread reads it */
	_Atomic uint64_t lent;
};

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

/* --- the helper's sleep --- */

/* The thread wakes then, at the latest; 0: no more by the timer. */
static void helper_set_timer(const struct helper *helper, uint64_t time)
{
	const struct itimerspec when = {.it_value = time_of(time)};

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
	const struct timespec time = time_of(limit);
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

/* --- the seat --- */

/* For the thread in the seat: the port is to signal. Returns for how long there will be nothing to
 * do, ns; 0: there is something, and the port does not signal. */
static uint64_t seat_ready(struct seat *seat, int *port)
{
	uint64_t leisure;

	*port = engine_interrupt(seat->engine, true);
	if (engine_poll(seat->engine) == 0) {
		leisure = engine_deadline(seat->engine);
		if (leisure >= MICROSECOND)
			return leisure < SLEEP_MAX ? leisure : SLEEP_MAX;
	}
	engine_interrupt(seat->engine, false);
	return 0;
}

/* For the thread in the seat, which is ready to be left: leaves it armed, or lent. Returns false if
 * somebody has called; then the port does not signal, and the caller still sits there. */
static bool seat_leave_as(struct seat *seat, uint32_t state)
{
	const bool outward = seat->outward;
	const int cancel = seat->cancel;
	uint32_t taken = SEAT_TAKEN;

	counter_add(&segment_counters(seat->helper->segment)->sleeps, 1);
	/* Release: as seat_try_leave(). */
	if (atomic_compare_exchange_strong_explicit(
		    &seat->state, &taken, state, memory_order_release, memory_order_relaxed)) {
		if (outward)
			cancel_release(cancel);
		return true;
	}
	engine_interrupt(seat->engine, false);
	return false;
}

/* For another thread than the helper, in the seat: arms it for the helper and leaves it (S3).
 * Returns false if there is something to do; then the caller still sits there. */
static bool seat_arm(struct seat *seat)
{
	struct helper *helper = seat->helper;
	int port;
	uint64_t leisure = seat_ready(seat, &port);

	if (leisure == 0)
		return false;
	if (!helper_watch(helper, port) && helper->external && leisure > HELPER_LOOK)
		leisure = HELPER_LOOK;
	helper_set_timer(helper, leisure);
	if (seat_leave_as(seat, SEAT_ARMED))
		return true;
	helper_set_timer(helper, HELPER_NAP);
	return false;
}

/* Takes a seat that is `from`, armed or lent, and writes what it was there. Returns false if it is
 * neither any more. */
static bool seat_take_from(struct seat *seat, uint32_t *from)
{
	while (*from >= SEAT_ARMED)
		if (atomic_compare_exchange_weak_explicit(&seat->state, from, SEAT_TAKEN,
			    memory_order_acquire, memory_order_relaxed))
			return true;
	return false;
}

/* After a seat that was `from` was taken, by another thread than the helper. */
static void seat_disarm(struct seat *seat, uint32_t from)
{
	seat_own(seat);
	engine_interrupt(seat->engine, false);
	if (from != SEAT_LENT)
		helper_set_timer(seat->helper, HELPER_NAP); /* S3 */
}

/* Has the place been lent for so long that the helper need not nap meanwhile? Any answer is safe,
 * and any thread may ask. */
static bool helper_lent_long(const struct helper *helper)
{
	return clock_now(helper->clock) -
		       atomic_load_explicit(&helper->lent, memory_order_relaxed) >=
	       HELPER_NAP_MAX;
}

/* Leaves the seat, which is ready to be left, to the caller's sleep. After a long one the next one
 * may be as long: then a helper that naps does not wake to see it. Returns false as
 * seat_leave_as(). */
static bool seat_lend(struct seat *seat)
{
	struct helper *helper = seat->helper;

	helper_unwatch(helper);
	atomic_store_explicit(&helper->lent, clock_now(helper->clock), memory_order_relaxed);
	if (!helper->relieve)
		return seat_leave_as(seat, SEAT_LENT);
	helper_set_timer(helper, 0);
	if (seat_leave_as(seat, SEAT_RELIEVED))
		return true;
	helper_set_timer(helper, HELPER_NAP);
	return false;
}

/* The same by another thread than the one that it was lent to. */
static void seat_seize(struct seat *seat, uint32_t from)
{
	seat_disarm(seat, from);
	if (from != SEAT_ARMED)
		eventfd_write(seat->helper->wakeup, 1); /* S4 */
}

bool seat_take_armed(struct seat *seat)
{
	uint32_t from = atomic_load_explicit(&seat->state, memory_order_relaxed);

	if (!seat_take_from(seat, &from))
		return false;
	seat_seize(seat, from);
	return true;
}

unsigned seat_turn(struct seat *seat)
{
	unsigned work = 0;

	do
		if (seat->engine)
			work += engine_look(seat->engine);
	while (!seat_try_leave(seat));
	if (atomic_load_explicit(&seat->awaited, memory_order_relaxed))
		futex_wake(&seat->state, 1); /* S6 */
	return work;
}

void seat_call(struct seat *seat)
{
	uint32_t state = atomic_load_explicit(&seat->state, memory_order_relaxed);

	/* Either swap succeeds on what the state really is, so whoever sits there next, or still,
	 * finds the command. */
	for (;;) {
		bool sits = state == SEAT_TAKEN || state == SEAT_CALLED;
		uint32_t next = sits ? SEAT_CALLED : SEAT_TAKEN;

		if (!atomic_compare_exchange_weak_explicit(
			    &seat->state, &state, next, memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (sits)
			return;
		if (state >= SEAT_ARMED)
			seat_seize(seat, state);
		else
			seat_own(seat);
		seat_turn(seat);
		return;
	}
}

unsigned seat_rest(struct seat *seat)
{
	bool helped;

	if (atomic_load_explicit(&seat->state, memory_order_relaxed) != SEAT_FREE ||
		!seat_take(seat))
		return 0;
	helped = seat->helper && seat->helper->set >= 0;
	if (helped && seat_arm(seat))
		return 0;
	seat_leave(seat);
	return helped;
}

/* Sleeps beside a seat that is lent to the caller. */
static void sleep_lent(const struct helper *helper, int port, uint64_t limit)
{
	struct pollfd descriptors[] = {
		{.fd = helper->wakeup, .events = POLLIN}, {.fd = port, .events = POLLIN}};
	const struct timespec time = time_of(limit);
	eventfd_t rung;

	ppoll(descriptors, 2, &time, NULL);
	if (descriptors[0].revents != 0)
		eventfd_read(helper->wakeup, &rung);
}

/* Returns false if another thread has taken the seat since, which has woken the caller (S4). */
static bool seat_take_back(struct seat *seat)
{
	uint32_t from = atomic_load_explicit(&seat->state, memory_order_relaxed);

	if (from == SEAT_ARMED || !seat_take_from(seat, &from))
		return false;
	seat_disarm(seat, from);
	seat->helper->relieve = helper_lent_long(seat->helper);
	return true;
}

/* For the thread in the seat: as seat_sleep(), and leaves the seat. */
static enum seat_slept seat_sleep_in(
	struct seat *seat, bool (*look)(void *context), void *context, uint64_t limit)
{
	struct helper *helper = seat->helper;
	enum seat_slept slept = SEAT_WORKED;
	int port;
	uint64_t leisure = seat_ready(seat, &port);

	if (leisure != 0 && port < 0) {
		engine_interrupt(seat->engine, false);
		slept = SEAT_UNSLEPT;
	}
	if (leisure == 0 || port < 0) {
		seat_leave(seat);
		return slept;
	}
	if (!seat_lend(seat)) {
		seat_leave(seat);
		return SEAT_WORKED;
	}
	slept = look(context) ? SEAT_FOUND : SEAT_SLEPT;
	if (slept == SEAT_SLEPT)
		sleep_lent(helper, port, leisure < limit ? leisure : limit);
	if (seat_take_back(seat)) {
		if (slept == SEAT_SLEPT && engine_look(seat->engine) != 0)
			slept = SEAT_WORKED;
		seat_leave(seat);
	}
	return slept;
}

/* S6. Takes the seat from the helper, once that leaves it. Returns false if it has not for some
 * time, or if it is another thread that sits there. */
static bool seat_await_helper(struct seat *seat)
{
	uint32_t state = SEAT_TAKEN;

	if (!atomic_load_explicit(&seat->helped, memory_order_relaxed))
		return false;
	atomic_store_explicit(&seat->awaited, true, memory_order_relaxed);
	/* Release: whoever finds the seat called finds it awaited. */
	if (atomic_compare_exchange_strong_explicit(&seat->state, &state, SEAT_CALLED,
		    memory_order_release, memory_order_relaxed) ||
		state == SEAT_CALLED)
		futex_wait(&seat->state, SEAT_CALLED, HELPER_AWAIT);
	atomic_store_explicit(&seat->awaited, false, memory_order_relaxed);
	return seat_take(seat);
}

enum seat_slept seat_sleep(
	struct seat *seat, bool (*look)(void *context), void *context, uint64_t limit)
{
	enum seat_slept slept = SEAT_UNSLEPT;
	int cancel;

	if (atomic_exchange_explicit(&seat->slept, true, memory_order_acquire))
		return SEAT_UNSLEPT;
	cancel = cancel_hold();
	if (seat_take(seat) || seat_await_helper(seat)) {
		if (seat->helper)
			slept = seat_sleep_in(seat, look, context, limit);
		else
			seat_leave(seat);
	}
	atomic_store_explicit(&seat->slept, false, memory_order_release);
	cancel_release(cancel);
	return slept;
}

bool seat_shares_cpu(struct seat *seat)
{
	bool shares;

	if (!seat_take(seat))
		return false;
	shares = seat->engine && engine_shares_cpu(seat->engine);
	seat_leave(seat);
	return shares;
}

/* --- the helper --- */

/* May the helper sleep until its timer is set? */
static bool helper_is_relieved(const struct helper *helper)
{
	struct seat *seat = helper->seat;
	uint32_t state = atomic_load_explicit(&seat->state, memory_order_relaxed);

	/* Nothing is published here: the thread that takes the seat learns the state alone. */
	return state == SEAT_RELIEVED ||
	       (state == SEAT_LENT && helper_lent_long(helper) &&
		       atomic_compare_exchange_strong_explicit(&seat->state, &state, SEAT_RELIEVED,
			       memory_order_relaxed, memory_order_relaxed));
}

/* *armed: the seat was armed. Returns false if the program has it. */
static bool helper_take(struct seat *seat, bool *armed)
{
	uint32_t state = SEAT_ARMED;

	*armed = atomic_compare_exchange_strong_explicit(
		&seat->state, &state, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed);
	if (!*armed && (state != SEAT_FREE || !seat_take_free(seat)))
		return false;
	atomic_store_explicit(&seat->helped, true, memory_order_relaxed);
	if (*armed) {
		seat_own(seat);
		engine_interrupt(seat->engine, false);
	}
	return true;
}

/* A turn of a seat that the helper has taken. *turn: the time of its last turn, 0 before the first.
 * *work: how much was done. Returns false if the program drives, or the engine is going. */
static bool helper_turn(const struct helper *helper, bool armed, uint64_t *turn, unsigned *work)
{
	struct engine *engine = helper->seat->engine;
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

/* Arms the seat, in which the helper sits, and sleeps (S3). Returns false if there is something to
 * do; then it still sits there. */
static bool helper_rest(struct helper *helper)
{
	int port;
	uint64_t leisure = seat_ready(helper->seat, &port);

	if (leisure == 0)
		return false;
	atomic_store_explicit(&helper->seat->helped, false, memory_order_relaxed);
	if (port < 0 && helper->external && leisure > HELPER_LOOK)
		leisure = HELPER_LOOK;
	if (!seat_leave_as(helper->seat, SEAT_ARMED))
		return false;
	helper_sleep(helper, port, leisure);
	return true;
}

/* Serves the seat while the program does not, and sleeps on the port when there is nothing to do.
 * Returns false at once if the program drives; true: the helper has slept so. */
static bool helper_serve(struct helper *helper)
{
	struct seat *seat = helper->seat;
	uint64_t turn = 0;
	unsigned work = 0;
	bool armed, goes = true;

	while (goes && helper_take(seat, &armed)) {
		goes = helper_turn(helper, armed, &turn, &work);
		if (goes && work == 0 && helper_rest(helper))
			return true;
		atomic_store_explicit(&seat->helped, false, memory_order_relaxed);
		seat_leave(seat);
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

struct helper *helper_create(
	struct seat *seat, struct segment *segment, bool external, const struct clock *clock)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	/* Each time it ends is told once, without being read. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	if (!helper)
		return NULL;
	*helper = (struct helper){
		.seat = seat,
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
		lack_cure(errno, "set PTL_PROGRESS=inline, which needs no such thread"));
	helper_destroy(helper);
	return NULL;
}

struct helper *helper_create_absent(
	struct seat *seat, struct segment *segment, const struct clock *clock)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	*helper = (struct helper){
		.seat = seat,
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
