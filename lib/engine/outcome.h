/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - ends of stores and of receives that are told without an event: the poll core writes
 * into an object of the program's what became of a message, and hands it over in a list of its
 * queue, of which a reader takes all that are new. An object of its own for each message costs less
 * than a place in a queue, is mostly in a cache, and cannot be lost.
 *
 *     poll core                                     reader, under a lock of its own
 *     object, next, its told = n  (plain)
 *     outcomes: the object        (release A)  -->  outcomes, and back by next (acquire A)
 *     told = n                    (release B)  -->  told > taken?             (acquire B)
 *                                                   taken = n of the newest
 *
 * Neither side writes what the other one writes, so neither needs an atomic instruction. An object
 * that was taken may be gone, or be told again: the newest one is looked at only if it has not been
 * taken, which the counts say, and next only as often as there are objects to take. A reader may
 * take an object before `told` counts it; then `told` is less than `taken` for a while.
 *
 * An object is in the list once: its message has one end, and struct dispatch and struct tally say
 * whether theirs is in it. It is the program's again when it has been taken. A queue whose space
 * closes gets no more.
 */
#ifndef ENGINE_OUTCOME_H
#define ENGINE_OUTCOME_H

#include <engine/credit.h>
#include <engine/queue.h>
#include <engine/state.h>
#include <engine/tiers.h>

/* An outcome that has been written comes into the list. */
static inline void outcome_publish(
	struct space *space, struct queue *queue, struct outcome *outcome)
{
	const uint32_t told = atomic_load_explicit(&queue->told, memory_order_relaxed) + 1;

	outcome->next = atomic_load_explicit(&queue->outcomes, memory_order_relaxed);
	outcome->told = told;
	atomic_store_explicit(&queue->outcomes, outcome, memory_order_release); /* A */
	/* Its reader may have taken it already. */
	atomic_store_explicit(&queue->told, told, memory_order_release); /* B */
	engine_touch(space, queue);
}

/* A store with WANT_OUTCOME has been answered, or will not be. */
static inline void outcome_answered(
	struct space *space, const struct region *region, const struct rma_state *rma)
{
	struct outcome *outcome = (struct outcome *)(uintptr_t)rma->user;
	struct queue *queue = region_queue(region);

	if (!queue || space->closing)
		return;
	outcome->verdict = rma->verdict;
	outcome->tier = rma->tier;
	outcome->moved = rma->moved;
	outcome->offset = rma->offset;
	credit_answered(space, outcome);
	outcome_publish(space, queue, outcome);
}

/* The end of a receive, or of letters to a peer. */
static inline void outcome_end(
	struct space *space, uint32_t portal, struct outcome *outcome, enum tier_verdict verdict)
{
	const struct tier_portal *state = &space->portals[portal];
	struct queue *queue = queue_alive(state->logs, state->queue);

	if (!queue || space->closing)
		return;
	outcome->verdict = (uint8_t)verdict;
	outcome_publish(space, queue, outcome);
}

#endif
