/* SPDX-License-Identifier: BSD-3-Clause */
/* encapsulation.c - reads and writes Ethernet, 802.1Q, IPv4 and UDP headers. One poll core.
 *
 * I1. encapsulation_read() looks at no byte beyond `available`.
 * I2. What encapsulation_write() writes, encapsulation_read() of the one it is for finds fine.
 * I3. No frame is ever sent in fragments, and none is taken: DF is set, and what has options, is a
 *     fragment or lies about its length is dropped.
 */
#include <wire/encapsulation.h>

#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include <base/port.h>
#include <wire/arp.h>
#include <wire/word.h>

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_VLAN 0x8100
#define TYPE_AT        (2 * FRAME_ADDRESS_BYTES)
#define EVERYBODY      (UINT64_MAX << 16) /* as encapsulation_to() */
#define TAG_VLAN       0x0fff             /* of the tag: the rest is priority */

/* IPv4, RFC 791; offsets from its start.
 *
 *   0                8               16                           31
 *  +-------+-------+---------------+-------------------------------+
 *  |   4   |   5   |     DSCP, ECN |            length             |   0
 *  +-------+-------+---------------+-----+-------------------------+
 *  |        identification: 0      |flags|    fragment offset      |   4
 *  +---------------+---------------+-----+-------------------------+
 *  |      TTL      |  protocol     |           checksum            |   8
 *  +---------------+---------------+-------------------------------+
 *  |                            source                             |  12
 *  |                          destination                          |  16
 *  +-------------------------------+-------------------------------+
 *  |  UDP source port              |  UDP destination port         |  20
 *  |  UDP length                   |  UDP checksum                 |  24
 *  +-------------------------------+-------------------------------+
 */
#define IPV4_VERSION     0x45 /* version 4, no options */
#define IPV4_SERVICE_AT  1
#define IPV4_LENGTH_AT   2
#define IPV4_FRAGMENT_AT 6
#define IPV4_TTL_AT      8
#define IPV4_PROTOCOL_AT 9
#define IPV4_SUM_AT      10
#define IPV4_SOURCE_AT   12
#define IPV4_TO_AT       16
#define UDP_SOURCE_AT    20
#define UDP_PORT_AT      22
#define UDP_LENGTH_AT    24
#define UDP_SUM_AT       26
#define UDP_END          (ENCAPSULATION_IPV4_BYTES + ENCAPSULATION_UDP_BYTES)

#define ECN_BITS       3
#define ECN_CAPABLE    2 /* ECT(0) */
#define ECN_MET        3
#define DO_NOT_SPLIT   0x4000
#define FRAGMENT_BITS  0x3fff /* more fragments, and the offset */
#define TTL            64
#define PROTOCOL_UDP   17
#define MULTICAST_FROM 0xe0000000u
static_assert(UDP_END == 28, "IPv4 and UDP");
static_assert(PORT_MTU_MAX + UDP_END <= UINT16_MAX, "lengths are 16 bits");

/* --- checksums */

/* The folded sum of the pseudo header, whose UDP length is the IPv4 header's, and of a UDP packet
 * in one or two pieces; all ones when the packet's own checksum is in it and right. */
static uint16_t udp_sum(
	const uint8_t *ipv4, uint32_t udp_bytes, const void *tail, uint32_t tail_bytes)
{
	uint32_t sum = rte_ipv4_phdr_cksum((const void *)ipv4, 0);

	sum += rte_raw_cksum(ipv4 + ENCAPSULATION_IPV4_BYTES, udp_bytes - tail_bytes);
	if (tail_bytes != 0)
		sum += rte_raw_cksum(tail, tail_bytes);
	return __rte_raw_cksum_reduce(sum);
}

static void sum_write(uint8_t *to, uint16_t sum)
{
	memcpy(to, &sum, sizeof(sum));
}

/* --- making */

