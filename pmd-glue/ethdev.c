/* SPDX-License-Identifier: BSD-3-Clause */
/* ethdev.c - start-up and bursts that all ports on DPDK's ethernet devices share. See ethdev.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include <base/clock.h>
#include <base/log.h>
#include <base/settings.h>
#include <pmd-glue/eal.h>
#include <pmd-glue/ethdev.h>
#include <pmd-glue/glue.h>
#include <pmd-glue/kinds.h>
#include <pmd-glue/pool.h>

#define BURST         64u
#define LINK_INTERVAL (10 * MILLISECOND) /* some devices are asked over a slow bus */
#define DEVICE_MTU    1500u              /* of a device that does not report one */
/* that DPDK adds to the MTU: the frame's checksum counts */
#define CARD_HEADER (FRAME_HEADER + 4u)
/* after which an interrupt for a frame that has come does not come any more */
#define SILENCE MILLISECOND
/* frames without an interrupt, and none with one, until interrupts of a queue are not expected any
 * more */
#define SILENCES_MAX       8u
#define CHECKSUMS_SENT     (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
#define CHECKSUMS_RECEIVED (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM)

/* Drivers of DPDK's that copy a frame, of several segments and from any memory, before
 * rte_eth_tx_burst() returns, and drop it at once. A test covers each. Some other drivers send
 * garbage for the second segment, and some keep a frame until others follow. */
static const char *const copying[] = {"net_memif"};

static const struct port_operations ethdev_operations = {
	.receive = ethdev_receive,
	.transmit = ethdev_transmit,
	.link = ethdev_link,
	.counters = ethdev_counters,
	.interrupt = ethdev_interrupt,
	.describe = ethdev_describe,
	.close = ethdev_free,
};

int ethdev_plug(const char *arguments)
{
	char name[64];
	const char *comma = strchr(arguments, ',');
	size_t length = comma ? (size_t)(comma - arguments) : strlen(arguments);
	struct eal_guard *guard;
	int result;
	if (length == 0 || length >= sizeof(name))
		return -1;
	memcpy(name, arguments, length);
	name[length] = 0;
	guard = eal_enter();
	eal_reason_clear();
	result = rte_eal_hotplug_add("vdev", name, comma ? comma + 1 : "");
	eal_leave(guard);
	return result == 0 ? 0 : -1;
}

void ethdev_unplug(const char *name)
{
	struct eal_guard *guard = eal_enter();
	rte_eal_hotplug_remove("vdev", name);
	eal_leave(guard);
}

static int ethdev_complain(const struct ethdev *ethdev, const char *what, int error)
{
	char why[256];
	log_error("%s: cannot %s: %s (%s)", ethdev->port.name, what, strerror(-error),
		eal_reason(why, sizeof(why)));
	return -1;
}

/* The largest MTU that the device takes; UINT16_MAX if it does not report one. */
static uint32_t ethdev_mtu_max(const struct rte_eth_dev_info *info)
{
	if (info->max_mtu != 0 && info->max_mtu != UINT16_MAX)
		return info->max_mtu;
	if (info->max_rx_pktlen > CARD_HEADER && info->max_rx_pktlen < UINT16_MAX)
		return info->max_rx_pktlen - CARD_HEADER;
	return UINT16_MAX;
}

/* The largest frame: the caller's figure, or the one that the device reports. */
static int ethdev_size(struct ethdev *ethdev, const struct ethdev_options *options,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	uint16_t mtu = 0;
	if (options->frame_size != 0) {
		ethdev->port.frame_size = options->frame_size;
		return 0;
	}
	if (rte_eth_dev_get_mtu(ethdev->id, &mtu) != 0 || mtu == 0)
		mtu = DEVICE_MTU;
	if (options->mtu != 0)
		mtu = (uint16_t)options->mtu;
	if (mtu > FRAME_MAX - FRAME_HEADER)
		mtu = FRAME_MAX - FRAME_HEADER;
	if (mtu > ethdev_mtu_max(info)) {
		log_error("%s: PTL_MTU is %u, but this device takes no more than %u: set "
			  "PTL_MTU=%u or less",
			ethdev->port.name, mtu, ethdev_mtu_max(info), ethdev_mtu_max(info));
		return -1;
	}
	conf->rxmode.mtu = mtu;
	ethdev->port.frame_size = mtu + FRAME_HEADER;
	return 0;
}

