/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - windows of puts one way: the windows that the sender has on the way, and those that
 * the receiver has seen.
 *
 * S1. At most STREAM_WINDOWS windows are on their way; a window counts as arrived when the
 * receiver's program, not only its library, has seen every message of it and has said so with a
 * CREDIT. So no event queue can overflow.
 */
#ifndef PERF_STREAM_H
#define PERF_STREAM_H

#include "endpoint.h"
#include "library.h"
#include "trial.h"

#define STREAM_WINDOWS 2
#define CONTROL_LOOKS  4096u /* at a line, for one at events */
#define LOOK_BYTES     4096u /* of messages; they take longer than a look in vain */
#define WHY_ROOM       512   /* of a sentence on what cannot be */

/* Room in an event queue for windows of so many messages, START and END each, and for the control
 * messages meanwhile. */
#define STREAM_EVENTS(window) ((window)*STREAM_WINDOWS * 2 + 256)

struct stream {
	struct endpoint *endpoint;
	ptl_process_id_t peer;
	uint16_t session;
	uint8_t measure;
	uint32_t window;                  /* messages */
	ptl_handle_md_t load;             /* what is put, or got into */
	const struct line_module *module; /* of the line */
	struct line *line; /* that takes the messages; NULL: they are of Portals 3.2 */
	struct match_shape shape;
	uint64_t random;   /* state, not 0 */
	uint64_t sent;     /* windows */
	uint64_t credited; /* windows */
	uint32_t arrived;  /* messages of the window that arrives */
};

/* A control message of the stream's session to the peer. */
void stream_say(struct stream *stream, enum control_kind kind, uint32_t argument, uint64_t number);

/* Puts one message, which says in its header data whose it is; or gets one. */
void stream_put(struct stream *stream);
void stream_get(struct stream *stream);
/* Puts windows until as many as allowed are on their way. */
void stream_fill(struct stream *stream);
static inline bool stream_idle(const struct stream *stream)
{
	return stream->sent == stream->credited;
}

/* A look at a line that has found so many messages of this size counts as so many looks. */
static inline unsigned stream_looks(unsigned messages, uint64_t size)
{
	uint64_t looks = 1 + messages * (1 + size / LOOK_BYTES);

	return looks < CONTROL_LOOKS ? (unsigned)looks : CONTROL_LOOKS;
}

/* Opens a line of another library for the stream's messages, of what the request names beside the
 * interface. Returns false if there is none; why then has a sentence on it. */
bool stream_line_open(struct stream *stream, enum library library, struct line_request *request,
	struct line_address *own, char *why, size_t room);
/* Tells the peer all numbers of an address but the first, which goes with MEET or READY. */
void stream_numbers(struct stream *stream, const struct line_address *address);
/* One of them has come. */
static inline void address_add(struct line_address *address, uint32_t which, uint64_t number)
{
	if (which < LINE_NUMBERS)
		address->numbers[which] = number;
}
/* Closes the line, if there is one. */
void stream_line_close(struct stream *stream);

/* Counts a message that arrived; says CREDIT after each window. */
void stream_received(struct stream *stream);

#endif
