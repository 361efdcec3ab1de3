/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h - DPDK's libraries that are loaded while a process runs. */
#ifndef PMD_GLUE_DRIVER_H
#define PMD_GLUE_DRIVER_H

#include <stdbool.h>

/* Has DPDK not loaded the library that makes devices of this kind ("net_tap0")? Then an error line
 * names the package to install; name is the user's name for the device. Call this when DPDK could
 * not make the device. */
bool driver_missing(const char *name, const char *device);

/* A function of a library of DPDK's that few processes need, which is loaded now: kind is "pdump",
 * name the user's setting. NULL after an error line: the library is not installed. */
void *library_function(const char *name, const char *kind, const char *function);

#endif
