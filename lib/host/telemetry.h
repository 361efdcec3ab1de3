/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.h - dpdk-telemetry.py's way to the topics of inspection.h. */
#ifndef HOST_TELEMETRY_H
#define HOST_TELEMETRY_H

struct front;

/* Once DPDK runs: from then on this process answers for the topics of the front end, too. Does
 * nothing when it is called again. The library's lock and the glue's are held. */
void telemetry_start(const struct front *front);

#endif
