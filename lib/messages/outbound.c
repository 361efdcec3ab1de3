/* SPDX-License-Identifier: BSD-3-Clause */
/* outbound.c - sends: slots for short messages, exposed buffers for longer ones, and those that
 * wait for either. */
#include <messages/state.h>

#include <stdlib.h>
#include <string.h>

#include <base/barrier.h>
#include <base/trace.h>
#include <wire/message.h>

#define GET_LOG (TIER_BIT(TIER_GET) | TIER_BIT_FAILED(TIER_GET))

/* Short messages have slots of their own, because those of all that is eager lie so far apart that
 * each is on a page of its own, and in the same lines of a cache. */
static uint32_t slot_room(const struct messages *messages, uint64_t length)
{
	return length <= SLOT_SMALL && SLOT_SMALL < messages->options.eager
		       ? SLOT_SMALL
		       : messages->options.eager;
}

static struct chunk *chunk_make(struct messages *messages, uint32_t peer, uint32_t room)
{
	bool small = room < messages->options.eager;
	struct peer *to = &messages->peers[peer];
	struct entry_wish wish = {.portal = PORTAL_SIDE,
		.first = true,
		.ignore = BITS_EARLY,
		.peer = peer,
		.log = GET_LOG};
	uint64_t bytes = (uint64_t)room * CHUNK_SLOTS;
	struct chunk *chunk;

	if ((small ? to->chunks_small : to->chunk_count - to->chunks_small) == CHUNKS_MAX)
		return NULL;
	/* Zeros: the peer may read what no message has been copied to. */
	chunk = calloc(1, sizeof(*chunk) + bytes);
	if (!chunk)
		return NULL;
	chunk->kind = ITEM_CHUNK;
	chunk->peer = peer;
	chunk->name = NAME_CHUNK | to->chunk_count;
	chunk->room = room;
	chunk->next = to->chunks;
	chunk->free = UINT64_MAX;
	for (uint32_t i = 0; i < CHUNK_SLOTS; i++)
		chunk->slots[i] = (struct slot){.kind = ITEM_SLOT, .index = i, .chunk = chunk};
	wish.bits = chunk->name;
	wish.start = chunk->memory;
	wish.length = bytes;
	wish.options = REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE;
	wish.item = chunk;
	if (!entry_append(messages, &wish, &chunk->entry, &chunk->generation)) {
		free(chunk);
		return NULL;
	}
	to->chunks = chunk;
	to->chunk_count++;
	to->chunks_small += small;
	return chunk;
}

/* Takes those out of a peer's list that nothing can refer to any more but events that are here. */
static struct chunk *chunks_take_idle(
	struct messages *messages, struct peer *peer, struct chunk *taken)
{
	struct chunk **link = &peer->chunks;

	while (*link) {
		struct chunk *chunk = *link;

		if (chunk->free != UINT64_MAX ||
			!entry_withdraw(messages, chunk->entry, chunk->generation)) {
			link = &chunk->next;
			continue;
		}
		*link = chunk->next;
		chunk->next = taken;
		taken = chunk;
	}
	return taken;
}

void chunks_retire(struct messages *messages)
{
	struct chunk *idle = NULL;

	for (uint32_t i = 0; i < messages->known; i++)
		if (messages->peers[i].failed)
			idle = chunks_take_idle(messages, &messages->peers[i], idle);
	if (idle)
		events_run(messages);
	while (idle) {
		struct chunk *chunk = idle;

		idle = chunk->next;
		free(chunk);
	}
}

bool sends_ended(const struct peer *peer)
{
	/* Acquire: L3. */
	return atomic_load_explicit(&peer->dispatch.ended, memory_order_acquire) == peer->letters &&
	       !atomic_load_explicit(&peer->dispatch.told, memory_order_relaxed) && !peer->chunks &&
	       peer->flying == 0 && !peer->blocked && list_empty(&peer->begun) &&
	       !peer->tell.busy && !peer->alive.busy;
}

static struct slot *slot_take(struct messages *messages, uint32_t peer, uint64_t length)
{
	const uint32_t room = slot_room(messages, length);
	struct chunk *chunk = messages->peers[peer].chunks;
	struct slot *slot;

