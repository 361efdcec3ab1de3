/* SPDX-License-Identifier: BSD-3-Clause */
/* phases.c - barriers of triggered operations: Portals passes a barrier while the program computes.
 *
 * In round r each rank sends what it knows to the rank 2^r further on, which merges it by an atomic
 * maximum: so a rank may be counted twice, and any number of ranks will do. What it knows is the
 * greatest name and the negative of the least.
 *
 * B1. A counter for each round gets 1 when the round's message comes and 1 when the counter before
 *     has had both of its own, for round 0 by notify. At 2n, in its n-th use, the next round's
 *     message leaves. So a message that comes early triggers nothing, and the last counter means
 *     all ranks.
 * B2. Nobody is two phases ahead. There are three generations of all this and not two, because a
 *     message's source must stay until it has been delivered, which is sure when the next phase
 *     ends: then the generation is cleared, for the phase after that.
 * B3. Each message logs an event in `receive` as well, which wakes a thread that waits there.
 */
#include "state.h"

#include <string.h>

#define GENERATIONS 3u
#define ROUNDS_MAX  31u
#define NOTHING     INT64_MIN          /* a name that matches all */
#define CLASH       (INT64_C(1) << 40) /* names that match none: as the greatest and as the least */

static struct {
	int64_t known[GENERATIONS][2]; /* the greatest name, the negative of the least */
	ptl_handle_ct_t counters[GENERATIONS][ROUNDS_MAX];
	unsigned rounds;
	uint64_t phase;
	bool notified;
	int id, flags; /* of notify */
	bool named;    /* the last barrier, if it had no mismatch */
	int name;
} barrier;

static ptl_match_bits_t bits_of(unsigned generation, unsigned round)
{
	return generation << 8 | round;
}

static void known_clear(unsigned generation)
{
	__atomic_store_n(&barrier.known[generation][0], NOTHING, __ATOMIC_RELAXED);
	__atomic_store_n(&barrier.known[generation][1], NOTHING, __ATOMIC_RELAXED);
}

static void round_open(unsigned generation, unsigned round)
{
	ptl_handle_ct_t *counter = &barrier.counters[generation][round];
	ptl_handle_me_t entry;
	ptl_me_t me = {
		.start = barrier.known[generation],
		.length = sizeof(barrier.known[generation]),
		.uid = gasnet.uid,
		.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
		.match_id = {.rank = PTL_RANK_ANY},
		.match_bits = bits_of(generation, round),
	};

	must(PtlCTAlloc(gasnet.ni, counter));
	me.ct_handle = *counter;
	must(PtlMEAppend(gasnet.ni, PORTAL_BARRIER, &me, PTL_PRIORITY_LIST, NULL, &entry));
}

void barrier_open(void)
{
	ptl_pt_index_t index;

	while ((UINT64_C(1) << barrier.rounds) < gasnet.size)
		barrier.rounds++;
	must(PtlPTAlloc(gasnet.ni, 0, gasnet.receive, PORTAL_BARRIER, &index));
	for (unsigned generation = 0; generation < GENERATIONS; generation++) {
		known_clear(generation);
		for (unsigned round = 0; round < barrier.rounds; round++)
			round_open(generation, round);
	}
}

