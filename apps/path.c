/* SPDX-License-Identifier: BSD-3-Clause */
/* path.c - see path.h. */
#include <base/port.h>

#include "path.h"

/* a frame may be lost for other reasons than its size, or late: each is waited for longer */
#define TRIES         3
#define TIMEOUT_LEAST UINT64_C(100000000) /* ns */
#define TIMEOUT_ROOM  8                   /* times the latency */

struct search {
	ptl_handle_ni_t ni;
	ptl_process_id_t target;
	uint64_t timeout;
	uint32_t question; /* size of questions while answers are varied; 0: questions are varied */
	int code;          /* PTL_OK until something is wrong with the interface */
	struct postern_ping ping; /* the last answer */
};

/* Does a frame of this size arrive? */
static bool size_passes(struct search *search, uint32_t size)
{
	uint32_t question = search->question != 0 ? search->question : size;
	uint32_t answer = search->question != 0 ? size : 0;

	for (unsigned i = 0; i < TRIES && search->code == PTL_OK; i++) {
		search->code = postern_ping(search->ni, search->target, question, answer,
			search->timeout << i, &search->ping);
		if (search->code == PTL_OK && search->ping.status == POSTERN_PING_ANSWERED)
			return true;
	}
	return false;
}

/* The largest size that passes: at least `least`, which did once, at most `most`. 0: not even
 * `least` does any more. */
static uint32_t search_run(struct search *search, uint32_t least, uint32_t most)
{
	uint32_t passes = least, fails = most;

	if (most <= least)
		return least;
	if (size_passes(search, most))
		return most;
	while (fails - passes > 1 && search->code == PTL_OK) {
		uint32_t middle = passes + (fails - passes) / 2;

		if (size_passes(search, middle))
			passes = middle;
		else
			fails = middle;
	}
	/* Nothing has passed since the first one was lost: was that for its size? */
	if (passes == least && !size_passes(search, least))
		return 0;
	return passes;
}

int path_find(ptl_handle_ni_t ni, ptl_process_id_t target, uint64_t latency, struct path *path)
{
	struct search search = {.ni = ni, .target = target, .timeout = TIMEOUT_LEAST};
	uint32_t least, both, larger;

	if (latency * TIMEOUT_ROOM > search.timeout)
		search.timeout = latency * TIMEOUT_ROOM;
	*path = (struct path){0};
	if (!size_passes(&search, 0))
		return search.code;
	least = search.ping.least;
	path->answered = true;
	path->own = search.ping.mtu;
	path->target = search.ping.target_mtu;
	both = path->own < path->target ? path->own : path->target;
	path->there = search_run(&search, least, both);
	if (path->there == 0)
		return search.code;
	search.question = path->there;
	path->back = search_run(&search, least, path->there);
	if (path->back == 0)
		path->there = 0;
	if (path->there < both || path->own == both)
		return search.code;
	/* Last, because some devices stop for a while after a frame that the other end refuses. */
	search.question = 0;
	larger = search_run(&search, both, path->own);
	if (larger > both)
		path->there = larger;
	return search.code;
}

uint32_t path_mtu(const struct path *path)
{
	uint32_t narrow = path->there < path->back ? path->there : path->back;

	if (path->target < narrow)
		narrow = path->target;
	return narrow < PORT_MTU_MIN ? 0 : narrow;
}
