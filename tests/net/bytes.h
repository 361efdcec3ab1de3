/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - bytes that are a function of a seed and their offset. */
#ifndef NET_BYTES_H
#define NET_BYTES_H

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

/* The program's own: says who it is, what is wrong, and ends. */
static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Eight bytes of the sequence that a seed stands for. */
static inline uint64_t mix(uint64_t seed, uint64_t word)
{
	uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + word;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Whole words are copied and compared without a call: with one for each word, both functions take
 * three times as long under AddressSanitizer. */
static inline void bytes_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t word = mix(seed, i / 8);

		if (size - i >= 8)
			memcpy(bytes + i, &word, 8);
		else
			memcpy(bytes + i, &word, size - i);
	}
}

/* bytes[0] is byte `from` of the sequence; from is a multiple of 8. */
static inline void bytes_check(
	const unsigned char *bytes, uint64_t size, uint64_t seed, uint64_t from)
{
	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t word = mix(seed, (from + i) / 8), found = word;

		if (size - i >= 8)
			memcpy(&found, bytes + i, 8);
		else
			memcpy(&found, bytes + i, size - i);
		if (found != word)
			fail("wrong bytes at %" PRIu64 " of %" PRIu64 ", seed %#" PRIx64, i, size,
				seed);
	}
}

#endif