/* Messages of other ranks are merged at the same time. */
static void merge(int64_t *known, int64_t value)
{
	int64_t seen = __atomic_load_n(known, __ATOMIC_RELAXED);

	while (seen < value && !__atomic_compare_exchange_n(known, &seen, value, false,
				       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static ptl_process_t target_of(unsigned round)
{
	return (ptl_process_t){
		.rank = (uint32_t)((gasnet.rank + (UINT64_C(1) << round)) % gasnet.size)};
}

static unsigned generation_now(void)
{
	return (unsigned)(barrier.phase % GENERATIONS);
}

/* What the counters of this phase reach (B1). */
static uint64_t count_wanted(void)
{
	return 2 * (barrier.phase / GENERATIONS + 1);
}

static void rounds_begin(unsigned generation)
{
	const ptl_handle_ct_t *counters = barrier.counters[generation];
	const ptl_ct_event_t one = {.success = 1};
	ptl_size_t from = (ptl_size_t)(uintptr_t)barrier.known[generation];
	ptl_size_t size = sizeof(barrier.known[generation]);

	for (unsigned round = 1; round < barrier.rounds; round++) {
		must(PtlTriggeredAtomic(gasnet.quiet, from, size, PTL_NO_ACK_REQ, target_of(round),
			PORTAL_BARRIER, bits_of(generation, round), 0, NULL, 0, PTL_MAX,
			PTL_INT64_T, counters[round - 1], count_wanted()));
		must(PtlTriggeredCTInc(counters[round], one, counters[round - 1], count_wanted()));
	}
	if (barrier.rounds == 0)
		return;
	must(PtlAtomic(gasnet.quiet, from, size, PTL_NO_ACK_REQ, target_of(0), PORTAL_BARRIER,
		bits_of(generation, 0), 0, NULL, 0, PTL_MAX, PTL_INT64_T));
	must(PtlCTInc(counters[0], one));
}

void gasnet_barrier_notify(int id, int flags)
{
	unsigned generation = generation_now();
	bool anonymous = flags & GASNET_BARRIERFLAG_ANONYMOUS;

	call_look("gasnet_barrier_notify");
	if (gasnet.stage != STAGE_ATTACHED || barrier.notified)
		fatal("gasnet_barrier_notify: %s",
			gasnet.stage != STAGE_ATTACHED
				? "call gasnet_attach first"
				: "call gasnet_barrier_wait between two of them");
	barrier.notified = true;
	barrier.id = id;
	barrier.flags = flags;
	if (flags & GASNET_BARRIERFLAG_MISMATCH) {
		merge(&barrier.known[generation][0], CLASH);
		merge(&barrier.known[generation][1], CLASH);
	} else if (!anonymous) {
		merge(&barrier.known[generation][0], id);
		merge(&barrier.known[generation][1], -(int64_t)id);
	}
	rounds_begin(generation);
}

static bool complete(void)
{
	ptl_ct_event_t count;

	if (barrier.rounds == 0)
		return true;
	must(PtlCTGet(barrier.counters[generation_now()][barrier.rounds - 1], &count));
	if (count.failure > 0)
		fatal("a barrier failed: this is a bug of Postern's");
	return count.success >= count_wanted();
}

/* The phase is over. */
static int finish(int id, int flags)
{
	unsigned generation = generation_now();
	int64_t greatest, least;
	bool differs = flags != barrier.flags || (flags == 0 && id != barrier.id);

	must(PtlAtomicSync());
	greatest = __atomic_load_n(&barrier.known[generation][0], __ATOMIC_RELAXED);
	least = __atomic_load_n(&barrier.known[generation][1], __ATOMIC_RELAXED);
	barrier.named = greatest != NOTHING;
	barrier.name = barrier.named ? (int)greatest : 0;
	if (barrier.named)
		differs |= greatest != -least;
	known_clear((generation + GENERATIONS - 1) % GENERATIONS);
	barrier.notified = false;
	barrier.phase++;
	return differs ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
}

static void notified_check(const char *call)
{
	if (!barrier.notified)
		fatal("%s: this rank has not notified a barrier: call gasnet_barrier_notify first",
			call);
}

int gasnet_barrier_wait(int id, int flags)
{
	unsigned tries = 0;

	notified_check("gasnet_barrier_wait");
	call_look("gasnet_barrier_wait");
	while (!complete())
		wait_turn(&tries);
	return finish(id, flags);
}

int gasnet_barrier_try(int id, int flags)
{
	notified_check("gasnet_barrier_try");
	(void)gasnet_AMPoll();
	return complete() ? finish(id, flags) : GASNET_ERR_NOT_READY;
}

int gasnet_barrier(int id, int flags)
{
	gasnet_barrier_notify(id, flags);
	return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int *id)
{
	if (barrier.named && id)
		*id = barrier.name;
	return !barrier.named;
}
