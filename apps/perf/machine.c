/* machine.c - see machine.h. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <postern.h>

#include "machine.h"

#define SETTINGS_MAX   64
#define LINE_MAX_BYTES 512
#define HUGEPAGE_FILES "/sys/kernel/mm/hugepages"

static void line_end(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

/* The first line of /proc/cpuinfo that names the model; not every architecture has one. */
static void cpu_describe(char *cpu, size_t size)
{
	char line[LINE_MAX_BYTES];
	FILE *file = fopen("/proc/cpuinfo", "re");
	struct utsname name;

	uname(&name);
	snprintf(cpu, size, "%s", name.machine);
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", strlen("model name")) != 0 || colon == NULL)
			continue;
		line_end(line);
		snprintf(cpu, size, "%s", colon + strspn(colon, ": \t"));
		break;
	}
	if (file != NULL)
		fclose(file);
}

static long file_number(const char *path)
{
	char line[LINE_MAX_BYTES] = "";
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return 0;
	if (fgets(line, sizeof(line), file) == NULL)
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
	while (directory != NULL && (entry = readdir(directory)) != NULL) {
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
	if (directory != NULL)
		closedir(directory);
	if (text[0] == '\0')
		snprintf(text, size, "none");
}

static const char *setting(const char *name)
{
	struct postern_setting settings[SETTINGS_MAX];
	unsigned count = postern_settings(settings, SETTINGS_MAX);

	for (unsigned i = 0; i < count && i < SETTINGS_MAX; i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].value;
	return "";
}

/* PTL_MTU, or what the system says of a kernel interface. */
static void mtu_describe(const struct machine *machine, char *text, size_t size)
{
	char path[LINE_MAX_BYTES];
	const char *name = machine->interface;
	long mtu = 0;

	if (setting("PTL_MTU")[0] != '\0') {
		snprintf(text, size, "%s", setting("PTL_MTU"));
		return;
	}
	if (strncmp(name, "xdp:", 4) == 0)
		name += 4;
	if (name[0] != '\0' && strpbrk(name, ":/;") == NULL) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", name);
		mtu = file_number(path);
	}
	if (mtu > 0)
		snprintf(text, size, "%ld", mtu);
	else
		snprintf(text, size, "the device's own");
}

void machine_describe(struct machine *machine)
{
	struct utsname name;
	cpu_set_t set;

	memset(machine, 0, sizeof(*machine));
	cpu_describe(machine->cpu, sizeof(machine->cpu));
	machine->cpus = sched_getaffinity(0, sizeof(set), &set) == 0
				? CPU_COUNT(&set)
				: sysconf(_SC_NPROCESSORS_ONLN);
	uname(&name);
	snprintf(machine->kernel, sizeof(machine->kernel), "%.40s %.60s", name.sysname,
		name.release);
	snprintf(machine->interface, sizeof(machine->interface), "%s", setting("PTL_IFACE_NAME"));
	snprintf(
		machine->encapsulation, sizeof(machine->encapsulation), "%s", setting("PTL_ENCAP"));
	mtu_describe(machine, machine->mtu, sizeof(machine->mtu));
	hugepages_describe(machine->hugepages, sizeof(machine->hugepages));
	snprintf(machine->progress, sizeof(machine->progress), "%.20s, polling %.20s",
		setting("PTL_PROGRESS"), setting("PTL_POLL"));
	snprintf(machine->faults, sizeof(machine->faults), "%s", setting("PTL_FAULT"));
	machine->version = postern_version();
}
