/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_receive.c - the whole receive path with its state: frames into a transport and an engine, as
 * a network full of liars might send them.
 *
 * The input is a script of steps (struct script). A step makes a frame of two other processes that
 * are modelled just so far that frames are right by default, and wrong where the script says so; or
 * hands in raw bytes; or lets the application attach, put, get, update, unlink and ping; or lets
 * time pass. Checksums are always right, but for raw frames. In some scripts the engine has a space
 * with tiers as well, whose application appends, searches, withdraws, stores, loads, triggers and
 * disables, and whose messages the others send and answer, asked or not.
 *
 * Whatever comes, it holds that
 *
 * F1. no byte outside a region is touched (the address sanitizer watches);
 * F2. every frame that the transport sends is one that it would accept;
 * F3. every operation that started ends in one END or FAIL, at the latest when the engine is
 * destroyed;
 * F4. every mbuf is back in its pool then, and no region is pending;
 * F5. an echo is never longer than its question, and every question of our own ends;
 * F6. in the space with tiers, each store has one SEND, each load one REPLY, and a triggered one
 * has at most one.
 */
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <base/handle.h>
#include <wire/arp.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>

#include "../unit/rig.h"
#include "fuzz.h"

#define FRAME_SIZE  1024
#define POOL_FRAMES 1023
#define STEPS_MAX   256
#define QUEUED_MAX  64
#define FELLOWS     2
#define KEPT_FRAMES 8
#define BUFFERS     16
#define HANDLES     24
#define OWN_LIFE    1000
#define PINGS       16
#define MEMORY      512 /* bytes of the space with tiers */

static const uint8_t own_address[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 0, 1};

static struct rte_mempool *pool;

/* --- the script */

struct script {
	const uint8_t *at;
	const uint8_t *end;
};

static uint8_t script_byte(struct script *script)
{
	return script->at < script->end ? *script->at++ : 0;
}

static uint32_t script_word(struct script *script)
{
	uint32_t low = script_byte(script);

	return low | (uint32_t)script_byte(script) << 8;
}

/* Mostly 0; else a small step up or down, or something wild. */
static uint32_t script_error(struct script *script)
{
	uint8_t byte = script_byte(script);

	if (byte < 128)
		return 0;
	if (byte < 192)
		return (uint32_t)(byte - 128) % 8 - 4u;
	return byte < 224 ? 1u << (byte % 32) : UINT32_MAX >> (byte % 32);
}

/* Mostly what it should be. */
static uint64_t script_instead(struct script *script, uint64_t value)
{
	uint8_t byte = script_byte(script);

	if (byte < 192)
		return value;
	if (byte < 208)
		return value + byte - 200;
	return byte < 232 ? UINT64_C(1) << (byte % 64) : UINT64_MAX >> (byte % 64);
}

/* --- the world */

/* Another process, as far as it must be known to make frames of it. */
struct fellow {
	struct process process;
	struct encapsulation encapsulation;
	uint32_t life;
	uint16_t stream;
	uint32_t psn; /* of its next frame */
	uint32_t first;
	uint32_t message; /* number of its next message */
	uint64_t length;  /* data bytes of its latest message */
	/* what it has seen of us */
	uint16_t own_stream;
	uint32_t own_next;          /* after the last frame of that stream */
	uint64_t operation, handle; /* of our last get */
	uint64_t put_operation, put_handle;
	uint64_t store, load; /* names of our last calls */
	uint32_t question;    /* of our last ping */
	uint32_t asked[2];    /* the number of our last question */
	bool owes;            /* an answer to it */
	bool mute;            /* but gives none */
};

