/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_attest.c - what posternd makes of frames: who they claim to be from, and the answer for a
 * process that has ended. A claim, then the frame.
 */
#include <string.h>

#include <apps/node/attest.h>
#include <wire/frame.h>
#include <wire/message.h>

#include "fuzz.h"

#define CLAIM_BYTES 24u /* nid, pid, uid, life, address, VLAN */
#define VLAN_MASK   0xfffu

unsigned fuzz_accepted;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static struct switch_identity claim_read(const uint8_t *data)
{
	struct switch_identity who = {0};
	uint16_t vlan;

	memcpy(&who.nid, data, 4);
	memcpy(&who.pid, data + 4, 4);
	memcpy(&who.uid, data + 8, 4);
	memcpy(&who.life, data + 12, 4);
	memcpy(who.address, data + 16, sizeof(who.address));
	memcpy(&vlan, data + 22, 2);
	who.vlan = vlan & VLAN_MASK;
	return who;
}

static uint32_t transport_of(const struct switch_identity *who)
{
	return FRAME_ETHERNET_BYTES + (who->vlan != 0 ? 4 : 0);
}

/* Asks nobody in the frame as another user? An answer's user means nothing. */
static bool users_are(const struct frame_view *view, uint32_t uid)
{
	struct record record;
	uint32_t at = 0;

	for (unsigned n = 0; n < view->header->records; n++) {
		const uint8_t *header;
		uint32_t said;

		at = record_read(view, at, &record);
		if (record.kind != RECORD_START && record.kind != RECORD_WHOLE)
			continue;
		header = record.header;
		memcpy(&said, header + 4, sizeof(said));
		if (header[0] != MESSAGE_ACK && header[0] != MESSAGE_REPLY &&
			header[0] != MESSAGE_REFUSE && header[0] != MESSAGE_STORED &&
			header[0] != MESSAGE_LOADED && said != uid)
			return false;
	}
	return true;
}

/* A frame that is fine is from nobody else; of another one nothing is noted. */
static void attest_check(const uint8_t *frame, uint32_t length, struct switch_identity who)
{
	const uint32_t at = transport_of(&who);
	struct switch_identity known = who;
	enum switch_verdict verdict = attest(frame, length, &who);
	struct frame_view view;

	fuzz_assert(verdict < SWITCH_VERDICTS);
	if (verdict == SWITCH_FINE) {
		fuzz_accepted++;
		fuzz_assert(frame_decode(frame + at, length - at, &view) == FRAME_OK);
		fuzz_assert(
			memcmp(frame + FRAME_ADDRESS_BYTES, who.address, FRAME_ADDRESS_BYTES) == 0);
		fuzz_assert(view.header->source_nid == who.nid);
		fuzz_assert(view.header->source_pid == who.pid);
		fuzz_assert(users_are(&view, who.uid));
		known.life = view.header->source_incarnation;
	}
	fuzz_assert(memcmp(&known, &who, sizeof(who)) == 0);
}

/* The answer goes to who has asked, is one that the process itself could have sent, and is never
 * answered. */
static void farewell_check(const uint8_t *frame, uint32_t length, struct switch_identity ended)
{
	const uint32_t at = transport_of(&ended);
	uint8_t *answer = malloc(FAREWELL_BYTES), *exact;
	uint32_t answered = farewell(frame, length, &ended, answer);
	struct switch_identity asker = {.vlan = ended.vlan};
	struct frame_view view;

	fuzz_assert(answered <= FAREWELL_BYTES);
	exact = malloc(answered + 1);
	memcpy(exact, answer, answered);
	free(answer);
	if (answered != 0) {
		fuzz_assert((exact[0] & 1) == 0);
		fuzz_assert(memcmp(exact, frame + FRAME_ADDRESS_BYTES, FRAME_ADDRESS_BYTES) == 0);
		fuzz_assert(frame_decode(exact + at, answered - at, &view) == FRAME_OK);
		fuzz_assert(frame_type(view.header) == FRAME_BYE);
		fuzz_assert(view.header->source_incarnation == ended.life || ended.life == 0);
		ended.pid = view.header->source_pid;
		fuzz_assert(attest(exact, answered, &ended) == SWITCH_FINE);
		asker.nid = view.header->destination_nid;
		asker.life = view.header->destination_incarnation;
		answer = malloc(FAREWELL_BYTES);
		fuzz_assert(farewell(exact, answered, &asker, answer) == 0);
		free(answer);
	}
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct switch_identity who;
	uint32_t length = (uint32_t)size - CLAIM_BYTES;
	uint8_t *frame;

	if (size < CLAIM_BYTES || size > 65536)
		return 0;
	who = claim_read(data);
	frame = malloc(length + 1); /* of no bytes malloc() need not be asked */
	memcpy(frame, data + CLAIM_BYTES, length);
	attest_check(frame, length, who);
	farewell_check(frame, length, who);
	free(frame);
	return 0;
}

/* The claim is mostly what the frame says, as its sender or as its receiver. */
static void claim_repair(
	uint8_t *data, const uint8_t *frame, const struct frame *header, bool sends)
{
	const uint32_t nid = sends ? header->source_nid : header->destination_nid;
	const uint32_t pid = sends ? header->source_pid : header->destination_pid;

	memcpy(data, &nid, 4);
	memcpy(data + 4, &pid, 4);
	memcpy(data + 12, &header->destination_incarnation, 4);
	memcpy(data + 16, frame + FRAME_ADDRESS_BYTES, FRAME_ADDRESS_BYTES);
}

/* Mostly repairs what a random change breaks: types, version, length, checksum, claim. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	uint8_t *ethernet = data + CLAIM_BYTES, *header;
	struct frame frame;
	uint32_t at;

	size = LLVMFuzzerMutate(data, size, size_max);
	if (seed % 8 == 0 || size < CLAIM_BYTES + FRAME_ETHERNET_BYTES + 4 + FRAME_HEADER_BYTES)
		return size;
	if (seed % 4 != 0)
		memset(data + 22, 0, 2);
	at = CLAIM_BYTES + FRAME_ETHERNET_BYTES;
	header = data + at;
	ethernet[12] = FRAME_ETHERTYPE >> 8;
	ethernet[13] = FRAME_ETHERTYPE & 0xff;
	header[0] = (uint8_t)(FRAME_VERSION << 4 | (header[0] & 15));
	if (size - at < frame_header_bytes(header[1]))
		return size;
	frame_recall(header, &frame);
	if (frame.flags & FRAME_SACK)
		memcpy(frame.sack, header + FRAME_HEADER_BYTES, FRAME_SACK_BYTES);
	if (frame.length > size - at || frame.length < frame_header_bytes(frame.flags))
		frame.length = (uint16_t)((size - at) & ~(size_t)7);
	if (frame.length < frame_header_bytes(frame.flags))
		return size;
	frame_encode(&frame, header);
	if (seed % 16 < 14)
		claim_repair(data, ethernet, &frame, seed % 2 == 0);
	return size;
}
