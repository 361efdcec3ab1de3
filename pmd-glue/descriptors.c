/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.c - see descriptors.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>

#include <pmd-glue/descriptors.h>
#include <pmd-glue/eal.h>

#define ALARM_FAR    UINT64_C(987654321) /* s; nobody else's timer is as far away */
#define ALARM_NEARER UINT64_C(3600)      /* s that it may have come nearer when it is looked at */
#define WATCHED_MOST 64

void descriptors_read(struct descriptors *now)
{
	DIR *entries = opendir("/proc/self/fd");
	struct dirent *entry;
	*now = (struct descriptors){{0}};
	while (entries && (entry = readdir(entries))) {
		int fd = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : -1;
		if (fd >= 0 && fd < DESCRIPTORS_SEEN && fd != dirfd(entries))
			now->open[fd / 8] |= (uint8_t)(1u << fd % 8);
	}
	if (entries)
		closedir(entries);
}

/* The first one after `fd` that is open now and was not before; -1: none. */
static int descriptor_next(const struct descriptors *before, const struct descriptors *now, int fd)
{
	while (++fd < DESCRIPTORS_SEEN)
		if (now->open[fd / 8] & ~before->open[fd / 8] & 1u << fd % 8)
			return fd;
	return -1;
}

static void descriptor_link(int fd, char *target, size_t size)
{
	char name[32];
	ssize_t length;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, target, size - 1);
	target[length < 0 ? 0 : length] = 0;
}

/* DPDK's own sockets are in its runtime directory. */
static bool address_is_dpdks(int fd, int (*ask)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_un address = {0};
	socklen_t length = sizeof(address) - 1;
	char directory[PATH_MAX];
	if (ask(fd, (struct sockaddr *)&address, &length) != 0)
		return false;
	eal_runtime_directory(directory, sizeof(directory));
	return strncmp(address.sun_path, directory, strlen(directory)) == 0;
}

static bool socket_is_dpdks(int fd)
{
	int domain;
	socklen_t size = sizeof(domain);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
		return false;
	if (domain == AF_UNIX)
		return address_is_dpdks(fd, getsockname) || address_is_dpdks(fd, getpeername);
	return domain == AF_PACKET || domain == AF_XDP;
}

static bool descriptor_is_dpdks(int fd)
{
	static const char *const memory[] = {
		"/memfd:nohuge", "/memfd:seg_", "/memfd:memif_region_"};
	char target[64];
	descriptor_link(fd, target, sizeof(target));
	for (size_t n = 0; n < sizeof(memory) / sizeof(memory[0]); n++)
		if (strncmp(target, memory[n], strlen(memory[n])) == 0)
			return true;
	return strncmp(target, "socket:", strlen("socket:")) == 0 && socket_is_dpdks(fd);
}

void descriptors_claim(const struct descriptors *before)
{
	struct descriptors now;
	descriptors_read(&now);
	for (int fd = -1; (fd = descriptor_next(before, &now, fd)) >= 0;)
		if (descriptor_is_dpdks(fd))
			fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Reads the numbers that follow a label in the kernel's description of a descriptor. Returns how
 * many there are. */
static unsigned fdinfo_read(int fd, const char *label, uint64_t *numbers, unsigned most)
{
	char name[32], line[256];
	unsigned count = 0;
	FILE *file;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	file = fopen(name, "re");
	while (file && count < most && fgets(line, sizeof(line), file))
		if (strncmp(line, label, strlen(label)) == 0)
			numbers[count++] = strtoull(line + strlen(label), NULL, 10);
	if (file)
		fclose(file);
	return count;
}

static bool descriptor_is_alarm(int fd)
{
	uint64_t left;
	return fdinfo_read(fd, "it_value: (", &left, 1) == 1 && left <= ALARM_FAR &&
	       left + ALARM_NEARER > ALARM_FAR;
}

/* If an epoll descriptor watches the alarm: claims it, all that it watches, and the other ends of
 * pipes. Returns true if it does. */
static bool watched_claim(
	const struct descriptors *before, const struct descriptors *now, int epoll, int alarm)
{
	uint64_t watched[WATCHED_MOST];
	unsigned count = fdinfo_read(epoll, "tfd:", watched, WATCHED_MOST), n = 0;
	char target[64], other[64];
	while (n < count && watched[n] != (uint64_t)alarm)
		n++;
	if (n == count)
		return false;
	fcntl(epoll, F_SETFD, FD_CLOEXEC);
	for (n = 0; n < count; n++) {
		fcntl((int)watched[n], F_SETFD, FD_CLOEXEC);
		descriptor_link((int)watched[n], target, sizeof(target));
		for (int fd = -1; (fd = descriptor_next(before, now, fd)) >= 0;) {
			descriptor_link(fd, other, sizeof(other));
			if (strncmp(target, "pipe:", strlen("pipe:")) == 0 &&
				strcmp(target, other) == 0)
				fcntl(fd, F_SETFD, FD_CLOEXEC);
		}
	}
	return true;
}

static void alarm_never(void *context)
{
	(void)context;
}

void descriptors_claim_interrupts(const struct descriptors *before)
{
	struct descriptors now;
	int alarm = -1, epoll = -1;
	/* The interrupt thread's timer is found by its time, the thread's list by the timer, and
	 * the pipe that wakes the thread by the list. */
	if (rte_eal_alarm_set(ALARM_FAR * 1000000, alarm_never, NULL) != 0)
		return;
	descriptors_read(&now);
	while ((alarm = descriptor_next(before, &now, alarm)) >= 0 && !descriptor_is_alarm(alarm))
		;
	if (alarm >= 0) {
		/* The thread watches the timer once it has been woken by it. */
		eal_call(alarm_never, NULL);
		descriptors_read(&now);
		while ((epoll = descriptor_next(before, &now, epoll)) >= 0 &&
			!watched_claim(before, &now, epoll, alarm))
			;
	}
	rte_eal_alarm_cancel(alarm_never, NULL);
}
