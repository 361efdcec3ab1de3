/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c - stores, loads, atomics and fetches that this process begins, in spaces with tiers
 * (tiers.h): from the command until the last event.
 *
 *     store, atomic    request sent -> SEND -> answer, if one is wanted -> ACK
 *     load             request sent         -> answer, data placed      -> REPLY
 *     fetch            request sent -> SEND -> answer, data placed      -> REPLY
 *
 * C1. SEND comes before ACK and REPLY. The answer may come before the transport's word on the
 *     request, and is kept until then. It proves that the request has arrived, whatever becomes of
 *     the peer.
 * C2. Every operation ends: an answer that does not come is asked for (outgoing.c, O2), and a
 *     target that is gone, or does not know the operation, fails it.
 * C3. Of a store or an atomic that fails one event tells: SEND, or ACK if SEND is not wanted. Both
 *     count. Of a fetch both SEND and REPLY tell. A store that wants an outcome has one instead of
 *     an ACK, whatever becomes of it.
 * C4. Memory that is not there fails an operation with TIER_FAULT: SEND, before anything is sent,
 *     where data would come from it; REPLY, where they would go to it. A request of up to
 *     COPIED_MAX bytes is sent from a copy. A longer one becomes void when memory goes while it is
 *     under way: SEND tells of it, and the target's event, if the request had begun there.
 * C5. A fetch has two regions, which may be one: SEND is the one's whose data it brings, REPLY the
 *     one's that its answer goes to. It is pending at both.
 * C6. A refusal of a letter (letters.h) is an ACK without a user, from the process that
 *     refuses, with the cookie that it refuses as its value. Any process can send one, whether it
 *     was sent a letter or not, so a node has a share of the places for them (portal.h, T10). What
 *     finds no place there is lost: the next store is refused, too. So is one that names a Portal
 *     to which no letter goes.
 * C7. A load of two-sided messages is refused while the target's queue has no place for its event.
 *     It is repeated, under another name, until the target answers otherwise, whatever the programs
 *     do meanwhile. It fails when its rank is no longer that of the process, which is also looked
 *     at before an answer is asked for. A load for a kept message (unexpected.h, U7) is not
 *     repeated when an entry waits for the message: its program then asks for the data itself.
 * C8. A program may give up such a load until its answer has begun to come. The load then has no
 *     region and no event, and goes on without data, repeated or not, so that the target hears that
 *     nobody needs the data any more.
 */
#include <engine/rma.h>

#include <assert.h>
#include <string.h>

#include <engine/amo.h>
#include <engine/fetch.h>
#include <engine/outcome.h>
#include <engine/portal.h>
#include <engine/statistics.h>
#include <engine/tiers.h>
#include <engine/unexpected.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Does its request bring data? */
static bool rma_stores(const struct operation *operation)
{
	return operation->rma.message != MESSAGE_LOAD;
}

/* Bytes of the operand that a request begins with. */
static uint64_t operand_size(const struct rma_line *line)
{
	if (line->message != MESSAGE_FETCH || !amo_has_operand(line->amo & 0xff))
		return 0;
	return amo_size(line->amo >> 8);
}

/* request_gather() of what came with the command, and where there is an operand. */
static __attribute__((noinline)) bool request_unpack(struct operation *operation,
	const struct rma_line *line, const uint8_t *given, const struct map *memory)
{
	uint64_t operand = operand_size(line);

	assert(operand + line->length <= sizeof(operation->copied));
	operation->message.memory = map_of_piece(operation->copied, operand + line->length);
	memcpy(operation->copied, given, operand);
	if (!line->copied)
		return map_copy_out(memory, 0, operation->copied + operand, line->length);
	memcpy(operation->copied + operand, given + operand, line->length);
	return true;
}

/* The data of a request. Returns false if some of it is not there. */
static ALWAYS_INLINE bool request_gather(struct operation *operation, const struct rma_line *line,
	const uint8_t *given, uint8_t message)
{
	const struct map memory = region_map(operation->rma.source,
		message == MESSAGE_FETCH ? line->source_local : line->local, line->length);

	if (line->copied || (message == MESSAGE_FETCH && operand_size(line) != 0)) {
		const struct map copy = memory; /* so that the original stays in registers */

		return request_unpack(operation, line, given, &copy);
	}
	if (!memory.vector || line->length > sizeof(operation->copied)) {
		operation->message.memory = memory;
		return memory_is_there(&operation->message.memory);
	}
	operation->message.memory = map_of_piece(operation->copied, line->length);
	return map_copy_out(&memory, 0, operation->copied, line->length);
}

