/* SPDX-License-Identifier: BSD-3-Clause */
/* several.c - every collective of MPI that does not block, all on their way at the same time, and
 * every collective between neighbours, on a grid and on a graph. Every element is checked. */
#include "check.h"

#define RANKS  16  /* at most */
#define MOST   300 /* elements of a block, at most */
#define SPREAD 3   /* blocks of different lengths differ by less than this */

/* Element `at` of what one rank sends another. */
static int element(int of, int for_whom, int at, int round)
{
	return of * 1000003 + for_whom * 4099 + at * 17 + round;
}

/* One collective on its way: a block for each rank at both ends, and how long they are and where,
 * for the calls that want it. */
struct job {
	int from[RANKS * (MOST + SPREAD)], to[RANKS * (MOST + SPREAD)];
	int counts[RANKS], places[RANKS], bytes[RANKS];
	MPI_Datatype types[RANKS];
	int count, stride, root, round;
	MPI_Request request;
};

#define JOBS 17

static struct job *jobs;

static void job_make(struct job *job, int count, int spread, int root, int round)
{
	job->count = count;
	job->stride = count + spread;
	job->root = root;
	job->round = round;
	for (int n = 0; n < RANKS; n++) {
		job->counts[n] = count;
		job->places[n] = n * job->stride;
		job->bytes[n] = job->places[n] * (int)sizeof(int);
		job->types[n] = MPI_INT;
	}
	memset(job->to, 0xee, sizeof(job->to));
}

static void job_fill(struct job *job, int block, int of, int for_whom)
{
	for (int at = 0; at < job->counts[block]; at++)
		job->from[job->places[block] + at] = element(of, for_whom, at, job->round);
}

/* Is a block what the ranks from `first` up to but not `past` have added up? */
static void job_look(
	const struct job *job, const char *call, int block, int first, int past, int for_whom)
{
	for (int at = 0; at < job->counts[block]; at++) {
		int wanted = 0;

		for (int of = first; of < past; of++)
			wanted += element(of, for_whom, at, job->round);
		expect(job->to[job->places[block] + at] == wanted,
			"%s, %d elements, round %d: element %d of block %d is %d and not %d", call,
			job->counts[block], job->round, at, block, job->to[job->places[block] + at],
			wanted);
	}
}

/* --- without blocking --- */

enum call {
	BARRIER,
	BCAST,
	GATHER,
	GATHERV,
	SCATTER,
	SCATTERV,
	ALLGATHER,
	ALLGATHERV,
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER,
	REDUCE_SCATTER_BLOCK,
	SCAN,
	EXSCAN
};

static const char *const call_names[JOBS] = {"MPI_Ibarrier", "MPI_Ibcast", "MPI_Igather",
	"MPI_Igatherv", "MPI_Iscatter", "MPI_Iscatterv", "MPI_Iallgather", "MPI_Iallgatherv",
	"MPI_Ialltoall", "MPI_Ialltoallv", "MPI_Ialltoallw", "MPI_Ireduce", "MPI_Iallreduce",
	"MPI_Ireduce_scatter", "MPI_Ireduce_scatter_block", "MPI_Iscan", "MPI_Iexscan"};

/* The length of a block between two ranks, the same from both ends. */
static int between(const struct job *job, int one, int other)
{
	return job->count + (one + other) % SPREAD;
}

static void prepare(enum call call, struct job *job)
{
	int by_root =
		call == GATHERV || call == SCATTERV || call == ALLGATHERV || call == REDUCE_SCATTER;
	int place = 0;

	for (int n = 0; n < ranks; n++) {
		if (by_root)
			job->counts[n] = between(job, n, job->root);
		else if (call == ALLTOALLV || call == ALLTOALLW)
			job->counts[n] = between(job, n, rank);
		/* what is scattered lies without gaps */
		if (call == REDUCE_SCATTER)
			job->places[n] = place;
		place += job->counts[n];
	}
	for (int n = 0; n < ranks; n++)
		job_fill(job, n, rank, n);
	if (call == BCAST && rank == job->root)
		memcpy(job->to, job->from, (size_t)job->count * sizeof(int));
}

