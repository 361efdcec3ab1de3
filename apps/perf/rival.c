/* SPDX-License-Identifier: BSD-3-Clause */
/* rival.c - see rival.h. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "rival.h"

#define WARM_UP_PART 10   /* a tenth of the time goes before it and is not counted */
#define IDLE_LOOKS   4096 /* looks that found nothing before the other end is looked after */
#define SILENCE      5.0  /* s without a message after which one must have been lost */

static const struct rival *rival;

void rival_complain(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", rival->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static double now(void)
{
	return (double)now_ns() / 1e9;
}

/* --- the control connection --- */

static void control_write(int control, const void *from, size_t bytes)
{
	if (send(control, from, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		rival_complain("the other end is gone.");
}

static void control_read(int control, void *to, size_t bytes)
{
	if (recv(control, to, bytes, MSG_WAITALL) != (ssize_t)bytes)
		rival_complain("the other end is gone.");
}

void rival_swap(const struct rival_end *end, const void *mine, void *theirs, uint32_t bytes)
{
	control_write(end->control, mine, bytes);
	control_read(end->control, theirs, bytes);
}

static bool control_closed(int control)
{
	char byte;

	return recv(control, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static struct sockaddr_in address_of(const char *address, const char *port)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	int number = atoi(port);

	if (inet_pton(AF_INET, address, &name.sin_addr) != 1 || number < 0 || number > 65535)
		rival_complain(
			"%s port %s: give an IPv4 address and a port up to 65535.", address, port);
	name.sin_port = htons((uint16_t)number);
	return name;
}

/* --- the exchanges --- */

/* Waits for messages; 0 when the client is gone, which ends a server. */
static uint32_t messages_await(const struct rival_end *end, void *line)
{
	bool waits = strncmp(end->request->mode, "block", 5) == 0;
	double since = 0;

	for (unsigned looks = 1;; looks++) {
		uint32_t count = rival->receive(line);

		if (count > 0)
			return count;
		if (!waits && looks % IDLE_LOOKS != 0)
			continue;
		if (control_closed(end->control)) {
			if (end->server)
				return 0;
			rival_complain("the server is gone.");
		}
		if (since == 0)
			since = now();
		else if (!end->server && now() - since > SILENCE)
			rival_complain(
				"nothing came for %.0f seconds: a message was lost.", SILENCE);
	}
}

static void latency_serve(const struct rival_end *end, void *line)
{
	while (messages_await(end, line) > 0)
		rival->send(line, false);
}

static void stream_serve(const struct rival_end *end, void *line)
{
	uint32_t window = end->request->window;
	uint64_t received = 0;
	uint64_t credited = 0;
	uint32_t count;

	while ((count = messages_await(end, line)) > 0)
		for (received += count; received - credited >= window; credited += window)
			rival->send(line, false);
}

static void latency_measure(const struct rival_end *end, void *line)
{
	static struct histogram times;
	double warm = now() + end->request->seconds / WARM_UP_PART;
	double stop = warm + end->request->seconds;
	bool counted = false;
	uint64_t after = now_ns();

	histogram_clear(&times);
	while ((double)after / 1e9 < stop || times.count == 0) {
		uint64_t before = after;

		rival->send(line, false);
		messages_await(end, line);
		after = now_ns();
		if (counted)
			histogram_add(&times, (after - before) / 2);
		else
			counted = (double)after / 1e9 >= warm;
	}
	printf("{\"p50_ns\": %llu, \"p99_ns\": %llu, \"messages\": %llu}\n",
		(unsigned long long)histogram_percentile(&times, 50),
		(unsigned long long)histogram_percentile(&times, 99),
		(unsigned long long)times.count);
}

static void stream_measure(const struct rival_end *end, void *line)
{
	uint32_t window = end->request->window;
	double warm = now() + end->request->seconds / WARM_UP_PART;
	double begun = 0;
	double time;
	uint64_t sent = 0;
	uint64_t credited = 0;
	uint64_t from = 0;

	do {
		for (; sent - credited < STREAM_WINDOWS; sent++)
			for (uint32_t i = 0; i < window; i++)
				rival->send(line, i + 1 < window);
		credited += messages_await(end, line);
		time = now();
		if (begun == 0 && time >= warm) {
			begun = time;
			from = credited;
		}
	} while (begun == 0 || time < begun + end->request->seconds);

	double rate = (double)(credited - from) * window / (time - begun);

	printf("{\"messages_per_second\": %.0f, \"bytes_per_second\": %.0f}\n", rate,
		rate * end->request->size);
}

/* --- the two sides --- */

static void line_close(void *line)
{
	if (rival->close != NULL)
		rival->close(line);
}

static void serve(const char *address, int control)
{
	struct request request;
	struct rival_end end = {
		.request = &request, .address = address, .control = control, .server = true};
	void *line;

	control_read(control, &request, sizeof(request));
	end.in = request.size;
	end.out = request.stream ? CREDIT_BYTES : request.size;
	line = rival->open(&end);
	if (request.stream)
		stream_serve(&end, line);
	else
		latency_serve(&end, line);
	line_close(line);
}

static int server(const char *address, const char *port)
{
	struct sockaddr_in name = address_of(address, port);
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&name, length) != 0 || listen(listener, 8) != 0 ||
		getsockname(listener, (struct sockaddr *)&name, &length) != 0)
		rival_complain("cannot listen at %s port %s: %m.", address, port);
	printf("Serving at port %u\n", ntohs(name.sin_port));
	fflush(stdout);
	for (;;) {
		int control = accept(listener, NULL, NULL);
		pid_t child = control < 0 ? -1 : fork();

		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			serve(address, control);
			_exit(0);
		}
		if (child < 0)
			rival_complain("cannot serve: %m.");
		close(control);
		waitpid(child, NULL, 0);
	}
}

/* A script that runs both may kill the server once this end is gone, so this end waits until the
 * server has closed. Its own line is closed before it waits: without a poll thread nothing else
 * would acknowledge the server's last message, and the server waits for that for ten seconds. */
static _Noreturn void client_end(int control, void *line)
{
	char over;

	shutdown(control, SHUT_WR);
	line_close(line);
	while (recv(control, &over, sizeof(over), 0) > 0)
		;
	_exit(0);
}

static double number_read(const char *word)
{
	char *end;
	double number = strtod(word, &end);

	if (end == word || *end != '\0' || !(number > 0))
		rival_complain("%s is no number above 0.", word);
	return number;
}

static _Noreturn void client(char **words)
{
	struct sockaddr_in name = address_of(words[0], words[1]);
	struct request request = {
		.stream = strcmp(words[4], "stream") == 0,
		.size = (uint32_t)number_read(words[5]),
		.window = (uint32_t)number_read(words[6]),
		.seconds = number_read(words[7]),
	};
	struct rival_end end = {.request = &request,
		.address = words[0],
		.control = socket(AF_INET, SOCK_STREAM, 0),
		.out = request.size,
		.in = request.stream ? CREDIT_BYTES : request.size};

	snprintf(request.transport, sizeof(request.transport), "%s", words[2]);
	snprintf(request.mode, sizeof(request.mode), "%s", words[3]);
	if (!request.stream)
		request.window = 1;
	if (request.size == 0 || request.window == 0)
		rival_complain("SIZE and WINDOW must be 1 or more.");
	if (connect(end.control, (struct sockaddr *)&name, sizeof(name)) != 0)
		rival_complain("nobody serves at %s port %s: %m.", words[0], words[1]);
	control_write(end.control, &request, sizeof(request));

	void *line = rival->open(&end);

	if (request.stream)
		stream_measure(&end, line);
	else
		latency_measure(&end, line);
	fflush(stdout);
	client_end(end.control, line);
}

static int help_print(void)
{
	printf("Usage: %s --server ADDRESS PORT\n"
	       "       %s ADDRESS PORT TRANSPORT MODE latency|stream SIZE WINDOW SECONDS\n"
	       "\n"
	       "Measures messages between two processes, and prints one line of JSON. Start the\n"
	       "server first. It listens at an IPv4 ADDRESS of this host, and prints its port, "
	       "which\n"
	       "the kernel chooses if PORT is 0. The other process has the same address and port.\n"
	       "\n"
	       "  latency  half the round trip of a message of SIZE bytes\n"
	       "  stream   messages of SIZE bytes per second one way; the server acknowledges "
	       "each\n"
	       "           WINDOW of them, and two windows are in flight at most\n"
	       "  SECONDS  how long it measures, after a tenth of that time to warm up\n"
	       "\n"
	       "%s"
	       "\n"
	       "Exit codes: 0 all went well, 1 nothing was measured, 2 the arguments were wrong.\n",
		rival->name, rival->name, rival->transports);
	return 0;
}

int rival_main(int argc, char **argv, const struct rival *self)
{
	const char *first = argc > 1 ? argv[1] : "";
	const bool serves = strcmp(first, "--server") == 0;

	rival = self;
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
		return help_print();
	if (serves && argc == 4)
		return server(argv[2], argv[3]);
	if (first[0] == '-' && !serves)
		fprintf(stderr, "%s: there is no option \"%s\"", self->name, first);
	else if (serves)
		fprintf(stderr, "%s: --server takes an ADDRESS and a PORT", self->name);
	else if (argc != 9)
		fprintf(stderr, "%s: 8 arguments are needed, %d are given", self->name, argc - 1);
	else if (strcmp(argv[5], "latency") != 0 && strcmp(argv[5], "stream") != 0)
		fprintf(stderr, "%s: \"%s\" is neither latency nor stream", self->name, argv[5]);
	else
		client(argv + 1);
	fprintf(stderr, "; %s --help tells more.\n", self->name);
	return 2;
}
