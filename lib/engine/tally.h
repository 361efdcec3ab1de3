/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.h - accesses of peers that an entry counts for the program in an object of the program's,
 * by what they do to its memory. Like an outcome (outcome.h) the object is handed over in the list
 * of the entry's queue, which wakes readers; unlike one it counts on, and comes again.
 *
 *     poll core                                     reader, under a lock of its own
 *     counts                      (relaxed)
 *     listed: 1                   (acq_rel A)       takes the list (outcome.h)
 *     it was 0: into the list                       listed: 0                   (acq_rel A)
 *                                                   counts                      (relaxed)
 *
 * L1. No access is lost, however late a reader comes, and none costs more than a place in the list:
 *     either the reader's exchange (A) comes after the poll core's, then it sees the counts, or the
 *     poll core finds 0 and lists the object once more.
 */
#ifndef ENGINE_TALLY_H
#define ENGINE_TALLY_H

#include <engine/queue.h>

/* A fetch says by its `value` which of these it is. */
enum tally_access { TALLY_CHANGES, TALLY_READS, TALLY_WRITES, TALLY_ACCESSES };

struct tally {
	struct outcome outcome;  /* first: it is in the list */
	_Atomic uint32_t wanted; /* the program's: bits of those that are counted */
	_Atomic uint32_t listed;
	uint64_t successes[TALLY_ACCESSES];
	uint64_t failures[TALLY_ACCESSES];
};

/* Reader, of an object that it has taken from the list, before it looks at the counts. */
static inline void tally_taken(struct tally *tally)
{
	(void)atomic_exchange_explicit(&tally->listed, 0, memory_order_acq_rel);
}

#endif
