/* SPDX-License-Identifier: BSD-3-Clause */
/* manners.h - when a thread that polls offers its CPU to others, and how it learns whether there
 * are any: from the time that sched_yield() takes. The owner's; no clock and no system call here.
 *
 * What a yield takes that nobody needed depends on the machine, and one in a hundred takes twice as
 * long; so the measure is the shortest one, and a single long one does not change much.
 */
#ifndef BASE_MANNERS_H
#define BASE_MANNERS_H

#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>

#define MANNERS_LONG    4 /* times as long as the shortest: somebody else ran meanwhile, */
#define MANNERS_CROWDED (3 * MICROSECOND) /* and surely when a yield took that */
/* ns that the shortest takes at least: clocks of two CPUs may differ by as much */
#define MANNERS_LEAST 100
#define MANNERS_HASTE 4  /* one that was needed divides the looks until the next */
#define MANNERS_CALM  16 /* so many in a row that were not, double them */

struct manners {
	uint32_t empty; /* looks that found nothing since the last yield */
	uint32_t looks; /* that are due before the next, at most */
	uint32_t most;
	uint32_t calm;  /* yields in a row that nobody needed */
	uint64_t least; /* ns that the shortest took */
};

/* most: looks between two yields when nobody needs the CPU. */
static inline void manners_init(struct manners *manners, uint32_t most)
{
	*manners = (struct manners){.looks = most, .most = most, .least = MANNERS_CROWDED};
}

/* A look has found something. */
static inline void manners_work(struct manners *manners)
{
	manners->empty = 0;
}

/* A look has found nothing; true: it is time to yield, and to tell manners_learn(). */
static inline bool manners_due(struct manners *manners)
{
	if (++manners->empty < manners->looks)
		return false;
	manners->empty = 0;
	return true;
}

/* A yield took so many ns. */
static inline void manners_learn(struct manners *manners, uint64_t took)
{
	if (took < manners->least)
		manners->least = took > MANNERS_LEAST ? took : MANNERS_LEAST;
	if (took >= MANNERS_CROWDED || took > MANNERS_LONG * manners->least) {
		manners->looks /= MANNERS_HASTE;
		if (manners->looks == 0)
			manners->looks = 1;
		manners->calm = 0;
	} else if (manners->looks < manners->most && ++manners->calm >= MANNERS_CALM) {
		manners->looks *= 2;
		if (manners->looks > manners->most)
			manners->looks = manners->most;
		manners->calm = 0;
	}
}

#endif