static void start(enum call call, struct job *j)
{
	const int *own = j->from + j->places[0];
	MPI_Comm all = MPI_COMM_WORLD;
	MPI_Request *request = &j->request;

	switch (call) {
	case BARRIER:
		MPI_Ibarrier(all, request);
		break;
	case BCAST:
		MPI_Ibcast(j->to, j->count, MPI_INT, j->root, all, request);
		break;
	case GATHER:
		MPI_Igather(
			own, j->count, MPI_INT, j->to, j->count, MPI_INT, j->root, all, request);
		break;
	case GATHERV:
		MPI_Igatherv(j->from + j->places[rank], j->counts[rank], MPI_INT, j->to, j->counts,
			j->places, MPI_INT, j->root, all, request);
		break;
	case SCATTER:
		MPI_Iscatter(j->from, j->count, MPI_INT, j->to, j->count, MPI_INT, j->root, all,
			request);
		break;
	case SCATTERV:
		MPI_Iscatterv(j->from, j->counts, j->places, MPI_INT, j->to + j->places[rank],
			j->counts[rank], MPI_INT, j->root, all, request);
		break;
	case ALLGATHER:
		MPI_Iallgather(own, j->count, MPI_INT, j->to, j->count, MPI_INT, all, request);
		break;
	case ALLGATHERV:
		MPI_Iallgatherv(j->from + j->places[rank], j->counts[rank], MPI_INT, j->to,
			j->counts, j->places, MPI_INT, all, request);
		break;
	case ALLTOALL:
		MPI_Ialltoall(j->from, j->count, MPI_INT, j->to, j->count, MPI_INT, all, request);
		break;
	case ALLTOALLV:
		MPI_Ialltoallv(j->from, j->counts, j->places, MPI_INT, j->to, j->counts, j->places,
			MPI_INT, all, request);
		break;
	case ALLTOALLW:
		MPI_Ialltoallw(j->from, j->counts, j->bytes, j->types, j->to, j->counts, j->bytes,
			j->types, all, request);
		break;
	case REDUCE:
		MPI_Ireduce(own, j->to, j->count, MPI_INT, MPI_SUM, j->root, all, request);
		break;
	case ALLREDUCE:
		MPI_Iallreduce(own, j->to, j->count, MPI_INT, MPI_SUM, all, request);
		break;
	case REDUCE_SCATTER:
		MPI_Ireduce_scatter(j->from, j->to + j->places[rank], j->counts, MPI_INT, MPI_SUM,
			all, request);
		break;
	case REDUCE_SCATTER_BLOCK:
		MPI_Ireduce_scatter_block(j->from, j->to, j->count, MPI_INT, MPI_SUM, all, request);
		break;
	case SCAN:
		MPI_Iscan(own, j->to, j->count, MPI_INT, MPI_SUM, all, request);
		break;
	case EXSCAN:
		MPI_Iexscan(own, j->to, j->count, MPI_INT, MPI_SUM, all, request);
		break;
	}
}

/* A block of each rank: what it gave for all (its block 0 or that with its own number) or for
 * this rank. */
static void look_blocks(const struct job *job, enum call call)
{
	for (int n = 0; n < ranks; n++) {
		int for_whom = call == GATHER || call == ALLGATHER     ? 0
			       : call == GATHERV || call == ALLGATHERV ? n
								       : rank;

		job_look(job, call_names[call], n, n, n + 1, for_whom);
	}
}

static void look(enum call call, const struct job *job)
{
	const char *name = call_names[call];

	switch (call) {
	case BARRIER:
		break;
	case BCAST:
		job_look(job, name, 0, job->root, job->root + 1, 0);
		break;
	case SCATTER:
		job_look(job, name, 0, job->root, job->root + 1, rank);
		break;
	case SCATTERV:
		job_look(job, name, rank, job->root, job->root + 1, rank);
		break;
	case GATHER:
	case GATHERV:
		if (rank == job->root)
			look_blocks(job, call);
		break;
	case REDUCE:
		if (rank == job->root)
			job_look(job, name, 0, 0, ranks, 0);
		break;
	case ALLREDUCE:
		job_look(job, name, 0, 0, ranks, 0);
		break;
	case REDUCE_SCATTER:
		job_look(job, name, rank, 0, ranks, rank);
		break;
	case REDUCE_SCATTER_BLOCK:
		job_look(job, name, 0, 0, ranks, rank);
		break;
	case SCAN:
		job_look(job, name, 0, 0, rank + 1, 0);
		break;
	case EXSCAN:
		if (rank > 0)
			job_look(job, name, 0, 0, rank, 0);
		break;
	default:
		look_blocks(job, call);
		break;
	}
}

static void without_blocking(void)
{
	static const int counts[] = {1, 17, MOST};
	int rounds = quick ? 6 : 60;

	for (int round = 0; round < rounds; round++) {
		MPI_Request requests[JOBS];
		MPI_Status statuses[JOBS];

		for (int n = 0; n < JOBS; n++) {
			enum call call = (enum call)((n + round) % JOBS);
			int spread = call == GATHERV || call == SCATTERV || call == ALLGATHERV ||
						     call == ALLTOALLV || call == ALLTOALLW
					     ? SPREAD
					     : 0;

			job_make(
				&jobs[call], counts[round % 3], spread, (n + round) % ranks, round);
			prepare(call, &jobs[call]);
			start(call, &jobs[call]);
			requests[n] = jobs[call].request;
		}
		MPI_Waitall(JOBS, requests, statuses);
		for (enum call call = 0; call < JOBS; call++)
			look(call, &jobs[call]);
	}
}

/* --- neighbours --- */

/* Whom a rank hears and whom it tells, MPI_PROC_NULL where there is nobody. */
struct neighbours {
	MPI_Comm comm;
	int sources[4], targets[4];
	int count;
};

