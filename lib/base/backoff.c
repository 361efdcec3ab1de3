/* SPDX-License-Identifier: BSD-3-Clause */
/* backoff.c - see backoff.h. */
#include <base/backoff.h>

#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include <rte_pause.h>

#include <base/clock.h>

#define BACKOFF_NAP (50 * MICROSECOND)

void backoff(unsigned *looks)
{
	const struct timespec nap = {.tv_nsec = BACKOFF_NAP};

	if (++*looks % BACKOFF_LOOKS != 0)
		rte_pause();
	else
		syscall(SYS_nanosleep, &nap, NULL);
}
