/* SPDX-License-Identifier: BSD-3-Clause */
/* fellows.c - see world.h. */
#include <engine/amo.h>

#include "world.h"

/* A frame's mbuf with these bytes, NULL when there is no room for it. */
static struct rte_mbuf *frame_alloc(struct world *world, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *mbuf;

	if (world->queued == QUEUED_MAX)
		world_turn(world);
	if (world->queued == QUEUED_MAX || length == 0 || !(mbuf = rte_pktmbuf_alloc(pool)))
		return NULL;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)length), bytes, length);
	return mbuf;
}

static void frame_queue(struct world *world, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *mbuf = frame_alloc(world, bytes, length);

	if (mbuf)
		world->queue[world->queued++] = mbuf;
}

/* The same, with what stands before the transport header, which begins where that ends. Some of it
 * may be cut off, or spoilt. */
static void frame_queue_from(struct world *world, const struct fellow *fellow,
	const struct frame *frame, const uint8_t *bytes, bool strange, struct script *script)
{
	const struct encapsulation *encapsulation = &fellow->encapsulation;
	uint32_t length = encapsulation->bytes + frame->length;
	struct rte_mbuf *mbuf = frame_alloc(world, bytes, length);
	uint32_t where;

	if (!mbuf)
		return;
	encapsulation_write(encapsulation, mbuf, own_address, frame);
	if (strange) {
		rte_pktmbuf_trim(mbuf, (uint16_t)(length * script_byte(script) / 256));
		where = script_byte(script) % encapsulation->bytes % mbuf->data_len;
		rte_pktmbuf_mtod(mbuf, uint8_t *)[where] ^= script_byte(script);
	}
	world->queue[world->queued++] = mbuf;
}

void step_raw(struct world *world, struct script *script)
{
	uint8_t bytes[FRAME_SIZE];
	uint32_t length = script_word(script) % FRAME_SIZE;

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = script_byte(script);
	frame_queue(world, bytes, length);
}

void step_arp(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	const struct fellow *fellow = &world->fellows[what & 1];
	uint8_t bytes[FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES + ARP_FRAME];
	struct arp arp = {
		.answer = what & 2,
		.sender_address = (uint32_t)script_instead(script, fellow->process.nid),
		.target_address = (uint32_t)script_instead(script, RIG_SELF.nid),
	};
	uint32_t at = encapsulation_link(&fellow->encapsulation, bytes, own_address, ARP_ETHERTYPE);

	memcpy(arp.sender, fellow->encapsulation.own, FRAME_ADDRESS_BYTES);
	arp_write(bytes + at, &arp);
	if (what & 4)
		bytes[script_byte(script) % (at + ARP_BYTES)] ^= script_byte(script);
	frame_queue(world, bytes, at + ARP_FRAME);
}

void step_echo(struct world *world, struct script *script)
{
	unsigned which = script_byte(script);
	uint8_t bytes[FRAME_SIZE];
	uint32_t length, at;

	if (world->kept_count == 0)
		return;
	which %= world->kept_count < KEPT_FRAMES ? world->kept_count : KEPT_FRAMES;
	length = world->kept_length[which];
	memcpy(bytes, world->kept[which], length);
	at = script_word(script);
	bytes[at % length] ^= script_byte(script);
	memcpy(bytes, own_address, FRAME_ADDRESS_BYTES);
	frame_queue(world, bytes, length);
}

void step_network(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct rte_mbuf *one;
	unsigned from, to;

	if (world->queued < 2)
		return;
	from = (what >> 2) % world->queued;
	to = (what >> 5) % world->queued;
	one = world->queue[from];
	switch (what & 3) {
	case 0:
	case 1:
		world->queue[from] = world->queue[to];
		world->queue[to] = one;
		break;
	case 2:
		frame_queue(world, rte_pktmbuf_mtod(one, const uint8_t *), one->data_len);
		break;
	default:
		world->queue[from] = world->queue[--world->queued];
		rte_pktmbuf_free(one);
		break;
	}
}

/* An atomic in place of a store: mostly an operation and a type that there are. */
static void atomic_make(struct script *script, struct message_header *header)
{
	uint8_t what = script_byte(script);

	header->kind = what & 64 ? MESSAGE_FETCH : MESSAGE_ATOMIC;
	header->detail =
		message_amo(what % (AMO_OPERATIONS + 1), script_byte(script) % (AMO_TYPES + 1));
	if (what & 128)
		header->detail = (uint16_t)script_instead(script, header->detail);
}

/* A message of a space with tiers: to it, and as an answer to what it has sent, or has not. */
static void tier_message_make(const struct world *world, const struct fellow *fellow,
	struct script *script, uint64_t length, struct message_header *header)
{
	static const uint8_t kinds[] = {MESSAGE_STORE, MESSAGE_STORE, MESSAGE_STORE, MESSAGE_LOAD,
		MESSAGE_STORED, MESSAGE_LOADED, MESSAGE_LOADED, MESSAGE_ASK};
	uint8_t what = script_byte(script);

