/* SPDX-License-Identifier: BSD-3-Clause */
/* counter.c - see counter.h. */
#include "counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX 65536u
#define PAGES_MAX    4096u /* of one topic: operations may come as quickly as they are read */

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void counter_take(struct counters *counters, const json_t *item)
{
	struct counter *items =
		counters->count < COUNTERS_MAX
			? realloc(counters->items, (counters->count + 1) * sizeof(*items))
			: NULL;

	if (!items)
		return;
	counters->items = items;
	items[counters->count] = (struct counter){
		.success = number_of(item, "success"),
		.failure = number_of(item, "failure"),
		.waiting = number_of(item, "triggered"),
		.threshold = number_of(item, "threshold"),
		.sleepers = number_of(item, "sleepers"),
		.test = number_of(item, "test"),
	};
	snprintf(items[counters->count].name, COUNTER_NAME_BYTES, "%s", text_of(item, "handle"));
	text_clean(items[counters->count++].name);
}

static void operation_describe(const json_t *item, char *text, size_t size)
{
	const char *operation = text_of(item, "operation"), *target = text_of(item, "target");

	if (target[0] != '\0')
		snprintf(text, size, "%s %s", operation, target);
	else
		snprintf(text, size, "%s %llu:%llu pt %llu %s", operation,
			(unsigned long long)number_of(item, "nid"),
			(unsigned long long)number_of(item, "pid"),
			(unsigned long long)number_of(item, "portal"), text_of(item, "match_bits"));
	text_clean(text);
}

/* Of the operations of a counter the one that is due first comes first. */
static void operation_take(struct counters *counters, const json_t *item)
{
	for (unsigned i = 0; i < counters->count; i++) {
		struct counter *counter = &counters->items[i];

		if (strcmp(counter->name, text_of(item, "counter")) != 0)
			continue;
		if (counter->next[0] == '\0')
			operation_describe(item, counter->next, sizeof(counter->next));
		return;
	}
}

static bool topic_read(struct counters *counters, struct client *client, const char *topic,
	uint64_t number, void (*take)(struct counters *counters, const json_t *item))
{
	uint64_t first = 0;

	for (unsigned page = 0; page < PAGES_MAX; page++) {
		char question[64];
		json_t *next, *item;
		const char *key;

		snprintf(question, sizeof(question), "/postern/%s,%llu,%llu", topic,
			(unsigned long long)number, (unsigned long long)first);
		if (!client_ask(client, question))
			return false;
		json_object_foreach(client_member(client, "items"), key, item) take(counters, item);
		next = client_member(client, "next");
		if (!json_is_integer(next) || (uint64_t)json_integer_value(next) <= first)
			break;
		first = (uint64_t)json_integer_value(next);
	}
	return true;
}

bool counters_read(struct counters *counters, struct client *client, uint64_t number)
{
	counters_free(counters);
	return topic_read(counters, client, "ct", number, counter_take) &&
	       (counters->count == 0 ||
		       topic_read(counters, client, "triggered", number, operation_take));
}

void counters_free(struct counters *counters)
{
	free(counters->items);
	*counters = (struct counters){0};
}
