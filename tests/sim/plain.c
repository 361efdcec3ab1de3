/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.c - see plain.h. */
#include <sim/plain.h>

#include <stdlib.h>
#include <string.h>

#include <base/handle.h>
#include <elements.h>

/* --- events and counts */

static uint64_t queue_kept_places(const struct plain *plain, const struct plain_queue *queue)
{
	uint64_t places = 0;

	for (unsigned i = 0; i < PLAIN_MESSAGES; i++) {
		const struct plain_message *message = &plain->messages[i];

		if (message->used && message->arriving &&
			plain->portals[message->entry->portal].queue == queue)
			places++;
	}
	for (unsigned i = 0; i < PLAIN_ENTRIES; i++)
		if (plain->entries[i].used &&
			plain->portals[plain->entries[i].portal].queue == queue)
			places += plain->entries[i].places;
	return places;
}

static uint32_t portal_pending(const struct plain *plain, uint32_t portal)
{
	uint32_t pending = 0;

	for (unsigned i = 0; i < PLAIN_MESSAGES; i++)
		pending += plain->messages[i].used && plain->messages[i].arriving &&
			   plain->messages[i].entry->portal == portal;
	return pending;
}

/* A Portal that has been disabled says so when no message to it is in progress. */
static void portal_settle(struct plain *plain, uint32_t index)
{
	struct plain_portal *portal = &plain->portals[index];
	const struct plain_event event = {
		.kind = TIER_DISABLED, .verdict = TIER_REFUSED, .target = (uint64_t)index << 32};

	if (!portal->owes || portal_pending(plain, index) != 0)
		return;
	portal->owes = false;
	plain_log(plain, portal->queue, &event);
}

static void portal_exhaust(struct plain *plain, uint32_t index)
{
	plain->portals[index].state = PORTAL_DISABLED;
	plain->portals[index].owes = true;
	portal_settle(plain, index);
}

void plain_log(struct plain *plain, struct plain_queue *queue, const struct plain_event *event)
{
	bool controlled = false;

	if (!queue)
		return;
	if (queue->tail - queue->head == queue->places) {
		queue->head++;
		queue->gap = true;
	}
	queue->events[queue->tail++ % PLAIN_EVENTS] = *event;
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		controlled |= plain->portals[i].controlled && plain->portals[i].queue == queue &&
			      plain->portals[i].state == PORTAL_ENABLED;
	if (!controlled || queue->tail - queue->head <= queue->count)
		return;
	for (uint32_t i = 0; i < PLAIN_PORTALS; i++)
		if (plain->portals[i].controlled && plain->portals[i].queue == queue &&
			plain->portals[i].state == PORTAL_ENABLED)
			portal_exhaust(plain, i);
}

const struct plain_event *plain_take(struct plain_queue *queue, bool *gap)
{
	if (queue->head == queue->tail)
		return NULL;
	*gap = queue->gap;
	queue->gap = false;
	return &queue->events[queue->head++ % PLAIN_EVENTS];
}

static struct plain_counter *counter_of(struct plain *plain, uint64_t handle)
{
	for (unsigned i = 0; i < PLAIN_COUNTERS; i++)
		if (handle != 0 && plain->counters[i].handle == handle)
			return &plain->counters[i];
	return NULL;
}

static struct plain_counter *counter_at(struct plain *plain, uint32_t index, uint32_t generation)
{
	struct plain_counter *counter = &plain->counters[index];

	return index < PLAIN_COUNTERS && counter->handle != 0 &&
			       handle_generation(counter->handle) == generation
		       ? counter
		       : NULL;
}

static void ready_add(struct plain *plain, uint64_t name)
{
	plain->ready[plain->ready_tail++ % (PLAIN_TRIGGERS * PLAIN_COUNTERS)] = name;
}

/* Commands that are due become ready, in the order in which they were given. */
static void counter_review(struct plain *plain, struct plain_counter *counter)
{
	uint64_t sum = counter->count.success + counter->count.failure;
	uint32_t left = 0;

	for (uint32_t i = 0; i < counter->waits; i++)
		if (counter->waiting[i].threshold <= sum)
			ready_add(plain, counter->waiting[i].name);
		else
			counter->waiting[left++] = counter->waiting[i];
	counter->waits = left;
}

