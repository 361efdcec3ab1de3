/* SPDX-License-Identifier: BSD-3-Clause */
/* mailbox.h - a space of two-sided messages without a front end: messages that arrive, and receives
 * for them. */
#ifndef TESTS_MAILBOX_H
#define TESTS_MAILBOX_H

#include <stdlib.h>
#include <string.h>

#include <engine/outcome.h>

#include "fake_transport.h"
#include "rig.h"

#define ANY_RANK UINT32_MAX
#define SHARE    128 /* headers of a rank */

static const char data[64] = "fifty bytes that are put where they belong, or not";

/* A target whose rank 1 is RIG_PEER. */
struct mailbox {
	struct fake_target *target;
	struct rig *space;
	uint64_t queue;
	struct credit credits[RIG_RANKS];
};

static const struct process map[] = {RIG_SELF, RIG_PEER};

static inline int mailbox_setup(void **state)
{
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
	struct command set = {.kind = COMMAND_MAP};
	void *target;

	assert_non_null(mailbox);
	assert_int_equal(fake_target_setup(&target), 0);
	mailbox->target = target;
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		mailbox->credits[i].self = 70 + i;
	mailbox->space =
		rig_letters(mailbox->target->rig, SHARE, 0, mailbox->credits, &mailbox->queue);
	set.object.index = RIG_RANKS;
	set.object.other = (uintptr_t)map;
	assert_int_equal(rig_ask(mailbox->space, &set), ANSWER_OK);
	*state = mailbox;
	return 0;
}

static inline int mailbox_teardown(void **state)
{
	struct mailbox *mailbox = *state;
	void *target = mailbox->target;

	rig_stop(mailbox->target->rig);
	rig_space_free(mailbox->space);
	fake_target_teardown(&target);
	free(mailbox);
	return 0;
}

/* A message of so many bytes with bits 5. */
static inline struct message_header message(const struct mailbox *mailbox, uint64_t length)
{
	return (struct message_header){
		.kind = MESSAGE_STORE,
		.space = (uint8_t)mailbox->space->space,
		.uid = RIG_UID,
		.cookie = 1,
		.match_bits = 5,
		.requested = length,
	};
}

static inline void arrive(const struct message_header *header)
{
	fake_deliver(RIG_PEER, header, data, header->requested);
}

/* A receive for bits 5. */
static inline struct command receive_make(struct outcome *outcome, void *start, uint64_t length)
{
	struct command command = {.kind = COMMAND_RECEIVE};

	command.receive.bits = 5;
	command.receive.start = (uintptr_t)start;
	command.receive.length = length;
	command.receive.outcome = (uintptr_t)outcome;
	command.receive.peer = ANY_RANK;
	return command;
}

static inline void post(
	const struct mailbox *mailbox, struct outcome *outcome, void *start, uint64_t length)
{
	const struct command command = receive_make(outcome, start, length);

	rig_post(mailbox->space, &command);
	engine_poll(mailbox->target->rig->engine);
}

static inline enum answer withdraw(const struct mailbox *mailbox, struct outcome *outcome)
{
	struct command command = {.kind = COMMAND_RECEIVE_WITHDRAW};

	command.object.other = (uintptr_t)outcome;
	return rig_ask(mailbox->space, &command);
}

/* What a receive has claimed is an item's. */
static inline enum answer receive_pass(
	const struct mailbox *mailbox, struct outcome *outcome, uint64_t item)
{
	struct command command = {.kind = COMMAND_RECEIVE_PASS};

	command.receive.outcome = (uintptr_t)outcome;
	command.receive.start = item;
	return rig_ask(mailbox->space, &command);
}

static inline struct outcome *outcomes(const struct mailbox *mailbox)
{
	return outcomes_take(segment_queue(mailbox->space->segment, handle_index(mailbox->queue)));
}

#endif
