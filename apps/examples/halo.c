/* SPDX-License-Identifier: BSD-3-Clause */
/* halo.c - GASNet: a grid whose rows are shared out among ranks. In each step a rank puts its first
 * and last row beside those of its neighbours, computes its inner rows while they are on their way,
 * and the outer ones after a barrier. In the end rank 0 gets all rows and computes them itself.
 *
 *     cc halo.c -o halo $(pkg-config --cflags --libs gasnet-postern-seq)
 *     postern-run -n 4 halo [STEPS]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gasnet.h>

#define WIDTH 256 /* cells of a row; the first and the last one stay 0 */
#define ROWS  64  /* of each rank */
#define PAGES(bytes)                                                                               \
	(((bytes) + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * (uintptr_t)GASNET_PAGESIZE)

typedef uint32_t row[WIDTH];

/* In each segment: two generations of a rank's rows, with one of each neighbour's before and after
 * them. */
struct grid {
	row rows[2][ROWS + 2];
};

static struct grid **grids; /* of all ranks */
static unsigned rank, ranks;

static void check(int code, const char *call)
{
	if (code == GASNET_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, gasnet_ErrorDesc(code));
	gasnet_exit(1);
}

static void *memory(size_t count, size_t size)
{
	void *found = calloc(count, size);

	if (!found)
		gasnet_exit(1);
	return found;
}

static void start(int argc, char **argv)
{
	gasnet_seginfo_t *segments;

	check(gasnet_init(&argc, &argv), "gasnet_init");
	check(gasnet_attach(NULL, 0, PAGES(sizeof(struct grid)), 0), "gasnet_attach");
	rank = gasnet_mynode();
	ranks = gasnet_nodes();
	segments = memory(ranks, sizeof(*segments));
	grids = memory(ranks, sizeof(*grids));
	check(gasnet_getSegmentInfo(segments, (int)ranks), "gasnet_getSegmentInfo");
	for (unsigned i = 0; i < ranks; i++)
		grids[i] = segments[i].addr;
	free(segments);
}

/* A row of the next generation from three of this one. */
static void row_compute(row to, const row above, const row here, const row below)
{
	for (unsigned x = 1; x + 1 < WIDTH; x++)
		to[x] = above[x] + below[x] + here[x - 1] + here[x + 1] + 3 * here[x];
}

static void row_begin(row first, unsigned number)
{
	memset(first, 0, sizeof(row));
	for (unsigned x = 1; x + 1 < WIDTH; x++)
		first[x] = number * WIDTH + x;
}

static void compute(row *to, row *from, unsigned first, unsigned last)
{
	for (unsigned y = first; y <= last; y++)
		row_compute(to[y], from[y - 1], from[y], from[y + 1]);
}

static void step(unsigned now)
{
	row *from = grids[rank]->rows[now], *to = grids[rank]->rows[!now];
	gasnet_handle_t puts[2] = {GASNET_INVALID_HANDLE, GASNET_INVALID_HANDLE};

	if (rank > 0)
		puts[0] = gasnet_put_nb_bulk(
			rank - 1, grids[rank - 1]->rows[now][ROWS + 1], from[1], sizeof(row));
	if (rank + 1 < ranks)
		puts[1] = gasnet_put_nb_bulk(
			rank + 1, grids[rank + 1]->rows[now][0], from[ROWS], sizeof(row));
	compute(to, from, 2, ROWS - 1);
	gasnet_wait_syncnb_all(puts, 2);
	check(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier");
	compute(to, from, 1, 1);
	compute(to, from, ROWS, ROWS);
}

/* Returns how many rows of all ranks are not what one process computes. */
static unsigned compare(unsigned steps)
{
	unsigned height = ranks * ROWS, wrong = 0;
	row *old = memory(height + 2, sizeof(row)), *new = memory(height + 2, sizeof(row)), *kept;
	row got;

	for (unsigned y = 1; y <= height; y++)
		row_begin(old[y], y);
	for (unsigned i = 0; i < steps; i++) {
		compute(new, old, 1, height);
		kept = old;
		old = new;
		new = kept;
	}
	for (unsigned y = 0; y < height; y++) {
		gasnet_get(
			got, y / ROWS, grids[y / ROWS]->rows[steps % 2][y % ROWS + 1], sizeof(got));
		wrong += memcmp(got, old[y + 1], sizeof(got)) != 0;
	}
	free(old);
	free(new);
	return wrong;
}

int main(int argc, char **argv)
{
	unsigned steps, wrong = 0;

	start(argc, argv);
	steps = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	if (steps == 0) {
		fprintf(stderr, "\"%s\" is no number of steps\nusage: halo [STEPS]\n", argv[1]);
		gasnet_exit(2);
	}
	memset(grids[rank], 0, sizeof(struct grid));
	for (unsigned y = 1; y <= ROWS; y++)
		row_begin(grids[rank]->rows[0][y], rank * ROWS + y);
	check(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier");
	for (unsigned i = 0; i < steps; i++)
		step(i % 2);
	check(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier");
	if (rank == 0) {
		wrong = compare(steps);
		printf("%u rows after %u steps on %u ranks: %u are wrong\n", ranks * ROWS, steps,
			ranks, wrong);
	}
	check(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier");
	gasnet_exit(wrong > 0);
}
