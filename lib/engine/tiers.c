/* SPDX-License-Identifier: BSD-3-Clause */
/* tiers.c - see tiers.h.
 *
 * T1. Nothing of a request that is refused is seen at the target but a count of drops.
 * T2 stands in tier_entry.h.
 * T3. An operation stops being pending before its event is published: a program that reads the
 *     event may withdraw the entry.
 * T4. A counter has changed before the event that tells of the same can be seen.
 * T5, T10 and T11 stand in portal.h.
 * T6. An atomic is carried out where its request is taken, in one go: once, as the request comes
 *     once. The values that it found are answered from a copy, which the answer owns.
 * T7. A load of at most AMO_BYTES_MAX is answered from a copy as well: later messages do not change
 *     the data that it returns. So is one that gets VOID_BYTES or less of what it asked for: so few
 *     must not go while the transport has them.
 * T8. A message to memory that is not there is one that was accepted, and failed (TIER_FAULT): its
 *     event and its answer say so, and that it moved nothing, although a part may have been
 *     written. Atomics look at their memory first, and longer loads at the first LOOK_MAX bytes of
 *     theirs: memory that goes after that makes the answer void, of which both events tell.
 * T9. Requests of a process that follow one which was refused for lack of memory are refused as
 *     well, in a space with a life, until the process says that it repeats them (MESSAGE_RESUME):
 *     so they are carried out in the order in which the process sent them first.
 */
#include <engine/tiers.h>

#include <base/guard.h>
#include <engine/amo.h>
#include <engine/delivery.h>
#include <engine/letters.h>
#include <engine/logging.h>
#include <engine/outcome.h>
#include <engine/portal.h>
#include <engine/statistics.h>
#include <engine/tally.h>
#include <engine/tier_entry.h>
#include <engine/triggered.h>
#include <engine/unexpected.h>

/* Into the way of a store, the usual message. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* --- events and counts */

void tier_log(struct space *space, struct queue *queue, const struct tier_event_head *event,
	const struct account *account)
{
	struct logging logging;
	uint64_t lost;

	if (!queue)
		return;
	lost = queue->lost;
	logging = queue_claim(queue); /* it overwrites: there is a place */
	counter_add(&segment_counters(space->segment)->events_lost, queue->lost - lost);
	event_word_write(logging.slot, EVENT_REGION,
		(uint64_t)event->kind << TIER_KIND_AT | (uint64_t)event->tier << TIER_LIST_AT |
			(uint64_t)event->verdict << TIER_VERDICT_AT |
			account->amo << TIER_OPERATION_AT);
	event_word_write(logging.slot, EVENT_START, event->start);
	event_word_write(logging.slot, EVENT_USER, event->user);
	event_word_write(logging.slot, EVENT_VALUE, account->value);
	account_write(logging.slot, account);
	event_publish(space, queue, &logging, 1);
	if (queue->controlled != 0 && queue_used(queue) > queue->refuse_at)
		portals_exhaust(space, queue);
}

/* A counter has been changed. */
static void counter_review(struct engine *engine, struct event_counter *counter)
{
	PROBE(count, atomic_load_explicit(&counter->gate, memory_order_relaxed), counter->success,
		counter->failure);
	trigger_review(&engine->triggers, counter->triggers, event_counter_sum(counter));
	engine_touch_counter(engine, counter);
}

static void counter_change(
	struct engine *engine, struct event_counter *counter, uint64_t success, uint64_t failure)
{
	event_counter_add(counter, success, failure);
	counter_review(engine, counter);
}

void counter_count(struct engine *engine, struct event_counter *counter, enum tier_verdict verdict,
	uint64_t successes)
{
	if (counter && verdict == TIER_OK)
		counter_change(engine, counter, successes, 0);
	else if (counter)
		counter_change(engine, counter, 0, 1);
}

void tier_count(struct space *space, const struct region *region, enum tier_event kind,
	enum tier_verdict verdict, uint64_t bytes, bool once)
{
	const struct attachment *attachment = attachment_of(space, region);

	if (attachment->counts & TIER_BIT(kind))
		counter_count(space->engine,
			counter_alive(attachment->counted, attachment->counter), verdict,
			attachment->flags & ATTACHMENT_BYTES && !once ? bytes : 1);
}

/* --- requests */

/* What a request has found. */
struct find {
	struct region *region; /* that takes it */
	struct attachment *attachment;
	struct placement placement;
	struct process process; /* of the initiator, as events name it */
};

/* Places a request, whole elements of it, in an entry; false: the entry is passed over, because it
 * is too small, or for shorter messages. */
