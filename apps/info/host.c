/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - see host.h. */
#include "host.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512

#define PATH_MAKE(path, host, format)                                                              \
	do {                                                                                       \
		va_list arguments;                                                                 \
		size_t used = (size_t)snprintf(path, sizeof(path), "%s", (host)->root);            \
                                                                                                   \
		va_start(arguments, format);                                                       \
		if (used < sizeof(path))                                                           \
			vsnprintf(path + used, sizeof(path) - used, format, arguments);            \
		va_end(arguments);                                                                 \
	} while (0)

static bool line_read(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (!file)
		return false;
	if (!fgets(line, (int)size, file))
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return true;
}

bool host_line(const struct host *host, char *line, size_t size, const char *format, ...)
{
	char path[PATH_MAX];

	PATH_MAKE(path, host, format);
	return line_read(path, line, size);
}

long long host_number(const struct host *host, long long absent, const char *format, ...)
{
	char path[PATH_MAX], line[LINE_BYTES], *end;
	long long value;

	PATH_MAKE(path, host, format);
	if (!line_read(path, line, sizeof(line)))
		return absent;
	value = strtoll(line, &end, 0);
	return end == line ? absent : value;
}

bool host_link(const struct host *host, char *name, size_t size, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t length;

	PATH_MAKE(path, host, format);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	slash = strrchr(target, '/');
	snprintf(name, size, "%s", slash ? slash + 1 : target);
	return true;
}

bool host_exists(const struct host *host, const char *format, ...)
{
	char path[PATH_MAX];

	PATH_MAKE(path, host, format);
	return access(path, F_OK) == 0;
}

bool host_writable(const struct host *host, const char *format, ...)
{
	char path[PATH_MAX];

	PATH_MAKE(path, host, format);
	return access(path, R_OK | W_OK) == 0;
}

void cpus_parse(const char *text, struct cpu_set_list *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < HOST_CPUS; first++) {
			cpus->count += !cpus->has[first];
			cpus->has[first] = true;
		}
		text = *end == ',' ? end + 1 : end;
	}
}

bool host_cpus(const struct host *host, struct cpu_set_list *cpus, const char *format, ...)
{
	char path[PATH_MAX], line[8 * LINE_BYTES];
	bool there;

	PATH_MAKE(path, host, format);
	there = line_read(path, line, sizeof(line));
	cpus_parse(line, cpus);
	return there;
}

bool host_field(
	const struct host *host, const char *file, const char *name, char *value, size_t size)
{
	char path[PATH_MAX], line[8 * LINE_BYTES];
	size_t length = strlen(name);
	bool found = false;
	FILE *stream;

	snprintf(path, sizeof(path), "%s%s", host->root, file);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	while (!found && fgets(line, sizeof(line), stream)) {
		found = strncmp(line, name, length) == 0;
		line[strcspn(line, "\n")] = '\0';
		if (found)
			snprintf(value, size, "%s", line + length + strspn(line + length, ": \t"));
	}
	fclose(stream);
	return found;
}

unsigned host_entries(const struct host *host, const char *directory)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	unsigned count = 0;
	DIR *stream;

	snprintf(path, sizeof(path), "%s%s", host->root, directory);
	stream = opendir(path);
	while (stream && (entry = readdir(stream)))
		count += entry->d_name[0] != '.';
	if (stream)
		closedir(stream);
	return count;
}
