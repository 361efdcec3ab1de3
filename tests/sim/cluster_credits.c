/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_credits.c - credits (lib/messages, M5), counted from what arrives, and memory that is
 * kept. The counts are of one session between two endpoints: a message names it by its cookie.
 *
 * Shares are small, another one in each run, so that programs of a few messages use them up. A
 * greedy program forges the credit that it has got: its peers must refuse what is too much. */
#include <sim/cluster_state.h>

#include <engine/state.h>
#include <engine/statistics.h>
#include <engine/unexpected.h>
#include <sim/granted.h>
#include <sim/report.h>
#include <wire/message.h>

#define SHARE_MOST 256

enum answer __real_messages_open(const struct messages_options *options, struct messages **opened);
enum answer __wrap_messages_open(const struct messages_options *options, struct messages **opened);

enum answer __wrap_messages_open(const struct messages_options *options, struct messages **opened)
{
	struct messages_options small = *options;

	if (node_current()->simulation->cluster) {
		small.headers = options->count * cluster_here()->share;
		small.spare = cluster_here()->spare;
		small.block = cluster_here()->block;
		if (small.block != 0)
			small.memory = 2 * small.block;
		small.memory += (uint64_t)(small.headers + small.spare) * KEPT_BYTES;
	}
	return __real_messages_open(&small, opened);
}

uint32_t credits_choose(struct prng *prng)
{
	return (uint32_t)prng_scale(prng, 1, SHARE_MOST);
}

static struct ledger *account_of(struct cluster *cluster, uint32_t from, uint32_t to)
{
	return &cluster->accounts[from * cluster->simulation->node_count + to];
}

/* The account of the session of this name; one that is over is forgotten. */
static struct ledger *account_named(
	struct cluster *cluster, uint32_t from, uint32_t to, uint32_t name)
{
	struct ledger *account = account_of(cluster, from, to);

	if (account->name != name)
		*account = (struct ledger){.name = name};
	return account;
}

/* --- what arrives */

bool credits_admit(struct member *member, struct space *space, const struct post *message)
{
	unexpected_return(space);
	if (space->kept_of[message->rank] < share_now(space, message->rank))
		return true;
	member->refusals++;
	if (!cluster_here()->members[message->node].greedy)
		post_wrong(message, "is refused, and has no credit", space->kept_of[message->rank]);
	return false;
}

/* Of a rank at an endpoint, as its poll core has it. */
static uint32_t share_of_rank(const struct member *member, uint32_t rank)
{
	return share_now(node_engine(member->node)->spaces[CLUSTER_SPACE], rank);
}

void credits_keep(struct member *member, struct post *message, uint32_t name)
{
	struct cluster *cluster = cluster_here();
	struct ledger *account = account_named(cluster, message->node, member->node->number, name);

	account->kept++;
	message->account = account;
	message->name = name;
	if (account->kept - account->heard > share_of_rank(member, message->rank) &&
		!cluster->members[message->node].greedy)
		post_wrong(
			message, "overdraws its sender's credit", account->kept - account->heard);
}

void credits_take(struct post *message)
{
	if (message->account && message->account->name == message->name)
		message->account->taken++;
	message->account = NULL;
}

/* A peer says how many messages of this endpoint's it has taken: never more than it has, nor more
 * than were kept. */
static void credit_hear(struct cluster *cluster, const struct member *member, uint32_t from,
	uint32_t rank, uint64_t taken)
{
	const struct peer *peer = &member->endpoint->messages->peers[rank];
	struct ledger *account = account_named(cluster, member->node->number, from, peer->self);

	oracle_catch_up(&cluster->members[from]);
	if (taken > account->taken)
		FAIL(cluster,
			"mx: node %u has taken %" PRIu64
			" messages of node %u's, and grants %" PRIu64,
			from, account->taken, member->node->number, taken);
	if (account->heard < taken)
		account->heard = taken;
}

void credits_word(struct member *member, uint32_t from, const struct message_header *header)
{
	uint32_t rank = messages_named(header->cookie);

	if (header->portal == PORTAL_SIDE && header->match_bits == BITS_TOLD &&
		header->value >> MESSAGES_WORD == WORD_CREDIT &&
		rank < member->endpoint->messages->known &&
		member->endpoint->messages->peers[rank].joined)
		credit_hear(cluster_here(), member, from, rank,
			header->value & ((UINT64_C(1) << MESSAGES_WORD) - 1));
}

void credits_forge(const struct member *member)
{
	struct messages *messages = member->endpoint->messages;

	for (uint32_t i = 0; member->greedy && i < messages->known; i++) {
		struct credit *credit = &messages->peers[i].credit;

		credit->credited = credit->sent - credit->placed;
		credit->freed = credit->sent;
	}
}

/* --- what a program's endpoint has in use */

static void wrong(const struct member *member, const char *what, uint64_t has, uint64_t due)
{
	FAIL(cluster_here(), "mx: node %u: %s: %" PRIu64 ", %" PRIu64 " are due",
		member->node->number, what, has, due);
}

