/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-perf: measures Portals messages between processes, or interfaces of one. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "agenda.h"
#include "card.h"
#include "client.h"
#include "complain.h"
#include "endpoint.h"
#include "instrument.h"
#include "leave.h"
#include "options.h"
#include "ranks.h"
#include "report.h"
#include "server.h"
#include "stream.h"
#include "survey.h"
#include "tracing.h"

#define SETTING_BYTES 4096
#define LOCAL_WIRE    "loop:perf"

#define ENDS_MAX (PEERS_MAX + 1)

/* A client, and the servers in its thread. */
struct lane {
	struct life *life;
	struct endpoint *own;
	struct client_peer *peers;
	struct client *client;
	const struct trial *trial;
	pthread_t thread;
	struct survey messages;
	struct survey bare;
};

/* One life of clients and servers. Lane i has the endpoints of its servers in this process, if
 * there are any, and then its own. */
struct life {
	const struct options *options;
	const struct agenda *agenda;
	struct report *report;
	unsigned lane_count;
	unsigned servers; /* of each lane in this process */
	unsigned ends;    /* of all lanes in this process */
	struct lane lanes[PAIRS_MAX];
	struct endpoint endpoints[ENDS_MAX];
	struct client_peer peers[ENDS_MAX];
	struct counters counters[ENDS_MAX];
	pthread_barrier_t start; /* of a trial */
};

static void lane_measure(struct lane *lane)
{
	struct life *life = lane->life;
	const struct options *options = life->options;

	survey_run(lane->client, lane->trial, &options->effort, options->runs, &lane->messages,
		options->raw ? &lane->bare : NULL, lane == life->lanes ? report_progress : NULL,
		life->report);
}

static void *lane_run(void *argument)
{
	struct lane *lane = argument;

	pthread_barrier_wait(&lane->life->start);
	lane_measure(lane);
	return NULL;
}

/* Each pair measures for the same time, and all begin together. */
static void trial_run(void *context, const struct trial *trial)
{
	struct life *life = context;
	struct lane *first = &life->lanes[0];

	report_expect(life->report, trial);
	if (pthread_barrier_init(&life->start, NULL, trial->pairs) != 0)
		complain("there is no memory for %u pairs: use fewer --pairs.", trial->pairs);
	for (unsigned i = 0; i < trial->pairs; i++) {
		life->lanes[i].trial = trial;
		if (i > 0 && pthread_create(
				     &life->lanes[i].thread, NULL, lane_run, &life->lanes[i]) != 0)
			complain("no thread can be started for pair %u of %u: use fewer --pairs, "
				 "or raise the limit of threads by ulimit -u.",
				i + 1, trial->pairs);
	}
	lane_run(first);
	for (unsigned i = 1; i < trial->pairs; i++) {
		pthread_join(life->lanes[i].thread, NULL);
		survey_join(&first->messages, &life->lanes[i].messages);
	}
	pthread_barrier_destroy(&life->start);
	report_result(life->report, &first->messages.result,
		life->options->raw ? &first->bare.result : NULL);
}

static void serve_aside(void *context)
{
	struct lane *lane = context;

	for (unsigned i = 0; i < lane->life->servers; i++)
		server_turn(lane->peers[i].server);
}

/* How many interfaces that many ends need. A line has one of its own, on the same device. */
static unsigned interfaces_of(const struct options *options, unsigned ends)
{
	return options->library == LIBRARY_PORTALS3 ? ends : 2 * ends;
}

/* The interface of the control session of end i of so many: those of lines come first, because
 * Portals 4 uses the first LINES_MAX. */
static ptl_interface_t interface_number(const struct options *options, unsigned ends, unsigned i)
{
	return PTL_IFACE_DEFAULT + interfaces_of(options, ends) - ends + i;
}

/* Servers and client in one thread: whenever one finds nothing to do, the others have their
 * turn. */
static void open_local(struct life *life, struct lane *lane, unsigned first)
{
	const struct options *options = life->options;
	uint32_t events = STREAM_EVENTS(options->window);

	lane->own = &life->endpoints[first + life->servers];
	lane->peers = &life->peers[first];
	for (unsigned i = 0; i < life->servers; i++) {
		struct endpoint *endpoint = &life->endpoints[first + i];

		endpoint_open(endpoint, interface_number(options, life->ends, first + i),
			first + i + 1, events, true);
		endpoint->line_interface = first + i;
		lane->peers[i].id = endpoint->id;
		lane->peers[i].server =
			server_open(endpoint, options->window, options->library, true);
	}
	first += life->servers;
	endpoint_open(lane->own, interface_number(options, life->ends, first), first + 1,
		events * life->servers, true);
	lane->own->line_interface = first;
	lane->own->aside = serve_aside;
	lane->own->aside_context = lane;
}

