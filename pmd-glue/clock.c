/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - nanoseconds by the TSC.
 *
 * The TSC's frequency is measured against the kernel's clock while the program runs, so that no
 * start waits for it: from clock_begin() on until LEARN_TIME has passed, time is the kernel's.
 *
 * I1. The time never goes back on a CPU: the TSC's time starts at the kernel's time of the moment
 *     in which it is known, or a little ahead of it.
 *
 * I2. Between CPUs it may go back by some nanoseconds: their TSCs are not quite equal, and a CPU
 *     may read its own before earlier instructions, such as taking a lock, are done. An ordered
 *     reading would cost more than the reading itself. So code that compares times of several
 *     threads must tolerate such a difference.
 *
 * I3. A frequency is wrong by less than 1 part in 50,000: both readings that it comes from are
 *     known to READING_SURE, and LEARN_TIME lies between them.
 *
 * I4. A TSC that is far behind its start has begun anew, as many do while the machine sleeps. From
 *     then on time is the kernel's, for good: it may be behind the last reading by what I3 says.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include <rte_cycles.h>

#include <pmd-glue/clock.h>
#include <pmd-glue/glue.h>

#include <base/timespec.h>

#define SCALE_SHIFT  32
#define LEARN_TIME   (100 * MILLISECOND)
#define READING_SURE 1000               /* ns */
#define READINGS     16u                /* of which one is likely to be undisturbed */
#define TICKS_APART  (INT64_C(1) << 24) /* more than the TSCs of two CPUs differ: some 5 ms */

enum clock_state {
	CLOCK_KERNEL,
	CLOCK_LEARNS,
	CLOCK_SETTLES, /* one thread reads the clocks for the second time */
	CLOCK_TICKS,
	CLOCK_LOST /* I4 */
};

/* The kernel's time at a tick, or up to READING_SURE after it. */
struct reading {
	uint64_t ticks;
	uint64_t time;
};

static struct reading clock_begun; /* written before CLOCK_LEARNS */
static struct reading clock_start; /* this and what follows: before CLOCK_TICKS */
static uint64_t clock_scale;       /* nanoseconds per tick << SCALE_SHIFT */
static atomic_int clock_state;

/* Reads both clocks. Returns false if the thread was disturbed each time. */
static bool clock_read(struct reading *reading)
{
	for (unsigned n = 0; n < READINGS; n++) {
		uint64_t before = time_monotonic();
		reading->ticks = rte_rdtsc();
		reading->time = time_monotonic();
		if (reading->time - before <= READING_SURE)
			return true;
	}
	return false;
}

/* Does the TSC tick at one rate, whatever the CPU does? */
static bool clock_steady(void)
{
#if defined(__x86_64__)
	unsigned a = 0x80000000u, b = 0, c = 0, d = 0;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (a < 0x80000007u)
		return false;
	a = 0x80000007u;
	c = 0;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return (d & 1u << 8) != 0;
#else
	return true;
#endif
}

void clock_begin(void)
{
	if (atomic_load_explicit(&clock_state, memory_order_relaxed) == CLOCK_KERNEL &&
		clock_steady() && clock_read(&clock_begun))
		/* Release: pairs with the acquire in clock_learn(). */
		atomic_store_explicit(&clock_state, CLOCK_LEARNS, memory_order_release);
}

/* The frequency is known, if both readings are good. */
static bool clock_settle(void)
{
	uint64_t ticks, time;
	if (!clock_read(&clock_start) || clock_start.ticks <= clock_begun.ticks)
		return false;
	ticks = clock_start.ticks - clock_begun.ticks;
	time = clock_start.time - clock_begun.time;
	clock_scale = (uint64_t)(((unsigned __int128)time << SCALE_SHIFT) / ticks);
	return true;
}

/* The kernel's time; once enough of it has passed, one of the callers sees to the TSC's. */
static uint64_t clock_learn(void)
{
	int state = CLOCK_LEARNS;
	/* Acquire: pairs with the release in clock_begin(). */
	if (atomic_load_explicit(&clock_state, memory_order_acquire) == CLOCK_LEARNS &&
		time_monotonic() - clock_begun.time >= LEARN_TIME &&
		atomic_compare_exchange_strong_explicit(&clock_state, &state, CLOCK_SETTLES,
			memory_order_acquire, memory_order_relaxed))
		/* Release: pairs with the acquire in glue_now(); without it a thread might use a
		 * start of 0. */
		atomic_store_explicit(&clock_state, clock_settle() ? CLOCK_TICKS : CLOCK_LEARNS,
			memory_order_release);
	return time_monotonic();
}

/* The TSC is behind its start by so many ticks. */
static __attribute__((noinline)) uint64_t clock_behind(int64_t ticks)
{
	if (ticks < TICKS_APART)
		return clock_start.time; /* this CPU's is a little behind */
	atomic_store_explicit(&clock_state, CLOCK_LOST, memory_order_relaxed);
	return time_monotonic();
}

uint64_t glue_now(void *context)
{
	uint64_t ticks;
	(void)context;
	if (atomic_load_explicit(&clock_state, memory_order_acquire) != CLOCK_TICKS)
		return clock_learn();
	ticks = rte_rdtsc() - clock_start.ticks;
	if ((int64_t)ticks < 0)
		return clock_behind(-(int64_t)ticks);
	return clock_start.time +
	       (uint64_t)(((unsigned __int128)ticks * clock_scale) >> SCALE_SHIFT);
}
