/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - what the kernel says of this machine, in files of /proc, /sys and /dev. Tests put others
 * in their place: every path is looked for below a root directory. */
#ifndef INFO_HOST_H
#define INFO_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CPUS 1024

struct host {
	const char *root; /* "" is the machine itself */
};

struct cpu_set_list {
	bool has[HOST_CPUS];
	unsigned count;
};

/* Reads the first line of a file, without its end. Returns false if there is no such file. The path
 * is printf's. */
bool host_line(const struct host *host, char *line, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Its number, decimal or 0x...; otherwise `absent`. */
long long host_number(const struct host *host, long long absent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads the name that a symbolic link ends in. Returns false if there is none. */
bool host_link(const struct host *host, char *name, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool host_exists(const struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* May this process read and write it? */
bool host_writable(const struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A list such as "0-3,8". Returns false if there is no such file. */
bool host_cpus(const struct host *host, struct cpu_set_list *cpus, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What a line of a table of names and values says behind the name and a colon or blanks:
 * /proc/self/status, /proc/self/limits. */
bool host_field(
	const struct host *host, const char *file, const char *name, char *value, size_t size);
/* Entries of a directory, without those that begin with a dot. */
unsigned host_entries(const struct host *host, const char *directory);

void cpus_parse(const char *text, struct cpu_set_list *cpus);

#endif