static void open_remote(struct life *life, struct lane *lane, unsigned first)
{
	const struct options *options = life->options;
	uint32_t events = STREAM_EVENTS(options->window) * life->agenda->peers;

	lane->own = &life->endpoints[first];
	lane->peers = &life->peers[first];
	endpoint_open(lane->own, interface_number(options, life->ends, first), options->pid, events,
		options->poll);
	lane->own->line_interface = first;
	for (unsigned i = 0; i < life->agenda->peers; i++) {
		lane->peers[i] = (struct client_peer){.id = options->servers[first + i]};
		if (lane->own->id.nid == lane->peers[i].id.nid &&
			lane->own->id.pid == lane->peers[i].id.pid)
			complain_usage("--peer %s is this process itself; give one of the two "
				       "another PTL_NID.",
				process_text(lane->own->id).text);
	}
}

static void print_counters(struct life *life)
{
	unsigned ends = life->servers + 1;

	for (unsigned i = 0; i < life->lane_count * ends; i++) {
		unsigned end = i / ends * ends + (life->servers + i % ends) %
							 ends; /* a client's before its servers' */

		report_counters(
			life->report, &life->counters[end], life->endpoints[end].id, i == 0);
	}
	report_counters_end(life->report);
}

static void lane_open(struct life *life, unsigned i)
{
	struct lane *lane = &life->lanes[i];

	lane->life = life;
	if (life->servers > 0)
		open_local(life, lane, i * (life->servers + 1));
	else
		open_remote(life, lane, i);
	lane->client = client_open(
		lane->own, lane->peers, life->agenda->peers, life->options, life->agenda->largest);
}

/* last: no other life follows. */
static void lane_close(struct lane *lane, bool last)
{
	unsigned servers = lane->life->servers;

	client_close(lane->client, !last);
	for (unsigned i = servers; i > 0; i--)
		server_close(lane->peers[i - 1].server);
	for (unsigned i = 0; i <= servers; i++)
		endpoint_close(lane->own - i);
}

static void live(struct life *life, const char *faults, bool last)
{
	const struct options *options = life->options;
	struct machine machine;

	life->lane_count = life->agenda->pairs;
	life->servers = options->mode == MODE_LOCAL ? life->agenda->peers : 0;
	life->ends = life->lane_count * (life->servers + 1);
	for (unsigned i = 0; i < life->lane_count; i++)
		lane_open(life, i);
	for (unsigned i = 0; i < life->ends; i++)
		counters_begin(&life->counters[i], life->endpoints[i].ni);
	machine_describe(&machine, options, life->lanes[0].own->ni, life->servers);
	report_begin(life->report, &machine, life->lanes[0].own->id, life->lanes[0].peers[0].id);
	agenda_run(life->agenda, faults, trial_run, life);
	if (last) {
		report_results_end(life->report);
		if (options->stats)
			print_counters(life);
		report_end(life->report);
	}
	for (unsigned i = life->lane_count; i > 0; i--)
		lane_close(&life->lanes[i - 1], last);
}

/* Opens the library with so many interfaces. */
static void library_open(const struct options *options, unsigned wanted)
{
	int interfaces;

	if (PtlInit(&interfaces) != PTL_OK)
		complain("Postern cannot start; see above.");
	if ((unsigned)interfaces >= wanted)
		return;
	if (options->mode != MODE_LOCAL)
		complain_usage("%u pairs need %u interfaces, but PTL_IFACE_NAME has %d; name more, "
			       "or use fewer --pairs.",
			wanted, wanted, interfaces);
	if (getenv("PMI_SIZE"))
		complain_usage("Both ends are in this process; start postern-perf without "
			       "postern-run. Only --library gasnet measures the ranks of a job.");
	if (wanted == 2)
		complain_usage("Both ends in this process need two interfaces; unset "
			       "PTL_IFACE_NAME, or set it to \"" LOCAL_WIRE ";" LOCAL_WIRE
			       "\", or use --server and --peer.");
	complain_usage("Peers and pairs in this process need %u interfaces, but PTL_IFACE_NAME has "
		       "%d; unset it.",
		wanted, interfaces);
}

/* The faults are the clients', whose interface is the last of each lane. */
static void faults_set(const char *faults, unsigned servers, unsigned lanes, unsigned ends)
{
	char text[SETTING_BYTES] = "";
	size_t used = 0;

	if (strcmp(faults, "none") == 0)
		faults = "";
	for (unsigned i = 0; i < ends && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? ";" : "",
			i % (servers + 1) == servers ? faults : "");
	if (used >= sizeof(text))
		complain_usage("--faults is too long for %u pairs; give fewer faults or fewer "
			       "--pairs.",
			lanes);
	setenv("PTL_FAULT", text, 1);
}

