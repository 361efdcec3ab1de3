/* SPDX-License-Identifier: BSD-3-Clause */
/* line.h - messages between a client and a server by another library than Portals 3.2. A module,
 * which the program loads when it is asked for, has the functions of one library; so a program
 * that has only Portals 3.2 runs, and no file sees the headers of two libraries.
 *
 * J1. A line serves one measure, between one client and one server, which have met on a control
 *     session of Portals 3.2. One thread owns it.
 * J2. What the server sends are credits, or the answers of a latency; so an end need not tell what
 *     kind of message has come. Only when both send windows does it count credits apart.
 * J3. A library whose processes are the ranks of a job is joined before anything else is opened.
 */
#ifndef PERF_LINE_H
#define PERF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trial.h"

#define LINE_MODULE "perf_line" /* the name of a module's struct line_module */

struct line;

#define LINE_NUMBERS 4

/* Where an end can be reached, in the library's own terms. */
struct line_address {
	uint64_t numbers[LINE_NUMBERS];
	uint32_t argument;
};

struct line_request {
	enum measure measure;
	bool server;
	unsigned interface;       /* its number in PTL_IFACE_NAME */
	void *memory;             /* what is sent, and where messages land */
	uint64_t size;            /* of a message, bytes */
	uint32_t messages;        /* on their way at once, at most */
	uint32_t window;          /* of them: so many are credited together */
	struct match_shape shape; /* of the match list; of a search its depth */
	/* complain.h's, which does not return */
	void (*complain)(const char *format, ...) __attribute__((format(printf, 1, 2)));
};

struct line_module {
	const char *release; /* that it is of */
	/* Returns NULL if it cannot be opened; why then has a sentence on it. */
	struct line *(*open)(const struct line_request *request, struct line_address *own,
		char *why, size_t room);
	/* Returns false if it is to be called again, after the other end has had its turn. */
	bool (*meet)(struct line *line, const struct line_address *other);
	/* Sends a message, or asks for one. */
	void (*send)(struct line *line);
	/* Sends a message of no bytes. */
	void (*credit)(struct line *line);
	/* Returns how many messages, or what was asked for, have come since the last call; negative
	 * if one has failed. */
	int (*receive)(struct line *line);
	/* Of a search, by the client: makes ready what is to be found; and finds it. */
	void (*stage)(struct line *line);
	void (*find)(struct line *line);
	/* When both send windows: how many messages of the last receive() were credits. */
	int (*credits)(struct line *line);
	void (*close)(struct line *line);
	/* Of a library whose processes are ranks of a job; NULL: they are not. Joins a job of two
	 * ranks, in which messages have so many bytes at most. Returns the rank; negative if that
	 * fails: why then has a sentence on it. */
	int (*join)(uint64_t bytes, char *why, size_t room);
	/* Rank 1 gives a number to rank 0, which gets it. */
	uint64_t (*hand_over)(uint64_t number);
	/* Both ranks are here before either returns. */
	void (*part)(void);
};

#endif
