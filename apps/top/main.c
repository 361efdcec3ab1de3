/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-top: a live table of all Postern processes of the user.
 *
 * It asks their telemetry sockets and is no Portals process itself. On a terminal the table is
 * drawn again and again; into a pipe or a file one table follows another.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "process.h"
#include "table.h"

#define EXIT_USAGE       2
#define INTERVAL_DEFAULT 1.0
#define INTERVAL_LEAST   0.1
#define INTERVAL_MOST    3600.0
#define CLEAR            "\033[H\033[J"
#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

static const char help_text[] =
	"Usage: postern-top [OPTION...]\n"
	"\n"
	"Shows all interfaces of all Postern processes of this user: bytes received (<) and sent\n"
	"(>) per second, retransmissions, drops, peers, and how busy the thread is that polls the\n"
	"device. INST is the number of the process for dpdk-telemetry.py -f postern -i INST. On a\n"
	"terminal: q ends postern-top, the space bar updates the table at once, + and - change\n"
	"the interval, n shows the nodes, c the counters. Processes in other network namespaces\n"
	"are not shown. To see them, run postern-top there: ip netns exec NAME postern-top.\n"
	"\n"
	"  -i, --interval TIME  between two updates, 0.1 to 3600 seconds, such as 2 or 500ms\n"
	"                       (default 1)\n"
	"  -1, --once           print one table, of the rates within one interval, and end\n"
	"  -n, --node           show the processes of each node: the traffic between each process\n"
	"                       of this user and each peer (PEER is the peer's Portals process\n"
	"                       id, PEERPID its system process id), bursts for which the shared\n"
	"                       memory had too little room (FULL), frames that the peer dropped\n"
	"                       (DROP), shared memory in use (MEM), and how often a process was\n"
	"                       refused (REFUSED)\n"
	"  -c, --counters       show the counters of Portals 4 that triggered operations or\n"
	"                       threads wait for: how many operations wait (WAITING), their\n"
	"                       lowest threshold (AT), the operation that is due first (NEXT),\n"
	"                       how many threads sleep (SLEEP), and the lowest count that one of\n"
	"                       them waits for (TEST)\n"
	"  -j, --json           print one JSON object, on one line, for each update; with -n it\n"
	"                       has the nodes, too, and with -c all counters\n"
	"  -h, --help           this text\n"
	"  -V, --version        the version\n"
	"\n"
	"Exit codes: 0 all went well, 1 standard output cannot be written to, 2 the options were\n"
	"wrong.\n";

struct options {
	double interval; /* s */
	bool once;
	bool json;
	enum view view;
};

static volatile sig_atomic_t ended;
static struct termios terminal_before;
static bool terminal; /* keys are read from it */

static void end_on_signal(int signal)
{
	(void)signal;
	ended = 1;
}

static void terminal_leave(void)
{
	if (terminal)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* Keys without Enter and without echo. */
static void terminal_enter(void)
{
	struct termios keys;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
		tcgetattr(STDIN_FILENO, &terminal_before) != 0)
		return;
	keys = terminal_before;
	keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	terminal = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
	atexit(terminal_leave);
}

static void signals_enter(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = end_on_signal};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL); /* a reader that goes is seen by writing */
}

static double clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns true if the screen is to be drawn again at once. */
static bool key_take(struct options *options)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1) {
		terminal = false; /* it has gone: no more keys */
		return false;
	}
	switch (key) {
	case 'q':
	case 'Q':
		ended = 1;
		return true;
	case 'n':
	case 'N':
		options->view = options->view == VIEW_NODES ? VIEW_INTERFACES : VIEW_NODES;
		return true;
	case 'c':
	case 'C':
		options->view = options->view == VIEW_COUNTERS ? VIEW_INTERFACES : VIEW_COUNTERS;
		return true;
	case '+':
		if (options->interval * 2 <= INTERVAL_MOST)
			options->interval *= 2;
		return true;
	case '-':
		if (options->interval / 2 >= INTERVAL_LEAST)
			options->interval /= 2;
		return true;
	default:
		return key == ' ' || key == '\n' || key == '\r';
	}
}

