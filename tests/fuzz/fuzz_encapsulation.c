/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_encapsulation.c - what stands before the transport header: Ethernet, a tag, IPv4 and UDP,
 * ARP. The first byte says how the interface is set, the second what the device says of
 * checksums. */
#include <string.h>

#include <rte_mbuf.h>

#include <wire/arp.h>
#include <wire/encapsulation.h>

#include "fuzz.h"

#define OWN  0x0a000001u
#define PEER 0x0a000002u

static const uint8_t own[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 0, 2};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static struct encapsulation make(uint8_t what, uint32_t address, const uint8_t *hardware)
{
	struct encapsulation encapsulation;
	const struct encapsulation_options options = {
		.udp = what & 1, .vlan = what & 2 ? 7 : 0, .prefix = 24, .address = address};

	encapsulation_init(&encapsulation, &options, hardware, false);
	return encapsulation;
}

static uint64_t flags_make(uint8_t what)
{
	static const uint64_t ip[] = {RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
		RTE_MBUF_F_RX_IP_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_NONE};
	static const uint64_t udp[] = {RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, RTE_MBUF_F_RX_L4_CKSUM_GOOD,
		RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_L4_CKSUM_NONE};

	return ip[what & 3] | udp[what >> 2 & 3];
}

static void arp_check(const uint8_t *bytes, const struct outer *outer)
{
	uint8_t written[ARP_FRAME];
	struct arp arp;

	if (!arp_read(bytes + outer->at, outer->length, outer->from, &arp))
		return;
	fuzz_assert(outer->length >= ARP_BYTES);
	arp_write(written, &arp);
	fuzz_assert(memcmp(written, bytes + outer->at, ARP_BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct encapsulation encapsulation;
	enum encapsulation_status status;
	struct outer outer;
	uint32_t length;
	uint8_t *bytes;

	if (size < 2 || size > 65536)
		return 0;
	encapsulation = make(data[0], OWN, own);
	length = (uint32_t)size - 2;
	bytes = calloc(1, length ? length : 1); /* of its own, so that a read beyond it is seen */
	memcpy(bytes, data + 2, length);
	status = encapsulation_read(&encapsulation, bytes, length, flags_make(data[1]), &outer);
	if (status == ENCAPSULATION_FINE || status == ENCAPSULATION_ARP) {
		fuzz_assert(outer.at <= length && outer.length <= length - outer.at);
		fuzz_assert(outer.from == bytes + FRAME_ADDRESS_BYTES);
	}
	if (status == ENCAPSULATION_FINE)
		fuzz_assert(encapsulation_skip(&encapsulation, bytes) == outer.at);
	if (status == ENCAPSULATION_ARP)
		arp_check(bytes, &outer);
	free(bytes);
	return 0;
}

/* Mostly begins anew from a frame that is right, and spoils one byte and its length. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	static uint8_t room[2048] __attribute__((aligned(64)));
	struct rte_mbuf mbuf = {.buf_addr = room, .buf_len = sizeof(room)};
	struct frame frame = {.destination_nid = OWN, .source_nid = PEER};
	struct encapsulation encapsulation;

	size = LLVMFuzzerMutate(data, size, size_max);
	if (seed % 4 == 0 || size < 2)
		return size;
	encapsulation = make(data[0], PEER, peer);
	if (size < 2 + encapsulation.bytes || size > sizeof(room))
		return size;
	/* The payload stays as it is; the checksum is made to fit it. */
	memcpy(room, data + 2, size - 2);
	frame.length = (uint16_t)(size - 2 - encapsulation.bytes);
	encapsulation_write(&encapsulation, &mbuf, own, &frame);
	memcpy(data + 2, room, size - 2);
	if (seed % 4 == 3)
		data[2 + seed / 4 % encapsulation.bytes] ^= (uint8_t)(seed >> 16);
	return size;
}
