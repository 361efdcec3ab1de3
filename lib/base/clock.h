/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the time as it is given to a poll core.
 *
 * Nothing below pmd-glue reads a hardware clock: an engine gets a clock when it is made, the TSC's
 * in a program, simulated time in tests/sim. Unit: nanoseconds since an arbitrary start. To a
 * thread that stays on its CPU it never goes back; what another one reads afterwards may be up to
 * about a microsecond behind.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define MICROSECOND UINT64_C(1000) /* ns */
#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

struct clock {
	uint64_t (*now)(void *context);
	void *context;
};

static inline uint64_t clock_now(const struct clock *clock)
{
	return clock->now(clock->context);
}

#endif