static ALWAYS_INLINE bool entry_fits(const struct region *region,
	const struct attachment *attachment, const struct message_header *header, uint64_t element,
	struct placement *placement)
{
	uint64_t room;

	if (attachment->most != 0 && header->requested > attachment->most)
		return false;
	/* What lies below the base becomes an offset that is beyond the region. */
	placement->offset = region->options & REGION_REMOTE_OFFSET
				    ? header->offset - attachment->base
				    : region->offset;
	room = placement->offset < region->length ? region->length - placement->offset : 0;
	placement->length = header->requested <= room ? header->requested : room;
	placement->length &= -element; /* a power of two */
	return (placement->offset <= region->length && header->requested <= room) ||
	       region->options & REGION_TRUNCATE;
}

/* The entry that decides; false: there is none. find->process is known. Receives, whose numbers are
 * behind those of entries, have no region: a load that a peer sends to their Portal passes them. */
static ALWAYS_INLINE bool entry_search(struct space *space, const struct message_header *header,
	uint64_t element, struct find *find)
{
	const struct match_key key = {
		.bits = header->match_bits, .nid = find->process.nid, .pid = find->process.pid};

	for (unsigned tier = 0; tier < TIERS; tier++) {
		struct match_list *list = portal_list(space, header->portal, tier);
		uint32_t i = match_first(&space->entries, list, &key);

		for (; i != MATCH_NONE; i = match_next(&space->entries, list, i, &key)) {
			if (i >= space->segment->limits.entries)
				continue;
			find->region = segment_region(space->segment, i);
			find->attachment = segment_attachment(space->segment, i);
			if (entry_fits(find->region, find->attachment, header, element,
				    &find->placement))
				return true;
		}
	}
	return false;
}

static inline enum tier_verdict entry_judge(struct space *space, const struct find *find,
	const struct message_header *header, uint8_t needs)
{
	uint32_t uid = find->attachment->uid;

	if (uid != UINT32_MAX && uid != header->uid) {
		space_count(space, dropped_permission);
		return TIER_PERMISSION;
	}
	if ((find->region->options & needs) != needs) {
		space_count(space, dropped_operation);
		return TIER_OPERATION;
	}
	return TIER_OK;
}

/* T5 */
static __attribute__((noinline)) bool portal_has_places(const struct space *space, uint32_t portal,
	const struct region *region, const struct attachment *attachment, uint64_t length)
{
	const struct placement placement = {.length = length};
	const struct queue *queue = region_queue(region);
	uint64_t places =
		1 + (entry_ends(region, attachment, &placement) ? entry_places(space, region) : 0);

	return !queue ||
	       queue_used(queue) + queue->incoming + places <= space->portals[portal].most;
}

/* A request that no entry takes, or that there is no place for. Returns true if that disables its
 * Portal. */
static bool request_drop(
	struct space *space, struct process from, const struct message_header *header)
{
	if (space->portals[header->portal].controlled) {
		space_count(space, dropped_disabled);
		portal_exhaust(space, header->portal);
		return true;
	}
	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested, -1);
	space_count(space, dropped_no_match);
	return false;
}

/* T10. A message to a Portal for strangers. It has no data and is not kept. */
static __attribute__((noinline)) enum tier_verdict stranger_admit(struct space *space,
	struct process from, const struct message_header *header, const struct region *region)
{
	const struct queue *queue = region_queue(region);

	if (header->requested != 0) {
		space_count(space, dropped_operation);
		return TIER_OPERATION;
	}
	if (!queue ||
		stranger_has_place(space, queue, space->portals[header->portal].most, from, false))
		return TIER_OK;
	space_count(space, dropped_share);
	return TIER_REFUSED;
}

/* T11. If its Portal has shares, and it makes an event. */
static __attribute__((noinline)) bool sharer_admit(struct space *space, struct process from,
	const struct message_header *header, const struct region *region)
{
	const uint64_t shared = space->portals[header->portal].shared;
	const struct queue *queue = region_queue(region);

	if (shared == 0 || !queue || region->log == 0 || peer_has_place(space, queue, shared, from))
		return true;
	space_count(space, dropped_share);
	return false;
}

/* T9. Are processes held? One is no more when it repeats its requests, or is forgotten. */
static void held_look(struct engine *engine)
{
	engine->operations_shared = transport_marks(engine->transport) != 0 ? 0 : OPERATIONS_SHARED;
}

/* What request_granted() does when there is little memory, or processes are held. */
static __attribute__((noinline)) bool request_scrimped(
	struct space *space, struct process from, const struct message_header *header)
{
	struct engine *engine = space->engine;

