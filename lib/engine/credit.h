/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.h - how many messages a rank may have kept at another one (unexpected.h, U4), at both
 * ends. All of it is the poll core's, but for what a program counts (struct credit).
 *
 *     sender    sent - freed <= share
 *     receiver  kept <= share_now(); all shares and `spare` together are the table
 *
 * C1. A message counts from its sending on until it was answered as placed, or its receiver has
 *     told that it was taken (WORD_CREDIT). The sender's poll core counts both, so what a program
 *     has in use at a peer is known while it makes no calls.
 * C2. A sender's share is never more than the receiver has for it (share_now()). It becomes larger
 *     by an answer to a message, or by WORD_SHARE; a share that no honest receiver grants is not
 *     believed.
 * C3. If no header is left for a rank that needs more, and it has less than an equal share of the
 *     table, half of a share is taken back: from the rank that has been silent for longest with
 *     more than the least share. WORD_TAKE tells its poll core how large the share is to be. That
 *     makes the share so small, or as small as what is in use allows and smaller whenever that
 *     becomes less, and tells by WORD_GIVEN how large it is. Only then are the headers free. Both
 *     words are in the streams of the messages: what was sent with the larger share has come
 *     before. Until it is so small the share does not grow, and answers say nothing of it. The
 *     rank that needed more is told by WORD_SHARE. A rank that does not answer is not asked again,
 *     and keeps what it has got: it gets no more, and the others have kept_share for certain.
 * C4. A program counts a message first and looks at the share then; a poll core that makes the
 *     share smaller looks at the count then, with a fence of barrier.h between the two. So one of
 *     them sees what the other has done, and a program that finds its share used up takes its
 *     count back. A share is left at one more than is in use: a sender is not stopped by messages
 *     that were taken, but too few to be told.
 * C5. A word that finds no operation, or whose rank has its share of them, is owed. The poll core
 *     sends it as soon as there is one for it, with the numbers that are true at that time. So no
 *     rank waits for a word in vain, and one that takes none leaves operations for others.
 * C6. Nothing here is of an earlier use of a rank: words with an earlier name are refused, and both
 *     ends begin again (share_reset()).
 */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include <engine/state.h>

#define ASKERS 32 /* U4 */
/* Messages that want no answer: a quarter of a share. With a smaller one than this the words for
 * credit cost more than the answers. */
#define UNANSWERED_LEAST 32

/* Of a space with tiers, whose table of sharers is there if it has shares. */
void credit_open(struct space *space);
void credit_close(struct space *space);

/* The poll core alone writes it. */
static inline uint32_t share_now(const struct space *space, uint32_t rank)
{
	return space->kept_share +
	       atomic_load_explicit(&space->share_of[rank], memory_order_relaxed);
}

static inline struct credit *credit_of(const struct space *space, uint32_t rank)
{
	return (struct credit *)(void *)((char *)space->credits + rank * space->credit_step);
}

/* The cookie of messages to a rank; RANK_NONE: it is not known. */
static inline uint32_t self_at(const struct space *space, uint32_t rank)
{
	return atomic_load_explicit(&credit_of(space, rank)->self, memory_order_relaxed);
}

/* May something be sent to a rank? */
static inline bool rank_is_known(const struct space *space, uint32_t rank)
{
	return space->credits && rank < space->map_count && space->map[rank].pid != UINT32_MAX &&
	       self_at(space, rank) != RANK_NONE;
}

/* --- receiver */

/* A message of a rank's is kept. */
void share_keep(struct space *space, uint32_t rank);
/* One has come, which is to be answered. Returns what the answer says of the share. */
uint64_t share_answer(struct space *space, uint32_t rank, uint64_t value);
/* A rank is another process's now. */
void share_reset(struct space *space, uint32_t rank);
/* It was heard of. */
void share_touch(struct space *space, uint32_t rank);
static inline void share_heard(struct space *space, uint32_t rank)
{
	if (rank != space->heard)
		share_touch(space, rank);
}

/* --- sender */

/* A share as a program begins with it, or as it is now. */
static inline void credit_set(struct credit *credit, uint32_t share)
{
	atomic_store_explicit(
		&credit->quiet, share < UNANSWERED_LEAST ? 0 : share / 4, memory_order_relaxed);
	atomic_store_explicit(&credit->share, share, memory_order_relaxed);
}

/* A message to the rank outcome->peer was answered. */
void credit_answered(struct space *space, const struct outcome *outcome);

/* --- both */

/* C5. The words that are owed, as far as there are operations. */
void credit_resume(struct engine *engine);
/* A store to the entry for words. Returns true if it was for the poll core alone. */
bool credit_word(struct space *space, struct process from, const struct message_header *header);

#endif
