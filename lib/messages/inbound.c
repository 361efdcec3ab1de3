/* SPDX-License-Identifier: BSD-3-Clause */
/* inbound.c - receives, from the post to the last byte; probe and cancel. */
#include <messages/state.h>

#include <string.h>

#include <base/clock.h>
#include <engine/statistics.h>
#include <wire/message.h>

#define PAUSE (500 * MICROSECOND) /* before a fetch is tried again */

static bool receive_post(struct messages *messages, struct transfer *message)
{
	struct command command;

	if (message->many)
		return many_post(messages, message);
	/* A fetch for another kind of message is counted here, too, and may exceed the limit. */
	if (messages->posted >= RECEIVES_MAX)
		return false;
	command = (struct command){.kind = COMMAND_RECEIVE,
		.position = message->vector ? RECEIVE_VECTOR : RECEIVE_PIECE,
		.receive = {
			.bits = message->bits,
			.ignore = message->ignore,
			.start = message->vector ? (uintptr_t)message->vector
						 : (uintptr_t)message->buffer,
			.length = message->length,
			.outcome = (uintptr_t)&message->outcome,
			.peer = message->peer,
			.portal = class_portal(message->class),
		}};
	message->posted = true;
	messages->posted++;
	/* One that was carried out at once had none before it in the ring. */
	messages->waits_post =
		!submission_receive(&messages->visit.interface->submission, &command);
	return true;
}

static bool receive_withdraw(struct messages *messages, const struct transfer *message)
{
	struct command command = {.kind = COMMAND_RECEIVE_WITHDRAW};

	command.object.other = (uintptr_t)&message->outcome;
	return visit_call(&messages->visit, &command, NULL, NULL) == ANSWER_OK;
}

static void receive_queue(struct messages *messages, struct transfer *message)
{
	struct link *waiting = &messages->waiting[message->class];

	if (list_empty(waiting) && receive_post(messages, message))
		return;
	list_append(waiting, &message->link);
	messages->waits = true;
}

void receive_start(struct messages *messages, struct transfer *message)
{
	if (!shown_meet(messages, message))
		receive_queue(messages, message);
}

/* May a message be kept, or be under way? */
static bool receive_may_match(const struct messages *messages)
{
	const struct engine_counters *counters = segment_counters(messages->visit.segment);

	return counter_read(&counters->puts_received) !=
	       messages->told_of + counter_read(&counters->unexpected_removed);
}

/* The poll core has to carry out what was posted before it is known what a receive gets. */
static void receive_catch_up(struct messages *messages)
{
	if (messages_has_events(messages))
		events_run(messages);
	if (!messages->waits_post || !receive_may_match(messages))
		return;
	messages->waits_post = false;
	(void)visit_command(&messages->visit, COMMAND_RANK_ENDED, 0, 0);
	events_run(messages);
}

static void receive_begin(struct messages *messages, struct transfer *message)
{
	if (!messages_visit(messages))
		return;
	if (messages->show == SHOW_NOTHING && list_empty(&messages->seen))
		receive_queue(messages, message); /* no message has been shown, none is parked */
	else
		shown_begin(messages, message);
	if (receive_may_match(messages))
		receive_catch_up(messages);
	visit_leave(&messages->visit);
}

void messages_receive_wish(
	struct messages *messages, struct transfer *message, const struct receive_wish *wish)
{
	transfer_begin(message, wish->many ? ITEM_MANY : ITEM_RECEIVE, wish->class, wish->peer,
		wish->bits & ~wish->ignore);
	message->ignore = wish->ignore;
	message->buffer = wish->buffer;
	message->vector = wish->vector;
	message->length = wish->vector ? map_vector_length(wish->vector) : wish->room;
	message->many = wish->many;
	if (wish->many)
		wish->many->receive = message;
	receive_begin(messages, message);
}

void receives_resume(struct messages *messages)
{
	/* One of them may match (U1). */
	if (messages->show == SHOW_ASKED || messages->show == SHOW_FETCHED)
		return;
	for (unsigned i = 0; i < CLASSES; i++)
		list_each (struct transfer, message, &messages->waiting[i], link) {
			if (!receive_post(messages, message))
				break;
			link_remove(&message->link);
		}
}

bool messages_cancel(struct messages *messages, struct transfer *message)
{
	bool taken_back;

	if (message->many)
		many_cancel(messages, message);
	if (message->kind != ITEM_RECEIVE || message->acknowledged)
		return false;
	if (!message->posted) {
		receive_unlist(message);
		return true;
	}
	if (!messages_visit(messages))
		return false;
	taken_back = receive_withdraw(messages, message);
	messages->posted -= taken_back;
	visit_leave(&messages->visit);
	return taken_back;
}

void fetch_nothing(struct messages *messages, const struct transfer *message)
{
	struct move move = {
		.portal = PORTAL_SIDE,
		.match_bits = VALUE_NAME(message->value),
		.offset = VALUE_OFFSET(message->value),
	};
	const struct rma_line line = {.message = MESSAGE_LOAD};

	rma_command_post(messages, &move, &line, message->peer);
}