	if (!(space->life != 0 && transport_is_marked(engine->transport, from)) &&
		operation_granted(engine, from) && operation_reserve(engine, 1) &&
		answer_granted(engine, from, header)) {
		held_look(engine);
		return true;
	}
	if (space->life != 0)
		transport_mark(engine->transport, from, true);
	held_look(engine);
	return false;
}

/* Is there memory for an operation, and for what answers the request? */
static ALWAYS_INLINE bool request_granted(
	struct space *space, struct process from, const struct message_header *header)
{
	struct engine *engine = space->engine;

	return (pool_taken(&engine->operations) < engine->operations_shared &&
		       operation_reserve(engine, 1) && answer_granted(engine, from, header)) ||
	       request_scrimped(space, from, header);
}

/* Does its initiator repeat a request that finds no memory (T9; rma.c, C7)? */
static bool request_is_repeated(const struct space *space, const struct message_header *header)
{
	return space->life != 0 || (space->two_sided && header->kind == MESSAGE_LOAD);
}

/* A request to a Portal that is not there. */
static __attribute__((noinline)) void portal_missing(
	struct space *space, struct process from, const struct message_header *header)
{
	if (header->portal == MESSAGE_RESUME && space->life != 0)
		transport_mark(space->engine->transport, from, false);
	else
		space_count(space, dropped_no_portal);
}

/* Finds the region that takes a request of elements of this size, which needs these of REGION_PUT
 * and REGION_GET. On TIER_OK *find is written, and if `operation` there is memory for one; else the
 * refusal has been counted. */
static ALWAYS_INLINE enum tier_verdict tiers_find(struct space *space, struct process from,
	const struct message_header *header, uint8_t needs, uint64_t element, bool operation,
	struct find *find)
{
	const struct segment *segment = space->segment;
	uint32_t state = PORTAL_FREE;
	enum tier_verdict verdict;
	bool header_left;

	if (header->portal < segment->limits.portals)
		state = atomic_load_explicit(
			&segment_portal(segment, header->portal)->state, memory_order_relaxed);
	if (state == PORTAL_FREE || state == PORTAL_CLAIMED) {
		portal_missing(space, from, header);
		return TIER_DROPPED;
	}
	if (!tier_process(space, from, header, &find->process)) {
		space_count(space, dropped_bad_cookie);
		return space->life != 0 ? TIER_UNDELIVERABLE : TIER_DROPPED;
	}
	if (state == PORTAL_DISABLED) {
		space_count(space, dropped_disabled);
		return TIER_REFUSED;
	}
	if (operation && !request_granted(space, from, header)) {
		space_count(space, dropped_no_memory_operation);
		return request_is_repeated(space, header) ? TIER_REFUSED : TIER_DROPPED;
	}
	if (!entry_search(space, header, element, find))
		return request_drop(space, from, header) ? TIER_REFUSED : TIER_DROPPED;
	PROBE(match, from.nid, from.pid, header->portal, header->match_bits, header->requested,
		(int)region_number(space, find->region));
	verdict = entry_judge(space, find, header, needs);
	if (verdict == TIER_PERMISSION)
		space_deny(space, from, header, "the entry that it matches", "dropped_permission");
	if (verdict != TIER_OK)
		return verdict;
	if (space->portals[header->portal].strangers && space->life == 0)
		return stranger_admit(space, from, header, find->region);
	header_left = unexpected_has_room(space, find->attachment, find->process);
	if (space->portals[header->portal].controlled) {
		if (!sharer_admit(space, from, header, find->region))
			return TIER_REFUSED;
		if (!header_left || !portal_has_places(space, header->portal, find->region,
					    find->attachment, find->placement.length))
			return request_drop(space, from, header) ? TIER_REFUSED : TIER_DROPPED;
	}
	if (!header_left) {
		space_count(space, dropped_no_header);
		return TIER_DROPPED;
	}
	return TIER_OK;
}

/* What the event of a request says. */
static ALWAYS_INLINE struct account account_of(
	const struct find *find, const struct message_header *header)
{
	struct account account;

	account_from(&account, find->process, header);
	account.moved = find->placement.length;
	account.offset = header->offset;
	account.value = header->kind == MESSAGE_LOAD ? 0 : header->value;
	account.amo = header->kind < MESSAGE_ATOMIC ? 0 : header->detail;
	return account;
}

