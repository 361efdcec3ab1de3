/* client.c - see client.h.
 *
 * K1. Every wait looks at every event through client_event(), which alone handles ticks, failures
 *     and control messages. So a wait ends with what it waits for, or with the program.
 * K2. A measure starts when the server is READY, and the next one after STOPPED, when nothing of
 *     the last is on its way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <postern.h>

#include "client.h"
#include "bare.h"
#include "complain.h"
#include "lend.h"
#include "stream.h"

#define HELLO_TIME   (10 * SECOND) /* a process that lives but is no server is given up after this */
#define WINDOW_BYTES (16 << 20)    /* windows of large messages shrink to this */
#define WINDOW_LEAST 4             /* but to no fewer messages, unless fewer were asked for */

struct client {
	struct endpoint *endpoint;
	const struct options *options;
	struct stream stream;
	struct landing landing;
	enum control_kind heard; /* last answer of the server */
	struct control refusal;
	uint64_t arrived; /* messages that have landed, or replies */
	unsigned ticks;

	void (*progress)(void *context, double part);
	void *context;
	double part; /* done of this measure */
	struct effort effort;
	uint64_t cost; /* of a look at the clock */

	struct server *server; /* the other end, where this thread runs it too */
	uint64_t server_address;
	struct bare bare;

	struct histogram times;
};

static void send_failed(const struct client *client, const ptl_event_t *event)
{
	const ptl_process_id_t peer = client->stream.peer;

	if (event->ni_fail_type == PTL_NI_UNREACHABLE)
		complain("no process answers at %u:%u; start postern-perf --server there, on an "
			 "interface that reaches this one.",
			peer.nid, peer.pid);
	complain("the server at %u:%u is gone: %s", peer.nid, peer.pid,
		postern_fail_text(event->ni_fail_type));
}

static void ticked(struct client *client)
{
	if (++client->ticks % TICKS_A_SECOND == 0 && client->heard != CONTROL_NONE)
		stream_say(&client->stream, CONTROL_PING, 0, 0);
	if (client->progress != NULL)
		client->progress(client->context, client->part);
}

static void control_heard(struct client *client, const struct control *control)
{
	if (control->kind == CONTROL_TICK) {
		ticked(client);
		return;
	}
	if (control->session != client->stream.session)
		return;
	switch (control->kind) {
	case CONTROL_CREDIT:
		client->stream.credited++;
		break;
	case CONTROL_REFUSED:
		client->refusal = *control;
		client->heard = control->kind;
		break;
	case CONTROL_BARED:
		client->server_address = control->number;
		client->heard = control->kind;
		break;
	case CONTROL_WELCOME:
	case CONTROL_BUSY:
	case CONTROL_READY:
	case CONTROL_STOPPED:
		client->heard = control->kind;
		break;
	default:
		break;
	}
}

/* Waits for one event and takes note of it. */
static void client_event(struct client *client)
{
	ptl_event_t event;
	struct control control;

	endpoint_next(client->endpoint, &event);
	control = endpoint_control(client->endpoint, &event);
	if (event.ni_fail_type != PTL_NI_OK) {
		send_failed(client, &event);
	} else if (control.kind != CONTROL_NONE) {
		control_heard(client, &control);
	} else if (event.type == PTL_EVENT_REPLY_END) {
		client->arrived++;
	} else if (event.type == PTL_EVENT_PUT_END) {
		client->arrived++;
		if (client->stream.measure == MEASURE_BIDIRECTIONAL)
			stream_received(&client->stream);
	}
}

static void wait_heard(struct client *client, enum control_kind kind)
{
	while (client->heard != kind)
		client_event(client);
}

static void refused(const struct client *client)
{
	const struct control *refusal = &client->refusal;

	if (refusal->measure != PROTOCOL)
		complain("the server is of another version; use the same postern-perf on both "
			 "sides.");
	if (refusal->argument < client->options->window)
		complain("the server takes windows of up to %u messages; start it with --window "
			 "%u as well.",
			refusal->argument, client->options->window);
	complain("the server has no memory for messages of %llu bytes.",
		(unsigned long long)client->landing.size);
}

/* HELLO is said again every second, because a server that is just starting up may have missed the
 * first. */
