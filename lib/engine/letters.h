/* SPDX-License-Identifier: BSD-3-Clause */
/* letters.h - posted receives of two-sided messages (space_options.two_sided), and the messages
 * that they get.
 *
 * A receive is no entry of the program's: it takes one message, its end is an outcome (outcome.h),
 * and nothing but that names it. So it has neither gate nor region nor attachment, but a place,
 * which is private memory of the poll core: a match entry with an index behind those of the
 * entries, and a struct posted. It stands in the list of its Portal's first tier, among entries, in
 * the order in which both came.
 *
 * L1. A receive that is posted takes the oldest kept message that matches (unexpected.h); if there
 *     is none it gets a place. So a receive has a place only while no message is its own.
 * L2. A place is free before the outcome of its receive is published, and before the answer to the
 *     command that takes the receive back. A program that counts its receives knows how many
 *     places are left.
 */
#ifndef ENGINE_LETTERS_H
#define ENGINE_LETTERS_H

#include <engine/state.h>

/* Returns false without memory. */
bool letters_open(struct space *space);
void letters_close(struct space *space);

/* COMMAND_RECEIVE. Returns false if the receive has taken a message that was kept. */
bool letters_post(struct space *space, const struct command *command);
/* COMMAND_RECEIVE_WITHDRAW: OK; GONE, it has a message. */
enum answer letters_withdraw(struct space *space, const struct command *command);

/* A store to a space of two-sided messages: what no receive takes is for tiers.h. */
void letters_store(struct space *space, struct process from, const struct message_header *header,
	const void *data);
/* One of which only the first data is here. */
void letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);

/* Is it a store that a receive has taken? */
static inline bool operation_is_letter(const struct operation *operation)
{
	return operation->space->two_sided && operation->kind == OPERATION_RECEIVE &&
	       !operation->region;
}
/* The last of it has been placed, or will not come. */
void letters_stored(struct engine *engine, struct operation *operation, enum transport_fail why);

#endif