static void ipv4_init(struct encapsulation *encapsulation)
{
	uint8_t *ipv4 = encapsulation->header + encapsulation->link_bytes;

	ipv4[0] = IPV4_VERSION;
	ipv4[IPV4_SERVICE_AT] = ECN_CAPABLE;
	network_write16(ipv4 + IPV4_FRAGMENT_AT, DO_NOT_SPLIT);
	ipv4[IPV4_TTL_AT] = TTL;
	ipv4[IPV4_PROTOCOL_AT] = PROTOCOL_UDP;
	network_write32(ipv4 + IPV4_SOURCE_AT, encapsulation->options.address);
	network_write16(ipv4 + UDP_PORT_AT, encapsulation->options.port);
}

void encapsulation_init(struct encapsulation *encapsulation,
	const struct encapsulation_options *options, const uint8_t *own, bool checksum_offload)
{
	static const uint8_t nobody[FRAME_ADDRESS_BYTES];
	uint8_t eight[8] = {0};

	memset(encapsulation, 0, sizeof(*encapsulation));
	encapsulation->options = *options;
	if (options->port == 0)
		encapsulation->options.port = ENCAPSULATION_PORT;
	encapsulation->checksum_offload = checksum_offload;
	memcpy(encapsulation->own, own, FRAME_ADDRESS_BYTES);
	memcpy(eight, own, FRAME_ADDRESS_BYTES);
	encapsulation->own_number = encapsulation_to(eight);
	encapsulation->link_bytes =
		FRAME_ETHERNET_BYTES + (options->vlan != 0 ? ENCAPSULATION_TAG_BYTES : 0);
	encapsulation->bytes = encapsulation->link_bytes + (options->udp ? UDP_END : 0);
	memcpy(encapsulation->header + FRAME_ADDRESS_BYTES, own, FRAME_ADDRESS_BYTES);
	encapsulation_link(encapsulation, encapsulation->header, nobody,
		options->udp ? ETHERTYPE_IPV4 : FRAME_ETHERTYPE);
	if (options->udp)
		ipv4_init(encapsulation);
}

void encapsulation_select(const struct encapsulation_options *options, uint32_t nid, uint32_t pid,
	struct port_selection *wanted)
{
	const uint32_t process[] = {rte_cpu_to_le_32(nid), rte_cpu_to_le_32(pid)};

	*wanted = (struct port_selection){.ethertype = FRAME_ETHERTYPE,
		.at = FRAME_ETHERNET_BYTES +
		      (uint32_t)offsetof(struct frame_header, destination_nid)};
	memcpy(wanted->key, process, sizeof(wanted->key));
	if (!options->udp)
		return;
	wanted->ethertype = ETHERTYPE_IPV4;
	wanted->udp_port = options->port != 0 ? options->port : ENCAPSULATION_PORT;
	wanted->at += UDP_END;
}

/* --- writing */

uint32_t encapsulation_link(const struct encapsulation *encapsulation, void *bytes,
	const uint8_t *to, uint16_t ethertype)
{
	uint8_t *at = bytes;
	uint32_t type_at = encapsulation->link_bytes - 2;

	memcpy(at, to, FRAME_ADDRESS_BYTES);
	memcpy(at + FRAME_ADDRESS_BYTES, encapsulation->own, FRAME_ADDRESS_BYTES);
	if (encapsulation->options.vlan != 0) {
		network_write16(at + TYPE_AT, ETHERTYPE_VLAN);
		network_write16(at + TYPE_AT + 2, encapsulation->options.vlan);
	}
	network_write16(at + type_at, ethertype);
	return encapsulation->link_bytes;
}

/* The same for all frames of a stream, so that they keep their order; different for different ones,
 * so that queues and equal paths share them. */
static uint16_t udp_source(const struct frame *frame)
{
	uint64_t key = (uint64_t)frame->destination_nid << 32 | frame->destination_pid;

	key ^= (uint64_t)frame->source_pid << 16 ^ (uint64_t)frame->stream << 48;
	key *= UINT64_C(0x9e3779b97f4a7c15);
	key ^= key >> 32;
	key *= UINT64_C(0xd6e8feb86659fd93);
	return (uint16_t)(ENCAPSULATION_SOURCE | key >> 50);
}
static_assert((UINT64_MAX >> 50 & ENCAPSULATION_SOURCE) == 0, "14 bits of entropy");

