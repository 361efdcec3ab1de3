/* SPDX-License-Identifier: BSD-3-Clause */
/* counter4.c - a shared counter with Portals 4: all ranks draw numbers from a word of rank 0 by
 * atomic additions, and mark there which they have drawn. At the end rank 0 finds that each number
 * was drawn once.
 *
 *     postern-run -n 4 counter4
 */
#include "job4.h"

#define PORTAL 4
#define DRAWS  100 /* of each rank */

/* Rank 0's, open to all. */
static struct shared {
	uint64_t next;                    /* number */
	uint64_t drawn[JOB_MOST * DRAWS]; /* how many times each was */
} shared;

/* Of each rank. */
static struct {
	uint64_t one, number;
} own = {.one = 1};
#define OWN_ONE    0 /* offsets */
#define OWN_NUMBER 8

/* Waits for one more reply or acknowledgement. */
static void one_more(ptl_handle_ct_t counter, ptl_size_t *seen)
{
	ptl_ct_event_t count;

	check(PtlCTWait(counter, ++*seen, &count), "PtlCTWait");
	if (count.failure > 0) {
		fputs("an operation failed\n", stderr);
		exit(1);
	}
}

static void draw(ptl_handle_md_t md, ptl_handle_ct_t counter)
{
	ptl_size_t seen = 0;
	uint64_t before = 0;

	for (unsigned i = 0; i < DRAWS; i++) {
		check(PtlFetchAtomic(md, OWN_NUMBER, md, OWN_ONE, 8, RANK(0), PORTAL, 0,
			      offsetof(struct shared, next), NULL, 0, PTL_SUM, PTL_UINT64_T),
			"PtlFetchAtomic");
		one_more(counter, &seen);
		if ((i > 0 && own.number <= before) || own.number >= JOB_MOST * DRAWS) {
			fputs("a number was drawn out of order\n", stderr);
			exit(1);
		}
		before = own.number;
		check(PtlAtomic(md, OWN_ONE, 8, PTL_CT_ACK_REQ, RANK(0), PORTAL, 0,
			      offsetof(struct shared, drawn) + 8 * before, NULL, 0, PTL_SUM,
			      PTL_UINT64_T),
			"PtlAtomic");
		one_more(counter, &seen);
	}
}

/* Rank 0, when all have drawn. */
static void look(const struct job *job, ptl_handle_ct_t touched)
{
	ptl_ct_event_t count;
	uint64_t all = (uint64_t)job->size * DRAWS;

	check(PtlCTWait(touched, 2 * all, &count), "PtlCTWait");
	check(PtlAtomicSync(), "PtlAtomicSync");
	for (uint64_t i = 0; i < all; i++)
		if (shared.drawn[i] != 1) {
			fprintf(stderr, "number %u was drawn %u times\n", (unsigned)i,
				(unsigned)shared.drawn[i]);
			exit(1);
		}
	if (shared.next != all || count.failure > 0) {
		fprintf(stderr, "the counter is %u, not %u\n", (unsigned)shared.next,
			(unsigned)all);
		exit(1);
	}
	printf("%u ranks have drawn %u numbers, each once\n", job->size, (unsigned)all);
}

int main(void)
{
	ptl_le_t entry = {
		.start = &shared,
		.length = sizeof(shared),
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_EVENT_CT_COMM,
	};
	ptl_md_t memory = {
		.start = &own,
		.length = sizeof(own),
		.options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK,
		.eq_handle = PTL_EQ_NONE,
	};
	struct job job;
	ptl_handle_md_t md;
	ptl_handle_le_t le;
	ptl_pt_index_t portal;

	job_open(&job, PTL_NI_NO_MATCHING);
	check(PtlCTAlloc(job.ni, &entry.ct_handle), "PtlCTAlloc");
	check(PtlCTAlloc(job.ni, &memory.ct_handle), "PtlCTAlloc");
	check(PtlPTAlloc(job.ni, 0, PTL_EQ_NONE, PORTAL, &portal), "PtlPTAlloc");
	check(PtlLEAppend(job.ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
	check(PtlMDBind(job.ni, &memory, &md), "PtlMDBind");
	job_ready(&job);
	draw(md, memory.ct_handle);
	if (job.rank == 0)
		look(&job, entry.ct_handle);
	job_close(&job);
	return 0;
}