static void meet(struct client *client)
{
	const ptl_process_id_t peer = client->stream.peer;
	uint64_t deadline = clock_look() + HELLO_TIME;
	bool told = false;
	unsigned said = 0; /* tick of the last HELLO, plus 1 */

	for (;;) {
		if (said == 0 || client->ticks - (said - 1) >= TICKS_A_SECOND) {
			const struct control hello = {
				.kind = CONTROL_HELLO,
				.measure = PROTOCOL,
				.session = client->stream.session,
				.argument = client->options->window,
				.number = client->landing.size,
			};

			endpoint_say(client->endpoint, peer, &hello);
			said = client->ticks + 1;
		}
		client_event(client);
		if (client->heard == CONTROL_WELCOME)
			return;
		if (client->heard == CONTROL_REFUSED)
			refused(client);
		if (client->heard == CONTROL_BUSY) {
			if (!told)
				fprintf(stderr, "postern-perf: the server is serving another "
						"client; waiting for my turn.\n");
			told = true;
			client->heard = CONTROL_NONE;
			deadline = clock_look() + HELLO_TIME;
		}
		if (clock_look() > deadline)
			complain("a process is at %u:%u, but no postern-perf --server.", peer.nid,
				peer.pid);
	}
}

struct client *client_open(struct endpoint *endpoint, ptl_process_id_t peer, struct server *server,
	const struct options *options, uint64_t largest)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL || !landing_open(&client->landing, endpoint, peer, largest))
		complain("there is no memory for messages of %llu bytes.",
			(unsigned long long)largest);
	client->endpoint = endpoint;
	client->options = options;
	client->server = server;
	client->cost = clock_cost();
	client->stream = (struct stream){
		.endpoint = endpoint,
		.peer = peer,
		.session = (uint16_t)(clock_look() >> 10 ^ (uint64_t)getpid()),
	};
	meet(client);
	return client;
}

void client_close(struct client *client)
{
	ptl_event_t event;

	stream_say(&client->stream, CONTROL_BYE, 0, 0);
	do /* until it has arrived; pings of the server may fail from now on */
		endpoint_next(client->endpoint, &event);
	while (event.ni_fail_type == PTL_NI_OK &&
		!(event.type == PTL_EVENT_SEND_END && event.match_bits >> 56 == CONTROL_BYE));
	landing_close(&client->landing);
	free(client);
}

static double seconds_since(const struct course *course, uint64_t now)
{
	return (double)(now - course->start) / (double)SECOND;
}

/* One message there and back, or one get. */
static void round_trip(struct client *client)
{
	uint64_t wanted = client->arrived + 1;

	if (client->stream.measure == MEASURE_GET_LATENCY)
		complain_unless_ok(PtlGet(client->stream.load, client->stream.peer, PORTAL_DATA, 0,
					   MATCH_GET, 0),
			"PtlGet");
	else
		stream_put(&client->stream);
	while (client->arrived < wanted)
		client_event(client);
}

static void measure_latency(struct client *client, struct result *result)
{
	/* a put is timed there and back, and half of that is its way */
	unsigned ways = client->stream.measure == MEASURE_GET_LATENCY ? 1 : 2;
	struct course course = course_begin(&client->effort, 1, true);
	uint64_t start;
	uint64_t end;

	for (uint64_t i = 0; course_part(&course, i, clock_look()) < 1; i++)
		round_trip(client);
	histogram_clear(&client->times);
	course = course_begin(&client->effort, 1, false);
	do {
		start = clock_look();
		round_trip(client);
		end = clock_look();
		histogram_add(&client->times, clock_between(start, end, client->cost) / ways);
		client->part = course_part(&course, client->times.count, end);
	} while (client->part < 1);
	result->messages = client->times.count;
	result->seconds = seconds_since(&course, end);
	result->times = &client->times;
}

static void measure_stream(struct client *client, struct result *result)
{
	struct stream *stream = &client->stream;
	struct course course = course_begin(&client->effort, stream->window, true);
	uint64_t from;
	uint64_t arrived;

	while (course_part(&course, stream->credited, clock_look()) < 1) {
		stream_fill(stream);
		client_event(client);
	}
	course = course_begin(&client->effort, stream->window, false);
	from = stream->credited;
	arrived = client->arrived;
	do {
		uint64_t seen = stream->credited;

		stream_fill(stream);
		while (stream->credited == seen)
			client_event(client);
		client->part = course_part(&course, stream->credited - from, clock_look());
	} while (client->part < 1);
	result->seconds = seconds_since(&course, clock_look());
	result->messages = (stream->credited - from) * stream->window + client->arrived - arrived;
	while (!stream_idle(stream))
		client_event(client);
}

