/* SPDX-License-Identifier: BSD-3-Clause */
/* arp.h - the body of an ARP message (RFC 826) for IPv4 over Ethernet. No state; any thread.
 *
 *   0               16                            31
 *  +---------------+-------------------------------+
 *  |  hardware: 1  |       protocol: 0x0800        |   0
 *  |  6   |   4    |  operation: 1 asks, 2 answers |   4
 *  +---------------+-------------------------------+
 *  |  sender's MAC address (6), IPv4 address (4)   |   8
 *  |  target's MAC address (6), IPv4 address (4)   |  18
 *  +-----------------------------------------------+
 */
#ifndef WIRE_ARP_H
#define WIRE_ARP_H

#include <stdbool.h>
#include <stdint.h>
#include <wire/frame.h>

#define ARP_ETHERTYPE 0x0806
#define ARP_BYTES     28
#define ARP_FRAME     46 /* with the padding that the least Ethernet frame needs */

struct arp {
	bool answer;
	uint8_t sender[FRAME_ADDRESS_BYTES];
	uint8_t target[FRAME_ADDRESS_BYTES]; /* zero in a question */
	uint32_t sender_address; /* IPv4, in the host's byte order; 0: it has none yet */
	uint32_t target_address;
};

/* Returns false if the message is short, of other protocols, or from an address that no host has.
 * from: the frame's source MAC address, which must be the sender's. */
bool arp_read(const void *bytes, uint32_t available, const uint8_t *from, struct arp *arp);
/* Writes ARP_FRAME bytes. */
void arp_write(void *bytes, const struct arp *arp);

#endif
