/* SPDX-License-Identifier: BSD-3-Clause */
/* greetings.c - see greetings.h. */
#include <messages/greetings.h>

#include <stdlib.h>
#include <string.h>

/* A greeting under way. */
struct sent_greeting {
	struct greeting greeting; /* first: greetings_ended() gets it */
	struct link link;
	uint64_t token; /* 0: an answer */
};

void greetings_init(struct greetings *greetings)
{
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
	greetings_init(greetings);
}

/* G1. `most` places are there, and `used` are in use. May a node that has `has` of them have one
 * more? */
static bool is_within_share(uint32_t has, uint32_t used, uint32_t most)
{
	return used < most && has < most - used;
}

static bool node_has_share(const struct greetings *greetings, uint32_t nid)
{
	uint32_t waiting = 0, answers = 0;

	if (greetings->waiting_count >= GREETINGS_MAX / 2)
		list_each (const struct kept_greeting, kept, &greetings->waiting, link)
			waiting += kept->from.nid == nid;
	if (greetings->answers >= ANSWERS_MAX / 2)
		list_each (const struct sent_greeting, sent, &greetings->sent, link)
			answers += sent->token == 0 && sent->greeting.to.nid == nid;
	return is_within_share(waiting, greetings->waiting_count, GREETINGS_MAX) &&
	       is_within_share(answers, greetings->answers, ANSWERS_MAX);
}

bool greetings_keep(
	struct greetings *greetings, struct process from, const struct greeting *greeting)
{
	struct kept_greeting *kept =
		node_has_share(greetings, from.nid) ? malloc(sizeof(*kept)) : NULL;

	if (!kept)
		return false;
	kept->from = from;
	memcpy(kept->words, greeting->words, sizeof(kept->words));
	list_append(&greetings->waiting, &kept->link);
	greetings->waiting_count++;
	return true;
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
		free(kept);
	}
}

bool greetings_send(struct greetings *greetings, struct messages *messages, struct process to,
	const uint64_t words[3], bool asks)
{
	struct sent_greeting *sent = malloc(sizeof(*sent));

	if (!sent)
		return false;
	sent->token = asks ? words[2] : 0;
	sent->greeting = (struct greeting){.to = to, .words = {words[0], words[1], words[2]}};
	list_append(&greetings->sent, &sent->link);
	greetings->answers += !asks;
	if (messages_greet(messages, &sent->greeting))
		return true;
	(void)greetings_ended(greetings, &sent->greeting);
	return false;
}

uint64_t greetings_ended(struct greetings *greetings, struct greeting *greeting)
{
	struct sent_greeting *sent = (struct sent_greeting *)(void *)greeting;
	const uint64_t token = sent->token;

	greetings->answers -= token == 0;
	link_remove(&sent->link);
	free(sent);
	return token;
}
