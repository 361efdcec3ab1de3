/* SPDX-License-Identifier: BSD-3-Clause */
/* backoff.h - how a thread waits between two looks at something that another thread is about to do,
 * where there is no word to sleep on. It looks again at once for some microseconds, and then sleeps
 * before each further run of looks, so that a thread that was preempted gets this CPU. It never
 * yields (spinning.h, W9).
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <base/core.h>

#define BACKOFF_LOOKS 100 /* some microseconds, before each nap */

/* *looks: 0 before the first look. No cancellation point (cancel.h). */
void backoff(unsigned *looks) CORE_API(backoff);

#endif
