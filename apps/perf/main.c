/* main.c - postern-perf: measures Portals messages between two processes, or two interfaces of one. */
#include <pthread.h>
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
	uint64_t sizes[SIZES_MAX];

	for (unsigned m = 0; m < MEASURE_COUNT; m++) {
		unsigned count = options->measures[m] ? sizes_of(options, m, sizes) : 0;

		for (unsigned i = 0; i < count; i++) {
			struct result result;

			report_expect(report, m, sizes[i]);
			result = client_measure(client, m, sizes[i], report_progress, report);
			report_result(report, &result);
		}
	}
}

/* server: the other end where it is in this process, or NULL. */
static void run_client(const struct options *options, struct endpoint *endpoint,
	ptl_process_id_t peer, const struct endpoint *server)
{
	static struct counters counters[2];
	struct machine machine;
	struct report report;
	struct client *client;
	uint64_t largest;
	unsigned steps = plan(options, &largest);

	client = client_open(endpoint, peer, options, largest);
	counters_begin(&counters[0], endpoint->ni);
	if (server != NULL)
		counters_begin(&counters[1], server->ni);
	machine_describe(&machine);
	report_begin(&report, options->json, steps, &machine, endpoint->id, peer);
	measure_all(client, options, &report);
	if (options->stats) {
		report_counters(&report, &counters[0], endpoint->id, true);
		if (server != NULL)
			report_counters(&report, &counters[1], server->id, false);
		report_counters_end(&report);
	} else if (options->json) {
		printf("\n  ]");
	}
	report_end(&report);
	client_close(client);
}

struct local_server {
	struct endpoint endpoint;
	uint32_t window;
};

static void *local_server_run(void *argument)
{
	struct local_server *server = argument;

	server_run(&server->endpoint, server->window, true, true);
	return NULL;
}

static void run_local(const struct options *options)
{
	static struct local_server server;
	static struct endpoint endpoint;
	pthread_t thread;
	int code;

	server.window = options->window;
	endpoint_open(&server.endpoint, 0, LOCAL_SERVER_PID, STREAM_EVENTS(options->window),
		options->poll);
	endpoint_open(
		&endpoint, 1, LOCAL_CLIENT_PID, STREAM_EVENTS(options->window), options->poll);
	code = pthread_create(&thread, NULL, local_server_run, &server);
	if (code != 0)
		complain("no thread can be started: %s.", strerror(code));
	run_client(options, &endpoint, server.endpoint.id, &server.endpoint);
	pthread_join(thread, NULL);
	endpoint_close(&endpoint);
	endpoint_close(&server.endpoint);
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
	run_client(options, &endpoint, options->peer, NULL);
	endpoint_close(&endpoint);
}

static bool run_server(const struct options *options)
{
	static struct endpoint endpoint;
	static struct counters counters;
	struct report report = {0};
	bool well;

	endpoint_open(&endpoint, PTL_IFACE_DEFAULT, options->pid, STREAM_EVENTS(options->window),
		options->poll);
	counters_begin(&counters, endpoint.ni);
	printf("Serving at %u:%u; measure with: postern-perf --peer %u:%u\n", endpoint.id.nid,
		endpoint.id.pid, endpoint.id.nid, endpoint.id.pid);
	fflush(stdout);
	well = server_run(&endpoint, options->window, options->once, false);
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
