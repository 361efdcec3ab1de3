/* SPDX-License-Identifier: BSD-3-Clause */
/* local.h - the address of this host that a port on UDP sockets has, and the interface that has it.
 *
 * An address in PTL_IFACE_NAME decides which version of IP is used. Otherwise PTL_HOSTS does: IPv6
 * if it is set, by the address that it has of this host or of the named interface; else IPv4.
 */
#ifndef PMD_GLUE_LOCAL_H
#define PMD_GLUE_LOCAL_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <pmd-glue/nodes.h>

struct local {
	struct nodes nodes; /* the caller's to free */
	uint32_t nid;
	char interface[IFNAMSIZ];
};

/* local: zeroed. name: what follows "udp:", or "". port: the port's name, for messages. Returns
 * false after an error line. */
bool local_choose(struct local *local, const char *name, const char *port);
/* Has this host an address for "udp"? */
bool local_is_there(void);

#endif
