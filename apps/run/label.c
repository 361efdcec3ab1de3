/* SPDX-License-Identifier: BSD-3-Clause */
/* label.c - see label.h. */
#include "label.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIGNAL_LOOK 100 /* ms between looks for a signal while nobody reads */

static int error;
static bool given_up;

/* Is this process told to end? Its signals are blocked (job.c), and stay until they are read. */
static bool told_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
		       sigismember(&pending, SIGHUP) == 1);
}

/* Waits for the reader of our output. If this process is told to end meanwhile, this and all
 * further output is given up: ranks go on writing until they are ended. Returns false if the output
 * cannot be written to. What poll() has room for does not block, even if a pipe does. */
static bool write_all(int to, const char *bytes, size_t count)
{
	while (count > 0 && !given_up) {
		struct pollfd room = {.fd = to, .events = POLLOUT};
		ssize_t written;

		if (poll(&room, 1, SIGNAL_LOOK) <= 0) {
			given_up = told_to_end();
			continue;
		}
		written = write(to, bytes, count < PIPE_BUF ? count : PIPE_BUF);
		if (written > 0) {
			bytes += written;
			count -= (size_t)written;
		} else if (written < 0 && errno != EINTR && errno != EAGAIN) {
			error = error != 0 ? error : errno;
			return false;
		}
	}
	return true;
}

/* A line of so many bytes, its end included or not, from the front of the buffer. */
static bool line_write(struct label *label, size_t length)
{
	char line[LABEL_LINE + 32];
	size_t count = (size_t)snprintf(line, sizeof(line), "[%u] ", label->rank);

	memcpy(line + count, label->bytes, length);
	count += length;
	if (line[count - 1] != '\n')
		line[count++] = '\n';
	label->filled -= length;
	memmove(label->bytes, label->bytes + length, label->filled);
	return write_all(label->to, line, count);
}

static void label_close(struct label *label)
{
	close(label->from);
	label->from = -1;
}

bool label_turn(struct label *label)
{
	const char *end;
	ssize_t count;

	if (label->from < 0)
		return false;
	count = read(label->from, label->bytes + label->filled, LABEL_LINE - label->filled);
	if (count < 0)
		return errno == EINTR;
	label->filled += (size_t)count;
	while ((end = memchr(label->bytes, '\n', label->filled)) || label->filled == LABEL_LINE ||
		(count == 0 && label->filled > 0)) {
		if (line_write(label, end ? (size_t)(end - label->bytes) + 1 : label->filled))
			continue;
		label_close(label); /* the rank learns it when it writes again */
		return false;
	}
	if (count == 0)
		label_close(label);
	return count > 0;
}

void label_end(struct label *label)
{
	while (label_turn(label)) {
	}
	if (label->from >= 0 && label->filled > 0)
		(void)line_write(label, label->filled);
}

int label_error(void)
{
	return error;
}
