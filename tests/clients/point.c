/* SPDX-License-Identifier: BSD-3-Clause */
/* point.c - point to point between all ranks of an MPI job: sizes, wildcards, probes, order, and
 * messages that nobody expects. Every byte is checked. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define TAG       7
#define EARLY     3000 /* messages that come before their receives */
#define EARLY_MAX 600  /* bytes of one */
#define ORDERED   500

static unsigned char *from, *to;

/* Each rank sends to the next one, both ways at once. */
static void exchange(size_t bytes)
{
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	MPI_Status status;
	int count;

	fill(from, bytes, rank, (unsigned)bytes);
	memset(to, 0xee, bytes + 1);
	MPI_Sendrecv(from, (int)bytes, MPI_BYTE, next, TAG, to, (int)bytes + 1, MPI_BYTE, previous,
		TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	expect(count == (int)bytes, "a message of %zu bytes came as %d", bytes, count);
	check(to, bytes, previous, (unsigned)bytes);
	expect(to[bytes] == 0xee, "the byte behind a message of %zu was written", bytes);
}

/* Every size up to 300,000 bytes, or some of them. */
static void sizes(void)
{
	for (size_t bytes = 0; bytes <= 300000; bytes += quick ? 1 + bytes / 40 : 1)
		exchange(bytes);
	exchange(1u << 20);
	exchange(LARGEST);
}

/* Rank 0 takes from anybody, whatever the tag, and learns from a probe how much. */
static void wildcards(void)
{
	const int each = quick ? 50 : 300;

	for (int n = 0; n < each && rank != 0; n++) {
		size_t bytes = (size_t)(n * 97 + rank) % 70000;

		fill(from, bytes, rank, (unsigned)n);
		MPI_Send(from, (int)bytes, MPI_BYTE, 0, n, MPI_COMM_WORLD);
	}
	for (int n = 0; n < each * (ranks - 1) && rank == 0; n++) {
		MPI_Status status;
		int bytes;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		expect((size_t)bytes == (size_t)(status.MPI_TAG * 97 + status.MPI_SOURCE) % 70000,
			"the probe of tag %d from %d says %d bytes", status.MPI_TAG,
			status.MPI_SOURCE, bytes);
		MPI_Recv(to, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		check(to, (size_t)bytes, status.MPI_SOURCE, (unsigned)status.MPI_TAG);
	}
}

/* Messages of one tag arrive in the order in which they were sent, whatever their sizes. */
static void order(void)
{
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	const int messages = quick ? ORDERED / 5 : ORDERED;
	MPI_Request *requests = calloc((size_t)messages, sizeof(*requests));
	unsigned char *sent = calloc((size_t)messages, 70000);

	for (int n = 0; n < messages; n++) {
		size_t bytes = n % 3 == 0 ? 66000 : (size_t)n;

		fill(sent + (size_t)n * 70000, bytes, rank, (unsigned)n);
		MPI_Isend(sent + (size_t)n * 70000, (int)bytes, MPI_BYTE, next, TAG, MPI_COMM_WORLD,
			&requests[n]);
	}
	for (int n = 0; n < messages; n++) {
		size_t bytes = n % 3 == 0 ? 66000 : (size_t)n;
		MPI_Status status;
		int count;

		MPI_Recv(to, 70000, MPI_BYTE, previous, TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		expect((size_t)count == bytes, "message %d has %d bytes instead of %zu", n, count,
			bytes);
		check(to, bytes, previous, (unsigned)n);
	}
	MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
	free(requests);
	free(sent);
}

/* Thousands of messages come before anybody asks for them; they are received last one first. */
static void unexpected(void)
{
	const int messages = quick ? EARLY / 10 : EARLY;
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	MPI_Request *requests = calloc((size_t)messages, sizeof(*requests));
	unsigned char *sent = calloc((size_t)messages, EARLY_MAX);

	for (int n = 0; n < messages; n++) {
		unsigned char *at = sent + (size_t)n * EARLY_MAX;

		fill(at, (size_t)(n % EARLY_MAX), rank, (unsigned)n);
		MPI_Isend(at, n % EARLY_MAX, MPI_BYTE, next, 100 + n, MPI_COMM_WORLD, &requests[n]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int n = messages - 1; n >= 0; n--) {
		MPI_Recv(to, EARLY_MAX, MPI_BYTE, previous, 100 + n, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		check(to, (size_t)(n % EARLY_MAX), previous, (unsigned)n);
	}
	MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
	free(requests);
	free(sent);
}

int main(int count, char **words)
{
	begin(&count, &words);
	from = malloc(LARGEST + 1);
	to = malloc(LARGEST + 1);
	part("sizes", sizes);
	part("wildcards and probes", wildcards);
	part("order", order);
	part("unexpected messages", unexpected);
	free(from);
	free(to);
	return end();
}
