/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the part of clock.c that eal.c calls. */
#ifndef PMD_GLUE_CLOCK_H
#define PMD_GLUE_CLOCK_H

/* Once EAL knows the TSC's frequency: from now on glue_now() reads the TSC, where the TSC can be
 * trusted. */
void clock_calibrate(void);

#endif
