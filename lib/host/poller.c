/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.c - see poller.h. */
#include <host/poller.h>

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_pause.h>

#include <base/barrier.h>
#include <base/cancel.h>
#include <base/owner.h>
#include <base/spinning.h>
#include <base/timespec.h>
#include <engine/statistics.h>

#define SLEEP_MAX          SECOND
#define SLEEP_EXTERNAL     (50 * MICROSECOND) /* the first sleep; doubled up to the next */
#define SLEEP_EXTERNAL_MAX (500 * MICROSECOND)
#define AWAIT_SPINS        100 /* looks, some microseconds, at a thread that parks or starts */

enum poller_request { REQUEST_RUN, REQUEST_PAUSE, REQUEST_STOP };

struct poller_engine {
	struct engine *engine;
	struct segment *segment;
	bool external;
};

struct poller {
	/* The thread's own. */
	enum poller_mode mode;
	int wakeup; /* eventfd to sleep on together with ports */
	int cpu;    /* that it has told of */
	const struct clock *clock;
	struct spinning spinning;
	struct crowding crowding;
	bool crowded;          /* who woke it is on its CPU (P3) */
	uint64_t sleep;        /* ns, the next sleep when frames may come at any time */
	uint64_t turn;         /* when the last turn began, ns; 0: it found nothing to do */
	_Atomic uint64_t busy; /* ns in turns that found something; read by others */
	/* P1 */
	unsigned count;
	struct poller_engine engines[POLLER_ENGINES];
	/* Both sides. */
	_Alignas(CACHE_LINE) _Atomic uint32_t request; /* futex word, enum poller_request */
	_Atomic uint32_t parked; /* futex word: the thread touches no engine */
};

struct poller *poller_create(enum poller_mode mode, const struct clock *clock)
{
	struct poller *poller = aligned_alloc(CACHE_LINE, sizeof(*poller));

	if (!poller)
		return NULL;
	*poller = (struct poller){
		.wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.cpu = -1,
		.clock = clock,
		.sleep = SLEEP_EXTERNAL,
		.request = REQUEST_PAUSE,
		.parked = 1,
	};
	poller_set_mode(poller, mode);
	if (poller->wakeup >= 0)
		return poller;
	free(poller);
	return NULL;
}

void poller_set_mode(struct poller *poller, enum poller_mode mode)
{
	poller->mode = mode;
	/* By interrupt it never spins for long: a pause without end (W7). */
	poller->spinning = (struct spinning){.pause = mode == POLLER_INTERRUPT ? UINT64_MAX : 0};
}

void poller_destroy(struct poller *poller)
{
	if (poller)
		close(poller->wakeup);
	free(poller);
}

void poller_wake(struct poller *poller)
{
	atomic_thread_fence(memory_order_seq_cst); /* P2: a request counts like a command */
	for (unsigned i = 0; i < poller->count; i++)
		doorbell_ring(&poller->engines[i].segment->doorbell);
}

static void poller_ask(struct poller *poller, enum poller_request request)
{
	atomic_store_explicit(&poller->request, request, memory_order_seq_cst);
	futex_wake(&poller->request, 1);
	poller_wake(poller);
}

static void poller_await(struct poller *poller, uint32_t parked)
{
	unsigned looks = 0;

	/* Acquire: pairs with the release in poller_park(), so that the engines are this thread's,
	 * or the thread's again. */
	while (atomic_load_explicit(&poller->parked, memory_order_acquire) != parked)
		if (looks++ < AWAIT_SPINS)
			rte_pause();
		else
			futex_wait(&poller->parked, !parked, UINT64_MAX);
}

/* The engines are the calling thread's from here on. */
static void poller_own(const struct poller *poller)
{
	for (unsigned i = 0; OWNERS && i < poller->count; i++)
		engine_own(poller->engines[i].engine);
}

void poller_pause(struct poller *poller)
{
	poller_ask(poller, REQUEST_PAUSE);
	poller_await(poller, 1);
	poller_own(poller);
}

void poller_resume(struct poller *poller)
{
	poller_ask(poller, REQUEST_RUN);
	poller_await(poller, 0);
}

void poller_stop(struct poller *poller)
{
	poller_ask(poller, REQUEST_STOP);
}

void poller_add(
	struct poller *poller, struct engine *engine, struct segment *segment, bool external)
{
	atomic_store_explicit(&segment->doorbell.event, poller->wakeup + 1, memory_order_relaxed);
	poller->engines[poller->count++] =
		(struct poller_engine){.engine = engine, .segment = segment, .external = external};
}