/* Where the first byte at an offset of a region lies, as its event says it. */
static uint64_t region_start(const struct region *region, uint64_t offset)
{
	uint64_t bytes;

	/* of all memory, too, an offset is an address */
	if (region->vector && region->vector != MAP_MEMORY && offset < region->length)
		return (uintptr_t)map_vector_run(region->vector, region->start + offset, &bytes);
	return region->start + offset;
}

static enum tally_access tally_access(enum tier_event kind, const struct account *account)
{
	if (kind == TIER_GET)
		return TALLY_READS;
	if (kind != TIER_FETCH)
		return TALLY_WRITES;
	return account->value < TALLY_ACCESSES ? (enum tally_access)account->value : TALLY_CHANGES;
}

/* An access to an entry with ATTACHMENT_TALLY has ended. */
static __attribute__((noinline)) void tally_count(struct space *space, const struct region *region,
	enum tier_event kind, enum tier_verdict verdict, const struct account *account)
{
	struct tally *tally = (struct tally *)(uintptr_t)region->user;
	const enum tally_access access = tally_access(kind, account);
	struct queue *queue = region_queue(region);

	if (!(atomic_load_explicit(&tally->wanted, memory_order_relaxed) & 1u << access))
		return;
	/* It needs to write: its initiator then sends a load instead. */
	if (kind == TIER_FETCH && access == TALLY_READS && verdict != TIER_OK)
		return;
	counter_add(verdict == TIER_OK ? &tally->successes[access] : &tally->failures[access], 1);
	if (queue && !space->closing &&
		atomic_exchange_explicit(&tally->listed, 1, memory_order_acq_rel) == 0)
		outcome_publish(space, queue, &tally->outcome);
}

/* T4. The same of a request, which a tally counts if there is no counter. */
static ALWAYS_INLINE void request_count(struct space *space, const struct region *region,
	const struct attachment *attachment, enum tier_event kind, enum tier_verdict verdict,
	const struct account *account)
{
	struct event_counter *counter;

	if (!(attachment->counts & TIER_BIT(kind)))
		return;
	counter = counter_alive(attachment->counted, attachment->counter);
	if (counter)
		counter_count(space->engine, counter, verdict,
			attachment->flags & ATTACHMENT_BYTES ? account->moved : 1);
	else if (attachment->flags & ATTACHMENT_TALLY)
		tally_count(space, region, kind, verdict, account);
}

/* T3, T4. A message that took a region has ended; start: of its event. */
static ALWAYS_INLINE void request_end(struct space *space, struct region *region,
	const struct attachment *attachment, enum tier_event kind, enum tier_verdict verdict,
	uint64_t start, const struct account *account)
{
	request_count(space, region, attachment, kind, verdict, account);
	if (tier_wanted(region, kind, verdict)) {
		const struct tier_event_head event = {
			.kind = kind,
			.verdict = verdict,
			.tier = attachment->tier,
			.user = region->user,
			.start = start,
		};

		tier_log(space, region_queue(region), &event, account);
	}
	entry_settle(space, region);
}

/* The same of a request whose data have been moved in one go, or were not there. */
static void request_pass(struct space *space, const struct find *find, enum tier_event kind,
	enum tier_verdict verdict, struct account *account)
{
	const uint64_t start = region_start(find->region, find->placement.offset);

	entry_use(space, find->region, find->attachment, &find->placement);
	unexpected_keep(
		space, find->region, find->attachment, kind, verdict, account, start, false);
	request_end(space, find->region, find->attachment, kind, verdict, start, account);
}

/* What the answer to a message says of the region that took it. To be known before its end, which
 * may free the region. */
static uint16_t answer_detail(
	const struct region *region, const struct attachment *attachment, bool store)
{
	if (store && region->options & REGION_NO_ACK)
		return TIER_SILENT;
	return attachment->tier == 0 ? 0 : MESSAGE_TIER;
}

/* T8. How a message to a region ended whose data have been moved, or not. */
static enum tier_verdict account_verdict(struct account *account, bool moved)
{
	if (moved)
		return TIER_OK;
	account->moved = 0;
	return TIER_FAULT;
}

void store_answer(struct space *space, struct process to, uint16_t detail,
	enum tier_verdict verdict, const struct account *account, uint64_t offset, uint64_t name)
{
	struct message_header answer = {
		.kind = MESSAGE_STORED,
		.space = space->number,
		.detail = (uint16_t)(detail | (unsigned)verdict), /* SILENT hides it */
		.value = account->moved,
		.operation = name,
		.offset = offset,
	};

	if (space->two_sided) {
		/* U4. No sender asks where in the memory of a receiver its message is. */
		answer.offset = space->portals[account->portal].strangers
					? 0
					: share_answer(space, account->nid, account->value);
		notice_send_late(space->engine, to, &answer);
	} else {
		notice_send(space->engine, to, &answer);
	}
}

