/* SPDX-License-Identifier: BSD-3-Clause */
/* shown.c - messages that are shown before a receive has asked for them (messages.h, M10).
 *
 *     the poll core's list ──▶ asked ──▶ fetched ──▶ ready ──▶ shown ──▶ seen, until a receive
 *     of kept headers                    if its                     ╲    matches it
 *                                        data is needed              ──▶ received: its sender is
 *                                        and not here                    told, and it goes
 *
 * One at a time is on its way to `seen`: `showing`. Receives that match it are parked until what
 * becomes of it is known, and those that begin later behind them. A message is asked for when it is
 * here, after those of its sender that are older: a sender that keeps the rest of a message back
 * holds up nobody else's.
 *
 * U1. What was seen is older than all of its sender's that the poll core keeps, and no receive that
 *     has begun, is linked or waits for a place, matches any of it.
 * U2. A peer gets its credit (M5) when its message is received, not when it is shown.
 */
#include <messages/state.h>

#include <stdlib.h>
#include <string.h>

#include <engine/statistics.h>
#include <wire/message.h>

#define SHOW_LOG                                                                                   \
	(TIER_BIT(TIER_PUT_KEPT) | TIER_BIT_FAILED(TIER_PUT_KEPT) | TIER_BIT_FAILED(TIER_SEARCH))

static bool receive_wants(const struct transfer *receive, const struct transfer *message)
{
	return ((receive->bits ^ message->bits) & ~receive->ignore) == 0 &&
	       (receive->peer == PEER_ANY || receive->peer == message->peer);
}

static void shown_free(struct messages *messages, struct unexpected *unexpected)
{
	messages->seen_bytes -= unexpected->room;
	messages->seen_count--;
	link_remove(&unexpected->all);
	if (link_listed(&unexpected->transfer.link))
		link_remove(&unexpected->transfer.link);
	free(unexpected);
}

/* A receive gets it. */
static void shown_give(
	struct messages *messages, struct unexpected *unexpected, struct transfer *receive)
{
	receive_unexpected(messages, receive, unexpected, TIER_OK);
	shown_free(messages, unexpected);
}

/* The message that was on its way is no more. */
static void show_drop(struct messages *messages)
{
	struct unexpected *gone = messages->showing;

	messages->showing = NULL;
	messages->show = SHOW_NOTHING;
	if (gone)
		shown_free(messages, gone);
	parked_resume(messages);
}

void parked_resume(struct messages *messages)
{
	list_each (struct transfer, receive, &messages->parked, link) {
		link_remove(&receive->link);
		receive_start(messages, receive);
	}
}

/* A receive gets a message that was seen. */
static bool seen_give(struct messages *messages, struct transfer *receive)
{
	list_each (struct unexpected, unexpected, &messages->seen, transfer.link)
		if (receive_wants(receive, &unexpected->transfer)) {
			receive->seen = true;
			shown_give(messages, unexpected, receive);
			return true;
		}
	return false;
}

bool shown_meet(struct messages *messages, struct transfer *receive)
{
	struct unexpected *showing = messages->showing;

	if (seen_give(messages, receive))
		return true;
	if (messages->show == SHOW_NOTHING || !receive_wants(receive, &showing->transfer))
		return false;
	if (messages->show == SHOW_READY) {
		messages->showing = NULL;
		messages->show = SHOW_NOTHING;
		shown_give(messages, showing, receive);
	} else {
		list_append(&messages->parked, &receive->link);
	}
	return true;
}

void shown_begin(struct messages *messages, struct transfer *receive)
{
	if (list_empty(&messages->parked))
		receive_start(messages, receive);
	else if (!seen_give(messages, receive))
		list_append(&messages->parked, &receive->link);
}

/* All of it that is wanted is here: a receive that has waited for a place comes first. */
static void show_ready(struct messages *messages)
{
	struct unexpected *showing = messages->showing;

	if (showing->dismissed) {
		show_drop(messages);
		return;
	}
	messages->show = SHOW_READY;
	list_each (struct transfer, receive, &messages->waiting[0], link)
		if (receive_wants(receive, &showing->transfer)) {
			link_remove(&receive->link);
			messages->showing = NULL;
			messages->show = SHOW_NOTHING;
			shown_give(messages, showing, receive);
			break;
		}
	parked_resume(messages);
}

