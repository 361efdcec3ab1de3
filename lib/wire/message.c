/* message.c - reads and writes the header of a Portals message. No state; any thread.
 *
 * I1. message_decode() accepts exactly what message_encode() can write.
 */
#include <wire/message.h>

#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>

static_assert(offsetof(struct message_header, match_bits) == 16, "match bits");
static_assert(offsetof(struct message_header, handle) == 32, "handle");
static_assert(offsetof(struct message_header, operation) == 56, "operation");

/* Between host and wire; swapping is its own inverse. */
static void message_swap(struct message_header *header)
{
	header->reserved = rte_cpu_to_le_16(header->reserved);
	header->uid = rte_cpu_to_le_32(header->uid);
	header->portal = rte_cpu_to_le_32(header->portal);
	header->cookie = rte_cpu_to_le_32(header->cookie);
	header->match_bits = rte_cpu_to_le_64(header->match_bits);
	header->offset = rte_cpu_to_le_64(header->offset);
	header->handle = rte_cpu_to_le_64(header->handle);
	header->requested = rte_cpu_to_le_64(header->requested);
	header->value = rte_cpu_to_le_64(header->value);
	header->operation = rte_cpu_to_le_64(header->operation);
}

void message_encode(const struct message_header *header, void *to)
{
	struct message_header wire = *header;

	wire.flags = 0;
	wire.reserved = 0;
	message_swap(&wire);
	memcpy(to, &wire, sizeof(wire));
}

/* Can a header be read where it lies? */
static bool message_readable(const void *from)
{
	return RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN &&
	       (uintptr_t)from % _Alignof(struct message_header) == 0;
}

const struct message_header *message_decode(
	const void *from, uint32_t length, struct message_header *room)
{
	const struct message_header *header = from;

	if (length != MESSAGE_HEADER_BYTES)
		return NULL;
	if (!message_readable(from)) {
		memcpy(room, from, sizeof(*room));
		message_swap(room);
		header = room;
	}
	return header->kind >= MESSAGE_PUT && header->kind <= MESSAGE_PROBE && header->flags == 0 &&
			       header->reserved == 0
		       ? header
		       : NULL;
}
