/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the kernel's knowledge of its interfaces, without a port on them. */
#ifndef PMD_GLUE_KERNEL_H
#define PMD_GLUE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <net/if.h>

/* The remedy for a process that may not open one. */
#define KERNEL_NEEDS                                                                               \
	"needs CAP_NET_RAW: start `posternd --iface %s` as root, or run as root or setcap "        \
	"cap_net_raw+ep PROGRAM, or set PTL_IFACE_NAME=udp:%s on all hosts"

#define KERNEL_NAME_ROOM (IF_NAMESIZE + 8) /* "xdp:" and a name */

/* The primary name of an interface that is named by an alternative one, which may be longer, with
 * "xdp:" or "udp:" before it as in `name`; `name` itself if it is not such a name. */
const char *kernel_primary(const char *name, char *text, size_t size);
/* Has the kernel an interface of this name? */
bool kernel_has(const char *name);
/* The number of this thread's network namespace; 1 if it cannot be had. */
uint64_t kernel_space(void);
/* A socket to ask the kernel with; -1 after an error line. */
int kernel_query(const char *interface);
/* As ioctl(2): SIOCGIF... for the interface of this name. */
int kernel_ask(int query, const char *interface, unsigned long request, struct ifreq *answer);
#define KERNEL_DRIVER_ROOM 32 /* ethtool's */
/* The driver of an interface, and the device that it is on, such as a PCI address ("" without one;
 * NULL: not wanted). Returns false, without a change to them, if the kernel does not say. */
bool kernel_driver(int query, const char *interface, char driver[KERNEL_DRIVER_ROOM],
	char device[KERNEL_DRIVER_ROOM]);
/* Is something at the other end of its cable, or of its tap? True if the kernel does not know. */
bool kernel_carrier(int query, const char *interface);
/* Is it up, and does it have a carrier? */
bool kernel_runs(int query, const char *interface);

bool kernel_may_open(void); /* may this process have a packet socket? */
bool kernel_is_up(const char *interface);

/* Checks an interface before it is opened, so that the error can name the cause. kind: "", or
 * "xdp:", which only its administrator may open. Returns the interface's MTU; 0 after an error
 * line. */
uint32_t kernel_check(int query, const char *interface, const char *kind);
/* The largest frame of a port: the interface's, or a smaller one that is wanted, and at most
 * `limit` bytes. 0 after an error line. */
uint32_t kernel_frame_size(const char *interface, uint32_t has, uint32_t wanted, uint32_t limit);

#endif