void plain_count(struct plain *plain, uint64_t handle, enum tier_verdict verdict, uint64_t by)
{
	struct plain_counter *counter = counter_of(plain, handle);

	if (!counter)
		return;
	if (verdict == TIER_OK)
		counter->count.success += by;
	else
		counter->count.failure++;
	counter_review(plain, counter);
}

static bool log_wanted(uint32_t log, unsigned kind, enum tier_verdict verdict)
{
	return log & (verdict == TIER_OK ? TIER_BIT(kind) : TIER_BIT_FAILED(kind));
}

/* An event of an entry or a search: counted, then logged. */
static void wish_tell(struct plain *plain, const struct plain_wish *wish, uint32_t portal,
	const struct plain_event *event)
{
	if (wish->counts & TIER_BIT(event->kind))
		plain_count(plain, wish->counter, event->verdict,
			wish->flags & ATTACHMENT_BYTES ? event->moved : 1);
	if (log_wanted(wish->log, event->kind, event->verdict))
		plain_log(plain, plain->portals[portal].queue, event);
}

/* --- entries */

static void entry_log(struct plain *plain, const struct plain_entry *entry, unsigned kind)
{
	const struct plain_event event = {
		.kind = (uint8_t)kind,
		.tier = entry->tier,
		.user = entry->wish.user,
		.target = (uint64_t)entry->portal << 32,
	};

	if (log_wanted(entry->wish.log, kind, TIER_OK))
		plain_log(plain, plain->portals[entry->portal].queue, &event);
}

static void entry_settle(struct plain *plain, struct plain_entry *entry)
{
	if (!entry->leaving || entry->pending != 0)
		return;
	if (!entry->unlinked) {
		entry->unlinked = true;
		if (entry->places != 0 && log_wanted(entry->wish.log, TIER_UNLINK, TIER_OK))
			entry->places--;
		entry_log(plain, entry, TIER_UNLINK);
	}
	if (entry->headers != 0)
		return;
	entry->places = 0;
	if (entry->tier != 0)
		entry_log(plain, entry, TIER_FREE);
	entry->generation = 0;
	entry->used = false;
}

static void entry_detach(struct plain *plain, struct plain_entry *entry)
{
	struct plain_portal *portal = &plain->portals[entry->portal];
	struct plain_entry **list = portal->lists[entry->tier];
	uint32_t at = 0;

	while (list[at] != entry)
		at++;
	portal->lengths[entry->tier]--;
	memmove(&list[at], &list[at + 1], (portal->lengths[entry->tier] - at) * sizeof(*list));
	entry->linked = false;
	entry->generation = 0;
	entry->leaving = true;
}

static bool entry_ends(const struct plain_entry *entry, uint64_t moved)
{
	return entry->wish.flags & ATTACHMENT_ONCE ||
	       (!(entry->wish.options & REGION_REMOTE_OFFSET) &&
		       entry->wish.length - entry->offset - moved < entry->wish.min_free);
}

static uint32_t entry_places(const struct plain_entry *entry)
{
	return (uint32_t)log_wanted(entry->wish.log, TIER_UNLINK, TIER_OK) +
	       (uint32_t)(entry->tier != 0 && log_wanted(entry->wish.log, TIER_FREE, TIER_OK));
}

/* --- kept messages */

static bool ask_matches(const struct match_entry *ask, const struct plain_event *event)
{
	uint32_t nid = (uint32_t)event->initiator, pid = (uint32_t)(event->initiator >> 32);

	return ((ask->bits ^ event->match_bits) & ~ask->ignore) == 0 &&
	       (ask->nid == MATCH_ANY || ask->nid == nid) &&
	       (ask->pid == MATCH_ANY || ask->pid == pid);
}

static bool wish_fits(
	const struct plain_wish *wish, uint64_t local, const struct plain_event *event)
{
	uint64_t offset = wish->options & REGION_REMOTE_OFFSET ? event->offset : local;

	return wish->options & REGION_TRUNCATE ||
	       (offset <= wish->length && event->requested <= wish->length - offset);
}

/* A taker gets a message that has ended. */
static void kept_tell(
	struct plain *plain, struct plain_message *message, const struct plain_wish *taker)
{
	struct plain_event event = message->event;

