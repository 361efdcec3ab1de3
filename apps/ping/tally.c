/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.c - see tally.h. */
#include "tally.h"

#include <math.h>

void tally_add(struct tally *tally, uint64_t value)
{
	double distance = (double)value - tally->mean;

	if (tally->count == 0 || value < tally->least)
		tally->least = value;
	if (value > tally->most)
		tally->most = value;
	tally->count++;
	tally->mean += distance / (double)tally->count;
	tally->squares += distance * ((double)value - tally->mean);
}

double tally_deviation(const struct tally *tally)
{
	return tally->count == 0 ? 0 : sqrt(tally->squares / (double)tally->count);
}
