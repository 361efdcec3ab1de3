/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbour.h - the MAC addresses of IPv4 hosts on the own link: other nodes, and the gateway.
 * Found by ARP, for PTL_ENCAP=udp.
 *
 * Owned by the transport's poll core. It has no timer: a caller that needs an address asks again at
 * growing intervals until the address is known (address.c). Many callers that need the same address
 * cause no more questions than one.
 *
 * I1. The table is bounded and made at the beginning; a new neighbour takes the place of the one
 *     that was of use longest ago.
 * I2. A neighbour is there because this process asked for it. No message from outside makes one,
 *     and only an answer to an own question, or a neighbour's own question or announcement, changes
 *     its address.
 */
#ifndef TRANSPORT_NEIGHBOUR_H
#define TRANSPORT_NEIGHBOUR_H

#include <stdint.h>
#include <transport/transport.h>

struct neighbours;
struct outer;

/* NULL: no memory. */
struct neighbours *neighbours_create(void);
void neighbours_free(struct neighbours *neighbours);

/* The MAC address of a host, NULL when it is not known, or was learnt too long ago. */
const uint8_t *neighbour_find(struct transport *transport, uint32_t address);
/* Asks for it, unless that was done just now. Once it is known, the process's own address is asked
 * for, or corrected. */
void neighbour_ask(struct transport *transport, uint32_t address, struct process wanted);
/* A frame of a process beyond the host came from `from`: the MAC address to answer to. It is the
 * host's if that is known; when they differ, the host is asked whether it has moved. */
const uint8_t *neighbour_confirm(
	struct transport *transport, uint32_t address, const uint8_t *from, struct process process);
/* Asks whether another host has this one's address (RFC 5227): its answer is an ARP message by
 * which it claims it. */
void neighbour_probe(struct transport *transport);
/* The meaning of an ARP message for peers. */
enum neighbour_result {
	NEIGHBOUR_NOTHING,
	NEIGHBOUR_FOUND,    /* an address that was asked for, for the sake of a process */
	NEIGHBOUR_DUPLICATE /* another host has the own IPv4 address */
};
struct neighbour_told {
	struct process wanted;
	uint8_t hardware[FRAME_ADDRESS_BYTES];
};
/* An ARP message. *told: filled in as far as the result says. */
enum neighbour_result neighbour_receive(struct transport *transport, const void *bytes,
	const struct outer *outer, struct neighbour_told *told);

#endif