/* Sends the answer to a load or a fetch. */
static void load_answer(struct space *space, struct operation *answer, uint16_t detail,
	const struct message_header *header, const struct placement *placement)
{
	outgoing_send(space->engine, answer,
		&(struct message_header){
			.kind = MESSAGE_LOADED,
			.space = space->number,
			.detail = detail,
			.value = placement->length,
			.operation = header->operation,
			.offset = placement->offset,
		});
}

void tiers_refuse(struct engine *engine, struct process from, const struct message_header *header,
	unsigned detail)
{
	bool load = header->kind == MESSAGE_LOAD || header->kind == MESSAGE_FETCH ||
		    (header->kind == MESSAGE_ASK && header->detail == MESSAGE_ASK_LOAD);
	struct message_header answer = {
		.kind = load ? MESSAGE_LOADED : MESSAGE_STORED,
		.space = header->space,
		.detail = (uint16_t)detail,
		.operation = header->operation,
	};

	if (header->kind == MESSAGE_STORE && header->detail == MESSAGE_REFUSALS) {
		answer.portal = header->portal;
		answer.cookie = header->cookie;
	} else if (header->operation == 0) {
		return;
	}
	if (!operation_granted(engine, from)) {
		engine_count(engine, dropped_no_memory_operation);
		return;
	}
	notice_send(engine, from, &answer);
}

/* Answers a load or a fetch whose data have been copied to its answer, or were not there. */
static void copy_answer(struct space *space, struct operation *answer, struct process from,
	unsigned detail, const struct message_header *header, const struct placement *placement)
{
	if ((detail & MESSAGE_VERDICT) == TIER_OK) {
		load_answer(space, answer, (uint16_t)detail, header, placement);
		return;
	}
	answer_end(space->engine, answer);
	tiers_refuse(space->engine, from, header, detail);
}

/* U6. Is it kept with its data by an entry that has no memory for that? */
static ALWAYS_INLINE bool store_is_copied(
	const struct space *space, const struct message_header *header, const struct find *find)
{
	return header->detail == MESSAGE_REFUSALS && space->two_sided &&
	       find->placement.length < header->requested && header->requested <= COPIED_MAX &&
	       header_is_needed(find->attachment);
}

/* A store whose data, as far as it is wanted, is here. */
static ALWAYS_INLINE void store_take(struct space *space, struct process from,
	const struct message_header *header, const void *data, const struct find *find)
{
	struct region *region = find->region;
	const struct map memory = placement_map(region, &find->placement);
	struct account account = account_of(find, header);
	const uint64_t start = region_start(region, find->placement.offset);
	uint16_t detail =
		header->operation != 0 ? answer_detail(region, find->attachment, true) : 0;
	enum tier_verdict verdict;

	space_count(space, puts_received);
	entry_use(space, region, find->attachment, &find->placement);
	verdict = account_verdict(&account, map_copy_in(&memory, 0, data, find->placement.length));
	PROBE(place, from.nid, from.pid, start, find->placement.length);
	if (store_is_copied(space, header, find))
		unexpected_copy(space, &account, data);
	else
		unexpected_keep(
			space, region, find->attachment, TIER_PUT, verdict, &account, start, false);
	request_end(space, region, find->attachment, TIER_PUT, verdict, start, &account);
	if (header->operation != 0)
		store_answer(space, from, detail, verdict, &account, find->placement.offset,
			header->operation);
}

void tiers_store(struct space *space, struct process from, const struct message_header *header,
	const void *data)
{
	struct find find;
	enum tier_verdict verdict =
		tiers_find(space, from, header, REGION_PUT, 1, header->operation != 0, &find);

	if (verdict == TIER_OK)
		store_take(space, from, header, data, &find);
	else
		tiers_refuse(space->engine, from, header, verdict);
}

/* Bytes of an atomic's operand, which come before the source. */
static uint64_t operand_size(const struct message_header *header)
{
	return amo_has_operand(header->detail & 0xff) ? amo_size(header->detail >> 8) : 0;
}

/* Is an atomic one that there is, of this kind of message, and of as much data as it may have? */
static bool amo_is_sound(const struct message_header *header)
{
	const unsigned operation = header->detail & 0xff, type = header->detail >> 8;

	if (!amo_is_valid(operation, type))
		return false;
	if (!amo_has_operand(operation))
		return header->requested <= AMO_BYTES_MAX;
	return header->kind == MESSAGE_FETCH && header->requested >= amo_size(type) &&
	       header->requested <= 2 * amo_size(type);
}

