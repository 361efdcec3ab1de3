/* options.c - the command line. See options.h. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "complain.h"
#include "options.h"

#define WINDOW_DEFAULT  64
#define SECONDS_DEFAULT 0.5
#define SECONDS_MAX     86400.0
#define SERVER_PID      1 /* where a server is found unless it is told otherwise */

static const char *const measure_names[MEASURE_COUNT] = {
	[MEASURE_LATENCY] = "latency",
	[MEASURE_RATE] = "rate",
	[MEASURE_BANDWIDTH] = "bandwidth",
	[MEASURE_BIDIRECTIONAL] = "bidirectional",
	[MEASURE_GET_LATENCY] = "get-latency",
	[MEASURE_GET_BANDWIDTH] = "get-bandwidth",
};

const char *measure_name(enum measure measure)
{
	return measure_names[measure];
}

static const char help_text[] =
	"Usage: postern-perf [OPTION...] [MEASURE...]\n"
	"       postern-perf --server [OPTION...]\n"
	"       postern-perf --peer NID:PID [OPTION...] [MEASURE...]\n"
	"\n"
	"Measures how fast Portals messages go from one process to another. Without --server and\n"
	"--peer both ends are in this process, on two interfaces of a loop.\n"
	"\n"
	"What can be measured; latency, rate and bandwidth if nothing is named:\n"
	"  latency        half the round trip of a put that is answered by a put\n"
	"  rate           small puts per second (8 bytes unless --sizes says otherwise)\n"
	"  bandwidth      bytes per second of puts one way\n"
	"  bidirectional  bytes per second of puts both ways at once, summed\n"
	"  get-latency    round trip of a get\n"
	"  get-bandwidth  bytes per second of gets\n"
	"  all            every one of these\n"
	"\n"
	"Options:\n"
	"  -s, --server           answer clients, one after another, until killed\n"
	"  -1, --once             with --server: end after the first client\n"
	"  -c, --peer NID:PID     measure against the server at this process id\n"
	"  -p, --pid PID          own process id (a server's default is 1)\n"
	"  -z, --sizes LIST       message sizes: 8,64K or 1..4M (each power of two) or both\n"
	"                         (default 1..4M)\n"
	"  -w, --window N         messages on their way before an answer is awaited (default 64;\n"
	"                         fewer for messages over 256K); of a server: the largest it "
	"serves\n"
	"  -n, --iterations N     messages per size; the default goes by time\n"
	"  -t, --time SECONDS     time per size (default 0.5)\n"
	"  -b, --poll             ask for events in a loop: fastest where each thread has a core\n"
	"  -r, --raw              in turns with bare frames on the same port and cores, and the "
	"ratio\n"
	"  -j, --json             one JSON object on standard output instead of tables\n"
	"  -S, --stats            afterwards the library's counters that have changed\n"
	"  -h, --help             this text\n"
	"  -V, --version          the library's version\n"
	"\n"
	"The interface comes from the environment, as in every program that uses Postern, and\n"
	"postern-info explains each setting. Two processes by shared memory:\n"
	"  PTL_IFACE_NAME=memif:/tmp/perf PTL_NID=1 postern-perf --server\n"
	"  PTL_IFACE_NAME=memif:/tmp/perf PTL_NID=2 postern-perf --peer 1:1\n"
	"\n"
	"Exit codes: 0 all went well, 1 the run failed, 2 the options were wrong.\n";

