/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.c - the words for trial.h. */
#include "trial.h"

static const struct {
	const char *name;
	const char *title;
} measures[MEASURE_COUNT] = {
	[MEASURE_LATENCY] = {"latency", "Latency of put: half of the round trip, microseconds"},
	[MEASURE_RATE] = {"rate", "Rate of puts"},
	[MEASURE_BANDWIDTH] = {"bandwidth", "Bandwidth of put"},
	[MEASURE_BIDIRECTIONAL] = {"bidirectional", "Bandwidth of put, both ways at once, summed"},
	[MEASURE_GET_LATENCY] = {"get-latency", "Latency of get: round trip, microseconds"},
	[MEASURE_GET_RATE] = {"get-rate", "Rate of gets"},
	[MEASURE_GET_BANDWIDTH] = {"get-bandwidth", "Bandwidth of get"},
	[MEASURE_FETCH_LATENCY] = {"fetch-latency",
		"Latency of a fetching addition: round trip, microseconds"},
	[MEASURE_TRIGGERED_LATENCY] = {"triggered-latency",
		"Latency of counted and triggered put: half of the round trip, microseconds"},
	[MEASURE_COUNTED_RATE] = {"counted-rate", "Rate of puts that are counted, without events"},
};

static const char *const positions[POSITION_COUNT] = {
	[POSITION_FIRST] = "first",
	[POSITION_MIDDLE] = "middle",
	[POSITION_LAST] = "last",
	[POSITION_RANDOM] = "random",
};

const char *measure_name(enum measure measure)
{
	return measures[measure].name;
}

const char *measure_title(enum measure measure)
{
	return measures[measure].title;
}

const char *position_name(enum position position)
{
	return positions[position];
}