/* Carries out an atomic; answer: gets the elements as they were, or NULL. Returns false if some of
 * the memory is not there. */
static bool amo_do(const struct map *memory, const struct message_header *header,
	const uint8_t *data, const struct operation *answer)
{
	void *old = answer ? (void *)(uintptr_t)answer->message.memory.start : NULL;

	return (!memory->vector || guard_probe(memory, 0, memory->length, true)) &&
	       amo_apply(memory, 0, header->detail & 0xff, header->detail >> 8,
		       data + operand_size(header), data, old, memory->length);
}

/* An atomic that a region takes. T6 */
static void amo_take(struct space *space, struct process from, const struct message_header *header,
	const uint8_t *data, const struct find *find)
{
	const struct placement *placement = &find->placement;
	struct region *region = find->region;
	const struct map memory = placement_map(region, placement);
	struct account account = account_of(find, header);
	bool fetches = header->kind == MESSAGE_FETCH;
	const enum tier_event kind = fetches ? TIER_FETCH : TIER_ATOMIC;
	uint16_t detail = answer_detail(region, find->attachment, !fetches);
	struct operation *answer =
		fetches ? answer_begin(space->engine, from, placement->length) : NULL;
	enum tier_verdict verdict;

	if (fetches)
		space_count(space, gets_received);
	else
		space_count(space, puts_received);
	verdict = account_verdict(&account, amo_do(&memory, header, data, answer));
	request_pass(space, find, kind, verdict, &account);
	if (fetches)
		copy_answer(space, answer, from, detail | (unsigned)verdict, header, placement);
	else if (header->operation != 0)
		store_answer(space, from, detail, verdict, &account, placement->offset,
			header->operation);
}

void tiers_amo(struct space *space, struct process from, const struct message_header *header,
	const void *data)
{
	struct message_header request = *header;
	enum tier_verdict verdict;
	struct find find;
	bool fetches = header->kind == MESSAGE_FETCH;

	if (!amo_is_sound(header)) {
		space_count(space, dropped_bad_message);
		return;
	}
	if (space->two_sided) {
		space_count(space, dropped_operation);
		tiers_refuse(space->engine, from, header, TIER_OPERATION);
		return;
	}
	request.requested -= operand_size(header);
	verdict = tiers_find(space, from, &request, fetches ? REGION_PUT | REGION_GET : REGION_PUT,
		amo_size(header->detail >> 8), fetches || header->operation != 0, &find);
	if (verdict == TIER_OK)
		amo_take(space, from, &request, data, &find);
	else
		tiers_refuse(space->engine, from, header, verdict);
}

void tiers_arriving(struct space *space, uint32_t rank, int more)
{
	if (rank < space->ranks)
		space->arriving_of[rank] += (uint32_t)more;
}

/* Begins an operation that a remote process asked for. */
static struct operation *request_begin(struct space *space, enum operation_kind kind,
	struct process from, const struct message_header *header, const struct find *find)
{
	struct operation *operation = operation_begin(space->engine, kind);
	struct region *region = find->region;

	operation->peer = from;
	operation->space = space;
	operation->region = region;
	operation->remote = header->operation;
	operation->request_offset = find->placement.offset;
	operation->account = account_of(find, header);
	tiers_arriving(space, find->process.nid, 1);
	region->pending++;
	space->portals[header->portal].pending++;
	places_keep(region, 1);
	entry_use(space, region, find->attachment, &find->placement);
	operation->kept = unexpected_keep(space, region, find->attachment,
		kind == OPERATION_RECEIVE ? TIER_PUT : TIER_GET, TIER_OK, &operation->account,
		region_start(region, find->placement.offset), true);
	return operation;
}

/* It is over: no longer pending, then its event. */
static void request_over(struct operation *operation, enum tier_event kind, enum transport_fail why)
{
	struct region *region = operation->region;
	struct space *space = operation->space;
	enum tier_verdict verdict = verdict_of(why);

	if (verdict == TIER_FAULT)
		operation->account.moved = 0;
	tiers_arriving(space, operation->account.nid, -1);
	region->pending--;
	places_give(region, 1);
	space->portals[operation->account.portal].pending--;
	request_end(space, region, attachment_of(space, region), kind, verdict,
		region_start(region, operation->request_offset), &operation->account);
	unexpected_ended(space, operation->kept, verdict);
	portal_settle(space, operation->account.portal);
}

