/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - see server.h.
 *
 * V1. Between sessions landing.memory is NULL and client means nothing.
 * V2. A message with another session's number comes from a client that has gone or is not served
 *     yet. It is answered with BUSY and changes nothing else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "complain.h"
#include "options.h"
#include "server.h"
#include "shape.h"
#include "stream.h"

struct server {
	struct endpoint *endpoint;
	uint32_t window; /* the largest */
	enum library offered;
	bool quiet;
	bool serving;
	bool measuring; /* between PREPARE and STOPPED: stream.load is bound */
	bool stopping;  /* STOP has come, credits have not all */
	bool lost;      /* the client died */
	unsigned served;
	unsigned ticks;
	struct stream stream;
	struct landing landing;
	struct match_shape wanted; /* for the next measure */
	enum library library;      /* of its messages, */
	struct line_address meet;  /* and where the client's end of the line is */
	unsigned looks;            /* at the line, since one at events */
	uint64_t size;             /* bytes of a message of the measure */
	struct shape shape;
};

static void server_tell(const struct server *server, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void server_tell(const struct server *server, const char *format, ...)
{
	va_list arguments;

	if (server->quiet)
		return;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	(void)output_flush();
}

static void measure_end(struct server *server)
{
	if (server->measuring)
		descriptor_close(server->stream.load);
	stream_line_close(&server->stream);
	server->library = LIBRARY_PORTALS3;
	server->measuring = server->stopping = false;
}

static void session_end(struct server *server)
{
	measure_end(server);
	shape_free(&server->shape);
	server->wanted = (struct match_shape){0};
	landing_close(&server->landing);
	server->serving = false;
	server->served++;
}

static void answer(
	struct server *server, ptl_process_id_t to, uint16_t session, enum control_kind kind)
{
	const struct control control = {
		.kind = kind, .measure = PROTOCOL, .session = session, .argument = server->window};

	endpoint_say(server->endpoint, to, &control);
}

/* A HELLO is repeated until it is answered; a client that was started anew replaces its old
 * life. */
static void hello(struct server *server, const struct control *control, ptl_process_id_t from)
{
	struct stream *stream = &server->stream;
	bool same = server->serving && from.nid == stream->peer.nid && from.pid == stream->peer.pid;

	if (same && control->session == stream->session) {
		answer(server, from, control->session, CONTROL_WELCOME);
		return;
	}
	if (server->serving && !same) {
		answer(server, from, control->session, CONTROL_BUSY);
		return;
	}
	if (same)
		session_end(server);
	if (control->measure != PROTOCOL || control->argument > server->window ||
		control->number > SIZE_MAX_BYTES ||
		!landing_open(&server->landing, server->endpoint, from, control->number, NULL)) {
		answer(server, from, control->session, CONTROL_REFUSED);
		return;
	}
	*stream = (struct stream){
		.endpoint = server->endpoint,
		.peer = from,
		.session = control->session,
		.random = 1,
	};
	server->serving = true;
	server->lost = false;
	answer(server, from, control->session, CONTROL_WELCOME);
	server_tell(server, "Serving %s.\n", process_text(from).text);
}

static void shape_heard(struct server *server, const struct control *control)
{
	uint64_t position = control->number >> 32;

	if (control->argument <= DEPTH_MAX && position < POSITION_COUNT)
		server->wanted = (struct match_shape){
			.depth = control->argument,
			.wildcards = (uint32_t)control->number,
			.position = (enum position)position,
		};
}

static void meet_heard(struct server *server, const struct control *control)
{
	if (server->measuring || control->measure >= LIBRARY_COUNT)
		return;
	server->library = (enum library)control->measure;
	server->meet.numbers[0] = control->number;
	server->meet.argument = control->argument;
}

/* Messages of another library. */
static bool line_open(
	struct server *server, const struct control *prepare, struct line_address *own)
{
	struct line_request request = {
		.measure = (enum measure)prepare->measure,
		.server = true,
		.memory = server->landing.memory,
		.size = prepare->number,
		.messages = prepare->argument * STREAM_WINDOWS,
		.window = prepare->argument,
		.shape = server->wanted,
	};
	char why[WHY_ROOM] = "the --server was not started with this --library";

	if (server->library == server->offered && library_has(server->library, request.measure) &&
		stream_line_open(
			&server->stream, server->library, &request, own, why, sizeof(why))) {
		return server->stream.module->meet(server->stream.line, &server->meet);
	}
	fprintf(stderr, "postern-perf: %s cannot be measured: %s.\n",
		library_title(server->library), why);
	return false;
}

static void prepare(struct server *server, const struct control *control)
{
	struct stream *stream = &server->stream;
	struct line_address own = {0};
	const ptl_md_t load = {
		.start = server->landing.memory,
		.length = control->number,
		.threshold = PTL_MD_THRESH_INF,
		.eventq = PTL_EQ_NONE,
	};

	if (server->measuring || control->number > server->landing.size || control->argument == 0 ||
		control->argument > server->window || control->measure >= MEASURE_COUNT)
		return;
	if (server->library != LIBRARY_PORTALS3 && !line_open(server, control, &own)) {
		stream_say(stream, CONTROL_REFUSED, 0, 0);
		return;
	}
	stream->measure = control->measure;
	stream->shape = server->wanted;
	if (server->library == LIBRARY_PORTALS3 &&
		!shape_make(&server->shape, server->endpoint, stream->peer, &server->landing,
			&server->wanted, measure_gets(stream->measure))) {
		stream_say(stream, CONTROL_REFUSED, server->wanted.depth, 0);
		return;
	}
	complain_unless_ok(PtlMDBind(server->endpoint->ni, load, &stream->load), "PtlMDBind");
	server->measuring = true;
	server->size = control->number;
	stream->window = control->argument;
	stream->sent = stream->credited = 0;
	stream->arrived = 0;
	if (stream->line)
		stream_numbers(stream, &own);
	stream_say(stream, CONTROL_READY, own.argument, own.numbers[0]);
	if (stream->measure == MEASURE_BIDIRECTIONAL)
		stream_fill(stream);
}

void server_bare(const struct server *server, struct lend_end *end)
{
	end->ni = server->endpoint->ni;
	end->options = (struct bare_options){
		.memory = server->landing.memory,
		.memory_size = server->landing.size,
		.session = server->stream.session,
	};
}

/* The client finds out by itself when no bare frames come through. */
static void bare_serve(struct server *server)
{
	struct lend_end end = {.bare = malloc(sizeof(*end.bare))};

	if (!end.bare)
		complain("there is no memory for bare frames: have the client leave --raw out, or "
			 "end "
			 "other programs.");
	server_bare(server, &end);
	stream_say(&server->stream, CONTROL_BARED, 0, lend_address(server->endpoint->ni));
	lend_run(&end, 1, NULL, NULL);
	free(end.bare);
}

static void stopped_if_idle(struct server *server)
{
	if (!server->stopping || !stream_idle(&server->stream))
		return;
	measure_end(server);
	stream_say(&server->stream, CONTROL_STOPPED, 0, 0);
}

static void credited(struct server *server)
{
	struct stream *stream = &server->stream;

	if (!server->measuring || stream_idle(stream))
		return;
	stream->credited++;
	if (!server->stopping)
		stream_fill(stream);
	stopped_if_idle(server);
}

static void control_heard(
	struct server *server, const struct control *control, ptl_process_id_t from)
{
	struct stream *stream = &server->stream;

	if (control->kind == CONTROL_TICK) {
		if (server->serving && ++server->ticks % TICKS_A_SECOND == 0)
			stream_say(stream, CONTROL_PING, 0, 0);
		return;
	}
	if (control->kind == CONTROL_HELLO) {
		hello(server, control, from);
		return;
	}
	if (!server->serving || control->session != stream->session ||
		from.nid != stream->peer.nid || from.pid != stream->peer.pid) /* V2 */
		return;
	if (control->kind == CONTROL_SHAPE) {
		shape_heard(server, control);
	} else if (control->kind == CONTROL_MEET) {
		meet_heard(server, control);
	} else if (control->kind == CONTROL_NUMBER) {
		address_add(&server->meet, control->argument, control->number);
	} else if (control->kind == CONTROL_PREPARE) {
		prepare(server, control);
	} else if (control->kind == CONTROL_BARE && !server->measuring) {
		bare_serve(server);
	} else if (control->kind == CONTROL_CREDIT) {
		credited(server);
	} else if (control->kind == CONTROL_STOP && server->measuring) {
		server->stopping = true;
		stopped_if_idle(server);
	} else if (control->kind == CONTROL_BYE) {
		session_end(server);
		server->served -= control->argument == BYE_FOR_NOW;
		if (control->argument != BYE_FOR_NOW)
			server_tell(server, "%s is done.\n", process_text(from).text);
	}
}

static void send_failed(
	struct server *server, const struct control *control, const ptl_event_t *event)
{
	const struct stream *stream = &server->stream;

	if (!server->serving || control->session != stream->session)
		return;
	server_tell(server, "%s is gone: %s\n", process_text(stream->peer).text,
		postern_fail_text(event->ni_fail_type));
	server->lost = true;
	session_end(server);
}

static void data_heard(struct server *server)
{
	struct stream *stream = &server->stream;

	if (!server->measuring)
		return;
	if (stream->measure == MEASURE_LATENCY || measure_is_overlap(stream->measure))
		stream_put(stream);
	else
		stream_received(stream);
}

static void server_event(struct server *server, const ptl_event_t *event)
{
	struct control control;

	if (event->portal != PORTAL_CONTROL && event->type != PTL_EVENT_SEND_FAIL) {
		if (event->type == PTL_EVENT_PUT_END)
			data_heard(server);
		return;
	}
	control = endpoint_control(server->endpoint, event);
	if (event->type == PTL_EVENT_SEND_FAIL)
		send_failed(server, &control, event);
	else if (control.kind != CONTROL_NONE)
		control_heard(server, &control, event->initiator);
}

struct server *server_open(
	struct endpoint *endpoint, uint32_t window, enum library library, bool quiet)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		complain("there is no memory for a server; end other programs.");
	server->endpoint = endpoint;
	server->window = window;
	server->offered = library;
	server->quiet = quiet;
	return server;
}