/* The device wants the pseudo header's sum where the checksum goes. */
static void checksums_delegate(
	const struct encapsulation *encapsulation, struct rte_mbuf *mbuf, uint8_t *ipv4)
{
	mbuf->tx_offload = rte_mbuf_tx_offload(
		encapsulation->link_bytes, ENCAPSULATION_IPV4_BYTES, 0, 0, 0, 0, 0);
	mbuf->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	sum_write(ipv4 + UDP_SUM_AT, rte_ipv4_phdr_cksum((const void *)ipv4, 0));
}

static void checksums_write(uint8_t *ipv4, uint32_t udp_bytes, const struct frame *frame)
{
	uint16_t udp = (uint16_t)~udp_sum(ipv4, udp_bytes, frame->tail, frame->tail_length);

	sum_write(ipv4 + UDP_SUM_AT, udp == 0 ? UINT16_MAX : udp); /* 0 would mean none */
	sum_write(ipv4 + IPV4_SUM_AT, rte_ipv4_cksum((const void *)ipv4));
}

void encapsulation_write(const struct encapsulation *encapsulation, struct rte_mbuf *mbuf,
	const uint8_t *to, const struct frame *frame)
{
	uint8_t *at = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint32_t udp_bytes = ENCAPSULATION_UDP_BYTES + (uint32_t)frame->length;
	uint8_t *ipv4;

	encapsulation_write_plain(encapsulation, at, to);
	if (encapsulation_plain(encapsulation))
		return;
	memcpy(at + FRAME_ETHERNET_BYTES, encapsulation->header + FRAME_ETHERNET_BYTES,
		encapsulation->bytes - FRAME_ETHERNET_BYTES);
	if (!encapsulation->options.udp)
		return;
	ipv4 = at + encapsulation->link_bytes;
	network_write16(ipv4 + IPV4_LENGTH_AT, ENCAPSULATION_IPV4_BYTES + udp_bytes);
	network_write32(ipv4 + IPV4_TO_AT, frame->destination_nid);
	network_write16(ipv4 + UDP_SOURCE_AT, udp_source(frame));
	network_write16(ipv4 + UDP_LENGTH_AT, udp_bytes);
	if (encapsulation->checksum_offload)
		checksums_delegate(encapsulation, mbuf, ipv4);
	else
		checksums_write(ipv4, udp_bytes, frame);
}

/* --- reading */

/* Is the VLAN of a frame this interface's? Without a tag of its own, it takes frames without one,
 * or with one that has a priority alone. Returns where the EtherType is; 0: it is not. */
static uint32_t tag_read(const struct encapsulation *encapsulation, const uint8_t *at)
{
	uint32_t vlan = 0;
	uint32_t type_at = TYPE_AT;

	if (network_read16(at + TYPE_AT) == ETHERTYPE_VLAN) {
		vlan = network_read16(at + TYPE_AT + 2) & TAG_VLAN;
		type_at += ENCAPSULATION_TAG_BYTES;
	}
	return vlan == encapsulation->options.vlan ? type_at : 0;
}

static bool ipv4_sum_fine(const uint8_t *ipv4, uint64_t flags)
{
	uint64_t verdict = flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	if (verdict != RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN)
		return verdict != RTE_MBUF_F_RX_IP_CKSUM_BAD;
	return rte_ipv4_cksum((const void *)ipv4) == 0;
}

static bool udp_sum_fine(const uint8_t *ipv4, uint32_t udp_bytes, uint64_t flags)
{
	uint64_t verdict = flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

	if (network_read16(ipv4 + UDP_SUM_AT) == 0)
		return true;
	if (verdict != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN)
		return verdict != RTE_MBUF_F_RX_L4_CKSUM_BAD;
	return udp_sum(ipv4, udp_bytes, NULL, 0) == UINT16_MAX;
}

