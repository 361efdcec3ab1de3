/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.c - reads and writes transport headers and records. No state; any thread.
 *
 * I1. frame_decode() looks at no byte beyond `available`, and at none beyond the header's length
 *     field.
 * I2. After FRAME_OK the records fill the frame exactly: record_read() may be called frame->records
 *     times.
 * I3. What frame_encode() and record_write() write, frame_decode() accepts.
 * I4. Headers are copied as they are, so the host's byte order is the wire's.
 */
#include <wire/frame.h>

#include <string.h>

#include <wire/crc.h>

static_assert(offsetof(struct frame_header, checksum) == 4, "behind the first half word");

/* The checksum goes on behind the header, over the bitmap or with FRAME_FULL_SUM over `length`
 * bytes and the tail. */
static uint64_t crc_rest(uint64_t crc, const uint8_t *bytes, uint8_t flags, uint32_t length,
	const uint8_t *tail, uint32_t tail_length)
{
	if (!(flags & FRAME_FULL_SUM))
		length = frame_header_bytes(flags);
	crc = crc_bytes(crc, bytes + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES);
	if ((flags & FRAME_FULL_SUM) && tail_length != 0)
		crc = crc_bytes(crc, tail, tail_length);
	return crc;
}

uint64_t frame_sum_rest(
	uint64_t crc, const struct frame_header *header, const void *tail, uint32_t tail_length)
{
	return crc_rest(crc, (const uint8_t *)header, header->flags, header->length - tail_length,
		tail, tail_length);
}

static bool record_valid(const struct record *record)
{
	switch (record->kind) {
	case RECORD_START:
		return record->header_length <= MESSAGE_HEADER_MAX &&
		       record->header_length % RECORD_ALIGN == 0 &&
		       record->extent <= MESSAGE_LENGTH_MAX && record->data_length < record->extent;
	case RECORD_WHOLE:
		return record->header_length <= MESSAGE_HEADER_MAX &&
		       record->header_length % RECORD_ALIGN == 0;
	case RECORD_MORE:
		return record->header_length == 0 && record->data_length > 0 &&
		       record->extent <= MESSAGE_LENGTH_MAX &&
		       record->data_length <= MESSAGE_LENGTH_MAX - record->extent;
	case RECORD_STOP:
		return record->header_length == 0 && record->data_length == 0 &&
		       record->extent <= UINT16_MAX;
	case RECORD_VOID:
		return record->header_length == 0 && record->data_length == 0 &&
		       record->extent == 0;
	case RECORD_RING:
		return record->header_length == 0 && record->data_length == 0 &&
		       record->message == 0 && record->extent == 0;
	default:
		return false;
	}
}

/* Do the pieces of the frame part before this record, or after it, or between its headers and its
 * data? */
static bool record_whole(const struct frame_view *frame, uint32_t at, const struct record *record)
{
	uint32_t data_at = at + record_header_bytes(record->kind) + record->header_length;

	return data_at == frame->split ||
	       (data_at < frame->split && data_at + record->data_length <= frame->split);
}

/* Walks the records: I2, and FRAME_START says the truth. */
static bool records_valid(const struct frame_view *frame, uint32_t bytes)
{
	uint32_t reach = frame->split < bytes ? frame->split : bytes; /* of headers */
	struct record record;
	bool starts = false;
	uint32_t next;
	uint32_t at = 0;

	for (unsigned i = 0; i < frame->header->records; i++) {
		if (at > reach || reach - at < RECORD_WHOLE_BYTES ||
			reach - at < record_header_bytes(frame->body[at]))
			return false;
		next = record_read(frame, at, &record);
		if (next > bytes || !record_whole(frame, at, &record))
			return false;
		if (!record_valid(&record) || (record.kind == RECORD_RING && next != bytes))
			return false;
		starts |= record.kind == RECORD_START || record.kind == RECORD_WHOLE;
		at = next;
	}
	return at == bytes && starts == !!(frame->header->flags & FRAME_START);
}

/* An echo frame is a header and padding, all of it under the checksum. The answer is no longer than
 * the question, and lengths make sense: so nobody can be made to send more than was sent to him. */
static bool echo_valid(const struct frame_header *header)
{
	if (header->flags != FRAME_FULL_SUM || header->records != 0 ||
		header->ack < FRAME_HEADER_BYTES)
		return false;
	if (frame_type(header) == FRAME_PING)
		return header->destination_incarnation == 0 && header->ack <= header->length;
	return header->length <= header->ack && header->ack <= UINT16_MAX &&
	       header->first >= FRAME_HEADER_BYTES && header->first <= UINT16_MAX;
}

/* A stream begins with the frames that its first window holds. */
static bool first_valid(const struct frame_header *header)
{
	return !(header->flags & FRAME_FIRST) || header->psn - header->first < FRAME_WINDOW;
}

/* A question for a name, or its answer: all of it under the checksum, and in one piece. */
static bool name_valid(const struct frame_view *frame, uint32_t bytes)
{
	const struct frame_header *header = frame->header;

	return header->flags == FRAME_FULL_SUM && header->records == 0 &&
	       bytes == sizeof(struct frame_name) && frame->split == UINT32_MAX &&
	       (frame_type(header) == FRAME_FOUND || header->destination_incarnation == 0);
}

/* A sequenced frame has records, an echo has padding, one about a name has that, any other has
 * nothing after the header. */
bool frame_content_valid(struct frame_view frame, uint32_t bytes)
{
	const struct frame_header *header = frame.header;

	switch (frame_type(header)) {
	case FRAME_DATA:
		return header->records > 0 && first_valid(header) && records_valid(&frame, bytes);
	case FRAME_PING:
	case FRAME_PONG:
		return echo_valid(header);
	case FRAME_FIND:
	case FRAME_FOUND:
		return name_valid(&frame, bytes);
	default:
		return bytes == 0 && header->records == 0 && !(header->flags & FRAME_START);
	}
}

enum frame_status frame_decode_split(const void *bytes, uint32_t available, const void *tail,
	uint32_t tail_length, struct frame_view *frame)
{
	return frame_decode_pieces(bytes, available, tail, tail_length, false, frame);
}

enum frame_status frame_decode_again(
	const void *bytes, uint32_t available, struct frame_view *frame)
{
	return frame_decode_pieces(bytes, available, NULL, 0, true, frame);
}

void frame_recall(const void *bytes, struct frame *frame)
{
	memcpy(frame, bytes, FRAME_HEADER_BYTES);
	frame->type &= 15;
	frame->tail_length = 0;
	memset(frame->sack, 0, sizeof(frame->sack));
}

void frame_pad(void *bytes, uint32_t length)
{
	uint8_t *to = bytes;

	for (uint32_t at = FRAME_HEADER_BYTES; at < length; at++)
		to[at] = (uint8_t)at;
}

void frame_encode(const struct frame *frame, void *bytes)
{
	uint8_t *to = bytes;
	uint64_t crc = frame_encode_header(frame, bytes);

	if ((frame->flags & (FRAME_SACK | FRAME_FULL_SUM)) == 0)
		return;
	if (frame->flags & FRAME_SACK)
		memcpy(to + FRAME_HEADER_BYTES, frame->sack, sizeof(frame->sack));
	checksum_write(to, crc_rest(crc, to, frame->flags, frame->length - frame->tail_length,
				   frame->tail, frame->tail_length));
}
