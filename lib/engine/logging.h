/* SPDX-License-Identifier: BSD-3-Clause */
/* logging.h - how the engine logs events: straight from what it knows of the message, which may be
 * registers, and from the region's line into the slot. The polling thread's.
 */
#ifndef ENGINE_LOGGING_H
#define ENGINE_LOGGING_H

#include <string.h>

#include <engine/queue.h>
#include <engine/state.h>
#include <engine/statistics.h>

#define LOGGING_INLINE static inline __attribute__((always_inline))

/* Writes the two words of a slot that are the same as these two. */
LOGGING_INLINE void event_copy(struct event_slot *slot, unsigned word, const uint64_t *from)
{
	event_pair pair;

	memcpy(&pair, from, sizeof(pair));
	event_pair_write(slot, word, pair);
}

LOGGING_INLINE void event_word_write(struct event_slot *slot, unsigned word, uint64_t value)
{
	atomic_store_explicit(&slot->words[word], value, memory_order_relaxed);
}

/* The words that an account fills in the line that readers poll. */
LOGGING_INLINE void account_write(struct event_slot *slot, const struct account *account)
{
	event_word_write(slot, EVENT_INITIATOR, account->initiator);
	event_word_write(slot, EVENT_TARGET, account->target);
	event_word_write(slot, EVENT_MATCH_BITS, account->match_bits);
	event_word_write(slot, EVENT_REQUESTED, account->requested);
	event_word_write(slot, EVENT_MOVED, account->moved);
	event_word_write(slot, EVENT_OFFSET, account->offset);
}

/* Writes all words of a claimed slot but the first. link: LINK_OWN, or what it is instead of the
 * account's. What an event says of its region is the region's. Not the gate's threshold: events
 * tell of operations in the order in which they began, and sends that wait in the ring have not.
 * The line that readers poll is written last, and as a whole: it may be taken away between two
 * stores. why: not TRANSPORT_OK makes a FAILED of an END. */
LOGGING_INLINE void event_write(struct logging *logging, const struct region *region,
	enum event_kind kind, uint32_t why, const struct account *account, uint64_t link)
{
	struct event_slot *slot = logging->slot;

	event_copy(slot, EVENT_REGION, &region->handle);
	event_copy(slot, EVENT_LENGTH, &region->length);
	event_copy(slot, EVENT_USER, &region->user);
	event_word_write(slot, EVENT_VALUE, account->value);
	event_word_write(slot, EVENT_LINK, link == LINK_OWN ? logging->sequence : link);
	event_word_write(slot, EVENT_SEQUENCE, logging->sequence);
	account_write(slot, account);
	logging->first |= ((uint32_t)kind + (why != TRANSPORT_OK)) << EVENT_KIND_AT |
			  why << EVENT_FAIL_AT | region->options;
}

/* A slot has been written: its events can be read, so many. */
LOGGING_INLINE void event_publish(
	struct space *space, struct queue *queue, const struct logging *logging, unsigned events)
{
	queue_publish(logging);
	counter_add(&segment_counters(space->segment)->events_logged, events);
	engine_touch(space, queue);
}

/* Is an event of this region to be logged? why: as event_write() has it. */
LOGGING_INLINE bool event_wanted(const struct region *region, enum event_kind kind, uint32_t why)
{
	return region->log & EVENT_BIT((uint32_t)kind + (why != TRANSPORT_OK));
}

/* Logs an event in a queue that has been found. */
LOGGING_INLINE struct logging event_log(struct space *space, struct queue *queue,
	const struct region *region, enum event_kind kind, uint32_t why,
	const struct account *account, uint64_t link)
{
	struct logging logging = queue_claim(queue);

	if (__builtin_expect(!logging.slot, 0)) {
		space_count(space, events_lost);
		return logging;
	}
	event_write(&logging, region, kind, why, account, link);
	event_publish(space, queue, &logging, 1);
	return logging;
}

/* region.c: the same as region_log_whole() for a queue that has no room for both, or a region of
 * which both are not wanted. */
uint64_t region_log_apart(struct space *space, const struct region *region,
	const struct account *account, enum event_kind start);

/* Logs START and END of an operation that was here as a whole, in one slot; start: START's kind.
 * The account's link means nothing.
 * Returns START's sequence, which is the link of both, 0: there is no queue. */
LOGGING_INLINE uint64_t region_log_whole(struct space *space, const struct region *region,
	const struct account *account, enum event_kind start)
{
	const uint32_t both = EVENT_BIT(start) | EVENT_BIT(start + 1);
	struct queue *queue = region_queue(region);
	struct logging logging = {0};

	if (!queue)
		return 0;
	if (__builtin_expect((region->log & both) == both, 1))
		logging = queue_claim_pair(queue);
	if (__builtin_expect(!logging.slot, 0)) {
		/* so that the account itself may stay in registers */
		struct account copy = *account;

		return region_log_apart(space, region, &copy, start);
	}
	event_write(&logging, region, start, TRANSPORT_OK, account, logging.sequence);
	event_publish(space, queue, &logging, 2);
	return logging.sequence;
}

/* An operation is over: it is no longer pending (R2), then its last event is logged. queue: that it
 * had when it began, NULL: none. region_settle() follows. */
LOGGING_INLINE void region_log_end(struct space *space, struct region *region, struct queue *queue,
	enum event_kind kind, uint32_t why, const struct account *account)
{
	region->pending--;
	if (queue && event_wanted(region, kind, why))
		event_log(space, queue, region, kind, why, account, account->link);
}

#endif