static __attribute__((noinline)) void rma_trace(const struct operation *operation)
{
	const struct engine *engine = operation->space->engine;

	trace(TRACE_COMMAND, engine->interface,
		trace_message(engine->self.nid, engine->self.pid, operation_name(operation)),
		operation->rma.length);
}

/* C7. What a load is repeated with. */
static void load_note(
	struct operation *operation, const struct message_header *header, uint32_t rank)
{
	if (!operation->space->two_sided)
		return;
	operation->account.nid = rank;
	operation->account.value = header->cookie;
	operation->account.match_bits = header->match_bits;
	operation->account.offset = header->offset;
}

/* rma_begin() of a kind of message. */
static ALWAYS_INLINE void rma_start(struct space *space, const struct move *move,
	const struct rma_line *line, const void *given, const uint8_t message)
{
	const bool fetches = message == MESSAGE_FETCH, loads = fetches || message == MESSAGE_LOAD;
	struct engine *engine = space->engine;
	struct region *region = region_find(space, move->region, move->generation);
	struct region *source =
		fetches ? region_find(space, line->source, line->source_generation) : region;
	struct message_header header = {
		.kind = message,
		.space = space->number,
		.detail = message >= MESSAGE_ATOMIC ? line->amo : 0,
		.uid = space->uid,
		.portal = move->portal,
		.cookie = move->cookie,
		.match_bits = move->match_bits,
		.offset = move->offset,
	};
	struct operation *operation;
	bool gathered = true;

	if (!region || !source) {
		space_count(space, commands_stale);
		return;
	}
	operation = operation_begin(engine, OPERATION_RMA);
	operation->space = space;
	operation->region = region;
	operation->peer = move->to;
	operation->requested = true;
	operation->acknowledge = loads || line->want != WANT_NOTHING;
	operation->rma = (struct rma_state){
		.user = line->user,
		.local = line->local,
		.length = line->length,
		.source = source,
		.message = message,
		.want = line->want,
	};
	region->pending++;
	if (fetches)
		source->pending += source != region;
	if (message != MESSAGE_LOAD) {
		header.value = move->value;
		gathered = request_gather(operation, line, given, message);
	} else {
		header.requested = line->length;
		operation->message.memory = map_of_piece(NULL, 0);
		load_note(operation, &header, (uint32_t)move->value);
	}
	if (operation->acknowledge) {
		header.operation = operation_name(operation);
		/* A request without a name has no record, so most puts pay nothing for it. */
		if (trace_wanted())
			rma_trace(operation);
	}
	if (gathered) {
		PROBE(put, operation, move->to.nid, move->to.pid, move->portal, move->match_bits,
			line->length);
		outgoing_send(engine, operation, &header);
	} else {
		operation->message.missing = false;
		rma_requested(operation, TRANSPORT_FAULT);
	}
}

/* The copy for stores alone saves 3 % of the instructions of a put that is counted (p4count). */
void rma_begin(struct space *space, const struct move *move, const struct rma_line *line,
	const void *given)
{
	if (line->message == MESSAGE_STORE)
		rma_start(space, move, line, given, MESSAGE_STORE);
	else
		rma_start(space, move, line, given, line->message);
}

void rma_fetch(struct space *space, const struct fetch *fetch)
{
	struct operation *operation = operation_begin(space->engine, OPERATION_RMA);
	const struct message_header header = {
		.kind = MESSAGE_LOAD,
		.space = space->number,
		.uid = space->uid,
		.portal = FETCH_PORTAL,
		.cookie = fetch->cookie,
		.match_bits = VALUE_NAME(fetch->value),
		.offset = VALUE_OFFSET(fetch->value),
		.requested = fetch->length,
		.operation = operation_name(operation),
	};

	operation->space = space;
	operation->region = fetch->region;
	operation->peer = fetch->from;
	operation->requested = true;
	operation->acknowledge = true;
	operation->kept = fetch->kept;
	operation->rma = (struct rma_state){
		.local = fetch->local,
		.length = fetch->length,
		.source = fetch->region,
		.message = MESSAGE_LOAD,
		.want = WANT_KEPT,
	};
	operation->message.memory = map_of_piece(NULL, 0);
	load_note(operation, &header, fetch->rank);
	outgoing_send(space->engine, operation, &header);
}

