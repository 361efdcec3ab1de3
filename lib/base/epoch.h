/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.h - how often something has changed that threads otherwise do not look at: an interface
 * closed, a trace began.
 *
 * A writer changes the thing and then adds one. A reader keeps the number that it read before it
 * looked, and needs not look again while the number is the same.
 */
#ifndef BASE_EPOCH_H
#define BASE_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/core.h>

#define EPOCH_NEVER 0 /* no epoch */

extern _Atomic uint64_t epoch CORE_API(epoch);

static inline uint64_t epoch_now(void)
{
	/* Acquire: what is looked at later is not older. */
	return atomic_load_explicit(&epoch, memory_order_acquire);
}

static inline void epoch_end(void)
{
	atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
}

#endif
