/* SPDX-License-Identifier: BSD-3-Clause */
/* kinds.h - the kinds of ports and their limits. Each opens one port, or gives NULL after an error
 * line. */
#ifndef PMD_GLUE_KINDS_H
#define PMD_GLUE_KINDS_H

#include <stdint.h>
#include <base/port.h>

#define FRAME_HEADER 14u /* an Ethernet header */
#define TAG_AT       12u /* where an 802.1Q tag stands in a frame */
#define TAG          4u  /* and its bytes */
/* for devices without a limit: a jumbo frame with room for headers */
#define FRAME_DEFAULT 9216u
#define FRAME_MAX     (PORT_MTU_MAX + FRAME_HEADER)
#define FRAME_MIN     (PORT_MTU_MIN + FRAME_HEADER)
#define GATHER_BYTES  2048u /* of data: from here on one more mbuf costs less than a copy */
#define DESCRIPTORS   1024u /* of each ring, for devices that take any number */
#define XDP_ROOM      2048u /* the kernel wants buffers of at least that */
/* Frames in af_xdp's rings: 2,048 that wait to be filled, as many to be sent, and as many that were
 * sent, which the driver frees when it sends others. With fewer buffers a process that waits for a
 * frame would have none to receive it in. */
#define XDP_HELD (3u * 2048)

struct port *loop_open(const char *wire, uint32_t mtu); /* loop.c */
/* node.c; name: "" for the usual one; pid: as with glue_port_open(). optional: where there is no
 * directory to meet in, NULL without a line, and node_lack() says why. */
struct port *node_open(
	const char *name, uint32_t mtu, unsigned interface, uint32_t pid, bool optional);
/* node.c: the node of those processes of this machine that have the same uplink. name: of its
 * directory, which goes with the last process. The port closes the uplink. NULL: the uplink stays
 * the caller's; without a line and with node_lack() if there is no directory to meet in, else after
 * an error line. */
struct port *node_open_over(struct port *uplink, const char *name, uint32_t nid, uint32_t pid);
/* Why the last of these two found no directory to meet in; "" if that was not the reason. */
const char *node_lack(void);
/* udp.c: a port on a UDP socket. name: an interface or an address of this host; "": the usual one.
 * first_only: only the first UDP port of that process id will do, and no error line is written
 * if another program has it. */
struct port *udp_open(
	const char *name, uint32_t mtu, unsigned number, uint32_t pid, bool first_only);
/* uplink.c: the same, and the node of the processes that have it. */
struct port *uplink_open_udp(const char *name, uint32_t mtu, unsigned number, uint32_t pid);
/* uplink.c: the port of a process on a kernel interface that others may have as well. */
struct port *uplink_open(const char *interface, uint32_t mtu, unsigned number, uint32_t pid);
/* The same of any device that posternd has. *absent: NULL was returned without an error line,
 * because no posternd has it. */
struct port *uplink_open_client(
	const char *name, uint32_t mtu, unsigned number, uint32_t pid, bool *absent);
struct port *packet_open(const char *interface, uint32_t mtu); /* packet.c */
struct port *xdp_open(const char *interface, uint32_t mtu);    /* xdp.c */
/* device.c; vlan: the tag that frames will carry, 0 for none */
struct port *device_open_pci(const char *address, uint32_t mtu, uint16_t vlan);
struct port *device_open_string(const char *string, uint32_t mtu, uint16_t vlan);

/* fault.c: wraps a port in the faults that the specification asks for; closes it when the
 * specification is wrong. */
struct port *fault_open(struct port *port, unsigned interface, const char *specification);
/* The port inside the faults; the port itself when there are none. */
struct port *fault_inside(struct port *port);

/* A port cannot be opened because another process has the process id: glue_pid_is_taken(). */
void kinds_pid_taken(void);
bool kinds_pid_is_tried(void); /* glue_pid_try() */

/* Bytes of the largest frame for a wish of mtu (0: none) on a port that has no limit of its own; 0
 * after an error line. */
uint32_t kinds_frame_size(const char *name, uint32_t mtu);

#endif