struct world {
	struct rig *rig;
	struct port port;
	struct fellow fellows[FELLOWS];
	struct rte_mbuf *queue[QUEUED_MAX]; /* frames to receive */
	unsigned queued;
	uint8_t accept; /* frames that the port takes before it is full for once; 0: no bound */
	uint8_t kept[KEPT_FRAMES][FRAME_SIZE];
	uint32_t kept_length[KEPT_FRAMES];
	unsigned kept_count;
	void *buffers[BUFFERS];
	unsigned buffer_count;
	uint64_t entries[HANDLES], regions[HANDLES];
	unsigned entry_count, region_count;
	uint64_t queue_handle;
	unsigned events[EVENT_KINDS];
	uint32_t pings[PINGS]; /* reply slots */
	unsigned ping_count;
	/* the space with tiers */
	struct rig *space; /* NULL: there is none */
	uint64_t tier_queue;
	uint64_t stores, loads; /* descriptors */
	uint64_t sent, replied; /* their counters */
	uint64_t begun[2];      /* stores, loads */
	uint64_t triggered[2];  /* that may begin */
	uint64_t appended[HANDLES];
	unsigned appended_count;
	uint8_t *memory;
	struct process map[FELLOWS + 1];
};

static uint16_t world_receive(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct world *world = (struct world *)(void *)((char *)port - offsetof(struct world, port));
	uint16_t taken = (uint16_t)(world->queued < count ? world->queued : count);

	memcpy(frames, world->queue, taken * sizeof(*frames));
	world->queued -= taken;
	memmove(world->queue, world->queue + taken, world->queued * sizeof(*frames));
	return taken;
}

static void record_note(struct fellow *fellow, const struct record *record)
{
	struct message_header header;

	if (record->kind != RECORD_START && record->kind != RECORD_WHOLE)
		return;
	fuzz_assert(message_decode(record->header, record->header_length, record->extent, &header));
	if (header.kind == MESSAGE_GET) {
		fellow->operation = header.operation;
		fellow->handle = header.handle;
	} else if (header.kind == MESSAGE_PUT && header.handle != 0) {
		fellow->put_operation = header.operation;
		fellow->put_handle = header.handle;
	} else if (header.kind == MESSAGE_STORE && header.operation != 0) {
		fellow->store = header.operation;
	} else if (header.kind == MESSAGE_LOAD) {
		fellow->load = header.operation;
	}
}

static struct fellow *fellow_find(struct world *world, uint32_t nid)
{
	for (unsigned i = 0; i < FELLOWS; i++)
		if (world->fellows[i].process.nid == nid)
			return &world->fellows[i];
	return NULL;
}

/* What the fellow that a frame goes to makes of what stands before the transport header. */
static enum encapsulation_status frame_open(
	struct world *world, const uint8_t *bytes, uint32_t length, struct outer *outer)
{
	const struct encapsulation *encapsulation = &world->fellows[0].encapsulation;

	if (memcmp(bytes, world->fellows[1].encapsulation.own, FRAME_ADDRESS_BYTES) == 0)
		encapsulation = &world->fellows[1].encapsulation;
	return encapsulation_read(encapsulation, bytes, length, 0, outer);
}

/* F2, and what a fellow learns from a frame. Raw frames may have led to hosts that are not
 * there. */
static void frame_note(struct world *world, const uint8_t *bytes, uint32_t length)
{
	struct fellow *fellow;
	enum encapsulation_status status;
	struct outer outer;
	struct frame_view view;
	struct frame frame;
	struct record record;
	struct arp arp;
	uint32_t at = 0;

	fuzz_assert(length <= FRAME_SIZE);
	memcpy(world->kept[world->kept_count % KEPT_FRAMES], bytes, length);
	world->kept_length[world->kept_count++ % KEPT_FRAMES] = length;
	status = frame_open(world, bytes, length, &outer);
	fuzz_assert(status == ENCAPSULATION_FINE || status == ENCAPSULATION_ARP ||
		    status == ENCAPSULATION_FOREIGN);
	if (status == ENCAPSULATION_ARP)
		fuzz_assert(arp_read(bytes + outer.at, outer.length, outer.from, &arp));
	if (status != ENCAPSULATION_FINE)
		return;
	fuzz_assert(frame_decode(bytes + outer.at, outer.length, &view) == FRAME_OK);
	frame_recall(view.header, &frame);
	fuzz_assert(frame.source_nid == RIG_SELF.nid && frame.source_incarnation == OWN_LIFE);
	fellow = fellow_find(world, frame.destination_nid);
	if (frame.type == FRAME_PONG)
		fuzz_assert(frame.length <= frame.ack); /* F5 */
	if (fellow && frame.type == FRAME_PING)
		fellow->question = frame.psn;
	if (fellow && frame.type == FRAME_ASK) {
		fellow->asked[0] = frame.psn;
		fellow->asked[1] = frame.ack;
		fellow->owes = true;
	}
	if (!fellow || frame.type != FRAME_DATA)
		return;
	if (fellow->own_stream != frame.stream || (int32_t)(frame.psn + 1 - fellow->own_next) > 0)
		fellow->own_next = frame.psn + 1;
	fellow->own_stream = frame.stream;
	for (unsigned i = 0; i < frame.records; i++) {
		at = record_read(&view, at, &record);
		record_note(fellow, &record);
	}
}

