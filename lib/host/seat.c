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

#include <base/lack.h>
#include <base/log.h>
#include <engine/statistics.h>

#define HELPER_AWAY    (50 * MICROSECOND) /* without a look for frames: the program is elsewhere */
#define HELPER_NAP     (50 * MICROSECOND) /* the first; doubled while the program drives, up to */
#define HELPER_NAP_MAX (800 * MICROSECOND)
#define HELPER_IDLE    (10 * MICROSECOND)  /* empty turns before the helper sleeps */
#define HELPER_LOOK    (500 * MICROSECOND) /* between looks at a port that cannot signal */
#define SLEEP_MAX      SECOND

struct helper {
	struct seat *seat;
	const struct clock *clock;
	int set;   /* epoll descriptor that the thread sleeps on: the timer and the port */
	int timer; /* S3 */
	_Atomic bool stopping;
	uint64_t nap; /* the thread's own, ns */
	/* Of the thread in the seat. */
	struct segment *segment;
	bool external;
	int port;      /* the descriptor of the port in the set; -1: none */
	bool watches;  /* the port may wake the thread */
	bool replaced; /* a thread sleeps in its place (S4), */
	int bell;      /* and is woken by this eventfd */
};

/* --- the helper's sleep --- */

/* The thread wakes then, at the latest. */
static void helper_set_timer(const struct helper *helper, uint64_t time)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(time / SECOND), .tv_nsec = (long)(time % SECOND)}};

	timerfd_settime(helper->timer, 0, &when, NULL);
}

/* The thread wakes once when this descriptor becomes readable, or is. Returns false if it
 * cannot. */
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

static void helper_sleep(const struct helper *helper)
{
	struct epoll_event events[2];
	uint64_t times;

	epoll_wait(helper->set, events, 2, -1);
	(void)!read(helper->timer, &times, sizeof(times));
}

/* The port is a thread's that sleeps in the helper's place. */
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

/* The same, at last: leaves an armed seat, whose timer is set. Returns false if somebody has
 * called; then the caller still sits there. */
static bool seat_leave_armed(struct seat *seat)
{
	struct helper *helper = seat->helper;
	const bool outward = seat->outward;
	const int cancel = seat->cancel;
	uint32_t taken = SEAT_TAKEN;

	counter_add(&segment_counters(helper->segment)->sleeps, 1);
	/* Release: as seat_try_leave(). */
	if (atomic_compare_exchange_strong_explicit(
		    &seat->state, &taken, SEAT_ARMED, memory_order_release, memory_order_relaxed)) {
		if (outward)
			cancel_release(cancel);
		return true;
	}
	helper->replaced = false;
	engine_interrupt(seat->engine, false);
	helper_set_timer(helper, HELPER_NAP);
	return false;
}

/* For the thread in the seat: arms the seat for the helper and leaves it (S2). Returns false if
 * there is something to do; then the caller still sits there. */
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
	return seat_leave_armed(seat);
}

/* After an armed seat was taken. */
static void seat_disarm(struct seat *seat)
{
	struct helper *helper = seat->helper;

	seat_own(seat);
	engine_interrupt(seat->engine, false);
	if (helper->replaced)
		eventfd_write(helper->bell, 1); /* S4 */
	helper->replaced = false;
}

bool seat_take_armed(struct seat *seat)
{
	uint32_t armed = SEAT_ARMED;

	if (!atomic_compare_exchange_strong_explicit(
		    &seat->state, &armed, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed))
		return false;
	seat_disarm(seat);
	helper_set_timer(seat->helper, HELPER_NAP);
	return true;
}

unsigned seat_turn(struct seat *seat)
{
	unsigned work = 0;

	do
		if (seat->engine)
			work += engine_look(seat->engine);
	while (!seat_try_leave(seat));
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
		if (state == SEAT_ARMED) {
			seat_disarm(seat);
			helper_set_timer(seat->helper, HELPER_NAP);
		} else {
			seat_own(seat);
		}
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
	helped = seat->helper != NULL;
	if (helped && seat_arm(seat))
		return 0;
	seat_leave(seat);
	return helped;
}

/* Sleeps beside an armed seat. */
static void sleep_armed(const struct helper *helper, int port, uint64_t limit)
{
	struct pollfd descriptors[] = {
		{.fd = helper->bell, .events = POLLIN}, {.fd = port, .events = POLLIN}};
	const struct timespec time = {
		.tv_sec = (time_t)(limit / SECOND), .tv_nsec = (long)(limit % SECOND)};
	eventfd_t rung;

	ppoll(descriptors, 2, &time, NULL);
	if (descriptors[0].revents != 0)
		eventfd_read(helper->bell, &rung);
}

