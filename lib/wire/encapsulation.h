/* SPDX-License-Identifier: BSD-3-Clause */
/* encapsulation.h - what stands before the transport header: Ethernet, an 802.1Q tag if the
 * interface has one, and with PTL_ENCAP=udp IPv4 and UDP. The only code that reads or writes it,
 * but for the body of ARP (arp.h).
 *
 *     ethernet   destination 6 | source 6 | [0x8100, tag 4] | FRAME_ETHERTYPE | transport ...
 *     udp        destination 6 | source 6 | [0x8100, tag 4] | 0x0800 | IPv4 20 | UDP 8 | ...
 *
 * With udp a node id is the node's IPv4 address, so a frame's inner header says where its outer one
 * goes.
 *
 * No state but what encapsulation_init() makes; one poll core.
 */
#ifndef WIRE_ENCAPSULATION_H
#define WIRE_ENCAPSULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include <wire/frame.h>
#include <wire/word.h>

struct rte_mbuf;
struct port_selection;

#define ENCAPSULATION_TAG_BYTES  4
#define ENCAPSULATION_IPV4_BYTES 20
#define ENCAPSULATION_UDP_BYTES  8
#define ENCAPSULATION_BYTES_MAX                                                                    \
	(FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES + ENCAPSULATION_IPV4_BYTES +               \
		ENCAPSULATION_UDP_BYTES)
#define ENCAPSULATION_PORT   34997  /* UDP, of every process: FRAME_ETHERTYPE once more */
#define ENCAPSULATION_SOURCE 0xc000 /* UDP source ports are from here on, and spread flows */

/* As the settings say; all zero is Ethernet without a tag. IPv4 addresses are in the host's byte
 * order. */
struct encapsulation_options {
	bool udp;
	uint16_t vlan;    /* 0: no tag */
	uint16_t port;    /* UDP port of all processes; 0: ENCAPSULATION_PORT */
	uint8_t prefix;   /* bits of the address that all nodes on this link share */
	uint32_t address; /* own; the node id too */
	uint32_t gateway; /* for nodes that are not on this link; 0: all are */
};

struct encapsulation {
	struct encapsulation_options options;
	uint32_t bytes;        /* before the transport header */
	uint32_t link_bytes;   /* of these: Ethernet and the tag */
	bool checksum_offload; /* the port fills in the checksums of IPv4 and UDP */
	uint8_t own[FRAME_ADDRESS_BYTES];
	uint64_t own_number;                     /* the same, as encapsulation_to() */
	uint8_t header[ENCAPSULATION_BYTES_MAX]; /* what is the same in all frames */
};

void encapsulation_init(struct encapsulation *encapsulation,
	const struct encapsulation_options *options, const uint8_t *own, bool checksum_offload);

/* The frames that are for a process: what is addressed to it, and questions for all. */
void encapsulation_select(const struct encapsulation_options *options, uint32_t nid, uint32_t pid,
	struct port_selection *wanted);

enum encapsulation_status {
	ENCAPSULATION_FINE,
	ENCAPSULATION_ARP,     /* an ARP message, with udp only */
	ENCAPSULATION_REFUSED, /* the start of a refused frame (port.h), without udp only */
	ENCAPSULATION_FOREIGN, /* another protocol, port, host or VLAN */
	ENCAPSULATION_BAD_IPV4,
	ENCAPSULATION_FRAGMENT,
	ENCAPSULATION_BAD_UDP
};

/* What the outer header of a frame says. */
struct outer {
	uint32_t at;         /* where the transport header, or the ARP message, is */
	uint32_t length;     /* bytes from there on; padding of Ethernet may be among them */
	uint32_t source;     /* IPv4 address; 0 without udp */
	const uint8_t *from; /* MAC address */
	bool marked;         /* congestion experienced */
};

/* Reads bytes that came from anywhere. flags: the mbuf's ol_flags, which say what the device has
 * verified already. ENCAPSULATION_FINE, _ARP and _REFUSED fill outer. */
