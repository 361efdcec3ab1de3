/* SPDX-License-Identifier: BSD-3-Clause */
/* card.c - see card.h.
 *
 * Each exchange is run by two programs of their own, a server and a client, each kept on one CPU:
 * two of this program, on a node that nobody else has, or two of postern-perf-sockets. Both sides
 * of a ratio run in turns, so that what else the machine does meets both alike. Postern has its
 * default settings, as a program has them that sets nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pmd-glue/directory.h>
#include <postern.h>

#include "../output.h"
#include "card.h"
#include "commit.h"
#include "complain.h"
#include "leave.h"
#include "library.h"
#include "machine.h"

#define OWN_PROGRAM  "/proc/self/exe"
#define NODE         "card-" /* and the process id of this process */
#define TEXT_ROOM    16384   /* what a child prints */
#define WORDS_MAX    24
#define LOAD_OF_CPUS 0.25 /* the load of a machine that is idle, by CPU, at most */

enum side { SIDE_POSTERN, SIDE_OTHER, SIDES };

static const struct row {
	const char *title;
	const char *other; /* whose figure the second is */
	const char *unit;
	const char *key[SIDES]; /* of the figure, in what the programs print */
	double scale;           /* that the figure is multiplied by */
	bool less;              /* is better */
	const char *size;
	const char *measure; /* of postern-perf */
	const char *mode;    /* of postern-perf-sockets, ... */
	const char *shape;   /* ... and what it measures; NULL: --raw has the other side */
} rows[] = {
	{"8 bytes, one way", "TCP, polling", "us", {"\"p50\": ", "\"p50_ns\": "}, 1e-3, true, "8",
		"latency", "poll", "latency"},
	{"8 bytes, one way", "TCP, blocking", "us", {"\"p50\": ", "\"p50_ns\": "}, 1e-3, true, "8",
		"latency", "block", "latency"},
	{"8-byte messages a second, a call each", "TCP, polling", "million",
		{"\"messages_per_second\": ", "\"messages_per_second\": "}, 1e-6, false, "8",
		"rate", "poll", "stream"},
	{"64 KiB messages, bandwidth", "TCP, polling", "GB/s",
		{"\"bytes_per_second\": ", "\"bytes_per_second\": "}, 1e-9, false, "65536",
		"bandwidth", "poll", "stream"},
	{"1 MiB messages, bandwidth", "bare frames", "GB/s", {"\"bytes_per_second\": ", NULL}, 1e-9,
		false, "1048576", "bandwidth", NULL, NULL},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct figures {
	unsigned count; /* of rounds */
	double values[SIDES][RUNS_MAX];
	double ratios[RUNS_MAX];
};

struct card {
	unsigned cpus[2]; /* the client's, the server's */
	unsigned allowed; /* CPUs */
	unsigned rounds;
	char seconds[32];
	char sockets[LIBRARY_PATH_ROOM]; /* the program */
	struct figures figures[ROWS];
};

/* --- children --- */

struct child {
	pid_t pid;
	FILE *out;
};

static _Noreturn void child_run(
	const char *program, const char *const *words, unsigned cpu, int out)
{
	sigset_t none; /* leave_on_signals() has blocked some here */
	cpu_set_t set;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (sched_setaffinity(0, sizeof(set), &set) != 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(EXIT_RUN);
	execv(program, (char *const *)(uintptr_t)words);
	fprintf(stderr, "postern-perf: %s cannot be started: %s.\n", program, strerror(errno));
	_exit(EXIT_RUN);
}

static struct child child_start(const char *program, const char *const *words, unsigned cpu)
{
	struct child child = {0};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0 || (child.pid = fork()) < 0)
		complain("no process can be started: %s.", strerror(errno));
	if (child.pid == 0)
		child_run(program, words, cpu, ends[1]);
	close(ends[1]);
	child.out = fdopen(ends[0], "r");
	if (!child.out)
		complain("there is no memory for a process.");
	return child;
}

static bool child_end(struct child *child)
{
	int status = 0;

	fclose(child->out);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What a client prints, all of it. */
static void client_read(const char *program, const char *const *words, unsigned cpu, char *text)
{
	struct child client = child_start(program, words, cpu);
	size_t length = fread(text, 1, TEXT_ROOM - 1, client.out);

	text[length] = '\0';
	if (!child_end(&client))
		complain("a measurement of the card has failed; see above.");
}

/* Starts a server, and leaves the line that says it serves in text. */
static struct child server_start(
	const char *program, const char *const *words, unsigned cpu, char *text)
{
	struct child server = child_start(program, words, cpu);

	if (!fgets(text, TEXT_ROOM, server.out))
		complain("a server of the card has ended; see above.");
	return server;
}

/* --- exchanges --- */

static double figure_find(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		complain("a measurement of the card has no %s.", key);
	return strtod(at + strlen(key), NULL);
}

static void word_add(const char **words, const char *word)
{
	while (*words)
		words++;
	*words = word;
}

static void exchange_postern(const struct card *card, const struct row *row, char *text)
{
	char runs[16];
	const char *server_words[] = {"postern-perf", "--server", "--once", NULL};
	const char *words[WORDS_MAX] = {"postern-perf", "--peer", "1:1", "--json", "--time",
		card->seconds, "--sizes", row->size};
	struct child server;

	if (!row->shape) {
		snprintf(runs, sizeof(runs), "%u", card->rounds);
		word_add(words, "--raw");
		word_add(words, "--repeat");
		word_add(words, runs);
	}
	word_add(words, row->measure);
	server = server_start(OWN_PROGRAM, server_words, card->cpus[1], text);
	client_read(OWN_PROGRAM, words, card->cpus[0], text);
	child_end(&server);
}

static void exchange_sockets(const struct card *card, const struct row *row, char *text)
{
	const char *program = "postern-perf-sockets";
	const char *address = "127.0.0.1";
	char port[16];
	const char *server_words[] = {program, "--server", address, "0", NULL};
	const char *words[] = {program, address, port, "tcp", row->mode, row->shape, row->size,
		"64", card->seconds, NULL};
	struct child server = server_start(card->sockets, server_words, card->cpus[1], text);

	snprintf(port, sizeof(port), "%.0f", figure_find(text, "port "));
	client_read(card->sockets, words, card->cpus[0], text);
	kill(server.pid, SIGTERM);
	child_end(&server);
}

/* One round of a row; --raw has gone through all rounds itself. */
static void row_measure(const struct card *card, const struct row *row, struct figures *figures)
{
	static char text[TEXT_ROOM];
	unsigned round = figures->count++;
	double postern;
	double other;

	exchange_postern(card, row, text);
	postern = figure_find(text, row->key[SIDE_POSTERN]) * row->scale;
	if (row->shape) {
		exchange_sockets(card, row, text);
		other = figure_find(text, row->key[SIDE_OTHER]) * row->scale;
	} else {
		other = postern / figure_find(text, "\"ratio\": ");
	}
	figures->values[SIDE_POSTERN][round] = postern;
	figures->values[SIDE_OTHER][round] = other;
	figures->ratios[round] = row->less ? other / postern : postern / other;
}

/* --- the machine --- */

/* Is the CPU a thread of the same core? */
static bool same_core(unsigned cpu, unsigned other)
{
	char path[128];
	char list[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		cpu);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(list, sizeof(list), file))
		list[0] = '\0';
	fclose(file);
	for (char *at = list; *at != '\0'; at += strspn(at, ",\n")) {
		unsigned long first = strtoul(at, &at, 10);
		unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;

		if (other >= first && other <= last)
			return true;
		at += strcspn(at, ",");
	}
	return false;
}

/* The first CPU that this process may use, and the first of another core, or else of the same. */
static void cpus_choose(struct card *card, const struct options *options)
{
	unsigned found = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	card->allowed = (unsigned)CPU_COUNT(&set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		if (found == 0 || found == 1)
			card->cpus[found++] = cpu;
		else if (same_core(card->cpus[0], card->cpus[1]))
			card->cpus[1] = cpu;
	}
	if (options->core_count > 0 && options->core_count != 2)
		complain_usage(
			"--card takes two CPUs with --cores, the client's and the server's.");
	for (unsigned i = 0; i < options->core_count; i++) {
		card->cpus[i] = options->cores[i];
		if (card->cpus[i] >= CPU_SETSIZE || !CPU_ISSET(card->cpus[i], &set))
			complain_usage("--cores %u: this process may not use that CPU; taskset -p "
				       "$$ shows those that it may use.",
				card->cpus[i]);
	}
	if (card->allowed < 2 || card->cpus[0] == card->cpus[1])
		complain("--card needs two CPUs, one for each process, and this process may "
			 "use only one; taskset -p $$ shows which.");
}

/* Settings of the user would make the figures those of another machine. */
static void settings_choose(void)
{
	char node[64];

	for (char **word = environ; *word;)
		if (strncmp(*word, "PTL_", strlen("PTL_")) == 0) {
			char name[128];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(*word, "="), *word);
			unsetenv(name);
			word = environ;
		} else {
			word++;
		}
	snprintf(node, sizeof(node), "node:" NODE "%ld", (long)getpid());
	setenv("PTL_IFACE_NAME", node, 1);
	setenv("PTL_NID", "1", 1);
}

