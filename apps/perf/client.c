/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - see client.h and client_state.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <postern.h>

#include "../parse.h"
#include "client_state.h"
#include "complain.h"
#include "lend.h"

/* a process that acknowledges HELLOs and does not answer them is given up after this */
#define HELLO_TIME   (10 * SECOND)
#define WINDOW_BYTES (16 << 20) /* windows of large messages shrink to this */
#define WINDOW_LEAST 4          /* but to no fewer messages, unless fewer were asked for */

static void send_failed(const struct peer *peer, const ptl_event_t *event)
{
	const ptl_process_id_t id = peer->stream.peer;

	if (event->ni_fail_type == PTL_NI_UNREACHABLE && !peer->met)
		complain("no process answers at %s; start postern-perf --server there, with the "
			 "same PTL_IFACE_NAME and, if that is node, the same PTL_NID.",
			process_text(id).text);
	complain("the server at %s is gone: %s", process_text(id).text,
		postern_fail_text(event->ni_fail_type));
}

static void ticked(struct client *client)
{
	if (++client->ticks % TICKS_A_SECOND == 0)
		for (unsigned i = 0; i < client->count; i++)
			if (client->peers[i].heard != CONTROL_NONE)
				stream_say(&client->peers[i].stream, CONTROL_PING, 0, 0);
	if (client->progress)
		client->progress(client->context, client->part);
}

/* K3. NULL: of another session. */
static struct peer *peer_of(struct client *client, uint16_t session)
{
	uint16_t i = (uint16_t)(session - client->session);

	return i < client->count ? &client->peers[i] : NULL;
}

static void control_heard(struct client *client, const struct control *control)
{
	struct peer *peer = peer_of(client, control->session);

	if (control->kind == CONTROL_TICK) {
		ticked(client);
		return;
	}
	if (!peer)
		return;
	peer->met = true;
	switch (control->kind) {
	case CONTROL_CREDIT:
		peer->stream.credited++;
		client->credited++;
		break;
	case CONTROL_REFUSED:
		peer->refusal = *control;
		peer->heard = control->kind;
		break;
	case CONTROL_BARED:
		peer->address = control->number;
		peer->heard = control->kind;
		break;
	case CONTROL_READY:
		peer->line.numbers[0] = control->number;
		peer->line.argument = control->argument;
		peer->heard = control->kind;
		break;
	case CONTROL_NUMBER:
		address_add(&peer->line, control->argument, control->number);
		break;
	case CONTROL_WELCOME:
	case CONTROL_BUSY:
	case CONTROL_STOPPED:
		peer->heard = control->kind;
		break;
	default:
		break;
	}
}

static void control_reached(struct client *client, const ptl_event_t *event)
{
	const struct control control = endpoint_reached(client->endpoint, event);
	struct peer *peer = peer_of(client, control.session);

	if (control.kind == CONTROL_HELLO && peer)
		peer->hellos--;
}

/* Whose put or get has failed? Gets do not say it, but their descriptors do. */
static struct peer *peer_failed(
	struct client *client, const struct control *control, const ptl_event_t *event)
{
	struct peer *peer = peer_of(client, control->session);

	if (control->kind != CONTROL_NONE && peer)
		return peer;
	for (unsigned i = 0; i < client->count; i++)
		if (client->peers[i].stream.load == event->md_handle)
			return &client->peers[i];
	return &client->peers[0];
}

static void event_heard(struct client *client, const ptl_event_t *event)
{
	struct control control;
	struct peer *peer;

	if (event->ni_fail_type != PTL_NI_OK || event->portal == PORTAL_CONTROL) {
		control = endpoint_control(client->endpoint, event);
		if (event->ni_fail_type != PTL_NI_OK)
			send_failed(peer_failed(client, &control, event), event);
		else if (control.kind != CONTROL_NONE)
			control_heard(client, &control);
		else
			control_reached(client, event);
	} else if (event->type == PTL_EVENT_REPLY_END) {
		client->arrived++;
	} else if (event->type == PTL_EVENT_PUT_END) {
		client->arrived++;
		peer = peer_of(client, (uint16_t)event->hdr_data);
		if (client->trial.measure == MEASURE_BIDIRECTIONAL && peer)
			stream_received(&peer->stream);
	}
}

void client_event(struct client *client)
{
	ptl_event_t event;

	endpoint_next(client->endpoint, &event);
	event_heard(client, &event);
}

static _Noreturn void line_failed(const struct client *client, const struct stream *stream)
{
	complain("the server at %s is gone: a message of %s to it has failed.",
		process_text(stream->peer).text, library_title(client->options->library));
}

