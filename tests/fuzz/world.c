/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c - see world.h. */
#include "world.h"

const uint8_t own_address[FRAME_ADDRESS_BYTES] = {2, 0, 0, 0, 0, 1};

struct rte_mempool *pool;

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
	} else if ((header.kind == MESSAGE_STORE || header.kind == MESSAGE_ATOMIC) &&
		   header.operation != 0) {
		fellow->store = header.operation;
	} else if (header.kind == MESSAGE_LOAD || header.kind == MESSAGE_FETCH) {
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

/* Is it said of another process, which was asked for here, that it is not here? Nothing else is
 * said in the name of another one. */
static bool frame_denies(const struct frame *frame)
{
	return frame->type == FRAME_BYE &&
	       (frame->source_nid != RIG_SELF.nid || frame->source_pid != RIG_SELF.pid);
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
	fuzz_assert(frame_denies(&frame) ||
		    (frame.source_nid == RIG_SELF.nid && frame.source_incarnation == OWN_LIFE));
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

const struct port_operations world_operations = {
	.receive = world_receive, .transmit = world_transmit, .link = world_link};

void world_tier_events_drain(struct world *world)
{
	struct rig_tier_event event;

	while (rig_take_tier(world->space, world->tier_queue, &event) != QUEUE_EMPTY)
		fuzz_assert(event.kind < TIER_EVENTS && event.verdict <= TIER_FAULT &&
			    event.tier < TIERS && event.portal < 2);
}

void world_events_drain(struct world *world)
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
		world_tier_events_drain(world);
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

void world_turn(struct world *world)
{
	for (unsigned i = 0; i < 8; i++) {
		unsigned work = engine_poll(world->rig->engine);

		world_events_drain(world);
		fellows_tell(world);
		if (work == 0)
			return;
	}
}