/* The device computes IPv4 and UDP checksums if it can and if frames will have any: some devices
 * are slower with this switched on. */
static void ethdev_checksums(
	struct ethdev *ethdev, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	if (!setting_is(SETTING_ENCAP, "udp"))
		return;
	conf->rxmode.offloads |= info->rx_offload_capa & CHECKSUMS_RECEIVED;
	if ((info->tx_offload_capa & CHECKSUMS_SENT) != CHECKSUMS_SENT)
		return;
	conf->txmode.offloads |= CHECKSUMS_SENT;
	ethdev->port.checksum_offload = true;
}

/* Bytes that a buffer holds. A caller that names the largest frame knows the driver as well. */
static uint32_t ethdev_room(const struct ethdev *ethdev, const struct rte_eth_dev_info *info,
	const struct ethdev_options *options)
{
	if (options->frame_size != 0)
		return RTE_MAX(options->frame_size, options->room);
	return RTE_MAX(info->min_rx_bufsize, ETHDEV_ROOM(ethdev->port.frame_size));
}

static int ethdev_queues(struct ethdev *ethdev, const struct rte_eth_dev_info *info,
	const struct rte_eth_conf *conf, const struct ethdev_options *options)
{
	uint16_t receive = DESCRIPTORS, transmit = DESCRIPTORS;
	unsigned socket =
		ethdev->port.socket < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)ethdev->port.socket;
	struct rte_eth_rxconf rxconf = info->default_rxconf;
	struct rte_eth_txconf txconf = info->default_txconf;
	int error = rte_eth_dev_adjust_nb_rx_tx_desc(ethdev->id, &receive, &transmit);
	if (error != 0)
		return ethdev_complain(ethdev, "choose the size of its rings", error);
	ethdev->port.receive_frames = receive;
	ethdev->port.aside = POOL_ASIDE;
	ethdev->transmit_frames = transmit;
	ethdev->port.pool = mempool_take(ethdev->port.name, ethdev_room(ethdev, info, options),
		RTE_MAX((uint32_t)receive + transmit, options->held), ethdev->port.socket,
		ethdev->copies);
	if (!ethdev->port.pool)
		return -1;
	rxconf.offloads = conf->rxmode.offloads;
	txconf.offloads = conf->txmode.offloads;
	error = rte_eth_rx_queue_setup(ethdev->id, 0, receive, socket, &rxconf, ethdev->port.pool);
	ethdev->refused = error != 0;
	if (ethdev->refused && options->retried)
		return -1;
	if (ethdev->refused)
		return ethdev_complain(ethdev, "set up its receive queue", error);
	error = rte_eth_tx_queue_setup(ethdev->id, 0, transmit, socket, &txconf);
	if (error != 0)
		return ethdev_complain(ethdev, "set up its transmit queue", error);
	return 0;
}

/* Only frames for a driver in the table are in pieces and have memory that is not the pool's. */
static void ethdev_copies(struct ethdev *ethdev, const char *driver)
{
	for (unsigned n = 0; n < RTE_DIM(copying); n++)
		ethdev->copies |= driver && strcmp(driver, copying[n]) == 0;
	ethdev->port.gathers = ethdev->copies;
	ethdev->port.gather_bytes = GATHER_BYTES;
	if (!ethdev->copies)
		log_info("%s: data of large messages is copied before it is sent, because "
			 "Postern does not know when the driver %s has read a frame",
			ethdev->port.name, driver ? driver : "of this device");
}