static void rma_log(const struct operation *operation, const struct region *region,
	enum tier_event kind, enum tier_verdict verdict, const struct account *account)
{
	const struct tier_event_head event = {
		.kind = kind,
		.verdict = verdict,
		.tier = operation->rma.tier,
		.user = operation->rma.user,
	};

	tier_log(operation->space, region_queue(region), &event, account);
}

/* The operation has had its last event. */
static void rma_end(struct operation *operation)
{
	struct space *space = operation->space;
	struct region *region = operation->region, *source = operation->rma.source;

	region->pending--;
	source->pending -= source != region;
	tiers_leave(space, region);
	if (source != region)
		tiers_leave(space, source);
	outgoing_finish(space->engine, operation);
}

/* The answer is here, or will not come. */
static void rma_conclude(struct operation *operation)
{
	const struct rma_state *rma = &operation->rma;
	const enum tier_event kind = rma_loads(operation) ? TIER_REPLY : TIER_ACK;
	const struct account account = {.moved = rma->moved, .offset = rma->offset};
	bool wanted = rma_loads(operation) || rma->want == WANT_EVENT;

	if (rma->want == WANT_KEPT)
		unexpected_fetched(operation);
	if (rma->want == WANT_KEPT || !operation->region) {
		outgoing_finish(operation->space->engine, operation);
		return;
	}
	if (rma->want >= WANT_OUTCOME && !rma_loads(operation)) {
		outcome_answered(operation->space, operation->region, rma);
	} else if (rma->verdict != TIER_SILENT) {
		tier_count(operation->space, operation->region, kind, rma->verdict, rma->moved,
			rma->want == WANT_END);
		if (wanted && !rma->told && tier_wanted(operation->region, kind, rma->verdict))
			rma_log(operation, operation->region, kind, rma->verdict, &account);
	}
	rma_end(operation);
}

/* The transport is done with a request that brings data: SEND. */
static void rma_sent(struct operation *operation, enum tier_verdict verdict)
{
	struct rma_state *rma = &operation->rma;
	static const struct account none;
	const struct region *source = rma->source;
	bool wanted = tier_wanted(source, TIER_SEND, verdict);

	rma->sent = true;
	tier_count(operation->space, source, TIER_SEND, verdict, rma->length, false);
	if (verdict != TIER_OK && !rma_loads(operation)) {
		wanted |= rma->want != WANT_EVENT && rma->want < WANT_OUTCOME;
		rma->told = wanted;
	}
	if (wanted)
		rma_log(operation, source, TIER_SEND, verdict, &none);
}

/* C7 */
static bool load_is_repeated(const struct operation *operation)
{
	return operation->rma.verdict == TIER_REFUSED && rma_loads(operation) &&
	       operation->space->two_sided && !operation->space->closing &&
	       (operation->rma.want != WANT_KEPT || unexpected_waits(operation));
}

static void load_put_off(struct operation *operation)
{
	/* No further answer to this request, or to a question after it, is one to the next. */
	operation->generation++;
	operation->replying = false;
	operation->rma.refused = operation->requested;
	if (!operation->requested)
		operation_wait(operation, &operation->space->engine->refused);
}

/* C7. Does the rank of a load still belong to the process that the load was sent to? An operation
 * without a rank counts as one whose rank does. */
static bool rank_is_held(const struct operation *operation)
{
	const struct space *space = operation->space;
	const uint32_t rank = operation->account.nid;

	return !space->two_sided || !rma_loads(operation) ||
	       (rank < space->map_count && process_same(space->map[rank], operation->peer));
}

bool rma_is_wanted(struct operation *operation)
{
	if (rank_is_held(operation))
		return true;
	rma_fail(operation, TIER_UNDELIVERABLE);
	return false;
}

