/* SPDX-License-Identifier: BSD-3-Clause */
/* moment.h - a moment between two looks at something that another thread is about to do, where no
 * word can be slept on. It looks again at once for some microseconds, and then naps before each
 * further run of looks, so that a thread that was preempted gets this CPU. Nobody yields
 * (spinning.h, W9).
 */
#ifndef BASE_MOMENT_H
#define BASE_MOMENT_H

#include <base/core.h>

#define MOMENT_LOOKS 100 /* some microseconds, before each nap */

/* *looks: 0 before the first look. No cancellation point (cancel.h). */
void moment(unsigned *looks) CORE_API(moment);

#endif
