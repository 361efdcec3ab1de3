/* SPDX-License-Identifier: BSD-3-Clause */
/* pcapng.c - the blocks of a pcapng file as bytes. See pcapng.h; the numbers are the format's. */
#include <assert.h>
#include <string.h>

#include <pmd-glue/pcapng.h>

#define BLOCK_SECTION    0x0a0d0d0au
#define BLOCK_INTERFACE  1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET     6u

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LENGTH_UNKNOWN   UINT64_MAX
#define LINK_ETHERNET    1u
#define NANOSECONDS      9 /* ten to the power of minus so many seconds */

/* Options of blocks. */
#define OPTION_END            0u
#define SECTION_APPLICATION   4u
#define INTERFACE_NAME        2u
#define INTERFACE_DESCRIPTION 3u
#define INTERFACE_ADDRESS     6u
#define INTERFACE_RESOLUTION  9u
#define PACKET_FLAGS          2u
#define STATISTICS_STARTED    2u
#define STATISTICS_ENDED      3u
#define STATISTICS_RECEIVED   4u
#define STATISTICS_DROPPED    5u

#define NAME_MAX_BYTES        63u
#define DESCRIPTION_MAX_BYTES 127u
#define ADDRESS_BYTES         6u
#define OPTION_HEAD           4u
#define PACKET_OPTIONS        (OPTION_HEAD + 4u + OPTION_HEAD)

/* Where a block is being written. */
struct writer {
	uint8_t *start;
	uint8_t *at;
};

static void put(struct writer *writer, const void *bytes, size_t length)
{
	memcpy(writer->at, bytes, length);
	writer->at += length;
}

static void put16(struct writer *writer, uint16_t value)
{
	put(writer, &value, sizeof(value));
}

static void put32(struct writer *writer, uint32_t value)
{
	put(writer, &value, sizeof(value));
}

static void put64(struct writer *writer, uint64_t value)
{
	put(writer, &value, sizeof(value));
}

/* Times are two words, the high one first, whatever the byte order. */
static void put_time(struct writer *writer, uint64_t time)
{
	put32(writer, (uint32_t)(time >> 32));
	put32(writer, (uint32_t)time);
}

static void put_padding(struct writer *writer)
{
	while ((writer->at - writer->start) % 4 != 0)
		*writer->at++ = 0;
}

static void put_option(struct writer *writer, uint16_t code, const void *bytes, size_t length)
{
	put16(writer, code);
	put16(writer, (uint16_t)length);
	put(writer, bytes, length);
	put_padding(writer);
}

static void put_text(struct writer *writer, uint16_t code, const char *text, size_t most)
{
	put_option(writer, code, text, strnlen(text, most));
}

static void put_number(struct writer *writer, uint16_t code, uint64_t number)
{
	put_option(writer, code, &number, sizeof(number));
}

static void put_moment(struct writer *writer, uint16_t code, uint64_t time)
{
	put16(writer, code);
	put16(writer, sizeof(time));
	put_time(writer, time);
}

static struct writer block_begin(void *to, uint32_t type)
{
	struct writer writer = {.start = to, .at = to};

	put32(&writer, type);
	put32(&writer, 0); /* its bytes, later */
	return writer;
}

static size_t block_end(struct writer *writer)
{
	uint32_t bytes = (uint32_t)(writer->at - writer->start) + 2 * OPTION_HEAD;

	put_option(writer, OPTION_END, "", 0);
	put32(writer, bytes);
	memcpy(writer->start + offsetof(struct pcapng_block, bytes), &bytes, sizeof(bytes));
	assert(bytes <= PCAPNG_BLOCK_MAX);
	return bytes;
}

size_t pcapng_section(void *to, const char *application)
{
	struct writer writer = block_begin(to, BLOCK_SECTION);

	put32(&writer, BYTE_ORDER_MAGIC);
	put16(&writer, 1); /* version 1.0 */
	put16(&writer, 0);
	put64(&writer, LENGTH_UNKNOWN);
	put_text(&writer, SECTION_APPLICATION, application, NAME_MAX_BYTES);
	return block_end(&writer);
}

size_t pcapng_interface(void *to, const struct pcapng_interface *interface)
{
	const uint8_t resolution = NANOSECONDS;
	struct writer writer = block_begin(to, BLOCK_INTERFACE);

	put16(&writer, LINK_ETHERNET);
	put16(&writer, 0);
	put32(&writer, interface->snap);
	put_text(&writer, INTERFACE_NAME, interface->name, NAME_MAX_BYTES);
	put_text(&writer, INTERFACE_DESCRIPTION, interface->description, DESCRIPTION_MAX_BYTES);
	put_option(&writer, INTERFACE_ADDRESS, interface->address, ADDRESS_BYTES);
	put_option(&writer, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	return block_end(&writer);
}

static uint32_t padded(uint32_t length)
{
	return (length + 3) & ~3u;
}

size_t pcapng_packet_bytes(uint32_t captured)
{
	return PCAPNG_PACKET_HEAD + padded(captured) + PACKET_OPTIONS + sizeof(uint32_t);
}

size_t pcapng_packet_head(void *to, const struct pcapng_packet *packet)
{
	struct writer writer = {.start = to, .at = to};

	put32(&writer, BLOCK_PACKET);
	put32(&writer, (uint32_t)pcapng_packet_bytes(packet->captured));
	put32(&writer, packet->interface);
	put_time(&writer, packet->time);
	put32(&writer, packet->captured);
	put32(&writer, packet->length);
	return PCAPNG_PACKET_HEAD;
}

size_t pcapng_packet_tail(void *to, const struct pcapng_packet *packet)
{
	const uint32_t flags = packet->direction;
	struct writer writer = {.start = to, .at = to};

	memset(to, 0, padded(packet->captured) - packet->captured);
	writer.at = writer.start += padded(packet->captured) - packet->captured;
	put_option(&writer, PACKET_FLAGS, &flags, sizeof(flags));
	put_option(&writer, OPTION_END, "", 0);
	put32(&writer, (uint32_t)pcapng_packet_bytes(packet->captured));
	return (size_t)(writer.at - (uint8_t *)to);
}

size_t pcapng_statistics(void *to, const struct pcapng_statistics *statistics)
{
	struct writer writer = block_begin(to, BLOCK_STATISTICS);

	put32(&writer, statistics->interface);
	put_time(&writer, statistics->ended);
	put_moment(&writer, STATISTICS_STARTED, statistics->started);
	put_moment(&writer, STATISTICS_ENDED, statistics->ended);
	put_number(&writer, STATISTICS_RECEIVED, statistics->received);
	put_number(&writer, STATISTICS_DROPPED, statistics->dropped);
	return block_end(&writer);
}