void rma_repeat(struct operation *operation)
{
	const struct space *space = operation->space;
	const struct account *account = &operation->account;
	const struct message_header header = {
		.kind = MESSAGE_LOAD,
		.space = space->number,
		.uid = space->uid,
		.portal = FETCH_PORTAL,
		.cookie = (uint32_t)account->value,
		.match_bits = account->match_bits,
		.offset = account->offset,
		.requested = operation->rma.length,
		.operation = operation_name(operation),
	};

	if (!rma_is_wanted(operation))
		return;
	operation->requested = true;
	operation->rma.refused = false;
	outgoing_send(space->engine, operation, &header);
}

/* Is it a load for such a user whose answer has not begun to come? */
static bool load_is_for(const struct operation *operation, const struct space *space, uint64_t user)
{
	return operation->kind == OPERATION_RMA && operation->space == space && operation->region &&
	       rma_loads(operation) && operation->rma.user == user && !operation->replying &&
	       !operation->ended;
}

bool rma_withdraw(struct space *space, uint64_t user)
{
	const struct pool *operations = &space->engine->operations;

	for (uint32_t i = 0; i < operations->made; i++) {
		struct operation *operation = pool_at(operations, i);
		struct region *region = operation->region;

		if (!load_is_for(operation, space, user))
			continue;
		operation->region = operation->rma.source = NULL;
		operation->rma.length = 0;
		region->pending--;
		tiers_leave(space, region);
		return true;
	}
	return false;
}

void rma_fail(struct operation *operation, enum tier_verdict verdict)
{
	operation->rma.verdict = (uint8_t)verdict;
	rma_conclude(operation);
}

/* request_done() of most puts: a store or an atomic that wants no answer has arrived, so SEND is
 * all that is left. The general way costs 66 instructions more, of 1,524 (scripts/instructions,
 * p4count). */
static inline void rma_over(struct operation *operation)
{
	struct space *space = operation->space;
	struct region *region = operation->region;

	if (attachment_of(space, region)->counts & TIER_BIT(TIER_SEND) ||
		tier_wanted(region, TIER_SEND, TIER_OK))
		rma_sent(operation, TIER_OK);
	region->pending--;
	tiers_leave(space, region);
	operation_free(space->engine, operation);
}

static __attribute__((noinline)) void request_done(
	struct operation *operation, enum transport_fail why)
{
	struct rma_state *rma = &operation->rma;
	bool arrived = rma->answered || operation->replying;
	enum tier_verdict verdict = arrived ? TIER_OK : sent_verdict(operation->space, why);

	/* The target may have had all of it, and says so. */
	if (verdict == TIER_OK && operation->message.missing &&
		!(arrived && rma->verdict == TIER_OK))
		verdict = TIER_FAULT;
	operation->requested = false;
	if (operation->ended) {
		operation_free(operation->space->engine, operation);
		return;
	}
	if (rma_stores(operation) && !rma->sent)
		rma_sent(operation, verdict);
	if (rma->answered)
		rma_conclude(operation);
	else if (!rma_loads(operation) && rma->want == WANT_NOTHING)
		rma_end(operation);
	else if (!operation->acknowledge)
		rma_fail(operation, verdict);
	else if (operation->replying)
		return; /* the reply's end is its end */
	else if (verdict != TIER_OK || operation->space->closing)
		rma_fail(operation, verdict == TIER_OK ? TIER_UNDELIVERABLE : verdict);
	else if (rma->refused)
		operation_wait(operation, &operation->space->engine->refused);
	else
		operation_wait(operation, &operation->space->engine->waiting);
}

void rma_requested(struct operation *operation, enum transport_fail why)
{
	if (!operation->acknowledge && why == TRANSPORT_OK && !operation->message.missing)
		rma_over(operation);
	else
		request_done(operation, why);
}

/* The operation that an answer names, if it really was sent to that process and still waits. */
static struct operation *rma_find(
	struct space *space, struct process from, const struct message_header *header)
{
	struct operation *operation =
		operation_find(space->engine, header->operation, OPERATION_RMA);

	if (!operation || operation->replying || operation->ended || operation->rma.answered ||
		operation->space != space || !process_same(operation->peer, from) ||
		rma_loads(operation) != (header->kind == MESSAGE_LOADED) || !operation->acknowledge)
		return NULL;
	return operation;
}

/* The verdict of an answer: one that a target may give, so that a load, a send of two-sided
 * messages, or an operation to a process of which the life is known, ends in its event whatever it
 * hears. */
