/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - postern-run: starts the processes of a job, by itself on this machine, by Hydra on
 * several. */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmd-glue/directory.h>
#include <postern.h>

#include "../output.h"
#include "../parse.h"
#include "hydra.h"
#include "job.h"

#define JOB_NODE         "job-" /* and the process id */
#define NAME_BYTES       32
#define PORT_MAX         65535
#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

static const char help_text[] =
	"Usage: postern-run -n N [OPTION...] PROGRAM [ARGUMENT...]\n"
	"\n"
	"Starts N processes of a program as a job: each gets its rank, the number of ranks and\n"
	"the addresses of the others by postern_job_join() and postern_job_address(), or by PMI\n"
	"version 1 (PMI_FD, PMI_RANK, PMI_SIZE). If PTL_IFACE_NAME is not set, the processes get\n"
	"a node of their own, node:job-PID with the process id of postern-run. Rank 0 has the\n"
	"standard input of postern-run, the others have none. Start programs of Open MPI by\n"
	"mpirun or srun instead; here each of their processes would be a job of its own.\n"
	"\n"
	"The job ends when all its processes have ended. If one fails, the others are ended by\n"
	"SIGTERM, and after two seconds by SIGKILL. A process fails if its exit code is not 0, if\n"
	"a signal ends it, if it ends without postern_job_leave() after postern_job_join(), or if\n"
	"it ends while others wait at a barrier. If a process aborts the job by PMI, its exit\n"
	"code becomes that of the job, even if it is 0.\n"
	"\n"
	"  -n, --number N      number of processes, 1 to 1024\n"
	"  -l, --label         write the rank before each line of output\n"
	"  -H, --hosts LIST    start them on these hosts, such as a,b or a:4,b:4, by "
	"mpiexec.hydra\n"
	"                      of Debian's package mpich, which uses ssh without a password; if\n"
	"                      PTL_IFACE_NAME is not set, the processes use UDP sockets (udp)\n"
	"  -m, --meet HOST:PORT\n"
	"                      start one rank of a job whose ranks are started one by one, by\n"
	"                      ssh, Kubernetes or torchrun; rank 0 listens at this address of\n"
	"                      its host; if PTL_IFACE_NAME is not set, they use UDP sockets\n"
	"  -r, --rank R        with --meet: the rank. Without -r it is RANK, SLURM_PROCID or\n"
	"                      JOB_COMPLETION_INDEX of the environment; for N, WORLD_SIZE\n"
	"                      or SLURM_NTASKS\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"Exit codes: 0 all processes ended with 0; otherwise that of the process that failed "
	"first,\n"
	"or 128 and the number of the signal that ended it; 1 another failure of the job; 2 the\n"
	"options were wrong; 126 the program cannot be started; 127 it does not exist.\n";

