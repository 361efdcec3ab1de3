/* SPDX-License-Identifier: BSD-3-Clause */
/* patience.h - how a thread waits for another one: it spins briefly, then gives its CPU away, then
 * is told to sleep; at once where a program that computes would keep the CPU (yielding.h).
 *
 * A core's length of spinning pays only when the other thread can run meanwhile; where all threads
 * that wait for each other have one CPU, they give way at once.
 */
#ifndef HOST_PATIENCE_H
#define HOST_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <rte_pause.h>

#define PATIENCE_SPINS  100 /* some microseconds */
#define PATIENCE_YIELDS 50

struct patience {
	uint32_t turns;
	uint32_t rounds; /* the owner's */
};

/* On how many CPUs may this thread, and those that have asked before it, run? A thread's are looked
 * up when it asks first; poll threads ask when they start. Any thread. */
unsigned patience_cpus(void);

/* Yields, or says false at once where it is better to sleep. Any thread. */
bool patience_yield(void);

/* Waits a moment and says true, or says false at once when it is time to sleep. */
static inline bool patience_wait(struct patience *patience)
{
	if (patience->turns == 0 && patience_cpus() < 2)
		patience->turns = PATIENCE_SPINS;
	if (patience->turns >= PATIENCE_SPINS + PATIENCE_YIELDS)
		return false;
	if (patience->turns++ >= PATIENCE_SPINS)
		return patience_yield();
	rte_pause();
	return true;
}

#endif