static int ethdev_configure(struct ethdev *ethdev, const struct ethdev_options *options)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	struct rte_ether_addr address;
	int error = rte_eth_dev_info_get(ethdev->id, &info);
	if (error != 0)
		return ethdev_complain(ethdev, "ask the device what it can", error);
	if (ethdev_size(ethdev, options, &info, &conf) != 0)
		return -1;
	ethdev->port.socket = rte_eth_dev_socket_id(ethdev->id);
	ethdev_copies(ethdev, info.driver_name);
	ethdev->linear = !ethdev->copies && !(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	if (!ethdev->linear)
		conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	ethdev_checksums(ethdev, &info, &conf);
	/* A device that can filter VLANs may do so from now on: virtual functions and virtio do. */
	ethdev->vlan = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER ? options->vlan : 0;
	if (ethdev->vlan != 0)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	conf.intr_conf.rxq = setting_is(SETTING_POLL, "interrupt");
	error = rte_eth_dev_configure(ethdev->id, 1, 1, &conf);
	if (error != 0 && conf.intr_conf.rxq) {
		conf.intr_conf.rxq = 0;
		error = rte_eth_dev_configure(ethdev->id, 1, 1, &conf);
	}
	if (error != 0)
		return ethdev_complain(ethdev, "configure the device", error);
	error = rte_eth_macaddr_get(ethdev->id, &address);
	if (error != 0)
		return ethdev_complain(ethdev, "learn the device's address", error);
	memcpy(ethdev->port.address, address.addr_bytes, sizeof(ethdev->port.address));
	return ethdev_queues(ethdev, &info, &conf, options);
}

/* Configures the device without starting it. */
static int ethdev_prepare(
	struct ethdev *ethdev, const char *device, const struct ethdev_options *options)
{
	struct eal_guard *guard;
	int result;
	snprintf(ethdev->port.name, sizeof(ethdev->port.name), "%s", options->name);
	snprintf(ethdev->device, sizeof(ethdev->device), "%s", device);
	ethdev->port.operations = &ethdev_operations;
	ethdev->port.external = options->external;
	ethdev->port.cancels = options->external;
	ethdev->remove = options->remove;
	ethdev->socket = -1;
	if (rte_eth_dev_get_port_by_name(device, &ethdev->id) != 0) {
		log_error("%s: DPDK has no ethernet device named %s: check the name with "
			  "postern-info",
			options->name, device);
		ethdev->id = RTE_MAX_ETHPORTS;
		return -1;
	}
	guard = eal_enter();
	eal_reason_clear();
	result = ethdev_configure(ethdev, options);
	eal_leave(guard);
	return result;
}

/* Credits are frames, but a driver that rounds buffers down puts a large frame into several, of a
 * descriptor each. */
static void ethdev_count_frames(struct ethdev *ethdev)
{
	uint32_t room = rte_pktmbuf_data_room_size(ethdev->port.pool) - RTE_PKTMBUF_HEADROOM;
	struct rte_eth_rxq_info queue;
	uint32_t size, descriptors;
	if (rte_eth_rx_queue_info_get(ethdev->id, 0, &queue) != 0 || !queue.scattered_rx)
		return;
	size = queue.rx_buf_size ? queue.rx_buf_size : rte_align32prevpow2(room);
	descriptors = (ETHDEV_ROOM(ethdev->port.frame_size) + size - 1) / size;
	/* A frame may take several descriptors, so a ring may hold fewer frames than it has
	 * descriptors. */
	ethdev->port.aside += 2 * (queue.nb_desc - queue.nb_desc / descriptors);
	ethdev->port.receive_frames = (uint16_t)(queue.nb_desc / descriptors);
}

