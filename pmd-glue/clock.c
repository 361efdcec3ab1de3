/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - nanoseconds by the TSC.
 *
 * I1. The time never goes back on a CPU: until clock_calibrate() it is the kernel's monotonic
 *     clock, and the TSC's time starts at the kernel's time of that moment.
 *
 * I2. Between CPUs it may go back by some nanoseconds: their TSCs are not quite equal, and a CPU
 *     may read its own before earlier instructions, such as taking a lock, are done. An ordered
 *     reading would cost more than the reading itself. So code that compares times of several
 *     threads must tolerate such a difference.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include <rte_cycles.h>

#include <base/clock.h>
#include <pmd-glue/clock.h>
#include <pmd-glue/glue.h>

#define SCALE_SHIFT 32

static uint64_t clock_scale; /* nanoseconds per tick << SCALE_SHIFT */
static uint64_t clock_start_ticks;
static uint64_t clock_start;
static atomic_bool clock_calibrated;

static uint64_t clock_kernel(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
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

void clock_calibrate(void)
{
	uint64_t hertz = rte_get_tsc_hz();
	if (atomic_load_explicit(&clock_calibrated, memory_order_relaxed) || hertz == 0 ||
		!clock_steady())
		return;
	clock_scale = (uint64_t)(((unsigned __int128)SECOND << SCALE_SHIFT) / hertz);
	clock_start = clock_kernel();
	clock_start_ticks = rte_rdtsc();
	/* Release: pairs with the acquire in glue_now(); without it a thread might use a start of
	 * 0. */
	atomic_store_explicit(&clock_calibrated, true, memory_order_release);
}

uint64_t glue_now(void *context)
{
	uint64_t ticks;
	(void)context;
	if (!atomic_load_explicit(&clock_calibrated, memory_order_acquire))
		return clock_kernel();
	ticks = rte_rdtsc() - clock_start_ticks;
	/* This CPU's TSC is a little behind. */
	if ((int64_t)ticks < 0)
		ticks = 0;
	return clock_start + (uint64_t)(((unsigned __int128)ticks * clock_scale) >> SCALE_SHIFT);
}