	while (chunk && (chunk->free == 0 || chunk->room != room))
		chunk = chunk->next;
	if (!chunk && !(chunk = chunk_make(messages, peer, room)))
		return NULL;
	slot = &chunk->slots[__builtin_ctzll(chunk->free)];
	chunk->free &= chunk->free - 1;
	messages->pending++;
	return slot;
}

/* M3. */
static void slot_settle(struct messages *messages, struct slot *slot, enum transfer_result result)
{
	struct transfer *message = slot->message;

	if (!slot->acknowledged || (slot->kept && !slot->fetched))
		return;
	slot->used = false;
	slot->chunk->free |= UINT64_C(1) << slot->index;
	messages->pending--;
	if (message)
		messages_finish(messages, message, result);
}

/* A longer send that had begun has ended. */
static void longer_leave(struct messages *messages, struct transfer *message)
{
	link_remove(&message->link);
	messages->peers[message->peer].longer--;
	messages->longer--;
	messages->pending--;
	vector_release(messages, message);
}

static void send_settle(
	struct messages *messages, struct transfer *message, enum transfer_result result)
{
	if (!message->acknowledged || (message->kept && !message->fetched))
		return;
	longer_leave(messages, message);
	messages_finish(messages, message, result);
}

/* --- credit (M5; engine/credit.h, C4). The program alone writes `sent`. */

/* M12. Is what may go unanswered in use, and so much more, as far as the program has heard? A peer
 * that lies may have freed more than was sent. */
static bool quiet_is_used(const struct peer *to, int64_t more)
{
	return (int64_t)(atomic_load_explicit(&to->credit.sent, memory_order_relaxed) -
			 to->freed) >=
	       (int64_t)atomic_load_explicit(&to->credit.quiet, memory_order_relaxed) + more;
}

static void credit_unspend(struct credit *credit)
{
	atomic_store_explicit(&credit->sent,
		atomic_load_explicit(&credit->sent, memory_order_relaxed) - 1,
		memory_order_relaxed);
}

/* Counts a message. Returns false if the share is used up. */
static inline bool credit_spend(struct credit *credit)
{
	const uint64_t sent = atomic_load_explicit(&credit->sent, memory_order_relaxed) + 1;
	int64_t used;

	atomic_store_explicit(&credit->sent, sent, memory_order_relaxed);
	barrier_light(); /* C4 */
	used = (int64_t)(sent - atomic_load_explicit(&credit->freed, memory_order_relaxed));
	if (__builtin_expect(
		    used <= (int64_t)atomic_load_explicit(&credit->share, memory_order_relaxed), 1))
		return true;
	credit_unspend(credit);
	return false;
}

/* A message that wants an answer has been counted. */
static void store_post(struct messages *messages, struct transfer *message, uint64_t value,
	const void *data, struct outcome *outcome)
{
	struct peer *to = &messages->peers[message->peer];
	const bool is_short = quiet_is_used(to, 1); /* this one is counted */
	struct move move = {.portal = class_portal(message->class),
		.match_bits = message->bits,
		.value =
			value | (message->marked ? VALUE_MARKED : 0) | (is_short ? VALUE_SHORT : 0),
		.offset = message->data};
	struct rma_line line = {.local = (uintptr_t)data,
		.length = message->length,
		.user = item_name(outcome),
		.message = MESSAGE_STORE,
		.want = WANT_OUTCOME};

	outcome->peer = message->peer;
	if (to->asks) {
		to->asks = false;
		credit_refresh(to);
	}
	to->flying++;
	messages->flying++;
	message_rma(messages, message, &move, &line);
}

static uint64_t wish_length(const struct send_wish *wish)
{
	return wish->vector ? map_vector_length(wish->vector) : wish->length;
}

/* M12. Letters to a peer are as many as are left for others: a peer that takes no frames, but tells
 * of credit, leaves some to all. */
static bool letters_have_place(const struct messages *messages, const struct peer *to)
{
	return letters_under_way(messages) + to->letters -
		       atomic_load_explicit(&to->dispatch.ended, memory_order_relaxed) <
	       UNANSWERED_MAX;
}

/* M12. A trace shows what is answered. */
static inline __attribute__((always_inline)) bool needs_answer(
	const struct messages *messages, const struct peer *to, const struct send_wish *wish)
{
	return wish->synchronous || wish->late || wish_length(wish) >= messages->letters_below ||
	       quiet_is_used(to, 0) || !letters_have_place(messages, to) || trace_wanted();
}

