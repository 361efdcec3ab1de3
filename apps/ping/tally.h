/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.h - least, mean, largest and deviation of many times. */
#ifndef PING_TALLY_H
#define PING_TALLY_H

#include <stdint.h>

struct tally {
	uint64_t count;
	uint64_t least;
	uint64_t most;
	double mean;
	double squares; /* sum of squared distances from the mean (Welford) */
};

void tally_add(struct tally *tally, uint64_t value);
double tally_deviation(const struct tally *tally);

#endif