static uint16_t world_transmit(struct port *port, struct rte_mbuf **frames, uint16_t count)
{
	struct world *world = (struct world *)(void *)((char *)port - offsetof(struct world, port));
	uint16_t i;

	for (i = 0; i < count; i++) {
		if (world->accept != 0 && --world->accept == 0)
			break;
		fuzz_assert(frames[i]->nb_segs == 1);
		frame_note(
			world, rte_pktmbuf_mtod(frames[i], const uint8_t *), frames[i]->data_len);
		rte_pktmbuf_free(frames[i]);
	}
	return i;
}

static bool world_link(struct port *port)
{
	(void)port;
	return true;
}

static const struct port_operations world_operations = {
	.receive = world_receive, .transmit = world_transmit, .link = world_link};

static void news_drain(struct world *world)
{
	struct rig_news news;

	while (rig_take_news(world->space, world->tier_queue, &news) != QUEUE_EMPTY)
		fuzz_assert(news.kind < TIER_EVENTS && news.verdict <= TIER_FAULT &&
			    news.tier < TIERS && news.portal < 2);
}

/* Counts what was logged. */
static void events_drain(struct world *world)
{
	struct event event;
	enum queue_answer answer;

	while ((answer = rig_take(world->rig->segment, world->queue_handle, &event)) ==
		QUEUE_EVENT) {
		fuzz_assert(event.kind < EVENT_KINDS);
		world->events[event.kind]++;
	}
	fuzz_assert(answer == QUEUE_EMPTY); /* it is large enough: none was lost */
	if (world->space)
		news_drain(world);
}

/* Fellows answer questions, but for those that are mute. */
static void fellows_tell(struct world *world)
{
	for (unsigned i = 0; i < FELLOWS; i++) {
		struct fellow *fellow = &world->fellows[i];
		struct frame frame = {.type = FRAME_TELL,
			.length = FRAME_HEADER_BYTES,
			.destination_nid = RIG_SELF.nid,
			.destination_pid = RIG_SELF.pid,
			.source_nid = fellow->process.nid,
			.source_pid = fellow->process.pid,
			.source_incarnation = fellow->life,
			.destination_incarnation = OWN_LIFE,
			.psn = fellow->asked[0],
			.ack = fellow->asked[1],
			.first = fellow->first};
		struct rte_mbuf *mbuf;
		uint8_t *bytes;

		if (!fellow->owes || fellow->mute || world->queued == QUEUED_MAX ||
			(mbuf = rte_pktmbuf_alloc(pool)) == NULL)
			continue;
		fellow->owes = false;
		bytes = (uint8_t *)rte_pktmbuf_append(
			mbuf, (uint16_t)(fellow->encapsulation.bytes + FRAME_HEADER_BYTES));
		frame_encode(&frame, bytes + fellow->encapsulation.bytes);
		encapsulation_write(&fellow->encapsulation, mbuf, own_address, &frame);
		world->queue[world->queued++] = mbuf;
	}
}