	header->kind = kinds[what % 8];
	header->space = world->space->space;
	header->portal = what >> 3 & 1;
	header->match_bits = what >> 4 & 3;
	header->cookie = (uint32_t)(fellow - world->fellows);
	header->handle = 0;
	header->value = length;
	header->requested = length;
	header->offset = script_instead(script, 0);
	switch (header->kind) {
	case MESSAGE_STORE:
		header->operation = what >> 6;
		header->detail = what >> 6 == 0 && what & 8 ? MESSAGE_REFUSALS : 0;
		if (what >> 6 == 3)
			atomic_make(script, header);
		break;
	case MESSAGE_LOAD:
		header->requested = script_word(script) % (MEMORY + 64);
		header->operation = what >> 6;
		break;
	case MESSAGE_STORED:
		header->detail = script_byte(script) & (MESSAGE_VERDICT | MESSAGE_TIER);
		header->operation = what & 64 ? fellow->load : fellow->store;
		break;
	case MESSAGE_LOADED:
		header->detail =
			what & 128 ? script_byte(script) & (MESSAGE_VERDICT | MESSAGE_TIER) : 0;
		header->operation = what & 64 ? fellow->store : fellow->load;
		break;
	default:
		header->detail = what >> 6 & 1;
		header->operation = what >> 5;
		break;
	}
}

static void message_make(struct world *world, const struct fellow *fellow, struct script *script,
	uint64_t length, struct message_header *header)
{
	static const uint8_t kinds[] = {MESSAGE_PUT, MESSAGE_PUT, MESSAGE_PUT, MESSAGE_GET,
		MESSAGE_ACK, MESSAGE_REPLY, MESSAGE_REFUSE, MESSAGE_PROBE};
	static const uint8_t spaces[] = {1, SPACES - 1, SPACES, UINT8_MAX}; /* none is open */
	uint8_t what = script_byte(script), strange;

	memset(header, 0, sizeof(*header));
	header->kind = kinds[what % 8];
	header->uid = RIG_UID;
	header->portal = what >> 3 & 1;
	header->match_bits = what >> 4 & 3;
	header->requested = length;
	header->value = length;
	switch (header->kind) {
	case MESSAGE_PUT:
		header->handle = what >> 6;
		break;
	case MESSAGE_GET:
	case MESSAGE_PROBE:
		header->requested = script_byte(script);
		header->handle = 1;
		header->operation = what >> 6;
		break;
	case MESSAGE_ACK:
		header->handle = fellow->put_handle;
		header->operation = fellow->put_operation;
		if (what & 64 && world->region_count > 0)
			header->handle = world->regions[what % world->region_count];
		break;
	default:
		header->handle = fellow->handle;
		header->operation = fellow->operation;
		break;
	}
	strange = script_byte(script);
	if (world->space && strange % 2 == 0)
		tier_message_make(world, fellow, script, length, header);
	if (strange < 128)
		return;
	if (strange >= 256 - sizeof(spaces))
		header->space = spaces[strange % sizeof(spaces)];
	header->kind = (uint8_t)script_instead(script, header->kind);
	header->uid = (uint32_t)script_instead(script, header->uid);
	header->portal = (uint32_t)script_instead(script, header->portal);
	header->cookie = (uint32_t)script_instead(script, header->cookie);
	header->offset = script_instead(script, header->offset);
	header->handle = script_instead(script, header->handle);
	header->requested = script_instead(script, header->requested);
	header->value = script_instead(script, header->value);
	header->operation = script_instead(script, header->operation);
}

/* Writes a record where there is room; returns where the next one goes. */
static uint32_t record_make(struct world *world, struct fellow *fellow, struct script *script,
	uint8_t *body, uint32_t at, uint8_t *flags)
{
	struct record record = {0};
	struct message_header header;
	uint8_t wire[MESSAGE_HEADER_BYTES];
	uint8_t what = script_byte(script);
	uint8_t data = script_byte(script);
	uint8_t *to;

	if (at + record_bytes(RECORD_START, MESSAGE_HEADER_BYTES, data) > FRAME_SIZE)
		return at;
	record.data_length = data;
	switch (what % 4) {
	case 0:
	case 1:
		record.kind = RECORD_START;
		record.message = fellow->message++ + script_error(script);
		record.extent = what & 4 ? data + script_word(script) : data;
		if (record.extent == data)
			record.kind = RECORD_WHOLE;
		fellow->length = record.extent;
		message_make(world, fellow, script, record.extent, &header);
		record.header_length = (uint8_t)message_encode(&header, wire);
		*flags |= FRAME_START;
		break;
	case 2:
		record.kind = RECORD_MORE;
		record.message = fellow->message - 1 + script_error(script);
		record.extent = script_instead(script, script_word(script));
		break;
	default:
		record.kind = what & 4 ? RECORD_VOID : RECORD_STOP;
		record.data_length = 0;
		record.message =
			what & 4 ? fellow->message - 1 + script_error(script) : script_byte(script);
		record.extent = script_instead(script, what & 4 ? 0 : fellow->own_stream);
		if ((what & 120) == 120)
			record = (struct record){.kind = RECORD_RING};
		break;
	}
	to = record_write(body + at, &record);
	if (record.header_length != 0) {
		memcpy(to, wire, record.header_length);
		to += record.header_length;
	}
	memset(to, (int)(at + data), record.data_length);
	return at + record_bytes(record.kind, record.header_length, record.data_length);
}

