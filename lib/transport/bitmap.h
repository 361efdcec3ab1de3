/* SPDX-License-Identifier: BSD-3-Clause */
/* bitmap.h - rings of 256 bits, one per sequence number of a window: the bit of psn is psn modulo
 * 256. */
#ifndef TRANSPORT_BITMAP_H
#define TRANSPORT_BITMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <wire/frame.h>

#define BITMAP_WORDS (FRAME_WINDOW / 64)
static_assert(FRAME_WINDOW == FRAME_SACK_BITS, "a window is a bitmap");
static_assert((FRAME_WINDOW & (FRAME_WINDOW - 1)) == 0, "the ring's index is a mask");

static inline bool bitmap_test(const uint64_t *bitmap, uint32_t psn)
{
	return bitmap[(psn >> 6) % BITMAP_WORDS] >> (psn & 63) & 1;
}

static inline void bitmap_set(uint64_t *bitmap, uint32_t psn)
{
	bitmap[(psn >> 6) % BITMAP_WORDS] |= UINT64_C(1) << (psn & 63);
}

static inline void bitmap_clear(uint64_t *bitmap, uint32_t psn)
{
	bitmap[(psn >> 6) % BITMAP_WORDS] &= ~(UINT64_C(1) << (psn & 63));
}

static inline bool bitmap_any(const uint64_t *bitmap)
{
	return (bitmap[0] | bitmap[1] | bitmap[2] | bitmap[3]) != 0;
}

/* to's bit i is from's bit psn + i: a ring as the line that starts at psn. With -psn the way
 * back. */
static inline void bitmap_turn(const uint64_t *from, uint32_t psn, uint64_t *to)
{
	unsigned word = psn >> 6;
	unsigned shift = psn & 63;

	for (unsigned i = 0; i < BITMAP_WORDS; i++) {
		to[i] = from[(word + i) % BITMAP_WORDS] >> shift;
		if (shift != 0)
			to[i] |= from[(word + i + 1) % BITMAP_WORDS] << (64 - shift);
	}
}

/* The lowest set bit of a line, or FRAME_WINDOW. */
static inline unsigned bitmap_lowest(const uint64_t *line)
{
	for (unsigned i = 0; i < BITMAP_WORDS; i++)
		if (line[i] != 0)
			return i * 64 + (unsigned)__builtin_ctzll(line[i]);
	return FRAME_WINDOW;
}

/* Bits set in a line from bit `from` on? */
static inline bool bitmap_beyond(const uint64_t *line, uint32_t from)
{
	for (unsigned i = 0; i < BITMAP_WORDS; i++) {
		uint64_t mask = UINT64_MAX;

		if (from >= (i + 1) * 64)
			continue;
		if (from > i * 64)
			mask <<= from - i * 64;
		if (line[i] & mask)
			return true;
	}
	return false;
}

/* Sequence numbers wrap: a comes before b. */
static inline bool serial_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool serial_before_16(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) < 0;
}

#endif
