/* SPDX-License-Identifier: BSD-3-Clause */
/* xdp.c - ports on interfaces of the kernel by af_xdp, through DPDK's driver.
 *
 * Opened and closed under the front end's lock; owned by one poll core in between.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/remedy.h>
#include <pmd-glue/driver.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kernel.h>
#include <pmd-glue/kinds.h>

#define XDP_FRAME      1518u
#define XDP_FRAME_HUGE 3542u
/* A worker of the kernel gives the queue of a closed socket back a while later, also that of a
 * process that ended. */
#define LINGERS       (5 * SECOND)
#define TRIES         100u
#define SOCKETS_MAX   256u /* of a kind in this process */
#define LINK_INTERVAL (100 * MILLISECOND)

struct xdp {
	struct ethdev ethdev; /* first: a port is an ethdev is an xdp port */
	int query;            /* a socket to ask the kernel with */
	char interface[IFNAMSIZ];
};

static unsigned xdp_count; /* for names of devices; under the front end's lock */

static bool xdp_link(struct port *port)
{
	struct xdp *xdp = (struct xdp *)port;
	struct ethdev *ethdev = &xdp->ethdev;
	uint64_t now = glue_now(NULL);
	if (now < ethdev->look)
		return ethdev->up;
	ethdev->look = now + LINK_INTERVAL;
	ethdev->up = kernel_runs(xdp->query, xdp->interface);
	return ethdev->up;
}

static bool socket_is_xdp(int fd)
{
	int is = -1;
	socklen_t size = sizeof(is);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &is, &size) == 0 && is == AF_XDP;
}

/* The driver of DPDK 22.11 forgets its socket, and the kernel would not let another one have the
 * queue. */
static void xdp_close(struct port *port)
{
	struct xdp *xdp = (struct xdp *)port;
	int socket = xdp->ethdev.socket;

	ethdev_close(&xdp->ethdev);
	if (socket >= 0 && socket_is_xdp(socket))
		close(socket);
	close(xdp->query);
	free(xdp);
}

static const struct port_operations xdp_operations = {
	.receive = ethdev_receive,
	.transmit = ethdev_transmit,
	.link = xdp_link,
	.counters = ethdev_counters,
	.interrupt = ethdev_interrupt,
	.describe = ethdev_describe,
	.close = xdp_close,
};

/* --- opening --- */

/* The sockets of af_xdp that this process has. */
static unsigned sockets_list(int *sockets, unsigned count)
{
	struct dirent *entry;
	unsigned found = 0;
	DIR *directory = opendir("/proc/self/fd");
	if (!directory)
		return 0;
	while (found < count && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (socket_is_xdp(fd))
			sockets[found++] = fd;
	}
	closedir(directory);
	return found;
}

/* The driver's socket: the one that was not open before; -1: not known. */
static int socket_new(const int *before, unsigned before_count)
{
	int now[SOCKETS_MAX], fresh = -1;
	unsigned count = sockets_list(now, SOCKETS_MAX);
	for (unsigned n = 0; n < count; n++) {
		unsigned known = 0;
		while (known < before_count && before[known] != now[n])
			known++;
		if (known < before_count)
			continue;
		if (fresh >= 0)
			return -1;
		fresh = now[n];
	}
	return fresh;
}

/* libxdp and libbpf, which DPDK's driver uses, write messages to standard error: that is switched
 * off. */
static void libraries_hush(void)
{
	static const struct {
		const char *library;
		const char *function;
	} loud[] = {{"libxdp.so.1", "libxdp_set_print"}, {"libbpf.so.1", "libbpf_set_print"}};
	for (size_t n = 0; n < sizeof(loud) / sizeof(loud[0]); n++) {
		void *library = dlopen(loud[n].library, RTLD_NOW | RTLD_NOLOAD);
		void *(*set_print)(void *);
		if (!library)
			continue;
		*(void **)&set_print = dlsym(library, loud[n].function);
		if (set_print)
			set_print(NULL);
		dlclose(library);
	}
}

static int xdp_plug(const struct xdp *xdp, const char *device, const char *name)
{
	char arguments[256], why[256];
	/* Else the kernel holds frames back until the driver asks for them. */
	snprintf(arguments, sizeof(arguments), "%s,iface=%s,busy_budget=0", device, xdp->interface);
	if (ethdev_plug(arguments) == 0)
		return 0;
	if (driver_missing(name, device))
		return -1;
	log_error("%s: DPDK cannot open it (%s); perhaps this kernel or the interface's "
		  "driver has no AF_XDP: set "
		  "PTL_IFACE_NAME=%s, which needs no AF_XDP",
		name, eal_reason(why, sizeof(why)), xdp->interface);
	return -1;
}

/* The driver tells no reason and cannot set the queue of a device up twice. */
static int xdp_start(struct xdp *xdp, struct ethdev_options *options)
{
	const struct timespec pause = {.tv_nsec = LINGERS / TRIES};
	int sockets[SOCKETS_MAX];
	unsigned count = sockets_list(sockets, SOCKETS_MAX);
	char device[32];
	for (unsigned tries = 1;; tries++) {
		options->retried = tries < TRIES;
		snprintf(device, sizeof(device), "net_af_xdp_postern%u", xdp_count++);
		if (xdp_plug(xdp, device, options->name) != 0)
			return -1;
		if (ethdev_open(&xdp->ethdev, device, options) == 0) {
			xdp->ethdev.port.operations = &xdp_operations;
			xdp->ethdev.socket = socket_new(sockets, count);
			xdp->ethdev.port.calls = xdp->ethdev.socket >= 0;
			return 0;
		}
		if (!xdp->ethdev.refused || !options->retried)
			return -1;
		memset(&xdp->ethdev, 0, sizeof(xdp->ethdev));
		xdp->ethdev.id = RTE_MAX_ETHPORTS;
		nanosleep(&pause, NULL);
	}
}

static int xdp_prepare(struct xdp *xdp, uint32_t mtu)
{
	char name[IFNAMSIZ + 8];
	uint32_t has = kernel_check(xdp->query, xdp->interface, "xdp:");
	struct ethdev_options options = {
		.name = name, .room = XDP_ROOM, .held = XDP_HELD, .remove = true, .external = true};
	if (has == 0)
		return -1;
	snprintf(name, sizeof(name), "xdp:%s", xdp->interface);
	options.frame_size = kernel_frame_size(
		xdp->interface, has, mtu, glue_hugepages() ? XDP_FRAME_HUGE : XDP_FRAME);
	if (options.frame_size == 0)
		return -1;
	libraries_hush();
	return xdp_start(xdp, &options);
}

struct port *xdp_open(const char *interface, uint32_t mtu)
{
	struct xdp *xdp = calloc(1, sizeof(*xdp));
	if (!xdp) {
		log_error("xdp:%s: out of memory: %s", interface, remedy_for_memory());
		return NULL;
	}
	xdp->ethdev.id = RTE_MAX_ETHPORTS;
	snprintf(xdp->interface, sizeof(xdp->interface), "%s", interface);
	xdp->query = kernel_query(interface);
	if (xdp->query >= 0 && xdp_prepare(xdp, mtu) == 0)
		return &xdp->ethdev.port;
	if (xdp->query >= 0)
		close(xdp->query);
	free(xdp);
	return NULL;
}
