/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - see machine.h. */
#include <dirent.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <postern.h>

#include "../parse.h"
#include "../setting.h"
#include "lend.h"
#include "machine.h"

#define LINE_MAX_BYTES 512
#define HUGEPAGE_FILES "/sys/kernel/mm/hugepages"

static void line_end(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

/* From the first line of /proc/cpuinfo that has it; not every architecture has one. */
void machine_cpu(char *cpu, size_t size)
{
	char line[LINE_MAX_BYTES];
	FILE *file = fopen("/proc/cpuinfo", "re");
	struct utsname name;

	uname(&name);
	snprintf(cpu, size, "%s", name.machine);
	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", strlen("model name")) != 0 || !colon)
			continue;
		line_end(line);
		snprintf(cpu, size, "%s", colon + strspn(colon, ": \t"));
		break;
	}
	if (file)
		fclose(file);
}

static long file_number(const char *path)
{
	char line[LINE_MAX_BYTES] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strtol(line, NULL, 10);
}

/* "1024 of 2048 kB free", for each size that the system has any of. */
static void hugepages_describe(char *text, size_t size)
{
	DIR *directory = opendir(HUGEPAGE_FILES);
	struct dirent *entry;
	size_t used = 0;

	text[0] = '\0';
	while (directory && (entry = readdir(directory))) {
		char path[LINE_MAX_BYTES];
		long kilobytes;
		int wrote;

		if (sscanf(entry->d_name, "hugepages-%ldkB", &kilobytes) != 1)
			continue;
		snprintf(path, sizeof(path), HUGEPAGE_FILES "/%s/nr_hugepages", entry->d_name);
		if (file_number(path) == 0 || used >= size)
			continue;
		wrote = snprintf(text + used, size - used, "%s%ld of %ld kB", used > 0 ? ", " : "",
			file_number(path), kilobytes);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	if (directory)
		closedir(directory);
	if (text[0] == '\0')
		snprintf(text, size, "none");
}

static void fact_add(struct machine *machine, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fact_add(struct machine *machine, const char *name, const char *format, ...)
{
	struct fact *fact = &machine->facts[machine->count++];
	va_list arguments;

	fact->name = name;
	va_start(arguments, format);
	vsnprintf(fact->text, sizeof(fact->text), format, arguments);
	va_end(arguments);
}

static const char *or_word(const char *text, const char *word)
{
	return text[0] != '\0' ? text : word;
}

/* PTL_PROGRESS, or what it is on this interface where it is auto. */
static const char *progress_name(ptl_handle_ni_t ni)
{
	const char *progress = setting_value("PTL_PROGRESS");

	if (strcmp(progress, "auto") != 0)
		return progress;
	return instrument->port(ni)->helped && !parse_setting("PTL_POLL") &&
			       !parse_setting("PTL_POLL_CORE")
		       ? "both"
		       : "core";
}

static void cores_describe(struct machine *machine, const struct options *options, bool inlined)
{
	const char *poll = setting_value("PTL_POLL_CORE");

	if (inlined)
		poll = "none";
	if (options->core_count > 0)
		fact_add(machine, "cores", "application on CPU %u, poll threads: %s",
			options->cores[0], or_word(poll, "the same"));
	else
		fact_add(machine, "cores", "application not pinned, poll threads: %s",
			or_word(poll, "not pinned"));
}

/* What exactly is being measured. */
static void setup_describe(
	struct machine *machine, const struct options *options, unsigned servers, bool inlined)
{
	if (servers == 0)
		fact_add(machine, "measured", "this process against %s; events are %s",
			options->server_count > 1 ? "others" : "another",
			options->poll || options->library != LIBRARY_PORTALS3
				? "asked for in a loop"
				: "waited for");
	else
		fact_add(machine, "measured",
			"%s in this process, one thread for %s application%s%s",
			servers == 1 ? "both ends" : "all ends", servers == 1 ? "both" : "all",
			servers == 1 ? "s" : "s", inlined ? " and the library" : "");
	if (options->runs > 1 && !options->raw)
		fact_add(machine, "runs", "%u of each trial, %.3g s each; warm-up %s",
			options->runs, options->effort.seconds / options->runs,
			options->effort.warm_up < 0 ? "a tenth of that" : "as given");
	if (options->raw)
		fact_add(machine, "bare", "in turns, %u each; payload copied once where it arrives",
			options->runs);
}

void machine_describe(struct machine *machine, const struct options *options, ptl_handle_ni_t ni,
	unsigned servers)
{
	const char *progress = progress_name(ni);
	bool inlined = strcmp(progress, "core") != 0; /* this program's calls move the messages */
	char text[256];
	struct utsname name;
	cpu_set_t set;

	memset(machine, 0, sizeof(*machine));
	machine->version = postern_version();
	machine->cpus = sched_getaffinity(0, sizeof(set), &set) == 0
				? CPU_COUNT(&set)
				: sysconf(_SC_NPROCESSORS_ONLN);
	machine_cpu(text, sizeof(text));
	fact_add(machine, "cpu", "%s", text);
	uname(&name);
	fact_add(machine, "kernel", "%.40s %.60s", name.sysname, name.release);
	fact_add(machine, "library", "%s", library_title(options->library));
	fact_add(machine, "interface", "%s", setting_value("PTL_IFACE_NAME"));
	/* PTL_ENCAP is not used on UDP sockets. */
	fact_add(machine, "encapsulation", "%s",
		instrument->port(ni)->around > 0 ? "udp" : setting_value("PTL_ENCAP"));
	fact_add(machine, "mtu", "%u", lend_mtu(ni));
	hugepages_describe(text, sizeof(text));
	fact_add(machine, "hugepages", "%s%s", text, instrument->hugepages() ? ", used" : "");
	fact_add(machine, "progress", "%.20s, polling %.20s", progress, setting_value("PTL_POLL"));
	cores_describe(machine, options, inlined);
	setup_describe(machine, options, servers, inlined);
	fact_add(machine, "clock", "TSC; %u ns a look, taken off every time",
		(unsigned)clock_cost());
	fact_add(machine, "build", "%s", PERF_BUILD);
	if (options->fault_count == 0 && setting_value("PTL_FAULT")[0] != '\0')
		fact_add(machine, "faults", "%s", setting_value("PTL_FAULT"));
}
