/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what postern-ping is asked to do. */
#ifndef PING_OPTIONS_H
#define PING_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <portals.h>

#define EXIT_ANSWERED 0
#define EXIT_SILENCE  1 /* no answer */
#define EXIT_TROUBLE  2 /* wrong options, or an interface that cannot be used */

struct options {
	ptl_process_id_t target;
	uint64_t interface;
	uint64_t pid;      /* own; PTL_PID_ANY: the system's process id */
	uint64_t count;    /* questions; 0: no bound */
	uint64_t interval; /* ns */
	uint64_t timeout;  /* ns, of a question */
	uint64_t deadline; /* ns, of all; 0: none */
	uint64_t size;     /* bytes; 0: the smallest */
	bool full;         /* as large as the interface allows */
	bool flood;
	bool quiet;
	bool mtu;
	bool json;
};

/* Ends the process when the words make no sense, and after --help or --version. */
void options_read(int count, char **words, struct options *options);

/* One sentence on standard error, then exit code EXIT_TROUBLE. */
_Noreturn void trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
