/* SPDX-License-Identifier: BSD-3-Clause */
/* wheel.c - a hierarchical timing wheel; see wheel.h. Owned by one poll core.
 *
 * A timer lies in the lowest level whose span covers the ticks that remain. When the lower level
 * has gone round, the timers of the next slot above move down.
 *
 * I4. used has a bit for every slot that may have timers; a slot with timers has its bit. The list
 *     of a slot without it is not initialised: it may be memory that was never touched.
 */
#include <transport/wheel.h>

#include <string.h>

#define LEVEL_BITS 4
#define LEVEL_MASK (WHEEL_SLOTS - 1u)
#define SPAN_TICKS (UINT64_C(1) << (WHEEL_LEVELS * LEVEL_BITS))

void wheel_init(struct wheel *wheel, uint64_t now)
{
	wheel->current = now >> WHEEL_TICK_SHIFT;
	wheel->next = UINT64_MAX;
	list_init(&wheel->due);
	list_init(&wheel->running);
	memset(wheel->used, 0, sizeof(wheel->used));
}

/* The tick at which the first slot with timers of this level has its turn: it is one of the next
 * WHEEL_SLOTS. */
static uint64_t level_next(const struct wheel *wheel, unsigned level)
{
	const unsigned shift = level * LEVEL_BITS;
	const uint64_t first = (wheel->current >> shift) + 1;
	const uint32_t used =
		wheel->used[level] * (1u << WHEEL_SLOTS | 1u); /* two rounds of them */

	if (used == 0)
		return UINT64_MAX;
	return (first + (unsigned)__builtin_ctz(used >> (first & LEVEL_MASK))) << shift;
}

static uint64_t slots_next(const struct wheel *wheel)
{
	uint64_t first = UINT64_MAX;

	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		uint64_t next = level_next(wheel, level);

		if (next < first)
			first = next;
	}
	return first;
}

/* The timer's tick lies after current. */
static void wheel_place(struct wheel *wheel, struct timer *timer)
{
	uint64_t tick = timer->tick;
	unsigned level, slot;

	if (tick - wheel->current >= SPAN_TICKS)
		tick = wheel->current + SPAN_TICKS - 1;
	level = (63 - (unsigned)__builtin_clzll(tick - wheel->current)) / LEVEL_BITS;
	slot = (unsigned)(tick >> (level * LEVEL_BITS)) & LEVEL_MASK;
	if ((wheel->used[level] & 1u << slot) == 0)
		list_init(&wheel->slots[level][slot]);
	wheel->used[level] |= (uint16_t)(1u << slot);
	list_append(&wheel->slots[level][slot], &timer->link);
}

void wheel_set(struct wheel *wheel, struct timer *timer, uint64_t at)
{
	if (timer_set(timer))
		link_remove(&timer->link);
	timer->tick = wheel_tick(at);
	if (timer->tick <= wheel->current) {
		timer->tick = wheel->current;
		wheel->next = wheel->current;
		list_append(&wheel->due, &timer->link);
		return;
	}
	wheel_place(wheel, timer);
	if (timer->tick - wheel->current < WHEEL_SLOTS) {
		if (timer->tick < wheel->next)
			wheel->next = timer->tick;
	} else if (list_empty(&wheel->due)) {
		wheel->next = slots_next(wheel);
	}
}

void wheel_stop(struct timer *timer)
{
	if (timer_set(timer))
		link_remove(&timer->link);
}

/* Appends all that is in a list to another. */
static void list_move(struct link *from, struct link *to)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

/* Empties a slot: its timers are due, or move down. */
static void wheel_spill(struct wheel *wheel, unsigned level, unsigned slot)
{
	const unsigned bit = 1u << slot;
	struct link all;

	if ((wheel->used[level] & bit) == 0)
		return;
	wheel->used[level] &= (uint16_t)~bit;
	list_init(&all);
	list_move(&wheel->slots[level][slot], &all);
	list_each (struct timer, timer, &all, link) {
		link_remove(&timer->link);
		if (timer->tick <= wheel->current)
			list_append(&wheel->due, &timer->link);
		else
			wheel_place(wheel, timer);
	}
}

void wheel_advance(struct wheel *wheel, uint64_t now)
{
	uint64_t target = now >> WHEEL_TICK_SHIFT;
	uint64_t next = wheel->next;

	while (next <= target) {
		wheel->current = next;
		for (unsigned level = WHEEL_LEVELS - 1; level > 0; level--) {
			unsigned shift = level * LEVEL_BITS;

			if ((wheel->current & ((UINT64_C(1) << shift) - 1)) == 0)
				wheel_spill(wheel, level,
					(unsigned)(wheel->current >> shift) & LEVEL_MASK);
		}
		wheel_spill(wheel, 0, (unsigned)wheel->current & LEVEL_MASK);
		next = slots_next(wheel);
	}
	wheel->next = next;
	if (target > wheel->current)
		wheel->current = target;
	list_move(&wheel->due, &wheel->running);
}

struct timer *wheel_take(struct wheel *wheel)
{
	struct timer *timer = list_first(&wheel->running, struct timer, link);

	if (timer)
		link_remove(&timer->link);
	return timer;
}

void wheel_leave(struct wheel *wheel)
{
	if (list_empty(&wheel->running))
		return;
	list_move(&wheel->due, &wheel->running);
	list_move(&wheel->running, &wheel->due);
	wheel->next = wheel->current;
}

uint64_t wheel_deadline(const struct wheel *wheel, uint64_t now)
{
	uint64_t at;

	if (!list_empty(&wheel->due) || !list_empty(&wheel->running))
		return 0;
	if (wheel->next == UINT64_MAX)
		return UINT64_MAX;
	at = wheel->next << WHEEL_TICK_SHIFT;
	return at > now ? at - now : 0;
}
