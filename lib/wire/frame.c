/* frame.c - reads and writes transport headers and records. No state; any thread.
 *
 * I1. frame_decode() looks at no byte beyond `available`, and at none beyond the header's length
 *     field.
 * I2. After FRAME_OK the records fill the frame exactly: record_read() may be called frame->records
 *     times.
 * I3. What frame_encode() and record_write() write, frame_decode() accepts.
 */
#include <wire/frame.h>

#include <string.h>

#include <rte_byteorder.h>
#include <rte_hash_crc.h>

#define CHECKSUM_START  0xffffffffu
#define CHECKSUM_OFFSET offsetof(struct frame_header, checksum)
#define FLAGS_KNOWN                                                                                \
	(FRAME_SACK | FRAME_FIRST | FRAME_START | FRAME_ACK_NOW | FRAME_FULL_SUM |                 \
		FRAME_ACK_VALID | FRAME_CE)

/* CRC32C of bytes of which the first eight are the header's start with its checksum taken as zero. Only the padding of an echo
 * ends elsewhere than at a multiple of eight: zeros fill it up. */
static uint32_t checksum_more(uint32_t crc, const uint8_t *bytes, uint32_t length)
{
	uint64_t word;
	uint32_t at;

	for (at = 0; at + sizeof(word) <= length; at += (uint32_t)sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		crc = rte_hash_crc_8byte(word, crc);
	}
	if (at < length) {
		word = 0;
		memcpy(&word, bytes + at, length - at);
		crc = rte_hash_crc_8byte(word, crc);
	}
	return crc;
}

static uint32_t frame_checksum(const struct frame *frame, const uint8_t *bytes)
{
	uint32_t length = frame_header_bytes(frame->flags);
	uint64_t word;
	uint32_t crc;

	if (frame->flags & FRAME_FULL_SUM)
		length = frame->length - frame->tail_length;
	memcpy(&word, bytes, sizeof(word));
	word &= rte_cpu_to_le_64(UINT64_C(0xffffffff));
	crc = rte_hash_crc_8byte(word, CHECKSUM_START);
	crc = checksum_more(crc, bytes + sizeof(word), length - (uint32_t)sizeof(word));
	if ((frame->flags & FRAME_FULL_SUM) && frame->tail_length != 0)
		crc = checksum_more(crc, frame->tail, frame->tail_length);
	return ~crc;
}
static_assert(CHECKSUM_OFFSET == 4, "the checksum is the high half of the first word");

static void header_read(const struct frame_header *header, struct frame *frame)
{
	frame->type = header->version_type & 15;
	frame->flags = header->flags;
	frame->records = header->records;
	frame->length = rte_le_to_cpu_16(header->length);
	frame->stream = rte_le_to_cpu_16(header->stream);
	frame->ack_stream = rte_le_to_cpu_16(header->ack_stream);
	frame->credit = rte_le_to_cpu_16(header->credit);
	frame->destination_nid = rte_le_to_cpu_32(header->destination_nid);
	frame->destination_pid = rte_le_to_cpu_32(header->destination_pid);
	frame->source_nid = rte_le_to_cpu_32(header->source_nid);
	frame->source_pid = rte_le_to_cpu_32(header->source_pid);
	frame->source_incarnation = rte_le_to_cpu_32(header->source_incarnation);
	frame->destination_incarnation = rte_le_to_cpu_32(header->destination_incarnation);
	frame->psn = rte_le_to_cpu_32(header->psn);
	frame->ack = rte_le_to_cpu_32(header->ack);
	frame->timestamp = rte_le_to_cpu_32(header->timestamp);
	frame->echo = rte_le_to_cpu_32(header->echo);
	frame->delay = rte_le_to_cpu_32(header->delay);
	frame->first = rte_le_to_cpu_32(header->first);
}

