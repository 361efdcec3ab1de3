/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-sim: runs simulated clusters of complete stacks, from seeds.
 *
 * A run that fails, or in which this program ends in whatever other way but SIGKILL, is named by
 * the command that replays it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <postern.h>

#include <apps/output.h>
#include <sim/scenario.h>

#define COMMAND_TEXT  (REPORT_COMMAND - 64)
#define FAILURES_TOLD 20

struct options {
	uint64_t seed;
	uint64_t seeds; /* 0: as many as the experiment says */
	bool twice;     /* each seed runs twice, and must give the same */
	bool json;
	bool each; /* a table per seed */
	struct scenario_options scenario;
};

static char command[COMMAND_TEXT]; /* without the seed */

static void usage(FILE *file)
{
	fprintf(file, "Usage: postern-sim [OPTION...] [EXPERIMENT]\n\n"
		      "Simulates nodes with complete Portals stacks on one switch, in simulated "
		      "time. A seed selects\n"
		      "a run: the same seed always gives the same run.\n\nExperiments:\n");
	for (const struct scenario *scenario = scenarios; scenario->name; scenario++)
		fprintf(file, "  %-10s %s\n", scenario->name, scenario->help);
	fprintf(file,
		"\nOptions:\n"
		"  --seed N         first seed (1)\n"
		"  --seeds N        how many seeds to run\n"
		"  --twice          run each seed twice and compare\n"
		"  --each           print the results of each seed, not only of all together\n"
		"  --json           print JSON\n"
		"  --trace          print every frame and every event\n"
		"  --expect         fail if incast, loss, latency or --cards is worse than "
		"promised,\n"
		"                   or if --adversary has repeated too few frames\n"
		"  --faults         all kinds of faults, each with a small probability\n"
		"  --unprotected    checksums cover only headers, so runs with --corrupt fail\n"
		"  --drop P, --burst P, --duplicate P, --reorder P, --corrupt P\n"
		"                   probability of a fault, per frame\n"
		"  --run N, --wait N\n"
		"                   a node has its CPU for about N ns (--run), then waits for "
		"about N "
		"ns (--wait)\n"
		"  --outstanding N  the most tasks that a node has in progress\n"
		"  --udp            frames in UDP/IPv4, which the switch marks\n"
		"  --nodes N        number of nodes\n"
		"  --tasks N        number of puts and gets of each node that issues any\n"
		"  --size N         largest message, bytes\n"
		"  --rate N         rate of the links, Gbit/s\n"
		"  --delay N        delay of each link, ns\n"
		"  --frame N        largest frame, bytes from the Ethernet header on\n"
		"  --cards P        each node begins with the addresses of all others; a share P "
		"of "
		"them is wrong\n"
		"  --silent N       N more processes ask the nodes for data, and never "
		"acknowledge it\n"
		"  --haste N        divides PTL_PEER_TIMEOUT, and the times after which streams "
		"and "
		"peers are forgotten, by N\n"
		"  --psns N         a stream to a peer ends after N frames\n"
		"  --adversary      an attacker on the links repeats earlier frames, and delays "
		"frames\n"
		"  --help           this text\n"
		"  --version        the library's version\n"
		"\nExit codes: 0 all went well, 1 a seed failed, 2 the options were wrong.\n");
}

enum {
	OPTION_SEED = 256,
	OPTION_SEEDS,
	OPTION_TWICE,
	OPTION_EACH,
	OPTION_JSON,
	OPTION_TRACE,
	OPTION_EXPECT,
	OPTION_FAULTS,
	OPTION_UNPROTECTED,
	OPTION_UDP,
	OPTION_DROP,
	OPTION_BURST,
	OPTION_DUPLICATE,
	OPTION_REORDER,
	OPTION_CORRUPT,
	OPTION_RUN,
	OPTION_WAIT,
	OPTION_OUTSTANDING,
	OPTION_NODES,
	OPTION_TASKS,
	OPTION_SIZE,
	OPTION_RATE,
	OPTION_DELAY,
	OPTION_FRAME,
	OPTION_CARDS,
	OPTION_SILENT,
	OPTION_HASTE,
	OPTION_PSNS,
	OPTION_ADVERSARY,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct option long_options[] = {
	{"seed", required_argument, NULL, OPTION_SEED},
	{"seeds", required_argument, NULL, OPTION_SEEDS},
	{"twice", no_argument, NULL, OPTION_TWICE},
	{"each", no_argument, NULL, OPTION_EACH},
	{"json", no_argument, NULL, OPTION_JSON},
	{"expect", no_argument, NULL, OPTION_EXPECT},
	{"trace", no_argument, NULL, OPTION_TRACE},
	{"faults", no_argument, NULL, OPTION_FAULTS},
	{"udp", no_argument, NULL, OPTION_UDP},
	{"unprotected", no_argument, NULL, OPTION_UNPROTECTED},
	{"drop", required_argument, NULL, OPTION_DROP},
	{"burst", required_argument, NULL, OPTION_BURST},
	{"duplicate", required_argument, NULL, OPTION_DUPLICATE},
	{"reorder", required_argument, NULL, OPTION_REORDER},
	{"corrupt", required_argument, NULL, OPTION_CORRUPT},
	{"run", required_argument, NULL, OPTION_RUN},
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"outstanding", required_argument, NULL, OPTION_OUTSTANDING},
	{"nodes", required_argument, NULL, OPTION_NODES},
	{"tasks", required_argument, NULL, OPTION_TASKS},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"delay", required_argument, NULL, OPTION_DELAY},
	{"frame", required_argument, NULL, OPTION_FRAME},
	{"cards", required_argument, NULL, OPTION_CARDS},
	{"silent", required_argument, NULL, OPTION_SILENT},
	{"haste", required_argument, NULL, OPTION_HASTE},
	{"psns", required_argument, NULL, OPTION_PSNS},
	{"adversary", no_argument, NULL, OPTION_ADVERSARY},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static void complain(const char *what, const char *text)
{
	fprintf(stderr, "postern-sim: %s \"%s\"; postern-sim --help lists the options.\n", what,
		text);
	exit(2);
}

