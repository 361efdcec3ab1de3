/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - see watch.h. */
#include <job/watch.h>

#include <stdlib.h>
#include <unistd.h>

#include <rte_common.h>

#include <base/log.h>
#include <base/timespec.h>

#define LOOK_FIRST  SECOND              /* most barriers are shorter */
#define LOOK_AGAIN  (500 * MILLISECOND) /* at a neighbour that did not answer */
#define TELLERS     2                   /* the first ranks, of which one may be missing */
#define ANSWER_TIME (200 * MILLISECOND) /* the end of a barrier may be seen that much later */

void watch_begin(struct job *job)
{
	struct watch *watch = &job->watch;

	if (!watch->answers) {
		watch_begin_joining(job);
		return;
	}
	watch->joins = false;
	watch->active = job->size > 1;
	if (!watch->active)
		return;
	watch->heard = time_monotonic();
	watch->due = watch->heard + LOOK_FIRST;
	if (watch->lifeline.state == LIFELINE_NONE)
		(void)lifeline_look(&watch->lifeline); /* L2 */
}

void watch_end(struct job *job)
{
	struct watch *watch = &job->watch;

	if (watch->lifeline.asks)
		lifeline_ask(&watch->lifeline, 0);
	watch->active = false;
}

void watch_begin_joining(struct job *job)
{
	struct watch *watch = &job->watch;

	watch->active = watch->joins =
		watch->peer_timeout != 0 && job->size > 1 && job->rank < TELLERS;
	watch->heard = time_monotonic();
	watch->due = watch->heard + watch->peer_timeout;
}

/* W4. */
static void others_late(struct job *job)
{
	log_warning("rank %u has waited %.3g s (PTL_PEER_TIMEOUT) for all ranks to join: one of "
		    "them has ended, or is late; if one has ended, end the job (\"srun -K\" does "
		    "so by itself)",
		job->rank, (double)job->watch.peer_timeout / SECOND);
	job->watch.active = false;
}

static _Noreturn void neighbour_dead(struct job *job)
{
	/* Hydra loses what it has not read when the job is aborted. */
	const struct timespec moment = {.tv_nsec = 100 * (long)MILLISECOND};

	log_error("rank %u waits at a barrier, and rank %u has not answered for %.3g s "
		  "(PTL_PEER_TIMEOUT): it has ended, or its host is lost; the job is ended",
		job->rank, job_neighbour(job), (double)job->watch.peer_timeout / SECOND);
	nanosleep(&moment, NULL);
	job_abort(job, EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

/* W2. */
static bool neighbour_lives(struct watch *watch)
{
	if (watch->lifeline.to.port == 0)
		return watch->answers(watch->front, watch->interface, watch->neighbour,
			RTE_MIN(ANSWER_TIME, watch->peer_timeout));
	if (!watch->lifeline.asks)
		lifeline_ask(&watch->lifeline, watch->peer_timeout);
	switch (lifeline_look(&watch->lifeline)) {
	case LIFELINE_SILENT: /* it had its time, but for one more try */
		watch->heard =
			RTE_MIN(watch->heard, time_monotonic() - watch->peer_timeout + LOOK_AGAIN);
		return false;
	case LIFELINE_DOWN:
		return false;
	default:
		return true;
	}
}

uint64_t watch_turn(struct job *job)
{
	struct watch *watch = &job->watch;
	uint64_t time;

	if (!watch->active)
		return UINT64_MAX;
	time = time_monotonic();
	if (time < watch->due)
		return watch->due - time;
	if (watch->joins) {
		others_late(job);
		return UINT64_MAX;
	}
	if (neighbour_lives(watch)) {
		watch->heard = time_monotonic();
		watch->due = watch->heard + watch->peer_timeout / 4;
	} else {
		time = time_monotonic();
		if (time - watch->heard >= watch->peer_timeout)
			neighbour_dead(job);
		watch->due = time + RTE_MIN(LOOK_AGAIN, watch->peer_timeout / 4);
	}
	return 0;
}