static int ethdev_start(struct ethdev *ethdev)
{
	int error, filter = 0;
	struct eal_guard *guard = eal_enter();
	eal_reason_clear();
	error = rte_eth_dev_start(ethdev->id);
	/* Starting empties the filters of some devices. */
	if (error == 0 && ethdev->vlan != 0)
		filter = rte_eth_dev_vlan_filter(ethdev->id, ethdev->vlan, 1);
	eal_leave(guard);
	if (error != 0)
		return ethdev_complain(ethdev, "start the device", error);
	if (filter != 0)
		return ethdev_complain(ethdev, "let frames of the VLAN in PTL_VLAN pass", filter);
	ethdev_count_frames(ethdev);
	ethdev->interrupts = setting_is(SETTING_POLL, "interrupt") &&
			     rte_eth_dev_rx_intr_ctl_q_get_fd(ethdev->id, 0) >= 0;
	ethdev->port.calls = ethdev->interrupts;
	return 0;
}

int ethdev_open(struct ethdev *ethdev, const char *device, const struct ethdev_options *options)
{
	if (ethdev_prepare(ethdev, device, options) == 0 && ethdev_start(ethdev) == 0)
		return 0;
	ethdev_close(ethdev);
	return -1;
}

/* On the interrupt thread, where drivers take what the other end says: memif's frees there what
 * belongs to a peer that leaves, and another thread would free it once more at the same time. */
static void ethdev_end(void *context)
{
	const struct ethdev *ethdev = context;
	rte_eth_dev_stop(ethdev->id);
	rte_eth_dev_close(ethdev->id);
}

void ethdev_close(struct ethdev *ethdev)
{
	struct eal_guard *guard = eal_enter();
	if (ethdev->id < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(ethdev->id))
		eal_call(ethdev_end, ethdev);
	eal_leave(guard);
	if (ethdev->remove)
		ethdev_unplug(ethdev->device);
	if (ethdev->port.pool)
		mempool_give(ethdev->port.pool);
	ethdev->port.pool = NULL;
}

void ethdev_free(struct port *port)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	ethdev_close(ethdev);
	free(ethdev);
}

uint16_t ethdev_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	return rte_eth_rx_burst(((struct ethdev *)port)->id, 0, frames, count);
}

/* Does the device find the whole frame where it is? */
static bool frame_reachable(const struct ethdev *ethdev, const struct rte_mbuf *frame)
{
	if (ethdev->linear && frame->nb_segs > 1)
		return false;
	for (; frame; frame = frame->next)
		if (RTE_MBUF_HAS_EXTBUF(frame) && !rte_mem_virt2memseg(frame->buf_addr, NULL))
			return false;
	return true;
}

/* For devices that read frames where they are: hands out copies where they could not. */
static uint16_t ethdev_transmit_reachable(
	struct ethdev *ethdev, struct rte_mbuf **frames, uint16_t count)
{
	struct rte_mbuf *sent[BURST];
	uint16_t ready, taken;
	if (count > BURST)
		count = BURST;
	for (ready = 0; ready < count; ready++) {
		sent[ready] = frames[ready];
		if (frame_reachable(ethdev, frames[ready]))
			continue;
		sent[ready] = rte_pktmbuf_copy(frames[ready], ethdev->port.pool, 0, UINT32_MAX);
		if (!sent[ready]) {
			ethdev->no_mbuf++;
			break;
		}
	}
	/* A frame that is sent as it is may be freed by the device at once, so it is known by its
	 * pointer alone. */
	taken = rte_eth_tx_burst(ethdev->id, 0, sent, ready);
	for (uint16_t n = 0; n < ready; n++)
		if (sent[n] != frames[n])
			rte_pktmbuf_free(n < taken ? frames[n] : sent[n]);
	return taken;
}

