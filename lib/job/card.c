/* SPDX-License-Identifier: BSD-3-Clause */
/* card.c - see card.h. */
#include <job/card.h>

#include <stdio.h>
#include <string.h>

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

bool card_unreached(
	const struct card *own, const struct card *other, uint32_t rank, char *why, size_t size)
{
	if (is_socket(own->network) && is_socket(other->network) && own->network != other->network)
		snprintf(why, size,
			"rank %u is on UDP sockets of IPv%u, this process on those of IPv%u: set "
			"PTL_IFACE_NAME and PTL_HOSTS alike for all; with PTL_HOSTS, only an IPv4 "
			"address in PTL_IFACE_NAME makes it IPv4",
			rank, other->network == CARD_UDP6 ? 6 : 4,
			own->network == CARD_UDP6 ? 6 : 4);
	else if (own->network != other->network)
		snprintf(why, size,
			"rank %u is on %s, this process on %s: set PTL_IFACE_NAME and PTL_ENCAP "
			"alike for all (mpirun: -x PTL_IFACE_NAME)",
			rank, network_name(other->network), network_name(own->network));
	else if (own->locality != other->locality)
		snprintf(why, size,
			"rank %u is on another machine, or on another node of this one: set "
			"PTL_IFACE_NAME to udp, or to a network interface such as eth1, for all "
			"(mpirun: -x PTL_IFACE_NAME=udp)",
			rank);
	return own->network != other->network || own->locality != other->locality;
}
