/* SPDX-License-Identifier: BSD-3-Clause */
/* many.c - receives whose buffer is for many messages (messages.h, M11).
 *
 * N1. Messages that were kept when the receive was posted come first in the buffer, in the order in
 *     which their events are here; the poll core knows their sum, and places the others behind.
 * N2. An entry that is used up says so in an event behind those of all of its messages. One that
 *     was withdrawn has no event of its own: all of its messages' have been handled when the queue
 *     was found empty once more.
 */
#include <messages/state.h>

#include <stdlib.h>
#include <string.h>

#define MANY_LOG                                                                                   \
	(TIER_BIT(TIER_PUT) | TIER_BIT_FAILED(TIER_PUT) | TIER_BIT(TIER_PUT_KEPT) |                \
		TIER_BIT_FAILED(TIER_PUT_KEPT) | TIER_BIT(TIER_UNLINK))

void messages_many(struct many *many, uint64_t room, uint64_t least)
{
	uint64_t unit = PART_UNIT;

	while (room / unit > PARTS_EACH)
		unit *= 2;
	*many = (struct many){.least = least > 0 ? least : 1,
		.most = room > 0 ? (uint32_t)((room + unit - 1) / unit) : 1,
		.unit = unit};
}

bool many_post(struct messages *messages, struct transfer *receive)
{
	const struct many *many = receive->many;
	const struct entry_wish wish = {
		.portal = class_portal(receive->class),
		.bits = receive->bits,
		.ignore = receive->ignore,
		.peer = receive->peer,
		.start = receive->buffer,
		.length = receive->length,
		.min_free = many->least,
		.unit = (uint32_t)many->unit,
		.options = REGION_PUT | REGION_TRUNCATE,
		.flags = ATTACHMENT_GROWS,
		.log = MANY_LOG,
		.item = receive,
	};

	receive->posted = messages->parts + many->most <= PARTS_MAX &&
			  entry_append(messages, &wish, &receive->entry, &receive->generation);
	if (receive->posted) {
		messages->parts += many->most;
		messages->waits_post = true;
	}
	return receive->posted;
}

/* --- messages */

static struct transfer part_make(const struct transfer *receive, uint64_t place, uint64_t room)
{
	return (struct transfer){.kind = ITEM_PART,
		.class = receive->class,
		.buffer = (void *)(uintptr_t)place,
		.length = room};
}

static void part_tell(struct messages *messages, struct transfer *receive, struct transfer *part,
	enum tier_verdict verdict)
{
	if (verdict != TIER_OK) {
		part->length = 0;
		part->result = TRANSFER_FAILED;
		peer_lose(messages, part->peer, verdict);
	}
	messages->options.part(messages->options.owner, receive, part);
}

/* The poll core has placed one. */
static void part_placed(
	struct messages *messages, struct transfer *receive, const struct message_event *event)
{
	struct transfer part = part_make(receive, event->start, event->moved);

	receive_told(messages, &part, event);
	if (VALUE_IS_UNANSWERED(part.value))
		credit_count(messages, part.peer);
	part_tell(messages, receive, &part, event->verdict);
}

/* One had been kept, and there is no memory to fetch with: without data that is here it is cut, and
 * its sender hears of it as if there had been no room. */
static void part_cut(struct messages *messages, struct transfer *receive, struct transfer *part,
	const struct message_event *event)
{
	const bool here = event->moved == event->requested;

	receive_told(messages, part, event);
	credit_count(messages, part->peer);
	if (!here) {
		part->length = 0;
		part->result = TRANSFER_CUT;
	} else if (part->length > 0) {
		memcpy(part->buffer, (const void *)(uintptr_t)event->start, part->length);
	}
	if (event->verdict == TIER_OK && (!here || part->value & VALUE_SYNCHRONOUS) &&
		!messages->peers[part->peer].failed)
		fetch_nothing(messages, part);
	part_tell(messages, receive, part, event->verdict);
}

/* N1. One had been kept. */
static void part_kept(
	struct messages *messages, struct transfer *receive, const struct message_event *event)
{
	struct many *many = receive->many;
	const uint64_t left = receive->length - many->used;
	struct transfer transfer =
		part_make(receive, (uintptr_t)receive->buffer + many->used, left);
	struct part *part = malloc(sizeof(*part));

	many->used +=
		offset_step(many->unit, event->requested < left ? event->requested : left, left);
	if (!part) {
		part_cut(messages, receive, &transfer, event);
		return;
	}
	part->transfer = transfer;
	part->receive = receive;
	list_append(&messages->fetched, &part->link);
	many->fetching++;
	messages->posted++; /* as receive_finish() takes it */
	receive_kept(messages, &part->transfer, event);
}

/* --- ends */

static void many_settle(struct messages *messages, struct transfer *receive)
{
	const struct many *many = receive->many;

	if (many->ended && many->fetching == 0)
		messages_finish(
			messages, receive, many->withdrawn ? TRANSFER_WITHDRAWN : TRANSFER_DONE);
}

void part_done(struct messages *messages, struct transfer *message)
{
	struct part *part = (struct part *)(void *)message;
	struct transfer *receive = part->receive;

	messages->options.part(messages->options.owner, receive, message);
	receive->many->fetching--;
	link_remove(&part->link);
	free(part);
	many_settle(messages, receive);
}

/* N2 */
static void many_end(struct messages *messages, struct transfer *receive)
{
	struct many *many = receive->many;

	if (many->cancelled)
		link_remove(&many->leaving);
	messages->parts -= many->most;
	many->ended = true;
	many_settle(messages, receive);
}

void many_heard(
	struct messages *messages, struct transfer *receive, const struct message_event *event)
{
	if (event->kind == TIER_UNLINK)
		many_end(messages, receive);
	else if (event->kind == TIER_PUT_KEPT)
		part_kept(messages, receive, event);
	else
		part_placed(messages, receive, event);
}

void many_cancel(struct messages *messages, struct transfer *receive)
{
	struct many *many = receive->many;

	if (many->cancelled || many->ended)
		return;
	if (receive->posted) {
		many->cancelled = true;
		list_append(&messages->leaving, &many->leaving);
		messages->waits = true;
		return;
	}
	receive_unlist(receive);
	messages_finish(messages, receive, TRANSFER_WITHDRAWN);
}

void many_leave(struct messages *messages)
{
	list_each (struct many, many, &messages->leaving, leaving) {
		struct transfer *receive = many->receive;

		/* A message that is arriving in it keeps it, until its event is here. */
		if (many->withdrawn)
			many_end(messages, receive);
		else
			many->withdrawn =
				entry_withdraw(messages, receive->entry, receive->generation);
	}
}

bool many_ended(const struct messages *messages, uint32_t peer)
{
	list_each (const struct many, many, &messages->leaving, leaving)
		if (many->receive->peer == peer)
			return false;
	return true;
}

void many_close(struct messages *messages)
{
	list_each (struct part, part, &messages->fetched, link)
		free(part);
}
