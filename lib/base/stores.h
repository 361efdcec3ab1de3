/* SPDX-License-Identifier: BSD-3-Clause */
/* stores.h - by which stores a sender copies bulk into memory that it shares with a receiver: those
 * that are faster for where the two CPUs are now. One for each direction; no clock here.
 *
 * A cached store waits until the receiver's copy of its line is gone: between CPUs that share no
 * cache a copy by such stores has a seventh of the rate of one by stores that stream past the
 * caches. Between CPUs that do share one, these lose up to half. So the pair measures itself.
 *
 *      kept kind                        trial                         kept kind, whichever it is
 *      | batch | batch | ... | batch |  | skip | batch | batch |      | skip | batch | ...
 *
 * C1. What is measured is the time of a batch, so many bytes that are sent without a pause, waits
 *     for room included: that counts what the receiver needs to read them, too.
 * C2. Bytes are skipped while memory is new, and after each change, because lines lie where the
 *     other kind has left them.
 * C3. A trial that takes twice as long ends at once; the kind of one that is a tenth faster stays.
 * C4. The next trial comes after so many bytes, twice as many each time, until trials have less
 *     than a hundredth of all bytes; after a change it comes soon.
 */
#ifndef BASE_STORES_H
#define BASE_STORES_H

#include <stdbool.h>
#include <stdint.h>
#include <base/clock.h>

#define STORES_LEAST   2048u       /* bytes of a copy that is worth the question */
#define STORES_BATCH   (2u << 20)  /* bytes */
#define STORES_COLD    (4u << 20)  /* to skip at first, */
#define STORES_NEW     (2u << 20)  /* after memory was added, */
#define STORES_SKIP    (1u << 20)  /* and after a change */
#define STORES_BATCHES 2u          /* of a trial */
#define STORES_SOON    (32u << 20) /* bytes from a change to the next trial */
#define STORES_SELDOM  (1u << 30)
#define STORES_PAUSE   (100 * MICROSECOND) /* between two copies: the batch is void */

/* All zero, but for the two that stores_init() sets. */
struct stores {
	bool streams;     /* the kind in use; in a trial, the other one than is kept */
	bool tries;       /* a trial is under way */
	uint32_t skip;    /* bytes still to skip (C2) */
	uint32_t sent;    /* of this batch */
	uint32_t batches; /* of this trial that are over, */
	uint64_t tried;   /* and how long they took, ns */
	uint64_t tested;  /* when the trial began */
	uint64_t began;   /* when the batch did; 0: not yet */
	uint64_t last;    /* the last copy */
	uint64_t kept;    /* what a batch of the kept kind takes, ns, evened out; 0: not known */
	uint64_t left;    /* bytes until the next trial */
	uint64_t space;   /* what `left` was at first */
};

static inline void stores_init(struct stores *stores)
{
	*stores = (struct stores){.skip = STORES_COLD, .left = STORES_SOON, .space = STORES_SOON};
}

/* Memory was added to what is copied to (C2). */
static inline void stores_grow(struct stores *stores)
{
	if (stores->skip < STORES_NEW)
		stores->skip = STORES_NEW;
}

static inline void stores_change(struct stores *stores)
{
	stores->streams = !stores->streams;
	stores->skip = STORES_SKIP;
}

/* Ends a trial. changes: its kind is kept from now on. */
static inline void stores_settle(struct stores *stores, bool changes)
{
	stores->tries = false;
	if (changes) {
		stores->kept = stores->tried / STORES_BATCHES;
		stores->space = STORES_SOON;
	} else {
		stores_change(stores);
		if (stores->space < STORES_SELDOM)
			stores->space *= 2;
	}
	stores->left = stores->space;
}

/* A batch took so long. */
static inline void stores_learn(struct stores *stores, uint64_t took, uint64_t now)
{
	if (stores->tries) {
		stores->tried += took;
		if (++stores->batches == STORES_BATCHES)
			stores_settle(
				stores, 10 * stores->tried < 9 * STORES_BATCHES * stores->kept);
		return;
	}
	stores->kept = stores->kept == 0 ? took : (3 * stores->kept + took) / 4;
	stores->left -= stores->left < STORES_BATCH ? stores->left : STORES_BATCH;
	if (stores->left == 0) {
		stores->tries = true;
		stores->tested = now;
		stores->tried = stores->batches = 0;
		stores_change(stores);
	}
}

/* Is the trial in vain, or has it been disturbed? */
static inline bool stores_fails(const struct stores *stores, uint64_t now, bool paused)
{
	return stores->tries &&
	       (paused || now - stores->tested > (2 * STORES_BATCHES + 1) * stores->kept);
}

/* A copy of so many bytes, at least STORES_LEAST, is to be made now. Returns true if it is to
 * stream. */
static inline bool stores_choose(struct stores *stores, uint32_t bytes, uint64_t now)
{
	bool paused = now > stores->last + STORES_PAUSE;

	stores->last = now;
	if (paused)
		stores->began = 0;
	if (stores_fails(stores, now, paused))
		stores_settle(stores, false);
	else if (stores->began != 0 && stores->skip == 0 && stores->sent >= STORES_BATCH)
		stores_learn(stores, now - stores->began, now);
	else if (stores->began != 0 && stores->skip == 0) {
		stores->sent += bytes;
		return stores->streams;
	}
	stores->began = stores->skip == 0 ? now : 0;
	stores->sent = bytes;
	stores->skip -= stores->skip < bytes ? stores->skip : bytes;
	return stores->streams;
}

#endif
