/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_portals.h - a Portals 4 and a PMI of one process, for several ranks of GASNet in it.
 *
 * Each rank is a copy of the library, and each of its threads a fiber: a thread that runs only
 * while it holds the baton. A fiber passes the baton on in calls that look at event queues. Then
 * messages take their next step as well, in an order that is chosen: first the source's bytes are
 * read, and the SEND event follows; then the target's entry is matched; then the data are written
 * and the target's event follows. AUTO_UNLINK follows the last of an entry's messages, as in
 * Postern.
 * Triggered operations and atomics do nothing: the model has no barriers.
 */
#ifndef FAKE_PORTALS_H
#define FAKE_PORTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <portals4.h>

#define RANKS_MAX  5u
#define FIBERS_MAX 10u
#define PORTALS    10u

/* Which message takes the next step. */
enum order {
	ORDER_RANDOM,
	ORDER_OLDEST,
	ORDER_NEWEST,
	ORDER_DATA_FIRST,     /* a long message's data before its header */
	ORDER_DATA_LAST,      /* and after it */
	ORDER_SENDS_LAST,     /* sources are read late, so replies wait */
	ORDER_RELEASES_LAST,  /* counts of released credits come late */
	ORDER_TRANSFERS_LAST, /* acknowledgements of puts, and data of gets, come late */
	ORDERS
};

/* --- for the program */

void fake_begin(unsigned ranks, enum order order, uint64_t seed);
/* A thread of a rank; `run` is called with its argument. */
void fake_fiber(unsigned rank, void (*run)(unsigned), unsigned argument);
/* Runs all fibers to their ends. */
void fake_run(void);
/* Whether all messages have arrived, and all unlinked entries are known. */
bool fake_is_quiet(void);
/* Entries of a rank's portal that take messages. */
unsigned fake_entries(unsigned rank, ptl_pt_index_t portal);

/* --- for ranks */

#define FAKE_API __attribute__((visibility("default")))
FAKE_API unsigned fake_random(unsigned below);
FAKE_API unsigned fake_rank(void);
/* Passes the baton on, perhaps. */
FAKE_API void fake_yield(void);
/* Something has happened: the ranks do not wait for each other. */
FAKE_API void fake_goes_on(void);
/* Ends the process after a line, with an error. */
FAKE_API void fake_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* --- what the oracle gets to see */

struct seen_put {
	unsigned from, to;
	ptl_pt_index_t portal;
	ptl_match_bits_t bits;
	ptl_hdr_data_t header;
	const void *source;
	size_t length;
	ptl_size_t offset;
	bool acknowledged, get;
};
void oracle_put(const struct seen_put *put);                /* at the call */
void oracle_arrived(const struct seen_put *put);            /* the target's memory has the bytes */
void oracle_event(unsigned rank, const ptl_event_t *event); /* the library takes it */

#endif
