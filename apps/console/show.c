/* SPDX-License-Identifier: BSD-3-Clause */
/* show.c - see show.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../output.h"
#include "console.h"
#include "show.h"
#include "table.h"
#include "traffic.h"

#define PAGE_BYTES 65536 /* at first */
#define SECOND     1e9

/* One page of a topic, parsed; NULL after a complaint. */
static json_t *page_look(const char *topic, unsigned first)
{
	size_t size = PAGE_BYTES;
	json_error_t error;
	json_t *page = NULL;
	char *text = NULL;
	int length;

	for (;;) {
		char *more = realloc(text, size);

		if (!more) {
			console_fail("there is no memory to show %s", topic);
			break;
		}
		text = more;
		length = postern_inspect(console_interface(), topic, first, 0, text, size);
		if (length < 0) {
			console_fail_call(-length, "postern_inspect");
			break;
		}
		if ((size_t)length < size) {
			page = json_loads(text, 0, &error);
			if (!page)
				console_fail("the library's answer about %s is no JSON: %s", topic,
					error.text);
			break;
		}
		size = (size_t)length + PAGE_BYTES; /* it may have grown meanwhile */
	}
	free(text);
	return page;
}

json_t *show_look(const char *topic)
{
	json_t *page, *all, *next;

	if (strcmp(topic, SHOW_TRAFFIC) == 0)
		return traffic_look();
	all = page_look(topic, 0);
	next = all ? json_object_get(all, "next") : NULL;
	while (json_is_integer(next) && !console_interrupted()) {
		page = page_look(topic, (unsigned)json_integer_value(next));
		if (!page) {
			json_decref(all);
			return NULL;
		}
		json_array_extend(json_object_get(all, "items"), json_object_get(page, "items"));
		json_object_set(all, "next", json_object_get(page, "next"));
		json_decref(page);
		next = json_object_get(all, "next");
	}
	return all;
}

static void tell(const json_t *look, const json_t *before, double seconds)
{
	const json_t *items = json_object_get(look, "items");

	if (console.json) {
		json_dumpf(look, stdout, JSON_COMPACT);
		printf("\n");
	} else if (items) {
		table_list(items);
	} else {
		table_rates(look, before, seconds);
	}
}

void show(const char *topic)
{
	json_t *look = show_look(topic);

	if (look)
		tell(look, NULL, 0);
	json_decref(look);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / SECOND;
}

void show_watch(const char *topic, uint64_t interval, uint64_t count)
{
	json_t *before = NULL;
	double then = 0;

	for (uint64_t n = 0; count == 0 || n < count; n++) {
		double now = seconds_now();
		json_t *look;

		if (n > 0 && !console_sleep(interval))
			break;
		now = seconds_now();
		look = show_look(topic);
		if (!look)
			break;
		if (console.terminal)
			printf("\033[H\033[J%s every %.3g s; any key ends this\n", topic,
				(double)interval / SECOND);
		else if (n > 0 && !console.json)
			printf("\n");
		tell(look, before, now - then);
		json_decref(before);
		before = look;
		then = now;
		if (!output_flush())
			break;
	}
	json_decref(before);
}

static bool compare(double left, const char *relation, double right)
{
	if (strcmp(relation, "<") == 0)
		return left < right;
	if (strcmp(relation, "<=") == 0)
		return left <= right;
	if (strcmp(relation, "=") == 0)
		return left >= right && left <= right;
	if (strcmp(relation, "!=") == 0)
		return left < right || left > right;
	return strcmp(relation, ">") == 0 ? left > right : left >= right;
}

/* "TOPIC.NAME" as a number; false after a complaint. */
static bool value_look(const char *path, double *number)
{
	char topic[64];
	size_t length = strcspn(path, ".");
	const json_t *value;
	json_t *look;

	if (length >= sizeof(topic) || path[length] == '\0') {
		console_fail(
			"check takes TOPIC.NAME, such as stats.frames_received, not \"%s\"", path);
		return false;
	}
	snprintf(topic, sizeof(topic), "%.*s", (int)length, path);
	look = show_look(topic);
	if (!look)
		return false;
	value = table_value(look, path + length + 1);
	*number = json_number_value(value);
	if (!json_is_number(value))
		console_fail("%s has no number \"%s\"; show %s lists what it has", topic,
			path + length + 1, topic);
	json_decref(look);
	return !console.failed;
}

void show_check(const char *path, const char *relation, const char *text)
{
	char *end;
	double number, wanted = strtod(text, &end);

	if (end == text || *end != '\0') {
		console_fail("\"%s\" is not a number", text);
		return;
	}
	if (value_look(path, &number) && !compare(number, relation, wanted))
		console_fail("%s is %.17g, which is not %s %s", path, number, relation, text);
}
