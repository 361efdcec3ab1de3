/* survey.h - one trial, in slices: with bare frames, one slice of them and one of
 * messages in turns, so that what else the machine does meets both alike.
 *
 * V1. Times of all slices are counted together; a rate is the median of the slices'.
 */
#ifndef PERF_SURVEY_H
#define PERF_SURVEY_H

#include "client.h"

/* Slices of each kind where there are bare frames: an odd number has a middle one. */
#define SURVEY_SLICES 5u

struct survey {
	struct result result;
	struct histogram times;
	double rates[SURVEY_SLICES];
	unsigned slices;
};

/* Messages into `messages` and, if not NULL, bare frames into `bare`. */
void survey_run(struct client *client, const struct trial *trial, const struct effort *effort,
	struct survey *messages, struct survey *bare, void (*progress)(void *context, double part),
	void *context);

#endif
