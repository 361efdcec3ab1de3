/* SPDX-License-Identifier: BSD-3-Clause */
/* card.h - what a rank tells the others of itself: its process, where that is, and which network it
 * is on. A launcher carries it, or an exchange of the program's own.
 *
 *     0 'P'   1 version (1)   2 network   3 0   4 node id   8 process id   12 locality
 *     16 MAC address   22 TCP port (2)   24 IPv6 address (16)
 *
 * Numbers are little-endian. The last two are where the process listens (lifeline.h); port 0:
 * nowhere.
 */
#ifndef JOB_CARD_H
#define JOB_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include <base/core.h>
#include <transport/transport.h>
#include <wire/frame.h>

struct ifaddrs;

#define CARD_BYTES 40
#define CARD_TEXT  (2 * CARD_BYTES + 1) /* as text, with its end */
/* Digits of what others than the neighbour want: all up to the MAC address. */
#define CARD_SHORT (2 * 22)

enum card_network {
	CARD_ETHERNET,
	CARD_ETHERNET_UDP,
	CARD_UDP, /* sockets of IPv4 */
	CARD_NODE,
	CARD_UDP6, /* sockets of IPv6 */
	CARD_NETWORKS
};

struct card_lifeline {
	uint16_t port;       /* 0: the process does not listen */
	uint8_t address[16]; /* IPv6, or IPv4 mapped into it */
};

struct card {
	struct process process;
	enum card_network network;
	/* CARD_NODE: which machine, and which node on it; UDP: which ports. Only equal ones reach
	 * each other. CARD_ETHERNET: the IPv4 subnet of the kernel's interface; 0: none. */
	uint32_t locality;
	uint8_t address[FRAME_ADDRESS_BYTES]; /* of its port */
	struct card_lifeline lifeline;
};

void card_encode(const struct card *card, uint8_t bytes[CARD_BYTES]) CORE_API(card_encode);
/* Returns false if it is no card of this version. */
bool card_decode(struct card *card, const uint8_t bytes[CARD_BYTES]) CORE_API(card_decode);
/* The same in hexadecimal digits. */
void card_write(const struct card *card, char text[CARD_TEXT]);
bool card_read(struct card *card, const char *text);

/* Why a process does not reach another one, and which setting changes it, with room for `size`
 * bytes; rank: the other's. Returns false if it does, or may do so: then a warning says what may
 * prevent it. */
bool card_unreached(const struct card *own, const struct card *other, uint32_t rank, char *why,
	size_t size) CORE_API(card_unreached);

/* The index of the kernel interface that has the card's MAC address; 0: there is none. */
unsigned card_interface(const struct ifaddrs *all, const struct card *card);
/* The IPv4 subnet of the kernel interfaces with the MAC address of the card: an interface, its
 * bridge or bond, and its VLANs. 0: there is none, it is /32, or there are several. */
uint32_t card_subnet(const struct ifaddrs *all, const struct card *card);

#endif
