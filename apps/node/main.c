/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - posternd: has a card or a kernel interface, through which any number of processes of any
 * number of users reach other machines. The work is done by pmd-glue/switch.c. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/log.h>
#include <base/port.h>
#include <base/remedy.h>
#include <base/report.h>
#include <base/settings.h>
#include <pmd-glue/clients.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/switch.h>
#include <postern.h>
#include <wire/encapsulation.h>

#include "../output.h"
#include "../parse.h"
#include "attest.h"

#define EXIT_USAGE       2
#define MODE_ALL         0666
#define MODE_GROUP       0660
#define RETURN_TIME      (5 * SECOND) /* for processes of an earlier posternd to call again */
#define PAGE             64u          /* processes in an answer */
#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

static const char help_text[] =
	"Usage: posternd --iface NAME [OPTION...]\n"
	"\n"
	"Opens a network card or a kernel interface, and serves all processes of this machine. "
	"They\n"
	"need no privilege, and find posternd by PTL_IFACE_NAME=NAME. Each has a process id and\n"
	"memory of its own. Frames with a forged sender are dropped. Users take turns at sending.\n"
	"\n"
	"NAME is a kernel interface (eth1), xdp:eth1, or the PCI address of a card. All processes\n"
	"have the same node id: PTL_NID, or one derived from the device's address. PTL_VLAN\n"
	"applies to all of them. posternd does not start with PTL_ENCAP=udp. A container needs\n"
	"the directory /run/postern: docker run -v /run/postern:/run/postern. If the container's\n"
	"network namespace has an interface NAME of its own, the container's processes use that\n"
	"interface, not posternd.\n"
	"\n"
	"A program of Portals 3.2 accepts only messages of its own user, until it calls\n"
	"PtlACEntry(ni, 0, anybody, PTL_UID_ANY, PTL_PT_INDEX_ANY), where anybody is\n"
	"{PTL_NID_ANY, PTL_PID_ANY}. In Portals 4, each list entry names the user whose messages\n"
	"it accepts, or PTL_UID_ANY. In MX, an endpoint accepts only messages of its own user.\n"
	"With PTL_LOG_LEVEL=info a program reports the processes whose messages it drops.\n"
	"\n"
	"At most 1,024 processes can be connected, and at most 256 of one user. A user also\n"
	"never has more processes than there are free places for the others. --per-user lowers\n"
	"the limit of 256. With --group, only root and members of a group can use posternd.\n"
	"A user with subordinate ids (/etc/subuid) can take the places of many users, because\n"
	"each user id counts as a user; do not admit such users unless you trust them.\n"
	"\n"
	"A user can make posternd hold as many descriptors as the user's limit of open files\n"
	"(ulimit -Hn) allows. If posternd's limit is no higher, such a user can keep new\n"
	"processes out. LimitNOFILE of postern-node@.service sets it to 1048576.\n"
	"\n"
	"posternd can be ended and started again at any time. Processes connect again, and\n"
	"retransmit messages in flight.\n"
	"\n"
	"  -i, --iface NAME    the card or the interface\n"
	"  -g, --group GROUP   only root and members of this group may use it; otherwise all may\n"
	"  -u, --per-user N    the most processes of one user: 1 to 256\n"
	"  -m, --mtu N         bytes in a frame; otherwise as many as the device takes\n"
	"  -c, --capture FILE  write all frames of the device into this pcapng file\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"dpdk-telemetry.py shows what posternd has counted (/posternd/counters) and the processes\n"
	"from number FIRST on (/posternd/processes,FIRST). SIGTERM and SIGINT end posternd.\n"
	"\n"
	"Exit codes: 0 ended by a signal; 1 the device cannot be opened; 2 the options were "
	"wrong.\n";

