/* SPDX-License-Identifier: BSD-3-Clause */
/* letters.h - two-sided messages (space_options.two_sided): posted receives, the messages that they
 * get, and letters, which are short messages that want no answer.
 *
 * A receive is no entry of the program's: it takes one message, its end is an outcome (outcome.h),
 * and nothing but that names it. So it has neither gate nor region nor attachment, but a slot,
 * which is private memory of the poll core: a match entry with an index behind those of the
 * entries, and a struct posted. It stands in the list of its Portal's first tier, among entries, in
 * the order in which both came.
 *
 * L1. A receive that is posted takes the oldest kept message that matches (unexpected.h); if there
 *     is none it gets a slot. So a receive has a slot only while no message is its own.
 * L2. A slot is free before the outcome of its receive is published, and before the answer to the
 *     command that takes the receive back. A program that counts its receives knows how many
 *     slots are left.
 *
 * A letter is a store without a name, of at most COPIED_MAX bytes, whose data is in its operation:
 * nothing of it is the program's when its command has been posted, and its end is no event.
 *
 * L3. The ends of a program's letters to a peer are counted in its struct dispatch. The first that
 *     is not delivered is told by an outcome; those behind it are not delivered either, so nothing
 *     is told again before the program has heard of it. The outcome is in the list before the end
 *     is counted: when all have ended, and no outcome is to be read, the object is the program's.
 * L4. A process that refuses a letter says so (MESSAGE_REFUSALS; rma.c, C6).
 */
#ifndef ENGINE_LETTERS_H
#define ENGINE_LETTERS_H

#include <engine/state.h>

/* The table of a space with tiers that is about to open. */
void letters_place(struct space *space, struct pages_tables *tables);

/* COMMAND_RECEIVE. Readers are woken if the receive has taken a message that was kept. */
void letters_post(struct space *space, const struct command *command);
/* COMMAND_RECEIVE_WITHDRAW: OK; GONE, it has a message. */
enum answer letters_withdraw(struct space *space, const struct command *command);

/* COMMAND_LETTER, for which there is an operation. */
void letters_send(struct space *space, const struct command *command, const void *data);
/* The poll core alone writes the count. */
static inline void letter_count(_Atomic uint64_t *count)
{
	atomic_store_explicit(
		count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_release);
}

/* The transport is done with one. */
static inline void letter_done(struct operation *operation)
{
	struct dispatch *dispatch = operation->dispatch;

	letter_count(dispatch->all);
	letter_count(&dispatch->ended); /* last: L3 */
	operation_free(operation->space->engine, operation);
}

/* One was not delivered. */
void letter_lose(struct operation *operation, enum transport_fail why);

/* A store to a space of two-sided messages: what no receive takes is for tiers.h. */
void letters_store(struct space *space, struct process from, const struct message_header *header,
	const void *data);
/* One of which only the first data is here. */
void letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);

/* Does a receive get its data? */
static inline bool operation_has_receive(const struct operation *operation)
{
	return operation->space->two_sided && operation->kind == OPERATION_RECEIVE &&
	       !operation->region;
}
/* The last of it has been placed, or will not come. */
void letters_stored(struct engine *engine, struct operation *operation, enum transport_fail why);

#endif
