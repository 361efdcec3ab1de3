/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.c - see messages.h: the space, its entries and events, blocks, words to peers. */
#include <messages/state.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <base/backoff.h>
#include <base/clock.h>
#include <base/pages.h>
#include <engine/statistics.h>
#include <wire/message.h>

#define EVENTS      60000         /* M6; what others do fills only a part: */
#define ASKED       (EVENTS / 4)  /* peers' fetches and words */
#define UNASKED     (EVENTS / 16) /* greetings, refusals of letters: anybody can send them */
#define EVENT_BYTES (UINT64_C(32) << 20)
#define BESIDE_MAX  2 /* queues of others that a thread sleeps at */

/* --- visits, entries and calls */

/* A thread's first visit needs memory, and calls that cannot fail wait until there is some. */
static bool visit_begin(struct messages *messages)
{
	const struct front *front = messages->options.front;
	const struct interface *interface = &interfaces[handle_interface(messages->handle)];
	unsigned looks = 0;

	while (front_visit(front, &messages->visit, messages->handle, HANDLE_INTERFACE, -1) != 0) {
		if (visitor_self || !front_is_open(front) ||
			!atomic_load_explicit(&interface->segment, memory_order_relaxed))
			return false;
		backoff(&looks);
	}
	return true;
}

bool messages_visit_first(struct messages *messages)
{
	const uint64_t now = epoch_now(); /* before the interface is found open */
	const bool open = visit_begin(messages);

	messages->number = handle_interface(messages->handle) + 1;
	messages->epoch = open && barrier_cheap ? now : EPOCH_NEVER;
	return open;
}

/* An index, and the region of it, without counters; NULL: no index is left. */
static struct region *region_claim(struct messages *messages, const struct map_vector *vector,
	uint32_t *index, uint32_t *generation)
{
	struct segment *segment = messages->visit.segment;
	struct attachment *attachment;
	struct region *region;

	*index = segment_take(segment, segment->free_entries);
	if (*index == INDEX_NONE)
		return NULL;
	*generation = segment_generation(segment);
	region = segment_region(segment, *index);
	region->start = 0;
	region->vector = vector;
	region->threshold = GATE_THRESHOLD_INFINITE;
	region->entry = INDEX_NONE;
	attachment = segment_attachment(segment, *index);
	attachment->counter = 0;
	attachment->counts = 0;
	attachment->flags = 0;
	return region;
}

bool entry_append(struct messages *messages, const struct entry_wish *wish, uint32_t *index,
	uint32_t *generation)
{
	struct segment *segment = messages->visit.segment;
	struct command command = {.kind = COMMAND_APPEND};
	struct region *region = region_claim(messages, wish->vector, index, generation);
	struct attachment *attachment;
	struct match_entry *match;

	if (!region)
		return false;
	atomic_fetch_add_explicit(&segment_portal(segment, wish->portal)->length[wish->tier], 1,
		memory_order_acquire);
	if (!wish->vector)
		region->start = (uintptr_t)wish->start;
	region->length = wish->length;
	region->user = item_name(wish->item);
	region->options = wish->options;
	region->log = wish->log;
	attachment = segment_attachment(segment, *index);
	attachment->flags = wish->flags;
	attachment->tier = (uint8_t)wish->tier;
	attachment->uid = messages->visit.interface->uid;
	attachment->min_free = wish->min_free;
	attachment->most = wish->most;
	attachment->unit = wish->unit;
	match = segment_match(segment, *index);
	match->bits = wish->bits;
	match->ignore = wish->ignore;
	match->nid = wish->peer; /* in a space with ranks */
	match->pid = UINT32_MAX;
	command.object.index = *index;
	command.object.generation = *generation;
	command.object.portal = wish->portal;
	command.object.other = wish->first;
	atomic_store_explicit(&segment_entry(segment, *index)->gate, gate_make(*generation, 0),
		memory_order_release);
	submission_post(&messages->visit.interface->submission, &command);
	return true;
}