/* Its header is here, and its data unless its sender has that. */
static void show_begin(struct messages *messages, const struct message_event *event)
{
	struct unexpected *showing = messages->showing;
	struct transfer *message = &showing->transfer;

	message->length = event->requested;
	receive_told(messages, message, event);
	if (event->verdict != TIER_OK) {
		credit_count(messages, message->peer);
		peer_lose(messages, message->peer, event->verdict);
		show_drop(messages);
		return;
	}
	showing->moved = event->moved;
	if (event->moved > 0)
		memcpy(showing->data, (const void *)(uintptr_t)event->start, event->moved);
	if (event->moved == event->requested || event->requested > showing->least) {
		show_ready(messages);
		return;
	}
	messages->show = SHOW_FETCHED;
	message->kept = true;
	message->buffer = showing->data;
	messages->posted++;
	fetch_post(messages, message, message->length);
}

void shown_heard(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	if (event->kind == TIER_SEARCH) {
		messages->unseen = false;
		show_drop(messages);
	} else if (event->kind == TIER_PUT_KEPT) {
		show_begin(messages, event);
	} else {
		receive_fetched(messages, message, event);
	}
}

void shown_done(struct messages *messages, struct transfer *message)
{
	struct unexpected *unexpected = (struct unexpected *)(void *)message;

	if (unexpected != messages->showing) { /* its sender was told */
		shown_free(messages, unexpected);
	} else if (message->result != TRANSFER_DONE) {
		credit_count(messages, message->peer);
		show_drop(messages);
	} else {
		unexpected->moved = message->whole;
		show_ready(messages);
	}
}

enum answer kept_search(struct messages *messages, const void *item,
	const struct receive_wish *wish, uint8_t flags, uint32_t log, bool remove)
{
	struct long_command command = {
		.command = {.kind = COMMAND_SEARCH, .object.portal = class_portal(wish->class)}};
	const struct search_lines lines = {.bits = wish->bits & ~wish->ignore,
		.ignore = wish->ignore,
		.nid = wish->peer,
		.pid = UINT32_MAX,
		.user = item_name(item),
		.log = log,
		.flags = flags,
		.options = REGION_TRUNCATE,
		.remove = remove};

	memcpy(command.further, &lines, sizeof(lines));
	return visit_call(&messages->visit, &command.command, NULL, NULL);
}

/* For the oldest message that is here. PENDING: there is none yet. */
static enum answer show_search(
	struct messages *messages, const void *item, uint32_t log, bool remove)
{
	const struct receive_wish any = {.peer = PEER_ANY, .ignore = UINT64_MAX};

	return kept_search(messages, item, &any, ATTACHMENT_ONCE | ATTACHMENT_HERE, log, remove);
}

/* Takes the oldest header out of the poll core's list whose message is here. */
static void show_ask(struct messages *messages, uint64_t least)
{
	const uint64_t room = kept_most(messages);
	struct unexpected *showing = malloc(sizeof(*showing) + room);
	struct probe probe = {.kind = ITEM_PROBE};
	enum answer answer;

	if (!showing)
		return; /* it is asked for again */
	*showing = (struct unexpected){.transfer = {.kind = ITEM_UNEXPECTED},
		.least = least < messages->options.eager ? least : messages->options.eager,
		.room = room};
	messages->seen_bytes += showing->room;
	messages->seen_count++;
	list_append(&messages->unexpected, &showing->all);
	messages->showing = showing;
	messages->show = SHOW_ASKED; /* no receive begins before its bits are known */
	answer = show_search(messages, &probe, TIER_BIT(TIER_SEARCH), false);
	/* The event was logged before the answer. */
	events_run(messages);
	messages->unseen = probe.found || answer == ANSWER_PENDING;
	if (!probe.found) {
		show_drop(messages);
		return;
	}
	showing->transfer.bits = probe.what.bits;
	showing->transfer.peer = probe.what.peer;
	showing->transfer.whole = probe.what.length;
	(void)show_search(messages, showing, SHOW_LOG, true);
	events_run(messages);
}

