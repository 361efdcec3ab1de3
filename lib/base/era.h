/* SPDX-License-Identifier: BSD-3-Clause */
/* era.h - how often something has changed that threads otherwise do not look at: an interface
 * closed, a trace began.
 *
 * A writer changes the thing and then adds one. A reader keeps the number that it read before it
 * looked, and needs not look again while the number is the same.
 */
#ifndef BASE_ERA_H
#define BASE_ERA_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/core.h>

#define ERA_NEVER 0 /* no era */

extern _Atomic uint64_t era CORE_API(era);

static inline uint64_t era_now(void)
{
	/* Acquire: what is looked at later is not older. */
	return atomic_load_explicit(&era, memory_order_acquire);
}

static inline void era_end(void)
{
	atomic_fetch_add_explicit(&era, 1, memory_order_release);
}

#endif
