/* SPDX-License-Identifier: BSD-3-Clause */
/* pcapng.h - the blocks of a pcapng file, which Wireshark reads, as bytes. In the host's byte
 * order, as the format has it; times are nanoseconds since 1970.
 *
 * Each function writes a block, or a part of one, and returns its bytes.
 */
#ifndef PMD_GLUE_PCAPNG_H
#define PMD_GLUE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_BLOCK_MAX 512u /* bytes of any block but a packet's */

/* The beginning of every block. The number of its bytes, a multiple of 4, is repeated at its
 * end. */
struct pcapng_block {
	uint32_t type;
	uint32_t bytes;
};

/* The first block of a file. */
size_t pcapng_section(void *to, const char *application);

struct pcapng_interface {
	const char *name; /* at most 63 letters are taken, of the description 127 */
	const char *description;
	const uint8_t *address; /* MAC */
	uint32_t snap;          /* bytes kept of a packet at most, 0: all */
};

/* An interface; the first is number 0. Its packets come later in the file. */
size_t pcapng_interface(void *to, const struct pcapng_interface *interface);

enum pcapng_direction { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND };

struct pcapng_packet {
	uint32_t interface;
	enum pcapng_direction direction;
	uint64_t time;
	uint32_t captured; /* bytes in the file */
	uint32_t length;   /* bytes that it had */
};

#define PCAPNG_PACKET_HEAD 28u
#define PCAPNG_PACKET_TAIL 19u /* at most */

/* A packet's block: its head, then `captured` bytes by the caller, then its tail. */
size_t pcapng_packet_bytes(uint32_t captured);
size_t pcapng_packet_head(void *to, const struct pcapng_packet *packet);
size_t pcapng_packet_tail(void *to, const struct pcapng_packet *packet);

struct pcapng_statistics {
	uint32_t interface;
	uint64_t started;
	uint64_t ended;
	uint64_t received; /* packets, those that were dropped included */
	uint64_t dropped;
};

size_t pcapng_statistics(void *to, const struct pcapng_statistics *statistics);

#endif
