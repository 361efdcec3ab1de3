/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_rig.c - see rendezvous_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous_rig.h"

char runtime[64];
static int standard_error;
static int log_file; /* that the log goes to during a case */

struct rendezvous *rendezvous_at(const char *name, uint32_t pid)
{
	const struct rendezvous_options options = {.name = name,
		.nid = NID,
		.pid = pid,
		.frame_size = FRAME,
		.pair_bytes = BYTES,
		.touched = TOUCHED};

	return rendezvous_open(&options);
}

struct rendezvous *rendezvous_of(uint32_t pid)
{
	struct rendezvous *rendezvous = rendezvous_at(NULL, pid);

	assert_non_null(rendezvous);
	assert_int_equal(rendezvous_pid(rendezvous), pid);
	return rendezvous;
}

/* Waits for what must come next. */
struct rendezvous_connection *expect(struct rendezvous *rendezvous, enum rendezvous_event expected)
{
	struct pollfd set = {.fd = rendezvous_set(rendezvous), .events = POLLIN};
	struct rendezvous_connection *connection;
	enum rendezvous_event event;

	for (unsigned n = 0; n < 1000; n++) {
		if (rendezvous_turn(rendezvous, &connection, &event)) {
			assert_int_equal(event, expected);
			return connection;
		}
		assert_int_equal(poll(&set, 1, WAIT), 1);
	}
	fail();
	return NULL;
}

bool log_said(const char *words)
{
	char text[4096];
	ssize_t length = pread(log_file, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = 0;
	return strstr(text, words) != NULL;
}

void log_forget(void)
{
	assert_int_equal(ftruncate(log_file, 0), 0);
	assert_int_equal(lseek(log_file, 0, SEEK_SET), 0);
}

void remove_all(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[512];

	while (directory && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (unlink(name) != 0 && errno == EISDIR)
			remove_all(name);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

int setup(void **state)
{
	(void)state;
	alarm(LIMIT);
	snprintf(runtime, sizeof(runtime), "/tmp/postern-rendezvous-XXXXXX");
	assert_non_null(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	fflush(stderr);
	standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	log_file = memfd_create("log", MFD_CLOEXEC);
	assert_true(dup2(log_file, STDERR_FILENO) >= 0);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	close(log_file);
	remove_all(runtime);
	alarm(0);
	return 0;
}

int raw_connect(const struct rendezvous *rendezvous)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%u",
		rendezvous_path(rendezvous), rendezvous_pid(rendezvous));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

void expect_nothing(struct rendezvous *rendezvous)
{
	struct rendezvous_connection *connection;
	enum rendezvous_event event;

	/* The first false ends a series, the second one has looked. */
	for (unsigned n = 0; n < 2; n++)
		assert_false(rendezvous_turn(rendezvous, &connection, &event));
}

bool readable(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1;
}

void forget(struct rendezvous *rendezvous, struct rendezvous_connection *connection)
{
	munmap(connection->memory, BYTES);
	rendezvous_drop(rendezvous, connection);
}

unsigned descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}
