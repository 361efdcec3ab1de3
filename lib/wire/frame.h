/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - the layout of every header on the wire, and every limit of the protocol. doc/wire.md is
 * its prose.
 *
 * All fields are little-endian. A frame is
 *
 *     outer header: Ethernet, or UDP/IPv4     encapsulation.h
 *     transport header   64 bytes      struct frame_header
 *     [selective acknowledgement        32 bytes, with FRAME_SACK]
 *     records ...        each struct record_header, its message header, its data, padded to 8 bytes
 *
 * A frame that arrives is read where it lies (struct frame_view); one that is sent is described by
 * a struct frame first.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include <wire/crc.h>
#include <wire/word.h>

#define FRAME_ETHERTYPE 0x88b5 /* IEEE 802 local experimental 1 */
#define FRAME_VERSION   5

enum frame_type {
	FRAME_DATA = 1, /* sequenced: records */
	FRAME_ACK,      /* not sequenced: acknowledgement fields only */
	FRAME_ASK,      /* who is process (destination)? To everybody, or to where it was */
	/* to the asker: I am, at this frame's source address, with this incarnation */
	FRAME_TELL,
	FRAME_RESET, /* what you sent was for a process life or a stream that I do not know */
	FRAME_BYE,   /* this process life ends now */
	/* echo question, to whatever life of the destination there is; padding behind the header */
	FRAME_PING,
	FRAME_PONG, /* its answer, no longer than the question */
	/* The question for the node that has a host's name, to all that have the destination's
	 * process id (and to PORT_ANY_NODE); or for the name of the destination's host. */
	FRAME_FIND,
	FRAME_FOUND /* its answer: the name of the host */
};

enum frame_flag {
	FRAME_SACK = 1, /* the bitmap follows the header */
	/* the stream starts with psn `first`; on every frame until the stream's first
	 * acknowledgement */
	FRAME_FIRST = 2,
	/* has a record that starts a message: deliver in order. Without it: at once */
	FRAME_START = 4,
	FRAME_ACK_NOW = 8, /* the sender has nothing more to send: acknowledge soon */
	/* the checksum covers all bytes, not only the transport header and the bitmap */
	FRAME_FULL_SUM = 16,
	/* ack, ack_stream, credit, echo, delay and marks mean something */
	FRAME_ACK_VALID = 32,
	/* reserved: the will of a process that has ended is behind the header, and */
	FRAME_WILL = 64,
	FRAME_SEALED = 128 /* the frame is encrypted: psn and what follows, with a trailer */
};

/*   0       4       8               16                            31
 *  +-------+-------+---------------+-------------------------------+
 *  | type  |version|     flags     |            length             |   0
 *  +-------+-------+---------------+-------------------------------+
 *  |                     checksum (CRC32C)                         |   4
 *  +---------------------------------------------------------------+
 *  |                     destination nid                           |   8
 *  |                     destination pid                           |  12
 *  |                     source nid                                |  16
 *  |                     source pid                                |  20
 *  +---------------------------------------------------------------+
 *  |                     source incarnation                        |  24
 *  |                     destination incarnation (0: not known)    |  28
 *  +---------------------------------------------------------------+
 *  |                     psn                                       |  32
 *  |                     ack: next psn expected                    |  36
 *  +-------------------------------+-------------------------------+
 *  |            stream             |          ack_stream           |  40
 *  +-------------------------------+-------------------------------+
 *  |                     timestamp, sender's clock, ns             |  44
 *  |                     echo of the peer's newest timestamp       |  48
 *  |                     delay: ns between its arrival and now     |  52
 *  +-------------------------------+---------------+---------------+
 *  |            credit             |    records    |     marks     |  56
 *  +-------------------------------+---------------+---------------+
 *  |       first: with FRAME_FIRST, the stream's first psn         |  60
 *  +---------------------------------------------------------------+
 */
/* The fields behind the first byte. length: bytes from the header to the last record's end, or that
 * of an echo's padding; Ethernet padding follows. marks: frames from the receiver with an ECN mark,
 * modulo 256. */