/* The node of a peer; UINT32_MAX: it has no session any more. */
static uint32_t peer_node(const struct member *member, uint32_t rank)
{
	const struct process *process = &member->endpoint->messages->map[rank];

	return node_find(member->node->simulation, process->nid, process->pid);
}

static void peer_check(const struct member *member, uint32_t rank)
{
	struct cluster *cluster = cluster_here();
	const struct messages *messages = member->endpoint->messages;
	const struct peer *peer = &messages->peers[rank];
	uint32_t node = peer_node(member, rank);
	const struct ledger *account = account_of(cluster, node, member->node->number);
	const struct credit *credit = &messages->peers[rank].credit;
	const uint64_t beside =
		node_engine(member->node)->spaces[CLUSTER_SPACE]->sharers[rank].told;
	const uint64_t told = peer->told < beside ? beside : peer->told;
	int64_t used = (int64_t)(credit->sent - credit->freed);

	if (!member->greedy && (used < 0 || used > (int64_t)credit->share))
		wrong(member, "credits of a peer in use", (uint64_t)used, credit->share);
	if (credit->share > messages->share + cluster->spare)
		wrong(member, "a peer's share", credit->share, messages->share);
	if (peer->told > credit->taken ||
		(!peer->failed && peer->joined && !peer->tell.busy &&
			credit->taken - told >= (messages->share + messages->shares[rank] + 7) / 8))
		wrong(member, "messages taken, and not told", credit->taken - told, 0);
	if (account->name == messages_name(messages, rank) && credit->taken > account->taken)
		wrong(member, "messages of a peer taken", credit->taken, account->taken);
}

/* What the poll core has is what the oracle has, to the message. */
static void kept_check(const struct member *member, const struct space *space)
{
	uint64_t kept = 0, all = 0, shares = space->spare;

	for (uint32_t i = 0; i < member->kept.count; i++)
		kept += !member->kept.posts[i]->taken;
	for (uint32_t i = 0; i < space->ranks; i++) {
		all += space->kept_of[i];
		shares += share_now(space, i);
		if (space->kept_of[i] > share_now(space, i) ||
			share_now(space, i) < space->kept_share)
			wrong(member, "messages of a rank kept", space->kept_of[i],
				share_now(space, i));
	}
	if (space->kept_lists[PORTAL_MATCH].length != kept)
		wrong(member, "messages kept", space->kept_lists[PORTAL_MATCH].length, kept);
	if (all < kept || shares != space->kept.count)
		wrong(member, "messages counted by rank", all, kept);
	if (counter_read(&segment_counters(space->segment)->dropped_no_header) != member->refusals)
		wrong(member, "messages refused",
			counter_read(&segment_counters(space->segment)->dropped_no_header),
			member->refusals);
}

static void memory_check(
	const struct member *member, const struct messages *messages, const struct space *space)
{
	uint64_t bytes = 0;

	list_each (const struct unexpected, unexpected, &messages->unexpected, all)
		bytes += unexpected->room;
	if (bytes != messages->seen_bytes ||
		bytes > messages->options.memory + messages->options.eager)
		wrong(member, "bytes of messages that were shown", bytes, messages->seen_bytes);
	if (granted_bytes(messages, space) > granted_most(messages))
		wrong(member, "bytes granted and kept", granted_bytes(messages, space),
			granted_most(messages));
}

void credits_check(struct member *member)
{
	const struct messages *messages = member->endpoint->messages;
	const struct space *space = node_engine(member->node)->spaces[CLUSTER_SPACE];

	oracle_catch_up(member);
	for (uint32_t i = 0; i < messages->known; i++)
		if (peer_node(member, i) != UINT32_MAX)
			peer_check(member, i);
	kept_check(member, space);
	memory_check(member, messages, space);
}

/* All is quiet: both ends of a session have the same counts, and credit for all but a part of a
 * share. */
static void peer_settle(const struct member *member, uint32_t rank)
{
	struct cluster *cluster = cluster_here();
	const struct messages *messages = member->endpoint->messages;
	const struct peer *peer = &messages->peers[rank];
	const struct credit *credit = &messages->peers[rank].credit;
	uint32_t node = peer_node(member, rank);
	const struct ledger *account;

	if (node == UINT32_MAX || !peer->joined || peer->failed ||
		cluster_troubled(cluster, member->node->number, node))
		return;
	account = account_of(cluster, member->node->number, node);
	if (account->name == peer->self && account->kept != credit->sent - credit->placed)
		wrong(member, "messages that a peer keeps", credit->sent - credit->placed,
			account->kept);
	if (account->name == peer->self && credit->credited != account->heard)
		wrong(member, "credit from a peer", credit->credited, account->heard);
	account = account_of(cluster, node, member->node->number);
	if (account->name == messages_name(messages, rank) && account->taken != credit->taken)
		wrong(member, "messages of a peer taken", credit->taken, account->taken);
}

void credits_settle(struct member *member)
{
	credits_check(member);
	for (uint32_t i = 0; i < member->endpoint->messages->known; i++)
		peer_settle(member, i);
}
