/* word.h - eight bytes at once, at any alignment. */
#ifndef WIRE_WORD_H
#define WIRE_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
