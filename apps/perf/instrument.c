/* SPDX-License-Identifier: BSD-3-Clause */
/* instrument.c - see instrument.h. */
#include <postern.h>

#include "complain.h"
#include "instrument.h"

const struct instruments *instrument;

void instrument_take(void)
{
	instrument = postern_instruments(PERF_RELEASE);
	if (!instrument)
		complain("this is the program of Postern " PERF_RELEASE
			 ", but libpostern.so.0 is %s; install both of the same release.",
			postern_version());
}