#define FRAME_FIELDS                                                                               \
	uint8_t flags;                                                                             \
	uint16_t length;                                                                           \
	uint32_t checksum;                                                                         \
	uint32_t destination_nid;                                                                  \
	uint32_t destination_pid;                                                                  \
	uint32_t source_nid;                                                                       \
	uint32_t source_pid;                                                                       \
	uint32_t source_incarnation;                                                               \
	uint32_t destination_incarnation;                                                          \
	uint32_t psn;                                                                              \
	uint32_t ack;                                                                              \
	uint16_t stream;                                                                           \
	uint16_t ack_stream;                                                                       \
	uint32_t timestamp;                                                                        \
	uint32_t echo;                                                                             \
	uint32_t delay;                                                                            \
	uint16_t credit;                                                                           \
	uint8_t records;                                                                           \
	uint8_t marks;                                                                             \
	uint32_t first

struct __attribute__((packed, may_alias)) frame_header { /* where it lies, at any alignment */
	uint8_t version_type;                            /* version in the high half */
	FRAME_FIELDS;
};
static_assert(sizeof(struct frame_header) == 64, "transport header");
static_assert(offsetof(struct frame_header, psn) == 32, "psn");
static_assert(offsetof(struct frame_header, credit) == 56, "credit");

/* The name of a host, and which of its NICs: all that is behind the header of FRAME_FIND and
 * FRAME_FOUND. */
struct frame_name {
	char host[84]; /* zeros behind it, one at least; FRAME_FIND: zeros alone: it is asked for */
	uint32_t board;
};
static_assert(sizeof(struct frame_name) == 88, "name");

#define FRAME_ETHERNET_BYTES 14
#define FRAME_ADDRESS_BYTES  6 /* of a MAC address */
#define FRAME_HEADER_BYTES   64
#define FRAME_SACK_BITS      256 /* bit i: psn ack + 1 + i has arrived */
#define FRAME_SACK_BYTES     (FRAME_SACK_BITS / 8)
#define FRAME_WINDOW         256 /* psns in flight at most, so that the bitmap always reaches */

enum record_kind {
	RECORD_START = 1, /* a message: its header, and its first data */
	RECORD_MORE,      /* later data of a message */
	RECORD_STOP,      /* to the message's sender: the rest of its data is not wanted */
	RECORD_WHOLE,     /* a message: its header, and all its data */
	RECORD_VOID,      /* to the message's receiver: the rest of its data cannot be read */
	RECORD_RING       /* reserved: the stream goes on in the pair's own ring; the last record */
};

/*  +-------+---------------+-------------------------------+
 *  | kind  | header_length |          data_length          |  0
 *  +-------+---------------+-------------------------------+
 *  |                        message                        |  4  number of the message, per stream
 *  +-------------------------------------------------------+
 *  |         START: bytes of the message's data (64)       |  8   not in WHOLE
 *  |         MORE: where in it this data lies; VOID: 0     |
 *  +-------------------------------------------------------+
 */
struct record_header {
	uint8_t kind;
	/* START, WHOLE: bytes of message header that follow, a multiple of 8, at most
	 * MESSAGE_HEADER_MAX */
	uint8_t header_length;
	uint16_t data_length; /* bytes of data after it */
	uint32_t message;
	uint64_t extent;
};
static_assert(sizeof(struct record_header) == 16, "record header");

#define RECORD_HEADER_BYTES 16
#define RECORD_WHOLE_BYTES  8 /* of the header of RECORD_WHOLE, which has no extent */
#define RECORD_ALIGN        8
#define MESSAGE_HEADER_MAX  80
#define MESSAGE_LENGTH_MAX  (UINT64_C(1) << 40)

/* Portals messages, the message header of RECORD_START and RECORD_WHOLE: lib/wire/message.h. */

/* Some frames use fields in their own way. FRAME_ASK: psn and ack are the halves of the question's
 * number, which FRAME_TELL repeats; with FRAME_FIRST, first: the psn that the asker's stream, of
 * which nothing was acknowledged, began with. FRAME_TELL: first: the psn that the asker's streams
 * to the teller begin with; stream: the lower 16 bits of that psn's generation. FRAME_DATA with
 * FRAME_FIRST and without FRAME_ACK_VALID: ack: the psn that streams to its sender begin with;
 * ack_stream: those bits of its generation. FRAME_BYE: stream and psn: the own stream and its next
 * psn. Echo frames: psn: number of the question. ack: PING: length that the answer shall have,
 * FRAME_HEADER_BYTES to `length`; PONG: length of the question. first: PONG: largest length of the
 * answerer's own frames. FRAME_FIND: psn and ack are the halves of the question's number, which
 * FRAME_FOUND repeats. */