static void line_credited(struct client *client, struct stream *stream, uint64_t windows)
{
	stream->credited += windows;
	client->credited += windows;
}

static void line_both(struct client *client, struct stream *stream, int arrived)
{
	int credits = stream->module->credits(stream->line);

	line_credited(client, stream, (uint64_t)credits);
	client->arrived += (uint64_t)(arrived - credits);
	for (int i = credits; i < arrived; i++)
		stream_received(stream);
}

/* Returns how many messages have come over the peer's line. */
static unsigned line_turn(struct client *client, struct stream *stream)
{
	enum measure measure = client->trial.measure;
	int arrived = stream->line ? stream->module->receive(stream->line) : 0;

	if (arrived < 0)
		line_failed(client, stream);
	if (arrived <= 0)
		return 0;
	if (measure_is_single(measure) || measure_gets(measure))
		client->arrived += (uint64_t)arrived;
	else if (measure == MEASURE_BIDIRECTIONAL)
		line_both(client, stream, arrived);
	else
		line_credited(client, stream, (uint64_t)arrived);
	return (unsigned)arrived;
}

void client_turn(struct client *client)
{
	ptl_event_t event;
	unsigned arrived = 0;
	bool rested;

	if (client->options->library == LIBRARY_PORTALS3) {
		client_event(client);
		return;
	}
	for (unsigned i = 0; i < client->used; i++)
		arrived += line_turn(client, &client->peers[i].stream);
	if (arrived > 0)
		endpoint_busy(client->endpoint);
	rested = arrived == 0 && endpoint_idle(client->endpoint);
	client->looks += stream_looks(arrived, client->trial.size);
	if (client->looks < CONTROL_LOOKS && !rested)
		return;
	client->looks = 0;
	while (endpoint_try(client->endpoint, &event))
		event_heard(client, &event);
}

static _Noreturn void refused(const struct client *client, const struct peer *peer)
{
	const struct control *refusal = &peer->refusal;
	const ptl_process_id_t id = peer->stream.peer;

	if (refusal->measure != PROTOCOL)
		complain("the server at %s is of another version; use the same postern-perf on "
			 "both sides.",
			process_text(id).text);
	if (refusal->argument < client->options->window)
		complain("the server at %s takes windows of up to %u messages; start it with "
			 "--window %u as well.",
			process_text(id).text, refusal->argument, client->options->window);
	complain("the server at %s has no memory for messages of %llu bytes; give smaller --sizes.",
		process_text(id).text, (unsigned long long)peer->landing.size);
}

/* turn: client_event(), or client_turn() if messages may come meanwhile. */
static void wait_heard(struct client *client, struct peer *peer, enum control_kind kind,
	void (*turn)(struct client *client))
{
	while (peer->heard != kind) {
		if (peer->heard == CONTROL_REFUSED && peer->stream.line)
			complain("the server at %s cannot take messages of %s and says why; start "
				 "it with --library %s as well.",
				process_text(peer->stream.peer).text,
				library_title(client->options->library),
				library_name(client->options->library));
		if (peer->heard == CONTROL_REFUSED)
			complain("the server at %s has no room for a match list of %u entries; "
				 "set a larger PTL_LIST_MAX there.",
				process_text(peer->stream.peer).text, client->trial.shape.depth);
		turn(client);
	}
}

static void hello(struct client *client, struct peer *peer)
{
	const struct control hello = {
		.kind = CONTROL_HELLO,
		.measure = PROTOCOL,
		.session = peer->stream.session,
		.argument = client->options->window,
		.number = peer->landing.size,
	};

	endpoint_say(client->endpoint, peer->stream.peer, &hello);
	peer->hellos++;
}

/* HELLO is said again every second, because a server that is just starting up may have missed the
 * first. Only a process that has acknowledged all of them and is still silent is no server: if it
 * leaves one unacknowledged it has died, and that HELLO ends in an event that says so. */
static void meet(struct client *client, struct peer *peer)
{
	const ptl_process_id_t id = peer->stream.peer;
	uint64_t deadline = 0;         /* 0: no HELLO has been acknowledged yet */
	unsigned said = client->ticks; /* tick of the last HELLO */
	bool told = false;

	hello(client, peer);
	for (;;) {
		client_event(client);
		if (peer->heard == CONTROL_WELCOME)
			return;
		if (peer->heard == CONTROL_REFUSED)
			refused(client, peer);
		if (peer->heard == CONTROL_BUSY) {
			if (!told)
				fprintf(stderr, "postern-perf: the server is serving another "
						"client; waiting for my turn.\n");
			told = true;
			peer->heard = CONTROL_NONE;
			deadline = 0;
		}
		if (peer->hellos == 0 && deadline == 0)
			deadline = clock_look() + HELLO_TIME;
		if (peer->hellos == 0 && clock_look() > deadline)
			complain("a process is at %s, but no postern-perf --server.",
				process_text(id).text);
		if (client->ticks - said >= TICKS_A_SECOND) {
			hello(client, peer);
			said = client->ticks;
		}
	}
}

