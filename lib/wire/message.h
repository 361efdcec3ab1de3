/* message.h - the header of a Portals message: the tables of section 4.1 as bytes. Initiator and target are the source and
 * destination of the transport header.
 *
 *   0       8       16              32                              63
 *  +-------+-------+---------------+-------------------------------+
 *  | kind  | flags |   reserved    |              uid              |   0
 *  +-------+-------+---------------+-------------------------------+
 *  |          portal               |            cookie             |   8
 *  +-------------------------------+-------------------------------+
 *  |                          match bits                           |  16
 *  |                          offset                               |  24
 *  |                          memory descriptor handle             |  32   its high half is the generation
 *  |                          requested length                     |  40
 *  |                          header data (put), manipulated length (ack, reply)    48
 *  |                          operation: get: the initiator's name for it, echoed;  56
 *  |                                     put: link of its SEND_START, echoed by the ack
 *  +---------------------------------------------------------------+
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum message_kind {
	MESSAGE_PUT = 1,
	MESSAGE_ACK,
	MESSAGE_GET,
	MESSAGE_REPLY,
	MESSAGE_REFUSE, /* to a get's initiator: it was discarded, or is not known (any more) */
	MESSAGE_PROBE   /* from a get's initiator after a long silence: refuse it unless its reply is under way */
};

#define MESSAGE_HEADER_BYTES 64

struct message_header {
	uint8_t kind;
	uint8_t flags; /* 0 */
	uint16_t reserved;
	uint32_t uid;
	uint32_t portal;
	uint32_t cookie;
	uint64_t match_bits;
	uint64_t offset;
	uint64_t handle;
	uint64_t requested;
	uint64_t value; /* header data, or manipulated length */
	uint64_t operation;
};
static_assert(sizeof(struct message_header) == MESSAGE_HEADER_BYTES, "message header");

/* to: MESSAGE_HEADER_BYTES bytes, any alignment. */
void message_encode(const struct message_header *header, void *to);
/* NULL when length, kind or reserved fields are not as specified. Else the header: where it lies, if it can be read there, or in
 * *room. */
const struct message_header *message_decode(
	const void *from, uint32_t length, struct message_header *room);

#endif
