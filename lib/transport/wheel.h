/* SPDX-License-Identifier: BSD-3-Clause */
/* wheel.h - timers of one poll core: eight levels of 16 slots, a tick of 1.024 us, up to an hour.
 * Levels are small, so a wheel takes 2.1 KB of memory however its timers move.
 *
 * I1. A timer never runs before its time, and runs in the first run at or after the tick that
 *     follows it, or in the next one if that run ends early.
 * I2. Adding and removing are O(1); a turn with nothing due costs one comparison.
 * I3. Timers of one tick run in an order that depends on nothing but the calls made.
 */
#ifndef TRANSPORT_WHEEL_H
#define TRANSPORT_WHEEL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <base/list.h>

#define WHEEL_TICK_SHIFT 10
#define WHEEL_LEVELS     8
#define WHEEL_SLOTS      16

struct timer {
	struct link link;
	uint64_t tick;
};

struct wheel {
	uint64_t current; /* every timer of a tick up to this one is in due or has run */
	/* no slot needs a look before this tick; with timers in due: a tick that is past */
	uint64_t next;
	struct link due;             /* for the next wheel_advance() */
	struct link running;         /* for wheel_take() */
	uint16_t used[WHEEL_LEVELS]; /* a bit for each slot */
	struct link slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *wheel, uint64_t now) CORE_API(wheel_init);
/* Sets a timer that may be set already; a time that is past is due in the next run. */
void wheel_set(struct wheel *wheel, struct timer *timer, uint64_t at) CORE_API(wheel_set);
void wheel_stop(struct timer *timer) CORE_API(wheel_stop);

/* A run: wheel_advance(), then wheel_take() until NULL or wheel_leave(). Each timer taken is no
 * longer set. A timer that is set meanwhile for a time in the past is left for the next run. */
void wheel_advance(struct wheel *wheel, uint64_t now) CORE_API(wheel_advance);
struct timer *wheel_take(struct wheel *wheel) CORE_API(wheel_take);
/* Ends a run early: the next one takes first what this one has not. */
void wheel_leave(struct wheel *wheel) CORE_API(wheel_leave);

/* ns until a run is needed: never later than a timer's time needs, perhaps earlier. UINT64_MAX
 * without timers. */
uint64_t wheel_deadline(const struct wheel *wheel, uint64_t now);

/* Would a run at `now` find something to do? */
static inline bool wheel_is_due(const struct wheel *wheel, uint64_t now)
{
	return wheel->next <= now >> WHEEL_TICK_SHIFT;
}

/* The time of the first run that finds something to do, when one at present would not; the end of
 * time without timers. */
static inline uint64_t wheel_next(const struct wheel *wheel)
{
	return wheel->next << WHEEL_TICK_SHIFT;
}
static_assert(UINT64_MAX << WHEEL_TICK_SHIFT > UINT64_C(1) << 63, "no timer: the end of time");

static inline bool timer_set(const struct timer *timer)
{
	return link_listed(&timer->link);
}

static inline uint64_t wheel_tick(uint64_t at)
{
	return (at >> WHEEL_TICK_SHIFT) + ((at & ((UINT64_C(1) << WHEEL_TICK_SHIFT) - 1)) != 0);
}

#endif