bool entry_withdraw(struct messages *messages, uint32_t index, uint32_t generation)
{
	return visit_command(&messages->visit, COMMAND_WITHDRAW, index, generation) == ANSWER_OK;
}

void move_post(struct messages *messages, const struct move *move, const struct rma_line *line)
{
	const struct submission *submission = &messages->visit.interface->submission;
	struct long_command command; /* lines are written as far as they are used */

	if (submission_begin(submission, move, line, NULL))
		return;
	command.command = (struct command){.kind = COMMAND_RMA, .move = *move};
	memcpy(command.further[0], line, sizeof(*line));
	submission_post_lines(submission, &command, 2);
}

/* Makes a region of a descriptor's pieces; vector NULL: of all memory. Returns false if no region
 * is left. */
static bool region_make(struct messages *messages, const struct map_vector *vector, uint32_t *index,
	uint32_t *generation)
{
	struct command command = {.kind = COMMAND_REGION_BIND};
	struct region *region = region_claim(messages, vector, index, generation);

	if (!region)
		return false;
	region->length = vector ? map_vector_length(vector) : UINT64_MAX;
	region->queue = messages->queue_handle;
	region->options = REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	region->log = TIER_BIT(TIER_ACK) | TIER_BIT_FAILED(TIER_ACK) | TIER_BIT(TIER_REPLY) |
		      TIER_BIT_FAILED(TIER_REPLY);
	command.object.index = *index;
	command.object.generation = *generation;
	atomic_store_explicit(&region->gate, gate_make(*generation, GATE_THRESHOLD_INFINITE),
		memory_order_release);
	submission_post(&messages->visit.interface->submission, &command);
	return true;
}

void rma_command_post(
	struct messages *messages, struct move *move, const struct rma_line *line, uint32_t peer)
{
	move->to = process_of_peer(messages, peer);
	move->cookie = messages->peers[peer].self;
	if (line->message == MESSAGE_LOAD)
		move->value = peer; /* C7 */
	if (move->region == 0) {
		move->region = messages->region;
		move->generation = messages->generation;
	}
	move_post(messages, move, line);
}

void message_rma(struct messages *messages, const struct transfer *message, struct move *move,
	struct rma_line *line)
{
	if (message->region != 0) {
		move->region = message->region;
		move->generation = message->region_generation;
		line->local = 0;
	}
	rma_command_post(messages, move, line, message->peer);
}

bool vector_bind(struct messages *messages, struct transfer *message)
{
	struct peer *peer = &messages->peers[message->peer];

	if (!message->vector || message->region != 0)
		return true;
	if (messages->vectors + peer->vectors >= VECTORS ||
		!region_make(
			messages, message->vector, &message->region, &message->region_generation))
		return false;
	peer->vectors++;
	messages->vectors++;
	return true;
}

void vector_unbind(struct messages *messages, struct transfer *message)
{
	const uint32_t region = message->region;

	message->region = 0;
	messages->peers[message->peer].vectors--;
	messages->vectors--;
	(void)visit_command(
		&messages->visit, COMMAND_REGION_RELEASE, region, message->region_generation);
}

/* The last entry of a tier of a Portal. It has no memory: it keeps headers alone (M5), or answers
 * fetches of a message that is not there (M6); the entries of messages that are there come before
 * it. */
static bool last_entry_make(
	struct messages *messages, unsigned portal, unsigned tier, uint8_t operation)
{
	const struct entry_wish wish = {
		.portal = portal,
		.tier = tier,
		.ignore = UINT64_MAX,
		.peer = UINT32_MAX,
		.options = operation | REGION_TRUNCATE,
		.item = &messages->told,
	};
	uint32_t index, generation;

	return entry_append(messages, &wish, &index, &generation);
}

/* --- words to peers */

static void word_post(struct messages *messages, struct tell *tell, unsigned kind, uint64_t word)
{
	struct move move = {
		.portal = PORTAL_SIDE, .match_bits = BITS_TOLD, .value = word_make(kind, word)};
	const struct rma_line line = {
		.user = item_name(tell), .message = MESSAGE_STORE, .want = WANT_EVENT};

	messages->pending++;
	rma_command_post(messages, &move, &line, tell->peer);
}