/* A frame that is to be sent, in the host's byte order. */
struct frame {
	/* The header's fields, so that they are copied as a whole. Of the first byte only the type
	 * is seen; the checksum means nothing here. */
	uint8_t type;
	FRAME_FIELDS;
	/* A frame in two pieces: its last tail_length bytes, a multiple of RECORD_ALIGN, lie at
	 * tail. They are all the data of the last record. 0: the frame is in one piece, and tail
	 * means nothing. */
	uint32_t tail_length;
	const uint8_t *tail;
	uint64_t sack[FRAME_SACK_BITS / 64]; /* with FRAME_SACK; else it means nothing */
};
static_assert(offsetof(struct frame, first) == offsetof(struct frame_header, first), "no gaps");

/* A frame that has arrived and was found right, where it lies. */
struct frame_view {
	const struct frame_header *header;
	const uint8_t *body; /* the records */
	const uint8_t *tail; /* of a frame in two pieces: as in struct frame */
	uint32_t split;      /* bytes of body before the tail; UINT32_MAX: there is none */
	/* The frame is in one piece, and every record is a whole message, numbered one after the
	 * other. */
	bool whole;
};

static inline enum frame_type frame_type(const struct frame_header *header)
{
	return (enum frame_type)(header->version_type & 15);
}

/* The bitmap, at any alignment; with FRAME_SACK. */
static inline const uint8_t *frame_sack(const struct frame_header *header)
{
	return (const uint8_t *)header + FRAME_HEADER_BYTES;
}

enum frame_status {
	FRAME_OK,
	FRAME_BAD_SHORT,   /* fewer bytes than the header or its length field say */
	FRAME_BAD_VERSION, /* another version, or a type that does not exist */
	FRAME_BAD_SEALED,  /* FRAME_WILL or FRAME_SEALED, which nobody reads yet */
	FRAME_BAD_CHECKSUM,
	FRAME_BAD_CONTENT /* fields or records contradict each other or the limits */
};

/* Bytes before the records. */
static inline uint32_t frame_header_bytes(uint8_t flags)
{
	return FRAME_HEADER_BYTES + ((flags & FRAME_SACK) ? FRAME_SACK_BYTES : 0);
}

/* The padding of an echo frame of this length, transport header included. */
void frame_pad(void *bytes, uint32_t length);

/* Writes header, bitmap and checksum. Records or padding are in place already, in one piece or,
 * with tail_length, in two: frame->length covers them. Reads the fields of the header, tail_length,
 * and what these say that there is. */
void frame_encode(const struct frame *frame, void *bytes);

/* The checksum of what `crc` has summed. */
static inline void checksum_write(uint8_t *header, uint64_t crc)
{
	uint32_t sum = ~(uint32_t)crc;

	memcpy(header + offsetof(struct frame_header, checksum), &sum, sizeof(sum));
}

/* Writes a header that the checksum covers alone: neither FRAME_SACK nor FRAME_FULL_SUM. The words
 * are summed and stored as they are made, so a frame whose fields are in registers need not be in
 * memory; that saves 1.6 % of a put's instructions. Returns the sum, for a caller that has more to
 * add. */
static inline uint64_t frame_encode_header(const struct frame *frame, uint8_t *to)
{
	const uint64_t start = frame->type | FRAME_VERSION << 4 | (uint32_t)frame->flags << 8 |
			       (uint64_t)frame->length << 16;
	const uint64_t words[] = {
		word_of(frame->destination_nid, frame->destination_pid),
		word_of(frame->source_nid, frame->source_pid),
		word_of(frame->source_incarnation, frame->destination_incarnation),
		word_of(frame->psn, frame->ack),
		word_of(frame->stream | (uint32_t)frame->ack_stream << 16, frame->timestamp),
		word_of(frame->echo, frame->delay),
		word_of(frame->credit | (uint32_t)frame->records << 16 |
				(uint32_t)frame->marks << 24,
			frame->first),
	};
	uint64_t crc = crc_word(CHECKSUM_START, start);

#pragma GCC unroll 7
	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		crc = crc_word(crc, words[i]);
		word_store(to, 8 * (i + 1), words[i]);
	}
	word_store(to, 0, start | (uint64_t) ~(uint32_t)crc << 32);
	return crc;
}