/* A wire for each lane. */
static void wires_set(unsigned servers, unsigned lanes, unsigned ends)
{
	char wire[sizeof(LOCAL_WIRE) + 12];
	char text[SETTING_BYTES] = "";
	size_t used = 0;

	for (unsigned i = 0; i < ends && used < sizeof(text); i++) {
		snprintf(wire, sizeof(wire), lanes == 1 ? LOCAL_WIRE : LOCAL_WIRE "%u",
			i / (servers + 1) % lanes);
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", i > 0 ? ";" : "", wire);
	}
	if (!parse_setting("PTL_IFACE_NAME"))
		setenv("PTL_IFACE_NAME", text, 1);
}

/* The devices of the control sessions, one of each end, are those of lines, too. */
static void line_interfaces_set(const struct options *options, unsigned ends)
{
	const char *given = parse_setting("PTL_IFACE_NAME");
	unsigned devices = 1;
	char text[SETTING_BYTES];

	if (options->library == LIBRARY_PORTALS3 || ranks_joined())
		return;
	if (!given)
		given = "node";
	for (const char *rest = given; (rest = strchr(rest, ';')); rest++)
		devices++;
	if (devices != ends)
		complain_usage("--library %s needs an interface for each pair, here %u, but "
			       "PTL_IFACE_NAME is \"%s\".",
			library_name(options->library), ends, given);
	if (snprintf(text, sizeof(text), "%s;%s", given, given) >= (int)sizeof(text))
		complain_usage("PTL_IFACE_NAME is too long.");
	setenv("PTL_IFACE_NAME", text, 1);
}

static void run_client(const struct options *options)
{
	static struct life life;
	struct agenda agenda = agenda_make(options);
	unsigned servers = options->mode == MODE_LOCAL ? agenda.peers : 0;
	unsigned lives = options->fault_count > 0 ? options->fault_count : 1;
	unsigned ends = interfaces_of(options, (servers + 1) * agenda.pairs);
	struct report report;

	if (options->mode == MODE_LOCAL)
		wires_set(servers, agenda.pairs, ends);
	else
		line_interfaces_set(options, agenda.pairs);
	report_open(&report, options, agenda.steps * lives);
	life.options = options;
	life.agenda = &agenda;
	life.report = &report;
	for (unsigned i = 0; i < lives; i++) {
		const char *faults = options->fault_count > 0 ? options->faults[i] : NULL;

		if (faults)
			faults_set(faults, servers, agenda.pairs, ends);
		library_open(options, ends);
		live(&life, faults, i + 1 == lives);
		PtlFini();
	}
}

static bool run_server(const struct options *options)
{
	static struct endpoint endpoint;
	static struct counters counters;
	struct report report = {0};
	struct server *server;
	bool well;

	line_interfaces_set(options, 1);
	library_open(options, interfaces_of(options, 1));
	endpoint_open(&endpoint, interface_number(options, 1, 0), options->pid,
		STREAM_EVENTS(options->window), options->poll);
	counters_begin(&counters, endpoint.ni);
	if (ranks_joined())
		ranks_tell(endpoint.id);
	else
		printf("Serving at %s; measure with: postern-perf --peer %s\n",
			process_text(endpoint.id).text, process_text(endpoint.id).text);
	(void)output_flush();
	server = server_open(&endpoint, options->window, options->library, ranks_joined());
	well = server_run(server, options->once);
	server_close(server);
	if (options->stats)
		report_counters(&report, &counters, endpoint.id, true);
	endpoint_close(&endpoint);
	PtlFini();
	return well;
}

/* Rank 1 of a job serves, and is as silent as a server in the client's own process; rank 0 is the
 * client. */
static void job_enter(struct options *options)
{
	const struct agenda agenda = agenda_make(options);

	line_interfaces_set(options, 1);
	if (ranks_join(options->library, agenda.largest) == 0) {
		options->mode = MODE_CLIENT;
		options->servers[options->server_count++] = ranks_hear();
		return;
	}
	options->mode = MODE_SERVER;
	options->once = true;
	options->stats = false;
	options->trace = NULL;
}

/* The application's thread, which is this one, onto the first CPU; poll threads onto those that
 * follow. */
static void cores_take(const struct options *options)
{
	char text[SETTING_BYTES] = "";
	size_t used = 0;
	cpu_set_t set;

	if (options->core_count == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(options->cores[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		complain("the thread cannot be kept on CPU %u.", options->cores[0]);
	for (unsigned i = 1; i < options->core_count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i > 1 ? ";" : "",
			options->cores[i]);
	if (used > 0)
		setenv("PTL_POLL_CORE", text, 1);
}

int main(int count, char **words)
{
	struct options options;
	bool well = true;

	instrument_take();
	leave_on_signals();
	output_watch("postern-perf", EXIT_RUN);
	options_parse(&options, count, words);
	if (options.mode == MODE_CARD)
		return card_print(&options);
	cores_take(&options);
	if (options.library == LIBRARY_GASNET)
		job_enter(&options);
	tracing_begin(options.trace);
	if (options.mode == MODE_SERVER)
		well = run_server(&options);
	else
		run_client(&options);
	tracing_end();
	ranks_part();
	leave_begin();
	leave(well ? 0 : EXIT_RUN);
}
