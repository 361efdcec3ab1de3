/* SPDX-License-Identifier: BSD-3-Clause */
/* unexpected.h - messages that an entry of the second tier took, kept until an entry of the first
 * tier or a receive asks for them. What lists look at is a kept message (match/kept.h); what else
 * is known of it is its header, of the same index. All of it is the poll core's private memory.
 *
 *     message                     header         entry of the first tier, receive, or search
 *     begins                      ARRIVING       takes it: CLAIMED
 *     has ended: its own event    HERE           takes it: the event _KEPT, and it is gone
 *                                 CLAIMED: the event _KEPT, and it is gone
 *     the program has read        LENT (U6): the event _KEPT was logged, and it is gone
 *
 * U1. A header that is not claimed is in the list of its Portal; a claimed one is in none, so
 *     nobody else takes it.
 * U2. The event of the taker comes after the message's own event, when the data is in place.
 * U3. An entry of the second tier whose headers refer to its memory is not freed, nor withdrawn:
 *     attachment.headers. An entry of the first tier that has claimed a header counts that in
 *     region.pending.
 * U4. In a space with shares at most share_now() messages of a rank are kept at a time, so one
 *     sender cannot take the headers of others. A share is kept_share at first. It is doubled when
 *     half of it is in use, as long as headers are left that are in no share, of which it gets half
 *     at most; so a rank has kept_share for certain, and more when it needs more, whatever the
 *     program does meanwhile. In a space of two-sided messages it is doubled also when a message
 *     says that its sender lacks credit (VALUE_SHORT), kept or not, unless the share is more than
 *     one of ASKERS parts of `spare`: many ranks get some, and what is needed for messages that are
 *     kept is left. There the answer to a message tells its sender its share. Shares and `spare`
 *     together are the table, whose headers have KEPT_BYTES each: what ranks were granted and what
 *     is kept of them never take more memory than that. What a share has got goes back when its
 *     rank gets another name, or when others are short and it can spare it (credit.h).
 * U5. A search for what is here passes over a header that is ARRIVING, and over later ones of the
 *     same process. So each process's messages are found in their order, and a process that never
 *     sends the rest of a message holds up its own alone.
 * U6. In a space of two-sided messages a letter, a store of up to COPIED_MAX bytes that wants no
 *     answer but refusals, is kept with its data in its header's place, which has room for as many;
 *     so it has to do with no entry. The event of its taker says where the data lies. The place is
 *     lent to the program, with the header, until the program has read it: so nothing is allocated
 *     for an event, and what was lent counts as kept. The program reads before it tells that it has
 *     taken the message, so a sender that keeps to its share always finds a place.
 * U7. There, as soon as an entry of the second tier has memory again, the poll core fetches what it
 *     keeps of messages whose copies are at their senders: so a sender's copies are no more than
 *     the memory here refuses, whatever the programs do meanwhile. Ranks take turns, each with its
 *     oldest message, and each has a share of FETCHES_EACH at a time: a rank that answers none
 *     holds up its own messages alone. A rank whose name of this process is not known yet has its
 *     turn when it is (COMMAND_JOINED). While it is fetched a message is ARRIVING. A fetch that is
 *     refused keeps its place, and is repeated (rma.c, C7). If it fails, the message is HERE again
 *     without its data, its taker finds out why, and nothing more is fetched of a rank that is lost
 *     by that: its messages would only take the memory of others.
 * U8. A receive (letters.h) that takes a message gets no event. The poll core copies the data that
 *     is here into the receive's memory, frees the header, and publishes the receive's outcome.
 */
#ifndef ENGINE_UNEXPECTED_H
#define ENGINE_UNEXPECTED_H

#include <engine/tiers.h>

/* The tables of a space with tiers that is about to open. */
void unexpected_place(struct space *space, struct pages_tables *tables);
/* With these tables; false: no memory. */
bool unexpected_open(struct space *space);
void unexpected_close(struct space *space);

static inline bool header_is_needed(const struct attachment *attachment)
{
	return attachment->tier != 0 && !(attachment->flags & ATTACHMENT_NO_HEADERS);
}

/* A rank is another process's now: U7. */
void sources_reset(struct space *space, uint32_t rank);
/* Is there a header for a message of a process? */
bool header_has_room(struct space *space, struct process process);
/* The same for one to a region, or does it need none? */
static inline bool unexpected_has_room(
	struct space *space, const struct attachment *attachment, struct process process)
{
	return !header_is_needed(attachment) || header_has_room(space, process);
}

/* unexpected_keep() of a message that needs a header. */
uint32_t header_keep(struct space *space, struct region *region, enum tier_event kind,
	enum tier_verdict verdict, const struct account *account, uint64_t start, bool arriving);
/* A message has been accepted. Returns its header, KEPT_NONE: it needs none. start: of its event;
 * verdict: how it ended; arriving: it has not, and unexpected_ended() follows. */
static inline uint32_t unexpected_keep(struct space *space, struct region *region,
	const struct attachment *attachment, enum tier_event kind, enum tier_verdict verdict,
	const struct account *account, uint64_t start, bool arriving)
{
	if (!header_is_needed(attachment))
		return KEPT_NONE;
	return header_keep(space, region, kind, verdict, account, start, arriving);
}

/* The same for a letter, with its data (U6): no entry has to do with it. */
void unexpected_copy(struct space *space, struct account *account, const void *data);

/* U6. What was lent and has been read is free again. */
void unexpected_return(struct space *space);

/* The message of a header, which may be KEPT_NONE, has ended, after its own event. */
void unexpected_ended(struct space *space, uint32_t header, enum tier_verdict verdict);

/* An entry is about to come into the first tier: it takes what it asks for. Returns true if that
 * has used it up. */
bool unexpected_take(struct space *space, struct region *region, uint32_t portal);
/* The pieces of the memory of a COMMAND_RECEIVE; NULL: it is one piece. */
static inline const struct map_vector *receive_vector(const struct command *command)
{
	return command->position == RECEIVE_VECTOR
		       ? (const struct map_vector *)(uintptr_t)command->receive.start
		       : NULL;
}

/* The same for a COMMAND_RECEIVE, which takes one. Returns false if none is kept that matches. */
bool unexpected_give(struct space *space, const struct command *receive);
/* COMMAND_RECEIVE_PASS. */
enum answer unexpected_pass(struct space *space, const struct command *command);
enum answer unexpected_search(struct space *space, const struct long_command *command);
/* U7. There may be memory. */
void unexpected_fetch(struct space *space, uint32_t portal);
/* The name that a rank has for this process is known. */
void unexpected_joined(struct space *space, uint32_t rank);
/* Is a fetch for a message that nobody waits for? */
bool unexpected_waits(const struct operation *operation);
/* A fetch has ended; its operation is not freed yet. */
void unexpected_fetched(struct operation *operation);
/* Nobody can ask any more: what is kept goes, without events. */
void unexpected_forget(struct space *space, uint32_t portal);

#endif
