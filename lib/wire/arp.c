/* SPDX-License-Identifier: BSD-3-Clause */
/* arp.c - see arp.h. */
#include <wire/arp.h>

#include <string.h>

#include <wire/word.h>

#define PREAMBLE_BYTES 7
#define OPERATION_AT   7
#define SENDER_AT      8
#define SENDER_IPV4_AT 14
#define TARGET_AT      18
#define TARGET_IPV4_AT 24
#define ASKS           1
#define ANSWERS        2
static_assert(TARGET_IPV4_AT + 4 == ARP_BYTES, "ARP over Ethernet");

/* Ethernet, IPv4, their lengths, and the high byte of the operation. */
static const uint8_t preamble[PREAMBLE_BYTES] = {0, 1, 8, 0, FRAME_ADDRESS_BYTES, 4, 0};

bool arp_read(const void *bytes, uint32_t available, const uint8_t *from, struct arp *arp)
{
	static const uint8_t nobody[FRAME_ADDRESS_BYTES];
	const uint8_t *at = bytes;

	if (available < ARP_BYTES || memcmp(at, preamble, PREAMBLE_BYTES) != 0 ||
		(at[OPERATION_AT] != ASKS && at[OPERATION_AT] != ANSWERS))
		return false;
	arp->answer = at[OPERATION_AT] == ANSWERS;
	memcpy(arp->sender, at + SENDER_AT, FRAME_ADDRESS_BYTES);
	memcpy(arp->target, at + TARGET_AT, FRAME_ADDRESS_BYTES);
	arp->sender_address = network_read32(at + SENDER_IPV4_AT);
	arp->target_address = network_read32(at + TARGET_IPV4_AT);
	return !(arp->sender[0] & 1) && memcmp(arp->sender, nobody, FRAME_ADDRESS_BYTES) != 0 &&
	       memcmp(arp->sender, from, FRAME_ADDRESS_BYTES) == 0;
}

void arp_write(void *bytes, const struct arp *arp)
{
	uint8_t *at = bytes;

	memset(at, 0, ARP_FRAME);
	memcpy(at, preamble, PREAMBLE_BYTES);
	at[OPERATION_AT] = arp->answer ? ANSWERS : ASKS;
	memcpy(at + SENDER_AT, arp->sender, FRAME_ADDRESS_BYTES);
	memcpy(at + TARGET_AT, arp->target, FRAME_ADDRESS_BYTES);
	network_write32(at + SENDER_IPV4_AT, arp->sender_address);
	network_write32(at + TARGET_IPV4_AT, arp->target_address);
}
