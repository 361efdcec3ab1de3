/* SPDX-License-Identifier: BSD-3-Clause */
/* trigger.h - triggered operations: commands that are kept until a counter has come so far, and are
 * then run. The poll core owns all of it; it is private memory.
 *
 * A counter's triggers are in a heap by threshold. What a change of the counter makes due moves to
 * the ready list of the engine, which is run at fixed points:
 *
 *     heap of counter A     (3, put) (3, add to B) (8, get)
 *                              A becomes 3
 *     ready list            put -> add to B            triggers_run()
 *
 * T1. What one change makes due is run in the order in which it was given, whatever the thresholds.
 *     What an earlier change made due is run before what a later one does.
 * T2. Nothing is run but by triggers_run(). A command that is run and makes others due puts them
 *     behind all that are ready: no recursion, and a chain that feeds itself ends each run at its
 *     limit.
 * T3. What is due stays due, whatever becomes of the counter.
 * T4. Where trigger_reserve() has been called, trigger_add() and trigger_ready() need no memory.
 */
#ifndef ENGINE_TRIGGER_H
#define ENGINE_TRIGGER_H

#include <sys/queue.h>

#include <base/pool.h>
#include <engine/command.h>

struct trigger {
	STAILQ_ENTRY(trigger) next; /* in the ready list */
	unsigned lines;
	struct long_command command;
};

/* A trigger in the heap of a counter. */
struct trigger_due {
	uint64_t threshold;
	uint64_t number;
	struct trigger *trigger;
};

/* Those of one counter. */
struct trigger_list {
	uint64_t counter; /* its handle, for probes; trigger_reserve()'s caller sets it */
	uint32_t count;
	uint32_t room;
	struct trigger_due heap[];
};

/* Those of an engine. */
struct triggers {
	struct pool pool;
	uint64_t number; /* of the next one that is kept */
	STAILQ_HEAD(, trigger) ready;
};

/* max: of all counters together. */
void triggers_init(struct triggers *triggers, unsigned max);
void triggers_free(struct triggers *triggers);

/* Makes sure that one more can be kept for the counter with this list, which is NULL at first.
 * Returns false without memory, or when there are max. */
bool trigger_reserve(struct triggers *triggers, struct trigger_list **list);
/* Keeps a command of so many lines until the counter's sum, which is `sum` now, reaches the
 * threshold. It is ready at once if that is so. */
void trigger_add(struct triggers *triggers, struct trigger_list *list, uint64_t sum,
	uint64_t threshold, const struct long_command *command, unsigned lines);
/* Puts a command behind all that are ready: so that it is run after them. */
void trigger_ready(struct triggers *triggers, const struct long_command *command, unsigned lines);

/* trigger_review() of a list whose first is due. */
void trigger_release(struct triggers *triggers, struct trigger_list *list, uint64_t sum);
/* A counter has changed: what is due becomes ready. list: NULL: it never had any. */
static inline void trigger_review(
	struct triggers *triggers, struct trigger_list *list, uint64_t sum)
{
	if (list && list->count > 0 && list->heap[0].threshold <= sum)
		trigger_release(triggers, list, sum);
}

static inline bool triggers_are_ready(const struct triggers *triggers)
{
	return !STAILQ_EMPTY(&triggers->ready);
}

/* Runs up to limit of those that are ready, in their order. Returns how many. */
unsigned triggers_run(struct triggers *triggers, unsigned limit,
	void (*run)(void *context, const struct long_command *command), void *context);

/* Throws away what still waits for a counter, and frees the list. Returns how many they were. */
unsigned trigger_cancel(struct triggers *triggers, struct trigger_list **list);

#endif