static uint64_t number_read(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t number = strtoull(text, &end, 0);

	if (*text == '\0' || *text == '-' || *end != '\0' || number < least || number > most) {
		fprintf(stderr,
			"postern-sim: \"%s\" is no number from %" PRIu64 " to %" PRIu64
			" as this option takes; postern-sim --help lists the options.\n",
			text, least, most);
		exit(2);
	}
	return number;
}

static double probability_read(const char *text)
{
	char *end;
	double probability = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(probability >= 0 && probability < 1))
		complain("not a probability below 1", text);
	return probability;
}

static void command_add(const char *text)
{
	size_t used = strlen(command);

	snprintf(command + used, sizeof(command) - used, " %s", text);
}

static void option_take(struct options *options, int option)
{
	struct scenario_options *scenario = &options->scenario;

	switch (option) {
	case OPTION_SEED:
		options->seed = number_read(optarg, 0, UINT64_MAX - 1);
		return;
	case OPTION_SEEDS:
		options->seeds = number_read(optarg, 1, UINT64_MAX / 2);
		return;
	case OPTION_TWICE:
		options->twice = true;
		return;
	case OPTION_EACH:
		options->each = true;
		return;
	case OPTION_JSON:
		options->json = true;
		return;
	case OPTION_TRACE:
		scenario->tracing = true;
		return;
	case OPTION_EXPECT:
		scenario->expect = true;
		break;
	case OPTION_FAULTS:
		scenario->faults = true;
		break;
	case OPTION_UNPROTECTED:
		scenario->unprotected = true;
		break;
	case OPTION_UDP:
		scenario->udp = true;
		break;
	case OPTION_DROP:
		scenario->drop = probability_read(optarg);
		break;
	case OPTION_BURST:
		scenario->burst = probability_read(optarg);
		break;
	case OPTION_DUPLICATE:
		scenario->duplicate = probability_read(optarg);
		break;
	case OPTION_REORDER:
		scenario->reorder = probability_read(optarg);
		break;
	case OPTION_CORRUPT:
		scenario->corrupt = probability_read(optarg);
		break;
	case OPTION_RUN:
		scenario->slice_run = number_read(optarg, 1, UINT64_C(10000000000));
		break;
	case OPTION_WAIT:
		scenario->slice_wait = number_read(optarg, 1, UINT64_C(10000000000));
		break;
	case OPTION_OUTSTANDING:
		scenario->outstanding = (uint32_t)number_read(optarg, 1, 4096);
		break;
	case OPTION_NODES:
		scenario->nodes = (uint32_t)number_read(optarg, 2, 1000000);
		break;
	case OPTION_TASKS:
		scenario->tasks = number_read(optarg, 1, 100000000);
		break;
	case OPTION_SIZE:
		scenario->size = number_read(optarg, 1, 1 << 26);
		break;
	case OPTION_RATE:
		scenario->rate = number_read(optarg, 1, 1000) * 1000000000;
		break;
	case OPTION_DELAY:
		scenario->delay = number_read(optarg, 1, 1000000000);
		break;
	case OPTION_FRAME:
		scenario->frame = (uint32_t)number_read(optarg, 270, 65000);
		break;
	case OPTION_CARDS:
		scenario->cards = probability_read(optarg);
		break;
	case OPTION_SILENT:
		scenario->silent = (uint32_t)number_read(optarg, 1, 1000000);
		break;
	case OPTION_HASTE:
		scenario->haste = (uint32_t)number_read(optarg, 1, 1000);
		break;
	case OPTION_PSNS:
		scenario->stream_psns = (uint32_t)number_read(optarg, 1, 1 << 30);
		break;
	case OPTION_ADVERSARY:
		scenario->adversary = true;
		break;
	case OPTION_HELP:
		usage(stdout);
		exit(0);
	case OPTION_VERSION:
		printf("postern-sim %s\n", postern_version());
		exit(0);
	default:
		fprintf(stderr, "postern-sim --help lists the options.\n");
		exit(2);
	}
	/* Options that change the run belong to the command that replays it. */
	command_add("--");
	for (const struct option *row = long_options; row->name; row++)
		if (row->val == option)
			snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s",
				row->name);
	if (optarg)
		command_add(optarg);
}

