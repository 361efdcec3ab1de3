/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.c - all to all among the processes of a job that do not call Portals meanwhile.
 *
 *     postern-run -n N compute [SECONDS]
 *
 * Each process puts a block to each other one and then computes, without a call, until the blocks
 * of all have arrived in its own memory, which it only reads. So something else than the
 * program must move the messages. It fails after SECONDS (60).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <portals.h>
#include <postern.h>

#define PORTAL  3
#define BITS    7
#define BYTES   1024u
#define TIMEOUT 60.0 /* s */

static unsigned rank, size;

static void check(int code, const char *call)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "rank %u: %s: %s\n", rank, call, postern_error_text(code));
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A byte of a block; never 0. */
static unsigned char byte_of(unsigned from, unsigned to, unsigned at)
{
	return (unsigned char)(1 + (from * 31 + to * 17 + at) % 255);
}

static void place_open(ptl_handle_ni_t ni, void *memory)
{
	const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t place = {.start = memory,
		.length = size * BYTES,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eventq = PTL_EQ_NONE};
	ptl_handle_me_t entry;

	check(PtlMEAttach(ni, PORTAL, anybody, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &entry),
		"PtlMEAttach");
	check(PtlMDAttach(entry, place, PTL_RETAIN, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void block_put(ptl_handle_ni_t ni, unsigned char *block, unsigned to)
{
	ptl_md_t description = {
		.start = block, .length = BYTES, .threshold = 1, .eventq = PTL_EQ_NONE};
	ptl_handle_md_t descriptor;
	ptl_process_id_t address;

	for (unsigned at = 0; at < BYTES; at++)
		block[at] = byte_of(rank, to, at);
	check(postern_job_address(to, &address), "postern_job_address");
	check(PtlMDBind(ni, description, &descriptor), "PtlMDBind");
	check(PtlPut(descriptor, PTL_NOACK_REQ, address, PORTAL, 0, BITS, rank * BYTES, 0),
		"PtlPut");
}

/* Has this rank's block arrived? The program does nothing but look. */
static int block_is_here(const volatile unsigned char *block, unsigned from)
{
	for (unsigned at = 0; at < BYTES; at++)
		if (block[at] != byte_of(from, rank, at))
			return 0;
	return 1;
}

static int compute(const volatile unsigned char *memory, double timeout)
{
	double end = now() + timeout;

	for (unsigned from = 0; from < size; from++)
		while (from != rank && !block_is_here(memory + from * BYTES, from))
			if (now() > end) {
				fprintf(stderr, "rank %u: the block of rank %u has not arrived\n",
					rank, from);
				return 1;
			}
	return 0;
}

int main(int count, char **words)
{
	unsigned char *memory, *blocks;
	double start = now();
	ptl_handle_ni_t ni;
	int failed, interfaces;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(postern_job_join(ni, &rank, &size), "postern_job_join");
	memory = calloc(size, BYTES);
	blocks = calloc(size, BYTES);
	if (!memory || !blocks)
		return 1;
	place_open(ni, memory);
	check(postern_job_barrier(), "postern_job_barrier");
	if (rank == 0)
		printf("%u processes are up after %.2f s\n", size, now() - start);
	start = now();
	for (unsigned n = 1; n < size; n++)
		block_put(ni, blocks + (rank + n) % size * BYTES, (rank + n) % size);
	failed = compute(memory, count > 1 ? atof(words[1]) : TIMEOUT);
	check(postern_job_barrier(), "postern_job_barrier");
	if (rank == 0 && !failed)
		printf("all to all took %.2f s\n", now() - start);
	check(postern_job_leave(), "postern_job_leave");
	PtlFini();
	free(memory);
	free(blocks);
	return failed;
}
