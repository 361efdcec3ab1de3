/* SPDX-License-Identifier: BSD-3-Clause */
/* word.h - numbers as they lie on the wire, at any alignment: eight bytes at once in the host's
 * byte order, which is the one of Postern's own headers, and those of Ethernet, ARP and IPv4 in the
 * order of networks. */
#ifndef WIRE_WORD_H
#define WIRE_WORD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are read and written as they are");

static inline uint64_t word_of(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static inline uint64_t word_read(const void *from, size_t at)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)from + at, sizeof(word));
	return word;
}

static inline void word_store(void *to, size_t at, uint64_t word)
{
	memcpy((uint8_t *)to + at, &word, sizeof(word));
}

static inline uint32_t network_read16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t network_read32(const uint8_t *at)
{
	return network_read16(at) << 16 | network_read16(at + 2);
}

static inline void network_write16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void network_write32(uint8_t *at, uint32_t value)
{
	network_write16(at, value >> 16);
	network_write16(at + 2, value & UINT16_MAX);
}

#endif
