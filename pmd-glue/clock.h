/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the part of clock.c that eal.c calls. */
#ifndef PMD_GLUE_CLOCK_H
#define PMD_GLUE_CLOCK_H

/* From now on glue_now() learns how fast the TSC ticks, where the TSC can be trusted. */
void clock_begin(void);

#endif
