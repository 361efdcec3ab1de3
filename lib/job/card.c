/* SPDX-License-Identifier: BSD-3-Clause */
/* card.c - see card.h. */
#include <job/card.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include <base/log.h>

#define VERSION 1

static void number_encode(uint8_t *bytes, uint32_t number)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(number >> 8 * i);
}

static uint32_t number_decode(const uint8_t *bytes)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < 4; i++)
		number |= (uint32_t)bytes[i] << 8 * i;
	return number;
}

void card_encode(const struct card *card, uint8_t bytes[CARD_BYTES])
{
	memset(bytes, 0, CARD_BYTES);
	bytes[0] = 'P';
	bytes[1] = VERSION;
	bytes[2] = (uint8_t)card->network;
	number_encode(bytes + 4, card->process.nid);
	number_encode(bytes + 8, card->process.pid);
	number_encode(bytes + 12, card->locality);
	memcpy(bytes + 16, card->address, sizeof(card->address));
	bytes[22] = (uint8_t)card->lifeline.port;
	bytes[23] = (uint8_t)(card->lifeline.port >> 8);
	memcpy(bytes + 24, card->lifeline.address, sizeof(card->lifeline.address));
}

bool card_decode(struct card *card, const uint8_t bytes[CARD_BYTES])
{
	if (bytes[0] != 'P' || bytes[1] != VERSION || bytes[2] >= CARD_NETWORKS)
		return false;
	*card = (struct card){
		.process = {.nid = number_decode(bytes + 4), .pid = number_decode(bytes + 8)},
		.network = bytes[2],
		.locality = number_decode(bytes + 12),
	};
	memcpy(card->address, bytes + 16, sizeof(card->address));
	card->lifeline.port = (uint16_t)(bytes[22] | bytes[23] << 8);
	memcpy(card->lifeline.address, bytes + 24, sizeof(card->lifeline.address));
	return card->process.nid != UINT32_MAX && card->process.pid != UINT32_MAX;
}

void card_write(const struct card *card, char text[CARD_TEXT])
{
	uint8_t bytes[CARD_BYTES];

	card_encode(card, bytes);
	for (unsigned i = 0; i < CARD_BYTES; i++)
		snprintf(text + 2 * i, CARD_TEXT - 2 * i, "%02x", bytes[i]);
}

static bool digit_value(char digit, unsigned *value)
{
	if (digit >= '0' && digit <= '9')
		*value = (unsigned)(digit - '0');
	else if (digit >= 'a' && digit <= 'f')
		*value = 10 + (unsigned)(digit - 'a');
	else
		return false;
	return true;
}

bool card_read(struct card *card, const char *text)
{
	uint8_t bytes[CARD_BYTES] = {0};
	unsigned i, digit;

	for (i = 0; i < CARD_TEXT - 1 && digit_value(text[i], &digit); i++)
		bytes[i / 2] = (uint8_t)((unsigned)bytes[i / 2] << 4 | digit);
	return i == CARD_TEXT - 1 && text[i] == '\0' && card_decode(card, bytes);
}

/* As PTL_IFACE_NAME has it. */
static const char *network_name(enum card_network network)
{
	static const char *const names[] = {
		[CARD_ETHERNET] = "a network interface",
		[CARD_ETHERNET_UDP] = "a network interface with PTL_ENCAP=udp",
		[CARD_UDP] = "udp",
		[CARD_NODE] = "a node",
		[CARD_UDP6] = "udp over IPv6",
	};

	return names[network];
}

static bool is_socket(enum card_network network)
{
	return network == CARD_UDP || network == CARD_UDP6;
}

/* Why equal networks with different localities do not meet. */
static void locality_unreached(
	const struct card *own, const struct card *other, uint32_t rank, char *why, size_t size)
{
	const uint32_t mine = own->locality, its = other->locality;

	if (own->network == CARD_NODE)
		snprintf(why, size,
			"rank %u is on another machine, or on another node of this one: set "
			"PTL_IFACE_NAME to udp, or to a network interface such as eth1, for all "
			"(mpirun: -x PTL_IFACE_NAME=udp)",
			rank);
	else if (own->network == CARD_ETHERNET_UDP)
		snprintf(why, size,
			"rank %u uses the UDP port %u, this process %u: set PTL_UDP_PORT alike for "
			"all (mpirun: -x PTL_UDP_PORT)",
			rank, its, mine);
	else
		snprintf(why, size,
			"rank %u uses the UDP ports %u-%u, this process %u-%u: set PTL_UDP_PORTS "
			"alike for all (mpirun: -x PTL_UDP_PORTS)",
			rank, RTE_MIN(its >> 16, its & UINT16_MAX),
			RTE_MAX(its >> 16, its & UINT16_MAX),
			RTE_MIN(mine >> 16, mine & UINT16_MAX),
			RTE_MAX(mine >> 16, mine & UINT16_MAX));
}

