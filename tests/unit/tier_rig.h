/* SPDX-License-Identifier: BSD-3-Clause */
/* tier_rig.h - requests to a space with tiers, and what they are answered. */
#ifndef TESTS_TIER_RIG_H
#define TESTS_TIER_RIG_H

#include <base/handle.h>

#include "fake_transport.h"
#include "rig.h"

#define BOTH  (REGION_PUT | REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE)
#define LOCAL (REGION_PUT | REGION_GET | REGION_TRUNCATE)

static const char data[64] = "fifty bytes that are put where they belong, or not";

/* A store or a load of so many bytes, whose answer is wanted. */
static inline struct message_header request(unsigned kind, uint64_t length)
{
	return (struct message_header){
		.kind = (uint8_t)kind,
		.space = 4,
		.uid = RIG_UID + 1,
		.match_bits = 5,
		.requested = length,
		.operation = 0x700000003,
	};
}

static inline void arrive(const struct message_header *header)
{
	fake_deliver(RIG_PEER, header, data, header->kind == MESSAGE_STORE ? header->requested : 0);
}

/* The answer that the request above gets. */
static inline void expect_answer(
	unsigned kind, enum tier_verdict verdict, unsigned tier, uint64_t moved, uint64_t offset)
{
	struct fake_sent *sent = fake_next();

	assert_non_null(sent);
	assert_int_equal(sent->to.nid, RIG_PEER.nid);
	assert_int_equal(sent->header.kind, kind);
	assert_int_equal(sent->header.space, 4);
	assert_int_equal(sent->header.operation, 0x700000003);
	assert_int_equal(sent->header.detail & MESSAGE_VERDICT, verdict);
	assert_int_equal(sent->header.detail & MESSAGE_TIER, tier * MESSAGE_TIER);
	assert_int_equal(sent->header.value, moved);
	assert_int_equal(sent->header.offset, offset);
	assert_int_equal(sent->length, kind == MESSAGE_LOADED ? moved : 0);
	fake_finish(sent, TRANSPORT_OK);
}

static inline uint64_t append(struct fake_target *target, struct rig_tier tier)
{
	uint64_t handle;

	tier.start = target->memory;
	tier.length = tier.length ? tier.length : sizeof(data);
	handle = rig_append(target->space, &tier);
	if (!(tier.log & TIER_BIT(TIER_LINK)))
		rig_tier_event(target->space, target->queue, TIER_LINK);
	return handle;
}

static inline enum answer entry_leave(struct fake_target *target, uint64_t entry, uint64_t how)
{
	struct command command = {.kind = COMMAND_WITHDRAW};

	command.object.index = handle_index(entry);
	command.object.generation = handle_generation(entry);
	command.object.other = how;
	return rig_ask(target->space, &command);
}

static inline enum answer withdraw(struct fake_target *target, uint64_t entry)
{
	return entry_leave(target, entry, 0);
}

#endif