static const struct option option_table[] = {
	{"server", no_argument, NULL, 's'},
	{"once", no_argument, NULL, '1'},
	{"peer", required_argument, NULL, 'c'},
	{"pid", required_argument, NULL, 'p'},
	{"sizes", required_argument, NULL, 'z'},
	{"window", required_argument, NULL, 'w'},
	{"iterations", required_argument, NULL, 'n'},
	{"time", required_argument, NULL, 't'},
	{"poll", no_argument, NULL, 'b'},
	{"raw", no_argument, NULL, 'r'},
	{"json", no_argument, NULL, 'j'},
	{"stats", no_argument, NULL, 'S'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/* Digits up to max; moves *text behind them. strtoull() alone takes signs, blanks and overflows. */
static bool digits_parse(const char **text, uint64_t max, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno != 0 || value > max)
		return false;
	*text = end;
	*number = value;
	return true;
}

static uint64_t number_option(const char *option, const char *text, uint64_t min, uint64_t max)
{
	const char *rest = text;
	uint64_t number = 0;

	if (!digits_parse(&rest, max, &number) || *rest != '\0' || number < min)
		complain_usage("--%s takes a number from %llu to %llu, not \"%s\".", option,
			(unsigned long long)min, (unsigned long long)max, text);
	return number;
}

static bool size_parse(const char **text, uint64_t *size)
{
	static const struct {
		char letter;
		unsigned shift;
	} units[] = {{'K', 10}, {'k', 10}, {'M', 20}, {'m', 20}, {'G', 30}, {'g', 30}};

	if (!digits_parse(text, SIZE_MAX_BYTES, size))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (**text == units[i].letter) {
			*size <<= units[i].shift;
			(*text)++;
			break;
		}
	return *size <= SIZE_MAX_BYTES;
}

static void size_add(struct options *options, uint64_t size)
{
	if (options->size_count == SIZES_MAX)
		complain_usage("--sizes takes at most %u sizes.", SIZES_MAX);
	options->sizes[options->size_count++] = size;
}

/* Every power of two from first to last, and both ends. */
static void sizes_add_range(struct options *options, uint64_t first, uint64_t last)
{
	uint64_t size = first;

	while (size < last) {
		size_add(options, size);
		if (size == 0)
			size = 1;
		else
			size = (UINT64_C(1) << (63 - __builtin_clzll(size))) << 1;
	}
	size_add(options, last);
}

static void sizes_option(struct options *options, const char *text)
{
	const char *rest = text;
	uint64_t first;
	uint64_t last;

	options->size_count = 0;
	for (;;) {
		if (!size_parse(&rest, &first))
			break;
		last = first;
		if (strncmp(rest, "..", 2) == 0) {
			rest += 2;
			if (!size_parse(&rest, &last) || last < first)
				break;
		}
		sizes_add_range(options, first, last);
		if (*rest == '\0')
			return;
		if (*rest++ != ',')
			break;
	}
	complain_usage("--sizes takes sizes up to 4G such as 8,64K or 1..4M, not \"%s\".", text);
}

/* A number, or four with dots between them. */
static bool nid_parse(const char **text, uint64_t *nid)
{
	uint64_t byte;

	if (!digits_parse(text, PTL_NID_ANY - 1, nid))
		return false;
	if (**text != '.')
		return true;
	for (unsigned i = 1; i < 4; i++) {
		if (*nid >> (8 * i) != 0 || *(*text)++ != '.' ||
			!digits_parse(text, UINT8_MAX, &byte))
			return false;
		*nid = *nid << 8 | byte;
	}
	return *nid < PTL_NID_ANY;
}

static ptl_process_id_t peer_option(const char *text)
{
	const char *rest = text;
	uint64_t nid = 0;
	uint64_t pid = 0;

	if (!nid_parse(&rest, &nid) || *rest++ != ':' || !digits_parse(&rest, PTL_PID_MAX, &pid) ||
		*rest != '\0')
		complain_usage(
			"--peer takes a node id and a process id such as 1:1 or 10.0.0.1:1, not "
			"\"%s\".",
			text);
	return (ptl_process_id_t){(ptl_nid_t)nid, (ptl_pid_t)pid};
}

static double seconds_option(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0 ||
		seconds > SECONDS_MAX)
		complain_usage("--time takes seconds above 0 such as 0.5 or 10, not \"%s\".", text);
	return seconds;
}

static void measure_word(struct options *options, const char *word)
{
	for (unsigned i = 0; i < MEASURE_COUNT; i++)
		if (strcmp(word, measure_names[i]) == 0 || strcmp(word, "all") == 0) {
			options->measures[i] = true;
			if (strcmp(word, "all") != 0)
				return;
		}
	if (strcmp(word, "all") != 0)
		complain_usage("\"%s\" is nothing that can be measured; latency, rate, bandwidth, "
			       "bidirectional, get-latency, get-bandwidth and all are.",
			word);
}

static void option_apply(struct options *options, int letter, bool *pid_given)
{
	switch (letter) {
	case 's':
		if (options->mode == MODE_CLIENT)
			complain_usage("A process is either the --server or has a --peer.");
		options->mode = MODE_SERVER;
		break;
	case '1':
		options->once = true;
		break;
	case 'c':
		if (options->mode == MODE_SERVER)
			complain_usage("A process is either the --server or has a --peer.");
		options->mode = MODE_CLIENT;
		options->peer = peer_option(optarg);
		break;
	case 'p':
		options->pid = (ptl_pid_t)number_option("pid", optarg, 0, PTL_PID_MAX);
		*pid_given = true;
		break;
	case 'z':
		sizes_option(options, optarg);
		break;
	case 'w':
		options->window = (uint32_t)number_option("window", optarg, 1, WINDOW_MAX);
		break;
	case 'n':
		options->effort.iterations =
			number_option("iterations", optarg, 1, UINT64_C(1) << 40);
		break;
	case 't':
		options->effort.seconds = seconds_option(optarg);
		break;
	case 'b':
		options->poll = true;
		break;
	case 'r':
		options->raw = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'S':
		options->stats = true;
		break;
	case 'h':
		fputs(help_text, stdout);
		exit(0);
	case 'V':
		printf("postern-perf %s\n", postern_version());
		exit(0);
	default:
		break;
	}
}

void options_parse(struct options *options, int count, char **words)
{
	bool pid_given = false;
	bool any = false;
	int letter;

	*options = (struct options){
		.window = WINDOW_DEFAULT, .effort.seconds = SECONDS_DEFAULT, .pid = PTL_PID_ANY};
	opterr = 0;
	while ((letter = getopt_long(count, words, ":s1c:p:z:w:n:t:brjShV", option_table, NULL)) !=
		-1) {
		if (letter == ':')
			complain_usage("%s needs a value.", words[optind - 1]);
		if (letter == '?')
			complain_usage("%s is not an option.", words[optind - 1]);
		option_apply(options, letter, &pid_given);
	}
	for (; optind < count; optind++) {
		measure_word(options, words[optind]);
		any = true;
	}
	if (options->once && options->mode != MODE_SERVER)
		complain_usage("--once goes with --server.");
	if (options->mode == MODE_SERVER &&
		(any || options->size_count > 0 || options->json || options->raw))
		complain_usage("What is measured, and how it is printed, is for the client to say, "
			       "not for the server.");
	if (options->mode == MODE_LOCAL && pid_given)
		complain_usage("--pid goes with --server or --peer.");
	if (options->mode == MODE_SERVER && !pid_given)
		options->pid = SERVER_PID;
	if (!any)
		options->measures[MEASURE_LATENCY] = options->measures[MEASURE_RATE] =
			options->measures[MEASURE_BANDWIDTH] = true;
}