static uint64_t taken_now(const struct peer *peer)
{
	return atomic_load_explicit(&peer->credit.taken, memory_order_relaxed);
}

void credit_post(struct messages *messages, struct peer *peer)
{
	peer->tell.busy = true;
	peer->tell.again = false;
	peer->told = taken_now(peer);
	word_post(messages, &peer->tell, WORD_CREDIT, peer->told);
}

bool credit_is_due(const struct messages *messages, const struct peer *peer)
{
	const uint64_t share =
		messages->share +
		atomic_load_explicit(&messages->shares[peer->tell.peer], memory_order_relaxed);

	return peer->joined && !peer->failed && taken_now(peer) - peer->told >= (share + 7) / 8;
}

/* A message of a peer's that was kept, or not answered, has been taken. */
void credit_count(struct messages *messages, uint32_t index)
{
	struct peer *peer = &messages->peers[index];

	/* Release: U6. */
	atomic_store_explicit(&peer->credit.taken, taken_now(peer) + 1, memory_order_release);
	if (!credit_is_due(messages, peer))
		return;
	if (peer->tell.busy)
		peer->tell.again = true;
	else
		credit_post(messages, peer);
}

static void word_sent(
	struct messages *messages, struct tell *tell, const struct message_event *event)
{
	struct peer *peer;

	messages->pending--;
	if (tell == &messages->user_word)
		return;
	peer = &messages->peers[tell->peer];
	tell->busy = false;
	if (peer->failed)
		return;
	if (tell == &peer->alive) {
		if (event->verdict != TIER_OK && event->verdict != TIER_REFUSED)
			peer_lose(messages, tell->peer, event->verdict);
		return;
	}
	if (event->verdict == TIER_REFUSED || tell->again)
		credit_post(messages, peer);
	else if (event->verdict != TIER_OK)
		peer_lose(messages, tell->peer, event->verdict);
}

/* M12. Little credit has been used up, so a message wants an answer, which may bring more. */
static void credit_heard(struct peer *peer)
{
	const uint32_t share = atomic_load_explicit(&peer->credit.share, memory_order_relaxed);

	if (share < SHARE_ENOUGH && share != peer->asked) {
		peer->asked = share;
		peer->asks = true;
	}
	credit_refresh(peer);
}

/* What a word says of credit, the poll core has heard (engine/credit.h). */
static void word_heard(struct messages *messages, const struct message_event *event)
{
	if (word_kind(event->value) == WORD_CREDIT)
		credit_heard(&messages->peers[event->peer]);
	else if (word_kind(event->value) == WORD_USER && messages->options.told)
		messages->options.told(
			messages->options.owner, event->peer, word_number(event->value));
}

void messages_ask(struct messages *messages, uint32_t index)
{
	struct peer *peer = &messages->peers[index];

	if (!peer->joined || peer->failed || peer->alive.busy || !messages_visit(messages))
		return;
	peer->alive.busy = true;
	word_post(messages, &peer->alive, WORD_ALIVE, 0);
	visit_leave(&messages->visit);
}

void messages_tell(struct messages *messages, uint32_t peer, uint64_t word)
{
	if (!messages_visit(messages))
		return;
	messages->user_word.peer = peer;
	word_post(messages, &messages->user_word, WORD_USER, word);
	visit_leave(&messages->visit);
}

/* --- ends */

void peer_lose(struct messages *messages, uint32_t peer, enum tier_verdict verdict)
{
	if (messages->peers[peer].failed)
		return;
	messages->peers[peer].failed = true;
	messages->peers[peer].stranger = verdict == TIER_DROPPED;
	messages->peers[peer].closed = verdict == TIER_CLOSED;
	if (!messages->options.peers)
		(void)peer_shut_out(messages, peer);
	messages->options.failed(messages->options.owner, peer,
		verdict == TIER_UNDELIVERABLE || verdict == TIER_CLOSED
			? "is gone, or does not answer"
		: verdict == TIER_FAULT ? "was given a buffer that is no memory"
					: "refuses a message, which it should not");
	sends_abandon(messages, &messages->peers[peer]);
}

