/* SPDX-License-Identifier: BSD-3-Clause */
/* capture.h - a port's frames as they are on the wire, into a pcapng file. See glue.h for starting
 * and stopping one. */
#ifndef PMD_GLUE_CAPTURE_H
#define PMD_GLUE_CAPTURE_H

#include <base/port.h>

/* Does what PTL_CAPTURE says for an interface's port, which nobody polls yet. 0, or -1 after an
 * error line. */
int capture_begin(struct port *port, unsigned interface);

#endif
