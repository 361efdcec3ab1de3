/* SPDX-License-Identifier: BSD-3-Clause */
/* taken.c - messages that a probe takes out of the poll core's list, for one receive of the
 * caller's choice.
 *
 * T1. A message that was taken matches no receive. It holds its sender's credit (M5) until it is
 *     received or discarded.
 * T2. Its header is known at once. Its event, with the data or without, follows when all of it has
 *     arrived; a receive or a discard that comes earlier waits for that.
 */
#include <messages/state.h>

#include <stdlib.h>
#include <string.h>

#define TAKE_LOG (TIER_BIT(TIER_PUT_KEPT) | TIER_BIT_FAILED(TIER_PUT_KEPT))

static void taken_free(struct unexpected *taken)
{
	link_remove(&taken->all);
	free(taken);
}

/* Its receive gets it. */
static void taken_give(struct messages *messages, struct unexpected *taken)
{
	receive_unexpected(messages, taken->receive, taken,
		taken->transfer.result == TRANSFER_FAILED ? TIER_UNDELIVERABLE : TIER_OK);
	taken_free(taken);
}

/* Its sender is told, if it waits for that, and it goes. */
static void taken_end(struct messages *messages, struct unexpected *taken)
{
	messages->posted -= taken->passed;
	if (unexpected_ends(messages, taken))
		taken_free(taken);
}

static void taken_settle(struct messages *messages, struct unexpected *taken)
{
	if (!taken->whole)
		return;
	if (taken->receive)
		taken_give(messages, taken);
	else if (taken->unwanted)
		taken_end(messages, taken);
}

void taken_heard(
	struct messages *messages, struct transfer *message, const struct message_event *event)
{
	struct unexpected *taken = (struct unexpected *)(void *)message;

	if (event->kind != TIER_PUT_KEPT) {
		receive_fetched(messages, message, event);
		return;
	}
	message->value = event->value;
	message->bits = event->bits;
	message->whole = event->requested;
	if (event->verdict != TIER_OK) {
		message->result = TRANSFER_FAILED;
		peer_lose(messages, message->peer, event->verdict);
	} else {
		taken->moved = event->moved;
		if (event->moved > 0 && !taken->unwanted)
			memcpy(taken->data, (const void *)(uintptr_t)event->start, event->moved);
	}
	taken->whole = true;
	taken_settle(messages, taken);
}

/* Its sender has been told. */
void taken_done(struct messages *messages, struct transfer *message)
{
	(void)messages;
	taken_free((struct unexpected *)(void *)message);
}

struct unexpected *messages_take(
	struct messages *messages, const struct receive_wish *wish, struct message_found *found)
{
	struct unexpected *taken;
	uint64_t room;

	if (!messages_probe_wish(messages, wish, found))
		return NULL;
	/* A longer message has its data at the sender. */
	room = found->length <= kept_most(messages) ? found->length : 0;
	taken = malloc(sizeof(*taken) + room);
	if (!taken || !messages_visit(messages)) {
		free(taken);
		return NULL;
	}
	*taken = (struct unexpected){.transfer = {.kind = ITEM_TAKEN,
					     .peer = found->peer,
					     .bits = found->bits,
					     .data = found->data,
					     .marked = found->marked,
					     .whole = found->length},
		.room = room};
	list_append(&messages->unexpected, &taken->all);
	messages->peers[found->peer].carried = true;
	(void)kept_search(messages, taken, wish, ATTACHMENT_ONCE, TAKE_LOG, true);
	events_run(messages);
	visit_leave(&messages->visit);
	return taken;
}

void messages_receive_taken(struct messages *messages, struct transfer *message,
	struct unexpected *taken, void *buffer, uint64_t room, const struct map_vector *vector)
{
	*message = (struct transfer){.kind = ITEM_RECEIVE,
		.acknowledged = true, /* it cannot be cancelled */
		.peer = taken->transfer.peer,
		.buffer = buffer,
		.vector = vector,
		.length = vector ? map_vector_length(vector) : room};
	taken->receive = message;
	if (!messages_visit(messages))
		return;
	taken_settle(messages, taken);
	visit_leave(&messages->visit);
}

void messages_discard(struct messages *messages, struct unexpected *taken)
{
	taken->unwanted = true;
	if (!messages_visit(messages))
		return;
	taken_settle(messages, taken);
	visit_leave(&messages->visit);
}

bool taken_pass(struct messages *messages, struct transfer *receive)
{
	struct unexpected *taken = malloc(sizeof(*taken));
	struct command command = {.kind = COMMAND_RECEIVE_PASS};

	if (!taken)
		return false;
	*taken = (struct unexpected){
		.transfer = {.kind = ITEM_TAKEN}, .unwanted = true, .passed = true};
	command.receive.outcome = (uintptr_t)&receive->outcome;
	command.receive.start = item_name(taken);
	if (visit_call(&messages->visit, &command, NULL, NULL) != ANSWER_OK) {
		free(taken);
		return false;
	}
	taken->transfer.peer = receive->outcome.peer;
	receive->bits = receive->outcome.bits; /* the message's, as after done() */
	list_append(&messages->unexpected, &taken->all);
	messages->peers[taken->transfer.peer].carried = true;
	return true;
}
