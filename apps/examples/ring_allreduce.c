/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_allreduce.c - the sum of the vectors of all processes of a job, which each of them gets.
 *
 *     postern-run -n 4 ring_allreduce [LENGTH]
 *
 * The ranks form a ring, and the vector has as many parts as there are ranks. In step S each rank
 * sends part RANK - S to its right and receives part RANK - 1 - S from its left. In the first
 * round, of SIZE - 1 steps, it adds what it receives to its own part; then one part of its vector
 * is the sum of all. In the second round the sums go once around, and each rank keeps what it
 * receives. Parts are counted modulo SIZE. Three ranks:
 *
 *     step   rank 0 sends    rank 1 sends    rank 2 sends
 *     0      part 0          part 1          part 2
 *     1      part 2, 2 + 0   part 0, 0 + 1   part 1, 1 + 2
 *     2      part 1, sum     part 2, sum     part 0, sum
 *     3      part 0, sum     part 1, sum     part 2, sum
 *
 * What arrives in step S has match bits S and memory of its own. Each rank opens this memory before
 * the barrier, and sends behind it, so no put comes too early. PtlEQWait sleeps while there is
 * nothing to do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <portals.h>
#include <postern.h>

#define PORTAL         4
#define LENGTH_DEFAULT 100000
#define LENGTH_MOST    100000000
#define VALUES         1000

struct ring {
	unsigned rank;
	unsigned size;
	unsigned steps;    /* of both rounds */
	size_t length;     /* of the vector, numbers */
	double *vector;    /* this rank's, then the sum of all */
	double *arrivals;  /* room for a part in each step */
	char *has_arrived; /* by step */
	unsigned sent;     /* puts that have ended */
	ptl_handle_ni_t ni;
	ptl_handle_eq_t queue;
	ptl_process_id_t right;
};

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "%s: %s\n", call, postern_error_text(code));
	exit(1);
}

static void *memory(size_t count, size_t bytes)
{
	void *memory = calloc(count + 1, bytes);

	if (memory)
		return memory;
	fprintf(stderr, "There is no memory for %zu times %zu bytes: give a smaller LENGTH.\n",
		count, bytes);
	exit(1);
}

/* Where a part begins. The first ones are longer by one number if the length is no multiple. */
static size_t part_start(const struct ring *ring, unsigned part)
{
	size_t longer = ring->length % ring->size;

	return ring->length / ring->size * part + (part < longer ? part : longer);
}

static size_t part_length(const struct ring *ring, unsigned part)
{
	return part_start(ring, part + 1) - part_start(ring, part);
}

/* The part that a rank sends in a step; the one to its right receives it. */
static unsigned part_sent(const struct ring *ring, unsigned rank, unsigned step)
{
	return (rank + 2 * ring->size - step) % ring->size;
}

static unsigned left(const struct ring *ring)
{
	return (ring->rank + ring->size - 1) % ring->size;
}

/* The memory for what arrives in a step. */
static double *arrival(const struct ring *ring, unsigned step)
{
	return ring->arrivals + (size_t)step * part_length(ring, 0);
}

/* --- messages */

