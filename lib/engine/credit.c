/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.c - credit that grows and shrinks: credit.h. */
#include <engine/credit.h>

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t credit_give_back(struct credit_sent *sent, uint32_t units)
{
	uint32_t back = least(units, sent->granted - sent->spent);

	sent->spent += back;
	return back;
}

bool credit_grow(struct credit_pool *pool, struct credit_rank *rank)
{
	uint32_t step = rank->window > CREDIT_WINDOW_MIN ? rank->window : CREDIT_WINDOW_MIN;

	/* A window that is being taken back does not grow meanwhile. */
	if (rank->asked > 0)
		return false;
	step = least(step, (pool->units - pool->granted) / 2);
	step = least(step, CREDIT_WINDOW_MAX - rank->window);
	if (step == 0 || rank->window + step < CREDIT_WINDOW_MIN)
		return false;
	rank->window += step;
	pool->granted += step;
	return true;
}

static void window_shrink(struct credit_pool *pool, struct credit_rank *rank, uint32_t units)
{
	rank->window -= units;
	credit_pool_give(pool, units);
}

uint32_t credit_reclaim(struct credit_pool *pool, struct credit_rank *rank, uint32_t units)
{
	uint32_t untold;

	if (rank->asked > 0)
		return 0;
	units = least(units, rank->window);
	untold = least(units, credit_owed(rank));
	window_shrink(pool, rank, untold);
	rank->asked = units - untold;
	return rank->asked;
}

bool credit_returned(struct credit_pool *pool, struct credit_rank *rank, uint32_t units)
{
	if (units > rank->asked || units > rank->told - rank->used)
		return false;
	rank->asked = 0;
	rank->used += units;
	rank->taken += units;
	window_shrink(pool, rank, units);
	return true;
}

void credit_end(struct credit_pool *pool, struct credit_rank *rank)
{
	credit_pool_give(pool, rank->window);
	*rank = (struct credit_rank){0};
}