/* What an own frame says that is to be sent again: the fields that stay as they are (type, flags,
 * records, length, psn, stream, first), and an empty bitmap. Trusts the bytes. */
void frame_recall(const void *bytes, struct frame *frame);

/* One record. header and data point into the frame. WHOLE has the extent of its data. */
struct record {
	uint8_t kind;
	uint8_t header_length;
	uint16_t data_length;
	uint32_t message;
	uint64_t extent;
	const void *header;
	const void *data;
};

static inline uint32_t record_header_bytes(uint8_t kind)
{
	return kind == RECORD_WHOLE ? RECORD_WHOLE_BYTES : RECORD_HEADER_BYTES;
}

static inline uint32_t record_bytes(uint8_t kind, uint32_t header_length, uint32_t data_length)
{
	uint32_t bytes = record_header_bytes(kind) + header_length + data_length;

	return (bytes + RECORD_ALIGN - 1) & ~(uint32_t)(RECORD_ALIGN - 1);
}

/* Reads a record that lies in one piece; returns its bytes. */
static inline uint32_t record_look(const uint8_t *bytes, struct record *record)
{
	struct record_header header;

	memcpy(&header, bytes, RECORD_WHOLE_BYTES);
	record->kind = header.kind;
	record->header_length = header.header_length;
	record->data_length = header.data_length;
	record->message = header.message;
	record->extent = header.kind == RECORD_WHOLE ? record->data_length
						     : word_read(bytes, RECORD_WHOLE_BYTES);
	record->header = bytes + record_header_bytes(header.kind);
	record->data = (const uint8_t *)record->header + record->header_length;
	return record_bytes(record->kind, record->header_length, record->data_length);
}
static_assert(offsetof(struct record_header, extent) == RECORD_WHOLE_BYTES, "WHOLE ends before it");

/* Reads the record at `at` of a frame's body and returns where the next one is. */
static inline uint32_t record_read(
	const struct frame_view *frame, uint32_t at, struct record *record)
{
	uint32_t bytes = record_look(frame->body + at, record);
	uint32_t data_at = at + record_header_bytes(record->kind) + record->header_length;

	if (data_at >= frame->split)
		record->data = frame->tail + (data_at - frame->split);
	return at + bytes;
}

/* Are these bytes `count` whole messages, at least one, numbered one after the other? */
static inline bool records_whole(const uint8_t *at, uint32_t bytes, unsigned count)
{
	/* What all headers have alike: all but the header's length and the data's. */
	uint64_t alike = UINT64_C(0xffffffff000000ff) | (RECORD_ALIGN - 1) << 8;
	uint64_t expected = RECORD_WHOLE;
	uint64_t compared = (uint32_t)alike; /* of the first one, without the number */

	/* No record at all is one short, too: the bytes end before the count does. */
	do {
		struct record_header header;
		uint64_t word;
		uint32_t next;

		if (bytes < RECORD_WHOLE_BYTES)
			return false;
		word = word_read(at, 0);
		if (((word ^ expected) & compared) != 0)
			return false;
		memcpy(&header, at, RECORD_WHOLE_BYTES);
		next = record_bytes(RECORD_WHOLE, header.header_length, header.data_length);
		if (header.header_length > MESSAGE_HEADER_MAX || next > bytes)
			return false;
		at += next;
		bytes -= next;
		expected = (word & ~(uint64_t)UINT32_MAX) + (UINT64_C(1) << 32 | RECORD_WHOLE);
		compared = alike;
	} while (--count > 0);
	return bytes == 0;
}

/* frame.c: what few frames need of frame_decode(). The checksum goes on behind the header with what
 * else is covered; */
uint64_t frame_sum_rest(
	uint64_t crc, const struct frame_header *header, const void *tail, uint32_t tail_length);
/* and the frame has `bytes` of records or padding, other than whole messages. Are they right? */
bool frame_content_valid(struct frame_view frame, uint32_t bytes);

/* frame_decode() and its kin. What most frames are is tested first. summed: the checksum was found
 * right before. */
