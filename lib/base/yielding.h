/* SPDX-License-Identifier: BSD-3-Clause */
/* yielding.h - whether a thread that waits had better yield or sleep. The owner's; no clock and no
 * system call here.
 *
 * A yield hands the CPU to the thread that is waited for, if that one is next. Beside a program
 * that computes it waits for the end of a time slice, milliseconds each time; but a thread that
 * sleeps is woken before such a program goes on. So after a yield that has taken long a thread does
 * not yield for a while.
 */
#ifndef BASE_YIELDING_H
#define BASE_YIELDING_H

#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>

#define YIELDING_LONG  (200 * MICROSECOND) /* more than threads need that soon yield as well */
#define YIELDING_PAUSE (20 * MILLISECOND)

struct yielding {
	uint64_t pause; /* until then it is better to sleep, ns */
};

/* Is it worth while to yield now? */
static inline bool yielding_pays(const struct yielding *yielding, uint64_t now)
{
	return now >= yielding->pause;
}

/* A yield has taken so long. */
static inline void yielding_learn(struct yielding *yielding, uint64_t began, uint64_t ended)
{
	if (ended - began >= YIELDING_LONG)
		yielding->pause = ended + YIELDING_PAUSE;
}

#endif
