/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h - DPDK's libraries that make devices from strings. */
#ifndef PMD_GLUE_DRIVER_H
#define PMD_GLUE_DRIVER_H

#include <stdbool.h>

/* Has DPDK not loaded the library that makes devices of this kind ("net_tap0")? Then an error line
 * names the package to install; name is the user's name for the device. Call this when DPDK could
 * not make the device. */
bool driver_missing(const char *name, const char *device);

#endif