void tiers_store_begin(struct space *space, struct process from,
	const struct message_header *header, const struct record *record, struct inbound *inbound)
{
	struct operation *operation;
	struct find find;
	enum tier_verdict verdict = tiers_find(space, from, header, REGION_PUT, 1, true, &find);

	if (verdict != TIER_OK) {
		tiers_refuse(space->engine, from, header, verdict);
		return;
	}
	/* It has not come in one piece: from nobody who keeps to the rules. */
	if (store_is_copied(space, header, &find)) {
		space_count(space, dropped_bad_message);
		tiers_refuse(space->engine, from, header, TIER_DROPPED);
		return;
	}
	/* U7. A message that is kept without its data does not arrive: it can be fetched. */
	if (find.placement.length <= record->data_length) {
		store_take(space, from, header, record->data, &find);
		return;
	}
	space_count(space, puts_received);
	operation = request_begin(space, OPERATION_RECEIVE, from, header, &find);
	inbound->memory = placement_map(find.region, &find.placement);
	inbound->context = operation;
	inbound->want_end = true;
}

void tiers_stored(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	struct space *space = operation->space;
	uint16_t detail =
		answer_detail(operation->region, attachment_of(space, operation->region), true);
	struct operation copy;

	request_over(operation, TIER_PUT, why);
	copy = *operation;
	/* Freed first, so that the answer certainly has an operation: perhaps this one. */
	operation_free(engine, operation);
	if ((why == TRANSPORT_OK || why == TRANSPORT_FAULT) && copy.remote != 0)
		store_answer(space, copy.peer, detail, verdict_of(why), &copy.account,
			copy.request_offset, copy.remote);
}

/* T7. */
static void load_take(struct space *space, struct process from, const struct message_header *header,
	const struct find *find)
{
	const struct placement *placement = &find->placement;
	const struct map memory = placement_map(find->region, placement);
	struct operation *answer = answer_begin(space->engine, from, placement->length);
	struct account account = account_of(find, header);
	uint16_t detail = answer_detail(find->region, find->attachment, false);
	enum tier_verdict verdict = account_verdict(
		&account, map_copy_out(&memory, 0, (void *)(uintptr_t)answer->message.memory.start,
				  placement->length));

	request_pass(space, find, TIER_GET, verdict, &account);
	copy_answer(space, answer, from, detail | (unsigned)verdict, header, placement);
}

/* A longer load, from memory that is not there. */
static void load_fail(struct space *space, struct process from, const struct message_header *header,
	const struct find *find)
{
	struct account account = account_of(find, header);
	uint16_t detail = answer_detail(find->region, find->attachment, false);

	request_pass(space, find, TIER_GET, account_verdict(&account, false), &account);
	tiers_refuse(space->engine, from, header, detail | TIER_FAULT);
}

/* A longer load: it is answered from where it lies. */
static void load_serve(struct space *space, struct process from,
	const struct message_header *header, const struct find *find)
{
	const struct map memory = placement_map(find->region, &find->placement);
	struct operation *operation;
	uint16_t detail;

	if (!memory_is_there(&memory)) {
		load_fail(space, from, header, find);
		return;
	}
	detail = answer_detail(find->region, find->attachment, false);
	operation = request_begin(space, OPERATION_SERVE, from, header, find);
	list_append(&space->engine->serving, &operation->link);
	operation->message.memory = memory;
	load_answer(space, operation, detail, header, &find->placement);
}

void tiers_load(struct space *space, struct process from, const struct message_header *header)
{
	enum tier_verdict verdict;
	struct find find;

	/* An entry may be longer: it may be all memory. */
	if (header->requested > MESSAGE_LENGTH_MAX) {
		space_count(space, dropped_bad_message);
		return;
	}
	verdict = tiers_find(space, from, header, REGION_GET, 1, true, &find);
	if (verdict != TIER_OK) {
		tiers_refuse(space->engine, from, header, verdict);
		return;
	}
	space_count(space, gets_received);
	if (header->requested <= AMO_BYTES_MAX || find.placement.length <= VOID_BYTES)
		load_take(space, from, header, &find);
	else
		load_serve(space, from, header, &find);
}

void tiers_served(struct engine *engine, struct operation *operation, enum transport_fail why)
{
	link_remove(&operation->link);
	if (why == TRANSPORT_OK && operation->message.missing)
		why = TRANSPORT_FAULT;
	request_over(operation, TIER_GET, why);
	operation_free(engine, operation);
}

/* Only a load that is answered from the region's memory is found in engine.serving. All other
 * answers were sent when their request was taken, or ended, or are late and are sent now: they are
 * before this one, and the initiator does not hear a second answer. A load of two-sided messages
 * that has had none was refused when there was no memory to say so: it is repeated (rma.c, C7). */
