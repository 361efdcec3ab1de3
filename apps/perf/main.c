/* main.c - postern-perf: measures Portals messages between processes, or interfaces of one. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "agenda.h"
#include "client.h"
#include "complain.h"
#include "endpoint.h"
#include "instrument.h"
#include "leave.h"
#include "options.h"
#include "report.h"
#include "server.h"
#include "stream.h"
#include "survey.h"
#include "tracing.h"

#define SETTING_BYTES 4096
#define LOCAL_WIRE    "loop:perf"

/* One life of a client, and of the servers in its thread. */
struct life {
	const struct options *options;
	const struct agenda *agenda;
	struct report *report;
	unsigned servers;                         /* in this thread */
	struct endpoint endpoints[PEERS_MAX + 1]; /* theirs, then the client's */
	struct client_peer peers[PEERS_MAX];
	struct counters counters[PEERS_MAX + 1];
	struct client *client;
	struct survey messages;
	struct survey bare;
};

static void trial_run(void *context, const struct trial *trial)
{
	struct life *life = context;
	struct survey *bare = life->options->raw ? &life->bare : NULL;

	report_expect(life->report, trial);
	survey_run(life->client, trial, &life->options->effort, &life->messages, bare,
		report_progress, life->report);
	report_result(life->report, &life->messages.result, bare ? &bare->result : NULL);
}

static void serve_aside(void *context)
{
	struct life *life = context;

	for (unsigned i = 0; i < life->servers; i++)
		server_turn(life->peers[i].server);
}

/* Servers and client in this thread: whenever one finds nothing to do, the others have their turn. */
static void open_local(struct life *life)
{
	const struct options *options = life->options;
	struct endpoint *own = &life->endpoints[life->agenda->peers];
	uint32_t events = STREAM_EVENTS(options->window);

	life->servers = life->agenda->peers;
	for (unsigned i = 0; i < life->servers; i++) {
		endpoint_open(&life->endpoints[i], i, i + 1, events, true);
		life->peers[i].id = life->endpoints[i].id;
		life->peers[i].server = server_open(&life->endpoints[i], options->window, true);
	}
	endpoint_open(own, life->servers, life->servers + 1, events * life->servers, true);
	own->aside = serve_aside;
	own->aside_context = life;
}

static void open_remote(struct life *life)
{
	const struct options *options = life->options;
	struct endpoint *own = &life->endpoints[0];
	uint32_t events = STREAM_EVENTS(options->window) * life->agenda->peers;

	life->servers = 0;
	endpoint_open(own, PTL_IFACE_DEFAULT, options->pid, events, options->poll);
	for (unsigned i = 0; i < life->agenda->peers; i++) {
		life->peers[i] = (struct client_peer){.id = options->servers[i]};
		if (own->id.nid == options->servers[i].nid &&
			own->id.pid == options->servers[i].pid)
			complain_usage("--peer %s is this process itself; give one of the two "
				       "another PTL_NID.",
				process_text(own->id).text);
	}
}

static void print_counters(struct life *life)
{
	for (unsigned i = 0; i <= life->servers; i++) {
		unsigned own = (life->servers + i) % (life->servers + 1); /* the client's first */

		report_counters(
			life->report, &life->counters[own], life->endpoints[own].id, i == 0);
	}
	report_counters_end(life->report);
}

/* last: no other life follows. */
static void live(struct life *life, const char *faults, bool last)
{
	const struct options *options = life->options;
	struct endpoint *own;
	struct machine machine;

	if (options->mode == MODE_LOCAL)
		open_local(life);
	else
		open_remote(life);
	own = &life->endpoints[life->servers];
	life->client =
		client_open(own, life->peers, life->agenda->peers, options, life->agenda->largest);
	for (unsigned i = 0; i <= life->servers; i++)
		counters_begin(&life->counters[i], life->endpoints[i].ni);
	machine_describe(&machine, options, own->ni, life->servers);
	report_begin(life->report, &machine, own->id, life->peers[0].id);
	agenda_run(life->agenda, faults, trial_run, life);
	if (last) {
		report_results_end(life->report);
		if (options->stats)
			print_counters(life);
		report_end(life->report);
	}
	client_close(life->client, !last);
	for (unsigned i = life->servers; i > 0; i--)
		server_close(life->peers[i - 1].server);
	for (unsigned i = life->servers + 1; i > 0; i--)
		endpoint_close(&life->endpoints[i - 1]);
}

/* The same item for so many interfaces: "0;0;0". */
static void setting_repeat(
	const char *name, const char *item, unsigned count, const char *last, bool overwrite)
{
	char text[SETTING_BYTES] = "";
	size_t used = 0;

	for (unsigned i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s;", item);
	if (used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "%s", last);
	setenv(name, text, overwrite);
}

/* Opens the library with so many interfaces. */
static void library_open(unsigned wanted)
{
	int interfaces;

	if (PtlInit(&interfaces) != PTL_OK)
		complain("Postern cannot start; see above.");
	if ((unsigned)interfaces >= wanted)
		return;
	if (wanted == 2)
		complain_usage("Both ends in this process need two interfaces; unset "
			       "PTL_IFACE_NAME, or set it to \"" LOCAL_WIRE ";" LOCAL_WIRE
			       "\", or use --server and --peer.");
	complain_usage(
		"%u peers in this process need %u interfaces, but PTL_IFACE_NAME has %d; unset "
		"it.",
		wanted - 1, wanted, interfaces);
}

/* The faults are the client's, whose interface is the last. */
static void faults_set(const char *faults, unsigned servers)
{
	setting_repeat("PTL_FAULT", "", servers, strcmp(faults, "none") == 0 ? "" : faults, true);
}

static void run_client(const struct options *options)
{
	static struct life life;
	struct agenda agenda = agenda_make(options);
	unsigned servers = options->mode == MODE_LOCAL ? agenda.peers : 0;
	unsigned lives = options->fault_count > 0 ? options->fault_count : 1;
	struct report report;

	if (options->mode == MODE_LOCAL)
		setting_repeat("PTL_IFACE_NAME", LOCAL_WIRE, servers, LOCAL_WIRE, false);
	report_open(&report, options, agenda.steps * lives);
	life.options = options;
	life.agenda = &agenda;
	life.report = &report;
	for (unsigned i = 0; i < lives; i++) {
		const char *faults = options->fault_count > 0 ? options->faults[i] : NULL;

		if (faults != NULL)
			faults_set(faults, servers);
		library_open(servers + 1);
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

	library_open(1);
	endpoint_open(&endpoint, PTL_IFACE_DEFAULT, options->pid, STREAM_EVENTS(options->window),
		options->poll);
	counters_begin(&counters, endpoint.ni);
	printf("Serving at %s; measure with: postern-perf --peer %s\n",
		process_text(endpoint.id).text, process_text(endpoint.id).text);
	fflush(stdout);
	server = server_open(&endpoint, options->window, false);
	well = server_run(server, options->once);
	server_close(server);
	if (options->stats)
		report_counters(&report, &counters, endpoint.id, true);
	endpoint_close(&endpoint);
	PtlFini();
	return well;
}

/* The application's thread, which is this one, onto the first CPU; poll threads onto those that follow. */
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
	cores_take(&options);
	tracing_begin(options.trace);
	if (options.mode == MODE_SERVER)
		well = run_server(&options);
	else
		run_client(&options);
	tracing_end();
	leave_begin();
	leave(well ? 0 : EXIT_RUN);
}
