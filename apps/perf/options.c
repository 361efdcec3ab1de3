/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line. See options.h.
 *
 * O1. rows[] names all options: getopt_long()'s table, --help and the message about a wrong option
 *     are made from it.
 */
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postern.h>

#include "complain.h"
#include "options.h"
#include "values.h"

#define WINDOW_DEFAULT  64
#define SECONDS_DEFAULT 0.5
#define RUNS_TURNS      5 /* of two things in turns; an odd number has a middle one */
#define SERVER_PID      1 /* where a server is found unless it is told otherwise */
#define HELP_COLUMN     24
#define HELP_WIDTH      98

enum option_kind { ANY_SIDE, OF_CLIENT };

static const struct option_row {
	char letter;
	enum option_kind kind;
	const char *name;
	const char *value; /* NULL: it takes none */
	const char *help;
} rows[] = {
	{'s', ANY_SIDE, "server", NULL, "answer clients, one after another, until killed"},
	{'1', ANY_SIDE, "once", NULL, "with --server: end after the first client"},
	{'c', ANY_SIDE, "peer", "NID:PID",
		"measure against the server with this process id; give one --peer for each server "
		"that --peers is to use"},
	{'k', ANY_SIDE, "card", NULL,
		"compare Postern with TCP on this machine, in a minute: five ratios, four of them "
		"to TCP over loopback; takes --cores A,B, --time (default 0.5) and --repeat "
		"(default "
		"5)"},
	{'p', ANY_SIDE, "pid", "PID", "own process id (a server's default is 1)"},
	{'l', ANY_SIDE, "library", "NAME",
		"the library to measure, also for a server: portals3 (default), portals4, "
		"mx, fi, gasnet"},
	{'z', OF_CLIENT, "sizes", "LIST",
		"message sizes: 8,64K or 1..4M (each power of two) or both (default 1..4M; 8 for "
		"rate and with --depth, --peers or --faults)"},
	{'w', ANY_SIDE, "window", "N",
		"messages in flight at a time (default 64; fewer for messages over 256K); with "
		"--server: the largest window that a client may ask for"},
	{'d', OF_CLIENT, "depth", "LIST",
		"length of the match list at both ends, up to 64K; 1..64K measures each power of "
		"two; for any-latency and kept-latency of MX: the number of other requests or "
		"messages, up to 1M"},
	{'o', OF_CLIENT, "position", "LIST",
		"position in that list of the entry that a message matches: first, middle, last "
		"(default), random"},
	{'W', OF_CLIENT, "wildcards", "LIST",
		"how many of the list's entries ignore match bits, spread evenly: a number or all "
		"(default 0)"},
	{'P', OF_CLIENT, "peers", "LIST",
		"send messages to this many servers in turn; without --peer they are in this "
		"process"},
	{'m', OF_CLIENT, "pairs", "LIST",
		"the number of pairs that measure at once, each with its own thread and "
		"interfaces; with --peer, interface N measures against the Nth server"},
	{'f', OF_CLIENT, "faults", "LIST",
		"repeat the measurement with each of these network faults, separated by ;: "
		"\"none;drop=0.01,on=both\"; each is written as in PTL_FAULT"},
	{'n', OF_CLIENT, "iterations", "N",
		"messages of each trial (default: as many as --time allows)"},
	{'t', OF_CLIENT, "time", "SECONDS", "time of each trial (default 0.5)"},
	{'u', OF_CLIENT, "warm-up", "SECONDS",
		"time before each run that is not counted (default: a tenth of the run)"},
	{'R', OF_CLIENT, "repeat", "N",
		"divide each trial into N runs, and print the median of a rate, and the lowest and "
		"highest run of each figure (default 1, 5 with --raw)"},
	{'r', OF_CLIENT, "raw", NULL,
		"also measure bare frames, without Portals, in turns with Portals on the same "
		"port and cores, and print the ratio"},
	{'C', ANY_SIDE, "cores", "LIST",
		"CPUs, such as 0,1: first that of the application's thread, then that of the "
		"polling thread of each interface"},
	{'b', ANY_SIDE, "poll", NULL,
		"poll for events in a loop: fastest if each thread has a core"},
	{'j', OF_CLIENT, "json", NULL, "one JSON object on standard output instead of tables"},
	{'v', OF_CLIENT, "csv", NULL,
		"comma-separated values, one line for each trial; lines that begin with # describe "
		"the machine"},
	{'g', OF_CLIENT, "plot", "FILE",
		"also draw the results, by gnuplot: into FILE.svg, FILE.png or FILE.pdf, "
		"or - for the "
		"terminal"},
	{'T', ANY_SIDE, "trace", "FILE.json",
		"record the stages of each message, for ui.perfetto.dev and chrome://tracing; a "
		"server needs --once, too"},
	{'S', ANY_SIDE, "stats", NULL, "afterwards print the library's counters that have changed"},
	{'h', ANY_SIDE, "help", NULL, "this text"},
	{'V', ANY_SIDE, "version", NULL, "the library's version"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char help_before[] =
	"Usage: postern-perf [OPTION...] [MEASURE...]\n"
	"       postern-perf --server [OPTION...]\n"
	"       postern-perf --peer NID:PID [OPTION...] [MEASURE...]\n"
	"       postern-run -n 2 postern-perf --library gasnet [OPTION...] [MEASURE...]\n"
	"       postern-perf --card [OPTION...]\n"
	"\n"
	"Measures how fast Portals messages go from one process to another. Without --server and\n"
	"--peer both ends are in this process, in one thread, on two interfaces connected in\n"
	"memory.\n"
	"\n"
	"Measures; the default is latency, rate and bandwidth:\n"
	"  latency        half the round trip of a put that is answered by a put\n"
	"  rate           small puts per second (8 bytes unless --sizes says otherwise)\n"
	"  bandwidth      bytes per second of puts one way\n"
	"  bidirectional  bytes per second of puts both ways at once, summed\n"
	"  get-latency    round trip of a get\n"
	"  get-rate       small gets per second\n"
	"  get-bandwidth  bytes per second of gets\n"
	"  all            every one of these\n"
	"With --library portals4 also:\n"
	"  fetch-latency      round trip of a fetching addition to 8 bytes\n"
	"  triggered-latency  as latency, but a triggered put answers each put\n"
	"  counted-rate       small puts per second into an entry that counts them and logs no\n"
	"                     events\n"
	"  put-latency        round trip of a put that is acknowledged\n"
	"  put-bandwidth      bytes per second of puts that are acknowledged\n"
	"triggered-latency and counted-rate use list entries without match bits unless --depth is\n"
	"given. A process has at most two interfaces of Portals 4, so --peers needs servers named\n"
	"by --peer, and --pairs is at most 2, also with --peer.\n"
	"With --library mx latency, rate and bandwidth, of messages, and also:\n"
	"  unexpected-rate    small messages per second whose receives are posted when a window\n"
	"                     of messages has arrived\n"
	"  overlap-send       share of a message's transfer time that is hidden while the sender\n"
	"                     computes and makes no calls\n"
	"  overlap-receive    the same while the receiver computes\n"
	"  any-latency        time of an mx_test_any() that matches one of several completed\n"
	"                     requests (--depth: how many others)\n"
	"  kept-latency       time to receive one of several unexpected messages that have\n"
	"                     arrived (--depth: how many others)\n"
	"With --library fi latency, rate and bandwidth, of tagged messages of libfabric. Messages\n"
	"of up to 4096 bytes are sent by fi_tinject(). Also get-latency, get-rate and\n"
	"get-bandwidth by fi_read(), put-latency and put-bandwidth by fi_write(), and\n"
	"fetch-latency by fi_fetch_atomic(); each is measured until it completes. libfabric must\n"
	"be able to load Postern's provider: see fi_postern(7).\n"
	"With --library gasnet the two ends are the ranks of a job, which a launcher starts; both "
	"have\n"
	"the same options, rank 0 measures, and PTL_FAULT takes the place of --faults:\n"
	"  latency        half the round trip of an active message and its reply: short up to 8\n"
	"                 bytes, medium up to 2048, then long\n"
	"  rate           active messages per second one way\n"
	"  bandwidth      bytes per second of active messages one way\n"
	"  get-latency, put-latency      time of gasnet_get() and gasnet_put()\n"
	"  get-bandwidth, put-bandwidth  bytes per second of gasnet_get_nb_bulk() and\n"
	"                 gasnet_put_nb_bulk()\n"
	"\n"
	"Options:\n";

static const char help_after[] =
	"\n"
	"The interface comes from the environment, as in every program that uses Postern, and\n"
	"postern-info explains each setting. Two processes by shared memory:\n"
	"  PTL_NID=1 postern-perf --server\n"
	"  PTL_NID=1 postern-perf --peer 1:1\n"
	"\n"
	"Exit codes: 0 all went well, 1 the run failed, 2 the options were wrong.\n";

static void help_row(const struct option_row *row)
{
	const char *rest = row->help;
	int column = printf("  -%c, --%s%s%s", row->letter, row->name, row->value ? " " : "",
		row->value ? row->value : "");

	while (*rest != '\0') {
		size_t room = HELP_WIDTH - HELP_COLUMN;
		size_t length = strlen(rest);

		if (length > room)
			for (length = room; rest[length] != ' '; length--)
				;
		printf("%*s %.*s\n", column < HELP_COLUMN ? HELP_COLUMN - column : 0, "",
			(int)length, rest);
		column = 0;
		rest += length + (rest[length] == ' ');
	}
}

static _Noreturn void help_print(void)
{
	fputs(help_before, stdout);
	for (unsigned i = 0; i < ROWS; i++)
		help_row(&rows[i]);
	fputs(help_after, stdout);
	exit(0);
}

/* "--server, --once and --peer" */
static void names_list(char *text, size_t room)
{
	size_t used = 0;

	for (unsigned i = 0; i < ROWS && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s--%s",
			i == 0          ? ""
			: i == ROWS - 1 ? " and "
					: ", ",
			rows[i].name);
}

static void measure_word(struct options *options, const char *word)
{
	bool all = strcmp(word, "all") == 0;
	char names[1024] = "";
	size_t used = 0;
	bool known = false;

	for (unsigned i = 0; i < MEASURE_COUNT; i++) {
		if (!library_has(options->library, i))
			continue;
		used += (size_t)snprintf(
			names + used, sizeof(names) - used, "%s, ", measure_name(i));
		if (all || strcmp(word, measure_name(i)) == 0)
			options->measures[i] = known = true;
	}
	if (!known)
		complain_usage("\"%s\" is not a measure of %s; give %sor all.", word,
			library_title(options->library), names);
}

static void server_add(struct options *options, const char *name, const char *text)
{
	if (options->server_count == PEERS_MAX)
		complain_usage("--%s can be given %u times.", name, PEERS_MAX);
	options->servers[options->server_count++] = value_process(name, text);
}

static void mode_set(struct options *options, enum mode mode)
{
	if (options->mode != MODE_LOCAL && options->mode != mode)
		complain_usage("--server, --peer and --card exclude each other; give one of them.");
	options->mode = mode;
}

/* Options that change no measurement. */
static bool option_plain(struct options *options, char letter)
{
	switch (letter) {
	case 's':
		mode_set(options, MODE_SERVER);
		return true;
	case 'k':
		mode_set(options, MODE_CARD);
		return true;
	case '1':
		return options->once = true;
	case 'r':
		return options->raw = true;
	case 'b':
		return options->poll = true;
	case 'j':
		options->format = FORMAT_JSON;
		return true;
	case 'v':
		options->format = FORMAT_CSV;
		return true;
	case 'S':
		return options->stats = true;
	case 'h':
		help_print();
	case 'V':
		printf("postern-perf %s\n", postern_version());
		exit(0);
	default:
		return false;
	}
}

static void option_value(struct options *options, const struct option_row *row, char *text)
{
	const char *name = row->name;

	switch (row->letter) {
	case 'c':
		mode_set(options, MODE_CLIENT);
		server_add(options, name, text);
		break;
	case 'p':
		options->pid = (ptl_pid_t)value_number(name, text, 0, PTL_PID_MAX);
		break;
	case 'l':
		options->library = value_library(name, text);
		break;
	case 'z':
		values_list(&options->sizes, name, text, 0, SIZE_MAX_BYTES, NULL, 0);
		break;
	case 'w':
		options->window = (uint32_t)value_number(name, text, 1, WINDOW_MAX);
		break;
	case 'd':
		values_list(&options->depths, name, text, 1, DEPTH_OF_SEARCH, NULL, 0);
		break;
	case 'o':
		values_positions(&options->positions, name, text);
		break;
	case 'W':
		values_list(&options->wildcards, name, text, 0, DEPTH_MAX, "all", WILDCARDS_ALL);
		break;
	case 'P':
		values_list(&options->peers, name, text, 1, PEERS_MAX, NULL, 0);
		break;
	case 'm':
		values_list(&options->pairs, name, text, 1, PAIRS_MAX, NULL, 0);
		break;
	case 'u':
		options->effort.warm_up = strcmp(text, "0") == 0 ? 0 : value_seconds(name, text);
		break;
	case 'R':
		options->runs = (unsigned)value_number(name, text, 1, RUNS_MAX);
		break;
	case 'f':
		options->fault_count = values_faults(options->faults, LIST_MAX, name, text);
		break;
	case 'n':
		options->effort.iterations = value_number(name, text, 1, UINT64_C(1) << 40);
		break;
	case 't':
		options->effort.seconds = value_seconds(name, text);
		break;
	case 'C':
		options->core_count = values_cores(options->cores, CORES_MAX, name, text);
		break;
	case 'g':
		options->plot = text;
		break;
	case 'T':
		options->trace = text;
		break;
	default:
		break;
	}
}

static void tables_make(struct option *longs, char *shorts)
{
	*shorts++ = ':';
	for (unsigned i = 0; i < ROWS; i++) {
		longs[i] = (struct option){rows[i].name,
			rows[i].value ? required_argument : no_argument, NULL, rows[i].letter};
		*shorts++ = rows[i].letter;
		if (rows[i].value)
			*shorts++ = ':';
	}
}

static const struct option_row *row_of(int letter)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].letter == letter)
			return &rows[i];
	return NULL;
}

