/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_oracle.c - see cluster_state.h. */
#include <sim/cluster_state.h>

#include <string.h>

#include <engine/state.h>
#include <engine/tiers.h>
#include <sim/report.h>
#include <wire/message.h>

struct cluster *cluster_here(void)
{
	return node_current()->simulation->cluster;
}

struct member *member_of(const struct space *space)
{
	return &cluster_here()->members[node_of(space->engine)->number];
}

void post_wrong(const struct post *post, const char *what, uint64_t value)
{
	static const char *const kinds[] = {"send", "receive", "connect"};

	FAIL(cluster_here(),
		"mx: %s %u of node %u, bits %#" PRIx64 ", mask %#" PRIx64 ", %" PRIu64
		" bytes%s: %s (%" PRIu64 "; the oracle's match is %u)",
		kinds[post->kind], post->number, post->node, post->bits, post->mask, post->length,
		post->synchronous ? ", synchronous" : "", what, value,
		post->partner ? post->partner->number : 0);
}

bool cluster_troubled(const struct cluster *cluster, uint32_t one, uint32_t other)
{
	const struct simulation *simulation = cluster->simulation;

	return simulation->nodes[one].troubled || simulation->nodes[other].troubled ||
	       cluster->severed[one * simulation->node_count + other] ||
	       cluster->members[one].greedy || cluster->members[other].greedy;
}

bool post_may_vanish(const struct cluster *cluster, const struct post *post)
{
	if (post->deadline == 0)
		return false;
	/* One that its program has not asked after yet ends nevertheless. */
	return post->expired || post->forgotten ||
	       (!post->done && simulation_now(cluster->simulation) >= post->deadline);
}

uint8_t post_pattern(uint32_t number, uint64_t at)
{
	return (uint8_t)(prng_mix(number * UINT64_C(0x9e3779b97f4a7c15) + at / 8) >> at % 8 * 8);
}

/* --- lines */

bool post_matches(const struct post *receive, const struct post *message)
{
	return (message->bits & receive->mask) == receive->bits;
}

struct post *line_find(const struct line *line, const struct post *receive, bool shown)
{
	for (uint32_t i = 0; i < line->count; i++)
		if ((!shown || line->posts[i]->shown) && post_matches(receive, line->posts[i]))
			return line->posts[i];
	return NULL;
}

void line_add(struct line *line, struct post *post)
{
	if (line->count == LINE_POSTS)
		report_stop("there are more than %u requests at a time", LINE_POSTS);
	line->posts[line->count++] = post;
}

bool line_remove(struct line *line, const struct post *post)
{
	uint32_t i = 0;

	while (i < line->count && line->posts[i] != post)
		i++;
	if (i == line->count)
		return false;
	line->count--;
	memmove(&line->posts[i], &line->posts[i + 1], (line->count - i) * sizeof(line->posts[0]));
	return true;
}

/* --- matching */

void oracle_pair(struct member *member, struct post *receive, struct post *message)
{
	line_remove(&member->kept, message);
	line_remove(&member->posted, receive);
	receive->partner = message;
	message->partner = receive;
	credits_take(message);
}

/* The oldest receive that the library holds back, and that a message is for. */
static struct post *held_find(const struct member *member, const struct post *message)
{
	for (uint32_t i = 0; i < member->pending.count; i++) {
		struct post *post = member->pending.posts[i];

		if (post->kind == POST_RECEIVE && !post->linked && !post->partner &&
			post_matches(post, message))
			return post;
	}
	return NULL;
}

static bool message_is_on_its_way(const struct member *member, const struct post *message)
{
	const struct messages *messages = member->endpoint->messages;

	return message == member->showing ||
	       (messages->show != SHOW_NOTHING &&
		       messages->showing->transfer.bits == message->bits);
}

void oracle_catch_up(struct member *member)
{
	for (uint32_t i = 0; member->endpoint && i < member->kept.count; i++) {
		struct post *message = member->kept.posts[i], *receive;

		if (!message->taken || message->shown || message_is_on_its_way(member, message))
			continue;
		receive = held_find(member, message);
		if (!receive && !post_may_vanish(cluster_here(), message) &&
			!cluster_troubled(cluster_here(), message->node, message->to))
			post_wrong(message, "was taken for the handler, and is nowhere", 0);
		if (receive) {
			oracle_pair(member, receive, message);
		} else {
			line_remove(&member->kept, message);
			credits_take(message);
		}
		i--;
	}
}