/* M12 */
static void letter_start(struct messages *messages, struct peer *to, const struct send_wish *wish)
{
	const void *data = wish->buffer;
	char gathered[COPIED_MAX];
	struct command letter; /* whose other members mean nothing */

	letter.kind = COMMAND_LETTER;
	letter.length = (uint32_t)wish_length(wish);
	letter.letter.dispatch = (uintptr_t)&to->dispatch;
	letter.letter.to = process_of_peer(messages, to->tell.peer);
	letter.letter.portal = class_portal(wish->class);
	letter.letter.cookie = to->self;
	letter.letter.match_bits = wish->bits;
	letter.letter.value = wish->marked ? VALUE_MARKED : 0;
	letter.letter.offset = wish->marked ? wish->data : 0;
	if (wish->vector) {
		map_vector_copy_out(wish->vector, 0, gathered, letter.length);
		data = gathered;
	}
	to->letters++;
	messages->letters++;
	submission_letter(&messages->visit.interface->submission, &letter, data);
}

/* M6. May one more message to a peer be under way? It has as many as are left for others, so a peer
 * that answers nothing leaves some to all. */
static bool flight_has_place(const struct messages *messages, const struct peer *to)
{
	return messages->flying + to->flying < SENDS_MAX;
}

bool messages_inject(struct messages *messages, uint32_t peer, const struct send_wish *wish)
{
	struct peer *to = &messages->peers[peer];
	bool spent;

	if (to->failed || to->blocked || !to->joined || needs_answer(messages, to, wish) ||
		!messages_visit(messages))
		return false;
	spent = credit_spend(&to->credit);
	if (spent) {
		to->carried = true;
		letter_start(messages, to, wish);
	}
	visit_leave(&messages->visit);
	return spent;
}

void dispatch_lost(struct messages *messages, struct peer *peer)
{
	const enum tier_verdict verdict = peer->dispatch.lost.verdict;

	atomic_store_explicit(&peer->dispatch.told, false, memory_order_release);
	peer_lose(messages, (uint32_t)(peer - messages->peers), verdict);
}

uint64_t letters_under_way(const struct messages *messages)
{
	return messages->letters -
	       atomic_load_explicit(&messages->letters_ended, memory_order_acquire);
}

static bool short_start(struct messages *messages, struct transfer *message)
{
	struct slot *slot = slot_take(messages, message->peer, message->length);
	uint64_t value = message->synchronous ? VALUE_SYNCHRONOUS : 0;
	struct chunk *chunk;
	char *data;

	if (!slot)
		return false;
	chunk = slot->chunk;
	data = chunk->memory + slot->index * chunk->room;
	if (message->vector)
		map_vector_copy_out(message->vector, 0, data, message->length);
	else if (message->length > 0)
		memcpy(data, message->buffer, message->length);
	slot->used = true;
	slot->acknowledged = slot->kept = slot->fetched = false;
	slot->length = message->length;
	slot->synchronous = message->synchronous;
	slot->message = message->synchronous || message->late ? message : NULL;
	value |= (uint64_t)chunk->name << 32 | slot->index * chunk->room;
	store_post(messages, message, value, data, &slot->outcome);
	if (!slot->message)
		messages_finish(messages, message, TRANSFER_DONE);
	return true;
}

/* A name for a longer send to a peer. Names come again, and a send that nobody receives keeps its
 * own: `begun` is in the order of names, from the one that comes next. So only the first may have
 * the next name, and is the last then. */
static uint32_t name_take(struct peer *to)
{
	struct transfer *oldest;

	do {
		to->names = to->names == NAMES - 1 ? 1 : to->names + 1;
		oldest = list_first(&to->begun, struct transfer, link);
		if (!oldest || VALUE_NAME(oldest->value) != to->names)
			return to->names;
		link_remove(&oldest->link);
		list_append(&to->begun, &oldest->link);
	} while (true);
}