static double load_now(void)
{
	double load = 0;

	return getloadavg(&load, 1) == 1 ? load : 0;
}

static void head_print(const struct card *card, double load)
{
	time_t now = time(NULL);
	struct utsname name;
	struct tm utc;
	char text[256];

	printf("# postern-perf --card: messages between two processes of this machine\n");
	machine_cpu(text, sizeof(text));
	uname(&name);
	printf("# cpu      %s; CPUs %u and %u of %u\n", text, card->cpus[0], card->cpus[1],
		card->allowed);
	printf("# kernel   %.40s %.60s\n", name.sysname, name.release);
	printf("# postern  %s, commit %s, %s\n", postern_version(), PERF_COMMIT, PERF_BUILD);
	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &utc);
	printf("# date     %s; %u rounds in turns, medians\n", text, card->rounds);
	printf("# load     %.2f before the first round%s\n", load,
		load > LOAD_OF_CPUS * card->allowed ? ": other programs were running, so these "
						      "ratios are less reliable than those of an "
						      "idle machine"
						    : "");
	printf("#\n# %-40s %-16s %-21s %5s   lowest and highest round\n", "", "Postern", "other",
		"ratio");
	(void)output_flush();
}

/* --- the table --- */

static int double_compare(const void *one, const void *other)
{
	double a = *(const double *)one;
	double b = *(const double *)other;

	return (a > b) - (a < b);
}