bool oracle_awaits_handler(const struct member *member)
{
	for (uint32_t i = 0; i < member->kept.count; i++)
		if (member->kept.posts[i]->taken && !member->kept.posts[i]->shown)
			return true;
	return false;
}

void oracle_receive(struct member *member, struct post *receive)
{
	struct post *message;

	oracle_catch_up(member);
	message = line_find(&member->kept, receive, true);
	if (message)
		oracle_pair(member, receive, message);
}

struct post *oracle_show(struct member *member, uint64_t bits)
{
	uint32_t i = 0;

	oracle_catch_up(member);
	while (i < member->kept.count && member->kept.posts[i]->shown)
		i++;
	if (i == member->kept.count || member->kept.posts[i]->bits != bits) {
		FAIL(cluster_here(), "mx: node %u is shown message %" PRIu64 ", but %u is due",
			member->node->number, bits >> NUMBER_AT,
			i == member->kept.count ? 0 : member->kept.posts[i]->number);
		return NULL;
	}
	member->showing = member->kept.posts[i];
	return member->showing;
}

void oracle_shown(struct member *member, bool finished)
{
	struct post *message = member->showing, *receive;

	member->showing = NULL;
	if (message->consumed) /* its peer was dismissed meanwhile */
		return;
	if (finished) {
		message->consumed = true;
		line_remove(&member->kept, message);
		credits_take(message);
		return;
	}
	message->shown = true;
	receive = held_find(member, message);
	if (receive)
		oracle_pair(member, receive, message);
}

/* --- what the engine does */

/* Of this endpoint's messages, and open? */
static bool space_is_watched(const struct space *space, unsigned portal)
{
	return space->number == CLUSTER_SPACE && portal == PORTAL_MATCH &&
	       member_of(space)->endpoint;
}

/* C1 */
static void arrival_check(struct cluster *cluster, struct member *member, struct post *message)
{
	uint32_t me = member->node->number;
	uint32_t at = message->node * cluster->simulation->node_count + me;

	if (message->to != me || message->arrived || cluster->arrived[at] >= message->number)
		post_wrong(message, "arrives twice, late, or elsewhere", cluster->arrived[at]);
	if (message->session != member->session)
		post_wrong(message, "arrives at another session", member->session);
	if (cluster->lives[at] > message->life)
		post_wrong(message, "comes from an earlier life", cluster->lives[at]);
	cluster->arrived[at] = message->number;
	cluster->lives[at] = message->life;
}

void cluster_arrived(struct space *space, struct process from, const struct message_header *header)
{
	struct cluster *cluster = cluster_here();
	struct member *member = member_of(space);
	uint32_t number = (uint32_t)(header->match_bits >> NUMBER_AT);
	struct post *message, *receive = NULL;
	struct process process;

	/* The engine refuses what is not from the process of the rank. */
	if (space->number != CLUSTER_SPACE || !member->endpoint || header->portal >= PORTALS ||
		!tier_process(space, from, header, &process))
		return;
	if (header->portal != PORTAL_MATCH) {
		credits_word(member, node_find(cluster->simulation, from.nid, from.pid), header);
		return;
	}
	if (number == 0 || number > cluster->count || cluster->all[number - 1]->kind != POST_SEND ||
		cluster->all[number - 1]->bits != header->match_bits ||
		cluster->all[number - 1]->length != header->requested) {
		FAIL(cluster, "mx: a message that nobody sent, number %u", number);
		return;
	}
	message = cluster->all[number - 1];
	message->rank = process.nid;
	arrival_check(cluster, member, message);
	message->arrived = true;
	for (uint32_t i = 0; i < member->posted.count && !receive; i++)
		if (post_matches(member->posted.posts[i], message))
			receive = member->posted.posts[i];
	if (receive && VALUE_IS_UNANSWERED(header->value))
		credits_keep(member, message, header->cookie);
	if (receive) {
		oracle_pair(member, receive, message);
		return;
	}
	if (!credits_admit(member, space, message))
		return;
	credits_keep(member, message, header->cookie);
	line_add(&member->kept, message);
}