/* given: a bit for each row. */
static bool has(uint64_t given, char letter)
{
	return given >> (row_of(letter) - rows) & 1;
}
static_assert(ROWS <= 64, "a bit each");

static void sides_check(const struct options *options, uint64_t given, bool measures)
{
	if (options->once && options->mode != MODE_SERVER)
		complain_usage("--once has a meaning only with --server; leave it out.");
	if (options->mode == MODE_SERVER && options->trace && !options->once)
		complain_usage("--trace with --server needs --once, because the trace is written "
			       "at the end: add --once.");
	for (unsigned i = 0; i < ROWS && options->mode == MODE_SERVER; i++)
		if (measures || (given >> i & 1 && rows[i].kind == OF_CLIENT))
			complain_usage(
				"A --server takes no measures and no options for them; give them "
				"to the client.");
	for (unsigned i = 0; i < ROWS && options->mode == MODE_CARD; i++)
		if (measures || (given >> i & 1 && !strchr("kCtR", rows[i].letter)))
			complain_usage("--card has measures of its own, and takes --cores, --time "
				       "and --repeat.");
	if (options->mode == MODE_LOCAL && has(given, 'p'))
		complain_usage("--pid has a meaning only with --server or --peer; leave it out.");
	if (has(given, 'j') && has(given, 'v'))
		complain_usage("--json and --csv exclude each other; give one of them.");
	if (options->plot && strcmp(options->plot, "-") == 0 && options->format != FORMAT_TABLE)
		complain_usage("--plot - draws in the terminal, where --json and --csv print; give "
			       "--plot a file.");
	if (!has(given, 'd') && (has(given, 'o') || has(given, 'W')))
		complain_usage("--position and --wildcards need a match list; give its --depth.");
}