static const struct option long_options[] = {
	{"iface", required_argument, NULL, 'i'},
	{"group", required_argument, NULL, 'g'},
	{"per-user", required_argument, NULL, 'u'},
	{"mtu", required_argument, NULL, 'm'},
	{"capture", required_argument, NULL, 'c'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *iface;
	gid_t group;        /* (gid_t)-1: all may */
	uint64_t mtu;       /* 0: the device's own */
	uint64_t user_most; /* processes of a user; 0: as many as the switch has */
};

/* For signals and telemetry, which have no argument. */
static struct switch_state *the_switch;

static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
	va_list arguments;

	fputs("posternd: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static _Noreturn void usage(void)
{
	fputs("posternd --help lists the options.\n", stderr);
	exit(EXIT_USAGE);
}

static gid_t group_read(const char *name)
{
	const struct group *group = getgrnam(name);
	uint64_t number;

	if (group)
		return group->gr_gid;
	if (parse_number(name, UINT32_MAX - 1, &number))
		return (gid_t)number;
	tell("--group: there is no group \"%s\": make it by groupadd", name);
	usage();
}

static void option_take(int letter, char *value, struct options *options)
{
	switch (letter) {
	case 'i':
		options->iface = value;
		break;
	case 'g':
		options->group = group_read(value);
		break;
	case 'u':
		if (!parse_number(value, CLIENTS_OF_USER, &options->user_most) ||
			options->user_most == 0) {
			tell("--per-user takes a number from 1 to %u, not \"%s\"", CLIENTS_OF_USER,
				value);
			usage();
		}
		break;
	case 'm':
		if (!parse_number(value, PORT_MTU_MAX, &options->mtu) ||
			options->mtu < PORT_MTU_MIN) {
			tell("--mtu takes a number from %u to %u, not \"%s\"", PORT_MTU_MIN,
				PORT_MTU_MAX, value);
			usage();
		}
		break;
	case 'c':
		setenv("PTL_CAPTURE", value, 1);
		break;
	case 'h':
		fputs(help_text, stdout);
		exit(0);
	case 'V':
		printf("posternd %s\n", VERSION(POSTERN_VERSION_MAJOR, POSTERN_VERSION_MINOR,
						POSTERN_VERSION_PATCH));
		exit(0);
	default:
		usage();
	}
}

static void options_read(int count, char **words, struct options *options)
{
	int letter;

	while ((letter = getopt_long(count, words, "i:g:u:m:c:hV", long_options, NULL)) != -1)
		option_take(letter, optarg, options);
	if (optind < count) {
		tell("\"%s\" is not an option: to name a device, give --iface NAME", words[optind]);
		usage();
	}
	if (!options->iface) {
		tell("which device? Give --iface NAME");
		usage();
	}
}

/* --- telemetry --- */

static void counters_tell(struct report *report, const struct switch_count *count)
{
	static const char *const dropped[] = {[SWITCH_FINE] = NULL,
#define X(constant, name) [constant] = "dropped_" name,
		SWITCH_DROPS(X)
#undef X
	};
	static const char *const refused[] = {[CLIENT_WELCOME] = NULL,
#define X(constant, name) [constant] = "refused_" name,
		CLIENT_REFUSALS(X)
#undef X
	};

	report_number(report, "users", count->users);
	report_number(report, "processes", count->processes);
	report_number(report, "frames_from_port", count->from_port);
	report_number(report, "frames_to_port", count->to_port);
	report_number(report, "frames_between_processes", count->between);
	report_number(report, "frames_for_nobody_here", count->unknown);
	report_number(report, "frames_processes_did_not_take", count->full);
	report_number(report, "frames_port_did_not_take", count->lost);
	report_number(report, "answers_for_absent_processes", count->farewells);
	report_number(report, "users_rested", count->rested);
	for (unsigned n = 1; n < SWITCH_VERDICTS; n++)
		report_number(report, dropped[n], count->dropped[n]);
	for (unsigned n = 1; n < CLIENT_VERDICTS; n++)
		report_number(report, refused[n], count->refused[n]);
	report_number(report, "refused_broke_rules", count->broken);
}

static void processes_tell(
	struct report *report, const struct switch_process *processes, unsigned count)
{
	report_array(report, "processes");
	for (unsigned n = 0; n < count; n++) {
		report_object(report, NULL);
		report_number(report, "pid", processes[n].pid);
		report_number(report, "uid", processes[n].uid);
		report_number(report, "system_pid", (uint64_t)processes[n].process);
		report_number(report, "frames_sent", processes[n].sent);
		report_number(report, "frames_received", processes[n].received);
		report_number(report, "dropped", processes[n].dropped);
		report_number(report, "not_taken", processes[n].full);
		report_close(report);
	}
	report_close(report);
}

static void telemetry_tell(const char *command, const char *parameters, struct report *report)
{
	struct switch_process processes[PAGE];
	struct switch_count count;
	uint64_t first = 0;
	int found;

	if (parameters[0] && !parse_number(parameters, UINT32_MAX, &first)) {
		report_text(report, "error", "the parameter is the number of the first process");
		return;
	}
	found = switch_look(the_switch, &count, processes, (unsigned)first, PAGE);
	if (found < 0)
		report_text(report, "error", "posternd is stopped or overloaded: ask again");
	else if (strcmp(command, "/posternd/counters") == 0)
		counters_tell(report, &count);
	else
		processes_tell(report, processes, (unsigned)found);
}

/* --- running --- */

static void stop(int number)
{
	int error = errno;

	(void)number;
	switch_stop(the_switch);
	errno = error;
}

static void signals_take(void)
{
	const struct sigaction action = {.sa_handler = stop};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Opens the device, which hears all that is for this node. NULL after an error line. */
static struct switch_state *open_all(const struct options *options)
{
	struct encapsulation_options outer = {
		.vlan = (uint16_t)setting_number_item(SETTING_VLAN, 0, 0)};
	static char primary[KERNEL_NAME_ROOM];
	const char *name = kernel_primary(options->iface, primary, sizeof(primary));
	struct switch_options wanted = {.name = name,
		.vlan = outer.vlan,
		.mode = options->group == (gid_t)-1 ? MODE_ALL : MODE_GROUP,
		.group = options->group,
		.user_most = (unsigned)options->user_most,
		.attest = attest,
		.farewell = farewell,
		.return_time = RETURN_TIME};
	struct port_selection selection;
	struct switch_state *state;

	if (setting_is(SETTING_ENCAP, "udp")) {
		tell("PTL_ENCAP=udp does not go through posternd: unset it");
		return NULL;
	}
	wanted.port = glue_card_open(name, (uint32_t)options->mtu);
	if (!wanted.port)
		return NULL;
	wanted.nid = (uint32_t)setting_number_item(SETTING_NID, 0, glue_port_nid(wanted.port, 0));
	encapsulation_select(&outer, wanted.nid, 0, &selection);
	selection.any_process = true;
	wanted.at = selection.at;
	wanted.ethertype = selection.ethertype;
	if (wanted.port->operations->select)
		wanted.port->operations->select(wanted.port, &selection);
	state = switch_open(&wanted);
	if (!state)
		wanted.port->operations->close(wanted.port);
	else
		printf("posternd has %s as node %u, with frames of %u bytes\n", options->iface,
			wanted.nid, wanted.port->frame_size);
	return state;
}

int main(int count, char **words)
{
	struct options options = {.group = (gid_t)-1};

	output_watch("posternd", EXIT_FAILURE);
	options_read(count, words, &options);
	remedy_files_take();
	setenv("PTL_IFACE_NAME", options.iface, 1); /* settings for interface 0 are this one's */
	if (settings_load() != 0)
		return EXIT_FAILURE;
	the_switch = open_all(&options);
	if (!the_switch)
		return EXIT_FAILURE;
	signals_take();
	(void)glue_telemetry_add(
		"/posternd/counters", "What posternd has forwarded and dropped.", telemetry_tell);
	(void)glue_telemetry_add("/posternd/processes",
		"Processes at posternd. Parameter: the first one's number.", telemetry_tell);
	glue_thread_enter();
	(void)output_flush();
	switch_run(the_switch);
	switch_close(the_switch);
	return 0;
}