/* An echo question, or the answer to our last one. */
static void echo_make(struct frame *frame, const struct fellow *fellow, uint32_t length)
{
	frame->flags = FRAME_FULL_SUM;
	frame->ack = FRAME_HEADER_BYTES + length;
	if (frame->type == FRAME_PING) {
		frame->destination_incarnation = 0;
		return;
	}
	frame->psn = fellow->question;
	frame->first = FRAME_SIZE;
}

void step_frame(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script), strange = script_byte(script);
	struct fellow *fellow = &world->fellows[what & 1];
	uint8_t bytes[FRAME_SIZE] = {0}, body[FRAME_SIZE] = {0};
	struct frame frame = {
		.type = FRAME_DATA,
		.flags = FRAME_ACK_VALID,
		.stream = fellow->stream,
		.ack_stream = fellow->own_stream,
		.credit = 64,
		.destination_nid = RIG_SELF.nid,
		.destination_pid = RIG_SELF.pid,
		.source_nid = fellow->process.nid,
		.source_pid = fellow->process.pid,
		.source_incarnation = fellow->life,
		.destination_incarnation = OWN_LIFE,
		.psn = fellow->psn,
		.ack = fellow->own_next,
		.first = fellow->first,
	};
	uint32_t outer_bytes = fellow->encapsulation.bytes;
	uint32_t header_bytes, length = 0;

	frame.type = (uint8_t)(FRAME_DATA + (what >> 1 & 7));
	if (frame.type == FRAME_RESET && what & 128)
		frame.type = what & 16 ? FRAME_FIND : FRAME_FOUND;
	if (frame.type == FRAME_TELL) {
		frame.flags = 0;
		frame.psn = fellow->asked[0];
		frame.ack = fellow->asked[1];
	}
	if (frame.type == FRAME_PING || frame.type == FRAME_PONG) {
		length = script_word(script) % (FRAME_SIZE - FRAME_HEADER_BYTES);
		echo_make(&frame, fellow, length);
	} else if (what & 16 || fellow->psn - fellow->first < 8)
		frame.flags |= FRAME_FIRST;
	if (what & 32)
		frame.flags ^= FRAME_FULL_SUM;
	if (what & 64)
		frame.flags ^= FRAME_ACK_NOW;
	if (what & 128)
		frame.flags ^= FRAME_SACK;
	if (strange & 1)
		frame.psn += script_error(script);
	if (strange & 2)
		frame.ack += script_error(script);
	if (strange & 4)
		frame.stream = (uint16_t)(frame.stream + script_error(script));
	if (strange & 8)
		frame.source_incarnation += script_error(script);
	if (strange & 16) {
		frame.flags ^= script_byte(script);
		frame.ack_stream = (uint16_t)(frame.ack_stream + script_error(script));
		frame.credit = (uint16_t)script_instead(script, frame.credit);
	}
	if (strange & 32) {
		frame.destination_incarnation += script_error(script);
		frame.destination_pid += script_error(script);
		frame.source_nid += script_error(script);
		frame.first += script_error(script);
	}
	if (strange & 64) {
		frame.echo = script_word(script) << 16;
		frame.delay = script_word(script);
		frame.timestamp = script_word(script) << 16;
	}
	if (frame.flags & FRAME_SACK)
		for (unsigned i = 0; i < 4; i++)
			frame.sack[i] = script_instead(script, 0);
	if (frame.type == FRAME_DATA)
		for (unsigned count = 1 + script_byte(script) % 4; count > 0; count--) {
			uint32_t next =
				record_make(world, fellow, script, body, length, &frame.flags);

			frame.records = (uint8_t)(frame.records + (next != length));
			length = next;
		}
	header_bytes = frame_header_bytes(frame.flags);
	if (outer_bytes + header_bytes + length > FRAME_SIZE)
		return;
	frame.length = (uint16_t)(header_bytes + length);
	memcpy(bytes + outer_bytes + header_bytes, body, length);
	frame_encode(&frame, bytes + outer_bytes);
	frame_queue_from(world, fellow, &frame, bytes, strange & 128, script);
	/* An old frame does not count. */
	if (frame.type == FRAME_DATA && !(strange & 1))
		fellow->psn++;
}

void fellow_begin(struct fellow *fellow)
{
	fellow->stream++;
	fellow->psn = fellow->first;
	fellow->message = 0;
}

void step_fellow(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct fellow *fellow = &world->fellows[what & 1];

	if (what & 128) {
		fellow->encapsulation.header[fellow->encapsulation.link_bytes + 1] ^= 1; /* ECN */
		return;
	}
	fellow_begin(fellow);
	if (what & 4)
		fellow->life++;
	if (what & 64)
		fellow->mute = !fellow->mute;
}
