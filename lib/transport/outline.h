/* SPDX-License-Identifier: BSD-3-Clause */
/* outline.h - what a frame in flight holds, without its bytes: enough to make the same frame again
 * from the memory of its messages. One poll core.
 *
 * O1. A message stays in its peer's lists, and its memory stays readable, until every frame that
 *     holds part of it is acknowledged (peer.h I3, transport.h T2). So the records that an outline
 *     names can be made again until the frame is acknowledged.
 * O2. A frame that is made again has the records of the first one, in their order: its receiver may
 *     have either. Where data are not there any more, RECORD_VOID stands in their place, behind a
 *     RECORD_START without data if the message begins here. A message whose data may go has more
 *     than VOID_BYTES (transport.h), and counts as two records (sender.c), so there is room.
 */
#ifndef TRANSPORT_OUTLINE_H
#define TRANSPORT_OUTLINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct frame;
struct peer;
struct pool;

/* A record, or a row of RECORD_WHOLE with one message number after the other. */
struct part {
	uint64_t extent;  /* MORE, STOP: the record's */
	uint32_t message; /* the first one's number */
	uint16_t count;   /* WHOLE: messages; START, MORE: bytes of data */
	uint8_t kind;
};

/* A cache line, which has room for the parts of nearly every frame. */
#define OUTLINE_PARTS 3
struct outline {
	struct outline *next; /* with further parts */
	uint8_t count;        /* of parts */
	/* of the first one: */
	/* the frame's FRAME_START and FRAME_SACK: whether its header has room for a bitmap */
	uint8_t flags;
	uint8_t records; /* of the frame */
	bool small;      /* the frame has less than SMALL_BYTES */
	struct part parts[OUTLINE_PARTS];
};
static_assert(sizeof(struct outline) == 64, "a cache line");

/* The outline of a frame of this process, whose transport header is at `bytes`. NULL: no memory. */
struct outline *outline_make(struct pool *pool, const uint8_t *bytes);
void outline_free(struct pool *pool, struct outline *outline);
/* Writes the frame that it is of, bytes and the fields that stay as they were: type, flags,
 * records, length. bytes: where the transport header will be. */
void outline_write(const struct outline *outline, const struct peer *peer, struct frame *frame,
	uint8_t *bytes);

#endif
