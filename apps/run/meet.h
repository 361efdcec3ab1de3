/* SPDX-License-Identifier: BSD-3-Clause */
/* meet.h - jobs without a launcher of their own: postern-run --meet HOST:PORT is started once for
 * each rank, by whatever starts processes. That of rank 0 listens there and is the launcher of all;
 * the others connect, say their rank and the size of the job, and give the socket to their program
 * as PMI_FD.
 *
 * M1. A guest has said nothing yet. It says one line, in time, and becomes a rank or is refused: a
 *     stranger cannot keep a rank from coming, and disturbs no job. A rank that is pushed out by
 *     strangers, or whose packets are lost, tries again until MEET_TIME is over.
 * M2. Each rank is taken once.
 */
#ifndef RUN_MEET_H
#define RUN_MEET_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define MEET_TIME  60000 /* ms within which all ranks come */
#define GUESTS_MAX 64u   /* at once */

/* Listens at HOST:PORT. Returns false after a line. */
bool meet_listen(const char *address);
/* Connects to HOST:PORT and becomes a rank. Returns the socket, or -1 after a line. */
int meet_connect(const char *address, unsigned rank, unsigned size);

/* Fills in what the listener waits for, and returns how many, at most GUESTS_MAX + 1. */
unsigned meet_polled(struct pollfd *polled);
/* Does what poll() found. `take` makes a guest a rank, and has the socket from then on, or returns
 * why not, without blanks. */
void meet_turn(const struct pollfd *polled, uint64_t now,
	const char *(*take)(unsigned rank, unsigned size, int socket));
/* Nobody else comes. */
void meet_close(void);

#endif
