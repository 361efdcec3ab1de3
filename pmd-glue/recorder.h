/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.h - files that captures go to, each written by a thread of its own.
 *
 * A track is one interface's part of a file. The thread that has frames puts whole packet blocks
 * (pcapng.h) on its ring and never waits; the recorder's thread writes them down, ring by ring. If
 * the file fails, the recording ends with a line in the log; nothing else is affected.
 *
 * track_open() and track_finish() are called under the front end's lock for pmd-glue.
 */
#ifndef PMD_GLUE_RECORDER_H
#define PMD_GLUE_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pmd-glue/pcapng.h>
#include <pmd-glue/byte_ring.h>

struct recorder;

struct track {
	struct byte_ring ring;
	uint32_t number; /* of the interface in the file */
	/* Frames, counted by the thread that has them. */
	_Atomic uint64_t taken;   /* including dropped ones */
	_Atomic uint64_t dropped; /* frames that found the ring full */
	struct recorder *recorder;
	/* Under the recorder's lock. */
	struct track *next;
	char name[64];
	char description[128];
	uint8_t address[6];
	uint32_t snap;
	uint64_t started;
	bool announced; /* the interface is in the file */
	bool leaving;
	bool gone;
};

/* Has a recording to that file ended by itself, with tracks in it that have not been finished? */
bool recorder_failed(const char *file);
/* A track in the file, which is made, or emptied, if no other track of this process is in it; "-"
 * is standard output. In a recording that has ended by itself its frames are dropped. NULL after an
 * error line. */
struct track *track_open(const char *file, const struct pcapng_interface *interface);
/* Has the recording ended by itself? Then nobody reads the ring any more. */
bool track_ended(const struct track *track);
/* Waits until all is written, and frees the track. Nobody writes to its ring any more. */
void track_finish(struct track *track);
/* The file of a track, for messages. */
const char *track_file(const struct track *track);

/* Nanoseconds since 1970. */
uint64_t recorder_time(void);

#endif