static bool receive_abandon(struct messages *messages, struct transfer *message)
{
	struct peer *peer = &messages->peers[message->peer];

	if (link_listed(&message->link)) {
		if (!peer->failed && !peer->joined)
			return false; /* its sender cannot hear of it yet */
		link_remove(&message->link);
		if (!peer->failed)
			fetch_nothing(messages, message);
	} else if (receive_withdraw(messages, message)) {
		peer->fetches--; /* the poll core goes on with it (engine/rma.c, C8) */
	} else {
		return false;
	}
	messages->posted--;
	vector_release(messages, message);
	return true;
}

bool messages_abandon(struct messages *messages, struct transfer *message)
{
	bool given_up;

	if ((message->kind == ITEM_RECEIVE && !message->posted && !message->acknowledged) ||
		!messages_visit(messages))
		return false;
	if (message->kind == ITEM_SEND)
		given_up = send_abandon(messages, message);
	else if (message->acknowledged)
		given_up = receive_abandon(messages, message);
	else
		given_up = taken_pass(messages, message);
	visit_leave(&messages->visit);
	return given_up;
}

/* Writes into a receive which message has come for it. */
static void receive_matched(
	struct messages *messages, struct transfer *message, const struct outcome *outcome)
{
	messages->peers[outcome->peer].carried = true;
	message->acknowledged = true;
	message->peer = outcome->peer;
	message->bits = outcome->bits;
	message->value = outcome->value;
	message->data = outcome->offset;
	message->marked = (outcome->value & VALUE_MARKED) != 0;
	message->whole = outcome->requested;
	message->result = outcome->requested > message->length ? TRANSFER_CUT : TRANSFER_DONE;
	if (outcome->requested < message->length)
		message->length = outcome->requested;
}

void receive_told(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	const struct outcome outcome = {.peer = event->peer,
		.bits = event->bits,
		.value = event->value,
		.requested = event->requested,
		.offset = event->offset};

	receive_matched(messages, message, &outcome);
}

/* M6. A receive that fetches counts as posted until it has its data. */
static void receive_finish(
	struct messages *messages, struct transfer *message, enum transfer_result result)
{
	messages->posted--;
	vector_release(messages, message);
	messages_finish(messages, message, result);
}

static void receive_fail(
	struct messages *messages, struct transfer *message, enum tier_verdict verdict)
{
	message->length = 0;
	peer_lose(messages, message->peer, verdict);
	receive_finish(messages, message, TRANSFER_FAILED);
}

static void fetch_later(struct messages *messages, struct transfer *message)
{
	message->due = library_now() + PAUSE;
	list_append(&messages->unbound, &message->link);
	messages->waits = true;
}

/* Is data fetched of a message that nobody has received, and whose sender waits for that? */
static bool fetch_is_early(const struct transfer *message, uint64_t length)
{
	return message->kind == ITEM_UNEXPECTED && length > 0 && message->value & VALUE_SYNCHRONOUS;
}

/* Fetches what a receive wants of the data that is still at its sender. That may have sent before
 * this end's name at the sender is known here. */
void fetch_post(struct messages *messages, struct transfer *message, uint64_t length)
{
	const uint64_t early = fetch_is_early(message, length) ? BITS_EARLY : 0;
	struct peer *peer = &messages->peers[message->peer];
	struct move move = {
		.portal = PORTAL_SIDE,
		.match_bits = VALUE_NAME(message->value) | early,
		.offset = VALUE_OFFSET(message->value),
	};
	struct rma_line line = {.local = (uintptr_t)message->buffer,
		.length = length,
		.user = item_name(message),
		.message = MESSAGE_LOAD};

	if (peer->failed)
		receive_fail(messages, message, TIER_UNDELIVERABLE);
	else if (!peer->joined || (length > 0 && !vector_bind(messages, message)))
		fetch_later(messages, message);
	else {
		peer->fetches++;
		message_rma(messages, message, &move, &line);
	}
}

bool receives_ended(const struct messages *messages, uint32_t peer)
{
	list_each (const struct transfer, message, &messages->unbound, link)
		if (message->peer == peer)
			return false;
	return messages->peers[peer].fetches == 0 && many_ended(messages, peer);
}

/* A receive has got a message that was kept, if `here` with its data. Inline, it would make
 * receive_placed() save more registers. */
static __attribute__((noinline)) void receive_go_on(
	struct messages *messages, struct transfer *message, enum tier_verdict verdict, bool here)
{
	credit_count(messages, message->peer);
	if (verdict != TIER_OK) {
		receive_fail(messages, message, verdict);
		return;
	}
	message->kept = !here;
	if (here && !(message->value & VALUE_SYNCHRONOUS))
		receive_finish(messages, message, message->result);
	else
		fetch_post(messages, message, here ? 0 : message->length);
}