static void world_turn(struct world *world)
{
	for (unsigned i = 0; i < 8; i++) {
		unsigned work = engine_poll(world->rig->engine);

		events_drain(world);
		fellows_tell(world);
		if (work == 0)
			return;
	}
}

/* --- frames */

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

/* Steps. Bytes as they are. */
static void step_raw(struct world *world, struct script *script)
{
	uint8_t bytes[FRAME_SIZE];
	uint32_t length = script_word(script) % FRAME_SIZE;

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = script_byte(script);
	frame_queue(world, bytes, length);
}

/* An ARP message, as a fellow's by default. */
static void step_arp(struct world *world, struct script *script)
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

/* One of the frames that were sent here comes back, perhaps changed in one byte. */
static void step_echo(struct world *world, struct script *script)
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

/* Two of the frames that wait change places, or one of them is repeated, or lost. */
static void step_network(struct world *world, struct script *script)
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
		record.kind = RECORD_STOP;
		record.data_length = 0;
		record.message = script_byte(script);
		record.extent = script_instead(script, fellow->own_stream);
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

/* A frame of a fellow, right but for what the script says. */
static void step_frame(struct world *world, struct script *script)
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

static void fellow_begin(struct fellow *fellow)
{
	fellow->stream++;
	fellow->psn = fellow->first;
	fellow->message = 0;
}

/* A fellow begins a new stream, or a new life, or answers no more, or again; or the network begins
 * to mark its frames, or ceases to. */
static void step_fellow(struct world *world, struct script *script)
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

/* --- the application */

static struct region_description region_make(struct world *world, struct script *script)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 300, 2000, 4096, 65536};
	uint8_t what = script_byte(script), more = script_byte(script);
	struct region_description region = {
		.length = lengths[what % 8],
		.queue = more & 1 ? 0 : world->queue_handle,
		.threshold = more & 6 ? GATE_THRESHOLD_INFINITE : more >> 3 & 3,
		.max_offset = more & 32 ? 50 : UINT32_MAX,
		.options = what >> 3,
	};

	if (world->buffer_count < BUFFERS)
		world->buffers[world->buffer_count++] = calloc(1, lengths[7]);
	/* The end of a buffer, so that one byte beyond it is seen. */
	region.start =
		(uintptr_t)world->buffers[world->buffer_count - 1] + lengths[7] - region.length;
	return region;
}

static void step_attach(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct rig_entry entry = {.portal = what & 1,
		.match = what & 2 ? RIG_ANY : world->fellows[what >> 2 & 1].process,
		.bits = what >> 4 & 3,
		.ignore = what & 64 ? 3 : 0,
		.unlink = what >> 7};
	struct region_description region = region_make(world, script);
	uint64_t handle;

	if (world->entry_count == HANDLES || world->region_count == HANDLES)
		return;
	handle = what & 8 ? rig_entry_front(world->rig, &entry) : rig_entry(world->rig, &entry);
	world->entries[world->entry_count++] = handle;
	world->regions[world->region_count++] =
		rig_attach(world->rig, handle, &region, script_byte(script) & 3);
}

static void step_move(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct rig_move move = {.to = world->fellows[what & 1].process,
		.portal = what >> 1 & 1,
		.acknowledge = what & 8};
	uint64_t region;

	if (what & 4)
		move.to = RIG_SELF;
	if (world->region_count == 0)
		return;
	region = world->regions[(what >> 5) % world->region_count];
	if (what & 16)
		rig_get(world->rig, region, &move);
	else
		rig_put(world->rig, region, &move);
}