	event.kind++;
	event.tier = 1;
	event.user = taker->user;
	message->used = false;
	wish_tell(plain, taker, message->entry->portal, &event);
	message->entry->headers--;
	entry_settle(plain, message->entry);
}

/* The first kept message of a Portal that came after another one. */
static struct plain_message *kept_after(
	struct plain *plain, uint32_t portal, const struct match_entry *ask, uint64_t order)
{
	struct plain_message *best = NULL;

	for (unsigned i = 0; i < PLAIN_MESSAGES; i++) {
		struct plain_message *message = &plain->messages[i];

		if (message->used && message->kept && !message->claimed &&
			message->entry->portal == portal && message->order > order &&
			ask_matches(ask, &message->event) &&
			(!best || message->order < best->order))
			best = message;
	}
	return best;
}

enum { FOUND_NOTHING, FOUND_SOME, FOUND_ENOUGH };

/* What an entry or a search finds; entry: NULL: a search. *local: the taker's own offset. */
static unsigned wish_run(struct plain *plain, uint32_t portal, const struct plain_wish *wish,
	struct plain_entry *entry, bool remove, uint64_t *local)
{
	unsigned found = FOUND_NOTHING;
	uint64_t order = 0;
	struct plain_message *message;

	while ((message = kept_after(plain, portal, &wish->ask, order))) {
		uint64_t requested = message->event.requested, left;
		struct plain_event event = message->event;

		order = message->order;
		if (!wish_fits(wish, *local, &event))
			continue;
		found = FOUND_SOME;
		if (!remove) {
			event.kind = TIER_SEARCH;
			event.tier = 1;
			event.verdict = TIER_OK;
			event.user = wish->user;
			wish_tell(plain, wish, portal, &event);
		} else if (message->arriving) {
			message->claimed = true;
			message->taker = *wish;
			message->claimer = entry;
			if (entry)
				entry->pending++;
		} else {
			kept_tell(plain, message, wish);
		}
		if (wish->flags & ATTACHMENT_ONCE)
			return FOUND_ENOUGH;
		if (!(wish->flags & ATTACHMENT_GROWS) || wish->options & REGION_REMOTE_OFFSET)
			continue;
		left = wish->length - *local;
		*local += requested < left ? requested : left;
		if (wish->length - *local < wish->min_free)
			return FOUND_ENOUGH;
	}
	return found;
}

void plain_append(struct plain *plain, uint32_t index, uint32_t generation, uint32_t portal,
	unsigned tier, const struct plain_wish *wish)
{
	struct plain_entry *entry = &plain->entries[index];
	struct plain_portal *at = &plain->portals[portal];

	*entry = (struct plain_entry){
		.wish = *wish,
		.generation = generation,
		.portal = portal,
		.tier = (uint8_t)tier,
		.used = true,
	};
	if (tier == 0 &&
		wish_run(plain, portal, wish, entry, true, &entry->offset) == FOUND_ENOUGH) {
		entry->leaving = true;
		entry_settle(plain, entry);
		return;
	}
	entry->linked = true;
	at->lists[tier][at->lengths[tier]++] = entry;
	entry_log(plain, entry, TIER_LINK);
}

enum answer plain_withdraw(struct plain *plain, uint32_t index, uint32_t generation)
{
	struct plain_entry *entry = &plain->entries[index];

	if (index >= PLAIN_ENTRIES || generation == 0 || entry->generation != generation)
		return ANSWER_GONE;
	if (entry->pending != 0 || entry->headers != 0)
		return ANSWER_PENDING;
	entry_detach(plain, entry);
	entry->used = false;
	return ANSWER_OK;
}

void plain_search(struct plain *plain, uint32_t portal, const struct plain_wish *wish, bool remove)
{
	uint64_t local = 0;
	bool found = wish_run(plain, portal, wish, NULL, remove, &local) != FOUND_NOTHING;
	const struct plain_event event = {
		.kind = TIER_SEARCH,
		.tier = 1,
		.verdict = TIER_NO_MATCH,
		.user = wish->user,
		.target = (uint64_t)portal << 32,
	};

	if (wish->counts & TIER_BIT(TIER_SEARCH) && (!found || !(wish->flags & ATTACHMENT_ONCE)))
		plain_count(plain, wish->counter, TIER_NO_MATCH, 0);
	if (!found && log_wanted(wish->log, TIER_SEARCH, TIER_NO_MATCH))
		plain_log(plain, plain->portals[portal].queue, &event);
}

