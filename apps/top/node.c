/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - see node.h. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIRS_MAX 4096u

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* DPDK writes a flag as a number. */
static bool flag_of(const json_t *object, const char *name)
{
	return number_of(object, name) != 0 || json_is_true(json_object_get(object, name));
}

static const struct pair *pair_find(const struct node *node, uint64_t pid, uint64_t process)
{
	for (unsigned i = 0; i < node->count; i++)
		if (node->pairs[i].pid == pid && node->pairs[i].process == process)
			return &node->pairs[i];
	return NULL;
}

static struct pair pair_make(const struct node *before, const json_t *item, uint64_t now)
{
	struct pair pair = {
		.pid = number_of(item, "pid"),
		.uid = number_of(item, "uid"),
		.process = number_of(item, "process"),
		.paired = flag_of(item, "pair"),
		.hot = flag_of(item, "hot"),
		.full = number_of(item, "full"),
		.dropped = number_of(item, "dropped"),
		.memory = number_of(item, "memory"),
		.now = {number_of(item, "frames_received"), number_of(item, "frames_sent"),
			number_of(item, "bytes_received"), number_of(item, "bytes_sent"), now},
	};
	const struct pair *past = pair_find(before, pair.pid, pair.process);

	/* Another life of the process counts from nothing. */
	if (past && past->paired && past->now.frames_in <= pair.now.frames_in &&
		past->now.frames_out <= pair.now.frames_out)
		pair.before = past->now;
	return pair;
}

static void pair_add(struct node *node, const struct pair *pair)
{
	struct pair *pairs = node->count < PAIRS_MAX
				     ? realloc(node->pairs, (node->count + 1) * sizeof(*pairs))
				     : NULL;

	if (!pairs)
		return;
	node->pairs = pairs;
	node->pairs[node->count++] = *pair;
}

/* Takes one page of the list. *first: where the next one begins; UINT64_MAX: there is none. */
static void page_take(struct node *node, const struct node *before, const struct client *client,
	uint64_t now, uint64_t *first)
{
	json_t *next = client_member(client, "next"), *item;
	const char *key;

	client_text(client, "directory", node->directory, sizeof(node->directory));
	node->refused = 0;
	json_object_foreach(client_member(client, "refused"), key, item) node->refused +=
		(uint64_t)json_integer_value(item);
	json_object_foreach(client_member(client, "items"), key, item)
	{
		struct pair pair = pair_make(before, item, now);

		pair_add(node, &pair);
	}
	*first = json_is_integer(next) && (uint64_t)json_integer_value(next) > *first
			 ? (uint64_t)json_integer_value(next)
			 : UINT64_MAX;
}

bool node_read(struct node *node, struct client *client, uint64_t number, uint64_t now)
{
	struct node before = *node;
	uint64_t first = 0;
	char question[64];
	bool answered = true;

	*node = (struct node){0};
	while (answered && first != UINT64_MAX) {
		snprintf(question, sizeof(question), "/postern/node,%llu,%llu",
			(unsigned long long)number, (unsigned long long)first);
		answered = client_ask(client, question);
		if (answered)
			page_take(node, &before, client, now, &first);
	}
	node_free(&before);
	return answered;
}

void node_free(struct node *node)
{
	free(node->pairs);
	*node = (struct node){0};
}

double pair_rate(const struct pair *pair, uint64_t before, uint64_t now)
{
	uint64_t time = pair->now.at - pair->before.at;

	if (pair->before.at == 0 || time == 0 || now < before)
		return 0;
	return (double)(now - before) * 1e9 / (double)time;
}
