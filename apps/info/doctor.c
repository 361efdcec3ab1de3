/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - see doctor.h: the table of checks, and their results as text. */
#include "doctor.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/settings.h>
#include <pmd-glue/kernel.h>

#include "../json.h"
#include "../parse.h"
#include "../setting.h"

#define EXIT_USAGE 2

static const struct {
	const char *name;
	void (*look)(struct doctor *doctor);
	bool live; /* opens interfaces: not with --root */
} checks[] = {
	{"cores", check_cores, false},
	{"poll core", check_poll_core, false},
	{"isolation", check_isolation, false},
	{"siblings", check_siblings, false},
	{"governor", check_governor, false},
	{"hugepages", check_hugepages, false},
	{"numa", check_numa, false},
	{"driver", check_driver, false},
	{"iommu", check_iommu, false},
	{"permissions", check_permissions, false},
	{"limits", check_limits, false},
	{"kernel", check_kernel, false},
	{"link", check_link, false},
	{"node", check_node, true}, /* opening an interface sweeps */
	{"interface", check_interfaces, true},
};

static const char *const level_names[] = {"ok", "warning", "failure"};

static const char help_text[] =
	"Usage: postern-info doctor [OPTION...] [NID:PID ...]\n"
	"\n"
	"Looks for obstacles to Postern on this machine, with the settings of this environment.\n"
	"It checks the CPU cores, hugepages, NUMA, driver, IOMMU, permissions, limits, kernel\n"
	"settings, links and the directory of the node. Then it opens each interface, and checks\n"
	"for one second whether another process uses the same id. It asks the processes NID:PID\n"
	"for an echo, and finds the largest frame that reaches them.\n"
	"\n"
	"Each finding is ok, a warning or a failure. The commands below a finding correct it "
	"(fix),\n"
	"or improve what works already (optional).\n"
	"\n"
	"  -p, --pid PID    Portals process id that the interfaces take (default: one that is "
	"free)\n"
	"  -j, --json       one JSON object\n"
	"      --root DIR   for tests: the kernel's files are looked for below DIR, and no "
	"interface is\n"
	"                   opened\n"
	"  -h, --help       this text\n"
	"\n"
	"Exit codes: 0 nothing fails, 1 something does, 2 the options were wrong.\n";

void doctor_find(struct doctor *doctor, enum level level, const char *format, ...)
{
	struct finding *finding;
	va_list arguments;

	doctor->findings =
		realloc(doctor->findings, (doctor->finding_count + 1) * sizeof(*doctor->findings));
	if (!doctor->findings)
		abort();
	finding = &doctor->findings[doctor->finding_count++];
	*finding = (struct finding){.check = doctor->check, .level = level};
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}

/* Root needs no sudo, and many containers have none. */
static void sudo_remove(char *commands)
{
	static const char word[] = "sudo ";

	for (char *at = commands; (at = strstr(at, word));)
		memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

void doctor_fix(struct doctor *doctor, const char *format, ...)
{
	struct finding *finding = &doctor->findings[doctor->finding_count - 1];
	char *before = finding->fix, *added;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&added, format, arguments) < 0)
		abort();
	va_end(arguments);
	if (asprintf(&finding->fix, "%s%s%s", before ? before : "", before ? "\n" : "", added) < 0)
		abort();
	free(before);
	free(added);
	if (geteuid() == 0)
		sudo_remove(finding->fix);
}

bool doctor_has(const struct doctor *doctor, enum kind kind)
{
	for (unsigned i = 0; i < doctor->interface_count; i++)
		if (doctor->interfaces[i].kind == kind)
			return true;
	return false;
}

/* --- what the settings say */

