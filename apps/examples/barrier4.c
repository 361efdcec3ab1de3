/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier4.c - a barrier of triggered operations: ranks form a binary tree, and messages go up and
 * down it without a call of the program, which may compute meanwhile.
 *
 *                  up                          down
 *     children ----------> counter `up`      counter `down` ----------> children
 *                              |                   ^
 *                              +---> parent -------+    (rank 0: its own `down`)
 *
 * In round k, `up` is k * (children + 1) when all children and this rank have come; then a put of
 * no bytes counts at the parent's `up`. `down` is k when all ranks have come. A child begins round
 * k + 1 only when `down` has let it, so `up` never counts messages of two rounds at once.
 *
 *     postern-run -n 8 barrier4
 */
#include "job4.h"

#define ROUNDS 50
/* Portals */
#define UP    0
#define DOWN  1
#define TABLE 2

static uint64_t table[JOB_MOST]; /* the round that each rank is in, as it has put it here */
static uint64_t round_now;

struct barrier {
	ptl_handle_ct_t up, down;
	ptl_handle_md_t nothing;
	ptl_size_t rounds; /* that have begun */
	unsigned children, first;
};

static ptl_handle_ct_t counter_make(const struct job *job)
{
	ptl_handle_ct_t counter;

	check(PtlCTAlloc(job->ni, &counter), "PtlCTAlloc");
	return counter;
}

/* A portal where puts land in memory and are counted. */
static void portal_open(const struct job *job, ptl_pt_index_t wanted, void *start,
	ptl_size_t length, ptl_handle_ct_t counter)
{
	ptl_le_t entry = {
		.start = start,
		.length = length,
		.ct_handle = counter,
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM,
	};
	ptl_handle_le_t le;
	ptl_pt_index_t portal;

	check(PtlPTAlloc(job->ni, 0, PTL_EQ_NONE, wanted, &portal), "PtlPTAlloc");
	check(PtlLEAppend(job->ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
}

static void barrier_open(struct barrier *barrier, const struct job *job)
{
	const ptl_md_t nothing = {.eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};

	barrier->up = counter_make(job);
	barrier->down = counter_make(job);
	barrier->rounds = 0;
	barrier->first = 2 * job->rank + 1;
	barrier->children = 0;
	while (barrier->children < 2 && barrier->first + barrier->children < job->size)
		barrier->children++;
	portal_open(job, UP, NULL, 0, barrier->up);
	portal_open(job, DOWN, NULL, 0, barrier->down);
	check(PtlMDBind(job->ni, &nothing, &barrier->nothing), "PtlMDBind");
}

static void tell_later(const struct barrier *barrier, unsigned rank, ptl_pt_index_t portal,
	ptl_handle_ct_t counter, ptl_size_t threshold)
{
	check(PtlTriggeredPut(barrier->nothing, 0, 0, PTL_NO_ACK_REQ, RANK(rank), portal, 0, 0,
		      NULL, 0, counter, threshold),
		"PtlTriggeredPut");
}

/* This rank has come. The program may compute before it calls barrier_end(). */
static void barrier_begin(struct barrier *barrier, const struct job *job)
{
	ptl_size_t round = ++barrier->rounds;
	ptl_size_t all = round * (barrier->children + 1);

	for (unsigned i = 0; i < barrier->children; i++)
		tell_later(barrier, barrier->first + i, DOWN, barrier->down, round);
	if (job->rank > 0)
		tell_later(barrier, (job->rank - 1) / 2, UP, barrier->up, all);
	else
		check(PtlTriggeredCTInc(barrier->down, (ptl_ct_event_t){1, 0}, barrier->up, all),
			"PtlTriggeredCTInc");
	check(PtlCTInc(barrier->up, (ptl_ct_event_t){1, 0}), "PtlCTInc");
}

/* Waits until all have come. */
static void barrier_end(const struct barrier *barrier)
{
	ptl_ct_event_t count;

	check(PtlCTWait(barrier->down, barrier->rounds, &count), "PtlCTWait");
	if (count.failure > 0) {
		fputs("a message of the barrier failed\n", stderr);
		exit(1);
	}
}

/* Tells all ranks that this one is in a round, and waits until they know. */
static void announce(const struct job *job, ptl_handle_md_t md, ptl_handle_ct_t told)
{
	ptl_ct_event_t count;

	round_now++;
	for (unsigned i = 0; i < job->size; i++)
		check(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, RANK(i), TABLE, 0, 8 * job->rank, NULL, 0),
			"PtlPut");
	check(PtlCTWait(told, round_now * job->size, &count), "PtlCTWait");
}

int main(void)
{
	ptl_md_t memory = {
		.start = &round_now,
		.length = sizeof(round_now),
		.options = PTL_MD_EVENT_CT_ACK,
		.eq_handle = PTL_EQ_NONE,
	};
	struct job job;
	struct barrier barrier;
	ptl_handle_md_t md;

	job_open(&job, PTL_NI_NO_MATCHING);
	barrier_open(&barrier, &job);
	portal_open(&job, TABLE, table, sizeof(table), counter_make(&job));
	memory.ct_handle = counter_make(&job);
	check(PtlMDBind(job.ni, &memory, &md), "PtlMDBind");
	job_ready(&job);
	while (round_now < ROUNDS) {
		announce(&job, md, memory.ct_handle);
		barrier_begin(&barrier, &job);
		barrier_end(&barrier);
		for (unsigned i = 0; i < job.size; i++) {
			uint64_t seen = *(volatile uint64_t *)&table[i];

			if (seen < round_now || seen > round_now + 1) {
				fprintf(stderr, "rank %u left round %u while rank %u was in %u\n",
					job.rank, (unsigned)round_now, i, (unsigned)seen);
				exit(1);
			}
		}
	}
	if (job.rank == 0)
		printf("%u ranks met %d times\n", job.size, ROUNDS);
	job_close(&job);
	return 0;
}
