/* SPDX-License-Identifier: BSD-3-Clause */
/* moment.c - see moment.h. */
#include <base/moment.h>

#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include <rte_pause.h>

#include <base/clock.h>

#define MOMENT_NAP (50 * MICROSECOND)

void moment(unsigned *looks)
{
	const struct timespec nap = {.tv_nsec = MOMENT_NAP};

	if (++*looks % MOMENT_LOOKS != 0)
		rte_pause();
	else
		syscall(SYS_nanosleep, &nap, NULL);
}