void poller_remove(struct poller *poller, const struct engine *engine)
{
	for (unsigned i = 0; i < poller->count; i++)
		if (poller->engines[i].engine == engine) {
			poller->engines[i] = poller->engines[--poller->count];
			return;
		}
}

unsigned poller_count(const struct poller *poller)
{
	return poller->count;
}

/* Keeps off the engines until the request is another one. Returns false when the thread is to
 * end. */
static bool poller_park(struct poller *poller)
{
	uint32_t request;

	atomic_store_explicit(&poller->parked, 1, memory_order_release);
	futex_wake(&poller->parked, 1);
	while ((request = atomic_load_explicit(&poller->request, memory_order_acquire)) ==
		REQUEST_PAUSE)
		futex_wait(&poller->request, REQUEST_PAUSE, UINT64_MAX);
	if (request == REQUEST_STOP)
		return false;
	poller_own(poller);
	atomic_store_explicit(&poller->parked, 0, memory_order_release);
	futex_wake(&poller->parked, 1);
	poller->spinning.began = poller->spinning.slept = 0;
	poller->cpu = -1;
	poller->turn = 0;
	return true;
}

/* How long the thread may sleep until a timer is due, ns. */
static uint64_t poller_leisure(const struct poller *poller)
{
	uint64_t leisure = SLEEP_MAX, deadline;

	for (unsigned i = 0; i < poller->count; i++) {
		deadline = engine_deadline(poller->engines[i].engine);
		if (deadline < leisure)
			leisure = deadline;
	}
	return leisure;
}

/* The same when frames may come unannounced. */
static uint64_t poller_nap(struct poller *poller, uint64_t leisure)
{
	if (leisure > poller->sleep) {
		leisure = poller->sleep;
		if (poller->sleep < SLEEP_EXTERNAL_MAX)
			poller->sleep *= 2;
		if (poller->sleep > SLEEP_EXTERNAL_MAX)
			poller->sleep = SLEEP_EXTERNAL_MAX;
	}
	return leisure;
}

static bool poller_has_commands(const struct poller *poller)
{
	if (atomic_load_explicit(&poller->request, memory_order_relaxed) != REQUEST_RUN)
		return true;
	for (unsigned i = 0; i < poller->count; i++)
		if (engine_has_commands(poller->engines[i].engine))
			return true;
	return false;
}

static void poller_doorbells(struct poller *poller, uint32_t sleeping)
{
	for (unsigned i = 0; i < poller->count; i++)
		atomic_store_explicit(&poller->engines[i].segment->doorbell.sleeping, sleeping,
			memory_order_relaxed);
}

void doorbell_wake(struct doorbell *doorbell)
{
	atomic_store_explicit(
		&doorbell->ringer, (uint32_t)sched_getcpu() + 1, memory_order_relaxed);
	cancel_event_write(atomic_load_explicit(&doorbell->event, memory_order_relaxed) - 1);
}

/* One turn of every engine; returns how much was done. */
static unsigned poller_turn(struct poller *poller)
{
	unsigned work = 0;

	for (unsigned i = 0; i < poller->count; i++)
		work += engine_poll(poller->engines[i].engine);
	return work;
}

/* Asks the ports to call. Returns how many descriptors there are to sleep on; *all: no frame can
 * come without a call. */