void server_close(struct server *server)
{
	free(server);
}

/* Returns how many messages have come over the line; 0: there may be none. */
static unsigned line_turn(struct server *server)
{
	const struct stream *stream = &server->stream;
	int arrived = stream->line ? stream->module->receive(stream->line) : 0;
	int credits = arrived > 0 && stream->measure == MEASURE_BIDIRECTIONAL
			      ? stream->module->credits(stream->line)
			      : 0;

	/* A message that has failed was the client's: its control session says so. */
	for (int i = credits; i < arrived; i++)
		data_heard(server);
	for (int i = 0; i < credits; i++) /* the last of them may end the measure */
		credited(server);
	return arrived > 0 ? (unsigned)arrived : 0;
}

bool server_turn(struct server *server)
{
	unsigned arrived = line_turn(server);
	ptl_event_t event;

	server->looks += stream_looks(arrived, server->size);
	if (server->stream.line && server->looks < CONTROL_LOOKS)
		return arrived > 0;
	server->looks = 0;
	while (endpoint_try(server->endpoint, &event))
		server_event(server, &event);
	return arrived > 0;
}

bool server_run(struct server *server, bool once)
{
	ptl_event_t event;

	while (!once || server->served == 0) {
		if (server->stream.line) {
			if (server_turn(server))
				endpoint_busy(server->endpoint);
			else if (endpoint_idle(server->endpoint))
				server->looks = CONTROL_LOOKS - 1;
			continue;
		}
		endpoint_next(server->endpoint, &event);
		server_event(server, &event);
	}
	return !server->lost;
}