enum encapsulation_status encapsulation_read_any(const struct encapsulation *encapsulation,
	const void *bytes, uint32_t available, uint64_t flags, struct outer *outer);

/* Ethernet without a tag, and nothing more? */
static inline bool encapsulation_plain(const struct encapsulation *encapsulation)
{
	return encapsulation->bytes == FRAME_ETHERNET_BYTES;
}

/* The MAC address that a frame is to, as a number to compare. Reads eight bytes. */
static inline uint64_t encapsulation_to(const void *bytes)
{
	return word_read(bytes, 0) << 16;
}

/* Is this the usual frame: raw Ethernet without a tag, to this host alone? Then fills outer as
 * encapsulation_read_any() would. Saves 3.8 % of the instructions of a put back and forth
 * (doc/notebook.md). */
static inline bool encapsulation_read_plain(const struct encapsulation *encapsulation,
	const void *bytes, uint32_t available, struct outer *outer)
{
	const uint8_t *at = bytes;
	uint16_t type;

	if (!encapsulation_plain(encapsulation) ||
		available < FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES)
		return false;
	memcpy(&type, at + 2 * FRAME_ADDRESS_BYTES, sizeof(type));
	if (encapsulation_to(at) != encapsulation->own_number ||
		type != rte_cpu_to_be_16(FRAME_ETHERTYPE))
		return false;
	outer->at = FRAME_ETHERNET_BYTES;
	outer->length = available - FRAME_ETHERNET_BYTES;
	outer->source = 0;
	outer->from = at + FRAME_ADDRESS_BYTES;
	outer->marked = false;
	return true;
}

/* The same as encapsulation_read_any(), with the usual frame tested for first. */
static inline enum encapsulation_status encapsulation_read(
	const struct encapsulation *encapsulation, const void *bytes, uint32_t available,
	uint64_t flags, struct outer *outer)
{
	if (encapsulation_read_plain(encapsulation, bytes, available, outer))
		return ENCAPSULATION_FINE;
	return encapsulation_read_any(encapsulation, bytes, available, flags, outer);
}

/* The bytes before the transport header of a frame that was found fine before. */
uint32_t encapsulation_skip(const struct encapsulation *encapsulation, const void *bytes);

/* Writes an Ethernet header without a tag, and nothing more: saves 3.3 % of a put's instructions.
 * to: MAC address of the next hop. */
static inline void encapsulation_write_plain(
	const struct encapsulation *encapsulation, uint8_t *at, const uint8_t *to)
{
	memcpy(at, to, FRAME_ADDRESS_BYTES);
	memcpy(at + FRAME_ADDRESS_BYTES, encapsulation->header + FRAME_ADDRESS_BYTES,
		FRAME_ETHERNET_BYTES - FRAME_ADDRESS_BYTES);
}

/* Writes what stands before the transport header. The mbuf's data starts where it goes; the
 * transport header, whose fields `frame` has, and all that follows are in place. to: MAC address of
 * the next hop. */
void encapsulation_write(const struct encapsulation *encapsulation, struct rte_mbuf *mbuf,
	const uint8_t *to, const struct frame *frame);

/* Writes Ethernet header and tag for another protocol; returns their bytes. */
uint32_t encapsulation_link(const struct encapsulation *encapsulation, void *bytes,
	const uint8_t *to, uint16_t ethertype);

/* The address to ask for by ARP on the way to a node: its own if it is on this link, else the
 * gateway's. */
static inline bool encapsulation_on_link(
	const struct encapsulation *encapsulation, uint32_t address)
{
	const struct encapsulation_options *options = &encapsulation->options;
	uint32_t mask = options->prefix == 0 ? 0 : UINT32_MAX << (32 - options->prefix);

	return options->gateway == 0 || ((address ^ options->address) & mask) == 0;
}

static inline uint32_t encapsulation_hop(
	const struct encapsulation *encapsulation, uint32_t address)
{
	return encapsulation_on_link(encapsulation, address) ? address
							     : encapsulation->options.gateway;
}

#endif