static void memory_open(struct ring *ring)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

	/* of each step PUT_START, PUT_END, SEND_START and SEND_END */
	check(PtlEQAlloc(ring->ni, 4 * ring->steps + 1, &ring->queue), "PtlEQAlloc");
	for (unsigned step = 0; step < ring->steps; step++) {
		ptl_md_t memory = {.start = arrival(ring, step),
			.length = part_length(ring, 0) * sizeof(double),
			.threshold = 1,
			.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE,
			.eventq = ring->queue};
		ptl_handle_me_t entry;

		check(PtlMEAttach(ring->ni, PORTAL, anybody, step, 0, PTL_RETAIN, PTL_INS_AFTER,
			      &entry),
			"PtlMEAttach");
		check(PtlMDAttach(entry, memory, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
	}
}

static void part_send(struct ring *ring, unsigned step)
{
	unsigned part = part_sent(ring, ring->rank, step);
	ptl_md_t numbers = {.start = ring->vector + part_start(ring, part),
		.length = part_length(ring, part) * sizeof(double),
		.threshold = 1,
		.eventq = ring->queue};
	ptl_handle_md_t descriptor;

	check(PtlMDBind(ring->ni, numbers, &descriptor), "PtlMDBind");
	check(PtlPut(descriptor, PTL_NOACK_REQ, ring->right, PORTAL, 0, step, 0, 0), "PtlPut");
}

/* Waits for an event, and notes what it means. */
static void event_take(struct ring *ring)
{
	ptl_event_t event;

	check(PtlEQWait(ring->queue, &event), "PtlEQWait");
	if (event.ni_fail_type != PTL_NI_OK) {
		fprintf(stderr, "rank %u: %s, neighbour %u:%u: %s\n", ring->rank,
			postern_event_name(event.type), ring->right.nid, ring->right.pid,
			postern_fail_text(event.ni_fail_type));
		exit(1);
	}
	if (event.type == PTL_EVENT_PUT_END)
		ring->has_arrived[event.match_bits] = 1;
	if (event.type != PTL_EVENT_SEND_END)
		return;
	ring->sent++;
	check(PtlMDUnlink(event.md_handle), "PtlMDUnlink");
}

/* Until so many puts have ended: their numbers may change from then on. */
static void sends_await(struct ring *ring, unsigned count)
{
	while (ring->sent < count)
		event_take(ring);
}

static void part_await(struct ring *ring, unsigned step)
{
	while (!ring->has_arrived[step])
		event_take(ring);
}

static void allreduce(struct ring *ring)
{
	for (unsigned step = 0; step < ring->steps; step++) {
		unsigned part = part_sent(ring, left(ring), step);
		double *to = ring->vector + part_start(ring, part);
		const double *from = arrival(ring, step);

		part_send(ring, step);
		part_await(ring, step);
		if (step < ring->steps / 2) {
			for (size_t i = 0; i < part_length(ring, part); i++)
				to[i] += from[i];
		} else {
			sends_await(ring, ring->steps / 2);
			memcpy(to, from, part_length(ring, part) * sizeof(double));
		}
	}
	sends_await(ring, ring->steps);
}

/* --- numbers */

/* Number i of a rank's vector: whole, so that sums are exact in any order. */
static double number_of(unsigned rank, size_t i)
{
	return (double)(rank + 1) * (double)(i % VALUES + 1);
}

static void sum_check(const struct ring *ring)
{
	for (size_t i = 0; i < ring->length; i++) {
		double sum = (double)ring->size * (ring->size + 1) / 2 * (double)(i % VALUES + 1);

		if (ring->vector[i] == sum)
			continue;
		fprintf(stderr, "rank %u: number %zu is %g and should be %g\n", ring->rank, i,
			ring->vector[i], sum);
		exit(1);
	}
}

/* --- beginning and end */

static void ring_open(struct ring *ring)
{
	int interfaces;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ring->ni), "PtlNIInit");
	check(postern_job_join(ring->ni, &ring->rank, &ring->size), "postern_job_join");
	check(postern_job_address((ring->rank + 1) % ring->size, &ring->right),
		"postern_job_address");
	ring->steps = 2 * (ring->size - 1);
	ring->vector = memory(ring->length, sizeof(double));
	ring->arrivals = memory(ring->steps * part_length(ring, 0), sizeof(double));
	ring->has_arrived = memory(ring->steps, 1);
	for (size_t i = 0; i < ring->length; i++)
		ring->vector[i] = number_of(ring->rank, i);
	memory_open(ring);
}

/* Returns when all ranks have the sum: until then a rank may still have to answer another one. */
static void ring_close(struct ring *ring)
{
	check(postern_job_barrier(), "postern_job_barrier");
	check(postern_job_leave(), "postern_job_leave");
	PtlNIFini(ring->ni);
	PtlFini();
	free(ring->vector);
	free(ring->arrivals);
	free(ring->has_arrived);
}

int main(int count, char **words)
{
	struct ring ring = {.length = LENGTH_DEFAULT};

	if (count > 2 || (count == 2 && (sscanf(words[1], "%zu", &ring.length) != 1 ||
						ring.length > LENGTH_MOST))) {
		fprintf(stderr,
			"\"%s\" is no LENGTH\nusage: ring_allreduce [LENGTH], up to %d numbers\n",
			words[1], LENGTH_MOST);
		return 2;
	}
	ring_open(&ring);
	check(postern_job_barrier(), "postern_job_barrier");
	allreduce(&ring);
	sum_check(&ring);
	ring_close(&ring);
	if (ring.rank == 0)
		printf("%u ranks have the sum of their vectors of %zu numbers\n", ring.size,
			ring.length);
	return 0;
}