static void wait_interval(struct options *options)
{
	double end = clock_seconds() + options->interval, left;

	while (!ended && (left = end - clock_seconds()) > 0) {
		struct pollfd keys = {.fd = terminal ? STDIN_FILENO : -1, .events = POLLIN};

		if (poll(&keys, 1, (int)(left * 1000) + 1) > 0 && key_take(options))
			return;
	}
}

/* For the table. A table that is drawn again and again leaves a line for the title, and one for the
 * cursor, which would else push the title out. */
static struct room terminal_room(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return (struct room){0};
	return (struct room){
		.width = size.ws_col, .height = terminal && size.ws_row > 2 ? size.ws_row - 2u : 0};
}

/* A longer line would push itself out of the screen. */
static void title_print(const struct options *options, unsigned width)
{
	char title[128];

	snprintf(title, sizeof(title), "postern-top, every %g s: q quits, + - interval, n %s, c %s",
		options->interval, options->view == VIEW_NODES ? "interfaces" : "nodes",
		options->view == VIEW_COUNTERS ? "interfaces" : "counters");
	printf(CLEAR "%.*s\n", width > 0 ? (int)width : (int)sizeof(title), title);
}

static int print_all(const struct options *options)
{
	const struct room room = terminal_room();

	if (options->json) {
		table_print_json(options->view);
		return output_flush() ? 0 : 1;
	}
	if (terminal)
		title_print(options, room.width);
	if (options->view == VIEW_NODES)
		table_print_pairs(room);
	else if (options->view == VIEW_COUNTERS)
		table_print_counters(room);
	else
		table_print(room);
	return output_flush() ? 0 : 1;
}

static int run(struct options *options)
{
	processes_look(options->view);
	/* Rates need two looks, but a person shall not wait for the first. */
	if (terminal && print_all(options) != 0)
		return 1;
	do {
		wait_interval(options);
		if (ended)
			break;
		processes_look(options->view);
		if (print_all(options) != 0)
			return 1;
	} while (!options->once);
	return 0;
}

static bool interval_read(const char *text, double *interval)
{
	uint64_t time;

	if (!parse_time(text, &time))
		return false;
	*interval = (double)time * 1e-9;
	return *interval >= INTERVAL_LEAST && *interval <= INTERVAL_MOST;
}

int main(int count, char **words)
{
	static const struct option names[] = {
		{"interval", required_argument, NULL, 'i'},
		{"once", no_argument, NULL, '1'},
		{"node", no_argument, NULL, 'n'},
		{"counters", no_argument, NULL, 'c'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.interval = INTERVAL_DEFAULT};
	int letter;

	output_watch("postern-top", 1);
	while ((letter = getopt_long(count, words, "i:1ncjhV", names, NULL)) != -1) {
		switch (letter) {
		case 'i':
			if (interval_read(optarg, &options.interval))
				break;
			fprintf(stderr,
				"postern-top: --interval %s is no time from 0.1 to 3600 seconds, "
				"such as 500ms; postern-top --help lists the options.\n",
				optarg);
			return EXIT_USAGE;
		case '1':
			options.once = true;
			break;
		case 'n':
			options.view = VIEW_NODES;
			break;
		case 'c':
			options.view = VIEW_COUNTERS;
			break;
		case 'j':
			options.json = true;
			break;
		case 'h':
			fputs(help_text, stdout);
			return output_flush() ? 0 : 1;
		case 'V':
			printf("postern-top %s\n",
				VERSION(POSTERN_VERSION_MAJOR, POSTERN_VERSION_MINOR,
					POSTERN_VERSION_PATCH));
			return output_flush() ? 0 : 1;
		default:
			fputs("postern-top --help lists the options.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < count) {
		fprintf(stderr,
			"postern-top: \"%s\" is not an option; postern-top --help lists them.\n",
			words[optind]);
		return EXIT_USAGE;
	}
	signals_enter();
	if (!options.json && !options.once)
		terminal_enter();
	return run(&options);
}
