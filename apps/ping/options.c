/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - see options.h. */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "../parse.h"

#define SECOND     UINT64_C(1000000000)
#define SIZE_MAX_  UINT64_C(65535)
#define COUNT_MAX  UINT32_MAX
#define INTERFACES 63

static const char help_text[] =
	"Usage: postern-ping [OPTION...] NID:PID\n"
	"\n"
	"Asks a Postern process for an echo repeatedly, and prints the round-trip times. The\n"
	"process's poll core answers, however busy its application is. Runs until Ctrl-C, and\n"
	"ends with a summary. The interface is that of PTL_IFACE_NAME; without it the process\n"
	"must be on this machine.\n"
	"\n"
	"  -c, --count N         end after N questions\n"
	"  -i, --interval TIME   from one question to the next (default 1s)\n"
	"  -W, --timeout TIME    how long to wait for an answer (default 1s)\n"
	"  -w, --deadline TIME   end after this time\n"
	"  -s, --size BYTES      of question and answer, after the Ethernet header, as in PTL_MTU\n"
	"                        (default: the smallest); \"full\": as large as the interface "
	"allows\n"
	"  -f, --flood           the next question as soon as the last is answered; quiet\n"
	"  -m, --mtu             at the end, find the largest frame that the path carries\n"
	"  -q, --quiet           only the summary\n"
	"  -j, --json            the summary as one JSON object, and nothing else\n"
	"  -I, --interface N     number of the interface in PTL_IFACE_NAME (default 0)\n"
	"  -p, --pid PID         own Portals process id (default: one that is free)\n"
	"  -h, --help            this text\n"
	"  -V, --version         the library's version\n"
	"\n"
	"A TIME is in seconds, or has a unit: 500us, 20ms, 3s.\n"
	"\n"
	"A process that slept or was busy for 20 us or more when a frame arrived does not know\n"
	"how long the frame waited. For such an answer bounds of the time in the network are\n"
	"printed, and the rows \"network\" and \"target\" of the summary leave it out. \"exact\" "
	"is the\n"
	"number of answers in these rows, which are \"-\", or null, if there is none. "
	"PTL_POLL=busy\n"
	"on both sides keeps processes awake. A path MTU of 0 means that no frame has passed\n"
	"since larger frames were tried.\n"
	"\n"
	"Exit codes: 0 at least one answer came, 1 none did, 2 something else went wrong.\n";

static const struct option long_options[] = {
	{"count", required_argument, NULL, 'c'},
	{"interval", required_argument, NULL, 'i'},
	{"timeout", required_argument, NULL, 'W'},
	{"deadline", required_argument, NULL, 'w'},
	{"size", required_argument, NULL, 's'},
	{"flood", no_argument, NULL, 'f'},
	{"mtu", no_argument, NULL, 'm'},
	{"quiet", no_argument, NULL, 'q'},
	{"json", no_argument, NULL, 'j'},
	{"interface", required_argument, NULL, 'I'},
	{"pid", required_argument, NULL, 'p'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

void trouble(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fputs("postern-ping: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_TROUBLE);
}

static uint64_t number_read(const char *option, const char *text, uint64_t least, uint64_t most)
{
	uint64_t value;

	if (!parse_number(text, most, &value) || value < least)
		trouble("%s takes a number from %llu to %llu, not \"%s\"; postern-ping --help "
			"lists the options",
			option, (unsigned long long)least, (unsigned long long)most, text);
	return value;
}

static uint64_t time_read(const char *option, const char *text)
{
	uint64_t value;

	if (!parse_time(text, &value) || value == 0)
		trouble("%s takes a time such as 500us or 2s, not \"%s\"", option, text);
	return value;
}

static void size_read(const char *text, struct options *options)
{
	options->full = strcmp(text, "full") == 0;
	if (!options->full && !parse_size(text, SIZE_MAX_, &options->size))
		trouble("--size takes bytes up to %llu, or \"full\", not \"%s\"",
			(unsigned long long)SIZE_MAX_, text);
}

static void option_take(int letter, const char *value, struct options *options)
{
	switch (letter) {
	case 'c':
		options->count = number_read("--count", value, 1, COUNT_MAX);
		break;
	case 'i':
		options->interval = time_read("--interval", value);
		break;
	case 'W':
		options->timeout = time_read("--timeout", value);
		break;
	case 'w':
		options->deadline = time_read("--deadline", value);
		break;
	case 's':
		size_read(value, options);
		break;
	case 'f':
		options->flood = true;
		break;
	case 'm':
		options->mtu = true;
		break;
	case 'q':
		options->quiet = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'I':
		options->interface = number_read("--interface", value, 0, INTERFACES);
		break;
	case 'p':
		options->pid = number_read("--pid", value, 0, PTL_PID_MAX);
		break;
	case 'h':
		fputs(help_text, stdout);
		exit(0);
	case 'V':
		printf("postern-ping %s\n", postern_version());
		exit(0);
	default:
		fputs("postern-ping --help lists the options.\n", stderr);
		exit(EXIT_TROUBLE);
	}
}

void options_read(int count, char **words, struct options *options)
{
	int letter;

	*options = (struct options){.pid = PTL_PID_ANY, .interval = SECOND, .timeout = SECOND};
	while ((letter = getopt_long(count, words, "c:i:W:w:s:fmqjI:p:hV", long_options, NULL)) !=
		-1)
		option_take(letter, optarg, options);
	if (optind + 1 != count)
		trouble("%s; postern-ping --help shows how it is used",
			optind == count ? "which process is to answer? Give its NID:PID"
					: "one process at a time can be asked");
	if (!parse_process(words[optind], &options->target))
		trouble("\"%s\" is no process; a process is NID:PID, such as 1:100 or 10.0.0.1:100",
			words[optind]);
}
