/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.c - the words for trial.h. */
#include <stddef.h>

#include "trial.h"

static const struct {
	const char *name;
	const char *title;
	const char *two_sided; /* the title when messages are not put; NULL: the same */
} measures[MEASURE_COUNT] = {
	[MEASURE_LATENCY] = {"latency", "Latency of put: half of the round trip, microseconds",
		"Latency of a message: half of the round trip, microseconds"},
	[MEASURE_RATE] = {"rate", "Rate of puts", "Rate of messages"},
	[MEASURE_BANDWIDTH] = {"bandwidth", "Bandwidth of put", "Bandwidth of messages"},
	[MEASURE_BIDIRECTIONAL] = {"bidirectional", "Bandwidth of put, both ways at once, summed",
		NULL},
	[MEASURE_GET_LATENCY] = {"get-latency", "Latency of get: round trip, microseconds", NULL},
	[MEASURE_GET_RATE] = {"get-rate", "Rate of gets", NULL},
	[MEASURE_GET_BANDWIDTH] = {"get-bandwidth", "Bandwidth of get", NULL},
	[MEASURE_FETCH_LATENCY] = {"fetch-latency",
		"Latency of a fetching addition: round trip, microseconds", NULL},
	[MEASURE_TRIGGERED_LATENCY] = {"triggered-latency",
		"Latency of counted and triggered put: half of the round trip, microseconds", NULL},
	[MEASURE_COUNTED_RATE] = {"counted-rate", "Rate of puts that are counted, without events",
		NULL},
	[MEASURE_UNEXPECTED_RATE] = {"unexpected-rate",
		"Rate of messages that no receive was posted for", NULL},
	[MEASURE_OVERLAP_SEND] = {"overlap-send",
		"Part of a message's time that passes while its sender computes", NULL},
	[MEASURE_OVERLAP_RECEIVE] = {"overlap-receive",
		"Part of a message's time that passes while its receiver computes", NULL},
	[MEASURE_ANY_LATENCY] = {"any-latency",
		"Finding a request that is done, among those that are done: microseconds", NULL},
	[MEASURE_KEPT_LATENCY] = {"kept-latency",
		"Receiving a message that is here, among those that are: microseconds", NULL},
	[MEASURE_PUT_LATENCY] = {"put-latency",
		"Latency of a put and its acknowledgement: round trip, microseconds", NULL},
	[MEASURE_PUT_BANDWIDTH] = {"put-bandwidth",
		"Bandwidth of puts, each with its acknowledgement", NULL},
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

const char *measure_title(enum measure measure, bool two_sided)
{
	return two_sided && measures[measure].two_sided ? measures[measure].two_sided
							: measures[measure].title;
}

const char *position_name(enum position position)
{
	return positions[position];
}

uint64_t shape_target(const struct match_shape *shape, uint64_t *random)
{
	switch (shape->position) {
	case POSITION_FIRST:
		return 0;
	case POSITION_MIDDLE:
		return shape->depth / 2;
	case POSITION_RANDOM:
		*random ^= *random << 13;
		*random ^= *random >> 7;
		*random ^= *random << 17;
		return (*random >> 32) * shape->depth >> 32;
	default:
		return shape->depth - 1;
	}
}

bool shape_is_wildcard(const struct match_shape *shape, uint32_t i)
{
	uint64_t wildcards = shape_wildcards(shape);

	return i * wildcards / shape->depth != (i + 1) * wildcards / shape->depth;
}