/* Two subnets may be on one Ethernet segment, so this is only a warning. */
static void subnets_warn(uint32_t own, uint32_t other, uint32_t rank)
{
	static _Atomic bool told;
	char texts[2][INET_ADDRSTRLEN] = {"", ""};

	if (own == 0 || other == 0 || own == other || atomic_exchange(&told, true))
		return;
	inet_ntop(AF_INET, &(struct in_addr){htonl(own)}, texts[0], sizeof(texts[0]));
	inet_ntop(AF_INET, &(struct in_addr){htonl(other)}, texts[1], sizeof(texts[1]));
	log_warning("the interface of rank %u is in the subnet %s, that of this process in %s: if "
		    "a router is between them, it forwards no Ethernet frames, and the ranks do "
		    "not reach each other; then set PTL_IFACE_NAME to udp for all",
		rank, texts[1], texts[0]);
}

bool card_unreached(
	const struct card *own, const struct card *other, uint32_t rank, char *why, size_t size)
{
	if (own->network != other->network) {
		if (is_socket(own->network) && is_socket(other->network))
			snprintf(why, size,
				"rank %u is on UDP sockets of IPv%u, this process on those of "
				"IPv%u: set PTL_IFACE_NAME and PTL_HOSTS alike for all; with "
				"PTL_HOSTS, only an IPv4 address in PTL_IFACE_NAME makes it IPv4",
				rank, other->network == CARD_UDP6 ? 6 : 4,
				own->network == CARD_UDP6 ? 6 : 4);
		else
			snprintf(why, size,
				"rank %u is on %s, this process on %s: set PTL_IFACE_NAME and "
				"PTL_ENCAP alike for all (mpirun: -x PTL_IFACE_NAME)",
				rank, network_name(other->network), network_name(own->network));
		return true;
	}
	if (own->network == CARD_ETHERNET) {
		subnets_warn(own->locality, other->locality, rank);
		return false;
	}
	if (own->locality != other->locality)
		locality_unreached(own, other, rank, why, size);
	return own->locality != other->locality;
}

static bool is_link_of(const struct ifaddrs *one, const struct card *card)
{
	const struct sockaddr_ll *link = (const void *)one->ifa_addr;

	return link && link->sll_family == AF_PACKET && link->sll_halen == sizeof(card->address) &&
	       memcmp(link->sll_addr, card->address, sizeof(card->address)) == 0;
}

unsigned card_interface(const struct ifaddrs *all, const struct card *card)
{
	if (card->network != CARD_ETHERNET && card->network != CARD_ETHERNET_UDP)
		return 0;
	for (; all; all = all->ifa_next)
		if (is_link_of(all, card))
			return (unsigned)((const struct sockaddr_ll *)(const void *)all->ifa_addr)
				->sll_ifindex;
	return 0;
}

/* The name of an address may have a label behind a colon. */
static bool is_address_of(
	const struct ifaddrs *all, const struct ifaddrs *one, const struct card *card)
{
	const size_t length = strcspn(one->ifa_name, ":");

	for (; all; all = all->ifa_next)
		if (is_link_of(all, card) && strlen(all->ifa_name) == length &&
			memcmp(all->ifa_name, one->ifa_name, length) == 0)
			return true;
	return false;
}

static uint32_t ip4_of(const struct sockaddr *address)
{
	return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
}

uint32_t card_subnet(const struct ifaddrs *all, const struct card *card)
{
	uint32_t subnet = 0, mask;

	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !one->ifa_netmask ||
			!is_address_of(all, one, card))
			continue;
		mask = ip4_of(one->ifa_netmask);
		if (mask == UINT32_MAX || (subnet != 0 && subnet != (ip4_of(one->ifa_addr) & mask)))
			return 0;
		subnet = ip4_of(one->ifa_addr) & mask;
	}
	return subnet;
}
