/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - the collective operations of MPI, of several sizes and roots, one after the other
 * and overlapping. Every element is checked. */
#include "check.h"

#define MOST 100000 /* elements */

static int *from, *to;

static int element(int of, int at, int round)
{
	return of * 1000003 + at * 17 + round;
}

static void make(int count, int round)
{
	for (int at = 0; at < count; at++)
		from[at] = element(rank, at, round);
	memset(to, 0xee, (size_t)count * sizeof(*to));
}

static void broadcasts(int count, int round)
{
	int root = round % ranks;

	make(count, round);
	MPI_Bcast(from, count, MPI_INT, root, MPI_COMM_WORLD);
	for (int at = 0; at < count; at++)
		expect(from[at] == element(root, at, round), "broadcast %d of %d: element %d",
			round, count, at);
}

static void reductions(int count, int round)
{
	int root = round % ranks;

	make(count, round);
	MPI_Reduce(from, to, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
	for (int at = 0; at < count && rank == root; at++)
		expect(to[at] == ranks * (ranks - 1) / 2 * 1000003 + ranks * (at * 17 + round),
			"reduction %d of %d: element %d", round, count, at);
	MPI_Allreduce(from, to, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	for (int at = 0; at < count; at++)
		expect(to[at] == element(ranks - 1, at, round),
			"reduction for all %d of %d: element %d", round, count, at);
}

static void gatherings(int count, int round)
{
	int each = count / ranks;

	make(each, round);
	MPI_Allgather(from, each, MPI_INT, to, each, MPI_INT, MPI_COMM_WORLD);
	for (int at = 0; at < each * ranks; at++)
		expect(to[at] == element(at / each, at % each, round),
			"gathering %d of %d: element %d", round, each, at);
	make(each * ranks, round);
	MPI_Alltoall(from, each, MPI_INT, to, each, MPI_INT, MPI_COMM_WORLD);
	for (int at = 0; at < each * ranks; at++)
		expect(to[at] == element(at / each, rank * each + at % each, round),
			"all to all %d of %d: element %d", round, each, at);
}

static void rounds(void (*run)(int count, int round))
{
	static const int counts[] = {1, 8, 100, 1000, 2047, 20000, MOST / 8 * 8};
	const int each = quick ? 3 : 20;

	for (unsigned n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
		for (int round = 0; round < each; round++)
			run(counts[n] < ranks ? ranks : counts[n], round);
}

static void broadcast(void)
{
	rounds(broadcasts);
}

static void reduce(void)
{
	rounds(reductions);
}

static void gather(void)
{
	rounds(gatherings);
}

/* Barriers and small sums in a row, without anything between them. */
static void many(void)
{
	for (int round = 0; round < (quick ? 200 : 2000); round++) {
		int mine = rank + round, all = 0;

		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		expect(all == ranks * (ranks - 1) / 2 + ranks * round, "small sum %d is %d", round,
			all);
	}
}

/* Several at once that do not block. */
static void overlapping(void)
{
	enum { AT_ONCE = 16 };

	for (int round = 0; round < (quick ? 5 : 50); round++) {
		MPI_Request requests[AT_ONCE];
		int mine[AT_ONCE], all[AT_ONCE];

		for (int n = 0; n < AT_ONCE; n++) {
			mine[n] = rank * (n + 1) + round;
			all[n] = -1;
			MPI_Iallreduce(&mine[n], &all[n], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
				&requests[n]);
		}
		MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
		for (int n = 0; n < AT_ONCE; n++)
			expect(all[n] == ranks * (ranks - 1) / 2 * (n + 1) + ranks * round,
				"sum %d of round %d is %d", n, round, all[n]);
	}
}

int main(int count, char **words)
{
	begin(&count, &words);
	from = calloc(MOST, sizeof(*from));
	to = calloc(MOST, sizeof(*to));
	part("broadcasts", broadcast);
	part("reductions", reduce);
	part("gatherings and all to all", gather);
	part("barriers and sums", many);
	if (!only_blocking)
		part("sums that overlap", overlapping);
	free(from);
	free(to);
	return end();
}
