/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - a record of the life of each message, by thread, to be drawn as a picture.
 *
 * Off, a record costs a load and a branch that is foreseen; on, reading the time stamp counter and
 * a store into the thread's own memory. Nothing is allocated or locked while records are made:
 * trace_start() makes the tracks, and a thread takes one with its first record. A full track keeps
 * the latest records.
 *
 * T1. A track is written by one thread. The file is written when no thread makes records any
 *     more: after trace_stop(), and after the interfaces have been closed.
 * T2. A process makes one trace in its life, so a thread's track never goes stale.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifndef __x86_64__
#include <rte_cycles.h>
#endif

#include <base/core.h>

enum trace_point {
	TRACE_CALL,         /* the application asks for a put or a get; this has no name yet */
	TRACE_COMMAND,      /* the poll core took a put or a get from the application */
	TRACE_MATCH,        /* a message found its match entry */
	TRACE_PLACE,        /* all its data is where it belongs */
	TRACE_EVENT,        /* its event can be read by the application */
	TRACE_ACKNOWLEDGED, /* the initiator's transport knows that every byte has arrived */
	TRACE_ACK,          /* the initiator has the Portals acknowledgement */
	TRACE_TAKEN,        /* the application has taken an event; without a name, too */

	/* of Portals 4, and of whatever else has tiers (engine/tracing.h) */
	TRACE_ARRIVED, /* the target's poll core has a request */
	TRACE_DONE,    /* the target has carried out a put or a get, or has refused it */
	TRACE_ATOMIC,  /* the same of an atomic, or of a fetching one */
	/* without a name; the length is another number: */
	TRACE_TRIGGER, /* what waited for a counter is due; its threshold */
	TRACE_COUNT,   /* the application, or what was triggered, has changed a counter; its sum */
	TRACE_WAKE,    /* a counter has woken those who wait for it; its sum */
	TRACE_SEARCH,  /* a search of kept messages; whether it found one */
	TRACE_POINTS
};

struct trace_record {
	uint64_t time;    /* TSC */
	uint64_t message; /* names it on both sides; 0: it has no name */
	uint64_t length;  /* bytes, or what the point says */
	uint32_t interface;
	uint32_t point; /* enum trace_point */
};

struct trace_track {
	uint64_t count; /* of records made */
	char name[16];  /* of the thread */
	struct trace_record records[];
};

extern _Atomic bool trace_on CORE_API(trace_on);
extern _Thread_local struct trace_track *trace_self CORE_API(trace_self)
	__attribute__((tls_model("initial-exec")));
extern uint64_t trace_mask CORE_API(trace_mask); /* records of a track - 1 */

/* Makes tracks of so many records, a power of two, for so many threads, and begins. 0, or -1: there
 * is no memory, or there has been a trace (T2). Not thread-safe, as trace_stop() and
 * trace_write(). */
int trace_start(uint32_t tracks, uint32_t records);
void trace_stop(void);
/* Writes it in the JSON of chrome://tracing and Perfetto: each record on the row of its thread, and
 * a bar for each message from its first record to its last. Returns false if there is no memory, or
 * the file cannot be written (errno). */
bool trace_write(FILE *file);
/* How many records were made, and how many of them are still there. */
void trace_count(uint64_t *made, uint64_t *kept);

/* Gives the calling thread a track; NULL: there is none left. */
struct trace_track *trace_track_take(void) CORE_API(trace_track_take);

/* The TSC. <rte_cycles.h> takes 20 ms to compile, for what else it includes. */
static inline uint64_t trace_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return rte_rdtsc();
#endif
}

/* A name for the message that a process began as its so-manieth; never 0. */
static inline uint64_t trace_message(uint32_t nid, uint32_t pid, uint64_t number)
{
	uint64_t value = ((uint64_t)nid << 32 | pid) * UINT64_C(0x9e3779b97f4a7c15) ^ number;

	return value != 0 ? value : 1;
}

/* Is a trace under way? */
static inline bool trace_wanted(void)
{
	return __builtin_expect(atomic_load_explicit(&trace_on, memory_order_relaxed), 0);
}

/* Any thread. */
static inline void trace(
	enum trace_point point, uint32_t interface, uint64_t message, uint64_t length)
{
	struct trace_track *track;

	if (!trace_wanted())
		return;
	track = trace_self ? trace_self : trace_track_take();
	if (track)
		track->records[track->count++ & trace_mask] = (struct trace_record){
			trace_now(), message, length, interface, (uint32_t)point};
}

#endif