/* May a node have this address? */
static bool source_possible(uint32_t address)
{
	return address != 0 && address < MULTICAST_FROM;
}

static enum encapsulation_status udp_read(const struct encapsulation *encapsulation,
	const uint8_t *ipv4, uint32_t available, uint64_t flags, struct outer *outer)
{
	uint32_t length;
	uint32_t udp_bytes;

	if (available < UDP_END || ipv4[0] != IPV4_VERSION)
		return ENCAPSULATION_BAD_IPV4;
	length = network_read16(ipv4 + IPV4_LENGTH_AT);
	if (length > available || !ipv4_sum_fine(ipv4, flags))
		return ENCAPSULATION_BAD_IPV4;
	if (network_read32(ipv4 + IPV4_TO_AT) != encapsulation->options.address ||
		ipv4[IPV4_PROTOCOL_AT] != PROTOCOL_UDP)
		return ENCAPSULATION_FOREIGN;
	if (network_read16(ipv4 + IPV4_FRAGMENT_AT) & FRAGMENT_BITS)
		return ENCAPSULATION_FRAGMENT;
	outer->source = network_read32(ipv4 + IPV4_SOURCE_AT);
	if (length < UDP_END || !source_possible(outer->source))
		return ENCAPSULATION_BAD_IPV4;
	if (network_read16(ipv4 + UDP_PORT_AT) != encapsulation->options.port)
		return ENCAPSULATION_FOREIGN;
	udp_bytes = network_read16(ipv4 + UDP_LENGTH_AT);
	if (udp_bytes != length - ENCAPSULATION_IPV4_BYTES || !udp_sum_fine(ipv4, udp_bytes, flags))
		return ENCAPSULATION_BAD_UDP;
	outer->at += UDP_END;
	outer->length = udp_bytes - ENCAPSULATION_UDP_BYTES;
	outer->marked = (ipv4[IPV4_SERVICE_AT] & ECN_BITS) == ECN_MET;
	return ENCAPSULATION_FINE;
}

enum encapsulation_status encapsulation_read_any(const struct encapsulation *encapsulation,
	const void *bytes, uint32_t available, uint64_t flags, struct outer *outer)
{
	const uint8_t *at = bytes;
	uint64_t to;
	uint32_t type_at;
	uint32_t type;

	if (available < FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES)
		return ENCAPSULATION_FOREIGN;
	to = encapsulation_to(at);
	type_at = tag_read(encapsulation, at);
	if ((to != encapsulation->own_number && to != EVERYBODY) || type_at == 0)
		return ENCAPSULATION_FOREIGN;
	type = network_read16(at + type_at);
	outer->at = type_at + 2;
	outer->length = available - outer->at;
	outer->source = 0;
	outer->from = at + FRAME_ADDRESS_BYTES;
	outer->marked = false;
	if (!encapsulation->options.udp && type == PORT_REFUSED)
		return ENCAPSULATION_REFUSED;
	if (!encapsulation->options.udp) {
		outer->marked = type == PORT_MARKED;
		return type == FRAME_ETHERTYPE || outer->marked ? ENCAPSULATION_FINE
								: ENCAPSULATION_FOREIGN;
	}
	if (type == ARP_ETHERTYPE)
		return ENCAPSULATION_ARP;
	if (type != ETHERTYPE_IPV4 || to == EVERYBODY)
		return ENCAPSULATION_FOREIGN;
	return udp_read(encapsulation, at + outer->at, outer->length, flags, outer);
}

uint32_t encapsulation_skip(const struct encapsulation *encapsulation, const void *bytes)
{
	const uint8_t *at = bytes;
	uint32_t skip = FRAME_ETHERNET_BYTES + (encapsulation->options.udp ? UDP_END : 0);

	if (network_read16(at + TYPE_AT) == ETHERTYPE_VLAN)
		skip += ENCAPSULATION_TAG_BYTES;
	return skip;
}
