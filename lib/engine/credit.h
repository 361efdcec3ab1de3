/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.h - how much two-sided messages a process may send to a peer without asking: arithmetic
 * alone, with no memory of its own. One number bounds the headers and the bytes that a receiver may
 * have to keep.
 *
 * Credit is counted in units of 64 bytes. A letter costs CREDIT_LETTER units for its header, its
 * kept entry and its first 64 bytes, and CREDIT_CELL units for each further 256 bytes that have
 * begun. Both ends count all units that ever were, modulo 2^32, and begin at zero.
 *
 *     sender     spent ............. granted
 *     receiver   taken ... used .... told .... taken + window
 *
 * C1. A letter is sent on credit only if `spent` does not pass `granted` by it. `granted` is what
 *     the receiver told last, so `used` never passes `told` while the sender keeps to the rules.
 * C2. taken <= used <= told <= taken + window, modulo 2^32. So what a rank has kept here and under
 *     way never exceeds its window, and a told number is at most CREDIT_WINDOW_MAX beyond the one
 *     before.
 * C3. A pool has as many units as its memory has; the windows of all its ranks, and what was taken
 *     by credit_pool_take(), are no more at any time.
 * C4. Units that may be at the sender are the pool's again only when the sender has answered that
 *     it counts them as spent (credit_returned()).
 */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_UNIT       64 /* bytes */
#define CREDIT_LETTER     5u
#define CREDIT_CELL       4u
#define CREDIT_CELL_BYTES 256
/* The least window: any letter of 1,024 bytes, or six short ones. */
#define CREDIT_WINDOW_MIN 32u
#define CREDIT_WINDOW_MAX (UINT32_C(1) << 19)
/* A grant that is further beyond the last one is not believed. */
#define CREDIT_STEP_MAX (UINT32_C(1) << 20)

/* What a sender knows of one peer. */
struct credit_sent {
	uint32_t spent;
	uint32_t granted;
};

/* What a receiver knows of one peer. */
struct credit_rank {
	uint32_t taken; /* units of letters that have met a receive, or were given back */
	uint32_t used;  /* of letters that have come, or were given back */
	uint32_t told;  /* the last grant that was sent */
	uint32_t window;
	uint32_t asked;  /* of the window, to be given back: its answer has not come */
	uint32_t marked; /* `used` when `told` was sent */
};

/* What a receiver grants from. */
struct credit_pool {
	uint32_t units;
	uint32_t granted;
};

/* Units of a letter; length: at most 64 bytes * CREDIT_WINDOW_MAX. */
static inline uint32_t credit_cost(uint32_t length)
{
	if (length <= CREDIT_UNIT)
		return CREDIT_LETTER;
	return CREDIT_LETTER +
	       (length - CREDIT_UNIT + CREDIT_CELL_BYTES - 1) / CREDIT_CELL_BYTES * CREDIT_CELL;
}

/* --- sender --- */

/* Counts a letter as spent; returns false without enough credit, and changes nothing then. */
static inline bool credit_spend(struct credit_sent *sent, uint32_t cost)
{
	if ((int32_t)(sent->spent + cost - sent->granted) > 0)
		return false;
	sent->spent += cost;
	return true;
}

/* The receiver says that it has granted so much. Returns false if no honest one says that; nothing
 * has changed then. */
static inline bool credit_heard(struct credit_sent *sent, uint32_t granted)
{
	if (granted - sent->granted > CREDIT_STEP_MAX)
		return false;
	sent->granted = granted;
	return true;
}

/* The receiver asks for so many units back. Returns how many it gets: they are spent. */
uint32_t credit_give_back(struct credit_sent *sent, uint32_t units);

/* --- receiver --- */

/* A letter has come on credit; returns false if it goes beyond what the sender was told. */
static inline bool credit_use(struct credit_rank *rank, uint32_t cost)
{
	if ((int32_t)(rank->used + cost - rank->told) > 0)
		return false;
	rank->used += cost;
	return true;
}

/* A letter that had come on credit needs its memory no more. */
static inline void credit_take(struct credit_rank *rank, uint32_t cost)
{
	rank->taken += cost;
}

/* Units that the sender has not been told of yet. */
static inline uint32_t credit_owed(const struct credit_rank *rank)
{
	return rank->taken + rank->window - rank->told;
}

/* Is so much owed that it is worth a message of its own? Half of a small window, a quarter of a
 * larger one. */
static inline bool credit_is_due(const struct credit_rank *rank)
{
	uint32_t part = rank->window < 128 ? rank->window / 2 : rank->window / 4;
	uint32_t owed = credit_owed(rank);

	return owed > 0 && owed >= part;
}

/* Was half of the window used since the sender was told last? */
static inline bool credit_is_short(const struct credit_rank *rank)
{
	return rank->window > 0 && rank->used - rank->marked >= rank->window / 2;
}

/* The number that the next message to the sender brings. */
static inline uint32_t credit_tell(struct credit_rank *rank)
{
	rank->told = rank->taken + rank->window;
	rank->marked = rank->used;
	return rank->told;
}

/* Makes a window twice as large, or as large as half of what the pool has left allows. Returns
 * false if it stays as it is. */
bool credit_grow(struct credit_pool *pool, struct credit_rank *rank);
/* Takes so many units of a window back, at most the whole. What the sender was not told of is the
 * pool's at once. Returns how many units the sender must be asked for; 0: none. */
uint32_t credit_reclaim(struct credit_pool *pool, struct credit_rank *rank, uint32_t units);
/* The sender answers that it gives so many units back. Returns false if it lies, and changes
 * nothing then. */
bool credit_returned(struct credit_pool *pool, struct credit_rank *rank, uint32_t units);
/* A rank has gone: its window is the pool's again, and both ends begin at zero. Nothing of it is
 * kept. */
void credit_end(struct credit_pool *pool, struct credit_rank *rank);

/* Memory of the pool for what no rank has credit for. */
static inline bool credit_pool_take(struct credit_pool *pool, uint32_t units)
{
	if (units > pool->units - pool->granted)
		return false;
	pool->granted += units;
	return true;
}

static inline void credit_pool_give(struct credit_pool *pool, uint32_t units)
{
	pool->granted -= units;
}

#endif