static void peer_open(
	struct client *client, unsigned i, const struct client_peer *to, uint64_t largest)
{
	struct peer *peer = &client->peers[i];

	if (!landing_open(&peer->landing, client->endpoint, to->id, largest,
		    i > 0 ? &client->peers[0].landing : NULL))
		complain("there is no memory for messages of %llu bytes; give smaller --sizes.",
			(unsigned long long)largest);
	peer->server = to->server;
	peer->stream = (struct stream){
		.endpoint = client->endpoint,
		.peer = to->id,
		.session = (uint16_t)(client->session + i),
		.random = clock_look() | 1,
	};
	client->count = i + 1;
	meet(client, peer);
}

struct client *client_open(struct endpoint *endpoint, const struct client_peer *peers,
	unsigned count, const struct options *options, uint64_t largest)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		complain("there is no memory for a client; end other programs.");
	client->endpoint = endpoint;
	client->options = options;
	client->cost = clock_cost();
	client->session = (uint16_t)(clock_look() >> 10 ^ (uint64_t)getpid());
	for (unsigned i = 0; i < count; i++)
		peer_open(client, i, &peers[i], largest);
	return client;
}

/* Until it has arrived; pings of servers may fail from now on. */
static void bye(struct client *client, struct peer *peer, bool more)
{
	ptl_event_t event;

	stream_say(&peer->stream, CONTROL_BYE, more ? BYE_FOR_NOW : 0, 0);
	do
		endpoint_next(client->endpoint, &event);
	while (event.ni_fail_type == PTL_NI_OK &&
		!(event.type == PTL_EVENT_SEND_END && event.match_bits >> 56 == CONTROL_BYE));
}

void client_close(struct client *client, bool more)
{
	for (unsigned i = 0; i < client->count; i++)
		bye(client, &client->peers[i], more);
	shape_free(&client->shape);
	for (unsigned i = client->count; i > 0; i--)
		landing_close(&client->peers[i - 1].landing);
	free(client);
}

uint32_t client_window(const struct client *client, const struct trial *trial)
{
	uint64_t window = client->options->window;

	if (measure_is_single(trial->measure))
		return 1;
	if (trial->size * window > WINDOW_BYTES) {
		uint64_t fewer = WINDOW_BYTES / trial->size;

		if (fewer < WINDOW_LEAST)
			fewer = WINDOW_LEAST;
		if (fewer < window)
			window = fewer;
	}
	return (uint32_t)window;
}

/* What is put, or where a get's reply goes: only replies are worth an event, since a message that
 * arrived is answered. */
static void load_open(struct client *client, struct peer *peer)
{
	const ptl_md_t load = {
		.start = peer->landing.memory,
		.length = client->trial.size,
		.threshold = PTL_MD_THRESH_INF,
		.eventq = measure_gets(client->trial.measure) ? client->endpoint->eq : PTL_EQ_NONE,
	};

	complain_unless_ok(PtlMDBind(client->endpoint->ni, load, &peer->stream.load), "PtlMDBind");
}

/* Messages of another library: the server is told where they come from. */
static void line_open(struct client *client, struct peer *peer)
{
	enum library library = client->options->library;
	struct line_address own = {0};
	struct control meet = {
		.kind = CONTROL_MEET, .measure = (uint8_t)library, .session = peer->stream.session};
	struct line_request request = {
		.measure = client->trial.measure,
		.memory = peer->landing.memory,
		.size = client->trial.size,
		.messages = client->window * STREAM_WINDOWS,
		.window = client->window,
		.shape = client->trial.shape,
	};
	char why[WHY_ROOM];

	if (!stream_line_open(&peer->stream, library, &request, &own, why, sizeof(why)))
		complain("%s cannot be measured: %s.", library_title(library), why);
	stream_numbers(&peer->stream, &own);
	meet.argument = own.argument;
	meet.number = own.numbers[0];
	endpoint_say(client->endpoint, peer->stream.peer, &meet);
}