void messages_finish(
	struct messages *messages, struct transfer *message, enum transfer_result result)
{
	message->result = (uint8_t)result;
	switch (message->kind) {
	case ITEM_UNEXPECTED:
		shown_done(messages, message);
		break;
	case ITEM_TAKEN:
		taken_done(messages, message);
		break;
	case ITEM_PART:
		part_done(messages, message);
		break;
	default:
		messages->options.done(messages->options.owner, message);
	}
}

/* --- events */

static void event_copy(
	const struct event_slot *slot, uint32_t attributes, uint32_t second, void *to)
{
	struct message_event *event = to;
	uint64_t word;

	(void)attributes;
	(void)second;
#define WORD(name) atomic_load_explicit(&slot->words[name], memory_order_relaxed)
	word = WORD(EVENT_REGION);
	event->kind = TIER_FIELD(word, TIER_KIND_AT);
	event->tier = TIER_FIELD(word, TIER_LIST_AT);
	event->verdict = TIER_FIELD(word, TIER_VERDICT_AT);
	event->peer = (uint32_t)WORD(EVENT_INITIATOR);
	event->from = (struct process){
		.nid = event->peer, .pid = (uint32_t)(WORD(EVENT_INITIATOR) >> 32)};
	event->user = WORD(EVENT_USER);
	event->start = WORD(EVENT_START);
	event->value = WORD(EVENT_VALUE);
	event->bits = WORD(EVENT_MATCH_BITS);
	event->requested = WORD(EVENT_REQUESTED);
	event->moved = WORD(EVENT_MOVED);
	event->offset = WORD(EVENT_OFFSET);
#undef WORD
}

/* M12. A process refuses what is sent to it under this name. */
static void refusal_heard(struct messages *messages, const struct message_event *event)
{
	const struct process *map =
		messages->options.peers ? messages->options.peers : messages->map;
	uint32_t count = messages->options.peers ? messages->options.count : messages->known;

	for (uint32_t i = 0; i < count; i++)
		if (process_same(map[i], event->from) && messages->peers[i].joined &&
			messages->peers[i].self == event->value) {
			peer_lose(messages, i, event->verdict);
			return;
		}
}

static void greeting_heard(struct messages *messages, const struct message_event *event)
{
	const struct greeting greeting = {
		.kind = ITEM_GREETED, .words = {event->bits, event->value, event->offset}};

	if (!messages->options.greeted(messages->options.owner, event->from, &greeting))
		counter_add(&segment_counters(messages->visit.segment)->greetings_dropped, 1);
}

static void event_handle(struct messages *messages, const struct message_event *event)
{
	void *item = (void *)(uintptr_t)event->user;

	if (event->kind == TIER_DISABLED) {
		messages->disabled = messages->waits = true;
		return;
	}
	if (!item) {
		if (event->kind == TIER_ACK)
			refusal_heard(messages, event);
		return;
	}
	messages->told_of += event->kind == TIER_PUT || event->kind == TIER_PUT_KEPT;
	switch (*(const uint8_t *)item) {
	case ITEM_SEND:
		send_fetched(messages, item, event);
		break;
	case ITEM_RECEIVE:
	case ITEM_PART:
		receive_fetched(messages, item, event);
		break;
	case ITEM_UNEXPECTED:
		shown_heard(messages, item, event);
		break;
	case ITEM_TAKEN:
		taken_heard(messages, item, event);
		break;
	case ITEM_MANY:
		many_heard(messages, item, event);
		break;
	case ITEM_CHUNK:
		chunk_fetched(messages, item, event);
		break;
	case ITEM_BLOCK:
		block_heard(messages, item, event);
		break;
	case ITEM_TELL:
		word_sent(messages, item, event);
		break;
	case ITEM_TOLD:
		word_heard(messages, event);
		break;
	case ITEM_GREETING:
		messages->pending--;
		messages->options.answered(messages->options.owner, item,
			event->verdict == TIER_OK              ? GREETING_TAKEN
			: event->verdict == TIER_PERMISSION    ? GREETING_DENIED
			: event->verdict == TIER_CLOSED        ? GREETING_CLOSED
			: event->verdict == TIER_UNDELIVERABLE ? GREETING_LOST
							       : GREETING_REFUSED);
		break;
	case ITEM_GREETED:
		greeting_heard(messages, event);
		break;
	default: {
		struct probe *probe = item;

		probe->found = true;
		probe->what = (struct message_found){event->peer, event->bits, event->requested,
			event->offset, (event->value & VALUE_MARKED) != 0};
	}
	}
}

