/* crc.h - CRC32C, the checksum of frames: word by word, so that headers are summed in registers. No state; any thread. */
#ifndef WIRE_CRC_H
#define WIRE_CRC_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#else
#include <rte_hash_crc.h>
#endif

#define CHECKSUM_START 0xffffffffu

/* Eight bytes at any alignment, as they are summed. */
static inline uint64_t word_load(const void *bytes, uint32_t at)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)bytes + at, sizeof(word));
	return word;
}

static inline void word_store(void *bytes, uint32_t at, uint64_t word)
{
	memcpy((uint8_t *)bytes + at, &word, sizeof(word));
}

static inline uint64_t crc_word(uint64_t crc, uint64_t word)
{
#ifdef __SSE4_2__
	return _mm_crc32_u64(crc, word);
#else
	return rte_hash_crc_8byte(word, (uint32_t)crc);
#endif
}

#endif
