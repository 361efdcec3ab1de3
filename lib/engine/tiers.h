/* SPDX-License-Identifier: BSD-3-Clause */
/* tiers.h - spaces whose Portals have two tiers of match lists (SPACE_TIERS). The first entry that
 * matches, of the first tier and then of the second, decides what becomes of a request: it takes
 * the request or refuses it, and the initiator is told.
 *
 *     store    tiers_find() -> data placed -> count, PUT, perhaps UNLINK -> STORED
 *     load     tiers_find() -> LOADED sent -> count, GET, perhaps UNLINK
 *     atomic   tiers_find() -> carried out -> count, ATOMIC, perhaps UNLINK -> STORED
 *     fetch    tiers_find() -> carried out -> count, FETCH, perhaps UNLINK -> LOADED
 *
 * An entry and the region of the same index are one object. It leaves its list with the message
 * that uses it up, and is free when the last message to it has ended.
 */
#ifndef ENGINE_TIERS_H
#define ENGINE_TIERS_H

#include <base/guard.h>
#include <engine/state.h>

/* A Portal's state that the poll core alone uses. */
struct tier_portal {
	uint64_t queue;     /* handle, 0: none */
	struct queue *logs; /* what it names */
	/* events in the queue, beyond which a Portal that is controlled accepts nothing (T5);
	 * those that strangers have (T10) */
	uint64_t most;
	uint64_t shared;   /* events, of which processes have shares (T11); 0: they have none */
	uint32_t pending;  /* messages in progress */
	bool controlled;   /* it is disabled rather than that anything is lost */
	bool strangers;    /* of a space with ranks: every process may send, and none by its rank */
	bool owes;         /* DISABLED, when nothing is pending */
	struct link turns; /* U7: ranks that a message can be fetched from, the next one first */
};

/* An event of a region is logged, if it is wanted. user, start: what it says of both; account: the
 * rest. */
struct tier_event_head {
	enum tier_event kind;
	enum tier_verdict verdict;
	unsigned tier;
	uint64_t user;
	uint64_t start;
};
void tier_log(struct space *space, struct queue *queue, const struct tier_event_head *event,
	const struct account *account);

static inline bool tier_wanted(
	const struct region *region, enum tier_event kind, enum tier_verdict verdict)
{
	return region->log & (verdict == TIER_OK ? TIER_BIT(kind) : TIER_BIT_FAILED(kind));
}

static inline enum tier_verdict verdict_of(enum transport_fail why)
{
	if (why == TRANSPORT_FAULT)
		return TIER_FAULT;
	return why == TRANSPORT_OK ? TIER_OK : TIER_UNDELIVERABLE;
}

/* The same of what this process has begun. Front ends with two-sided messages tell a peer
 * that has gone from one that is silent. */
static inline enum tier_verdict sent_verdict(const struct space *space, enum transport_fail why)
{
	const bool gone = why == TRANSPORT_RESTARTED || why == TRANSPORT_ABSENT;

	return gone && space->two_sided ? TIER_CLOSED : verdict_of(why);
}

/* T8. Is memory there from which data will be sent? A look costs some 10 ns a page, so a peer that
 * asks for a very long range gets no look at all of it. */
#define LOOK_MAX (UINT64_C(1) << 28)
static inline bool memory_is_there(const struct map *memory)
{
	return !memory->vector ||
	       guard_probe(memory, 0, memory->length < LOOK_MAX ? memory->length : LOOK_MAX, false);
}

static inline uint32_t region_number(const struct space *space, const struct region *region)
{
	return (uint32_t)(segment_region(space->segment, 0) - region);
}

static inline struct attachment *attachment_of(
	const struct space *space, const struct region *region)
{
	return segment_attachment(space->segment, region_number(space, region));
}

/* The counter of a handle; NULL: none, or it is gone. */
static inline struct event_counter *counter_alive(struct event_counter *counter, uint64_t handle)
{
	return counter && atomic_load_explicit(&counter->gate, memory_order_relaxed) == handle
		       ? counter
		       : NULL;
}

/* Counts so many successes, or one failure; counter: NULL: nobody wants it. */
void counter_count(struct engine *engine, struct event_counter *counter, enum tier_verdict verdict,
	uint64_t successes);

/* Counts an event of so many bytes, if that is wanted. once: one, whatever the counter counts. */
void tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once);

/* tier_process() in a space with ranks. */
static inline bool tier_rank(const struct space *space, struct process from,
	const struct message_header *header, struct process *process)
{
	const uint32_t rank = space->names ? header->cookie & NAME_RANK_MASK : header->cookie;

	if (space->portals[header->portal].strangers)
		return space->life == 0 || header->cookie == space->life;
	if (rank >= space->map_count)
		return false;
	*process = (struct process){.nid = rank};
	return process_same(space->map[rank], from) &&
	       (!space->names || space->names[rank] == header->cookie);
}

/* The process that a message says it is from, as events and lists name it; false: the space has
 * ranks, and this is not its rank. Its Portal has been checked. */
static inline bool tier_process(const struct space *space, struct process from,
	const struct message_header *header, struct process *process)
{
	*process = from;
	return !space->ranked || tier_rank(space, from, header, process);
}

/* Messages: stores, loads, atomics, and questions after them. */
void tiers_store(struct space *space, struct process from, const struct message_header *header,
	const void *data);
/* A store of which only the first data is here. */
void tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound);
void tiers_load(struct space *space, struct process from, const struct message_header *header);
/* An atomic, with or without a fetch. */
void tiers_amo(struct space *space, struct process from, const struct message_header *header,
	const void *data);
void tiers_asked(struct space *space, struct process from, const struct message_header *header);
/* Answers a store that asked for it. account: of the message; name: its operation's, at its
 * initiator. */
void store_answer(struct space *space, struct process to, uint16_t detail,
	enum tier_verdict verdict, const struct account *account, uint64_t offset, uint64_t name);
/* Answers one that is refused, and moves nothing. detail: of the answer, with the verdict. */
void tiers_refuse(struct engine *engine, struct process from, const struct message_header *header,
	unsigned detail);
/* The last of a store has been placed, or will not come; an answer to a load has been sent. */
void tiers_stored(struct engine *engine, struct operation *operation, enum transport_fail why);
void tiers_served(struct engine *engine, struct operation *operation, enum transport_fail why);

/* A message of a rank's begins (1) or is over (-1). */
void tiers_arriving(struct space *space, uint32_t rank, int more);

/* Commands. */
/* The answer to a command of a space with tiers; UNKNOWN: there is no such. */
enum answer tiers_answer(struct space *space, const struct command *command);
/* A descriptor's region has been bound. */
void tiers_bound(struct space *space, struct region *region);
/* A descriptor that was released goes, unless an operation is pending. */
void tiers_release(struct space *space, struct region *region);
/* An operation of a descriptor's region is over. */
static inline void tiers_leave(struct space *space, struct region *region)
{
	if (region->state == REGION_LEAVING)
		tiers_release(space, region);
}

#endif
