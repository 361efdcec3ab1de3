/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.h - what both who answer dpdk-telemetry.py share: DPDK and listener.c. */
#ifndef PMD_GLUE_TELEMETRY_H
#define PMD_GLUE_TELEMETRY_H

#include <stddef.h>

/* Copies a text, cut off if need be; other characters than ASCII become question marks. */
void telemetry_plain(const char *text, char *plain, size_t size);

#endif
