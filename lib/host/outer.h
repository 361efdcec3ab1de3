/* SPDX-License-Identifier: BSD-3-Clause */
/* outer.h - what an interface's settings make of the headers before the transport's. Under the
 * library's lock. */
#ifndef HOST_OUTER_H
#define HOST_OUTER_H

#include <base/port.h>
#include <wire/encapsulation.h>

/* Reads PTL_ENCAP, PTL_VLAN, PTL_IP, PTL_GATEWAY and PTL_UDP_PORT for interface `number`. With udp,
 * options->address is its node id. 0, or -1 after an error line. */
int outer_choose(unsigned number, const struct port *port, struct encapsulation_options *options);

#endif
