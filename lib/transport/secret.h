/* SPDX-License-Identifier: BSD-3-Clause */
/* secret.h - numbers that nobody can guess without the key: SipHash-2-4 of three words. No state;
 * any thread.
 *
 * They must cost nothing to keep, so they are computed anew whenever they are compared.
 */
#ifndef TRANSPORT_SECRET_H
#define TRANSPORT_SECRET_H

#include <stdint.h>

struct secret {
	uint64_t key[2];
};

static inline uint64_t secret_turned(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void secret_rounds(uint64_t v[4], unsigned count)
{
	while (count-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = secret_turned(v[1], 13) ^ v[0];
		v[3] = secret_turned(v[3], 16) ^ v[2];
		v[0] = secret_turned(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = secret_turned(v[1], 17) ^ v[2];
		v[3] = secret_turned(v[3], 21) ^ v[0];
		v[2] = secret_turned(v[2], 32);
	}
}

static inline uint64_t secret_number(
	const struct secret *secret, uint64_t a, uint64_t b, uint64_t c)
{
	/* The last word is that of 24 bytes. */
	const uint64_t words[] = {a, b, c, UINT64_C(24) << 56};
	uint64_t v[4] = {
		secret->key[0] ^ UINT64_C(0x736f6d6570736575),
		secret->key[1] ^ UINT64_C(0x646f72616e646f6d),
		secret->key[0] ^ UINT64_C(0x6c7967656e657261),
		secret->key[1] ^ UINT64_C(0x7465646279746573),
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		v[3] ^= words[i];
		secret_rounds(v, 2);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	secret_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