static struct rig_tier tier_make(const struct world *world, struct script *script)
{
	static const uint32_t lengths[] = {0, 1, 100, MEMORY};
	uint8_t what = script_byte(script), more = script_byte(script);
	struct rig_tier tier = {
		.length = lengths[what & 3],
		.bits = what >> 2 & 3,
		.ignore = what & 16 ? UINT64_MAX : 0,
		.portal = what >> 5 & 1,
		.tier = what >> 6 & 1,
		.uid = what & 128 ? RIG_UID : 0,
		.options = (more & REGION_OPTIONS) ^ (REGION_PUT | REGION_GET | REGION_TRUNCATE),
		.flags = more >> 4 & ATTACHMENT_OPTIONS,
		.min_free = more & 128 ? 10 : 0,
	};

	/* The end of the memory, so that one byte beyond it is seen. */
	tier.start = world->memory + MEMORY - tier.length;
	return tier;
}

static void step_call(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script), where = script_byte(script);
	bool load = what & 4;
	struct rig_call call = {
		.to = what & 2 ? RIG_SELF : world->fellows[what & 1].process,
		.portal = where & 1,
		.cookie = FELLOWS,
		.bits = where >> 1 & 3,
		.offset = where >> 3,
		.local = where & 63,
		.length = (uint64_t)where * 3 / 2,
		.message = load ? MESSAGE_LOAD : MESSAGE_STORE,
		.want = what >> 3 & 3,
	};
	uint64_t descriptor = load ? world->loads : world->stores;
	struct long_command command = rig_call_command(descriptor, &call);

	if (what & 32) {
		world->triggered[load]++;
		rig_trigger(world->space, what & 64 ? world->sent : world->replied, world->begun[0],
			&command, 2);
	} else {
		world->begun[load]++;
		rig_begin(world->space, descriptor, &call);
	}
}

/* The application of the space with tiers. */
static void step_tiers(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct command command = {.kind = COMMAND_WITHDRAW};
	struct rig_tier tier;
	uint64_t entry;

	switch (what & 7) {
	case 0:
	case 1:
		tier = tier_make(world, script);
		entry = 0;
		if (world->appended_count == HANDLES)
			return;
		entry = rig_append(world->space, &tier);
		world->appended[world->appended_count++] = entry;
		return;
	case 2:
		tier = tier_make(world, script);
		rig_search(world->space, &tier, what & 8);
		return;
	case 3:
		if (world->appended_count == 0)
			return;
		entry = world->appended[(what >> 3) % world->appended_count];
		command.object.index = handle_index(entry);
		command.object.generation = handle_generation(entry);
		break;
	case 4:
		command.kind = what & 16 ? COMMAND_PORTAL_ENABLE : COMMAND_PORTAL_DISABLE;
		command.object.index = what >> 3 & 1;
		break;
	case 5:
		command.kind = COMMAND_COUNTER_CANCEL;
		command.count.index = handle_index(world->replied);
		command.count.generation = handle_generation(world->replied);
		if (what & 8)
			return; /* later */
		break;
	default:
		step_call(world, script);
		return;
	}
	rig_ask(world->space, &command);
}

/* Nobody waits for the answer until the end. */
static void step_ping(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct process to = what & 2 ? RIG_SELF : world->fellows[what & 1].process;
	struct command command = {
		.kind = COMMAND_PING,
		.ping = {.nid = to.nid,
			.pid = to.pid,
			.size = script_word(script) % (FRAME_SIZE + 64),
			.answer = script_word(script),
			.timeout = UINT64_C(1) << (what >> 2)},
	};
	struct reply *reply;

	if (world->ping_count == PINGS)
		return;
	command.reply = segment_take(world->rig->segment, world->rig->segment->free_replies);
	fuzz_assert(command.reply != INDEX_NONE);
	world->pings[world->ping_count++] = command.reply;
	reply = segment_reply(world->rig->segment, command.reply);
	atomic_store(&reply->state, REPLY_PENDING);
	rig_post(world->rig, &command);
	world_turn(world);
}

static void step_unlink(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct region_description region;

	if (world->region_count == 0)
		return;
	switch (what % 3) {
	case 0:
		rig_region_unlink(world->rig, world->regions[(what >> 2) % world->region_count]);
		break;
	case 1:
		rig_entry_unlink(world->rig, world->entries[(what >> 2) % world->entry_count]);
		break;
	default:
		region = region_make(world, script);
		rig_update(world->rig, world->regions[(what >> 2) % world->region_count], &region,
			what & 128 ? world->queue_handle : 0, NULL);
		break;
	}
}

