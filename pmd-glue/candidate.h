/* SPDX-License-Identifier: BSD-3-Clause */
/* candidate.h - the UDP ports of a process that has a port on the kernel's UDP sockets (udp.c), and
 * the Ethernet address that stands for one of them.
 *
 * All hosts have the same range of UDP ports (PTL_UDP_PORTS). A process id has CANDIDATES ports in
 * it, which may coincide, and a process binds the first that is free. So a sender that knows node
 * and process tries at most CANDIDATES ports, and no registry is needed. doc/wire.md has examples.
 *
 * An index is the distance of a UDP port from the first one of the range. The address that the
 * transport sees is `02 | (index >> 8) << 2`, the IPv4 address, `index & 255`: bit 0 is never set,
 * so that it is not a group's.
 */
#ifndef PMD_GLUE_CANDIDATE_H
#define PMD_GLUE_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#define CANDIDATES       8u
#define CANDIDATE_LOCAL  2u /* an address that no manufacturer has given out */
#define CANDIDATE_SHIFT  2
#define CANDIDATE_RANGES 16384u /* ports in the largest range */

struct candidate_range {
	uint16_t first; /* a UDP port */
	uint16_t count;
};

/* The index of a process's UDP port number k. */
static inline uint32_t candidate_index(struct candidate_range range, uint32_t pid, uint32_t k)
{
	uint64_t hash = (uint64_t)pid * CANDIDATES + k + 1;

	hash *= UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((hash >> 32) * range.count >> 32);
}

/* May the process have this port? */
static inline bool candidate_fits(struct candidate_range range, uint32_t pid, uint32_t index)
{
	for (uint32_t k = 0; k < CANDIDATES; k++)
		if (candidate_index(range, pid, k) == index)
			return true;
	return false;
}

static inline void candidate_write(uint8_t *address, uint32_t node, uint32_t index)
{
	uint32_t bytes = rte_cpu_to_be_32(node);

	address[0] = (uint8_t)(CANDIDATE_LOCAL | index >> 8 << CANDIDATE_SHIFT);
	memcpy(address + 1, &bytes, sizeof(bytes));
	address[5] = (uint8_t)index;
}

static inline uint32_t candidate_node(const uint8_t *address)
{
	uint32_t bytes;

	memcpy(&bytes, address + 1, sizeof(bytes));
	return rte_be_to_cpu_32(bytes);
}

static inline uint32_t candidate_read(const uint8_t *address)
{
	return (uint32_t)(address[0] >> CANDIDATE_SHIFT) << 8 | address[5];
}

#endif