/* Reads the data of an event, which are the poll core's again before the program says that it has
 * taken the message (engine/unexpected.h, U6). */
static void event_data_read(struct message_event *event, uint8_t *data)
{
	struct event_data *lent = (struct event_data *)(uintptr_t)event->start;

	memcpy(data, lent->data, event->moved);
	event->start = (uintptr_t)data;
	atomic_store_explicit(&lent->read, true, memory_order_release);
}

static void outcome_handle(struct messages *messages, struct outcome *outcome)
{
	void *item = outcome;

	if (outcome->kind == ITEM_SLOT) {
		slot_acknowledged(messages, item);
	} else if (outcome->kind == ITEM_SEND) {
		send_acknowledged(messages, item);
	} else if (outcome->kind == ITEM_DISPATCH) {
		dispatch_lost(messages, item);
	} else {
		messages->told_of++;
		receive_placed(messages, item);
	}
}

static unsigned outcomes_run(struct messages *messages)
{
	struct outcome *outcome = outcomes_take(messages->queue.queue);
	unsigned count = 0;

	while (outcome) {
		struct outcome *next = outcome->next; /* the object may be its owner's now */

		outcome_handle(messages, outcome);
		outcome = next;
		count++;
	}
	return count;
}

/* Receives, sends and fetches that wait go on, as far as there is room now. */
static __attribute__((noinline)) void waits_resume(struct messages *messages)
{
	if (messages->disabled) {
		messages->disabled = false;
		(void)visit_command(&messages->visit, COMMAND_PORTAL_ENABLE, PORTAL_SIDE, 0);
		if (!messages->options.peers)
			(void)visit_command(
				&messages->visit, COMMAND_PORTAL_ENABLE, PORTAL_GREETINGS, 0);
	}
	many_leave(messages);
	receives_resume(messages);
	sends_resume(messages);
	if (!list_empty(&messages->unbound))
		fetches_resume(messages); /* which reads the clock */
	messages->waits = !(list_empty(&messages->leaving) && list_empty(&messages->waiting[0]) &&
			    list_empty(&messages->waiting[1]) && list_empty(&messages->blocked) &&
			    list_empty(&messages->unbound));
}

/* What became of messages before an event was logged comes before the event. Not inline, because it
 * saves many registers: mostly there are outcomes alone. */
static __attribute__((noinline)) unsigned events_take(struct messages *messages)
{
	uint8_t data[COPIED_MAX];
	unsigned count = 0;
	struct message_event event;

	for (;;) {
		enum queue_answer answer = queue_take_oldest(&messages->queue, event_copy, &event);

		count += outcomes_run(messages);
		if (answer == QUEUE_EVENT_AFTER_GAP)
			messages->options.failed(messages->options.owner, messages->options.self,
				"has lost events, because its queue was full");
		else if (answer != QUEUE_EVENT)
			break;
		if (event.tier == TIER_DATA)
			event_data_read(&event, data);
		event_handle(messages, &event);
		count++;
	}
	return count;
}