/* --- requests */

bool plain_brings(uint8_t kind)
{
	return kind != MESSAGE_LOAD;
}

bool plain_fetches(uint8_t kind)
{
	return kind == MESSAGE_LOAD || kind == MESSAGE_FETCH;
}

static bool request_is_atomic(const struct message_header *header)
{
	return header->kind == MESSAGE_ATOMIC || header->kind == MESSAGE_FETCH;
}

static uint8_t request_event(const struct message_header *header)
{
	switch (header->kind) {
	case MESSAGE_STORE:
		return TIER_PUT;
	case MESSAGE_ATOMIC:
		return TIER_ATOMIC;
	case MESSAGE_FETCH:
		return TIER_FETCH;
	default:
		return TIER_GET;
	}
}

static enum tier_verdict request_drop(struct plain *plain, uint32_t portal, uint64_t *counted)
{
	if (plain->portals[portal].controlled) {
		plain->disabled++;
		portal_exhaust(plain, portal);
		return TIER_REFUSED;
	}
	++*counted;
	return TIER_DROPPED;
}

/* The entry that decides. */
static struct plain_entry *entry_find(struct plain *plain, const struct message_header *header,
	const struct plain_event *event, struct plain_decision *decision)
{
	const struct plain_portal *portal = &plain->portals[header->portal];

	for (unsigned tier = 0; tier < TIERS; tier++)
		for (uint32_t i = 0; i < portal->lengths[tier]; i++) {
			struct plain_entry *entry = portal->lists[tier][i];
			uint64_t room;

			if (!ask_matches(&entry->wish.ask, event))
				continue;
			decision->tier = (uint8_t)tier;
			decision->user = entry->wish.user;
			decision->offset = entry->wish.options & REGION_REMOTE_OFFSET
						   ? header->offset
						   : entry->offset;
			room = decision->offset < entry->wish.length
				       ? entry->wish.length - decision->offset
				       : 0;
			decision->moved = header->requested < room ? header->requested : room;
			if (request_is_atomic(header))
				decision->moved -=
					decision->moved % element_size(header->detail >> 8);
			decision->start = entry->wish.start + decision->offset;
			if ((decision->offset <= entry->wish.length && header->requested <= room) ||
				entry->wish.options & REGION_TRUNCATE)
				return entry;
		}
	return NULL;
}

static enum tier_verdict request_judge(struct plain *plain, const struct message_header *header,
	const struct plain_event *event, struct plain_decision *decision,
	struct plain_entry **accepting)
{
	const struct plain_portal *portal = &plain->portals[header->portal];
	uint8_t needs = (uint8_t)((plain_brings(header->kind) ? REGION_PUT : 0) |
				  (plain_fetches(header->kind) ? REGION_GET : 0));
	struct plain_entry *entry = entry_find(plain, header, event, decision);
	uint64_t headers = 0, used;
	bool header_left;

	if (!entry)
		return request_drop(plain, header->portal, &plain->no_match);
	if (entry->wish.uid != UINT32_MAX && entry->wish.uid != header->uid) {
		plain->permission++;
		return TIER_PERMISSION;
	}
	if ((entry->wish.options & needs) != needs) {
		plain->operation++;
		return TIER_OPERATION;
	}
	for (unsigned i = 0; i < PLAIN_MESSAGES; i++)
		headers += plain->messages[i].used && plain->messages[i].kept;
	header_left = entry->tier == 0 || entry->wish.flags & ATTACHMENT_NO_HEADERS ||
		      headers < PLAIN_UNEXPECTED;
	if (portal->controlled) {
		used = portal->queue->tail - portal->queue->head +
		       queue_kept_places(plain, portal->queue) + 1 +
		       (entry_ends(entry, decision->moved) ? entry_places(entry) : 0);
		header_left &= used <= portal->queue->count;
	}
	if (!header_left)
		return request_drop(plain, header->portal, &plain->no_header);
	*accepting = entry;
	return TIER_OK;
}