static uint8_t verdict_heard(const struct operation *operation, uint8_t verdict)
{
	bool known = verdict <= TIER_FAULT && verdict != TIER_NO_MATCH;
	bool silent = verdict == TIER_SILENT && !rma_loads(operation) &&
		      !operation->space->two_sided && operation->space->life == 0;

	return known || silent ? verdict : TIER_UNDELIVERABLE;
}

/* What an answer says. */
static void rma_hear(struct operation *operation, const struct message_header *header)
{
	struct rma_state *rma = &operation->rma;

	outgoing_heard(operation);
	rma->verdict = verdict_heard(operation, header->detail & MESSAGE_VERDICT);
	rma->tier = header->detail & MESSAGE_TIER ? 1 : 0;
	rma->offset = header->offset;
	rma->moved = header->value < rma->length ? header->value : rma->length;
}

/* The data of an answer have no place. */
static void rma_lose(struct operation *operation, enum tier_verdict verdict)
{
	operation->rma.verdict = (uint8_t)verdict;
	operation->rma.moved = 0;
}

/* C1. All of an answer is here. */
static void rma_answered(struct operation *operation)
{
	if (rma_stores(operation) && !operation->rma.sent)
		operation->rma.answered = true;
	else if (load_is_repeated(operation))
		load_put_off(operation);
	else
		rma_conclude(operation);
}

/* C6. A store of this process's that wanted no answer is refused. */
static void rma_refused(
	struct space *space, struct process from, const struct message_header *header)
{
	const struct tier_event_head event = {
		.kind = TIER_ACK, .verdict = header->detail & MESSAGE_VERDICT};
	const struct account account = {.nid = from.nid, .pid = from.pid, .value = header->cookie};
	const struct tier_portal *portal = &space->portals[header->portal];
	struct queue *queue = queue_alive(portal->logs, portal->queue);
	/* No letter goes to others, which may fill more of the queue. */
	const bool has_letters = !portal->controlled || portal->strangers;

	if (queue && has_letters && stranger_has_place(space, queue, portal->most, from, true))
		tier_log(space, queue, &event, &account);
	else
		space_count(space, refusals_late);
}

void rma_stored(struct space *space, struct process from, const struct message_header *header)
{
	struct operation *operation;

	if (header->operation == 0 && space->two_sided &&
		header->portal < space->segment->limits.portals &&
		(header->detail & MESSAGE_VERDICT) != TIER_OK) {
		rma_refused(space, from, header);
		return;
	}
	operation = rma_find(space, from, header);
	if (!operation) {
		space_count(space, refusals_late);
		return;
	}
	space_count(space, acks_delivered);
	rma_hear(operation, header);
	rma_answered(operation);
}

/* The operation that takes the data of an answer; NULL: there is none. */
static struct operation *load_accept(
	struct space *space, struct process from, const struct message_header *header)
{
	struct operation *operation = rma_find(space, from, header);

	if (!operation) {
		space_count(space, dropped_late_reply);
		return NULL;
	}
	space_count(space, replies_received);
	rma_hear(operation, header);
	operation->replying = true;
	return operation;
}

static struct map load_map(const struct operation *operation)
{
	if (!operation->region) /* C8 */
		return map_of_piece(NULL, 0);
	return region_map(operation->region, operation->rma.local, operation->rma.moved);
}

void rma_loaded(struct space *space, struct process from, const struct message_header *header,
	const void *data)
{
	struct operation *operation = load_accept(space, from, header);
	struct map memory;

	if (!operation)
		return;
	memory = load_map(operation);
	if (!map_copy_in(&memory, 0, data, operation->rma.moved))
		rma_lose(operation, TIER_FAULT);
	rma_answered(operation);
}

void rma_loaded_begin(struct space *space, struct process from, const struct message_header *header,
	struct inbound *inbound)
{
	struct operation *operation = load_accept(space, from, header);

	if (!operation)
		return;
	inbound->memory = load_map(operation);
	inbound->context = operation;
	inbound->want_end = true;
}

void rma_placed(struct operation *operation, enum transport_fail why)
{
	if (why != TRANSPORT_OK)
		rma_lose(operation, sent_verdict(operation->space, why));
	rma_answered(operation);
}
