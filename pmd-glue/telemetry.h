/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.h - what both forms of a report for dpdk-telemetry.py share: DPDK's values, and the
 * text of listener.c. */
#ifndef PMD_GLUE_TELEMETRY_H
#define PMD_GLUE_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>

struct report;

/* Copies a text, cut off if need be; other characters than ASCII become question marks. */
void telemetry_plain(const char *text, char *plain, size_t size);
/* A flag is the number 0 or 1; null is left out. */
void telemetry_flag(struct report *report, const char *name, bool flag);
void telemetry_nothing(struct report *report, const char *name);

#endif
