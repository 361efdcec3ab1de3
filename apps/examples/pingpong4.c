/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong4.c - a ping-pong with Portals 4: pairs of ranks put a message to and fro, in two sizes,
 * check every byte, and print half of the time of a round trip.
 *
 *     postern-run -n 2 pingpong4
 */
#include <time.h>

#include "job4.h"

#define PORTAL  4
#define BALL    UINT64_C(0x62616c6c) /* match bits: the kind of message */
#define LARGEST 65536
#define ROUNDS  200

static unsigned char sent[LARGEST], got[LARGEST];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* The bytes of a round differ from those of the round before, and from rank to rank. */
static int byte_of(unsigned rank, unsigned round)
{
	return (int)((rank * 31 + round * 7) & 0xff);
}

static void throw(ptl_handle_md_t md, const struct job *job, unsigned round, size_t size)
{
	memset(sent, byte_of(job->rank, round), size);
	check(PtlPut(md, 0, size, PTL_NO_ACK_REQ, RANK(job->rank ^ 1), PORTAL, BALL, 0, NULL,
		      round),
		"PtlPut");
}

/* The answer to a message says that the message has left: its memory may be used again. */
static void catch (ptl_handle_eq_t queue, const struct job *job, unsigned round, size_t size)
{
	ptl_event_t event;

	check(PtlEQWait(queue, &event), "PtlEQWait");
	if (event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK ||
		event.mlength != size || event.hdr_data != round ||
		event.initiator.rank != (job->rank ^ 1)) {
		fprintf(stderr, "rank %u: another event than the ball's\n", job->rank);
		exit(1);
	}
	if (got[0] != byte_of(job->rank ^ 1, round) || memcmp(got, got + 1, size - 1) != 0) {
		fprintf(stderr, "rank %u: the bytes of round %u are wrong\n", job->rank, round);
		exit(1);
	}
}

static void play(const struct job *job, ptl_handle_md_t md, ptl_handle_eq_t queue, size_t size)
{
	double start = now();

	for (unsigned round = 0; round < ROUNDS; round++) {
		if (job->rank % 2 == 0)
			throw(md, job, round, size);
		catch (queue, job, round, size);
		if (job->rank % 2 == 1)
			throw(md, job, round, size);
	}
	if (job->rank == 0)
		printf("%zu bytes: %.1f us\n", size, (now() - start) / ROUNDS / 2);
}

int main(void)
{
	ptl_md_t memory = {
		.start = sent,
		.length = sizeof(sent),
		.eq_handle = PTL_EQ_NONE,
		.ct_handle = PTL_CT_NONE,
	};
	ptl_me_t entry = {
		.start = got,
		.length = sizeof(got),
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = ANY_RANK,
		.match_bits = BALL,
	};
	struct job job;
	ptl_handle_eq_t queue;
	ptl_handle_md_t md;
	ptl_handle_me_t me;
	ptl_pt_index_t portal;

	job_open(&job, PTL_NI_MATCHING);
	if (job.size == 1)
		fprintf(stderr, "a job of one rank has no pair: postern-run -n 2 pingpong4\n");
	check(PtlEQAlloc(job.ni, 16, &queue), "PtlEQAlloc");
	check(PtlPTAlloc(job.ni, 0, queue, PORTAL, &portal), "PtlPTAlloc");
	check(PtlMEAppend(job.ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &me), "PtlMEAppend");
	check(PtlMDBind(job.ni, &memory, &md), "PtlMDBind");
	job_ready(&job);
	if ((job.rank ^ 1) < job.size) { /* the last of an odd number has nobody to play with */
		play(&job, md, queue, 8);
		play(&job, md, queue, LARGEST);
	}
	job_close(&job);
	return 0;
}
