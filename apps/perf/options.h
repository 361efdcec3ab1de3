/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what the command line asked for. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <portals.h>

#include "effort.h"
#include "library.h"
#include "trial.h"

#define LIST_MAX        256                 /* items of an option that takes several */
#define SIZE_MAX_BYTES  (UINT64_C(1) << 32) /* one buffer of it on either side */
#define WINDOW_MAX      16384u
#define DEPTH_MAX       65536u
#define DEPTH_OF_SEARCH 1048576u /* of MX, at most */
#define PEERS_MAX       63u /* with the client's own, as many interfaces as a process can have */
#define CORES_MAX       64u
#define RUNS_MAX        99u
#define LINES_MAX       2u  /* interfaces of a process that another library's messages use */
#define PAIRS_MAX       32u /* each has two interfaces where both ends are in this process */

enum mode {
	MODE_LOCAL,  /* both ends in this process, on a loop */
	MODE_SERVER, /* answers clients */
	MODE_CLIENT, /* measures against a server, or several */
	MODE_CARD    /* starts both, and TCP beside them */
};

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

/* Numbers that are gone through; count 0: not given. */
struct numbers {
	unsigned count;
	uint64_t items[LIST_MAX];
};

struct options {
	enum mode mode;
	unsigned server_count;
	ptl_process_id_t servers[PEERS_MAX]; /* of a client */
	ptl_pid_t pid;                       /* own, or PTL_PID_ANY */
	bool once;                           /* a server that ends after one client */
	enum library library;                /* of the messages */
	bool measures[MEASURE_COUNT];
	struct numbers sizes; /* none: each measure's own */
	struct numbers depths;
	struct numbers wildcards;
	struct numbers positions;
	struct numbers peers;
	struct numbers pairs;
	unsigned fault_count;
	char *faults[LIST_MAX];
	uint32_t window;
	struct effort effort; /* per trial */
	unsigned runs;        /* that it is divided among */
	bool poll;            /* ask for events in a loop instead of waiting */
	unsigned core_count;
	unsigned cores[CORES_MAX]; /* the application's, then the poll threads' */
	bool raw;                  /* bare frames as well */
	enum format format;
	const char *plot;  /* file, or NULL */
	const char *trace; /* the same */
	bool stats;
};

/* Fills options, or ends the process: after --help and --version with 0, after a wrong option with
 * EXIT_USAGE. */
void options_parse(struct options *options, int count, char **words);

#endif
