/* SPDX-License-Identifier: BSD-3-Clause */
/* nap.h - how tests wait for another thread or process. A yield gives a whole time slice away on a
 * busy machine (Linux 6.18), and a test that yields a thousand times takes minutes there. */
#ifndef TESTS_NAP_H
#define TESTS_NAP_H

#include <time.h>

static inline void nap(void)
{
	nanosleep(&(const struct timespec){.tv_nsec = 10000}, NULL);
}

#endif