static bool is_pci(const char *name)
{
	unsigned domain, bus, device, function;
	int end = 0;

	if (sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 &&
		name[end] == '\0')
		return true;
	return sscanf(name, "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3 &&
	       name[end] == '\0';
}

static void interface_sort(struct doctor_interface *interface)
{
	const char *name = interface->name;

	snprintf(interface->device, sizeof(interface->device), "%s", name);
	if (name[0] == '\0' || strncmp(name, "loop:", 5) == 0) {
		interface->kind = KIND_LOOP;
	} else if (strcmp(name, "node") == 0 || strncmp(name, "node:", 5) == 0) {
		interface->kind = KIND_NODE;
		snprintf(interface->device, sizeof(interface->device), "%s",
			name[4] == ':' ? name + 5 : "");
	} else if (strcmp(name, "udp") == 0 || strncmp(name, "udp:", 4) == 0) {
		struct in_addr address;
		bool device = name[3] == ':' && !strchr(name + 4, ':') &&
			      inet_pton(AF_INET, name + 4, &address) != 1;
		interface->kind = KIND_UDP;
		snprintf(
			interface->device, sizeof(interface->device), "%s", device ? name + 4 : "");
	} else if (strncmp(name, "xdp:", 4) == 0) {
		interface->kind = KIND_XDP;
		snprintf(interface->device, sizeof(interface->device), "%s", name + 4);
	} else if (is_pci(name)) {
		interface->kind = KIND_PCI;
		if (strlen(name) < strlen("0000:00:00.0"))
			snprintf(interface->device, sizeof(interface->device), "0000:%.100s", name);
	} else {
		interface->kind = strncmp(name, "net_", 4) == 0 ? KIND_OTHER : KIND_KERNEL;
	}
}

/* The kernel's files have an interface by its own name, not by an alternative one. */
static void interface_name(struct doctor_interface *interface)
{
	char primary[KERNEL_NAME_ROOM], device[sizeof(interface->device)];

	if (interface->kind != KIND_KERNEL && interface->kind != KIND_XDP &&
		interface->kind != KIND_UDP)
		return;
	snprintf(device, sizeof(device), "%s", interface->device);
	snprintf(interface->device, sizeof(interface->device), "%s",
		kernel_primary(device, primary, sizeof(primary)));
}

/* Does an interface have a poll thread, as PTL_PROGRESS says? */
static bool poll_thread_wanted(const struct doctor *doctor)
{
	bool own = parse_setting("PTL_POLL") || parse_setting("PTL_POLL_CORE");

	if (!setting_is(SETTING_PROGRESS, "auto"))
		return setting_is(SETTING_PROGRESS, "core");
	for (unsigned i = 0; i < doctor->interface_count && !own; i++)
		own = doctor->interfaces[i].kind != KIND_NODE &&
		      doctor->interfaces[i].kind != KIND_KERNEL &&
		      doctor->interfaces[i].kind != KIND_UDP;
	return own;
}

/* This program has a table of settings of its own, which parses them as the library does: it gets
 * the library's values. */
static void settings_take(void)
{
	for (unsigned i = 0; i < SETTING_COUNT; i++)
		(void)setting_replace(
			(enum setting)i, setting_value(setting_describe((enum setting)i)->name));
}

static void interface_read(struct doctor_interface *interface, unsigned n)
{
	const uint64_t cpu = setting_number_item(SETTING_POLL_CORE, n, UINT64_MAX);
	uint32_t address;
	uint8_t prefix;

	snprintf(interface->name, sizeof(interface->name), "%s",
		setting_item(SETTING_IFACE_NAME, n));
	interface_sort(interface);
	interface->mtu = (long)setting_number_item(SETTING_MTU, n, 0);
	interface->gateway = setting_item(SETTING_GATEWAY, n)[0] != '\0';
	if (setting_subnet_item(SETTING_IP, n, &address, &prefix) && prefix > 0)
		interface->mask = UINT32_MAX << (32 - prefix);
	interface->cpu = cpu == UINT64_MAX ? -1 : (int)cpu;
}

static void settings_read(struct doctor *doctor)
{
	int interfaces = 0;

	doctor->started = PtlInit(&interfaces);
	settings_take();
	doctor->named = parse_setting("PTL_IFACE_NAME") != NULL;
	doctor->udp = setting_is(SETTING_ENCAP, "udp");
	doctor->poll_busy = setting_is(SETTING_POLL, "busy");
	if (interfaces < 1)
		interfaces = 1;
	for (int i = 0; i < interfaces && i < DOCTOR_INTERFACES; i++) {
		struct doctor_interface *interface = &doctor->interfaces[i];

		interface_read(interface, (unsigned)i);
		if (doctor->live)
			interface_name(interface);
		doctor->interface_count++;
	}
	doctor->poll_thread = poll_thread_wanted(doctor);
}

/* --- what is printed */

/* Each command is a line of its own, so that it can be pasted. What is ok may still be better. */
static void fix_print(const char *fix, enum level level)
{
	if (fix)
		printf("         %s:\n", level == LEVEL_OK ? "optional" : "fix");
	while (fix && fix[0] != '\0') {
		int length = (int)strcspn(fix, "\n");

		printf("             %.*s\n", length, fix);
		fix += length + (fix[length] == '\n');
	}
}

static void findings_print(const struct doctor *doctor)
{
	for (unsigned i = 0; i < doctor->finding_count; i++) {
		const struct finding *finding = &doctor->findings[i];

		printf("%-8s %s: %s\n", level_names[finding->level], finding->check, finding->text);
		fix_print(finding->fix, finding->level);
	}
}

static void findings_json(const struct doctor *doctor, const unsigned *counts)
{
	printf("{\n  \"warnings\": %u,\n  \"failures\": %u,\n  \"findings\": [",
		counts[LEVEL_WARNING], counts[LEVEL_FAILURE]);
	for (unsigned i = 0; i < doctor->finding_count; i++) {
		const struct finding *finding = &doctor->findings[i];

		printf("%s\n    {\"check\": \"%s\", \"level\": \"%s\", \"text\": ",
			i > 0 ? "," : "", finding->check, level_names[finding->level]);
		json_text(finding->text);
		printf(", \"fix\": ");
		json_text(finding->fix ? finding->fix : "");
		printf("}");
	}
	printf("\n  ]\n}\n");
}

static void checks_run(struct doctor *doctor)
{
	doctor->check = "settings";
	if (doctor->started == PTL_OK) {
		doctor_find(doctor, LEVEL_OK, "all are valid");
	} else {
		doctor_find(doctor, LEVEL_FAILURE, "%s", postern_last_error());
		doctor_fix(doctor, "postern-info");
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		doctor->check = checks[i].name;
		if (doctor->live || !checks[i].live)
			checks[i].look(doctor);
	}
}

/* --- words */

static int usage(const char *text, const char *word)
{
	fprintf(stderr, "postern-info doctor: \"%s\" %s; postern-info doctor --help tells more.\n",
		word, text);
	return EXIT_USAGE;
}

static int peers_read(struct doctor *doctor, int count, char **words)
{
	for (int i = 0; i < count; i++) {
		if (doctor->peer_count == DOCTOR_PEERS)
			return usage("is one process too many", words[i]);
		if (!parse_process(words[i], &doctor->peers[doctor->peer_count++]))
			return usage("is no process: a process is NID:PID", words[i]);
	}
	return 0;
}

int doctor_main(int count, char **words)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"pid", required_argument, NULL, 'p'},
		{"root", required_argument, NULL, 'R'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static struct doctor doctor = {.host = {.root = ""}, .live = true, .pid = PTL_PID_ANY};
	unsigned counts[LEVEL_FAILURE + 1] = {0};
	bool json = false;
	uint64_t pid;
	int letter;

	while ((letter = getopt_long(count, words, "jp:h", options, NULL)) != -1) {
		switch (letter) {
		case 'j':
			json = true;
			break;
		case 'p':
			if (!parse_number(optarg, PTL_PID_MAX, &pid))
				return usage("is no process id", optarg);
			doctor.pid = (ptl_pid_t)pid;
			break;
		case 'R':
			doctor.host.root = optarg;
			doctor.live = false;
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		default:
			fputs("postern-info doctor --help lists the options.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (peers_read(&doctor, count - optind, words + optind) != 0)
		return EXIT_USAGE;
	settings_read(&doctor);
	checks_run(&doctor);
	for (unsigned i = 0; i < doctor.finding_count; i++)
		counts[doctor.findings[i].level]++;
	if (json)
		findings_json(&doctor, counts);
	else
		findings_print(&doctor);
	for (unsigned i = 0; i < doctor.finding_count; i++)
		free(doctor.findings[i].fix);
	free(doctor.findings);
	PtlFini();
	return counts[LEVEL_FAILURE] > 0;
}
