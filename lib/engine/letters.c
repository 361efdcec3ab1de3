/* SPDX-License-Identifier: BSD-3-Clause */
/* letters.c - see letters.h. */
#include <engine/letters.h>

#include <assert.h>

#include <engine/credit.h>
#include <engine/delivery.h>
#include <engine/fetch.h>
#include <engine/outcome.h>
#include <engine/portal.h>
#include <engine/rma.h>
#include <engine/statistics.h>
#include <engine/tiers.h>
#include <engine/unexpected.h>

/* As calls, what each message needs would cost more instructions than in one piece
 * (scripts/instructions, mxpair). */
#define LETTERS_INLINE static inline __attribute__((always_inline))

/* A receive that has a slot. */
struct posted {
	struct outcome *outcome; /* NULL: the slot is free */
	uint64_t start;          /* as in struct map; of a free slot: the next free one */
	uint64_t length;
	const struct map_vector *vector;
};

void letters_place(struct space *space, struct pages_tables *tables)
{
	space->posted_free = MATCH_NONE;
	space->posted =
		pages_table(tables, space->segment->limits.receives, sizeof(*space->posted));
}

/* --- slots */

/* The index of a slot in the table of match entries. */
static inline uint32_t slot_entry(const struct space *space, uint32_t slot)
{
	return space->segment->limits.entries + slot;
}

/* The program has counted: there is one (L2). */
static inline uint32_t slot_take(struct space *space)
{
	uint32_t slot = space->posted_free;

	if (slot == MATCH_NONE)
		return space->posted_made++;
	space->posted_free = (uint32_t)space->posted[slot].start;
	return slot;
}

/* A receive leaves its list. */
static inline void slot_leave(struct space *space, struct match_list *list, uint32_t slot)
{
	struct posted *posted = &space->posted[slot];

	match_remove(&space->entries, list, slot_entry(space, slot));
	posted->outcome = NULL;
	posted->start = space->posted_free;
	space->posted_free = slot;
}

/* A receive gets a slot, and waits for its message. */
static inline void receive_append(struct space *space, const struct command *command)
{
	const uint32_t portal = command->receive.portal;
	struct outcome *outcome = (struct outcome *)(uintptr_t)command->receive.outcome;
	const uint32_t slot = slot_take(space);
	struct match_entry *entry;

	assert(slot < space->segment->limits.receives);
	space->posted[slot] = (struct posted){
		.outcome = outcome,
		.start = command->position == RECEIVE_VECTOR ? 0 : command->receive.start,
		.length = command->receive.length,
		.vector = receive_vector(command),
	};
	outcome->slot = slot;
	entry = match_entry(&space->entries, slot_entry(space, slot));
	entry->bits = command->receive.bits;
	entry->ignore = command->receive.ignore;
	entry->nid = command->receive.peer;
	entry->pid = MATCH_ANY;
	entry->region = portal;
	match_push_back(&space->entries, portal_list(space, portal, 0), slot_entry(space, slot));
}

/* Perhaps a message was kept for the receive: then its program is told. */
static __attribute__((noinline)) void receive_append_late(
	struct space *space, const struct command *command)
{
	if (unexpected_give(space, command))
		engine_ring(space->engine);
	else
		receive_append(space, command);
}

/* It calls nothing in its middle, and so saves no registers. */
void letters_post(struct space *space, const struct command *command)
{
	const uint32_t portal = command->receive.portal;

	assert(portal < space->segment->limits.portals);
	if (space->kept_lists[portal].length != 0)
		receive_append_late(space, command);
	else
		receive_append(space, command);
}

enum answer letters_withdraw(struct space *space, const struct command *command)
{
	const struct outcome *outcome = (const struct outcome *)(uintptr_t)command->object.other;
	const struct match_entry *entry;

	/* The slot of one that has none any more may be another's. */
	if (outcome->slot >= space->posted_made || space->posted[outcome->slot].outcome != outcome)
		return rma_withdraw(space, command->object.other) ? ANSWER_OK : ANSWER_GONE;
	entry = match_entry(&space->entries, slot_entry(space, outcome->slot));
	slot_leave(space, portal_list(space, entry->region, 0), outcome->slot);
	return ANSWER_OK;
}

/* --- letters */

/* Its data and peer come first, so that what its header says is in fewer registers meanwhile. */
static inline struct operation *letter_begin(
	struct space *space, const struct command *command, const void *data)
{
	struct operation *operation = operation_begin(space->engine, OPERATION_LETTER);
	const struct map memory = map_of_piece(data, command->length);

