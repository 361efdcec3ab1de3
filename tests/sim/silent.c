/* SPDX-License-Identifier: BSD-3-Clause */
/* silent.c - see silent.h. */
#include <sim/silent.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include <sim/model.h>
#include <sim/report.h>
#include <wire/encapsulation.h>
#include <wire/message.h>

#define FIRST_NID   (NODE_IPV4_BASE + (1u << 20)) /* in the nodes' subnet */
#define PID         1
#define INCARNATION 1
#define SPACING     (5 * MICROSECOND) /* between two of them */
#define FRAME_ROOM  2048

static uint32_t silent_link(const struct silent *silent)
{
	return silent->simulation->node_count;
}

static void encapsulation_make(
	const struct silent *silent, uint32_t number, struct encapsulation *encapsulation)
{
	const struct encapsulation_options options = {
		.udp = silent->settings->udp,
		.vlan = silent->settings->vlan,
		.prefix = NODE_IPV4_PREFIX,
		.address = silent->settings->udp ? FIRST_NID + number : 0,
	};
	uint8_t own[STAR_ADDRESS_BYTES];

	star_address(silent_link(silent), 0, own);
	encapsulation_init(encapsulation, &options, own, false);
}

/* Sends a frame whose records, `bytes` of them, lie at `records`. */
static void frame_send(const struct silent *silent, uint32_t number, const struct node *to,
	struct frame *frame, const uint8_t *records, uint32_t bytes)
{
	struct star *network = &silent->simulation->network;
	uint8_t room[FRAME_ROOM], address[STAR_ADDRESS_BYTES];
	struct rte_mbuf mbuf = {.buf_addr = room, .nb_segs = 1};
	struct encapsulation encapsulation;
	struct parcel *parcel;

	encapsulation_make(silent, number, &encapsulation);
	frame->flags |= FRAME_FULL_SUM;
	frame->length = (uint16_t)(FRAME_HEADER_BYTES + bytes);
	frame->destination_nid = to->id.nid;
	frame->destination_pid = to->id.pid;
	frame->source_nid = FIRST_NID + number;
	frame->source_pid = PID;
	frame->source_incarnation = INCARNATION;
	frame->timestamp = (uint32_t)simulation_now(silent->simulation);
	if (bytes > 0)
		memcpy(room + encapsulation.bytes + FRAME_HEADER_BYTES, records, bytes);
	frame_encode(frame, room + encapsulation.bytes);
	mbuf.pkt_len = encapsulation.bytes + frame->length;
	mbuf.data_len = (uint16_t)mbuf.pkt_len;
	star_address(to->number, to->settings->moves ? to->life : 0, address);
	encapsulation_write(&encapsulation, &mbuf, address, frame);
	parcel = star_parcel(network, silent_link(silent), mbuf.pkt_len);
	memcpy(parcel->bytes, room, mbuf.pkt_len);
	star_send(network, parcel);
}

/* As many gets as the frame has room for. */
static uint32_t gets_write(struct silent *silent, uint8_t *records, uint32_t room, uint8_t *count)
{
	struct message_header header = {
		.kind = MESSAGE_GET,
		.uid = getuid(),
		.portal = PORTAL_SILENT,
		.requested = SILENT_BYTES,
		.operation = 1,
		.handle = 1,
	};
	struct record record = {.kind = RECORD_WHOLE};
	uint32_t at = 0;

	record.header_length = (uint8_t)message_length(&header, header.requested);
	while (record.message < SILENT_GETS &&
		at + record_bytes(RECORD_WHOLE, MESSAGE_HEADER_BYTES, 0) <= room) {
		message_encode(&header, record_write(records + at, &record));
		at += record_bytes(RECORD_WHOLE, record.header_length, 0);
		record.message++;
	}
	silent->gets += record.message;
	*count = (uint8_t)record.message;
	return at;
}

static void silent_ask(void *object, uint64_t number)
{
	struct silent *silent = object;
	struct simulation *simulation = silent->simulation;
	struct frame question = {.type = FRAME_ASK};

	if (simulation->over)
		return;
	silent->streams[number]++;
	frame_send(silent, (uint32_t)number, &simulation->nodes[number % simulation->node_count],
		&question, NULL, 0);
	sim_clock_at(&simulation->clock,
		simulation_now(simulation) + SILENT_PERIOD / simulation->haste, silent_ask, silent,
		number);
}

static void silent_told(struct silent *silent, const struct frame_header *told)
{
	struct simulation *simulation = silent->simulation;
	uint32_t number = told->destination_nid - FIRST_NID;
	uint8_t records[FRAME_ROOM];
	struct frame frame = {
		.type = FRAME_DATA,
		.flags = FRAME_FIRST | FRAME_START,
		.destination_incarnation = told->source_incarnation,
		.psn = told->first,
		.first = told->first,
	};
	uint32_t room = simulation->network.settings.frame_size - ENCAPSULATION_BYTES_MAX -
			FRAME_HEADER_BYTES;
	uint32_t bytes;

	if (number >= silent->count || simulation->over)
		return;
	frame.stream = silent->streams[number];
	bytes = gets_write(silent, records, room, &frame.records);
	frame_send(silent, number, &simulation->nodes[number % simulation->node_count], &frame,
		records, bytes);
}

bool silent_has(const struct silent *silent, uint32_t nid, uint32_t pid)
{
	return nid >= FIRST_NID && nid - FIRST_NID < silent->count && pid == PID;
}

void silent_deliver(struct silent *silent, struct parcel *parcel)
{
	struct encapsulation encapsulation;
	struct frame_view frame;

	encapsulation_make(silent, 0, &encapsulation);
	if (parcel->length >= encapsulation.bytes + FRAME_HEADER_BYTES &&
		frame_decode(parcel->bytes + encapsulation.bytes,
			parcel->length - encapsulation.bytes, &frame) == FRAME_OK &&
		frame_type(frame.header) == FRAME_TELL)
		silent_told(silent, frame.header);
	star_release(&silent->simulation->network, parcel);
}

void silent_start(struct silent *silent)
{
	for (uint32_t i = 0; i < silent->count; i++)
		sim_clock_at(&silent->simulation->clock, i * SPACING, silent_ask, silent, i);
}

void silent_init(struct silent *silent, struct simulation *simulation,
	const struct node_settings *settings, uint32_t count)
{
	*silent = (struct silent){.simulation = simulation, .settings = settings, .count = count};
	silent->streams = report_memory(calloc(count + 1, sizeof(*silent->streams)));
}

void silent_free(struct silent *silent)
{
	free(silent->streams);
}
