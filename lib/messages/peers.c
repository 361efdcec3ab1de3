/* SPDX-License-Identifier: BSD-3-Clause */
/* peers.c - the peers of an endpoint: their names, the poll core's map of them, how they come and
 * go. */
#include <messages/state.h>

#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <wire/message.h>

#define ALIVE (500 * MILLISECOND) /* between signs of life that are asked for */

/* --- names of peers */

bool map_tell(struct messages *messages, const struct process *map, uint32_t count, bool names)
{
	struct command command = {.kind = COMMAND_MAP};

	command.object.index = count;
	command.object.portal = names;
	command.object.other = (uintptr_t)map;
	return visit_call(&messages->visit, &command, NULL, NULL) == ANSWER_OK;
}

uint32_t messages_name(const struct messages *messages, uint32_t peer)
{
	return messages->peers[peer].uses << NAME_RANK_BITS | peer;
}

/* The poll core gets a new map, and then the old one goes. */
static bool map_change(struct messages *messages, uint32_t peer, struct process process)
{
	uint32_t count = peer < messages->known ? messages->known : peer + 1;
	struct process *map = calloc(count, sizeof(*map) + sizeof(uint32_t));
	uint32_t *names;

	if (!map)
		return false;
	if (messages->map)
		memcpy(map, messages->map, messages->known * sizeof(*map));
	map[peer] = process;
	names = (uint32_t *)(void *)(map + count);
	for (uint32_t i = 0; i < count; i++)
		names[i] = messages_name(messages, i);
	if (!map_tell(messages, map, count, true)) {
		free(map);
		return false;
	}
	free(messages->map);
	messages->map = map;
	messages->known = count;
	return true;
}

bool peer_shut_out(struct messages *messages, uint32_t peer)
{
	const struct process nobody = {.nid = UINT32_MAX, .pid = UINT32_MAX};

	if (peer < messages->known && messages->map[peer].pid == nobody.pid)
		return true; /* a peer that failed, and is dismissed */
	return map_change(messages, peer, nobody);
}

/* --- peers that come and go */

void peer_reset(struct messages *messages, uint32_t index, uint32_t uses)
{
	struct peer *peer = &messages->peers[index];

	*peer = (struct peer){
		.dispatch = {.lost = {.kind = ITEM_DISPATCH}, .all = &messages->letters_ended},
		.tell = {.kind = ITEM_TELL, .peer = index},
		.alive = {.kind = ITEM_TELL, .peer = index},
		.self = messages->options.self,
		.joined = messages->options.peers != NULL,
		.uses = uses,
		.credit.self = messages->options.peers ? messages->options.self : RANK_NONE};
	credit_set(&peer->credit, (uint32_t)messages->share);
	list_init(&peer->waiting);
	list_init(&peer->begun);
}

bool messages_admit(struct messages *messages, struct process process, uint32_t *peer)
{
	struct peer *again = list_first(&messages->retired, struct peer, retired);
	const bool full = messages->known == messages->options.count;
	bool admitted;

	if ((full && !again) || !messages_visit(messages))
		return false;
	chunks_retire(messages);
	*peer = full ? (uint32_t)(again - messages->peers) : messages->known;
	if (!full)
		peer_reset(messages, *peer, messages_life(messages));
	admitted = map_change(messages, *peer, process);
	if (admitted && full)
		link_remove(&again->retired);
	visit_leave(&messages->visit);
	return admitted;
}

/* Has the poll core no message from a peer that was dismissed any more? Its events are here. */
static bool rank_ended(struct messages *messages, uint32_t peer)
{
	const enum answer answer = visit_command(&messages->visit, COMMAND_RANK_ENDED, peer, 0);

	events_run(messages);
	return answer == ANSWER_OK;
}

bool messages_retire(struct messages *messages, uint32_t index)
{
	struct peer *peer = &messages->peers[index];

	if (!peer->dismissed)
		messages_dismiss(messages, index);
	if (!peer->dismissed || link_listed(&peer->retired) || !messages_visit(messages))
		return false;
	chunks_retire(messages);
	if (rank_ended(messages, index) && sends_ended(peer) && receives_ended(messages, index) &&
		shown_ended(messages, index)) {
		peer_reset(messages, index, peer->uses + 1);
		list_append(&messages->retired, &peer->retired);
	}
	visit_leave(&messages->visit);
	return link_listed(&peer->retired);
}

void messages_join(struct messages *messages, uint32_t index, uint32_t self)
{
	struct command command = {.kind = COMMAND_JOINED};
	struct peer *peer = &messages->peers[index];

	peer->self = self;
	peer->joined = true;
	atomic_store_explicit(&peer->credit.self, self, memory_order_relaxed);
	if (!messages_visit(messages))
		return;
	command.object.index = index;
	submission_post(&messages->visit.interface->submission, &command);
	/* The peer may have sent a whole share before. */
	if (atomic_load_explicit(&peer->credit.taken, memory_order_relaxed) != 0 &&
		credit_is_due(messages, peer) && !peer->tell.busy)
		credit_post(messages, peer);
	visit_leave(&messages->visit);
}

void messages_dismiss(struct messages *messages, uint32_t index)
{
	struct receive_wish all = {.peer = index, .ignore = UINT64_MAX};
	struct peer *peer = &messages->peers[index];

	if (!messages_visit(messages))
		return;
	/* Without memory the peer is only deaf, and keeps its number. */
	peer->dismissed = peer_shut_out(messages, index) || peer->dismissed;
	for (; all.class < messages->options.classes; all.class ++)
		(void)kept_search(messages, NULL, &all, 0, 0, true);
	shown_dismiss(messages, index);
	if (!peer->failed) {
		peer->failed = true;
		sends_abandon(messages, peer);
	}
	events_run(messages);
	visit_leave(&messages->visit);
}

bool messages_greet(struct messages *messages, struct greeting *greeting)
{
	const struct move move = {.region = messages->region,
		.generation = messages->generation,
		.portal = PORTAL_GREETINGS,
		.to = greeting->to,
		.cookie = RANK_NONE,
		.match_bits = greeting->words[0],
		.value = greeting->words[1],
		.offset = greeting->words[2]};
	const struct rma_line line = {
		.user = item_name(greeting), .message = MESSAGE_STORE, .want = WANT_EVENT};

	greeting->kind = ITEM_GREETING;
	if (!messages_visit(messages))
		return false;
	messages->pending++;
	move_post(messages, &move, &line);
	visit_leave(&messages->visit);
	return true;
}

bool messages_is_stranger(const struct messages *messages, uint32_t peer)
{
	return messages->peers[peer].stranger;
}

bool messages_is_closed(const struct messages *messages, uint32_t peer)
{
	return messages->peers[peer].closed;
}

bool messages_is_owed(const struct messages *messages, uint32_t index)
{
	const struct peer *peer = &messages->peers[index];

	for (const struct chunk *chunk = peer->chunks; chunk; chunk = chunk->next)
		if (chunk->free != UINT64_MAX)
			return true;
	return peer->blocked || !list_empty(&peer->begun);
}

bool messages_review(struct messages *messages, bool always)
{
	uint64_t now;

	if ((!always && messages_pending(messages) == 0) ||
		(now = library_now()) - messages->reviewed < ALIVE)
		return false;
	messages->reviewed = now;
	for (uint32_t i = 0; i < messages->known; i++)
		if (i != messages->options.self && messages_is_owed(messages, i))
			messages_ask(messages, i);
	return true;
}

uint64_t messages_flying(const struct messages *messages)
{
	return messages->flying + letters_under_way(messages);
}