	assert(command->length <= COPIED_MAX);
	(void)map_copy_out(&memory, 0, operation->copied, command->length);
	operation->space = space;
	operation->peer = command->letter.to;
	operation->dispatch = (struct dispatch *)(uintptr_t)command->letter.dispatch;
	operation->message.memory.start = (uintptr_t)operation->copied;
	operation->message.memory.vector = NULL;
	operation->message.memory.length = command->length;
	return operation;
}

void letters_send(struct space *space, const struct command *command, const void *data)
{
	struct operation *operation = letter_begin(space, command, data);
	const struct message_header header = {
		.kind = MESSAGE_STORE,
		.space = space->number,
		.detail = MESSAGE_REFUSALS,
		.uid = space->uid,
		.portal = command->letter.portal,
		.cookie = command->letter.cookie,
		.match_bits = command->letter.match_bits,
		.value = command->letter.value,
		.offset = command->letter.offset,
	};

	PROBE(put, operation, operation->peer.nid, operation->peer.pid, header.portal,
		header.match_bits, command->length);
	outgoing_send(space->engine, operation, &header);
}

void letter_lose(struct operation *operation, enum transport_fail why)
{
	struct dispatch *dispatch = operation->dispatch;
	struct space *space = operation->space;

	if (!atomic_load_explicit(&dispatch->told, memory_order_acquire)) {
		atomic_store_explicit(&dispatch->told, true, memory_order_relaxed);
		outcome_end(space,
			(uint32_t)word_read(
				operation->message.header, offsetof(struct message_header, portal)),
			&dispatch->lost, sent_verdict(space, why));
	}
	letter_done(operation);
}

/* --- messages */

/* What a message has found. */
struct meeting {
	struct match_list *list;
	uint32_t slot;
	uint32_t rank; /* of its sender */
};

/* MEET_ENTRY: its space's tiers decide. MEET_NOTHING: they do, and no entry of the first one takes
 * it. */
enum meet { MEET_RECEIVE, MEET_ENTRY, MEET_NOTHING };

/* What a message is for. A message that is not from a rank is for no receive: the tiers refuse such
 * a message, before they look for an entry. */
LETTERS_INLINE enum meet letter_meet(struct space *space, struct process from,
	const struct message_header *header, struct meeting *meeting)
{
	struct match_key key = {.bits = header->match_bits};
	struct process process;
	uint32_t entry;

	if (header->portal >= space->segment->limits.portals ||
		atomic_load_explicit(&segment_portal(space->segment, header->portal)->state,
			memory_order_relaxed) != PORTAL_ENABLED ||
		space->portals[header->portal].strangers ||
		!tier_rank(space, from, header, &process))
		return MEET_ENTRY;
	key.nid = meeting->rank = process.nid;
	meeting->list = portal_list(space, header->portal, 0);
	entry = match_first(&space->entries, meeting->list, &key);
	if (entry == MATCH_NONE)
		return MEET_NOTHING;
	if (entry < space->segment->limits.entries)
		return MEET_ENTRY;
	meeting->slot = entry - space->segment->limits.entries;
	return MEET_RECEIVE;
}

/* May it have the receive that it has met? `operation`: it needs one. A refusal has been counted
 * and sent. */
LETTERS_INLINE bool letter_admit(struct space *space, struct process from,
	const struct message_header *header, bool operation)
{
	if (operation &&
		!(operation_granted(space->engine, from) && operation_reserve(space->engine, 1))) {
		space_count(space, dropped_no_memory_operation);
		tiers_refuse(space->engine, from, header, TIER_DROPPED);
		return false;
	}
	if (header->uid != space->uid) {
		space_count(space, dropped_permission);
		space_deny(
			space, from, header, "the receive that it matches", "dropped_permission");
		tiers_refuse(space->engine, from, header, TIER_PERMISSION);
		return false;
	}
	return true;
}

static inline struct map posted_map(const struct posted *posted, uint64_t requested)
{
	return (struct map){
		.start = posted->start,
		.vector = posted->vector,
		.length = requested < posted->length ? requested : posted->length,
	};
}

static inline void outcome_fill(
	struct outcome *outcome, uint32_t rank, const struct message_header *header)
{
	outcome->peer = rank;
	outcome->bits = header->match_bits;
	outcome->value = header->value;
	outcome->requested = header->requested;
	outcome->offset = header->offset;
	outcome->tier = 0;
}

