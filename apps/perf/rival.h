/* SPDX-License-Identifier: BSD-3-Clause */
/* rival.h - what the programs share that postern-perf --card and scripts/compare hold messages of
 * Postern against: the exchanges, the command line and the report. A rival brings nothing but the
 * functions that move messages.
 *
 *     PROGRAM --server ADDRESS PORT
 *     PROGRAM ADDRESS PORT TRANSPORT MODE latency|stream SIZE WINDOW SECONDS
 *
 * A server answers clients one after another, each in a process of its own, until it is killed. It
 * prints the number of its port, which the kernel chooses if PORT is 0. A
 * client says over a TCP connection, the control connection, what it wants measured, and prints
 * one line of JSON.
 *
 * The exchanges are those of postern-perf. latency: a message is answered by one of the same size,
 * and half of the time is one way. stream: windows of messages one way, two on their way at most;
 * the receiver's program answers each window that has come with a message of CREDIT_BYTES.
 */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_BYTES   8
#define STREAM_WINDOWS 2

/* What a client asks for; goes over the control connection as it is, since both are one program. */
struct request {
	char transport[32];
	char mode[32]; /* one that begins with "block" waits in the kernel */
	bool stream;   /* or latency */
	uint32_t size;
	uint32_t window; /* messages; 1 for latency */
	double seconds;
};

/* One end of what is measured. */
struct rival_end {
	const struct request *request;
	const char *address; /* the server's */
	int control;         /* the control connection, for what the ends must tell each other */
	bool server;
	uint32_t out; /* bytes of a message that this end sends, ... */
	uint32_t in;  /* ... and of one that it receives */
};

struct rival {
	const char *name;
	const char *transports; /* and ways to wait, for the usage */

	/* Makes this end ready to send and receive, or complains. */
	void *(*open)(const struct rival_end *end);
	/* Sends a message. With `more`, another follows at once, and it may be kept until then. */
	void (*send)(void *line, bool more);
	/* How many messages have come since the last call. May wait for one, but not for long. */
	uint32_t (*receive)(void *line);
	/* Gives back what does not go with the process. NULL: there is nothing such. */
	void (*close)(void *line);
};

int rival_main(int argc, char **argv, const struct rival *rival);

/* Ends the process with a sentence on standard error. */
_Noreturn void rival_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The ends give each other so many bytes over the control connection. */
void rival_swap(const struct rival_end *end, const void *mine, void *theirs, uint32_t bytes);

#endif
