/* SPDX-License-Identifier: BSD-3-Clause */
/* greetings.c - see greetings.h. */
#include <messages/greetings.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <base/random.h>

#define NODE_LISTS 1024u

/* A greeting under way. */
struct sent_greeting {
	struct greeting greeting; /* first: greetings_ended() gets it */
	struct link link;
	struct greeting_node *node; /* NULL: it asks */
	uint64_t token;             /* 0: an answer */
};

/* --- nodes */

static bool nodes_make(struct greetings *greetings)
{
	greetings->nodes = malloc(NODE_LISTS * sizeof(*greetings->nodes));
	for (uint32_t i = 0; greetings->nodes && i < NODE_LISTS; i++)
		list_init(&greetings->nodes[i]);
	(void)!getrandom(&greetings->key, sizeof(greetings->key), GRND_NONBLOCK);
	return greetings->nodes != NULL;
}

/* The node with this id; NULL: there is no memory. node_review() must follow. */
static struct greeting_node *node_find(struct greetings *greetings, uint32_t nid)
{
	struct greeting_node *found;
	struct link *nodes;

	if (!greetings->nodes && !nodes_make(greetings))
		return NULL;
	nodes = &greetings->nodes[random_mix(greetings->key ^ nid) % NODE_LISTS];
	list_each (struct greeting_node, node, nodes, link)
		if (node->nid == nid)
			return node;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	found->nid = nid;
	list_append(nodes, &found->link);
	return found;
}

/* A node without places goes. */
static void node_review(struct greeting_node *node)
{
	if (node->waiting != 0 || node->answers != 0)
		return;
	link_remove(&node->link);
	free(node);
}

/* G1. `most` places are there, and `used` are in use. May a node that has `has` of them have one
 * more? */
static bool is_within_share(uint32_t has, uint32_t used, uint32_t most)
{
	return used < most && has < (most - used + 3) / 4;
}

static bool node_has_share(const struct greetings *greetings, const struct greeting_node *node)
{
	return is_within_share(node->waiting, greetings->waiting_count, GREETINGS_MAX) &&
	       is_within_share(node->answers, greetings->answers, ANSWERS_MAX);
}

/* --- all */

void greetings_init(struct greetings *greetings)
{
	greetings->nodes = NULL;
	list_init(&greetings->waiting);
	list_init(&greetings->sent);
	greetings->waiting_count = greetings->answers = 0;
}

void greetings_close(struct greetings *greetings)
{
	list_each (struct kept_greeting, kept, &greetings->waiting, link)
		free(kept);
	list_each (struct sent_greeting, sent, &greetings->sent, link)
		free(sent);
	for (uint32_t i = 0; greetings->nodes && i < NODE_LISTS; i++)
		list_each (struct greeting_node, node, &greetings->nodes[i], link)
			free(node);
	free(greetings->nodes);
	greetings_init(greetings);
}

/* --- received */

bool greetings_keep(
	struct greetings *greetings, struct process from, const struct greeting *greeting)
{
	struct greeting_node *node = node_find(greetings, from.nid);
	struct kept_greeting *kept = NULL;

	if (!node)
		return false;
	if (node_has_share(greetings, node))
		kept = malloc(sizeof(*kept));
	if (kept) {
		kept->node = node;
		kept->from = from;
		memcpy(kept->words, greeting->words, sizeof(kept->words));
		list_append(&greetings->waiting, &kept->link);
		greetings->waiting_count++;
		node->waiting++;
	}
	node_review(node);
	return kept != NULL;
}

void greetings_answer(struct greetings *greetings,
	void (*answer)(void *owner, const struct kept_greeting *kept), void *owner)
{
	for (uint32_t left = greetings->waiting_count; left > 0; left--) {
		struct kept_greeting *kept =
			list_first(&greetings->waiting, struct kept_greeting, link);

		link_remove(&kept->link);
		greetings->waiting_count--;
		answer(owner, kept);
		kept->node->waiting--;
		node_review(kept->node);
		free(kept);
	}
}

/* --- sent */

bool greetings_send(struct greetings *greetings, struct messages *messages, struct process to,
	const uint64_t words[3], bool asks)
{
	struct greeting_node *node = asks ? NULL : node_find(greetings, to.nid);
	struct sent_greeting *sent = asks || node ? malloc(sizeof(*sent)) : NULL;

	if (!sent) {
		if (node)
			node_review(node);
		return false;
	}
	sent->node = node;
	sent->token = asks ? words[2] : 0;
	sent->greeting = (struct greeting){.to = to, .words = {words[0], words[1], words[2]}};
	list_append(&greetings->sent, &sent->link);
	if (node) {
		greetings->answers++;
		node->answers++;
	}
	if (messages_greet(messages, &sent->greeting))
		return true;
	(void)greetings_ended(greetings, &sent->greeting);
	return false;
}

uint64_t greetings_ended(struct greetings *greetings, struct greeting *greeting)
{
	struct sent_greeting *sent = (struct sent_greeting *)(void *)greeting;
	const uint64_t token = sent->token;

	if (sent->node) {
		greetings->answers--;
		sent->node->answers--;
		node_review(sent->node);
	}
	link_remove(&sent->link);
	free(sent);
	return token;
}
