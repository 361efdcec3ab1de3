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

#include <rte_common.h>

#include <wire/crc.h>

#define VERSION_MASK UINT64_C(0xf0) /* of the first word */
#define FLAGS_KNOWN                                                                                \
	(FRAME_SACK | FRAME_FIRST | FRAME_START | FRAME_ACK_NOW | FRAME_FULL_SUM | FRAME_ACK_VALID)

static_assert(offsetof(struct frame_header, checksum) == 4, "behind the first half word");

/* The checksum goes on behind the header with what else is covered. */
static __rte_noinline uint64_t crc_rest(
	uint64_t crc, const struct frame *frame, const uint8_t *bytes)
{
	uint32_t length = frame_header_bytes(frame->flags);

	if (frame->flags & FRAME_FULL_SUM)
		length = frame->length - frame->tail_length;
	crc = crc_bytes(crc, bytes + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES);
	if ((frame->flags & FRAME_FULL_SUM) && frame->tail_length != 0)
		crc = crc_bytes(crc, frame->tail, frame->tail_length);
	return crc;
}

static __rte_always_inline bool record_valid(const struct record *record)
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
	default:
		return false;
	}
}

/* Do the pieces of the frame part before this record, or after it, or between its headers and its
 * data? */
static __rte_always_inline bool record_whole(
	const struct frame *frame, uint32_t at, const struct record *record)
{
	uint32_t data_at = at + record_header_bytes(record->kind) + record->header_length;

	return data_at == frame->split ||
	       (data_at < frame->split && data_at + record->data_length <= frame->split);
}

/* Walks the records: I2, and FRAME_START says the truth. Sees whether they are whole messages. */
static __rte_always_inline bool records_valid(struct frame *frame, uint32_t bytes)
{
	uint32_t reach = frame->split < bytes ? frame->split : bytes; /* of headers */
	struct record record;
	bool starts = false;
	uint32_t next;
	uint32_t at = 0;
	unsigned i;

	if (frame->split == UINT32_MAX && bytes >= RECORD_WHOLE_BYTES &&
		frame->body[0] == RECORD_WHOLE) {
		record_look(frame->body, &record);
		frame->message = record.message;
		frame->whole = records_whole(frame->body, bytes, frame->records, record.message);
		if (frame->whole)
			return frame->flags & FRAME_START;
	}
	for (i = 0; i < frame->records; i++) {
		if (at > reach || reach - at < RECORD_WHOLE_BYTES ||
			reach - at < record_header_bytes(frame->body[at]))
			return false;
		next = record_read(frame, at, &record);
		if (next > bytes || !record_whole(frame, at, &record))
			return false;
		if (!record_valid(&record))
			return false;
		starts |= record.kind == RECORD_START || record.kind == RECORD_WHOLE;
		at = next;
	}
	return at == bytes && starts == !!(frame->flags & FRAME_START);
}

static bool is_echo(const struct frame *frame)
{
	return frame->type == FRAME_PING || frame->type == FRAME_PONG;
}

/* An echo frame is a header and padding, all of it under the checksum. The answer is no longer than
 * the question, and lengths make sense: so nobody can be made to send more than was sent to him. */
static bool echo_valid(const struct frame *frame)
{
	if (frame->flags != FRAME_FULL_SUM || frame->records != 0 ||
		frame->ack < FRAME_HEADER_BYTES)
		return false;
	if (frame->type == FRAME_PING)
		return frame->destination_incarnation == 0 && frame->ack <= frame->length;
	return frame->length <= frame->ack && frame->ack <= UINT16_MAX &&
	       frame->first >= FRAME_HEADER_BYTES && frame->first <= UINT16_MAX;
}

/* A stream begins with the frames that its first window holds. */
static inline bool first_valid(const struct frame *frame)
{
	return !(frame->flags & FRAME_FIRST) || frame->psn - frame->first < FRAME_WINDOW;
}

/* A sequenced frame has records, an echo has padding, any other has nothing after the header. */
static __rte_always_inline bool content_valid(struct frame *frame, uint32_t header_bytes)
{
	uint32_t bytes = frame->length - header_bytes;

	if (frame->type == FRAME_DATA)
		return frame->length % RECORD_ALIGN == 0 && frame->records > 0 &&
		       first_valid(frame) && records_valid(frame, bytes);
	if (is_echo(frame))
		return echo_valid(frame);
	return bytes == 0 && frame->records == 0 && !(frame->flags & FRAME_START);
}

/* Inline so that a frame in one piece is read without a thought of two. */
static __rte_always_inline enum frame_status decode(const void *bytes, uint32_t available,
	const void *tail, uint32_t tail_length, struct frame *frame)
{
	uint32_t header_bytes;
	uint64_t start;
	uint64_t word;
	uint64_t crc;

	if (available < FRAME_HEADER_BYTES)
		return FRAME_BAD_SHORT;
	/* The first word by itself: what is stored in pieces is slow to load as a whole. */
	start = word_read(bytes, 0);
	word = start & ~VERSION_MASK;
	memcpy(frame, &word, sizeof(word));
	memcpy((uint8_t *)frame + sizeof(word), (const uint8_t *)bytes + sizeof(word),
		FRAME_HEADER_BYTES - sizeof(word));
	frame->tail = tail;
	frame->tail_length = tail_length;
	frame->whole = false;
	if ((start & VERSION_MASK) != FRAME_VERSION << 4 || frame->type < FRAME_DATA ||
		frame->type > FRAME_PONG)
		return FRAME_BAD_VERSION;
	header_bytes = frame_header_bytes(frame->flags);
	if (frame->length > available + tail_length || frame->length < header_bytes + tail_length)
		return FRAME_BAD_SHORT;
	if (tail_length != 0 && frame->length - tail_length != available)
		return FRAME_BAD_CONTENT;
	crc = crc_header((uint32_t)start, bytes);
	if (frame->flags & (FRAME_SACK | FRAME_FULL_SUM))
		crc = crc_rest(crc, frame, bytes);
	if (~(uint32_t)crc != start >> 32)
		return FRAME_BAD_CHECKSUM;
	if (frame->flags & FRAME_SACK)
		memcpy(frame->sack, (const uint8_t *)bytes + FRAME_HEADER_BYTES,
			sizeof(frame->sack));
	frame->body = (const uint8_t *)bytes + header_bytes;
	frame->split = tail_length == 0 ? UINT32_MAX : available - header_bytes;
	if ((frame->flags & ~FLAGS_KNOWN) || !content_valid(frame, header_bytes))
		return FRAME_BAD_CONTENT;
	return FRAME_OK;
}

enum frame_status frame_decode_split(const void *bytes, uint32_t available, const void *tail,
	uint32_t tail_length, struct frame *frame)
{
	return decode(bytes, available, tail, tail_length, frame);
}

enum frame_status frame_decode(const void *bytes, uint32_t available, struct frame *frame)
{
	return decode(bytes, available, NULL, 0, frame);
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
	uint32_t at;

	for (at = FRAME_HEADER_BYTES; at < length; at++)
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
	checksum_write(to, crc_rest(crc, frame, to));
}
