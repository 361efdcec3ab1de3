/* SPDX-License-Identifier: BSD-3-Clause */
/* vader.c - active messages as a conduit sends them by MPI, between the two ranks of a job, for
 * scripts/compare to hold those of GASNet against:
 *
 *     mpirun -n 2 bench-vader WINDOW SECONDS
 *
 * A message has a handler's index and two arguments, goes by MPI_Send(), and comes into one of
 * POOL receives that are posted, in turns. latency: a request is answered by its handler, and half
 * of the time is one way. rate: windows of requests, of which two are on their way; a handler's
 * message answers each. Rank 0 prints one line of JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define POOL    64
#define BATCH   16      /* round trips between two looks at the clock */
#define BATCHES 1000000 /* at most */
#define WINDOWS 2

enum { ASKS, ANSWERS, COUNTED, CREDIT, ENDS };

struct message {
	int32_t handler, arguments[2];
};

static struct message pool[POOL];
static MPI_Request posted[POOL];
static unsigned next, window;
static int rank;
static uint64_t answers, counted, credits;
static int ended;

static void message_send(int32_t handler)
{
	const struct message message = {handler, {1, 2}};

	MPI_Send(&message, sizeof(message), MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
}

static void asks(void)
{
	message_send(ANSWERS);
}

static void answer(void)
{
	answers++;
}

static void count(void)
{
	if (++counted % window == 0)
		message_send(CREDIT);
}

static void credit(void)
{
	credits++;
}

static void end(void)
{
	ended = 1;
}

static void (*const handlers[])(void) = {asks, answer, count, credit, end};

static void message_post(unsigned which)
{
	MPI_Irecv(&pool[which], sizeof(pool[which]), MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
		&posted[which]);
}

/* Messages of one rank come in their order, so the oldest receive is the next. */
static void poll(void)
{
	void (*handler)(void);
	int came;

	MPI_Test(&posted[next], &came, MPI_STATUS_IGNORE);
	if (!came)
		return;
	handler = handlers[pool[next].handler];
	message_post(next);
	next = (next + 1) % POOL;
	handler();
}

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static void latency(double seconds)
{
	double *times = calloc(BATCHES, sizeof(*times));
	double start = MPI_Wtime(), last = start;
	unsigned batches = 0;

	if (!times)
		MPI_Abort(MPI_COMM_WORLD, 1);
	while (batches < BATCHES && last < start + seconds) {
		double now;

		for (unsigned i = 0; i < BATCH; i++) {
			uint64_t wanted = answers + 1;

			message_send(ASKS);
			while (answers < wanted)
				poll();
		}
		now = MPI_Wtime();
		times[batches++] = (now - last) / BATCH / 2 * 1e9;
		last = now;
	}
	qsort(times, batches, sizeof(*times), compare);
	printf("{\"p50_ns\": %.0f, \"p99_ns\": %.0f, ", times[batches / 2],
		times[batches / 100 * 99]);
	free(times);
}

static void rate(double seconds)
{
	double start = MPI_Wtime(), now;
	uint64_t windows = 0;

	do {
		for (unsigned i = 0; i < window; i++) {
			message_send(COUNTED);
			if (i % BATCH == 0)
				poll();
		}
		windows++;
		while (windows - credits >= WINDOWS)
			poll();
		now = MPI_Wtime();
	} while (now < start + seconds);
	while (credits < windows)
		poll();
	printf("\"messages_per_second\": %.0f}\n",
		(double)(windows * window) / (MPI_Wtime() - start));
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;

	window = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	if (window == 0 || seconds <= 0) {
		fprintf(stderr, "Usage: bench-vader WINDOW SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned i = 0; i < POOL; i++)
		message_post(i);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		latency(seconds);
		rate(seconds);
		message_send(ENDS);
	}
	while (rank == 1 && !ended)
		poll();
	for (unsigned i = 0; i < POOL; i++) {
		MPI_Cancel(&posted[i]);
		MPI_Request_free(&posted[i]);
	}
	MPI_Finalize();
	return 0;
}