void tiers_asked(struct space *space, struct process from, const struct message_header *header)
{
	const bool again = space->two_sided && header->detail == MESSAGE_ASK_LOAD;

	notices_send(space->engine);
	list_each (const struct operation, operation, &space->engine->serving, link)
		if (operation->space == space && operation->remote == header->operation &&
			process_same(operation->peer, from))
			return;
	tiers_refuse(space->engine, from, header, again ? TIER_REFUSED : TIER_UNDELIVERABLE);
}

/* --- descriptors, counters */

void tiers_bound(struct space *space, struct region *region)
{
	struct attachment *attachment = attachment_of(space, region);

	attachment->counted = counter_named(space->segment, attachment->counter);
}

void tiers_release(struct space *space, struct region *region)
{
	const struct segment *segment = space->segment;
	const uint32_t index = region_number(space, region);

	if (region->pending != 0)
		return;
	region->state = REGION_FREE;
	if (index < segment->limits.attached)
		segment_give(segment, segment->free_entries, index);
	else
		segment_give(segment, segment->free_regions, index - segment->limits.attached);
}

static enum answer region_release(struct space *space, const struct command *command)
{
	struct region *region =
		region_find(space, command->object.index, command->object.generation);

	if (!region)
		return ANSWER_GONE;
	atomic_store_explicit(&region->gate, 0, memory_order_release);
	region->state = REGION_LEAVING;
	tiers_release(space, region);
	return ANSWER_OK;
}

static enum answer counter_answer(struct space *space, const struct command *command)
{
	struct event_counter *counter = counter_of(space, command);

	if (!counter)
		return ANSWER_GONE;
	switch (command->kind) {
	case COMMAND_COUNTER_ADD:
		counter_change(space->engine, counter, command->count.by.success,
			command->count.by.failure);
		trace(TRACE_COUNT, space->engine->interface, 0, event_counter_sum(counter));
		break;
	case COMMAND_COUNTER_SET:
		event_counter_set(counter, command->count.by);
		counter_review(space->engine, counter);
		trace(TRACE_COUNT, space->engine->interface, 0, event_counter_sum(counter));
		break;
	default:
		triggered_drop(space, counter);
		event_counter_close(counter);
	}
	return ANSWER_OK;
}

static enum answer map_set(struct space *space, const struct command *command)
{
	const uint32_t *old = space->names;
	uint32_t old_count = old ? space->map_count : 0;

	space->map = (const struct process *)(uintptr_t)command->object.other;
	space->map_count = command->object.index;
	space->names = command->object.portal != 0
			       ? (const uint32_t *)(const void *)(space->map + space->map_count)
			       : NULL;
	if (!space->names || space->kept_share == 0)
		return ANSWER_OK;
	for (uint32_t i = 0; i < old_count && i < space->map_count && i < space->ranks; i++)
		if (old[i] != space->names[i]) {
			share_reset(space, i);
			sources_reset(space, i);
		}
	return ANSWER_OK;
}

static enum answer rank_ended(struct space *space, const struct command *command)
{
	uint32_t rank = command->object.index;

	unexpected_return(space);
	return rank < space->ranks && space->kept_of[rank] == 0 && space->arriving_of[rank] == 0
		       ? ANSWER_OK
		       : ANSWER_PENDING;
}

enum answer tiers_answer(struct space *space, const struct command *command)
{
	switch (command->kind) {
	case COMMAND_SEARCH:
		return unexpected_search(space, (const struct long_command *)(const void *)command);
	case COMMAND_WITHDRAW:
		return tiers_withdraw(space, command);
	case COMMAND_RECEIVE_PASS:
		return unexpected_pass(space, command);
	case COMMAND_RECEIVE_WITHDRAW:
		return letters_withdraw(space, command);
	case COMMAND_REGION_RELEASE:
		return region_release(space, command);
	case COMMAND_PORTAL_OPEN:
	case COMMAND_PORTAL_CLOSE:
	case COMMAND_PORTAL_ENABLE:
	case COMMAND_PORTAL_DISABLE:
		return portal_answer(space, command);
	case COMMAND_COUNTER_SET:
	case COMMAND_COUNTER_ADD:
	case COMMAND_COUNTER_FREE:
		return counter_answer(space, command);
	case COMMAND_MAP:
		return map_set(space, command);
	case COMMAND_RANK_ENDED:
		return rank_ended(space, command);
	default:
		return ANSWER_UNKNOWN;
	}
}
