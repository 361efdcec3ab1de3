/* SPDX-License-Identifier: BSD-3-Clause */
/* ethdev.h - a port that is one queue pair of a DPDK ethernet device. xdp.c and device.c make
 * them.
 *
 * Owned by one poll core from ethdev_open() to ethdev_close(); those two under the front end's
 * lock.
 *
 * I1. No frame longer than frame_size reaches the device.
 */
#ifndef PMD_GLUE_ETHDEV_H
#define PMD_GLUE_ETHDEV_H

#include <base/port.h>

/* Bytes of a buffer for frames of so many bytes, where the device is asked for its frames' size.
 * Drivers want room beside a frame, for two VLAN tags, its checksum and a header of their own.
 * Drivers of cards round buffers down to a power of two; one buffer must hold a frame of 1,514
 * bytes. */
#define ETHDEV_ROOM(frame_size) ((frame_size) + 32u > 2048u ? (frame_size) + 32u : 2048u)

struct ethdev {
	struct port port; /* first: a port is an ethdev */
	uint16_t id;
	bool remove;       /* unplug the device at the end: this process plugged it in */
	bool linear;       /* the device sends only the first segment of a frame */
	bool copies;       /* its driver is one of those that copy frames to send */
	bool interrupts;   /* its receive queue can interrupt */
	bool rung;         /* and has called */
	unsigned silences; /* how often a frame had come without an interrupt */
	uint64_t armed;    /* since when an interrupt was asked for */
	uint16_t vlan;     /* that the device is to let pass; 0: all pass */
	int socket;        /* the socket on which the driver receives, -1: not known or none */
	bool up;           /* as last seen */
	uint64_t look;     /* the time from which on the link is looked at again */
	uint64_t oversized;
	uint64_t no_mbuf;         /* copies that could not be made */
	uint16_t transmit_frames; /* that its ring for sending holds */
	char device[64];          /* its name in DPDK */
	bool refused; /* ethdev_open() failed because the device gave it no receive queue */
};

struct ethdev_options {
	const char *name;    /* for messages and port.name */
	uint32_t frame_size; /* 0: the device is told the mtu and asked for its own */
	uint32_t room; /* bytes that a buffer holds at least, should that be more than a frame */
	uint32_t
		held; /* frames that the driver keeps at most, should that be more than its rings */
	uint32_t mtu; /* inner bytes wanted, 0 for the device's own */
	uint16_t vlan; /* of the tag that frames carry, 0: they carry none */
	bool remove;   /* it was plugged in for this port */
	bool external;
	bool retried; /* the caller tries again if ethdev->refused: no line is written of that */
};

/* Plugs in a device: arguments as after --vdev ("net_memif0,role=client"). 0, or -1 without a
 * line. */
int ethdev_plug(const char *arguments);
void ethdev_unplug(const char *name);
/* Configures and starts the device `device`. 0, or -1 after an error line. *ethdev is the caller's,
 * zeroed. */
int ethdev_open(struct ethdev *ethdev, const char *device, const struct ethdev_options *options);
/* Stops the device and gives everything back but *ethdev itself. */
void ethdev_close(struct ethdev *ethdev);

/* As a port's close: gives *ethdev, which malloc() made, back as well. */
void ethdev_free(struct port *port);
uint16_t ethdev_receive(struct port *port, struct rte_mbuf **frames, uint16_t count);
uint16_t ethdev_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count);
bool ethdev_link(struct port *port);
int ethdev_interrupt(struct port *port, bool on);
void ethdev_counters(struct port *port, struct port_counters *counters);
void ethdev_describe(struct port *port, struct port_description *description);

#endif
