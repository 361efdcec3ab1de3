/* SPDX-License-Identifier: BSD-3-Clause */
/* attest.c - see attest.h.
 *
 * A message that asks for something bears its sender's user, by which its target admits it. Answers
 * bear none that counts. A message's header is in the record that starts it, as a whole.
 */
#include "attest.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <base/hostname.h>
#include <wire/encapsulation.h>
#include <wire/frame.h>
#include <wire/message.h>

#define VLAN_TYPE     0x8100
#define GROUP_ADDRESS 1
#define TYPE_AT       (2 * FRAME_ADDRESS_BYTES)
#define TAG_VLAN      0x0fff

static uint16_t type_read(const uint8_t *frame, uint32_t at)
{
	return (uint16_t)(frame[at] << 8 | frame[at + 1]);
}

/* Where the transport header is; 0: the frame is none of Postern's on this VLAN. */
static uint32_t transport_at(const uint8_t *frame, uint32_t length, uint16_t vlan)
{
	uint32_t type_at = TYPE_AT;

	if (length < FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES)
		return 0;
	if (vlan != 0) {
		if (type_read(frame, TYPE_AT) != VLAN_TYPE ||
			(type_read(frame, TYPE_AT + 2) & TAG_VLAN) != vlan)
			return 0;
		type_at += ENCAPSULATION_TAG_BYTES;
	}
	return type_read(frame, type_at) == FRAME_ETHERTYPE ? type_at + 2 : 0;
}

static bool message_is(const struct record *record, uint32_t uid)
{
	const uint8_t *header = record->header;

	switch (header[offsetof(struct message_header, kind)]) {
	case MESSAGE_ACK:
	case MESSAGE_REPLY:
	case MESSAGE_REFUSE:
	case MESSAGE_STORED:
	case MESSAGE_LOADED:
		return true;
	default:
		return word_read(header, 0) >> 32 == uid;
	}
}

static bool messages_are(const struct frame_view *frame, uint32_t uid)
{
	uint32_t at = 0;

	for (unsigned n = 0; n < frame->header->records; n++) {
		struct record record;

		at = record_read(frame, at, &record);
		if (record.kind != RECORD_START && record.kind != RECORD_WHOLE)
			continue;
		if (record.header_length < MESSAGE_HEADER_LEAST || !message_is(&record, uid))
			return false;
	}
	return true;
}

/* Has an answer that names its host the name that the system has? Without privilege nobody may
 * answer for another host. Which NIC of the host this is posternd does not know: a process may
 * answer for another one. */
static bool name_is(const struct frame_view *frame)
{
	struct frame_name name;
	char own[sizeof(name.host)];

	if (frame_type(frame->header) != FRAME_FOUND)
		return true;
	memcpy(&name, frame->body, sizeof(name));
	name.host[sizeof(name.host) - 1] = '\0';
	if (gethostname(own, sizeof(own)) != 0)
		return false;
	own[sizeof(own) - 1] = '\0';
	return hostname_is_same(name.host, strlen(name.host), own, strlen(own));
}

enum switch_verdict attest(const uint8_t *frame, uint32_t length, struct switch_identity *who)
{
	uint32_t at = transport_at(frame, length, who->vlan);
	struct frame_view view;

	if (at == 0)
		return SWITCH_FOREIGN;
	if (memcmp(frame + FRAME_ADDRESS_BYTES, who->address, FRAME_ADDRESS_BYTES) != 0)
		return SWITCH_ADDRESS;
	if (frame_decode(frame + at, length - at, &view) != FRAME_OK)
		return SWITCH_MALFORMED;
	if (view.header->source_nid != who->nid)
		return SWITCH_NID;
	if (view.header->source_pid != who->pid)
		return SWITCH_PID;
	if (!messages_are(&view, who->uid))
		return SWITCH_UID;
	if (!name_is(&view))
		return SWITCH_NAME;
	who->life = view.header->source_incarnation;
	return SWITCH_FINE;
}

/* The psn that is refused is in flight, which proves the answer (doc/wire.md, section 8). */
static struct frame bye_make(const struct frame_header *refused)
{
	return (struct frame){.type = FRAME_BYE,
		.flags = FRAME_ACK_VALID,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = refused->source_nid,
		.destination_pid = refused->source_pid,
		.source_nid = refused->destination_nid,
		.source_pid = refused->destination_pid,
		.source_incarnation = refused->destination_incarnation,
		.destination_incarnation = refused->source_incarnation,
		.ack = refused->psn,
		.ack_stream = refused->stream};
}

/* The question's number proves the answer. Of a life that it never saw posternd knows no number. */
static struct frame denial_make(const struct frame_header *question, uint32_t life)
{
	return (struct frame){.type = FRAME_BYE,
		.length = FRAME_HEADER_BYTES,
		.destination_nid = question->source_nid,
		.destination_pid = question->source_pid,
		.source_nid = question->destination_nid,
		.source_pid = question->destination_pid,
		.source_incarnation = life != 0 ? life : question->source_incarnation,
		.destination_incarnation = question->source_incarnation,
		.psn = question->psn,
		.ack = question->ack};
}

/* Is a frame one of data for the life of a process, or another process's question for it? One that
 * asks for its own name has a socket of its own. */
static bool farewell_fits(const struct frame_header *frame, const struct switch_identity *ended)
{
	if (frame->destination_nid != ended->nid || frame->destination_pid != ended->pid ||
		(frame->source_nid == ended->nid && frame->source_pid == ended->pid))
		return false;
	return frame_type(frame) == FRAME_ASK ||
	       (frame_type(frame) == FRAME_DATA && ended->life != 0 &&
		       frame->destination_incarnation == ended->life);
}

uint32_t farewell(
	const uint8_t *frame, uint32_t length, const struct switch_identity *ended, uint8_t *answer)
{
	uint32_t at = transport_at(frame, length, ended->vlan);
	struct frame_view view;
	struct frame bye;

	if (at == 0 || (frame[FRAME_ADDRESS_BYTES] & GROUP_ADDRESS) != 0 ||
		frame_decode(frame + at, length - at, &view) != FRAME_OK ||
		!farewell_fits(view.header, ended))
		return 0;
	memcpy(answer, frame, at); /* the VLAN's tag, too */
	memcpy(answer, frame + FRAME_ADDRESS_BYTES, FRAME_ADDRESS_BYTES);
	memcpy(answer + FRAME_ADDRESS_BYTES, ended->address, FRAME_ADDRESS_BYTES);
	bye = frame_type(view.header) == FRAME_ASK ? denial_make(view.header, ended->life)
						   : bye_make(view.header);
	frame_encode(&bye, answer + at);
	return at + FRAME_HEADER_BYTES;
}
static_assert(FRAME_ETHERNET_BYTES + ENCAPSULATION_TAG_BYTES + FRAME_HEADER_BYTES <= FAREWELL_BYTES,
	"an answer has room");