void receive_kept(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	const bool here = event->moved == event->requested;

	receive_told(messages, message, event);
	if (here && event->verdict == TIER_OK && message->vector)
		(void)map_vector_copy_in(
			message->vector, 0, (const void *)(uintptr_t)event->start, message->length);
	else if (here && event->verdict == TIER_OK && message->length > 0)
		memcpy(message->buffer, (const void *)(uintptr_t)event->start, message->length);
	receive_go_on(messages, message, event->verdict, here);
}

void receive_unexpected(struct messages *messages, struct transfer *message,
	const struct unexpected *unexpected, enum tier_verdict verdict)
{
	const struct transfer *kept = &unexpected->transfer;
	const struct message_event event = {
		.kind = TIER_PUT_KEPT,
		.verdict = (uint8_t)verdict,
		.peer = kept->peer,
		.start = (uintptr_t)unexpected->data,
		.value = kept->value,
		.bits = kept->bits,
		.requested = kept->whole,
		.moved = unexpected->moved,
		.offset = kept->data,
	};

	messages->posted++;
	receive_kept(messages, message, &event);
}

void receive_placed(struct messages *messages, struct transfer *message)
{
	const struct outcome *outcome = &message->outcome;

	receive_matched(messages, message, outcome);
	if (outcome->tier != 0) {
		receive_go_on(
			messages, message, outcome->verdict, outcome->moved == outcome->requested);
		return;
	}
	if (VALUE_IS_UNANSWERED(message->value))
		credit_count(messages, message->peer);
	if (outcome->verdict == TIER_OK)
		receive_finish(messages, message, message->result);
	else
		receive_fail(messages, message, outcome->verdict);
}

void receive_fetched(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	uint64_t wanted = message->kept ? message->length : 0;

	messages->peers[message->peer].fetches--;
	if (event->verdict != TIER_OK) {
		receive_fail(messages, message, event->verdict);
	} else if (event->moved != wanted) {
		message->length = 0;
		receive_finish(messages, message, TRANSFER_WITHDRAWN);
	} else {
		receive_finish(messages, message, message->result);
	}
}

void fetches_resume(struct messages *messages)
{
	uint64_t now = library_now();

	list_each (struct transfer, message, &messages->unbound, link) {
		if (message->due > now)
			return;
		link_remove(&message->link);
		fetch_post(messages, message, message->kept ? message->length : 0);
	}
}

static struct message_found found_of(const struct unexpected *shown)
{
	return (struct message_found){shown->transfer.peer, shown->transfer.bits,
		shown->transfer.whole, shown->transfer.data, shown->transfer.marked};
}

/* Among the headers that the poll core keeps. */
static bool kept_find(
	struct messages *messages, const struct receive_wish *wish, struct message_found *found)
{
	struct probe probe = {.kind = ITEM_PROBE};

	if (!messages_visit(messages))
		return false;
	(void)kept_search(messages, &probe, wish, ATTACHMENT_ONCE, TIER_BIT(TIER_SEARCH), false);
	/* The event was logged before the answer. What arrives behind that is for the next
	 * messages_progress() to tell. No receive that waits begins: it might get what was found,
	 * which messages_take() is about to take. */
	events_read(messages);
	visit_leave(&messages->visit);
	*found = probe.what;
	return probe.found;
}

bool messages_has_carried(struct messages *messages, uint32_t index)
{
	struct receive_wish wish = {.peer = index, .ignore = UINT64_MAX};
	struct peer *peer = &messages->peers[index];
	struct message_found found;

	for (; wish.class < messages->options.classes && !peer->carried; wish.class ++)
		peer->carried = kept_find(messages, &wish, &found);
	return peer->carried;
}

bool messages_probe_wish(
	struct messages *messages, const struct receive_wish *wish, struct message_found *found)
{
	const struct unexpected *shown = NULL;

	/* What has come by now counts, too. */
	messages_progress(messages);
	if (wish->class == 0)
		shown = shown_find(messages, wish->peer, wish->bits, wish->ignore, true);
	if (!shown)
		return kept_find(messages, wish, found);
	*found = found_of(shown);
	return true;
}

bool messages_probe(
	struct messages *messages, uint64_t bits, uint64_t ignore, struct message_found *found)
{
	const struct receive_wish wish = {.peer = PEER_ANY, .bits = bits, .ignore = ignore};

	return messages_probe_wish(messages, &wish, found);
}

bool messages_claim(struct messages *messages, uint64_t bits, uint64_t ignore, bool again,
	bool shows, struct message_found *found)
{
	const struct receive_wish wish = {.peer = PEER_ANY, .bits = bits, .ignore = ignore};
	struct unexpected *shown;

	messages_progress(messages);
	while (!(shown = shown_find(messages, PEER_ANY, bits, ignore, again))) {
		if (!kept_find(messages, &wish, found))
			return false;
		if (!shows || shown_is_full(messages))
			return true;
		if (!messages_show(messages, 0))
			return again; /* the message is not wholly here: a little later */
		messages_shown(messages, false);
	}
	shown->claimed = true;
	*found = found_of(shown);
	return true;
}

bool messages_has_events(const struct messages *messages)
{
	return queue_has_events(&messages->queue);
}