static void sack_read(const uint8_t *bytes, struct frame *frame)
{
	unsigned i;

	for (i = 0; i < FRAME_SACK_BITS / 64; i++) {
		memcpy(&frame->sack[i], bytes + i * 8, 8);
		frame->sack[i] = rte_le_to_cpu_64(frame->sack[i]);
	}
}

uint32_t record_read(const struct frame *frame, uint32_t at, struct record *record)
{
	struct record_header header;
	uint32_t data_at;

	memcpy(&header, frame->body + at, sizeof(header));
	record->kind = header.kind;
	record->header_length = header.header_length;
	record->data_length = rte_le_to_cpu_16(header.data_length);
	record->message = rte_le_to_cpu_32(header.message);
	record->extent = rte_le_to_cpu_64(header.extent);
	record->header = frame->body + at + RECORD_HEADER_BYTES;
	data_at = at + RECORD_HEADER_BYTES + record->header_length;
	record->data = data_at < frame->split ? frame->body + data_at
					      : frame->tail + (data_at - frame->split);
	return at + record_bytes(record->header_length, record->data_length);
}

static bool record_valid(const struct record *record)
{
	switch (record->kind) {
	case RECORD_START:
		return record->header_length <= MESSAGE_HEADER_MAX &&
		       record->header_length % RECORD_ALIGN == 0 &&
		       record->extent <= MESSAGE_LENGTH_MAX &&
		       record->data_length <= record->extent;
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

/* Do the pieces of the frame part before this record, or after it, or between its headers and its data? */
static bool record_whole(const struct frame *frame, uint32_t at, const struct record *record)
{
	uint32_t data_at = at + RECORD_HEADER_BYTES + record->header_length;

	return data_at == frame->split ||
	       (data_at < frame->split && data_at + record->data_length <= frame->split);
}

/* Walks the records: I2, and FRAME_START says the truth. */
static bool records_valid(const struct frame *frame, uint32_t bytes)
{
	uint32_t reach = frame->split < bytes ? frame->split : bytes; /* of headers */
	struct record record;
	bool starts = false;
	uint32_t next;
	uint32_t at = 0;
	unsigned i;

	for (i = 0; i < frame->records; i++) {
		if (at > reach || reach - at < RECORD_HEADER_BYTES)
			return false;
		next = record_read(frame, at, &record);
		if (next > bytes || !record_valid(&record) || !record_whole(frame, at, &record))
			return false;
		at = next;
		starts |= record.kind == RECORD_START;
	}
	return at == bytes && starts == !!(frame->flags & FRAME_START);
}

static bool is_echo(const struct frame *frame)
{
	return frame->type == FRAME_PING || frame->type == FRAME_PONG;
}

/* An echo frame is a header and padding, all of it under the checksum. The answer is no longer than the question, and lengths
 * make sense: so nobody can be made to send more than was sent to him. */
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

/* A sequenced frame has records, an echo has padding, any other has nothing after the header. */
static bool content_valid(const struct frame *frame, uint32_t header_bytes)
{
	uint32_t bytes = frame->length - header_bytes;

	if (is_echo(frame))
		return echo_valid(frame);
	if (frame->length % RECORD_ALIGN != 0)
		return false;
	if (frame->type != FRAME_DATA)
		return bytes == 0 && frame->records == 0 && !(frame->flags & FRAME_START);
	return frame->records > 0 && records_valid(frame, bytes);
}

enum frame_status frame_decode_split(const void *bytes, uint32_t available, const void *tail,
	uint32_t tail_length, struct frame *frame)
{
	struct frame_header header;
	uint32_t header_bytes;

	if (available < sizeof(header))
		return FRAME_BAD_SHORT;
	frame->tail = tail;
	frame->tail_length = tail_length;
	memcpy(&header, bytes, sizeof(header));
	header_read(&header, frame);
	if (header.version_type >> 4 != FRAME_VERSION || frame->type < FRAME_DATA ||
		frame->type > FRAME_PONG)
		return FRAME_BAD_VERSION;
	header_bytes = frame_header_bytes(frame->flags);
	if (frame->length > available + tail_length || frame->length < header_bytes + tail_length)
		return FRAME_BAD_SHORT;
	if (tail_length != 0 && frame->length - tail_length != available)
		return FRAME_BAD_CONTENT;
	if (frame_checksum(frame, bytes) != rte_le_to_cpu_32(header.checksum))
		return FRAME_BAD_CHECKSUM;
	memset(frame->sack, 0, sizeof(frame->sack));
	if (frame->flags & FRAME_SACK)
		sack_read((const uint8_t *)bytes + sizeof(header), frame);
	frame->body = (const uint8_t *)bytes + header_bytes;
	frame->split = tail_length == 0 ? UINT32_MAX : available - header_bytes;
	if ((frame->flags & ~FLAGS_KNOWN) || header.reserved != 0 ||
		!content_valid(frame, header_bytes))
		return FRAME_BAD_CONTENT;
	return FRAME_OK;
}

enum frame_status frame_decode(const void *bytes, uint32_t available, struct frame *frame)
{
	return frame_decode_split(bytes, available, NULL, 0, frame);
}

void frame_recall(const void *bytes, struct frame *frame)
{
	struct frame_header header;

	memcpy(&header, bytes, sizeof(header));
	header_read(&header, frame);
	frame->tail = NULL;
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

static void header_write(const struct frame *frame, struct frame_header *header)
{
	header->version_type = (uint8_t)(FRAME_VERSION << 4 | frame->type);
	header->flags = frame->flags;
	header->length = rte_cpu_to_le_16(frame->length);
	header->checksum = 0;
	header->destination_nid = rte_cpu_to_le_32(frame->destination_nid);
	header->destination_pid = rte_cpu_to_le_32(frame->destination_pid);
	header->source_nid = rte_cpu_to_le_32(frame->source_nid);
	header->source_pid = rte_cpu_to_le_32(frame->source_pid);
	header->source_incarnation = rte_cpu_to_le_32(frame->source_incarnation);
	header->destination_incarnation = rte_cpu_to_le_32(frame->destination_incarnation);
	header->psn = rte_cpu_to_le_32(frame->psn);
	header->ack = rte_cpu_to_le_32(frame->ack);
	header->stream = rte_cpu_to_le_16(frame->stream);
	header->ack_stream = rte_cpu_to_le_16(frame->ack_stream);
	header->timestamp = rte_cpu_to_le_32(frame->timestamp);
	header->echo = rte_cpu_to_le_32(frame->echo);
	header->delay = rte_cpu_to_le_32(frame->delay);
	header->credit = rte_cpu_to_le_16(frame->credit);
	header->records = frame->records;
	header->reserved = 0;
	header->first = rte_cpu_to_le_32(frame->first);
}

void frame_encode(const struct frame *frame, void *bytes)
{
	struct frame_header header;
	uint8_t *to = bytes;
	uint32_t sum;
	unsigned i;

	header_write(frame, &header);
	memcpy(to, &header, sizeof(header));
	if (frame->flags & FRAME_SACK) {
		for (i = 0; i < FRAME_SACK_BITS / 64; i++) {
			uint64_t word = rte_cpu_to_le_64(frame->sack[i]);

			memcpy(to + sizeof(header) + i * 8, &word, sizeof(word));
		}
	}
	sum = frame_checksum(frame, to);
	sum = rte_cpu_to_le_32(sum);
	memcpy(to + CHECKSUM_OFFSET, &sum, sizeof(sum));
}

uint8_t *record_write(void *to, const struct record *record)
{
	struct record_header header = {
		.kind = record->kind,
		.header_length = record->header_length,
		.data_length = rte_cpu_to_le_16(record->data_length),
		.message = rte_cpu_to_le_32(record->message),
		.extent = rte_cpu_to_le_64(record->extent),
	};

	memcpy(to, &header, sizeof(header));
	return (uint8_t *)to + sizeof(header);
}
