/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.h - one trial, in runs, each with a warm-up of its own: with bare frames, one run of them
 * and one of messages in turns, so that other work of the machine disturbs both alike.
 *
 * V1. Times of all runs are counted together; a rate is the median of the runs'.
 */
#ifndef PERF_SURVEY_H
#define PERF_SURVEY_H

#include "client.h"

struct survey {
	struct result result;
	struct histogram times;
	struct run runs[RUNS_MAX];
	unsigned count;
};

/* Messages into `messages` and, if not NULL, bare frames into `bare`; the effort is divided among
 * `runs` runs of each. */
void survey_run(struct client *client, const struct trial *trial, const struct effort *effort,
	unsigned runs, struct survey *messages, struct survey *bare,
	void (*progress)(void *context, double part), void *context);

/* Adds what another pair found in the same trial at the same time: rates are summed, times counted
 * together. */
void survey_join(struct survey *survey, const struct survey *other);

#endif