static void peers_check(const struct options *options)
{
	for (unsigned i = 0; i < options->peers.count; i++) {
		if (options->mode == MODE_CLIENT && options->peers.items[i] > options->server_count)
			complain_usage("--peers wants %u servers; name them with --peer, which was "
				       "given %u times.",
				(unsigned)options->peers.items[i], options->server_count);
		if (options->raw && options->peers.items[i] > 1)
			complain_usage(
				"--raw measures bare frames to one peer; leave --peers out.");
		if (options->depths.count > 0 && options->peers.items[i] > 1)
			complain_usage("--depth measures the match lists of one pair; leave "
				       "--peers out.");
	}
}

static void pairs_check(const struct options *options)
{
	for (unsigned i = 0; i < options->pairs.count; i++) {
		if (options->mode == MODE_CLIENT && options->pairs.items[i] > options->server_count)
			complain_usage("--pairs wants %u servers; name them with --peer, which was "
				       "given %u times.",
				(unsigned)options->pairs.items[i], options->server_count);
		if (options->pairs.items[i] > 1 &&
			(options->raw || options->depths.count > 0 || options->peers.count > 0))
			complain_usage("--raw, --depth and --peers measure with one client; leave "
				       "--pairs out.");
	}
}

/* Where there are no match lists, a search has a depth, and nothing else. */
static void searches_check(const struct options *options, uint64_t given)
{
	for (unsigned i = 0; i < MEASURE_COUNT; i++) {
		if (!options->measures[i])
			continue;
		if (has(given, 'd') && !measure_is_search(i))
			complain_usage("--depth of --library %s goes with any-latency and "
				       "kept-latency of MX, not with %s; leave one of the two out.",
				library_name(options->library), measure_name(i));
		if (options->raw && (measure_is_search(i) || measure_is_overlap(i)))
			complain_usage("--raw has nothing to compare %s with; leave one of the two "
				       "out.",
				measure_name(i));
	}
	for (unsigned i = 0; i < options->sizes.count && options->library == LIBRARY_MX; i++)
		if (options->sizes.items[i] > UINT32_MAX)
			complain_usage("A message of MX has less than 4G bytes; give smaller "
				       "--sizes.");
	if (has(given, 'o') || has(given, 'W'))
		complain_usage("--position and --wildcards are of lists of Portals 3.2; leave "
			       "them out.");
}