unsigned events_read(struct messages *messages)
{
	unsigned count = outcomes_run(messages);

	if (queue_has_events(&messages->queue))
		count += events_take(messages);
	return count;
}

unsigned events_run(struct messages *messages)
{
	const unsigned count = events_read(messages);

	if (messages->waits)
		waits_resume(messages);
	return count;
}

/* The same for a look, which mostly finds nothing. */
static inline unsigned events_look(struct messages *messages)
{
	return messages->waits || queue_has_events(&messages->queue) ? events_run(messages) : 0;
}

/* Has a message arrived since the last call, kept or not? */
static bool arrivals_look(struct messages *messages)
{
	uint64_t arrived = counter_read(&segment_counters(messages->visit.segment)->puts_received);
	bool found = arrived != messages->arrived;

	messages->arrived = arrived;
	return found;
}

void messages_hear(struct messages *messages)
{
	if (!messages_has_events(messages) || !messages_visit(messages))
		return;
	events_run(messages);
	visit_leave(&messages->visit);
}

unsigned messages_progress(struct messages *messages)
{
	unsigned count;

	if (!messages_visit(messages))
		return 0;
	if (messages->visit.interface->inlined)
		(void)interface_drive();
	count = events_look(messages) + arrivals_look(messages);
	visit_leave(&messages->visit);
	return count;
}

struct wait {
	struct messages *messages;
	bool (*look)(void *context);
	void *context;
};

static bool wait_look(void *context)
{
	const struct wait *wait = context;

	if (!wait->look)
		return events_look(wait->messages) + arrivals_look(wait->messages) != 0;
	return wait->look(wait->context) ||
	       (events_look(wait->messages) != 0 && wait->look(wait->context));
}

bool messages_wait(
	struct messages *messages, bool (*look)(void *context), void *context, uint64_t timeout)
{
	struct wait wait = {messages, look, context};
	const uint64_t start = library_now();
	enum waiting_answer answer;
	bool told; /* by an event, or because this thread drives */

	if (look && look(context))
		return true;
	if (!messages_visit(messages))
		return false;
	told = look || messages->visit.interface->inlined;
	do {
		uint64_t passed = library_now() - start;
		uint64_t left = passed < timeout ? timeout - passed : 0;

		if ((messages_is_late(messages) || !told) && left > MILLISECOND)
			left = MILLISECOND;
		answer =
			events_await(&messages->visit, &messages->queue, 1, wait_look, &wait, left);
	} while (answer == WAITING_TIMEOUT && library_now() - start < timeout);
	visit_leave(&messages->visit);
	return answer == WAITING_FOUND;
}

bool messages_is_late(const struct messages *messages)
{
	return !list_empty(&messages->unbound) || !list_empty(&messages->leaving);
}

uint64_t messages_pending(const struct messages *messages)
{
	return messages->pending + letters_under_way(messages);
}

static bool await_look(void *context)
{
	const struct wait *wait = context;

	return messages_has_events(wait->messages) || wait->look(wait->context);
}

void messages_await(struct messages *messages, const struct queue_view *beside, unsigned count,
	bool (*look)(void *context), void *context, uint64_t timeout)
{
	struct queue_view queues[1 + BESIDE_MAX] = {messages->queue};
	struct wait wait = {messages, look, context};
	struct visit visit;

	assert(count <= BESIDE_MAX);
	for (unsigned i = 0; i < count; i++)
		queues[1 + i] = beside[i];

	/* The lock is not held: messages.visit is somebody else's. */
	if (front_visit(messages->options.front, &visit, messages->handle, HANDLE_INTERFACE, -1) !=
		0)
		return;
	(void)events_await(&visit, queues, 1 + count, await_look, &wait, timeout);
	visit_leave(&visit);
}

void messages_rouse(struct messages *messages)
{
	struct visit visit;

	if (front_visit(messages->options.front, &visit, messages->handle, HANDLE_INTERFACE, -1) !=
		0)
		return;
	interface_rouse_one(visit.interface);
	visit_leave(&visit);
}