/* Returns false if another thread has the seat by now, which has woken the caller (S4). */
static bool seat_take_back(struct seat *seat)
{
	uint32_t armed = SEAT_ARMED;

	if (!atomic_compare_exchange_strong_explicit(
		    &seat->state, &armed, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed))
		return false;
	seat->helper->replaced = false;
	seat_own(seat);
	engine_interrupt(seat->engine, false);
	helper_set_timer(seat->helper, HELPER_NAP);
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
	helper_unwatch(helper);
	helper->replaced = true;
	helper_set_timer(helper, leisure + HELPER_NAP_MAX);
	if (!seat_leave_armed(seat)) {
		seat_leave(seat);
		return SEAT_WORKED;
	}
	slept = look(context) ? SEAT_FOUND : SEAT_SLEPT;
	if (slept == SEAT_SLEPT)
		sleep_armed(helper, port, leisure < limit ? leisure : limit);
	if (seat_take_back(seat)) {
		if (slept == SEAT_SLEPT && engine_look(seat->engine) != 0)
			slept = SEAT_WORKED;
		seat_leave(seat);
	}
	return slept;
}

enum seat_slept seat_sleep(
	struct seat *seat, bool (*look)(void *context), void *context, uint64_t limit)
{
	enum seat_slept slept = SEAT_UNSLEPT;
	int cancel;

	if (atomic_exchange_explicit(&seat->slept, true, memory_order_acquire))
		return SEAT_UNSLEPT;
	cancel = cancel_hold();
	if (seat_take(seat)) {
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

/* *armed: the seat was armed. Returns false if the program drives. */
static bool helper_take(struct seat *seat, bool *armed)
{
	uint32_t state = SEAT_ARMED;

	*armed = atomic_compare_exchange_strong_explicit(
		&seat->state, &state, SEAT_TAKEN, memory_order_acquire, memory_order_relaxed);
	if (!*armed)
		return seat_take(seat);
	seat_disarm(seat);
	return true;
}

/* A turn of a seat that the helper has taken. *turn: the time of its last turn, 0 before the first.
 * *idle: since when it has found nothing. Returns false if the program drives, or the engine is
 * going. */
static bool helper_turn(
	const struct helper *helper, bool armed, uint64_t *turn, uint64_t *idle, uint64_t now)
{
	struct engine *engine = helper->seat->engine;
	uint64_t looked;

	if (!engine)
		return false;
	looked = engine_turn(engine);
	if (*turn != 0 ? looked != *turn : !armed && looked + HELPER_AWAY > now)
		return false;
	if (engine_poll(engine) != 0)
		*idle = 0;
	else if (*idle == 0)
		*idle = now;
	*turn = engine_turn(engine);
	return true;
}

/* Returns true when there is nothing to do and the seat is armed, false when the program drives. */
static bool helper_turns(struct helper *helper)
{
	struct seat *seat = helper->seat;
	uint64_t turn = 0, idle = 0;
	bool armed, goes = true;

	while (goes && helper_take(seat, &armed)) {
		uint64_t now = clock_now(helper->clock);

		goes = helper_turn(helper, armed, &turn, &idle, now);
		if (goes && idle != 0 && now - idle >= HELPER_IDLE && seat_arm(seat))
			return true;
		seat_leave(seat);
		rte_pause();
	}
	return false;
}

void helper_run(void *argument)
{
	struct helper *helper = argument;

	while (!atomic_load_explicit(&helper->stopping, memory_order_acquire)) {
		if (helper_turns(helper)) {
			helper->nap = HELPER_NAP;
		} else {
			/* Twice as long while the program drives. */
			helper_set_timer(helper, helper->nap);
			if (helper->nap < HELPER_NAP_MAX)
				helper->nap *= 2;
		}
		helper_sleep(helper);
	}
}

struct helper *helper_create(
	struct seat *seat, struct segment *segment, bool external, const struct clock *clock)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	struct epoll_event event = {.events = EPOLLIN};

	if (!helper)
		return NULL;
	*helper = (struct helper){
		.seat = seat,
		.clock = clock,
		.set = epoll_create1(EPOLL_CLOEXEC),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
		.bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.nap = HELPER_NAP,
		.segment = segment,
		.external = external,
		.port = -1,
	};
	if (helper->set >= 0 && helper->timer >= 0 && helper->bell >= 0 &&
		epoll_ctl(helper->set, EPOLL_CTL_ADD, helper->timer, &event) == 0)
		return helper;
	log_error("the helper's thread cannot be told when to wake: %s: %s", strerror(errno),
		lack_cure(errno, "set PTL_PROGRESS=inline, which needs no such thread"));
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
	if (helper->bell >= 0)
		close(helper->bell);
	if (helper->set >= 0)
		close(helper->set);
	free(helper);
}