uint16_t ethdev_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	uint16_t done = 0;
	while (done < count) {
		uint16_t fit = 0, taken;
		while (done + fit < count && frames[done + fit]->pkt_len <= port->frame_size)
			fit++;
		if (fit == 0) {
			ethdev->oversized++;
			rte_pktmbuf_free(frames[done++]);
			continue;
		}
		if (ethdev->copies)
			taken = rte_eth_tx_burst(ethdev->id, 0, frames + done, fit);
		else
			taken = ethdev_transmit_reachable(ethdev, frames + done, fit);
		done = (uint16_t)(done + taken);
		if (taken < fit && (taken == 0 || ethdev->copies))
			break;
	}
	return done;
}

bool ethdev_link(struct port *port)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	struct rte_eth_link link = {0};
	uint64_t now = glue_now(NULL);
	if (now >= ethdev->look) {
		ethdev->look = now + LINK_INTERVAL;
		ethdev->up = rte_eth_link_get_nowait(ethdev->id, &link) == 0 &&
			     link.link_status == RTE_ETH_LINK_UP;
	}
	return ethdev->up;
}

/* An interface that goes down leaves an error at its sockets, which are readable until the error is
 * read. */
static void socket_hush(int socket)
{
	int error;
	socklen_t size = sizeof(error);
	(void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
}

/* The queue has not interrupted since it was asked to. Some cards never do so under vfio. After a
 * queue has often held frames without an interrupt, and has never interrupted, no interrupt is
 * expected of it any more. */
static void ethdev_interrupt_check(struct ethdev *ethdev)
{
	if (ethdev->rung || glue_now(NULL) - ethdev->armed < SILENCE ||
		rte_eth_rx_queue_count(ethdev->id, 0) <= 0 || ++ethdev->silences < SILENCES_MAX)
		return;
	ethdev->interrupts = false;
	ethdev->port.calls = false;
	log_warning("%s: this device's receive interrupt never comes, so it is polled twice a "
		    "millisecond: set PTL_POLL=adaptive, or use another device",
		ethdev->port.name);
}

/* A socket is readable while its ring holds frames. A queue's descriptor is an eventfd, which stays
 * readable until it is read. */
int ethdev_interrupt(struct port *port, bool on)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	struct pollfd called;
	uint64_t count;
	if (ethdev->socket >= 0) {
		if (!on)
			socket_hush(ethdev->socket);
		return on ? ethdev->socket : -1;
	}
	if (!ethdev->interrupts)
		return -1;
	called = (struct pollfd){
		.fd = rte_eth_dev_rx_intr_ctl_q_get_fd(ethdev->id, 0), .events = POLLIN};
	if (on && rte_eth_dev_rx_intr_enable(ethdev->id, 0) == 0) {
		ethdev->armed = glue_now(NULL);
		return called.fd;
	}
	rte_eth_dev_rx_intr_disable(ethdev->id, 0);
	if (poll(&called, 1, 0) != 1)
		ethdev_interrupt_check(ethdev);
	else if (read(called.fd, &count, sizeof(count)) < 0)
		ethdev->interrupts = errno == EAGAIN || errno == EINTR;
	else
		ethdev->rung = true;
	return -1;
}

void ethdev_counters(struct port *port, struct port_counters *counters)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	struct rte_eth_stats stats = {0};
	rte_eth_stats_get(ethdev->id, &stats);
	counters->missed = stats.imissed;
	counters->errors = stats.ierrors + stats.oerrors + ethdev->oversized;
	counters->no_mbuf = stats.rx_nombuf + ethdev->no_mbuf;
	counters->buffers = pool_used(ethdev->port.pool);
}

void ethdev_describe(struct port *port, struct port_description *description)
{
	struct ethdev *ethdev = (struct ethdev *)port;
	struct rte_eth_dev_info info;
	if (rte_eth_dev_info_get(ethdev->id, &info) == 0 && info.driver_name)
		snprintf(description->driver, sizeof(description->driver), "%s", info.driver_name);
	snprintf(description->device, sizeof(description->device), "%s", ethdev->device);
	description->transmit_frames = ethdev->transmit_frames;
}
