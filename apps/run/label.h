/* SPDX-License-Identifier: BSD-3-Clause */
/* label.h - output of a rank, line by line, with the rank before each line. */
#ifndef RUN_LABEL_H
#define RUN_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#define LABEL_LINE 4096u /* bytes; a longer line is cut into several */

/* A stream of a rank. */
struct label {
	int from; /* what the rank writes to, does not block; -1: it has ended */
	int to;   /* our own standard output or error */
	unsigned rank;
	size_t filled;
	char bytes[LABEL_LINE];
};

/* Passes on whole lines of what the rank has written; at its end, or if it cannot be passed on,
 * closes the stream. Returns false if there is nothing more for now. */
bool label_turn(struct label *label);

/* Passes on all that there is, also a line without an end: a process that the rank has left behind
 * may hold the stream open. */
void label_end(struct label *label);

/* Why a line could not be passed on, the first time; 0: all lines were. */
int label_error(void);

#endif
