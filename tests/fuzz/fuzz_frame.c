/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_frame.c - the transport header and the records of a frame, behind an Ethernet header that is
 * passed over. */
#include <string.h>

#include <wire/frame.h>

#include "fuzz.h"

unsigned fuzz_accepted;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* After FRAME_OK every record can be read and lies within the frame, and its lengths within the
 * protocol's limits. */
static void records_check(const struct frame_view *frame)
{
	const struct frame_header *header = frame->header;
	const uint8_t *end = frame->body + header->length - frame_header_bytes(header->flags);
	struct record record;
	uint8_t sum = 0;
	uint32_t at = 0;

	for (unsigned i = 0; i < header->records; i++) {
		const uint8_t *data;

		at = record_read(frame, at, &record);
		data = record.data;
		fuzz_assert(frame->body + at <= end);
		fuzz_assert(data + record.data_length <= end);
		fuzz_assert(record.header_length <= MESSAGE_HEADER_MAX);
		fuzz_assert(record.kind != RECORD_RING || i + 1 == header->records);
		fuzz_assert(record.kind == RECORD_STOP || record.extent <= MESSAGE_LENGTH_MAX);
		for (uint32_t j = 0; j < record.data_length; j++)
			sum = (uint8_t)(sum + data[j]);
	}
	if (frame_type(header) == FRAME_FIND || frame_type(header) == FRAME_FOUND)
		fuzz_assert(frame->body + sizeof(struct frame_name) == end);
	else if (frame_type(header) != FRAME_PING && frame_type(header) != FRAME_PONG)
		fuzz_assert(frame->body + at == end);
	else
		fuzz_assert(header->flags == FRAME_FULL_SUM && header->ack >= FRAME_HEADER_BYTES);
	if (frame_type(header) == FRAME_PING)
		fuzz_assert(header->ack <= header->length);
	(void)sum;
}

/* What bytes say, to be written again. */
static void frame_known(const uint8_t *bytes, struct frame *frame)
{
	frame_recall(bytes, frame);
	if (frame->flags & FRAME_SACK)
		memcpy(frame->sack, bytes + FRAME_HEADER_BYTES, FRAME_SACK_BYTES);
}

/* A frame that was accepted can be written, and is accepted again. */
static void frame_again(const uint8_t *bytes)
{
	struct frame_view again;
	struct frame frame;
	uint8_t *copy;

	frame_known(bytes, &frame);
	copy = malloc(frame.length);
	memcpy(copy, bytes, frame.length);
	frame_encode(&frame, copy);
	fuzz_assert(frame_decode(copy, frame.length, &again) == FRAME_OK);
	fuzz_assert(memcmp(copy, bytes, frame.length) == 0);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t at = FRAME_ETHERNET_BYTES;
	uint8_t *bytes;
	struct frame_view frame;

	if (size < at || size > 65536 + 64)
		return 0;
	bytes = malloc(size);
	memcpy(bytes, data, size);
	if (frame_decode(bytes + at, (uint32_t)size - at, &frame) == FRAME_OK) {
		fuzz_accepted++;
		fuzz_assert(frame.header->length <= size - at);
		records_check(&frame);
		frame_again(bytes + at);
	}
	free(bytes);
	return 0;
}

/* Mostly repairs what a random change breaks, so that fuzzing goes deeper than the checksum: the
 * version, a length beyond the end, the checksum itself. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	struct frame frame;
	uint8_t *header = data + FRAME_ETHERNET_BYTES;

	size = LLVMFuzzerMutate(data, size, size_max);
	if (seed % 8 == 0 || size < FRAME_ETHERNET_BYTES + FRAME_HEADER_BYTES)
		return size;
	if (seed % 8 > 2)
		header[0] = (uint8_t)(FRAME_VERSION << 4 | (header[0] & 15));
	if (size - FRAME_ETHERNET_BYTES < frame_header_bytes(header[1]))
		return size;
	frame_known(header, &frame);
	if (frame.length > size - FRAME_ETHERNET_BYTES ||
		frame.length < frame_header_bytes(frame.flags))
		frame.length = (uint16_t)((size - FRAME_ETHERNET_BYTES) & ~(size_t)7);
	if (frame.length < frame_header_bytes(frame.flags))
		return size;
	frame_encode(&frame, header);
	return size;
}
