/* SPDX-License-Identifier: BSD-3-Clause */
/* random.h - random numbers for jitter, injected faults and tests: SplitMix64. The same seed gives
 * the same numbers on every machine, and any seed will do. They are not for secrets, which come
 * from getrandom(). */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Spreads each bit of x over all bits. */
static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The next number of the generator whose state, the seed at first, is *state. */
static inline uint64_t random_next(uint64_t *state)
{
	return random_mix(*state += RANDOM_STEP);
}

#endif
