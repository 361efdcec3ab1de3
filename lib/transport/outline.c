/* SPDX-License-Identifier: BSD-3-Clause */
/* outline.c - see outline.h. */
#include <transport/outline.h>

#include <assert.h>
#include <string.h>

#include <base/pool.h>
#include <transport/peer.h>

/* --- making one */

/* Does the record go on with the row of whole messages that `part` is? */
static bool part_continues(const struct part *part, const struct record *record)
{
	return part->kind == RECORD_WHOLE && record->kind == RECORD_WHOLE &&
	       record->message == part->message + part->count;
}

/* Adds a record behind the last part; returns the outline that is the last one then, NULL if there
 * is no memory. */
static struct outline *outline_add(
	struct pool *pool, struct outline *last, const struct record *record)
{
	struct part *part;

	if (last->count > 0 && part_continues(&last->parts[last->count - 1], record)) {
		last->parts[last->count - 1].count++;
		return last;
	}
	if (last->count == OUTLINE_PARTS) {
		last->next = pool_take(pool);
		if (!last->next)
			return NULL;
		last = last->next;
		last->next = NULL;
		last->count = 0;
	}
	part = &last->parts[last->count++];
	part->kind = record->kind;
	part->message = record->message;
	part->count = record->kind == RECORD_WHOLE ? 1 : record->data_length;
	part->extent = record->extent;
	return last;
}

struct outline *outline_make(struct pool *pool, const uint8_t *bytes)
{
	struct outline *outline = pool_take(pool), *last = outline;
	struct record record;
	struct frame frame;
	const uint8_t *at;

	if (!outline)
		return NULL;
	frame_recall(bytes, &frame);
	outline->next = NULL;
	outline->count = 0;
	outline->flags = frame.flags & (FRAME_START | FRAME_SACK);
	outline->records = frame.records;
	outline->small = frame.length < SMALL_BYTES;
	at = bytes + frame_header_bytes(frame.flags);
	for (unsigned i = 0; i < frame.records && last; i++) {
		at += record_look(at, &record);
		last = outline_add(pool, last, &record);
	}
	if (last)
		return outline;
	outline_free(pool, outline);
	return NULL;
}

void outline_free(struct pool *pool, struct outline *outline)
{
	while (outline) {
		struct outline *next = outline->next;

		pool_give(pool, outline);
		outline = next;
	}
}

/* --- the frame again */

static struct message *list_find(const struct messages *messages, uint32_t number)
{
	struct message *message = messages->head;

	while (message && message->number != number)
		message = message->next;
	return message;
}

/* O1: it is there. Frames are sent again in their order, so it is mostly one of the first. */
static struct message *message_find(const struct peer *peer, uint32_t number)
{
	struct message *message = list_find(&peer->open, number);

	return message ? message : list_find(&peer->unacked, number);
}

/* A record that is its header: STOP, VOID. */
static uint8_t *bare_again(uint8_t kind, uint32_t message, uint64_t extent, uint8_t *at)
{
	const struct record record = {.kind = kind, .message = message, .extent = extent};

	return record_write(at, &record);
}

/* O2. *records: one more if it has become two. */
static uint8_t *record_void(
	const struct part *part, const struct message *message, uint8_t *at, uint8_t *records)
{
	const struct record record = {
		.kind = RECORD_START,
		.header_length = (uint8_t)message->header_length,
		.message = message->number,
		.extent = message->memory.length,
	};

	assert(message->memory.length > VOID_BYTES);
	if (part->kind != RECORD_MORE) {
		memcpy(record_write(at, &record), message->header, record.header_length);
		at += record_bytes(record.kind, record.header_length, 0);
		++*records;
	}
	return bare_again(RECORD_VOID, message->number, 0, at);
}

static uint8_t *record_again(
	const struct part *part, struct message *message, uint8_t *at, uint8_t *records)
{
	bool starts = part->kind == RECORD_START || part->kind == RECORD_WHOLE;
	struct record record = {
		.kind = part->kind,
		.header_length = starts ? (uint8_t)message->header_length : 0,
		.data_length =
			part->kind == RECORD_WHOLE ? (uint16_t)message->memory.length : part->count,
		.message = message->number,
		.extent = starts ? message->memory.length : part->extent,
	};
	uint64_t from = part->kind == RECORD_MORE ? part->extent : 0;
	uint8_t *to = record_write(at, &record);

	record_pad(at, &record);
	memcpy(to, message->header, record.header_length);
	if (!message_copy(message, from, to + record.header_length, record.data_length))
		return record_void(part, message, at, records);
	return at + record_bytes(record.kind, record.header_length, record.data_length);
}

static uint8_t *part_again(
	const struct part *part, const struct peer *peer, uint8_t *at, uint8_t *records)
{
	unsigned count = part->kind == RECORD_WHOLE ? part->count : 1;

	if (part->kind == RECORD_STOP || part->kind == RECORD_VOID)
		return bare_again(part->kind, part->message, part->extent, at);
	/* The messages of a row stand in a row in their list. */
	for (struct message *message = message_find(peer, part->message); count > 0; count--) {
		at = record_again(part, message, at, records);
		message = message->next;
	}
	return at;
}

void outline_write(
	const struct outline *outline, const struct peer *peer, struct frame *frame, uint8_t *bytes)
{
	uint8_t *at = bytes + frame_header_bytes(outline->flags);

	memset(frame, 0, offsetof(struct frame, tail));
	frame->type = FRAME_DATA;
	frame->flags = outline->flags;
	frame->records = outline->records;
	for (; outline; outline = outline->next)
		for (unsigned i = 0; i < outline->count; i++)
			at = part_again(&outline->parts[i], peer, at, &frame->records);
	frame->length = (uint16_t)(at - bytes);
}