/* A message whose data is here. */
LETTERS_INLINE void letter_take(struct space *space, struct process from,
	const struct message_header *header, const struct meeting *meeting, const void *data)
{
	const struct posted *posted = &space->posted[meeting->slot];
	const struct map memory = posted_map(posted, header->requested);
	struct outcome *outcome = posted->outcome;
	const enum tier_verdict verdict =
		map_copy_in(&memory, 0, data, memory.length) ? TIER_OK : TIER_FAULT;

	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested,
		(int)slot_entry(space, meeting->slot));
	space_count(space, puts_received);
	share_heard(space, meeting->rank);
	PROBE(place, from.nid, from.pid, map_place(&memory, 0), memory.length);
	outcome_fill(outcome, meeting->rank, header);
	slot_leave(space, meeting->list, meeting->slot);
	outcome_end(space, header->portal, outcome, verdict);
	if (header->operation != 0) {
		const struct account account = {.nid = meeting->rank,
			.portal = header->portal,
			.moved = verdict == TIER_OK ? memory.length : 0,
			.value = header->value};

		store_answer(space, from, 0, verdict, &account, 0, header->operation);
	}
}

/* U6. A letter that no entry of the first tier takes is kept with its data, where the second tier
 * keeps messages. Returns false if the tiers are to say what becomes of it. */
LETTERS_INLINE bool letter_keep(struct space *space, struct process from,
	const struct message_header *header, uint32_t rank, const void *data)
{
	const struct process process = {.nid = rank};
	const struct match_list *list = portal_list(space, header->portal, 1);
	struct account account;

	if (header->detail != MESSAGE_REFUSALS || header->operation != 0 ||
		header->requested > COPIED_MAX || header->uid != space->uid || list->length == 0 ||
		!header_has_room(space, process))
		return false;
	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested,
		(int)list->tail);
	space_count(space, puts_received);
	account_from(&account, process, header);
	account.offset = header->offset;
	account.value = header->value;
	unexpected_copy(space, &account, data);
	return true;
}

void letters_store(struct space *space, struct process from, const struct message_header *header,
	const void *data)
{
	struct meeting meeting;
	const enum meet meet = letter_meet(space, from, header, &meeting);

	if (meet == MEET_RECEIVE) {
		if (letter_admit(space, from, header, header->operation != 0))
			letter_take(space, from, header, &meeting, data);
		return;
	}
	if (meet == MEET_NOTHING && letter_keep(space, from, header, meeting.rank, data))
		return;
	if (header->portal != FETCH_PORTAL || header->match_bits != BITS_TOLD ||
		!credit_word(space, from, header))
		tiers_store(space, from, header, data);
}

void letters_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	struct operation *operation;
	struct meeting meeting;
	struct map memory;

	if (letter_meet(space, from, header, &meeting) != MEET_RECEIVE) {
		tiers_store_begin(space, from, header, record, inbound);
		return;
	}
	if (!letter_admit(space, from, header, true))
		return;
	memory = posted_map(&space->posted[meeting.slot], header->requested);
	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested,
		(int)slot_entry(space, meeting.slot));
	space_count(space, puts_received);
	share_heard(space, meeting.rank);
	operation = operation_begin(space->engine, OPERATION_RECEIVE);
	operation->peer = from;
	operation->space = space;
	operation->region = NULL;
	operation->remote = header->operation;
	operation->receive = space->posted[meeting.slot].outcome;
	operation->account = (struct account){.nid = meeting.rank,
		.portal = header->portal,
		.moved = memory.length,
		.value = header->value};
	slot_leave(space, meeting.list, meeting.slot);
	outcome_fill(operation->receive, meeting.rank, header);
	tiers_arriving(space, meeting.rank, 1);
	space->portals[header->portal].pending++;
	inbound->memory = memory;
	inbound->context = operation;
	inbound->want_end = true;
}

void letters_stored(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	struct account account = operation->account;
	const enum tier_verdict verdict = verdict_of(why);
	const struct process to = operation->peer;
	const uint64_t name = operation->remote;
	struct space *space = operation->space;

	tiers_arriving(space, account.nid, -1);
	space->portals[account.portal].pending--;
	outcome_end(space, account.portal, operation->receive, verdict);
	portal_settle(space, account.portal);
	/* Freed first, so that the answer certainly has an operation: perhaps this one. */
	operation_free(engine, operation);
	if (verdict != TIER_OK)
		account.moved = 0;
	if (name != 0 && verdict != TIER_UNDELIVERABLE)
		store_answer(space, to, 0, verdict, &account, 0, name);
}