static const struct option long_options[] = {
	{"number", required_argument, NULL, 'n'},
	{"label", no_argument, NULL, 'l'},
	{"hosts", required_argument, NULL, 'H'},
	{"meet", required_argument, NULL, 'm'},
	{"rank", required_argument, NULL, 'r'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct options {
	struct job_options job;
	const char *number, *rank;
	char *hosts; /* NULL: this machine alone */
};

static _Noreturn void usage(void)
{
	fputs("postern-run --help lists the options.\n", stderr);
	exit(EXIT_USAGE);
}

static void option_take(int letter, char *value, struct options *options)
{
	switch (letter) {
	case 'n':
		options->number = value;
		break;
	case 'l':
		options->job.label = true;
		break;
	case 'H':
		options->hosts = value;
		break;
	case 'm':
		options->job.meet = value;
		break;
	case 'r':
		options->rank = value;
		break;
	case 'h':
		fputs(help_text, stdout);
		exit(0);
	case 'V':
		printf("postern-run %s\n", VERSION(POSTERN_VERSION_MAJOR, POSTERN_VERSION_MINOR,
						   POSTERN_VERSION_PATCH));
		exit(0);
	default:
		usage();
	}
}

/* The first of some variables that is set; NULL: none. */
static const char *variable(const char *const *names)
{
	const char *text = NULL;

	for (; *names && !text; names++)
		text = getenv(*names);
	return text;
}

/* getaddrinfo() takes any port, and the kernel another one for 0. */
static void meet_check(const char *meet)
{
	const char *colon = strrchr(meet, ':');
	uint64_t port;

	if (colon && parse_number(colon + 1, PORT_MAX, &port) && port > 0)
		return;
	job_tell("--meet takes HOST:PORT with a port from 1 to %u, not \"%s\"", PORT_MAX, meet);
	usage();
}

/* --hosts takes names, each perhaps with a number of processes. Hydra runs all here without a name,
 * is ended by a signal for 0 processes, and a name with a dash is an option to ssh. */
static void hosts_check(const char *hosts)
{
	for (const char *at = hosts;; at++) {
		size_t length = strcspn(at, ",:");
		bool is_good = length > 0 && at[0] != '-';
		uint64_t number = 1;

		at += length;
		if (*at == ':') {
			at++;
			is_good &= parse_digits(&at, RANKS_MAX, &number);
		}
		if (is_good && number > 0 && *at == '\0')
			return;
		if (is_good && number > 0 && *at == ',')
			continue;
		job_tell("--hosts takes a list such as a,b or a:4,b:4, not \"%s\"", hosts);
		usage();
	}
}

/* What the environment of a rank says where options do not. */
static void meet_read(struct options *options)
{
	static const char *const ranks[] = {"RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX", NULL};
	static const char *const sizes[] = {"WORLD_SIZE", "SLURM_NTASKS", NULL};

	if (!options->rank)
		options->rank = variable(ranks);
	if (!options->number)
		options->number = variable(sizes);
	if (options->hosts) {
		job_tell("--meet and --hosts exclude each other");
		usage();
	}
	meet_check(options->job.meet);
	if (!options->rank) {
		job_tell("which rank is to be started? Give --rank R");
		usage();
	}
}

/* The rank is less than the size, which is known. */
static void rank_read(struct options *options)
{
	uint64_t number;

	if (!parse_number(options->rank, options->job.size - 1, &number)) {
		job_tell("--rank takes a number from 0 to %u, not \"%s\"", options->job.size - 1,
			options->rank);
		usage();
	}
	options->job.rank = (unsigned)number;
}

static void options_read(int count, char **words, struct options *options)
{
	uint64_t number;
	int letter;

	/* +: words after the program's name are the program's. */
	while ((letter = getopt_long(count, words, "+n:lH:m:r:hV", long_options, NULL)) != -1)
		option_take(letter, optarg, options);
	options->job.words = words + optind;
	if (options->hosts)
		hosts_check(options->hosts);
	if (options->job.meet)
		meet_read(options);
	else if (options->rank) {
		job_tell("--rank goes with --meet");
		usage();
	}
	if (!options->number) {
		job_tell("how many processes are to be started? Give -n N");
		usage();
	}
	if (!parse_number(options->number, RANKS_MAX, &number) || number == 0) {
		job_tell("-n takes a number from 1 to %u, not \"%s\"", RANKS_MAX, options->number);
		usage();
	}
	options->job.size = (unsigned)number;
	if (options->job.meet)
		rank_read(options);
	if (optind == count) {
		job_tell("which program is to be started?");
		usage();
	}
}

static bool is_node(const char *port)
{
	static const char node[] = "node";
	const char *rest = port + strlen(node);

	return strncmp(port, node, strlen(node)) == 0 &&
	       (*rest == '\0' || *rest == ':' || isspace((unsigned char)*rest));
}

/* Processes on several hosts need a network. */
static void hosts_network(void)
{
	const char *port = parse_setting("PTL_IFACE_NAME");

	if (port && is_node(port)) {
		job_tell("PTL_IFACE_NAME is %s, but processes on several hosts need a network: "
			 "unset it, or set it to one that all of them have, such as udp or eth1",
			port);
		usage();
	}
	/* Hydra gives its environment to all processes. */
	if (!port)
		setenv("PTL_IFACE_NAME", "udp", 1);
}

int main(int count, char **words)
{
	struct options options = {0};
	char name[NAME_BYTES], port[NAME_BYTES + 8];
	const bool given = parse_setting("PTL_IFACE_NAME") != NULL;
	int code;

	output_watch("postern-run", EXIT_FAILURE);
	options_read(count, words, &options);
	if (options.hosts) {
		hosts_network();
		return hydra_run(&options.job, options.hosts, count - optind);
	}
	snprintf(name, sizeof(name), JOB_NODE "%d", (int)getpid());
	snprintf(port, sizeof(port), "node:%s", name);
	if (options.job.meet && !given)
		setenv("PTL_IFACE_NAME", "udp", 1);
	if (options.job.meet || given)
		return job_run(&options.job);
	setenv("PTL_IFACE_NAME", port, 1);
	directory_remove_numbered(JOB_NODE); /* of those that were killed */
	code = job_run(&options.job);
	directory_remove(name);
	return code;
}
