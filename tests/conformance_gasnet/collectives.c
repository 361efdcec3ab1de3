/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.c - each collective, from each root, with memory inside of the segment and outside,
 * with each kind of synchronisation.
 */
#include "ranks.h"

#include <string.h>
#include <time.h>

#include <gasnet_coll.h>

#define BYTES_MAX ((size_t)20000)

static uint8_t one[BYTES_MAX], all[RANKS_MAX * BYTES_MAX], got[RANKS_MAX * BYTES_MAX];

/* A source that no other collective has. */
static unsigned seed_of(unsigned round, unsigned from, unsigned to)
{
	return round * 4096 + from * 64 + to;
}

static void broadcast_try(unsigned round, unsigned root, size_t length, int flags)
{
	uint8_t *to = round % 2 ? segments[rank] : got;

	if (rank == root)
		pattern_fill(one, length, seed_of(round, root, 0));
	gasnet_coll_broadcast(GASNET_TEAM_ALL, to, root, one, length, flags);
	CHECK(pattern_is(to, length, seed_of(round, root, 0)));
	memset(one, 0, length); /* it may be changed */
}

static void scatter_try(unsigned round, unsigned root, size_t length, int flags)
{
	if (rank == root)
		for (unsigned i = 0; i < ranks; i++)
			pattern_fill(all + i * length, length, seed_of(round, root, i));
	gasnet_coll_scatter(GASNET_TEAM_ALL, one, root, all, length, flags);
	CHECK(pattern_is(one, length, seed_of(round, root, rank)));
	memset(all, 0, ranks * length);
}

static void gather_try(unsigned round, unsigned root, size_t length, int flags)
{
	pattern_fill(one, length, seed_of(round, rank, 0));
	gasnet_coll_gather(GASNET_TEAM_ALL, root, got, one, length, flags);
	memset(one, 0, length);
	for (unsigned i = 0; i < ranks && rank == root; i++)
		CHECK(pattern_is(got + i * length, length, seed_of(round, i, 0)));
}

static void gather_all_try(unsigned round, size_t length, int flags)
{
	pattern_fill(one, length, seed_of(round, rank, 0));
	gasnet_coll_gather_all(GASNET_TEAM_ALL, got, one, length, flags);
	memset(one, 0, length);
	for (unsigned i = 0; i < ranks; i++)
		CHECK(pattern_is(got + i * length, length, seed_of(round, i, 0)));
}

static void exchange_try(unsigned round, size_t length, int flags)
{
	for (unsigned i = 0; i < ranks; i++)
		pattern_fill(all + i * length, length, seed_of(round, rank, i));
	gasnet_coll_exchange(GASNET_TEAM_ALL, got, all, length, flags);
	memset(all, 0, ranks * length);
	for (unsigned i = 0; i < ranks; i++)
		CHECK(pattern_is(got + i * length, length, seed_of(round, i, rank)));
}

/* With an ALLSYNC no rank returns before all have called, although one is late. */
static void all_come(unsigned round, int flags)
{
	const struct timespec nap = {.tv_nsec = 50000000};
	volatile uint8_t *came = segments[rank] + SEGMENT / 2;

	barrier_pass();
	if (rank == 2)
		nanosleep(&nap, NULL);
	for (unsigned i = 0; i < ranks; i++)
		gasnet_put_val(i, segments[i] + SEGMENT / 2 + rank, round, 1);
	gasnet_coll_broadcast(GASNET_TEAM_ALL, got, 0, one, 8, flags);
	for (unsigned i = 0; i < ranks; i++)
		CHECK(came[i] == round);
	barrier_pass();
}

void collectives_run(void)
{
	static const size_t lengths[] = {0, 1, 8, 1000, BYTES_MAX};
	static const int flags[] = {
		GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC | GASNET_COLL_LOCAL,
		GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_SINGLE,
		GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_LOCAL};
	unsigned round = 0;

	gasnet_coll_init(NULL, 0, NULL, 0, 0);
	/* A barrier of the program's may be under way meanwhile. */
	gasnet_barrier_notify(1, 0);
	for (unsigned f = 0; f < 3; f++) {
		for (unsigned n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
			for (unsigned root = 0; root < ranks; root++) {
				broadcast_try(round++, root, lengths[n], flags[f]);
				scatter_try(round++, root, lengths[n], flags[f]);
				gather_try(round++, root, lengths[n], flags[f]);
			}
			gather_all_try(round++, lengths[n], flags[f]);
			exchange_try(round++, lengths[n], flags[f]);
		}
	}
	CHECK(gasnet_barrier_wait(1, 0) == GASNET_OK);
	all_come(1, GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_MYSYNC);
	all_come(2, GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_ALLSYNC);
}