static void step_time(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	uint64_t deadline = engine_deadline(world->rig->engine);

	if (what < 128)
		world->rig->now += UINT64_C(1) << (what % 36);
	else if (deadline != UINT64_MAX)
		world->rig->now += deadline; /* exactly when a timer is due */
	world_turn(world);
}

/* --- a run */

static void space_begin(struct world *world, bool ranked)
{
	struct command map = {.kind = COMMAND_MAP};
	struct rig_tier descriptor = {.length = MEMORY, .options = REGION_REMOTE_OFFSET};

	world->space = rig_tiers(world->rig, ranked, &world->tier_queue);
	world->memory = calloc(1, MEMORY);
	fuzz_assert(world->memory);
	for (unsigned i = 0; i < FELLOWS; i++)
		world->map[i] = world->fellows[i].process;
	world->map[FELLOWS] = RIG_SELF;
	map.object.index = FELLOWS + 1;
	map.object.other = (uintptr_t)world->map;
	rig_ask(world->space, &map);
	world->sent = rig_event_counter(world->space);
	world->replied = rig_event_counter(world->space);
	descriptor.start = world->memory;
	descriptor.queue = world->tier_queue;
	descriptor.counter = world->sent;
	descriptor.counts = TIER_BIT(TIER_SEND);
	world->stores = rig_describe(world->space, &descriptor);
	descriptor.counter = world->replied;
	descriptor.counts = TIER_BIT(TIER_REPLY);
	world->loads = rig_describe(world->space, &descriptor);
}

/* After the engine: its memory is still there. */
static void space_end(struct world *world)
{
	const uint64_t counters[] = {world->sent, world->replied};
	struct segment *segment = world->space->segment;

	news_drain(world);
	/* F6 */
	for (unsigned i = 0; i < 2; i++) {
		struct event_count count = rig_counted(world->space, counters[i]);

		fuzz_assert(count.success + count.failure >= world->begun[i]);
		fuzz_assert(count.success + count.failure <= world->begun[i] + world->triggered[i]);
	}
	for (uint32_t i = 0; i < segment->limits.regions; i++)
		fuzz_assert(segment_region(segment, i)->pending == 0);
	rig_space_free(world->space);
	free(world->memory);
}

static void world_begin(struct world *world, struct script *script)
{
	uint8_t what = script_byte(script);
	struct transport_options options = {
		.self = RIG_SELF,
		.incarnation = OWN_LIFE,
		.peer_timeout = RIG_PATIENCE,
		.peers_max = 8,
		.first_psn = what & 1 ? UINT32_MAX - 3 : 0,
		.full_checksum = what & 2,
		.seed = 1,
		.encapsulation = {.udp = what & 4,
			.vlan = what & 8 ? 7 : 0,
			.prefix = 24,
			.address = what & 4 ? RIG_SELF.nid : 0,
			.gateway = (what & 20) == 20 ? 9 : 0},
	};

	memset(world, 0, sizeof(*world));
	world->port = (struct port){
		.operations = &world_operations,
		.pool = pool,
		.frame_size = FRAME_SIZE,
		.receive_frames = 64,
		.external = true,
		.socket = -1,
		.name = "world",
	};
	memcpy(world->port.address, own_address, sizeof(own_address));
	for (unsigned i = 0; i < FELLOWS; i++) {
		const uint8_t address[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 1, (uint8_t)i};
		struct encapsulation_options theirs = options.encapsulation;

		world->fellows[i].process = (struct process){.nid = 8 + i, .pid = 80};
		world->fellows[i].life = 5;
		theirs.address = 8 + i;
		encapsulation_init(&world->fellows[i].encapsulation, &theirs, address, false);
		world->fellows[i].first = options.first_psn;
		fellow_begin(&world->fellows[i]);
	}
	world->rig = rig_create(&world->port, &options);
	world->queue_handle = rig_queue(world->rig, 2048);
	if (what & 64)
		space_begin(world, what & 32);
}

