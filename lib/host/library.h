/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - whether the library is open, and its two locks. Of the front end alone.
 *
 * L1. Order: the library's lock, then the glue's. A visitor (interface.h) takes the glue's alone.
 *
 * L2. In a child made by fork() neither is taken: the first look at the state turns every call
 * away.
 */
#ifndef HOST_LIBRARY_H
#define HOST_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>

enum library_state { LIBRARY_CLOSED, LIBRARY_OPEN, LIBRARY_FORKED };

extern _Atomic int library_state;

static inline bool library_is_open(void)
{
	/* Acquire: pairs with the release in PtlInit, so that the settings are there. */
	return atomic_load_explicit(&library_state, memory_order_acquire) == LIBRARY_OPEN;
}

static inline bool library_is_forked(void)
{
	return atomic_load_explicit(&library_state, memory_order_relaxed) == LIBRARY_FORKED;
}

/* Settings, interfaces coming and going. */
void library_lock(void);
void library_unlock(void);
/* Calls into pmd-glue, which takes one at a time. */
void library_glue_lock(void);
void library_glue_unlock(void);

#endif