int messages_watch(struct messages *messages)
{
	struct visit visit;
	int descriptor;

	if (front_visit(
		    messages->options.front, &visit, messages->queue_handle, HANDLE_QUEUE, -1) != 0)
		return -1;
	descriptor = events_watch(&visit, messages->queue_handle);
	visit_leave(&visit);
	return descriptor;
}

void messages_lower(struct messages *messages)
{
	struct visit visit;

	if (front_visit(
		    messages->options.front, &visit, messages->queue_handle, HANDLE_QUEUE, -1) != 0)
		return;
	if (queue_is_raised(messages->queue.queue))
		queue_lower(&messages->queue, visit.segment);
	visit_leave(&visit);
}

/* --- opening and closing */

/* most: the Portal's part of the queue, in events. */
static bool portal_make(
	struct messages *messages, unsigned index, uint32_t most, bool controlled, uint8_t position)
{
	struct portal *portal = segment_portal(messages->visit.segment, index);
	struct command command = {
		.kind = COMMAND_PORTAL_OPEN, .update = controlled, .position = position};

	atomic_store_explicit(&portal->state, PORTAL_CLAIMED, memory_order_relaxed);
	command.object.index = index;
	command.object.most = most;
	command.object.other = messages->queue_handle;
	return visit_call(&messages->visit, &command, NULL, NULL) == ANSWER_OK;
}

/* An entry that takes messages without data, for ever. */
static bool heard_make(struct messages *messages, unsigned portal, uint64_t bits, uint64_t ignore,
	const uint8_t *item)
{
	const struct entry_wish wish = {
		.portal = portal,
		.bits = bits,
		.ignore = ignore,
		.peer = UINT32_MAX,
		.options = REGION_PUT | REGION_TRUNCATE,
		.log = TIER_BIT(TIER_PUT),
		.item = item,
	};
	uint32_t index, generation;

	return entry_append(messages, &wish, &index, &generation);
}

/* Where processes introduce themselves. */
static bool greetings_make(struct messages *messages)
{
	return messages->options.peers ||
	       (portal_make(messages, PORTAL_GREETINGS, UNASKED, true, POSITION_STRANGERS) &&
		       heard_make(messages, PORTAL_GREETINGS, 0, UINT64_MAX, &messages->greeted));
}

/* Where messages of a class are matched. */
static bool class_make(struct messages *messages, unsigned class)
{
	return portal_make(messages, class_portal(class), UNASKED, false, 0) &&
	       last_entry_make(messages, class_portal(class), 1, REGION_PUT);
}

/* What the space needs before a message may come. */
static enum answer space_furnish(struct messages *messages)
{
	enum answer answer = events_make(&messages->visit, EVENTS, &messages->queue_handle);

	if (answer != ANSWER_OK)
		return answer;
	messages->queue = queue_view(messages->visit.segment,
		segment_queue(messages->visit.segment, handle_index(messages->queue_handle)),
		messages->queue_handle);
	if (!region_make(messages, NULL, &messages->region, &messages->generation) ||
		!map_tell(messages, messages->options.peers,
			messages->options.peers ? messages->options.count : 0, false) ||
		!portal_make(messages, PORTAL_SIDE, ASKED, true, POSITION_SHARES) ||
		!class_make(messages, 0) ||
		(messages->options.classes > 1 && !class_make(messages, 1)) ||
		!heard_make(messages, PORTAL_SIDE, BITS_TOLD, 0, &messages->told) ||
		!greetings_make(messages) ||
		!last_entry_make(messages, PORTAL_SIDE, 0, REGION_GET | REGION_REMOTE_OFFSET))
		return ANSWER_FAILED;
	blocks_renew(messages);
	return ANSWER_OK;
}