static void world_end(struct world *world)
{
	const unsigned *events = world->events;
	struct segment *segment = world->rig->segment;
	struct peer_info peers[4];
	uint32_t cursor = 0;

	engine_settled(world->rig->engine);
	transport_peers(engine_transport(world->rig->engine), &cursor, peers, 4);
	rig_stop(world->rig);
	events_drain(world);
	/* F3. A get that fails has no start. */
	fuzz_assert(events[EVENT_PUT_START] == events[EVENT_PUT_END] + events[EVENT_PUT_FAILED]);
	fuzz_assert(events[EVENT_GET_START] == events[EVENT_GET_END] + events[EVENT_GET_FAILED]);
	fuzz_assert(events[EVENT_SEND_START] == events[EVENT_SEND_END] + events[EVENT_SEND_FAILED]);
	fuzz_assert(
		events[EVENT_REPLY_START] <= events[EVENT_REPLY_END] + events[EVENT_REPLY_FAILED]);
	fuzz_assert(events[EVENT_REPLY_END] <= events[EVENT_REPLY_START]);
	/* F5 */
	for (unsigned i = 0; i < world->ping_count; i++)
		fuzz_assert(
			atomic_load(&segment_reply(segment, world->pings[i])->state) == REPLY_DONE);
	/* F4 */
	for (unsigned i = 0; i < world->queued; i++)
		rte_pktmbuf_free(world->queue[i]);
	fuzz_assert(rte_mempool_avail_count(pool) == POOL_FRAMES);
	for (uint32_t i = 0; i < segment->limits.regions; i++)
		fuzz_assert(segment_region(segment, i)->pending == 0);
	if (world->space)
		space_end(world);
	rig_destroy(world->rig);
	for (unsigned i = 0; i < world->buffer_count; i++)
		free(world->buffers[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char words[][16] = {"fuzz", "--no-huge", "--no-shconf", "-m", "64", "--no-pci",
		"--no-telemetry", "-l", "0", "--log-level=1"};
	char *arguments[sizeof(words) / sizeof(words[0]) + 1] = {0};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		arguments[i] = words[i];
	fuzz_assert(rte_eal_init((int)(sizeof(words) / sizeof(words[0])), arguments) >= 0);
	pool = rte_pktmbuf_pool_create(
		"fuzz", POOL_FRAMES, 0, 0, RTE_PKTMBUF_HEADROOM + FRAME_SIZE, SOCKET_ID_ANY);
	fuzz_assert(pool);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct script script = {data, data + size};

	if (size == 0 || size > 8192)
		return 0;
	world_begin(&world, &script);
	for (unsigned step = 0; step < STEPS_MAX && script.at < script.end; step++) {
		uint8_t what = script_byte(&script);

		switch (what % 16) {
		case 0:
			step_raw(&world, &script);
			break;
		case 1:
			step_echo(&world, &script);
			break;
		case 2:
			step_fellow(&world, &script);
			break;
		case 3:
		case 4:
			if (world.space && what & 32)
				step_tiers(&world, &script);
			else
				step_attach(&world, &script);
			break;
		case 5:
		case 6:
			step_move(&world, &script);
			break;
		case 7:
			if (world.space && what & 32)
				step_tiers(&world, &script);
			else
				step_unlink(&world, &script);
			break;
		case 8:
			step_time(&world, &script);
			break;
		case 9:
			if (what & 32)
				step_ping(&world, &script);
			else
				world.accept = script_byte(&script);
			break;
		case 14:
			step_network(&world, &script);
			break;
		case 15:
			step_arp(&world, &script);
			break;
		default:
			step_frame(&world, &script);
			break;
		}
		if (what & 16)
			world_turn(&world);
	}
	world_end(&world);
	return 0;
}
