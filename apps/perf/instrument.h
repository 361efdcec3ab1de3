/* SPDX-License-Identifier: BSD-3-Clause */
/* instrument.h - the library's instruments, and its clock. */
#ifndef PERF_INSTRUMENT_H
#define PERF_INSTRUMENT_H

#include <p3/instruments.h>

extern const struct instruments *instrument;

/* Before all else; ends the program if the library is of another release. */
void instrument_take(void);

#endif