/* The run that is under way when the program dies. */
static void replay_tell(void)
{
	static const char text[] = "\npostern-sim did not end its run\n  replay with: ";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
		write(STDERR_FILENO, report_replay, strlen(report_replay)) < 0 ||
		write(STDERR_FILENO, "\n", 1) < 0)
		_exit(3);
}

/* In whichever thread comes first: the process may be sent several signals at once. */
static void signalled(int number)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&told))
		return;
	replay_tell();
	signal(number, SIG_DFL);
	raise(number);
}

/* Sanitizers end a program without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void death_watch(void)
{
	static const int signals[] = {
		SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGHUP, SIGINT, SIGTERM};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], signalled);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(replay_tell);
}

/* Runs one seed. Returns false after a failure, which standard error describes. */
static bool seed_run(const struct options *options, const struct scenario *scenario, uint64_t seed,
	struct result *result)
{
	struct result again;

	snprintf(report_replay, sizeof(report_replay),
		"postern-sim%s --seed %" PRIu64 " --seeds 1 %s%s", command, seed,
		options->twice ? "--twice " : "", scenario->name);
	scenario_run(scenario, seed, &options->scenario, result);
	if (!result->failed && options->twice) {
		scenario_run(scenario, seed, &options->scenario, &again);
		if (again.hash != result->hash) {
			result->failed = 1;
			snprintf(result->failure, sizeof(result->failure),
				"the same seed gave two different runs: %016" PRIx64
				" and %016" PRIx64,
				result->hash, again.hash);
		}
	}
	if (!result->failed)
		return true;
	fprintf(stderr, "seed %" PRIu64 " failed %s\n  replay with: %s\n", seed, result->failure,
		report_replay);
	return false;
}

/* Has the adversary repeated enough frames that only the rule of first psns (wire.md, section 5)
 * keeps from being delivered again? 100 in 60 runs. */
static bool adversary_bites(const struct options *options, const struct result *total)
{
	if (!options->scenario.expect || !options->scenario.adversary ||
		60 * total->transport.dropped_again > 100 * total->runs)
		return true;
	fprintf(stderr, "no more than %" PRIu64 " frames would have been delivered again\n",
		(uint64_t)total->transport.dropped_again);
	return false;
}

static int experiment_run(const struct options *options, const struct scenario *scenario)
{
	uint64_t seeds = options->seeds ? options->seeds : scenario->seeds;
	struct result total = {0}, result;

	for (uint64_t i = 0; i < seeds && total.failed < FAILURES_TOLD; i++) {
		seed_run(options, scenario, options->seed + i, &result);
		report_add(&total, &result);
		if (options->each && seeds > 1 && !options->json)
			report_table(stdout, scenario->name, &result);
		report_progress(i + 1, seeds, total.failed, total.simulated);
	}
	report_progress_end();
	if (options->json)
		report_json(stdout, scenario->name, options->seed, &total);
	else
		report_table(stdout, scenario->name, &total);
	return total.failed || !adversary_bites(options, &total) ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options options = {
		.seed = 1,
		.scenario = {.cards = -1,
			.drop = -1,
			.burst = -1,
			.duplicate = -1,
			.reorder = -1,
			.corrupt = -1},
	};
	const struct scenario *scenario = &scenarios[0];
	int option;

	output_watch("postern-sim", 1);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		option_take(&options, option);
	if (optind < argc) {
		scenario = scenario_find(argv[optind]);
		if (!scenario)
			complain("there is no experiment", argv[optind]);
		if (optind + 1 < argc)
			complain("one experiment at a time, not also", argv[optind + 1]);
	}
	if (!options.scenario.slice_run != !options.scenario.slice_wait)
		complain("these belong together, one is missing:", "--run N --wait N");
	/* Frames and nodes are lost on purpose, so no user can follow the advice of a warning. */
	setenv("PTL_LOG_LEVEL", "error", 0);
	node_system_start();
	death_watch();
	return experiment_run(&options, scenario);
}
