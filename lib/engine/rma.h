/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.h - RMA operations: stores, loads, atomics and fetches that this process begins (rma.c). */
#ifndef ENGINE_RMA_H
#define ENGINE_RMA_H

#include <engine/state.h>
#include <engine/tier.h>

/* Is its answer the data that it wants? */
static inline bool rma_loads(const struct operation *operation)
{
	return operation->rma.message == MESSAGE_LOAD || operation->rma.message == MESSAGE_FETCH;
}

/* Begins what the lines of a COMMAND_RMA say; given: those from the third on, of which there may
 * be none. There is memory for an operation. */
void rma_begin(struct space *space, const struct move *move, const struct rma_line *line,
	const void *given);
/* The same of a command. */
static inline void rma_command(struct space *space, const struct long_command *command)
{
	rma_begin(space, &command->command.move, (const void *)command->further[0],
		command->further[1]);
}
/* What the poll core loads into a region for a message that it keeps. There is memory for an
 * operation. */
struct fetch {
	struct process from;
	struct region *region;
	uint64_t local, length;
	uint64_t value; /* fetch.h */
	uint32_t cookie;
	uint32_t rank;
	uint32_t kept;
};
void rma_fetch(struct space *space, const struct fetch *fetch);
/* The transport is done with the request, or with a question after its answer. */
void rma_requested(struct operation *operation, enum transport_fail why);
/* C7: a load that was refused is sent again, or fails. */
void rma_repeat(struct operation *operation);
/* C7. Returns false if an operation that waits for its answer has failed instead, because nobody is
 * to be asked any more. */
bool rma_is_wanted(struct operation *operation);
/* C8. A program gives up the load for such a `user`. Returns false if there is none, or its answer
 * has begun to come. */
bool rma_withdraw(struct space *space, uint64_t user);
/* Its answer will not come. */
void rma_fail(struct operation *operation, enum tier_verdict verdict);
/* Answers. */
void rma_stored(struct space *space, struct process from, const struct message_header *header);
void rma_loaded(struct space *space, struct process from, const struct message_header *header,
	const void *data);
void rma_loaded_begin(struct space *space, struct process from, const struct message_header *header,
	struct inbound *inbound);
/* The last of a load's data has been placed, or will not come. */
void rma_placed(struct operation *operation, enum transport_fail why);

#endif
