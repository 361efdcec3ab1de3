/* main.c - postern-perf: measures Portals messages between two processes, or two interfaces of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "client.h"
#include "complain.h"
#include "endpoint.h"
#include "options.h"
#include "report.h"
#include "server.h"
#include "stream.h"
#include "survey.h"

#define LOCAL_INTERFACES "loop:perf;loop:perf"
#define LOCAL_SERVER_PID 1
#define LOCAL_CLIENT_PID 2
#define RATE_SIZE        8

static unsigned sizes_of(const struct options *options, enum measure measure, uint64_t *sizes)
{
	static const uint64_t last = UINT64_C(4) << 20;
	unsigned count = 0;

	if (options->size_count > 0) {
		memcpy(sizes, options->sizes, options->size_count * sizeof(sizes[0]));
		return options->size_count;
	}
	if (measure == MEASURE_RATE) {
		sizes[0] = RATE_SIZE;
		return 1;
	}
	for (uint64_t size = 1; size <= last; size <<= 1)
		sizes[count++] = size;
	return count;
}

/* How many results there will be, and the largest size of them. */
static unsigned plan(const struct options *options, uint64_t *largest)
{
	uint64_t sizes[SIZES_MAX];
	unsigned steps = 0;

	*largest = 0;
	for (unsigned m = 0; m < MEASURE_COUNT; m++) {
		unsigned count = options->measures[m] ? sizes_of(options, m, sizes) : 0;

		for (unsigned i = 0; i < count; i++)
			if (sizes[i] > *largest)
				*largest = sizes[i];
		steps += count;
	}
	return steps;
}

static void measure_all(struct client *client, const struct options *options, struct report *report)
{
	static struct survey messages;
	static struct survey bare;
	uint64_t sizes[SIZES_MAX];

	for (unsigned m = 0; m < MEASURE_COUNT; m++) {
		unsigned count = options->measures[m] ? sizes_of(options, m, sizes) : 0;

		for (unsigned i = 0; i < count; i++) {
			report_expect(report, m, sizes[i]);
			survey_run(client, m, sizes[i], &options->effort, &messages,
				options->raw ? &bare : NULL, report_progress, report);
			report_result(report, &messages.result, options->raw ? &bare.result : NULL);
		}
	}
}

/* server, server_endpoint: the other end where it is in this thread, or NULL. */
static void run_client(const struct options *options, struct endpoint *endpoint,
	ptl_process_id_t peer, struct server *server, const struct endpoint *server_endpoint)
{
	static struct counters counters[2];
	struct machine machine;
	struct report report;
	struct client *client;
	uint64_t largest;
	unsigned steps = plan(options, &largest);

	client = client_open(endpoint, peer, server, options, largest);
	counters_begin(&counters[0], endpoint->ni);
	if (server != NULL)
		counters_begin(&counters[1], server_endpoint->ni);
	machine_describe(&machine);
	report_begin(&report, options->json, options->raw, steps, &machine, endpoint->id, peer);
	measure_all(client, options, &report);
	if (options->stats) {
		report_counters(&report, &counters[0], endpoint->id, true);
		if (server != NULL)
			report_counters(&report, &counters[1], server_endpoint->id, false);
		report_counters_end(&report);
	} else if (options->json) {
		printf("\n  ]");
	}
	report_end(&report);
	client_close(client);
}

static void serve_aside(void *server)
{
	server_turn(server);
}

/* Both ends in this thread: whenever one finds nothing to do, the other has its turn. */
static void run_local(const struct options *options)
{
	static struct endpoint endpoints[2];
	uint32_t events = STREAM_EVENTS(options->window);
	struct server *server;

	endpoint_open(&endpoints[0], 0, LOCAL_SERVER_PID, events, true);
	endpoint_open(&endpoints[1], 1, LOCAL_CLIENT_PID, events, true);
	server = server_open(&endpoints[0], options->window, true);
	endpoints[1].aside = serve_aside;
	endpoints[1].aside_context = server;
	run_client(options, &endpoints[1], endpoints[0].id, server, &endpoints[0]);
	server_close(server);
	endpoint_close(&endpoints[1]);
	endpoint_close(&endpoints[0]);
}

static void run_remote(const struct options *options)
{
	static struct endpoint endpoint;

	endpoint_open(&endpoint, PTL_IFACE_DEFAULT, options->pid, STREAM_EVENTS(options->window),
		options->poll);
	if (endpoint.id.nid == options->peer.nid && endpoint.id.pid == options->peer.pid)
		complain_usage("--peer %u:%u is this process itself; give one of the two another "
			       "PTL_NID.",
			endpoint.id.nid, endpoint.id.pid);
	run_client(options, &endpoint, options->peer, NULL, NULL);
	endpoint_close(&endpoint);
}

static bool run_server(const struct options *options)
{
	static struct endpoint endpoint;
	static struct counters counters;
	struct report report = {0};
	struct server *server;
	bool well;

	endpoint_open(&endpoint, PTL_IFACE_DEFAULT, options->pid, STREAM_EVENTS(options->window),
		options->poll);
	counters_begin(&counters, endpoint.ni);
	printf("Serving at %u:%u; measure with: postern-perf --peer %u:%u\n", endpoint.id.nid,
		endpoint.id.pid, endpoint.id.nid, endpoint.id.pid);
	fflush(stdout);
	server = server_open(&endpoint, options->window, false);
	well = server_run(server, options->once);
	server_close(server);
	if (options->stats)
		report_counters(&report, &counters, endpoint.id, true);
	endpoint_close(&endpoint);
	return well;
}

int main(int count, char **words)
{
	struct options options;
	bool well = true;
	int interfaces;

	options_parse(&options, count, words);
	if (options.mode == MODE_LOCAL)
		setenv("PTL_IFACE_NAME", LOCAL_INTERFACES, 0);
	if (PtlInit(&interfaces) != PTL_OK)
		complain("Postern cannot start; see above.");
	if (options.mode == MODE_LOCAL && interfaces < 2)
		complain_usage("Both ends in this process need two interfaces; unset "
			       "PTL_IFACE_NAME, or set it to \"%s\", or use --server and --peer.",
			LOCAL_INTERFACES);
	if (options.mode == MODE_LOCAL)
		run_local(&options);
	else if (options.mode == MODE_CLIENT)
		run_remote(&options);
	else
		well = run_server(&options);
	PtlFini();
	return well ? 0 : EXIT_RUN;
}