/* Is there a header that was not taken yet, as far as can be told without asking? */
static bool unseen(struct messages *messages)
{
	uint64_t arrived = counter_read(&segment_counters(messages->visit.segment)->puts_received);

	if (arrived == messages->searched && !messages->unseen)
		return false;
	messages->searched = arrived;
	return true;
}

bool shown_is_full(const struct messages *messages)
{
	return messages->seen_bytes > (uint64_t)messages->blocks_max * messages->options.block ||
	       messages->seen_count >= SEEN_MAX;
}

struct unexpected *messages_show(struct messages *messages, uint64_t least)
{
	struct unexpected *showing = NULL;

	if (messages->show == SHOW_SHOWN ||
		(messages->show == SHOW_NOTHING && shown_is_full(messages)) ||
		!messages_visit(messages))
		return NULL;
	if (messages->show == SHOW_NOTHING && unseen(messages))
		show_ask(messages, least);
	if (messages->show == SHOW_READY) {
		messages->show = SHOW_SHOWN;
		showing = messages->showing;
	}
	visit_leave(&messages->visit);
	return showing;
}

bool unexpected_ends(struct messages *messages, struct unexpected *unexpected)
{
	struct transfer *message = &unexpected->transfer;

	credit_count(messages, message->peer);
	if (message->result == TRANSFER_FAILED ||
		(unexpected->moved == message->whole && !(message->value & VALUE_SYNCHRONOUS)))
		return true;
	message->kept = false;
	messages->posted++;
	fetch_post(messages, message, 0);
	return false;
}

/* A copy that takes no more memory than it must; if there is none, itself. */
static struct unexpected *shown_shrink(struct messages *messages, struct unexpected *unexpected)
{
	uint64_t bytes = unexpected->moved;
	struct unexpected *smaller;

	link_remove(&unexpected->all);
	smaller = realloc(unexpected, sizeof(*unexpected) + bytes);
	if (!smaller) {
		list_append(&messages->unexpected, &unexpected->all);
		return unexpected;
	}
	list_append(&messages->unexpected, &smaller->all);
	messages->seen_bytes -= smaller->room - bytes;
	smaller->room = bytes;
	return smaller;
}

void messages_shown(struct messages *messages, bool received)
{
	struct unexpected *shown = messages->showing;

	if (!messages_visit(messages))
		return;
	messages->showing = NULL;
	messages->show = SHOW_NOTHING;
	if (shown->dismissed || (received && unexpected_ends(messages, shown))) {
		shown_free(messages, shown);
	} else if (!received) {
		shown = shown_shrink(messages, shown);
		list_append(&messages->seen, &shown->transfer.link);
	}
	parked_resume(messages);
	visit_leave(&messages->visit);
}

struct unexpected *shown_find(const struct messages *messages, uint32_t peer, uint64_t bits,
	uint64_t ignore, bool claimed)
{
	const struct transfer probe = {.peer = peer, .bits = bits & ~ignore, .ignore = ignore};

	list_each (struct unexpected, unexpected, &messages->seen, transfer.link)
		if (receive_wants(&probe, &unexpected->transfer) &&
			(claimed || !unexpected->claimed))
			return unexpected;
	if (messages->show != SHOW_NOTHING && messages->show != SHOW_SHOWN &&
		!messages->showing->dismissed && (claimed || !messages->showing->claimed) &&
		receive_wants(&probe, &messages->showing->transfer))
		return messages->showing;
	return NULL;
}

void shown_dismiss(struct messages *messages, uint32_t peer)
{
	struct unexpected *showing = messages->showing;

	list_each (struct unexpected, unexpected, &messages->seen, transfer.link)
		if (unexpected->transfer.peer == peer)
			shown_free(messages, unexpected);
	if (messages->show == SHOW_NOTHING || showing->transfer.peer != peer)
		return;
	if (messages->show == SHOW_READY)
		show_drop(messages);
	else
		showing->dismissed = true;
}

bool shown_ended(const struct messages *messages, uint32_t peer)
{
	list_each (const struct unexpected, unexpected, &messages->unexpected, all)
		if (unexpected->transfer.peer == peer)
			return false;
	return true;
}

void shown_close(struct messages *messages)
{
	list_each (struct unexpected, unexpected, &messages->unexpected, all)
		free(unexpected);
}
