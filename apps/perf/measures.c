/* SPDX-License-Identifier: BSD-3-Clause */
/* measures.c - the loops that are measured: there and back, windows of puts, windows of gets. See
 * client_state.h.
 *
 * With several peers the messages go to them in turns.
 */
#include "client_state.h"
#include "complain.h"

static double seconds_since(const struct course *course, uint64_t now)
{
	return (double)(now - course->start) / (double)SECOND;
}

/* One message there and back, or one get. */
static void round_trip(struct client *client, struct stream *stream)
{
	uint64_t wanted = client->arrived + 1;

	if (measure_gets(client->trial.measure))
		stream_get(stream);
	else
		stream_put(stream);
	while (client->arrived < wanted)
		client_turn(client);
}

static void measure_latency(struct client *client, struct result *result)
{
	/* a put is timed there and back, and half of that is its way */
	unsigned ways = measure_gets(client->trial.measure) ? 1 : 2;
	struct course course = course_begin(&client->effort, 1, true);
	unsigned turn = 0;
	uint64_t start;
	uint64_t end;

	for (uint64_t i = 0; course_part(&course, i, clock_look()) < 1; i++)
		round_trip(client, &client->peers[i % client->used].stream);
	histogram_clear(&client->times);
	course = course_begin(&client->effort, 1, false);
	do {
		struct stream *stream = &client->peers[turn].stream;

		turn = turn + 1 < client->used ? turn + 1 : 0;
		start = clock_look();
		round_trip(client, stream);
		end = clock_look();
		histogram_add(&client->times, clock_between(start, end, client->cost) / ways);
		client->part = course_part(&course, client->times.count, end);
	} while (client->part < 1);
	result->messages = client->times.count;
	result->seconds = seconds_since(&course, end);
	result->times = &client->times;
}

/* Fills the windows, and waits until one more has arrived. */
static void window_next(struct client *client)
{
	uint64_t seen = client->credited;

	for (unsigned i = 0; i < client->used; i++)
		stream_fill(&client->peers[i].stream);
	while (client->credited == seen)
		client_turn(client);
}

static void measure_puts(struct client *client, struct result *result)
{
	struct course course = course_begin(&client->effort, client->window, true);
	uint64_t from;
	uint64_t arrived;

	while (course_part(&course, client->credited, clock_look()) < 1)
		window_next(client);
	course = course_begin(&client->effort, client->window, false);
	from = client->credited;
	arrived = client->arrived;
	do {
		window_next(client);
		client->part = course_part(&course, client->credited - from, clock_look());
	} while (client->part < 1);
	result->seconds = seconds_since(&course, clock_look());
	result->messages = (client->credited - from) * client->window + client->arrived - arrived;
	for (unsigned i = 0; i < client->used; i++)
		while (!stream_idle(&client->peers[i].stream))
			client_turn(client);
}

/* A window of gets on their way, each followed by the next. */
static void measure_get_windows(struct client *client, struct result *result)
{
	struct course course = course_begin(&client->effort, client->window, true);
	uint64_t most = (uint64_t)client->window * client->used;
	uint64_t asked = 0;
	uint64_t from = 0;
	unsigned turn = 0;

	client->arrived = 0;
	for (bool warm_up = true;;) {
		for (; asked - client->arrived < most; asked++) {
			stream_get(&client->peers[turn].stream);
			turn = turn + 1 < client->used ? turn + 1 : 0;
		}
		client_turn(client);
		client->part = course_part(
			&course, (client->arrived - from) / client->window, clock_look());
		/* At least one: on a busy machine a short time passes without any. */
		if (client->part < 1 || client->arrived == from)
			continue;
		if (!warm_up)
			break;
		warm_up = false;
		from = client->arrived;
		course = course_begin(&client->effort, client->window, false);
	}
	result->seconds = seconds_since(&course, clock_look());
	result->messages = client->arrived - from;
	while (client->arrived < asked)
		client_turn(client);
}

static void arrive(struct client *client)
{
	uint64_t wanted = client->arrived + 1;

	while (client->arrived < wanted)
		client_turn(client);
}

/* A message, while the client computes for so many ns and makes no call; returns ns. */
static uint64_t overlap_round(struct client *client, uint64_t compute)
{
	struct stream *stream = &client->peers[0].stream;
	uint64_t start = clock_look();

	stream_put(stream);
	if (client->trial.measure == MEASURE_OVERLAP_RECEIVE) {
		arrive(client); /* it has begun */
		start = clock_look();
	}
	while (clock_look() - start < compute)
		;
	arrive(client);
	return clock_look() - start;
}

/* Messages alone, and others while the client computes as long as one takes alone, in turns: what
 * the second kind takes beyond the computation was not hidden behind it. */
static void measure_overlap(struct client *client, struct result *result)
{
	struct course course = course_begin(&client->effort, 1, true);
	struct histogram *both = &client->times, *alone = &client->others;
	uint64_t median = 0;

	histogram_clear(alone);
	histogram_clear(both);
	do {
		histogram_add(alone, overlap_round(client, 0));
	} while (course_part(&course, alone->count, clock_look()) < 1);
	course = course_begin(&client->effort, 1, false);
	do {
		histogram_add(alone, overlap_round(client, 0));
		median = histogram_percentile(alone, 50);
		histogram_add(both, overlap_round(client, median));
		client->part = course_part(&course, both->count, clock_look());
	} while (client->part < 1);
	result->messages = both->count;
	result->seconds = seconds_since(&course, clock_look());
	result->part = 2 - (double)histogram_percentile(both, 50) / (double)median;
	result->part = result->part < 0 ? 0 : result->part > 1 ? 1 : result->part;
}

static void measure_search(struct client *client, struct result *result)
{
	const struct stream *stream = &client->peers[0].stream;
	struct course course = course_begin(&client->effort, 1, true);
	uint64_t start, end;

	for (uint64_t i = 0; course_part(&course, i, clock_look()) < 1; i++) {
		stream->module->stage(stream->line);
		stream->module->find(stream->line);
	}
	histogram_clear(&client->times);
	course = course_begin(&client->effort, 1, false);
	do {
		stream->module->stage(stream->line);
		start = clock_look();
		stream->module->find(stream->line);
		end = clock_look();
		histogram_add(&client->times, clock_between(start, end, client->cost));
		client->part = course_part(&course, client->times.count, end);
	} while (client->part < 1);
	result->messages = client->times.count;
	result->seconds = seconds_since(&course, end);
	result->times = &client->times;
}

void measure_run(struct client *client, struct result *result)
{
	if (measure_is_search(client->trial.measure))
		measure_search(client, result);
	else if (measure_is_overlap(client->trial.measure))
		measure_overlap(client, result);
	else if (measure_is_latency(client->trial.measure))
		measure_latency(client, result);
	else if (measure_gets(client->trial.measure))
		measure_get_windows(client, result);
	else
		measure_puts(client, result);
}
