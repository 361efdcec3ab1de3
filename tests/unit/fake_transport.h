/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_transport.h - a transport in which nothing happens by itself, for tests of the engine.
 *
 * What the engine sends is kept, in order, until the test says how it ended. What arrives is what
 * the test hands in. There is one at a time.
 *
 *     fake_next()     the oldest message that the test has not looked at
 *     fake_finish()   message_done()
 *     fake_begin()    message_begin() at once, outside a turn
 *     fake_end()      message_end()
 *     fake_queue()    a whole message that the engine's next turn will find
 */
#ifndef FAKE_TRANSPORT_H
#define FAKE_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <transport/transport.h>
#include <wire/message.h>

#define FAKE_MESSAGES 4096
#define FAKE_PINGS    16
#define FAKE_MTU      1500
#define FAKE_FRAME    1024

/* A message that the engine sent. */
struct fake_sent {
	struct process to;
	struct message *message; /* NULL once it is done */
	struct message_header header;
	uint64_t length;
	const void *data;
};

/* A message on its way in. */
struct fake_arrival {
	struct process from;
	uint8_t bytes[MESSAGE_HEADER_MAX];
	uint32_t header_length;
	uint64_t length;
	struct inbound inbound;
	bool whole; /* it was here as a whole, so there is no memory */
	bool open;  /* message_end() is owed */
};

/* The next transport_create() fails. */
void fake_refuse_create(void);
/* transport_transmit() ends every message in this way. TRANSPORT_OK + 1000: it does not. */
#define FAKE_LATER 1000
void fake_finish_at_once(int why);

/* This process has its share of messages queued to it. */
void fake_share_spent(struct process by);

/* The oldest ping that waits, NULL: none; and the end of all. */
struct ping *fake_ping(void);
void fake_pings_end(enum ping_outcome outcome);
/* The question for a name that waits, NULL: none; its end; and the name that is answered for. */
struct name_query *fake_find(void);
void fake_find_end(enum name_outcome outcome);
const struct frame_name *fake_name(void);
bool fake_claimed(void);

struct fake_sent *fake_next(void);
/* All that the header of a request says. */
void fake_expect(const struct fake_sent *sent, const struct message_header *header);
unsigned fake_unfinished(void);
void fake_finish(struct fake_sent *sent, enum transport_fail why);

/* Hands in the beginning of a message, without data; the answer stays readable until the test
 * ends. */
struct fake_arrival *fake_begin(
	struct process from, const struct message_header *header, uint64_t length);
struct fake_arrival *fake_begin_bytes(
	struct process from, const void *header, uint32_t header_length, uint64_t length);
/* Writes data where the engine wanted it, no further than its limit. */
void fake_place(struct fake_arrival *arrival, uint64_t offset, const void *data, uint64_t length);
void fake_end(struct fake_arrival *arrival, enum transport_fail why);
/* All of the above for a message that arrives whole. */
struct fake_arrival *fake_deliver(struct process from, const struct message_header *header,
	const void *data, uint64_t length);
void fake_queue(struct process from, const struct message_header *header, const void *data,
	uint64_t length);

/* So many bytes of data come with the beginning of a message that is delivered; FAKE_FRAME unless
 * told. */
void fake_set_frame(uint64_t bytes);

/* What transport_push(), transport_urgent() and transport_looked() say, and how often the first and
 * transport_transmit() were called. */
struct fake_turn {
	bool left; /* transport_push() */
	bool urgent;
	uint64_t looked_ago; /* ns */
	unsigned pushes, transmits;
};
struct fake_turn *fake_turn(void);

/* Called by transport_receive(), where frames have been taken and commands have not. */
void fake_on_receive(void (*hook)(void *), void *argument);
/* Called by transport_push(). */
void fake_on_push(void (*hook)(void *), void *argument);
void fake_set_deadline(uint64_t deadline);

/* For tests of a space with tiers on this transport: it has no ranks; and memory for its
 * entries. */
struct fake_target {
	struct rig *rig, *space;
	uint64_t queue;
	char memory[256];
};
int fake_target_setup(void **state);
int fake_target_teardown(void **state);

#endif