static bool long_start(struct messages *messages, struct transfer *message)
{
	struct peer *to = &messages->peers[message->peer];
	struct entry_wish wish = {
		.portal = PORTAL_SIDE,
		.first = true,
		.peer = message->peer,
		.start = message->buffer,
		.vector = message->vector,
		.length = message->length,
		.options = REGION_GET | REGION_REMOTE_OFFSET | REGION_TRUNCATE,
		.flags = ATTACHMENT_ONCE,
		.log = GET_LOG,
		.item = message,
	};

	/* M6: as many as are left for others. */
	if (messages->longer + to->longer >= LONGER_MAX || !vector_bind(messages, message))
		return false;
	wish.bits = name_take(to);
	if (!entry_append(messages, &wish, &message->entry, &message->generation))
		return false;
	list_append(&to->begun, &message->link);
	to->longer++;
	messages->longer++;
	messages->pending++;
	message->posted = true;
	message->acknowledged = message->kept = message->fetched = false;
	message->value = (message->synchronous ? VALUE_SYNCHRONOUS : 0) | wish.bits << 32;
	store_post(messages, message, message->value, message->buffer, &message->outcome);
	return true;
}

static struct send_wish wish_of(const struct transfer *message)
{
	return (struct send_wish){.class = message->class,
		.bits = message->bits,
		.buffer = message->buffer,
		.length = message->length,
		.vector = message->vector,
		.data = message->data,
		.marked = message->marked,
		.synchronous = message->synchronous,
		.late = message->late};
}

/* Returns false if it has to wait. */
static bool send_start(struct messages *messages, struct transfer *message)
{
	struct peer *peer = &messages->peers[message->peer];
	const struct send_wish wish = wish_of(message);
	bool answered;

	if (!peer->joined || !flight_has_place(messages, peer))
		return false;
	answered = needs_answer(messages, peer, &wish);
	if (!credit_spend(&peer->credit))
		return false;
	if (!answered) {
		letter_start(messages, peer, &wish);
		messages_finish(messages, message, TRANSFER_DONE);
		return true;
	}
	if (message->length <= messages->options.eager ? short_start(messages, message)
						       : long_start(messages, message))
		return true;
	credit_unspend(&peer->credit);
	return false;
}

/* M12. A program that only sends makes no call that hears of credit. */
static void credit_look(struct messages *messages, const struct peer *to)
{
	if (quiet_is_used(to, 0) && queue_has_events(&messages->queue))
		events_run(messages);
}

static void send_begin(struct messages *messages, struct transfer *message)
{
	struct peer *to = &messages->peers[message->peer];

	to->carried = true;
	if (to->failed) {
		messages_finish(messages, message, TRANSFER_FAILED);
		return;
	}
	if (!messages_visit(messages))
		return;
	credit_look(messages, to);
	if (to->failed || to->blocked || !send_start(messages, message)) {
		messages->pending++;
		list_append(&to->waiting, &message->link);
		if (!to->blocked)
			list_append(&messages->blocked, &to->link);
		to->blocked = messages->waits = true;
	}
	visit_leave(&messages->visit);
}

void messages_send(struct messages *messages, struct transfer *message, uint32_t peer,
	const struct send_wish *wish)
{
	transfer_begin(message, ITEM_SEND, wish->class, peer, wish->bits);
	message->synchronous = wish->synchronous;
	message->late = wish->late || messages->options.late;
	message->marked = wish->marked;
	message->data = wish->marked ? wish->data : 0;
	message->buffer = (void *)(uintptr_t)wish->buffer;
	message->vector = wish->vector;
	message->length = wish_length(wish);
	send_begin(messages, message);
}

bool messages_move(struct transfer *message, const void *buffer)
{
	if (message->posted || !link_listed(&message->link))
		return false;
	message->buffer = (void *)(uintptr_t)buffer;
	message->vector = NULL;
	return true;
}

/* The peer fetches nothing any more: what only waits for that ends. */
void sends_abandon(struct messages *messages, struct peer *peer)
{
	for (struct chunk *chunk = peer->chunks; chunk; chunk = chunk->next)
		for (uint32_t i = 0; i < CHUNK_SLOTS; i++) {
			struct slot *slot = &chunk->slots[i];

			if (!slot->used || !slot->acknowledged || slot->fetched)
				continue;
			slot->fetched = true;
			slot_settle(messages, slot, TRANSFER_FAILED);
		}
	list_each (struct transfer, message, &peer->begun, link)
		if (message->acknowledged && !message->fetched &&
			entry_withdraw(messages, message->entry, message->generation)) {
			message->fetched = true;
			send_settle(messages, message, TRANSFER_FAILED);
		}
}