/* A process has LINES_MAX interfaces of another library, one of those without match lists. */
static void lines_check(const struct options *options, uint64_t given)
{
	if (!library_has_lists(options->library) && (has(given, 'P') || has(given, 'm')))
		complain_usage("--peers and --pairs go with the libraries of Portals alone; leave "
			       "them out.");
	/* Items of PTL_IFACE_NAME that are equal are one domain: a process has one port for both
	 * ends. */
	if (options->library == LIBRARY_FI && options->mode == MODE_LOCAL && has(given, 'f'))
		complain_usage("--faults of --library fi wants a server in another process; start "
			       "it, and name it with --peer.");
	for (unsigned i = 0; i < options->peers.count; i++)
		if (options->mode == MODE_LOCAL && options->peers.items[i] > 1)
			complain_usage(
				"--peers of --library %s wants servers in processes of their "
				"own; start them, and name each with --peer.",
				library_name(options->library));
	for (unsigned i = 0; i < options->pairs.count; i++) {
		if (options->pairs.items[i] > LINES_MAX)
			complain_usage("--library %s measures at most %u --pairs: start several "
				       "postern-perf instead.",
				library_name(options->library), LINES_MAX);
		if (options->pairs.items[i] > 1 && options->mode == MODE_LOCAL)
			complain_usage(
				"more than one of --pairs of --library %s needs servers in "
				"processes of their own: start them, and name each with --peer.",
				library_name(options->library));
	}
}