static enum answer space_open(struct messages *messages)
{
	const struct messages_options *options = &messages->options;
	const struct space_choice choice = {.number = options->space,
		.options = {.kind = SPACE_TIERS,
			.ranked = true,
			.two_sided = true,
			.ranks = options->count,
			.shares = messages->shares,
			.credits = &messages->peers[0].credit,
			.credit_step = sizeof(messages->peers[0]),
			.kept_share = (uint32_t)messages->share}};
	const struct segment_limits limits = {
		.entries = ENTRIES,
		.receives = RECEIVES_MAX,
		.attached = ENTRIES,
		.regions = ENTRIES,
		.queues = 1,
		.counters = 1,
		.unexpected = (uint32_t)messages->share * options->count + options->spare,
		.portals = PORTALS,
		.access = 1,
		.list_length = ENTRIES,
		.event_bytes = EVENT_BYTES,
	};
	enum answer answer = interface_open_space(
		options->front, options->interface, &choice, &limits, &messages->handle);

	if (answer != ANSWER_OK)
		return answer;
	if (!messages_visit(messages))
		return ANSWER_FAILED;
	answer = space_furnish(messages);
	visit_leave(&messages->visit);
	return answer;
}

void messages_divide(struct messages_options *options)
{
	uint32_t first = SHARE_FIRST, spare = SPARE_MOST;
	uint64_t left;

	/* Ranks that have the same list reckon the same, whatever their memory. */
	if (options->peers && options->count > SHARES_FIRST / SHARE_FIRST)
		first = options->count < SHARES_FIRST ? SHARES_FIRST / options->count : 1;
	options->headers = first * options->count;
	left = memory_left(options, options->headers);
	if (left / 2 / KEPT_BYTES < spare)
		spare = (uint32_t)(left / 2 / KEPT_BYTES);
	options->spare = spare;
}

/* With its tables by peer, of which those of peers that have never come take no memory. */
static size_t messages_bytes(uint32_t count)
{
	const struct messages *messages;

	return sizeof(*messages) + count * (sizeof(messages->peers[0]) + sizeof(*messages->shares));
}

enum answer messages_open(const struct messages_options *options, struct messages **opened)
{
	struct messages *messages = pages_map_root(messages_bytes(options->count));
	enum answer answer;

	assert(options->peers || options->count <= NAME_RANK_MASK); /* no name is RANK_NONE */
	if (!messages)
		return ANSWER_NO_MEMORY;
	messages->options = *options;
	messages->shares = (_Atomic uint32_t *)(void *)(messages->peers + options->count);
	if (messages->options.classes == 0)
		messages->options.classes = 1;
	if (!options->late)
		messages->letters_below =
			1 + (options->eager < COPIED_MAX ? options->eager : COPIED_MAX);
	messages->told = ITEM_TOLD;
	messages->greeted = ITEM_GREETED;
	messages->user_word.kind = ITEM_TELL;
	messages->share = options->headers / options->count;
	for (unsigned i = 0; i < CLASSES; i++)
		list_init(&messages->waiting[i]);
	list_init(&messages->fetched);
	list_init(&messages->leaving);
	list_init(&messages->unbound);
	list_init(&messages->blocked);
	list_init(&messages->unexpected);
	list_init(&messages->seen);
	list_init(&messages->parked);
	messages->unseen = true;
	list_init(&messages->retired);
	for (uint32_t i = 0; options->peers && i < options->count; i++)
		peer_reset(messages, i, messages_life(messages));
	answer = blocks_open(messages) ? space_open(messages) : ANSWER_NO_MEMORY;
	if (answer == ANSWER_OK)
		*opened = messages;
	else
		messages_close(messages);
	return answer;
}

void messages_close(struct messages *messages)
{
	if (messages->handle != 0)
		(void)interface_close(messages->options.front, messages->handle);
	shown_close(messages);
	many_close(messages);
	blocks_close(messages);
	for (uint32_t i = 0; i < messages->options.count; i++)
		while (messages->peers[i].chunks) {
			struct chunk *chunk = messages->peers[i].chunks;

			messages->peers[i].chunks = chunk->next;
			free(chunk);
		}
	free(messages->map);
	pages_unmap_root(messages, messages_bytes(messages->options.count));
}