/* Is the initiator who it says it is? As events name it: *name. */
static bool process_known(const struct plain *plain, struct process from,
	const struct message_header *header, uint64_t *name)
{
	*name = from.nid | (uint64_t)from.pid << 32;
	if (!plain->ranked)
		return true;
	*name = header->cookie;
	return header->cookie < plain->map_count && plain->map[header->cookie].nid == from.nid &&
	       plain->map[header->cookie].pid == from.pid;
}

static struct plain_message *message_take(struct plain *plain)
{
	for (unsigned i = 0; i < PLAIN_MESSAGES; i++)
		if (!plain->messages[i].used)
			return &plain->messages[i];
	abort(); /* more than there are tasks */
}

/* Does a message end where it is taken? Of a store all has to be here; of a load what is copied
 * then, or nothing. */
static bool request_ends(
	const struct message_header *header, uint64_t here, const struct plain_decision *decision)
{
	if (plain_brings(header->kind))
		return decision->moved <= here;
	return header->requested <= AMO_BYTES_MAX || decision->moved <= VOID_BYTES ||
	       decision->fault;
}

static void entry_use(struct plain *plain, struct plain_entry *entry, uint64_t moved)
{
	bool ends = entry_ends(entry, moved);

	if (!(entry->wish.options & REGION_REMOTE_OFFSET))
		entry->offset += moved;
	if (!ends)
		return;
	entry->places = entry_places(entry);
	entry_detach(plain, entry);
}

struct plain_decision plain_request(struct plain *plain, struct process from,
	const struct message_header *header, uint64_t here, struct plain_message **message)
{
	struct plain_decision decision = {.verdict = TIER_DROPPED};
	struct plain_event event = {
		.kind = request_event(header),
		.amo = request_is_atomic(header) ? header->detail : 0,
		.value = plain_brings(header->kind) ? header->value : 0,
		.target = header->uid | (uint64_t)header->portal << 32,
		.match_bits = header->match_bits,
		.requested = header->requested,
		.offset = header->offset,
	};
	bool known = process_known(plain, from, header, &event.initiator);
	enum portal_state state =
		header->portal < PLAIN_PORTALS ? plain->portals[header->portal].state : PORTAL_FREE;
	struct plain_entry *entry = NULL;

	*message = NULL;
	if (state == PORTAL_FREE || state == PORTAL_CLAIMED) {
		plain->no_portal++;
	} else if (!known) {
		plain->bad_cookie++;
	} else if (state == PORTAL_DISABLED) {
		plain->disabled++;
		decision.verdict = TIER_REFUSED;
	} else {
		decision.verdict = request_judge(plain, header, &event, &decision, &entry);
	}
	if (decision.verdict != TIER_OK) {
		decision.moved = decision.offset = decision.tier = 0;
		return decision;
	}
	decision.silent = !plain_fetches(header->kind) && entry->wish.options & REGION_NO_ACK;
	event.tier = entry->tier;
	event.user = entry->wish.user;
	event.start = decision.start;
	event.moved = decision.moved;
	*message = message_take(plain);
	**message = (struct plain_message){
		.event = event,
		.entry = entry,
		.used = true,
		.arriving = true,
		.kept = entry->tier != 0 && !(entry->wish.flags & ATTACHMENT_NO_HEADERS),
		.order = ++plain->arrivals,
	};
	entry->pending++;
	entry->headers += (*message)->kept;
	entry_use(plain, entry, decision.moved);
	decision.fault = !plain->there(
		plain->context, decision.start, decision.moved, plain_brings(header->kind));
	if (request_ends(header, here, &decision)) {
		plain_ended(plain, *message, decision.fault ? TIER_FAULT : TIER_OK);
		*message = NULL;
	} else {
		decision.fault = false; /* its end says so */
	}
	return decision;
}

struct plain_message *plain_message(struct plain *plain, const void *name)
{
	for (unsigned i = 0; i < PLAIN_MESSAGES; i++)
		if (plain->messages[i].used && plain->messages[i].arriving &&
			plain->messages[i].name == name)
			return &plain->messages[i];
	return NULL;
}

