/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry.h - dpdk-telemetry.py's way to the topics of inspection.h. */
#ifndef HOST_TELEMETRY_H
#define HOST_TELEMETRY_H

/* Once DPDK runs: from then on this process answers. Does nothing when it is called again. The
 * library's lock and the glue's are held. */
void telemetry_start(void);

#endif