/* The ranks of a job find each other by the job, and both read these options. */
static void job_check(const struct options *options, uint64_t given)
{
	if (options->library != LIBRARY_GASNET)
		return;
	if (options->mode != MODE_LOCAL)
		complain_usage("--library gasnet has no --server and no --peer: start two ranks, "
			       "as postern-run -n 2 postern-perf --library gasnet does.");
	if (has(given, 'f') || has(given, 'C'))
		complain_usage("--faults and --cores are not for the ranks of a job; set PTL_FAULT "
			       "or PTL_POLL_CORE.");
}

static void library_check(const struct options *options, uint64_t given)
{
	job_check(options, given);
	for (unsigned i = 0; i < options->depths.count; i++)
		if (library_has_lists(options->library) && options->depths.items[i] > DEPTH_MAX)
			complain_usage("--depth takes numbers from 1 to 64K, not %llu.",
				(unsigned long long)options->depths.items[i]);
	if (!library_has_lists(options->library))
		searches_check(options, given);
	if (options->library != LIBRARY_PORTALS3)
		lines_check(options, given);
}

static void defaults_choose(struct options *options, uint64_t given, bool measures)
{
	if (options->mode == MODE_SERVER && !has(given, 'p'))
		options->pid = SERVER_PID;
	if (!measures)
		options->measures[MEASURE_LATENCY] = options->measures[MEASURE_RATE] =
			options->measures[MEASURE_BANDWIDTH] = true;
	if (options->depths.count == 0)
		options->depths = (struct numbers){.count = 1};
	if (options->wildcards.count == 0)
		options->wildcards = (struct numbers){.count = 1};
	if (options->positions.count == 0)
		options->positions = (struct numbers){.count = 1, .items = {POSITION_LAST}};
	if (options->runs == 0)
		options->runs = options->raw || options->mode == MODE_CARD ? RUNS_TURNS : 1;
	if (options->pairs.count == 0)
		options->pairs = (struct numbers){.count = 1, .items = {1}};
	if (options->peers.count == 0)
		options->peers = (struct numbers){.count = 1, .items = {1}};
}

void options_parse(struct options *options, int count, char **words)
{
	struct option longs[ROWS + 1] = {{0}};
	char shorts[2 * ROWS + 2] = "";
	char names[1024];
	bool measures = false;
	uint64_t given = 0;
	int letter;

	*options = (struct options){.window = WINDOW_DEFAULT,
		.effort = {.seconds = SECONDS_DEFAULT, .warm_up = -1},
		.pid = PTL_PID_ANY};
	opterr = 0;
	tables_make(longs, shorts);
	while ((letter = getopt_long(count, words, shorts, longs, NULL)) != -1) {
		const struct option_row *row = row_of(letter);

		if (letter == ':')
			complain_usage("%s needs a value.", words[optind - 1]);
		if (!row) {
			names_list(names, sizeof(names));
			complain_usage(
				"%s is not an option; there are %s.", words[optind - 1], names);
		}
		given |= UINT64_C(1) << (row - rows);
		if (!option_plain(options, row->letter))
			option_value(options, row, optarg);
	}
	for (; optind < count; optind++) {
		measure_word(options, words[optind]);
		measures = true;
	}
	sides_check(options, given, measures);
	peers_check(options);
	pairs_check(options);
	library_check(options, given);
	defaults_choose(options, given, measures);
}