static unsigned poller_arm(struct poller *poller, struct pollfd *descriptors, bool *all)
{
	unsigned count = 0;

	*all = true;
	descriptors[count++] = (struct pollfd){.fd = poller->wakeup, .events = POLLIN};
	for (unsigned i = 0; i < poller->count; i++) {
		int fd = engine_interrupt(poller->engines[i].engine, true);

		if (fd >= 0)
			descriptors[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
		else if (poller->engines[i].external)
			*all = false;
	}
	return count;
}

/* The thread is awake again. Was it woken from the CPU that it runs on? */
static bool poller_crowded(const struct poller *poller)
{
	uint32_t cpu = (uint32_t)sched_getcpu() + 1;
	bool crowded = false;

	for (unsigned i = 0; i < poller->count; i++) {
		struct doorbell *doorbell = &poller->engines[i].segment->doorbell;

		if (atomic_load_explicit(&doorbell->ringer, memory_order_relaxed) == 0)
			continue;
		crowded |=
			atomic_exchange_explicit(&doorbell->ringer, 0, memory_order_relaxed) == cpu;
	}
	return crowded;
}

/* Moves the thread to another CPU, if it may run on one (W10). Its CPUs stay what they are. */
static void thread_move(void)
{
	const int cpu = sched_getcpu();
	cpu_set_t all, others;

	if (cpu < 0 || sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	others = all;
	CPU_CLR((size_t)cpu, &others);
	if (CPU_COUNT(&others) != 0 && sched_setaffinity(0, sizeof(others), &others) == 0)
		(void)sched_setaffinity(0, sizeof(all), &all);
}

static void poller_disarm(struct poller *poller)
{
	eventfd_t rung;

	for (unsigned i = 0; i < poller->count; i++)
		engine_interrupt(poller->engines[i].engine, false);
	eventfd_read(poller->wakeup, &rung);
}

/* Sleeps until something comes or is due. P2 holds for frames as well: the ports are asked to call,
 * then looked at once more. Returns true if there was something. */
static bool poller_sleep(struct poller *poller)
{
	struct pollfd descriptors[POLLER_ENGINES + 1];
	struct timespec limit;
	uint64_t leisure;
	unsigned count, work;
	bool all;

	count = poller_arm(poller, descriptors, &all);
	poller_doorbells(poller, 1);
	barrier_heavy(); /* P2 */
	work = poller_turn(poller);
	leisure = poller_leisure(poller);
	if (work == 0 && leisure >= MICROSECOND && !poller_has_commands(poller)) {
		if (!all)
			leisure = poller_nap(poller, leisure);
		limit = timespec_of(leisure);
		for (unsigned i = 0; i < poller->count; i++)
			counter_add(&segment_counters(poller->engines[i].segment)->sleeps, 1);
		ppoll(descriptors, count, &limit, NULL);
	}
	poller->crowded = poller_crowded(poller);
	poller_doorbells(poller, 0);
	poller_disarm(poller);
	if (poller->mode == POLLER_ADAPTIVE &&
		crowding_moves(&poller->crowding, poller->crowded, clock_now(poller->clock)))
		thread_move();
	return work != 0;
}

/* There is work. */
static void poller_work_found(struct poller *poller)
{
	spinning_end(&poller->spinning, poller->spinning.slept != 0 ? clock_now(poller->clock) : 0);
	poller->sleep = SLEEP_EXTERNAL;
}

/* Those that wait for this thread learn where it runs. */
static void poller_tell(struct poller *poller)
{
	int cpu = sched_getcpu();

	if (cpu == poller->cpu)
		return;
	poller->cpu = cpu;
	for (unsigned i = 0; i < poller->count; i++)
		atomic_store_explicit(&poller->engines[i].segment->doorbell.cpu, (uint32_t)cpu + 1,
			memory_order_relaxed);
}

/* Does the thread look again before it sleeps? */
static bool poller_spins(struct poller *poller)
{
	uint64_t now = clock_now(poller->clock);

	if (!spinning_goes_on(&poller->spinning, now))
		return false;
	if (!poller->crowded) /* P3 */
		return true;
	spinning_stop(&poller->spinning, now);
	return false;
}

/* After a turn that found nothing to do. */
static void poller_idle(struct poller *poller)
{
	poller_tell(poller);
	if (poller->mode == POLLER_BUSY || poller_spins(poller))
		rte_pause();
	else if (poller_sleep(poller))
		poller_work_found(poller);
}

/* A turn lasts until the next one begins, which reads the clock anyway. */
static void poller_account(struct poller *poller, bool work)
{
	uint64_t now;

	if (!work && poller->turn == 0)
		return;
	now = engine_turn(poller->engines[0].engine);
	if (poller->turn != 0)
		atomic_store_explicit(&poller->busy,
			atomic_load_explicit(&poller->busy, memory_order_relaxed) + now -
				poller->turn,
			memory_order_relaxed);
	poller->turn = work ? now : 0;
}

uint64_t poller_busy(const struct poller *poller)
{
	return atomic_load_explicit(&poller->busy, memory_order_relaxed);
}

void poller_run(void *argument)
{
	struct poller *poller = argument;

	/* It begins parked, as poller_resume() expects. */
	if (!poller_park(poller))
		return;
	for (;;) {
		unsigned work;

		/* Acquire: pairs with the store in poller_ask(). */
		if (atomic_load_explicit(&poller->request, memory_order_acquire) != REQUEST_RUN &&
			!poller_park(poller))
			return;
		work = poller_turn(poller);
		poller_account(poller, work != 0);
		if (work == 0) {
			poller_idle(poller);
		} else {
			poller_work_found(poller);
		}
	}
}