/* A window of gets on their way, each followed by the next. */
static void measure_gets(struct client *client, struct result *result)
{
	const struct stream *stream = &client->stream;
	struct course course = course_begin(&client->effort, stream->window, true);
	uint64_t asked = 0;
	uint64_t from = 0;

	client->arrived = 0;
	for (bool warm_up = true;;) {
		for (; asked - client->arrived < stream->window; asked++)
			complain_unless_ok(
				PtlGet(stream->load, stream->peer, PORTAL_DATA, 0, MATCH_GET, 0),
				"PtlGet");
		client_event(client);
		client->part = course_part(
			&course, (client->arrived - from) / stream->window, clock_look());
		if (client->part < 1)
			continue;
		if (!warm_up)
			break;
		warm_up = false;
		from = client->arrived;
		course = course_begin(&client->effort, stream->window, false);
	}
	result->seconds = seconds_since(&course, clock_look());
	result->messages = client->arrived - from;
	while (client->arrived < asked)
		client_event(client);
}

static uint32_t window_of(const struct options *options, enum measure measure, uint64_t size)
{
	uint64_t window = options->window;

	if (measure == MEASURE_LATENCY || measure == MEASURE_GET_LATENCY)
		return 1;
	if (size * window > WINDOW_BYTES) {
		uint64_t fewer = WINDOW_BYTES / size;

		if (fewer < WINDOW_LEAST)
			fewer = WINDOW_LEAST;
		if (fewer < window)
			window = fewer;
	}
	return (uint32_t)window;
}

/* What is put, or where a get's reply goes: only replies are worth an event, since a message that
 * arrived is answered. */
static void load_open(struct client *client, uint64_t size)
{
	bool get = client->stream.measure == MEASURE_GET_LATENCY ||
		   client->stream.measure == MEASURE_GET_BANDWIDTH;
	const ptl_md_t load = {
		.start = client->landing.memory,
		.length = size,
		.threshold = PTL_MD_THRESH_INF,
		.eventq = get ? client->endpoint->eq : PTL_EQ_NONE,
	};

	complain_unless_ok(
		PtlMDBind(client->endpoint->ni, load, &client->stream.load), "PtlMDBind");
}

struct result client_measure(struct client *client, enum measure measure, uint64_t size,
	const struct effort *effort, void (*progress)(void *context, double part), void *context)
{
	struct stream *stream = &client->stream;
	struct result result = {.measure = measure,
		.size = size,
		.window = window_of(client->options, measure, size)};

	client->progress = progress;
	client->context = context;
	client->part = 0;
	client->effort = *effort;
	stream->measure = (uint8_t)measure;
	stream->window = result.window;
	stream->sent = stream->credited = stream->received = 0;
	load_open(client, size);
	stream_say(stream, CONTROL_PREPARE, result.window, size);
	wait_heard(client, CONTROL_READY);
	if (measure == MEASURE_LATENCY || measure == MEASURE_GET_LATENCY)
		measure_latency(client, &result);
	else if (measure == MEASURE_GET_BANDWIDTH)
		measure_gets(client, &result);
	else
		measure_stream(client, &result);
	stream_say(stream, CONTROL_STOP, 0, 0);
	wait_heard(client, CONTROL_STOPPED);
	descriptor_close(stream->load);
	client->progress = NULL;
	return result;
}

/* The server is alive, or the program ends with the words for that. */
static _Noreturn void bare_failed(struct client *client)
{
	client->heard = CONTROL_NONE;
	meet(client);
	complain(
		"bare frames do not reach the server at %u:%u, or it fell silent for seconds; they "
		"are Ethernet frames of type 0x88b6, which no router forwards. Measure without "
		"--raw.",
		client->stream.peer.nid, client->stream.peer.pid);
}

struct result client_bare(struct client *client, enum measure measure, uint64_t size,
	const struct effort *effort, void (*progress)(void *context, double part), void *context)
{
	unsigned count = client->server != NULL ? 2 : 1;
	struct bare *other = NULL;
	struct lend_end ends[LEND_MAX];

	ends[0] = (struct lend_end){
		.ni = client->endpoint->ni,
		.bare = &client->bare,
		.options =
			{
				.memory = client->landing.memory,
				.memory_size = client->landing.size,
				.client = true,
				.session = client->stream.session,
				.measure = measure,
				.size = size,
				.window = window_of(client->options, measure, size),
				.effort = *effort,
			},
	};
	if (client->server != NULL) {
		server_bare(client->server, &ends[1]);
		client->server_address = lend_address(ends[1].ni);
		other = ends[1].bare = malloc(sizeof(*other));
		if (other == NULL)
			complain("there is no memory for bare frames.");
	} else {
		stream_say(&client->stream, CONTROL_BARE, 0, size);
		wait_heard(client, CONTROL_BARED);
	}
	ends[0].options.to = client->server_address;
	if (!lend_run(ends, count, progress, context))
		bare_failed(client);
	free(other);
	return client->bare.result;
}