/* Sorts them. */
static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), double_compare);
	return values[count / 2];
}

static void row_print(const struct row *row, struct figures *figures)
{
	double ratio = median(figures->ratios, figures->count);

	printf("  %-40s %-7.3g %-8s %-7.3g %-13s %5.3g", row->title,
		median(figures->values[SIDE_POSTERN], figures->count), row->unit,
		median(figures->values[SIDE_OTHER], figures->count), row->other, ratio);
	if (figures->count > 1)
		printf("   %.3g to %.3g", figures->ratios[0], figures->ratios[figures->count - 1]);
	putchar('\n');
	(void)output_flush();
}

int card_print(const struct options *options)
{
	static struct card card;

	card.rounds = options->runs;
	snprintf(card.seconds, sizeof(card.seconds), "%g", options->effort.seconds);
	library_path(card.sockets, sizeof(card.sockets), "postern-perf-sockets");
	cpus_choose(&card, options);
	settings_choose();
	directory_remove_numbered(NODE); /* of runs that were killed */
	head_print(&card, load_now());
	for (unsigned round = 0; round < card.rounds; round++)
		for (unsigned i = 0; i < ROWS; i++)
			if (rows[i].shape || round == 0)
				row_measure(&card, &rows[i], &card.figures[i]);
	for (unsigned i = 0; i < ROWS; i++)
		row_print(&rows[i], &card.figures[i]);
	directory_remove_numbered(NODE);
	printf("# load     %.2f after the last round\n"
	       "# The ratio says how many times better Postern is. In the last row it is the "
	       "bandwidth of messages relative to\n# that of bare frames on the same port.\n",
		load_now());
	return 0;
}
