/* SPDX-License-Identifier: BSD-3-Clause */
/* spinning.h - for how long a thread that waits looks again and again before it sleeps. One for
 * each thread, for all its waits; no clock and no system call here.
 *
 *      first look in vain         limit                       found
 *      |---- spins ---------------|---- sleeps ----------------|
 *      began                      slept
 *
 * A sleep and the wake-up after it cost some 25 us, so who spins for as long as two of them loses
 * little, and gains all of it if what it waits for comes meanwhile.
 *
 * W5. A wait spins for SPINNING_MOST, and then sleeps.
 * W6. After a wait that ended while it spun, or within SPINNING_SOON, the next one spins for
 *     SPINNING_MOST; after a longer one for half as long as before, down to SPINNING_LEAST. Of two
 *     threads that both sleep each waits for two wake-ups, and must find out that none is needed.
 * W7. SPINNING_VAIN waits in a row that spun for SPINNING_MOST in vain, and were over soon after
 *     they fell asleep, mean that what is waited for needs this CPU, or takes a little too long.
 *     Then waits spin for SPINNING_LEAST, until SPINNING_PAUSE has passed.
 * W8. A thread that shares its CPU with the one it waits for sleeps at once (spinning_asks()).
 * W9. Nobody yields: beside a program that computes Linux 6.18 takes a whole time slice for it, but
 *     wakes a thread that slept before such a program goes on.
 * W10. Threads that sleep at once for each other stay on one CPU, because the system moves only
 *     threads that want to run. So a polling thread that was woken from its own CPU
 *     CROWDING_WAKES times in a row asks for another CPU, at most once in CROWDING_PAUSE.
 */
#ifndef BASE_SPINNING_H
#define BASE_SPINNING_H

#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>

#define SPINNING_MOST  (50 * MICROSECOND)
#define SPINNING_LEAST (5 * MICROSECOND)
#define SPINNING_SOON  (250 * MICROSECOND)
#define SPINNING_VAIN  4u
#define SPINNING_AGAIN (100 * MICROSECOND) /* from falling asleep to the end of such a wait */
#define SPINNING_PAUSE (20 * MILLISECOND)
#define CROWDING_WAKES 16u
#define CROWDING_PAUSE (100 * MILLISECOND)
#define SPINNING_HALF  4u /* times SPINNING_MOST can be halved */

/* All zero at first. */
struct spinning {
	uint64_t began; /* when this wait looked in vain first, ns; 0: it has not */
	uint64_t slept; /* when it fell asleep first; 0: it has not */
	uint64_t pause; /* the end of the pause of W7 */
	uint32_t halved;
	uint32_t vain; /* waits in a row, W7 */
	bool asked;
};

static inline uint64_t spinning_limit(const struct spinning *spinning, uint64_t now)
{
	uint64_t limit = SPINNING_MOST >> spinning->halved;

	return now < spinning->pause || limit < SPINNING_LEAST ? SPINNING_LEAST : limit;
}

/* A look was in vain. Returns true if the thread is to look again at once, false if it is to sleep
 * before it does. */
static inline bool spinning_goes_on(struct spinning *spinning, uint64_t now)
{
	if (spinning->began == 0) {
		spinning->began = now;
		return true;
	}
	/* Clocks of two CPUs may differ by a little. */
	if (spinning->slept == 0 &&
		(now < spinning->began || now - spinning->began < spinning_limit(spinning, now)))
		return true;
	if (spinning->slept == 0)
		spinning->slept = now;
	return false;
}

/* While it goes on: once in each wait, when that is not as short as most, it is worth while to find
 * out whether the thread shares its CPU (W8). */
static inline bool spinning_asks(struct spinning *spinning, uint64_t now)
{
	if (spinning->asked || now < spinning->began + SPINNING_LEAST)
		return false;
	spinning->asked = true;
	return true;
}

/* It does: it is to sleep. */
static inline void spinning_stop(struct spinning *spinning, uint64_t now)
{
	spinning->slept = now;
}

/* A sleep that took from slept to now, of a wait that is over. */
static inline void spinning_learn(struct spinning *spinning, uint64_t now)
{
	bool vain = spinning->slept - spinning->began >= SPINNING_MOST &&
		    now < spinning->slept + SPINNING_AGAIN;

	if (now < spinning->began + SPINNING_SOON)
		spinning->halved = 0;
	else if (spinning->halved < SPINNING_HALF)
		spinning->halved++;
	spinning->vain = vain ? spinning->vain + 1 : 0;
	if (spinning->vain == SPINNING_VAIN) {
		spinning->vain = 0;
		spinning->pause = now + SPINNING_PAUSE;
	}
}

/* The wait is over, or goes on with something new. now: needed only if the wait has slept. */
static inline void spinning_end(struct spinning *spinning, uint64_t now)
{
	if (spinning->slept != 0)
		spinning_learn(spinning, now);
	else if (spinning->began != 0)
		spinning->halved = spinning->vain = 0;
	spinning->began = spinning->slept = 0;
	spinning->asked = false;
}

/* How often a polling thread shares its CPU with those that wake it (W10). All zero at first. */
struct crowding {
	uint32_t wakes; /* in a row, from its own CPU */
	uint64_t until; /* the end of the pause, ns */
};

/* A sleep is over. crowded: the thread was woken from its own CPU. Returns true if it is to ask for
 * another one. */
static inline bool crowding_moves(struct crowding *crowding, bool crowded, uint64_t now)
{
	crowding->wakes = crowded ? crowding->wakes + 1 : 0;
	if (crowding->wakes < CROWDING_WAKES || now < crowding->until)
		return false;
	crowding->wakes = 0;
	crowding->until = now + CROWDING_PAUSE;
	return true;
}

#endif
