/* options.h - what the command line asked for. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <portals.h>

#include "effort.h"

/* What can be measured. The numbers travel in control messages. */
enum measure {
	MEASURE_LATENCY,
	MEASURE_RATE,
	MEASURE_BANDWIDTH,
	MEASURE_BIDIRECTIONAL,
	MEASURE_GET_LATENCY,
	MEASURE_GET_BANDWIDTH,
	MEASURE_COUNT
};

#define SIZES_MAX      256
#define SIZE_MAX_BYTES (UINT64_C(1) << 32) /* one buffer of it on either side */
#define WINDOW_MAX     16384u

enum mode {
	MODE_LOCAL,  /* both ends in this process, on a loop */
	MODE_SERVER, /* answers clients */
	MODE_CLIENT  /* measures against a server */
};

struct options {
	enum mode mode;
	ptl_process_id_t peer; /* of a client */
	ptl_pid_t pid;         /* own, or PTL_PID_ANY */
	bool once;             /* a server that ends after one client */
	bool measures[MEASURE_COUNT];
	unsigned size_count; /* 0: each measure's own */
	uint64_t sizes[SIZES_MAX];
	uint32_t window;
	struct effort effort; /* per size */
	bool poll;            /* ask for events in a loop instead of waiting */
	bool raw;             /* bare frames as well */
	bool json;
	bool stats;
};

const char *measure_name(enum measure measure);

/* Fills options, or ends the process: after --help and --version with 0, after a wrong option with
 * EXIT_USAGE. */
void options_parse(struct options *options, int count, char **words);

#endif
