/* SPDX-License-Identifier: BSD-3-Clause */
/* agenda.h - the trials that the options ask for, in the order in which they are printed. */
#ifndef PERF_AGENDA_H
#define PERF_AGENDA_H

#include "options.h"

struct agenda {
	const struct options *options;
	unsigned steps;   /* of a client's life; each set of faults has one */
	uint64_t largest; /* message, bytes */
	unsigned peers;   /* servers that are needed, */
	unsigned pairs;   /* or pairs of a client and a server */
};

struct agenda agenda_make(const struct options *options);

/* Calls what is to be done for every trial, under these faults (NULL: as they are). */
void agenda_run(const struct agenda *agenda, const char *faults,
	void (*run)(void *context, const struct trial *trial), void *context);

#endif
