/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.h - what can be measured, and under which circumstances. */
#ifndef PERF_TRIAL_H
#define PERF_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers travel in control messages. */
enum measure {
	MEASURE_LATENCY,
	MEASURE_RATE,
	MEASURE_BANDWIDTH,
	MEASURE_BIDIRECTIONAL,
	MEASURE_GET_LATENCY,
	MEASURE_GET_RATE,
	MEASURE_GET_BANDWIDTH,
	MEASURE_FETCH_LATENCY,
	MEASURE_TRIGGERED_LATENCY,
	MEASURE_COUNTED_RATE,
	MEASURE_UNEXPECTED_RATE,
	MEASURE_OVERLAP_SEND,
	MEASURE_OVERLAP_RECEIVE,
	MEASURE_ANY_LATENCY,
	MEASURE_KEPT_LATENCY,
	MEASURE_PUT_LATENCY,
	MEASURE_PUT_BANDWIDTH,
	MEASURE_COUNT
};

/* Where in the match list the entry is that a message meets. */
enum position { POSITION_FIRST, POSITION_MIDDLE, POSITION_LAST, POSITION_RANDOM, POSITION_COUNT };

#define WILDCARDS_ALL UINT32_MAX

/* A bit that a wildcard ignores, and no message has. */
#define SHAPE_IGNORED (UINT64_C(1) << 63)

/* A match list at both ends: every entry takes messages, each its own match bits. */
struct match_shape {
	uint32_t depth;     /* entries; 0: a list that is made for nothing but the messages */
	uint32_t wildcards; /* of them with ignored bits, spread evenly */
	enum position position;
};

struct trial {
	enum measure measure;
	uint64_t size; /* bytes */
	struct match_shape shape;
	unsigned peers;     /* servers that the messages go to, in turns */
	unsigned pairs;     /* of a client and a server, at once */
	const char *faults; /* PTL_FAULT of the client; NULL: as it is */
	bool two_sided;     /* messages are sent and received, not put */
};

const char *measure_name(enum measure measure);
const char *measure_title(enum measure measure, bool two_sided);
const char *position_name(enum position position);

/* Does the client look for something among others, as many as the depth of its list? */
static inline bool measure_is_search(enum measure measure)
{
	return measure == MEASURE_ANY_LATENCY || measure == MEASURE_KEPT_LATENCY;
}

static inline bool measure_is_latency(enum measure measure)
{
	return measure == MEASURE_LATENCY || measure == MEASURE_GET_LATENCY ||
	       measure == MEASURE_FETCH_LATENCY || measure == MEASURE_TRIGGERED_LATENCY ||
	       measure == MEASURE_PUT_LATENCY || measure_is_search(measure);
}

/* How much of a message's time passes while the client computes. */
static inline bool measure_is_overlap(enum measure measure)
{
	return measure == MEASURE_OVERLAP_SEND || measure == MEASURE_OVERLAP_RECEIVE;
}

/* Is a message, or its answer, awaited before the next one is sent? */
static inline bool measure_is_single(enum measure measure)
{
	return measure_is_latency(measure) || measure_is_overlap(measure);
}

/* Is it about the number of messages, whatever is in them? */
static inline bool measure_is_rate(enum measure measure)
{
	return measure == MEASURE_RATE || measure == MEASURE_GET_RATE ||
	       measure == MEASURE_COUNTED_RATE || measure == MEASURE_UNEXPECTED_RATE;
}

/* Are puts acknowledged by the other end's library? */
static inline bool measure_is_acknowledged(enum measure measure)
{
	return measure == MEASURE_PUT_LATENCY || measure == MEASURE_PUT_BANDWIDTH;
}

/* Does the client wait for replies, or acknowledgements, with which the other end's program has
 * nothing to do? */
static inline bool measure_gets(enum measure measure)
{
	return measure == MEASURE_GET_LATENCY || measure == MEASURE_GET_RATE ||
	       measure == MEASURE_GET_BANDWIDTH || measure == MEASURE_FETCH_LATENCY ||
	       measure_is_acknowledged(measure);
}

/* The match bits of the next message; random: its state, not 0. */
uint64_t shape_target(const struct match_shape *shape, uint64_t *random);
/* Is entry i one of the wildcards, which are spread evenly? */
bool shape_is_wildcard(const struct match_shape *shape, uint32_t i);

static inline uint32_t shape_wildcards(const struct match_shape *shape)
{
	return shape->wildcards < shape->depth ? shape->wildcards : shape->depth;
}

#endif
