/* SPDX-License-Identifier: BSD-3-Clause */
/* card.h - what Postern is worth on this machine: five ratios, and what they depend on. */
#ifndef PERF_CARD_H
#define PERF_CARD_H

#include "options.h"

/* Measures and prints. Returns the program's exit code. */
int card_print(const struct options *options);

#endif
