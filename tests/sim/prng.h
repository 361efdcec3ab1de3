/* SPDX-License-Identifier: BSD-3-Clause */
/* prng.h - the simulator's only source of chance, on the library's generator.
 *
 * I1. Everything that is random in a run comes from generators that were seeded from the run's
 * seed, so a seed gives the same
 *     run bit for bit, on every machine.
 */
#ifndef SIM_PRNG_H
#define SIM_PRNG_H

#include <stdbool.h>
#include <stdint.h>

#include <base/random.h>

struct prng {
	uint64_t state;
};

static inline uint64_t prng_mix(uint64_t x)
{
	return random_next(&x);
}

static inline struct prng prng_make(uint64_t seed)
{
	return (struct prng){prng_mix(seed)};
}

static inline uint64_t prng_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline uint64_t prng_next(struct prng *prng)
{
	return random_next(&prng->state);
}

/* 0 to bound - 1; bound is not 0. */
static inline uint64_t prng_below(struct prng *prng, uint64_t bound)
{
	return prng_next(prng) % bound;
}

/* Both ends included. */
static inline uint64_t prng_between(struct prng *prng, uint64_t least, uint64_t most)
{
	return least + prng_below(prng, most - least + 1);
}

/* A number below 1 with 53 random bits. */
static inline double prng_fraction(struct prng *prng)
{
	return (double)(prng_next(prng) >> 11) * 0x1p-53;
}

static inline bool prng_chance(struct prng *prng, double probability)
{
	return probability > 0 && prng_fraction(prng) < probability;
}

/* About as often in every power of two from least to most; least is not 0. */
static inline uint64_t prng_scale(struct prng *prng, uint64_t least, uint64_t most)
{
	unsigned low = 63 - (unsigned)__builtin_clzll(least),
		 high = 63 - (unsigned)__builtin_clzll(most);
	uint64_t magnitude = UINT64_C(1) << prng_between(prng, low, high);
	uint64_t number = magnitude + prng_below(prng, magnitude);

	return number < least ? least : number > most ? most : number;
}

#endif
