/* SPDX-License-Identifier: BSD-3-Clause */
/* instruments.h - how postern-perf gets the host's instruments. libpostern exports this function
 * under the version POSTERN_PRIVATE. */
#ifndef P3_INSTRUMENTS_H
#define P3_INSTRUMENTS_H

#include <portals.h>

#include <host/instruments.h>

/* The table; NULL: the library is not of this release. Any thread, any time. */
PTL_API const struct instruments *postern_instruments(const char *release);

#endif