/* What the server's list is to be, if the library has lists. */
static struct match_shape list_shape(const struct client *client)
{
	return library_has_lists(client->options->library) ? client->trial.shape
							   : (struct match_shape){0};
}

static void prepare(struct client *client, struct peer *peer)
{
	struct stream *stream = &peer->stream;
	const struct match_shape shape = list_shape(client);

	stream->measure = (uint8_t)client->trial.measure;
	stream->window = client->window;
	stream->sent = stream->credited = 0;
	stream->arrived = 0;
	stream->shape = shape;
	load_open(client, peer);
	if (client->options->library != LIBRARY_PORTALS3)
		line_open(client, peer);
	stream_say(stream, CONTROL_SHAPE, shape.depth,
		(uint64_t)shape.position << 32 | shape.wildcards);
	stream_say(stream, CONTROL_PREPARE, client->window, client->trial.size);
}

static void stop(struct client *client, struct peer *peer)
{
	stream_say(&peer->stream, CONTROL_STOP, 0, 0);
	wait_heard(client, peer, CONTROL_STOPPED, client_turn);
	stream_line_close(&peer->stream);
	descriptor_close(peer->stream.load);
}

static void line_meet(struct client *client, const struct peer *peer)
{
	if (peer->stream.line)
		while (!peer->stream.module->meet(peer->stream.line, &peer->line))
			client_turn(client);
}

/* The match list of Portals 3.2. */
static void list_make(struct client *client)
{
	const struct trial *trial = &client->trial;

	if (client->options->library == LIBRARY_PORTALS3 &&
		!shape_make(&client->shape, client->endpoint, client->peers[0].stream.peer,
			&client->peers[0].landing, &trial->shape, measure_gets(trial->measure)))
		complain("there is no room for a match list of %u entries; set a larger "
			 "PTL_LIST_MAX.",
			trial->shape.depth);
}

struct result client_measure(struct client *client, const struct trial *trial,
	const struct effort *effort, void (*progress)(void *context, double part), void *context)
{
	struct result result = {.trial = *trial, .window = client_window(client, trial)};

	client->trial = *trial;
	client->effort = *effort;
	client->window = result.window;
	client->used = trial->peers;
	client->credited = client->arrived = 0;
	client->progress = progress;
	client->context = context;
	client->part = 0;
	list_make(client);
	for (unsigned i = 0; i < client->used; i++)
		prepare(client, &client->peers[i]);
	for (unsigned i = 0; i < client->used; i++)
		wait_heard(client, &client->peers[i], CONTROL_READY, client_event);
	for (unsigned i = 0; i < client->used; i++)
		line_meet(client, &client->peers[i]);
	measure_run(client, &result);
	for (unsigned i = 0; i < client->used; i++)
		stop(client, &client->peers[i]);
	client->progress = NULL;
	return result;
}

/* The server is alive, or the program ends with the words for that. */
static _Noreturn void bare_failed(struct client *client, struct peer *peer)
{
	peer->heard = CONTROL_NONE;
	meet(client, peer);
	complain("bare frames do not reach the server at %s, or it fell silent for seconds; they "
		 "are Ethernet frames of type 0x88b6, which no router forwards. Measure without "
		 "--raw.",
		process_text(peer->stream.peer).text);
}

struct result client_bare(struct client *client, const struct trial *trial,
	const struct effort *effort, void (*progress)(void *context, double part), void *context)
{
	struct peer *peer = &client->peers[0];
	unsigned count = peer->server ? 2 : 1;
	struct bare *other = NULL;
	struct lend_end ends[LEND_MAX];
	struct result result;

	ends[0] = (struct lend_end){
		.ni = client->endpoint->ni,
		.bare = &client->bare,
		.options =
			{
				.memory = peer->landing.memory,
				.memory_size = peer->landing.size,
				.client = true,
				.session = peer->stream.session,
				.measure = trial->measure,
				.size = trial->size,
				.window = client_window(client, trial),
				.effort = *effort,
			},
	};
	if (peer->server) {
		server_bare(peer->server, &ends[1]);
		peer->address = lend_address(ends[1].ni);
		other = ends[1].bare = malloc(sizeof(*other));
		if (!other)
			complain("there is no memory for bare frames; leave --raw out.");
	} else {
		stream_say(&peer->stream, CONTROL_BARE, 0, trial->size);
		wait_heard(client, peer, CONTROL_BARED, client_event);
	}
	ends[0].options.to = peer->address;
	if (!lend_run(ends, count, progress, context))
		bare_failed(client, peer);
	free(other);
	result = client->bare.result;
	result.trial = *trial;
	return result;
}
