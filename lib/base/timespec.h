/* SPDX-License-Identifier: BSD-3-Clause */
/* timespec.h - times for the system's calls, in nanoseconds. The poll core's time is in clock.h. */
#ifndef BASE_TIMESPEC_H
#define BASE_TIMESPEC_H

#include <time.h>

#include <base/clock.h>

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

/* CLOCK_MONOTONIC */
static inline uint64_t time_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

#endif