void plain_ended(struct plain *plain, struct plain_message *message, enum tier_verdict verdict)
{
	struct plain_entry *entry = message->entry;
	uint32_t portal = entry->portal;

	entry->pending--;
	message->arriving = false;
	message->used = message->kept;
	message->event.verdict = (uint8_t)verdict;
	if (verdict == TIER_FAULT)
		message->event.moved = 0;
	wish_tell(plain, &entry->wish, portal, &message->event);
	entry_settle(plain, entry);
	if (message->kept && message->claimed) {
		struct plain_entry *claimer = message->claimer;
		const struct plain_wish taker = message->taker;

		kept_tell(plain, message, &taker);
		if (claimer) {
			claimer->pending--;
			entry_settle(plain, claimer);
		}
	}
	portal_settle(plain, portal);
}

/* --- commands */

/* Kept messages that nobody can ask for any more. */
static void portal_forget(struct plain *plain, uint32_t portal)
{
	static const struct match_entry all = {
		.ignore = UINT64_MAX, .nid = MATCH_ANY, .pid = MATCH_ANY};
	struct plain_message *message;

	while ((message = kept_after(plain, portal, &all, 0))) {
		message->used = false;
		message->entry->wish.log = 0;
		message->entry->headers--;
		entry_settle(plain, message->entry);
	}
}

static enum answer portal_close(struct plain *plain, uint32_t index)
{
	struct plain_portal *portal = &plain->portals[index];

	if (portal->lengths[0] != 0 || portal->lengths[1] != 0)
		return ANSWER_NOT_EMPTY;
	if (portal_pending(plain, index) != 0)
		return ANSWER_PENDING;
	portal_forget(plain, index);
	portal->state = PORTAL_FREE;
	return ANSWER_OK;
}

enum answer plain_portal(
	struct plain *plain, const struct command *command, struct plain_queue *queue)
{
	uint32_t index = command->object.index;
	struct plain_portal *portal = &plain->portals[index];

	if (command->kind == COMMAND_PORTAL_OPEN) {
		if (portal->state != PORTAL_FREE)
			return ANSWER_GONE;
		*portal = (struct plain_portal){
			.state = command->position ? PORTAL_DISABLED : PORTAL_ENABLED,
			.controlled = command->update,
			.queue = queue,
		};
		return ANSWER_OK;
	}
	if (portal->state == PORTAL_FREE)
		return ANSWER_GONE;
	if (command->kind == COMMAND_PORTAL_CLOSE)
		return portal_close(plain, index);
	if (command->kind == COMMAND_PORTAL_ENABLE) {
		portal->state = PORTAL_ENABLED;
		return ANSWER_OK;
	}
	portal->state = PORTAL_DISABLED;
	return portal_pending(plain, index) != 0 ? ANSWER_PENDING : ANSWER_OK;
}

enum answer plain_counter(struct plain *plain, const struct command *command)
{
	struct plain_counter *counter =
		counter_at(plain, command->count.index, command->count.generation);

	if (!counter)
		return ANSWER_GONE;
	if (command->kind == COMMAND_COUNTER_FREE) {
		counter->handle = 0;
		counter->waits = 0;
		return ANSWER_OK;
	}
	if (command->kind == COMMAND_COUNTER_SET) {
		counter->count = command->count.by;
	} else {
		counter->count.success += command->count.by.success;
		counter->count.failure += command->count.by.failure;
	}
	counter_review(plain, counter);
	return ANSWER_OK;
}

void plain_cancel(struct plain *plain, const struct command *command)
{
	struct plain_counter *counter =
		counter_at(plain, command->count.index, command->count.generation);

	if (counter)
		counter->waits = 0;
}

bool plain_trigger(
	struct plain *plain, uint32_t index, uint32_t generation, uint64_t threshold, uint64_t name)
{
	struct plain_counter *counter = counter_at(plain, index, generation);

	if (!counter || counter->waits == PLAIN_TRIGGERS)
		return false;
	counter->waiting[counter->waits++] = (struct plain_trigger){name, threshold};
	counter_review(plain, counter);
	return true;
}

uint64_t plain_ready(struct plain *plain)
{
	return plain->ready_head == plain->ready_tail
		       ? 0
		       : plain->ready[plain->ready_head++ % (PLAIN_TRIGGERS * PLAIN_COUNTERS)];
}