/* The receive that has this outcome. */
static struct post *outcome_receive(uint64_t outcome)
{
	return ((const struct request *)(uintptr_t)outcome)->status.context;
}

void cluster_posted(const struct space *space, const struct command *command)
{
	struct member *member = member_of(space);
	struct post *receive, *message;

	if (!space_is_watched(space, command->receive.portal))
		return;
	receive = outcome_receive(command->receive.outcome);
	oracle_catch_up(member);
	/* It was held back for a message whose data its sender did not give any more. */
	if (!receive->linked && receive->partner &&
		(post_may_vanish(cluster_here(), receive->partner) ||
			cluster_troubled(cluster_here(), receive->node, receive->partner->node))) {
		receive->partner->partner = NULL;
		receive->partner = NULL;
	}
	if (receive->linked || receive->partner) {
		post_wrong(receive, "is posted twice, or has a message", receive->linked);
		return;
	}
	receive->linked = true;
	message = line_find(&member->kept, receive, false);
	if (message)
		oracle_pair(member, receive, message);
	else
		line_add(&member->posted, receive);
}

/* Nothing of a peer that was dismissed is received. */
static void messages_drop(struct member *member, uint32_t rank)
{
	for (uint32_t i = 0; i < member->kept.count; i++) {
		struct post *message = member->kept.posts[i];

		if (message->rank != rank)
			continue;
		message->consumed = true;
		line_remove(&member->kept, message);
		i--;
	}
}

/* The oldest that the handler has not seen is taken for it, of those that are here and behind none
 * of their senders' that is not. From then on it stands before all that are not taken (M10). */
static void message_take(struct member *member)
{
	bool late[SESSIONS_MAX] = {false};
	struct post **posts = member->kept.posts;
	uint32_t taken = 0;

	while (taken < member->kept.count && posts[taken]->taken)
		taken++;
	for (uint32_t i = taken; i < member->kept.count; i++) {
		struct post *message = member->kept.posts[i];
		bool *waits = &late[message->rank % SESSIONS_MAX];

		*waits |= !message->whole;
		if (*waits)
			continue;
		message->taken = true;
		memmove(&posts[taken + 1], &posts[taken], (i - taken) * sizeof(posts[0]));
		posts[taken] = message;
		return;
	}
}

void cluster_whole(const struct space *space, uint64_t bits, bool whole)
{
	struct cluster *cluster = cluster_here();
	uint32_t number = (uint32_t)(bits >> NUMBER_AT);

	if (space->number == CLUSTER_SPACE && number > 0 && number <= cluster->count)
		cluster->all[number - 1]->whole = whole;
}

void cluster_asked(const struct space *space, const struct command *command)
{
	struct member *member = member_of(space);
	struct search_lines lines;

	if (space->number != CLUSTER_SPACE || !member->endpoint)
		return;
	if (command->kind == COMMAND_SEARCH) {
		memcpy(&lines, ((const struct long_command *)(const void *)command)->further,
			sizeof(lines));
		oracle_catch_up(member);
		member->found = line_find(&member->kept, &member->ask, false);
		if (lines.remove && lines.user == 0)
			messages_drop(member, lines.nid);
		else if (lines.remove)
			message_take(member);
	}
	if (command->kind == COMMAND_RECEIVE_WITHDRAW && member->withdrawn &&
		outcome_receive(command->object.other) == member->withdrawn)
		member->withdraws = line_remove(&member->posted, member->withdrawn);
}

void cluster_answered(const struct space *space, const struct command *command, bool done)
{
	const struct member *member = member_of(space);

	if (space->number == CLUSTER_SPACE && command->kind == COMMAND_RECEIVE_WITHDRAW &&
		member->withdrawn && outcome_receive(command->object.other) == member->withdrawn &&
		done != member->withdraws)
		post_wrong(member->withdrawn, "is taken back, or is not", done);
}