enum neighbour_call {
	ALLGATHER_N,
	ALLGATHERV_N,
	ALLTOALL_N,
	ALLTOALLV_N,
	ALLTOALLW_N,
	NEIGHBOUR_CALLS
};

static void tell(
	const struct neighbours *group, enum neighbour_call call, struct job *j, int blocks)
{
	MPI_Aint bytes[4];
	MPI_Request request;

	for (int n = 0; n < group->count; n++)
		bytes[n] = j->bytes[n];
#define BOTH(name, ...)                                                                            \
	do {                                                                                       \
		if (blocks) {                                                                      \
			MPI_Neighbor_##name(__VA_ARGS__, group->comm);                             \
		} else {                                                                           \
			MPI_Ineighbor_##name(__VA_ARGS__, group->comm, &request);                  \
			MPI_Wait(&request, MPI_STATUS_IGNORE);                                     \
		}                                                                                  \
	} while (0)
	switch (call) {
	case ALLGATHER_N:
		BOTH(allgather, j->from, j->count, MPI_INT, j->to, j->count, MPI_INT);
		break;
	case ALLGATHERV_N:
		BOTH(allgatherv, j->from, j->count, MPI_INT, j->to, j->counts, j->places, MPI_INT);
		break;
	case ALLTOALL_N:
		BOTH(alltoall, j->from, j->count, MPI_INT, j->to, j->count, MPI_INT);
		break;
	case ALLTOALLV_N:
		BOTH(alltoallv, j->from, j->counts, j->places, MPI_INT, j->to, j->counts, j->places,
			MPI_INT);
		break;
	default:
		BOTH(alltoallw, j->from, j->counts, bytes, j->types, j->to, j->counts, bytes,
			j->types);
		break;
	}
#undef BOTH
}

static void exchange(
	const struct neighbours *group, enum neighbour_call call, int blocks, int round)
{
	static const char *const names[NEIGHBOUR_CALLS] = {"neighbours, allgather",
		"neighbours, allgatherv", "neighbours, alltoall", "neighbours, alltoallv",
		"neighbours, alltoallw"};
	struct job *job = &jobs[0];
	int gathers = call == ALLGATHER_N || call == ALLGATHERV_N;

	job_make(job, round % 2 ? MOST : 5,
		call == ALLGATHERV_N || call == ALLTOALLV_N || call == ALLTOALLW_N ? SPREAD : 0, 0,
		round);
	for (int n = 0; n < group->count; n++)
		job_fill(job, n, rank,
			gathers                              ? 0
			: group->targets[n] == MPI_PROC_NULL ? -1
							     : group->targets[n]);
	/* also the block that everybody gets, where nobody is the first neighbour */
	if (gathers)
		job_fill(job, 0, rank, 0);
	tell(group, call, job, blocks);
	for (int n = 0; n < group->count; n++)
		if (group->sources[n] != MPI_PROC_NULL)
			job_look(job, names[call], n, group->sources[n], group->sources[n] + 1,
				gathers ? 0 : rank);
}

static void group_run(const struct neighbours *group)
{
	for (int round = 0; round < (quick ? 4 : 20); round++)
		for (enum neighbour_call call = 0; call < NEIGHBOUR_CALLS; call++) {
			exchange(group, call, 1, round);
			if (!only_blocking)
				exchange(group, call, 0, round);
		}
}

/* Without wrapping around, where two ranks would be neighbours twice. */
static void grid(void)
{
	struct neighbours group = {.count = 4};
	int sizes[2] = {0, 0}, wraps[2] = {0, 0};

	MPI_Dims_create(ranks, 2, sizes);
	MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, wraps, 0, &group.comm);
	for (int axis = 0; axis < 2; axis++)
		MPI_Cart_shift(group.comm, axis, 1, &group.sources[2 * axis],
			&group.sources[2 * axis + 1]);
	memcpy(group.targets, group.sources, sizeof(group.targets));
	group_run(&group);
	MPI_Comm_free(&group.comm);
}

/* Each tells the next two, one of which may be itself. */
static void graph(void)
{
	struct neighbours group = {.count = 2};
	const int weights[2] = {1, 1};

	for (int n = 0; n < 2; n++) {
		group.targets[n] = (rank + n + 1) % ranks;
		group.sources[n] = (rank + 2 * ranks - n - 1) % ranks;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, group.sources, weights, 2, group.targets,
		weights, MPI_INFO_NULL, 0, &group.comm);
	group_run(&group);
	MPI_Comm_free(&group.comm);
}

int main(int count, char **words)
{
	begin(&count, &words);
	expect(ranks >= 2 && ranks <= RANKS, "2 to %d processes run this program", RANKS);
	jobs = calloc(JOBS, sizeof(*jobs));
	expect(jobs != NULL, "there is no memory");
	if (!only_blocking)
		part("collectives that do not block", without_blocking);
	part("neighbours on a grid", grid);
	part("neighbours on a graph", graph);
	free(jobs);
	return end();
}