/* The slot of a short send that is not done; NULL: there is none. */
static struct slot *slot_of(struct messages *messages, const struct transfer *message)
{
	for (struct chunk *chunk = messages->peers[message->peer].chunks; chunk;
		chunk = chunk->next)
		for (uint32_t i = 0; i < CHUNK_SLOTS; i++)
			if (chunk->slots[i].used && chunk->slots[i].message == message)
				return &chunk->slots[i];
	return NULL;
}

bool send_abandon(struct messages *messages, struct transfer *message)
{
	struct slot *slot;

	if (!link_listed(&message->link)) {
		slot = slot_of(messages, message);
		if (slot)
			slot->message = NULL;
		return slot != NULL;
	}
	/* Of one that has begun the memory must be out of the peer's reach. */
	if (message->posted &&
		(!message->acknowledged || message->fetched ||
			!entry_withdraw(messages, message->entry, message->generation)))
		return false;
	if (message->posted) {
		longer_leave(messages, message);
		return true;
	}
	link_remove(&message->link);
	messages->pending--;
	vector_release(messages, message);
	return true;
}

void sends_resume(struct messages *messages)
{
	list_each (struct peer, peer, &messages->blocked, link) {
		bool goes_on = true;

		list_each (struct transfer, message, &peer->waiting, link) {
			if (!goes_on)
				break;
			link_remove(&message->link);
			messages->pending--;
			if (peer->failed) {
				vector_release(messages, message);
				messages_finish(messages, message, TRANSFER_FAILED);
			} else if (!send_start(messages, message)) {
				messages->pending++;
				list_append(peer->waiting.next, &message->link);
				goes_on = false;
			}
		}
		if (goes_on) {
			link_remove(&peer->link);
			peer->blocked = false;
		}
	}
}

/* What an ACK says of a message. *fetches: the target fetches it, or has. If the peer is lost (M9),
 * this message is not among those that have their ACK: its caller ends it. */
static enum transfer_result acknowledged(struct messages *messages, uint32_t peer, uint64_t length,
	bool synchronous, bool fetched, const struct outcome *outcome, bool *fetches)
{
	struct peer *to = &messages->peers[peer];

	messages->flying--;
	to->flying--;
	credit_refresh(to);
	*fetches = false;
	if (outcome->verdict != TIER_OK) {
		peer_lose(messages, peer, outcome->verdict);
		return TRANSFER_FAILED;
	}
	if (outcome->tier == 0)
		return TRANSFER_DONE;
	*fetches = synchronous || outcome->moved < length;
	if (!*fetches || fetched || !to->failed)
		return TRANSFER_DONE;
	/* A peer that was dismissed meanwhile fetches no more. */
	*fetches = false;
	return TRANSFER_FAILED;
}

void slot_acknowledged(struct messages *messages, struct slot *slot)
{
	enum transfer_result result;

	result = acknowledged(messages, slot->chunk->peer, slot->length, slot->synchronous,
		slot->fetched, &slot->outcome, &slot->kept);
	slot->acknowledged = true;
	slot_settle(messages, slot, result);
}

void send_acknowledged(struct messages *messages, struct transfer *message)
{
	enum transfer_result result = acknowledged(messages, message->peer, message->length,
		message->synchronous, message->fetched, &message->outcome, &message->kept);

	message->acknowledged = true;
	/* A peer that does not fetch has no business with the buffer any more; one that does all
	 * the same is waited for. */
	if (!message->kept && !message->fetched &&
		!entry_withdraw(messages, message->entry, message->generation))
		message->kept = true;
	send_settle(messages, message, result);
}

static enum transfer_result fetch_result(
	struct messages *messages, uint32_t peer, const struct message_event *event)
{
	if (event->verdict == TIER_OK)
		return TRANSFER_DONE;
	peer_lose(messages, peer, event->verdict);
	return TRANSFER_FAILED;
}

void chunk_fetched(
	struct messages *messages, struct chunk *chunk, const struct message_event *event)
{
	uint64_t index = event->offset / chunk->room;
	struct slot *slot;

	if (index >= CHUNK_SLOTS || !chunk->slots[index].used)
		return;
	if (event->bits & BITS_EARLY && event->verdict == TIER_OK)
		return;
	slot = &chunk->slots[index];
	slot->fetched = true;
	slot_settle(messages, slot, fetch_result(messages, chunk->peer, event));
}

void send_fetched(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	message->fetched = true;
	send_settle(messages, message, fetch_result(messages, message->peer, event));
}