static __rte_always_inline enum frame_status frame_decode_pieces(const void *bytes,
	uint32_t available, const void *tail, uint32_t tail_length, bool summed,
	struct frame_view *frame)
{
	const struct frame_header *header = bytes;
	uint64_t start, crc;
	uint32_t rest; /* bytes behind the header */

	if (available < FRAME_HEADER_BYTES)
		return FRAME_BAD_SHORT;
	start = word_read(bytes, 0);
	if ((uint8_t)(header->version_type - (FRAME_VERSION << 4 | FRAME_DATA)) >
		FRAME_FOUND - FRAME_DATA)
		return FRAME_BAD_VERSION;
	rest = header->length - (uint32_t)FRAME_HEADER_BYTES;
	if (rest > available - FRAME_HEADER_BYTES + tail_length || rest < tail_length)
		return FRAME_BAD_SHORT;
	if (tail_length != 0 && rest != available - FRAME_HEADER_BYTES + tail_length)
		return FRAME_BAD_CONTENT;
	frame->header = header;
	frame->body = (const uint8_t *)bytes + FRAME_HEADER_BYTES;
	frame->tail = tail;
	crc = summed ? 0 : crc_header((uint32_t)start, bytes);
	if (unlikely(header->flags & (FRAME_SACK | FRAME_FULL_SUM | FRAME_WILL | FRAME_SEALED))) {
		uint32_t bitmap = frame_header_bytes(header->flags) - FRAME_HEADER_BYTES;

		/* What stands in the place of the checksum is the seal's. */
		if (header->flags & (FRAME_WILL | FRAME_SEALED))
			return FRAME_BAD_SEALED;
		if (rest - tail_length < bitmap)
			return FRAME_BAD_SHORT;
		if (!summed)
			crc = frame_sum_rest(crc, header, tail, tail_length);
		frame->body += bitmap;
		rest -= bitmap;
	}
	if (!summed && ~(uint32_t)crc != start >> 32)
		return FRAME_BAD_CHECKSUM;
	frame->split = tail_length == 0 ? UINT32_MAX : rest - tail_length;
	frame->whole = tail_length == 0 && records_whole(frame->body, rest, header->records);
	if (likely(frame->whole) && likely(frame_type(header) == FRAME_DATA) &&
		(header->flags & ~(FRAME_ACK_NOW | FRAME_ACK_VALID | FRAME_FULL_SUM)) ==
			FRAME_START)
		return FRAME_OK;
	return frame_content_valid(*frame, rest) ? FRAME_OK : FRAME_BAD_CONTENT;
}

/* Reads and checks everything that can be checked without knowing the peer: after FRAME_OK every
 * record lies within the frame, and its lengths are within the protocol's limits. bytes: the
 * transport header, any alignment. */
static inline enum frame_status frame_decode(
	const void *bytes, uint32_t available, struct frame_view *frame)
{
	return frame_decode_pieces(bytes, available, NULL, 0, false, frame);
}
/* The same for a frame in two pieces. FRAME_BAD_CONTENT: they do not part where a frame's may. */
enum frame_status frame_decode_split(const void *bytes, uint32_t available, const void *tail,
	uint32_t tail_length, struct frame_view *frame);
/* Reads and checks a frame once more, whose checksum was found right when it came. */
enum frame_status frame_decode_again(
	const void *bytes, uint32_t available, struct frame_view *frame);

/* Writes a record's header; returns where its message header goes. */
static inline uint8_t *record_write(void *to, const struct record *record)
{
	word_store(to, 0,
		word_of(record->kind | (uint32_t)record->header_length << 8 |
				(uint32_t)record->data_length << 16,
			record->message));
	if (record->kind != RECORD_WHOLE)
		word_store(to, RECORD_WHOLE_BYTES, record->extent);
	return (uint8_t *)to + record_header_bytes(record->kind);
}

/* Zeros behind a record's data, which is not there yet: they are part of what a full checksum
 * covers, and must not be what was there before. */
static __rte_always_inline void record_pad(uint8_t *at, const struct record *record)
{
	if (record->data_length % RECORD_ALIGN != 0)
		memset(at + record_bytes(record->kind, record->header_length, record->data_length) -
				RECORD_ALIGN,
			0, RECORD_ALIGN);
}

#endif
