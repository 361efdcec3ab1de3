/* SPDX-License-Identifier: BSD-3-Clause */
/* front.h - what a front end tells the host of itself, whether it is in use, and the two locks of
 * the library.
 *
 * A front end is an interface to programs, such as Portals 3.2. A process may use several at once;
 * each has interfaces of its own.
 *
 * L1. Order: the library's lock, then the glue's. A visitor (visitor.h) takes the glue's alone.
 *
 * L2. In a child made by fork() neither is taken: every front end is closed there, and front_open()
 *     refuses.
 */
#ifndef HOST_FRONT_H
#define HOST_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <engine/answer.h>

struct topic;
struct words;

struct front {
	const char *name;           /* for error lines: "Portals" */
	const char *start;          /* its call that leads to front_open() */
	int closed;                 /* its code for a call while it is not in use */
	const struct topic *topics; /* inspection.h */
	unsigned topic_count;
	const struct words *words;
	/* ns; transport.h. Programs of most front ends start in any order, and name each other
	 * before they are there. */
	uint64_t start_timeout;
	/* In a child made by fork(), which has none of what is open; NULL: the interfaces are all
	 * there is. */
	void (*forked)(void);
	/* The host's. */
	_Atomic bool open;
	unsigned uses; /* calls of front_open() that no front_close() has answered */
	struct front *next;
};

static inline bool front_is_open(const struct front *front)
{
	/* Acquire: pairs with the release in front_open(), so that the settings are there. */
	return atomic_load_explicit(&front->open, memory_order_acquire);
}

/* Counts a use of the front end. The first use of any reads the settings. OK; FAILED, after an
 * error line. Any thread. */
enum answer front_open(struct front *front) CORE_API(front_open);
/* Ends a use; with the last one the interfaces of the front end close. Any thread. */
void front_close(struct front *front) CORE_API(front_close);

/* Is this a child made by fork() from a process with a front end in use? */
bool library_is_forked(void) CORE_API(library_is_forked);

/* Nanoseconds by the TSC, on the clock of the engines. Front ends call this one: a glue_now() that
 * is linked into a library beside libpostern-core asks the kernel each time, because no
 * glue_start() of that copy has made it learn the TSC. Any thread. */
uint64_t library_now(void) CORE_API(library_now);

/* Settings, interfaces coming and going. */
void library_lock(void) CORE_API(library_lock);
void library_unlock(void) CORE_API(library_unlock);
/* Calls into pmd-glue, which takes one at a time. */
void library_glue_lock(void);
void library_glue_unlock(void);

#endif
